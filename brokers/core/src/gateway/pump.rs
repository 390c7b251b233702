//! Bytes from a client to its broker and back.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::metrics::Traffic;
use crate::env::Stream;

/// What a direction has while it is quiet: thousands of idle connections cost little.
const SMALL_BYTES: usize = 8 << 10;
/// What it grows to while it is busy: fewer and larger calls.
const LARGE_BYTES: usize = 256 << 10;
/// A buffer is given back after so many small pieces in a row.
const SMALL_PIECES: u32 = 64;
/// A connection on which nothing moved for this long may be closed when the gateway stops.
const QUIET_TIME: Duration = Duration::from_millis(250);
/// How long the broker may still answer a client that has said all it has to say.
const LAST_ANSWERS_TIME: Duration = Duration::from_secs(30);

/// Why forwarding ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the client left")]
    ClientLeft,
    #[error("the client's connection failed: {0}")]
    ClientFailed(io::Error),
    #[error("the broker closed")]
    BrokerClosed,
    #[error("the broker's connection failed: {0}")]
    BrokerFailed(io::Error),
    #[error("the client may not go on")]
    NotAllowed,
    #[error("the gateway stops")]
    Stopping,
}

/// What ends a connection from outside.
pub(super) struct Signals {
    /// At once.
    pub end: CancellationToken,
    /// When it is quiet.
    pub drain: CancellationToken,
}

/// Forwards until one side ends, or is told to. A client whose broker died sees a reset, so that it
/// connects again at once.
pub(super) async fn pump(
    mut client: Box<dyn Stream>,
    broker: Box<dyn Stream>,
    early: Vec<u8>,
    traffic: &Traffic,
    signals: &Signals,
) -> Ended {
    let ended = forward_both(&mut client, broker, early, traffic, signals).await;
    if matches!(ended, Ended::BrokerFailed(_) | Ended::NotAllowed) {
        client.reset_when_dropped();
    }
    ended
}

async fn forward_both(
    client: &mut Box<dyn Stream>,
    broker: Box<dyn Stream>,
    early: Vec<u8>,
    traffic: &Traffic,
    signals: &Signals,
) -> Ended {
    let moved = AtomicU64::new(0);
    let (mut from_client, mut to_client) = split(client);
    let (mut from_broker, mut to_broker) = split(broker);
    let count = |counter: &Counter, bytes: usize| {
        counter.inc_by(bytes as u64);
        moved.fetch_add(1, Ordering::Relaxed);
    };
    let up = async {
        if !early.is_empty() {
            to_broker.write_all(&early).await.map_err(Broken::Write)?;
            count(&traffic.bytes_in, early.len());
        }
        forward(&mut from_client, &mut to_broker, |bytes| count(&traffic.bytes_in, bytes)).await
    };
    let down = forward(&mut from_broker, &mut to_client, |bytes| count(&traffic.bytes_out, bytes));
    let quiet = async {
        signals.drain.cancelled().await;
        loop {
            let before = moved.load(Ordering::Relaxed);
            sleep(QUIET_TIME).await;
            if moved.load(Ordering::Relaxed) == before {
                return;
            }
        }
    };
    tokio::pin!(up, down, quiet);
    let mut said_all = false;
    loop {
        tokio::select! {
            biased;
            () = signals.end.cancelled() => return Ended::NotAllowed,
            broken = &mut down => return match broken {
                Ok(()) if said_all => Ended::ClientLeft,
                Ok(()) => Ended::BrokerClosed,
                Err(Broken::Read(error)) => Ended::BrokerFailed(error),
                Err(Broken::Write(error)) => Ended::ClientFailed(error),
            },
            broken = &mut up, if !said_all => match broken {
                Ok(()) => said_all = true,
                Err(Broken::Read(error)) => return Ended::ClientFailed(error),
                Err(Broken::Write(error)) => return Ended::BrokerFailed(error),
            },
            () = sleep(LAST_ANSWERS_TIME), if said_all => return Ended::ClientLeft,
            () = &mut quiet => return Ended::Stopping,
        }
    }
}

/// Which end of a direction failed.
#[derive(Debug)]
enum Broken {
    Read(io::Error),
    Write(io::Error),
}

