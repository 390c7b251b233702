//! Damaged batches: stored as they were sent by an earlier release, which did not read what it
//! acknowledged. No job changes them and no new one is accepted; they are named, so that the owner
//! can move the log start past them.

use freshet_wire::records::{BatchHeader, RecordsError, StoredBatch};

use super::Partition;

/// The most damaged batches that a partition remembers.
const DAMAGED_MAX: usize = 1_000;

impl Partition {
    /// Remembers a batch whose records cannot be read, and logs it the first time. Where a limit
    /// ended the reading, the batch may be sound: one that is accepted may decompress to more than
    /// compaction holds.
    pub fn note_damaged(&self, header: &BatchHeader, error: &RecordsError) {
        if error.is_limit() {
            tracing::warn!(
                topic = %self.topic(), partition = %self.id(), offset = header.base_offset, %error,
                "a batch is too large to be compacted: it stays as it is"
            );
            return;
        }
        let first_offset = header.base_offset;
        let mut damaged = self.damaged.lock();
        if damaged.len() < DAMAGED_MAX && damaged.insert(first_offset) {
            tracing::error!(
                topic = %self.topic(), partition = %self.id(), first_offset,
                next_offset = header.next_offset(), %error,
                "a stored batch is damaged: clients cannot read it"
            );
        }
    }

    /// The offset of the first batch that is known to be damaged and still in the log.
    pub fn first_damaged(&self) -> Option<i64> {
        let log_start = self.bounds().log_start;
        let mut damaged = self.damaged.lock();
        *damaged = damaged.split_off(&log_start);
        damaged.first().copied()
    }

    /// The largest timestamp of a batch's records, of which every one is read; that of the header
    /// where they cannot be read, which is noted.
    pub fn read_largest_timestamp(&self, batch: &StoredBatch) -> i64 {
        batch.read_largest_timestamp().unwrap_or_else(|error| {
            let header = batch.header();
            self.note_damaged(&header, &error);
            header.max_timestamp
        })
    }
}
