//! Checking record batches.

use bytes::Bytes;

use freshet_wire::records::{BatchHeader, DECOMPRESSED_BYTES_MAX, StoredBatch};

/// Checks a batch: its length, its checksum, and that its records can be read and are as many as
/// the header says. The error's text says what is wrong.
pub fn check_batch(bytes: &Bytes) -> Result<BatchHeader, String> {
    let batch = StoredBatch::from_contiguous(bytes.clone()).map_err(|error| error.to_string())?;
    batch.verify_checksum().map_err(|error| error.to_string())?;
    let header = batch.header();
    let records = batch.records(DECOMPRESSED_BYTES_MAX).map_err(|error| error.to_string())?;
    let mut count = 0_i64;
    for record in records {
        record.map_err(|error| error.to_string())?;
        count += 1;
    }
    if count != i64::from(header.record_count) {
        return Err(format!("{count} records, the header says {}", header.record_count));
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_wire::records::BatchBuilder;

    #[test]
    fn a_flipped_bit_in_a_batch_is_found() {
        let batch = BatchBuilder::new(5).record(0, Some(b"k"), Some(b"v")).build();
        assert_eq!(check_batch(&batch).unwrap().base_offset, 5);
        let mut flipped = batch.to_vec();
        let last = flipped.len() - 1;
        flipped[last] ^= 1;
        assert!(check_batch(&flipped.into()).unwrap_err().contains("crc"));
    }
}
