//! Topics through `ClusterMetadata`: names, races, and stopping in the middle of anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freshet_metadata::cluster::{NewTopic, PARTITIONS_PER_TOPIC_MAX};
use freshet_metadata::schema::{Configs, Extent, Key, PartitionRecord, Retention, SealedEnd};
use freshet_metadata::{ClusterError, ClusterMetadata, MetadataError, MetadataStore, SqliteStore};
use freshet_wire::ids::{Incarnation, PartitionId};
use tokio::sync::Notify;

use super::fixture::{Hooked, Outcome, broker, metadata, metadata_of, new_topic, on_file};

/// The keys under a prefix, without the note of the last addition, which stays.
async fn keys(metadata: &ClusterMetadata, prefix: &str) -> Vec<String> {
    let page = metadata.store().range(prefix, None, usize::MAX).await.unwrap();
    let keys = page.entries.into_iter().map(|entry| entry.key);
    keys.filter(|key| key != "added/topics").collect()
}

/// How many keys there are under a prefix.
async fn count(metadata: &ClusterMetadata, prefix: &str) -> usize {
    keys(metadata, prefix).await.len()
}

async fn assert_whole(metadata: &ClusterMetadata, name: &str, partitions: i32) {
    let topic = metadata.topic(name).await.unwrap().unwrap().record;
    assert_eq!(topic.partitions, partitions);
    let stored = metadata.partitions_of(topic.id).await.unwrap();
    let indexes: Vec<i32> = stored.iter().map(|(partition, _)| partition.index).collect();
    assert_eq!(indexes, (0..partitions).collect::<Vec<_>>());
}

#[tokio::test]
async fn topic_is_made_with_all_its_partitions() {
    let metadata = metadata();
    let fence = broker(&metadata).await;
    // In one transaction, in one that is just full, and in many.
    for (name, partitions) in [("one", 1), ("full", 97), ("more", 98), ("many", 1234)] {
        let leader = Some(fence.incarnation);
        let new = NewTopic { leaders: leader.into_iter().collect(), ..new_topic(name, partitions) };
        let created = metadata.create_topic(Some(fence), &new).await.unwrap();
        assert_whole(&metadata, name, partitions).await;
        let stored = metadata.topic(name).await.unwrap().unwrap();
        assert_eq!(stored, created);
        assert_eq!(stored.record.configs["retention.ms"], "1000");
        let last = PartitionId::new(created.record.id, partitions - 1);
        let record = metadata.partition(last).await.unwrap().unwrap().record;
        let extent = Extent { epoch: 0, incarnation: fence.incarnation, end: None };
        assert_eq!(
            record,
            PartitionRecord { leader, epoch: 0, extents: vec![extent], manifest: None }
        );
    }
    assert_eq!(metadata.sweep_topics(Some(fence)).await.unwrap(), 0);
}

#[tokio::test]
async fn topic_becomes_visible_after_all_its_partitions() {
    let metadata = metadata();
    let mut watch = metadata.store().watch("", 0).await.unwrap();
    let created = metadata.create_topic(None, &new_topic("t", 1000)).await.unwrap();
    let mut partitions = BTreeMap::new();
    loop {
        let changes = watch.next().await.unwrap();
        for change in &changes {
            if let Some(Key::Partition(partition)) = Key::parse(&change.key).unwrap() {
                partitions.insert(partition.index, change.revision);
            }
        }
        if let Some(topic) = changes.iter().find(|change| change.key == "topic/t") {
            assert_eq!(partitions.len(), 1000);
            assert!(partitions.values().all(|revision| *revision <= topic.revision));
            assert_eq!(topic.revision, created.revision);
            break;
        }
    }
}

