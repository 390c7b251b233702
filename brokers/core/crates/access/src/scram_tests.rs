//! The exchange: RFC 7677's, one computed elsewhere, and every way to fail.

use super::*;
use crate::derivation::{salted_password, stored_key};
use crate::scram::client::answer;

/// Gives the same bytes again and again.
struct Repeating(Vec<u8>);

impl Randomness for Repeating {
    fn fill(&self, buffer: &mut [u8]) {
        for (byte, repeated) in buffer.iter_mut().zip(self.0.iter().cycle()) {
            *byte = *repeated;
        }
    }
}

const MECHANISMS: [ScramMechanism; 2] = [ScramMechanism::Sha256, ScramMechanism::Sha512];

fn decoy() -> Decoy {
    Decoy::new([7; 32], 4096)
}

fn credential(mechanism: ScramMechanism) -> ScramCredential {
    ScramCredential::from_password("pencil", mechanism, 4096, &Repeating(vec![1, 2, 3])).unwrap()
}

fn server(mechanism: ScramMechanism) -> ScramServer {
    ScramServer::new(mechanism, &Repeating(vec![9, 8, 7]))
}

fn exchange(
    mechanism: ScramMechanism,
    client_first: &str,
    password: &str,
    stored: Option<&ScramCredential>,
) -> Result<(String, String, String), ScramError> {
    let mut server = server(mechanism);
    let challenge = server.first(client_first.as_bytes(), &decoy(), |_| stored.cloned())?;
    let challenge = String::from_utf8(challenge).unwrap();
    let (client_final, expected) = answer(mechanism, client_first, &challenge, password);
    let (user, server_final) = server.final_(client_final.as_bytes())?;
    Ok((user, String::from_utf8(server_final).unwrap(), expected))
}

