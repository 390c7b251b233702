//! Configs of brokers, which hold for all topics and clients of a cluster.
//!
//! A value may be set dynamically for one broker or for all brokers of the cluster, in which case
//! it is in the metadata store, or statically at a broker's start, or nowhere. What decides for how
//! long records are kept can be set for all brokers only: they share the storage, any of them may
//! become the leader of any partition, and what is stored is billed by one rule.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::alter::{ConfigChange, ConfigOperation, apply_changes};
use super::broker_table::{BROKER_CONFIGS, BrokerDefinition, UpdateMode};
use super::definition::{ConfigType, Definition, Value};
use super::describe::{ConfigEntry, ConfigSource, ConfigSynonym, Layers, is_requested, source_of};
use super::topic::{TopicConfig, check_compaction_lags};
use super::topic_table::{TOPIC_CONFIGS, TopicDefaults, TopicDefinition};
use super::{ConfigError, Overrides};

/// The configs that give the default of a topic config and can be set for all brokers only.
const CLUSTER_WIDE: [&str; 3] = ["log.cleanup.policy", "log.retention.bytes", "log.retention.ms"];

/// Every broker config by name: those of the table, and the configs that give the default of a
/// topic config. The latter have the type, default, bounds and documentation of the topic config.
static DEFINITIONS: LazyLock<BTreeMap<&'static str, BrokerDefinition>> = LazyLock::new(|| {
    let own = BROKER_CONFIGS.iter().copied();
    let of_topics = TOPIC_CONFIGS.iter().filter_map(|topic| {
        let name = topic.broker_names.first()?.name;
        // Where a topic config has two names for brokers, the second one has the default.
        let default = topic.definition.default.filter(|_| topic.broker_names.len() == 1);
        let definition = Definition { name, default, ..topic.definition };
        let is_cluster_wide = CLUSTER_WIDE.contains(&name);
        let mode = if is_cluster_wide { UpdateMode::ClusterWide } else { UpdateMode::PerBroker };
        Some(BrokerDefinition { definition, mode })
    });
    own.chain(of_topics).map(|broker| (broker.definition.name, broker)).collect()
});

