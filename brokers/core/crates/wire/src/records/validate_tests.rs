//! Which batches are accepted, and how they are stored.

use std::io::Write;

use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};

use super::super::build::reseal;
use super::*;
use crate::records::{BatchBuilder, StoredBatch, compress};

const NOW: i64 = 1_700_000_000_000;
const HOUR: i64 = 3_600_000;

fn limits() -> ProduceLimits {
    ProduceLimits {
        max_message_bytes: 1_048_588,
        now_ms: NOW,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: HOUR,
        message_timestamp_type: TimestampType::CreateTime,
        compacted: false,
        stored_codec: None,
    }
}

fn sample() -> BatchBuilder {
    BatchBuilder::new(0).record(NOW, Some(b"k"), Some(b"v")).record(NOW + 1, None, None)
}

/// Overwrites a field and, below the checksum, repairs the checksum.
fn changed(at: usize, value: &[u8]) -> Bytes {
    let mut bytes = sample().build().to_vec();
    bytes[at..at + value.len()].copy_from_slice(value);
    reseal(&mut bytes);
    bytes.into()
}

fn error_of(records: Bytes, limits: &ProduceLimits) -> ResponseError {
    validate_produced(records, limits).unwrap_err().error
}

#[test]
fn a_good_batch_is_kept_without_a_copy() {
    let bytes = sample().producer(5, 0, 0).build();
    let batch = validate_produced(bytes.clone(), &limits()).unwrap();
    assert_eq!(batch.payload().as_ptr(), bytes[HEADER_BYTES..].as_ptr());
    assert_eq!(batch.log_append_time_ms(), None);
    assert_eq!(batch.header().producer_id, 5);
}

#[test]
fn damage_is_a_corrupt_message() {
    let mut bytes = sample().build().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    assert_eq!(error_of(bytes.into(), &limits()), ResponseError::CorruptMessage);
    assert_eq!(error_of(changed(16, &[3]), &limits()), ResponseError::CorruptMessage);
    let length = 20_i32.to_be_bytes();
    assert_eq!(error_of(changed(8, &length), &limits()), ResponseError::CorruptMessage);
}

#[test]
fn whatever_is_not_one_current_batch_is_an_invalid_record() {
    let good = sample().build();
    let mut old = vec![0; 30];
    (old[11], old[16]) = (18, 1);
    let two = Bytes::from([&good[..], &good[..]].concat());
    let cases: [(&str, Bytes); 14] = [
        ("nothing", Bytes::new()),
        ("a part", good.slice(..good.len() - 1)),
        ("less than a header", good.slice(..40)),
        ("two batches", two),
        ("magic 1", changed(16, &[1])),
        ("a short message of magic 1", old.into()),
        ("a base offset", changed(0, &1_i64.to_be_bytes())),
        ("more records than offsets", changed(57, &3_i32.to_be_bytes())),
        ("no records", changed(57, &0_i32.to_be_bytes())),
        ("a negative range", changed(23, &(-1_i32).to_be_bytes())),
        ("an unknown compression", changed(21, &5_i16.to_be_bytes())),
        ("a control batch", sample().control(true).build()),
        ("a producer without sequence", sample().producer(4, 0, -1).build()),
        ("a transaction without producer", sample().transactional(true).build()),
    ];
    for (name, records) in cases {
        assert_eq!(error_of(records, &limits()), ResponseError::InvalidRecord, "{name}");
    }
}

