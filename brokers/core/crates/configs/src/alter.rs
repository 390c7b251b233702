//! The changes of configs that AlterConfigs, IncrementalAlterConfigs and CreateTopics ask for.

use std::collections::BTreeSet;

use super::{ConfigError, Overrides};

/// The longest value that Kafka stores, in bytes.
const VALUE_BYTES_MAX: usize = i16::MAX as usize;

/// A type of resource that has configs in Freshet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigResourceType {
    /// A topic.
    Topic,
    /// A broker, or with an empty name all of them.
    Broker,
}

impl ConfigResourceType {
    /// The type with this code in requests.
    ///
    /// # Errors
    /// INVALID_REQUEST for codes without a meaning, and for resources that have no configs in
    /// Freshet: loggers of brokers, client metrics, groups.
    pub fn from_code(code: i8) -> Result<Self, ConfigError> {
        let missing = match code {
            2 => return Ok(Self::Topic),
            4 => return Ok(Self::Broker),
            8 => "Broker loggers (BROKER_LOGGER resources)",
            16 => "Client metrics (CLIENT_METRICS resources)",
            32 => "Group configs (GROUP resources)",
            _ => return Err(ConfigError::request(format!("Unknown resource type {code}"))),
        };
        Err(ConfigError::request(format!("{missing} are not supported by this cluster")))
    }
}

/// The operation of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigOperation {
    /// Sets the value.
    Set,
    /// Removes the value, so that the default holds.
    Delete,
    /// Adds to a list.
    Append,
    /// Removes from a list.
    Subtract,
}

impl ConfigOperation {
    /// The operation with this code in IncrementalAlterConfigs.
    ///
    /// # Errors
    /// INVALID_REQUEST for codes without meaning.
    pub fn from_code(code: i8) -> Result<Self, ConfigError> {
        Ok(match code {
            0 => Self::Set,
            1 => Self::Delete,
            2 => Self::Append,
            3 => Self::Subtract,
            _ => return Err(ConfigError::request(format!("Unknown operations type {code}"))),
        })
    }

    /// Kafka's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Delete => "DELETE",
            Self::Append => "APPEND",
            Self::Subtract => "SUBTRACT",
        }
    }
}

/// The change of one config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChange {
    /// The config.
    pub name: String,
    /// What is done to it.
    pub operation: ConfigOperation,
    /// The new value, or the members of the list to add or remove; `None` only to delete.
    pub value: Option<String>,
}

impl ConfigChange {
    /// A change that sets a value. CreateTopics and the legacy AlterConfigs have only such changes.
    pub fn set(name: String, value: Option<String>) -> Self {
        Self { name, operation: ConfigOperation::Set, value }
    }
}

/// Checks changes for errors that do not depend on the configs they name.
pub(super) fn check_changes(changes: &[ConfigChange]) -> Result<(), ConfigError> {
    let mut names = BTreeSet::new();
    if !changes.iter().all(|change| names.insert(&change.name)) {
        return Err(ConfigError::request("Error due to duplicate config keys"));
    }
    let without_value: Vec<&str> = changes
        .iter()
        .filter(|change| change.operation != ConfigOperation::Delete && change.value.is_none())
        .map(|change| change.name.as_str())
        .collect();
    if !without_value.is_empty() {
        let names = without_value.join(", ");
        return Err(ConfigError::request(format!("Null value not supported for : {names}")));
    }
    if changes.iter().filter_map(|change| change.value.as_ref()).any(|v| v.len() > VALUE_BYTES_MAX)
    {
        return Err(ConfigError::config(format!(
            "The configuration value cannot be added because it exceeds the maximum value size of \
             {VALUE_BYTES_MAX} bytes."
        )));
    }
    Ok(())
}

/// Applies changes. `list_default` returns the default of a config that is a list, or an error for
/// any other config.
pub(super) fn apply_changes(
    current: &Overrides,
    changes: &[ConfigChange],
    list_default: impl Fn(&ConfigChange) -> Result<&'static str, ConfigError>,
) -> Result<Overrides, ConfigError> {
    check_changes(changes)?;
    let mut result = current.clone();
    for change in changes {
        let given = change.value.as_deref().unwrap_or_default();
        match change.operation {
            ConfigOperation::Set => _ = result.insert(change.name.clone(), given.to_owned()),
            ConfigOperation::Delete => _ = result.remove(&change.name),
            ConfigOperation::Append | ConfigOperation::Subtract => {
                let default = list_default(change)?;
                let present = result.get(&change.name).map_or(default, String::as_str);
                let mut members: Vec<&str> = members(present).collect();
                for member in self::members(given) {
                    let place = members.iter().position(|present| *present == member);
                    match (change.operation, place) {
                        (ConfigOperation::Append, None) => members.push(member),
                        (ConfigOperation::Subtract, Some(place)) => _ = members.remove(place),
                        _ => {}
                    }
                }
                let joined = members.join(",");
                result.insert(change.name.clone(), joined);
            }
        }
    }
    Ok(result)
}

fn members(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConfigErrorKind::{InvalidConfig, InvalidRequest};

    #[test]
    fn only_topics_and_brokers_have_configs() {
        assert_eq!(ConfigResourceType::from_code(2), Ok(ConfigResourceType::Topic));
        assert_eq!(ConfigResourceType::from_code(4), Ok(ConfigResourceType::Broker));
        for (code, message) in [
            (8, "Broker loggers (BROKER_LOGGER resources) are not supported by this cluster"),
            (16, "Client metrics (CLIENT_METRICS resources) are not supported by this cluster"),
            (32, "Group configs (GROUP resources) are not supported by this cluster"),
            (0, "Unknown resource type 0"),
        ] {
            let error = ConfigResourceType::from_code(code).unwrap_err();
            assert_eq!(error.kind, InvalidRequest);
            assert_eq!(error.message, message);
        }
    }

    #[test]
    fn operations_have_codes() {
        let names: Vec<&str> =
            (0..4).map(|code| ConfigOperation::from_code(code).unwrap().name()).collect();
        assert_eq!(names, ["SET", "DELETE", "APPEND", "SUBTRACT"]);
        let error = ConfigOperation::from_code(4).unwrap_err();
        assert_eq!(error.message, "Unknown operations type 4");
    }

    #[test]
    fn changes_that_cannot_be_meant_are_refused() {
        let set =
            |name: &str, value: Option<&str>| ConfigChange::set(name.into(), value.map(Into::into));
        let refusal = |changes: &[ConfigChange]| {
            let error = check_changes(changes).unwrap_err();
            (error.kind, error.message)
        };
        assert_eq!(
            refusal(&[set("a", Some("1")), set("a", Some("2"))]),
            (InvalidRequest, "Error due to duplicate config keys".into())
        );
        assert_eq!(
            refusal(&[set("a", None), set("b", Some("1")), set("c", None)]),
            (InvalidRequest, "Null value not supported for : a, c".into())
        );
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        let (kind, message) = refusal(&[set("a", Some(&long))]);
        assert_eq!(kind, InvalidConfig);
        assert!(message.ends_with("the maximum value size of 32767 bytes."), "{message}");
        assert!(check_changes(&[set("a", Some(&long[1..]))]).is_ok());
    }
}
