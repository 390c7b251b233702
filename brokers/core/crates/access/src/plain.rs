//! The server's side of PLAIN (RFC 4616). The password arrives in clear text, so a listener offers
//! PLAIN only under TLS or on loopback. It is checked against the user's SCRAM credential, so that
//! no password is ever stored.
//!
//! The check takes one PBKDF2 for each mechanism, that is, milliseconds of processor time. So it
//! has two steps: [`PlainCheck::prepare`] is cheap and looks the user up; [`PlainCheck::run`] is
//! not, and belongs on a thread that serves no requests. It computes both, also where the user has
//! only one credential or none, so that the time does not tell who exists. Nothing is cached
//! between connections: a cache would hold what is as good as a password, and would have to follow
//! every change of one.

use std::fmt;

use subtle::{Choice, ConstantTimeEq};

use super::derivation::{Decoy, Keys, salted_password, stored_key};
use super::types::{ScramCredential, ScramMechanism};

/// The longest name or password that is accepted, in bytes. RFC 4616 asks for at least 255.
const FIELD_BYTES_MAX: usize = 1024;

/// Why a message or a check failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlainError {
    /// The message does not have the form `[authzid] NUL authcid NUL passwd`.
    #[error("invalid PLAIN message: {0}")]
    Malformed(&'static str),
    /// The message has an authorization id that is not the user's name.
    #[error("the authorization id differs from the user name")]
    AuthorizationId,
    /// The user is unknown or the password is wrong.
    #[error("invalid username or password")]
    InvalidCredentials,
}

/// A password that is to be checked.
pub struct PlainCheck {
    user: String,
    password: String,
    keys: [(ScramMechanism, Keys); 2],
}

impl fmt::Debug for PlainCheck {
    /// Leaves the password out, so that no log can hold it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PlainCheck").field("user", &self.user).finish_non_exhaustive()
    }
}

impl PlainCheck {
    /// Parses a message and looks up its user's credential for each mechanism. An unknown user gets
    /// a check that does the same work as that of a user with both credentials and the decoy's
    /// iterations, and that fails.
    ///
    /// # Errors
    /// [`PlainError::Malformed`] and [`PlainError::AuthorizationId`], both before any look-up.
    pub fn prepare(
        message: &[u8],
        decoy: &Decoy,
        lookup: impl Fn(&str, ScramMechanism) -> Option<ScramCredential>,
    ) -> Result<Self, PlainError> {
        let (user, password) = parse_message(message)?;
        let keys = ScramMechanism::ALL.map(|mechanism| {
            (mechanism, decoy.keys(user, mechanism, lookup(user, mechanism).as_ref()))
        });
        Ok(Self { user: user.to_owned(), password: password.to_owned(), keys })
    }

    /// Derives the keys, compares them in constant time, and returns the user's name. It takes
    /// milliseconds of processor time.
    ///
    /// # Errors
    /// [`PlainError::InvalidCredentials`] where the user is unknown, or the password is that of
    /// none of its credentials.
    pub fn run(self) -> Result<String, PlainError> {
        let mut matches = Choice::from(0);
        for (mechanism, keys) in &self.keys {
            let Keys { salt, iterations, stored_key: expected, genuine, .. } = keys;
            let salted = salted_password(*mechanism, self.password.as_bytes(), salt, *iterations);
            let same = stored_key(*mechanism, &salted).ct_eq(expected);
            matches |= same & Choice::from(u8::from(*genuine));
        }
        if bool::from(matches) { Ok(self.user) } else { Err(PlainError::InvalidCredentials) }
    }
}

/// The user that a message names; `None` where it is malformed.
pub(super) fn user_of(message: &[u8]) -> Option<&str> {
    parse_message(message).ok().map(|(user, _)| user)
}

/// Splits a message into user and password.
fn parse_message(message: &[u8]) -> Result<(&str, &str), PlainError> {
    let text = std::str::from_utf8(message).map_err(|_| PlainError::Malformed("not UTF-8"))?;
    let mut fields = text.split('\0');
    let (Some(authorization), Some(user), Some(password), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(PlainError::Malformed("not three fields"));
    };
    if [authorization, user, password].iter().any(|field| field.len() > FIELD_BYTES_MAX) {
        return Err(PlainError::Malformed("field too long"));
    }
    if user.is_empty() {
        return Err(PlainError::Malformed("username not specified"));
    }
    if password.is_empty() {
        return Err(PlainError::Malformed("password not specified"));
    }
    if !authorization.is_empty() && authorization != user {
        return Err(PlainError::AuthorizationId);
    }
    Ok((user, password))
}

