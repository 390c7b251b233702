//! What the metering agent reads from a lane: every block that is covered, once, and no other.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use freshet_inspect::usage_reader::{
    EGRESS, INGRESS, LaneReading, LaneRequest, UsageError, UsageReader,
};
use freshet_s3::open_world;
use freshet_storage::lane::block::{BlockKind, BlockLabel, encode};
use freshet_storage::lane::index::{BatchFacts, DataEntry, Usage, UsageEntry, encode_data};
use freshet_storage::lane::writer::LaneSettings;
use freshet_storage::lane::{LaneEnd, LanePaths};
use freshet_wire::ids::{Incarnation, TopicId};
use proptest::prelude::*;

use crate::fixture::{Cluster, create_topic, open};
use crate::jobs::segment;
use crate::lane_fixture::{
    CLUSTER, Folder, NONCE, OpenLane, START_MS, STEP_MS, SteppingClock, eventually, fence_and_seal,
    partition, small_files, stored, wal,
};

/// The time of the reader's clock, in ms since 1970.
const NOW_MS: i64 = START_MS + 3_600_000;
const LANE: Incarnation = Incarnation(1);

/// A row: file, sequence, time, topic, partition, principal, meter, quantity, cumulative.
type Row = (u64, u64, i64, TopicId, i32, String, u8, u64, u64);

fn reader(folder: &Folder) -> UsageReader {
    let bucket = folder.root.path().join("bucket");
    let mut environment = open_world(folder.mounted.next(), bucket.to_str().unwrap()).unwrap();
    let clock = SteppingClock::default();
    clock.set(NOW_MS);
    environment.clock = Arc::new(clock);
    UsageReader::new(&environment)
}

fn values<const N: usize>(column: &[u8]) -> impl Iterator<Item = [u8; N]> {
    column.chunks_exact(N).map(|value| value.try_into().unwrap())
}

fn rows(reading: &LaneReading) -> Vec<Row> {
    let columns = &reading.columns;
    let mut file = values(&columns.file).map(u64::from_le_bytes);
    let mut sequence = values(&columns.sequence).map(u64::from_le_bytes);
    let mut written_at_ms = values(&columns.written_at_ms).map(i64::from_le_bytes);
    let mut topic = values(&columns.topic).map(u32::from_le_bytes);
    let mut partition = values(&columns.partition).map(i32::from_le_bytes);
    let mut principal = values(&columns.principal).map(u32::from_le_bytes);
    let mut quantity = values(&columns.quantity).map(u64::from_le_bytes);
    let mut cumulative = values(&columns.cumulative).map(u64::from_le_bytes);
    let mut row = |meter: &u8| {
        Some((
            file.next()?,
            sequence.next()?,
            written_at_ms.next()?,
            columns.topics[topic.next()? as usize],
            partition.next()?,
            columns.principals[principal.next()? as usize].as_ref().to_owned(),
            *meter,
            quantity.next()?,
            cumulative.next()?,
        ))
    };
    let rows: Vec<Row> = columns.meter.iter().map(|meter| row(meter).unwrap()).collect();
    assert_eq!(rows.len(), columns.rows);
    rows
}

fn sequences(reading: &LaneReading) -> Vec<u64> {
    rows(reading).iter().map(|row| row.1).collect()
}

async fn read(reader: &UsageReader, request: LaneRequest) -> Result<LaneReading, UsageError> {
    reader.read_lane(CLUSTER, LANE, request).await
}

fn after(reading: &LaneReading) -> LaneRequest {
    LaneRequest {
        after_sequence: reading.last_sequence,
        after_file: reading.last_file,
        ..LaneRequest::default()
    }
}

fn until(sequence: u64) -> LaneRequest {
    LaneRequest { sealed_end: Some(LaneEnd { file: 0, sequence }), ..LaneRequest::default() }
}

/// When the block with a sequence number was written, where the clock was never changed.
fn written(sequence: u64) -> i64 {
    START_MS + STEP_MS * (sequence as i64 - 1)
}

fn usage(entries: Vec<(u128, &str, u64, u64)>) -> Usage {
    let entries = entries.into_iter().map(|(topic, principal, total, delta)| UsageEntry {
        topic: TopicId::from_u128(topic),
        principal: principal.into(),
        egress_bytes: total,
        egress_delta: delta,
    });
    Usage { window_start_ms: 0, window_end_ms: 1, entries: entries.collect() }
}