#[test]
fn a_count_that_the_bytes_cannot_hold_is_refused() {
    let mut bytes = sample().build().to_vec();
    bytes[23..27].copy_from_slice(&(i32::MAX - 1).to_be_bytes());
    bytes[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    reseal(&mut bytes);
    assert_eq!(error_of(bytes.into(), &limits()), ResponseError::InvalidRecord);
}

#[test]
fn what_says_that_there_is_no_producer_is_tolerated() {
    for id in [-1, -5, i64::MIN] {
        let batch = sample().producer(id, -1, 0).build();
        validate_produced(batch, &limits()).unwrap();
    }
    let batch = sample().producer(4, -1, 0).build();
    assert_eq!(error_of(batch, &limits()), ResponseError::InvalidProducerEpoch);
}

#[test]
fn what_cannot_be_another_batch_is_cut_off_as_in_kafka() {
    let good = sample().build();
    let followed_by = |more: &[u8]| Bytes::from([&good[..], more].concat());
    let batch = validate_produced(followed_by(&[7; 11]), &limits()).unwrap();
    assert_eq!(batch.size_bytes(), good.len());
    let half = followed_by(&good[..good.len() / 2]);
    validate_produced(half, &limits()).unwrap();
    let error = error_of(followed_by(&[0; 12]), &limits());
    assert_eq!(error, ResponseError::CorruptMessage);
}

#[test]
fn size_is_bounded_inclusively() {
    let bytes = sample().build();
    let exact = ProduceLimits { max_message_bytes: bytes.len(), ..limits() };
    validate_produced(bytes.clone(), &exact).unwrap();
    let less = ProduceLimits { max_message_bytes: bytes.len() - 1, ..limits() };
    assert_eq!(error_of(bytes, &less), ResponseError::MessageTooLarge);
}

#[test]
fn timestamps_out_of_range_are_named_by_record() {
    let late = BatchBuilder::new(0).record(NOW, None, None).record(NOW + HOUR + 1, None, None);
    let rejection = validate_produced(late.build(), &limits()).unwrap_err();
    assert_eq!(rejection.error, ResponseError::InvalidTimestamp);
    assert_eq!(rejection.record_errors.len(), 1);
    assert_eq!(rejection.record_errors[0].0, 1);
    let edge = BatchBuilder::new(0).record(NOW + HOUR, None, None).build();
    validate_produced(edge, &limits()).unwrap();

    let strict = ProduceLimits { timestamp_before_max_ms: 10, ..limits() };
    let early = BatchBuilder::new(0).record(NOW - 11, None, None).build();
    assert_eq!(error_of(early, &strict), ResponseError::InvalidTimestamp);
    let none = BatchBuilder::new(0).record(NO_TIMESTAMP, None, None).build();
    validate_produced(none, &strict).unwrap();
}

#[test]
fn a_producer_that_sets_log_append_time_is_refused_where_it_acts_and_else_ignored() {
    let batch = || sample().timestamp_type(TimestampType::LogAppendTime).build();
    let acts = ProduceLimits { message_timestamp_type: TimestampType::LogAppendTime, ..limits() };
    assert_eq!(error_of(batch(), &acts), ResponseError::InvalidTimestamp);
    let kept = StoredBatch::new(validate_produced(batch(), &limits()).unwrap(), 0, 1);
    let plain = StoredBatch::new(validate_produced(sample().build(), &limits()).unwrap(), 0, 1);
    assert_eq!(kept, plain);
}

#[test]
fn log_append_time_is_the_brokers_and_the_checksum_follows() {
    let limits = ProduceLimits { message_timestamp_type: TimestampType::LogAppendTime, ..limits() };
    let old = BatchBuilder::new(0).record(5, None, None).build();
    let batch = validate_produced(old, &limits).unwrap();
    assert_eq!(batch.log_append_time_ms(), Some(NOW));
    let stored = StoredBatch::new(batch.clone(), 9, 1);
    stored.verify_checksum().unwrap();
    let record = stored.records(1000).unwrap().next().unwrap().unwrap();
    assert_eq!((record.offset, record.timestamp), (9, NOW));
}

#[test]
fn compacted_topics_need_keys() {
    let compacted = ProduceLimits { compacted: true, ..limits() };
    for codec in [Compression::None, Compression::Snappy] {
        let batch = sample().compression(codec).build();
        validate_produced(batch.clone(), &limits()).unwrap();
        let rejection = validate_produced(batch, &compacted).unwrap_err();
        assert_eq!(rejection.error, ResponseError::InvalidRecord);
        assert_eq!(rejection.record_errors.len(), 1);
        assert_eq!(rejection.record_errors[0].0, 1);
    }
    let keyed = BatchBuilder::new(0).record(NOW, Some(b"k"), None).build();
    validate_produced(keyed, &compacted).unwrap();
}

/// The sample with another payload, under a right checksum.
fn with_payload(attributes: i16, payload: &[u8]) -> Bytes {
    let mut bytes = sample().build()[..HEADER_BYTES].to_vec();
    bytes[ATTRIBUTES_AT..ATTRIBUTES_AT + 2].copy_from_slice(&attributes.to_be_bytes());
    bytes.extend_from_slice(payload);
    let length = i32::try_from(bytes.len() - LOG_OVERHEAD).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    reseal(&mut bytes);
    bytes.into()
}

#[test]
fn what_does_not_decompress_or_is_no_record_is_refused() {
    for codec in 0..=4 {
        let junk = with_payload(codec, b"\xff\x01\x02garbage and more garbage");
        assert_eq!(error_of(junk, &limits()), ResponseError::InvalidRecord, "codec {codec}");
    }
    let records = sample().build().slice(HEADER_BYTES..);
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let packed = compress(codec, &records);
        validate_produced(with_payload(codec as i16, &packed), &limits()).unwrap();
        let cut = with_payload(codec as i16, &packed[..packed.len() - 9]);
        assert_eq!(error_of(cut, &limits()), ResponseError::InvalidRecord, "{codec:?}");
        let more = compress(codec, &[&records[..], &[0]].concat());
        let more = with_payload(codec as i16, &more);
        assert_eq!(error_of(more, &limits()), ResponseError::InvalidRecord, "{codec:?}");
    }
}

