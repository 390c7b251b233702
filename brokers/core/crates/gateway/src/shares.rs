//! How the places of connections that have not authenticated are shared out: by cluster first, then
//! by client address.
//!
//! While there are free places anybody gets one, an address up to its share. When all are taken a
//! newcomer takes the place of another connection: the oldest of whoever has most. So a cluster or
//! an address that is attacked, or attacks, has fewer, and no other is kept out. Where nobody has
//! more than the newcomer's own, only a connection that keeps the gateway waiting gives its place
//! up, so that many honest clients at once do not displace each other.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A connection whose client has kept the gateway waiting for this long gives its place up to a
/// client of the same cluster. It is longer than the answers of any honest client take.
const IDLE_TIME: Duration = Duration::from_secs(1);

/// The cluster that a client names; `None` until it has named one.
type NamedCluster = Option<Arc<str>>;
/// The client's address; `None` where there is none to share by.
type SharedAddress = Option<IpAddr>;

/// A connection that has not authenticated.
pub(super) struct Early {
    /// Cancelled when another connection has got its place.
    pub displaced: CancellationToken,
    /// Since when the gateway waits for the client; `None` while it does not.
    waits_since: Mutex<Option<Instant>>,
}

impl Early {
    pub(super) fn new() -> Arc<Self> {
        let waits_since = Mutex::new(Some(Instant::now()));
        Arc::new(Self { displaced: CancellationToken::new(), waits_since })
    }

    /// Notes that the gateway waits for the client now, or does not.
    pub(super) fn set_waiting(&self, waits: bool) {
        *self.waits_since.lock() = waits.then(Instant::now);
    }

    fn is_idle(&self) -> bool {
        self.waits_since.lock().is_some_and(|since| since.elapsed() >= IDLE_TIME)
    }
}

/// Where a connection is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub cluster: NamedCluster,
    pub address: SharedAddress,
    /// In the order in which connections came.
    pub number: u64,
}

/// The connections of an address that name one cluster, oldest first.
type AddressPlaces = BTreeMap<u64, Arc<Early>>;

#[derive(Default)]
struct ClusterPlaces {
    count: usize,
    addresses: BTreeMap<SharedAddress, AddressPlaces>,
}

impl ClusterPlaces {
    /// The address with most connections of this cluster, and how many it has.
    fn heaviest(&self) -> Option<(SharedAddress, usize)> {
        let counts = self.addresses.iter().map(|(address, places)| (*address, places.len()));
        counts.max_by_key(|(_, count)| *count)
    }

    fn count_of(&self, address: SharedAddress) -> usize {
        self.addresses.get(&address).map_or(0, BTreeMap::len)
    }
}

/// The connections that have not authenticated.
#[derive(Default)]
pub(super) struct EarlyPlaces {
    count: usize,
    clusters: BTreeMap<NamedCluster, ClusterPlaces>,
    addresses: BTreeMap<IpAddr, usize>,
}

impl EarlyPlaces {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// How many an address has.
    pub(super) fn of_address(&self, address: IpAddr) -> usize {
        self.addresses.get(&address).copied().unwrap_or(0)
    }

    pub(super) fn insert(&mut self, key: &Key, early: Arc<Early>) {
        let of_cluster = self.clusters.entry(key.cluster.clone()).or_default();
        of_cluster.addresses.entry(key.address).or_default().insert(key.number, early);
        of_cluster.count += 1;
        self.count += 1;
        if let Some(address) = key.address {
            *self.addresses.entry(address).or_default() += 1;
        }
    }

    /// Removes a connection; `None` where it has lost its place before.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Early>> {
        let of_cluster = self.clusters.get_mut(&key.cluster)?;
        let of_address = of_cluster.addresses.get_mut(&key.address)?;
        let early = of_address.remove(&key.number)?;
        of_cluster.count -= 1;
        if of_address.is_empty() {
            of_cluster.addresses.remove(&key.address);
        }
        if of_cluster.count == 0 {
            self.clusters.remove(&key.cluster);
        }
        self.count -= 1;
        if let Some(address) = key.address
            && let Some(count) = self.addresses.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&address);
            }
        }
        Some(early)
    }

    /// Takes the place of another connection for one that names this cluster and has this address.
    /// Returns whether there was one to take.
    pub(super) fn displace(&mut self, cluster: &NamedCluster, address: SharedAddress) -> bool {
        let victim = self.victim(cluster, address);
        self.end(victim)
    }

    /// Takes the place of another connection of the same address; returns whether there was one to
    /// take.
    pub(super) fn displace_of(&mut self, address: IpAddr) -> bool {
        let mut idle = None;
        for (cluster, of_cluster) in &self.clusters {
            let key = |number| Key { cluster: cluster.clone(), address: Some(address), number };
            let places = of_cluster.addresses.get(&Some(address));
            let oldest = places.and_then(oldest_idle).map(key);
            idle = older(idle, oldest);
        }
        self.end(idle)
    }

    fn end(&mut self, victim: Option<Key>) -> bool {
        let ended = victim.and_then(|key| self.remove(&key));
        if let Some(early) = &ended {
            early.displaced.cancel();
        }
        ended.is_some()
    }

    fn victim(&self, cluster: &NamedCluster, address: SharedAddress) -> Option<Key> {
        let most = self.clusters.iter().max_by_key(|(_, of_cluster)| of_cluster.count);
        let (heaviest, of_heaviest) = most?;
        let own = self.clusters.get(cluster);
        if own.map_or(0, |own| own.count) + 1 < of_heaviest.count {
            return of_heaviest
                .heaviest()
                .and_then(|(most, _)| oldest(heaviest, of_heaviest, most));
        }
        if let Some(own) = own
            && let Some((most, count)) = own.heaviest()
            && own.count_of(address) + 1 < count
        {
            return oldest(cluster, own, most);
        }
        let of_own = own.and_then(|own| idle_of(cluster, own));
        of_own.or_else(|| idle_of(heaviest, of_heaviest))
    }
}

