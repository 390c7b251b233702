//! Bytes from outside into every decoder: no panic, and no allocation that the bytes do not
//! justify. Arbitrary bytes, damaged good ones, and the corpus beside this file.

#![allow(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use freshet_wire::budget::ArrivalBudget;
use freshet_wire::protocol::arriving::{Piece, read_piece};
use freshet_wire::protocol::fetch::FetchRequest;
use freshet_wire::protocol::frame::announced_length;
use freshet_wire::protocol::guard;
use freshet_wire::protocol::header::RequestHeader;
use freshet_wire::protocol::produce::ProduceRequest;
use freshet_wire::protocol::versions::{ADVERTISED, is_served};
use freshet_wire::records::{
    BatchBuilder, BatchHeader, Batches, Compression, ProduceLimits, ProducedBatch, Records,
    StoredBatch, Tail, TimestampType, decompress, find_by_timestamp, validate_produced,
};
use kafka_protocol::messages::ApiKey;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::AsyncReadExt;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts what each thread has allocated.
struct Counting;

fn allocated(bytes: usize) {
    let live = LIVE.get().saturating_add(bytes);
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

fn released(bytes: usize) {
    LIVE.set(LIVE.get().saturating_sub(bytes));
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        released(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        allocated(bytes);
        released(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How much `run` allocates at its peak, in bytes.
fn peak_bytes<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = run();
    (result, PEAK.get() - before)
}

/// How much a batch's records may decompress to here, in bytes.
const LIMIT: usize = 1 << 20;
/// What decompression may allocate besides output: LZ4's two buffers of at most 4 MiB, and the
/// step in which a `Vec` doubles.
const CODEC_BYTES_MAX: usize = (9 << 20) + 2 * LIMIT;
/// What reading a frame of few bytes may allocate.
const FRAME_BYTES_MAX: usize = (64 << 10) + (16 << 10);
const NOW: i64 = 1_700_000_000_000;

/// What decoding `length` bytes may allocate: a decoded element is larger than on the wire.
fn allowed(length: usize) -> usize {
    16 * 1024 + 128 * length
}

fn limits(compacted: bool) -> ProduceLimits {
    ProduceLimits {
        max_message_bytes: LIMIT,
        now_ms: NOW,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        message_timestamp_type: TimestampType::CreateTime,
        compacted,
        stored_codec: None,
    }
}

/// Reads all records; whether that worked.
fn readable(header: BatchHeader, payload: &Bytes) -> bool {
    let records = Records::new(header, payload, LIMIT);
    records.is_ok_and(|mut records| records.all(|record| record.is_ok()))
}

/// Every way in which a request's bytes are looked at.
fn decode_everything(bytes: &Bytes) {
    let (_, peak) = peak_bytes(|| RequestHeader::decode(bytes.clone()).is_ok());
    assert!(peak <= allowed(bytes.len()), "a header takes {peak} bytes");
    for &(api, oldest, newest) in ADVERTISED {
        for version in (oldest..=newest).filter(|version| is_served(api, *version)) {
            let (_, peak) = peak_bytes(|| request_is_read(api, version, bytes.clone()));
            assert!(peak <= allowed(bytes.len()), "{api:?} {version} takes {peak} bytes");
        }
    }
}

fn request_is_read(api: ApiKey, version: i16, body: Bytes) -> bool {
    match api {
        ApiKey::Produce => ProduceRequest::decode(body, version).is_ok(),
        ApiKey::Fetch => FetchRequest::decode(body, version).is_ok(),
        _ => guard::check(api, version, &body).is_ok(),
    }
}

/// Every way in which a batch's bytes are looked at.
fn read_everything(bytes: &Bytes) {
    for tail in [Tail::Tolerate, Tail::Report] {
        for batch in Batches::new(bytes.clone(), tail).flatten() {
            let _ = batch.verify_checksum();
            let header = batch.header();
            assert!(header.next_offset() >= header.last_offset());
            let (_, peak) = peak_bytes(|| readable(header, &batch.payload()));
            assert!(peak <= allowed(bytes.len()) + CODEC_BYTES_MAX, "records take {peak} bytes");
            let _ = find_by_timestamp(&batch, header.max_timestamp, header.base_offset);
        }
    }
    for compacted in [false, true] {
        let (validated, peak) = peak_bytes(|| validate_produced(bytes.clone(), &limits(compacted)));
        let memory = ProducedBatch::parse(bytes.clone(), &limits(compacted))
            .map_or(0, |batch| batch.memory_to_read());
        assert!(peak <= allowed(bytes.len()) + memory, "reading takes {peak} bytes, not {memory}");
        if let Ok(batch) = validated {
            assert!(readable(*batch.header(), batch.payload()), "what was accepted is readable");
            let stored = StoredBatch::new(batch, 5, 1);
            assert_eq!(stored.header().base_offset, 5);
            stored.verify_checksum().expect("an accepted batch has a good checksum");
            assert_eq!(StoredBatch::from_contiguous(stored.to_bytes()), Ok(stored));
        }
    }
}

/// A good batch with some records.
fn sample(codec: Compression) -> Bytes {
    let headers = [("a", Some(&b"b"[..])), ("a", None)];
    BatchBuilder::new(0)
        .compression(codec)
        .record(NOW, Some(b"key"), Some(&[7; 300]))
        .record_with_headers(NOW + 1, Some(b"k"), None, &headers)
        .build()
}

fn codec() -> impl Strategy<Value = Compression> {
    (0_u8..5).prop_map(|id| Compression::from_id(id).expect("five types"))
}

/// Recomputes a batch's checksum, so that damage below it is looked at.
fn with_checksum(mut bytes: Vec<u8>) -> Bytes {
    let crc = freshet_wire::codec::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes.into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_as_requests(bytes in vec(any::<u8>(), 0..400)) {
        decode_everything(&bytes.into());
    }

    /// Mostly zeros and ones: counts and lengths that can be, so that decoders get further.
    #[test]
    fn quiet_bytes_as_requests(
        bytes in vec(prop_oneof![20 => 0_u8..3, 1 => any::<u8>()], 0..400),
    ) {
        decode_everything(&bytes.into());
    }

    #[test]
    fn arbitrary_bytes_as_batches(bytes in vec(any::<u8>(), 0..300)) {
        read_everything(&bytes.into());
    }

    #[test]
    fn damaged_batches(
        codec in codec(),
        damage in vec((0_usize..500, any::<u8>()), 1..4),
        cut in 0_usize..500,
    ) {
        let mut bytes = sample(codec).to_vec();
        for (at, value) in damage {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        read_everything(&bytes.clone().into());
        read_everything(&with_checksum(bytes.clone()));
        bytes.truncate(cut.max(1));
        read_everything(&bytes.into());
    }

    #[test]
    fn arbitrary_bytes_as_payloads(
        codec in codec(),
        payload in vec(any::<u8>(), 0..300),
        count in 1_i32..5,
    ) {
        let mut bytes = sample(codec)[..61].to_vec();
        bytes.extend(&payload);
        let length = i32::try_from(49 + payload.len()).expect("a small batch");
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
        bytes[57..61].copy_from_slice(&count.to_be_bytes());
        read_everything(&with_checksum(bytes));
        let payload = Bytes::from(payload);
        let (out, peak) = peak_bytes(|| decompress(codec, &payload, LIMIT));
        prop_assert!(out.map_or(0, |out| out.len()) <= LIMIT);
        prop_assert!(peak <= CODEC_BYTES_MAX, "{:?} takes {} bytes", codec, peak);
    }

    #[test]
    fn arbitrary_bytes_as_frames(bytes in vec(prop_oneof![0_u8..2, any::<u8>()], 0..100)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut stream = bytes.as_slice();
        let read = || runtime.block_on(async {
            while let Some(frame) = read_frame(&mut stream).await {
                assert!(frame.len() <= bytes.len());
            }
        });
        let ((), peak) = peak_bytes(read);
        // The first piece of memory is made when a frame begins to arrive, and no more than that.
        prop_assert!(peak <= FRAME_BYTES_MAX, "frames take {} bytes", peak);
    }
}

/// Reads a frame as brokers do; `None` where there is none, or only a part of one.
async fn read_frame(stream: &mut &[u8]) -> Option<Bytes> {
    let budget = ArrivalBudget::new(256 << 20, 100 << 20);
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).await.ok()?;
    let length = announced_length(prefix, 100 << 20).ok()?;
    let (mut frame, mut memory) = (Vec::new(), budget.start());
    while frame.len() < length {
        match read_piece(stream, &mut frame, length, &mut memory).await.ok()? {
            Piece::Read(0) => return None,
            Piece::Read(_) => {}
            Piece::NeedsMemory(bytes) => memory.hold(bytes).await,
        }
    }
    Some(frame.into())
}

/// The entries of a corpus file: the words of its line, and the bytes.
fn entries(text: &'static str) -> Vec<(Vec<&'static str>, Bytes)> {
    let entry = |block: &'static str| {
        let mut lines = block.lines().filter(|line| !line.starts_with('#'));
        let words = lines.next().expect("a line with the name").split(' ').collect();
        let digits: Vec<u8> = lines.flat_map(str::bytes).collect();
        let byte = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).expect("hexadecimal");
            u8::from_str_radix(pair, 16).expect("hexadecimal")
        };
        (words, digits.chunks(2).map(byte).collect())
    };
    text.trim_end().split("\n\n").map(entry).collect()
}

