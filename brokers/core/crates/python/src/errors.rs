//! Which exception of Python each error of the engine becomes.

use pyo3::prelude::*;

use super::{
    CompactedError, ConfigError, ConflictError, CorruptError, ExistsError, InvalidError,
    NotFoundError, StartError, StorageError, TooLargeError, UnavailableError, UnknownOutcomeError,
};
use freshet_admin::AdminError;
use freshet_gateway::GatewayError;
use freshet_inspect::inspect::InspectError;
use freshet_inspect::usage_reader::UsageError;
use freshet_process::ProcessError;
use freshet_process::settings::SettingsError;

/// An error of another crate that has an exception: for those `From` cannot be had here.
pub(super) trait Raise {
    /// The exception.
    fn raise(self) -> PyErr;
}

/// For `map_err`.
pub(super) fn raised(error: impl Raise) -> PyErr {
    error.raise()
}

impl Raise for AdminError {
    fn raise(self) -> PyErr {
        match self {
            AdminError::NotFound(text) => NotFoundError::new_err(text),
            AdminError::Exists(text) => ExistsError::new_err(text),
            AdminError::Conflict(text) => ConflictError::new_err(text),
            AdminError::Invalid { field, message } => {
                let error = InvalidError::new_err(message);
                // What cannot be said of the error is left out of it.
                let named = Python::attach(|python| error.value(python).setattr("field", field));
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
    fn raise(self) -> PyErr {
        ConfigError::new_err(self.to_string())
    }
}

impl Raise for ProcessError {
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
    fn raise(self) -> PyErr {
        StorageError::new_err(self.to_string())
    }
}

impl Raise for UsageError {
    fn raise(self) -> PyErr {
        StorageError::new_err(self.to_string())
    }
}

impl Raise for GatewayError {
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
