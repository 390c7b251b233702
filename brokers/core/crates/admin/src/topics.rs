//! Topics and their configs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use super::{AdminError, ClusterAdmin, config_refusal};
use freshet_configs::topic::{alter_topic, describe_topic, replace_topic, validate_topic};
use freshet_configs::{
    BrokerConfig, ConfigChange, ConfigEntry, ConfigOperation, ConfigSource, TopicConfig,
};
use freshet_metadata::cluster::{ClusterError, ConfigChanges, NewTopic};
use freshet_metadata::names::is_internal_topic;
use freshet_metadata::schema::keys::partitions_of;
use freshet_metadata::schema::{
    Configs, IncarnationRecord, IncarnationState, Key, PartitionRecord, Retention, Stored,
    TopicRecord, decode,
};
use freshet_metadata::store::Entry;
use freshet_wire::ids::{Incarnation, TopicId};

/// How often a change of configs is computed again because somebody else has changed the same
/// topic.
const ATTEMPTS_MAX: u64 = 64;
/// How many of these attempts are made without a pause between them.
const ATTEMPTS_AT_ONCE: u64 = 4;

/// A topic that is to be created. An absent field has the default of the cluster's brokers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicRequest {
    /// Its name.
    pub name: String,
    /// How many partitions.
    pub partitions: Option<i32>,
    /// The replication factor that is to be reported.
    pub replication_factor: Option<i16>,
    /// The configs that are set for it.
    pub configs: Configs,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopicFacts {
    /// Its name.
    pub name: String,
    /// Its id as Kafka writes it: 22 characters of URL-safe base64.
    pub id: String,
    /// How many partitions.
    pub partitions: i32,
    /// How many of them a live broker leads.
    pub partitions_led: i32,
    /// The replication factor that was requested, which is only reported.
    pub replication_factor: i16,
    /// Whether it is one of Kafka's internal topics.
    pub internal: bool,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    /// The configs that are set for it, without defaults.
    pub configs: Configs,
}

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionFacts {
    /// Its number, from 0.
    pub partition: i32,
    /// Node id of the live broker that leads it.
    pub leader: Option<u32>,
    /// Kafka's leader epoch.
    pub leader_epoch: i32,
}

/// A config of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigFacts {
    /// Its name.
    pub name: &'static str,
    /// The value in force.
    pub value: Option<String>,
    /// The value that would be in force if it were not set for the topic.
    pub default: Option<String>,
    /// Where the value comes from, by Kafka's name.
    pub source: &'static str,
    /// Whether it is not set for the topic.
    pub is_default: bool,
    /// Kafka's name of its type.
    #[serde(rename = "type")]
    pub config_type: &'static str,
    /// What it is for.
    pub documentation: String,
}

/// The records of a cluster that concern its topics.
#[derive(Default)]
pub(super) struct TopicRecords {
    topics: BTreeMap<String, TopicRecord>,
    live: BTreeMap<Incarnation, u32>,
    leaders: BTreeMap<TopicId, Vec<(i32, PartitionRecord)>>,
}

impl TopicRecords {
    pub(super) fn of(entries: &[Entry]) -> Result<Self, AdminError> {
        let mut records = Self::default();
        for entry in entries {
            match Key::parse(&entry.key)? {
                Some(Key::Topic(name)) => {
                    records.topics.insert(name, decode(&entry.key, &entry.value)?);
                }
                Some(Key::Partition(partition)) => {
                    let record = decode(&entry.key, &entry.value)?;
                    let leaders = records.leaders.entry(partition.topic).or_default();
                    leaders.push((partition.index, record));
                }
                Some(Key::Incarnation(incarnation)) => {
                    let record: IncarnationRecord = decode(&entry.key, &entry.value)?;
                    if record.state == IncarnationState::Live {
                        records.live.insert(incarnation, record.slot);
                    }
                }
                _ => {}
            }
        }
        Ok(records)
    }

    fn partitions(&self, topic: &TopicRecord) -> Vec<PartitionFacts> {
        let known = self.leaders.get(&topic.id).into_iter().flatten();
        // Records of partitions beyond the topic's number belong to a CreatePartitions that is
        // under way.
        let known = known.filter(|(index, _)| *index < topic.partitions);
        let facts = known.map(|(index, record)| PartitionFacts {
            partition: *index,
            leader: record.leader.and_then(|leader| self.live.get(&leader)).copied(),
            leader_epoch: record.epoch,
        });
        facts.collect()
    }

    pub(super) fn facts(&self, topic: &TopicRecord) -> TopicFacts {
        let led = self.partitions(topic).iter().filter(|facts| facts.leader.is_some()).count();
        TopicFacts {
            name: topic.name.clone(),
            id: id_text(topic.id),
            partitions: topic.partitions,
            partitions_led: i32::try_from(led).unwrap_or(i32::MAX),
            replication_factor: topic.replication_factor,
            internal: topic.internal,
            created_at_ms: topic.created_at_ms,
            configs: topic.configs.clone(),
        }
    }
}

