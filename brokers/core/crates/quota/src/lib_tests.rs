//! Buckets of a broker, alone and beside others.

use super::*;
use freshet_metadata::schema::{BrokerPlace, LimitsRecord};
use freshet_metadata::{ClusterMetadata, MetadataStore, SqliteStore};
use freshet_wire::ids::Incarnation;
use freshet_world::env::real::{SystemClock, SystemRandomness};
use tokio::task::JoinHandle;

#[tokio::test(start_paused = true)]
async fn however_many_names_clients_choose_there_are_so_many_buckets_and_no_more() {
    let (view, _follower) = MetadataView::open(Arc::new(SqliteStore::in_memory())).await.unwrap();
    let manager = QuotaManager::new(view);
    let bucket = |client_id: &str| {
        let key = BucketKey {
            key: QuotaKey::ProducerByteRate,
            user: None,
            client_id: Some(client_id.to_owned()),
            ip: None,
            payer: None,
        };
        let bucket = manager.bucket(Some((1.0, key))).unwrap();
        // In debt, so that it is needed for long.
        bucket.take(1_000_000.0, Instant::now());
        bucket
    };
    for number in 0..BUCKETS_MAX + 500 {
        bucket(&format!("client-{number}"));
    }
    assert_eq!(manager.buckets.lock().len(), BUCKETS_MAX);
    assert!(Arc::ptr_eq(&bucket("one more"), &bucket("another")), "they share their rate");
    assert_eq!(manager.shared.lock().len(), 1);
    // Those that came before keep what they owe, and room comes back with time.
    assert_eq!(bucket("client-7").debt(Instant::now()), Duration::from_secs(3_600));
    tokio::time::advance(Duration::from_secs(10_000_000)).await;
    assert!(!Arc::ptr_eq(&bucket("one more"), &bucket("another")));
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    assert!(Arc::ptr_eq(&bucket(&long), &bucket(&format!("{long}y"))));
    assert!(manager.buckets.lock().len() < BUCKETS_KEPT);
}

/// A cluster with so many brokers, of which the first one has the manager.
struct Cluster {
    metadata: ClusterMetadata,
    brokers: Vec<Incarnation>,
    manager: Arc<QuotaManager>,
    _following: JoinHandle<()>,
}

const RATE_BYTES: u32 = 100;
const RATE: f64 = RATE_BYTES as f64;

impl Cluster {
    /// Of every user the quotas are `RATE`.
    async fn of(count: u32) -> Self {
        let store: Arc<dyn MetadataStore> = Arc::new(SqliteStore::in_memory());
        let randomness = Arc::new(SystemRandomness::open().unwrap());
        let metadata = ClusterMetadata::new(Arc::clone(&store), Arc::new(SystemClock), randomness);
        let mut brokers = Vec::new();
        for slot in 0..count {
            let incarnation = metadata.next_incarnation().await.unwrap();
            let place = BrokerPlace::default();
            metadata.register_in_slot(incarnation, slot, "", place, None).await.unwrap();
            brokers.push(incarnation);
        }
        let every_user = QuotaEntity([(QuotaEntityType::User, None)].into());
        let values = [(QuotaKey::ProducerByteRate, RATE), (QuotaKey::ConsumerByteRate, RATE)];
        metadata.set_quotas(None, &every_user, &values.into()).await.unwrap();
        let unbilled_bytes_per_second = Some(u64::from(RATE_BYTES));
        let limits = LimitsRecord { unbilled_bytes_per_second, ..LimitsRecord::default() };
        metadata.set_limits(&limits).await.unwrap();
        let (view, follower) = MetadataView::open(store).await.unwrap();
        let following = tokio::spawn(async move { drop(follower.run().await) });
        let manager = Arc::new(QuotaManager::new(view));
        Self { metadata, brokers, manager, _following: following }
    }

    /// The bucket of what a user produces.
    fn produce(&self, user: &str) -> Arc<Bucket> {
        let limits = SessionQuotas::default().limits(&self.manager, user, "").unwrap();
        Arc::clone(limits.produce.as_ref().unwrap())
    }

