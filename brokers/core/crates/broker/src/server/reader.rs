//! Reads requests, within limits of memory and time.

use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::ServerLimits;
use super::connection::Ended;
use super::writer::STALLED_AFTER;
use freshet_wire::budget::{ArrivalBudget, Budget, Demand, RequestMemory, Share};
use freshet_wire::protocol::arriving::{Piece, read_piece};
use freshet_wire::protocol::frame::{FrameError, announced_length};

/// The size of the read buffer: small requests that arrive together are read by one call.
const BUFFER_BYTES: usize = 4 << 10;
/// Where others wait for memory, a request may take this long to arrive, beyond its bytes at
/// [`HURRIED_BYTES_PER_S`].
const HURRIED_TIME: Duration = STALLED_AFTER;
/// The lowest rate at which a request may arrive while others wait for memory, in bytes a second.
const HURRIED_BYTES_PER_S: u64 = 1 << 20;
/// How often a request that is past that time looks whether others wait.
const LOOK_TIME: Duration = Duration::from_secs(1);

/// Reads the requests of one connection.
pub(super) struct RequestReader<R> {
    stream: BufReader<R>,
    limits: ServerLimits,
    /// The memory that this connection's requests may hold.
    own: Budget,
    /// The memory that all connections' requests may hold.
    shared: ArrivalBudget,
    /// The time by which the client must have authenticated.
    authenticated_by: Instant,
    /// Bytes of a request, without its length, that has begun and not ended.
    begun: Option<usize>,
}

/// A request's frame, with the memory that it holds of both budgets.
pub(super) struct Request {
    pub(super) frame: Bytes,
    pub(super) memory: RequestMemory,
}

/// By when a request must have arrived.
struct Pace {
    arrive_by: Instant,
    /// Where others wait for memory.
    hurry_by: Instant,
    authenticated: bool,
}

impl<R: AsyncRead + Unpin> RequestReader<R> {
    pub(super) fn new(stream: R, limits: ServerLimits, shared: ArrivalBudget) -> Self {
        Self {
            stream: BufReader::with_capacity(BUFFER_BYTES, stream),
            limits,
            own: Budget::new(limits.in_flight_bytes_max),
            shared,
            authenticated_by: Instant::now() + limits.authentication_time,
            begun: None,
        }
    }

    /// Reads the next request. It must not be called again after it failed or was dropped, because
    /// part of a request may be lost then.
    ///
    /// # Errors
    /// [`Ended`] where the client left, is too slow, or sent a request that is too large.
    pub(super) async fn next(&mut self, authenticated: bool) -> Result<Request, Ended> {
        let start_by = self.deadline(authenticated, self.limits.idle_time);
        let mut prefix = [0; 4];
        let overdue = |_| if authenticated { Ended::Idle } else { Ended::NotAuthenticated };
        match timeout_at(start_by, self.stream.read(&mut prefix)).await.map_err(overdue)? {
            Ok(0) => return Err(Ended::ClientLeft),
            Ok(read) => {
                let rest = self.stream.read_exact(&mut prefix[read..]);
                timeout_at(start_by, rest).await.map_err(overdue)?.map_err(Ended::Socket)?;
            }
            Err(error) => return Err(Ended::Socket(error)),
        }
        let limit = if authenticated {
            self.limits.request_bytes_max
        } else {
            self.limits.unauthenticated_bytes_max
        };
        let length = announced_length(prefix, limit)?;
        // By its length: what a connection keeps from itself is its own affair.
        let own = self.own.acquire(length).await;
        let slowest = Duration::from_secs(length as u64 / self.limits.request_bytes_per_s.max(1));
        let hurried = HURRIED_TIME + Duration::from_secs(length as u64 / HURRIED_BYTES_PER_S);
        let pace = Pace {
            arrive_by: self.deadline(authenticated, self.limits.request_time + slowest),
            hurry_by: Instant::now() + hurried,
            authenticated,
        };
        self.begun = Some(0);
        let (frame, shared) = self.body(length, pace).await?;
        self.begun = None;
        Ok(Request { frame, memory: (own, shared) })
    }

    /// Reads the body of a request, and takes memory for it as it arrives.
    async fn body(&mut self, length: usize, mut pace: Pace) -> Result<(Bytes, Share), Ended> {
        let mut memory = self.shared.start();
        let mut frame = Vec::new();
        while frame.len() < length {
            let reading = read_piece(&mut self.stream, &mut frame, length, &mut memory);
            match pace.keep(reading, self.shared.demand()).await? {
                Ok(Piece::Read(0)) => {
                    return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()).into());
                }
                Ok(Piece::Read(_)) => self.begun = Some(frame.len()),
                Ok(Piece::NeedsMemory(bytes)) => {
                    let asked_at = Instant::now();
                    memory.hold(bytes).await;
                    pace.extend(asked_at.elapsed());
                }
                Err(error) => return Err(FrameError::Io(error).into()),
            }
        }
        Ok((frame.into(), memory.complete()))
    }

    /// Bytes of a request, without its length, whose rest did not arrive.
    pub(super) fn cut_off(&self) -> Option<usize> {
        self.begun
    }

    fn deadline(&self, authenticated: bool, time_limit: Duration) -> Instant {
        let deadline = Instant::now() + time_limit;
        if authenticated { deadline } else { deadline.min(self.authenticated_by) }
    }

    /// Reads nothing until that time, but watches whether the client closes the connection.
    pub(super) async fn rest(&mut self, until: Instant) -> Result<(), Ended> {
        tokio::select! {
            biased;
            () = sleep_until(until) => Ok(()),
            ended = self.client_left() => Err(ended),
        }
    }

    /// Returns when the client has closed the connection. Requests that arrive meanwhile are kept
    /// for later; where they fill the buffer, the end of the connection behind them is not seen.
    pub(super) async fn client_left(&mut self) -> Ended {
        match self.stream.fill_buf().await {
            Ok([]) => Ended::ClientLeft,
            Ok(_) => std::future::pending().await,
            Err(error) => Ended::Socket(error),
        }
    }
}

impl Pace {
    /// Waits for the client, for as long as it may take.
    async fn keep<T>(&self, reading: impl Future<Output = T>, demand: &Demand) -> Result<T, Ended> {
        let mut reading = pin!(reading);
        loop {
            let look = self.arrive_by.min(self.hurry_by.max(Instant::now() + LOOK_TIME));
            match timeout_at(look, &mut reading).await {
                Ok(read) => return Ok(read),
                Err(_) if look == self.arrive_by => {
                    return Err(if self.authenticated {
                        Ended::SlowRequest
                    } else {
                        Ended::NotAuthenticated
                    });
                }
                Err(_) if demand.is_some() => return Err(Ended::HeldMemory),
                Err(_) => {}
            }
        }
    }

    /// The client need not make up for this time, in which the broker had no memory for it.
    fn extend(&mut self, waited: Duration) {
        self.arrive_by += waited;
        self.hurry_by += waited;
    }
}