#[test]
fn the_corpus_of_batches_is_judged_as_expected() {
    let entries = entries(include_str!("corpus/batches.txt"));
    assert!(entries.len() > 40);
    for (words, bytes) in entries {
        let [name, expected] = words[..] else { panic!("{words:?}") };
        let (outcome, peak) =
            peak_bytes(|| match validate_produced(bytes.clone(), &limits(false)) {
                Err(rejection) => format!("{:?}", rejection.error),
                Ok(batch) => {
                    assert!(readable(*batch.header(), batch.payload()), "{name}");
                    "accepted".to_owned()
                }
            });
        assert_eq!(outcome, expected, "{name}");
        assert!(peak <= allowed(bytes.len()) + CODEC_BYTES_MAX, "{name} takes {peak} bytes");
        read_everything(&bytes);
    }
}

#[test]
fn the_corpus_of_requests_is_judged_as_expected() {
    let entries = entries(include_str!("corpus/requests.txt"));
    assert!(entries.len() > 30);
    for (words, bytes) in entries {
        let [name, api, version, expected] = words[..] else { panic!("{words:?}") };
        let version = version.parse().expect("a version");
        let (read, peak) = peak_bytes(|| match api {
            "Header" => RequestHeader::decode(bytes.clone()).is_ok(),
            api => {
                let named = ADVERTISED.iter().find(|range| format!("{:?}", range.0) == api);
                request_is_read(named.expect("an advertised API").0, version, bytes.clone())
            }
        });
        assert_eq!(if read { "read" } else { "refused" }, expected, "{name}");
        assert!(peak <= allowed(bytes.len()), "{name} takes {peak} bytes");
        decode_everything(&bytes);
    }
}
