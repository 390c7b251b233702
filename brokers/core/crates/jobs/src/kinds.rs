//! What becomes of a job that gave up.

use super::JobError;
use freshet_world::kinds::{ErrorKind, Kinded};

impl Kinded for JobError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Lane(error) => error.kind(),
            Self::Cold(error) => error.kind(),
            Self::Metadata(_) => ErrorKind::Retry,
            Self::Records(_) => ErrorKind::Report,
            Self::Moved => ErrorKind::Refresh,
            Self::Stopping => ErrorKind::Stop,
        }
    }
}