/// Replaces all files that ended by their indexes, as the splitter does.
async fn split(folder: &Folder, lane: &OpenLane) {
    let ended = lane.rolled.lock().split_off(0);
    for file in ended {
        file.leftover.publish(folder.disk.as_ref(), &lane.paths).await.unwrap();
        folder.disk.remove(&wal(&lane.paths, file.leftover.file)).await.unwrap();
    }
}

#[tokio::test]
async fn a_block_comes_out_once_a_later_one_says_that_it_was_durable() {
    let folder = Folder::new();
    let (reader, lane) =
        (reader(&folder), OpenLane::start(&folder.disk, 1, small_files(32 << 10)).await);
    lane.write_one_by_one(0..3, 100).await;
    let bytes = stored(0, 100).size_bytes() as u64;
    let first = read(&reader, LaneRequest::default()).await.unwrap();
    let row = |sequence| {
        let id = partition(0);
        let alice = "User:alice".to_owned();
        (0, sequence, written(sequence), id.topic, 0, alice, INGRESS, bytes, 0)
    };
    assert_eq!(rows(&first), [row(2), row(3)]);
    assert_eq!((first.last_sequence, first.last_file), (3, 0));
    assert_eq!(first.covered_until_ms, written(4) - 1, "block 4 is there and not sure");
    assert_eq!(first.unsplit_since_ms, Some(written(2)));
    assert!(!first.ended && !first.more && first.gap.is_none());

    lane.lane.stage_usage(usage(vec![(7, "User:bob", 90, 40), (7, "User:al", 5, 5)])).unwrap();
    lane.lane.roll().await.unwrap();
    let second = read(&reader, after(&first)).await.unwrap();
    let egress = |principal: &str, delta, total| {
        let topic = TopicId::from_u128(7);
        (0, 5, written(5), topic, -1, principal.to_owned(), EGRESS, delta, total)
    };
    let mut expected = vec![row(4), egress("User:bob", 40, 90), egress("User:al", 5, 5)];
    let mut read_rows = rows(&second);
    expected.sort();
    read_rows.sort();
    assert_eq!(read_rows, expected);
    assert_eq!((second.last_sequence, second.last_file), (5, 1));
    assert_eq!(second.covered_until_ms, NOW_MS + STEP_MS, "all that is there is sure");
    let third = read(&reader, after(&second)).await.unwrap();
    assert_eq!((third.columns.rows, third.last_sequence), (0, 5));
}

#[tokio::test]
async fn an_index_gives_the_rows_that_its_file_gave() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, small_files(16 << 10)).await;
    lane.write_one_by_one(0..12, 3000).await;
    lane.lane.roll().await.unwrap();
    let of_files = read(&reader(&folder), LaneRequest::default()).await.unwrap();
    assert_eq!(of_files.columns.rows, 12);
    assert!(lane.rolled.lock().len() >= 3, "over several files");
    let half = of_files.last_sequence / 2;
    split(&folder, &lane).await;
    let of_indexes = read(&reader(&folder), LaneRequest::default()).await.unwrap();
    assert_eq!(rows(&of_indexes), rows(&of_files));
    assert_eq!(of_indexes.last_sequence, of_files.last_sequence);
    assert_eq!((of_files.unsplit_since_ms, of_indexes.unsplit_since_ms), (Some(written(2)), None));
    let from_half = LaneRequest { after_sequence: half, ..LaneRequest::default() };
    let rest = read(&reader(&folder), from_half).await.unwrap();
    let mut expected = rows(&of_files);
    expected.retain(|row| row.1 > half);
    assert_eq!(rows(&rest), expected);
}

#[tokio::test]
async fn reading_on_while_the_broker_writes_and_splits_misses_nothing() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, small_files(16 << 10)).await;
    let reader = reader(&folder);
    let mut reading = LaneReading::default();
    let mut read_rows = Vec::new();
    for offset in 0..40 {
        lane.write_one_by_one(offset..offset + 1, 1500).await;
        if offset % 7 == 6 {
            split(&folder, &lane).await;
        }
        reading = read(&reader, after(&reading)).await.unwrap();
        read_rows.extend(rows(&reading));
    }
    lane.lane.close().await.unwrap();
    reading = read(&reader, after(&reading)).await.unwrap();
    read_rows.extend(rows(&reading));
    assert!(reading.ended, "the lane was closed");
    assert_eq!(read_rows.len(), 40);
    assert!(read_rows.windows(2).all(|pair| pair[0].1 < pair[1].1 && pair[0].2 <= pair[1].2));
    let again = read(&reader, after(&reading)).await.unwrap();
    assert!(again.ended && again.columns.rows == 0, "and stays so");
}

