//! The entries of DescribeConfigs responses, and where their values come from.

use std::collections::BTreeMap;

use super::{ConfigType, Overrides};

/// Where a value comes from. The numbers are those of DescribeConfigs responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigSource {
    /// Set for the topic.
    DynamicTopicConfig = 1,
    /// Set for one broker.
    DynamicBrokerConfig = 2,
    /// Set for all brokers of the cluster.
    DynamicDefaultBrokerConfig = 3,
    /// Set statically at the broker's start.
    StaticBrokerConfig = 4,
    /// Set nowhere, so that it has its default.
    DefaultConfig = 5,
}

impl ConfigSource {
    /// Kafka's name, as its admin client has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::DynamicTopicConfig => "DYNAMIC_TOPIC_CONFIG",
            Self::DynamicBrokerConfig => "DYNAMIC_BROKER_CONFIG",
            Self::DynamicDefaultBrokerConfig => "DYNAMIC_DEFAULT_BROKER_CONFIG",
            Self::StaticBrokerConfig => "STATIC_BROKER_CONFIG",
            Self::DefaultConfig => "DEFAULT_CONFIG",
        }
    }
}

/// One of the places where a config is set. Its value holds where none before it in the list is
/// set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSynonym {
    /// The config's name at that place.
    pub name: String,
    /// The value at that place.
    pub value: String,
    /// The place.
    pub source: ConfigSource,
}

/// A config as DescribeConfigs shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its name.
    pub name: &'static str,
    /// The value in force; `None` where Kafka has null.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: ConfigSource,
    /// Whether it can be altered.
    pub read_only: bool,
    /// Its type.
    pub config_type: ConfigType,
    /// All places where it is set, the one in force first.
    pub synonyms: Vec<ConfigSynonym>,
    /// What it is for.
    pub documentation: String,
}

impl ConfigEntry {
    /// Whether the value must not be shown. No config of Freshet is sensitive.
    pub fn is_sensitive(&self) -> bool {
        false
    }
}

/// The configs that are set for a broker, by the place where they are set.
#[derive(Debug, Clone, Default)]
pub(super) struct Layers {
    /// Those of this broker alone.
    pub(super) own: Overrides,
    /// Those of all brokers of the cluster.
    pub(super) shared: Overrides,
    pub(super) fixed: Overrides,
    pub(super) defaults: BTreeMap<&'static str, &'static str>,
}

impl Layers {
    /// The places where a broker's configs are set, the one that wins first.
    const ORDER: [ConfigSource; 4] = [
        ConfigSource::DynamicBrokerConfig,
        ConfigSource::DynamicDefaultBrokerConfig,
        ConfigSource::StaticBrokerConfig,
        ConfigSource::DefaultConfig,
    ];

    /// The values that are set under any of these names, the one in force first. As in Kafka,
    /// entries before the first one with the requested name are dropped: with only
    /// `log.retention.hours` set, `log.retention.ms` has no synonyms.
    pub(super) fn synonyms(&self, name: &str, names: &[&str]) -> Vec<ConfigSynonym> {
        let mut layered = Vec::new();
        for source in Self::ORDER {
            for name in names {
                if let Some(value) = self.get(source, name) {
                    let (name, value) = ((*name).to_owned(), value.to_owned());
                    layered.push(ConfigSynonym { name, value, source });
                }
            }
        }
        layered.into_iter().skip_while(|synonym| synonym.name != name).collect()
    }

    /// The text in force for a name.
    pub(super) fn effective(&self, name: &str) -> Option<&str> {
        Self::ORDER.into_iter().find_map(|source| self.get(source, name))
    }

    fn get(&self, source: ConfigSource, name: &str) -> Option<&str> {
        match source {
            ConfigSource::DynamicBrokerConfig => self.own.get(name).map(String::as_str),
            ConfigSource::DynamicDefaultBrokerConfig => self.shared.get(name).map(String::as_str),
            ConfigSource::StaticBrokerConfig => self.fixed.get(name).map(String::as_str),
            ConfigSource::DefaultConfig => self.defaults.get(name).copied(),
            ConfigSource::DynamicTopicConfig => None,
        }
    }
}

/// The source of an entry with these synonyms.
pub(super) fn source_of(synonyms: &[ConfigSynonym]) -> ConfigSource {
    synonyms.first().map_or(ConfigSource::DefaultConfig, |synonym| synonym.source)
}

/// Whether a DescribeConfigs request that names `keys` (`None`: all configs) asks for this config.
pub(super) fn is_requested(keys: Option<&[String]>, name: &str) -> bool {
    keys.is_none_or(|keys| keys.iter().any(|key| key == name))
}
