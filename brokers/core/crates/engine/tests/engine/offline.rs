//! One partition is taken offline while the broker runs: the others are served, and nothing of it
//! is deleted.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use freshet_partition::Partition;
use freshet_storage::lane::{LanePaths, LaneSpot};

use crate::fixture::{Cluster, append, create_topic, open, read_all};
use crate::jobs::segment;
use crate::lane_fixture::{CLUSTER, eventually, produced};

/// The place of the only batch of a partition.
fn only_spot(partition: &Partition) -> LaneSpot {
    let unsplit = partition.unsplit();
    assert_eq!(unsplit.len(), 1);
    unsplit[0].spot
}

/// Flips a byte of a batch in its lane file, or flips it back.
fn flip(cluster: &Cluster, spot: LaneSpot) {
    let path: PathBuf =
        cluster.dfs().join(LanePaths::new(CLUSTER, spot.incarnation).file(spot.file));
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let (mut byte, last) = ([0], spot.position + u64::from(spot.length) - 1);
    file.read_exact_at(&mut byte, last).unwrap();
    file.write_all_at(&[byte[0] ^ 1], last).unwrap();
}

#[tokio::test]
async fn a_batch_that_does_not_check_takes_its_partition_offline_and_no_other() {
    let mut cluster = Cluster::new();
    cluster.settings.hot_bytes = 0;
    let engine = cluster.start().await;
    let topic = create_topic(&engine, "t", 2, &[("retention.ms", "-1")]).await;
    let (bad, good) = (open(&engine, topic, 0), open(&engine, topic, 1));
    append(&engine, &bad, produced((7, 0), 0, 1, 3)).await;
    append(&engine, &good, produced((8, 0), 0, 1, 2)).await;
    let spot = only_spot(&bad);
    flip(&cluster, spot);
    engine.lane.roll().await.unwrap();
    eventually("the other is split", async || good.unsplit_count() == 0).await;
    assert!(engine.partitions.get(bad.id()).is_none());
    let offline = engine.partitions.offline();
    let named: Vec<_> =
        offline.iter().map(|it| (it.partition, it.from_offset, it.to_offset)).collect();
    assert_eq!(named, [(bad.id(), 0, 3)]);

    // The other partitions are served. Files that are split stay, because the records may be there.
    for _ in 0..2 {
        segment(&engine, &good, 1, 10).await;
    }
    assert_eq!(good.manifest().covered_end, 4);
    assert!(cluster.lane_files(1, "wal").len() > 3, "{:?}", cluster.lane_files(1, "wal"));
    drop(engine);

    let engine = cluster.start().await;
    eventually("its successor finds the same", async || {
        engine.partitions.offline_reason(bad.id()).is_some()
    })
    .await;
    let good = open(&engine, topic, 1);
    assert_eq!(read_all(&good, 0).await.len(), 4);
    append(&engine, &good, produced((8, 0), 2, 1, 1)).await;
    assert!(cluster.lane_files(1, "wal").len() > 3);
    drop(engine);

    flip(&cluster, spot);
    let engine = cluster.start().await;
    eventually("what was mended is split", async || {
        cluster.lane_files(1, "wal").is_empty() && cluster.lane_files(2, "wal").is_empty()
    })
    .await;
    assert_eq!(read_all(&open(&engine, topic, 0), 0).await.len(), 3);
    assert_eq!(read_all(&open(&engine, topic, 1), 0).await.len(), 5);
}
