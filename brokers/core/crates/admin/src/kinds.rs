//! What the caller of a failed call on a cluster's or a cell's metadata should do.

use crate::error::AdminError;
use freshet_world::kinds::{ErrorKind, Kinded};

impl Kinded for AdminError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound(_)
            | Self::Exists(_)
            | Self::Invalid { .. }
            | Self::LimitReached(_)
            | Self::TooLarge(_) => ErrorKind::Correct,
            Self::Conflict(_) | Self::Unknown(_) | Self::Compacted(_) => ErrorKind::Refresh,
            Self::Unavailable(_) => ErrorKind::Retry,
            Self::Corrupt(_) => ErrorKind::Report,
        }
    }
}
