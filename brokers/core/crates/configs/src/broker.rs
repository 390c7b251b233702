//! Configs of brokers, which hold for all topics and clients of a cluster.
//!
//! A value may be set dynamically for the whole cluster, in which case it is in the metadata store,
//! or statically at a broker's start, or nowhere. A single broker's configs cannot be altered,
//! because any broker may become the leader of any partition.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::alter::{ConfigChange, ConfigOperation, apply_changes};
use super::broker_table::{BROKER_CONFIGS, BrokerDefinition};
use super::definition::{ConfigType, Definition, Value};
use super::describe::{ConfigEntry, ConfigSource, ConfigSynonym, Layers, is_requested, source_of};
use super::topic::{TopicConfig, check_compaction_lags};
use super::topic_table::{TOPIC_CONFIGS, TopicDefaults, TopicDefinition};
use super::{ConfigError, Overrides};

/// Every broker config by name: those of the table, and the configs that give the default of a
/// topic config. The latter have the type, default, bounds and documentation of the topic config.
static DEFINITIONS: LazyLock<BTreeMap<&'static str, BrokerDefinition>> = LazyLock::new(|| {
    let own = BROKER_CONFIGS.iter().copied();
    let of_topics = TOPIC_CONFIGS.iter().filter_map(|topic| {
        let name = topic.broker_names.first()?.name;
        // Where a topic config has two names for brokers, the second one has the default.
        let default = topic.definition.default.filter(|_| topic.broker_names.len() == 1);
        let definition = Definition { name, default, ..topic.definition };
        Some(BrokerDefinition { definition, dynamic: true })
    });
    own.chain(of_topics).map(|broker| (broker.definition.name, broker)).collect()
});

/// The configs of a broker; those that are read here are typed fields. The others act by a setting
/// of the broker that has another name for them, or are only reported.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// Whether metadata requests create topics.
    pub auto_create_topics: bool,
    /// Whether topics may be deleted.
    pub delete_topics: bool,
    /// Milliseconds for which a deleted topic can be restored.
    pub topic_restorable_ms: i64,
    /// Partitions of topics created without a number.
    pub num_partitions: i32,
    /// Replication factor of topics created without one.
    pub default_replication_factor: i16,
    /// Most bytes that one fetch returns.
    pub fetch_max_bytes: i32,
    /// Milliseconds after which a silent idempotent producer is forgotten.
    pub producer_id_expiration_ms: i32,
    /// Replication factor of `__consumer_offsets`.
    pub offsets_replication_factor: i16,
    layers: Layers,
}

impl Default for BrokerConfig {
    /// Kafka's defaults.
    fn default() -> Self {
        Self::new(Overrides::new()).expect("the defaults fit together")
    }
}

impl BrokerConfig {
    /// The configs of a broker with these static ones, by the names of Kafka's broker configs.
    ///
    /// # Errors
    /// [`ConfigError`] where a name is unknown or a value is not acceptable.
    pub fn new(fixed: Overrides) -> Result<Self, ConfigError> {
        Self::of_layers(fixed, Overrides::new())
    }

    /// The configs of the same broker with these dynamic ones, which the metadata store has and
    /// which override static ones. A config that is no longer acceptable is logged and left out,
    /// because no broker may stop for that reason.
    pub fn with_stored(&self, dynamic: &Overrides) -> Self {
        let mut config = self
            .with_dynamic(Overrides::new())
            .expect("static configs were accepted by themselves");
        for (name, text) in dynamic {
            let mut candidate = config.layers.dynamic.clone();
            candidate.insert(name.clone(), text.clone());
            match config.with_dynamic(candidate) {
                Ok(next) => config = next,
                Err(error) => tracing::error!(%error, "a stored broker config is ignored"),
            }
        }
        config
    }

    fn with_dynamic(&self, dynamic: Overrides) -> Result<Self, ConfigError> {
        Self::of_layers(self.layers.fixed.clone(), dynamic)
    }

