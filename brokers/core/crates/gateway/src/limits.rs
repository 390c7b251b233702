//! Limits on connections: in all, by address, and by cluster; and on the memory of those that have
//! not authenticated.
//!
//! Only connections that have authenticated count as their cluster's, so that clients without a
//! password cannot use up a tenant's connections.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::bucket::Bucket;
use super::shares::{Early, EarlyPlaces, Key};
use freshet_greeting::addresses::counted_address;

/// Addresses that may be remembered for their rate although they have no connection.
const QUIET_ADDRESSES_MAX: usize = 10_000;
/// An address, and for memory a cluster too, has at most this part of what all clients may have
/// together before they have authenticated.
const SHARE: usize = 8;
/// Bytes of a request for which each connection has its own memory before it has authenticated:
/// more than any client's first requests have. Only what is larger is taken from the share.
const OWN_BYTES: usize = 16 << 10;

/// Bounds on connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct GateLimits {
    /// At a time.
    pub connections: usize,
    /// At a time from one address.
    pub per_address: usize,
    /// At a time that have not authenticated.
    pub unauthenticated: usize,
    /// Bytes in memory of those that have not authenticated.
    pub unauthenticated_bytes: usize,
    /// New ones from one address; on the loopback, to one cluster.
    pub rate: NewConnections,
}

/// How fast new connections may come.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewConnections {
    /// A second, in the long run.
    pub per_s: u32,
    pub at_once: u32,
}

impl GateLimits {
    /// Bytes of memory that each connection has for itself.
    fn own_bytes(&self) -> usize {
        OWN_BYTES.min(self.unauthenticated_bytes / self.unauthenticated.max(1))
    }

    /// Bytes of memory that are shared out.
    fn shared_bytes(&self) -> usize {
        self.unauthenticated_bytes - self.own_bytes() * self.unauthenticated
    }
}

/// Why a connection is not taken, or has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    #[error("too many connections are open")]
    Connections,
    #[error("too many connections of this address are open")]
    Address,
    #[error("too many new connections from this address")]
    Rate,
    #[error("too many connections have not authenticated")]
    Unauthenticated,
    #[error("too many connections of this address have not authenticated")]
    Share,
    #[error("it kept others waiting, and one of them got its place")]
    Displaced,
    #[error("clients that have not authenticated hold too much memory")]
    Memory,
    #[error("the cluster has all connections that it may have")]
    Cluster,
}

impl Full {
    /// The value of a metric's label.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Address => "address",
            Self::Rate => "rate",
            Self::Unauthenticated => "unauthenticated",
            Self::Share => "share",
            Self::Displaced => "displaced",
            Self::Memory => "memory",
            Self::Cluster => "cluster",
        }
    }
}

/// Counts connections.
pub(super) struct Gate {
    limits: GateLimits,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    open: usize,
    next: u64,
    early: EarlyPlaces,
    memory: SharedMemory,
    addresses: BTreeMap<IpAddr, CountedAddress>,
    clusters: BTreeMap<Arc<str>, usize>,
}

struct CountedAddress {
    open: usize,
    rate: Bucket,
}

/// Shared memory that is held, in bytes.
#[derive(Default)]
struct SharedMemory {
    all: usize,
    addresses: BTreeMap<IpAddr, usize>,
    clusters: BTreeMap<Arc<str>, usize>,
}

/// The address by which places and memory are shared out. On the loopback all clients have one
/// address, so there they are shared out by cluster alone.
fn shared_address(counted: Option<IpAddr>) -> Option<IpAddr> {
    counted.filter(|address| !address.is_loopback())
}

impl Gate {
    pub(super) fn new(limits: GateLimits) -> Arc<Self> {
        Arc::new(Self { limits, counts: Mutex::default() })
    }