/// The oldest connection of an address that names a cluster.
fn oldest(
    cluster: &NamedCluster,
    of_cluster: &ClusterPlaces,
    address: SharedAddress,
) -> Option<Key> {
    let (number, _) = of_cluster.addresses.get(&address)?.first_key_value()?;
    Some(Key { cluster: cluster.clone(), address, number: *number })
}

/// The oldest idle connection that names a cluster.
fn idle_of(cluster: &NamedCluster, of_cluster: &ClusterPlaces) -> Option<Key> {
    let mut idle = None;
    for (address, places) in &of_cluster.addresses {
        let key = |number| Key { cluster: cluster.clone(), address: *address, number };
        idle = older(idle, oldest_idle(places).map(key));
    }
    idle
}

fn oldest_idle(places: &AddressPlaces) -> Option<u64> {
    places.iter().find(|(_, early)| early.is_idle()).map(|(number, _)| *number)
}

fn older(one: Option<Key>, other: Option<Key>) -> Option<Key> {
    one.into_iter().chain(other).min_by_key(|key| key.number)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[derive(Default)]
    struct Fixture {
        places: EarlyPlaces,
        next: u64,
    }

    impl Fixture {
        fn enter(&mut self, cluster: &str, last: u8) -> Arc<Early> {
            self.next += 1;
            let (cluster, address) = named(cluster, last);
            let early = Early::new();
            let key = Key { cluster, address, number: self.next };
            self.places.insert(&key, Arc::clone(&early));
            early
        }

        fn displace(&mut self, cluster: &str, last: u8) -> bool {
            let (cluster, address) = named(cluster, last);
            self.places.displace(&cluster, address)
        }
    }

    fn named(cluster: &str, last: u8) -> (NamedCluster, SharedAddress) {
        let cluster = (!cluster.is_empty()).then(|| cluster.into());
        (cluster, Some(IpAddr::from([192, 0, 2, last])))
    }

    fn displaced(early: &[Arc<Early>]) -> Vec<usize> {
        let ended = early.iter().enumerate().filter(|(_, early)| early.displaced.is_cancelled());
        ended.map(|(index, _)| index).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_most_gives_up_its_oldest() {
        let mut fixture = Fixture::default();
        let attacked: Vec<_> =
            [1, 1, 2, 2, 2].iter().map(|last| fixture.enter("cl_1", *last)).collect();
        let other = fixture.enter("cl_2", 3);
        // For another cluster: of the heaviest address of the heaviest cluster, although all are
        // fresh.
        assert!(fixture.displace("cl_2", 4));
        assert_eq!(displaced(&attacked), [2]);
        // For the same cluster, from an address that has fewer.
        let _newest = fixture.enter("cl_1", 2);
        assert!(fixture.displace("cl_1", 4));
        assert_eq!(displaced(&attacked), [2, 3]);
        assert_eq!(displaced(&[other]), [0; 0]);
        assert_eq!(fixture.places.len(), 5);
        assert_eq!(fixture.places.of_address([192, 0, 2, 2].into()), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn among_equals_only_the_idle_give_up() {
        let mut fixture = Fixture::default();
        let all: Vec<_> = (1..=3).map(|last| fixture.enter("cl_1", last)).collect();
        assert!(!fixture.displace("cl_1", 4), "all have just come");
        all[0].set_waiting(false);
        advance(IDLE_TIME).await;
        all[1].set_waiting(true);
        assert!(fixture.displace("cl_1", 4));
        assert_eq!(displaced(&all), [2], "the first is at work, the second has just answered");
        assert!(!fixture.displace("cl_1", 4));
    }

    #[tokio::test(start_paused = true)]
    async fn who_names_no_cluster_yet_is_a_cluster_of_its_own() {
        let mut fixture = Fixture::default();
        let silent: Vec<_> = (0..4).map(|_| fixture.enter("", 1)).collect();
        assert!(fixture.displace("cl_1", 1));
        assert!(fixture.displace("", 2));
        assert_eq!(displaced(&silent), [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_gives_up_its_own() {
        let mut fixture = Fixture::default();
        let all: Vec<_> =
            ["cl_1", "cl_2", "cl_1"].iter().map(|cluster| fixture.enter(cluster, 1)).collect();
        let other = fixture.enter("cl_1", 2);
        assert!(!fixture.places.displace_of([192, 0, 2, 1].into()));
        advance(IDLE_TIME).await;
        assert!(fixture.places.displace_of([192, 0, 2, 1].into()));
        assert_eq!((displaced(&all), displaced(&[other])), (vec![0], vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_given_back_once() {
        let mut fixture = Fixture::default();
        let (cluster, address) = named("cl_1", 1);
        fixture.enter("cl_1", 1);
        let key = Key { cluster, address, number: 1 };
        assert!(fixture.places.remove(&key).is_some());
        assert!(fixture.places.remove(&key).is_none());
        assert_eq!(fixture.places.len(), 0);
        assert!(fixture.places.clusters.is_empty() && fixture.places.addresses.is_empty());
    }
}
