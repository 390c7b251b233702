//! Reads requests, within limits of memory and time.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::ServerLimits;
use super::connection::Ended;
use freshet_wire::budget::{Budget, RequestMemory};
use freshet_wire::protocol::frame::{announced_length, read_body};

/// The size of the read buffer: small requests that arrive together are read by one call.
const BUFFER_BYTES: usize = 4 << 10;

/// Reads the requests of one connection.
pub(super) struct RequestReader<R> {
    stream: BufReader<R>,
    limits: ServerLimits,
    /// The memory that this connection's requests may hold.
    own: Budget,
    /// The memory that all connections' requests may hold.
    shared: Budget,
    /// The time by which the client must have authenticated.
    authenticated_by: Instant,
}

/// A request's frame, with the memory that it holds of both budgets.
pub(super) struct Request {
    pub(super) frame: Bytes,
    pub(super) memory: RequestMemory,
}

impl<R: AsyncRead + Unpin> RequestReader<R> {
    pub(super) fn new(stream: R, limits: ServerLimits, shared: Budget) -> Self {
        Self {
            stream: BufReader::with_capacity(BUFFER_BYTES, stream),
            limits,
            own: Budget::new(limits.in_flight_bytes_max),
            shared,
            authenticated_by: Instant::now() + limits.authentication_time,
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
        let memory = (self.own.acquire(length).await, self.shared.acquire(length).await);
        let slowest = Duration::from_secs(length as u64 / self.limits.request_bytes_per_s.max(1));
        let arrive_by = self.deadline(authenticated, self.limits.request_time + slowest);
        let body = timeout_at(arrive_by, read_body(&mut self.stream, length)).await;
        let frame = body.map_err(|_| {
            if authenticated { Ended::SlowRequest } else { Ended::NotAuthenticated }
        })??;
        Ok(Request { frame, memory })
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
