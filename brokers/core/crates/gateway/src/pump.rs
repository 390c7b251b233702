//! Forwarding bytes from a client to its broker and back.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::buffers::{Buffer, LARGE_BYTES, LargeBuffers};
use super::frames::Frames;
use super::metrics::Traffic;
use freshet_world::env::Stream;

/// A direction in which nothing passes for this long gives its large buffer back.
const QUIET_TIME: Duration = Duration::from_secs(1);
/// After so many bytes a direction leaves the thread to other connections, also where more bytes
/// are there already.
const BYTES_OF_TURN: usize = LARGE_BYTES;
/// How long a client may take to close when the gateway stops.
const CLOSING_TIME: Duration = Duration::from_secs(1);
/// How long the broker may still answer a client that has ended its direction.
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
    /// When what it has asked was answered.
    pub drain: CancellationToken,
}

/// What passes, and through which memory.
pub(super) struct Flow {
    pub traffic: Traffic,
    pub buffers: LargeBuffers,
}

/// Forwards until one side ends or a signal comes. A client whose broker died gets a reset, so that
/// it connects again at once.
pub(super) async fn pump(
    mut client: Box<dyn Stream>,
    broker: Box<dyn Stream>,
    early: Vec<u8>,
    flow: &Flow,
    signals: &Signals,
) -> Ended {
    let ended = forward_both(&mut client, broker, early, flow, signals).await;
    match ended {
        Ended::BrokerFailed(_) | Ended::NotAllowed => client.reset_when_dropped(),
        Ended::Stopping => close_client(&mut client).await,
        _ => {}
    }
    ended
}

/// Closes in order: what the client still sends is read and dropped. Without that its machine would
/// get a reset, and might drop the last answers.
async fn close_client(client: &mut Box<dyn Stream>) {
    let closing = async {
        client.shutdown().await?;
        tokio::io::copy(client, &mut tokio::io::sink()).await
    };
    // A client that does not close its own direction gets no more time.
    let _ = timeout(CLOSING_TIME, closing).await;
}

async fn forward_both(
    client: &mut Box<dyn Stream>,
    broker: Box<dyn Stream>,
    early: Vec<u8>,
    flow: &Flow,
    signals: &Signals,
) -> Ended {
    let Flow { traffic, buffers } = flow;
    let requests = Requests::default();
    let (mut from_client, mut to_client) = split(client);
    let (mut from_broker, mut to_broker) = split(broker);
    let up = async {
        let mut frames = Frames::default();
        if !early.is_empty() {
            to_broker.write_all(&early).await.map_err(Broken::Write)?;
            traffic.bytes_in.inc_by(early.len() as u64);
            frames.pass(&early);
            requests.asked.store(frames.ended(), Ordering::Relaxed);
        }
        let seen = |frames: &Frames, bytes: usize| {
            traffic.bytes_in.inc_by(bytes as u64);
            requests.asked.store(frames.ended(), Ordering::Relaxed);
        };
        let ways = Ways { from: &mut from_client, to: &mut to_broker, buffers };
        let last = forward_direction(ways, frames, Some(&signals.drain), seen).await?;
        if matches!(last, Last::NoMore) {
            requests.all_answered().await;
        }
        Ok(last)
    };
    let down = forward_direction(
        Ways { from: &mut from_broker, to: &mut to_client, buffers },
        Frames::default(),
        None,
        |frames: &Frames, bytes: usize| {
            traffic.bytes_out.inc_by(bytes as u64);
            requests.answered.store(frames.ended(), Ordering::Relaxed);
            requests.changed.notify_one();
        },
    );
    let last_answers = async {
        signals.drain.cancelled().await;
        requests.all_answered().await;
    };
    tokio::pin!(up, down, last_answers);
    let mut said_all = false;
    loop {
        tokio::select! {
            biased;
            () = signals.end.cancelled() => return Ended::NotAllowed,
            broken = &mut down => return match broken {
                Ok(_) if said_all => Ended::ClientLeft,
                Ok(_) => Ended::BrokerClosed,
                Err(Broken::Read(error)) => Ended::BrokerFailed(error),
                Err(Broken::Write(error)) => Ended::ClientFailed(error),
            },
            broken = &mut up, if !said_all => match broken {
                Ok(Last::NoMore) => return Ended::Stopping,
                Ok(Last::End) => said_all = true,
                Err(Broken::Read(error)) => return Ended::ClientFailed(error),
                Err(Broken::Write(error)) => return Ended::BrokerFailed(error),
            },
            () = sleep(LAST_ANSWERS_TIME), if said_all => return Ended::ClientLeft,
            () = &mut last_answers, if said_all => return Ended::Stopping,
        }
    }
}

/// The requests that were forwarded and the answers that came back.
#[derive(Default)]
struct Requests {
    asked: AtomicU64,
    answered: AtomicU64,
    changed: Notify,
}

impl Requests {
    /// Waits until every forwarded request has its answer. A request without an answer (Produce
    /// with `acks=0`) is waited for as if it had one; the caller, who stops, bounds the time.
    async fn all_answered(&self) {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        while load(&self.answered) < load(&self.asked) {
            self.changed.notified().await;
        }
    }
}

/// How a direction ended without an error.
enum Last {
    /// All bytes were forwarded and their sender has ended.
    End,
    /// It ended between two frames, because no more are to be forwarded.
    NoMore,
}

/// The end of a direction that failed.
#[derive(Debug)]
enum Broken {
    Read(io::Error),
    Write(io::Error),
}

/// Where bytes of a direction come from and go to.
struct Ways<'a, From, To> {
    from: &'a mut From,
    to: &'a mut To,
    buffers: &'a LargeBuffers,
}

