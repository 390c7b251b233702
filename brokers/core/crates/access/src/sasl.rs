//! The SASL part of a connection: a state machine without I/O that leads from SaslHandshake to a
//! [`Principal`]. The connection decodes requests, passes them to it, and closes after any
//! [`SaslFailure`].
//!
//! After a handshake of version 0 the tokens are frames of their own, without a Kafka header
//! ([`SaslSession::expects_raw_frames`]); from version 1 on they come in SaslAuthenticate requests.
//! A mechanism is a variant of [`Mechanism`] and of `Exchange`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use kafka_protocol::ResponseError;

use super::derivation::Decoy;
use super::plain::{PlainCheck, PlainError};
use super::principal::Principal;
use super::scram::{ScramError, ScramServer};
use super::types::{ScramCredential, ScramMechanism};
use super::{plain, scram};
use freshet_world::env::Randomness;

/// A mechanism that a listener can offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// PLAIN: for listeners under TLS or on loopback only, since the password is in clear text.
    Plain,
    /// SCRAM-SHA-256 or SCRAM-SHA-512.
    Scram(ScramMechanism),
}

impl Mechanism {
    /// Every mechanism, strongest last.
    pub const ALL: [Self; 3] =
        [Self::Plain, Self::Scram(ScramMechanism::Sha256), Self::Scram(ScramMechanism::Sha512)];

    /// The name in handshakes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Scram(mechanism) => mechanism.name(),
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The name is not that of a mechanism.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown SASL mechanism {0}; there are PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512")]
pub struct UnknownMechanism(pub String);

impl FromStr for Mechanism {
    type Err = UnknownMechanism;

    /// Parses the name of a mechanism from a handshake or a setting: `PLAIN`, `SCRAM-SHA-256` or
    /// `SCRAM-SHA-512`, in upper case.
    ///
    /// # Errors
    /// [`UnknownMechanism`] for any other text.
    fn from_str(name: &str) -> Result<Self, UnknownMechanism> {
        Self::ALL
            .into_iter()
            .find(|mechanism| mechanism.name() == name)
            .ok_or_else(|| UnknownMechanism(name.to_owned()))
    }
}

/// Looks up credentials. Brokers do so in their image of the metadata; an implementation must not
/// block.
pub trait Credentials: Send + Sync {
    /// The credential of a user for one mechanism.
    fn scram(&self, user: &str, mechanism: ScramMechanism) -> Option<ScramCredential>;
}

/// What every session of a listener shares.
pub struct SaslSettings {
    /// The mechanisms that the listener offers, in the order of SaslHandshake responses.
    pub mechanisms: Vec<Mechanism>,
    /// Credentials of users.
    pub credentials: Arc<dyn Credentials>,
    /// Answers attempts of unknown users.
    pub decoy: Decoy,
    /// Source of nonces.
    pub randomness: Arc<dyn Randomness>,
}

/// Why a session failed. The client gets the error and the message, then the connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SaslFailure {
    /// Kafka's error code.
    pub error: ResponseError,
    /// Kafka's message. It contains nothing that only an authenticated client may know.
    pub message: String,
}

/// What the connection is to do after a token.
#[derive(Debug)]
pub enum Step {
    /// Send these bytes and wait for the next token.
    Continue(Vec<u8>),
    /// Run [`Verification::run`] on a thread where milliseconds of processor time do no harm, then
    /// call [`SaslSession::verified`]. Until then no further token of this connection may be
    /// passed.
    Verify(Verification),
    /// The client has authenticated. Send these bytes, even where they are empty, then serve it.
    Authenticated(Principal, Vec<u8>),
}

/// The check of a password, which takes too long for the threads that serve requests.
#[derive(Debug)]
pub struct Verification(PlainCheck);

/// The outcome of a [`Verification`].
#[derive(Debug)]
pub struct Verified(Result<String, PlainError>);

impl Verification {
    /// Checks the password. It takes milliseconds of processor time.
    pub fn run(self) -> Verified {
        Verified(self.0.run())
    }

    /// Refuses the password without checking it: it is known to be wrong.
    pub fn refuse() -> Verified {
        Verified(Err(PlainError::InvalidCredentials))
    }
}

