//! Kafka's topic and broker configs: which ones exist, which values they accept, which value is in
//! force, and how DescribeConfigs reports it. Names, defaults, ranges, codes and messages are those
//! of Kafka 4.1.
//!
//! The crate does no I/O: its functions take maps of text and return typed configs, entries or
//! errors. The metadata store has overrides as maps from name to text ([`Overrides`]), which are
//! not parsed.

pub mod alter;
pub mod broker;
mod broker_table;
mod definition;
mod describe;
mod error;
pub mod topic;
mod topic_table;

pub use alter::{ConfigChange, ConfigOperation, ConfigResourceType};
pub use broker::{BrokerConfig, BrokerScope};
pub use definition::{ConfigType, Effect};
pub use describe::{ConfigEntry, ConfigSource, ConfigSynonym};
pub use error::{ConfigError, ConfigErrorKind};
pub use topic::TopicConfig;

/// The configs that are set for one resource, as a map from the name to the text that the client
/// wrote.
pub type Overrides = std::collections::BTreeMap<String, String>;
