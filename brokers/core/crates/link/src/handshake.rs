//! Both ends of the handshake. Neither end reads a byte beyond it, so the first Kafka frame is left
//! to the session.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{
    CODE_BYTES, HELLO_BYTES, LinkError, LinkSecret, LinkedClient, MAGIC, NONCE_BYTES,
    PREAMBLE_BYTES_MAX, VERSION,
};
use freshet_world::env::Randomness;

/// The label over which a gateway's code is computed. The labels of the two ends differ, so that
/// the code of one cannot be sent back as the code of the other.
const OF_GATEWAY: &[u8] = b"gateway";
/// The label over which a broker's code is computed.
const OF_BROKER: &[u8] = b"broker";

fn nonce(randomness: &dyn Randomness) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    randomness.fill(&mut nonce);
    nonce
}

fn hello(nonce: [u8; NONCE_BYTES]) -> [u8; HELLO_BYTES] {
    let mut hello = [0; HELLO_BYTES];
    hello[..MAGIC.len()].copy_from_slice(&MAGIC);
    hello[MAGIC.len()..MAGIC.len() + 2].copy_from_slice(&VERSION.to_be_bytes());
    hello[MAGIC.len() + 2..].copy_from_slice(&nonce);
    hello
}

fn check_hello(hello: &[u8; HELLO_BYTES]) -> Result<(), LinkError> {
    if hello[..MAGIC.len()] != MAGIC {
        return Err(LinkError::NotALink);
    }
    match u16::from_be_bytes([hello[MAGIC.len()], hello[MAGIC.len() + 1]]) {
        VERSION => Ok(()),
        other => Err(LinkError::Version(other)),
    }
}

/// The broker's end: learns who the client is from a gateway that knows the secret, and returns
/// what `admit` returns for that client. After any error, also one of `admit`, the caller closes
/// the connection without sending anything. The caller bounds the time.
///
/// # Errors
/// [`LinkError`].
pub async fn accept<T>(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin + ?Sized),
    secret: &LinkSecret,
    randomness: &dyn Randomness,
    admit: impl FnOnce(LinkedClient) -> Result<T, LinkError>,
) -> Result<T, LinkError> {
    let hello = hello(nonce(randomness));
    stream.write_all(&hello).await?;
    stream.flush().await?;
    let announced = stream.read_u32().await?;
    let length = usize::try_from(announced).unwrap_or(usize::MAX);
    if length > PREAMBLE_BYTES_MAX {
        return Err(LinkError::Length(announced));
    }
    let mut preamble = vec![0; length];
    stream.read_exact(&mut preamble).await?;
    let mut code = [0; CODE_BYTES];
    stream.read_exact(&mut code).await?;
    secret.check(&[OF_GATEWAY, &hello, &preamble], code)?;
    let (client, gateway_nonce) = LinkedClient::decode(&preamble)?;
    let admitted = admit(client)?;
    stream.write_all(&secret.code(&[OF_BROKER, &gateway_nonce, &hello])).await?;
    stream.flush().await?;
    Ok(admitted)
}

