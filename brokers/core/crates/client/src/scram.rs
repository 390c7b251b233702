//! The client's side of SCRAM (RFC 5802), without channel binding. It shares no code with the
//! server's side, so that a mistake there is not repeated here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use pbkdf2::pbkdf2_hmac_array;
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;

use freshet_access::derivation::ITERATIONS_MAX;
use freshet_access::types::ScramMechanism;
use freshet_world::env::Randomness;

/// The random bytes of a nonce; a multiple of 3, so that Base64 needs no padding.
const NONCE_BYTES: usize = 24;
/// The longest message of the server that is read, in bytes.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// Why an exchange failed on our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScramFault {
    /// What the server sent does not follow the protocol.
    #[error("the broker's SCRAM message is malformed: {0}")]
    Malformed(&'static str),
    /// The server does not know the password.
    #[error("the broker does not know the password")]
    Impostor,
}

/// One exchange with a server.
pub(crate) struct ScramClient<'a> {
    mechanism: ScramMechanism,
    password: &'a str,
    nonce: String,
    /// `client-first-message-bare`.
    bare: String,
    signature: Vec<u8>,
}

impl<'a> ScramClient<'a> {
    /// Begins an exchange.
    pub(crate) fn new(
        mechanism: ScramMechanism,
        user: &str,
        password: &'a str,
        nonce_source: &dyn Randomness,
    ) -> Self {
        let mut bytes = [0; NONCE_BYTES];
        nonce_source.fill(&mut bytes);
        let nonce = STANDARD.encode(bytes);
        let name = user.replace('=', "=3D").replace(',', "=2C");
        let bare = format!("n={name},r={nonce}");
        Self { mechanism, password, nonce, bare, signature: Vec::new() }
    }

    /// `client-first-message`.
    pub(crate) fn first(&self) -> Vec<u8> {
        format!("n,,{}", self.bare).into_bytes()
    }

    /// `client-final-message` for the server's challenge. It takes milliseconds of processor time.
    pub(crate) fn answer(&mut self, challenge: &[u8]) -> Result<Vec<u8>, ScramFault> {
        let text = message_text(challenge)?;
        let field = |name: &str| text.split(',').find_map(|part| part.strip_prefix(name));
        let nonce = field("r=").ok_or(ScramFault::Malformed("no nonce"))?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ScramFault::Malformed("the nonce is not ours"));
        }
        let salt = field("s=").and_then(|salt| STANDARD.decode(salt).ok());
        let salt = salt.ok_or(ScramFault::Malformed("no salt"))?;
        let iterations = field("i=").and_then(|count| count.parse().ok());
        let iterations = iterations.filter(|count| (1..=ITERATIONS_MAX).contains(count));
        let iterations = iterations.ok_or(ScramFault::Malformed("impossible iterations"))?;
        let without_proof = format!("c=biws,r={nonce}");
        let message = format!("{},{text},{without_proof}", self.bare);
        let (password, message) = (self.password.as_bytes(), message.as_bytes());
        let (proof, signature) = match self.mechanism {
            ScramMechanism::Sha256 => {
                let salted = pbkdf2_hmac_array::<Sha256, 32>(password, &salt, iterations);
                prove::<Sha256, Hmac<Sha256>>(&salted, message)
            }
            ScramMechanism::Sha512 => {
                let salted = pbkdf2_hmac_array::<Sha512, 64>(password, &salt, iterations);
                prove::<Sha512, Hmac<Sha512>>(&salted, message)
            }
        };
        self.signature = signature;
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)).into_bytes())
    }

    /// Checks `server-final-message`, by which the server proves that it knows the password too.
    pub(crate) fn check(&self, verdict: &[u8]) -> Result<(), ScramFault> {
        let text = message_text(verdict)?;
        let signature = text.strip_prefix("v=").and_then(|text| STANDARD.decode(text).ok());
        let signature = signature.ok_or(ScramFault::Malformed("no signature"))?;
        let genuine = !self.signature.is_empty() && bool::from(signature.ct_eq(&self.signature));
        if genuine { Ok(()) } else { Err(ScramFault::Impostor) }
    }
}

fn message_text(bytes: &[u8]) -> Result<&str, ScramFault> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(ScramFault::Malformed("too long"));
    }
    std::str::from_utf8(bytes).map_err(|_| ScramFault::Malformed("not UTF-8"))
}

/// The client's proof for a message, and the signature that the server must send.
fn prove<H: Digest, M: Mac + KeyInit>(salted: &[u8], message: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let client_key = mac::<M>(salted, b"Client Key");
    let signature = mac::<M>(&H::digest(&client_key), message);
    let proof = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
    (proof, mac::<M>(&mac::<M>(salted, b"Server Key"), message))
}

fn mac<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = <M as Mac>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_access::derivation::Decoy;
    use freshet_access::scram::ScramServer;
    use freshet_access::types::ScramCredential;

    /// Counts up, so that nonces differ.
    #[derive(Default)]
    struct Counting(std::sync::atomic::AtomicU8);

    impl Randomness for Counting {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        }
    }

    const BOTH: [ScramMechanism; 2] = [ScramMechanism::Sha256, ScramMechanism::Sha512];

    #[test]
    fn server_and_client_prove_the_password_to_each_other() {
        let randomness = Counting::default();
        for mechanism in BOTH {
            for (password, right) in [("secret", true), ("guessed", false)] {
                let stored =
                    ScramCredential::from_password("secret", mechanism, 4096, &randomness).unwrap();
                let mut server = ScramServer::new(mechanism, &randomness);
                let mut client = ScramClient::new(mechanism, "a,b=c", password, &randomness);
                let decoy = Decoy::new([7; 32], 4096);
                let challenge = server
                    .first(&client.first(), &decoy, |user| {
                        (user == "a,b=c").then(|| stored.clone())
                    })
                    .unwrap();
                let proof = client.answer(&challenge).unwrap();
                match server.final_(&proof) {
                    Ok((user, verdict)) => {
                        assert!(right && user == "a,b=c");
                        client.check(&verdict).unwrap();
                        let mut changed = verdict.clone();
                        changed[5] ^= 1;
                        assert!(client.check(&changed).is_err());
                    }
                    Err(_) => assert!(!right),
                }
            }
        }
    }

    #[test]
    fn a_server_that_asks_for_endless_work_is_refused() {
        let randomness = Counting::default();
        let mut client = ScramClient::new(BOTH[1], "u", "p", &randomness);
        let nonce = client.nonce.clone();
        for wrong in [
            format!("r={nonce}x,s=c2FsdA==,i=2000000000"),
            format!("r={nonce}x,s=c2FsdA==,i=0"),
            format!("r={nonce}x,s=not base64,i=4096"),
            format!("r={nonce},s=c2FsdA==,i=4096"),
            "r=another,s=c2FsdA==,i=4096".to_owned(),
            String::new(),
            "x".repeat(MESSAGE_BYTES_MAX + 1),
        ] {
            assert!(client.answer(wrong.as_bytes()).is_err(), "{wrong:.40}");
        }
        assert!(client.answer(b"\xff\xfe").is_err());
        assert_eq!(client.check(b"v="), Err(ScramFault::Impostor));
    }
}
