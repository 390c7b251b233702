//! What the caller of a failed operation should do. Error types are many, since each says what
//! happened; the callers' choices are few.

use crate::env::DiskError;
use crate::env::store::StoreError;

/// What the caller of a failed operation should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Nothing happened, or what happened may happen twice: make the same call again, later.
    Retry,
    /// What the caller knows is out of date, or nobody knows whether it happened: read again, then
    /// decide anew.
    Refresh,
    /// The call can never succeed as it is: change what is asked for, or the settings.
    Correct,
    /// This incarnation may not act any more, or cannot know whether it may: stop.
    Stop,
    /// What is stored is damaged, or this program is at fault: change nothing, and let somebody
    /// look.
    Report,
}

impl ErrorKind {
    /// Its name in logs, and in Python's exceptions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Refresh => "refresh",
            Self::Correct => "correct",
            Self::Stop => "stop",
            Self::Report => "report",
        }
    }
}

/// An error that says what its caller should do.
pub trait Kinded {
    /// What that is.
    fn kind(&self) -> ErrorKind;
}

impl Kinded for DiskError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound(_) | Self::Exists(_) => ErrorKind::Refresh,
            Self::NoSpace(_) => ErrorKind::Retry,
            // What is on the disk now is unknown, and so is what another broker reads there.
            Self::Failed(..) => ErrorKind::Stop,
        }
    }
}

impl Kinded for StoreError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound(_) | Self::Exists(_) => ErrorKind::Refresh,
            Self::Unavailable(_) => ErrorKind::Retry,
        }
    }
}