#[tokio::test]
async fn time_never_goes_back_within_a_lane() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, small_files(32 << 10)).await;
    lane.write_one_by_one(0..2, 10).await;
    lane.clock.set(START_MS - 1_000_000);
    lane.write_one_by_one(2..4, 10).await;
    let reading = read(&reader(&folder), LaneRequest::default()).await.unwrap();
    let times: Vec<i64> = rows(&reading).iter().map(|row| row.2).collect();
    assert_eq!(times, [written(2), written(3), written(3)]);
    assert_eq!(reading.covered_until_ms, written(3) - 1, "what follows bears the same time");
}

/// A lane of a crashed broker: blocks 1 to 5, of which 2 to 5 hold records.
async fn crashed(folder: &Folder) -> LanePaths {
    let lane = OpenLane::start(&folder.disk, 1, small_files(64 << 10)).await;
    lane.write_one_by_one(0..4, 100).await;
    lane.crash().await.0
}

/// Writes a data block where the lane goes on, as an incarnation that was fenced might do.
fn haunt(folder: &Folder, paths: &LanePaths, sequence: u64) {
    let entry = DataEntry {
        partition: partition(0),
        epoch: 3,
        principal: "User:zombie".into(),
        base_offset: 99,
        record_count: 1,
        position: 0,
        length: 7,
        facts: Some(BatchFacts {
            attributes: 0,
            max_timestamp: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
        }),
    };
    let label = BlockLabel {
        kind: BlockKind::Data,
        incarnation: LANE,
        sequence,
        durable_sequence: sequence,
        nonce: NONCE,
        written_at_ms: NOW_MS,
    };
    let block = encode(label, &encode_data(&[entry]), vec![Bytes::from_static(b"records")]);
    let (block, at) = (block.concat(), 4096 * (usize::try_from(sequence).unwrap() - 1));
    folder.edit(&wal(paths, 0), |bytes| bytes[at..at + block.len()].copy_from_slice(&block));
}

#[tokio::test]
async fn what_lies_beyond_the_end_never_comes_out() {
    let folder = Folder::new();
    let paths = crashed(&folder).await;
    let unsealed = read(&reader(&folder), LaneRequest::default()).await.unwrap();
    assert_eq!((sequences(&unsealed), unsealed.ended), (vec![2, 3, 4], false));
    let sealed = fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    assert_eq!(sealed.end, LaneEnd { file: 0, sequence: 5 });
    haunt(&folder, &paths, 6);
    haunt(&folder, &paths, 7);
    // By SEAL, by the metadata, and by whichever comes first.
    for (request, expected) in [
        (LaneRequest::default(), vec![2, 3, 4, 5]),
        (until(5), vec![2, 3, 4, 5]),
        (until(9), vec![2, 3, 4, 5]),
        (until(3), vec![2, 3]),
        (LaneRequest { last_call: true, ..LaneRequest::default() }, vec![2, 3, 4, 5]),
    ] {
        let reading = read(&reader(&folder), request).await.unwrap();
        assert_eq!((sequences(&reading), reading.ended), (expected, true), "{request:?}");
    }
    folder.disk.remove(&paths.seal()).await.unwrap();
    let reading = read(&reader(&folder), until(5)).await.unwrap();
    assert_eq!((sequences(&reading), reading.ended), (vec![2, 3, 4, 5], true));
    assert_eq!(reading.covered_until_ms, NOW_MS);
}

#[tokio::test]
async fn a_block_that_only_seal_has_is_read_from_there() {
    let folder = Folder::new();
    let paths = crashed(&folder).await;
    fence_and_seal(&folder.disk, &paths, 1).await.unwrap();
    folder.edit(&wal(&paths, 0), |bytes| bytes[4 * 4096..5 * 4096].fill(0));
    let reading = read(&reader(&folder), until(5)).await.unwrap();
    assert_eq!((sequences(&reading), reading.ended), (vec![2, 3, 4, 5], true));
}

