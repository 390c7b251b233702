//! The keys. What comes from clients is escaped, so a key is plain ASCII whatever a user is called.

use std::fmt::{self, Write as _};

use sha2::{Digest, Sha256};

use super::SchemaError;
use super::limits::Table;
use super::quotas::{QuotaEntity, QuotaEntityType};
use crate::names::collision_key;
use freshet_access::types::{AclBinding, ScramMechanism};
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};

/// All incarnations.
pub const INCARNATIONS: &str = "incarnation/";
/// All slots.
pub const SLOTS: &str = "slot/";
/// All topics that exist.
pub const TOPICS: &str = "topic/";
/// All topics, half made and half removed ones included.
pub const TOPIC_IDS: &str = "topic_id/";
/// All ACLs.
pub const ACLS: &str = "acl/";
/// All SCRAM users.
pub const SCRAM_USERS: &str = "scram/";

/// All notes of changes that clients made.
pub const CHANGES: &str = "change/";
/// All hidden topics: deleted and restorable, or found on storage.
pub const HIDDEN_TOPICS: &str = "shelved_topic/";
/// All marks of topics that are gone for good.
pub const DELETED_TOPICS: &str = "deleted_topic/";
/// All quotas.
pub const QUOTAS: &str = "quota/";

/// All partitions of a topic.
#[must_use]
pub fn partitions_of(topic: TopicId) -> String {
    format!("partition/{}/", topic.simple())
}

/// Which brokers a configuration is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigScope {
    /// All brokers, where they have no value of their own.
    Default,
    /// The broker of a slot, also while nobody holds it.
    Slot(u32),
}

impl ConfigScope {
    /// The broker's node id; empty for all brokers, as Kafka names them.
    pub(crate) fn node(self) -> String {
        match self {
            Self::Default => String::new(),
            Self::Slot(slot) => slot.to_string(),
        }
    }
}

/// A key of the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `cluster`
    Cluster,
    /// `term`
    Term,
    /// `counter/incarnation`
    IncarnationCounter,
    /// `incarnation/<20 digits>`
    Incarnation(Incarnation),
    /// `slot/<number>`
    Slot(u32),
    /// `topic/<name>`
    Topic(String),
    /// `topic_id/<32 hexadecimal digits>`
    TopicId(TopicId),
    /// `deleted_topic/<32 hexadecimal digits>`
    DeletedTopic(TopicId),
    /// `shelved_topic/<32 hexadecimal digits>`
    HiddenTopic(TopicId),
    /// `topic_collision/<name with _ for .>`
    TopicCollision(String),
    /// `partition/<32 hexadecimal digits>/<at least 6 digits>`
    Partition(PartitionId),
    /// `wanted_leader/<32 hexadecimal digits>/<at least 6 digits>`
    WantedLeader(PartitionId),
    /// `config/broker/<slot>` or `config/broker/default`
    BrokerConfig(ConfigScope),
    /// `acl/<SHA-256 of the entry, hexadecimal>`
    Acl(String),
    /// `scram/<mechanism>/<user, escaped as in URLs>`
    Scram(ScramMechanism, String),
    /// `producer_id/block`
    ProducerIds,
    /// `produce_suspension`
    Refusal,
    /// `throttle`
    Throttle,
    /// `limits`
    Limits,
    /// `added/<table>`
    Added(Table),
    /// `quota/<type>:<name, escaped as in URLs>`, or `quota/<type>` for the default; of two
    /// types joined by `/`
    Quota(QuotaEntity),
    /// `counter/change`
    ChangeCounter,
    /// `change/<20 digits>`
    Change(u64),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("cluster"),
            Self::Term => f.write_str("term"),
            Self::IncarnationCounter => f.write_str("counter/incarnation"),
            Self::Incarnation(incarnation) => write!(f, "incarnation/{:020}", incarnation.0),
            Self::Slot(slot) => write!(f, "slot/{slot}"),
            Self::Topic(name) => write!(f, "topic/{name}"),
            Self::TopicId(id) => write!(f, "topic_id/{}", id.simple()),
            Self::DeletedTopic(id) => write!(f, "deleted_topic/{}", id.simple()),
            Self::HiddenTopic(id) => write!(f, "shelved_topic/{}", id.simple()),
            Self::TopicCollision(name) => write!(f, "topic_collision/{name}"),
            Self::Partition(PartitionId { topic, index }) => {
                write!(f, "partition/{}/{index:06}", topic.simple())
            }
            Self::WantedLeader(PartitionId { topic, index }) => {
                write!(f, "wanted_leader/{}/{index:06}", topic.simple())
            }
            Self::BrokerConfig(ConfigScope::Default) => f.write_str("config/broker/default"),
            Self::BrokerConfig(ConfigScope::Slot(slot)) => write!(f, "config/broker/{slot}"),
            Self::Acl(hash) => write!(f, "acl/{hash}"),
            Self::Scram(mechanism, user) => {
                write!(f, "scram/{}/{}", mechanism_name(*mechanism), escape(user))
            }
            Self::ProducerIds => f.write_str("producer_id/block"),
            Self::Refusal => f.write_str("produce_suspension"),
            Self::Throttle => f.write_str("throttle"),
            Self::Limits => f.write_str("limits"),
            Self::Added(table) => write!(f, "added/{}", table.name()),
            Self::Quota(entity) => write_quota(f, entity),
            Self::ChangeCounter => f.write_str("counter/change"),
            Self::Change(sequence) => write!(f, "change/{sequence:020}"),
        }
    }
}

