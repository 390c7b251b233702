//! From TOML to settings, with errors that name the key and the line.

use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// What is wrong with settings, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{message}", line_prefix(*line), key_prefix(key.as_deref()))]
pub struct SettingsError {
    /// The line of the file, from 1; `None` where the key is absent or an override set it.
    pub line: Option<usize>,
    /// The setting, such as `limits.connections_max`.
    pub key: Option<String>,
    /// What is wrong with it.
    pub message: String,
}

fn line_prefix(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

fn key_prefix(key: Option<&str>) -> String {
    key.map_or_else(String::new, |key| format!("{key}: "))
}

/// The settings of a broker or of a gateway.
pub trait ProcessSettings: Serialize + DeserializeOwned {
    /// The first setting whose value makes no sense.
    fn problem(&self) -> Option<Problem>;

    /// Reads settings from TOML. `overrides` are `key=value`, as in `limits.connections_max=5`; a
    /// value that is not TOML is taken as text. An override replaces the value of the file.
    ///
    /// # Errors
    /// [`SettingsError`] where the text is not TOML, a setting is unknown, or its value makes no
    /// sense.
    fn from_toml(text: &str, overrides: &[String]) -> Result<Self, SettingsError> {
        let of_file: Self =
            toml::from_str(text).map_err(|error| locate_error(text, &error.into()))?;
        if overrides.is_empty() {
            return check_settings(of_file).map_err(|problem| problem.in_text(text));
        }
        let mut table = Table::try_from(&of_file).expect("settings are a table");
        for assignment in overrides {
            override_one(&mut table, assignment)?;
        }
        // The file alone was read without an error before, so this error is of an override.
        let settings: Self = table.try_into().map_err(|error: toml::de::Error| {
            let key = overrides.iter().find_map(|assignment| {
                let (key, _) = assignment.split_once('=')?;
                let last = key.trim().rsplit('.').next()?;
                error.to_string().contains(last).then(|| key.trim().to_owned())
            });
            SettingsError { line: None, key, message: error.message().to_owned() }
        })?;
        check_settings(settings).map_err(|problem| problem.in_text(text))
    }

    /// Every setting with its value, as TOML.
    fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are a table")
    }
}

fn check_settings<S: ProcessSettings>(settings: S) -> Result<S, Problem> {
    match settings.problem() {
        Some(problem) => Err(problem),
        None => Ok(settings),
    }
}

/// A value that makes no sense.
#[derive(Debug)]
pub struct Problem {
    /// The setting.
    pub key: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl Problem {
    fn in_text(self, text: &str) -> SettingsError {
        let span = DeTable::parse(text).ok().and_then(|table| span_of(table.get_ref(), self.key));
        SettingsError {
            line: span.map(|span| line_of(text, span.start)),
            key: Some(self.key.to_owned()),
            message: self.message,
        }
    }
}

struct Located {
    span: Option<Range<usize>>,
    message: String,
}

impl From<toml::de::Error> for Located {
    fn from(error: toml::de::Error) -> Self {
        Self { span: error.span(), message: error.message().to_owned() }
    }
}

fn locate_error(text: &str, error: &Located) -> SettingsError {
    let key = error.span.as_ref().and_then(|span| {
        let table = DeTable::parse(text).ok()?;
        key_at(table.get_ref(), span)
    });
    SettingsError {
        line: error.span.as_ref().map(|span| line_of(text, span.start)),
        key,
        message: error.message.clone(),
    }
}

fn line_of(text: &str, position: usize) -> usize {
    text.bytes().take(position).filter(|byte| *byte == b'\n').count() + 1
}

/// The dotted key whose name or value covers `span`.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let covers = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    for (key, value) in table {
        let name = key.get_ref();
        let deeper = nested_tables(value).into_iter().find_map(|inner| key_at(inner, span));
        if let Some(deeper) = deeper {
            return Some(format!("{name}.{deeper}"));
        }
        let scalar = !matches!(value.get_ref(), DeValue::Table(_));
        if covers(key.span()) || (scalar && covers(value.span())) {
            return Some(name.to_string());
        }
    }
    None
}

fn nested_tables<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Vec<&'a DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(table) => vec![table],
        DeValue::Array(array) => array.iter().flat_map(nested_tables).collect(),
        _ => Vec::new(),
    }
}

fn span_of(table: &DeTable<'_>, key: &str) -> Option<Range<usize>> {
    let (first, rest) = match key.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (key, None),
    };
    let (name, value) = table.iter().find(|(name, _)| name.get_ref() == first)?;
    match (rest, value.get_ref()) {
        (Some(rest), DeValue::Table(inner)) => span_of(inner, rest),
        _ => Some(name.span()),
    }
}

fn override_one(table: &mut Table, assignment: &str) -> Result<(), SettingsError> {
    let unusable = |key: Option<&str>, message: &str| SettingsError {
        line: None,
        key: key.map(str::to_owned),
        message: message.to_owned(),
    };
    let (key, value) = assignment
        .split_once('=')
        .ok_or_else(|| unusable(None, &format!("not of the form key=value: {assignment}")))?;
    let (key, value) = (key.trim(), value.trim());
    let parsed = format!("value = {value}").parse::<Table>().ok();
    let value = parsed
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| Value::String(value.to_owned()));
    let (section, name) = key
        .split_once('.')
        .ok_or_else(|| unusable(Some(key), "not of the form section.setting"))?;
    let section = table
        .get_mut(section)
        .and_then(Value::as_table_mut)
        .ok_or_else(|| unusable(Some(key), "unknown section"))?;
    section.insert(name.to_owned(), value);
    Ok(())
}

/// The problem of a setting that is not positive.
pub fn above_zero(key: &'static str) -> Problem {
    Problem { key, message: "must be above 0".to_owned() }
}
