//! The records, all at version 1. Field names are part of the format.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Record, RetentionHistory};
use freshet_access::types::{AclBinding, ScramCredential, ScramMechanism};
use freshet_wire::ids::{Incarnation, TopicId};

/// Configurations that were set, by Kafka's name; defaults are not stored.
pub type Configs = BTreeMap<String, String>;

/// `cluster`: what the control plane wants of the cluster as a whole.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// Kafka's cluster id: 16 bytes as 22 characters of URL-safe base64.
    pub cluster_id: String,
    /// Milliseconds since 1970, for display.
    pub created_at_ms: i64,
    /// How many brokers it has when awake.
    pub scale: u32,
    /// The secret from which answers to unknown users are derived, so that nobody can distinguish
    /// them from answers to wrong passwords: 32 random bytes as 43 characters of URL-safe base64.
    /// It never leaves the cluster.
    pub decoy_secret: String,
}

impl fmt::Debug for ClusterRecord {
    /// Leaves the secret out, so that it gets into no log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster_id, created_at_ms, scale, decoy_secret: _ } = self;
        formatter
            .debug_struct("ClusterRecord")
            .field("cluster_id", cluster_id)
            .field("created_at_ms", created_at_ms)
            .field("scale", scale)
            .finish_non_exhaustive()
    }
}

impl Record for ClusterRecord {
    const KIND: &'static str = "cluster";

    fn check(&self) -> Result<(), String> {
        self.decoy_secret_bytes().map(drop).ok_or_else(|| "decoy_secret is not 32 bytes".to_owned())
    }
}

impl ClusterRecord {
    /// The bytes of `decoy_secret`; `None` where it is malformed.
    #[must_use]
    pub fn decoy_secret_bytes(&self) -> Option<[u8; 32]> {
        URL_SAFE_NO_PAD.decode(&self.decoy_secret).ok()?.try_into().ok()
    }
}

/// The end of a lane, which never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SealedEnd {
    /// Number of the lane's last file.
    pub file: u64,
    /// Sequence number of the last block that counts; no later block does.
    pub sequence: u64,
}

/// What an incarnation may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncarnationState {
    /// It may write metadata.
    Live,
    /// It may not write metadata any more, and the end of its lane is not known yet.
    Fenced,
    /// It was fenced, and the end of its lane is known.
    Sealed,
    /// It stopped by itself; the end of its lane is known.
    Closed,
}

/// `incarnation/<id>`: a start of a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncarnationRecord {
    /// What it may do. Never becomes `live` again.
    pub state: IncarnationState,
    /// The node id that it answers for.
    pub slot: u32,
    /// Set once, with `sealed` or `closed`.
    pub sealed_end: Option<SealedEnd>,
    /// Milliseconds since 1970, for display.
    pub started_at_ms: i64,
    /// When its end was recorded, in milliseconds since 1970. Earlier releases record none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<i64>,
    /// For display.
    pub host: String,
    /// Where it runs and how the cluster's other brokers reach it.
    #[serde(default, skip_serializing_if = "BrokerPlace::is_unknown")]
    pub place: BrokerPlace,
}

/// Where a broker runs, and how other brokers of its cluster reach it. Texts are empty where nobody
/// said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerPlace {
    /// `<host>:<port>` of its listener for brokers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// `<host>:<port>` of its listener for clients that come without a gateway.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kafka: String,
    /// `<host>:<port>` of its listener for gateways.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub link: String,
    /// The zone of its node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The release that it runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub release: String,
}

impl BrokerPlace {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// The zone as clients are given it; `None` where nobody said.
    #[must_use]
    pub fn rack(&self) -> Option<String> {
        (!self.zone.is_empty()).then(|| self.zone.clone())
    }
}

impl Record for IncarnationRecord {
    const KIND: &'static str = "incarnation";

    fn check(&self) -> Result<(), String> {
        let ended = matches!(self.state, IncarnationState::Sealed | IncarnationState::Closed);
        if ended != self.sealed_end.is_some() {
            return Err(format!("{:?} with the end {:?}", self.state, self.sealed_end));
        }
        Ok(())
    }
}

/// `slot/<number>`: who answers for a node id. A slot is claimed by replacing the record that was
/// seen, so that of two starts one holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRecord {
    /// The incarnation that claimed it last. It may have ended.
    pub incarnation: Incarnation,
}

impl Record for SlotRecord {
    const KIND: &'static str = "slot";
}

/// `wanted_leader/<topic id>/<index>`: who is to lead a partition, until it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedLeaderRecord {
    /// The slot of the broker.
    pub slot: u32,
}

impl Record for WantedLeaderRecord {
    const KIND: &'static str = "wanted leader";
}