impl Key {
    /// The key of the collision rule for a topic's name.
    #[must_use]
    pub fn collision_of(name: &str) -> Self {
        Self::TopicCollision(collision_key(name))
    }

    /// The key of an entry of the access control list, which is identified by all its fields.
    #[must_use]
    pub fn of_acl(binding: &AclBinding) -> Self {
        let mut hash = Sha256::new();
        let codes = [
            binding.resource_type as i8,
            binding.pattern_type as i8,
            binding.operation as i8,
            binding.permission as i8,
        ];
        hash.update(codes.map(i8::cast_unsigned));
        for text in [&binding.resource_name, &binding.principal, &binding.host] {
            // With its length in front, so that no two entries run together to the same bytes.
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        let mut text = String::with_capacity(64);
        for byte in hash.finalize() {
            write!(text, "{byte:02x}").expect("text takes text");
        }
        Self::Acl(text)
    }

    /// Reads a key. None where its kind is unknown, of a newer release.
    ///
    /// # Errors
    /// [`SchemaError::Key`] where the kind is known and the form is not.
    pub fn parse(key: &str) -> Result<Option<Self>, SchemaError> {
        let (kind, rest) = key.split_once('/').unwrap_or((key, ""));
        let parsed = match kind {
            "cluster" if rest.is_empty() => Some(Self::Cluster),
            "term" if rest.is_empty() => Some(Self::Term),
            "counter" if rest == "incarnation" => Some(Self::IncarnationCounter),
            "counter" if rest == "change" => Some(Self::ChangeCounter),
            "change" => rest.parse().ok().map(Self::Change),
            "producer_id" if rest == "block" => Some(Self::ProducerIds),
            "produce_suspension" if rest.is_empty() => Some(Self::Refusal),
            "throttle" if rest.is_empty() => Some(Self::Throttle),
            "limits" if rest.is_empty() => Some(Self::Limits),
            "added" => Table::ALL.into_iter().find(|table| table.name() == rest).map(Self::Added),
            "incarnation" => rest.parse().ok().map(|id| Self::Incarnation(Incarnation(id))),
            "slot" => rest.parse().ok().map(Self::Slot),
            "topic" => Some(Self::Topic(rest.to_owned())),
            "topic_id" => parse_topic_id(rest).map(Self::TopicId),
            "deleted_topic" => parse_topic_id(rest).map(Self::DeletedTopic),
            "shelved_topic" => parse_topic_id(rest).map(Self::HiddenTopic),
            "topic_collision" => Some(Self::TopicCollision(rest.to_owned())),
            "partition" => parse_partition(rest).map(Self::Partition),
            "wanted_leader" => parse_partition(rest).map(Self::WantedLeader),
            "config" if rest.starts_with("broker/") => parse_broker(&rest["broker/".len()..]),
            "acl" => Some(Self::Acl(rest.to_owned())),
            "scram" => parse_scram(rest),
            "quota" => parse_quota(rest),
            _ => return Ok(None),
        };
        match parsed {
            // Only the form that is written is accepted, or one record could have two keys.
            Some(parsed) if parsed.to_string() == key => Ok(Some(parsed)),
            _ => Err(SchemaError::Key(key.to_owned())),
        }
    }
}

fn parse_topic_id(text: &str) -> Option<TopicId> {
    TopicId::try_parse(text).ok()
}

fn parse_partition(text: &str) -> Option<PartitionId> {
    let (topic, index) = text.split_once('/')?;
    let index: i32 = index.parse().ok().filter(|index| *index >= 0)?;
    Some(PartitionId::new(parse_topic_id(topic)?, index))
}

fn parse_broker(text: &str) -> Option<Key> {
    let scope = match text {
        "default" => ConfigScope::Default,
        slot => ConfigScope::Slot(slot.parse().ok()?),
    };
    Some(Key::BrokerConfig(scope))
}

fn parse_scram(text: &str) -> Option<Key> {
    let (mechanism, user) = text.split_once('/')?;
    let known = [ScramMechanism::Sha256, ScramMechanism::Sha512];
    let mechanism = known.into_iter().find(|known| mechanism_name(*known) == mechanism)?;
    Some(Key::Scram(mechanism, unescape(user)?))
}

fn write_quota(f: &mut fmt::Formatter<'_>, entity: &QuotaEntity) -> fmt::Result {
    f.write_str("quota")?;
    for (kind, name) in &entity.0 {
        write!(f, "/{}", kind.name())?;
        if let Some(name) = name {
            write!(f, ":{}", escape(name))?;
        }
    }
    Ok(())
}

fn parse_quota(text: &str) -> Option<Key> {
    let mut entity = QuotaEntity::default();
    for part in text.split('/') {
        let (kind, name) = match part.split_once(':') {
            Some((kind, name)) => (kind, Some(unescape(name)?)),
            None => (part, None),
        };
        let kind = QuotaEntityType::ALL.into_iter().find(|known| known.name() == kind)?;
        entity.0.insert(kind, name);
    }
    Some(Key::Quota(entity))
}

fn mechanism_name(mechanism: ScramMechanism) -> &'static str {
    match mechanism {
        ScramMechanism::Sha256 => "SCRAM-SHA-256",
        ScramMechanism::Sha512 => "SCRAM-SHA-512",
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("text takes text");
        }
    }
    escaped
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use freshet_access::types::{Operation, PatternType, Permission, ResourceType};

    fn quota(names: &[(QuotaEntityType, Option<&str>)]) -> QuotaEntity {
        let names = names.iter().map(|(kind, name)| (*kind, name.map(str::to_owned)));
        QuotaEntity(names.collect())
    }

    fn binding() -> AclBinding {
        AclBinding {
            resource_type: ResourceType::Topic,
            resource_name: "orders".to_owned(),
            pattern_type: PatternType::Literal,
            principal: "User:alice".to_owned(),
            host: "*".to_owned(),
            operation: Operation::Read,
            permission: Permission::Allow,
        }
    }

    #[test]
    fn keys_have_the_form_of_the_schema_and_come_back() {
        use QuotaEntityType::{ClientId, Ip, User};
        let topic = TopicId::from_u128(0xABC);
        let hex = "00000000000000000000000000000abc";
        let cases = [
            (Key::Cluster, "cluster".to_owned()),
            (Key::Term, "term".to_owned()),
            (Key::IncarnationCounter, "counter/incarnation".to_owned()),
            (Key::Incarnation(Incarnation(12)), "incarnation/00000000000000000012".to_owned()),
            (Key::Slot(3), "slot/3".to_owned()),
            (Key::Topic("a.b".to_owned()), "topic/a.b".to_owned()),
            (Key::TopicId(topic), format!("topic_id/{hex}")),
            (Key::DeletedTopic(topic), format!("deleted_topic/{hex}")),
            (Key::collision_of("a.b"), "topic_collision/a_b".to_owned()),
            (Key::Partition(PartitionId::new(topic, 7)), format!("partition/{hex}/000007")),
            (Key::WantedLeader(PartitionId::new(topic, 7)), format!("wanted_leader/{hex}/000007")),
            (Key::BrokerConfig(ConfigScope::Default), "config/broker/default".to_owned()),
            (Key::BrokerConfig(ConfigScope::Slot(3)), "config/broker/3".to_owned()),
            (
                Key::Scram(ScramMechanism::Sha256, "a/ü".to_owned()),
                "scram/SCRAM-SHA-256/a%2F%C3%BC".to_owned(),
            ),
            (Key::ProducerIds, "producer_id/block".to_owned()),
            (Key::Refusal, "produce_suspension".to_owned()),
            (Key::Throttle, "throttle".to_owned()),
            (Key::Limits, "limits".to_owned()),
            (Key::Added(Table::Users), "added/users".to_owned()),
            (Key::Quota(quota(&[(User, Some("a/ü"))])), "quota/user:a%2F%C3%BC".to_owned()),
            (
                Key::Quota(quota(&[(ClientId, Some("")), (User, None)])),
                "quota/user/client-id:".to_owned(),
            ),
            (Key::Quota(quota(&[(Ip, None)])), "quota/ip".to_owned()),
            (Key::ChangeCounter, "counter/change".to_owned()),
            (Key::Change(7), "change/00000000000000000007".to_owned()),
            (Key::HiddenTopic(topic), format!("shelved_topic/{hex}")),
        ];
        for (key, text) in cases {
            assert_eq!(key.to_string(), text);
            assert_eq!(Key::parse(&text), Ok(Some(key)));
        }
    }

    #[test]
    fn acl_key_depends_on_every_field_and_is_stable() {
        let key = Key::of_acl(&binding()).to_string();
        // Part of the format: an entry that was stored must be found again.
        let hash = "770c87fefdb6ec5b07901abcf663a296367be11e0c18acf8ba864e21a28b2d2b";
        assert_eq!(key, format!("acl/{hash}"));
        let changes: [fn(&mut AclBinding); 7] = [
            |acl| acl.resource_type = ResourceType::Group,
            |acl| acl.resource_name.push('s'),
            |acl| acl.pattern_type = PatternType::Prefixed,
            |acl| acl.principal.push('s'),
            |acl| acl.host = "::1".to_owned(),
            |acl| acl.operation = Operation::Write,
            |acl| acl.permission = Permission::Deny,
        ];
        let mut keys = std::collections::BTreeSet::from([key]);
        for change in changes {
            let mut other = binding();
            change(&mut other);
            assert!(keys.insert(Key::of_acl(&other).to_string()), "{other:?}");
        }
    }

    #[test]
    fn malformed_keys_are_errors_and_unknown_kinds_are_not() {
        for key in [
            "incarnation/12",
            "incarnation/x",
            "topic_id/xyz",
            "partition/00000000000000000000000000000abc/7",
            "partition/00000000000000000000000000000abc/-00001",
            "config/broker/x",
            "scram/PLAIN/a",
            "scram/SCRAM-SHA-256/%zz",
            "quota/group:x",
            "quota/client-id/user",
            "quota/",
            "slot/x",
            "slot/03",
            "change/7",
            "added/x",
        ] {
            assert_eq!(Key::parse(key), Err(SchemaError::Key(key.to_owned())), "{key}");
        }
        for key in ["zone/1", "config/group/x", "counter/x", "cluster/x", ""] {
            assert_eq!(Key::parse(key), Ok(None), "{key}");
        }
    }

    proptest! {
        #[test]
        fn users_of_any_name_have_plain_keys_that_come_back(user in ".*") {
            let key = Key::Scram(ScramMechanism::Sha512, user);
            let text = key.to_string();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(Key::parse(&text), Ok(Some(key)));
        }

        #[test]
        fn parsing_any_text_does_not_panic(text in ".*") {
            let _ = Key::parse(&text);
        }
    }
}
