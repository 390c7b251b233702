//! What the caller of a failed operation on metadata should do.

use crate::cell::CellError;
use crate::cluster::ClusterError;
use crate::image::ViewError;
use crate::schema::SchemaError;
use crate::store::MetadataError;
use freshet_world::kinds::{ErrorKind, Kinded};

impl Kinded for MetadataError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable(_) => ErrorKind::Retry,
            Self::Conflict { .. } | Self::Unknown(_) | Self::Compacted => ErrorKind::Refresh,
            Self::Corrupt(_) | Self::Invalid(_) => ErrorKind::Report,
        }
    }
}

impl Kinded for SchemaError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Report
    }
}

impl Kinded for ViewError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Record(error) => error.kind(),
            Self::Missing(_) => ErrorKind::Report,
        }
    }
}

impl Kinded for ClusterError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Record(error) => error.kind(),
            Self::Contended(_) | Self::IncarnationTaken(_) | Self::ChangesWait => ErrorKind::Retry,
            Self::StillLive(_) | Self::NotEnded(_) | Self::UnknownIncarnation(_) => {
                ErrorKind::Refresh
            }
            Self::Fenced(_) | Self::Deposed => ErrorKind::Stop,
            Self::Invariant(_) | Self::Exhausted(_) => ErrorKind::Report,
            Self::WrongCluster { .. }
            | Self::TopicExists(_)
            | Self::UnknownTopic(_)
            | Self::UnknownHiddenTopic(_)
            | Self::InvalidTopicName(_)
            | Self::TopicCollision { .. }
            | Self::InvalidPartitions(_)
            | Self::InvalidReplicationFactor(_)
            | Self::InternalTopic(_)
            | Self::InvalidUser
            | Self::AclTooLong
            | Self::InvalidAcl(_)
            | Self::InvalidQuota(_)
            | Self::LimitReached(_)
            | Self::TooLarge { .. } => ErrorKind::Correct,
        }
    }
}

impl Kinded for CellError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Record(error) => error.kind(),
            Self::Contended(_) => ErrorKind::Retry,
            Self::OldGeneration { .. } => ErrorKind::Refresh,
            Self::Invalid(_) | Self::TooLarge { .. } => ErrorKind::Correct,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_wire::ids::Incarnation;

    #[test]
    fn an_error_of_the_store_keeps_its_kind_wherever_it_is_passed_on() {
        let unavailable = MetadataError::Unavailable("x".to_owned());
        assert_eq!(ClusterError::from(unavailable.clone()).kind(), ErrorKind::Retry);
        assert_eq!(CellError::from(unavailable.clone()).kind(), ErrorKind::Retry);
        assert_eq!(ViewError::from(unavailable).kind(), ErrorKind::Retry);
    }

    #[test]
    fn who_was_fenced_stops() {
        assert_eq!(ClusterError::Fenced(Incarnation(1)).kind(), ErrorKind::Stop);
    }
}
