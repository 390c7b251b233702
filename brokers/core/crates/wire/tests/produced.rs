//! What a producer may send and what not: a table of batches with the answer to each, under every
//! codec, and random ones. What is accepted, each decoder reads back alike, with offsets that
//! increase by one.

use bytes::{BufMut, Bytes, BytesMut};
use freshet_wire::codec::{WriteExt, crc32c};
use freshet_wire::records::{
    Compression, HEADER_BYTES, ProduceLimits, StoredBatch, TimestampType, compress, decompress,
    validate_produced,
};
use kafka_protocol::records::RecordBatchDecoder;
use proptest::collection::vec;
use proptest::prelude::*;

const NOW: i64 = 1_700_000_000_000;
const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];
const ACCEPTED: &str = "accepted";
const RECORD: &str = "InvalidRecord";
const TIME: &str = "InvalidTimestamp";

/// A record of which each number may be any.
#[derive(Debug, Clone)]
struct Sent {
    /// Behind the length that the record has.
    length_too_long_by: i64,
    attributes: i8,
    timestamp_delta: i64,
    /// A varint, byte by byte.
    offset_delta: Vec<u8>,
    /// Key and value: length, and the bytes that follow.
    key: (i64, Vec<u8>),
    value: (i64, Vec<u8>),
    header_count: i64,
    /// The headers' keys and values.
    headers: Vec<[(i64, Vec<u8>); 2]>,
}

fn varint(number: i64) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_varint(number);
    out.to_vec()
}

fn sized(bytes: &[u8]) -> (i64, Vec<u8>) {
    (bytes.len() as i64, bytes.to_vec())
}

fn record(offset_delta: i64) -> Sent {
    Sent {
        length_too_long_by: 0,
        attributes: 0,
        timestamp_delta: offset_delta,
        offset_delta: varint(offset_delta),
        key: sized(b"key"),
        value: sized(b"value"),
        header_count: 0,
        headers: Vec::new(),
    }
}

impl Sent {
    fn write(&self, out: &mut BytesMut) {
        let mut body = BytesMut::new();
        body.put_i8(self.attributes);
        body.put_varint(self.timestamp_delta);
        body.put_slice(&self.offset_delta);
        let put = |(length, bytes): &(i64, Vec<u8>), body: &mut BytesMut| {
            body.put_varint(*length);
            body.put_slice(bytes);
        };
        put(&self.key, &mut body);
        put(&self.value, &mut body);
        body.put_varint(self.header_count);
        for [key, value] in &self.headers {
            put(key, &mut body);
            put(value, &mut body);
        }
        out.put_varint(body.len() as i64 + self.length_too_long_by);
        out.put_slice(&body);
    }
}

/// A batch whose header may say anything of its records.
#[derive(Debug, Clone)]
struct Batch {
    base_offset: i64,
    leader_epoch: i32,
    attributes: i16,
    last_offset_delta: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer: (i64, i16, i32),
    count: i32,
    records: Vec<Sent>,
    behind: &'static [u8],
}

fn batch(records: Vec<Sent>) -> Batch {
    let count = i32::try_from(records.len()).expect("few records");
    Batch {
        base_offset: 0,
        leader_epoch: -1,
        attributes: 0,
        last_offset_delta: count - 1,
        base_timestamp: NOW,
        max_timestamp: NOW,
        producer: (-1, -1, -1),
        count,
        records,
        behind: b"",
    }
}

fn three() -> Batch {
    batch((0..3).map(record).collect())
}

impl Batch {
    fn build(&self, codec: Compression) -> Bytes {
        let mut records = BytesMut::new();
        self.records.iter().for_each(|record| record.write(&mut records));
        records.put_slice(self.behind);
        let payload = compress(codec, &records.freeze());
        let mut out = BytesMut::new();
        out.put_i64(self.base_offset);
        out.put_i32(i32::try_from(HEADER_BYTES - 12 + payload.len()).expect("a small batch"));
        out.put_i32(self.leader_epoch);
        out.put_i8(2);
        out.put_u32(0);
        out.put_i16(self.attributes | i16::from(codec as u8));
        out.put_i32(self.last_offset_delta);
        out.put_i64(self.base_timestamp);
        out.put_i64(self.max_timestamp);
        out.put_i64(self.producer.0);
        out.put_i16(self.producer.1);
        out.put_i32(self.producer.2);
        out.put_i32(self.count);
        out.put_slice(&payload);
        let crc = crc32c(&out[21..]).to_be_bytes();
        out[17..21].copy_from_slice(&crc);
        out.freeze()
    }
}