    fn of_layers(fixed: Overrides, dynamic: Overrides) -> Result<Self, ConfigError> {
        for (name, text) in fixed.iter().chain(&dynamic) {
            definition_of(name)?.definition.parse(text)?;
        }
        let defaults = DEFINITIONS.values().map(|broker| broker.definition);
        let defaults = defaults
            .filter_map(|definition| Some((definition.name, definition.default?)))
            .collect();
        let config = Self::resolve(Layers { dynamic, fixed, defaults });
        let session_timeout =
            |bound: &str| config.layers.integer(&format!("group.{bound}.session.timeout.ms"));
        if session_timeout("max") < session_timeout("min") {
            return Err(ConfigError::config(
                "group.max.session.timeout.ms must be greater than or equal to \
                 group.min.session.timeout.ms",
            ));
        }
        check_compaction_lags(&TopicConfig::resolve(&Overrides::new(), &config))?;
        Ok(config)
    }

    /// The configs that are set dynamically for the cluster.
    pub fn dynamic(&self) -> &Overrides {
        &self.layers.dynamic
    }

    fn resolve(layers: Layers) -> Self {
        let flag = |name| layers.value(name) == Value::Boolean(true);
        let long = |name| layers.integer(name);
        let int = |name| i32::try_from(layers.integer(name)).expect("INT in the table");
        let short = |name| i16::try_from(layers.integer(name)).unwrap_or(i16::MAX);
        Self {
            auto_create_topics: flag("auto.create.topics.enable"),
            delete_topics: flag("delete.topic.enable"),
            topic_restorable_ms: long("delete.topic.restorable.ms"),
            num_partitions: int("num.partitions"),
            default_replication_factor: short("default.replication.factor"),
            fetch_max_bytes: int("fetch.max.bytes"),
            producer_id_expiration_ms: int("producer.id.expiration.ms"),
            offsets_replication_factor: short("offsets.topic.replication.factor"),
            layers,
        }
    }

    /// The configs of a BROKER resource as DescribeConfigs reports them, sorted by name. With an
    /// empty resource name these are the dynamic configs of the cluster; with this broker's
    /// `node_id` as the name, all configs.
    ///
    /// # Errors
    /// INVALID_REQUEST where the name is another broker's or no number.
    pub fn describe(
        &self,
        resource_name: &str,
        node_id: i32,
        keys: Option<&[String]>,
    ) -> Result<Vec<ConfigEntry>, ConfigError> {
        let of_cluster = resource_name.is_empty();
        if !of_cluster {
            check_broker_id(resource_name, node_id)?;
        }
        let mut layers = self.layers.clone();
        for name in ["broker.id", "node.id"] {
            layers.fixed.insert(name.to_owned(), node_id.to_string());
        }
        let definitions = DEFINITIONS.values();
        Ok(definitions
            .filter(|broker| is_requested(keys, broker.definition.name))
            .filter(|broker| !of_cluster || layers.dynamic.contains_key(broker.definition.name))
            .map(|broker| describe_config(broker, &layers, of_cluster))
            .collect())
    }

    /// Applies an IncrementalAlterConfigs request for a BROKER resource and returns the new
    /// dynamic configs of the cluster.
    ///
    /// # Errors
    /// INVALID_REQUEST for a config that is unknown or cannot be altered while brokers run, for a
    /// value that is not acceptable (both are Kafka's codes), and for a single broker.
    pub fn alter(
        &self,
        resource_name: &str,
        changes: &[ConfigChange],
    ) -> Result<Overrides, ConfigError> {
        check_is_cluster(resource_name)?;
        let result = apply_changes(self.dynamic(), changes, |change| {
            let definition = definition_of(&change.name)?.definition;
            if definition.config_type == ConfigType::List {
                return Ok(definition.default.unwrap_or_default());
            }
            Err(ConfigError::config(format!(
                "Config value {} is not allowed for config key: {}",
                change.operation.name().to_lowercase(),
                change.name
            )))
        })?;
        let altered = changes.iter().filter(|change| change.operation != ConfigOperation::Delete);
        Self::check_dynamic(altered.map(|change| change.name.as_str()))?;
        self.with_dynamic(result.clone()).map_err(ConfigError::into_request)?;
        Ok(result)
    }

    /// Applies a legacy AlterConfigs request, which replaces all dynamic configs of the cluster,
    /// and returns the new ones.
    ///
    /// # Errors
    /// Those of [`BrokerConfig::alter`].
    pub fn replace(
        &self,
        resource_name: &str,
        configs: Vec<(String, Option<String>)>,
    ) -> Result<Overrides, ConfigError> {
        let changes: Vec<ConfigChange> =
            configs.into_iter().map(|(name, value)| ConfigChange::set(name, value)).collect();
        self.with_dynamic(Overrides::new())?.alter(resource_name, &changes)
    }

