//! The definition of a config: its type, its default, the values it accepts, and whether it has an
//! effect.

use std::fmt;

use super::ConfigError;

/// The type of a config's value. The numbers are those of DescribeConfigs responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigType {
    /// `true` or `false`.
    Boolean = 1,
    /// Text.
    String = 2,
    /// Signed, 32 bits.
    Int = 3,
    /// Signed, 16 bits.
    Short = 4,
    /// Signed, 64 bits.
    Long = 5,
    /// Floating point, 64 bits.
    Double = 6,
    /// Texts separated by commas.
    List = 7,
}

impl ConfigType {
    /// Kafka's name, as in its messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
        }
    }
}

/// Whether a config changes what Freshet does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes what Freshet does.
    Acts,
    /// It is checked, stored and reported, so that tools can read, modify and write it. Freshet's
    /// storage works in another way, so it has no effect.
    Reported,
}

/// Which values of the type are acceptable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rule {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// A compression level: within the range, or the third number, which stands for the library's
    /// default.
    BetweenOr(i64, i64, i64),
    /// From 0 to 1.
    Ratio,
    /// One of these, or a list of these.
    OneOf(&'static [&'static str]),
    /// `*`, or a list of `partition:broker`.
    ThrottledReplicas,
}

/// A value that its definition accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    List(Vec<String>),
}

impl fmt::Display for Value {
    /// The form in which values are reported.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(formatter),
            Self::Integer(value) => value.fmt(formatter),
            // Debug keeps the fraction that Java's `Double.toString` has: `1.0`.
            Self::Double(value) => fmt::Debug::fmt(value, formatter),
            Self::Text(value) => formatter.write_str(value),
            Self::List(values) => formatter.write_str(&values.join(",")),
        }
    }
}

/// A config.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    pub(super) name: &'static str,
    pub(super) config_type: ConfigType,
    /// The default as text; `None` where Kafka's default is null.
    pub(super) default: Option<&'static str>,
    pub(super) rule: Rule,
    pub(super) effect: Effect,
    pub(super) documentation: &'static str,
}

impl Definition {
    /// Parses a value as Kafka's `ConfigDef` does.
    pub(super) fn parse(&self, text: &str) -> Result<Value, ConfigError> {
        let value = self.parse_type(text)?;
        self.check(&value)?;
        Ok(value)
    }

    /// The default as a value.
    pub(super) fn default_value(&self) -> Option<Value> {
        self.default.map(|text| self.parse(text).expect("defaults are acceptable"))
    }

    /// The documentation, followed by a sentence where the config has no effect.
    pub(super) fn full_documentation(&self) -> String {
        match self.effect {
            Effect::Acts => self.documentation.to_owned(),
            Effect::Reported => {
                format!("{} Accepted and reported; Freshet does not need it.", self.documentation)
            }
        }
    }

    fn parse_type(&self, text: &str) -> Result<Value, ConfigError> {
        let trimmed = text.trim();
        let number = || {
            let why = format!("Not a number of type {}", self.config_type.name());
            ConfigError::value(self.name, text, why)
        };
        Ok(match self.config_type {
            ConfigType::Boolean if trimmed.eq_ignore_ascii_case("true") => Value::Boolean(true),
            ConfigType::Boolean if trimmed.eq_ignore_ascii_case("false") => Value::Boolean(false),
            ConfigType::Boolean => {
                let why = "Expected value to be either true or false";
                return Err(ConfigError::value(self.name, text, why));
            }
            ConfigType::String => Value::Text(trimmed.to_owned()),
            ConfigType::Short => {
                Value::Integer(trimmed.parse::<i16>().map_err(|_| number())?.into())
            }
            ConfigType::Int => Value::Integer(trimmed.parse::<i32>().map_err(|_| number())?.into()),
            ConfigType::Long => Value::Integer(trimmed.parse().map_err(|_| number())?),
            ConfigType::Double => {
                let value: f64 = trimmed.parse().map_err(|_| number())?;
                if value.is_finite() { Value::Double(value) } else { return Err(number()) }
            }
            ConfigType::List if trimmed.is_empty() => Value::List(Vec::new()),
            ConfigType::List => {
                Value::List(trimmed.split(',').map(|part| part.trim().to_owned()).collect())
            }
        })
    }

    fn check(&self, value: &Value) -> Result<(), ConfigError> {
        let refuse = |why: String| Err(ConfigError::value(self.name, value, why));
        match (self.rule, value) {
            (Rule::AtLeast(min) | Rule::Between(min, _), Value::Integer(number))
                if *number < min =>
            {
                refuse(format!("Value must be at least {min}"))
            }
            (Rule::Between(_, max), Value::Integer(number)) if *number > max => {
                refuse(format!("Value must be no more than {max}"))
            }
            (Rule::BetweenOr(min, max, other), Value::Integer(number))
                if !(min..=max).contains(number) && *number != other =>
            {
                refuse(format!("Value must be between {min} and {max} or equal to {other}"))
            }
            (Rule::Ratio, Value::Double(ratio)) if *ratio < 0.0 => {
                refuse("Value must be at least 0".into())
            }
            (Rule::Ratio, Value::Double(ratio)) if *ratio > 1.0 => {
                refuse("Value must be no more than 1".into())
            }
            (Rule::OneOf(names), Value::Text(text)) => self.check_name(names, text),
            (Rule::OneOf(names), Value::List(texts)) => {
                texts.iter().try_for_each(|text| self.check_name(names, text))
            }
            (Rule::ThrottledReplicas, Value::List(replicas)) => self.check_replicas(replicas),
            _ => Ok(()),
        }
    }

