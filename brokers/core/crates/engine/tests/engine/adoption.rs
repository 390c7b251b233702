//! Several engines of one cluster on a real folder: survivors take over what one led that ended,
//! and a live one hands over what it leads.

use std::collections::BTreeSet;
use std::sync::Arc;

use freshet_coordinator::group::OffsetFetchRequest;
use freshet_engine::{Engine, EngineSettings, StartError};
use freshet_metadata::cluster::{ClusterError, ClusterMetadata, NewTopic};
use freshet_metadata::names::OFFSETS_TOPIC;
use freshet_metadata::{MetadataStore, ScopedStore, SqliteStore};
use freshet_partition::Partition;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_wire::records::{BatchBuilder, BatchHeader, ValidatedBatch};
use kafka_protocol::ResponseError;

use crate::fixture::{Cluster, append, create_topic, new_topic, open, read_all};
use crate::lane_fixture::{eventually, produced};

const PARTITIONS: i32 = 4;
const FOREVER: &[(&str, &str)] = &[("retention.ms", "-1")];
const SOME_TIME_MS: i64 = 1_700_000_000_000;

/// A cluster of three slots in which every engine has one.
struct Brokers {
    cluster: Cluster,
}

impl Brokers {
    async fn new() -> Self {
        let cluster = Cluster::new();
        let first = cluster.start().await;
        first.metadata.set_scale(3).await.unwrap();
        first.stop().await;
        Self { cluster }
    }

    async fn start(&self, slot: u32) -> Arc<Engine> {
        let file = self.cluster.folder.path().join(self.cluster.metadata);
        let store = SqliteStore::open(&file).await.unwrap();
        let settings = EngineSettings { slot, ..self.cluster.settings.clone() };
        Engine::start(self.cluster.environment(), Arc::new(store), settings).await.unwrap()
    }

    /// Whether the lane of an engine has files of records.
    fn has_lane(&self, incarnation: Incarnation) -> bool {
        !self.cluster.lane_files(incarnation.0, ".wal").is_empty()
    }
}

/// The `number`th batch of a partition's producer: three records.
fn batch(index: i32, number: i32) -> BatchBuilder {
    let at_ms = SOME_TIME_MS + i64::from(number);
    produced((i64::from(index), 0), number * 3, at_ms, 3)
}

async fn append_batches(engine: &Engine, topic: TopicId, index: i32, count: std::ops::Range<i32>) {
    let partition = open(engine, topic, index);
    for number in count {
        let offset = append(engine, &partition, batch(index, number)).await;
        assert_eq!(offset, i64::from(number) * 3);
    }
}

async fn assert_holds(partition: &Partition, index: i32, batches: i32) {
    let records = read_all(partition, 0).await;
    let held: Vec<_> = records.into_iter().map(|(offset, _, value)| (offset, value)).collect();
    let written = (0..batches * 3).map(|number| (i64::from(number), format!("{index}/{number}")));
    assert_eq!(held, written.collect::<Vec<_>>());
}

fn dead(engines: &[&Engine]) -> BTreeSet<Incarnation> {
    engines.iter().map(|engine| engine.incarnation).collect()
}

/// The partitions of a topic that an engine serves.
fn leads(engine: &Engine, topic: TopicId) -> Vec<i32> {
    let indexes = 0..PARTITIONS;
    indexes.filter(|index| engine.partitions.serves(PartitionId::new(topic, *index))).collect()
}

/// Whether everybody sees who leads each partition of a topic, so that nobody opens it twice.
async fn assert_leaders(engines: &[&Engine], topic: TopicId, leaders: &[Incarnation]) {
    for engine in engines {
        eventually("the image shows the leaders", async || {
            let snapshot = engine.view.snapshot();
            let partitions = &snapshot.topics.by_id(topic).unwrap().partitions;
            partitions.iter().map(|it| it.record.leader).eq(leaders.iter().copied().map(Some))
        })
        .await;
    }
}