#[tokio::test]
async fn bad_topics_are_refused() {
    let metadata = metadata();
    metadata.create_topic(None, &new_topic("a.b", 1)).await.unwrap();
    let create = async |new: NewTopic| metadata.create_topic(None, &new).await.unwrap_err();
    let exists = create(new_topic("a.b", 1)).await;
    assert_eq!(exists, ClusterError::TopicExists("a.b".to_owned()));
    let collision = create(new_topic("a_b", 1)).await;
    assert_eq!(collision.to_string(), "topic 'a_b' collides with existing topic: a.b");
    for partitions in [0, -1, PARTITIONS_PER_TOPIC_MAX + 1, i32::MAX, i32::MIN] {
        let error = create(new_topic("p", partitions)).await;
        assert!(matches!(error, ClusterError::InvalidPartitions(_)), "{error:?}");
    }
    for replication_factor in [0, -1, 4, i16::MAX, i16::MIN] {
        let error = create(NewTopic { replication_factor, ..new_topic("p", 1) }).await;
        assert_eq!(error, ClusterError::InvalidReplicationFactor(replication_factor));
    }
    // Only brokers make topics for their own state, and such topics only.
    for (name, internal) in
        [("__consumer_offsets", false), ("__cluster_metadata", false), ("p", true)]
    {
        let error = create(NewTopic { internal, ..new_topic(name, 1) }).await;
        assert_eq!(error, ClusterError::InternalTopic(name.to_owned()));
    }
    let error = create(new_topic("a/b", 1)).await;
    assert!(matches!(error, ClusterError::InvalidTopicName(_)), "{error:?}");
    let configs = [("x".to_owned(), "y".repeat(1 << 20))].into();
    for partitions in [1, 200] {
        let configs = BTreeMap::clone(&configs);
        let error = create(NewTopic { configs, ..new_topic("p", partitions) }).await;
        assert!(matches!(error, ClusterError::TooLarge { .. }), "{error:?}");
    }
    metadata.check_new_topic(&new_topic("p", 1)).await.unwrap();
    assert_eq!(count(&metadata, "topic/").await, 1);
    assert_eq!(count(&metadata, "partition/").await, 1);
}

#[tokio::test]
async fn of_racing_creators_one_wins() {
    for (first, second, partitions) in
        [("same", "same", 3), ("same", "same", 300), ("a.b", "a_b", 3), ("a.b", "a_b", 300)]
    {
        let handles = on_file().await;
        let create = |store: &Arc<dyn MetadataStore>, name| {
            // The same seed: even the same topic id.
            let metadata = metadata_of(store.clone());
            tokio::spawn(
                async move { metadata.create_topic(None, &new_topic(name, partitions)).await },
            )
        };
        let one = create(&handles.first, first);
        let two = create(&handles.second, second);
        let results = [one.await.unwrap(), two.await.unwrap()];
        let won = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(won, 1, "{results:?}");
        let lost = results.iter().find_map(|result| result.as_ref().err()).unwrap();
        let known =
            matches!(lost, ClusterError::TopicExists(_) | ClusterError::TopicCollision { .. });
        assert!(known, "{lost:?}");
        let metadata = metadata_of(handles.first.clone());
        let name = &results.iter().flatten().next().unwrap().record.name;
        assert_whole(&metadata, name, partitions).await;
        assert_eq!(count(&metadata, "partition/").await, usize::try_from(partitions).unwrap());
        assert_eq!(count(&metadata, "topic").await, 3);
    }
}

#[tokio::test]
async fn deleted_topic_leaves_only_its_mark_and_may_come_back_as_another() {
    let metadata = metadata();
    let mut marks = BTreeSet::new();
    for partitions in [1, 300] {
        let created = metadata.create_topic(None, &new_topic("a.b", partitions)).await.unwrap();
        let id = created.record.id;
        let deleted = metadata.delete_topic(None, "a.b", Some(id), 0).await.unwrap();
        assert_eq!(deleted.record, created.record);
        assert!(deleted.revision > created.revision);
        marks.insert(Key::DeletedTopic(id).to_string());
        assert_eq!(keys(&metadata, "").await, Vec::from_iter(marks.clone()));
        // The colliding name is free now.
        let again = metadata.create_topic(None, &new_topic("a_b", 1)).await.unwrap();
        assert_ne!(again.record.id, created.record.id);
        let stale = metadata.delete_topic(None, "a_b", Some(created.record.id), 0).await;
        assert_eq!(stale, Err(ClusterError::UnknownTopic("a_b".to_owned())));
        metadata.delete_topic(None, "a_b", None, 0).await.unwrap();
        marks.insert(Key::DeletedTopic(again.record.id).to_string());
    }
    let gone = metadata.delete_topic(None, "a.b", None, 0).await;
    assert_eq!(gone, Err(ClusterError::UnknownTopic("a.b".to_owned())));
}

