//! The circumstances of a request: which client sent it, through which listener, under which
//! quotas.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;

use super::broker::Broker;
use super::tally::Tally;
use freshet_access::principal::Principal;
use freshet_access::sasl::Mechanism;
use freshet_coordinator::group::ClientInfo;
use freshet_metadata::ClusterMetadata;
use freshet_metadata::cluster::Actor;
use freshet_metadata::schema::TrafficLimit;
use freshet_quota::bucket::Bucket;
use freshet_quota::{ClientLimits, Mute};
use freshet_telemetry::traffic::Use;
use freshet_wire::protocol::leader::NodeEndpoint;

/// A listener as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerFacts {
    /// Its name.
    pub name: String,
    /// The host that metadata responses give clients to connect to.
    pub advertised_host: String,
    /// The port that metadata responses give clients to connect to.
    pub advertised_port: u16,
    /// `host:port` of each broker of the cluster by slot, for clients of a gateway; empty for
    /// others, who get the addresses that the brokers registered.
    pub advertised_by_slot: Vec<String>,
    /// The mechanisms by which clients may authenticate. Where there is none, clients need not
    /// authenticate and are `User:ANONYMOUS`.
    pub sasl_mechanisms: Vec<Mechanism>,
}

/// What is known of a client from its connection and its authentication.
pub struct ClientFacts {
    /// The broker that it is connected to.
    pub broker: Arc<Broker>,
    /// The listener that it is connected to.
    pub listener: Arc<ListenerFacts>,
    /// The principal that it authenticated as.
    pub principal: Principal,
    /// The principal as text, by which the bill names who produced or consumed, unless the service
    /// names another one in a request ([`RequestContext::payer`]).
    pub payer: Arc<str>,
    /// Its IP address; behind a gateway, the client's own.
    pub host: IpAddr,
    /// The gateway's id of its connection; empty where it came without a gateway.
    pub connection: Arc<str>,
    /// Whether it is a super user, that is, the service itself. No quota restricts it, and it may
    /// make requests for somebody else.
    pub exempt: bool,
}

impl ClientFacts {
    /// A client that has authenticated as `principal`.
    pub fn new(
        broker: Arc<Broker>,
        listener: Arc<ListenerFacts>,
        principal: Principal,
        host: IpAddr,
    ) -> Self {
        let payer = principal.as_str().into();
        let authorizer = broker.settings.authorizer.as_ref();
        let exempt = authorizer.is_some_and(|settings| settings.super_users.contains(&principal));
        let (host, connection) = (host.to_canonical(), "".into());
        Self { broker, listener, principal, payer, host, connection, exempt }
    }

    /// The same client, on the connection with this id of its gateway.
    #[must_use]
    pub fn through(self, connection: Arc<str>) -> Self {
        Self { connection, ..self }
    }
}

/// What a handler knows of a request beside its body.
pub struct RequestContext {
    /// The client that sent it.
    pub client: Arc<ClientFacts>,
    /// The client id in the request's header, which the client chooses.
    pub client_id: StrBytes,
    /// The version of the API in which it was sent and is answered.
    pub api_version: i16,
    /// The quotas of this client; `None` where it has none.
    pub throttling: Option<Throttling>,
    /// Counts its bytes and those of its answer.
    pub tally: Arc<Tally>,
    /// Who pays for the request: the client, or for whom the service made it.
    pub payer: Arc<str>,
    /// Whether the service made it for somebody else. What frees the service itself, such as from
    /// quotas and from the limit of traffic, does not hold then.
    pub is_on_behalf: bool,
    /// For how many milliseconds the answer asks the client to pause because something in the
    /// request was refused as too much for now.
    pub(crate) refused_ms: AtomicI32,
}

/// What a client may take, and the means to make it pause.
#[derive(Clone)]
pub struct Throttling {
    /// Its quotas: how much it may produce, fetch and have computed; `None` where it has none.
    pub limits: Option<Arc<ClientLimits>>,
    /// What all clients produce and fetch together while the cluster is throttled.
    pub cluster: Option<Arc<Bucket>>,
    /// Stops the reading of its connection for a while.
    pub mute: Arc<Mute>,
}

