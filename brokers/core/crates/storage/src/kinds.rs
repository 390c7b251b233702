//! What the caller of a failed operation on storage should do.

use crate::failures::{ColdError, LaneError};
use freshet_world::kinds::{ErrorKind, Kinded};

impl Kinded for LaneError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Disk(error) => error.kind(),
            Self::TokenLost(_) | Self::Closed(_) => ErrorKind::Stop,
            Self::Damaged { .. } | Self::Invariant(_) => ErrorKind::Report,
        }
    }
}

impl Kinded for ColdError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Damaged { .. } => ErrorKind::Report,
        }
    }
}
