//! A SCRAM client for tests. It is written from RFC 5802 and shares no code with the server.
#![allow(clippy::unwrap_used, reason = "a test may panic at a malformed message")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::derivation::{hmac, salted_password, stored_key};
use super::ScramMechanism;

/// The first message of a client without channel binding.
pub fn first_message(user: &str) -> String {
    format!("n,,n={},r=fyko+d2lbbFgONRv9qkxdawL", user.replace('=', "=3D").replace(',', "=2C"))
}

/// Answers a challenge: returns the final message, and the signature that the server must send.
pub fn answer(
    mechanism: ScramMechanism,
    client_first: &str,
    challenge: &str,
    password: &str,
) -> (String, String) {
    let field = |name: char| {
        challenge.split(',').find_map(|part| part.strip_prefix(&format!("{name}="))).unwrap()
    };
    let bare_start = client_first.match_indices(',').nth(1).unwrap().0 + 1;
    let (header, bare) = client_first.split_at(bare_start);
    let salt = STANDARD.decode(field('s')).unwrap();
    let iterations = field('i').parse().unwrap();
    let salted = salted_password(mechanism, password.as_bytes(), &salt, iterations);
    let without_proof = format!("c={},r={}", STANDARD.encode(header), field('r'));
    let message = format!("{bare},{challenge},{without_proof}");
    let client_key = hmac(mechanism, &salted, &[b"Client Key"]);
    let signature = hmac(mechanism, &stored_key(mechanism, &salted), &[message.as_bytes()]);
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
    let server_key = hmac(mechanism, &salted, &[b"Server Key"]);
    let expected = hmac(mechanism, &server_key, &[message.as_bytes()]);
    (
        format!("{without_proof},p={}", STANDARD.encode(proof)),
        format!("v={}", STANDARD.encode(expected)),
    )
}