/// The gateway's end: sends who the client is to a broker that knows the secret. It sends nothing
/// before it has read a broker's hello. The caller bounds the time.
///
/// # Errors
/// [`LinkError`].
pub async fn open(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin + ?Sized),
    secret: &LinkSecret,
    randomness: &dyn Randomness,
    client: &LinkedClient,
) -> Result<(), LinkError> {
    let nonce = nonce(randomness);
    let preamble = client.encode(nonce)?;
    let mut hello = [0; HELLO_BYTES];
    stream.read_exact(&mut hello).await?;
    check_hello(&hello)?;
    let length = u32::try_from(preamble.len()).expect("a preamble is short");
    let mut message = length.to_be_bytes().to_vec();
    message.extend_from_slice(&preamble);
    message.extend_from_slice(&secret.code(&[OF_GATEWAY, &hello, &preamble]));
    stream.write_all(&message).await?;
    stream.flush().await?;
    let mut code = [0; CODE_BYTES];
    stream.read_exact(&mut code).await?;
    secret.check(&[OF_BROKER, &nonce, &hello], code)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use tokio::io::DuplexStream;
    use tokio::time::timeout;

    use super::*;
    use crate::ListenerKind;
    use freshet_access::principal::Principal;
    use freshet_world::sim::random::{Seeded, SeededRandomness};

    fn seeded(seed: u64) -> SeededRandomness {
        SeededRandomness::new(Seeded::new(seed))
    }

    fn secret(byte: u8) -> LinkSecret {
        LinkSecret::new(&[byte; 32]).unwrap()
    }

    fn client() -> LinkedClient {
        LinkedClient {
            principal: Principal::user("alice"),
            listener: ListenerKind::SaslPlaintext,
            address: "127.0.0.1:50000".parse().unwrap(),
            advertised: vec!["127.0.0.1:9092".into()],
            connection: "con_1".into(),
        }
    }

    /// The bytes that the gateway's end sends in answer to a hello.
    async fn answer_to(hello: &[u8]) -> Vec<u8> {
        let (mut near, mut far) = tokio::io::duplex(1 << 20);
        far.write_all(hello).await.unwrap();
        let opening = async {
            let (secret, client) = (secret(1), client());
            let _ = open(&mut near, &secret, &seeded(2), &client).await;
            drop(near);
        };
        let mut sent = Vec::new();
        let reading = async {
            let length = far.read_u32().await.unwrap();
            sent.extend(length.to_be_bytes());
            let mut rest = vec![0; length as usize + CODE_BYTES];
            far.read_exact(&mut rest).await.unwrap();
            sent.extend(rest);
            drop(far);
        };
        tokio::join!(opening, reading);
        sent
    }

    /// Runs the broker's end, with a seed of its own, against `message`; returns its result and
    /// what it sent after its hello.
    async fn broker_given(message: &[u8]) -> (Result<LinkedClient, LinkError>, Vec<u8>) {
        let (mut near, mut far) = tokio::io::duplex(1 << 20);
        far.write_all(message).await.unwrap();
        far.shutdown().await.unwrap();
        let accepted = accept(&mut near, &secret(1), &seeded(1), Ok).await;
        drop(near);
        let mut sent = Vec::new();
        far.read_to_end(&mut sent).await.unwrap();
        (accepted, sent[HELLO_BYTES..].to_vec())
    }

    fn known_hello() -> [u8; HELLO_BYTES] {
        hello(nonce(&seeded(1)))
    }

    async fn both(
        broker: u8,
        gateway: u8,
    ) -> (Result<LinkedClient, LinkError>, Result<(), LinkError>) {
        let (mut near, mut far) = tokio::io::duplex(64);
        let accepting = async move {
            let accepted = accept(&mut near, &secret(broker), &seeded(1), Ok).await;
            // A refused link is closed, an accepted one goes on.
            (accepted.is_ok().then_some(near), accepted)
        };
        let opening = async { open(&mut far, &secret(gateway), &seeded(2), &client()).await };
        let ((_kept, accepted), opened) = tokio::join!(accepting, opening);
        (accepted, opened)
    }

    #[tokio::test]
    async fn both_ends_with_one_secret_agree() {
        let (accepted, opened) = both(1, 1).await;
        assert_eq!(accepted.unwrap(), client());
        opened.unwrap();
    }

    #[tokio::test]
    async fn another_secret_is_refused_on_both_ends() {
        let (accepted, opened) = both(1, 2).await;
        assert!(matches!(accepted, Err(LinkError::Unproven)));
        assert!(matches!(opened, Err(LinkError::Io(_))), "closed without a word: {opened:?}");
    }

    #[tokio::test]
    async fn what_follows_the_handshake_is_left_alone() {
        let (mut near, mut far): (DuplexStream, DuplexStream) = tokio::io::duplex(1 << 16);
        let opening = async {
            open(&mut far, &secret(1), &seeded(2), &client()).await.unwrap();
            far.write_all(b"frame").await.unwrap();
            far
        };
        let accepting = async {
            accept(&mut near, &secret(1), &seeded(1), Ok).await.unwrap();
            let mut frame = [0; 5];
            near.read_exact(&mut frame).await.unwrap();
            frame
        };
        let (_far, frame) = tokio::join!(opening, accepting);
        assert_eq!(&frame, b"frame");
    }

    #[tokio::test]
    async fn a_message_to_one_hello_is_refused_behind_another() {
        let recorded = answer_to(&known_hello()).await;
        let (accepted, _) = broker_given(&recorded).await;
        assert_eq!(accepted.unwrap(), client(), "it is good where it belongs");
        let replayed = answer_to(&hello([9; NONCE_BYTES])).await;
        let (accepted, sent) = broker_given(&replayed).await;
        assert!(matches!(accepted, Err(LinkError::Unproven)));
        assert!(sent.is_empty());
    }

    #[tokio::test]
    async fn every_flipped_bit_and_every_cut_is_refused_without_a_word() {
        let good = answer_to(&known_hello()).await;
        for position in 0..good.len() {
            for bit in [0x01, 0x80] {
                let mut flipped = good.clone();
                flipped[position] ^= bit;
                let (accepted, sent) = broker_given(&flipped).await;
                assert!(accepted.is_err(), "byte {position} flipped");
                assert!(sent.is_empty(), "byte {position} flipped");
            }
            let (accepted, sent) = broker_given(&good[..position]).await;
            assert!(matches!(accepted, Err(LinkError::Io(_))), "cut at {position}");
            assert!(sent.is_empty());
        }
    }

    #[tokio::test]
    async fn a_length_is_checked_before_anything_is_read() {
        let beyond = u32::try_from(PREAMBLE_BYTES_MAX).unwrap() + 1;
        for length in [u32::MAX, beyond] {
            let (accepted, sent) = broker_given(&length.to_be_bytes()).await;
            assert!(matches!(accepted, Err(LinkError::Length(announced)) if announced == length));
            assert!(sent.is_empty());
        }
    }

    #[tokio::test]
    async fn a_preamble_is_not_parsed_before_it_is_proven() {
        let mut message = 7_u32.to_be_bytes().to_vec();
        message.extend(b"not{}js");
        message.extend([0; CODE_BYTES]);
        let (accepted, _) = broker_given(&message).await;
        assert!(matches!(accepted, Err(LinkError::Unproven)));
    }

    async fn gateway_given(bytes: &[u8]) -> (Result<(), LinkError>, Vec<u8>) {
        let (mut near, mut far) = tokio::io::duplex(1 << 16);
        far.write_all(bytes).await.unwrap();
        far.shutdown().await.unwrap();
        let opened = open(&mut near, &secret(1), &seeded(2), &client()).await;
        drop(near);
        let mut sent = Vec::new();
        far.read_to_end(&mut sent).await.unwrap();
        (opened, sent)
    }

    #[tokio::test]
    async fn a_gateway_says_nothing_to_what_is_no_broker() {
        let (opened, sent) = gateway_given(&[b'x'; HELLO_BYTES]).await;
        assert!(matches!(opened, Err(LinkError::NotALink)));
        assert!(sent.is_empty());
        let mut newer = known_hello();
        newer[5] = 2;
        let (opened, sent) = gateway_given(&newer).await;
        assert!(matches!(opened, Err(LinkError::Version(2))));
        assert!(sent.is_empty());
        let (opened, _) = gateway_given(b"FRLK").await;
        let Err(LinkError::Io(error)) = opened else { panic!("{opened:?}") };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn a_gateway_is_not_satisfied_with_its_own_code() {
        let answer = answer_to(&known_hello()).await;
        let mut reflected = known_hello().to_vec();
        reflected.extend(&answer[answer.len() - CODE_BYTES..]);
        let (opened, _) = gateway_given(&reflected).await;
        assert!(matches!(opened, Err(LinkError::Unproven)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kafka_listener_that_waits_for_a_request_is_waited_for_no_longer_than_said() {
        let (mut near, _far) = tokio::io::duplex(64);
        let (secret, client, random) = (secret(1), client(), seeded(2));
        let opening = open(&mut near, &secret, &random, &client);
        assert!(timeout(Duration::from_secs(1), opening).await.is_err());
    }
}
