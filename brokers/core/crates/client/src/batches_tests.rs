//! Batches as a broker might send them: sound, damaged, cut off and oversized.

use bytes::Bytes;

use super::*;
use freshet_wire::budget::Budget;
use freshet_wire::records::BatchBuilder;
use proptest::prelude::*;

const PLENTY: Duration = Duration::from_secs(60);

fn memory() -> AnswerMemory {
    AnswerMemory { own: Budget::new(1 << 30), shared: Budget::new(1 << 30) }
}

fn fetched(batches: Bytes, position: i64, is_cut: bool) -> FetchedPartition {
    let records = FetchedRecords {
        topic: "t".to_owned(),
        partition: 0,
        code: 0,
        end: 100,
        start: 0,
        batches,
        is_cut,
    };
    FetchedPartition::new(records, position, false, None, memory())
}

async fn opened(batch: Batch) -> Result<OpenBatch, Damage> {
    batch.open(PLENTY).await.unwrap()
}

fn two_records(base_offset: i64) -> BatchBuilder {
    BatchBuilder::new(base_offset).record(1_000, Some(b"k"), Some(b"one")).record_with_headers(
        1_001,
        None,
        None,
        &[("h", Some(b"1")), ("h", None)],
    )
}

/// Changes bytes of a batch and puts the right checksum in.
fn changed(batch: &Bytes, at: usize, bytes: &[u8]) -> Bytes {
    let mut changed = batch.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = freshet_wire::codec::crc32c(&changed[21..]);
    changed[17..21].copy_from_slice(&crc.to_be_bytes());
    changed.into()
}

#[tokio::test]
async fn records_come_in_order_from_an_offset_on() {
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let batches = [two_records(10).compression(compression).build(), two_records(12).build()];
        let mut part = fetched(batches.concat().into(), 11, false);
        let batch = part.next_batch().unwrap().unwrap();
        let head = batch.head();
        assert_eq!((head.first_offset, head.next_offset, head.records), (10, 12, 2));
        assert_eq!(
            (head.timestamp_ms, head.is_append_time, head.is_control),
            (1_000, false, false)
        );
        let mut open = opened(batch).await.unwrap();
        let records = open.take(11, 10, 1_000).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].offset, records[0].timestamp_ms, records[0].size), (11, 1_001, 3));
        let values: Vec<_> = records[0].headers.iter().map(|it| it.value.clone()).collect();
        assert_eq!(values, [Some(Bytes::from_static(b"1")), None]);
        assert_eq!(part.next_batch().unwrap().unwrap().head().first_offset, 12);
        assert!(part.next_batch().is_none());
    }
}

/// As earlier releases stored them, which took any offsets within a batch.
#[tokio::test]
async fn a_batch_whose_offsets_are_not_in_order_is_damaged_and_the_next_one_follows() {
    // The place of the first record's offset delta; zigzag.
    let at = HEADER_BYTES + 3;
    for delta in [1, 2, 14, 0x7f] {
        let odd = changed(&two_records(10).build(), at, &[delta]);
        let mut part = fetched([odd, two_records(12).build()].concat().into(), 10, false);
        let batch = part.next_batch().unwrap().unwrap();
        assert_eq!(opened(batch).await.unwrap_err(), Damage::Undecodable, "{delta}");
        let next = part.next_batch().unwrap().unwrap();
        assert_eq!(opened(next).await.unwrap().take(12, 10, 1_000).unwrap().len(), 2);
    }
}

