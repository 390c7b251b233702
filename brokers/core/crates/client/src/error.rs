//! Why calls fail.

use kafka_protocol::ResponseError;

use freshet_world::kinds::{ErrorKind, Kinded};

/// An error that a broker answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaError {
    /// Kafka's number of the error.
    pub code: i16,
    /// What the broker said about it; else Kafka's own words.
    pub message: String,
}

/// The errors that pass by themselves: the broker starts, moves or stops.
const PASSING: [ResponseError; 11] = [
    ResponseError::LeaderNotAvailable,
    ResponseError::NotLeaderOrFollower,
    ResponseError::RequestTimedOut,
    ResponseError::BrokerNotAvailable,
    ResponseError::ReplicaNotAvailable,
    ResponseError::NetworkException,
    ResponseError::CoordinatorLoadInProgress,
    ResponseError::CoordinatorNotAvailable,
    ResponseError::NotCoordinator,
    ResponseError::OffsetNotAvailable,
    ResponseError::KafkaStorageError,
];

impl KafkaError {
    /// The error of a code; `None` for 0, which is none. `message` is what the broker said.
    pub fn of_code(code: i16, message: Option<String>) -> Option<Self> {
        ResponseError::try_from_code(code)?;
        let message = message.filter(|text| !text.is_empty());
        Some(Self { code, message: message.unwrap_or_else(|| words(&name_of(code))) })
    }

    /// As [`KafkaError::of_code`], as a result.
    ///
    /// # Errors
    /// [`ClientError::Refused`] for a code other than 0.
    pub fn check(code: i16, message: Option<String>) -> Result<(), ClientError> {
        Self::of_code(code, message).map_or(Ok(()), |error| Err(ClientError::Refused(error)))
    }

    /// Kafka's name of the error, such as `GROUP_ID_NOT_FOUND`.
    pub fn name(&self) -> String {
        name_of(self.code)
    }

    /// Whether the same call may succeed soon, without anybody's doing.
    pub fn is_passing(&self) -> bool {
        PASSING.iter().any(|error| error.code() == self.code)
    }
}

/// Kafka's name of a code: the crate's name of it in upper case, with underscores.
fn name_of(code: i16) -> String {
    let known = ResponseError::try_from_code(code);
    let Some(known) = known.filter(|error| !matches!(error, ResponseError::Unknown(_))) else {
        return format!("ERROR_{code}");
    };
    let mut name = String::new();
    for letter in format!("{known:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// A name as words: `Group id not found`.
fn words(name: &str) -> String {
    let text = name.replace('_', " ").to_ascii_lowercase();
    let (first, rest) = text.split_at(text.len().min(1));
    first.to_ascii_uppercase() + rest
}

/// Why a call failed, by what its caller can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// A connection was refused or broke; a request that was sent may have taken effect.
    #[error("{address}: {reason}")]
    Unreachable {
        /// `host:port` of the broker.
        address: String,
        /// What happened.
        reason: String,
    },
    /// No answer came before the deadline; the request may have taken effect.
    #[error("no answer in time")]
    TimedOut,
    /// An answer that is no answer, or is longer than the client reads.
    #[error("the answer to {api} cannot be decoded: {reason}")]
    Undecodable {
        /// The API's name.
        api: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A broker answered with an error.
    #[error("{}: {}", .0.name(), .0.message)]
    Refused(KafkaError),
    /// The memory for answers was in use by other calls until the deadline.
    #[error("the memory for answers is in use by other calls")]
    Busy,
}

impl ClientError {
    /// An error that a broker answered.
    pub fn refused(error: ResponseError, message: impl Into<String>) -> Self {
        Self::Refused(KafkaError { code: error.code(), message: message.into() })
    }

    /// Whether the same call may succeed soon, at another broker perhaps.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(error) => error.is_passing(),
            Self::TimedOut | Self::Undecodable { .. } | Self::Busy => false,
        }
    }
}

impl Kinded for ClientError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Busy => ErrorKind::Retry,
            Self::Unreachable { .. } | Self::TimedOut => ErrorKind::Refresh,
            Self::Refused(error) if error.is_passing() => ErrorKind::Refresh,
            Self::Refused(_) => ErrorKind::Correct,
            Self::Undecodable { .. } => ErrorKind::Report,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kafkas() {
        for (error, name) in [
            (ResponseError::GroupIdNotFound, "GROUP_ID_NOT_FOUND"),
            (ResponseError::UnknownTopicOrPartition, "UNKNOWN_TOPIC_OR_PARTITION"),
            (ResponseError::NotLeaderOrFollower, "NOT_LEADER_OR_FOLLOWER"),
            (ResponseError::MessageTooLarge, "MESSAGE_TOO_LARGE"),
            (ResponseError::UnknownServerError, "UNKNOWN_SERVER_ERROR"),
        ] {
            assert_eq!(name_of(error.code()), name);
        }
        assert_eq!(name_of(12_345), "ERROR_12345");
    }

    #[test]
    fn what_the_broker_says_comes_before_our_words() {
        assert_eq!(KafkaError::of_code(0, Some("all is well".to_owned())), None);
        let plain = KafkaError::of_code(68, None).unwrap();
        assert_eq!(plain.message, "Non empty group");
        let said = KafkaError::of_code(68, Some("it has members".to_owned())).unwrap();
        assert_eq!(said.message, "it has members");
    }
}
