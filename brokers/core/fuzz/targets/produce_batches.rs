//! One batch, as a producer sends it: what is accepted can be read back, from its first record to
//! its last, also where it was compressed anew.
#![no_main]

use bytes::Bytes;
use freshet_fuzz::{DECOMPRESSED_BYTES_MAX, limits};
use freshet_wire::records::{
    Batches, Compression, ProduceLimits, Records, StoredBatch, Tail, UNPACKED_BYTES_MAX,
    UnpackLimits, find_by_timestamp, validate_produced, walk_records,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(&with_checksum(data));
    let codecs = [None, Some(Compression::Gzip.into()), Some(Compression::None.into())];
    for (compacted, stored_codec) in [false, true, false].into_iter().zip(codecs) {
        let limits = ProduceLimits { stored_codec, ..limits(compacted) };
        if let Ok(batch) = validate_produced(bytes.clone(), &limits) {
            let header = *batch.header();
            let unpack = UnpackLimits::of_output(UNPACKED_BYTES_MAX);
            let mut largest = -1;
            walk_records(&header, batch.payload(), unpack, |record| {
                largest = largest.max(record.timestamp);
            })
            .expect("what was accepted is readable");
            assert_eq!(header.max_timestamp, largest);
            let stored = StoredBatch::new(batch, 5, 1);
            assert_eq!(stored.base_offset(), 5);
            stored.verify_checksum().expect("an accepted batch has a good checksum");
            assert_eq!(StoredBatch::from_contiguous(stored.to_bytes()), Ok(stored));
        }
    }
    for batch in Batches::new(bytes, Tail::Report).flatten() {
        let header = batch.header();
        let records = Records::new(header, &batch.payload(), DECOMPRESSED_BYTES_MAX);
        if let Ok(records) = records {
            for record in records {
                if record.is_err() {
                    break;
                }
            }
        }
        let _ = find_by_timestamp(&batch, header.max_timestamp, header.base_offset);
    }
});

/// The bytes with the length and the checksum that they should have, so that what lies behind these
/// two checks is reached.
fn with_checksum(data: &[u8]) -> Vec<u8> {
    const LENGTH_AT: usize = 8;
    const CHECKSUM_AT: usize = 17;
    const CHECKED_FROM: usize = 21;
    let mut bytes = data.to_vec();
    if bytes.len() >= 61 {
        let length = u32::try_from(bytes.len() - LENGTH_AT - 4).expect("a small input");
        bytes[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
        let checksum = freshet_wire::codec::crc32c(&bytes[CHECKED_FROM..]);
        bytes[CHECKSUM_AT..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
    }
    bytes
}
