//! The interface between connections and what answers their requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::throttle::timed;
use freshet_link::LinkError;
use freshet_telemetry::RequestTimer;
use freshet_wire::budget::{Demand, RequestMemory};
use freshet_world::env::Stream;

/// The client at the other end of a connection, for limits and logs.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The client's own address, even where it came through a gateway.
    pub address: SocketAddr,
    /// The gateway's id of the connection; empty where there is no gateway, or it gave no id.
    pub connection: Arc<str>,
}

impl Peer {
    /// A client that connected without a gateway.
    pub fn direct(address: SocketAddr) -> Self {
        Self { address, connection: "".into() }
    }

    /// The gateway's id of the connection, if it has one.
    pub fn connection(&self) -> Option<&str> {
        Some(self.connection.as_ref()).filter(|id| !id.is_empty())
    }
}

/// Creates a session for each connection of a listener.
pub trait Service: Send + Sync + 'static {
    /// The session's type.
    type Session: Session;

    /// Creates the session of a client that has connected from this address.
    fn connect(&self, peer: SocketAddr) -> Self::Session;
}

/// Creates a session for each connection from a gateway.
#[async_trait]
pub trait LinkService: Send + Sync + 'static {
    /// The session's type.
    type Session: Session;

    /// Performs the handshake with a gateway that has connected. Returns the client whose
    /// connection it carries, and the session for it. The caller limits the time.
    ///
    /// # Errors
    /// [`LinkError`] where the handshake fails; the caller closes the connection without an answer.
    async fn greet(&self, stream: &mut dyn Stream) -> Result<(Peer, Self::Session), LinkError>;
}

/// Handles the requests of one connection, one after another.
#[async_trait]
pub trait Session: Send + 'static {
    /// Whether the client has authenticated; then it may send larger requests and take more time.
    fn is_authenticated(&self) -> bool;

    /// The time until which nothing is to be read from the client; `None` where it has passed.
    fn muted_until(&self) -> Option<Instant> {
        None
    }

    /// Notes a request of which so many bytes came, without its length, and then the end of the
    /// connection.
    fn cut_off(&mut self, _bytes: usize) {}

    /// Handles one frame. The next one is read only when this has returned. The future is dropped
    /// only where the server is dropped or the time to drain is over. `memory` is what the frame
    /// holds of the budgets; a handler that keeps bytes of the frame beyond its answer must take
    /// it.
    async fn handle(&mut self, frame: Bytes, memory: &mut Option<RequestMemory>) -> Outcome;
}

/// An answer that is ready to be sent.
#[derive(Default)]
pub struct Reply {
    /// The frame with its length, in pieces that are written one after another. Empty where nothing
    /// is to be sent (Produce with acks=0).
    pub pieces: Vec<Bytes>,
    /// Called with how many bytes of its pieces were handed to the socket, once no more will be. It
    /// is dropped where none was tried.
    pub written: Option<Box<dyn FnOnce(usize) + Send>>,
    /// Show whether others wait for the memory that the answer holds until it is written.
    pub demands: Vec<Demand>,
    /// How long its request kept a thread busy; `None` where it did so all the time.
    pub busy: Option<Duration>,
    /// Measures how long the answer waits for its turn and how long it takes to be sent.
    pub timer: Option<RequestTimer>,
}

impl Reply {
    /// An answer that consists of these pieces.
    pub fn new(pieces: Vec<Bytes>) -> Self {
        Self { pieces, ..Self::default() }
    }

    fn timed(mut self, mut timer: RequestTimer, queued: Duration, busy: Duration) -> Self {
        timer.answered(queued, self.busy.unwrap_or(busy));
        self.timer = Some(timer);
        self
    }
}

/// What becomes of a request. Whatever it is, answers are sent in the order of the requests.
pub enum Outcome {
    /// The answer is ready.
    Reply(Reply),
    /// The answer comes later. The request has taken its place in the order of requests already, so
    /// the next one may be read meanwhile.
    Staged(BoxFuture<'static, Reply>),
    /// The answer comes later, and the next request must wait for it. The future is dropped where
    /// the client closes the connection.
    Waiting(BoxFuture<'static, Reply>),
    /// The answer is ready, and the connection is closed after it, for this reason.
    LastReply(Reply, String),
    /// The connection is closed without an answer, for this reason.
    Close(String),
}

impl Outcome {
    /// Has the answer's times measured by `timer`. Its request had waited for `queued` before it
    /// was handled, and has kept a thread busy for `busy` since.
    #[must_use]
    pub(super) fn timed(self, timer: RequestTimer, queued: Duration, busy: Duration) -> Self {
        match self {
            Self::Reply(reply) => Self::Reply(reply.timed(timer, queued, busy)),
            Self::LastReply(reply, reason) => {
                Self::LastReply(reply.timed(timer, queued, busy), reason)
            }
            Self::Staged(reply) => Self::Staged(later(reply, timer, queued, busy)),
            Self::Waiting(reply) => Self::Waiting(later(reply, timer, queued, busy)),
            Self::Close(reason) => Self::Close(reason),
        }
    }
}

fn later(
    reply: BoxFuture<'static, Reply>,
    timer: RequestTimer,
    queued: Duration,
    busy: Duration,
) -> BoxFuture<'static, Reply> {
    Box::pin(async move {
        let (reply, more) = timed(reply).await;
        reply.timed(timer, queued, busy + more)
    })
}
