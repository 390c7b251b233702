//! Frames: a four-byte length, then so many bytes.

use bytes::{BufMut, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The largest frame from a client that has not authenticated, in bytes.
pub const UNAUTHENTICATED_BYTES_MAX: usize = 512 * 1024;
/// The largest frame by default (Kafka's `socket.request.max.bytes`).
pub const REQUEST_BYTES_MAX: usize = 100 * 1024 * 1024;
/// How much is allocated on the strength of a length alone, in bytes: a usual request in one piece,
/// since a buffer that grows is copied. Memory that nothing was written to costs nothing.
const STEP_BYTES: usize = 2 << 20;

/// Why a frame cannot be read. The connection is of no use after any of these.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection failed, or ended inside a frame.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A length that is negative or beyond what the connection may send.
    #[error("a frame of {length} bytes, at most {limit} are allowed")]
    Length {
        /// What the client announced.
        length: i32,
        /// What it may send, in bytes.
        limit: usize,
    },
}

/// The length that a frame's first four bytes announce.
///
/// # Errors
/// [`FrameError::Length`].
pub fn announced_length(prefix: [u8; 4], limit: usize) -> Result<usize, FrameError> {
    let length = i32::from_be_bytes(prefix);
    match usize::try_from(length) {
        Ok(bytes) if bytes <= limit => Ok(bytes),
        _ => Err(FrameError::Length { length, limit }),
    }
}

/// The capacity of a buffer that is full with `received` of `length` bytes: it doubles, so that
/// what is allocated is at most 2 MiB or twice what was received.
fn next_capacity(received: usize, length: usize) -> usize {
    received.saturating_mul(2).max(STEP_BYTES).min(length)
}

/// Reads one frame, without its length. `None` where the connection ends before it. Not to be
/// cancelled: what was read of a frame would be lost.
///
/// # Errors
/// Any [`FrameError`].
pub async fn read_frame(
    stream: &mut (impl AsyncRead + Unpin),
    limit: usize,
) -> Result<Option<Bytes>, FrameError> {
    let mut prefix = [0; 4];
    match stream.read(&mut prefix).await? {
        0 => return Ok(None),
        read => stream.read_exact(&mut prefix[read..]).await?,
    };
    let length = announced_length(prefix, limit)?;
    read_body(stream, length).await.map(Some)
}

/// Reads what follows a frame's length. Not to be cancelled, as [`read_frame`].
///
/// # Errors
/// [`FrameError::Io`].
pub async fn read_body(
    stream: &mut (impl AsyncRead + Unpin),
    length: usize,
) -> Result<Bytes, FrameError> {
    let mut frame = Vec::new();
    while frame.len() < length {
        if frame.len() == frame.capacity() {
            frame.reserve_exact(next_capacity(frame.len(), length) - frame.len());
        }
        let room = frame.capacity().min(length) - frame.len();
        if stream.read_buf(&mut (&mut frame).limit(room)).await? == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
    }
    Ok(frame.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[test]
    fn only_lengths_within_the_limit_are_believed() {
        assert_eq!(announced_length(100_i32.to_be_bytes(), 100).unwrap(), 100);
        for length in [101, -1, i32::MAX, i32::MIN] {
            let length_result = announced_length(length.to_be_bytes(), 100);
            assert!(matches!(length_result, Err(FrameError::Length { .. })));
        }
    }

    #[test]
    fn the_buffer_follows_what_arrives() {
        let length = 100 << 20;
        assert_eq!(next_capacity(0, 10), 10);
        assert_eq!(next_capacity(0, length), STEP_BYTES);
        assert_eq!(next_capacity(STEP_BYTES, length), 2 * STEP_BYTES);
        assert_eq!(next_capacity(64 << 20, length), length);
    }

    #[tokio::test]
    async fn frames_are_read_one_after_another_until_the_end() {
        let large = vec![7; 300_000];
        let mut bytes = 3_i32.to_be_bytes().to_vec();
        bytes.extend(b"one");
        bytes.extend(0_i32.to_be_bytes());
        bytes.extend(300_000_i32.to_be_bytes());
        bytes.extend(&large);
        let mut stream = bytes.as_slice();
        assert_eq!(read_frame(&mut stream, 1 << 20).await.unwrap().unwrap(), "one");
        assert_eq!(read_frame(&mut stream, 1 << 20).await.unwrap().unwrap(), "");
        assert_eq!(read_frame(&mut stream, 1 << 20).await.unwrap().unwrap(), large);
        assert!(read_frame(&mut stream, 1 << 20).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn bytes_may_arrive_one_by_one() {
        let (mut client, mut server) = tokio::io::duplex(1);
        let writing = async {
            client.write_all(b"\0\0\0\x05hello\0").await.unwrap();
            drop(client);
        };
        let reading = async {
            let frame = read_frame(&mut server, 10).await.unwrap().unwrap();
            let rest = read_frame(&mut server, 10).await;
            (frame, rest)
        };
        let ((), (frame, rest)) = tokio::join!(writing, reading);
        assert_eq!(frame, "hello");
        assert!(matches!(rest, Err(FrameError::Io(_))), "the second frame has half a length");
    }

    #[tokio::test]
    async fn a_frame_that_ends_early_is_an_error() {
        let mut stream = &b"\0\0\0\x05hell"[..];
        assert!(matches!(read_frame(&mut stream, 10).await, Err(FrameError::Io(_))));
    }
}
