//! What whoever starts a broker's process should do when it did not start.

use super::ProcessError;
use freshet_world::kinds::{ErrorKind, Kinded};

impl Kinded for ProcessError {
    fn kind(&self) -> ErrorKind {
        match self {
            // A port or a thread that the machine refuses now may be free a moment later.
            Self::System { .. } => ErrorKind::Retry,
            Self::Metadata { error, .. } => error.kind(),
            Self::Start(error) => error.kind(),
            Self::User { .. } => ErrorKind::Correct,
            Self::Users(error) => error.kind(),
        }
    }
}