    /// Gives a new connection a place, before it has authenticated. `address` is the client's;
    /// `None` where a balancer will name it ([`Place::come_from`]). `cluster` is the one that it
    /// names; `None` where it will name one ([`Place::aim_at`]).
    pub(super) fn admit(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        cluster: Option<&Arc<str>>,
    ) -> Result<Place, Full> {
        let address = address.map(counted_address);
        let limits = &self.limits;
        let mut counts = self.counts.lock();
        counts.forget_quiet(limits);
        if let Some(address) = address {
            // On the loopback the cluster's listener keeps the rate.
            if !(address.is_loopback() && cluster.is_some()) {
                counts.check_rate(address, limits.rate)?;
            }
            counts.check_address(address, limits)?;
        }
        if counts.open >= limits.connections {
            return Err(Full::Connections);
        }
        let (cluster, shared) = (cluster.cloned(), shared_address(address));
        if counts.early.len() >= limits.unauthenticated && !counts.early.displace(&cluster, shared)
        {
            return Err(Full::Unauthenticated);
        }
        let early = Early::new();
        let key = Key { cluster, address: shared, number: counts.next };
        counts.next += 1;
        counts.open += 1;
        counts.early.insert(&key, Arc::clone(&early));
        if let Some(of_address) = address.and_then(|address| counts.addresses.get_mut(&address)) {
            of_address.open += 1;
        }
        let gate = Arc::clone(self);
        Ok(Place { gate, address, key, early, joined: None, shared_bytes: 0 })
    }

    /// How fast new connections may come from one address; on the loopback, to one cluster.
    pub(super) fn rate(&self) -> NewConnections {
        self.limits.rate
    }

    /// Connections that have not authenticated.
    pub(super) fn unauthenticated(&self) -> usize {
        self.counts.lock().early.len()
    }

    /// Connections that have, by cluster.
    pub(super) fn by_cluster(&self) -> BTreeMap<Arc<str>, usize> {
        self.counts.lock().clusters.clone()
    }
}

impl Counts {
    fn of_address(&mut self, address: IpAddr, rate: NewConnections) -> &mut CountedAddress {
        let new = || CountedAddress { open: 0, rate: Bucket::full(rate.at_once) };
        self.addresses.entry(address).or_insert_with(new)
    }

    /// Takes a token of an address's rate.
    fn check_rate(&mut self, address: IpAddr, rate: NewConnections) -> Result<(), Full> {
        let tokens = &mut self.of_address(address, rate).rate;
        let taken = tokens.take(rate.at_once, f64::from(rate.per_s));
        if taken { Ok(()) } else { Err(Full::Rate) }
    }

    /// Whether an address may have another connection at a time.
    fn check_address(&mut self, address: IpAddr, limits: &GateLimits) -> Result<(), Full> {
        if self.of_address(address, limits.rate).open >= limits.per_address {
            return Err(Full::Address);
        }
        let share = (limits.unauthenticated / SHARE).max(1);
        if let Some(shared) = shared_address(Some(address))
            && self.early.of_address(shared) >= share
            && !self.early.displace_of(shared)
        {
            return Err(Full::Share);
        }
        Ok(())
    }

    /// Forgets addresses without connections whose rate has recovered, once there are more than
    /// [`QUIET_ADDRESSES_MAX`]. The others stay: to forget one would give it a new rate.
    fn forget_quiet(&mut self, limits: &GateLimits) {
        if self.addresses.len() <= self.open + QUIET_ADDRESSES_MAX {
            return;
        }
        let (capacity, per_s) = (limits.rate.at_once, f64::from(limits.rate.per_s));
        self.addresses
            .retain(|_, address| address.open > 0 || !address.rate.is_full(capacity, per_s));
    }
}

impl SharedMemory {
    /// Takes memory for a connection, where its address, its cluster and all together have not more
    /// than they may; returns whether that is so.
    fn take(&mut self, key: &Key, bytes: usize, most: usize) -> bool {
        let of_address = key.address.and_then(|address| self.addresses.get(&address));
        let of_cluster = key.cluster.as_ref().and_then(|cluster| self.clusters.get(cluster));
        let share = most / SHARE;
        let fits = |held: Option<&usize>| held.copied().unwrap_or(0) + bytes <= share;
        if !fits(of_address) || !fits(of_cluster) || self.all + bytes > most {
            return false;
        }
        self.all += bytes;
        if let Some(address) = key.address {
            *self.addresses.entry(address).or_default() += bytes;
        }
        if let Some(cluster) = &key.cluster {
            *self.clusters.entry(Arc::clone(cluster)).or_default() += bytes;
        }
        true
    }

    fn give_back(&mut self, key: &Key, bytes: usize) {
        self.all -= bytes;
        if let Some(address) = &key.address {
            lower(&mut self.addresses, address, bytes);
        }
        if let Some(cluster) = &key.cluster {
            lower(&mut self.clusters, cluster, bytes);
        }
    }
}

