//! Derives keys from passwords: what RFC 5802 section 3 calls `SaltedPassword`, `ClientKey`,
//! `StoredKey` and `ServerKey`, for both of Kafka's hashes. Has also the stored form of a
//! credential.
//!
//! [`salted_password`] is the only expensive step, with two compressions of the hash per iteration.
//! 4096 iterations were measured at 0.7 ms with SHA-256 (on a processor with instructions for it)
//! and 2.6 ms with SHA-512; 16384, the most that is accepted, take four times that. Everything else
//! takes microseconds.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, Sha512};

use super::types::{ScramCredential, ScramMechanism};
use freshet_world::env::Randomness;

/// The fewest PBKDF2 iterations that Kafka accepts (RFC 7677 section 4 asks for at least these).
pub const ITERATIONS_MIN: u32 = 4096;
/// The most PBKDF2 iterations that Kafka accepts. They bound the processor time of one attempt.
pub const ITERATIONS_MAX: u32 = 16384;
/// The bytes of salt in a credential that is created here.
pub const SALT_BYTES: usize = 16;
/// The longest salt that a client may choose, in bytes. It is sent to whoever names the user, who
/// has not authenticated yet. Clients choose some 20 to 30.
pub const SALT_BYTES_MAX: usize = 128;

/// Why a credential cannot be created. Kafka's error code for all of them is
/// UNACCEPTABLE_CREDENTIAL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Fewer iterations than [`ITERATIONS_MIN`].
    #[error("Too few iterations")]
    TooFewIterations,
    /// More iterations than [`ITERATIONS_MAX`].
    #[error("Too many iterations")]
    TooManyIterations,
    /// The password, the salted password or the salt is empty.
    #[error("{0} must not be empty")]
    Empty(&'static str),
    /// A salt of more than [`SALT_BYTES_MAX`].
    #[error("Salt must have at most {SALT_BYTES_MAX} bytes")]
    SaltTooLong,
    /// A salted password that is not as long as the hash of its mechanism.
    #[error("Salted password must have {0} bytes")]
    SaltedPasswordLength(usize),
}

impl ScramMechanism {
    /// Every mechanism, strongest last.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// The name in SASL handshakes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    /// The number of bytes of a hash, of a key and of a proof.
    pub fn hash_bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// `H(data)`.
pub(super) fn hash(mechanism: ScramMechanism, data: &[u8]) -> Vec<u8> {
    match mechanism {
        ScramMechanism::Sha256 => Sha256::digest(data).to_vec(),
        ScramMechanism::Sha512 => Sha512::digest(data).to_vec(),
    }
}

/// `HMAC(key, parts joined)`.
pub(super) fn hmac(mechanism: ScramMechanism, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    fn run<M: Mac + hmac::digest::KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut mac = <M as Mac>::new_from_slice(key).expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().to_vec()
    }
    match mechanism {
        ScramMechanism::Sha256 => run::<Hmac<Sha256>>(key, parts),
        ScramMechanism::Sha512 => run::<Hmac<Sha512>>(key, parts),
    }
}

#[cfg(test)]
thread_local! {
    /// What this thread has derived, with how many iterations.
    static WORK: std::cell::RefCell<Vec<(ScramMechanism, u32)>> = const {
        std::cell::RefCell::new(Vec::new())
    };
}

/// What this thread has derived since the last call.
#[cfg(test)]
pub(super) fn take_work() -> Vec<(ScramMechanism, u32)> {
    WORK.take()
}

/// `Hi(password, salt, iterations)`: PBKDF2 with one block. It takes milliseconds of processor
/// time, so it must not run on threads that serve requests.
pub(super) fn salted_password(
    mechanism: ScramMechanism,
    password: &[u8],
    salt: &[u8],
    iterations: u32,
) -> Vec<u8> {
    #[cfg(test)]
    WORK.with_borrow_mut(|work| work.push((mechanism, iterations)));
    let mut output = vec![0; mechanism.hash_bytes()];
    match mechanism {
        ScramMechanism::Sha256 => {
            pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, &mut output);
        }
        ScramMechanism::Sha512 => {
            pbkdf2::pbkdf2_hmac::<Sha512>(password, salt, iterations, &mut output);
        }
    }
    output
}

/// `H(HMAC(SaltedPassword, "Client Key"))`.
pub(super) fn stored_key(mechanism: ScramMechanism, salted_password: &[u8]) -> Vec<u8> {
    hash(mechanism, &hmac(mechanism, salted_password, &[b"Client Key"]))
}

/// `HMAC(SaltedPassword, "Server Key")`.
fn server_key(mechanism: ScramMechanism, salted_password: &[u8]) -> Vec<u8> {
    hmac(mechanism, salted_password, &[b"Server Key"])
}

