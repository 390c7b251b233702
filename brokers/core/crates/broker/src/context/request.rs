//! Who asks, and through which listener.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;

use super::broker::Broker;
use freshet_access::principal::Principal;
use freshet_access::sasl::Mechanism;
use freshet_coordinator::group::ClientInfo;
use freshet_metadata::ClusterMetadata;
use freshet_metadata::cluster::Actor;
use freshet_quota::bucket::Bucket;
use freshet_quota::{ClientLimits, Mute};
use freshet_wire::protocol::leader::NodeEndpoint;

/// A listener as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerFacts {
    /// Its name.
    pub name: String,
    /// The host that clients are told to connect to.
    pub advertised_host: String,
    /// The port that clients are told to connect to.
    pub advertised_port: u16,
    /// How clients authenticate; where this is empty they need not, and are `User:ANONYMOUS`.
    pub sasl_mechanisms: Vec<Mechanism>,
}

/// What is known of a client from its connection.
pub struct ClientFacts {
    /// The broker that it talks to.
    pub broker: Arc<Broker>,
    /// The listener that it came through.
    pub listener: Arc<ListenerFacts>,
    /// Who it is.
    pub principal: Principal,
    /// Who pays: the principal as text.
    pub payer: Arc<str>,
    /// Its address.
    pub host: IpAddr,
    /// What the gateway calls its connection; empty without one.
    pub connection: Arc<str>,
    /// Whether it is the service itself, which no quota holds.
    pub exempt: bool,
}

impl ClientFacts {
    /// A client that is known to be `principal`.
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

    /// The same client, on a connection that its gateway calls `connection`.
    #[must_use]
    pub fn through(self, connection: Arc<str>) -> Self {
        Self { connection, ..self }
    }
}

/// A request's circumstances.
pub struct RequestContext {
    /// Who asks.
    pub client: Arc<ClientFacts>,
    /// What the client calls itself.
    pub client_id: StrBytes,
    /// Version of the API.
    pub api_version: i16,
    /// The quotas that hold this client; none where there are none.
    pub throttling: Option<Throttling>,
}

/// What a client may take, and how it is made to pause.
#[derive(Clone)]
pub struct Throttling {
    /// What it may take.
    pub limits: Arc<ClientLimits>,
    /// Its connection's.
    pub mute: Arc<Mute>,
}

/// A kind of what is throttled.
#[derive(Debug, Clone, Copy)]
enum Throttled {
    Produce,
    Fetch,
    Request,
}

impl Throttled {
    fn name(self) -> &'static str {
        match self {
            Self::Produce => "produce",
            Self::Fetch => "fetch",
            Self::Request => "request",
        }
    }
}

impl RequestContext {
    /// The circumstances of a request that no quota holds.
    pub fn new(client: Arc<ClientFacts>, client_id: StrBytes, api_version: i16) -> Self {
        Self { client, client_id, api_version, throttling: None }
    }

    /// Counts bytes that were produced; gives what the client is told to pause, in milliseconds.
    pub fn charge_produce(&self, bytes: usize) -> i32 {
        let bucket = |limits: &ClientLimits| limits.produce.clone();
        self.charge(Throttled::Produce, bucket, bytes as f64)
    }

    /// Counts bytes that are handed out, as [`RequestContext::charge_produce`]. With 0 it tells
    /// whether a pause is due already.
    pub fn charge_fetch(&self, bytes: usize) -> i32 {
        let bucket = |limits: &ClientLimits| limits.fetch.clone();
        self.charge(Throttled::Fetch, bucket, bytes as f64)
    }

    /// Counts time of a thread, as [`RequestContext::charge_produce`].
    pub fn charge_request(&self, spent: Duration) -> i32 {
        let bucket = |limits: &ClientLimits| limits.request.clone();
        self.charge(Throttled::Request, bucket, spent.as_secs_f64())
    }

    /// The most bytes that one fetch may hand out.
    pub fn fetch_bytes_max(&self) -> usize {
        let bucket =
            self.throttling.as_ref().and_then(|throttling| throttling.limits.fetch.clone());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        bucket.map_or(usize::MAX, |bucket| (bucket.capacity() as usize).max(1))
    }

    /// Mutes the connection for as long as the client is told to pause.
    fn charge(
        &self,
        kind: Throttled,
        bucket: impl Fn(&ClientLimits) -> Option<Arc<Bucket>>,
        units: f64,
    ) -> i32 {
        let Some(throttling) = &self.throttling else { return 0 };
        let Some(bucket) = bucket(&throttling.limits) else { return 0 };
        let pause = bucket.take(units, Instant::now());
        // Rounded up: a client that comes back in time finds the connection read again.
        let pause_ms = pause.as_nanos().div_ceil(1_000_000);
        if pause_ms > 0 {
            throttling.mute.pause(pause);
            let metrics = &self.broker().engine.settings.metrics;
            metrics.throttled(kind.name(), u64::try_from(pause_ms).unwrap_or(u64::MAX));
        }
        i32::try_from(pause_ms).unwrap_or(i32::MAX)
    }

    /// The broker.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.client.broker
    }

    /// The cluster's metadata, whose changes are noted as this client's. What the service itself
    /// changes so is noted where it was asked for.
    pub(crate) fn metadata(&self) -> ClusterMetadata {
        let metadata = &self.broker().engine.metadata;
        if self.is_super_user(&self.client.principal) {
            return ClusterMetadata::clone(metadata);
        }
        metadata.on_behalf_of(Actor {
            principal: self.client.principal.as_str().to_owned(),
            client_id: self.client_id.to_string(),
            address: self.client.host.to_string(),
            connection: self.client.connection.to_string(),
        })
    }

    /// Who asks, as the group coordinator remembers it.
    pub(crate) fn client_info(&self) -> ClientInfo {
        ClientInfo {
            client_id: self.client_id.to_string(),
            client_host: format!("/{}", self.client.host),
        }
    }

    /// Where clients of this listener find this broker.
    pub fn endpoint(&self) -> NodeEndpoint {
        let listener = &self.client.listener;
        NodeEndpoint {
            node_id: self.broker().engine.node_id,
            host: listener.advertised_host.clone(),
            port: i32::from(listener.advertised_port),
            rack: None,
        }
    }
}
