//! Limits on connections: in all, by address, and by cluster.
//!
//! Only connections that have authenticated count as their cluster's, so that clients without a
//! password cannot use up a tenant's connections.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Addresses that may be remembered for their rate although they have no connection.
const QUIET_ADDRESSES_MAX: usize = 10_000;

/// A token bucket: a capacity that may be taken at once, and a rate a second at which it refills.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    tokens: f64,
    filled_at: Instant,
}

impl Bucket {
    pub(super) fn full(capacity: u32) -> Self {
        Self { tokens: f64::from(capacity), filled_at: Instant::now() }
    }

    fn fill(&mut self, capacity: u32, per_s: f64) {
        let now = Instant::now();
        let gained = now.duration_since(self.filled_at).as_secs_f64() * per_s;
        self.tokens = (self.tokens + gained).min(f64::from(capacity));
        self.filled_at = now;
    }

    /// Takes a token, if there is one; returns whether there was.
    pub(super) fn take(&mut self, capacity: u32, per_s: f64) -> bool {
        self.fill(capacity, per_s);
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }

    fn is_full(&mut self, capacity: u32, per_s: f64) -> bool {
        self.fill(capacity, per_s);
        self.tokens >= f64::from(capacity)
    }
}

/// Bounds on connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct GateLimits {
    /// At a time.
    pub connections: usize,
    /// At a time from one address.
    pub per_address: usize,
    /// At a time that have not authenticated.
    pub unauthenticated: usize,
    /// New ones a second from one address, in the long run.
    pub per_s_per_address: u32,
    /// New ones at once from one address.
    pub at_once_per_address: u32,
}

/// Why a connection is not taken.
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
    unauthenticated: usize,
    addresses: BTreeMap<IpAddr, Address>,
    clusters: BTreeMap<Arc<str>, usize>,
}

struct Address {
    open: usize,
    rate: Bucket,
}

impl Gate {
    pub(super) fn new(limits: GateLimits) -> Arc<Self> {
        Arc::new(Self { limits, counts: Mutex::default() })
    }

    /// Gives a new connection a place, before it has authenticated.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Place, Full> {
        let address = address.to_canonical();
        let limits = &self.limits;
        let mut counts = self.counts.lock();
        counts.forget_quiet(limits);
        let of_address = counts
            .addresses
            .entry(address)
            .or_insert_with(|| Address { open: 0, rate: Bucket::full(limits.at_once_per_address) });
        let per_s = f64::from(limits.per_s_per_address);
        if !of_address.rate.take(limits.at_once_per_address, per_s) {
            return Err(Full::Rate);
        }
        if of_address.open >= limits.per_address {
            return Err(Full::Address);
        }
        if counts.open >= limits.connections {
            return Err(Full::Connections);
        }
        if counts.unauthenticated >= limits.unauthenticated {
            return Err(Full::Unauthenticated);
        }
        counts.open += 1;
        counts.unauthenticated += 1;
        if let Some(of_address) = counts.addresses.get_mut(&address) {
            of_address.open += 1;
        }
        Ok(Place { gate: Arc::clone(self), address, cluster: None })
    }

    /// Connections that have not authenticated.
    pub(super) fn unauthenticated(&self) -> usize {
        self.counts.lock().unauthenticated
    }

    /// Connections that have, by cluster.
    pub(super) fn by_cluster(&self) -> BTreeMap<Arc<str>, usize> {
        self.counts.lock().clusters.clone()
    }
}

impl Counts {
    /// Forgets addresses without connections whose rate has recovered, once there are more than
    /// [`QUIET_ADDRESSES_MAX`]. The others stay: to forget one would give it a new rate.
    fn forget_quiet(&mut self, limits: &GateLimits) {
        if self.addresses.len() <= self.open + QUIET_ADDRESSES_MAX {
            return;
        }
        let (capacity, per_s) = (limits.at_once_per_address, f64::from(limits.per_s_per_address));
        self.addresses
            .retain(|_, address| address.open > 0 || !address.rate.is_full(capacity, per_s));
    }
}

/// A connection's place, which is given back when this is dropped.
pub(super) struct Place {
    gate: Arc<Gate>,
    address: IpAddr,
    cluster: Option<Arc<str>>,
}

