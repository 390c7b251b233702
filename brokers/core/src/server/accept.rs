//! Accepting connections.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use super::Server;
use super::connection::{Ended, serve};
use super::service::Service;
use crate::env::{Listener, Stream};

/// How long a listener rests after it could not accept, as when descriptors have run out.
const REST: Duration = Duration::from_millis(100);

/// A place among the connections, given back when dropped.
struct Place {
    server: Arc<Server>,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut connections = self.server.connections.lock();
        connections.total -= 1;
        if let Some(count) = connections.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                connections.by_address.remove(&self.address);
            }
        }
    }
}

impl Server {
    /// Serves a listener until the instance ends and its connections have drained. Dropping it
    /// drops the connections.
    pub async fn run(self: Arc<Self>, mut listener: Box<dyn Listener>, service: impl Service) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                _ = self.standing.ended() => break,
                Some(ended) = tasks.join_next() => self.report(ended),
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.admit(stream, peer, &service, &mut tasks),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
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
        // A handler may be at work for as long as its connection then drains, and no longer.
        if timeout(self.limits.drain_time * 2, drained).await.is_err() {
            tracing::warn!("connections did not drain in time");
        }
    }

    fn admit(
        self: &Arc<Self>,
        stream: Box<dyn Stream>,
        peer: SocketAddr,
        service: &impl Service,
        tasks: &mut JoinSet<(SocketAddr, Ended)>,
    ) {
        let Some(place) = self.place_for(peer.ip().to_canonical()) else {
            if let Some(suppressed) = self.refusals.admit() {
                tracing::warn!(%peer, suppressed, "refused a connection: too many are open");
            }
            return;
        };
        let session = service.connect(peer);
        let server = Arc::clone(self);
        tasks.spawn(async move {
            let ended = serve(server, stream, session).await;
            drop(place);
            (peer, ended)
        });
    }

    fn place_for(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut connections = self.connections.lock();
        let here = connections.by_address.get(&address).copied().unwrap_or(0);
        if connections.total >= self.limits.connections_max
            || here >= self.limits.connections_per_ip_max
        {
            return None;
        }
        connections.total += 1;
        connections.by_address.insert(address, here + 1);
        Some(Place { server: Arc::clone(self), address })
    }

    fn report(&self, ended: Result<(SocketAddr, Ended), JoinError>) {
        match ended {
            Ok((peer, reason)) if reason.is_suspicious() => {
                if let Some(suppressed) = self.closings.admit() {
                    tracing::warn!(%peer, %reason, suppressed, "closed a connection");
                }
            }
            Ok((peer, reason)) => tracing::debug!(%peer, %reason, "connection ended"),
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