/// The authentication of one connection.
pub struct SaslSession {
    settings: Arc<SaslSettings>,
    raw_frames: bool,
    state: SessionState,
}

enum SessionState {
    /// Before the handshake.
    Handshake,
    /// Tokens of this mechanism are expected.
    Exchange(Mechanism, Exchange),
    /// A verification is under way.
    Verifying(Mechanism),
    /// Authenticated.
    Complete,
    /// Nothing more is accepted.
    Failed,
}

enum Exchange {
    Plain,
    ScramFirst(ScramServer),
    ScramFinal(ScramServer),
}

impl SaslSession {
    /// Creates a session that waits for its handshake.
    pub fn new(settings: Arc<SaslSettings>) -> Self {
        Self { settings, raw_frames: false, state: SessionState::Handshake }
    }

    /// The names of the mechanisms, for SaslHandshake responses of either outcome.
    pub fn mechanisms(&self) -> Vec<&'static str> {
        self.settings.mechanisms.iter().map(|mechanism| mechanism.name()).collect()
    }

    /// Whether the next frame is a token without a header: the handshake had version 0 and the
    /// exchange is not over. The answers to such tokens have no header either, and after a failure
    /// the connection is closed without an answer.
    pub fn expects_raw_frames(&self) -> bool {
        self.raw_frames
            && matches!(self.state, SessionState::Exchange(..) | SessionState::Verifying(_))
    }

    /// Whether the client has authenticated.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, SessionState::Complete)
    }

    /// Processes a SaslHandshake request.
    ///
    /// # Errors
    /// UNSUPPORTED_SASL_MECHANISM where the mechanism is not offered, ILLEGAL_SASL_STATE for a
    /// second handshake, which is Kafka's answer where re-authentication is off.
    pub fn handshake(&mut self, version: i16, mechanism: &str) -> Result<(), SaslFailure> {
        if !matches!(self.state, SessionState::Handshake) {
            return Err(self.illegal_state("SaslHandshake"));
        }
        let offered = mechanism
            .parse::<Mechanism>()
            .ok()
            .filter(|mechanism| self.settings.mechanisms.contains(mechanism));
        let Some(chosen) = offered else {
            self.state = SessionState::Failed;
            return Err(SaslFailure {
                error: ResponseError::UnsupportedSaslMechanism,
                message: format!("Unsupported SASL mechanism {mechanism}"),
            });
        };
        self.raw_frames = version == 0;
        let exchange = match chosen {
            Mechanism::Plain => Exchange::Plain,
            Mechanism::Scram(mechanism) => {
                let randomness = self.settings.randomness.as_ref();
                Exchange::ScramFirst(ScramServer::new(mechanism, randomness))
            }
        };
        self.state = SessionState::Exchange(chosen, exchange);
        Ok(())
    }

    /// The user that this token names, where it is the token of the exchange that names one. It
    /// lets a caller look the user up before it passes the token on; the state does not change. A
    /// malformed token names nobody, and [`SaslSession::authenticate`] refuses it.
    pub fn named_user(&self, token: &[u8]) -> Option<String> {
        match &self.state {
            SessionState::Exchange(_, Exchange::Plain) => plain::user_of(token).map(str::to_owned),
            SessionState::Exchange(_, Exchange::ScramFirst(_)) => scram::user_of(token),
            _ => None,
        }
    }

    /// Whether the next token proves by SCRAM that the client knows the password.
    pub fn expects_proof(&self) -> bool {
        matches!(self.state, SessionState::Exchange(_, Exchange::ScramFinal(_)))
    }

    /// Processes a token, from a SaslAuthenticate request or from a frame without a header.
    ///
    /// # Errors
    /// SASL_AUTHENTICATION_FAILED where the client is refused, ILLEGAL_SASL_STATE where no token is
    /// expected.
    pub fn authenticate(&mut self, token: &[u8]) -> Result<Step, SaslFailure> {
        match std::mem::replace(&mut self.state, SessionState::Failed) {
            SessionState::Exchange(mechanism, exchange) => match exchange {
                Exchange::Plain => self.start_plain(token, mechanism),
                Exchange::ScramFirst(server) => self.start_scram(token, mechanism, server),
                Exchange::ScramFinal(server) => self.finish_scram(token, mechanism, server),
            },
            other => {
                self.state = other;
                Err(self.illegal_state("SaslAuthenticate"))
            }
        }
    }

    /// Continues with the outcome of a [`Step::Verify`].
    ///
    /// # Errors
    /// SASL_AUTHENTICATION_FAILED where the password is wrong or the user unknown.
    pub fn verified(&mut self, verified: Verified) -> Result<Step, SaslFailure> {
        match std::mem::replace(&mut self.state, SessionState::Failed) {
            SessionState::Verifying(mechanism) => match verified.0 {
                Ok(user) => Ok(self.complete(&user, Vec::new())),
                Err(error) => Err(plain_failure(error, mechanism)),
            },
            other => {
                self.state = other;
                Err(self.illegal_state("verification"))
            }
        }
    }

    fn start_plain(&mut self, token: &[u8], mechanism: Mechanism) -> Result<Step, SaslFailure> {
        let credentials = &self.settings.credentials;
        let decoy = &self.settings.decoy;
        let check = PlainCheck::prepare(token, decoy, |user, hash| credentials.scram(user, hash))
            .map_err(|error| plain_failure(error, mechanism))?;
        self.state = SessionState::Verifying(mechanism);
        Ok(Step::Verify(Verification(check)))
    }

    fn start_scram(
        &mut self,
        token: &[u8],
        mechanism: Mechanism,
        mut server: ScramServer,
    ) -> Result<Step, SaslFailure> {
        let credentials = &self.settings.credentials;
        let hash = server.mechanism();
        let challenge = server
            .first(token, &self.settings.decoy, |user| credentials.scram(user, hash))
            .map_err(|error| scram_failure(error, mechanism))?;
        self.state = SessionState::Exchange(mechanism, Exchange::ScramFinal(server));
        Ok(Step::Continue(challenge))
    }

    fn finish_scram(
        &mut self,
        token: &[u8],
        mechanism: Mechanism,
        mut server: ScramServer,
    ) -> Result<Step, SaslFailure> {
        let (user, signature) =
            server.final_(token).map_err(|error| scram_failure(error, mechanism))?;
        Ok(self.complete(&user, signature))
    }

    fn complete(&mut self, user: &str, token: Vec<u8>) -> Step {
        self.state = SessionState::Complete;
        Step::Authenticated(Principal::user(user), token)
    }

    fn illegal_state(&mut self, request: &str) -> SaslFailure {
        let message = if self.is_complete() {
            format!("{request} request received after successful authentication")
        } else {
            self.state = SessionState::Failed;
            format!("Unexpected Kafka request of type {request} during SASL authentication.")
        };
        SaslFailure { error: ResponseError::IllegalSaslState, message }
    }
}

