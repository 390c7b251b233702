//! Listeners: one without TLS for each port of a cluster, which come and go with the clusters, and
//! one with TLS for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use super::Gateway;
use super::bucket::Bucket;
use super::limits::NewConnections;
use super::settings::host_and_port;
use freshet_world::env::{Listener, Stream};

/// The pause after a connection could not be accepted, for instance because descriptors ran out.
const REST: Duration = Duration::from_millis(100);
/// How often a port that is in use is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The rate at which a cluster's port takes connections of this machine's own clients, which have
/// one address between them. Those beyond it wait in the system's queue, where they cost nothing.
struct Pace {
    rate: NewConnections,
    bucket: Bucket,
}

impl Pace {
    fn new(rate: NewConnections) -> Self {
        Self { rate, bucket: Bucket::full(rate.at_once) }
    }

    async fn keep(&mut self) {
        let per_s = f64::from(self.rate.per_s);
        while !self.bucket.take(self.rate.at_once, per_s) {
            sleep(Duration::from_secs_f64(1.0 / per_s)).await;
        }
    }
}

/// Accepts connections until it is dropped.
async fn accept_all(
    mut listener: Box<dyn Listener>,
    mut pace: Option<Pace>,
    serve: impl Fn(Box<dyn Stream>, SocketAddr) + Send,
) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                serve(stream, peer);
                if let Some(pace) = pace.as_mut().filter(|_| peer.ip().is_loopback()) {
                    pace.keep().await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(REST).await;
            }
        }
    }
}

/// Serves the listener with TLS until it is dropped.
pub(super) async fn serve_tls(
    gateway: Arc<Gateway>,
    listener: Box<dyn Listener>,
    acceptor: TlsAcceptor,
) {
    let serve = |stream, peer| gateway.spawn_tls(stream, peer, acceptor.clone());
    accept_all(listener, None, serve).await;
}

/// The listeners without TLS.
pub(super) struct PlainListeners {
    gateway: Arc<Gateway>,
    open: BTreeMap<u16, AbortOnDropHandle<()>>,
    /// Ports that other processes use.
    busy: BTreeSet<u16>,
}

impl PlainListeners {
    /// Listens on the ports of all clusters, as far as they are free.
    pub(super) async fn open(gateway: Arc<Gateway>) -> Self {
        let mut listeners = Self { gateway, open: BTreeMap::new(), busy: BTreeSet::new() };
        listeners.follow_view().await;
        listeners
    }

    /// How many ports are listened on.
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Follows changes of the clusters' ports until it is dropped.
    pub(super) async fn follow(mut self) {
        let mut changes = self.gateway.view.clone();
        loop {
            self.follow_view().await;
            tokio::select! {
                biased;
                changed = changes.changed() => if changed.is_err() { return },
                () = sleep(RETRY), if !self.busy.is_empty() => {}
            }
        }
    }

    async fn follow_view(&mut self) {
        let ports = self.gateway.view.borrow().ports();
        self.open.retain(|port, _| ports.contains(port));
        self.busy.retain(|port| ports.contains(port));
        for port in ports {
            if !self.open.contains_key(&port) {
                self.listen(port).await;
            }
        }
        let count = i64::try_from(self.open.len()).unwrap_or(i64::MAX);
        self.gateway.metrics.plain_listeners.set(count);
    }

    async fn listen(&mut self, port: u16) {
        let address = host_and_port(&self.gateway.names.plain_host, port);
        match self.gateway.network.listen(&address).await {
            Ok(listener) => {
                if self.busy.remove(&port) {
                    tracing::info!(address, "listening on a port that another process had used");
                }
                let gateway = Arc::clone(&self.gateway);
                let serving = async move {
                    let pace = Some(Pace::new(gateway.gate.rate()));
                    let serve = |stream, peer| gateway.spawn_plain(stream, peer, port);
                    accept_all(listener, pace, serve).await;
                };
                self.open.insert(port, AbortOnDropHandle::new(tokio::spawn(serving)));
            }
            Err(error) => {
                if self.busy.insert(port) {
                    tracing::error!(
                        address, %error,
                        "cannot listen on a cluster's port: trying again every second"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::time::timeout;

    use super::*;

    /// Connections of one address without end.
    struct Endless(SocketAddr);

    #[async_trait]
    impl Listener for Endless {
        async fn accept(&mut self) -> std::io::Result<(Box<dyn Stream>, SocketAddr)> {
            tokio::task::yield_now().await;
            Ok((Box::new(tokio::io::duplex(1).0), self.0))
        }

        fn local_address(&self) -> SocketAddr {
            self.0
        }
    }

    /// How many connections of an address a port takes in two seconds, up to 10,000.
    async fn taken_from(address: &str) -> usize {
        let taken = AtomicUsize::new(0);
        let pace = Pace::new(NewConnections { per_s: 200, at_once: 1_000 });
        let enough = tokio::sync::Notify::new();
        let serving =
            accept_all(Box::new(Endless(address.parse().unwrap())), Some(pace), |_, _| {
                if taken.fetch_add(1, Ordering::Relaxed) == 9_999 {
                    enough.notify_one();
                }
            });
        let _ = timeout(Duration::from_secs(2), async {
            tokio::select! { biased; () = enough.notified() => {}, () = serving => {} }
        })
        .await;
        taken.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn a_port_takes_connections_of_the_loopback_at_its_rate() {
        let taken = taken_from("127.0.0.1:50000").await;
        assert!((1_390..=1_402).contains(&taken), "{taken}");
        // The rate of any other address is counted by address, and those beyond it are refused.
        assert_eq!(taken_from("192.0.2.1:50000").await, 10_000);
    }
}
