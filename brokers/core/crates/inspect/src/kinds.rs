//! What the caller of a report on storage, or of a reading of usage, should do when there is none.

use crate::inspect::InspectError;
use crate::usage_reader::UsageError;
use freshet_world::kinds::{ErrorKind, Kinded};

/// Nothing is written here, so a disk that failed may be asked again.
fn of_reading(kind: ErrorKind) -> ErrorKind {
    if kind == ErrorKind::Stop { ErrorKind::Retry } else { kind }
}

impl Kinded for InspectError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Disk(error) => of_reading(error.kind()),
            Self::Store(error) => error.kind(),
            Self::Metadata(error) => error.kind(),
            Self::View(error) => error.kind(),
            Self::Open(error) => error.kind(),
            Self::Unknown(_) => ErrorKind::Correct,
        }
    }
}

impl Kinded for UsageError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Damaged { .. } => ErrorKind::Report,
            Self::Disk(error) => of_reading(error.kind()),
            Self::Cold(error) => error.kind(),
        }
    }
}