#[tokio::test]
async fn few_bytes_are_taken_at_a_time_and_nothing_is_lost() {
    let builder =
        (0..10).fold(BatchBuilder::new(0), |builder, n| builder.record(n, None, Some(&[7; 100])));
    let mut part = fetched(builder.build(), 0, false);
    let mut open = opened(part.next_batch().unwrap().unwrap()).await.unwrap();
    let mut offsets = Vec::new();
    loop {
        let records = open.take(0, 10, 350).unwrap();
        if records.is_empty() {
            break;
        }
        assert!(records.len() <= 2);
        offsets.extend(records.iter().map(|record| record.offset));
    }
    assert_eq!(offsets, (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn damage_is_found_before_any_record_is_returned() {
    let batch = two_records(0).build();
    let mut bit = batch.to_vec();
    *bit.last_mut().unwrap() ^= 1;
    let damaged = [
        bit.into(),
        changed(&batch, 57, &3_i32.to_be_bytes()),
        changed(&batch, 57, &1_i32.to_be_bytes()),
        changed(&batch, 57, &i32::MAX.to_be_bytes()),
        changed(&batch, 23, &0_i32.to_be_bytes()),
        changed(&batch, 21, &7_i16.to_be_bytes()),
        changed(&batch, 21, &4_i16.to_be_bytes()),
    ];
    for (place, bytes) in damaged.into_iter().enumerate() {
        let sound = two_records(2).build();
        let mut part = fetched([bytes, sound].concat().into(), 0, false);
        let batch = part.next_batch().unwrap().unwrap();
        assert_eq!(opened(batch).await.unwrap_err(), Damage::Undecodable, "damage {place}");
        let next = part.next_batch().unwrap().unwrap();
        assert_eq!(opened(next).await.unwrap().take(0, 10, 1_000).unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_bomb_is_too_large_and_takes_no_more_than_its_bound() {
    let zeros = vec![0; UNPACKED_BYTES_MAX + 1];
    for compression in [Compression::Gzip, Compression::Zstd, Compression::Lz4] {
        let bomb = BatchBuilder::new(0).compression(compression).record(0, None, Some(&zeros));
        let mut part = fetched(bomb.build(), 0, false);
        let batch = part.next_batch().unwrap().unwrap();
        assert_eq!(opened(batch).await.unwrap_err(), Damage::TooLarge, "{compression:?}");
    }
}

/// A batch whose zstd frame has one raw block, and a window of so many bytes as a power of two.
fn with_window(exponent: u8) -> Bytes {
    let plain = two_records(10).build();
    let (header, records) = plain.split_at(HEADER_BYTES);
    let block = u32::try_from(records.len() << 3 | 1).unwrap().to_le_bytes();
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, (exponent - 10) << 3, block[0], block[1], block[2]];
    let length = i32::try_from(HEADER_BYTES - 12 + frame.len() + records.len()).unwrap();
    let batch = Bytes::from([header, &frame, records].concat());
    let batch = changed(&batch, 8, &length.to_be_bytes());
    changed(&batch, 21, &4_i16.to_be_bytes())
}

/// As earlier releases stored them: the memory of a call does not suffice for such windows.
#[tokio::test]
async fn a_window_is_no_claim_to_memory() {
    for (exponent, is_read) in [(20, true), (26, true), (27, true), (28, false), (41, false)] {
        let batches = [with_window(exponent), two_records(12).build()].concat();
        let mut part = fetched(batches.into(), 10, false);
        let bytes = 2 * DECODER_BYTES_MAX;
        part.memory = AnswerMemory { own: Budget::new(bytes), shared: Budget::new(bytes) };
        let batch = part.next_batch().unwrap().unwrap();
        match opened(batch).await {
            Ok(mut open) => {
                assert_eq!((is_read, open.take(0, 10, 1_000).unwrap().len()), (true, 2));
            }
            Err(damage) => assert_eq!((is_read, damage), (false, Damage::Undecodable)),
        }
        assert_eq!(part.next_batch().unwrap().unwrap().head().first_offset, 12);
    }
}

#[tokio::test]
async fn a_batch_of_which_the_end_was_not_read_is_too_large() {
    let batch = two_records(5).build();
    let mut part = fetched(batch.slice(..batch.len() - 1), 0, true);
    let batch = part.next_batch().unwrap().unwrap();
    assert_eq!(batch.head().next_offset, 7);
    assert_eq!(opened(batch).await.unwrap_err(), Damage::TooLarge);
    assert!(part.next_batch().is_none());
}

#[tokio::test(start_paused = true)]
async fn memory_that_others_hold_is_waited_for_and_then_given_up() {
    let memory = AnswerMemory { own: Budget::new(1 << 20), shared: Budget::new(1 << 20) };
    let held = memory.acquire(1 << 20).await;
    let batch = two_records(0).compression(Compression::Gzip).build();
    let mut part = fetched(batch.clone(), 0, false);
    part.memory = memory.clone();
    let opening = part.next_batch().unwrap().unwrap().open(PLENTY).await;
    assert_eq!(opening.unwrap_err(), ClientError::Busy);
    drop(held);
    let mut part = fetched(batch, 0, false);
    part.memory = memory;
    assert!(part.next_batch().unwrap().unwrap().open(PLENTY).await.unwrap().is_ok());
}

#[test]
fn bytes_that_are_no_batch_end_the_reading() {
    let batch = two_records(0).build();
    for (at, bytes) in [(16, &[9][..]), (8, &[0xff; 4]), (0, &[0xff; 8]), (23, &[0xff; 4])] {
        let mut part = fetched(changed(&batch, at, bytes), 0, false);
        assert!(part.next_batch().unwrap().is_err(), "changed at {at}");
        assert!(part.next_batch().is_none());
    }
}

proptest! {
    #[test]
    fn any_bytes_give_batches_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        at in 0_usize..120,
        value: u8,
        is_cut: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut batch = two_records(0).compression(Compression::Snappy).build().to_vec();
        let at = at % batch.len();
        batch[at] = value;
        for chunk in [bytes.clone(), batch.clone(), [batch, bytes].concat()] {
            let mut part = fetched(chunk.into(), 0, is_cut);
            while let Some(Ok(batch)) = part.next_batch() {
                if let Ok(mut open) = runtime.block_on(opened(batch)) {
                    while !open.take(0, 10, 1_000).unwrap().is_empty() {}
                }
            }
        }
    }
}