impl Throttling {
    /// The limits of a client; `None` where there are none.
    pub fn of(
        limits: Option<Arc<ClientLimits>>,
        cluster: Option<Arc<Bucket>>,
        mute: Arc<Mute>,
    ) -> Option<Self> {
        (limits.is_some() || cluster.is_some()).then_some(Self { limits, cluster, mute })
    }

    /// The buckets from which a use of this kind is taken.
    fn buckets(&self, kind: QuotaKind) -> impl Iterator<Item = &Bucket> {
        let of_client = self.limits.as_deref().and_then(|limits| kind.bucket(limits));
        let of_cluster = self.cluster.as_deref().filter(|_| kind.is_traffic());
        of_client.into_iter().chain(of_cluster)
    }
}

/// What a quota counts. The throttling metric has this as a label.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QuotaKind {
    Produce,
    Fetch,
    Request,
}

impl QuotaKind {
    fn name(self) -> &'static str {
        match self {
            Self::Produce => "produce",
            Self::Fetch => "fetch",
            Self::Request => "request",
        }
    }

    /// Whether it counts bytes, and not time.
    fn is_traffic(self) -> bool {
        matches!(self, Self::Produce | Self::Fetch)
    }

    fn bucket(self, limits: &ClientLimits) -> Option<&Bucket> {
        match self {
            Self::Produce => limits.produce.as_deref(),
            Self::Fetch => limits.fetch.as_deref(),
            Self::Request => limits.request.as_deref(),
        }
    }
}

impl RequestContext {
    /// A request of a client without quotas.
    pub fn new(client: Arc<ClientFacts>, client_id: StrBytes, api_version: i16) -> Self {
        let metrics = &client.broker.engine.settings.metrics;
        let tally = Tally::new(metrics, &client.payer, 0);
        Self::counted(client, client_id, api_version, tally)
    }

    /// The same, with the tally of its bytes.
    pub(crate) fn counted(
        client: Arc<ClientFacts>,
        client_id: StrBytes,
        api_version: i16,
        tally: Tally,
    ) -> Self {
        let (payer, tally) = (Arc::clone(&tally.payer), Arc::new(tally));
        Self {
            client,
            client_id,
            api_version,
            throttling: None,
            tally,
            payer,
            is_on_behalf: false,
            refused_ms: AtomicI32::new(0),
        }
    }

    /// Counts bytes that were produced, and the time for which a thread worked on them. Returns for
    /// how many milliseconds the response asks the client to pause; its connection is not read for
    /// that long.
    pub fn charge_produce(&self, bytes: usize, spent: Duration) -> i32 {
        self.count(&Use { bytes_in: bytes as u64, busy: spent, ..Use::default() });
        let pause_ms = self.charge(QuotaKind::Produce, bytes as f64);
        pause_ms.max(self.charge(QuotaKind::Request, spent.as_secs_f64()))
    }

    /// Counts bytes that are fetched, as [`RequestContext::charge_produce`] does. With 0 bytes it
    /// returns the pause that is due for earlier ones.
    pub fn charge_fetch(&self, bytes: usize) -> i32 {
        self.count(&Use { bytes_out: bytes as u64, ..Use::default() });
        self.charge(QuotaKind::Fetch, bytes as f64)
    }

    /// Counts the time for which a thread worked, as [`RequestContext::charge_produce`] does.
    pub fn charge_request(&self, spent: Duration) -> i32 {
        self.count(&Use { busy: spent, ..Use::default() });
        self.charge(QuotaKind::Request, spent.as_secs_f64())
    }

    /// The limit of what clients produce and fetch; `None` where there is none, and for what the
    /// service does for itself.
    pub(crate) fn traffic_limit(&self) -> Option<Arc<TrafficLimit>> {
        if self.client.exempt && !self.is_on_behalf {
            return None;
        }
        self.broker().engine.view.traffic_limit()
    }

    /// Whether this request's client may not fetch now.
    pub(crate) fn refuses_fetch(&self) -> bool {
        self.traffic_limit().is_some_and(|limit| limit.refuses_fetch())
    }

