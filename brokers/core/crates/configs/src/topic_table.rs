//! Every topic config of Kafka 4.1 (`TopicConfig`, `LogConfig`), sorted by name.

use std::sync::Arc;

use super::definition::{ConfigType, Definition, Effect, Rule, Value};
use super::describe::ConfigSynonym;

/// A broker config that gives the default of a topic config.
pub struct BrokerName {
    pub name: &'static str,
    /// The factor by which the broker's value is multiplied, so that minutes and hours become
    /// milliseconds.
    pub unit: i64,
}

/// A topic config, and the broker configs that give its default, the one that wins first.
pub struct TopicDefinition {
    pub definition: Definition,
    pub broker_names: &'static [BrokerName],
}

/// The defaults of topic configs, which come from a broker's own configs.
pub trait TopicDefaults {
    /// The broker's default of a topic config.
    fn topic_default(&self, topic: &TopicDefinition) -> Value;

    /// The places where brokers' defaults of a topic config are set, the one in force first.
    fn topic_synonyms(&self, topic: &TopicDefinition) -> Vec<ConfigSynonym>;
}

impl<T: TopicDefaults + ?Sized> TopicDefaults for Arc<T> {
    fn topic_default(&self, topic: &TopicDefinition) -> Value {
        self.as_ref().topic_default(topic)
    }

    fn topic_synonyms(&self, topic: &TopicDefinition) -> Vec<ConfigSynonym> {
        self.as_ref().topic_synonyms(topic)
    }
}

const fn same(name: &'static str) -> BrokerName {
    BrokerName { name, unit: 1 }
}

/// Milliseconds of a minute.
const MINUTE: i64 = 60_000;
/// Milliseconds of an hour.
const HOUR: i64 = 60 * MINUTE;

