//! Records that stay in a batch, and that another implementation reads the batch.

use super::*;
use crate::records::{BatchBuilder, Compression, Record};
use kafka_protocol::records::RecordBatchDecoder;

const HORIZON_MS: i64 = 1_900_000_000_000;

fn sample(codec: Compression) -> StoredBatch {
    let batch = BatchBuilder::new(100)
        .compression(codec)
        .leader_epoch(4)
        .producer(7, 2, 30)
        .record_with_headers(1_000, Some(b"a"), Some(b"one"), &[("h", Some(b"x"))])
        .record(900, Some(b"b"), Some(b"two"))
        .record(1_200, Some(b"c"), None)
        .record(1_100, Some(b"a"), Some(b"three"));
    StoredBatch::from_contiguous(batch.build()).unwrap()
}

fn rewritten(retained: Retained) -> StoredBatch {
    let Retained::Rewritten(batch) = retained else { panic!("{retained:?}") };
    batch.verify_checksum().unwrap();
    batch
}

fn records(batch: &StoredBatch) -> Vec<Record> {
    batch.records(1 << 20).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_batch_of_which_all_stays_is_left_as_it_is() {
    let plain = BatchBuilder::new(0).record(1, Some(b"k"), Some(b"v")).build();
    let plain = StoredBatch::from_contiguous(plain).unwrap();
    assert_eq!(plain.retain(HORIZON_MS, false, |_| true), Ok(Retained::Same));
    assert_eq!(plain.retain(HORIZON_MS, false, |_| false), Ok(Retained::Nothing));
}

#[test]
fn what_stays_keeps_offsets_timestamps_headers_and_the_producers_numbers() {
    for codec in [Compression::None, Compression::Gzip, Compression::Lz4, Compression::Zstd] {
        let batch = sample(codec);
        let kept = batch.retain(HORIZON_MS, false, |record| record.offset % 3 == 1);
        let kept = rewritten(kept.unwrap());
        let (before, after) = (batch.header(), kept.header());
        assert_eq!(records(&kept), [records(&batch)[0].clone(), records(&batch)[3].clone()]);
        assert_eq!(after.compression(), Ok(codec));
        assert_eq!((after.base_offset, after.last_offset()), (100, 103));
        assert_eq!((after.base_sequence, after.last_sequence()), (30, 33));
        assert_eq!((after.producer_id, after.producer_epoch), (7, 2));
        assert_eq!((after.partition_leader_epoch, after.record_count), (4, 2));
        assert_eq!((after.max_timestamp, before.max_timestamp), (1_100, 1_200));
        assert_eq!(after.delete_horizon_ms(), None);
    }
}

#[test]
fn a_tombstone_that_stays_gives_its_batch_a_horizon_once() {
    let batch = sample(Compression::Snappy);
    let first = rewritten(batch.retain(HORIZON_MS, false, |_| true).unwrap());
    assert_eq!(first.header().delete_horizon_ms(), Some(HORIZON_MS));
    assert_eq!(records(&first), records(&batch));
    assert_eq!(first.retain(HORIZON_MS + 5, false, |_| true), Ok(Retained::Same));
    let later = rewritten(first.retain(HORIZON_MS + 5, false, |at| at.offset > 100).unwrap());
    assert_eq!(later.header().delete_horizon_ms(), Some(HORIZON_MS));
    assert_eq!(records(&later), records(&batch)[1..]);
}

#[test]
fn another_implementation_reads_a_batch_with_a_horizon() {
    let batch = rewritten(sample(Compression::None).retain(HORIZON_MS, false, |_| true).unwrap());
    let set = RecordBatchDecoder::decode(&mut batch.to_bytes()).unwrap();
    let records: Vec<_> =
        set.records.iter().map(|record| (record.offset, record.timestamp)).collect();
    assert_eq!(records, [(100, 1_000), (101, 900), (102, 1_200), (103, 1_100)]);
}

#[test]
fn a_marker_that_outlived_its_records_gets_a_horizon() {
    let marker = BatchBuilder::new(9).producer(7, 0, -1).transactional(true).control(true);
    let marker = marker.record(5, Some(&[0, 0, 0, 1]), Some(&[0; 6])).build();
    let marker = StoredBatch::from_contiguous(marker).unwrap();
    assert_eq!(marker.retain(HORIZON_MS, false, |_| true), Ok(Retained::Same));
    let dated = rewritten(marker.retain(HORIZON_MS, true, |_| true).unwrap());
    assert_eq!(dated.header().delete_horizon_ms(), Some(HORIZON_MS));
    assert!(dated.header().is_control() && dated.header().is_transactional());
}

#[test]
fn an_emptied_batch_keeps_its_offsets_and_the_producers_numbers() {
    let batch = sample(Compression::Zstd);
    let empty = batch.emptied();
    empty.verify_checksum().unwrap();
    assert_eq!(records(&empty), []);
    let header = empty.header();
    assert_eq!((header.base_offset, header.last_offset(), header.record_count), (100, 103, 0));
    assert_eq!((header.last_sequence(), header.producer_epoch), (33, 2));
    assert_eq!((header.compression(), header.max_timestamp), (Ok(Compression::None), 1_200));
    assert_eq!(empty.emptied(), empty);
    assert_eq!(empty.retain(HORIZON_MS, false, |_| true), Ok(Retained::Nothing));
}

#[test]
fn a_batch_that_cannot_be_unpacked_is_refused() {
    let mut bytes = sample(Compression::None).to_bytes().to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x7f;
    let damaged = StoredBatch::from_contiguous(bytes.into()).unwrap();
    assert!(damaged.retain(HORIZON_MS, false, |_| true).is_err());
    assert!(damaged.visit_facts(|_| panic!("nothing is visited")).is_err());
}

/// librdkafka cannot read such a key; Java's clients take it for none.
#[test]
fn a_record_whose_key_has_the_length_minus_five_is_damaged() {
    let mut bytes = BatchBuilder::new(0).record(1, None, Some(b"v")).build().to_vec();
    let key_length = crate::records::HEADER_BYTES + 4;
    assert_eq!(bytes[key_length], 1, "-1, zigzag");
    bytes[key_length] = 9;
    let batch = StoredBatch::from_contiguous(bytes.into()).unwrap();
    assert!(batch.walk(|_| panic!("nothing is visited")).is_err());
    assert!(batch.visit_facts(|_| panic!("nothing is visited")).is_err());
}

#[test]
fn a_batch_whose_offsets_are_not_in_order_is_left_alone() {
    let mut bytes = sample(Compression::None).to_bytes().to_vec();
    let first = crate::records::HEADER_BYTES + 3;
    assert_eq!(bytes[first], 0, "the first record's offset delta");
    bytes[first] = 0x0e;
    let batch = StoredBatch::from_contiguous(bytes.into()).unwrap();
    assert!(batch.visit_facts(|_| panic!("nothing is visited")).is_err());
    assert!(batch.retain(HORIZON_MS, false, |_| false).is_err());
}

/// The horizon stands in the place of the base timestamp, and lies behind all records.
#[test]
fn a_batch_with_a_delete_horizon_names_its_largest_timestamp() {
    let kept = rewritten(sample(Compression::None).retain(HORIZON_MS, false, |_| true).unwrap());
    assert!(kept.header().base_timestamp > kept.header().max_timestamp);
    assert!(kept.header().names_largest_timestamp());
    assert!(!kept.header().may_reach(1_201));
}
