//! Structured logs on standard error, and their settings.

use std::borrow::Cow;
use std::io::{IsTerminal, Write, stderr};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::fmt;

use crate::parse::Problem;

/// The longest line, in bytes, that is written as it is. Clients name groups and members with up to
/// 32,767 bytes each, and say why they leave.
const LINE_BYTES_MAX: usize = 4_096;
/// Characters of a text in a longer line of JSON.
const TEXT_CHARACTERS_MAX: usize = 256;

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
    let format = settings.format;
    let log = fmt().with_env_filter(filter).with_writer(move || ShortLines(format));
    // An error means that the process has a log already, which stays: brokers in one process share
    // it.
    let _ = match format {
        LogFormat::Text => log.with_ansi(stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Writes lines to standard error, each at once and cut where it is long.
struct ShortLines(LogFormat);

impl Write for ShortLines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        stderr().write_all(&shortened(line, self.0))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        stderr().flush()
    }
}

/// The line, or what is written of it where it is too long: it stays a line, and JSON.
fn shortened(line: &[u8], format: LogFormat) -> Cow<'_, [u8]> {
    if line.len() <= LINE_BYTES_MAX {
        return Cow::Borrowed(line);
    }
    if format == LogFormat::Json
        && let Ok(mut parsed) = serde_json::from_slice::<Value>(line)
    {
        shorten(&mut parsed);
        return Cow::Owned(format!("{parsed}\n").into_bytes());
    }
    let mut short = String::from_utf8_lossy(&line[..LINE_BYTES_MAX]).into_owned();
    short.push_str("…\n");
    Cow::Owned(short.into_bytes())
}

/// Cuts the texts in it.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(TEXT_CHARACTERS_MAX) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_and_stays_a_line() {
        let short = b"a line\n";
        assert_eq!(&*shortened(short, LogFormat::Text), short);
        let long = format!("group={}\n", "é".repeat(30_000));
        let cut = String::from_utf8(shortened(long.as_bytes(), LogFormat::Text).into_owned());
        let cut = cut.unwrap();
        assert!(cut.len() < LINE_BYTES_MAX + 10 && cut.starts_with("group=éé"), "{}", cut.len());
        assert!(cut.ends_with("…\n") && cut.matches('\n').count() == 1);
    }

    #[test]
    fn a_long_line_of_json_is_cut_and_stays_json() {
        let fields = serde_json::json!({"level": "INFO", "group": "g".repeat(30_000), "size": 7});
        let cut = shortened(format!("{fields}\n").as_bytes(), LogFormat::Json).into_owned();
        assert!(cut.len() < 600 && cut.ends_with(b"}\n"));
        let cut: Value = serde_json::from_slice(&cut).unwrap();
        assert_eq!((cut["level"].as_str(), cut["size"].as_i64()), (Some("INFO"), Some(7)));
        assert_eq!(cut["group"].as_str().unwrap().chars().count(), TEXT_CHARACTERS_MAX + 1);
    }
}
