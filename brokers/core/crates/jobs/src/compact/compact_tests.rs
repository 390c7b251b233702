//! What a round of compaction leaves of a log: records, tombstones, transactions and their markers,
//! and what must stay for producers.

use super::*;
use crate::tests::log;
use freshet_storage::cold::manifest::AbortedTransaction;
use freshet_wire::records::{BatchBuilder, Compression};

/// How long tombstones and markers stay.
const DELETE_RETENTION_MS: i64 = 1_000;
const PRODUCER: i64 = 7;
const OTHER: i64 = 8;

fn batch(offset: i64, records: &[(&str, Option<&str>)]) -> BatchBuilder {
    records.iter().fold(BatchBuilder::new(offset), |batch, (key, value)| {
        batch.record(5, Some(key.as_bytes()), value.map(str::as_bytes))
    })
}

fn plain(offset: i64, key: &str, value: Option<&str>) -> StoredBatch {
    stored(batch(offset, &[(key, value)]))
}

/// A record of a transaction.
fn open(offset: i64, producer: i64, key: &str) -> StoredBatch {
    stored(batch(offset, &[(key, Some("open"))]).producer(producer, 0, 0).transactional(true))
}

fn abort(offset: i64, producer: i64) -> StoredBatch {
    marker(offset, producer, 0)
}

fn commit(offset: i64, producer: i64) -> StoredBatch {
    marker(offset, producer, 1)
}

fn marker(offset: i64, producer: i64, kind: u8) -> StoredBatch {
    let marker = BatchBuilder::new(offset).producer(producer, 0, -1).transactional(true);
    stored(marker.control(true).record(5, Some(&[0, 0, 0, kind]), Some(&[0; 6])))
}

fn stored(batch: BatchBuilder) -> StoredBatch {
    StoredBatch::from_contiguous(batch.build()).unwrap()
}

fn aborted(producer_id: i64, first_offset: i64, last_offset: i64) -> Manifest {
    let aborted = vec![AbortedTransaction { producer_id, first_offset, last_offset }];
    Manifest { aborted, ..log(&[]) }
}

/// A round over a whole log.
fn round(manifest: &Manifest, batches: &[StoredBatch], now_ms: i64) -> Cleaned {
    round_of(manifest, batches, 1 << 20, now_ms)
}

fn round_of(manifest: &Manifest, batches: &[StoredBatch], bytes: usize, now_ms: i64) -> Cleaned {
    let until = batches.last().map_or(0, |batch| batch.header().next_offset());
    let from = manifest.first_dirty_offset;
    let mut keys = KeyOffsets::new(DirtyRange { from, until }, bytes);
    let mut transactions = Transactions::new(&manifest.aborted);
    for batch in batches.iter().filter(|batch| batch.header().next_offset() > from) {
        if note_batch(&mut keys, &mut transactions, batch, |_| {}) == Visit::Enough {
            break;
        }
    }
    Cleaner::new(manifest, keys, DELETE_RETENTION_MS, now_ms).clean(batches.to_vec())
}

/// First offset and number of records of each batch.
fn shape(cleaned: &Cleaned) -> Vec<(i64, i32)> {
    let headers = cleaned.batches.iter().map(StoredBatch::header);
    headers.map(|header| (header.base_offset, header.record_count)).collect()
}

#[test]
fn of_each_key_the_newest_record_stays_where_it_was() {
    let batches = [
        stored(batch(0, &[("a", Some("1")), ("b", Some("1"))]).compression(Compression::Lz4)),
        stored(batch(2, &[("a", Some("2")), ("c", Some("1"))])),
        plain(4, "c", Some("2")),
    ];
    let cleaned = round(&log(&[]), &batches, 0);
    assert!(cleaned.changed);
    assert_eq!(shape(&cleaned), [(0, 1), (2, 1), (4, 1)]);
    let offsets: Vec<i64> = cleaned
        .batches
        .iter()
        .flat_map(|batch| {
            let mut offsets = Vec::new();
            batch.visit_facts(|record| offsets.push(record.offset)).unwrap();
            offsets
        })
        .collect();
    assert_eq!(offsets, [1, 2, 4]);
    let again = round(&log(&[]), &cleaned.batches, 0);
    assert!(!again.changed);
    assert_eq!(again.batches, cleaned.batches);
}

#[test]
fn what_the_table_has_no_room_for_stays_until_the_next_round() {
    let key = |offset| if offset % 2 == 0 { "a" } else { "b" };
    let batches: Vec<_> = (0..6).map(|offset| plain(offset, key(offset), Some("v"))).collect();
    let mut manifest = log(&[]);
    // Room for one key: the round ends before the second.
    let first = round_of(&manifest, &batches, 0, 0);
    assert_eq!(shape(&first), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]);
    assert!(!first.changed);
    let all = round_of(&manifest, &batches, 1 << 10, 0);
    assert_eq!(shape(&all), [(4, 1), (5, 1)]);
    // Later rounds take out what lies before the dirty part, too.
    manifest.first_dirty_offset = 4;
    let rest = round_of(&manifest, &batches, 0, 0);
    assert_eq!(shape(&rest), [(1, 1), (3, 1), (4, 1), (5, 1)]);
}