    /// For how many milliseconds those for whom the service made the request must wait, as their
    /// quota of this kind, or of time, is overdrawn. Such a request is refused: the connection
    /// serves others too, so it cannot be made to pause. 0 for all other requests.
    pub(crate) fn refused_for(&self, kind: QuotaKind) -> i32 {
        let Some(throttling) = self.throttling.as_ref().filter(|_| self.is_on_behalf) else {
            return 0;
        };
        let now = Instant::now();
        let buckets = [kind, QuotaKind::Request].into_iter();
        let debts =
            buckets.flat_map(|kind| throttling.buckets(kind)).map(|bucket| bucket.debt(now));
        debts.max().map_or(0, milliseconds)
    }

    /// Has the answer ask the client to pause for so long, as something was refused.
    pub(crate) fn ask_to_pause(&self, pause: Duration) {
        self.refused_ms.fetch_max(milliseconds(pause), Ordering::Relaxed);
    }

    /// For how many milliseconds the answer asks the client to pause because something was refused.
    pub(crate) fn asked_to_pause_ms(&self) -> i32 {
        self.refused_ms.load(Ordering::Relaxed)
    }

    /// The most bytes of records that one fetch response may have: what the quota allows at once,
    /// and at least one byte, so that a client with a tiny quota still gets its first batch.
    pub fn fetch_bytes_max(&self) -> usize {
        let throttling = self.throttling.as_ref().into_iter();
        let buckets = throttling.flat_map(|throttling| throttling.buckets(QuotaKind::Fetch));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let room = buckets.map(|bucket| (bucket.capacity() as usize).max(1)).min();
        room.unwrap_or(usize::MAX)
    }

    /// Counts what the client has taken, for the broker's status.
    fn count(&self, used: &Use) {
        if *used != Use::default() {
            let traffic = &self.broker().engine.settings.metrics.traffic;
            traffic.add(&self.payer, &self.client_id, used);
        }
    }

    /// Takes `units` from the buckets of this kind. Where one is overdrawn, it mutes the connection
    /// and returns the pause in milliseconds.
    fn charge(&self, kind: QuotaKind, units: f64) -> i32 {
        let Some(throttling) = &self.throttling else { return 0 };
        let now = Instant::now();
        let pauses = throttling.buckets(kind).map(|bucket| bucket.take(units, now));
        let Some(pause) = pauses.max() else { return 0 };
        let pause_ms = milliseconds(pause);
        if pause_ms > 0 {
            throttling.mute.pause(pause);
            let metrics = &self.broker().engine.settings.metrics;
            metrics.throttled(kind.name(), u64::from(pause_ms.unsigned_abs()));
        }
        pause_ms
    }

    /// The broker.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.client.broker
    }

    /// The cluster's metadata, through which changes are recorded in the name of this client and
    /// held to the cluster's limits. Changes by a super user are neither: the control plane records
    /// and counts what it was asked for itself. A change is admitted first
    /// (`handlers/admission.rs`).
    pub(crate) fn metadata(&self) -> ClusterMetadata {
        let metadata = &self.broker().engine.metadata;
        if self.is_super_user(&self.client.principal) {
            return ClusterMetadata::clone(metadata);
        }
        let view = &self.broker().engine.view;
        let metadata = metadata.within_for_client(view.snapshot().limits, view);
        metadata.on_behalf_of(&Actor {
            principal: self.client.principal.as_str().to_owned(),
            client_id: self.client_id.to_string(),
            address: self.client.host.to_string(),
            connection: self.client.connection.to_string(),
        })
    }

    /// The client as the group coordinator remembers it.
    pub(crate) fn client_info(&self) -> ClientInfo {
        ClientInfo {
            client_id: self.client_id.to_string(),
            client_host: format!("/{}", self.client.host),
        }
    }

    /// The node id and the address of this broker, as clients of this listener are to use them.
    pub fn endpoint(&self) -> NodeEndpoint {
        let listener = &self.client.listener;
        NodeEndpoint {
            node_id: self.broker().engine.node_id,
            host: listener.advertised_host.clone(),
            port: i32::from(listener.advertised_port),
            rack: self.broker().engine.settings.place.rack(),
        }
    }
}

/// Rounded up, so that the connection is read again when a client that paused for the milliseconds
/// of its response sends its next request.
pub(super) fn milliseconds(pause: Duration) -> i32 {
    i32::try_from(pause.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}
