//! Idempotence, rule by rule (Kafka's `ProducerAppendInfo` and `ProducerStateEntry`).

use freshet_storage::state::producers::{ProducedBatch, Producer, Producers, Verdict};
use freshet_wire::records::BatchHeader;
use kafka_protocol::ResponseError;

use crate::fixture::produced;

/// The header of a producer's batch with its place in the log.
fn batch(epoch: i16, sequence: i32, count: usize, base_offset: i64) -> BatchHeader {
    let bytes = produced((7, epoch), sequence.max(0), 1000, count).producer(7, epoch, sequence);
    BatchHeader { base_offset, ..BatchHeader::parse(&bytes.build()).unwrap() }
}

/// Five batches of ten records: sequences and offsets from 0 to 49.
fn five() -> Producers {
    let mut producers = Producers::default();
    for number in 0..5 {
        producers.record(&batch(2, number * 10, 10, i64::from(number) * 10));
    }
    producers
}

fn duplicate_of(first_sequence: i32) -> Verdict {
    let base_offset = i64::from(first_sequence);
    Verdict::Duplicate(ProducedBatch {
        first_sequence,
        last_sequence: first_sequence + 9,
        base_offset,
        last_offset: base_offset + 9,
    })
}

#[test]
fn the_next_sequence_is_appended() {
    assert_eq!(five().judge(&batch(2, 50, 3, 0)), Ok(Verdict::Append));
}

#[test]
fn a_hole_and_a_step_back_are_out_of_order() {
    for sequence in [51, 49, 45, 5] {
        let judged = five().judge(&batch(2, sequence, 10, 0));
        assert_eq!(judged, Err(ResponseError::OutOfOrderSequenceNumber), "{sequence}");
    }
}

#[test]
fn each_of_the_last_five_batches_is_recognised_with_its_offset() {
    for first in [0, 10, 20, 30, 40] {
        assert_eq!(five().judge(&batch(2, first, 10, 0)), Ok(duplicate_of(first)));
    }
    let mut six = five();
    six.record(&batch(2, 50, 10, 50));
    let oldest = six.judge(&batch(2, 0, 10, 0));
    assert_eq!(
        oldest,
        Err(ResponseError::OutOfOrderSequenceNumber),
        "the sixth before is forgotten"
    );
    assert_eq!(six.judge(&batch(2, 10, 10, 0)), Ok(duplicate_of(10)));
}

#[test]
fn a_retry_with_other_records_is_not_a_duplicate() {
    let shorter = five().judge(&batch(2, 40, 9, 0));
    assert_eq!(shorter, Err(ResponseError::OutOfOrderSequenceNumber));
}

#[test]
fn an_unknown_producer_may_start_anywhere() {
    assert_eq!(Producers::default().judge(&batch(0, 1234, 1, 0)), Ok(Verdict::Append));
}

#[test]
fn a_new_epoch_starts_at_zero_and_forgets_the_old_one() {
    let mut producers = five();
    let late = producers.judge(&batch(3, 50, 1, 0));
    assert_eq!(late, Err(ResponseError::OutOfOrderSequenceNumber));
    assert_eq!(producers.judge(&batch(3, 0, 10, 0)), Ok(Verdict::Append));
    producers.record(&batch(3, 0, 10, 50));
    assert_eq!(producers.judge(&batch(2, 50, 1, 0)), Err(ResponseError::InvalidProducerEpoch));
    assert_eq!(producers.judge(&batch(3, 10, 1, 0)), Ok(Verdict::Append));
    let (_, producer) = producers.iter().next().unwrap();
    assert_eq!((producer.epoch, producer.batches.len()), (3, 1));
}

#[test]
fn sequences_wrap_after_the_largest() {
    let mut producers = Producers::default();
    producers.record(&batch(0, i32::MAX, 1, 0));
    assert_eq!(producers.judge(&batch(0, 0, 5, 0)), Ok(Verdict::Append));

    // A batch may itself wrap: records MAX-1, MAX, 0, 1.
    let mut producers = Producers::default();
    let across = batch(0, i32::MAX - 1, 4, 100);
    producers.record(&across);
    assert_eq!(producers.judge(&batch(0, 2, 1, 0)), Ok(Verdict::Append));
    let hole = producers.judge(&batch(0, 3, 1, 0));
    assert_eq!(hole, Err(ResponseError::OutOfOrderSequenceNumber));
    let expected = ProducedBatch {
        first_sequence: i32::MAX - 1,
        last_sequence: 1,
        base_offset: 100,
        last_offset: 103,
    };
    assert_eq!(producers.judge(&across), Ok(Verdict::Duplicate(expected)));
}

#[test]
fn batches_without_a_producer_are_not_remembered() {
    let mut producers = Producers::default();
    let plain = BatchHeader { producer_id: -1, producer_epoch: -1, ..batch(0, -1, 1, 0) };
    producers.record(&plain);
    assert!(producers.is_empty());
    assert_eq!(producers.judge(&plain), Ok(Verdict::Append));
}

#[test]
fn a_producer_is_forgotten_once_it_was_silent_for_long() {
    let remembered = |alive_ms: i64, since_ms: i64, end: i64| {
        let mut producers = five();
        producers.touch(7, alive_ms);
        producers.touch(8, alive_ms);
        producers.expire(since_ms, end);
        producers.len()
    };
    let durable = 50;
    assert_eq!(remembered(5000, 4999, durable), 1);
    assert_eq!(remembered(5000, 5000, durable), 0);
    assert_eq!(remembered(i64::MIN, 1008, durable), 1, "its records may be of the future");
    assert_eq!(remembered(i64::MIN, 1009, durable), 0);
    assert_eq!(remembered(0, i64::MIN, durable), 1);
    assert_eq!(remembered(5000, 5000, durable - 1), 1, "its last batch is being written");
}

#[test]
fn a_producer_with_an_open_transaction_is_never_forgotten() {
    let (id, producer) = five().iter().map(|(id, known)| (id, known.clone())).next().unwrap();
    let open = Producer { transaction_first_offset: Some(3), ..producer };
    let mut producers: Producers = [(id, open)].into_iter().collect();
    producers.expire(i64::MAX, i64::MAX);
    assert_eq!(producers.len(), 1);
}

#[test]
fn what_the_manifest_forgot_memory_forgets_unless_it_is_newer() {
    let remembered = |known: &Producers, end: i64| {
        let mut live = five();
        live.retain_known(known, end);
        live.len()
    };
    assert_eq!(remembered(&five(), 1000), 1);
    assert_eq!(remembered(&Producers::default(), 50), 0);
    assert_eq!(remembered(&Producers::default(), 49), 1, "its last batch is not split yet");
}
