//! What clients may take of a cluster. See the crate's `README.md`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use freshet_metadata::schema::{QuotaEntity, QuotaEntityType, QuotaKey};
use freshet_metadata::view::{MetadataView, Quotas};

pub mod bucket;
pub mod changes;
pub mod dealing;
pub mod exchange;
pub mod limits;
pub mod shares;
pub mod unbilled;

use bucket::Bucket;
use changes::ChangeMeter;
use dealing::{LimitId, LimitShare, LimitUse, REPORTED_MAX};
use limits::{BucketKey, of_address, of_client, of_payer};
use shares::Shares;
use unbilled::UnbilledMeter;

/// With so many buckets, those that are full and unused are removed before another is added.
const BUCKETS_KEPT: usize = 4096;
/// With so many, in use or in debt, others share buckets by the rate of their quota.
const BUCKETS_MAX: usize = 2 * BUCKETS_KEPT;
/// Clients with longer names share, too.
const NAME_BYTES_MAX: usize = 512;
/// A client that connects too often is kept waiting at most this long before its connection is
/// closed.
const REFUSED_AFTER_MAX: Duration = Duration::from_secs(1);
/// Shares are compared with what holds now so often.
const SHARES_RENEWED_EVERY: Duration = Duration::from_secs(1);
/// What was used is divided by so many seconds at least.
const SECONDS_MIN: f64 = 0.1;

/// The buckets of one client.
#[derive(Debug)]
pub struct ClientLimits {
    /// Bytes of Produce requests.
    pub produce: Option<Arc<Bucket>>,
    /// Bytes of records that are fetched.
    pub fetch: Option<Arc<Bucket>>,
    /// Seconds of a thread.
    pub request: Option<Arc<Bucket>>,
}

impl ClientLimits {
    fn is_unlimited(&self) -> bool {
        self.produce.is_none() && self.fetch.is_none() && self.request.is_none()
    }
}

/// The time until which nothing is read from a connection.
#[derive(Debug)]
pub struct Mute {
    since: Instant,
    /// Microseconds behind `since`.
    until_us: AtomicU64,
}

impl Default for Mute {
    fn default() -> Self {
        Self { since: Instant::now(), until_us: AtomicU64::new(0) }
    }
}

impl Mute {
    /// Mutes the connection for `pause` from now on.
    pub fn pause(&self, pause: Duration) {
        let until = self.since.elapsed().saturating_add(pause).as_micros();
        self.until_us.fetch_max(u64::try_from(until).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    /// Until when it is muted; `None` where that is over.
    pub fn until(&self) -> Option<Instant> {
        let until_us = self.until_us.load(Ordering::Acquire);
        if until_us == 0 {
            return None;
        }
        let until = self.since.checked_add(Duration::from_micros(until_us))?;
        (until > Instant::now()).then_some(until)
    }
}

/// Why a connection is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionRefusal {
    /// The user has as many connections as its quota allows.
    #[error("user {user} has {max} connections, which is its quota")]
    TooMany {
        /// The user.
        user: String,
        /// The quota.
        max: u64,
    },
    /// The address connects too often.
    #[error("{address} connects more often than its quota says")]
    TooOften {
        /// The address.
        address: IpAddr,
        /// How long the client is to be kept waiting.
        pause: Duration,
    },
}

/// The buckets and connections of a broker.
pub struct QuotaManager {
    view: Arc<MetadataView>,
    shares: Arc<Shares>,
    buckets: Mutex<BTreeMap<BucketKey, Arc<Bucket>>>,
    /// What clients share that came when there were too many buckets, or that have long names: one
    /// for each kind of quota and rate.
    shared: Mutex<BTreeMap<(QuotaKey, u64), Arc<Bucket>>>,
    connections: Mutex<BTreeMap<String, u64>>,
    /// What all clients share since the cluster was first throttled.
    of_cluster: Mutex<Option<Arc<Bucket>>>,
    /// What clients take that nobody is billed for.
    pub unbilled: Arc<UnbilledMeter>,
    /// What clients change.
    pub changes: ChangeMeter,
    /// When use was reported last.
    reported_at: Mutex<Instant>,
}

impl QuotaManager {
    /// A manager of the quotas in `view`.
    pub fn new(view: Arc<MetadataView>) -> Self {
        let (buckets, shared) = (Mutex::default(), Mutex::default());
        let (connections, of_cluster) = (Mutex::default(), Mutex::default());
        let shares = Arc::new(Shares::new(Arc::clone(&view)));
        let unbilled = Arc::new(UnbilledMeter::new(Arc::clone(&view), &shares));
        let changes = ChangeMeter::new(Arc::clone(&view), Arc::clone(&shares));
        let reported_at = Mutex::new(Instant::now());
        Self {
            view,
            shares,
            buckets,
            shared,
            connections,
            of_cluster,
            unbilled,
            changes,
            reported_at,
        }
    }