/// Lowers a count, which is forgotten at 0.
fn lower<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K, by: usize) {
    if let Some(count) = counts.get_mut(key) {
        *count -= by;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// A connection's place, which is given back when this is dropped.
pub(super) struct Place {
    gate: Arc<Gate>,
    address: Option<IpAddr>,
    key: Key,
    early: Arc<Early>,
    /// The cluster whose connection it is, once the client has authenticated.
    joined: Option<Arc<str>>,
    /// Bytes of the shared memory that it holds.
    shared_bytes: usize,
}

impl Place {
    /// Cancelled when another connection has got the place, before this one has authenticated.
    pub(super) fn displaced(&self) -> CancellationToken {
        self.early.displaced.clone()
    }

    /// Notes that the gateway waits for the client now, or does not.
    pub(super) fn set_waiting(&self, waits: bool) {
        self.early.set_waiting(waits);
    }

    /// The address by which the client's share is counted; `None` on the loopback.
    pub(super) fn shared_address(&self) -> Option<IpAddr> {
        self.key.address
    }

    /// Counts the connection for its client's address, which a balancer has named.
    pub(super) fn come_from(&mut self, address: IpAddr) -> Result<(), Full> {
        let address = counted_address(address);
        let gate = Arc::clone(&self.gate);
        let mut counts = gate.counts.lock();
        counts.forget_quiet(&gate.limits);
        counts.check_rate(address, gate.limits.rate)?;
        counts.check_address(address, &gate.limits)?;
        self.move_to(&mut counts, |key| key.address = shared_address(Some(address)))?;
        if let Some(of_address) = counts.addresses.get_mut(&address) {
            of_address.open += 1;
        }
        self.address = Some(address);
        Ok(())
    }

    /// Counts the connection for the cluster that its client has named.
    pub(super) fn aim_at(&mut self, cluster: &Arc<str>) -> Result<(), Full> {
        let gate = Arc::clone(&self.gate);
        let mut counts = gate.counts.lock();
        self.move_to(&mut counts, |key| key.cluster = Some(Arc::clone(cluster)))
    }

    /// Counts the connection, which holds no shared memory yet, under another key.
    fn move_to(&mut self, counts: &mut Counts, change: impl FnOnce(&mut Key)) -> Result<(), Full> {
        let early = counts.early.remove(&self.key).ok_or(Full::Displaced)?;
        change(&mut self.key);
        counts.early.insert(&self.key, early);
        Ok(())
    }

    /// Takes memory until the connection has so many bytes for what its client sends.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), Full> {
        let limits = &self.gate.limits;
        let more = bytes.saturating_sub(limits.own_bytes()).saturating_sub(self.shared_bytes);
        if more == 0 {
            return Ok(());
        }
        let mut counts = self.gate.counts.lock();
        if !counts.memory.take(&self.key, more, limits.shared_bytes()) {
            return Err(Full::Memory);
        }
        self.shared_bytes += more;
        Ok(())
    }

    /// Gives the memory back.
    pub(super) fn release(&mut self) {
        if self.shared_bytes > 0 {
            self.gate.counts.lock().memory.give_back(&self.key, self.shared_bytes);
            self.shared_bytes = 0;
        }
    }

    /// Counts the connection, whose client has authenticated, as a cluster's.
    pub(super) fn join(&mut self, cluster: &Arc<str>, most: usize) -> Result<(), Full> {
        self.release();
        let mut counts = self.gate.counts.lock();
        let present = counts.clusters.get(cluster).copied().unwrap_or(0);
        if present >= most {
            return Err(Full::Cluster);
        }
        counts.early.remove(&self.key).ok_or(Full::Displaced)?;
        counts.clusters.insert(Arc::clone(cluster), present + 1);
        self.joined = Some(Arc::clone(cluster));
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.release();
        let mut counts = self.gate.counts.lock();
        counts.open -= 1;
        if let Some(of_address) =
            self.address.and_then(|address| counts.addresses.get_mut(&address))
        {
            of_address.open -= 1;
        }
        match &self.joined {
            Some(cluster) => lower(&mut counts.clusters, cluster, 1),
            None => drop(counts.early.remove(&self.key)),
        }
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
