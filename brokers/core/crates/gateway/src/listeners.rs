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
use super::settings::host_and_port;
use freshet_world::env::{Listener, Stream};

/// The pause after a connection could not be accepted, for instance because descriptors ran out.
const REST: Duration = Duration::from_millis(100);
/// How often a port that is in use is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Accepts connections until it is dropped.
async fn accept_all(
    mut listener: Box<dyn Listener>,
    serve: impl Fn(Box<dyn Stream>, SocketAddr) + Send,
) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => serve(stream, peer),
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
    accept_all(listener, serve).await;
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
                    accept_all(listener, |stream, peer| gateway.spawn_plain(stream, peer, port))
                        .await;
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
