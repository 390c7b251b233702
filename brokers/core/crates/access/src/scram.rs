//! The server's side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), as a state machine
//! without I/O: it takes two messages from the client and returns an answer to each.
//!
//! It is stricter than Kafka where the RFC is: channel binding data must repeat the header, and
//! mandatory extensions fail. As in Kafka, there is no channel binding and no SASLprep, and an
//! authorization id must be the user's name. Delegation tokens (extension `tokenauth`) are refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::{Choice, ConstantTimeEq};

use super::derivation::{Decoy, Keys, hash, hmac};
use super::types::{ScramCredential, ScramMechanism};
use freshet_world::env::Randomness;

/// The longest message that is accepted, in bytes; names and nonces are far shorter.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;
/// The random bytes in the server's part of the nonce; a multiple of 3, so that Base64 needs no
/// padding.
const NONCE_BYTES: usize = 24;

/// Why an exchange failed. None of these depends on whether the user exists, except
/// [`ScramError::InvalidCredentials`], which is the same for an unknown user and a wrong password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// The message does not follow the protocol.
    #[error("invalid SCRAM message: {0}")]
    Malformed(&'static str),
    /// The client uses a delegation token instead of a password.
    #[error("delegation tokens are not supported")]
    TokenAuthentication,
    /// The message has an authorization id that is not the user's name.
    #[error("the authorization id differs from the user name")]
    AuthorizationId,
    /// The user is unknown or the password is wrong.
    #[error("invalid credentials")]
    InvalidCredentials,
    /// The exchange has ended already, with success or without.
    #[error("the exchange has ended")]
    Ended,
}

/// One exchange with a client.
pub struct ScramServer {
    mechanism: ScramMechanism,
    nonce: String,
    state: ClientState,
}

enum ClientState {
    /// No message has come yet.
    Start,
    /// The first message was answered.
    Challenged(Box<Challenge>),
    /// Nothing more is accepted.
    Ended,
}

struct Challenge {
    user: String,
    keys: Keys,
    /// Base64 of the first message's GS2 header, which the final message must repeat.
    channel_binding: String,
    /// The client's part of the nonce.
    client_nonce: String,
    /// `client-first-message-bare "," server-first-message ","`.
    authentication_prefix: String,
}

impl ScramServer {
    /// Begins an exchange, with a nonce that is drawn from `nonce_source`.
    pub fn new(mechanism: ScramMechanism, nonce_source: &dyn Randomness) -> Self {
        let mut bytes = [0; NONCE_BYTES];
        nonce_source.fill(&mut bytes);
        Self { mechanism, nonce: STANDARD.encode(bytes), state: ClientState::Start }
    }

    /// The mechanism of this exchange.
    pub fn mechanism(&self) -> ScramMechanism {
        self.mechanism
    }

    /// Processes client-first-message and returns server-first-message. An unknown user gets a
    /// challenge as well (see [`Decoy`]) and fails only at the end.
    ///
    /// # Errors
    /// Any [`ScramError`] but `InvalidCredentials`; then the exchange has ended.
    pub fn first(
        &mut self,
        client_first: &[u8],
        decoy: &Decoy,
        lookup: impl Fn(&str) -> Option<ScramCredential>,
    ) -> Result<Vec<u8>, ScramError> {
        let ClientState::Start = std::mem::replace(&mut self.state, ClientState::Ended) else {
            return Err(ScramError::Ended);
        };
        let message = ClientFirst::parse(client_first)?;
        let keys = decoy.keys(&message.user, self.mechanism, lookup(&message.user).as_ref());
        let nonce = format!("{}{}", message.nonce, self.nonce);
        let salt = STANDARD.encode(&keys.salt);
        let server_first = format!("r={nonce},s={salt},i={}", keys.iterations);
        self.state = ClientState::Challenged(Box::new(Challenge {
            channel_binding: STANDARD.encode(message.gs2_header),
            authentication_prefix: format!("{},{server_first},", message.bare),
            user: message.user,
            keys,
            client_nonce: message.nonce.to_owned(),
        }));
        Ok(server_first.into_bytes())
    }

    /// Processes client-final-message and returns the user's name and server-final-message.
    ///
    /// # Errors
    /// [`ScramError`] where the message is not acceptable or the proof is wrong; then the exchange
    /// has ended.
    pub fn final_(&mut self, client_final: &[u8]) -> Result<(String, Vec<u8>), ScramError> {
        let ClientState::Challenged(challenge) =
            std::mem::replace(&mut self.state, ClientState::Ended)
        else {
            return Err(ScramError::Ended);
        };
        let message = ClientFinal::parse(client_final)?;
        if message.channel_binding != challenge.channel_binding {
            return Err(ScramError::Malformed("channel binding differs from the first message"));
        }
        // Only the end is compared, as in Kafka, and clients in use need that: librdkafka before
        // 2.10 repeats its own part. It is the server's part that prevents replays, and the proof
        // covers what the client did send.
        let ours = message.nonce.strip_suffix(self.nonce.as_str());
        if !ours.is_some_and(|theirs| theirs.starts_with(&challenge.client_nonce)) {
            return Err(ScramError::Malformed("nonce differs from the challenge"));
        }
        if message.proof.len() != self.mechanism.hash_bytes() {
            return Err(ScramError::Malformed("proof of another length than the hash"));
        }
        let signature = self.verify(&challenge, &message)?;
        Ok((challenge.user, format!("v={}", STANDARD.encode(signature)).into_bytes()))
    }