#[test]
fn a_round_may_end_within_a_batch() {
    let first = stored(batch(0, &[("a", Some("1")), ("a", Some("2")), ("b", Some("1"))]));
    let batches = [first, plain(3, "a", Some("3"))];
    let cleaned = round_of(&log(&[]), &batches, 0, 0);
    assert_eq!(shape(&cleaned), [(0, 2), (3, 1)], "the second of a and all of b stay");
}

#[test]
fn records_without_a_key_go_and_the_last_batch_of_the_round_says_where_the_log_ends() {
    let keyless = |offset| stored(BatchBuilder::new(offset).record(5, None, Some(b"v")));
    let cleaned = round(&log(&[]), &[plain(0, "a", Some("1")), keyless(1), keyless(2)], 0);
    assert_eq!(shape(&cleaned), [(0, 1), (2, 0)]);
    assert!(!round(&log(&[]), &cleaned.batches, 0).changed);
}

#[test]
fn a_tombstone_stays_until_its_horizon() {
    let batches = [plain(0, "a", Some("1")), plain(1, "a", None), plain(2, "b", Some("1"))];
    let dated = round(&log(&[]), &batches, 500);
    assert_eq!(shape(&dated), [(1, 1), (2, 1)]);
    let horizon = dated.batches[0].header().delete_horizon_ms();
    assert_eq!(horizon, Some(500 + DELETE_RETENTION_MS));
    assert!(!round(&log(&[]), &dated.batches, 1_499).changed);
    assert_eq!(shape(&round(&log(&[]), &dated.batches, 1_500)), [(2, 1)]);
}

#[test]
fn the_last_batch_of_a_known_producer_stays_without_records() {
    let first = stored(batch(0, &[("a", Some("1"))]).producer(PRODUCER, 3, 40));
    let others = [plain(1, "a", Some("2")), plain(2, "b", Some("1"))];
    let batches = [first, others[0].clone(), others[1].clone()];
    let mut manifest = log(&[]);
    assert_eq!(shape(&round(&manifest, &batches, 0)), [(1, 1), (2, 1)], "nobody knows it");
    manifest.producers.record(&batches[0].header());
    let cleaned = round(&manifest, &batches, 0);
    assert_eq!(shape(&cleaned), [(0, 0), (1, 1), (2, 1)]);
    let kept = cleaned.batches[0].header();
    assert_eq!((kept.producer_id, kept.producer_epoch, kept.last_sequence()), (PRODUCER, 3, 40));
    assert!(!round(&manifest, &cleaned.batches, 0).changed, "an empty batch is left as it is");
}

#[test]
fn aborted_records_go_and_supersede_nothing() {
    let manifest = aborted(PRODUCER, 1, 2);
    let batches = [
        plain(0, "a", Some("1")),
        open(1, PRODUCER, "a"),
        abort(2, PRODUCER),
        plain(3, "b", Some("1")),
    ];
    let cleaned = round(&manifest, &batches, 0);
    assert_eq!(shape(&cleaned), [(0, 1), (2, 1), (3, 1)]);
    assert_eq!(cleaned.batches[1], batches[2], "the marker as it was");
}

#[test]
fn an_abort_marker_outlives_its_records_by_its_horizon() {
    let manifest = aborted(PRODUCER, 1, 2);
    let batches = [plain(0, "a", Some("1")), abort(2, PRODUCER), plain(3, "b", Some("1"))];
    let dated = round(&manifest, &batches, 0);
    assert_eq!(shape(&dated), [(0, 1), (2, 1), (3, 1)]);
    assert_eq!(dated.batches[1].header().delete_horizon_ms(), Some(DELETE_RETENTION_MS));
    assert!(!round(&manifest, &dated.batches, DELETE_RETENTION_MS - 1).changed);
    let after = round(&manifest, &dated.batches, DELETE_RETENTION_MS);
    assert_eq!(shape(&after), [(0, 1), (3, 1)]);
}

