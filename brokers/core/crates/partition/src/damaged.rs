//! Damaged batches: stored as they were sent by an earlier release, which did not read what it
//! acknowledged. No job changes them and no new one is accepted; they are named, so that the owner
//! can move the log start past them.

use std::collections::BTreeMap;

use freshet_wire::records::{BatchHeader, RecordsError, StoredBatch};

use super::Partition;

/// The most damaged batches that a partition remembers.
const DAMAGED_MAX: usize = 1_000;

impl Partition {
    /// Remembers a batch that compaction cannot read. Where a limit ended the reading, the batch
    /// may be sound, because compaction holds less than one that is accepted may decompress to.
    pub fn note_uncompacted(&self, header: &BatchHeader, error: &RecordsError) {
        if error.is_limit() {
            tracing::warn!(
                topic = %self.topic(), partition = %self.id(), offset = header.base_offset, %error,
                "a batch is too large to be compacted: it stays as it is"
            );
        } else {
            self.note_damaged(header, error);
        }
    }

    /// Remembers a batch that cannot be read within the limits of what is accepted, and logs it the
    /// first time.
    pub fn note_damaged(&self, header: &BatchHeader, error: &RecordsError) {
        let first_offset = header.base_offset;
        let mut damaged = self.damaged.lock();
        let next_offset = header.next_offset();
        if damaged.len() < DAMAGED_MAX && damaged.insert(first_offset, next_offset).is_none() {
            tracing::error!(
                topic = %self.topic(), partition = %self.id(), first_offset, next_offset, %error,
                "a stored batch is damaged: clients cannot read it"
            );
        }
    }

    /// The offset of the first batch that is known to be damaged and of which the log still has
    /// a part: readers that begin within it get all of it.
    pub fn first_damaged(&self) -> Option<i64> {
        let log_start = self.bounds().log_start;
        let mut damaged = self.damaged.lock();
        damaged.retain(|_, next_offset| *next_offset > log_start);
        damaged.keys().next().copied()
    }

    /// The damaged batches that are known and end behind `log_start`: the offset of the batch that
    /// follows by that of the first record.
    pub fn damaged_from(&self, log_start: i64) -> BTreeMap<i64, i64> {
        let damaged = self.damaged.lock();
        let left = damaged.iter().filter(|(_, next_offset)| **next_offset > log_start);
        left.map(|(first, next)| (*first, *next)).collect()
    }

    /// Reads every record of a batch that an earlier release may have stored, and names their
    /// largest timestamp in its header. Where they cannot be read, that is noted, and the batch
    /// stays as it is.
    pub fn read_batch(&self, batch: StoredBatch) -> StoredBatch {
        match batch.read_largest_timestamp() {
            Ok(largest) => batch.with_largest_timestamp(largest),
            Err(error) => {
                self.note_damaged(&batch.header(), &error);
                batch
            }
        }
    }
}
