//! The broker configs that do not give the default of a topic config, and those that are only its
//! second name.

use super::definition::{ConfigType, Definition, Effect, Rule};

/// A broker config.
#[derive(Clone, Copy)]
pub(super) struct BrokerDefinition {
    pub(super) definition: Definition,
    pub(super) mode: UpdateMode,
}

/// Whether a broker config may be altered while brokers run; Kafka's documentation calls it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateMode {
    /// Only at a broker's start.
    ReadOnly,
    /// For all brokers of the cluster together.
    ClusterWide,
    /// For all brokers, and for one alone.
    PerBroker,
}

const fn fixed(
    name: &'static str,
    config_type: ConfigType,
    default: &'static str,
    rule: Rule,
    effect: Effect,
    documentation: &'static str,
) -> BrokerDefinition {
    let default = Some(default);
    let definition = Definition { name, config_type, default, rule, effect, documentation };
    BrokerDefinition { definition, mode: UpdateMode::ReadOnly }
}

/// A config without a default.
const fn unset(
    name: &'static str,
    config_type: ConfigType,
    rule: Rule,
    effect: Effect,
    documentation: &'static str,
) -> BrokerDefinition {
    let default = None;
    let definition = Definition { name, config_type, default, rule, effect, documentation };
    BrokerDefinition { definition, mode: UpdateMode::ReadOnly }
}

const fn altered(mode: UpdateMode, definition: BrokerDefinition) -> BrokerDefinition {
    BrokerDefinition { mode, ..definition }
}

use ConfigType::{Boolean, Int, List, Long, Short, String};
use Effect::{Acts, Reported};
use Rule::{Any, AtLeast};
use UpdateMode::{ClusterWide, PerBroker};

