//! Why a config is refused.

use std::fmt::Display;

use kafka_protocol::ResponseError;

/// The kind of an error, by Kafka's error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigErrorKind {
    /// INVALID_CONFIG: the name or the value is not acceptable.
    InvalidConfig,
    /// INVALID_REQUEST: the request contradicts itself, or asks for what brokers do not do.
    InvalidRequest,
}

/// Why a config is refused, with Kafka's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// The kind of the error.
    pub kind: ConfigErrorKind,
    /// The message for the client.
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

    /// The same error as INVALID_REQUEST, which is the code that Kafka uses for broker configs.
    pub(super) fn into_request(self) -> Self {
        Self { kind: ConfigErrorKind::InvalidRequest, ..self }
    }

    /// Kafka's error code for it.
    pub fn kafka_error(&self) -> ResponseError {
        match self.kind {
            ConfigErrorKind::InvalidConfig => ResponseError::InvalidConfig,
            ConfigErrorKind::InvalidRequest => ResponseError::InvalidRequest,
        }
    }
}
