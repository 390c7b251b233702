//! Kafka's errors for what went wrong inside.

use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

use crate::context::Broker;
use freshet_configs::ConfigError;
use freshet_metadata::ClusterError;
use freshet_metadata::store::MetadataError;

/// An error with the text that some responses carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct ApiError {
    pub(super) error: ResponseError,
    pub(super) message: String,
}

impl ApiError {
    pub(super) fn new(error: ResponseError, message: impl Into<String>) -> Self {
        Self { error, message: message.into() }
    }

    pub(super) fn code(&self) -> i16 {
        self.error.code()
    }

    pub(super) fn text(&self) -> StrBytes {
        StrBytes::from_string(self.message.clone())
    }
}

impl From<ResponseError> for ApiError {
    fn from(error: ResponseError) -> Self {
        Self { error, message: error.to_string() }
    }
}

impl From<ConfigError> for ApiError {
    fn from(error: ConfigError) -> Self {
        Self { error: error.kafka_error(), message: error.message }
    }
}

/// The code of an outcome; 0 for none.
pub(super) fn code_of(error: Option<ResponseError>) -> i16 {
    error.map_or(0, |error| error.code())
}

impl Broker {
    /// What a client is told of a change of metadata that failed. A broker that was fenced ends.
    pub(super) fn metadata_error(&self, error: &ClusterError) -> ApiError {
        use MetadataError::{Conflict, Unavailable};
        let kafka = match error {
            ClusterError::TopicExists(_) => ResponseError::TopicAlreadyExists,
            ClusterError::UnknownTopic(_) => ResponseError::UnknownTopicOrPartition,
            ClusterError::InvalidTopicName(_) | ClusterError::TopicCollision { .. } => {
                ResponseError::InvalidTopicException
            }
            ClusterError::InvalidPartitions(_) => ResponseError::InvalidPartitions,
            ClusterError::InvalidReplicationFactor(_) => ResponseError::InvalidReplicationFactor,
            ClusterError::InternalTopic(_) => ResponseError::TopicAuthorizationFailed,
            ClusterError::InvalidQuota(_) => ResponseError::InvalidRequest,
            ClusterError::InvalidUser => ResponseError::UnacceptableCredential,
            ClusterError::TooLarge { .. } => ResponseError::PolicyViolation,
            ClusterError::Fenced(_) => {
                self.engine.liveness.stand_down(&error.to_string());
                ResponseError::NotController
            }
            // Clients try these again.
            ClusterError::Contended(_)
            | ClusterError::Deposed
            | ClusterError::Store(Unavailable(_) | Conflict { .. }) => ResponseError::NotController,
            ClusterError::Store(MetadataError::Unknown(_)) => ResponseError::RequestTimedOut,
            _ => {
                tracing::error!(%error, "metadata cannot be changed");
                ResponseError::UnknownServerError
            }
        };
        ApiError::new(kafka, error.to_string())
    }
}
