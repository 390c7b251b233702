//! The link from a gateway to a broker: a handshake that proves both ends to each other and says to
//! the broker who the client is. The crate's `README.md` has the bytes and the invariants.

use std::fmt;
use std::io;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use freshet_wire::text::decode_hex;

mod handshake;
mod preamble;

pub use handshake::{accept, open};
pub use preamble::{LinkedClient, ListenerKind};

/// The first bytes of a broker's hello.
pub const MAGIC: [u8; 4] = *b"FRLK";
/// The version of the protocol that this release speaks.
pub const VERSION: u16 = 1;
/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;
/// Bytes of a message authentication code.
pub const CODE_BYTES: usize = 32;
/// Bytes of a hello: magic, version, nonce.
pub const HELLO_BYTES: usize = MAGIC.len() + 2 + NONCE_BYTES;
/// The most bytes of a preamble: room for the addresses of some two hundred brokers.
pub const PREAMBLE_BYTES_MAX: usize = 16 << 10;
/// The fewest bytes of a secret.
pub const SECRET_BYTES_MIN: usize = 16;

/// The label over which keys for other purposes are computed. No code of a link begins with it.
const OF_KEYS: &[u8] = b"key for ";

/// Why a link did not come about.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The connection failed, or ended inside the handshake.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other end is no broker's listener for links.
    #[error("not a broker's link")]
    NotALink,
    /// The broker speaks another version.
    #[error("link of version {0}, known is {VERSION}")]
    Version(u16),
    /// A preamble of this length is not taken.
    #[error("a preamble of {0} bytes, at most {PREAMBLE_BYTES_MAX} are allowed")]
    Length(u32),
    /// The other end does not know the secret.
    #[error("the other end does not know the link's secret")]
    Unproven,
    /// The other end knows the secret, and its preamble is malformed.
    #[error("preamble: {0}")]
    Preamble(String),
    /// The handshake took too long.
    #[error("the handshake of a link took too long")]
    TooSlow,
}

/// The secret that gateways and brokers of one cluster share.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkSecret(Vec<u8>);

impl fmt::Debug for LinkSecret {
    /// Leaves the secret out, so that it gets into no log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LinkSecret")
    }
}

impl LinkSecret {
    /// A secret of these bytes; `None` where they are fewer than [`SECRET_BYTES_MIN`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= SECRET_BYTES_MIN).then(|| Self(bytes.to_vec()))
    }

    /// A secret in hexadecimal digits; `None` where the text is malformed or too short.
    pub fn from_hex(text: &str) -> Option<Self> {
        Self::new(&decode_hex(text)?)
    }

    /// A key for another purpose, which tells nothing of this secret or of other keys.
    pub fn derive(&self, purpose: &[u8]) -> [u8; CODE_BYTES] {
        self.code(&[OF_KEYS, purpose])
    }

    fn code(&self, parts: &[&[u8]]) -> [u8; CODE_BYTES] {
        let mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.0);
        let mut mac = mac.expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// Checks a code in constant time, so that the time does not show how much of it is right.
    fn check(&self, parts: &[&[u8]], code: [u8; CODE_BYTES]) -> Result<(), LinkError> {
        let right = self.code(parts).ct_eq(&code);
        if bool::from(right) { Ok(()) } else { Err(LinkError::Unproven) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_enough_and_stay_out_of_logs() {
        assert!(LinkSecret::from_hex(&"ab".repeat(SECRET_BYTES_MIN)).is_some());
        assert!(LinkSecret::from_hex(&"ab".repeat(SECRET_BYTES_MIN - 1)).is_none());
        let secret = LinkSecret::new(&[7; 32]).unwrap();
        assert_eq!(format!("{secret:?}"), "LinkSecret");
    }

    #[test]
    fn each_purpose_has_a_key_of_its_own() {
        let [one, other] = [[7; 32], [8; 32]].map(|bytes| LinkSecret::new(&bytes).unwrap());
        assert_eq!(one.derive(b"a"), one.derive(b"a"));
        assert_ne!(one.derive(b"a"), one.derive(b"b"));
        assert_ne!(one.derive(b"a"), other.derive(b"a"));
        assert_ne!(one.derive(b"a"), one.code(&[b"a"]));
    }
}
