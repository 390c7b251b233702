//! What answers requests, as connections see it.

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

/// Who is at the other end of a connection, for limits and logs.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The client's own address, also behind a gateway.
    pub address: SocketAddr,
    /// What the gateway calls the connection; empty where there is none, or none that names it.
    pub connection: Arc<str>,
}

impl Peer {
    /// A client that connected by itself.
    pub fn direct(address: SocketAddr) -> Self {
        Self { address, connection: "".into() }
    }

    /// What the gateway calls the connection, if it does.
    pub fn connection(&self) -> Option<&str> {
        Some(self.connection.as_ref()).filter(|id| !id.is_empty())
    }
}

/// Makes a session for each connection of a listener.
pub trait Service: Send + Sync + 'static {
    /// The session's type.
    type Session: Session;

    /// A client connected.
    fn connect(&self, peer: SocketAddr) -> Self::Session;
}

/// Makes a session for each connection from a gateway.
#[async_trait]
pub trait LinkService: Send + Sync + 'static {
    /// The session's type.
    type Session: Session;

    /// A gateway connected: asks it for which client. Gives the client and its session. The caller
    /// bounds the time.
    ///
    /// # Errors
    /// The connection is to be closed without a word.
    async fn greet(&self, stream: &mut dyn Stream) -> Result<(Peer, Self::Session), LinkError>;
}

/// One connection's requests, one after another.
#[async_trait]
pub trait Session: Send + 'static {
    /// Whether the client may use what is for authenticated clients: longer requests, more time.
    fn is_authenticated(&self) -> bool;

    /// Until when nothing is to be read from the client, if that is still to come.
    fn muted_until(&self) -> Option<Instant> {
        None
    }

    /// Takes one frame. The next is read only when this has returned; it is not dropped before,
    /// unless the server is or the time to drain is over. `memory` is what the frame holds of the
    /// budgets until it is answered; what keeps the frame for longer takes it along.
    async fn handle(&mut self, frame: Bytes, memory: &mut Option<RequestMemory>) -> Outcome;
}

/// An answer.
#[derive(Default)]
pub struct Reply {
    /// The frame with its length, to be written piece by piece. Nothing is written where it is
    /// empty (Produce with acks=0).
    pub pieces: Vec<Bytes>,
    /// Called when all pieces were handed to the socket.
    pub written: Option<Box<dyn FnOnce() + Send>>,
    /// Of memory that it holds until it is written.
    pub demands: Vec<Demand>,
    /// How long its request kept a thread busy; none where that is all of its time.
    pub busy: Option<Duration>,
    /// What notes how long it waited for its turn and took to be sent.
    pub timer: Option<RequestTimer>,
}

impl Reply {
    /// An answer of these pieces.
    pub fn new(pieces: Vec<Bytes>) -> Self {
        Self { pieces, ..Self::default() }
    }

    fn timed(mut self, mut timer: RequestTimer, queued: Duration, busy: Duration) -> Self {
        timer.answered(queued, self.busy.unwrap_or(busy));
        self.timer = Some(timer);
        self
    }
}

/// What becomes of a request. Answers leave in the order of the requests whatever the outcome.
pub enum Outcome {
    /// It is answered.
    Reply(Reply),
    /// It has had its effect on the order of things, and the answer comes later; the next request
    /// may be read meanwhile.
    Staged(BoxFuture<'static, Reply>),
    /// The answer comes later, and the next request must wait for it. Dropped when the client goes.
    Waiting(BoxFuture<'static, Reply>),
    /// It is answered, and it was the connection's last.
    LastReply(Reply, String),
    /// The connection is to be closed, for this reason.
    Close(String),
}

impl Outcome {
    /// Has the answer timed once there is one. Its request had waited for `queued` before it began,
    /// and has taken `busy` since.
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