fn deltas(deltas: &[i64]) -> Batch {
    let with = |delta: &i64| Sent { timestamp_delta: 0, ..record(*delta) };
    batch(deltas.iter().map(with).collect())
}

/// Batch of one record, of which something is changed.
fn one(change: impl FnOnce(&mut Sent)) -> Batch {
    let mut only = record(0);
    change(&mut only);
    batch(vec![only])
}

fn times(base: i64, deltas: &[i64]) -> Batch {
    let with = |(at, delta): (usize, &i64)| Sent { timestamp_delta: *delta, ..record(at as i64) };
    Batch { base_timestamp: base, ..batch(deltas.iter().enumerate().map(with).collect()) }
}

fn offsets_and_lengths() -> Vec<(&'static str, Batch, &'static str)> {
    vec![
        ("offset deltas 0, 1, 2", three(), ACCEPTED),
        ("offset deltas 0, 7, 2", deltas(&[0, 7, 2]), RECORD),
        ("offset deltas 0, -5, 2", deltas(&[0, -5, 2]), RECORD),
        ("offset deltas 0, 0, 0", deltas(&[0, 0, 0]), RECORD),
        ("offset deltas 2, 1, 0", deltas(&[2, 1, 0]), RECORD),
        ("offset deltas 1, 2, 3", deltas(&[1, 2, 3]), RECORD),
        ("a last offset delta of 2^31 - 1", deltas(&[0, 1, i32::MAX.into()]), RECORD),
        (
            "gaps for which the header has room, as only compaction leaves them",
            Batch { last_offset_delta: 4, ..deltas(&[0, 2, 4]) },
            RECORD,
        ),
        (
            "header: last offset delta 2^31 - 1",
            Batch { last_offset_delta: i32::MAX, ..three() },
            RECORD,
        ),
        ("header: last offset delta -1", Batch { last_offset_delta: -1, ..three() }, RECORD),
        ("header: 2 records", Batch { count: 2, ..three() }, RECORD),
        (
            "header: 2 records and offsets",
            Batch { count: 2, last_offset_delta: 1, ..three() },
            RECORD,
        ),
        (
            "header: 4 records and offsets",
            Batch { count: 4, last_offset_delta: 3, ..three() },
            RECORD,
        ),
        ("header: base offset 1", Batch { base_offset: 1, ..three() }, RECORD),
        ("header: leader epoch 9", Batch { leader_epoch: 9, ..three() }, ACCEPTED),
        (
            "an offset delta of 33 bits",
            one(|sent| sent.offset_delta = vec![0x80, 0x80, 0x80, 0x80, 0x10]),
            RECORD,
        ),
        (
            "an offset delta of six bytes",
            one(|sent| sent.offset_delta = vec![0x80, 0x80, 0x80, 0x80, 0x80, 0]),
            RECORD,
        ),
        (
            "an offset delta of two bytes that fits one",
            one(|sent| sent.offset_delta = vec![0x80, 0]),
            ACCEPTED,
        ),
        ("a record longer than its fields", one(|sent| sent.length_too_long_by = 1), RECORD),
        ("a record shorter than its fields", one(|sent| sent.length_too_long_by = -1), RECORD),
        ("a record of negative length", one(|sent| sent.length_too_long_by = -100), RECORD),
        ("a byte behind the last record", Batch { behind: b"\0", ..three() }, RECORD),
        (
            "a record behind the last",
            Batch { behind: b"\x10\0\0\0\x02k\x02v\0", ..three() },
            RECORD,
        ),
        ("no key", one(|sent| sent.key = (-1, vec![])), ACCEPTED),
        ("a key of length -2", one(|sent| sent.key = (-2, vec![])), RECORD),
        ("a value of length -2", one(|sent| sent.value = (-2, vec![])), RECORD),
        ("a key of 2^31 bytes", one(|sent| sent.key = (1 << 31, vec![])), RECORD),
        ("a key longer than the record", one(|sent| sent.key = (100, vec![])), RECORD),
        ("attributes of a record", one(|sent| sent.attributes = 0x55), ACCEPTED),
    ]
}

