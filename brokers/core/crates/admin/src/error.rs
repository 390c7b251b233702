//! Why a call of the control plane failed, sorted by what it can do about it.

use freshet_metadata::MetadataError;
use freshet_metadata::cell::CellError;
use freshet_metadata::cluster::{ClusterError, LimitReached};
use freshet_metadata::schema::SchemaError;

/// Why a call failed. The metadata store causes `Conflict`, `Unavailable`, `Unknown`, `Compacted`
/// and `Corrupt`, which any call can return.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// What the call names does not exist.
    #[error("{0}")]
    NotFound(String),
    /// What the call is to create exists already.
    #[error("{0}")]
    Exists(String),
    /// Somebody else has changed the record meanwhile: read again.
    #[error("{0}")]
    Conflict(String),
    /// An argument is not acceptable.
    #[error("{message}")]
    Invalid {
        /// The argument, as a JSON pointer without its first slash; `None` where no single one is
        /// wrong.
        field: Option<String>,
        /// What is wrong with it.
        message: String,
    },
    /// A limit of the cluster is reached; nothing was changed.
    #[error(transparent)]
    LimitReached(LimitReached),
    /// A record would be too large.
    #[error("{0}")]
    TooLarge(String),
    /// Nothing was changed; the call may be repeated.
    #[error("{0}")]
    Unavailable(String),
    /// The change may have happened or not: read again.
    #[error("{0}")]
    Unknown(String),
    /// The store no longer has changes from so long ago: read again, and watch from there.
    #[error("{0}")]
    Compacted(String),
    /// A stored record cannot be decoded, because it is damaged or of a newer release, or a change
    /// would have broken an invariant: report it.
    #[error("{0}")]
    Corrupt(String),
}

impl AdminError {
    /// The error of an argument.
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid { field: Some(field.to_owned()), message: message.into() }
    }
}

impl From<MetadataError> for AdminError {
    fn from(error: MetadataError) -> Self {
        let text = error.to_string();
        match error {
            MetadataError::Conflict { .. } => Self::Conflict(text),
            MetadataError::Unavailable(_) => Self::Unavailable(text),
            MetadataError::Unknown(_) => Self::Unknown(text),
            MetadataError::Compacted => Self::Compacted(text),
            MetadataError::Corrupt(_) => Self::Corrupt(text),
            MetadataError::Invalid(_) => Self::Invalid { field: None, message: text },
        }
    }
}

impl From<SchemaError> for AdminError {
    fn from(error: SchemaError) -> Self {
        Self::Corrupt(error.to_string())
    }
}

impl From<ClusterError> for AdminError {
    fn from(error: ClusterError) -> Self {
        let text = error.to_string();
        match error {
            ClusterError::Store(error) => error.into(),
            ClusterError::Record(error) => error.into(),
            ClusterError::TopicExists(_) => Self::Exists(text),
            ClusterError::UnknownTopic(_)
            | ClusterError::UnknownHiddenTopic(_)
            | ClusterError::UnknownIncarnation(_) => Self::NotFound(text),
            ClusterError::InvalidTopicName(_)
            | ClusterError::TopicCollision { .. }
            | ClusterError::InternalTopic(_) => Self::invalid("name", text),
            ClusterError::InvalidPartitions(_) => Self::invalid("partitions", text),
            ClusterError::InvalidReplicationFactor(_) => Self::invalid("replication_factor", text),
            ClusterError::InvalidUser => Self::invalid("user", text),
            ClusterError::AclTooLong | ClusterError::InvalidAcl(_) => {
                Self::invalid("resource_name", text)
            }
            ClusterError::InvalidQuota(refusal) => Self::invalid(refusal.field, text),
            ClusterError::LimitReached(refusal) => Self::LimitReached(refusal),
            ClusterError::TooLarge { .. } => Self::TooLarge(text),
            ClusterError::Invariant(_) => Self::Corrupt(text),
            ClusterError::WrongCluster { .. }
            | ClusterError::Contended(_)
            | ClusterError::Fenced(_)
            | ClusterError::Deposed
            | ClusterError::IncarnationTaken(_)
            | ClusterError::StillLive(_)
            | ClusterError::ChangesWait
            | ClusterError::NotEnded(_)
            | ClusterError::Exhausted(_) => Self::Conflict(text),
        }
    }
}

impl From<CellError> for AdminError {
    fn from(error: CellError) -> Self {
        let text = error.to_string();
        match error {
            CellError::Store(error) => error.into(),
            CellError::Record(error) => error.into(),
            CellError::Contended(_) | CellError::OldGeneration { .. } => Self::Conflict(text),
            CellError::Invalid(_) => Self::Invalid { field: None, message: text },
            CellError::TooLarge { .. } => Self::TooLarge(text),
        }
    }
}