#[test]
fn a_commit_marker_stays_while_a_batch_of_its_transaction_does() {
    let manifest = log(&[]);
    let batches = [open(0, PRODUCER, "a"), commit(1, PRODUCER), plain(2, "b", Some("1"))];
    assert!(!round(&manifest, &batches, i64::MAX / 2).changed);
    let mut superseded = batches.to_vec();
    superseded.push(plain(3, "a", Some("2")));
    let without = round(&manifest, &superseded, 0);
    assert_eq!(shape(&without), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(without.batches[0], batches[1], "its record went in this round only");
    let dated = round(&manifest, &without.batches, 0);
    assert_eq!(dated.batches[0].header().delete_horizon_ms(), Some(DELETE_RETENTION_MS));
    let after = round(&manifest, &dated.batches, DELETE_RETENTION_MS);
    assert_eq!(shape(&after), [(2, 1), (3, 1)]);
}

#[test]
fn transactions_that_overlap_are_distinguished_by_their_producers() {
    let manifest = aborted(PRODUCER, 0, 3);
    let batches = [
        open(0, PRODUCER, "a"),
        open(1, OTHER, "b"),
        open(2, PRODUCER, "c"),
        abort(3, PRODUCER),
        commit(4, OTHER),
        // Of the next one, which is committed.
        open(5, PRODUCER, "d"),
        commit(6, PRODUCER),
    ];
    let cleaned = round(&manifest, &batches, 0);
    assert_eq!(shape(&cleaned), [(1, 1), (3, 1), (4, 1), (5, 1), (6, 1)]);
}

#[test]
fn a_transaction_whose_marker_is_gone_ended_where_it_was() {
    let manifest = aborted(PRODUCER, 0, 1);
    let batches = [open(2, PRODUCER, "a"), commit(3, PRODUCER)];
    assert!(!round(&manifest, &batches, 0).changed);
}

#[test]
fn the_marker_of_a_producer_without_batches_stays_without_its_record() {
    let mut manifest = aborted(PRODUCER, 0, 1);
    let batches = [abort(1, PRODUCER), plain(2, "b", Some("1"))];
    let dated = round(&manifest, &batches, 0);
    let known = freshet_storage::state::producers::Producer {
        epoch: 0,
        coordinator_epoch: 0,
        transaction_first_offset: None,
        last_timestamp_ms: 0,
        batches: std::collections::VecDeque::new(),
    };
    manifest.producers = [(PRODUCER, known)].into_iter().collect();
    let after = round(&manifest, &dated.batches, DELETE_RETENTION_MS);
    assert_eq!(shape(&after), [(1, 0), (2, 1)]);
    assert!(!round(&manifest, &after.batches, i64::MAX / 2).changed);
}

#[test]
fn a_batch_that_cannot_be_unpacked_stays_byte_for_byte() {
    let mut bytes = batch(0, &[("a", Some("1"))]).build().to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x7f;
    let damaged = StoredBatch::from_contiguous(bytes.into()).unwrap();
    let batches = [damaged, plain(1, "a", Some("2")), plain(2, "b", Some("1"))];
    let cleaned = round(&log(&[]), &batches, 0);
    assert!(!cleaned.changed);
    assert_eq!(cleaned.batches, batches);
}

/// An earlier release took any offsets within a batch. Those of the first record say that it is
/// newer than all that follow with its key.
#[test]
fn a_batch_whose_offsets_are_not_its_own_stays_and_removes_nothing() {
    let mut bytes = batch(0, &[("a", Some("1")), ("a", Some("2"))]).build().to_vec();
    let first_delta = freshet_wire::records::HEADER_BYTES + 3;
    assert_eq!(bytes[first_delta], 0);
    bytes[first_delta] = 60;
    let damaged = StoredBatch::from_contiguous(bytes.into()).unwrap();
    let batches = [damaged.clone(), plain(2, "a", Some("3")), plain(3, "a", Some("4"))];
    let cleaned = round(&log(&[]), &batches, 0);
    assert_eq!(shape(&cleaned), [(0, 2), (3, 1)]);
    assert_eq!(cleaned.batches[0], damaged);
    let mut named = None;
    let mut keys = KeyOffsets::new(DirtyRange { from: 0, until: 4 }, 1 << 20);
    note_batch(&mut keys, &mut Transactions::new(&[]), &damaged, |error| {
        named = Some(error.is_limit());
    });
    assert_eq!(named, Some(false), "it is named as damaged, and not as too large");
}

#[test]
fn a_log_is_read_in_runs_that_fit_into_an_object() {
    const MIB: u64 = 1 << 20;
    let spans = |bytes: &[u64], end| -> Vec<(i64, i64)> {
        let manifest = log(bytes);
        let runs = runs(&manifest.segments, end);
        runs.map(|run| (run[0].base_offset, run[run.len() - 1].end_offset)).collect()
    };
    assert_eq!(spans(&[20 * MIB, 12 * MIB, MIB], 30), [(0, 20), (20, 30)]);
    assert_eq!(spans(&[40 * MIB, MIB, 50 * MIB], 30), [(0, 10), (10, 20), (20, 30)]);
    assert_eq!(spans(&[MIB; 4], 21), [(0, 30)], "what the round came to, and no segment more");
    assert_eq!(spans(&[], 0), []);
}