    /// Checks the proof and computes the server's signature. Both are computed before either is
    /// used, and compared in constant time, so that the time does not depend on whether the user
    /// exists.
    fn verify(
        &self,
        challenge: &Challenge,
        message: &ClientFinal<'_>,
    ) -> Result<Vec<u8>, ScramError> {
        let parts = [challenge.authentication_prefix.as_bytes(), message.without_proof.as_bytes()];
        let client_signature = hmac(self.mechanism, &challenge.keys.stored_key, &parts);
        let server_signature = hmac(self.mechanism, &challenge.keys.server_key, &parts);
        let client_key: Vec<u8> =
            message.proof.iter().zip(&client_signature).map(|(a, b)| a ^ b).collect();
        let proven = hash(self.mechanism, &client_key).ct_eq(&challenge.keys.stored_key)
            & Choice::from(u8::from(challenge.keys.genuine));
        if bool::from(proven) { Ok(server_signature) } else { Err(ScramError::InvalidCredentials) }
    }
}

/// The user that client-first-message names; `None` where it is malformed.
pub(super) fn user_of(client_first: &[u8]) -> Option<String> {
    ClientFirst::parse(client_first).ok().map(|message| message.user)
}

struct ClientFirst<'a> {
    gs2_header: &'a str,
    bare: &'a str,
    user: String,
    nonce: &'a str,
}

impl<'a> ClientFirst<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ScramError> {
        let text = message_text(bytes)?;
        let mut header = text.splitn(3, ',');
        let (Some(flag), Some(authorization), Some(bare)) =
            (header.next(), header.next(), header.next())
        else {
            return Err(ScramError::Malformed("no GS2 header"));
        };
        // "y" means that the client supports channel binding and thinks that the server does not,
        // which is right.
        if !matches!(flag, "n" | "y") {
            return Err(ScramError::Malformed("channel binding is not supported"));
        }
        let mut attributes = bare.split(',');
        let user = attribute(attributes.next(), "n=").and_then(decode_name)?;
        let nonce = attribute(attributes.next(), "r=")?;
        if nonce.is_empty() || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ScramError::Malformed("empty or unprintable nonce"));
        }
        check_extensions(attributes)?;
        if !authorization.is_empty()
            && attribute(Some(authorization), "a=").and_then(decode_name)? != user
        {
            return Err(ScramError::AuthorizationId);
        }
        Ok(Self { gs2_header: &text[..text.len() - bare.len()], bare, user, nonce })
    }
}

struct ClientFinal<'a> {
    channel_binding: &'a str,
    nonce: &'a str,
    without_proof: &'a str,
    proof: Vec<u8>,
}

impl<'a> ClientFinal<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ScramError> {
        let text = message_text(bytes)?;
        let (without_proof, proof) =
            text.rsplit_once(",p=").ok_or(ScramError::Malformed("no proof"))?;
        let proof =
            STANDARD.decode(proof).map_err(|_| ScramError::Malformed("proof is not Base64"))?;
        let mut attributes = without_proof.split(',');
        let channel_binding = attribute(attributes.next(), "c=")?;
        let nonce = attribute(attributes.next(), "r=")?;
        check_extensions(attributes)?;
        Ok(Self { channel_binding, nonce, without_proof, proof })
    }
}

fn message_text(bytes: &[u8]) -> Result<&str, ScramError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(ScramError::Malformed("message too long"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ScramError::Malformed("not UTF-8"))?;
    if text.contains('\0') { Err(ScramError::Malformed("NUL in message")) } else { Ok(text) }
}

/// The value of the attribute that the message must have at this place.
fn attribute<'a>(text: Option<&'a str>, name: &'static str) -> Result<&'a str, ScramError> {
    let text = text.ok_or(ScramError::Malformed("attribute missing"))?;
    if text.starts_with("m=") {
        return Err(ScramError::Malformed("mandatory extension"));
    }
    text.strip_prefix(name).ok_or(ScramError::Malformed("unexpected attribute"))
}

/// Checks the extensions. Optional ones are ignored, as RFC 5802 section 5.1 asks, except those
/// that change which credential is used.
fn check_extensions<'a>(extensions: impl Iterator<Item = &'a str>) -> Result<(), ScramError> {
    for extension in extensions {
        let (name, value) =
            extension.split_once('=').ok_or(ScramError::Malformed("extension without a value"))?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(ScramError::Malformed("extension without a name"));
        }
        if name == "m" {
            return Err(ScramError::Malformed("mandatory extension"));
        }
        if name == "tokenauth" && !value.eq_ignore_ascii_case("false") {
            return Err(ScramError::TokenAuthentication);
        }
    }
    Ok(())
}

/// Decodes `=2C` (comma) and `=3D` (equals sign) in a name, which may have no other `=`.
fn decode_name(saslname: &str) -> Result<String, ScramError> {
    if saslname.is_empty() {
        return Err(ScramError::Malformed("empty name"));
    }
    let mut pieces = saslname.split('=');
    let mut name = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (character, rest) = if let Some(rest) = piece.strip_prefix("2C") {
            (',', rest)
        } else if let Some(rest) = piece.strip_prefix("3D") {
            ('=', rest)
        } else {
            return Err(ScramError::Malformed("unescaped equals sign in a name"));
        };
        name.push(character);
        name.push_str(rest);
    }
    Ok(name)
}

#[cfg(any(test, feature = "sim"))]
#[path = "scram_client.rs"]
pub mod client;

#[cfg(test)]
#[path = "scram_tests.rs"]
mod tests;
