//! Topic configs: the whole list, what resolves, what tools see, what is refused.

use super::*;
use crate::{BrokerConfig, BrokerScope, ConfigErrorKind, ConfigOperation};

fn set(pairs: &[(&str, &str)]) -> Overrides {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn broker(fixed: &[(&str, &str)], dynamic: &[(&str, &str)]) -> BrokerConfig {
    let config = BrokerConfig::new(set(fixed)).unwrap();
    let config = config.with_stored(&set(dynamic), &Overrides::new());
    assert_eq!(*config.stored(BrokerScope::AllBrokers), set(dynamic), "all are acceptable");
    config
}

fn entry(name: &str, overrides: &[(&str, &str)], broker: &BrokerConfig) -> ConfigEntry {
    let mut entries = describe_topic(&set(overrides), broker, Some(&[name.to_owned()]));
    assert_eq!(entries.len(), 1, "{name}");
    entries.remove(0)
}

fn refusal(pairs: &[(&str, &str)]) -> String {
    let error = validate_topic(&set(pairs), &BrokerConfig::default()).unwrap_err();
    assert_eq!(error.kind, ConfigErrorKind::InvalidConfig);
    error.message
}

/// Names and defaults as `kafka-configs --describe --all` of Kafka 4.1 lists them.
#[test]
fn every_name_of_kafka_4_1_is_there_with_its_default() {
    let expected = "\
        cleanup.policy=delete compression.gzip.level=-1 compression.lz4.level=9 \
        compression.type=producer compression.zstd.level=3 delete.retention.ms=86400000 \
        file.delete.delay.ms=60000 flush.messages=9223372036854775807 \
        flush.ms=9223372036854775807 follower.replication.throttled.replicas= \
        index.interval.bytes=4096 leader.replication.throttled.replicas= \
        local.retention.bytes=-2 local.retention.ms=-2 \
        max.compaction.lag.ms=9223372036854775807 max.message.bytes=1048588 \
        message.timestamp.after.max.ms=3600000 \
        message.timestamp.before.max.ms=9223372036854775807 message.timestamp.type=CreateTime \
        min.cleanable.dirty.ratio=0.5 min.compaction.lag.ms=0 min.insync.replicas=1 \
        preallocate=false remote.log.copy.disable=false remote.log.delete.on.disable=false \
        remote.storage.enable=false retention.bytes=-1 retention.ms=604800000 \
        segment.bytes=1073741824 segment.index.bytes=10485760 segment.jitter.ms=0 \
        segment.ms=604800000 unclean.leader.election.enable=false";
    let entries = describe_topic(&Overrides::new(), &BrokerConfig::default(), None);
    let described: Vec<String> = entries
        .iter()
        .map(|entry| format!("{}={}", entry.name, entry.value.as_deref().unwrap()))
        .collect();
    assert_eq!(described, expected.split(' ').collect::<Vec<_>>());
    for entry in entries {
        assert_eq!(entry.source, ConfigSource::DefaultConfig, "{}", entry.name);
        assert!(!entry.read_only && !entry.is_sensitive() && entry.documentation.len() > 20);
    }
}

#[test]
fn the_table_is_sorted_and_its_defaults_are_acceptable() {
    assert!(TOPIC_CONFIGS.is_sorted_by_key(|topic| topic.definition.name));
    for topic in &TOPIC_CONFIGS {
        assert!(topic.definition.default_value().is_some());
    }
    let acting = topic_config_names().filter(|(_, effect)| *effect == Effect::Acts).count();
    assert!(acting >= 10 && acting < TOPIC_CONFIGS.len());
}

#[test]
fn defaults_resolve() {
    let config = TopicConfig::resolve(&Overrides::new(), &BrokerConfig::default());
    assert_eq!(config.cleanup, CleanupPolicy { delete: true, compact: false });
    assert_eq!((config.retention_ms, config.retention_bytes), (Some(604_800_000), None));
    assert_eq!(config.max_message_bytes, 1_048_588);
    assert_eq!(config.timestamp_type, TimestampType::CreateTime);
    assert_eq!(config.timestamp_before_max_ms, i64::MAX);
    assert_eq!(config.timestamp_after_max_ms, 3_600_000);
    assert!((config.min_cleanable_dirty_ratio - 0.5).abs() < f64::EPSILON);
}

#[test]
fn overrides_win_over_brokers_and_brokers_over_defaults() {
    let broker = broker(
        &[
            ("log.retention.ms", "1000"),
            ("message.max.bytes", "2000"),
            ("log.segment.bytes", "1048576"),
        ],
        &[("log.retention.ms", "500"), ("log.cleanup.policy", "compact,delete")],
    );
    let overrides = set(&[
        ("message.timestamp.type", "LogAppendTime"),
        ("max.message.bytes", "3000"),
        ("retention.bytes", "77"),
    ]);
    let config = TopicConfig::resolve(&overrides, &broker);
    assert_eq!(config.retention_ms, Some(500), "dynamic over static");
    assert_eq!(entry("segment.bytes", &[], &broker).value.as_deref(), Some("1048576"));
    assert_eq!(config.max_message_bytes, 3000);
    assert_eq!(config.retention_bytes, Some(77));
    assert_eq!(config.cleanup, CleanupPolicy { delete: true, compact: true });
    assert_eq!(config.timestamp_type, TimestampType::LogAppendTime);
}

#[test]
fn nothing_is_dropped_where_cleanup_only_compacts() {
    let overrides =
        set(&[("cleanup.policy", "compact"), ("retention.ms", "500"), ("retention.bytes", "77")]);
    let config = TopicConfig::resolve(&overrides, &broker(&[], &[]));
    assert_eq!((config.retention_ms, config.retention_bytes), (None, None));
}

#[test]
fn retention_by_hours_and_minutes_becomes_milliseconds() {
    let retention = |pairs: &[(&str, &str)]| {
        TopicConfig::resolve(&Overrides::new(), &broker(pairs, &[])).retention_ms
    };
    assert_eq!(retention(&[("log.retention.hours", "2")]), Some(7_200_000));
    assert_eq!(retention(&[("log.retention.hours", "-1")]), None);
    assert_eq!(
        retention(&[("log.retention.hours", "2"), ("log.retention.minutes", "3")]),
        Some(180_000)
    );
    assert_eq!(retention(&[("log.retention.minutes", "3"), ("log.retention.ms", "4")]), Some(4));
    let rolled = broker(&[("log.roll.hours", "1")], &[]);
    assert_eq!(entry("segment.ms", &[], &rolled).value.as_deref(), Some("3600000"));
}

#[test]
fn no_bound_is_none() {
    let overrides =
        set(&[("retention.ms", "-1"), ("retention.bytes", "-5"), ("cleanup.policy", "")]);
    let config = TopicConfig::resolve(&overrides, &BrokerConfig::default());
    assert_eq!((config.retention_ms, config.retention_bytes), (None, None));
    assert_eq!(config.cleanup, CleanupPolicy { delete: false, compact: false });
}

#[test]
fn what_cannot_be_read_counts_as_not_set() {
    let overrides = set(&[("retention.ms", "soon"), ("removed.in.the.future", "1")]);
    let config = TopicConfig::resolve(&overrides, &BrokerConfig::default());
    assert_eq!(config.retention_ms, Some(604_800_000));
}

#[test]
fn entries_say_where_values_come_from() {
    use ConfigSource::{DefaultConfig, DynamicDefaultBrokerConfig, DynamicTopicConfig};
    let broker = broker(
        &[("log.retention.bytes", "10"), ("min.insync.replicas", "2")],
        &[("log.retention.bytes", "20")],
    );
    let described = entry("retention.bytes", &[("retention.bytes", " 30 ")], &broker);
    assert_eq!((described.value.as_deref(), described.source), (Some("30"), DynamicTopicConfig));
    let synonyms: Vec<(&str, &str, ConfigSource)> = described
        .synonyms
        .iter()
        .map(|synonym| (synonym.name.as_str(), synonym.value.as_str(), synonym.source))
        .collect();
    assert_eq!(
        synonyms,
        [
            ("retention.bytes", "30", DynamicTopicConfig),
            ("log.retention.bytes", "20", DynamicDefaultBrokerConfig),
            ("log.retention.bytes", "10", ConfigSource::StaticBrokerConfig),
            ("log.retention.bytes", "-1", DefaultConfig),
        ]
    );
    let inherited = entry("retention.bytes", &[], &broker);
    assert_eq!(
        (inherited.value.as_deref(), inherited.source),
        (Some("20"), DynamicDefaultBrokerConfig)
    );
    let fixed = entry("min.insync.replicas", &[], &broker);
    assert_eq!(fixed.source, ConfigSource::StaticBrokerConfig);
    assert_eq!(fixed.config_type, ConfigType::Int);
}

#[test]
fn a_default_under_a_second_name_is_no_synonym() {
    let by_hours = entry("retention.ms", &[], &broker(&[("log.retention.hours", "1")], &[]));
    assert_eq!(by_hours.value.as_deref(), Some("3600000"));
    assert_eq!((by_hours.source, by_hours.synonyms.len()), (ConfigSource::DefaultConfig, 0));
    let by_ms = entry("retention.ms", &[], &broker(&[("log.retention.ms", "1")], &[]));
    let names: Vec<&str> = by_ms.synonyms.iter().map(|synonym| synonym.name.as_str()).collect();
    assert_eq!(names, ["log.retention.ms", "log.retention.hours"]);
    assert_eq!(by_ms.source, ConfigSource::StaticBrokerConfig);
}

#[test]
fn only_the_names_asked_for_are_described() {
    let keys = ["retention.ms".to_owned(), "unknown".to_owned()];
    let entries = describe_topic(&Overrides::new(), &BrokerConfig::default(), Some(&keys));
    assert_eq!(entries.iter().map(|entry| entry.name).collect::<Vec<_>>(), ["retention.ms"]);
    let none = describe_topic(&Overrides::new(), &BrokerConfig::default(), Some(&[]));
    assert!(none.is_empty());
}

#[test]
fn values_are_refused_in_kafkas_words() {
    let cases = [
        (("nonsense", "1"), "Unknown topic config name: nonsense"),
        (
            ("segment.bytes", "1048575"),
            "Invalid value 1048575 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            ("retention.ms", "-2"),
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            ("cleanup.policy", "delete,purge"),
            "Invalid value purge for configuration cleanup.policy: String must be one of: \
             compact, delete",
        ),
        (
            ("compression.type", "brotli"),
            "Invalid value brotli for configuration compression.type: String must be one of: \
             uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            ("compression.gzip.level", "10"),
            "Invalid value 10 for configuration compression.gzip.level: Value must be between 1 \
             and 9 or equal to -1",
        ),
        (
            ("max.message.bytes", "big"),
            "Invalid value big for configuration max.message.bytes: Not a number of type INT",
        ),
        (
            ("remote.storage.enable", "true"),
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured \
             with remote log storage.",
        ),
    ];
    for (pair, message) in cases {
        assert_eq!(refusal(&[pair]), message);
    }
    assert_eq!(
        refusal(&[("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "9")]),
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (9)"
    );
}

/// What Terraform and UIs do: write back everything that they have read.
#[test]
fn everything_that_is_described_can_be_set() {
    let broker = BrokerConfig::default();
    let all = describe_topic(&Overrides::new(), &broker, None)
        .into_iter()
        .map(|entry| (entry.name.to_owned(), entry.value))
        .collect();
    let overrides = replace_topic(all, &broker).unwrap();
    assert_eq!(overrides.len(), TOPIC_CONFIGS.len());
    assert_eq!(
        TopicConfig::resolve(&overrides, &broker),
        TopicConfig::resolve(&Overrides::new(), &broker)
    );
}

fn change(name: &str, operation: ConfigOperation, value: Option<&str>) -> ConfigChange {
    ConfigChange { name: name.into(), operation, value: value.map(Into::into) }
}

fn alter(current: &[(&str, &str)], changes: &[ConfigChange]) -> Result<Overrides, ConfigError> {
    alter_topic(&set(current), changes, &BrokerConfig::default())
}

#[test]
fn changes_apply_one_by_one() {
    use ConfigOperation::{Append, Delete, Set, Subtract};
    let current = [("retention.ms", "1"), ("segment.ms", "2")];
    let changes = [
        change("retention.ms", Delete, None),
        change("segment.ms", Set, Some("3")),
        change("flush.ms", Delete, Some("ignored")),
        change("cleanup.policy", Append, Some("compact")),
    ];
    let expected = set(&[("segment.ms", "3"), ("cleanup.policy", "delete,compact")]);
    assert_eq!(alter(&current, &changes), Ok(expected));
    let policy = |current: &[(&str, &str)], operation, value| {
        alter(current, &[change("cleanup.policy", operation, Some(value))])
            .map(|mut overrides| overrides.remove("cleanup.policy").unwrap())
    };
    assert_eq!(policy(&[], Append, "delete"), Ok("delete".into()));
    assert_eq!(policy(&[], Subtract, "delete"), Ok(String::new()));
    assert_eq!(
        policy(&[("cleanup.policy", "compact")], Append, "delete"),
        Ok("compact,delete".into())
    );
    assert_eq!(
        policy(&[("cleanup.policy", "compact,delete")], Subtract, "compact"),
        Ok("delete".into())
    );
    assert_eq!(policy(&[("cleanup.policy", "compact")], Subtract, "delete"), Ok("compact".into()));
}

#[test]
fn changes_are_refused_in_kafkas_words() {
    use ConfigOperation::{Append, Set, Subtract};
    let message = |changes: &[ConfigChange]| alter(&[], changes).unwrap_err().message;
    assert_eq!(
        message(&[change("retention.ms", Append, Some("1"))]),
        "Can't APPEND to key retention.ms because its type is not LIST."
    );
    assert_eq!(
        message(&[change("nonsense", Subtract, Some("1"))]),
        "Can't SUBTRACT to key nonsense because its type is not LIST."
    );
    assert_eq!(
        message(&[change("nonsense", Set, Some("1"))]),
        "Unknown topic config name: nonsense"
    );
    assert!(message(&[change("cleanup.policy", Append, Some("x"))]).contains("must be one of"));
    assert_eq!(
        message(&[change("flush.ms", Set, None)]),
        "Null value not supported for : flush.ms"
    );
}

#[test]
fn a_removed_config_can_still_be_deleted() {
    let current = [("removed.later", "1"), ("retention.ms", "1")];
    let error = alter(&current, &[change("retention.ms", ConfigOperation::Set, Some("2"))]);
    assert_eq!(error.unwrap_err().message, "Unknown topic config name: removed.later");
    let result = alter(&current, &[change("removed.later", ConfigOperation::Delete, None)]);
    assert_eq!(result, Ok(set(&[("retention.ms", "1")])));
}

#[test]
fn replacing_keeps_nothing_of_before() {
    let broker = BrokerConfig::default();
    let replaced = replace_topic(vec![("retention.ms".into(), Some("5".into()))], &broker);
    assert_eq!(replaced, Ok(set(&[("retention.ms", "5")])));
    let twice = vec![("flush.ms".into(), Some("1".into())), ("flush.ms".into(), None)];
    assert_eq!(
        replace_topic(twice, &broker).unwrap_err().message,
        "Error due to duplicate config keys"
    );
    let null = replace_topic(vec![("flush.ms".into(), None)], &broker).unwrap_err();
    assert_eq!(null.message, "Null value not supported for : flush.ms");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(name in "[a-z.]{0,12}", text: String, at in 0..TOPIC_CONFIGS.len()) {
        let broker = BrokerConfig::default();
        for name in [name.as_str(), TOPIC_CONFIGS[at].definition.name] {
            let overrides = set(&[(name, &text)]);
            let _ = validate_topic(&overrides, &broker);
            let _ = TopicConfig::resolve(&overrides, &broker);
            let _ = describe_topic(&overrides, &broker, None);
        }
    }
}

#[test]
fn the_values_of_a_topic_have_a_bounded_size_together() {
    const REPLICAS: &str = "leader.replication.throttled.replicas";
    let list = |bytes: usize| "0:0,".repeat(bytes / 4);
    let (half, rest) = (list(VALUES_BYTES_MAX / 2), list(VALUES_BYTES_MAX / 2 - 4));
    let others = "follower.replication.throttled.replicas";
    let most = set(&[(REPLICAS, &half), (others, &rest), ("flush.ms", "   5")]);
    assert_eq!(validate_topic(&most, &BrokerConfig::default()), Ok(()));
    assert_eq!(
        refusal(&[(REPLICAS, &half), (others, &rest), ("flush.ms", "    5")]),
        "The configs of a topic have 4097 bytes together, and 4096 are allowed"
    );
}
