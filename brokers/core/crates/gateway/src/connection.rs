//! One connection, from its first byte to its last.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::Gateway;
use super::limits::{Full, Place};
use super::login::{Login, LoginError, NotAdmitted};
use super::pump::{Ended, Signals, pump};
use super::reach::{Reached, Unreached};
use super::tls::Decrypted;
use super::view::{Target, check_usable};
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
            Self::Login(error) => error.is_suspicious(),
            Self::Unreached(_) => true,
            Self::Tls(_) | Self::LeftEarly | Self::Forwarded(_) => false,
        }
    }
}

/// A connection that has a place and has sent nothing yet.
struct Entry {
    peer: SocketAddr,
    /// The connection's id, which its wake request, the keeper's log, the broker and the audit log
    /// repeat.
    id: Arc<str>,
    place: Place,
    /// When it must have authenticated.
    due: Instant,
}

/// A connection on its way in.
struct Arrival {
    stream: Box<dyn Stream>,
    kind: ListenerKind,
    target: Target,
    entry: Entry,
}

impl Gateway {
    /// Serves a connection to a port of a cluster.
    pub(super) fn spawn_plain(
        self: &Arc<Self>,
        stream: Box<dyn Stream>,
        peer: SocketAddr,
        port: u16,
    ) {
        let gateway = Arc::clone(self);
        self.spawn(peer, move |entry| async move {
            let target = gateway.view.borrow().of_port(port);
            let target = target.ok_or_else(|| Closed::NoCluster(port.to_string()))?;
            let kind = ListenerKind::SaslPlaintext;
            gateway.serve(Arrival { stream, kind, target, entry }).await
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
        self.spawn(peer, move |entry| async move {
            let accepted = timeout_at(entry.due, acceptor.accept(stream)).await;
            let stream = accepted.map_err(|_| Closed::NotAuthenticated)?.map_err(Closed::Tls)?;
            let name = stream.get_ref().1.server_name().unwrap_or_default().to_owned();
            let target = gateway.view.borrow().of_name(&name, &gateway.names.domain);
            let target = target.ok_or(Closed::NoCluster(name))?;
            let (stream, kind) = (Box::new(Decrypted(stream)), ListenerKind::SaslSsl);
            gateway.serve(Arrival { stream, kind, target, entry }).await
        });
    }

    fn spawn<F>(self: &Arc<Self>, peer: SocketAddr, serve: impl FnOnce(Entry) -> F)
    where
        F: Future<Output = Result<Ended, Closed>> + Send + 'static,
    {
        let due = Instant::now() + self.authentication_time;
        let id = self.connection_id();
        let place = match self.gate.admit(peer.ip()) {
            Ok(place) => place,
            Err(full) => return self.report(peer, &id, &Closed::Full(full)),
        };
        let serving = serve(Entry { peer, id: Arc::clone(&id), place, due });
        let gateway = Arc::clone(self);
        self.connections.spawn(async move {
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
        let Arrival { mut stream, kind, target, mut entry } = arrival;
        let login = Login::new(self, &target.cluster);
        let admitted = |_: &Principal| self.admit(&target, &mut entry.place);
        let authenticating = timeout_at(entry.due, login.run(stream.as_mut(), admitted));
        let principal = tokio::select! {
            biased;
            () = self.drain.cancelled() => return Ok(Ended::Stopping),
            principal = authenticating => principal.map_err(|_| Closed::NotAuthenticated)??,
        };
        let session = self.sessions.register(&target.cluster, principal.name());
        let client = self.linked_client(&target, principal, &entry, kind);
        let mut early = vec![0; EARLY_BYTES];
        let (reached, read) = tokio::select! {
            biased;
            () = session.end.cancelled() => return Ok(Ended::NotAllowed),
            () = self.drain.cancelled() => return Ok(Ended::Stopping),
            held = self.hold(stream.as_mut(), &mut early, &target, &client) => held?,
        };
        session.linked(&reached.link);
        early.truncate(read);
        early.shrink_to_fit();
        let traffic = self.metrics.traffic(&target.cluster);
        let signals = Signals { end: session.end.clone(), drain: self.drain.clone() };
        Ok(pump(stream, reached.stream, early, &traffic, &signals).await)
    }

    /// Whether a client that has proven who it is may go on.
    fn admit(&self, target: &Target, place: &mut Place) -> Result<(), NotAdmitted> {
        let view = self.view.borrow().clone();
        let spec = view.spec(&target.cluster);
        check_usable(spec).map_err(NotAdmitted::Refused)?;
        let most = spec.map_or(0, |spec| spec.connections_max);
        let joined = place.join(&target.cluster, usize::try_from(most).unwrap_or(usize::MAX));
        joined.map_err(|full| {
            self.metrics.refused(full.label());
            NotAdmitted::Closed(full.to_string())
        })
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
            Closed::Full(full) => self.metrics.refused(full.label()),
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
