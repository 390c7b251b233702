//! A SCRAM-SHA-256 client, written from RFC 5802.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

pub fn first_message(user: &str) -> String {
    format!("n,,n={user},r={NONCE}")
}

/// The final message for a challenge, and the server's answer to it.
pub fn final_message(user: &str, password: &str, challenge: &str) -> (String, String) {
    let field = |name: &str| challenge.split(',').find_map(|part| part.strip_prefix(name)).unwrap();
    let salt = STANDARD.decode(field("s=")).unwrap();
    let mut salted = [0; 32];
    let iterations = field("i=").parse().unwrap();
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, iterations, &mut salted);
    let without_proof = format!("c=biws,r={}", field("r="));
    let message = format!("n={user},r={NONCE},{challenge},{without_proof}");
    let client_key = hmac(&salted, b"Client Key");
    let signature = hmac(&Sha256::digest(&client_key), message.as_bytes());
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, bits)| key ^ bits).collect();
    let server = hmac(&hmac(&salted, b"Server Key"), message.as_bytes());
    let proof = STANDARD.encode(proof);
    (format!("{without_proof},p={proof}"), format!("v={}", STANDARD.encode(server)))
}