impl ClusterAdmin {
    /// Lists all topics, sorted by name, in one read of the store.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn topics(&self) -> Result<Vec<TopicFacts>, AdminError> {
        let page = self.store.range("", None, usize::MAX).await?;
        let records = TopicRecords::of(&page.entries)?;
        Ok(records.topics.values().map(|topic| records.facts(topic)).collect())
    }

    /// A topic with its partitions.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where there is no such topic; those of the metadata store.
    pub async fn topic(&self, name: &str) -> Result<(TopicFacts, Vec<PartitionFacts>), AdminError> {
        let topic = self.known_topic(name).await?.record;
        let records = self.leaders_of(&topic).await?;
        Ok((records.facts(&topic), records.partitions(&topic)))
    }

    pub(super) async fn leaders_of(&self, topic: &TopicRecord) -> Result<TopicRecords, AdminError> {
        let incarnations = self.store.range(super::INCARNATIONS, None, usize::MAX).await?;
        let partitions = self.store.range(&partitions_of(topic.id), None, usize::MAX).await?;
        TopicRecords::of(&[incarnations.entries, partitions.entries].concat())
    }

    async fn known_topic(&self, name: &str) -> Result<Stored<TopicRecord>, AdminError> {
        let known = self.metadata.topic(name).await?;
        known.ok_or_else(|| ClusterError::UnknownTopic(name.to_owned()).into())
    }

    /// Creates a topic without leaders. A broker that runs, or the next one that starts, becomes
    /// the leader of its partitions.
    ///
    /// # Errors
    /// [`AdminError::Exists`], [`AdminError::Invalid`], [`AdminError::LimitReached`],
    /// [`AdminError::TooLarge`], [`AdminError::NotFound`] where the cluster has no record; those of
    /// the metadata store.
    pub async fn create_topic(&self, requested: TopicRequest) -> Result<TopicFacts, AdminError> {
        self.require_record().await?;
        let new = self.new_topic(requested).await?;
        let stored = self.metadata.create_topic(None, &new).await?;
        Ok(TopicRecords::default().facts(&stored.record))
    }

    /// Checks all that [`ClusterAdmin::create_topic`] checks, and writes nothing. Returns the topic
    /// as it would be created, without an id.
    ///
    /// # Errors
    /// Those of [`ClusterAdmin::create_topic`].
    pub async fn validate_topic(&self, requested: TopicRequest) -> Result<TopicFacts, AdminError> {
        self.require_record().await?;
        let new = self.new_topic(requested).await?;
        self.metadata.check_new_topic(&new).await?;
        Ok(TopicFacts {
            name: new.name,
            id: String::new(),
            partitions: new.partitions,
            partitions_led: 0,
            replication_factor: new.replication_factor,
            internal: new.internal,
            created_at_ms: 0,
            configs: new.configs,
        })
    }

    async fn new_topic(&self, requested: TopicRequest) -> Result<NewTopic, AdminError> {
        let TopicRequest { name, partitions, replication_factor, configs } = requested;
        refuse_internal(&name)?;
        let broker = self.broker_config().await?;
        let given = configs.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        let configs = replace_topic(given.collect(), &broker).map_err(|error| {
            config_refusal(error, &configs, |configs| validate_topic(configs, &broker))
        })?;
        Ok(NewTopic {
            name,
            partitions: partitions.unwrap_or(broker.num_partitions),
            replication_factor: replication_factor.unwrap_or(broker.default_replication_factor),
            internal: false,
            configs,
            leaders: Vec::new(),
        })
    }

    /// Changes configs of a topic; `None` as a value removes the config from the topic, so that its
    /// default holds.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], [`AdminError::Invalid`] (for an internal one too),
    /// [`AdminError::TooLarge`], [`AdminError::Conflict`] where others keep changing the topic; as
    /// the store.
    pub async fn alter_topic_configs(
        &self,
        name: &str,
        changes: &ConfigChanges,
        validate_only: bool,
    ) -> Result<TopicFacts, AdminError> {
        refuse_internal(name)?;
        let mut broker = self.broker_config().await?;
        for attempt in 0..ATTEMPTS_MAX {
            let stored = self.known_topic(name).await?;
            let configs = altered_configs(&stored.record.configs, changes, &broker)?;
            if validate_only {
                let record = TopicRecord { configs, ..stored.record };
                return Ok(self.leaders_of(&record).await?.facts(&record));
            }
            let rule = |configs: &Configs| {
                let config = TopicConfig::resolve(configs, &broker);
                Retention { ms: config.retention_ms, bytes: config.retention_bytes }
            };
            let expected = Some(stored.revision);
            match self.metadata.set_topic_configs(None, name, expected, changes, &rule).await {
                Ok(stored) => {
                    return Ok(self.leaders_of(&stored.record).await?.facts(&stored.record));
                }
                // Somebody else has changed the topic meanwhile: the change is computed again from
                // its new configs.
                Err(ClusterError::Contended(_)) => {
                    let wait_ms = attempt.saturating_sub(ATTEMPTS_AT_ONCE);
                    tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                    broker = self.broker_config().await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(ClusterError::Contended(Key::Topic(name.to_owned()).to_string()).into())
    }

    /// Raises the number of partitions of a topic to `total`. The new ones have no leader yet.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where there is no such topic; [`AdminError::Invalid`] where `total`
    /// is too small or too large; those of the metadata store.
    pub async fn create_partitions(
        &self,
        name: &str,
        total: i32,
    ) -> Result<TopicFacts, AdminError> {
        refuse_internal(name)?;
        let stored = self.metadata.create_partitions(None, name, total, &[]).await?;
        Ok(self.leaders_of(&stored.record).await?.facts(&stored.record))
    }

    /// Deletes a topic. It can be restored for as long as the broker configs say.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], [`AdminError::Invalid`] for an internal one; those of the metadata
    /// store.
    pub async fn delete_topic(&self, name: &str) -> Result<TopicFacts, AdminError> {
        refuse_internal(name)?;
        let keep_ms = self.broker_config().await?.topic_restorable_ms;
        let stored = self.metadata.delete_topic(None, name, None, keep_ms).await?;
        Ok(TopicRecords::default().facts(&stored.record))
    }

    /// Every config of a topic, sorted by name; with `None`, the defaults for a new topic.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where there is no such topic; those of the metadata store.
    pub async fn topic_configs(&self, name: Option<&str>) -> Result<Vec<ConfigFacts>, AdminError> {
        let broker = self.broker_config().await?;
        let set = match name {
            Some(name) => self.known_topic(name).await?.record.configs,
            None => Configs::new(),
        };
        let defaults = describe_topic(&Configs::new(), &broker, None);
        let entries = describe_topic(&set, &broker, None);
        let facts = entries.into_iter().zip(defaults).map(|(entry, default)| facts(entry, default));
        Ok(facts.collect())
    }

    /// Waits until a live broker leads every partition of a topic.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where the topic does not exist, or was removed meanwhile; those of
    /// the metadata store.
    pub async fn wait_led(&self, name: &str) -> Result<(), AdminError> {
        let page = self.store.range(super::INCARNATIONS, None, 1).await?;
        // The watch begins at the revision of the first read, so that no change between the two is
        // missed.
        let mut watch = self.store.watch("", page.revision).await?;
        let id = self.known_topic(name).await?.record.id;
        loop {
            let topic = self.known_topic(name).await?.record;
            if topic.id != id {
                return Err(ClusterError::UnknownTopic(name.to_owned()).into());
            }
            let facts = self.leaders_of(&topic).await?.facts(&topic);
            if facts.partitions_led == facts.partitions {
                return Ok(());
            }
            watch.next().await?;
        }
    }
}

/// The configs of a topic after changes.
fn altered_configs(
    before: &Configs,
    changes: &ConfigChanges,
    broker: &BrokerConfig,
) -> Result<Configs, AdminError> {
    let change = |(name, value): (&String, &Option<String>)| ConfigChange {
        name: name.clone(),
        operation: if value.is_some() { ConfigOperation::Set } else { ConfigOperation::Delete },
        value: value.clone(),
    };
    let listed: Vec<ConfigChange> = changes.iter().map(change).collect();
    let unknown: BTreeSet<&String> = changes.keys().filter(|name| !is_known(name)).collect();
    if let Some(name) = unknown.first() {
        let field = format!("configs/{}", super::pointer(name));
        return Err(AdminError::invalid(&field, format!("Unknown topic config name: {name}")));
    }
    alter_topic(before, &listed, broker).map_err(|error| {
        let set = changes.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        config_refusal(error, &set.collect(), |configs| validate_topic(configs, broker))
    })
}

/// A topic's id as Kafka writes it.
pub(super) fn id_text(id: TopicId) -> String {
    URL_SAFE_NO_PAD.encode(id.as_bytes())
}

/// Parses a topic's id as Kafka writes it.
pub(super) fn id_of(text: &str) -> Result<TopicId, AdminError> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let id = bytes.and_then(|bytes| TopicId::from_slice(&bytes).ok());
    id.ok_or_else(|| AdminError::NotFound(format!("{text:?} is no id of a topic")))
}

fn is_known(name: &str) -> bool {
    freshet_configs::topic::topic_config_names().any(|(known, _)| known == name)
}

fn facts(entry: ConfigEntry, default: ConfigEntry) -> ConfigFacts {
    ConfigFacts {
        name: entry.name,
        value: entry.value,
        default: default.value,
        source: entry.source.name(),
        is_default: entry.source != ConfigSource::DynamicTopicConfig,
        config_type: entry.config_type.name(),
        documentation: entry.documentation,
    }
}

pub(super) fn refuse_internal(name: &str) -> Result<(), AdminError> {
    if is_internal_topic(name) {
        Err(ClusterError::InternalTopic(name.to_owned()).into())
    } else {
        Ok(())
    }
}