#[test]
fn the_largest_timestamp_is_that_of_the_records() {
    for codec in [Compression::None, Compression::Gzip, Compression::Zstd] {
        for claimed in [-1, NOW - 1, NOW + 7_777, i64::MAX] {
            let mut bytes = sample().compression(codec).build().to_vec();
            bytes[35..43].copy_from_slice(&i64::to_be_bytes(claimed));
            reseal(&mut bytes);
            let batch = validate_produced(bytes.into(), &limits()).unwrap();
            assert_eq!(batch.header().max_timestamp, NOW + 1);
            StoredBatch::new(batch, 3, 1).verify_checksum().unwrap();
        }
    }
}

/// Compaction would take the base timestamp for a horizon that has passed long ago.
#[test]
fn a_producers_delete_horizon_is_left_out() {
    let plain = validate_produced(sample().build(), &limits()).unwrap();
    let attributes = DELETE_HORIZON_BIT.to_be_bytes();
    let claimed = validate_produced(changed(ATTRIBUTES_AT, &attributes), &limits()).unwrap();
    assert_eq!(claimed, plain);
    StoredBatch::new(claimed, 3, 1).verify_checksum().unwrap();
}

#[test]
fn records_are_stored_in_the_codec_of_the_topic_byte_for_byte() {
    let codecs = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4];
    for codec in codecs.into_iter().chain([Compression::Zstd]) {
        for sent in codecs.into_iter().chain([Compression::Zstd]) {
            let limits = ProduceLimits { stored_codec: Some(codec.into()), ..limits() };
            let batch = sample().producer(5, 1, 9).compression(sent).build();
            let stored = validate_produced(batch, &limits).unwrap();
            assert_eq!(stored.header().compression(), Ok(codec));
            assert_eq!(stored.header().base_sequence, 9);
            let stored = StoredBatch::new(stored, 0, 0);
            stored.verify_checksum().unwrap();
            let plain = super::super::decompress(codec, &stored.payload(), 1000).unwrap();
            assert_eq!(plain, sample().build().slice(HEADER_BYTES..), "{sent:?} to {codec:?}");
        }
    }
}

#[test]
fn a_batch_that_outgrows_the_topic_is_too_large() {
    let limits = ProduceLimits {
        stored_codec: Some(Compression::None.into()),
        max_message_bytes: 10_000,
        ..limits()
    };
    let zeros = BatchBuilder::new(0).record(NOW, None, Some(&vec![0; 1 << 20]));
    let packed = zeros.compression(Compression::Zstd).build();
    assert!(packed.len() < 10_000);
    assert_eq!(error_of(packed, &limits), ResponseError::MessageTooLarge);
}

#[test]
fn a_limit_that_ends_the_reading_is_no_fault_of_the_batch() {
    let zeros = BatchBuilder::new(0).record(NOW, None, Some(&vec![0; 1 << 20]));
    for codec in [Compression::Gzip, Compression::Lz4, Compression::Snappy, Compression::Zstd] {
        let batch = zeros.clone().compression(codec).build();
        let batch = ProducedBatch::parse(batch, &limits()).unwrap();
        let read = |output_bytes: usize, memory_bytes: usize, pieces: usize| {
            let left = std::cell::Cell::new(pieces);
            let goes_on = |_: usize| {
                left.set(left.get().saturating_sub(1));
                left.get() > 0
            };
            let unpack = UnpackLimits { output_bytes, memory_bytes, goes_on: Some(&goes_on) };
            batch.read(&limits(), unpack).map(drop)
        };
        let too_large = RecordsError::TooLarge { limit: 1 << 20 };
        let result = read(1 << 20, usize::MAX, usize::MAX);
        assert_eq!(result, Err(ReadFailure::Unfinished(too_large)));
        assert_eq!(read(2 << 20, batch.memory_to_read(), usize::MAX), Ok(()));
        let stopped = read(2 << 20, usize::MAX, 3);
        assert_eq!(stopped, Err(ReadFailure::Unfinished(RecordsError::Stopped)));
        let little = read(2 << 20, 1000, usize::MAX);
        let memory = matches!(little, Err(ReadFailure::Unfinished(RecordsError::Memory { .. })));
        assert!(memory, "{codec:?}: {little:?}");
    }
}