    /// What this broker used of the cluster's limits since the last call: of those of which it used
    /// most.
    pub fn report_use(&self) -> Vec<LimitUse> {
        let now = Instant::now();
        let since = std::mem::replace(&mut *self.reported_at.lock(), now);
        let seconds = now.duration_since(since).as_secs_f64().max(SECONDS_MIN);
        let mut uses: Vec<_> = self.unbilled.take_use(seconds).into_iter().collect();
        self.for_each_bucket(|bucket| uses.push(bucket.take_use(seconds, now)));
        uses.retain(|one| one.used > 0.0 || one.is_short);
        uses.sort_by(|one, other| {
            other.is_short.cmp(&one.is_short).then(other.used.total_cmp(&one.used))
        });
        uses.truncate(REPORTED_MAX);
        uses
    }

    /// Gives what these shares allow from now on, and of all other limits an even share.
    pub fn set_shares(&self, dealt: Vec<LimitShare>) {
        self.shares.set(dealt);
        self.renew_shares();
    }

    /// Keeps shares to those that were dealt lately, and where there are none to the number of
    /// brokers that live. It does not end.
    pub async fn keep_shares(&self) {
        loop {
            self.renew_shares();
            tokio::time::sleep(SHARES_RENEWED_EVERY).await;
        }
    }

    fn renew_shares(&self) {
        let now = Instant::now();
        let shares = self.shares.now();
        self.unbilled.set_share(&shares);
        self.for_each_bucket(|bucket| bucket.set_share(shares.of_broker(bucket.limit()), now));
    }

    fn for_each_bucket(&self, mut work: impl FnMut(&Bucket)) {
        let others = [self.of_cluster.lock().clone(), self.changes.known_bucket()];
        others.iter().flatten().for_each(|bucket| work(bucket));
        self.buckets.lock().values().for_each(|bucket| work(bucket));
        self.shared.lock().values().for_each(|bucket| work(bucket));
    }

    fn bucket(&self, limit: Option<(f64, BucketKey)>) -> Option<Arc<Bucket>> {
        let (rate, key) = limit?;
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        if let Some(bucket) = buckets.get(&key) {
            bucket.set_rate(rate, now);
            return Some(Arc::clone(bucket));
        }
        // Clients choose their client ids, so there may be any number of buckets.
        let is_needed =
            |bucket: &Arc<Bucket>| Arc::strong_count(bucket) > 1 || !bucket.is_full(now);
        if buckets.len() >= BUCKETS_KEPT {
            buckets.retain(|_, bucket| is_needed(bucket));
        }
        if buckets.len() >= BUCKETS_MAX || key.name_bytes() > NAME_BYTES_MAX {
            let mut shared = self.shared.lock();
            shared.retain(|_, bucket| is_needed(bucket));
            let bucket = shared.entry((key.key, rate.to_bits())).or_insert_with(|| {
                let limit =
                    LimitId::of(&[Some("shared"), Some(key.key.name()), Some(&rate.to_string())]);
                Arc::new(self.new_bucket(limit, rate, now))
            });
            return Some(Arc::clone(bucket));
        }
        let bucket = Arc::new(self.new_bucket(key.limit(), rate, now));
        buckets.insert(key, Arc::clone(&bucket));
        Some(bucket)
    }

    fn new_bucket(&self, limit: LimitId, rate: f64, now: Instant) -> Bucket {
        Bucket::new(limit, rate, self.shares.of_broker(limit), now)
    }

    /// The buckets of one client; `limit` finds the quota that applies to it. `None` where no
    /// quota does.
    fn limits(
        &self,
        limit: impl Fn(QuotaKey) -> Option<(f64, BucketKey)>,
    ) -> Option<Arc<ClientLimits>> {
        let percent = limit(QuotaKey::RequestPercentage);
        let limits = ClientLimits {
            produce: self.bucket(limit(QuotaKey::ProducerByteRate)),
            fetch: self.bucket(limit(QuotaKey::ConsumerByteRate)),
            request: self.bucket(percent.map(|(percent, key)| (percent / 100.0, key))),
        };
        (!limits.is_unlimited()).then(|| Arc::new(limits))
    }

