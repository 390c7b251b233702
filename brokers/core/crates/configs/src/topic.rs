//! Configs of topics.

use super::alter::{ConfigChange, apply_changes, check_changes};
use super::definition::{ConfigType, Effect, Value};
use super::describe::{ConfigEntry, ConfigSource, ConfigSynonym, is_requested, source_of};
use super::topic_table::{TOPIC_CONFIGS, TopicDefaults, TopicDefinition};
use super::{ConfigError, Overrides};
use freshet_wire::records::{Codec, Compression, TimestampType};

/// The most bytes of all values that are set of one topic. The metadata store, which all clusters
/// of a cell share, holds them of every topic, and so does each broker's memory.
const VALUES_BYTES_MAX: usize = 4_096;

/// What happens to old records (`cleanup.policy`). With neither, everything is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Drop them by time and size.
    pub delete: bool,
    /// Keep the last record of each key.
    pub compact: bool,
}

/// The configs of a topic that the engine reads, resolved from overrides and broker defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicConfig {
    /// What happens to old records.
    pub cleanup: CleanupPolicy,
    /// The age in milliseconds from which records are dropped; `None`: never, as without `delete`.
    pub retention_ms: Option<i64>,
    /// The bytes of a partition from which the oldest records are dropped; `None`: never, as
    /// without `delete`.
    pub retention_bytes: Option<u64>,
    /// Largest record batch in bytes.
    pub max_message_bytes: u32,
    /// The codec in which batches are stored; `None`: as producers sent them.
    pub stored_codec: Option<Codec>,
    /// Whether the timestamps of records are the producer's or the broker's.
    pub timestamp_type: TimestampType,
    /// How many milliseconds a CreateTime may lie behind the broker's clock.
    pub timestamp_before_max_ms: i64,
    /// How many milliseconds a CreateTime may lie ahead of the broker's clock.
    pub timestamp_after_max_ms: i64,
    /// Milliseconds for which compaction keeps tombstones.
    pub delete_retention_ms: i64,
    /// Milliseconds for which a record stays uncompacted.
    pub min_compaction_lag_ms: i64,
    /// Milliseconds after which a record must be compacted.
    pub max_compaction_lag_ms: i64,
    /// The share of uncompacted bytes, 0 to 1, from which a partition is compacted.
    pub min_cleanable_dirty_ratio: f64,
}

impl TopicConfig {
    /// Resolves the configs of a topic. A config that is no longer acceptable is logged and counts
    /// as not set, because a topic must not go offline for that reason.
    pub fn resolve(overrides: &Overrides, broker: &dyn TopicDefaults) -> Self {
        let value = |name: &str| {
            let topic = definition(name).expect("the table holds every name used here");
            overrides
                .get(name)
                .and_then(|text| match topic.definition.parse(text) {
                    Ok(value) => Some(value),
                    Err(error) => {
                        tracing::error!(%error, "a topic config is ignored");
                        None
                    }
                })
                .unwrap_or_else(|| broker.topic_default(topic))
        };
        let integer = |name: &str| match value(name) {
            Value::Integer(number) => number,
            other => unreachable!("{name} is a number in the table, not {other}"),
        };
        // These cannot be out of range: a rule of the table or the type prevents it.
        let unsigned = |name: &str| u32::try_from(integer(name).max(0)).unwrap_or(u32::MAX);
        let policies = match value("cleanup.policy") {
            Value::List(policies) => policies,
            other => unreachable!("cleanup.policy is a list in the table, not {other}"),
        };
        let has = |policy: &str| policies.iter().any(|given| given == policy);
        let append_time = value("message.timestamp.type") == Value::Text("LogAppendTime".into());
        Self {
            cleanup: CleanupPolicy { delete: has("delete"), compact: has("compact") },
            retention_ms: Some(integer("retention.ms")).filter(|ms| *ms >= 0 && has("delete")),
            retention_bytes: u64::try_from(integer("retention.bytes"))
                .ok()
                .filter(|_| has("delete")),
            max_message_bytes: unsigned("max.message.bytes"),
            stored_codec: stored_codec(&value("compression.type"), integer),
            timestamp_type: if append_time {
                TimestampType::LogAppendTime
            } else {
                TimestampType::CreateTime
            },
            timestamp_before_max_ms: integer("message.timestamp.before.max.ms"),
            timestamp_after_max_ms: integer("message.timestamp.after.max.ms"),
            delete_retention_ms: integer("delete.retention.ms"),
            min_compaction_lag_ms: integer("min.compaction.lag.ms"),
            max_compaction_lag_ms: integer("max.compaction.lag.ms"),
            min_cleanable_dirty_ratio: match value("min.cleanable.dirty.ratio") {
                Value::Double(ratio) => ratio,
                other => unreachable!("the ratio is a double in the table, not {other}"),
            },
        }
    }
}

/// The codec of this `compression.type`, with the level of the config that goes with it. LZ4 has
/// one level only.
fn stored_codec(compression_type: &Value, integer: impl Fn(&str) -> i64) -> Option<Codec> {
    let Value::Text(name) = compression_type else {
        unreachable!("compression.type is text in the table, not {compression_type}")
    };
    let level = |name: &str| i32::try_from(integer(name)).ok();
    let (compression, level) = match name.as_str() {
        "uncompressed" => (Compression::None, None),
        "gzip" => (Compression::Gzip, level("compression.gzip.level").filter(|level| *level > 0)),
        "snappy" => (Compression::Snappy, None),
        "lz4" => (Compression::Lz4, None),
        "zstd" => (Compression::Zstd, level("compression.zstd.level")),
        _ => return None,
    };
    Some(Codec { compression, level })
}