impl Place {
    /// Counts the connection, whose client has authenticated, as a cluster's.
    pub(super) fn join(&mut self, cluster: &Arc<str>, most: usize) -> Result<(), Full> {
        let mut counts = self.gate.counts.lock();
        let present = counts.clusters.get(cluster).copied().unwrap_or(0);
        if present >= most {
            return Err(Full::Cluster);
        }
        counts.clusters.insert(Arc::clone(cluster), present + 1);
        counts.unauthenticated -= 1;
        self.cluster = Some(Arc::clone(cluster));
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.gate.counts.lock();
        counts.open -= 1;
        if let Some(address) = counts.addresses.get_mut(&self.address) {
            address.open -= 1;
        }
        let Some(cluster) = &self.cluster else {
            counts.unauthenticated -= 1;
            return;
        };
        if let Some(count) = counts.clusters.get_mut(cluster) {
            *count -= 1;
            if *count == 0 {
                counts.clusters.remove(cluster);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn limits() -> GateLimits {
        GateLimits {
            connections: 5,
            per_address: 3,
            unauthenticated: 4,
            per_s_per_address: 2,
            at_once_per_address: 4,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_so_much_at_once_and_then_at_its_rate() {
        let mut bucket = Bucket::full(3);
        let taken = |bucket: &mut Bucket| (0..10).filter(|_| bucket.take(3, 2.0)).count();
        assert_eq!(taken(&mut bucket), 3);
        advance(Duration::from_millis(499)).await;
        assert_eq!(taken(&mut bucket), 0);
        advance(Duration::from_millis(1)).await;
        assert_eq!(taken(&mut bucket), 1);
        advance(Duration::from_secs(3600)).await;
        assert_eq!(taken(&mut bucket), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_bounded_in_number_and_rate() {
        let gate = Gate::new(limits());
        let mut places: Vec<Place> = (0..3).map(|_| gate.admit(address(1)).unwrap()).collect();
        assert_eq!(gate.admit(address(1)).err(), Some(Full::Address));
        // The rate counts new connections: a place that is given back does not give back its token.
        places.clear();
        assert_eq!(gate.admit(address(1)).err(), Some(Full::Rate));
        assert!(gate.admit(address(2)).is_ok());
        advance(Duration::from_millis(500)).await;
        assert!(gate.admit(address(1)).is_ok());
        assert_eq!(gate.admit(address(1)).err(), Some(Full::Rate));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_of_both_families_is_one() {
        let gate = Gate::new(limits());
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        let _places: Vec<Place> = (0..3).map(|_| gate.admit(address(1)).unwrap()).collect();
        assert_eq!(gate.admit(mapped).err(), Some(Full::Address));
    }

    #[tokio::test(start_paused = true)]
    async fn unauthenticated_connections_take_no_place_of_a_cluster() {
        let gate = Gate::new(limits());
        let cluster: Arc<str> = "cl_1".into();
        let mut inside = gate.admit(address(1)).unwrap();
        let unauthenticated: Vec<Place> =
            (2..5).map(|last| gate.admit(address(last)).unwrap()).collect();
        assert_eq!(gate.admit(address(9)).err(), Some(Full::Unauthenticated));
        inside.join(&cluster, 1).unwrap();
        assert_eq!((gate.unauthenticated(), gate.by_cluster()[&cluster]), (3, 1));
        let mut second = gate.admit(address(1)).unwrap();
        assert_eq!(gate.admit(address(9)).err(), Some(Full::Connections));
        assert_eq!(second.join(&cluster, 1).err(), Some(Full::Cluster));
        drop(inside);
        second.join(&cluster, 1).unwrap();
        drop((second, unauthenticated));
        assert_eq!(gate.unauthenticated(), 0);
        assert!(gate.by_cluster().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_whose_rate_has_recovered_are_forgotten() {
        let gate = Gate::new(GateLimits { connections: 50_000, ..limits() });
        for number in 0..=u32::try_from(QUIET_ADDRESSES_MAX).unwrap() {
            drop(gate.admit(IpAddr::from(number.to_be_bytes())).unwrap());
        }
        advance(Duration::from_secs(10)).await;
        let _place = gate.admit(address(1)).unwrap();
        assert_eq!(gate.counts.lock().addresses.len(), 1);
    }
}
