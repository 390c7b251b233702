//! Kafka's topic and broker configs: which there are, what may be set, what holds, and how tools
//! are told. Names, defaults, ranges, codes and messages are those of Kafka 4.1.
//!
//! Pure: maps of text in, typed configs, entries or refusals out. The metadata store keeps
//! overrides as maps from name to text ([`Overrides`]), never parsed.

pub mod alter;
pub mod broker;
mod broker_table;
mod definition;
mod describe;
mod error;
pub mod topic;
mod topic_table;

pub use alter::{ConfigChange, ConfigOperation, ConfigResourceType};
pub use broker::BrokerConfig;
pub use definition::{ConfigType, Effect};
pub use describe::{ConfigEntry, ConfigSource, ConfigSynonym};
pub use error::{ConfigError, ConfigErrorKind};
pub use topic::TopicConfig;

/// What is set for one resource: name → text, as the client wrote it.
pub type Overrides = std::collections::BTreeMap<String, String>;