/// A match of 258 bytes, 100 bytes back, behind a single byte: some decoders take zeros for it.
#[test]
fn gzip_that_reaches_before_its_start_is_refused() {
    let member = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0x4b, 0x1c, 0xb5, 0x03, 0x00,
        0xe2, 0x9f, 0xe2, 0x39, 0x03, 0x01, 0x00, 0x00,
    ];
    let refused = super::super::decompress(Compression::Gzip, &member.to_vec().into(), 1000);
    assert!(matches!(refused, Err(RecordsError::Payload { .. })), "{refused:?}");
}

#[test]
fn lz4_without_its_end_mark_is_refused() {
    let records = sample().build().slice(HEADER_BYTES..);
    let frame = compress(Compression::Lz4, &records);
    // What this encoder writes behind the last block: the end mark, and no checksum.
    for cut in 1..=4 {
        let cut = with_payload(3, &frame[..frame.len() - cut]);
        assert_eq!(error_of(cut, &limits()), ResponseError::InvalidRecord);
    }
}

/// A zstd frame with one raw block and this window descriptor.
fn with_window(descriptor: u8, records: &[u8]) -> Bytes {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, descriptor];
    let block = u32::try_from(records.len() << 3 | 1).unwrap().to_le_bytes();
    frame.extend(&block[..3]);
    frame.extend(records);
    with_payload(4, &frame)
}

#[test]
fn a_zstd_window_that_clients_do_not_take_is_refused_or_made_smaller() {
    let records = sample().build().slice(HEADER_BYTES..);
    // 8 MiB, a step more, 64 MiB, 128 MiB, a step more, 2 GiB.
    let kept = 13 << 3;
    for descriptor in [kept, kept | 1, 16 << 3, 17 << 3] {
        let sent = with_window(descriptor, &records);
        let accepted = validate_produced(sent.clone(), &limits()).unwrap();
        assert_eq!(accepted.payload(), &with_window(kept, &records)[HEADER_BYTES..]);
        let is_same = accepted.payload().as_ptr() == sent[HEADER_BYTES..].as_ptr();
        assert_eq!(is_same, descriptor == kept);
        let stored = StoredBatch::new(accepted, 3, 1);
        stored.verify_checksum().unwrap();
        assert_eq!(stored.records(1000).unwrap().count(), 2);
    }
    for descriptor in [17 << 3 | 1, 21 << 3] {
        let error = error_of(with_window(descriptor, &records), &limits());
        assert_eq!(error, ResponseError::InvalidRecord);
    }
}

/// A zstd frame of one segment whose content is said to have 2⁶⁴ - 3 bytes.
#[test]
fn a_frame_that_announces_more_than_there_can_be_is_refused() {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend((u64::MAX - 2).to_le_bytes());
    frame.extend([0x01, 0, 0]);
    let error = error_of(with_payload(4, &frame), &limits());
    assert_eq!(error, ResponseError::InvalidRecord);
    let batch = ProducedBatch::parse(with_payload(4, &frame), &limits()).unwrap();
    assert_eq!(batch.memory_to_read(), usize::MAX);
}

#[test]
fn linked_lz4_blocks_are_refused_as_in_kafka_and_read_where_they_are_stored() {
    let records = sample().build().slice(HEADER_BYTES..);
    let info = FrameInfo::new().block_mode(BlockMode::Linked);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(&records).unwrap();
    let batch = with_payload(3, &encoder.finish().unwrap());
    assert_eq!(error_of(batch.clone(), &limits()), ResponseError::InvalidRecord);
    let stored = StoredBatch::from_contiguous(batch).unwrap();
    assert_eq!(stored.records(1000).unwrap().count(), 2);
}
