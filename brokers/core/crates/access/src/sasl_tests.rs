//! Sessions from handshake to principal, and every way to fail.

use super::*;
use crate::scram::client::{answer, first_message};

struct Constant;

impl Randomness for Constant {
    fn fill(&self, buffer: &mut [u8]) {
        buffer.fill(5);
    }
}

/// Alice has both credentials, bob only that of SHA-512.
struct Users;

impl Credentials for Users {
    fn scram(&self, user: &str, mechanism: ScramMechanism) -> Option<ScramCredential> {
        let known = match user {
            "alice" => true,
            "bob" => mechanism == ScramMechanism::Sha512,
            _ => false,
        };
        known.then(|| ScramCredential::from_password("pencil", mechanism, 4096, &Constant).unwrap())
    }
}

fn session(mechanisms: &[Mechanism]) -> SaslSession {
    SaslSession::new(Arc::new(SaslSettings {
        mechanisms: mechanisms.to_vec(),
        credentials: Arc::new(Users),
        decoy: Decoy::new([7; 32], 4096),
        randomness: Arc::new(Constant),
    }))
}

fn plain(user: &str, password: &str) -> Result<Step, SaslFailure> {
    let mut session = session(&Mechanism::ALL);
    session.handshake(1, "PLAIN").unwrap();
    let Step::Verify(verification) = session.authenticate(&token(user, password))? else {
        panic!("PLAIN is verified elsewhere")
    };
    session.verified(verification.run())
}

fn token(user: &str, password: &str) -> Vec<u8> {
    format!("\0{user}\0{password}").into_bytes()
}

fn scram(mechanism: ScramMechanism, user: &str, password: &str) -> Result<Step, SaslFailure> {
    let mut session = session(&Mechanism::ALL);
    session.handshake(1, mechanism.name()).unwrap();
    let first = first_message(user);
    let Step::Continue(challenge) = session.authenticate(first.as_bytes())? else {
        panic!("SCRAM has two steps")
    };
    let challenge = String::from_utf8(challenge).unwrap();
    let (client_final, _) = answer(mechanism, &first, &challenge, password);
    let step = session.authenticate(client_final.as_bytes())?;
    assert!(session.is_complete());
    Ok(step)
}

fn error_of(result: Result<Step, SaslFailure>) -> (ResponseError, String) {
    let failure = result.expect_err("it fails");
    (failure.error, failure.message)
}

#[test]
fn plain_authenticates_with_either_credential() {
    for user in ["alice", "bob"] {
        let Ok(Step::Authenticated(principal, token)) = plain(user, "pencil") else {
            panic!("{user} is refused")
        };
        assert_eq!((principal, token), (Principal::user(user), Vec::new()));
    }
}

#[test]
fn plain_failures_have_kafkas_code_and_message() {
    let expected = "Authentication failed: Invalid username or password".to_owned();
    for (user, password) in [("alice", "crayon"), ("mallory", "pencil")] {
        let failed = error_of(plain(user, password));
        assert_eq!(failed, (ResponseError::SaslAuthenticationFailed, expected.clone()));
    }
}

#[test]
fn scram_authenticates() {
    for (mechanism, user) in [(ScramMechanism::Sha256, "alice"), (ScramMechanism::Sha512, "bob")] {
        let Ok(Step::Authenticated(principal, signature)) = scram(mechanism, user, "pencil") else {
            panic!("{user} is refused")
        };
        assert_eq!(principal, Principal::user(user));
        assert!(signature.starts_with(b"v="));
    }
}

#[test]
fn scram_failures_do_not_reveal_who_exists() {
    let expected = "Authentication failed during authentication due to invalid credentials with \
                    SASL mechanism SCRAM-SHA-256";
    for (user, password) in [("alice", "crayon"), ("mallory", "pencil"), ("bob", "pencil")] {
        let failed = error_of(scram(ScramMechanism::Sha256, user, password));
        assert_eq!(failed, (ResponseError::SaslAuthenticationFailed, expected.to_owned()));
    }
}