    /// Ends the broker at this place.
    async fn end(&self, place: usize) {
        self.metadata.mark_fenced(None, self.brokers[place]).await.unwrap();
        // The view knows that too, once it knows what came later.
        let later = QuotaEntity([(QuotaEntityType::ClientId, Some(place.to_string()))].into());
        let values = [(QuotaKey::ProducerByteRate, RATE)].into();
        let revision = self.metadata.set_quotas(None, &later, &values).await.unwrap();
        self.manager.view.wait_for(revision).await.unwrap();
    }
}

/// In how many milliseconds the whole cluster's rate gives what a bucket holds.
fn ms_of(bucket: &Bucket) -> u128 {
    Duration::from_secs_f64(bucket.capacity() / RATE).as_micros().div_ceil(1000)
}

#[tokio::test(start_paused = true)]
async fn a_broker_gives_its_share_and_without_a_controller_as_much_as_the_others() {
    let cluster = Cluster::of(4).await;
    let (alice, bob) = (cluster.produce("alice"), cluster.produce("bob"));
    assert_eq!((ms_of(&alice), ms_of(&bob)), (2_500, 2_500));
    cluster.manager.set_shares(vec![LimitShare { limit: alice.limit(), part: 0.9 }]);
    assert_eq!((ms_of(&alice), ms_of(&bob)), (9_000, 2_500));
    assert_eq!(ms_of(&cluster.produce("alice")), 9_000);
    // The controller is not heard any more, and a broker ends.
    let manager = Arc::clone(&cluster.manager);
    let keeping = tokio::spawn(async move { manager.keep_shares().await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ms_of(&alice), 9_000);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((ms_of(&alice), ms_of(&bob)), (2_500, 2_500));
    cluster.end(3).await;
    cluster.end(2).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ms_of(&alice), 5_000);
    // The last one gives all, whatever was dealt before.
    cluster.manager.set_shares(vec![LimitShare { limit: alice.limit(), part: 0.1 }]);
    cluster.end(1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((ms_of(&alice), ms_of(&bob)), (10_000, 10_000));
    keeping.abort();
}

#[tokio::test(start_paused = true)]
async fn a_report_has_what_was_used_of_each_limit_and_the_most_of_it() {
    let cluster = Cluster::of(2).await;
    cluster.manager.report_use();
    let (alice, idle) = (cluster.produce("alice"), cluster.produce("idle"));
    let mute = Arc::new(Mute::default());
    let unbilled = cluster.manager.unbilled.open(&"User:alice".into(), &mute);
    tokio::time::sleep(Duration::from_secs(2)).await;
    alice.take(RATE, Instant::now());
    unbilled.take(50);
    let uses = cluster.manager.report_use();
    let of = |limit| uses.iter().find(|one| one.limit == limit).copied();
    let expected = LimitUse { limit: alice.limit(), used: 0.5, is_short: false };
    assert_eq!((of(alice.limit()), of(idle.limit())), (Some(expected), None));
    let others: Vec<_> = uses.iter().filter(|one| one.limit != alice.limit()).collect();
    assert!(matches!(others[..], [LimitUse { used: 0.25, .. }]), "{others:?}");
    // Of very many limits those count that somebody is short of.
    for number in 0..2 * REPORTED_MAX {
        cluster.produce(&number.to_string()).take(RATE, Instant::now());
    }
    alice.take(9.0 * RATE, Instant::now());
    let uses = cluster.manager.report_use();
    assert_eq!((uses.len(), uses[0].limit, uses[0].is_short), (REPORTED_MAX, alice.limit(), true));
    assert!(cluster.manager.report_use().iter().all(|one| one.is_short), "the rest was reported");
}

#[tokio::test(start_paused = true)]
async fn with_the_least_share_a_broker_saves_as_much_unbilled_traffic_as_any_other() {
    let cluster = Cluster::of(2).await;
    let limit = LimitId::of(&[Some("unbilled_bytes_per_second")]);
    cluster.manager.set_shares(vec![LimitShare { limit, part: 0.05 }]);
    let mute = Arc::new(Mute::default());
    let account = cluster.manager.unbilled.open(&"User:alice".into(), &mute);
    let savings = 32 * RATE_BYTES as usize;
    assert_eq!(account.take(savings), Duration::ZERO);
    assert!(!account.take(savings).is_zero());
    // The debt is paid at the share, and then a second's worth is there.
    tokio::time::sleep(Duration::from_secs(641)).await;
    assert_eq!(account.take(1), Duration::ZERO);
    assert!(!account.take(10).is_zero());
}