#[rustfmt::skip]
pub(super) static BROKER_CONFIGS: [BrokerDefinition; 43] = [
    fixed("auto.create.topics.enable", Boolean, "true", Any, Acts,
        "Whether asking for the metadata of a topic that does not exist creates it."),
    unset("broker.id", Int, Any, Reported,
        "Number by which clients know this broker."),
    unset("broker.rack", String, Any, Acts,
        "Zone of this broker, which clients are given."),
    fixed("connections.max.idle.ms", Long, "600000", Any, Acts,
        "Milliseconds after which a connection without requests is closed."),
    fixed("default.replication.factor", Int, "1", AtLeast(1), Acts,
        "Replication factor of topics that are created without one."),
    fixed("delete.topic.enable", Boolean, "true", Any, Acts,
        "Whether topics may be deleted."),
    altered(ClusterWide, fixed("delete.topic.restorable.ms", Long, "604800000", AtLeast(0), Acts,
        "Milliseconds for which a deleted topic can be restored; 0 lets its records go at once.")),
    fixed("fetch.max.bytes", Int, "57671680", AtLeast(1024), Acts,
        "Most bytes that one fetch returns, whatever the client asks for."),
    fixed("group.consumer.assignors", List, "uniform,range", Any, Reported,
        "Assignors of the consumer group protocol on the broker's side, the default first."),
    fixed("group.consumer.heartbeat.interval.ms", Int, "5000", AtLeast(1), Reported,
        "Heartbeat interval of members under the consumer group protocol."),
    fixed("group.consumer.max.heartbeat.interval.ms", Int, "15000", AtLeast(1), Reported,
        "Longest heartbeat interval under the consumer group protocol."),
    fixed("group.consumer.max.session.timeout.ms", Int, "60000", AtLeast(1), Reported,
        "Longest session timeout under the consumer group protocol."),
    fixed("group.consumer.max.size", Int, "2147483647", AtLeast(1), Reported,
        "Most members of a group under the consumer group protocol."),
    fixed("group.consumer.min.heartbeat.interval.ms", Int, "5000", AtLeast(1), Reported,
        "Shortest heartbeat interval under the consumer group protocol."),
    fixed("group.consumer.min.session.timeout.ms", Int, "45000", AtLeast(1), Reported,
        "Shortest session timeout under the consumer group protocol."),
    fixed("group.consumer.session.timeout.ms", Int, "45000", AtLeast(1), Reported,
        "Session timeout of members under the consumer group protocol."),
    fixed("group.initial.rebalance.delay.ms", Int, "3000", AtLeast(0), Acts,
        "Milliseconds for which a new group waits for more members before its first rebalance."),
    fixed("group.max.session.timeout.ms", Int, "1800000", Any, Acts,
        "Longest session timeout that a member of a classic group may ask for."),
    fixed("group.max.size", Int, "2147483647", AtLeast(1), Acts,
        "Most members of a classic group."),
    fixed("group.min.session.timeout.ms", Int, "6000", Any, Acts,
        "Shortest session timeout that a member of a classic group may ask for."),
    fixed("inter.broker.protocol.version", String, "4.1-IV1", Any, Reported,
        "Version from which tools conclude what a cluster can do."),
    fixed("log.flush.scheduler.interval.ms", Long, "9223372036854775807", Any, Reported,
        "Milliseconds between looks for records to be forced to disk."),
    fixed("log.retention.check.interval.ms", Long, "300000", AtLeast(1), Acts,
        "Milliseconds between looks for records that retention drops."),
    fixed("log.retention.hours", Int, "168", Any, Acts,
        "Default of `retention.ms` in hours, where neither of its other names is set."),
    unset("log.retention.minutes", Int, Any, Acts,
        "Default of `retention.ms` in minutes, where `log.retention.ms` is not set."),
    fixed("log.roll.hours", Int, "168", AtLeast(1), Reported,
        "Default of `segment.ms` in hours, where `log.roll.ms` is not set."),
    fixed("log.roll.jitter.hours", Int, "0", AtLeast(0), Reported,
        "Default of `segment.jitter.ms` in hours, where `log.roll.jitter.ms` is not set."),
    unset("node.id", Int, Any, Acts,
        "Number by which clients know this broker."),
    fixed("num.partitions", Int, "1", AtLeast(1), Acts,
        "Number of partitions of topics that are created without one."),
    fixed("offset.metadata.max.bytes", Int, "4096", Any, Acts,
        "Most bytes of metadata that a committed offset may carry."),
    fixed("offsets.retention.check.interval.ms", Long, "600000", AtLeast(1), Acts,
        "Milliseconds between looks for committed offsets that have expired."),
    fixed("offsets.retention.minutes", Int, "10080", AtLeast(1), Acts,
        "Minutes for which committed offsets are kept once their group is empty."),
    fixed("offsets.topic.num.partitions", Int, "50", AtLeast(1), Acts,
        "Number of partitions of `__consumer_offsets`, decided when it is created."),
    fixed("offsets.topic.replication.factor", Short, "3", AtLeast(1), Acts,
        "Replication factor that `__consumer_offsets` reports."),
    fixed("offsets.topic.segment.bytes", Int, "104857600", AtLeast(1), Reported,
        "Size at which `__consumer_offsets` starts a new segment."),
    altered(PerBroker, fixed("producer.id.expiration.ms", Int, "86400000", AtLeast(1), Acts,
        "Milliseconds after which a partition forgets an idempotent producer that is silent.")),
    fixed("socket.request.max.bytes", Int, "104857600", AtLeast(1), Acts,
        "Largest request that is read, in bytes."),
    fixed("transaction.max.timeout.ms", Int, "900000", AtLeast(1), Reported,
        "Longest transaction timeout that a producer may ask for. There are no transactions."),
    fixed("transaction.state.log.min.isr", Int, "2", AtLeast(1), Reported,
        "`min.insync.replicas` of `__transaction_state`."),
    fixed("transaction.state.log.num.partitions", Int, "50", AtLeast(1), Reported,
        "Number of partitions of `__transaction_state`. There are no transactions."),
    fixed("transaction.state.log.replication.factor", Short, "3", AtLeast(1), Reported,
        "Replication factor of `__transaction_state`. There are no transactions."),
    fixed("transaction.state.log.segment.bytes", Int, "104857600", AtLeast(1), Reported,
        "Size at which `__transaction_state` starts a new segment."),
    fixed("transactional.id.expiration.ms", Int, "604800000", AtLeast(1), Reported,
        "Milliseconds after which a transactional id that is silent is forgotten. There are no \
         transactions."),
];