#[test]
fn a_mechanism_that_is_not_offered_is_refused() {
    for mechanism in ["PLAIN", "GSSAPI", "plain", ""] {
        let mut session = session(&[Mechanism::Scram(ScramMechanism::Sha512)]);
        let failure = session.handshake(1, mechanism).unwrap_err();
        assert_eq!(failure.error, ResponseError::UnsupportedSaslMechanism);
        assert_eq!(session.mechanisms(), ["SCRAM-SHA-512"]);
        let second = session.handshake(1, "SCRAM-SHA-512").unwrap_err();
        assert_eq!(second.error, ResponseError::IllegalSaslState, "the session is over");
    }
}

#[test]
fn tokens_and_handshakes_out_of_order_are_illegal() {
    let mut early = session(&Mechanism::ALL);
    assert_eq!(error_of(early.authenticate(b"x")).0, ResponseError::IllegalSaslState);
    assert_eq!(
        early.handshake(1, "PLAIN").unwrap_err().error,
        ResponseError::IllegalSaslState,
        "no second chance on this connection"
    );

    let mut verifying = session(&Mechanism::ALL);
    verifying.handshake(1, "PLAIN").unwrap();
    let Ok(Step::Verify(verification)) = verifying.authenticate(&token("alice", "pencil")) else {
        panic!("PLAIN is verified elsewhere")
    };
    assert_eq!(
        error_of(verifying.authenticate(&token("alice", "pencil"))).0,
        ResponseError::IllegalSaslState
    );
    assert!(verifying.verified(verification.run()).is_err(), "too late");
    assert!(!verifying.is_complete());
}

#[test]
fn a_complete_session_stays_complete() {
    let mut session = session(&Mechanism::ALL);
    session.handshake(1, "PLAIN").unwrap();
    let Ok(Step::Verify(verification)) = session.authenticate(&token("alice", "pencil")) else {
        panic!("PLAIN is verified elsewhere")
    };
    session.verified(verification.run()).unwrap();
    let (error, message) = error_of(session.authenticate(b"x"));
    assert_eq!(error, ResponseError::IllegalSaslState);
    assert_eq!(message, "SaslAuthenticate request received after successful authentication");
    assert_eq!(session.handshake(1, "PLAIN").unwrap_err().error, ResponseError::IllegalSaslState);
    assert!(session.is_complete());
}

#[test]
fn a_failed_exchange_cannot_be_resumed() {
    let mut session = session(&Mechanism::ALL);
    session.handshake(1, "SCRAM-SHA-256").unwrap();
    let failed = error_of(session.authenticate(b"garbage"));
    assert_eq!(failed.0, ResponseError::SaslAuthenticationFailed);
    let again = error_of(session.authenticate(first_message("alice").as_bytes()));
    assert_eq!(again.0, ResponseError::IllegalSaslState);
}

#[test]
fn version_0_of_the_handshake_means_raw_frames_until_the_end() {
    let mut session = session(&Mechanism::ALL);
    assert!(!session.expects_raw_frames());
    session.handshake(0, "SCRAM-SHA-256").unwrap();
    assert!(session.expects_raw_frames());
    let first = first_message("alice");
    let Ok(Step::Continue(challenge)) = session.authenticate(first.as_bytes()) else {
        panic!("no challenge")
    };
    assert!(session.expects_raw_frames());
    let challenge = String::from_utf8(challenge).unwrap();
    let (last, _) = answer(ScramMechanism::Sha256, &first, &challenge, "pencil");
    session.authenticate(last.as_bytes()).unwrap();
    assert!(session.is_complete() && !session.expects_raw_frames());

    let mut wrapped = super::tests::session(&Mechanism::ALL);
    wrapped.handshake(1, "PLAIN").unwrap();
    assert!(!wrapped.expects_raw_frames());
}

#[test]
fn acting_for_somebody_else_has_kafkas_message() {
    let mut session = session(&Mechanism::ALL);
    session.handshake(1, "PLAIN").unwrap();
    let (error, message) = error_of(session.authenticate(b"root\0alice\0pencil"));
    assert_eq!(error, ResponseError::SaslAuthenticationFailed);
    assert!(message.ends_with("an authorization id that is different from username"));
}

#[test]
fn mechanisms_have_names() {
    for mechanism in Mechanism::ALL {
        assert_eq!(mechanism.name().parse(), Ok(mechanism));
    }
    assert!("SCRAM".parse::<Mechanism>().is_err());
}