#[tokio::test]
async fn partitions_are_added_and_never_removed() {
    let metadata = metadata();
    let created = metadata.create_topic(None, &new_topic("t", 3)).await.unwrap();
    for (total, leader) in [(4, None), (250, Some(Incarnation(9)))] {
        let grown = metadata.create_partitions(None, "t", total, leader.as_slice()).await.unwrap();
        assert!(grown.revision > created.revision);
        assert_whole(&metadata, "t", total).await;
        let last = PartitionId::new(created.record.id, total - 1);
        assert_eq!(metadata.partition(last).await.unwrap().unwrap().record.leader, leader);
    }
    for total in [250, 249, 0, -1, PARTITIONS_PER_TOPIC_MAX + 1] {
        let error = metadata.create_partitions(None, "t", total, &[]).await.unwrap_err();
        assert!(matches!(error, ClusterError::InvalidPartitions(_)), "{error:?}");
    }
    let unknown = metadata.create_partitions(None, "u", 5, &[]).await;
    assert_eq!(unknown, Err(ClusterError::UnknownTopic("u".to_owned())));
}

#[tokio::test]
async fn racing_growth_of_a_topic_ends_whole() {
    let handles = on_file().await;
    let metadata = metadata_of(handles.first.clone());
    metadata.create_topic(None, &new_topic("t", 1)).await.unwrap();
    let grow = |store: &Arc<dyn MetadataStore>, total| {
        let metadata = metadata_of(store.clone());
        tokio::spawn(async move { metadata.create_partitions(None, "t", total, &[]).await })
    };
    let results =
        [grow(&handles.first, 220).await.unwrap(), grow(&handles.second, 330).await.unwrap()];
    assert!(results[1].is_ok(), "{results:?}");
    assert_whole(&metadata, "t", 330).await;
}

#[tokio::test]
async fn configs_are_merged_and_reset() {
    let metadata = metadata();
    let created = metadata.create_topic(None, &new_topic("t", 1)).await.unwrap();
    let set =
        |name: &str, value: Option<&str>| [(name.to_owned(), value.map(str::to_owned))].into();
    let compact = set("cleanup.policy", Some("compact"));
    let changed = metadata
        .set_topic_configs(None, "t", None, &compact, &|_| Retention::default())
        .await
        .unwrap();
    assert_eq!(changed.record.configs.len(), 2);
    // Worked out from what is no longer there.
    let stale = metadata
        .set_topic_configs(None, "t", Some(created.revision), &compact, &|_| Retention::default())
        .await;
    assert_eq!(stale, Err(ClusterError::Contended("topic/t".to_owned())));
    let reset = set("retention.ms", None);
    let fresh = Some(changed.revision);
    let changed = metadata
        .set_topic_configs(None, "t", fresh, &reset, &|_| Retention::default())
        .await
        .unwrap();
    assert_eq!(
        changed.record.configs,
        [("cleanup.policy".to_owned(), "compact".to_owned())].into()
    );
    let same = metadata
        .set_topic_configs(None, "t", None, &reset, &|_| Retention::default())
        .await
        .unwrap();
    assert_eq!(same, changed);
    let unknown =
        metadata.set_topic_configs(None, "u", None, &reset, &|_| Retention::default()).await;
    assert_eq!(unknown, Err(ClusterError::UnknownTopic("u".to_owned())));
}