    fn check_name(&self, names: &[&str], text: &str) -> Result<(), ConfigError> {
        if names.contains(&text) {
            return Ok(());
        }
        let why = format!("String must be one of: {}", names.join(", "));
        Err(ConfigError::value(self.name, text, why))
    }

    fn check_replicas(&self, replicas: &[String]) -> Result<(), ConfigError> {
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_replica = |text: &String| {
            let parts = text.split_once(':');
            text.is_empty()
                || parts.is_some_and(|(partition, broker)| digits(partition) && digits(broker))
        };
        if replicas.iter().all(is_replica) || replicas.concat() == "*" {
            return Ok(());
        }
        let why = format!(
            "{} must be the literal '*' or a list of replicas in the following format: \
             [partitionId]:[brokerId],[partitionId]:[brokerId],...",
            self.name
        );
        Err(ConfigError::value(self.name, format!("[{}]", replicas.join(", ")), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(config_type: ConfigType, rule: Rule) -> Definition {
        Definition {
            name: "a.b",
            config_type,
            default: None,
            rule,
            effect: Effect::Acts,
            documentation: "",
        }
    }

    fn read(config_type: ConfigType, rule: Rule, text: &str) -> String {
        match definition(config_type, rule).parse(text) {
            Ok(value) => value.to_string(),
            Err(error) => {
                let prefix = format!("Invalid value {text} for configuration a.b: ");
                error.message.strip_prefix(&prefix).unwrap_or(&error.message).to_owned()
            }
        }
    }

    #[test]
    fn values_are_read_and_written_as_kafka_does() {
        use ConfigType::{Boolean, Double, Int, List, Long, Short, String};
        let cases = [
            (Boolean, " TRUE ", "true"),
            (Boolean, "yes", "Expected value to be either true or false"),
            (Int, " 42 ", "42"),
            (Int, "2147483648", "Not a number of type INT"),
            (Short, "32768", "Not a number of type SHORT"),
            (Long, "2147483648", "2147483648"),
            (Long, "", "Not a number of type LONG"),
            (Long, "1.5", "Not a number of type LONG"),
            (Double, "1", "1.0"),
            (Double, "NaN", "Not a number of type DOUBLE"),
            (Double, "half", "Not a number of type DOUBLE"),
            (String, " a b ", "a b"),
            (List, " a , b ", "a,b"),
            (List, "  ", ""),
        ];
        for (config_type, text, expected) in cases {
            assert_eq!(read(config_type, Rule::Any, text), expected, "{config_type:?} {text:?}");
        }
    }

    #[test]
    fn rules_refuse_in_kafkas_words() {
        use ConfigType::{Double, Int, List, String};
        const NAMES: Rule = Rule::OneOf(&["a", "b"]);
        let cases = [
            (Int, Rule::AtLeast(1), "1", "1"),
            (Int, Rule::AtLeast(1), "0", "Value must be at least 1"),
            (Int, Rule::Between(1, 17), "18", "Value must be no more than 17"),
            (Int, Rule::Between(1, 17), "0", "Value must be at least 1"),
            (Int, Rule::BetweenOr(1, 9, -1), "-1", "-1"),
            (Int, Rule::BetweenOr(1, 9, -1), "0", "Value must be between 1 and 9 or equal to -1"),
            (Double, Rule::Ratio, "1.0", "1.0"),
            (Double, Rule::Ratio, "1.5", "Value must be no more than 1"),
            (Double, Rule::Ratio, "-0.5", "Value must be at least 0"),
            (String, NAMES, "b", "b"),
            (String, NAMES, "c", "String must be one of: a, b"),
            (List, NAMES, "b,a", "b,a"),
            (List, NAMES, "", ""),
        ];
        for (config_type, rule, text, expected) in cases {
            assert_eq!(read(config_type, rule, text), expected, "{rule:?} {text:?}");
        }
        assert_eq!(
            definition(List, NAMES).parse("a,c").unwrap_err().message,
            "Invalid value c for configuration a.b: String must be one of: a, b"
        );
    }

    #[test]
    fn throttled_replicas_are_a_star_or_pairs() {
        let read = |text| definition(ConfigType::List, Rule::ThrottledReplicas).parse(text);
        for text in ["", "*", "0:1", "0:1, 12:3"] {
            assert!(read(text).is_ok(), "{text}");
        }
        for text in ["0", "0:", ":1", "0:1:2", "a:1", "*,0:1", "0:-1"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read("0:x, 1").unwrap_err().message.starts_with(
            "Invalid value [0:x, 1] for configuration a.b: a.b must be the literal '*' or a list"
        ));
    }
}
