//! The tokens of a client that is not authenticated: it never is, without the password.
#![no_main]

use std::sync::Arc;

use freshet_access::derivation::Decoy;
use freshet_access::sasl::{Credentials, Mechanism, SaslSession, SaslSettings, Step};
use freshet_access::types::{ScramCredential, ScramMechanism};
use freshet_fuzz::NoRandomness;
use libfuzzer_sys::fuzz_target;

struct NoCredentials;

impl Credentials for NoCredentials {
    fn scram(&self, _user: &str, _mechanism: ScramMechanism) -> Option<ScramCredential> {
        None
    }
}

const MECHANISMS: [Mechanism; 3] = [
    Mechanism::Plain,
    Mechanism::Scram(ScramMechanism::Sha256),
    Mechanism::Scram(ScramMechanism::Sha512),
];

fuzz_target!(|data: &[u8]| {
    let [first, rest @ ..] = data else { return };
    let mut session = SaslSession::new(Arc::new(SaslSettings {
        mechanisms: MECHANISMS.to_vec(),
        credentials: Arc::new(NoCredentials),
        decoy: Decoy::new([3; 32], 4096),
        randomness: Arc::new(NoRandomness),
    }));
    let mechanism = MECHANISMS[usize::from(*first) % MECHANISMS.len()].name();
    session.handshake(1, mechanism).expect("the first handshake, with what is offered");
    // Tokens are separated by a byte that none of them needs.
    for token in rest.split(|byte| *byte == 0xff) {
        let _ = session.named_user(token);
        match session.authenticate(token) {
            Ok(Step::Continue(_)) => {}
            // Its work is the hashing of a password, which is no decoder.
            Ok(Step::Verify(_)) | Err(_) => return,
            Ok(Step::Authenticated(..)) => panic!("nobody has a password"),
        }
    }
});