#[tokio::test]
async fn a_change_of_retention_says_what_was_excluded_and_whether_a_broker_ran() {
    let metadata = metadata();
    let created = metadata.create_topic(None, &new_topic("t", 1)).await.unwrap();
    let rule =
        |configs: &Configs| Retention { ms: configs["retention.ms"].parse().ok(), bytes: None };
    let set = async |name: &str, value: &str| {
        let changes = [(name.to_owned(), Some(value.to_owned()))].into();
        metadata.set_topic_configs(None, "t", None, &changes, &rule).await.unwrap().record.retention
    };
    assert_eq!(set("max.message.bytes", "2000").await, None, "the rule is the same");
    let fence = broker(&metadata).await;
    let awake = set("retention.ms", "500").await.unwrap();
    assert_eq!(awake.before, Retention { ms: Some(1000), bytes: None });
    let [excluded] = awake.excluded[..] else { panic!("{awake:?}") };
    assert_eq!(excluded.since_ms, created.record.created_at_ms);
    assert_eq!(excluded.older_than_ms, Some(awake.since_ms - 1000));
    assert_eq!(excluded.asleep_after, None);
    metadata.close_incarnation(fence, SealedEnd { file: 0, sequence: 1 }).await.unwrap();
    let asleep = set("retention.ms", "2000").await.unwrap();
    let last = asleep.excluded.last().unwrap();
    assert_eq!(last.asleep_after, Some(fence.incarnation));
}

/// What a test does, on a topic of 300 partitions that exists or not.
#[derive(Debug, Clone, Copy)]
enum Work {
    Create,
    Grow,
    Delete,
}

impl Work {
    async fn run(self, metadata: &ClusterMetadata) -> Result<(), ClusterError> {
        match self {
            Self::Create => metadata.create_topic(None, &new_topic("t", 300)).await.map(drop),
            Self::Grow => metadata.create_partitions(None, "t", 600, &[]).await.map(drop),
            Self::Delete => metadata.delete_topic(None, "t", None, 0).await.map(drop),
        }
    }
}

/// Stops `work` at its transaction number `stop` and every one after it, or loses the answer of
/// that one and stops then. Returns the result, or none where the work has fewer transactions.
async fn stopped(
    work: Work,
    store: &Arc<dyn MetadataStore>,
    stop: usize,
    lose: bool,
) -> Option<Result<(), ClusterError>> {
    let hooked = Hooked::new(store.clone(), move |commit| async move {
        match commit {
            commit if commit < stop => Outcome::Commit,
            commit if commit == stop && lose => Outcome::Lose,
            _ => Outcome::Refuse,
        }
    });
    let result = work.run(&metadata_of(hooked.clone())).await;
    (hooked.commits() > stop).then_some(result)
}

#[tokio::test]
async fn work_that_stops_anywhere_is_done_or_not_and_swept() {
    for work in [Work::Create, Work::Grow, Work::Delete] {
        for lose in [false, true] {
            let mut stop = 0;
            loop {
                let store: Arc<dyn MetadataStore> = Arc::new(SqliteStore::in_memory());
                let metadata = metadata_of(store.clone());
                if !matches!(work, Work::Create) {
                    metadata.create_topic(None, &new_topic("t", 300)).await.unwrap();
                }
                let before = metadata.topic("t").await.unwrap();
                let Some(result) = stopped(work, &store, stop, lose).await else { break };
                let after = metadata.topic("t").await.unwrap();
                let done = after != before;
                let unknown = matches!(result, Err(ClusterError::Store(MetadataError::Unknown(_))));
                assert!(unknown || done == result.is_ok(), "{work:?} {stop} {lose}: {result:?}");
                assert_clean_after_sweep(&metadata).await;
                // Nothing is in the way of the next attempt.
                match (work, done) {
                    (Work::Grow, false) => work.run(&metadata).await.unwrap(),
                    (Work::Create, false) | (Work::Delete, true) => {
                        Work::Create.run(&metadata).await.unwrap();
                    }
                    (Work::Create | Work::Grow, true) | (Work::Delete, false) => {
                        Work::Delete.run(&metadata).await.unwrap();
                    }
                }
                assert_clean_after_sweep(&metadata).await;
                stop += 1;
            }
            assert!(stop > 3, "{work:?} takes {stop} transactions");
        }
    }
}

/// After a sweep there is the topic with all that belongs to it, or nothing. (Partitions beyond a
/// topic's number may be left by a growth that stopped: the next growth takes them.)
async fn assert_clean_after_sweep(metadata: &ClusterMetadata) {
    metadata.sweep_topics(None).await.unwrap();
    match metadata.topic("t").await.unwrap() {
        None => assert_eq!(keys(metadata, "").await, keys(metadata, "deleted_topic/").await),
        Some(topic) => {
            assert_eq!(count(metadata, "topic").await, 3);
            let partitions = metadata.partitions_of(topic.record.id).await.unwrap();
            let indexes: Vec<i32> = partitions.iter().map(|(id, _)| id.index).collect();
            let least = usize::try_from(topic.record.partitions).unwrap();
            assert!(indexes.len() >= least);
            assert_eq!(indexes, (0..i32::try_from(indexes.len()).unwrap()).collect::<Vec<_>>());
            assert_eq!(count(metadata, "partition/").await, indexes.len());
        }
    }
}

