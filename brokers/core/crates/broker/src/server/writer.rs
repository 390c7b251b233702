//! Sends answers in the order of their requests.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout, timeout_at};

use super::connection::Ended;
use super::service::Reply;
use freshet_wire::budget::{Demand, RequestMemory};

/// After this time without a byte taken by the client, its connection is closed where others wait
/// for the memory that its answer holds.
pub(super) const STALLED_AFTER: Duration = Duration::from_secs(10);

/// After this many bytes of an answer other tasks get their turn. A client that takes bytes as fast
/// as memory can be copied would otherwise keep a thread busy for all of its megabytes.
const SENT_AT_ONCE: usize = 256 << 10;

/// An answer that is ready or will come.
pub(super) enum Due {
    Now(Reply),
    Later(BoxFuture<'static, Reply>),
}

/// An answer in its place in the queue, with the memory that its request holds until it is ready.
pub(super) struct Queued {
    pub(super) due: Due,
    pub(super) memory: Option<RequestMemory>,
}

/// Sends answers until the queue ends. `time_limit` is how long the client may take no byte.
pub(super) async fn write_replies(
    mut stream: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Queued>,
    time_limit: Duration,
) -> Result<(), Ended> {
    while let Some(queued) = queue.recv().await {
        let mut reply = match queued.due {
            Due::Now(reply) => reply,
            Due::Later(reply) => reply.await,
        };
        drop(queued.memory);
        if let Some(timer) = &mut reply.timer {
            timer.turn_came();
        }
        let mut handed = Handed { bytes: 0, written: reply.written.take() };
        write_pieces(&mut stream, reply.pieces, &mut handed, &reply.demands, time_limit).await?;
        if let Some(timer) = reply.timer {
            timer.sent();
        }
    }
    // A failure is of no interest: everything was sent, and the client may be gone.
    let _ = timeout(time_limit, stream.shutdown()).await;
    Ok(())
}

/// How many bytes of an answer the socket took. It is reported when this is dropped: where the
/// client leaves in the middle, too.
struct Handed {
    bytes: usize,
    written: Option<Box<dyn FnOnce(usize) + Send>>,
}

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some(written) = self.written.take() {
            written(self.bytes);
        }
    }
}

async fn write_pieces(
    stream: &mut (impl AsyncWrite + Unpin),
    pieces: Vec<Bytes>,
    handed: &mut Handed,
    demands: &[Demand],
    time_limit: Duration,
) -> Result<(), Ended> {
    let mut pieces = Pieces::from(pieces);
    while pieces.has_remaining() {
        match taken(stream.write_buf(&mut pieces), demands, time_limit).await? {
            0 => return Err(Ended::Socket(io::ErrorKind::WriteZero.into())),
            bytes => handed.bytes += bytes,
        }
        if pieces.has_remaining() {
            yield_now().await;
        }
    }
    taken(stream.flush(), demands, time_limit).await
}

/// Waits until the client takes some bytes: for `time_limit`, or for [`STALLED_AFTER`] where others
/// wait for the memory that the answer holds.
async fn taken<T>(
    writing: impl Future<Output = io::Result<T>>,
    demands: &[Demand],
    time_limit: Duration,
) -> Result<T, Ended> {
    let mut writing = pin!(writing);
    let deadline = Instant::now() + time_limit;
    loop {
        let look = deadline.min(Instant::now() + STALLED_AFTER);
        match timeout_at(look, &mut writing).await {
            Ok(written) => return written.map_err(Ended::Socket),
            Err(_) if look == deadline => return Err(Ended::Idle),
            Err(_) if demands.iter().any(Demand::is_some) => return Err(Ended::Stalled),
            Err(_) => {}
        }
    }
}

/// The pieces of an answer as one buffer, for vectored writes of at most [`SENT_AT_ONCE`] bytes.
struct Pieces {
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        let bytes = pieces.iter().map(Bytes::len).sum();
        Self { pieces: pieces.into_iter().filter(|piece| !piece.is_empty()).collect(), bytes }
    }
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.bytes
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| &piece[..piece.len().min(SENT_AT_ONCE)])
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let (mut filled, mut room) = (0, SENT_AT_ONCE);
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            if room == 0 {
                break;
            }
            let part = &piece[..piece.len().min(room)];
            *slice = IoSlice::new(part);
            room -= part.len();
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.bytes, "no more is advanced than remains");
        self.bytes -= count;
        while count > 0 {
            let front = self.pieces.front_mut().expect("bytes remain");
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_one_buffer() {
        let pieces = ["ab", "", "cde", "f"].map(|piece| Bytes::from_static(piece.as_bytes()));
        let mut buffer = Pieces::from(pieces.to_vec());
        assert_eq!(buffer.remaining(), 6);
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(buffer.chunks_vectored(&mut slices), 3);
        assert_eq!((&*slices[0], &*slices[1]), (&b"ab"[..], &b"cde"[..]));
        buffer.advance(3);
        assert_eq!((buffer.remaining(), buffer.chunk()), (3, &b"de"[..]));
        buffer.advance(3);
        assert_eq!((buffer.remaining(), buffer.chunk()), (0, &b""[..]));
    }

    #[test]
    fn no_write_has_more_than_is_sent_at_once() {
        let pieces = [100, SENT_AT_ONCE - 1000, SENT_AT_ONCE * 2, 7].map(|bytes| vec![0; bytes]);
        let mut buffer = Pieces::from(pieces.map(Bytes::from).to_vec());
        let mut writes = Vec::new();
        while buffer.has_remaining() {
            assert!(buffer.chunk().len() <= SENT_AT_ONCE);
            let mut slices = [IoSlice::new(&[]); 8];
            let filled = buffer.chunks_vectored(&mut slices);
            let bytes = slices[..filled].iter().map(|slice| slice.len()).sum();
            writes.push((filled, bytes));
            buffer.advance(bytes);
        }
        assert_eq!(writes, [(3, SENT_AT_ONCE), (1, SENT_AT_ONCE), (2, SENT_AT_ONCE - 893)]);
    }
}
