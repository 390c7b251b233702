//! Reading requests within limits.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::ServerLimits;
use super::connection::Ended;
use freshet_wire::budget::{Budget, RequestMemory};
use freshet_wire::protocol::frame::{announced_length, read_body};

/// Small requests that arrive together are read together.
const BUFFER_BYTES: usize = 4 << 10;

/// A connection's requests.
pub(super) struct RequestReader<R> {
    stream: BufReader<R>,
    limits: ServerLimits,
    /// What this connection may hold.
    own: Budget,
    /// What all connections may hold.
    shared: Budget,
    /// When the client must have authenticated.
    authenticated_by: Instant,
}

/// A request, and its shares of the budgets.
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

    /// The next request. Not to be called again after an error, or when it was dropped.
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

    /// Reads nothing until then, but for what shows that the client has gone.
    pub(super) async fn rest(&mut self, until: Instant) -> Result<(), Ended> {
        tokio::select! {
            biased;
            () = sleep_until(until) => Ok(()),
            ended = self.client_left() => Err(ended),
        }
    }

    /// Returns when the client has gone. Requests that arrive meanwhile stay for later; behind
    /// them nothing is seen.
    pub(super) async fn client_left(&mut self) -> Ended {
        match self.stream.fill_buf().await {
            Ok([]) => Ended::ClientLeft,
            Ok(_) => std::future::pending().await,
            Err(error) => Ended::Socket(error),
        }
    }
}
