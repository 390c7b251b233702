//! Broker configs: what resolves, what tools see, what may be altered.

use super::BrokerScope::{AllBrokers, OneBroker};
use super::*;
use crate::ConfigErrorKind::{InvalidConfig, InvalidRequest};

fn set(pairs: &[(&str, &str)]) -> Overrides {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn broker(fixed: &[(&str, &str)], dynamic: &[(&str, &str)]) -> BrokerConfig {
    let config = BrokerConfig::new(set(fixed)).unwrap();
    let config = config.with_stored(&set(dynamic), &Overrides::new());
    assert_eq!(*config.stored(AllBrokers), set(dynamic), "all of them are acceptable");
    config
}

fn entry(config: &BrokerConfig, name: &str) -> ConfigEntry {
    let mut entries = config.describe(3, None, Some(&[name.to_owned()]));
    assert_eq!(entries.len(), 1, "{name}");
    entries.remove(0)
}

fn assign(name: &str, value: &str) -> ConfigChange {
    ConfigChange::set(name.into(), Some(value.into()))
}

#[test]
fn kafkas_defaults_hold() {
    let config = BrokerConfig::default();
    assert!(config.auto_create_topics && config.delete_topics);
    assert_eq!((config.num_partitions, config.default_replication_factor), (1, 1));
    assert_eq!(
        (config.offsets_replication_factor, config.producer_id_expiration_ms),
        (3, 86_400_000)
    );
    for (name, value) in [
        ("group.min.session.timeout.ms", "6000"),
        ("group.max.session.timeout.ms", "1800000"),
        ("group.initial.rebalance.delay.ms", "3000"),
        ("offsets.retention.minutes", "10080"),
        ("offsets.topic.num.partitions", "50"),
        ("offset.metadata.max.bytes", "4096"),
        ("socket.request.max.bytes", "104857600"),
        ("transaction.max.timeout.ms", "900000"),
    ] {
        assert_eq!(entry(&config, name).value.as_deref(), Some(value), "{name}");
    }
}

#[test]
fn the_tables_agree() {
    assert!(BROKER_CONFIGS.is_sorted_by_key(|broker| broker.definition.name));
    let topics = TOPIC_CONFIGS.iter().filter(|topic| !topic.broker_names.is_empty()).count();
    assert_eq!(DEFINITIONS.len(), BROKER_CONFIGS.len() + topics, "no name stands twice");
    for topic in &TOPIC_CONFIGS {
        for name in topic.broker_names {
            let broker = definition_of(name.name).unwrap();
            let is_first = std::ptr::eq(name, &raw const topic.broker_names[0]);
            assert_eq!(broker.mode != UpdateMode::ReadOnly, is_first, "{}", name.name);
        }
        let with_default = topic
            .broker_names
            .iter()
            .filter(|name| definition_of(name.name).unwrap().definition.default.is_some());
        let expected = usize::from(!topic.broker_names.is_empty());
        assert_eq!(with_default.count(), expected, "{}", topic.definition.name);
    }
    for broker in DEFINITIONS.values() {
        assert!(broker.definition.documentation.len() > 15);
        broker.definition.default_value();
    }
}

#[test]
fn static_values_are_checked() {
    let config = broker(&[("num.partitions", "6"), ("auto.create.topics.enable", "False")], &[]);
    assert_eq!((config.num_partitions, config.auto_create_topics), (6, false));
    let refused =
        |name: &str, value: &str| BrokerConfig::new(set(&[(name, value)])).unwrap_err().message;
    assert_eq!(refused("num.partition", "1"), "Unknown broker config name: num.partition");
    assert_eq!(
        refused("num.partitions", "0"),
        "Invalid value 0 for configuration num.partitions: Value must be at least 1"
    );
    assert!(refused("group.max.session.timeout.ms", "5999").contains("greater than or equal"));
    assert!(refused("log.cleaner.max.compaction.lag.ms", "0").contains("at least 1"));
    assert!(
        BrokerConfig::new(set(&[
            ("log.cleaner.max.compaction.lag.ms", "5"),
            ("log.cleaner.min.compaction.lag.ms", "6")
        ]))
        .is_err()
    );
}

#[test]
fn a_broker_describes_everything_with_its_source() {
    let config = broker(&[("num.partitions", "6")], &[("message.max.bytes", "2000000")]);
    let entries = config.describe(3, None, None);
    assert_eq!(entries.len(), DEFINITIONS.len());
    assert!(entries.is_sorted_by_key(|entry| entry.name));
    let described = |name: &str| {
        let entry = entry(&config, name);
        (entry.value, entry.source, entry.read_only)
    };
    let text = |value: &str| Some(value.to_owned());
    assert_eq!(described("num.partitions"), (text("6"), ConfigSource::StaticBrokerConfig, true));
    assert_eq!(
        described("message.max.bytes"),
        (text("2000000"), ConfigSource::DynamicDefaultBrokerConfig, false)
    );
    assert_eq!(described("delete.topic.enable"), (text("true"), ConfigSource::DefaultConfig, true));
    assert_eq!(described("log.retention.ms"), (None, ConfigSource::DefaultConfig, false));
    assert_eq!(described("log.retention.hours"), (text("168"), ConfigSource::DefaultConfig, true));
    assert_eq!(described("node.id"), (text("3"), ConfigSource::StaticBrokerConfig, true));
    assert_eq!(described("broker.rack").0, None);
    assert_eq!(described("inter.broker.protocol.version").0, text("4.1-IV1"));
}

#[test]
fn synonyms_are_kafkas() {
    let config = broker(&[("log.retention.hours", "2")], &[("log.retention.ms", "1000")]);
    let names = |name: &str| {
        let synonyms = entry(&config, name).synonyms;
        synonyms.into_iter().map(|synonym| synonym.name).collect::<Vec<_>>()
    };
    let hours = "log.retention.hours";
    assert_eq!(names("log.retention.ms"), ["log.retention.ms", hours, hours]);
    assert_eq!(names(hours), [hours, hours], "what stands before its own name is dropped");
    assert_eq!(names("log.flush.scheduler.interval.ms"), ["log.flush.scheduler.interval.ms"]);
    assert!(names("log.flush.interval.ms").is_empty());
}

#[test]
fn the_cluster_describes_what_is_set_for_it() {
    let config = broker(&[("num.partitions", "6")], &[("log.segment.bytes", "2097152")]);
    let entries = config.describe_shared(None);
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].name, entries[0].synonyms.len()), ("log.segment.bytes", 1));
    assert!(BrokerConfig::default().describe_shared(None).is_empty());
}

