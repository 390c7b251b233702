//! The channel between two brokers of a cluster: encrypted, and for those only who know the
//! cluster's key (Noise, pattern `NNpsk0`). It keeps the order of messages, and loses none before
//! it ends.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use snow::{Builder, HandshakeState, StatelessTransportState};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::timeout;

use freshet_link::LinkSecret;
use freshet_world::env::Stream;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// The version of the protocol. Ends that speak different versions do not understand each other.
const PROLOGUE: &[u8] = b"freshet brokers, version 1";
/// What the key is derived for.
const PURPOSE: &[u8] = b"brokers";
/// What Noise adds to a frame.
const TAG_BYTES: usize = 16;
/// A frame's length comes before it.
const LENGTH_BYTES: usize = 2;
/// The most bytes of a message of the handshake, which has a key and a proof in it.
const HANDSHAKE_BYTES_MAX: usize = 256;
/// The most bytes of a frame, as Noise bounds it.
const FRAME_BYTES_MAX: usize = 65_535;
/// The bytes of a message that fit into a frame, beside the mark.
const PIECE_BYTES_MAX: usize = FRAME_BYTES_MAX - TAG_BYTES - 1;
/// The most bytes of a message: an order that names every partition of a large cluster.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// The first byte of a frame: whether more of the same message follows.
const MORE: u8 = 1;
const LAST: u8 = 0;

/// Why a channel ended, or did not come about.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The connection failed or ended.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other end does not know the key, or bytes were changed on their way.
    #[error("not a broker of this cluster: {0}")]
    Unproven(#[from] snow::Error),
    /// The other end sent what no release sends.
    #[error("a message that cannot be read: {0}")]
    Malformed(String),
}

/// What the brokers of a cluster know, and nobody else but its gateways.
#[derive(Clone)]
pub struct ChannelKey([u8; 32]);

impl ChannelKey {
    /// The key of the cluster that has this secret.
    #[must_use]
    pub fn of(secret: &LinkSecret) -> Self {
        Self(secret.derive(PURPOSE))
    }

    fn builder(&self) -> Result<Builder<'_>, snow::Error> {
        let pattern = PATTERN.parse().expect("a pattern of the protocol");
        Builder::new(pattern).prologue(PROLOGUE)?.psk(0, &self.0)
    }
}

