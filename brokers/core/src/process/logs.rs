//! Structured logs on standard error.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::fmt;

use crate::settings::{LogFormat, LogSettings};

/// Has this process log as the settings say. The first call decides: a process has one log.
///
/// # Errors
/// What is wrong with the level.
pub fn start_logs(settings: &LogSettings) -> Result<(), String> {
    let filter = EnvFilter::builder().parse(&settings.level).map_err(|error| error.to_string())?;
    let log = fmt().with_env_filter(filter).with_writer(stderr);
    // Where there is a log already it stays: brokers embedded in one process share it.
    let _ = match settings.format {
        LogFormat::Text => log.with_ansi(stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    Ok(())
}
