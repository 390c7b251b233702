//! Why a call of the control plane failed, by what it can do about it.

use freshet_metadata::MetadataError;
use freshet_metadata::cell::CellError;
use freshet_metadata::cluster::ClusterError;
use freshet_metadata::schema::SchemaError;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// What is named does not exist.
    #[error("{0}")]
    NotFound(String),
    /// What is to be made exists.
    #[error("{0}")]
    Exists(String),
    /// Somebody else was faster, or has newer knowledge: read again.
    #[error("{0}")]
    Conflict(String),
    /// What is asked for cannot be.
    #[error("{message}")]
    Invalid {
        /// Which argument: a JSON pointer without the slash in front. None where it is the whole.
        field: Option<String>,
        /// What is wrong with it.
        message: String,
    },
    /// A record would be too large.
    #[error("{0}")]
    TooLarge(String),
    /// Nothing happened; the same call may be made again.
    #[error("{0}")]
    Unavailable(String),
    /// It may have happened or not: read again.
    #[error("{0}")]
    Unknown(String),
    /// The history of changes does not reach back so far: read again, and watch from there.
    #[error("{0}")]
    Compacted(String),
    /// What is stored cannot be understood: of a newer release, or damaged.
    #[error("{0}")]
    Corrupt(String),
}

impl AdminError {
    /// A refusal of an argument.
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
            ClusterError::InvalidQuota(refusal) => Self::invalid(refusal.field, text),
            ClusterError::TooLarge { .. } => Self::TooLarge(text),
            ClusterError::WrongCluster { .. }
            | ClusterError::Contended(_)
            | ClusterError::Fenced(_)
            | ClusterError::Deposed
            | ClusterError::IncarnationTaken(_)
            | ClusterError::StillLive(_)
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