#[tokio::test]
async fn brokers_of_other_slots_keep_what_they_lead() {
    let brokers = Brokers::new().await;
    let first = brokers.start(0).await;
    let topic = create_topic(&first, "t", PARTITIONS, FOREVER).await;
    append_batches(&first, topic, 0, 0..5).await;
    let second = brokers.start(1).await;
    assert_eq!(leads(&second, topic), Vec::<i32>::new());
    append_batches(&first, topic, 0, 5..10).await;
    let own = create_topic(&second, "u", 1, FOREVER).await;
    append_batches(&second, own, 0, 0..5).await;
    // One that is started again takes over from itself alone.
    drop(first);
    let again = brokers.start(0).await;
    assert_eq!((leads(&again, topic), leads(&again, own)), (vec![0, 1, 2, 3], vec![]));
    assert_holds(&open(&again, topic, 0), 0, 10).await;
    append_batches(&second, own, 0, 5..10).await;
    assert_holds(&open(&second, own, 0), 0, 10).await;
    again.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn survivors_share_what_a_broker_led_and_lose_nothing() {
    let brokers = Brokers::new().await;
    let first = brokers.start(0).await;
    let zombie = brokers.start(1).await;
    let third = brokers.start(2).await;
    let topic = create_topic(&zombie, "t", PARTITIONS, FOREVER).await;
    for index in 0..PARTITIONS {
        append_batches(&zombie, topic, index, 0..20).await;
    }
    // It goes on for as long as it can; nothing of that is acknowledged.
    let stuck = open(&zombie, topic, 0);
    let of_zombie = dead(&[&zombie]);
    let (one, other) = tokio::join!(
        first.adopt(&of_zombie, |id| id.index < 2),
        third.adopt(&of_zombie, |id| id.index >= 2)
    );
    one.unwrap();
    other.unwrap();
    let late = ValidatedBatch::trusted(batch(0, 20).build()).unwrap();
    if let Ok(staged) = stuck.stage(&zombie.lane, late, &"User:alice".into(), 0) {
        assert!(Partition::durable(&stuck, staged.end_offset).await.is_err());
    }
    assert_eq!((leads(&first, topic), leads(&third, topic)), (vec![0, 1], vec![2, 3]));
    let (a, c) = (first.incarnation, third.incarnation);
    assert_leaders(&[&first, &third], topic, &[a, a, c, c]).await;
    for index in 0..PARTITIONS {
        let leader = if index < 2 { &first } else { &third };
        assert_holds(&open(leader, topic, index), index, 20).await;
        append_batches(leader, topic, index, 19..40).await;
    }
    // Another one ends: what it had adopted is in its own lane and in objects by now, or in the
    // lane that it inherited.
    drop(first);
    third.adopt(&BTreeSet::from([a]), |_| true).await.unwrap();
    assert_eq!(leads(&third, topic), [0, 1, 2, 3]);
    for index in 0..PARTITIONS {
        assert_holds(&open(&third, topic, index), index, 40).await;
        append_batches(&third, topic, index, 39..60).await;
    }
    // Once nobody needs what is in their lanes, those go.
    eventually("the dead lanes are retired", async || {
        third.lane.roll().await.unwrap();
        append_batches(&third, topic, 0, 59..60).await;
        !brokers.has_lane(zombie.incarnation) && !brokers.has_lane(a)
    })
    .await;
    third.stop().await;
    let again = brokers.start(1).await;
    for index in 0..PARTITIONS {
        assert_holds(&open(&again, topic, index), index, 60).await;
    }
    again.stop().await;
}

#[tokio::test]
async fn a_lane_stays_while_a_partition_of_another_broker_needs_it() {
    let brokers = Brokers::new().await;
    let first = brokers.start(0).await;
    let lost = brokers.start(1).await;
    let third = brokers.start(2).await;
    let topic = create_topic(&lost, "t", PARTITIONS, FOREVER).await;
    for index in 0..PARTITIONS {
        append_batches(&lost, topic, index, 0..10).await;
    }
    let of_lost = dead(&[&lost]);
    drop(lost);
    let lane = *of_lost.first().unwrap();
    first.adopt(&of_lost, |id| id.index == 0).await.unwrap();
    eventually("the first survivor has settled its own", async || {
        append_batches(&first, topic, 0, 9..10).await;
        first.lane.roll().await.unwrap();
        let partition = open(&first, topic, 0);
        let shown = first.view.topics();
        let record = &shown.partition(partition.id()).unwrap().record;
        record.extents.len() == 1 && partition.unsplit_count() == 0
    })
    .await;
    assert!(brokers.has_lane(lane));
    third.adopt(&of_lost, |id| id.index > 0).await.unwrap();
    for index in 1..PARTITIONS {
        assert_holds(&open(&third, topic, index), index, 10).await;
    }
    first.stop().await;
    third.stop().await;
}

#[tokio::test]
async fn an_adopted_topic_is_closed_where_it_is_deleted() {
    let brokers = Brokers::new().await;
    let (first, lost) = (brokers.start(0).await, brokers.start(1).await);
    let topic = create_topic(&lost, "t", PARTITIONS, FOREVER).await;
    append_batches(&lost, topic, 0, 0..5).await;
    let of_lost = dead(&[&lost]);
    drop(lost);
    first.adopt(&of_lost, |_| true).await.unwrap();
    assert_eq!(leads(&first, topic), [0, 1, 2, 3]);
    first.metadata.delete_topic(first.fence(), "t", None, 0).await.unwrap();
    eventually("it is closed", async || leads(&first, topic).is_empty()).await;
    first.stop().await;
}

/// Waits until an engine leads exactly these partitions.
async fn assert_leads(engine: &Engine, topic: TopicId, indexes: &[i32]) {
    eventually("the partitions are led", async || leads(engine, topic) == indexes).await;
}

#[tokio::test]
async fn partitions_that_are_handed_over_there_and_back_keep_all_records() {
    let brokers = Brokers::new().await;
    let (first, second) = (brokers.start(0).await, brokers.start(1).await);
    let topic = create_topic(&first, "t", PARTITIONS, FOREVER).await;
    for index in 0..2 {
        append_batches(&first, topic, index, 0..10).await;
    }
    let ids: Vec<_> = (0..3).map(|index| PartitionId::new(topic, index)).collect();
    let old = open(&first, topic, 0);
    assert_eq!(first.hand_over(&ids, second.incarnation).await.unwrap(), ids);
    assert_leads(&first, topic, &[3]).await;
    assert_leads(&second, topic, &[0, 1, 2]).await;
    // Who still has the partition is refused.
    let late = ValidatedBatch::trusted(batch(0, 10).build()).unwrap();
    let refused = old.stage(&first.lane, late, &"User:alice".into(), 0).unwrap_err();
    assert_eq!(refused, ResponseError::NotLeaderOrFollower);
    // So is the batch behind it, which is out of order only because of that.
    let next = BatchHeader::parse(&batch(0, 11).build()).unwrap();
    let foreseen = old.foresee(&next).unwrap().unwrap_err();
    assert_eq!(foreseen, ResponseError::NotLeaderOrFollower);
    for index in 0..3 {
        // The first of these is a retry, which the successor knows.
        let begun = if index == 2 { 0 } else { 9 };
        append_batches(&second, topic, index, begun..20).await;
        assert_holds(&open(&second, topic, index), index, 20).await;
    }
    assert_eq!(second.hand_over(&ids[..1], first.incarnation).await.unwrap(), ids[..1]);
    assert_leads(&first, topic, &[0, 3]).await;
    append_batches(&first, topic, 0, 19..30).await;
    // Both ways a takeover finds the manifest: by the record, or by the leader's lane.
    let of_second = dead(&[&second]);
    drop(second);
    first.adopt(&of_second, |_| true).await.unwrap();
    for (index, batches) in [(0, 30), (1, 20), (2, 20)] {
        assert_holds(&open(&first, topic, index), index, batches).await;
    }
    drop(first);
    let again = brokers.start(0).await;
    for (index, batches) in [(0, 30), (1, 20), (2, 20)] {
        assert_holds(&open(&again, topic, index), index, batches).await;
    }
    again.stop().await;
}

#[tokio::test]
async fn a_hand_over_waits_until_what_was_just_created_is_open() {
    let brokers = Brokers::new().await;
    let (first, second) = (brokers.start(0).await, brokers.start(1).await);
    for number in 0..5 {
        let topic = new_topic(&first, &format!("t{number}"), 2, FOREVER);
        let topic = first.metadata.create_topic(first.fence(), &topic).await.unwrap().record.id;
        let ids = [PartitionId::new(topic, 0), PartitionId::new(topic, 1)];
        assert_eq!(first.hand_over(&ids, second.incarnation).await.unwrap(), ids);
    }
}

#[tokio::test]
async fn metadata_from_a_backup_loses_nothing_that_was_handed_over_since() {
    let mut brokers = Brokers::new().await;
    let (first, second) = (brokers.start(0).await, brokers.start(1).await);
    let topic = create_topic(&first, "t", 1, FOREVER).await;
    brokers.cluster.back_up("backup.sqlite").await;
    append_batches(&first, topic, 0, 0..10).await;
    let ids = [PartitionId::new(topic, 0)];
    assert_eq!(first.hand_over(&ids, second.incarnation).await.unwrap(), ids);
    assert_leads(&second, topic, &[0]).await;
    // The first one's lane goes on, until none of its files names the partition.
    let other = create_topic(&first, "u", 1, FOREVER).await;
    for number in 0..3 {
        append_batches(&first, other, 0, number..number + 1).await;
        first.lane.roll().await.unwrap();
    }
    first.stop().await;
    drop((first, second));
    // As `docs/how-to/back-up.md` says: one broker takes all over first.
    brokers.cluster.metadata = "backup.sqlite";
    let file = brokers.cluster.folder.path().join(brokers.cluster.metadata);
    let store: Arc<dyn MetadataStore> = Arc::new(SqliteStore::open(&file).await.unwrap());
    let environment = brokers.cluster.environment();
    let (clock, randomness) = (environment.clock, environment.randomness);
    let scoped = Arc::new(ScopedStore::new(store, &brokers.cluster.settings.cluster).unwrap());
    ClusterMetadata::new(scoped, clock, randomness).set_scale(1).await.unwrap();
    let again = brokers.start(0).await;
    assert_holds(&open(&again, topic, 0), 0, 10).await;
    again.stop().await;
}

#[tokio::test]
async fn brokers_that_start_at_once_do_not_end_each_other() {
    let brokers = Brokers::new().await;
    for _ in 0..20 {
        let (first, second, third) =
            tokio::join!(brokers.start(0), brokers.start(1), brokers.start(2));
        for engine in [&first, &second, &third] {
            assert_eq!(engine.fresh().await, Ok(()), "{:?}", engine.liveness.reason());
        }
    }
}

#[tokio::test]
async fn who_handed_a_coordinator_over_answers_for_its_groups_no_more() {
    let brokers = Brokers::new().await;
    let (first, second) = (brokers.start(0).await, brokers.start(1).await);
    let third = brokers.start(2).await;
    let new = NewTopic {
        name: OFFSETS_TOPIC.to_owned(),
        partitions: 1,
        replication_factor: 1,
        internal: true,
        configs: [("cleanup.policy".to_owned(), "compact".to_owned())].into(),
        leaders: vec![first.incarnation],
    };
    let made = first.metadata.create_topic(first.fence(), &new).await.unwrap();
    let offsets = PartitionId::new(made.record.id, 0);
    first.wait_open(offsets.topic, 1).await;
    let of_first = dead(&[&first]);
    drop(first);
    second.adopt(&of_first, |_| true).await.unwrap();
    // At once: what it adopted is being loaded.
    let given = second.hand_over(&[offsets], third.incarnation).await.unwrap();
    assert_eq!(given, [offsets]);
    let fetch = async |engine: &Engine| {
        let (topics, require_stable) = (None, false);
        let request = OffsetFetchRequest { group_id: "g".to_owned(), topics, require_stable };
        engine.groups.fetch_offsets(request).await
    };
    eventually("the successor has loaded it", async || fetch(&third).await.is_ok()).await;
    assert_eq!(fetch(&second).await.unwrap_err(), ResponseError::NotCoordinator);
}

#[tokio::test]
async fn nothing_is_handed_to_a_broker_that_has_ended() {
    let brokers = Brokers::new().await;
    let (first, second) = (brokers.start(0).await, brokers.start(1).await);
    let topic = create_topic(&first, "t", PARTITIONS, FOREVER).await;
    append_batches(&first, topic, 0, 0..10).await;
    second.stop().await;
    let ids = [PartitionId::new(topic, 0), PartitionId::new(topic, 1)];
    let refused = first.hand_over(&ids, second.incarnation).await;
    assert!(matches!(
        refused,
        Err(StartError::Metadata(ClusterError::Fenced(ended))) if ended == second.incarnation
    ));
    // It goes on as before.
    append_batches(&first, topic, 0, 9..20).await;
    assert_holds(&open(&first, topic, 0), 0, 20).await;
    first.stop().await;
}