fn failed(message: String) -> SaslFailure {
    SaslFailure { error: ResponseError::SaslAuthenticationFailed, message }
}

/// Kafka's answer wherever naming the cause might help an attacker.
fn invalid_credentials(mechanism: Mechanism) -> SaslFailure {
    failed(format!(
        "Authentication failed during authentication due to invalid credentials with SASL \
         mechanism {mechanism}"
    ))
}

fn other_authorization_id() -> SaslFailure {
    failed(
        "Authentication failed: Client requested an authorization id that is different from \
         username"
            .to_owned(),
    )
}

fn plain_failure(error: PlainError, mechanism: Mechanism) -> SaslFailure {
    match error {
        PlainError::InvalidCredentials => {
            failed("Authentication failed: Invalid username or password".to_owned())
        }
        PlainError::AuthorizationId => other_authorization_id(),
        PlainError::Malformed(_) => invalid_credentials(mechanism),
    }
}

fn scram_failure(error: ScramError, mechanism: Mechanism) -> SaslFailure {
    match error {
        ScramError::AuthorizationId => other_authorization_id(),
        ScramError::TokenAuthentication => {
            failed("Authentication failed: Delegation tokens are not supported".to_owned())
        }
        ScramError::Malformed(_) | ScramError::InvalidCredentials | ScramError::Ended => {
            invalid_credentials(mechanism)
        }
    }
}

#[cfg(test)]
#[path = "sasl_tests.rs"]
mod tests;