pub(super) static TOPIC_CONFIGS: [TopicDefinition; 33] = [
    TopicDefinition {
        definition: Definition {
            name: "cleanup.policy",
            config_type: ConfigType::List,
            default: Some("delete"),
            rule: Rule::OneOf(&["compact", "delete"]),
            effect: Effect::Acts,
            documentation: "What happens to old records: `delete` drops them by time and size, \
                `compact` keeps the last record of each key. Both may be given; with neither, \
                everything is kept.",
        },
        broker_names: &[same("log.cleanup.policy")],
    },
    TopicDefinition {
        definition: Definition {
            name: "compression.gzip.level",
            config_type: ConfigType::Int,
            default: Some("-1"),
            rule: Rule::BetweenOr(1, 9, -1),
            effect: Effect::Acts,
            documentation: "Level at which the broker compresses with gzip, where \
                `compression.type` asks for it; -1 is gzip's default.",
        },
        broker_names: &[same("compression.gzip.level")],
    },
    TopicDefinition {
        definition: Definition {
            name: "compression.lz4.level",
            config_type: ConfigType::Int,
            default: Some("9"),
            rule: Rule::Between(1, 17),
            effect: Effect::Reported,
            documentation: "Level at which the broker compresses with lz4, where \
                `compression.type` asks for it. Freshet's lz4 has one level.",
        },
        broker_names: &[same("compression.lz4.level")],
    },
    TopicDefinition {
        definition: Definition {
            name: "compression.type",
            config_type: ConfigType::String,
            default: Some("producer"),
            rule: Rule::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
            effect: Effect::Acts,
            documentation: "Codec in which batches are stored: `producer` keeps them as they were \
                sent; with any other value, batches of another codec are compressed anew.",
        },
        broker_names: &[same("compression.type")],
    },
    TopicDefinition {
        definition: Definition {
            name: "compression.zstd.level",
            config_type: ConfigType::Int,
            default: Some("3"),
            rule: Rule::Between(-131_072, 22),
            effect: Effect::Acts,
            documentation: "Level at which the broker compresses with zstd, where \
                `compression.type` asks for it.",
        },
        broker_names: &[same("compression.zstd.level")],
    },
    TopicDefinition {
        definition: Definition {
            name: "delete.retention.ms",
            config_type: ConfigType::Long,
            default: Some("86400000"),
            rule: Rule::AtLeast(0),
            effect: Effect::Acts,
            documentation: "How long compaction keeps the tombstone of a deleted key, so that a \
                reader who started from the beginning still sees that it is gone.",
        },
        broker_names: &[same("log.cleaner.delete.retention.ms")],
    },
    TopicDefinition {
        definition: Definition {
            name: "file.delete.delay.ms",
            config_type: ConfigType::Long,
            default: Some("60000"),
            rule: Rule::AtLeast(0),
            effect: Effect::Reported,
            documentation: "Time between dropping a segment and deleting its file.",
        },
        broker_names: &[same("log.segment.delete.delay.ms")],
    },
    TopicDefinition {
        definition: Definition {
            name: "flush.messages",
            config_type: ConfigType::Long,
            default: Some("9223372036854775807"),
            rule: Rule::AtLeast(1),
            effect: Effect::Reported,
            documentation: "Number of records after which they are forced to disk. Every record is \
                on disk before it is acknowledged.",
        },
        broker_names: &[same("log.flush.interval.messages")],
    },
    TopicDefinition {
        definition: Definition {
            name: "flush.ms",
            config_type: ConfigType::Long,
            default: Some("9223372036854775807"),
            rule: Rule::AtLeast(0),
            effect: Effect::Reported,
            documentation: "Time after which records are forced to disk. Every record is on disk \
                before it is acknowledged.",
        },
        broker_names: &[same("log.flush.interval.ms"), same("log.flush.scheduler.interval.ms")],
    },
    TopicDefinition {
        definition: Definition {
            name: "follower.replication.throttled.replicas",
            config_type: ConfigType::List,
            default: Some(""),
            rule: Rule::ThrottledReplicas,
            effect: Effect::Reported,
            documentation: "Replicas whose replication is throttled on the follower's side. There \
                is no replication between brokers.",
        },
        broker_names: &[],
    },
    TopicDefinition {
        definition: Definition {
            name: "index.interval.bytes",
            config_type: ConfigType::Int,
            default: Some("4096"),
            rule: Rule::AtLeast(0),
            effect: Effect::Reported,
            documentation: "Distance of entries in the offset index.",
        },
        broker_names: &[same("log.index.interval.bytes")],
    },
    TopicDefinition {
        definition: Definition {
            name: "leader.replication.throttled.replicas",
            config_type: ConfigType::List,
            default: Some(""),
            rule: Rule::ThrottledReplicas,
            effect: Effect::Reported,
            documentation: "Replicas whose replication is throttled on the leader's side. There is \
                no replication between brokers.",
        },
        broker_names: &[],
    },
    TopicDefinition {
        definition: Definition {
            name: "local.retention.bytes",
            config_type: ConfigType::Long,
            default: Some("-2"),
            rule: Rule::AtLeast(-2),
            effect: Effect::Reported,
            documentation: "How many bytes of a tiered partition stay on the broker's disk; -2 \
                stands for `retention.bytes`.",
        },
        broker_names: &[same("log.local.retention.bytes")],
    },
    TopicDefinition {
        definition: Definition {
            name: "local.retention.ms",
            config_type: ConfigType::Long,
            default: Some("-2"),
            rule: Rule::AtLeast(-2),
            effect: Effect::Reported,
            documentation: "How long records of a tiered partition stay on the broker's disk; -2 \
                stands for `retention.ms`.",
        },
        broker_names: &[same("log.local.retention.ms")],
    },
    TopicDefinition {
        definition: Definition {
            name: "max.compaction.lag.ms",
            config_type: ConfigType::Long,
            default: Some("9223372036854775807"),
            rule: Rule::AtLeast(1),
            effect: Effect::Acts,
            documentation: "Longest time that a record may wait for compaction.",
        },
        broker_names: &[same("log.cleaner.max.compaction.lag.ms")],
    },
    TopicDefinition {
        definition: Definition {
            name: "max.message.bytes",
            config_type: ConfigType::Int,
            default: Some("1048588"),
            rule: Rule::AtLeast(0),
            effect: Effect::Acts,
            documentation: "Largest record batch that is accepted, in bytes, as compressed by the \
                producer.",
        },
        broker_names: &[same("message.max.bytes")],
    },
    TopicDefinition {
        definition: Definition {
            name: "message.timestamp.after.max.ms",
            config_type: ConfigType::Long,
            default: Some("3600000"),
            rule: Rule::AtLeast(0),
            effect: Effect::Acts,
            documentation: "How far the timestamp of a record may lie ahead of the broker's clock. \
                Only with CreateTime.",
        },
        broker_names: &[same("log.message.timestamp.after.max.ms")],
    },
    TopicDefinition {
        definition: Definition {
            name: "message.timestamp.before.max.ms",
            config_type: ConfigType::Long,
            default: Some("9223372036854775807"),
            rule: Rule::AtLeast(0),
            effect: Effect::Acts,
            documentation: "How far the timestamp of a record may lie behind the broker's clock. \
                Only with CreateTime.",
        },
        broker_names: &[same("log.message.timestamp.before.max.ms")],
    },
    TopicDefinition {
        definition: Definition {
            name: "message.timestamp.type",
            config_type: ConfigType::String,
            default: Some("CreateTime"),
            rule: Rule::OneOf(&["CreateTime", "LogAppendTime"]),
            effect: Effect::Acts,
            documentation: "Whose clock stamps records: the producer's (CreateTime) or the \
                broker's (LogAppendTime).",
        },
        broker_names: &[same("log.message.timestamp.type")],
    },
    TopicDefinition {
        definition: Definition {
            name: "min.cleanable.dirty.ratio",
            config_type: ConfigType::Double,
            default: Some("0.5"),
            rule: Rule::Ratio,
            effect: Effect::Acts,
            documentation: "Share of uncompacted bytes in a partition from which it is compacted.",
        },
        broker_names: &[same("log.cleaner.min.cleanable.ratio")],
    },
    TopicDefinition {
        definition: Definition {
            name: "min.compaction.lag.ms",
            config_type: ConfigType::Long,
            default: Some("0"),
            rule: Rule::AtLeast(0),
            effect: Effect::Acts,
            documentation: "Shortest time for which a record stays uncompacted.",
        },
        broker_names: &[same("log.cleaner.min.compaction.lag.ms")],
    },
    TopicDefinition {
        definition: Definition {
            name: "min.insync.replicas",
            config_type: ConfigType::Int,
            default: Some("1"),
            rule: Rule::AtLeast(1),
            effect: Effect::Reported,
            documentation: "Number of replicas that must have a record before it is acknowledged \
                to a producer with acks=all. The shared storage gives the durability here.",
        },
        broker_names: &[same("min.insync.replicas")],
    },
    TopicDefinition {
        definition: Definition {
            name: "preallocate",
            config_type: ConfigType::Boolean,
            default: Some("false"),
            rule: Rule::Any,
            effect: Effect::Reported,
            documentation: "Whether the file of a new segment is allocated in full at once.",
        },
        broker_names: &[same("log.preallocate")],
    },
    TopicDefinition {
        definition: Definition {
            name: "remote.log.copy.disable",
            config_type: ConfigType::Boolean,
            default: Some("false"),
            rule: Rule::Any,
            effect: Effect::Reported,
            documentation: "Whether a tiered topic copies no more segments to the remote tier.",
        },
        broker_names: &[],
    },
    TopicDefinition {
        definition: Definition {
            name: "remote.log.delete.on.disable",
            config_type: ConfigType::Boolean,
            default: Some("false"),
            rule: Rule::Any,
            effect: Effect::Reported,
            documentation: "Whether turning tiering off deletes what is in the remote tier.",
        },
        broker_names: &[],
    },
    TopicDefinition {
        definition: Definition {
            name: "remote.storage.enable",
            config_type: ConfigType::Boolean,
            default: Some("false"),
            rule: Rule::Any,
            effect: Effect::Reported,
            documentation: "Whether the topic is tiered in Kafka's sense. All data lies in shared \
                storage anyway, so it cannot be turned on.",
        },
        broker_names: &[],
    },
    TopicDefinition {
        definition: Definition {
            name: "retention.bytes",
            config_type: ConfigType::Long,
            default: Some("-1"),
            rule: Rule::Any,
            effect: Effect::Acts,
            documentation: "Bytes of a partition from which the oldest records are dropped under \
                `delete`; -1 for no bound.",
        },
        broker_names: &[same("log.retention.bytes")],
    },
    TopicDefinition {
        definition: Definition {
            name: "retention.ms",
            config_type: ConfigType::Long,
            default: Some("604800000"),
            rule: Rule::AtLeast(-1),
            effect: Effect::Acts,
            documentation: "Age from which records are dropped under `delete`; -1 for no bound.",
        },
        broker_names: &[
            same("log.retention.ms"),
            BrokerName { name: "log.retention.minutes", unit: MINUTE },
            BrokerName { name: "log.retention.hours", unit: HOUR },
        ],
    },
    TopicDefinition {
        definition: Definition {
            name: "segment.bytes",
            config_type: ConfigType::Int,
            default: Some("1073741824"),
            rule: Rule::AtLeast(1_048_576),
            effect: Effect::Reported,
            documentation: "Size at which a partition starts a new segment. Segments are cut by \
                the shared storage.",
        },
        broker_names: &[same("log.segment.bytes")],
    },
    TopicDefinition {
        definition: Definition {
            name: "segment.index.bytes",
            config_type: ConfigType::Int,
            default: Some("10485760"),
            rule: Rule::AtLeast(4),
            effect: Effect::Reported,
            documentation: "Size of the index of a segment.",
        },
        broker_names: &[same("log.index.size.max.bytes")],
    },
    TopicDefinition {
        definition: Definition {
            name: "segment.jitter.ms",
            config_type: ConfigType::Long,
            default: Some("0"),
            rule: Rule::AtLeast(0),
            effect: Effect::Reported,
            documentation: "Random time by which segments start earlier, so that they do not all \
                start at once.",
        },
        broker_names: &[
            same("log.roll.jitter.ms"),
            BrokerName { name: "log.roll.jitter.hours", unit: HOUR },
        ],
    },
    TopicDefinition {
        definition: Definition {
            name: "segment.ms",
            config_type: ConfigType::Long,
            default: Some("604800000"),
            rule: Rule::AtLeast(1),
            effect: Effect::Reported,
            documentation: "Age at which a partition starts a new segment. Segments are cut by the \
                shared storage.",
        },
        broker_names: &[same("log.roll.ms"), BrokerName { name: "log.roll.hours", unit: HOUR }],
    },
    TopicDefinition {
        definition: Definition {
            name: "unclean.leader.election.enable",
            config_type: ConfigType::Boolean,
            default: Some("false"),
            rule: Rule::Any,
            effect: Effect::Reported,
            documentation: "Whether a replica that lags may lead when no other is left, at the \
                price of records. Any broker leads without loss here.",
        },
        broker_names: &[same("unclean.leader.election.enable")],
    },
];