fn check_iterations(iterations: u32) -> Result<(), CredentialError> {
    match iterations {
        ..ITERATIONS_MIN => Err(CredentialError::TooFewIterations),
        ITERATIONS_MIN..=ITERATIONS_MAX => Ok(()),
        _ => Err(CredentialError::TooManyIterations),
    }
}

impl ScramCredential {
    /// Creates the credential of a password, with a new random salt. It takes one PBKDF2, that is,
    /// milliseconds of processor time. As in Kafka, the password's UTF-8 bytes are used without
    /// SASLprep.
    ///
    /// # Errors
    /// [`CredentialError`] where the iterations are out of bounds or the password is empty.
    pub fn from_password(
        password: &str,
        mechanism: ScramMechanism,
        iterations: u32,
        randomness: &dyn Randomness,
    ) -> Result<Self, CredentialError> {
        if password.is_empty() {
            return Err(CredentialError::Empty("Password"));
        }
        check_iterations(iterations)?;
        let mut salt = [0; SALT_BYTES];
        randomness.fill(&mut salt);
        let salted = salted_password(mechanism, password.as_bytes(), &salt, iterations);
        Self::from_salted_password(&salted, mechanism, iterations, &salt)
    }

    /// Creates a credential from a salted password, which is what AlterUserScramCredentials
    /// carries.
    ///
    /// # Errors
    /// [`CredentialError`] where the iterations are out of bounds, the salt is empty or too
    /// long, or the salted password is not as long as the hash.
    pub fn from_salted_password(
        salted_password: &[u8],
        mechanism: ScramMechanism,
        iterations: u32,
        salt: &[u8],
    ) -> Result<Self, CredentialError> {
        check_iterations(iterations)?;
        if salt.is_empty() {
            return Err(CredentialError::Empty("Salt"));
        }
        if salt.len() > SALT_BYTES_MAX {
            return Err(CredentialError::SaltTooLong);
        }
        if salted_password.len() != mechanism.hash_bytes() {
            return Err(CredentialError::SaltedPasswordLength(mechanism.hash_bytes()));
        }
        Ok(Self {
            salt: STANDARD.encode(salt),
            iterations,
            stored_key: STANDARD.encode(stored_key(mechanism, salted_password)),
            server_key: STANDARD.encode(server_key(mechanism, salted_password)),
        })
    }
}

/// A credential as bytes, or the decoy of a user that does not exist.
pub(super) struct Keys {
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u32,
    pub(super) stored_key: Vec<u8>,
    pub(super) server_key: Vec<u8>,
    /// Whether it is a real credential. It is checked together with the proof and not before, so
    /// that both cases take the same time.
    pub(super) genuine: bool,
}

impl Keys {
    /// Decodes a stored credential; `None` where it is damaged, or has a salt that an earlier
    /// release took and that is too long.
    fn decode(credential: &ScramCredential, mechanism: ScramMechanism) -> Option<Self> {
        let keys = Self {
            salt: STANDARD.decode(&credential.salt).ok()?,
            iterations: credential.iterations,
            stored_key: STANDARD.decode(&credential.stored_key).ok()?,
            server_key: STANDARD.decode(&credential.server_key).ok()?,
            genuine: true,
        };
        let sound = check_iterations(keys.iterations).is_ok()
            && (1..=SALT_BYTES_MAX).contains(&keys.salt.len())
            && keys.stored_key.len() == mechanism.hash_bytes()
            && keys.server_key.len() == mechanism.hash_bytes();
        sound.then_some(keys)
    }
}

/// Answers authentication attempts of unknown users in the same way as those of known ones, so that
/// nobody can find out which users exist.
///
/// The salt of an unknown user is a function of its name and a secret, so that it is the same at
/// every attempt, as that of a known user is. The secret must therefore be one per cluster and
/// outlive restarts. The decoy cannot hide a user whose credential has other iterations than those
/// given to [`Decoy::new`], or a salt of another length than [`SALT_BYTES`], as Kafka's own tool
/// creates it.
pub struct Decoy {
    secret: [u8; 32],
    iterations: u32,
}

impl Decoy {
    /// Creates a decoy with the cluster's secret and the iterations that its credentials usually
    /// have.
    pub fn new(secret: [u8; 32], iterations: u32) -> Self {
        Self { secret, iterations: iterations.clamp(ITERATIONS_MIN, ITERATIONS_MAX) }
    }

    /// The keys of `user`: those of its credential, or made-up ones that no password matches. The
    /// made-up ones are computed for known users as well, so that both cases take the same time.
    pub(super) fn keys(
        &self,
        user: &str,
        mechanism: ScramMechanism,
        credential: Option<&ScramCredential>,
    ) -> Keys {
        let decoy = self.made_up(user, mechanism);
        let Some(credential) = credential else { return decoy };
        Keys::decode(credential, mechanism).unwrap_or_else(|| {
            tracing::error!(user, mechanism = mechanism.name(), "a stored credential is damaged");
            decoy
        })
    }

