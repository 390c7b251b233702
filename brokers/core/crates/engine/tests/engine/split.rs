//! Splitting: how lane files become objects, on a whole engine.

use freshet_jobs::split::SplitSettings;
use freshet_wire::records::BatchBuilder;

use crate::fixture::{Cluster, append, create_topic, open, read_all};
use crate::lane_fixture::{eventually, small_files};

/// Every batch is large, an object is small, and memory holds no batch.
fn splitting_small_objects() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    cluster.settings.jobs.split = SplitSettings { object_bytes: 4000, large_batch_bytes: 0 };
    cluster
}

fn value(number: i64) -> String {
    format!("{number:0>1000}")
}

/// What [`read_all`] gives of a log of so many records.
fn values(count: i64) -> Vec<(i64, String)> {
    (0..count).map(|number| (number, value(number))).collect()
}

#[tokio::test]
async fn a_partition_goes_on_in_the_next_object_only_where_it_alone_fills_one() {
    let mut cluster = splitting_small_objects();
    // One file takes all records, with whatever else the broker writes: each file is split by
    // itself, and a partition whose records are in two files has two objects.
    cluster.settings.lane = small_files(256 << 10);
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 3, &[("retention.ms", "-1")]).await;
    let partitions: Vec<_> = (0..3).map(|index| open(&engine, topic, index)).collect();
    let counts = [3, 20, 5];
    for (partition, count) in partitions.iter().zip(counts) {
        for number in 0..count {
            let record = BatchBuilder::new(0).record(1, None, Some(value(number).as_bytes()));
            append(&engine, partition, record).await;
        }
    }
    engine.lane.roll().await.unwrap();
    eventually("all is split", async || {
        partitions.iter().all(|partition| partition.unsplit_count() == 0)
    })
    .await;
    for (partition, count) in partitions.iter().zip(counts) {
        let read = read_all(partition, 0).await;
        let read: Vec<_> = read.into_iter().map(|(offset, _, value)| (offset, value)).collect();
        assert_eq!(read, values(count), "partition {}", partition.id());
    }
    let manifests: Vec<_> = partitions.iter().map(|partition| partition.manifest()).collect();
    let objects: Vec<Vec<u64>> = manifests
        .iter()
        .map(|manifest| manifest.segments.iter().map(|segment| segment.object.number).collect())
        .collect();
    assert_eq!(objects[0].len(), 1, "{objects:?}");
    assert!(objects[1].len() >= 3, "it alone is twice as much as an object and more: {objects:?}");
    assert_eq!(objects[2].len(), 1, "{objects:?}");
    assert!(objects[1].is_sorted(), "{objects:?}");
}
