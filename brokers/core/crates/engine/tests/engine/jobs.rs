//! Retention and sweeping on a whole engine, and which segments retention drops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use freshet_engine::Engine;
use freshet_jobs::retention::{excluded_segments, expired_segments};
use freshet_metadata::schema::{Configs, Exclusion, Retention};
use freshet_metadata::store::ScopedStore;
use freshet_metadata::{ClusterMetadata, SqliteStore};
use freshet_partition::Partition;
use freshet_partition::read::ReadError;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::Segment;
use freshet_storage::names::ManifestRef;
use freshet_storage::names::ObjectRef;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_wire::records::BatchBuilder;
use freshet_world::env::store::ObjectStore;
use freshet_world::env::{Clock, Environment};

use crate::fixture::{Cluster, append, create_topic, open, read_all};
use crate::lane_fixture::{CLUSTER, eventually, partition};

/// A record of about `bytes` bytes with a timestamp.
fn record(timestamp: i64, bytes: usize) -> BatchBuilder {
    BatchBuilder::new(0).record(timestamp, None, Some(&vec![b'x'; bytes]))
}

/// Appends a record and waits until it is split into a segment of its own.
pub async fn segment(engine: &Engine, partition: &Arc<Partition>, timestamp: i64, bytes: usize) {
    append(engine, partition, record(timestamp, bytes)).await;
    engine.lane.roll().await.unwrap();
    eventually("the file is split", async || partition.unsplit_count() == 0).await;
}

fn objects_of(partition: &Partition) -> Vec<String> {
    let named = partition.manifest().segments.iter().map(|segment| segment.object).collect();
    names_of(named)
}

fn names_of(objects: Vec<ObjectRef>) -> Vec<String> {
    let name = |object: ObjectRef| format!("{:020}/{}", object.incarnation.0, object.name());
    let mut names: Vec<String> = objects.into_iter().map(name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn records_go_by_age_with_their_objects_and_manifests() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let now_ms = engine.environment.clock.now_ms();
    let kept_topic = create_topic(&engine, "kept", 1, &[("retention.ms", "-1")]).await;
    let kept = open(&engine, kept_topic, 0);
    segment(&engine, &kept, 1, 10).await;
    let hour = [("retention.ms", "3600000")];
    let topic = create_topic(&engine, "t", 1, &hour).await;
    let partition = open(&engine, topic, 0);
    segment(&engine, &partition, 1, 10).await;
    segment(&engine, &partition, now_ms - 3_700_000, 10).await;
    segment(&engine, &partition, now_ms, 10).await;
    eventually("old segments go", async || partition.bounds().log_start == 2).await;
    assert_eq!(read_all(&partition, 2).await.len(), 1);
    let before = partition.read(1, 1 << 20, true).await;
    assert!(matches!(before, Err(ReadError::OutOfRange(_))));
    eventually("their objects go", async || {
        let mut named = objects_of(&partition);
        named.extend(objects_of(&kept));
        named.sort();
        cluster.objects() == named
    })
    .await;
    eventually("superseded manifests go", async || {
        cluster.manifests(partition.id()).len() == 1 && cluster.manifests(kept.id()).len() == 1
    })
    .await;
    assert_eq!(kept.bounds().log_start, 0);
    drop(engine);
    let engine = cluster.start().await;
    let partition = open(&engine, topic, 0);
    assert_eq!((partition.bounds().log_start, partition.bounds().end), (2, 3));
    assert_eq!(read_all(&partition, 2).await.len(), 1);
}

#[tokio::test]
async fn records_go_by_size() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let configs = [("retention.ms", "-1"), ("retention.bytes", "5000")];
    let topic = create_topic(&engine, "t", 1, &configs).await;
    let partition = open(&engine, topic, 0);
    for _ in 0..6 {
        segment(&engine, &partition, 1, 2000).await;
    }
    // Three segments of about 2,070 bytes: without the oldest less than 5,000 would be left.
    eventually("the oldest go", async || partition.bounds().log_start == 3).await;
    assert_eq!(partition.manifest().segments.len(), 3);
    eventually("their objects go", async || cluster.objects() == objects_of(&partition)).await;
}

