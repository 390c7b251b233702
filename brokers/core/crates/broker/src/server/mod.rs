//! Serves connections: accepts them, reads requests within limits, and sends answers in order.
//!
//! A [`Service`] creates a [`Session`] for each connection. The session is given whole frames and
//! returns an [`Outcome`] for each. Only `dispatch` and `answers` know Kafka's APIs. See
//! `README.md` in this folder.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use freshet_greeting::log_limit::LogLimit;
use freshet_storage::liveness::Liveness;
use freshet_wire::budget::ArrivalBudget;
use freshet_wire::protocol::frame::{REQUEST_BYTES_MAX, UNAUTHENTICATED_BYTES_MAX};

mod accept;
mod answers;
mod connection;
pub mod dispatch;
pub mod links;
mod reader;
mod service;
mod throttle;
mod writer;

#[cfg(test)]
mod tests;

pub use service::{LinkService, Outcome, Peer, Reply, Service, Session};

/// The limits on what clients can take of a broker's memory, time and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// The largest request, in bytes (`socket.request.max.bytes`).
    pub request_bytes_max: usize,
    /// The largest request of a client that has not authenticated, in bytes.
    pub unauthenticated_bytes_max: usize,
    /// How long a client may take to authenticate.
    pub authentication_time: Duration,
    /// A connection without requests, or whose client takes no answers, is closed after this long
    /// (`connections.max.idle.ms`).
    pub idle_time: Duration,
    /// How long a request may take to arrive, beyond its bytes at [`Self::request_bytes_per_s`].
    pub request_time: Duration,
    /// The lowest rate at which a request may arrive, in bytes per second.
    pub request_bytes_per_s: u64,
    /// The most connections at a time (`max.connections`).
    pub connections_max: usize,
    /// The most connections at a time from one IP address (`max.connections.per.ip`).
    pub connections_per_ip_max: usize,
    /// The most requests of one connection that are not answered yet.
    pub in_flight_requests_max: usize,
    /// The most bytes of one connection's requests that are not answered yet. A single request may
    /// be larger.
    pub in_flight_bytes_max: usize,
    /// The most bytes of all connections' requests that are not answered yet
    /// (`queued.max.request.bytes`).
    pub in_flight_bytes_total: usize,
    /// How long answers may still take once the engine has ended.
    pub drain_time: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            request_bytes_max: REQUEST_BYTES_MAX,
            unauthenticated_bytes_max: UNAUTHENTICATED_BYTES_MAX,
            authentication_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(600),
            request_time: Duration::from_secs(30),
            request_bytes_per_s: 16 << 10,
            connections_max: 10_000,
            connections_per_ip_max: 10_000,
            in_flight_requests_max: 128,
            in_flight_bytes_max: 16 << 20,
            in_flight_bytes_total: 256 << 20,
            drain_time: Duration::from_secs(2),
        }
    }
}

/// What all listeners of a broker share.
pub struct Server {
    limits: ServerLimits,
    liveness: Liveness,
    budget: ArrivalBudget,
    connections: Mutex<Connections>,
    refusals: LogLimit,
    closings: LogLimit,
}

#[derive(Default)]
struct Connections {
    total: usize,
    linked: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

impl Server {
    /// Creates a server without listeners; [`Server::run`] serves one.
    pub fn new(limits: ServerLimits, liveness: Liveness) -> Arc<Self> {
        Arc::new(Self {
            limits,
            liveness,
            budget: ArrivalBudget::new(limits.in_flight_bytes_total, limits.request_bytes_max),
            connections: Mutex::default(),
            refusals: LogLimit::default(),
            closings: LogLimit::default(),
        })
    }

    /// How many connections are open now.
    pub fn connections(&self) -> usize {
        self.connections.lock().total
    }

    /// How many connections from gateways are open now.
    pub fn linked_connections(&self) -> usize {
        self.connections.lock().linked
    }

    /// How many bytes the requests hold that are not answered yet or whose batches are not written
    /// yet.
    pub fn in_flight_bytes(&self) -> usize {
        self.budget.used_bytes()
    }
}