    fn check_dynamic<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), ConfigError> {
        let mut refused = Vec::new();
        for name in names {
            if !definition_of(name).map_err(ConfigError::into_request)?.dynamic {
                refused.push(name);
            }
        }
        if refused.is_empty() {
            return Ok(());
        }
        refused.sort_unstable();
        let names = refused.join(", ");
        Err(ConfigError::request(format!("Cannot update these configs dynamically: Set({names})")))
    }
}

impl TopicDefaults for BrokerConfig {
    fn topic_default(&self, topic: &TopicDefinition) -> Value {
        for name in topic.broker_names {
            if let Some(value) = self.layers.optional_value(name.name) {
                return match value {
                    // A negative number of hours or minutes means that there is no limit, as -1 ms
                    // does.
                    Value::Integer(number) if number < 0 && name.unit > 1 => Value::Integer(-1),
                    Value::Integer(number) => Value::Integer(number.saturating_mul(name.unit)),
                    other => other,
                };
            }
        }
        topic.definition.default_value().expect("every topic config has a default")
    }

    fn topic_synonyms(&self, topic: &TopicDefinition) -> Vec<ConfigSynonym> {
        let names: Vec<&str> = topic.broker_names.iter().map(|name| name.name).collect();
        names.first().map_or_else(Vec::new, |first| self.layers.synonyms(first, &names))
    }
}

impl Layers {
    fn optional_value(&self, name: &str) -> Option<Value> {
        let definition = DEFINITIONS.get(name)?.definition;
        Some(definition.parse(self.effective(name)?).expect("checked when it was set"))
    }

    fn value(&self, name: &str) -> Value {
        self.optional_value(name).expect("a config of the table with a default")
    }

    fn integer(&self, name: &str) -> i64 {
        match self.value(name) {
            Value::Integer(number) => number,
            other => unreachable!("{name} is a number in the table, not {other}"),
        }
    }
}

fn definition_of(name: &str) -> Result<&'static BrokerDefinition, ConfigError> {
    DEFINITIONS
        .get(name)
        .ok_or_else(|| ConfigError::config(format!("Unknown broker config name: {name}")))
}

fn check_broker_id(resource_name: &str, node_id: i32) -> Result<(), ConfigError> {
    let id = resource_name.parse::<i32>().map_err(|_| {
        ConfigError::request(format!("Broker id must be an integer, but it is: {resource_name}"))
    })?;
    if id == node_id {
        return Ok(());
    }
    Err(ConfigError::request(format!(
        "Unexpected broker id, expected {node_id} or empty string, but received {resource_name}"
    )))
}

fn check_is_cluster(resource_name: &str) -> Result<(), ConfigError> {
    if resource_name.is_empty() {
        return Ok(());
    }
    Err(ConfigError::request(
        "Configs of a single broker cannot be altered, since any broker may serve any partition: \
         alter those of the cluster (an empty broker name)",
    ))
}

/// The names under which a broker config may be set, the one that wins first (Kafka's
/// `brokerConfigSynonyms`).
fn names_of(name: &'static str) -> Vec<&'static str> {
    let topic = TOPIC_CONFIGS.iter().find(|topic| {
        let mut names = topic.broker_names.iter();
        // This config gives the default of a topic config and is a broker config of its own as
        // well.
        name != "log.flush.scheduler.interval.ms" && names.any(|broker| broker.name == name)
    });
    topic.map_or_else(
        || vec![name],
        |topic| topic.broker_names.iter().map(|broker| broker.name).collect(),
    )
}

fn describe_config(broker: &BrokerDefinition, layers: &Layers, of_cluster: bool) -> ConfigEntry {
    let definition = broker.definition;
    let mut synonyms = layers.synonyms(definition.name, &names_of(definition.name));
    if of_cluster {
        synonyms.retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBrokerConfig);
    }
    let value = layers.effective(definition.name).map(|text| {
        definition.parse(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
    });
    ConfigEntry {
        name: definition.name,
        value,
        source: source_of(&synonyms),
        read_only: !broker.dynamic,
        config_type: definition.config_type,
        synonyms,
        documentation: definition.full_documentation(),
    }
}

#[cfg(test)]
#[path = "broker_tests.rs"]
mod tests;