fn headers_of_records() -> Vec<(&'static str, Batch, &'static str)> {
    let headers = |count: i64, headers: Vec<[(i64, Vec<u8>); 2]>| {
        one(|sent| (sent.header_count, sent.headers) = (count, headers))
    };
    let header = || [sized(b"name"), sized(b"value")];
    vec![
        ("a header", headers(1, vec![header()]), ACCEPTED),
        ("a header twice", headers(2, vec![header(), header()]), ACCEPTED),
        ("a header without a value", headers(1, vec![[sized(b"name"), (-1, vec![])]]), ACCEPTED),
        ("a header whose key is no UTF-8", headers(1, vec![[sized(&[0xff]), sized(b"")]]), RECORD),
        (
            "a header whose key is long and not ASCII",
            headers(1, vec![[sized("é€𝄞".repeat(30_000).as_bytes()), sized(b"")]]),
            ACCEPTED,
        ),
        (
            "a header whose key ends within a character",
            headers(1, vec![[sized(&"€".as_bytes()[..2]), sized(b"value")]]),
            RECORD,
        ),
        ("a header without a key", headers(1, vec![[(-1, vec![]), sized(b"value")]]), RECORD),
        ("a header's value of length -2", headers(1, vec![[sized(b"name"), (-2, vec![])]]), RECORD),
        ("-1 headers", headers(-1, vec![]), RECORD),
        ("1 header of 2", headers(2, vec![header()]), RECORD),
        ("2 headers of 1", headers(1, vec![header(), header()]), RECORD),
        ("2^31 - 1 headers", headers(i32::MAX.into(), vec![header()]), RECORD),
    ]
}

fn timestamps() -> Vec<(&'static str, Batch, &'static str)> {
    vec![
        ("no time at all", times(-1, &[0, 0]), ACCEPTED),
        ("the first of 1970", times(0, &[0]), ACCEPTED),
        ("no time, then one", times(-1, &[0, NOW + 1]), ACCEPTED),
        ("a time, then none", times(NOW, &[0, -NOW - 1]), ACCEPTED),
        ("a time before 1970", times(NOW, &[0, -NOW - 2]), TIME),
        ("-2^61", times(NOW, &[-(1 << 61) - NOW]), TIME),
        ("base -5", times(-5, &[0]), TIME),
        ("base -5, records with a time", times(-5, &[NOW, NOW]), TIME),
        ("base of the least number", times(i64::MIN, &[i64::MAX]), TIME),
        ("a sum beyond 64 bits", times(i64::MAX, &[i64::MAX]), TIME),
        ("an hour ahead, and a little more", times(NOW, &[3_600_001]), TIME),
        (
            "a largest time of -1, as Sarama sends it",
            Batch { max_timestamp: -1, ..three() },
            ACCEPTED,
        ),
        (
            "a largest time that no record has",
            Batch { max_timestamp: i64::MAX, ..three() },
            ACCEPTED,
        ),
    ]
}

fn flags() -> Vec<(&'static str, Batch, &'static str)> {
    let attributes = |attributes: i16| Batch { attributes, ..three() };
    let producer =
        |id: i64, epoch: i16, sequence: i32| Batch { producer: (id, epoch, sequence), ..three() };
    vec![
        ("a control batch", attributes(0x20), RECORD),
        ("a transaction without a producer", attributes(0x10), RECORD),
        ("LogAppendTime, which the broker sets", attributes(0x08), ACCEPTED),
        ("a delete horizon, which compaction sets", attributes(0x40), ACCEPTED),
        ("a bit without a meaning", attributes(0x80), ACCEPTED),
        ("a producer", producer(5, 0, 0), ACCEPTED),
        ("a producer at its last sequence number", producer(5, 0, i32::MAX), ACCEPTED),
        ("a producer without a sequence number", producer(5, 0, -1), RECORD),
        ("a producer without an epoch", producer(5, -1, 0), "InvalidProducerEpoch"),
    ]
}

fn limits() -> ProduceLimits {
    ProduceLimits {
        max_message_bytes: 1 << 20,
        now_ms: NOW,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        message_timestamp_type: TimestampType::CreateTime,
        compacted: false,
        stored_codec: None,
    }
}

/// The answer to a batch. What is accepted is read back by both decoders.
fn answer(bytes: &Bytes, limits: &ProduceLimits) -> String {
    match validate_produced(bytes.clone(), limits) {
        Err(rejection) => format!("{:?}", rejection.error),
        Ok(accepted) => {
            read_back(&StoredBatch::new(accepted, 1_000, 3));
            ACCEPTED.to_owned()
        }
    }
}

fn read_back(stored: &StoredBatch) {
    stored.verify_checksum().expect("a good checksum");
    let header = stored.header();
    assert_eq!((header.base_offset, header.partition_leader_epoch), (1_000, 3));
    let records: Vec<_> = stored
        .records(1 << 20)
        .expect("it decompresses")
        .map(|record| record.expect("it is readable"))
        .collect();
    assert_eq!(records.len(), usize::try_from(header.record_count).expect("a count"));
    assert_eq!(header.record_count, header.last_offset_delta + 1);
    assert!(records.iter().map(|record| record.offset).eq(1_000..header.next_offset()));
    let largest = records.iter().map(|record| record.timestamp).max();
    assert_eq!(Some(header.max_timestamp), largest);
    assert!(records.iter().all(|record| record.timestamp >= -1));
    if header.timestamp_type() == TimestampType::CreateTime {
        let others = decoded_by_another(stored);
        let fields = records.iter().map(|record| (record.offset, &record.key, &record.value));
        assert!(fields.eq(others.iter().map(|other| (other.offset, &other.key, &other.value))));
    }
}

