//! A lane's file after a crash: whatever bytes it holds, walking over it ends, and never passes
//! over a block that is not whole.
#![no_main]

use bytes::Bytes;
use freshet_storage::lane::block::{Block, BlockHeader, HEADER_BYTES};
use freshet_storage::lane::scan::FileCursor;
use freshet_wire::codec::Crc32c;
use freshet_wire::ids::Incarnation;
use libfuzzer_sys::fuzz_target;

/// Where a block's own checksum is: it covers header and body, with zeros in its own place.
const CHECKSUM_AT: usize = 40;

fuzz_target!(|data: &[u8]| {
    walk(data.to_vec());
    walk(with_checksum(data));
});

fn walk(data: Vec<u8>) {
    let bytes = Bytes::from(data);
    let header = BlockHeader::parse(&bytes);
    let incarnation = header.map_or(Incarnation(1), |header| header.incarnation);
    let mut cursor = FileCursor::new(incarnation, None, 0, bytes);
    let mut position = 0;
    while let Ok(Some(placed)) = cursor.take(None) {
        assert!(cursor.position() > position, "the walk ends");
        position = cursor.position();
        let again = Block::parse(&placed.raw).expect("a whole block");
        assert_eq!(again.header.sequence, placed.block.header.sequence);
    }
}

/// The bytes with the checksum that their first block should have, so that what lies behind it is
/// reached.
fn with_checksum(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    if let Ok(header) = BlockHeader::parse(&Bytes::copy_from_slice(data)) {
        let end = HEADER_BYTES + header.body_bytes();
        if bytes.len() >= end {
            let checksum = Crc32c::default()
                .with(&bytes[..CHECKSUM_AT])
                .with(&[0; 4])
                .with(&bytes[CHECKSUM_AT + 4..end])
                .finish();
            bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    bytes
}