/// The offsets that a fetch can read of a partition.
async fn readable(partition: &Partition) -> (i64, usize) {
    let start = partition.bounds().log_start;
    if start > 0 {
        let before = partition.read(start - 1, 1 << 20, true).await;
        assert!(matches!(before, Err(ReadError::OutOfRange(_))));
    }
    (start, read_all(partition, start).await.len())
}

/// A wall clock that a test sets.
struct SetClock(AtomicI64);

impl SetClock {
    fn pass_minutes(&self, minutes: i64) {
        self.0.fetch_add(minutes * 60_000, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A cluster in which no round of retention removes anything, and its clock.
struct Sleeper {
    cluster: Cluster,
    clock: Arc<SetClock>,
}

impl Sleeper {
    fn new() -> Self {
        let mut cluster = Cluster::new();
        cluster.settings.jobs.retention_interval = Duration::from_secs(3600);
        let now_ms = cluster.environment().clock.now_ms();
        Self { cluster, clock: Arc::new(SetClock(now_ms.into())) }
    }

    fn environment(&self) -> Environment {
        Environment { clock: Arc::clone(&self.clock) as Arc<_>, ..self.cluster.environment() }
    }

    async fn store(&self) -> Arc<SqliteStore> {
        let path = self.cluster.folder.path().join(self.cluster.metadata);
        Arc::new(SqliteStore::open(&path).await.unwrap())
    }

    async fn start(&self) -> Arc<Engine> {
        let settings = self.cluster.settings.clone();
        Engine::start(self.environment(), self.store().await, settings).await.unwrap()
    }

    /// Sets `retention.ms` of topics, as the control plane does it.
    async fn set_retention(&self, topics: &[&str], value: &str) {
        let environment = self.environment();
        let store = Arc::new(ScopedStore::new(self.store().await, CLUSTER).unwrap());
        let metadata = ClusterMetadata::new(store, environment.clock, environment.randomness);
        let rule = |configs: &Configs| Retention {
            ms: configs["retention.ms"].parse().ok().filter(|ms| *ms >= 0),
            bytes: None,
        };
        let changes = [("retention.ms".to_owned(), Some(value.to_owned()))].into();
        for topic in topics {
            metadata.set_topic_configs(None, topic, None, &changes, &rule).await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_a_rule_excluded_is_not_read_again_when_a_looser_one_follows() {
    let sleeper = Sleeper::new();
    let engine = sleeper.start().await;
    let mut topics = BTreeMap::new();
    for name in ["asleep", "corrected", "awake"] {
        let topic = create_topic(&engine, name, 1, &[("retention.ms", "-1")]).await;
        let partition = open(&engine, topic, 0);
        let now_ms = sleeper.clock.now_ms();
        segment(&engine, &partition, now_ms - 7_200_000, 10).await;
        segment(&engine, &partition, now_ms, 10).await;
        assert_eq!(readable(&partition).await, (0, 2));
        topics.insert(name, topic);
    }
    sleeper.set_retention(&["awake"], "3600000").await;
    sleeper.clock.pass_minutes(5);
    sleeper.set_retention(&["awake"], "-1").await;
    engine.stop().await;
    drop(engine);
    sleeper.set_retention(&["asleep", "corrected"], "3600000").await;
    sleeper.clock.pass_minutes(4);
    sleeper.set_retention(&["corrected"], "-1").await;
    sleeper.clock.pass_minutes(1);
    sleeper.set_retention(&["asleep"], "-1").await;
    let engine = sleeper.start().await;
    for (name, expected) in [("asleep", (1, 1)), ("corrected", (0, 2)), ("awake", (1, 1))] {
        let partition = open(&engine, topics[name], 0);
        assert_eq!(readable(&partition).await, expected, "{name}");
        let by_time = partition.offset_for_time(0).await.unwrap().unwrap();
        assert_eq!(by_time.offset, expected.0, "{name}");
        assert_eq!(partition.manifest().segments.len(), 2, "{name}: no round was yet");
    }
}

#[tokio::test]
async fn what_expired_while_nobody_saw_it_is_not_read_before_it_is_removed() {
    let sleeper = Sleeper::new();
    let engine = sleeper.start().await;
    let topic = create_topic(&engine, "t", 1, &[("retention.ms", "3600000")]).await;
    let partition = open(&engine, topic, 0);
    segment(&engine, &partition, sleeper.clock.now_ms() - 1_800_000, 10).await;
    segment(&engine, &partition, sleeper.clock.now_ms() + 7_200_000, 10).await;
    assert_eq!(readable(&partition).await, (0, 2));
    engine.metadata.delete_topic(engine.fence(), "t", None, i64::MAX).await.unwrap();
    eventually("clients do not see it", async || !partition.serves_clients()).await;
    sleeper.clock.pass_minutes(60);
    engine.metadata.restore_topic(engine.fence(), topic, None).await.unwrap();
    eventually("clients see it", async || partition.serves_clients()).await;
    assert_eq!(readable(&partition).await, (1, 1));
    engine.stop().await;
    drop((engine, partition));
    let engine = sleeper.start().await;
    assert_eq!(readable(&open(&engine, topic, 0)).await, (1, 1));
}

/// Puts a manifest and an object of a topic that the metadata store does not know.
async fn put_unknown(
    store: &dyn ObjectStore,
    topic: TopicId,
    object: ObjectRef,
) -> (String, String) {
    let id = PartitionId::new(topic, 0);
    let segment = Segment {
        object,
        section_position: 0,
        section_bytes: 0,
        base_offset: 0,
        end_offset: 1,
        first_timestamp: 1,
        max_timestamp: 1,
        bytes: 1,
        written_at_ms: 1,
        compacted: false,
        read: true,
    };
    let name = ManifestRef { epoch: 1, number: 0 };
    let manifest =
        Manifest { name, segments: vec![segment], covered_end: 1, ..Manifest::empty(id) };
    let keys = (Manifest::key(CLUSTER, id, name), object.key(CLUSTER));
    store.put_new(&keys.0, vec![manifest.encode()]).await.unwrap();
    store.put_new(&keys.1, vec![Bytes::from_static(b"records")]).await.unwrap();
    keys
}

#[tokio::test]
async fn a_deleted_topics_objects_go_and_an_unknown_ones_stay() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let store = Arc::clone(&engine.environment.bucket);
    let object = |incarnation, number| ObjectRef { incarnation: Incarnation(incarnation), number };
    let unknown = put_unknown(store.as_ref(), TopicId::from_u128(77), object(1, 900)).await;
    let successors = object(50, 0).key(CLUSTER);
    let orphan = object(1, 901).key(CLUSTER);
    for key in [&successors, &orphan] {
        store.put_new(key, vec![Bytes::from_static(b"x")]).await.unwrap();
    }
    let topic = create_topic(&engine, "gone", 1, &[("retention.ms", "-1")]).await;
    let partition = open(&engine, topic, 0);
    segment(&engine, &partition, 1, 10).await;
    append(&engine, &partition, record(1, 10)).await;
    let objects = objects_of(&partition);
    assert!(cluster.objects().contains(&objects[0]));
    engine.metadata.delete_topic(engine.fence(), "gone", None, 0).await.unwrap();
    eventually("the topic's objects and manifests go", async || {
        let left = cluster.objects();
        cluster.manifests(partition.id()).is_empty() && !left.contains(&objects[0])
    })
    .await;
    assert!(engine.partitions.get(partition.id()).is_none());
    eventually("what nothing names goes", async || store.get(&orphan).await.is_err()).await;
    // The rest of its records in the lane belongs to no partition, and delays no other.
    let other = create_topic(&engine, "other", 1, &[("retention.ms", "-1")]).await;
    segment(&engine, &open(&engine, other, 0), 1, 10).await;
    for key in [&unknown.0, &unknown.1, &successors] {
        store.get(key).await.unwrap();
    }
    drop(engine);
    let engine = cluster.start().await;
    assert_eq!(read_all(&open(&engine, other, 0), 0).await.len(), 1);
}

fn with_segments(segments: &[(i64, u64)]) -> Manifest {
    let of = |(number, (max_timestamp, bytes)): (usize, &(i64, u64))| Segment {
        object: ObjectRef { incarnation: Incarnation(1), number: number as u64 },
        section_position: 0,
        section_bytes: 0,
        base_offset: number as i64,
        end_offset: number as i64 + 1,
        first_timestamp: *max_timestamp,
        max_timestamp: *max_timestamp,
        bytes: *bytes,
        written_at_ms: 500,
        compacted: false,
        read: true,
    };
    let segments = segments.iter().enumerate().map(of).collect();
    Manifest { segments, ..Manifest::empty(partition(0)) }
}

const FOREVER: Retention = Retention { ms: None, bytes: None };

#[test]
fn segments_go_when_their_newest_record_is_too_old() {
    let manifest = with_segments(&[(100, 1), (300, 1), (200, 1)]);
    let expired = |ms, now_ms| expired_segments(&manifest, Retention { ms, ..FOREVER }, now_ms);
    assert_eq!(expired(None, i64::MAX), 0);
    assert_eq!(expired(Some(50), 150), 0, "as old as allowed");
    assert_eq!(expired(Some(50), 151), 1);
    assert_eq!(expired(Some(50), 251), 1, "only from the front: the second is young enough");
    assert_eq!(expired(Some(50), 351), 3);
    assert_eq!(expired(Some(i64::MAX), i64::MIN), 0, "no overflow");
    assert_eq!(expired(Some(0), i64::MAX), 3);
}

#[test]
fn what_an_earlier_rule_excluded_goes_and_what_was_written_later_stays() {
    let mut manifest = with_segments(&[(100, 10), (200, 20), (300, 30), (50, 40)]);
    manifest.segments[3].written_at_ms = 600;
    let excluded = |older_than_ms, bytes| {
        let (since_ms, until_ms) = (0, 600);
        let one = Exclusion { since_ms, until_ms, older_than_ms, bytes, asleep_after: None };
        excluded_segments(&manifest, &one)
    };
    assert_eq!(excluded(None, None), 0);
    assert_eq!(excluded(Some(201), None), 2);
    assert_eq!(excluded(Some(i64::MAX), None), 3, "the fourth was not there yet");
    assert_eq!(excluded(None, Some(50)), 1, "nor do its bytes count");
    assert_eq!(excluded(Some(101), Some(31)), 1);
    assert_eq!(excluded(None, Some(0)), 3);
}

#[test]
fn records_without_a_timestamp_have_the_age_of_their_block() {
    let manifest = with_segments(&[(-1, 10), (100, 10)]);
    let expired =
        |now_ms| expired_segments(&manifest, Retention { ms: Some(50), bytes: None }, now_ms);
    assert_eq!((expired(550), expired(551)), (0, 2));
    assert_eq!(expired_segments(&manifest, Retention { ms: None, bytes: Some(10) }, 0), 1);
}

#[test]
fn segments_go_while_enough_is_left_without_them() {
    let manifest = with_segments(&[(0, 10), (0, 20), (0, 30)]);
    let expired = |bytes| expired_segments(&manifest, Retention { bytes, ..FOREVER }, 0);
    assert_eq!(expired(None), 0);
    assert_eq!(expired(Some(51)), 0);
    assert_eq!(expired(Some(50)), 1);
    assert_eq!(expired(Some(31)), 1);
    assert_eq!(expired(Some(30)), 2);
    assert_eq!(expired(Some(0)), 3);
    assert_eq!(
        expired_segments(&with_segments(&[]), Retention { bytes: Some(0), ..FOREVER }, 0),
        0
    );
}
