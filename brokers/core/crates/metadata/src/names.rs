//! Names of topics: Kafka's rules (`org.apache.kafka.common.internals.Topic`). And what a name may
//! hold that a tenant gives to something else.

/// The longest name of a topic, in characters.
pub const TOPIC_NAME_MAX: usize = 249;

/// The topic of the group coordinator.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// Kafka's own log of metadata, which no client may touch.
pub const METADATA_TOPIC: &str = "__cluster_metadata";
/// The user as whom the service itself comes to its brokers.
pub const SERVICE_USER: &str = "__freshet";
/// How the names begin that the service gives to the users it makes for tenants. It removes one
/// that it does not know, as what a lost answer left.
pub const SERVICE_NAMES: &str = "cred_";

/// Topics in which Kafka itself keeps state.
const INTERNAL_TOPICS: [&str; 4] =
    [OFFSETS_TOPIC, "__transaction_state", "__share_group_state", METADATA_TOPIC];

/// Whether Kafka itself keeps state in a topic of this name. Clients neither make nor change it,
/// and neither write to it nor read from it.
#[must_use]
pub fn is_internal_topic(name: &str) -> bool {
    INTERNAL_TOPICS.contains(&name)
}

/// Why a name cannot be the name of a topic. The texts are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// No characters.
    #[error("the empty string is not allowed")]
    Empty,
    /// A folder's name.
    #[error("'.' or '..' is not allowed")]
    Dots,
    /// More than [`TOPIC_NAME_MAX`] characters.
    #[error("the length of '{0}' is longer than the max allowed length {TOPIC_NAME_MAX}")]
    TooLong(String),
    /// Other characters than `[a-zA-Z0-9._-]`.
    #[error(
        "'{0}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    )]
    Characters(String),
}

/// Checks the name of a topic.
///
/// # Errors
/// [`InvalidName`] where Kafka would not allow it.
pub fn check_topic_name(name: &str) -> Result<(), InvalidName> {
    if name.is_empty() {
        return Err(InvalidName::Empty);
    }
    if name == "." || name == ".." {
        return Err(InvalidName::Dots);
    }
    if name.len() > TOPIC_NAME_MAX {
        return Err(InvalidName::TooLong(name.to_owned()));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.chars().all(allowed) {
        return Err(InvalidName::Characters(name.to_owned()));
    }
    Ok(())
}

/// What [`is_name`] refuses, for the texts of errors.
pub const HIDDEN_CHARACTERS: &str =
    "characters of control, ends of lines or changes of the direction of writing";

/// Whether a text can name what others list, store and show: a user, the resource or the principal
/// of an ACL, the entity of a quota. Kafka takes any text. Left out are characters that no reader
/// sees and some readers obey or refuse: those of control, NUL among them, which PostgreSQL does
/// not store; ends of lines; those that turn the direction of writing; and those that Unicode keeps
/// for no character.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_hidden = |c: char| {
        let is_noncharacter =
            matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe;
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || turns || is_noncharacter
    };
    !text.chars().any(is_hidden)
}

/// The key that two colliding names share: in the names of metrics `.` and `_` are the same.
#[must_use]
pub fn collision_key(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_names_follow_kafka() {
        for good in ["a", "...", "A.b_c-9", "__consumer_offsets", &"x".repeat(249)] {
            assert_eq!(check_topic_name(good), Ok(()), "{good}");
        }
        assert_eq!(check_topic_name(""), Err(InvalidName::Empty));
        assert_eq!(check_topic_name("."), Err(InvalidName::Dots));
        assert_eq!(check_topic_name(".."), Err(InvalidName::Dots));
        let long = "x".repeat(250);
        assert_eq!(check_topic_name(&long), Err(InvalidName::TooLong(long.clone())));
        for bad in ["a b", "a/b", "ä", "a\0", "a:b", "a\n"] {
            assert_eq!(check_topic_name(bad), Err(InvalidName::Characters(bad.to_owned())));
        }
    }

    #[test]
    fn topics_of_connect_streams_and_schema_registries_are_ordinary() {
        for internal in ["__consumer_offsets", "__transaction_state", "__cluster_metadata"] {
            assert!(is_internal_topic(internal), "{internal}");
        }
        for ordinary in ["connect-offsets", "app-store-changelog", "_schemas", "__orders"] {
            assert!(!is_internal_topic(ordinary), "{ordinary}");
        }
    }

    #[test]
    fn names_hold_what_a_reader_sees() {
        for good in ["a", "a b", "Ünïcödé", "日本", "a/b:c*", "CN=x,O=y", "🦀", ""] {
            assert!(is_name(good), "{good}");
        }
        let hidden = [
            "\0",
            "\t",
            "\n",
            "\u{1b}",
            "\u{7f}",
            "\u{9b}",
            "\u{2028}",
            "\u{202e}",
            "\u{2066}",
            "\u{ffff}",
            "\u{fdd0}",
            "\u{1fffe}",
        ];
        for bad in hidden {
            assert!(!is_name(&format!("a{bad}")), "{bad:?}");
        }
    }

    #[test]
    fn dots_and_underscores_collide() {
        assert_eq!(collision_key("a.b_c"), collision_key("a_b.c"));
        assert_ne!(collision_key("a-b"), collision_key("a_b"));
    }
}
