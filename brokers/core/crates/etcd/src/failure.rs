//! What an error of etcd says of the call: whether it was carried out, and whether to try again.

use std::error::Error as _;

use etcd_client::Error;
use tonic::{Code, Status};

use freshet_metadata::store::MetadataError;

/// Why a call to etcd failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The member refused it before anything happened, or it was not sent: another member may take
    /// it.
    Refused(String),
    /// This user may not do it, whichever member is asked.
    Denied(String),
    /// The token is of before a change of rights: it may succeed with a new one.
    OldToken(String),
    /// There was no answer: it may have happened.
    Lost(String),
    /// The call breaks a rule of etcd.
    Invalid(String),
    /// It asked for a revision that etcd no longer keeps.
    Compacted,
    /// It asked for a revision that is not reached yet.
    Future,
    /// The answer is larger than this client accepts.
    TooLarge(String),
    /// The answer cannot be decoded.
    Corrupt(String),
}

impl Failure {
    /// The error of a call that changes nothing.
    pub fn of_read(self) -> MetadataError {
        match self {
            Self::Lost(reason) => MetadataError::Unavailable(reason),
            other => other.of_commit(),
        }
    }

    /// The error of a call that changes something.
    pub fn of_commit(self) -> MetadataError {
        match self {
            Self::Refused(reason) | Self::Denied(reason) | Self::OldToken(reason) => {
                MetadataError::Unavailable(reason)
            }
            Self::Lost(reason) => MetadataError::Unknown(reason),
            Self::Invalid(reason) => MetadataError::Invalid(reason),
            Self::Compacted => MetadataError::Compacted,
            Self::Future => MetadataError::Unavailable("a revision of the future".to_owned()),
            Self::TooLarge(reason) | Self::Corrupt(reason) => MetadataError::Corrupt(reason),
        }
    }

    /// The error of a watch. An answer that is too large counts as a history that is too long: the
    /// caller reads everything again.
    pub fn of_watch(self) -> MetadataError {
        match self {
            Self::TooLarge(_) => MetadataError::Compacted,
            other => other.of_read(),
        }
    }
}

/// The failure that an error of etcd's client means.
pub fn failure_of(error: &Error) -> Failure {
    match error {
        Error::GRpcStatus(status) => failure_of_status(status),
        Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
            Failure::Invalid(error.to_string())
        }
        _ => Failure::Lost(error.to_string()),
    }
}

fn failure_of_status(status: &Status) -> Failure {
    let reason = format!("etcd: {}", status.message());
    match status.code() {
        Code::OutOfRange if status.message().contains("has been compacted") => Failure::Compacted,
        Code::OutOfRange if status.message().contains("future revision") => Failure::Future,
        Code::OutOfRange => Failure::TooLarge(reason),
        Code::InvalidArgument if status.message().contains("auth store is old") => {
            Failure::OldToken(reason)
        }
        // A name or password may be wrong only for now, so that is not a mistake of the call.
        Code::InvalidArgument if is_of_identity(status.message()) => Failure::Denied(reason),
        Code::InvalidArgument => Failure::Invalid(reason),
        Code::PermissionDenied | Code::Unauthenticated => Failure::Denied(reason),
        // Full, busy, or without a leader: etcd returns these before it does anything.
        Code::ResourceExhausted | Code::FailedPrecondition => Failure::Refused(reason),
        Code::Unavailable if status.message() == "etcdserver: no leader" => {
            Failure::Refused(reason)
        }
        Code::Unavailable if never_sent(status) => Failure::Refused(reason),
        _ => Failure::Lost(reason),
    }
}

/// Whether a message says that the user or the password is wrong.
fn is_of_identity(message: &str) -> bool {
    ["authentication failed", "user name is empty"].iter().any(|part| message.contains(part))
}

/// Whether there was no connection on which to send it.
fn never_sent(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_have_happened_is_unknown() {
        let of = |code, message: &str| failure_of_status(&Status::new(code, message)).of_commit();
        for (code, message) in [
            (Code::Unavailable, "etcdserver: request timed out"),
            (Code::Unavailable, "etcdserver: leader changed"),
            (Code::Unavailable, "connection reset by peer"),
            (Code::DeadlineExceeded, "context deadline exceeded"),
            (Code::Cancelled, "cancelled"),
            (Code::Internal, "h2 protocol error"),
        ] {
            let error = of(code, message);
            assert!(matches!(error, MetadataError::Unknown(_)), "{message}: {error:?}");
        }
        for (code, message) in [
            (Code::Unavailable, "etcdserver: no leader"),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
            (Code::PermissionDenied, "etcdserver: permission denied"),
            (Code::Unauthenticated, "etcdserver: invalid auth token"),
            (Code::InvalidArgument, "etcdserver: revision of auth store is old"),
            (Code::InvalidArgument, "etcdserver: user name is empty"),
            (
                Code::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
            ),
        ] {
            let error = of(code, message);
            assert!(matches!(error, MetadataError::Unavailable(_)), "{message}: {error:?}");
        }
        let compacted =
            of(Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted");
        assert_eq!(compacted, MetadataError::Compacted);
    }

    #[test]
    fn a_read_is_never_unknown() {
        let lost = failure_of_status(&Status::unavailable("connection reset by peer"));
        assert!(matches!(lost.of_read(), MetadataError::Unavailable(_)));
    }
}
