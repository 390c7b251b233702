//! Reading a frame piece by piece, in memory that is taken for what has arrived.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::budget::ArrivingMemory;

/// The first piece of memory of a frame that is longer, in bytes.
const FIRST_BYTES: usize = 64 << 10;
/// The second one, with the first: a usual request. Memory that nothing was written to costs
/// nothing, and a buffer that grows in many steps is copied as often.
const SECOND_BYTES: usize = 2 << 20;

/// What came of an attempt to read.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes were added to the frame; 0: the stream has ended.
    Read(usize),
    /// The frame needs memory for so many bytes in all ([`ArrivingMemory::hold`]) before more of it
    /// can be read.
    NeedsMemory(usize),
}

/// The size of a frame's buffer once `received` of `length` bytes have arrived.
fn next_capacity(received: usize, length: usize) -> usize {
    let capacity = match received {
        0..FIRST_BYTES => FIRST_BYTES,
        FIRST_BYTES..SECOND_BYTES => SECOND_BYTES,
        _ => received.saturating_mul(2),
    };
    capacity.min(length)
}

/// Reads more of the body of a frame of `length` bytes, which has begun to arrive in `frame` and is
/// not complete. It waits for the stream, never for memory.
///
/// The memory has room for a piece only while the piece is read. What did not arrive is given back
/// before the next wait, so that a frame that is announced and not sent takes nothing. To drop the
/// future loses nothing.
///
/// # Errors
/// Those of the stream.
pub async fn read_piece(
    stream: &mut (impl AsyncRead + Unpin),
    frame: &mut Vec<u8>,
    length: usize,
    memory: &mut ArrivingMemory,
) -> io::Result<Piece> {
    let capacity = if frame.len() < frame.capacity() {
        frame.capacity().min(length)
    } else {
        next_capacity(frame.len(), length)
    };
    poll_fn(|context| {
        if !memory.try_hold(capacity) {
            return Poll::Ready(Ok(Piece::NeedsMemory(capacity)));
        }
        let received = frame.len();
        frame.reserve_exact(capacity - received);
        let mut room = (&mut *frame).limit(capacity - received);
        let polled = pin!(stream.read_buf(&mut room)).poll(context);
        memory.shrink_to(frame.len());
        if frame.is_empty() {
            *frame = Vec::new();
        }
        polled.map_ok(Piece::Read)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::time::timeout;

    use super::*;
    use crate::budget::ArrivalBudget;

    const KIB: usize = 1 << 10;

    /// Reads a frame; returns how many times it had to wait for memory.
    async fn read(
        stream: &mut (impl AsyncRead + Unpin),
        frame: &mut Vec<u8>,
        length: usize,
        memory: &mut ArrivingMemory,
    ) -> io::Result<usize> {
        let mut waits = 0;
        while frame.len() < length {
            match read_piece(stream, frame, length, memory).await? {
                Piece::Read(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Piece::Read(_) => {}
                Piece::NeedsMemory(bytes) => {
                    waits += 1;
                    memory.hold(bytes).await;
                }
            }
        }
        Ok(waits)
    }

    #[test]
    fn the_buffer_follows_what_arrives() {
        let length = 100 << 20;
        assert_eq!(next_capacity(0, 10), 10);
        assert_eq!(next_capacity(0, length), FIRST_BYTES);
        assert_eq!(next_capacity(FIRST_BYTES, length), SECOND_BYTES);
        assert_eq!(next_capacity(SECOND_BYTES, length), 2 * SECOND_BYTES);
        assert_eq!(next_capacity(64 << 20, length), length);
    }

    #[tokio::test]
    async fn a_frame_is_read_whole_and_nothing_behind_it() {
        for length in [1, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 1, 5 << 20] {
            let budget = ArrivalBudget::new(64 << 20, 8 << 20);
            let sent: Vec<u8> = (0..251).cycle().take(length).collect();
            let with_rest = [&sent[..], b"rest"].concat();
            let (mut frame, mut memory) = (Vec::new(), budget.start());
            let mut stream = with_rest.as_slice();
            assert_eq!(read(&mut stream, &mut frame, length, &mut memory).await.unwrap(), 0);
            assert_eq!(frame, sent);
            assert_eq!(stream, b"rest");
            assert_eq!(budget.used_bytes(), length.next_multiple_of(KIB));
            let share = memory.complete();
            assert_eq!(budget.used_bytes(), length.next_multiple_of(KIB));
            drop(share);
            assert_eq!(budget.used_bytes(), 0);
        }
    }

    #[tokio::test]
    async fn bytes_may_arrive_one_by_one_and_end_early() {
        let budget = ArrivalBudget::new(1 << 20, 1 << 20);
        let (mut client, mut server) = tokio::io::duplex(1);
        let writing = async {
            client.write_all(b"hellohell").await.unwrap();
            drop(client);
        };
        let reading = async {
            let (mut frame, mut memory) = (Vec::new(), budget.start());
            read(&mut server, &mut frame, 5, &mut memory).await.unwrap();
            assert_eq!(frame, b"hello");
            let (mut frame, mut memory) = (Vec::new(), budget.start());
            read(&mut server, &mut frame, 5, &mut memory).await.unwrap_err().kind()
        };
        let ((), ended) = tokio::join!(writing, reading);
        assert_eq!(ended, io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn what_is_announced_and_not_sent_takes_no_memory() {
        let budget = ArrivalBudget::new(64 << 20, 8 << 20);
        let (mut client, mut server) = tokio::io::duplex(1 << 20);
        let (mut frame, mut memory) = (Vec::new(), budget.start());
        let length = 8 << 20;
        for (sent, held) in [(0, 0), (1, KIB), (100 * KIB, 101 * KIB)] {
            client.write_all(&vec![7; sent]).await.unwrap();
            let reading = read(&mut server, &mut frame, length, &mut memory);
            assert!(timeout(Duration::from_millis(20), reading).await.is_err());
            assert_eq!(budget.used_bytes(), held);
        }
        assert_eq!(frame.len(), 100 * KIB + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_fill_the_budget_with_their_first_halves_are_all_completed() {
        // Sixty-four of 64 KiB, in a budget with room for sixteen, which send half and then, when
        // all have sent that, the other half.
        let budget = ArrivalBudget::new(1024 * KIB, 64 * KIB);
        let length = 64 * KIB;
        let mut requests = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..64 {
            let (mut client, mut server) = tokio::io::duplex(length);
            client.write_all(&vec![1; length / 2]).await.unwrap();
            clients.push(client);
            let budget = budget.clone();
            requests.push(tokio::spawn(async move {
                let (mut frame, mut memory) = (Vec::new(), budget.start());
                let waits = read(&mut server, &mut frame, length, &mut memory).await.unwrap();
                let share = memory.complete();
                // As long as it takes to answer.
                tokio::time::sleep(Duration::from_millis(1)).await;
                drop(share);
                waits
            }));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(budget.used_bytes() > 900 * KIB, "they hold all but the reserve");
        for client in &mut clients {
            client.write_all(&vec![2; length / 2]).await.unwrap();
        }
        let mut waits = 0;
        for request in requests {
            waits += timeout(Duration::from_secs(10), request).await.unwrap().unwrap();
        }
        assert!(waits > 0, "nothing was scarce");
        assert_eq!(budget.used_bytes(), 0);
        assert!(!budget.demand().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_larger_than_the_budget_are_completed_one_by_one() {
        let budget = ArrivalBudget::new(4 * KIB, 1 << 30);
        let sent = vec![3; 100 * KIB];
        let reading = (0..8).map(|_| {
            let (budget, sent) = (budget.clone(), sent.clone());
            tokio::spawn(async move {
                let (mut frame, mut memory) = (Vec::new(), budget.start());
                let mut stream = sent.as_slice();
                read(&mut stream, &mut frame, sent.len(), &mut memory).await.unwrap();
                assert!(budget.used_bytes() <= 4 * KIB);
                assert_eq!(frame, sent);
            })
        });
        for request in reading.collect::<Vec<_>>() {
            timeout(Duration::from_secs(10), request).await.unwrap().unwrap();
        }
        assert_eq!(budget.used_bytes(), 0);
    }
}