/// The names of all topic configs, sorted, with their effect.
pub fn topic_config_names() -> impl Iterator<Item = (&'static str, Effect)> {
    TOPIC_CONFIGS.iter().map(|topic| (topic.definition.name, topic.definition.effect))
}

/// Applies an IncrementalAlterConfigs request to a topic's overrides and returns the new ones.
///
/// # Errors
/// [`ConfigError`] where a change, or the result of all changes, is not acceptable.
pub fn alter_topic(
    current: &Overrides,
    changes: &[ConfigChange],
    broker: &dyn TopicDefaults,
) -> Result<Overrides, ConfigError> {
    let result = apply_changes(current, changes, |change| {
        definition(&change.name)
            .map(|topic| topic.definition)
            .filter(|definition| definition.config_type == ConfigType::List)
            .and_then(|definition| definition.default)
            .ok_or_else(|| {
                ConfigError::config(format!(
                    "Can't {} to key {} because its type is not LIST.",
                    change.operation.name(),
                    change.name
                ))
            })
    })?;
    validate_topic(&result, broker)?;
    Ok(result)
}

/// The overrides of a topic that is created, or whose configs a legacy AlterConfigs request
/// replaces: exactly those of the request.
///
/// # Errors
/// [`ConfigError`] where they are not acceptable.
pub fn replace_topic(
    configs: Vec<(String, Option<String>)>,
    broker: &dyn TopicDefaults,
) -> Result<Overrides, ConfigError> {
    let changes: Vec<ConfigChange> =
        configs.into_iter().map(|(name, value)| ConfigChange::set(name, value)).collect();
    check_changes(&changes)?;
    let changes = changes.into_iter();
    let result = changes.filter_map(|change| Some((change.name, change.value?))).collect();
    validate_topic(&result, broker)?;
    Ok(result)
}

/// Checks a whole set of overrides: names, values, and whether they are consistent, as Kafka's
/// `LogConfig.validate` does on a broker without tiered storage.
///
/// # Errors
/// INVALID_CONFIG for the first one that is not acceptable.
pub fn validate_topic(
    overrides: &Overrides,
    broker: &dyn TopicDefaults,
) -> Result<(), ConfigError> {
    let unknown = overrides.keys().find(|name| definition(name).is_none());
    if let Some(name) = unknown {
        return Err(ConfigError::config(format!("Unknown topic config name: {name}")));
    }
    let bytes: usize = overrides.values().map(String::len).sum();
    if bytes > VALUES_BYTES_MAX {
        return Err(ConfigError::config(format!(
            "The configs of a topic have {bytes} bytes together, and {VALUES_BYTES_MAX} are allowed"
        )));
    }
    for (name, text) in overrides {
        if let Some(topic) = definition(name) {
            let value = topic.definition.parse(text)?;
            if name == "remote.storage.enable" && value == Value::Boolean(true) {
                return Err(ConfigError::config(
                    "Tiered Storage functionality is disabled in the broker. Topic cannot be \
                     configured with remote log storage.",
                ));
            }
        }
    }
    check_compaction_lags(&TopicConfig::resolve(overrides, broker))
}

/// Checks that the lags of compaction leave a time in which it can happen: the smallest lag must
/// not exceed the largest.
pub(super) fn check_compaction_lags(config: &TopicConfig) -> Result<(), ConfigError> {
    let (min, max) = (config.min_compaction_lag_ms, config.max_compaction_lag_ms);
    if min <= max {
        return Ok(());
    }
    Err(ConfigError::config(format!(
        "conflict topic config setting min.compaction.lag.ms ({min}) > max.compaction.lag.ms \
         ({max})"
    )))
}

/// The configs of a topic as DescribeConfigs reports them, sorted by name. `keys` are the names
/// that the request asks for; `None` asks for all. Unknown names are left out, as in Kafka.
pub fn describe_topic(
    overrides: &Overrides,
    broker: &dyn TopicDefaults,
    keys: Option<&[String]>,
) -> Vec<ConfigEntry> {
    TOPIC_CONFIGS
        .iter()
        .filter(|topic| is_requested(keys, topic.definition.name))
        .map(|topic| describe_config(topic, overrides, broker))
        .collect()
}

fn describe_config(
    topic: &TopicDefinition,
    overrides: &Overrides,
    broker: &dyn TopicDefaults,
) -> ConfigEntry {
    let definition = topic.definition;
    let own = overrides.get(definition.name).map(|text| {
        definition.parse(text).map_or_else(|_| text.clone(), |value| value.to_string())
    });
    let mut synonyms = Vec::new();
    if let Some(value) = &own {
        synonyms.push(ConfigSynonym {
            name: definition.name.to_owned(),
            value: value.clone(),
            source: ConfigSource::DynamicTopicConfig,
        });
    }
    synonyms.extend(broker.topic_synonyms(topic));
    ConfigEntry {
        name: definition.name,
        value: Some(own.unwrap_or_else(|| broker.topic_default(topic).to_string())),
        source: source_of(&synonyms),
        read_only: false,
        config_type: definition.config_type,
        synonyms,
        documentation: definition.full_documentation(),
    }
}

fn definition(name: &str) -> Option<&'static TopicDefinition> {
    let place = TOPIC_CONFIGS.binary_search_by(|topic| topic.definition.name.cmp(name)).ok()?;
    Some(&TOPIC_CONFIGS[place])
}

#[cfg(test)]
#[path = "topic_tests.rs"]
mod tests;