/// What a step of a channel gives, if it does so in time.
///
/// # Errors
/// Those of the step, and `TimedOut`.
pub(crate) async fn within<T>(
    time_max: Duration,
    step: impl Future<Output = Result<T, ChannelError>>,
) -> Result<T, ChannelError> {
    let done = timeout(time_max, step).await;
    done.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

/// Opens a channel as the one that connected. The caller bounds the time.
///
/// # Errors
/// Any [`ChannelError`].
pub async fn open(mut stream: Box<dyn Stream>, key: &ChannelKey) -> Result<Channel, ChannelError> {
    let mut handshake = key.builder()?.build_initiator()?;
    send_handshake(&mut stream, &mut handshake).await?;
    read_handshake(&mut stream, &mut handshake).await?;
    Channel::new(stream, handshake)
}

/// Opens a channel as the one that listens. The caller bounds the time. Nothing is sent to an end
/// that does not know the key.
///
/// # Errors
/// Any [`ChannelError`].
pub async fn accept(
    mut stream: Box<dyn Stream>,
    key: &ChannelKey,
) -> Result<Channel, ChannelError> {
    let mut handshake = key.builder()?.build_responder()?;
    read_handshake(&mut stream, &mut handshake).await?;
    send_handshake(&mut stream, &mut handshake).await?;
    Channel::new(stream, handshake)
}

async fn send_handshake(
    stream: &mut Box<dyn Stream>,
    handshake: &mut HandshakeState,
) -> Result<(), ChannelError> {
    let mut frame = [0; HANDSHAKE_BYTES_MAX];
    let length = handshake.write_message(&[], &mut frame)?;
    stream.write_u16(frame_length(length)).await?;
    stream.write_all(&frame[..length]).await?;
    stream.flush().await?;
    Ok(())
}

async fn read_handshake(
    stream: &mut Box<dyn Stream>,
    handshake: &mut HandshakeState,
) -> Result<(), ChannelError> {
    let mut frame = [0; HANDSHAKE_BYTES_MAX];
    let length = usize::from(stream.read_u16().await?);
    let Some(frame) = frame.get_mut(..length) else {
        return Err(ChannelError::Malformed(format!("a handshake of {length} bytes")));
    };
    stream.read_exact(frame).await?;
    handshake.read_message(frame, &mut [0; HANDSHAKE_BYTES_MAX])?;
    Ok(())
}

fn frame_length(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("frames have no more bytes than that")
}

/// An open channel.
pub struct Channel {
    /// Sends messages to the other end.
    pub sender: Sender,
    /// Receives its messages.
    pub receiver: Receiver,
}

impl Channel {
    fn new(stream: Box<dyn Stream>, handshake: HandshakeState) -> Result<Self, ChannelError> {
        let cipher = Arc::new(handshake.into_stateless_transport_mode()?);
        let (from, to) = tokio::io::split(stream);
        let sender = Sender { stream: to, cipher: Arc::clone(&cipher), next: 0 };
        let receiver =
            Receiver { stream: from, cipher, next: 0, read: BytesMut::new(), message: Vec::new() };
        Ok(Self { sender, receiver })
    }
}

/// The sending half of a channel.
pub struct Sender {
    stream: WriteHalf<Box<dyn Stream>>,
    cipher: Arc<StatelessTransportState>,
    /// The number of the next frame.
    next: u64,
}

impl Sender {
    /// Sends a message. Where the future is dropped before it ends, the channel is of no use any
    /// more.
    ///
    /// # Errors
    /// Any [`ChannelError`].
    pub async fn send(&mut self, message: &impl Serialize) -> Result<(), ChannelError> {
        let text = serde_json::to_vec(message);
        let text = text.map_err(|error| ChannelError::Malformed(error.to_string()))?;
        if text.len() > MESSAGE_BYTES_MAX {
            return Err(ChannelError::Malformed(format!("{} bytes", text.len())));
        }
        let mut pieces = text.chunks(PIECE_BYTES_MAX).peekable();
        let mut frames = Vec::with_capacity(text.len() + LENGTH_BYTES + TAG_BYTES + 1);
        while let Some(piece) = pieces.next() {
            let mark = if pieces.peek().is_some() { MORE } else { LAST };
            self.add_frame(mark, piece, &mut frames)?;
        }
        self.stream.write_all(&frames).await?;
        self.stream.flush().await?;
        Ok(())
    }

    fn add_frame(
        &mut self,
        mark: u8,
        piece: &[u8],
        frames: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let mut open = Vec::with_capacity(piece.len() + 1);
        open.push(mark);
        open.extend_from_slice(piece);
        let length = open.len() + TAG_BYTES;
        frames.extend_from_slice(&frame_length(length).to_be_bytes());
        let start = frames.len();
        frames.resize(start + length, 0);
        self.cipher.write_message(self.next, &open, &mut frames[start..])?;
        self.next += 1;
        Ok(())
    }
}

/// The receiving half of a channel.
pub struct Receiver {
    stream: ReadHalf<Box<dyn Stream>>,
    cipher: Arc<StatelessTransportState>,
    /// The number of the next frame.
    next: u64,
    /// What was read and not opened yet.
    read: BytesMut,
    /// The pieces of the message that comes.
    message: Vec<u8>,
}

impl Receiver {
    /// The next message. Cancel safe.
    ///
    /// # Errors
    /// Any [`ChannelError`].
    pub async fn receive<M: DeserializeOwned>(&mut self) -> Result<M, ChannelError> {
        while !self.open_frames()? {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
        let text = std::mem::take(&mut self.message);
        serde_json::from_slice(&text).map_err(|error| ChannelError::Malformed(error.to_string()))
    }

    /// Opens the frames that were read, up to the end of a message. Returns whether that came.
    fn open_frames(&mut self) -> Result<bool, ChannelError> {
        while let Some(length) = self.read.first_chunk::<LENGTH_BYTES>() {
            let length = usize::from(u16::from_be_bytes(*length));
            if self.read.len() < LENGTH_BYTES + length {
                return Ok(false);
            }
            self.read.advance(LENGTH_BYTES);
            let frame = self.read.split_to(length);
            let mut open = vec![0; length];
            let opened = self.cipher.read_message(self.next, &frame, &mut open)?;
            self.next += 1;
            let Some((mark, piece)) = open[..opened].split_first() else {
                return Err(ChannelError::Malformed("an empty frame".to_owned()));
            };
            self.message.extend_from_slice(piece);
            if self.message.len() > MESSAGE_BYTES_MAX {
                return Err(ChannelError::Malformed("a message without an end".to_owned()));
            }
            if *mark == LAST {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    fn key(byte: u8) -> ChannelKey {
        ChannelKey::of(&LinkSecret::new(&[byte; 32]).unwrap())
    }

    async fn pair(
        one: u8,
        other: u8,
    ) -> (Result<Channel, ChannelError>, Result<Channel, ChannelError>) {
        let (near, far) = tokio::io::duplex(1 << 10);
        let (one, other) = (key(one), key(other));
        tokio::join!(open(Box::new(near), &one), accept(Box::new(far), &other))
    }

    #[tokio::test]
    async fn messages_of_any_length_arrive_in_their_order_both_ways() {
        let (one, other) = pair(1, 1).await;
        let (mut one, mut other) = (one.unwrap(), other.unwrap());
        let lengths = [0, 1, PIECE_BYTES_MAX - 2, PIECE_BYTES_MAX - 1, 3 * PIECE_BYTES_MAX, 7];
        let there = async {
            for length in lengths {
                one.sender.send(&"x".repeat(length)).await.unwrap();
            }
            let answer: u32 = one.receiver.receive().await.unwrap();
            assert_eq!(answer, 6);
        };
        let back = async {
            for length in lengths {
                let text: String = other.receiver.receive().await.unwrap();
                assert_eq!(text.len(), length);
            }
            other.sender.send(&6_u32).await.unwrap();
        };
        tokio::join!(there, back);
        drop(one);
        assert!(matches!(other.receiver.receive::<u32>().await, Err(ChannelError::Io(_))));
    }

    #[tokio::test]
    async fn who_does_not_know_the_key_gets_no_answer() {
        let (one, other) = pair(1, 2).await;
        assert!(matches!(one, Err(ChannelError::Io(_))), "closed without a word");
        assert!(matches!(other, Err(ChannelError::Unproven(_))));
    }

    /// The two ends of a channel whose bytes from the first to the second pass through the caller.
    async fn tapped() -> (Channel, DuplexStream, DuplexStream, Channel) {
        let (near, mut tap_near) = tokio::io::duplex(1 << 20);
        let (mut tap_far, far) = tokio::io::duplex(1 << 20);
        let key = key(1);
        let carry = async {
            for (from, to) in [(&mut tap_near, &mut tap_far)] {
                let length = from.read_u16().await.unwrap();
                let mut frame = vec![0; usize::from(length)];
                from.read_exact(&mut frame).await.unwrap();
                to.write_u16(length).await.unwrap();
                to.write_all(&frame).await.unwrap();
            }
            let length = tap_far.read_u16().await.unwrap();
            let mut frame = vec![0; usize::from(length)];
            tap_far.read_exact(&mut frame).await.unwrap();
            tap_near.write_u16(length).await.unwrap();
            tap_near.write_all(&frame).await.unwrap();
        };
        let (one, other, ()) =
            tokio::join!(open(Box::new(near), &key), accept(Box::new(far), &key), carry);
        (one.unwrap(), tap_near, tap_far, other.unwrap())
    }

    #[tokio::test]
    async fn what_was_changed_repeated_or_left_out_is_refused() {
        type Tamper = fn(Vec<u8>, Vec<u8>) -> Vec<u8>;
        let tampers: [(Tamper, usize); 4] = [
            (|first, second| [first, second].concat(), 2),
            (|first, _| [first.clone(), first].concat(), 1),
            (|_, second| second, 0),
            (
                |mut first, _| {
                    first[LENGTH_BYTES + 3] ^= 1;
                    first
                },
                0,
            ),
        ];
        for (tamper, readable) in tampers {
            let (mut one, mut tap_near, mut tap_far, mut other) = tapped().await;
            let mut frames = Vec::new();
            for _ in 0..2 {
                one.sender.send(&"order").await.unwrap();
                let length = tap_near.read_u16().await.unwrap();
                let mut frame = length.to_be_bytes().to_vec();
                frame.resize(LENGTH_BYTES + usize::from(length), 0);
                tap_near.read_exact(&mut frame[LENGTH_BYTES..]).await.unwrap();
                frames.push(frame);
            }
            let second = frames.pop().unwrap();
            tap_far.write_all(&tamper(frames.pop().unwrap(), second)).await.unwrap();
            drop(tap_far);
            for _ in 0..readable {
                assert_eq!(other.receiver.receive::<String>().await.unwrap(), "order");
            }
            assert!(other.receiver.receive::<String>().await.is_err());
        }
    }

    #[tokio::test]
    async fn plain_text_and_endless_messages_are_refused() {
        let (mut near, far) = tokio::io::duplex(1 << 10);
        near.write_all(b"\0\x10GET / HTTP/1.1\r\n\r\n").await.unwrap();
        assert!(matches!(accept(Box::new(far), &key(1)).await, Err(ChannelError::Unproven(_))));
        let (mut near, far) = tokio::io::duplex(1 << 10);
        near.write_all(b"\xff\xff").await.unwrap();
        assert!(matches!(accept(Box::new(far), &key(1)).await, Err(ChannelError::Malformed(_))));
        let (one, other) = pair(1, 1).await;
        let (mut one, other) = (one.unwrap(), other.unwrap());
        assert!(one.sender.send(&"x".repeat(MESSAGE_BYTES_MAX)).await.is_err());
        let endless = async {
            let piece = vec![b'x'; PIECE_BYTES_MAX];
            loop {
                let mut frames = Vec::new();
                one.sender.add_frame(MORE, &piece, &mut frames).unwrap();
                if one.sender.stream.write_all(&frames).await.is_err() {
                    return;
                }
            }
        };
        let Channel { sender, mut receiver } = other;
        drop(sender);
        let refused = async move {
            let refused = receiver.receive::<String>().await;
            assert!(matches!(refused, Err(ChannelError::Malformed(_))));
        };
        tokio::join!(endless, refused);
    }
}