#[tokio::test]
async fn the_last_call_ends_a_lane_where_it_is_covered() {
    let folder = Folder::new();
    crashed(&folder).await;
    let request = LaneRequest { last_call: true, ..LaneRequest::default() };
    let reading = read(&reader(&folder), request).await.unwrap();
    assert_eq!((sequences(&reading), reading.ended), (vec![2, 3, 4], true));
    assert_eq!((reading.last_sequence, reading.covered_until_ms), (4, NOW_MS));
}

#[tokio::test]
async fn dropped_indexes_are_reported_where_they_were_not_read() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, small_files(16 << 10)).await;
    lane.write_one_by_one(0..12, 3000).await;
    lane.lane.roll().await.unwrap();
    let (first, reader) = (lane.rolled.lock()[0].leftover.clone(), reader(&folder));
    let all = read(&reader, LaneRequest::default()).await.unwrap();
    first.publish(folder.disk.as_ref(), &lane.paths).await.unwrap();
    assert_eq!(reader.drop_indexes(CLUSTER, LANE, 99).await.unwrap(), 0, "its file is there");
    split(&folder, &lane).await;
    let lanes = reader.lanes(CLUSTER).await.unwrap();
    let indexes = lanes[0].indexes.clone();
    assert_eq!((lanes.len(), lanes[0].incarnation, indexes[0]), (1, LANE, 0));
    assert_eq!(reader.drop_indexes(CLUSTER, LANE, 2).await.unwrap(), 2);
    let from_start = read(&reader, LaneRequest::default()).await.unwrap();
    let first_left = rows(&from_start)[0].0;
    assert_eq!((first_left, from_start.gap.unwrap().0), (2, 1));
    let last_lost = from_start.gap.unwrap().1;
    let mut expected = rows(&all);
    expected.retain(|row| row.1 > last_lost);
    assert_eq!(rows(&from_start), expected);
    let covered =
        LaneRequest { after_sequence: last_lost, after_file: 2, ..LaneRequest::default() };
    let covered = read(&reader, covered).await.unwrap();
    assert_eq!((rows(&covered), covered.gap), (expected, None));
    let left = indexes.len() as u64 - 3;
    assert_eq!(reader.drop_indexes(CLUSTER, LANE, 99).await.unwrap(), left, "the last one stays");
    assert_eq!(read(&reader, after(&all)).await.unwrap().gap, None);
}

async fn refusal(folder: &Folder, request: LaneRequest) -> String {
    read(&reader(folder), request).await.unwrap_err().to_string()
}

#[tokio::test]
async fn damage_names_the_file() {
    let folder = Folder::new();
    let paths = crashed(&folder).await;
    let whole = std::fs::read(folder.path(&wal(&paths, 0))).unwrap();
    folder.edit(&wal(&paths, 0), |bytes| bytes[2 * 4096 + 70] ^= 1);
    let last_call = LaneRequest { last_call: true, ..LaneRequest::default() };
    for (request, what) in
        [(last_call, "block 3 is missing at position 8192"), (until(5), "block 3")]
    {
        let refused = refusal(&folder, request).await;
        assert!(refused.contains("000000000000.wal") && refused.contains(what), "{refused}");
    }
    folder.edit(&wal(&paths, 0), |bytes| {
        *bytes = whole;
        bytes[..4096].fill(0);
    });
    let refused = refusal(&folder, until(5)).await;
    assert!(refused.contains("block 1 is missing"), "{refused}");

    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, small_files(16 << 10)).await;
    lane.write_one_by_one(0..12, 3000).await;
    split(&folder, &lane).await;
    folder.edit(&lane.paths.leftover(1), |bytes| bytes[60] ^= 1);
    let refused = refusal(&folder, LaneRequest::default()).await;
    assert!(refused.contains("000000000001.idx"), "{refused}");
    folder.disk.remove(&lane.paths.leftover(1)).await.unwrap();
    let refused = refusal(&folder, LaneRequest::default()).await;
    assert!(refused.contains("000000000002.idx") && refused.contains("missing"), "{refused}");
}

const BLOCKS: u128 = 60;
const TOPICS_PER_BLOCK: u128 = 10_000;