#[cfg(test)]
mod tests {
    use super::super::derivation::take_work;
    use super::*;
    use freshet_world::env::Randomness;

    struct Zeros;

    impl Randomness for Zeros {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(0);
        }
    }

    /// Alice and bob have one credential each, carol both, with a password for each.
    fn credential(user: &str, mechanism: ScramMechanism) -> Option<ScramCredential> {
        let password = match (user, mechanism) {
            ("alice", ScramMechanism::Sha256) | ("bob", ScramMechanism::Sha512) => "pässword",
            ("carol", ScramMechanism::Sha256) => "one",
            ("carol", ScramMechanism::Sha512) => "two",
            _ => return None,
        };
        Some(ScramCredential::from_password(password, mechanism, 4096, &Zeros).unwrap())
    }

    fn check(message: &[u8]) -> Result<String, PlainError> {
        let decoy = Decoy::new([7; 32], 4096);
        PlainCheck::prepare(message, &decoy, credential)?.run()
    }

    #[test]
    fn the_right_password_lets_in() {
        for message in ["\0alice\0pässword", "alice\0alice\0pässword"] {
            assert_eq!(check(message.as_bytes()), Ok("alice".into()));
        }
        assert_eq!(check("\0bob\0pässword".as_bytes()), Ok("bob".into()));
        for password in ["one", "two"] {
            assert_eq!(check(format!("\0carol\0{password}").as_bytes()), Ok("carol".into()));
        }
    }

    #[test]
    fn the_work_of_a_check_is_the_same_whoever_is_named() {
        let work = |message: &str| {
            let decoy = Decoy::new([7; 32], 4096);
            let check = PlainCheck::prepare(message.as_bytes(), &decoy, credential).unwrap();
            take_work();
            let _ = check.run();
            take_work()
        };
        let expected = vec![(ScramMechanism::Sha256, 4096), (ScramMechanism::Sha512, 4096)];
        for message in
            ["\0alice\0pässword", "\0alice\0x", "\0bob\0x", "\0carol\0one", "\0mallory\0x"]
        {
            assert_eq!(work(message), expected, "{message:?}");
        }
    }

    #[test]
    fn a_wrong_password_and_an_unknown_user_fail_alike() {
        for message in ["\0alice\0password", "\0bob\0x", "\0mallory\0pässword"] {
            assert_eq!(check(message.as_bytes()), Err(PlainError::InvalidCredentials));
        }
    }

    #[test]
    fn malformed_messages_are_refused_without_a_look_up() {
        let decoy = Decoy::new([7; 32], 4096);
        let refuse = |message: &[u8]| {
            PlainCheck::prepare(message, &decoy, |_, _| panic!("looked up")).unwrap_err()
        };
        let bad: [&[u8]; 7] =
            [b"", b"alice", b"\0alice", b"\0\0x", b"\0alice\0", b"\0a\0b\0c", b"\0\xff\0x"];
        for message in bad {
            assert!(matches!(refuse(message), PlainError::Malformed(_)), "{message:?}");
        }
        let long = format!("\0alice\0{}", "x".repeat(FIELD_BYTES_MAX + 1));
        assert_eq!(refuse(long.as_bytes()), PlainError::Malformed("field too long"));
        assert_eq!(refuse(b"root\0alice\0x"), PlainError::AuthorizationId);
    }

    #[test]
    fn the_password_is_in_no_debug_output() {
        let decoy = Decoy::new([7; 32], 4096);
        let prepared = PlainCheck::prepare(b"\0alice\0hunter2", &decoy, |_, _| None).unwrap();
        let text = format!("{prepared:?}");
        assert!(text.contains("alice") && !text.contains("hunter2"));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(message: Vec<u8>) {
            let _ = parse_message(&message);
        }
    }
}
