//! Checking record batches.

use bytes::Bytes;

use freshet_wire::records::StoredBatch;

/// Reads a batch, and checks its length and its checksum. The error's text says what is wrong.
pub fn check_batch(bytes: &Bytes) -> Result<StoredBatch, String> {
    let batch = StoredBatch::from_contiguous(bytes.clone()).map_err(|error| error.to_string())?;
    batch.verify_checksum().map_err(|error| error.to_string())?;
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_wire::records::BatchBuilder;

    #[test]
    fn a_flipped_bit_in_a_batch_is_found() {
        let batch = BatchBuilder::new(5).record(0, Some(b"k"), Some(b"v")).build();
        assert_eq!(check_batch(&batch).unwrap().base_offset(), 5);
        let mut flipped = batch.to_vec();
        let last = flipped.len() - 1;
        flipped[last] ^= 1;
        assert!(check_batch(&flipped.into()).unwrap_err().contains("crc"));
    }
}
