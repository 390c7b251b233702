//! Why a config is refused.

use std::fmt::Display;

use kafka_protocol::ResponseError;

/// What is wrong, by the error that Kafka answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigErrorKind {
    /// INVALID_CONFIG: the name or the value is not acceptable.
    InvalidConfig,
    /// INVALID_REQUEST: the request cannot be meant.
    InvalidRequest,
}

/// A refusal, in Kafka's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// What is wrong.
    pub kind: ConfigErrorKind,
    /// For the client.
    pub message: String,
}

impl ConfigError {
    pub(super) fn config(message: impl Into<String>) -> Self {
        Self { kind: ConfigErrorKind::InvalidConfig, message: message.into() }
    }

    pub(super) fn request(message: impl Into<String>) -> Self {
        Self { kind: ConfigErrorKind::InvalidRequest, message: message.into() }
    }

    /// Kafka's `ConfigException`.
    pub(super) fn value(name: &str, value: impl Display, why: impl Display) -> Self {
        Self::config(format!("Invalid value {value} for configuration {name}: {why}"))
    }

    /// The same refusal as INVALID_REQUEST: what Kafka makes of it for a broker.
    pub(super) fn into_request(self) -> Self {
        Self { kind: ConfigErrorKind::InvalidRequest, ..self }
    }

    /// Kafka's error.
    pub fn kafka_error(&self) -> ResponseError {
        match self.kind {
            ConfigErrorKind::InvalidConfig => ResponseError::InvalidConfig,
            ConfigErrorKind::InvalidRequest => ResponseError::InvalidRequest,
        }
    }
}
