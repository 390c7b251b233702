//! What whoever starts a broker should do when it did not start.

use super::StartError;
use freshet_world::kinds::{ErrorKind, Kinded};

impl Kinded for StartError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Superseded { .. } => ErrorKind::Stop,
            Self::Lane(error) => error.kind(),
            Self::Metadata(error) => error.kind(),
            Self::Store(error) => error.kind(),
            Self::View(error) => error.kind(),
            Self::Missing(_) => ErrorKind::Report,
            Self::Cold(error) => error.kind(),
        }
    }
}