#[tokio::test]
async fn growth_over_the_rest_of_an_earlier_one_raises_its_epochs() {
    let store: Arc<dyn MetadataStore> = Arc::new(SqliteStore::in_memory());
    let metadata = metadata_of(store.clone());
    let created = metadata.create_topic(None, &new_topic("t", 300)).await.unwrap();
    stopped(Work::Grow, &store, 1, false).await.unwrap().unwrap_err();
    let left = metadata.partitions_of(created.record.id).await.unwrap().len();
    assert_eq!(left, 400);
    metadata.create_partitions(None, "t", 401, &[]).await.unwrap();
    assert_whole(&metadata, "t", 401).await;
    for (index, epoch) in [(299, 0), (300, 1), (399, 1), (400, 0)] {
        let partition = PartitionId::new(created.record.id, index);
        let record = metadata.partition(partition).await.unwrap().unwrap().record;
        assert_eq!(record.epoch, epoch, "partition {index}");
    }
}

#[tokio::test]
async fn sweep_in_the_middle_makes_a_creation_begin_anew() {
    // The sweep comes before the second, third, … transaction of the creation.
    for moment in 1..5 {
        let store: Arc<dyn MetadataStore> = Arc::new(SqliteStore::in_memory());
        let sweeper = metadata_of(store.clone());
        let hooked = Hooked::new(store.clone(), move |commit| {
            let sweeper = sweeper.clone();
            async move {
                if commit == moment {
                    assert_eq!(sweeper.sweep_topics(None).await.unwrap(), 1);
                }
                Outcome::Commit
            }
        });
        let metadata = metadata_of(hooked);
        metadata.create_topic(None, &new_topic("t", 300)).await.unwrap();
        assert_whole(&metadata, "t", 300).await;
        assert_eq!(count(&metadata, "partition/").await, 300);
        assert_eq!(count(&metadata, "topic").await, 3);
    }
}

#[tokio::test]
async fn creation_that_ends_in_the_middle_of_a_sweep_stays_whole() {
    let store: Arc<dyn MetadataStore> = Arc::new(SqliteStore::in_memory());
    let begun = Arc::new(Notify::new());
    let created = Arc::new(Notify::new());
    // The creation waits before its third transaction until the sweep has read it; the sweep
    // waits before its second until the creation is done.
    let (creation_begun, seen_by_sweep) = (begun.clone(), Arc::new(Notify::new()));
    let (sweep_reads, creation_done) = (seen_by_sweep.clone(), created.clone());
    let creation = Hooked::new(store.clone(), move |commit| {
        let (begun, seen_by_sweep) = (begun.clone(), seen_by_sweep.clone());
        async move {
            if commit == 2 {
                begun.notify_one();
                seen_by_sweep.notified().await;
            }
            Outcome::Commit
        }
    });
    let sweep = Hooked::new(store.clone(), move |commit| {
        let (sweep_reads, creation_done) = (sweep_reads.clone(), creation_done.clone());
        async move {
            if commit == 1 {
                sweep_reads.notify_one();
                creation_done.notified().await;
            }
            Outcome::Commit
        }
    });
    let creating = async {
        metadata_of(creation).create_topic(None, &new_topic("t", 300)).await.unwrap();
        created.notify_one();
    };
    let sweeping = async {
        creation_begun.notified().await;
        metadata_of(sweep).sweep_topics(None).await.unwrap()
    };
    let ((), swept) = tokio::join!(creating, sweeping);
    assert_eq!(swept, 1);
    let metadata = metadata_of(store);
    assert_whole(&metadata, "t", 300).await;
    assert_eq!(count(&metadata, "partition/").await, 300);
    assert_eq!(count(&metadata, "topic").await, 3);
}
