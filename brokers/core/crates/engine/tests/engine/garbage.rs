//! Garbage: what ended incarnations leave behind is removed, and nothing that anybody may still
//! need.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use freshet_engine::Engine;
use freshet_inspect::usage_reader::UsageReader;
use freshet_jobs::garbage::DELETED_TOPIC_KEPT_MS;
use freshet_metadata::schema::{DeletedTopicRecord, Key, encode};
use freshet_metadata::store::Transaction;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::lane::LanePaths;
use freshet_storage::names::ManifestRef;
use freshet_storage::names::ObjectRef;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};

use crate::fixture::{Cluster, append, create_topic, open, read_all};
use crate::jobs::segment;
use crate::lane_fixture::{CLUSTER, eventually, produced};

fn lane_folder(cluster: &Cluster, incarnation: u64) -> PathBuf {
    cluster.dfs().join(LanePaths::new(CLUSTER, Incarnation(incarnation)).folder())
}

async fn knows(engine: &Engine, incarnation: u64) -> bool {
    engine.metadata.incarnations().await.unwrap().contains_key(&Incarnation(incarnation))
}

/// An object of an incarnation.
async fn put_object(engine: &Engine, incarnation: u64, number: u64) -> String {
    let key = ObjectRef { incarnation: Incarnation(incarnation), number }.key(CLUSTER);
    let store = Arc::clone(&engine.environment.bucket);
    store.put_new(&key, vec![Bytes::from_static(b"records")]).await.unwrap();
    key
}

#[tokio::test]
async fn a_dead_lane_goes_once_the_meter_has_recorded_all_of_it() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &[("retention.ms", "-1")]).await;
    append(&engine, &open(&engine, topic, 0), produced((7, 0), 0, 1, 3)).await;
    drop(engine);
    let first = lane_folder(&cluster, 1);
    for name in ["draft-0000000000000001", "000000000000.spare"] {
        std::fs::write(first.join(name), b"x").unwrap();
    }
    let engine = cluster.start().await;
    eventually("its records are split and only its index stays", async || {
        cluster.lane_files(1, "wal").is_empty() && !cluster.lane_files(1, "idx").is_empty()
    })
    .await;
    eventually("what nobody needs goes", async || {
        cluster.lane_files(1, "spare").is_empty() && !first.join("draft-0000000000000001").exists()
    })
    .await;
    let other = create_topic(&engine, "other", 1, &[("retention.ms", "1")]).await;
    segment(&engine, &open(&engine, other, 0), 1, 10).await;
    eventually("rounds go by", async || open(&engine, other, 0).bounds().log_start == 1).await;
    assert!(knows(&engine, 1).await, "its usage may not be recorded yet");
    let reader = UsageReader::new(&cluster.environment());
    // The rounds are short here, so the broker may take a draft that is being published for a rest.
    eventually("it is marked", async || {
        reader.mark_metered(CLUSTER, Incarnation(1)).await.unwrap()
    })
    .await;
    assert!(!reader.mark_metered(CLUSTER, Incarnation(2)).await.unwrap(), "it has records");
    eventually("the lane goes", async || !first.exists()).await;
    eventually("its record goes", async || !knows(&engine, 1).await).await;
    let removed = cluster.dfs().join(LanePaths::new(CLUSTER, Incarnation(1)).removed());
    eventually("its folder goes", async || !removed.exists()).await;
    drop(engine);
    // As a broker leaves the folder that is killed while it empties it.
    std::fs::create_dir(&removed).unwrap();
    std::fs::write(removed.join("000000000007.wal"), b"x").unwrap();
    let engine = cluster.start().await;
    assert_eq!(engine.incarnation, Incarnation(3));
    eventually("its folder goes", async || !removed.exists()).await;
    assert_eq!(read_all(&open(&engine, topic, 0), 0).await.len(), 3);
}

