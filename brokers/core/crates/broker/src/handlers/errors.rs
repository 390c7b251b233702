//! Maps errors of the broker's parts to Kafka's error codes.

use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

use crate::context::Broker;
use freshet_configs::ConfigError;
use freshet_metadata::ClusterError;
use freshet_metadata::store::MetadataError;

/// One of Kafka's errors, with the message that some responses contain.
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

/// The code of an error; 0 where there is none.
pub(super) fn code_of(error: Option<ResponseError>) -> i16 {
    error.map_or(0, |error| error.code())
}

impl Broker {
    /// The error that a client gets where a change of metadata failed. Stands the engine down where
    /// the error is that it was fenced.
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
            ClusterError::InvalidQuota(_) | ClusterError::InvalidAcl(_) => {
                ResponseError::InvalidRequest
            }
            ClusterError::InvalidUser => ResponseError::UnacceptableCredential,
            ClusterError::TooLarge { .. }
            | ClusterError::LimitReached(_)
            | ClusterError::AclTooLong => ResponseError::PolicyViolation,
            // Not only of topics, as in Kafka: clients know it as an error that passes.
            ClusterError::ChangesWait => ResponseError::ThrottlingQuotaExceeded,
            ClusterError::Fenced(_) => {
                self.engine.liveness.stand_down(&error.to_string());
                ResponseError::NotController
            }
            // Clients try again after NOT_CONTROLLER, which is right for all of these.
            ClusterError::Contended(_)
            | ClusterError::Deposed
            | ClusterError::Store(Unavailable(_) | Conflict { .. }) => ResponseError::NotController,
            ClusterError::Store(MetadataError::Unknown(_)) => ResponseError::RequestTimedOut,
            _ => {
                tracing::error!(%error, "a change of metadata failed");
                ResponseError::UnknownServerError
            }
        };
        ApiError::new(kafka, error.to_string())
    }
}
