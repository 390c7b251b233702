//! One connection: reads requests, has the session handle them, and sends the answers in order.
//!
//! Both directions run in one task, so that a panic in a handler ends this connection and no other.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Server;
use super::reader::RequestReader;
use super::service::{Outcome, Session};
use super::writer::{Due, Queued, STALLED_AFTER, write_replies};
use freshet_link::LinkError;
use freshet_wire::protocol::frame::FrameError;
use freshet_world::env::Stream;

/// A request that waits for long holds its share of the budgets where it has more bytes than this.
const WAITING_BYTES_FREE: usize = 8 << 10;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the client left")]
    ClientLeft,
    #[error("nothing happened for too long")]
    Idle,
    #[error("it took nothing for {} s, and others wait for memory", STALLED_AFTER.as_secs())]
    Stalled,
    #[error("not authenticated in time")]
    NotAuthenticated,
    #[error("a request arrived too slowly")]
    SlowRequest,
    #[error("a request arrived slowly while others waited for memory")]
    HeldMemory,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Socket(std::io::Error),
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Link(LinkError),
    #[error("too many connections are open")]
    TooMany,
    #[error("the broker stopped")]
    StoodDown,
    #[error("answers that were due took too long")]
    DrainedTooSlowly,
}

impl Ended {
    /// Whether it is logged as a warning: it is something that a correct client does not do.
    pub(super) fn is_suspicious(&self) -> bool {
        match self {
            Self::NotAuthenticated | Self::SlowRequest | Self::Refused(_) => true,
            Self::Stalled | Self::HeldMemory | Self::TooMany => true,
            // A gateway whose client gave up, or that died, is not suspicious.
            Self::Link(error) => !matches!(error, LinkError::Io(_)),
            Self::Frame(error) => matches!(error, FrameError::Length { .. }),
            _ => false,
        }
    }
}

/// Serves a connection, and returns why it ended.
pub(super) async fn serve(
    server: Arc<Server>,
    stream: Box<dyn Stream>,
    session: impl Session,
) -> Ended {
    let limits = server.limits;
    let (receiving, sending) = tokio::io::split(stream);
    let (replies, queue) = mpsc::channel(limits.in_flight_requests_max.max(1));
    let reader = RequestReader::new(receiving, limits, server.budget.clone());
    let mut reading = pin!(read_requests(&server, reader, session, replies));
    let mut writing = pin!(write_replies(sending, queue, limits.idle_time));
    let ended = tokio::select! {
        biased;
        // While the reader runs, the writer can end only with an error.
        written = &mut writing => {
            reading.await;
            return written.err().unwrap_or(Ended::ClientLeft);
        }
        ended = &mut reading => ended,
    };
    match timeout(limits.drain_time, writing).await {
        Ok(_) => ended,
        Err(_) => Ended::DrainedTooSlowly,
    }
}

/// Reads requests and queues their answers until the connection must end or the writer has ended.
/// Returns why; answers that are queued by then are still sent.
async fn read_requests(
    server: &Server,
    mut reader: RequestReader<impl tokio::io::AsyncRead + Unpin>,
    mut session: impl Session,
    replies: mpsc::Sender<Queued>,
) -> Ended {
    let ended = read_until_end(server, &mut reader, &mut session, replies).await;
    if let Some(bytes) = reader.cut_off() {
        session.cut_off(bytes);
    }
    ended
}

async fn read_until_end(
    server: &Server,
    reader: &mut RequestReader<impl tokio::io::AsyncRead + Unpin>,
    session: &mut impl Session,
    replies: mpsc::Sender<Queued>,
) -> Ended {
    let mut stood_down = pin!(server.liveness.ended());
    loop {
        let (authenticated, muted_until) = (session.is_authenticated(), session.muted_until());
        let next = async {
            if let Some(until) = muted_until {
                reader.rest(until).await?;
                return Ok(None);
            }
            let place = replies.reserve().await.map_err(|_| Ended::ClientLeft)?;
            Ok(Some((place, reader.next(authenticated).await?)))
        };
        let (place, request) = tokio::select! {
            biased;
            _ = &mut stood_down => return Ended::StoodDown,
            () = replies.closed() => return Ended::ClientLeft,
            next = next => match next {
                Ok(Some(next)) => next,
                // It may be muted again, or for longer.
                Ok(None) => continue,
                Err(ended) => return ended,
            },
        };
        let (mut memory, bytes) = (Some(request.memory), request.frame.len());
        let due = match session.handle(request.frame, &mut memory).await {
            Outcome::Reply(reply) => Due::Now(reply),
            Outcome::Staged(reply) => Due::Later(reply),
            Outcome::Waiting(reply) => {
                // The handler may wait for long, and what it decoded may keep the whole frame in
                // memory. Of a small one that is part of what a connection takes anyhow.
                if bytes <= WAITING_BYTES_FREE {
                    memory = None;
                }
                tokio::select! {
                    biased;
                    reply = reply => Due::Now(reply),
                    ended = reader.client_left() => return ended,
                    () = replies.closed() => return Ended::ClientLeft,
                }
            }
            Outcome::LastReply(reply, reason) => {
                place.send(Queued { due: Due::Now(reply), memory });
                return Ended::Refused(reason);
            }
            Outcome::Close(reason) => return Ended::Refused(reason),
        };
        place.send(Queued { due, memory });
    }
}
