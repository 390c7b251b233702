//! Structured logs on standard error, and their settings.

use std::io::{IsTerminal, stderr};

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::fmt;

use crate::parse::Problem;

/// `[log]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// `off`, `error`, `warn`, `info`, `debug`, `trace`, or filters by module.
    pub level: String,
    /// How lines look.
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::Text }
    }
}

/// How lines of the log look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogSettings {
    /// What is wrong with the settings. A misspelt level must be refused: it would be taken for the
    /// name of a module, and nothing would be logged.
    pub fn problem(&self) -> Option<Problem> {
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        let known = |part: &str| part.contains('=') || levels.contains(&part);
        let good = self.level.split(',').all(|part| known(part.trim()));
        (!good).then(|| Problem {
            key: "log.level",
            message: format!(
                "must be one of {}, or filters such as module=debug",
                levels.join(", ")
            ),
        })
    }
}

/// Starts the log of this process. Only the first call has an effect: a process has one log.
///
/// # Errors
/// A text that says what is wrong with the level.
pub fn start_logs(settings: &LogSettings) -> Result<(), String> {
    let filter = EnvFilter::builder().parse(&settings.level).map_err(|error| error.to_string())?;
    let log = fmt().with_env_filter(filter).with_writer(stderr);
    // An error means that the process has a log already, which stays: brokers in one process share
    // it.
    let _ = match settings.format {
        LogFormat::Text => log.with_ansi(stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    Ok(())
}