#[test]
fn what_a_broker_has_of_its_own_wins_over_what_all_have() {
    let size = "message.max.bytes";
    let config = broker(&[(size, "1000")], &[(size, "2000"), ("log.segment.bytes", "2097152")]);
    let shared = config.stored(AllBrokers).clone();
    let config = config.with_stored(&shared, &set(&[(size, "3000")]));
    let described = entry(&config, size);
    assert_eq!(described.source, ConfigSource::DynamicBrokerConfig);
    let synonyms: Vec<_> =
        described.synonyms.iter().map(|one| (one.value.as_str(), one.source as i8)).collect();
    assert_eq!(synonyms, [("3000", 2), ("2000", 3), ("1000", 4), ("1048588", 5)]);
    assert_eq!(TopicConfig::resolve(&Overrides::new(), &config).max_message_bytes, 3000);
    let of_all = config.describe_shared(None);
    let shown: Vec<_> = of_all.iter().map(|one| (one.name, one.value.as_deref())).collect();
    assert_eq!(shown, [("log.segment.bytes", Some("2097152")), (size, Some("2000"))]);
    // A change for one broker keeps to what is set for it, and one for all to what is set for all.
    let changed = config.alter(OneBroker, &[assign("compression.type", "lz4")]);
    assert_eq!(changed, Ok(set(&[("compression.type", "lz4"), (size, "3000")])));
    assert_eq!(config.replace(OneBroker, Vec::new()), Ok(Overrides::new()));
    assert_eq!(config.replace(AllBrokers, Vec::new()), Ok(Overrides::new()));
    let removal = ConfigChange { operation: ConfigOperation::Delete, ..assign(size, "") };
    assert_eq!(config.alter(OneBroker, &[removal]), Ok(Overrides::new()));
}

