//! Copies of partitions, for clients in another zone than the leader's. The leader is read here by
//! its own broker: a copy does not know who leads.

use std::sync::Arc;

use freshet_engine::Engine;
use freshet_engine::copies::Original;
use freshet_jobs::deletion::DeleteBefore;
use freshet_partition::Partition;
use freshet_wire::records::BatchBuilder;

use crate::fixture::{Cluster, append, create_topic, open, read_all};
use crate::lane_fixture::eventually;

const FOR_EVER: [(&str, &str); 1] = [("retention.ms", "-1")];

async fn write(engine: &Engine, partition: &Arc<Partition>, values: &[&str]) {
    for value in values {
        let batch = BatchBuilder::new(0).record(1, None, Some(value.as_bytes()));
        append(engine, partition, batch).await;
    }
    engine.lane.roll().await.unwrap();
    eventually("it is split", async || partition.unsplit_count() == 0).await;
}

#[tokio::test]
async fn a_copy_has_what_segments_hold_and_follows_them() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &FOR_EVER).await;
    let partition = open(&engine, topic, 0);
    let original = Original { id: partition.id(), topic: "t".into(), epoch: partition.epoch() };
    let covering = |offset| engine.copies.covering(&original, offset);

    append(&engine, &partition, BatchBuilder::new(0).record(1, None, Some(b"a"))).await;
    assert!(covering(0).await.is_none(), "it is in the lane only");
    write(&engine, &partition, &["b", "c"]).await;
    eventually("there is a copy", async || covering(0).await.is_some()).await;
    let copy = covering(2).await.expect("it has all");
    assert_eq!(copy.bounds(), partition.bounds());
    assert_eq!(read_all(&copy, 0).await, read_all(&partition, 0).await);
    assert!(covering(3).await.is_none(), "that is the leader's");
    let later = Original { epoch: original.epoch + 1, ..original.clone() };
    eventually("it is of the next leader's epoch", async || {
        engine.copies.covering(&later, 0).await.is_some_and(|copy| copy.epoch() == later.epoch)
    })
    .await;

    write(&engine, &partition, &["d"]).await;
    eventually("it has what was written since", async || covering(3).await.is_some()).await;
    let deletion = DeleteBefore { partition: partition.id(), offset: 2 };
    engine.delete_records(vec![deletion]).await.unwrap();
    eventually("it has not what was deleted", async || covering(1).await.is_none()).await;
    assert_eq!(covering(2).await.expect("the rest").bounds(), partition.bounds());
}

#[tokio::test]
async fn a_copy_remembers_no_producers() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 1, &FOR_EVER).await;
    let partition = open(&engine, topic, 0);
    let batch = BatchBuilder::new(0).producer(7, 0, 0).record(1, None, Some(b"a"));
    append(&engine, &partition, batch).await;
    write(&engine, &partition, &["b"]).await;
    let before = engine.sources.producers.get();
    assert!(before > 0);
    let original = Original { id: partition.id(), topic: "t".into(), epoch: partition.epoch() };
    let copy = engine.copies.covering(&original, 0).await;
    assert_eq!(copy.map(|copy| copy.bounds()), Some(partition.bounds()));
    assert_eq!(engine.sources.producers.get(), before);
}
