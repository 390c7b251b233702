//! Principals: who a client is once it has authenticated.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// The type of every principal that Freshet creates.
const USER_TYPE: &str = "User";

/// A principal in Kafka's form `Type:name`. Cloning it copies a pointer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal {
    text: Arc<str>,
    /// The position of the colon in the text, in bytes.
    colon: usize,
}

/// The text is no principal. The message is Kafka's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Could not parse principal from `{0}` (no colon is present separating the principal type from \
     the principal name)"
)]
pub struct PrincipalError(pub String);

impl Principal {
    /// The principal of a user: `User:<name>`.
    pub fn user(name: &str) -> Self {
        Self { text: format!("{USER_TYPE}:{name}").into(), colon: USER_TYPE.len() }
    }

    /// The principal of a client that has not authenticated: `User:ANONYMOUS`.
    pub fn anonymous() -> Self {
        static ANONYMOUS: LazyLock<Principal> = LazyLock::new(|| Principal::user("ANONYMOUS"));
        ANONYMOUS.clone()
    }

    /// Parses `Type:name`. The first colon separates the two, so a name may contain more colons.
    ///
    /// # Errors
    /// [`PrincipalError`] where there is no colon.
    pub fn parse(text: &str) -> Result<Self, PrincipalError> {
        let colon = text.find(':').ok_or_else(|| PrincipalError(text.to_owned()))?;
        Ok(Self { text: text.into(), colon })
    }

    /// `Type:name`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the colon, such as `User`.
    pub fn principal_type(&self) -> &str {
        &self.text[..self.colon]
    }

    /// The part after the colon.
    pub fn name(&self) -> &str {
        &self.text[self.colon + 1..]
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_anonymous_have_kafkas_form() {
        let alice = Principal::user("alice");
        assert_eq!(alice.as_str(), "User:alice");
        assert_eq!((alice.principal_type(), alice.name()), ("User", "alice"));
        assert_eq!(Principal::anonymous().to_string(), "User:ANONYMOUS");
        assert_eq!(Principal::parse("User:alice"), Ok(alice));
    }

    #[test]
    fn the_first_colon_separates() {
        let principal = Principal::parse("Group:a:b").unwrap();
        assert_eq!((principal.principal_type(), principal.name()), ("Group", "a:b"));
        assert!(Principal::parse("alice").unwrap_err().to_string().contains("from `alice` (no"));
    }

    #[test]
    fn clones_share_the_text() {
        let first = Principal::user("alice");
        assert!(std::ptr::eq(first.clone().as_str(), first.as_str()));
    }
}