    fn made_up(&self, user: &str, mechanism: ScramMechanism) -> Keys {
        let derive = |label: &[u8]| {
            let name = mechanism.name().as_bytes();
            hmac(mechanism, &self.secret, &[label, b"\0", name, b"\0", user.as_bytes()])
        };
        let mut salt = derive(b"salt");
        salt.truncate(SALT_BYTES);
        Keys {
            salt,
            iterations: self.iterations,
            stored_key: derive(b"stored key"),
            server_key: derive(b"server key"),
            genuine: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting;

    impl Randomness for Counting {
        fn fill(&self, buffer: &mut [u8]) {
            for (index, byte) in buffer.iter_mut().enumerate() {
                *byte = u8::try_from(index % 256).unwrap();
            }
        }
    }

    #[test]
    fn a_password_becomes_the_credential_of_rfc_7677() {
        // RFC 7677 section 3: user "user", password "pencil", this salt, 4096 rounds. The two keys
        // were computed from them with Python's hashlib and hmac.
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let salted = salted_password(ScramMechanism::Sha256, b"pencil", &salt, 4096);
        let credential =
            ScramCredential::from_salted_password(&salted, ScramMechanism::Sha256, 4096, &salt)
                .unwrap();
        assert_eq!(credential.stored_key, "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=");
        assert_eq!(credential.server_key, "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=");
    }

    #[test]
    fn every_credential_has_a_fresh_salt_and_sound_keys() {
        for mechanism in [ScramMechanism::Sha256, ScramMechanism::Sha512] {
            let made =
                ScramCredential::from_password("secret", mechanism, 4096, &Counting).unwrap();
            let keys = Keys::decode(&made, mechanism).expect("sound");
            assert_eq!(keys.salt, (0..16).collect::<Vec<u8>>());
            let salted = salted_password(mechanism, b"secret", &keys.salt, 4096);
            assert_eq!(keys.stored_key, stored_key(mechanism, &salted));
        }
    }

    #[test]
    fn iterations_and_emptiness_are_bounded() {
        let make = |password: &str, iterations| {
            ScramCredential::from_password(password, ScramMechanism::Sha256, iterations, &Counting)
                .unwrap_err()
        };
        assert_eq!(make("a", 4095), CredentialError::TooFewIterations);
        assert_eq!(make("a", 16385), CredentialError::TooManyIterations);
        assert_eq!(make("", 4096), CredentialError::Empty("Password"));
        let salted = |bytes: &[u8], salt: &[u8]| {
            ScramCredential::from_salted_password(bytes, ScramMechanism::Sha512, 4096, salt)
        };
        assert_eq!(salted(&[1; 32], b"s"), Err(CredentialError::SaltedPasswordLength(64)));
        assert_eq!(salted(&[1; 64], b""), Err(CredentialError::Empty("Salt")));
        assert_eq!(salted(&[1; 64], &[1; 129]), Err(CredentialError::SaltTooLong));
        assert!(salted(&[1; 64], &[1; 128]).is_ok());
        // As earlier releases took it: it logs nobody in, and is not sent to whoever asks.
        let long = STANDARD.encode([1; 129]);
        let kept = ScramCredential { salt: long, ..salted(&[1; 64], b"s").unwrap() };
        assert!(Keys::decode(&kept, ScramMechanism::Sha512).is_none());
    }

    #[test]
    fn unknown_users_have_lasting_salts_of_their_own() {
        let decoy = Decoy::new([7; 32], 8192);
        let mechanism = ScramMechanism::Sha256;
        let keys = |user: &str| decoy.keys(user, mechanism, None);
        assert_eq!(keys("mallory").salt, keys("mallory").salt);
        assert_ne!(keys("mallory").salt, keys("oscar").salt);
        assert_eq!((keys("mallory").iterations, keys("mallory").salt.len()), (8192, SALT_BYTES));
        assert!(!keys("mallory").genuine);
        let other_cluster = Decoy::new([8; 32], 8192);
        assert_ne!(keys("mallory").salt, other_cluster.keys("mallory", mechanism, None).salt);
    }

    #[test]
    fn a_damaged_credential_lets_nobody_in() {
        let decoy = Decoy::new([7; 32], 4096);
        let mechanism = ScramMechanism::Sha256;
        let sound = ScramCredential::from_password("p", mechanism, 4096, &Counting).unwrap();
        assert!(decoy.keys("alice", mechanism, Some(&sound)).genuine);
        let damaged = [
            ScramCredential { salt: "?".into(), ..sound.clone() },
            ScramCredential { salt: String::new(), ..sound.clone() },
            ScramCredential { stored_key: String::new(), ..sound.clone() },
            ScramCredential { server_key: "AAAA".into(), ..sound.clone() },
            ScramCredential { iterations: 0, ..sound },
        ];
        for credential in damaged {
            assert!(!decoy.keys("alice", mechanism, Some(&credential)).genuine);
        }
    }
}