/// Forwards one direction until its sender ends, and passes that end on; or, once `no_more` is
/// cancelled, to the end of the frame that is under way.
async fn forward_direction(
    ways: Ways<'_, impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    mut frames: Frames,
    no_more: Option<&CancellationToken>,
    seen: impl Fn(&Frames, usize),
) -> Result<Last, Broken> {
    let Ways { from, to, buffers } = ways;
    let mut buffer = Buffer::new(buffers.clone());
    let mut in_turn = 0;
    let stops = || no_more.is_some_and(CancellationToken::is_cancelled);
    loop {
        let read = tokio::select! {
            biased;
            () = until_cancelled(no_more), if frames.is_between() => return Ok(Last::NoMore),
            read = from.read(&mut buffer.bytes) => read.map_err(Broken::Read)?,
            () = sleep(QUIET_TIME), if buffer.is_large() => {
                buffer.make_small();
                continue;
            }
        };
        if read == 0 {
            to.shutdown().await.map_err(Broken::Write)?;
            return Ok(Last::End);
        }
        let piece = &buffer.bytes[..read];
        let passed = if stops() {
            frames.pass_rest(piece)
        } else {
            frames.pass(piece);
            read
        };
        to.write_all(&piece[..passed]).await.map_err(Broken::Write)?;
        to.flush().await.map_err(Broken::Write)?;
        seen(&frames, passed);
        buffer.adapt(read);
        in_turn += read;
        if in_turn >= BYTES_OF_TURN {
            in_turn = 0;
            yield_now().await;
        }
    }
}

/// Waits until a token is cancelled; without a token this never returns.
async fn until_cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinHandle;

    use super::*;

    /// Memory for large buffers: of both directions.
    const MEMORY_BYTES: usize = 1 << 20;

    struct PumpFixture {
        client: DuplexStream,
        broker: DuplexStream,
        traffic: Traffic,
        buffers: LargeBuffers,
        end: CancellationToken,
        drain: CancellationToken,
        pumping: JoinHandle<Ended>,
    }

    fn start(early: &[u8]) -> PumpFixture {
        let (client, near) = duplex(1 << 16);
        let (far, broker) = duplex(1 << 16);
        let traffic = Traffic::default();
        let (end, drain) = (CancellationToken::new(), CancellationToken::new());
        let signals = Signals { end: end.clone(), drain: drain.clone() };
        let buffers = LargeBuffers::alone(MEMORY_BYTES);
        let flow = Flow { traffic: traffic.clone(), buffers: buffers.clone() };
        let early = early.to_vec();
        let pumping = tokio::spawn(async move {
            pump(Box::new(near), Box::new(far), early, &flow, &signals).await
        });
        PumpFixture { client, broker, traffic, buffers, end, drain, pumping }
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

    #[tokio::test(start_paused = true)]
    async fn a_direction_that_has_become_quiet_gives_its_memory_back() {
        let mut fixture = start(b"");
        let (busy, mut received) = (vec![7; 1 << 20], vec![0; 1 << 20]);
        let (sent, ()) = tokio::join!(fixture.client.write_all(&busy), async {
            fixture.broker.read_exact(&mut received).await.unwrap();
        });
        sent.unwrap();
        assert!(fixture.buffers.used_bytes() > 0);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(fixture.buffers.used_bytes(), 0);
        fixture.client.write_all(b"more").await.unwrap();
        fixture.broker.read_exact(&mut received[..4]).await.unwrap();
        assert_eq!(&received[..4], b"more");
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

    fn frame(text: &str) -> Vec<u8> {
        [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_for_the_answers_and_passes_no_further_request_on() {
        let mut fixture = start(&frame("one"));
        fixture.client.write_all(&[frame("two"), frame("three")].concat()).await.unwrap();
        let mut requests = vec![0; frame("onetwothree").len() + 8];
        fixture.broker.read_exact(&mut requests).await.unwrap();
        fixture.broker.write_all(&frame("first")).await.unwrap();
        fixture.drain.cancel();
        // However long the broker takes.
        sleep(Duration::from_secs(60)).await;
        fixture.client.write_all(&frame("late")).await.unwrap();
        for answer in ["second", "third"] {
            assert!(!fixture.pumping.is_finished());
            fixture.broker.write_all(&frame(answer)).await.unwrap();
        }
        let mut received = Vec::new();
        fixture.client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, [frame("first"), frame("second"), frame("third")].concat());
        drop(fixture.client);
        assert!(matches!(fixture.pumping.await.unwrap(), Ended::Stopping));
        let mut late = Vec::new();
        fixture.broker.read_to_end(&mut late).await.unwrap();
        assert!(late.is_empty(), "{late:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_has_begun_when_it_stops_is_passed_on_to_its_end() {
        let mut fixture = start(b"");
        let request = frame("request");
        fixture.client.write_all(&request[..6]).await.unwrap();
        let mut begun = [0; 6];
        fixture.broker.read_exact(&mut begun).await.unwrap();
        fixture.drain.cancel();
        let rest = [&request[6..], &frame("late")].concat();
        fixture.client.write_all(&rest).await.unwrap();
        let mut passed = vec![0; request.len() - 6];
        fixture.broker.read_exact(&mut passed).await.unwrap();
        assert_eq!(passed, request[6..]);
        fixture.broker.write_all(&frame("answer")).await.unwrap();
        let mut received = Vec::new();
        fixture.client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, frame("answer"));
        // The client keeps its end open, which must not keep the gateway from stopping.
        assert!(matches!(fixture.pumping.await.unwrap(), Ended::Stopping));
    }
}
