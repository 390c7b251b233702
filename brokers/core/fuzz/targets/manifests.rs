//! Manifests: one that is decoded is encoded to what decodes to the same.
#![no_main]

use bytes::Bytes;
use freshet_storage::cold::manifest::Manifest;
use freshet_wire::codec::crc32c;
use libfuzzer_sys::fuzz_target;

/// Where the checksum is, and where what it covers begins.
const CHECKSUM_AT: usize = 8;
const COVERED_FROM: usize = 12;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    if bytes.len() > COVERED_FROM {
        let checksum = crc32c(&bytes[COVERED_FROM..]);
        bytes[CHECKSUM_AT..COVERED_FROM].copy_from_slice(&checksum.to_le_bytes());
    }
    let Ok(manifest) = Manifest::decode(&Bytes::from(bytes)) else { return };
    let again = Manifest::decode(&manifest.encode()).expect("what was encoded is decoded");
    assert_eq!(again, manifest);
});
