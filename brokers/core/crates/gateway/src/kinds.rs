//! What whoever starts a gateway should do when it did not start.

use crate::process::GatewayError;
use freshet_world::kinds::{ErrorKind, Kinded};

impl Kinded for GatewayError {
    fn kind(&self) -> ErrorKind {
        match self {
            // A port or a thread that the machine refuses now may be free a moment later.
            Self::System { .. } => ErrorKind::Retry,
            Self::Metadata { error, .. } => error.kind(),
            Self::Secret(_) | Self::NoSecret(_) | Self::Tls(_) => ErrorKind::Correct,
        }
    }
}