/// The example of RFC 7677 section 3, byte for byte.
#[test]
fn the_exchange_of_rfc_7677_succeeds() {
    let stored = ScramCredential {
        salt: "W22ZaJ0SNY7soEsUEjb6gQ==".into(),
        iterations: 4096,
        stored_key: "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=".into(),
        server_key: "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=".into(),
    };
    let mut server = server(ScramMechanism::Sha256);
    server.nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".into();
    let challenge = server
        .first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", &decoy(), |user| {
            assert_eq!(user, "user");
            Some(stored.clone())
        })
        .unwrap();
    assert_eq!(
        String::from_utf8(challenge).unwrap(),
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    );
    let (user, server_final) = server
        .final_(
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
              p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        )
        .unwrap();
    assert_eq!(user, "user");
    assert_eq!(server_final, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

/// A transcript computed with Python's hashlib and hmac, independently of this crate.
#[test]
fn a_sha_512_transcript_made_elsewhere_succeeds() {
    let stored = ScramCredential {
        salt: "QSXCR+Q6sek8bf92".into(),
        iterations: 5000,
        stored_key: "nX7EXLJZ2typCcC8wk7BssyRg1ZruWgeoWVq3jf4KOENO4ndfMuA4pcNiOUY\
            utrJKqB13gK3FZLjNGup+qZZ6Q=="
            .into(),
        server_key: "M+wTV0eRY7VbO1EjjK93dAwZ3eWmrhMkYFfTFpeIUlpUks1WgTKzoIuox/2G\
            z9VAmtWxE1uYZzOt0gKmcI5SIQ=="
            .into(),
    };
    let mut server = server(ScramMechanism::Sha512);
    server.nonce = "3rfcNHYJY1ZVvWVs7j".into();
    let challenge = server
        .first(b"n,,n=alice=2C=3Dsmith,r=fyko+d2lbbFgONRv9qkxdawL", &decoy(), |user| {
            assert_eq!(user, "alice,=smith");
            Some(stored.clone())
        })
        .unwrap();
    assert_eq!(
        challenge,
        b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=5000"
    );
    let (user, server_final) = server
        .final_(
            b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,\
              p=wmel/PjR1HQ10iAhEtj0K1d+oJaZjxeF7NkyOIcOlcWHrTnI+4Z0xiOv/Ur+\
              +4Vq9alLy3Fei/cYDC2CFz8VOA==",
        )
        .unwrap();
    assert_eq!(user, "alice,=smith");
    assert_eq!(
        String::from_utf8(server_final).unwrap(),
        "v=wpa/qrBBSRIjITyIiJ2RXVlJV4YPH8LtMzML/Mxtsf98O00fTbkyCogxPEs+\
         o8akRRXvLmjU2LDoRpCDroGg9w=="
    );
}

#[test]
fn both_sides_convince_each_other() {
    for mechanism in MECHANISMS {
        for first in ["n,,n=user,r=abc", "y,,n=user,r=abc", "n,a=user,n=user,r=abc,x=1,y=a=b"] {
            let (user, got, expected) =
                exchange(mechanism, first, "pencil", Some(&credential(mechanism))).unwrap();
            assert_eq!((user.as_str(), got), ("user", expected));
        }
    }
}

#[test]
fn a_wrong_password_and_an_unknown_user_fail_alike_at_the_end() {
    for mechanism in MECHANISMS {
        for stored in [Some(credential(mechanism)), None] {
            let failed = exchange(mechanism, "n,,n=user,r=abc", "crayon", stored.as_ref());
            assert_eq!(failed, Err(ScramError::InvalidCredentials));
        }
    }
}

#[test]
fn the_challenge_of_an_unknown_user_has_the_shape_of_a_known_one() {
    let challenge = |stored: Option<ScramCredential>| {
        let bytes = server(ScramMechanism::Sha256)
            .first(b"n,,n=user,r=abc", &decoy(), |_| stored.clone())
            .unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let known = challenge(Some(credential(ScramMechanism::Sha256)));
    let unknown = challenge(None);
    assert_eq!(known.len(), unknown.len());
    assert_eq!(unknown, challenge(None), "asked twice, the same salt");
    assert!(known.ends_with(",i=4096") && unknown.ends_with(",i=4096"));
}

/// The proof must fit whoever guesses the decoy's keys too: those keys open nothing.
#[test]
fn even_a_proof_that_fits_the_decoy_fails() {
    let mut server = server(ScramMechanism::Sha256);
    server.first(b"n,,n=ghost,r=abc", &decoy(), |_| None).unwrap();
    let without_proof = format!("c=biws,r=abc{}", server.nonce);
    let ClientState::Challenged(challenge) = &mut server.state else { panic!("not challenged") };
    let client_key = [3; 32];
    challenge.keys.stored_key = hash(ScramMechanism::Sha256, &client_key);
    let parts = [challenge.authentication_prefix.as_bytes(), without_proof.as_bytes()];
    let signature = hmac(ScramMechanism::Sha256, &challenge.keys.stored_key, &parts);
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
    let message = format!("{without_proof},p={}", STANDARD.encode(proof));
    let genuine = challenge.keys.genuine;
    assert!(!genuine);
    assert_eq!(server.final_(message.as_bytes()), Err(ScramError::InvalidCredentials));
}

/// librdkafka before 2.10 sends its own part of the nonce twice, which Kafka lets pass.
#[test]
fn a_client_that_repeats_its_part_of_the_nonce_is_let_in() {
    let finished = |theirs: &str| {
        let mechanism = ScramMechanism::Sha256;
        let known = credential(mechanism);
        let mut server = server(mechanism);
        let first = b"n,,n=user,r=abc";
        let challenge = server.first(first, &decoy(), |_| Some(known.clone())).unwrap();
        let challenge = String::from_utf8(challenge).unwrap();
        let salt = STANDARD.decode(&known.salt).unwrap();
        let salted = salted_password(mechanism, b"pencil", &salt, known.iterations);
        let without_proof = format!("c=biws,r={theirs}{}", server.nonce);
        let message = format!("n=user,r=abc,{challenge},{without_proof}");
        let signature = hmac(mechanism, &stored_key(mechanism, &salted), &[message.as_bytes()]);
        let client_key = hmac(mechanism, &salted, &[b"Client Key"]);
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        let last = format!("{without_proof},p={}", STANDARD.encode(proof));
        server.final_(last.as_bytes()).map(|(user, _)| user)
    };
    assert_eq!(finished("abc"), Ok("user".to_owned()));
    assert_eq!(finished("abcabc"), Ok("user".to_owned()));
    for wrong in ["", "ab", "xabc"] {
        assert!(matches!(finished(wrong), Err(ScramError::Malformed(_))), "{wrong}");
    }
}

#[test]
fn malformed_first_messages_end_the_exchange() {
    let bad: [&[u8]; 20] = [
        b"",
        b"n",
        b"n,",
        b"n,,",
        b"n,,n=user",
        b"n,,r=abc,n=user",
        b"n,,n=,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=us=2cer,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"n,,n=user,r=abc,",
        b"n,,n=user,r=abc,=1",
        b"n,,n=user,r=abc,1x=1",
        b"n,,m=x,n=user,r=abc",
        b"n,,n=user,r=abc,m=x",
        b"p=tls-unique,,n=user,r=abc",
        b"x,,n=user,r=abc",
        b"n,,n=us\0er,r=abc",
        b"n,,n=\xff\xfe,r=abc",
    ];
    for message in bad {
        let mut server = server(ScramMechanism::Sha256);
        let failed = server.first(message, &decoy(), |_| panic!("nobody is looked up"));
        assert!(matches!(failed, Err(ScramError::Malformed(_))), "{message:?}: {failed:?}");
        assert_eq!(server.final_(b"c=biws,r=abc,p=AA=="), Err(ScramError::Ended));
    }
    let long = format!("n,,n={},r=abc", "u".repeat(MESSAGE_BYTES_MAX));
    let failed = server(ScramMechanism::Sha256).first(long.as_bytes(), &decoy(), |_| None);
    assert_eq!(failed, Err(ScramError::Malformed("message too long")));
}

#[test]
fn another_authorization_id_and_tokens_are_refused_before_any_look_up() {
    let first = |message: &[u8]| {
        server(ScramMechanism::Sha256).first(message, &decoy(), |_| panic!("looked up"))
    };
    assert_eq!(first(b"n,a=root,n=user,r=abc"), Err(ScramError::AuthorizationId));
    assert_eq!(first(b"n,,n=user,r=abc,tokenauth=true"), Err(ScramError::TokenAuthentication));
}

#[test]
fn a_final_message_must_answer_its_challenge() {
    let nonce = format!("abc{}", server(ScramMechanism::Sha256).nonce);
    let proof = STANDARD.encode([0; 32]);
    let bad = [
        String::new(),
        "c=biws".into(),
        format!("c=biws,r={nonce}"),
        format!("c=biws,r={nonce},p=%"),
        format!("c=biws,r={nonce},p={}", STANDARD.encode([0; 31])),
        format!("c=eSws,r={nonce},p={proof}"),
        format!("c=biws,r=abc,p={proof}"),
        format!("c=biws,r={nonce}x,p={proof}"),
        format!("r={nonce},c=biws,p={proof}"),
        format!("c=biws,r={nonce},m=x,p={proof}"),
        format!("c=biws,r={nonce},p={proof},x=1"),
    ];
    for message in bad {
        let mut server = server(ScramMechanism::Sha256);
        server.first(b"n,,n=user,r=abc", &decoy(), |_| None).unwrap();
        let failed = server.final_(message.as_bytes());
        assert!(matches!(failed, Err(ScramError::Malformed(_))), "{message}: {failed:?}");
    }
}

#[test]
fn steps_out_of_order_are_refused() {
    let mut server = server(ScramMechanism::Sha256);
    assert_eq!(server.final_(b"c=biws,r=abc,p=AA=="), Err(ScramError::Ended));
    let mut server = super::tests::server(ScramMechanism::Sha256);
    server.first(b"n,,n=user,r=abc", &decoy(), |_| None).unwrap();
    assert_eq!(server.first(b"n,,n=user,r=abc", &decoy(), |_| None), Err(ScramError::Ended));
}

#[test]
fn nonces_are_fresh() {
    let one = ScramServer::new(ScramMechanism::Sha256, &Repeating(vec![1]));
    let other = ScramServer::new(ScramMechanism::Sha256, &Repeating(vec![2]));
    assert_ne!(one.nonce, other.nonce);
    assert!(one.nonce.len() == 32 && !one.nonce.contains([',', '=']));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(first: Vec<u8>, last: Vec<u8>) {
        let mut server = server(ScramMechanism::Sha512);
        let _ = server.first(&first, &decoy(), |_| None);
        let _ = server.final_(&last);
    }

    #[test]
    fn every_name_survives_escaping(name in "[^\0]{1,20}") {
        let escaped = name.replace('=', "=3D").replace(',', "=2C");
        proptest::prop_assert_eq!(decode_name(&escaped), Ok(name));
    }
}