/// Forwards one direction until it ends, and passes the end on.
async fn forward(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: impl Fn(usize),
) -> Result<(), Broken> {
    let mut buffer = vec![0; SMALL_BYTES];
    let mut small_pieces = 0;
    loop {
        let read = from.read(&mut buffer).await.map_err(Broken::Read)?;
        if read == 0 {
            return to.shutdown().await.map_err(Broken::Write);
        }
        to.write_all(&buffer[..read]).await.map_err(Broken::Write)?;
        to.flush().await.map_err(Broken::Write)?;
        count(read);
        if read == buffer.len() && read < LARGE_BYTES {
            buffer = vec![0; (read * 4).min(LARGE_BYTES)];
        }
        small_pieces = if read <= SMALL_BYTES { small_pieces + 1 } else { 0 };
        if small_pieces >= SMALL_PIECES && buffer.len() > SMALL_BYTES {
            buffer = vec![0; SMALL_BYTES];
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinHandle;

    use super::*;

    struct Fixture {
        client: DuplexStream,
        broker: DuplexStream,
        traffic: Traffic,
        end: CancellationToken,
        drain: CancellationToken,
        pumping: JoinHandle<Ended>,
    }

    fn start(early: &[u8]) -> Fixture {
        let (client, near) = duplex(1 << 16);
        let (far, broker) = duplex(1 << 16);
        let traffic = Traffic::default();
        let (end, drain) = (CancellationToken::new(), CancellationToken::new());
        let signals = Signals { end: end.clone(), drain: drain.clone() };
        let (counted, early) = (traffic.clone(), early.to_vec());
        let pumping = tokio::spawn(async move {
            pump(Box::new(near), Box::new(far), early, &counted, &signals).await
        });
        Fixture { client, broker, traffic, end, drain, pumping }
    }

    #[tokio::test]
    async fn bytes_pass_in_order_whatever_their_number() {
        let mut fixture = start(b"early ");
        let sent: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let (mut client, mut broker) = (fixture.client, fixture.broker);
        let expected = sent.clone();
        let receiving = tokio::spawn(async move {
            let mut received = vec![0; 6 + expected.len()];
            broker.read_exact(&mut received).await.unwrap();
            assert!(received.starts_with(b"early ") && received[6..] == expected[..]);
            broker.write_all(b"answer").await.unwrap();
            broker.read_to_end(&mut received).await.unwrap();
        });
        client.write_all(&sent).await.unwrap();
        let mut answer = [0; 6];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");
        assert_eq!(fixture.traffic.bytes_in.get(), 12_000_006);
        drop(client);
        receiving.await.unwrap();
        assert!(matches!((&mut fixture.pumping).await.unwrap(), Ended::ClientLeft));
        assert_eq!(fixture.traffic.bytes_out.get(), 6);
    }

    #[tokio::test]
    async fn answers_still_reach_a_client_that_has_said_all() {
        let mut fixture = start(b"");
        fixture.client.write_all(b"last").await.unwrap();
        fixture.client.shutdown().await.unwrap();
        let mut request = Vec::new();
        fixture.broker.read_to_end(&mut request).await.unwrap();
        assert_eq!(request, b"last");
        fixture.broker.write_all(b"answer").await.unwrap();
        drop(fixture.broker);
        let mut answer = Vec::new();
        fixture.client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"answer");
        assert!(matches!(fixture.pumping.await.unwrap(), Ended::ClientLeft));
    }

    #[tokio::test]
    async fn what_a_broker_sent_before_it_closed_arrives() {
        let mut fixture = start(b"");
        fixture.broker.write_all(&vec![7; 100_000]).await.unwrap_or_default();
        let reading = async {
            let mut received = Vec::new();
            fixture.client.read_to_end(&mut received).await.unwrap();
            received.len()
        };
        let closing = async {
            fixture.broker.shutdown().await.unwrap();
        };
        let (received, ()) = tokio::join!(reading, closing);
        assert_eq!(received, 100_000);
        assert!(matches!(fixture.pumping.await.unwrap(), Ended::BrokerClosed));
    }

    #[tokio::test]
    async fn a_connection_that_may_not_go_on_ends_at_once() {
        let mut fixture = start(b"");
        fixture.client.write_all(b"request").await.unwrap();
        fixture.end.cancel();
        assert!(matches!(fixture.pumping.await.unwrap(), Ended::NotAllowed));
        assert_eq!(fixture.client.read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_until_a_connection_is_quiet() {
        let mut fixture = start(b"");
        fixture.drain.cancel();
        for _ in 0..20 {
            sleep(QUIET_TIME / 3).await;
            fixture.broker.write_all(b"x").await.unwrap();
            assert!(!fixture.pumping.is_finished());
        }
        assert!(matches!(fixture.pumping.await.unwrap(), Ended::Stopping));
        let mut received = Vec::new();
        fixture.client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received.len(), 20);
    }
}