#[tokio::test]
async fn much_usage_comes_in_pieces() {
    let folder = Folder::new();
    let lane = OpenLane::start(&folder.disk, 1, LaneSettings::default()).await;
    for block in 0..BLOCKS {
        let topics = (0..TOPICS_PER_BLOCK)
            .map(|topic| (block * TOPICS_PER_BLOCK + topic, "User:a", 2, 1))
            .collect();
        lane.lane.stage_usage(usage(topics)).unwrap();
    }
    lane.lane.close().await.unwrap();
    let reader = reader(&folder);
    let mut reading = read(&reader, LaneRequest::default()).await.unwrap();
    assert!(reading.more && !reading.ended);
    assert!(reading.covered_until_ms < NOW_MS);
    let (mut read_rows, mut pieces) = (rows(&reading), 1);
    while reading.more {
        reading = read(&reader, after(&reading)).await.unwrap();
        read_rows.extend(rows(&reading));
        pieces += 1;
    }
    assert!(reading.ended && pieces > 1);
    assert_eq!(read_rows.len() as u128, BLOCKS * TOPICS_PER_BLOCK);
    assert!(read_rows.windows(2).all(|pair| pair[0].1 <= pair[1].1));
}

#[tokio::test]
async fn manifests_are_read_where_they_changed_with_what_retention_let_go() {
    let cluster = Cluster::new();
    let engine = cluster.start().await;
    let configs = [("retention.ms", "-1"), ("retention.bytes", "3000")];
    let topic = create_topic(&engine, "t", 2, &configs).await;
    let partition = open(&engine, topic, 1);
    for _ in 0..4 {
        segment(&engine, &partition, 1, 2000).await;
    }
    eventually("the oldest go", async || partition.bounds().log_start == 2).await;
    let reader = UsageReader::new(&cluster.environment());
    let facts = reader.manifests(CLUSTER, &BTreeMap::new()).await.unwrap();
    assert_eq!(facts.len(), 1, "the other partition has none");
    let (facts, manifest) = (&facts[0], partition.manifest());
    assert_eq!((facts.partition, facts.covered_end), (partition.id(), 4));
    assert_eq!((&facts.segments, &facts.dropped), (&manifest.segments, &manifest.dropped));
    assert_eq!((facts.segments.len(), facts.dropped.len()), (2, 2));
    let times: Vec<i64> = facts.dropped.iter().map(|dropped| dropped.written_at_ms).collect();
    assert!(times.iter().all(|time| *time > 0) && times.is_sorted(), "{times:?}");
    assert!(facts.dropped.iter().all(|dropped| dropped.dropped_at_ms >= times[1]));
    let known = BTreeMap::from([((topic.simple().to_string(), 1), facts.name.clone())]);
    assert_eq!(reader.manifests(CLUSTER, &known).await.unwrap(), []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Bytes that were changed anywhere never add usage: there is less of it, or an error.
    #[test]
    fn damage_never_adds_usage(
        flips in prop::collection::vec((0..3_usize, 0..40_000_usize, 1..=255_u8), 1..6),
        sealed in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = Folder::new();
            let lane = OpenLane::start(&folder.disk, 1, small_files(16 << 10)).await;
            lane.write_one_by_one(0..6, 3000).await;
            split(&folder, &lane).await;
            let paths = lane.crash().await.0;
            let end = fence_and_seal(&folder.disk, &paths, 1).await.unwrap().end;
            let sealed_end = sealed.then_some(end);
            let request = LaneRequest { sealed_end, ..LaneRequest::default() };
            let truth = rows(&read(&reader(&folder), request).await.unwrap());
            let numbers = reader(&folder).lanes(CLUSTER).await.unwrap().remove(0);
            let files = [
                paths.leftover(numbers.indexes[0]),
                wal(&paths, numbers.wals[0]),
                paths.seal(),
            ];
            for (file, at, bits) in flips {
                folder.edit(&files[file], |bytes| {
                    let at = at % bytes.len();
                    bytes[at] ^= bits;
                });
            }
            for last_call in [false, true] {
                let request = LaneRequest { last_call, ..request };
                if let Ok(reading) = read(&reader(&folder), request).await {
                    assert!(rows(&reading).iter().all(|row| truth.contains(row)));
                }
            }
        });
    }
}