fn decoded_by_another(stored: &StoredBatch) -> Vec<kafka_protocol::records::Record> {
    let codec = stored.header().compression().expect("a codec");
    let unpack =
        |payload: &mut Bytes, _| Ok(decompress(codec, payload, 1 << 20).expect("it decompresses"));
    let mut bytes = stored.to_bytes();
    RecordBatchDecoder::decode_with_custom_compression(&mut bytes, Some(unpack))
        .expect("it decodes")
        .records
}

#[test]
fn each_batch_of_the_table_gets_its_answer_under_every_codec() {
    let tables = [offsets_and_lengths(), headers_of_records(), timestamps(), flags()];
    for (name, batch, expected) in tables.into_iter().flatten() {
        for sent in CODECS {
            let bytes = batch.build(sent);
            assert_eq!(answer(&bytes, &limits()), expected, "{name}, {sent:?}");
            for stored in CODECS {
                let limits = ProduceLimits { stored_codec: Some(stored.into()), ..limits() };
                assert_eq!(answer(&bytes, &limits), expected, "{name}, {sent:?} to {stored:?}");
            }
        }
    }
}

/// Times that the broker sets are not judged, whatever the producer wrote.
#[test]
fn a_topic_with_append_time_keeps_no_time_of_a_producer() {
    let append = TimestampType::LogAppendTime;
    let limits = ProduceLimits { message_timestamp_type: append, ..limits() };
    for (name, batch, _) in timestamps() {
        assert_eq!(answer(&batch.build(Compression::None), &limits), ACCEPTED, "{name}");
    }
}

#[test]
fn a_compacted_topic_takes_the_same_batches_where_each_record_has_a_key() {
    let compacted = ProduceLimits { compacted: true, ..limits() };
    let without = one(|sent| sent.key = (-1, vec![]));
    for codec in CODECS {
        assert_eq!(answer(&three().build(codec), &compacted), ACCEPTED);
        assert_eq!(answer(&without.build(codec), &compacted), RECORD);
    }
}

/// A number that is near to the right one, or anything.
fn near(right: i64) -> impl Strategy<Value = i64> {
    prop_oneof![12 => Just(right), 1 => right - 3..right + 4, 1 => any::<i64>()]
}

fn bytes_or_none() -> impl Strategy<Value = (i64, Vec<u8>)> {
    let content = vec(any::<u8>(), 0..20);
    prop_oneof![
        12 => content.prop_map(|bytes| sized(&bytes)),
        4 => Just((-1, vec![])),
        1 => (-4_i64..4, vec(any::<u8>(), 0..4)),
    ]
}

fn record_at(index: usize) -> impl Strategy<Value = Sent> {
    let header = [bytes_or_none(), bytes_or_none()];
    let fields = (
        near(0),
        near(index as i64),
        near(0),
        bytes_or_none(),
        bytes_or_none(),
        vec(header, 0..3),
        near(0),
    );
    fields.prop_map(|(time, offset, long, key, value, headers, more)| Sent {
        length_too_long_by: long.clamp(-100, 100),
        attributes: 0,
        timestamp_delta: time,
        offset_delta: varint(offset),
        key,
        value,
        header_count: (headers.len() as i64).saturating_add(more),
        headers,
    })
}

fn random_batch() -> impl Strategy<Value = Batch> {
    let records = (1_usize..5).prop_flat_map(|count| {
        (0..count).map(|index| record_at(index).boxed()).collect::<Vec<_>>()
    });
    let small = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
    (records, near(0), near(0), near(NOW)).prop_map(move |(records, count, last, base)| {
        let sound = batch(records);
        Batch {
            count: sound.count.saturating_add(small(count)),
            last_offset_delta: sound.last_offset_delta.saturating_add(small(last)),
            base_timestamp: base,
            ..sound
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_accepted_is_read_back_with_offsets_that_increase_by_one(
        batch in random_batch(),
        sent in 0_usize..5,
    ) {
        // The compression says nothing of the records: each codec gets the same answer.
        let expected = answer(&batch.build(Compression::None), &limits());
        prop_assert_eq!(answer(&batch.build(CODECS[sent]), &limits()), expected);
    }
}
