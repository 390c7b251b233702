//! The rate at which clients change topics, configs, ACLs, users, quotas and groups. It is
//! KIP-599's rate of mutations, but of all clients of a cluster together and of all that can be
//! changed: each change is kept for the audit log, which has room for so many.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::bucket::Bucket;
use crate::dealing::LimitId;
use crate::shares::Shares;
use freshet_metadata::view::MetadataView;

/// Clients may make at once what the rate allows in this many seconds: a tool that sets a whole
/// cluster up makes thousands of changes, and then none for long.
const BURST_S: f64 = 200.0;

/// How much clients have changed lately.
pub struct ChangeMeter {
    view: Arc<MetadataView>,
    shares: Arc<Shares>,
    bucket: Mutex<Option<Arc<Bucket>>>,
}

impl ChangeMeter {
    /// The meter of a broker, with its share of the rate that the cluster's limits say.
    pub fn new(view: Arc<MetadataView>, shares: Arc<Shares>) -> Self {
        Self { view, shares, bucket: Mutex::default() }
    }

    /// The bucket, if anything was ever taken of it.
    pub(crate) fn known_bucket(&self) -> Option<Arc<Bucket>> {
        self.bucket.lock().clone()
    }

    /// The bucket; `None` where nothing bounds the rate.
    fn bucket(&self, now: Instant) -> Option<Arc<Bucket>> {
        let of_cluster = self.view.snapshot().limits.changes_per_second?;
        let rate = of_cluster.max(1) as f64;
        let mut bucket = self.bucket.lock();
        let bucket = bucket.get_or_insert_with(|| {
            let limit = LimitId::of(&[Some("changes_per_second")]);
            let share = self.shares.of_broker(limit);
            Arc::new(Bucket::holding(limit, rate, share, BURST_S, now))
        });
        bucket.set_rate(rate, now);
        Some(Arc::clone(bucket))
    }

    /// Takes as many changes as there is room for. Returns how many may be made.
    pub fn take_up_to(&self, changes: usize) -> usize {
        let now = Instant::now();
        let Some(bucket) = self.bucket(now) else { return changes };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to changes")]
        let taken = bucket.take_up_to(changes as f64, now) as usize;
        taken
    }

    /// Takes changes that are made together or not at all, where there is room for one: what is
    /// owed then is paid before the next one. Returns whether they may be made.
    pub fn take_all(&self, changes: usize) -> bool {
        let now = Instant::now();
        let Some(bucket) = self.bucket(now) else { return true };
        if bucket.take_up_to(1.0, now) < 1.0 {
            return false;
        }
        bucket.take(changes.saturating_sub(1) as f64, now);
        true
    }

    /// How long until there is room for a change.
    pub fn pause(&self) -> Duration {
        let now = Instant::now();
        self.bucket(now).map_or(Duration::ZERO, |bucket| bucket.until(1.0, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_metadata::schema::LimitsRecord;
    use freshet_metadata::{ClusterMetadata, SqliteStore};
    use freshet_world::env::real::{SystemClock, SystemRandomness};

    async fn meter(rate: Option<u64>) -> (ChangeMeter, impl Sized) {
        let store = Arc::new(SqliteStore::in_memory());
        let randomness = Arc::new(SystemRandomness::open().unwrap());
        let metadata = ClusterMetadata::new(store.clone(), Arc::new(SystemClock), randomness);
        let limits = LimitsRecord { changes_per_second: rate, ..LimitsRecord::default() };
        metadata.set_limits(&limits).await.unwrap();
        let (view, follower) = MetadataView::open(store).await.unwrap();
        (ChangeMeter::new(Arc::clone(&view), Arc::new(Shares::new(view))), follower)
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_then_the_rate_holds() {
        let (meter, _follower) = meter(Some(10)).await;
        assert_eq!((meter.take_up_to(1_500), meter.take_up_to(1_500)), (1_500, 500));
        assert_eq!((meter.take_up_to(1), meter.take_all(1)), (0, false));
        assert_eq!(meter.pause(), Duration::from_millis(100));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(meter.take_up_to(100), 10);
        // A change of many things at once is made, and owed for.
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(meter.take_all(101));
        assert_eq!((meter.take_up_to(1), meter.take_all(1)), (0, false));
        assert_eq!(meter.pause(), Duration::from_millis(10_100));
    }

    #[tokio::test]
    async fn without_a_limit_nothing_bounds_the_rate() {
        let (meter, _follower) = meter(None).await;
        assert_eq!(meter.take_up_to(1_000_000), 1_000_000);
        assert!(meter.take_all(1_000_000));
        assert_eq!(meter.pause(), Duration::ZERO);
    }
}