    /// The limits of whom the service makes a request for; `None` where no quota applies.
    pub fn limits_of_payer(&self, payer: &str) -> Option<Arc<ClientLimits>> {
        if !self.view.has_quotas() {
            return None;
        }
        let quotas = Arc::clone(&self.view.snapshot().quotas);
        self.limits(|key| of_payer(&quotas, key, payer))
    }

    /// The bucket from which all that clients of this broker produce and fetch is taken while the
    /// cluster is throttled; `None` where it is not.
    pub fn limit_of_cluster(&self) -> Option<Arc<Bucket>> {
        let limit = self.view.traffic_limit();
        let of_all = limit.and_then(|limit| limit.throttle_bytes_per_s())?;
        let (rate, now) = (of_all as f64, Instant::now());
        let mut bucket = self.of_cluster.lock();
        let bucket = bucket.get_or_insert_with(|| {
            Arc::new(self.new_bucket(LimitId::of(&[Some("throttle_bytes_per_s")]), rate, now))
        });
        bucket.set_rate(rate, now);
        Some(Arc::clone(bucket))
    }

    /// Counts a connection of a user from an address, until the guard is dropped.
    ///
    /// # Errors
    /// [`ConnectionRefusal`]; it is not counted then.
    pub fn connect(
        self: &Arc<Self>,
        user: &str,
        address: IpAddr,
        exempt: bool,
    ) -> Result<ConnectionGuard, ConnectionRefusal> {
        let mut connections = self.connections.lock();
        let count = connections.get(user).copied().unwrap_or(0);
        if self.view.has_quotas() && !exempt {
            let quotas = Arc::clone(&self.view.snapshot().quotas);
            if let Some(max) = connections_max(&quotas, user).filter(|max| count >= *max) {
                return Err(ConnectionRefusal::TooMany { user: user.to_owned(), max });
            }
            let key = QuotaKey::ConnectionCreationRate;
            let rate = of_address(&quotas, key, &address.to_string());
            if let Some(bucket) = self.bucket(rate)
                && let Err(pause) = bucket.try_take(1.0, Instant::now())
            {
                let pause = pause.min(REFUSED_AFTER_MAX);
                return Err(ConnectionRefusal::TooOften { address, pause });
            }
        }
        connections.insert(user.to_owned(), count + 1);
        Ok(ConnectionGuard { manager: Arc::clone(self), user: user.to_owned() })
    }
}

/// How many connections a user may have.
fn connections_max(quotas: &Quotas, user: &str) -> Option<u64> {
    let value = [Some(user.to_owned()), None].into_iter().find_map(|name| {
        let entity = QuotaEntity([(QuotaEntityType::User, name)].into());
        quotas.get(&entity)?.get(&QuotaKey::MaxConnections).copied()
    })?;
    // It was checked to be whole and above 0 when it was set.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    Some(value.round() as u64)
}

/// A connection that counts as its user's.
pub struct ConnectionGuard {
    manager: Arc<QuotaManager>,
    user: String,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut connections = self.manager.connections.lock();
        if let Some(count) = connections.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&self.user);
            }
        }
    }
}

/// A connection's cache of the quotas that apply to it.
#[derive(Default)]
pub struct SessionQuotas {
    /// The limits, with the quotas and the client id for which they were looked up.
    known: Option<(Arc<Quotas>, String, Option<Arc<ClientLimits>>)>,
}

impl SessionQuotas {
    /// The limits of a client that is not exempt; `None` where no quota applies.
    pub fn limits(
        &mut self,
        manager: &QuotaManager,
        user: &str,
        client_id: &str,
    ) -> Option<Arc<ClientLimits>> {
        if !manager.view.has_quotas() {
            return None;
        }
        let quotas = Arc::clone(&manager.view.snapshot().quotas);
        if let Some((under, of, limits)) = &self.known
            && Arc::ptr_eq(under, &quotas)
            && of == client_id
        {
            return limits.clone();
        }
        let limits = manager.limits(|key| of_client(&quotas, key, user, client_id));
        self.known = Some((quotas, client_id.to_owned(), limits.clone()));
        limits
    }
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