/// `counter/<name>`: numbers that are handed out once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterRecord {
    /// The next one.
    pub next: u64,
}

impl Record for CounterRecord {
    const KIND: &'static str = "counter";
}

/// `term`: who is controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerTerm {
    /// Grows with each election.
    pub term: u64,
    /// The controller.
    pub incarnation: Incarnation,
}

impl Record for ControllerTerm {
    const KIND: &'static str = "controller term";
}

/// The most replicas that a topic reports: each of them stands in every answer about each of its
/// partitions.
pub const REPLICATION_FACTOR_MAX: i16 = 3;

/// Reads a replication factor. Earlier releases took any number; more than
/// [`REPLICATION_FACTOR_MAX`] is read as that.
fn replication_factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i16, D::Error> {
    Ok(i16::deserialize(deserializer)?.min(REPLICATION_FACTOR_MAX))
}

/// `topic/<name>`: a topic that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicRecord {
    /// Its identity.
    pub id: TopicId,
    /// Its name.
    pub name: String,
    /// How many partitions it has; never fewer than before.
    pub partitions: i32,
    /// The replication factor as it was requested and is reported, up to
    /// [`REPLICATION_FACTOR_MAX`]. Durability does not depend on it: storage provides that.
    #[serde(deserialize_with = "replication_factor")]
    pub replication_factor: i16,
    /// Whether Kafka itself keeps state in it.
    pub internal: bool,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    /// The configurations that were set.
    pub configs: Configs,
    /// The history of the number of partitions: (since when in ms since 1970 UTC, number), from the
    /// creation on. Empty where the number was never raised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_counts: Vec<(i64, i32)>,
    /// [from, until) in ms, ascending, in which it was hidden ([`HiddenTopicRecord`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<(i64, i64)>,
    /// How its rule of retention changed; `None` where it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionHistory>,
}

impl TopicRecord {
    /// The history of the number of partitions: (since when in ms since 1970 UTC, number),
    /// ascending, from its creation on.
    #[must_use]
    pub fn partition_history(&self) -> Vec<(i64, i32)> {
        if self.partition_counts.is_empty() {
            return vec![(self.created_at_ms, self.partitions)];
        }
        self.partition_counts.clone()
    }

    /// The same topic with more partitions.
    #[must_use]
    pub fn extended(&self, partitions: i32, now_ms: i64) -> Self {
        let mut partition_counts = self.partition_history();
        let last_ms = partition_counts.last().map_or(now_ms, |(at_ms, _)| *at_ms);
        partition_counts.push((now_ms.max(last_ms), partitions));
        Self { partitions, partition_counts, ..self.clone() }
    }
}

impl Record for TopicRecord {
    const KIND: &'static str = "topic";

    fn check(&self) -> Result<(), String> {
        if self.partitions < 1 {
            return Err(format!("{} partitions", self.partitions));
        }
        Ok(())
    }
}

/// `topic_id/<id>` and `topic_collision/<name with _ for .>`: the topic behind it. The first is
/// written before and removed after all else of a topic, so what it names may be half made or half
/// removed: only `topic/<name>` says that a topic exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicNameRecord {
    /// Name of the topic.
    pub name: String,
}

impl Record for TopicNameRecord {
    const KIND: &'static str = "topic name";
}

/// `deleted_topic/<id>`: somebody deleted the topic, so its records may go. A topic that is merely
/// unknown (the metadata came back from a backup) keeps them. The rest is for the meter, which
/// counts what the topic used up to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedTopicRecord {
    /// Name that the topic had.
    pub name: String,
    /// When it was deleted, ms since 1970 UTC.
    pub deleted_at_ms: i64,
    /// When it was made, ms since 1970 UTC.
    #[serde(default)]
    pub created_at_ms: i64,
    /// Whether Kafka itself kept state in it.
    #[serde(default)]
    pub internal: bool,
    /// The history of the number of partitions: (since when in ms since 1970 UTC, number).
    #[serde(default)]
    pub partition_counts: Vec<(i64, i32)>,
    /// The configurations that were set.
    #[serde(default)]
    pub configs: Configs,
    /// [from, until) in ms, ascending, in which it was hidden and came back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<(i64, i64)>,
    /// How its rule of retention changed; `None` where it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionHistory>,
}

impl DeletedTopicRecord {
    /// The record that a topic leaves which is deleted now.
    #[must_use]
    pub fn of(topic: &TopicRecord, now_ms: i64) -> Self {
        Self {
            name: topic.name.clone(),
            deleted_at_ms: now_ms,
            created_at_ms: topic.created_at_ms,
            internal: topic.internal,
            partition_counts: topic.partition_history(),
            configs: topic.configs.clone(),
            deletions: topic.deletions.clone(),
            retention: topic.retention.clone(),
        }
    }
}

