//! Accepts connections, within limits.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use super::Server;
use super::connection::{Ended, serve};
use super::service::{LinkService, Peer, Service};
use freshet_greeting::addresses::counted_address;
use freshet_link::LinkError;
use freshet_world::env::{Listener, Stream};

/// How long a listener pauses after it failed to accept a connection, usually because the process
/// has no file descriptor left: trying again at once would only take processor time.
const REST: Duration = Duration::from_millis(100);

/// A connection's place among the connections that may be open; dropping it frees the place.
struct Place {
    server: Arc<Server>,
    /// The address of its client, once that is known.
    address: Option<IpAddr>,
    linked: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut connections = self.server.connections.lock();
        connections.total -= 1;
        connections.linked -= usize::from(self.linked);
        let Some(address) = self.address else { return };
        if let Some(count) = connections.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                connections.by_address.remove(&address);
            }
        }
    }
}

impl Place {
    /// Counts the place for the client's address. Returns false where that address has as many
    /// connections as it may have.
    fn claim(&mut self, peer: SocketAddr, linked: bool) -> bool {
        let address = counted_address(peer.ip());
        let mut connections = self.server.connections.lock();
        let here = connections.by_address.get(&address).copied().unwrap_or(0);
        if here >= self.server.limits.connections_per_ip_max {
            return false;
        }
        connections.by_address.insert(address, here + 1);
        connections.linked += usize::from(linked);
        (self.address, self.linked) = (Some(address), linked);
        true
    }
}

impl Server {
    /// Serves a listener until the engine ends and the connections have drained. Dropping the
    /// future drops the connections.
    pub async fn run(self: Arc<Self>, listener: Box<dyn Listener>, service: impl Service) {
        let server = Arc::clone(&self);
        self.accept_all(listener, |stream, peer| {
            let mut place = server.place()?;
            if !place.claim(peer, false) {
                return None;
            }
            let session = service.connect(peer);
            let server = Arc::clone(&server);
            Some(async move {
                let ended = serve(server, stream, session).await;
                drop(place);
                (Peer::direct(peer), ended)
            })
        })
        .await;
    }

    /// Does what [`Server::run`] does, for a listener to which gateways connect. A gateway's
    /// address is not limited; each of its connections counts for its client's address once that is
    /// known.
    pub async fn run_links(
        self: Arc<Self>,
        listener: Box<dyn Listener>,
        service: impl LinkService,
    ) {
        let (server, service) = (Arc::clone(&self), Arc::new(service));
        self.accept_all(listener, |mut stream, peer| {
            let mut place = server.place()?;
            let (server, service) = (Arc::clone(&server), Arc::clone(&service));
            Some(async move {
                let time_limit = server.limits.authentication_time;
                let greeted = timeout(time_limit, service.greet(stream.as_mut())).await;
                match greeted.unwrap_or(Err(LinkError::TooSlow)) {
                    Err(error) => (Peer::direct(peer), Ended::Link(error)),
                    Ok((client, _)) if !place.claim(client.address, true) => {
                        (client, Ended::TooMany)
                    }
                    Ok((client, session)) => {
                        let ended = serve(server, stream, session).await;
                        drop(place);
                        (client, ended)
                    }
                }
            })
        })
        .await;
    }

    async fn accept_all<C>(
        self: Arc<Self>,
        mut listener: Box<dyn Listener>,
        mut admit: impl FnMut(Box<dyn Stream>, SocketAddr) -> Option<C>,
    ) where
        C: Future<Output = (Peer, Ended)> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                _ = self.liveness.ended() => break,
                Some(ended) = tasks.join_next() => self.report(ended),
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => match admit(stream, peer) {
                        Some(connection) => { tasks.spawn(connection); }
                        None => self.refused(peer),
                    },
                    Err(error) => {
                            tracing::warn!(%error, "cannot accept a connection; trying again soon");
                        sleep(REST).await;
                    }
                },
            }
        }
        drop(listener);
        let drained = async {
            while let Some(ended) = tasks.join_next().await {
                self.report(ended);
            }
        };
        // Twice: a handler may work for the drain time, and its answers may then take it once more.
        if timeout(self.limits.drain_time * 2, drained).await.is_err() {
            tracing::warn!("connections did not drain in time: they are closed now");
        }
    }

    fn place(self: &Arc<Self>) -> Option<Place> {
        let mut connections = self.connections.lock();
        if connections.total >= self.limits.connections_max {
            return None;
        }
        connections.total += 1;
        Some(Place { server: Arc::clone(self), address: None, linked: false })
    }

    fn refused(&self, peer: SocketAddr) {
        if let Some(suppressed) = self.refusals.admit() {
            tracing::warn!(%peer, suppressed, "refused a connection: too many are open");
        }
    }

    fn report(&self, ended: Result<(Peer, Ended), JoinError>) {
        match ended {
            Ok((peer, reason)) if reason.is_suspicious() => {
                if let Some(suppressed) = self.closings.admit() {
                    let (address, connection) = (peer.address, peer.connection());
                    tracing::warn!(
                        peer = %address, connection, %reason, suppressed, "closed a connection"
                    );
                }
            }
            Ok((peer, reason)) => {
                let (address, connection) = (peer.address, peer.connection());
                tracing::debug!(peer = %address, connection, %reason, "connection ended");
            }
            Err(error) => match error.try_into_panic() {
                Ok(panic) => {
                    let message = panic_message(panic.as_ref());
                    tracing::error!(message, "a handler panicked; its connection was closed");
                }
                Err(error) => tracing::debug!(%error, "connection dropped"),
            },
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