/// For which brokers a dynamic config is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerScope {
    /// All brokers of the cluster.
    AllBrokers,
    /// One broker.
    OneBroker,
}

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
        Self::of_layers(fixed, Overrides::new(), Overrides::new())
    }

    /// The configs of the same broker with these dynamic ones, which the metadata store has:
    /// `shared` are those of all brokers, which override static ones, and `own` those of this
    /// broker, which override both. A config that is no longer acceptable is logged and left out,
    /// because no broker may stop for that reason.
    pub fn with_stored(&self, shared: &Overrides, own: &Overrides) -> Self {
        let mut config = Self::new(self.layers.fixed.clone())
            .expect("static configs were accepted by themselves");
        let scopes = [(BrokerScope::AllBrokers, shared), (BrokerScope::OneBroker, own)];
        for (scope, stored) in scopes {
            for (name, text) in stored {
                let mut candidate = config.stored(scope).clone();
                candidate.insert(name.clone(), text.clone());
                match config.with(scope, candidate) {
                    Ok(next) => config = next,
                    Err(error) => tracing::error!(%error, "a stored broker config is ignored"),
                }
            }
        }
        config
    }

    fn with(&self, scope: BrokerScope, stored: Overrides) -> Result<Self, ConfigError> {
        let Layers { fixed, shared, own, .. } = self.layers.clone();
        match scope {
            BrokerScope::AllBrokers => Self::of_layers(fixed, stored, own),
            BrokerScope::OneBroker => Self::of_layers(fixed, shared, stored),
        }
    }

    fn of_layers(fixed: Overrides, shared: Overrides, own: Overrides) -> Result<Self, ConfigError> {
        for (name, text) in fixed.iter().chain(&shared).chain(&own) {
            definition_of(name)?.definition.parse(text)?;
        }
        check_scope(BrokerScope::OneBroker, own.keys().map(String::as_str))?;
        let defaults = DEFINITIONS.values().map(|broker| broker.definition);
        let defaults = defaults
            .filter_map(|definition| Some((definition.name, definition.default?)))
            .collect();
        let config = Self::resolve(Layers { own, shared, fixed, defaults });
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

    /// The configs that are set dynamically for all brokers, or for this one.
    pub(super) fn stored(&self, scope: BrokerScope) -> &Overrides {
        match scope {
            BrokerScope::AllBrokers => &self.layers.shared,
            BrokerScope::OneBroker => &self.layers.own,
        }
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

    /// All configs of the broker with this node id and zone, as DescribeConfigs reports them,
    /// sorted by name. `keys` are the requested names; `None` stands for all.
    pub fn describe(
        &self,
        node_id: i32,
        zone: Option<String>,
        keys: Option<&[String]>,
    ) -> Vec<ConfigEntry> {
        let mut layers = self.layers.clone();
        for name in ["broker.id", "node.id"] {
            layers.fixed.insert(name.to_owned(), node_id.to_string());
        }
        // Of what is static, brokers of a cluster differ in these only.
        layers.fixed.remove("broker.rack");
        layers.fixed.extend(zone.map(|zone| ("broker.rack".to_owned(), zone)));
        let requested = DEFINITIONS.values();
        let requested = requested.filter(|broker| is_requested(keys, broker.definition.name));
        requested.map(|broker| describe_config(broker, &layers, false)).collect()
    }

    /// What is set dynamically for all brokers, as DescribeConfigs reports it for a BROKER resource
    /// with an empty name, sorted by name.
    pub fn describe_shared(&self, keys: Option<&[String]>) -> Vec<ConfigEntry> {
        let layers = Layers { own: Overrides::new(), ..self.layers.clone() };
        let set = DEFINITIONS.values().filter(|broker| {
            let name = broker.definition.name;
            is_requested(keys, name) && layers.shared.contains_key(name)
        });
        set.map(|broker| describe_config(broker, &layers, true)).collect()
    }

    /// Applies an IncrementalAlterConfigs request for a BROKER resource, and returns the new
    /// dynamic configs of that scope.
    ///
    /// # Errors
    /// INVALID_REQUEST for a config that is unknown or cannot be altered while brokers run, or not
    /// for one broker, and for a value that is not acceptable (these are Kafka's codes).
    pub fn alter(
        &self,
        scope: BrokerScope,
        changes: &[ConfigChange],
    ) -> Result<Overrides, ConfigError> {
        let result = apply_changes(self.stored(scope), changes, |change| {
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
        check_scope(scope, altered.map(|change| change.name.as_str()))?;
        self.with(scope, result.clone()).map_err(ConfigError::into_request)?;
        Ok(result)
    }

    /// Applies a legacy AlterConfigs request, which replaces all dynamic configs of the scope, and
    /// returns the new ones.
    ///
    /// # Errors
    /// Those of [`BrokerConfig::alter`].
    pub fn replace(
        &self,
        scope: BrokerScope,
        configs: Vec<(String, Option<String>)>,
    ) -> Result<Overrides, ConfigError> {
        let changes: Vec<ConfigChange> =
            configs.into_iter().map(|(name, value)| ConfigChange::set(name, value)).collect();
        self.with(scope, Overrides::new())?.alter(scope, &changes)
    }
}

/// Checks that the configs may be altered for these brokers.
fn check_scope<'a>(
    scope: BrokerScope,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), ConfigError> {
    let (mut read_only, mut cluster_wide) = (Vec::new(), Vec::new());
    for name in names {
        match (definition_of(name).map_err(ConfigError::into_request)?.mode, scope) {
            (UpdateMode::ReadOnly, _) => read_only.push(name),
            (UpdateMode::ClusterWide, BrokerScope::OneBroker) => cluster_wide.push(name),
            _ => {}
        }
    }
    read_only.sort_unstable();
    cluster_wide.sort_unstable();
    if !read_only.is_empty() {
        let names = read_only.join(", ");
        return Err(ConfigError::request(format!(
            "Cannot update these configs dynamically: Set({names})"
        )));
    }
    if !cluster_wide.is_empty() {
        let names = cluster_wide.join(", ");
        return Err(ConfigError::request(format!(
            "Cannot update these configs for one broker: Set({names}). They say for how long \
             records are kept on the storage that all brokers share: set them for the cluster (an \
             empty broker name)"
        )));
    }
    Ok(())
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

fn describe_config(broker: &BrokerDefinition, layers: &Layers, is_shared: bool) -> ConfigEntry {
    let definition = broker.definition;
    let mut synonyms = layers.synonyms(definition.name, &names_of(definition.name));
    if is_shared {
        synonyms.retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBrokerConfig);
    }
    let value = layers.effective(definition.name).map(|text| {
        definition.parse(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
    });
    ConfigEntry {
        name: definition.name,
        value,
        source: source_of(&synonyms),
        read_only: broker.mode == UpdateMode::ReadOnly,
        config_type: definition.config_type,
        synonyms,
        documentation: definition.full_documentation(),
    }
}

#[cfg(test)]
#[path = "broker_tests.rs"]
mod tests;