#[tokio::test]
async fn where_nobody_meters_a_dead_lane_goes_after_the_time_that_was_set() {
    let mut cluster = Cluster::new();
    cluster.settings.jobs.unmetered_lanes_kept = Some(Duration::from_secs(3600));
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &[("retention.ms", "-1")]).await;
    append(&engine, &open(&engine, topic, 0), produced((7, 0), 0, 1, 3)).await;
    drop(engine);
    let first = lane_folder(&cluster, 1);
    let engine = cluster.start().await;
    eventually("its records are split", async || cluster.lane_files(1, "wal").is_empty()).await;
    let other = create_topic(&engine, "other", 1, &[("retention.ms", "1")]).await;
    segment(&engine, &open(&engine, other, 0), 1, 10).await;
    eventually("rounds go by", async || open(&engine, other, 0).bounds().log_start == 1).await;
    assert!(first.exists(), "an hour has not passed");
    drop(engine);
    cluster.settings.jobs.unmetered_lanes_kept = Some(Duration::from_millis(1));
    let engine = cluster.start().await;
    eventually("the lane goes", async || !first.exists()).await;
    eventually("its record goes", async || !knows(&engine, 1).await).await;
    assert_eq!(read_all(&open(&engine, topic, 0), 0).await.len(), 3);
}

#[tokio::test]
async fn an_unreadable_manifest_keeps_what_it_may_name_and_stops_no_sweep() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &[("retention.ms", "-1")]).await;
    let partition = open(&engine, topic, 0);
    segment(&engine, &partition, 1, 10).await;
    let unknown = PartitionId::new(TopicId::from_u128(77), 0);
    let name = ManifestRef { epoch: 1, number: 0 };
    let key = Manifest::key(CLUSTER, unknown, name);
    let store = Arc::clone(&engine.environment.bucket);
    let older = put_object(&engine, 1, 900).await;
    drop(engine);
    store.put_new(&key, vec![Bytes::from_static(b"not a manifest")]).await.unwrap();
    let engine = cluster.start().await;
    let own = put_object(&engine, 2, 901).await;
    let partition = open(&engine, topic, 0);
    segment(&engine, &partition, 1, 10).await;
    eventually("what this incarnation made goes", async || store.get(&own).await.is_err()).await;
    eventually("superseded manifests go", async || cluster.manifests(partition.id()).len() == 1)
        .await;
    store.get(&older).await.unwrap();
    store.get(&key).await.unwrap();
    store.delete(&key).await.unwrap();
    eventually("then the rest goes too", async || store.get(&older).await.is_err()).await;
}

#[tokio::test]
async fn what_puts_left_half_made_goes() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &[("retention.ms", "-1")]).await;
    let partition = open(&engine, topic, 0);
    segment(&engine, &partition, 1, 10).await;
    let objects = ObjectRef::folder(CLUSTER, Incarnation(1));
    let manifests = Manifest::folder(CLUSTER, partition.id());
    let drafts = [objects, manifests].map(|folder| {
        let draft = cluster.bucket().join(folder).join("draft-00000000000000aa");
        std::fs::write(&draft, b"half").unwrap();
        draft
    });
    eventually("drafts go", async || !drafts.iter().any(|draft| draft.exists())).await;
    assert_eq!(read_all(&partition, 0).await.len(), 1);
}

#[tokio::test]
async fn that_a_topic_was_deleted_is_forgotten_when_it_is_long_gone() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let now_ms = engine.environment.clock.now_ms();
    let old = TopicId::from_u128(1);
    let young = TopicId::from_u128(2);
    let stored = TopicId::from_u128(3);
    let kept =
        Manifest::key(CLUSTER, PartitionId::new(stored, 0), ManifestRef { epoch: 0, number: 0 });
    // Not the key of a manifest, so the sweeper leaves it.
    let kept = kept.replace("0000000000-", "note-");
    let store = Arc::clone(&engine.environment.bucket);
    store.put_new(&kept, vec![Bytes::from_static(b"x")]).await.unwrap();
    let long_ago_ms = now_ms - DELETED_TOPIC_KEPT_MS - 60_000;
    for (id, deleted_at_ms) in [(old, long_ago_ms), (young, now_ms), (stored, long_ago_ms)] {
        let record = DeletedTopicRecord { deleted_at_ms, ..DeletedTopicRecord::default() };
        let put = Transaction::new().put(Key::DeletedTopic(id).to_string(), encode(&record));
        engine.metadata.store().commit(put).await.unwrap();
    }
    let deleted = || Arc::clone(&engine.view.snapshot().deleted_topics);
    eventually("the old mark goes", async || {
        let deleted = deleted();
        deleted.len() == 2 && !deleted.contains_key(&old)
    })
    .await;
    assert!(deleted().contains_key(&young) && deleted().contains_key(&stored));
    store.delete(&kept).await.unwrap();
    eventually("the other old one goes", async || !deleted().contains_key(&stored)).await;
}