#[test]
fn for_how_long_records_are_kept_is_the_same_on_all_brokers() {
    let config = BrokerConfig::default();
    let names = [
        ("delete.topic.restorable.ms", "0"),
        ("log.cleanup.policy", "compact"),
        ("log.retention.bytes", "1"),
        ("log.retention.ms", "-1"),
    ];
    let changes = names.map(|(name, value)| assign(name, value));
    assert!(config.alter(AllBrokers, &changes).is_ok());
    let error = config.alter(OneBroker, &changes).unwrap_err();
    assert_eq!(error.kind, InvalidRequest);
    let expected = "Cannot update these configs for one broker: Set(delete.topic.restorable.ms, \
        log.cleanup.policy, log.retention.bytes, log.retention.ms)";
    assert!(error.message.starts_with(expected), "{}", error.message);
    let own = [("log.retention.ms", "1"), ("message.max.bytes", "7")];
    let config = config.with_stored(&Overrides::new(), &set(&own));
    assert_eq!(*config.stored(OneBroker), set(&own[1..]), "also where it was stored");
}

#[test]
fn a_broker_is_described_with_its_own_number_and_zone() {
    let config = broker(&[("node.id", "3"), ("broker.rack", "a")], &[]);
    let keys = ["broker.rack".to_owned(), "node.id".to_owned()];
    let values = |zone: Option<&str>| {
        let entries = config.describe(4, zone.map(str::to_owned), Some(&keys));
        entries.into_iter().map(|entry| entry.value).collect::<Vec<_>>()
    };
    assert_eq!(values(Some("b")), [Some("b".to_owned()), Some("4".to_owned())]);
    assert_eq!(values(None), [None, Some("4".to_owned())]);
}

#[test]
fn dynamic_configs_can_be_altered_for_the_cluster() {
    let config = broker(&[], &[("log.retention.ms", "1000")]);
    let changes = [
        assign("message.max.bytes", "5000"),
        ConfigChange {
            name: "log.cleanup.policy".into(),
            operation: ConfigOperation::Append,
            value: Some("compact".into()),
        },
        ConfigChange {
            name: "log.retention.ms".into(),
            operation: ConfigOperation::Delete,
            value: None,
        },
    ];
    let dynamic = config.alter(AllBrokers, &changes).unwrap();
    let expected = set(&[("log.cleanup.policy", "delete,compact"), ("message.max.bytes", "5000")]);
    assert_eq!(dynamic, expected);
    let resolved =
        TopicConfig::resolve(&Overrides::new(), &config.with_stored(&dynamic, &Overrides::new()));
    assert_eq!((resolved.max_message_bytes, resolved.cleanup.compact), (5000, true));
    let replaced =
        config.replace(AllBrokers, vec![("log.segment.bytes".into(), Some("1048576".into()))]);
    assert_eq!(replaced, Ok(set(&[("log.segment.bytes", "1048576")])));
}

#[test]
fn what_cannot_be_altered_is_refused_in_kafkas_words() {
    let config = BrokerConfig::default();
    let refused = |changes: &[ConfigChange]| {
        let error = config.alter(AllBrokers, changes).unwrap_err();
        (error.kind, error.message)
    };
    assert_eq!(
        refused(&[assign("num.partitions", "2"), assign("auto.create.topics.enable", "true")]),
        (
            InvalidRequest,
            "Cannot update these configs dynamically: Set(auto.create.topics.enable, \
             num.partitions)"
                .into()
        )
    );
    assert_eq!(
        refused(&[assign("log.segment.bytes", "1")]),
        (
            InvalidRequest,
            "Invalid value 1 for configuration log.segment.bytes: Value must be at least 1048576"
                .into()
        )
    );
    assert_eq!(
        refused(&[assign("x", "1")]),
        (InvalidRequest, "Unknown broker config name: x".into())
    );
    let append = ConfigChange {
        name: "message.max.bytes".into(),
        operation: ConfigOperation::Append,
        value: Some("1".into()),
    };
    assert_eq!(
        refused(&[append]),
        (
            InvalidConfig,
            "Config value append is not allowed for config key: message.max.bytes".into()
        )
    );
}

#[test]
fn stored_values_that_are_no_longer_acceptable_are_left_out() {
    let config = broker(&[("num.partitions", "6")], &[("message.max.bytes", "1")]);
    let stored = set(&[
        ("log.cleaner.max.compaction.lag.ms", "5"),
        ("log.cleaner.min.compaction.lag.ms", "6"),
        ("log.segment.bytes", "2097152"),
        ("message.max.bytes", "many"),
        ("removed.later", "1"),
    ]);
    let config = config.with_stored(&stored, &Overrides::new());
    let expected =
        set(&[("log.cleaner.max.compaction.lag.ms", "5"), ("log.segment.bytes", "2097152")]);
    assert_eq!(*config.stored(AllBrokers), expected);
    assert_eq!(config.num_partitions, 6, "static values stay");
}
