//! One connection, from its first byte to its last.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::Gateway;
use super::balancers::{HeaderError, read_header};
use super::limits::{Full, Place};
use super::login::{Login, LoginError};
use super::places::Target;
use super::pump::{Ended, Flow, Signals, pump};
use super::reach::{Reached, Unreached};
use super::tls::Decrypted;
use freshet_access::principal::Principal;
use freshet_link::{LinkedClient, ListenerKind};
use freshet_wire::text::encode_hex;
use freshet_world::env::Stream;

/// Bytes that a client may send while it is held: its first request, or a part of it.
const EARLY_BYTES: usize = 4 << 10;
/// Random bytes in the id of a connection.
const ID_BYTES: usize = 8;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Closed {
    #[error(transparent)]
    Full(Full),
    #[error("PROXY protocol: {0}")]
    Balancer(HeaderError),
    #[error("TLS: {0}")]
    Tls(std::io::Error),
    #[error("no such cluster: {0:?}")]
    NoCluster(String),
    #[error("not authenticated in time")]
    NotAuthenticated,
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error("the client left while it was held")]
    LeftEarly,
    #[error(transparent)]
    Unreached(#[from] Unreached),
    #[error(transparent)]
    Forwarded(#[from] Ended),
}

impl Closed {
    /// Whether it is worth a line in the log: something that no proper client does, or that a user
    /// would ask about.
    fn is_remarkable(&self) -> bool {
        match self {
            Self::Full(_) | Self::NoCluster(_) | Self::NotAuthenticated => true,
            // A balancer that sees whether the gateway lives may connect and leave.
            Self::Balancer(error) => !matches!(error, HeaderError::Io(_)),
            Self::Login(error) => error.is_suspicious(),
            Self::Unreached(_) => true,
            Self::Tls(_) | Self::LeftEarly | Self::Forwarded(_) => false,
        }
    }
}

/// A connection that has a place and has not authenticated.
struct Entry {
    stream: Box<dyn Stream>,
    /// The client's address, also where it comes through a balancer.
    peer: SocketAddr,
    /// The connection's id, which its wake request, the keeper's log, the broker and the audit log
    /// repeat.
    id: Arc<str>,
    place: Place,
    bound: Bound,
}

/// How long a connection may take to authenticate.
#[derive(Clone)]
struct Bound {
    due: Instant,
    /// Cancelled when another connection has got its place.
    displaced: CancellationToken,
}

impl Bound {
    /// Runs a step before authentication.
    async fn run<T>(&self, step: impl Future<Output = T>) -> Result<T, Closed> {
        tokio::select! {
            biased;
            () = self.displaced.cancelled() => Err(Closed::Full(Full::Displaced)),
            done = timeout_at(self.due, step) => done.map_err(|_| Closed::NotAuthenticated),
        }
    }
}

/// A connection on its way in, to a cluster that is known.
struct Arrival {
    kind: ListenerKind,
    target: Target,
    entry: Entry,
}

impl Entry {
    /// Learns from a balancer which client it connects.
    async fn meet_balancer(&mut self) -> Result<(), Closed> {
        let header = self.bound.run(read_header(self.stream.as_mut())).await?;
        if let Some(client) = header.map_err(Closed::Balancer)? {
            self.peer = client;
            self.place.come_from(client.ip()).map_err(Closed::Full)?;
        }
        Ok(())
    }
}

impl Gateway {
    /// Serves a connection to a port of a cluster.
    pub(super) fn spawn_plain(
        self: &Arc<Self>,
        stream: Box<dyn Stream>,
        peer: SocketAddr,
        port: u16,
    ) {
        let target = self.view.borrow().of_port(port);
        let cluster = target.as_ref().map(|target| Arc::clone(&target.cluster));
        let gateway = Arc::clone(self);
        self.spawn(stream, peer, cluster.as_ref(), async move |entry| {
            let target = target.ok_or_else(|| Closed::NoCluster(port.to_string()))?;
            gateway.serve(Arrival { kind: ListenerKind::SaslPlaintext, target, entry }).await
        });
    }

    /// Serves a connection with TLS: the requested server name says which cluster.
    pub(super) fn spawn_tls(
        self: &Arc<Self>,
        stream: Box<dyn Stream>,
        peer: SocketAddr,
        acceptor: TlsAcceptor,
    ) {
        let gateway = Arc::clone(self);
        self.spawn(stream, peer, None, async move |entry| {
            let Entry { stream, peer, id, mut place, bound } = entry;
            let accepted = bound.run(acceptor.accept(stream)).await?;
            let stream = accepted.map_err(Closed::Tls)?;
            let name = stream.get_ref().1.server_name().unwrap_or_default().to_owned();
            let target = gateway.view.borrow().of_name(&name, &gateway.names.domain);
            let target = target.ok_or(Closed::NoCluster(name))?;
            place.aim_at(&target.cluster).map_err(Closed::Full)?;
            let entry = Entry { stream: Box::new(Decrypted(stream)), peer, id, place, bound };
            gateway.serve(Arrival { kind: ListenerKind::SaslSsl, target, entry }).await
        });
    }

    /// Serves a connection that has got a place, in a task of its own. `cluster` is the one that
    /// the client names by connecting, if it does.
    fn spawn<F>(
        self: &Arc<Self>,
        stream: Box<dyn Stream>,
        peer: SocketAddr,
        cluster: Option<&Arc<str>>,
        serve: impl FnOnce(Entry) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<Ended, Closed>> + Send,
    {
        let due = Instant::now() + self.authentication_time;
        let id = self.connection_id();
        let from_balancer = self.balancers.contain(peer.ip());
        let address = (!from_balancer).then(|| peer.ip());
        let place = match self.gate.admit(address, cluster) {
            Ok(place) => place,
            Err(full) => return self.report(peer, &id, &Closed::Full(full)),
        };
        let bound = Bound { due, displaced: place.displaced() };
        let mut entry = Entry { stream, peer, id: Arc::clone(&id), place, bound };
        let gateway = Arc::clone(self);
        self.connections.spawn(async move {
            let mut peer = peer;
            let serving = async {
                if from_balancer {
                    entry.meet_balancer().await?;
                    peer = entry.peer;
                }
                serve(entry).await
            };
            let closed = serving.await.map_or_else(|closed| closed, Closed::Forwarded);
            gateway.report(peer, &id, &closed);
        });
    }

    /// An id that no other connection has: `con_` and 16 hexadecimal digits.
    fn connection_id(&self) -> Arc<str> {
        let mut bytes = [0; ID_BYTES];
        self.randomness.fill(&mut bytes);
        format!("con_{}", encode_hex(&bytes)).into()
    }

    async fn serve(&self, arrival: Arrival) -> Result<Ended, Closed> {
        let Arrival { kind, target, mut entry } = arrival;
        let due = entry.bound.due;
        let login = Login::new(self, &target.cluster, &mut entry.place, due);
        let authenticating = entry.bound.run(login.run(entry.stream.as_mut()));
        let principal = tokio::select! {
            biased;
            () = self.drain.cancelled() => return Ok(Ended::Stopping),
            principal = authenticating => principal??,
        };
        let session = self.sessions.register(&target.cluster, principal.name());
        self.watches.want(&target.cluster);
        let client = self.linked_client(&target, principal, &entry, kind);
        let Entry { mut stream, place: _place, .. } = entry;
        let mut early = vec![0; EARLY_BYTES];
        let (reached, read) = tokio::select! {
            biased;
            () = session.end.cancelled() => return Ok(Ended::NotAllowed),
            () = self.drain.cancelled() => return Ok(Ended::Stopping),
            held = self.hold(stream.as_mut(), &mut early, &target, &client) => held?,
        };
        session.linked(target.slot, reached.place, &self.view.borrow().brokers(&target.cluster));
        early.truncate(read);
        early.shrink_to_fit();
        let flow = Flow {
            traffic: self.metrics.traffic(&target.cluster),
            buffers: self.buffers.of_cluster(&target.cluster),
        };
        let signals = Signals { end: session.end.clone(), drain: self.drain.clone() };
        let forwarding = pump(stream, reached.stream, early, &flow, &signals);
        Ok(self.serving.of_cluster(&target.cluster).serve(forwarding).await)
    }

    fn linked_client(
        &self,
        target: &Target,
        principal: Principal,
        entry: &Entry,
        listener: ListenerKind,
    ) -> LinkedClient {
        let view = self.view.borrow().clone();
        let spec = view.spec(&target.cluster);
        let advertised = spec.map(|spec| self.names.advertised(spec, listener)).unwrap_or_default();
        let (address, connection) = (entry.peer, Arc::clone(&entry.id));
        LinkedClient { principal, listener, address, advertised, connection }
    }

    /// Holds a client until its broker is reached, unless it leaves. Returns the link, and how many
    /// bytes the client has sent meanwhile.
    async fn hold(
        &self,
        stream: &mut dyn Stream,
        early: &mut [u8],
        target: &Target,
        client: &LinkedClient,
    ) -> Result<(Reached, usize), Closed> {
        let reaching = self.reach(target, client);
        tokio::pin!(reaching);
        let read = tokio::select! {
            biased;
            reached = &mut reaching => return Ok((reached?, 0)),
            read = stream.read(early) => read.unwrap_or(0),
        };
        if read == 0 {
            return Err(Closed::LeftEarly);
        }
        Ok((reaching.await?, read))
    }

    fn report(&self, peer: SocketAddr, connection: &str, closed: &Closed) {
        match closed {
            Closed::Full(full) | Closed::Login(LoginError::Full(full)) => {
                self.metrics.refused(full.label());
            }
            Closed::Login(LoginError::TooManyWrong(_)) => self.metrics.refused("attempts"),
            Closed::Balancer(_) => self.metrics.refused("balancer"),
            Closed::NoCluster(_) => self.metrics.refused("no_cluster"),
            Closed::NotAuthenticated => self.metrics.refused("not_authenticated"),
            Closed::Unreached(_) => self.metrics.refused("unreached"),
            _ => {}
        }
        if !closed.is_remarkable() {
            tracing::debug!(%peer, connection, reason = %closed, "connection ended");
        } else if let Some(suppressed) = self.closings.admit() {
            tracing::warn!(%peer, connection, reason = %closed, suppressed, "closed a connection");
        }
    }
}
