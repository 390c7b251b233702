//! Maps the errors of the other crates to Python exceptions. This is the only place that does so.

use pyo3::prelude::*;

use super::{
    CompactedError, ConfigError, ConflictError, CorruptError, ExistsError, InvalidError,
    KafkaError, LimitReachedError, NotFoundError, StartError, StorageError, TooLargeError,
    UnavailableError, UnknownOutcomeError,
};
use freshet_admin::AdminError;
use freshet_client::ClientError;
use freshet_gateway::GatewayError;
use freshet_inspect::inspect::InspectError;
use freshet_inspect::usage_reader::UsageError;
use freshet_process::ProcessError;
use freshet_process::settings::SettingsError;
use freshet_world::kinds::{ErrorKind, Kinded};

/// An error that becomes a Python exception. It is a trait because `From` cannot be implemented
/// here for types of other crates.
pub(super) trait Raise {
    /// What whoever catches the exception should do.
    fn action(&self) -> ErrorKind;

    /// The exception.
    fn raise(self) -> PyErr;
}

/// For `map_err`. The exception has an attribute `action`: what its catcher should do.
pub(super) fn raised(error: impl Raise) -> PyErr {
    let action = error.action().name();
    let exception = error.raise();
    // Where the attribute cannot be set, the exception is raised without it.
    let named = Python::attach(|python| exception.value(python).setattr("action", action));
    named.err().unwrap_or(exception)
}

impl Raise for AdminError {
    fn action(&self) -> ErrorKind {
        self.kind()
    }

    fn raise(self) -> PyErr {
        match self {
            AdminError::NotFound(text) => NotFoundError::new_err(text),
            AdminError::Exists(text) => ExistsError::new_err(text),
            AdminError::Conflict(text) => ConflictError::new_err(text),
            AdminError::Invalid { field, message } => {
                let error = InvalidError::new_err(message);
                // Where the attribute cannot be set, the exception is raised without it.
                let named = Python::attach(|python| error.value(python).setattr("field", field));
                named.err().unwrap_or(error)
            }
            AdminError::LimitReached(refusal) => {
                let error = LimitReachedError::new_err(refusal.to_string());
                // Where an attribute cannot be set, the exception is raised without it.
                let named = Python::attach(|python| {
                    let value = error.value(python);
                    value.setattr("name", refusal.name)?;
                    value.setattr("limit", refusal.limit)?;
                    value.setattr("used", refusal.used)
                });
                named.err().unwrap_or(error)
            }
            AdminError::TooLarge(text) => TooLargeError::new_err(text),
            AdminError::Unavailable(text) => UnavailableError::new_err(text),
            AdminError::Unknown(text) => UnknownOutcomeError::new_err(text),
            AdminError::Compacted(text) => CompactedError::new_err(text),
            AdminError::Corrupt(text) => CorruptError::new_err(text),
        }
    }
}

impl Raise for SettingsError {
    fn action(&self) -> ErrorKind {
        ErrorKind::Correct
    }

    fn raise(self) -> PyErr {
        ConfigError::new_err(self.to_string())
    }
}

impl Raise for ProcessError {
    fn action(&self) -> ErrorKind {
        self.kind()
    }

    fn raise(self) -> PyErr {
        let text = self.to_string();
        match self {
            ProcessError::Metadata { .. } => StorageError::new_err(text),
            ProcessError::User { .. } => ConfigError::new_err(text),
            ProcessError::System { .. } | ProcessError::Start(_) | ProcessError::Users(_) => {
                StartError::new_err(text)
            }
        }
    }
}

impl Raise for InspectError {
    fn action(&self) -> ErrorKind {
        self.kind()
    }

    fn raise(self) -> PyErr {
        StorageError::new_err(self.to_string())
    }
}

impl Raise for UsageError {
    fn action(&self) -> ErrorKind {
        self.kind()
    }

    fn raise(self) -> PyErr {
        StorageError::new_err(self.to_string())
    }
}

impl Raise for GatewayError {
    fn action(&self) -> ErrorKind {
        self.kind()
    }

    fn raise(self) -> PyErr {
        let text = self.to_string();
        match self {
            GatewayError::Metadata { .. } => StorageError::new_err(text),
            GatewayError::Secret(_) | GatewayError::NoSecret(_) | GatewayError::Tls(_) => {
                ConfigError::new_err(text)
            }
            GatewayError::System { .. } => StartError::new_err(text),
        }
    }
}

impl Raise for ClientError {
    fn action(&self) -> ErrorKind {
        self.kind()
    }

    fn raise(self) -> PyErr {
        let (kind, name, detail) = match &self {
            ClientError::Unreachable { .. } => ("unreachable", None, self.to_string()),
            ClientError::TimedOut => ("timed_out", None, self.to_string()),
            ClientError::Undecodable { .. } => ("undecodable", None, self.to_string()),
            ClientError::Busy => ("busy", None, self.to_string()),
            ClientError::Refused(error) if error.is_passing() => {
                ("passing", Some(error.name()), error.message.clone())
            }
            ClientError::Refused(error) => ("refused", Some(error.name()), error.message.clone()),
        };
        let error = KafkaError::new_err(detail);
        // Where an attribute cannot be set, the exception is raised without it.
        let named = Python::attach(|python| {
            let value = error.value(python);
            value.setattr("kind", kind)?;
            value.setattr("name", name)
        });
        named.err().unwrap_or(error)
    }
}