impl Record for DeletedTopicRecord {
    const KIND: &'static str = "deleted topic";
}

/// `shelved_topic/<id>`: a topic that clients do not see and whose partitions are led and kept all
/// the same. Either it was deleted and can be restored, or it was found on storage and metadata
/// that was restored from a backup did not know it. It has a key of its own, so that a release that
/// does not know this kind takes the topic for unknown, whose records stay, and not for deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenTopicRecord {
    /// The topic as it was. Of one that was found on storage the name may be empty: unknown.
    pub topic: TopicRecord,
    /// When it was hidden, ms since 1970 UTC.
    #[serde(rename = "shelved_at_ms")] // as release 0.1 stores it
    pub hidden_at_ms: i64,
    /// Until when it can be restored, ms since 1970 UTC; `None` where it was found on storage,
    /// which is kept until somebody restores or purges it.
    pub restorable_until_ms: Option<i64>,
}

impl HiddenTopicRecord {
    /// Whether it was found on storage, and nobody deleted it.
    #[must_use]
    pub fn is_orphaned(&self) -> bool {
        self.restorable_until_ms.is_none()
    }

    /// Whether it is due to be removed for good at this time.
    #[must_use]
    pub fn is_due(&self, now_ms: i64) -> bool {
        self.restorable_until_ms.is_some_and(|until_ms| until_ms <= now_ms)
    }

    /// The topic as it is restored now.
    #[must_use]
    pub fn restored(&self, name: &str, now_ms: i64) -> TopicRecord {
        let mut topic = TopicRecord { name: name.to_owned(), ..self.topic.clone() };
        topic.deletions.push((self.hidden_at_ms, now_ms.max(self.hidden_at_ms)));
        topic
    }

    /// The record that it leaves when it is removed for good. Its end is when it was hidden.
    #[must_use]
    pub fn removed(&self) -> DeletedTopicRecord {
        DeletedTopicRecord::of(&self.topic, self.hidden_at_ms)
    }
}

impl Record for HiddenTopicRecord {
    const KIND: &'static str = "hidden topic";

    fn check(&self) -> Result<(), String> {
        self.topic.check()
    }
}

/// `config/broker/<slot>` or `config/broker/default`: configurations of brokers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerConfigRecord {
    /// The configurations that were set.
    pub configs: Configs,
    /// When they were changed last, ms since 1970 UTC; 0 where an earlier release did that.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub changed_at_ms: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_unknown(at_ms: &i64) -> bool {
    *at_ms == 0
}

impl Record for BrokerConfigRecord {
    const KIND: &'static str = "broker config";
}

/// `acl/<hash>`: one entry of the access control list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclRecord {
    /// The entry.
    pub binding: AclBinding,
}

impl Record for AclRecord {
    const KIND: &'static str = "ACL";
}

/// `scram/<mechanism>/<user>`: what is kept of a user's password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScramRecord {
    /// The mechanism that it is for.
    pub mechanism: ScramMechanism,
    /// The user.
    pub user: String,
    /// The credential by which the password is verified.
    pub credential: ScramCredential,
}

impl Record for ScramRecord {
    const KIND: &'static str = "SCRAM user";
}

/// `producer_id/block`: producer ids are handed out in blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducerIdRecord {
    /// First id of the next block.
    pub next_producer_id: i64,
}

impl Record for ProducerIdRecord {
    const KIND: &'static str = "producer id block";

    fn check(&self) -> Result<(), String> {
        if self.next_producer_id < 0 {
            return Err(format!("next id {}", self.next_producer_id));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decoy_secret_is_in_no_debug_output() {
        let decoy_secret = URL_SAFE_NO_PAD.encode([7; 32]);
        let record = ClusterRecord {
            cluster_id: "ASNFZ4mrTe-BI0VniavN7w".to_owned(),
            created_at_ms: 5,
            scale: 1,
            decoy_secret: decoy_secret.clone(),
        };
        let text = format!("{record:?}");
        assert!(text.contains(&record.cluster_id) && !text.contains(&decoy_secret), "{text}");
    }

    #[test]
    fn incarnations_that_contradict_themselves_are_refused() {
        let mut incarnation = IncarnationRecord {
            state: IncarnationState::Sealed,
            slot: 0,
            sealed_end: None,
            started_at_ms: 0,
            ended_at_ms: None,
            place: BrokerPlace::default(),
            host: String::new(),
        };
        assert!(incarnation.check().is_err());
        incarnation.sealed_end = Some(SealedEnd { file: 1, sequence: 10 });
        assert!(incarnation.check().is_ok());
        incarnation.state = IncarnationState::Live;
        assert!(incarnation.check().is_err());
    }
}
