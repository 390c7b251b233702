//! Compaction (`cleanup.policy=compact`): of each key only the newest record stays. Rules and names
//! are those of Kafka's `LogCleaner` and `Cleaner`.
//!
//! A round first notes the newest offset of each key in the dirty part, for as many keys as fit
//! into memory. Then it goes through the log from its start up to that point and removes the
//! records that a newer one supersedes. Offsets never change. A run of segments is written again
//! only where a record of it is removed.

use std::sync::Arc;

use super::JobError;
use super::rewrite::{OBJECT_BYTES, Rewriter, Source, Visit};
use freshet_partition::Partition;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::Segment;
use freshet_wire::records::{RecordFacts, RecordsError, Retained, StoredBatch};

mod keys;
mod plan;
mod transactions;

pub use keys::KeyOffsets;
pub use plan::{Cleanable, CompactionRules, DirtyRange, cleanable, due};
pub use transactions::Transactions;

/// Compacts a partition where that is due. Returns how many records were removed; `None` where it
/// was not due.
///
/// # Errors
/// Any [`JobError`]; then segments that were not replaced by then stay as they were.
pub(super) async fn compact_partition(
    source: &Source<'_>,
    rewriter: &mut Rewriter<'_>,
    partition: &Arc<Partition>,
    rules: CompactionRules,
    keys_bytes: usize,
    now_ms: i64,
) -> Result<Option<u64>, JobError> {
    let manifest = partition.manifest();
    let Some(range) = due(&manifest, rules, now_ms) else { return Ok(None) };
    let keys = note_keys(source, partition, &manifest, range, keys_bytes).await?;
    let end = keys.end;
    let mut cleaner = Cleaner::new(&manifest, keys, rules.delete_retention_ms, now_ms);
    let (mut before, mut after) = (Amount::default(), Amount::default());
    for run in runs(&manifest.segments, end) {
        let batches = source.read(partition.id(), run).await?;
        before.add(&batches);
        let cleaned = cleaner.clean(batches);
        let kept = after.add(&cleaned.batches);
        if cleaned.changed {
            source.metrics().written_bytes.inc_by(kept);
            let batches = &cleaned.batches;
            rewriter.replace(partition, &manifest, run, batches, true).await?;
        }
    }
    rewriter.is_clean(partition, &manifest, end);
    source.metrics().runs.inc();
    let dropped_records = before.records - after.records;
    tracing::info!(
        partition = %partition.id(), topic = %partition.topic(), until = end,
        before = before.bytes, after = after.bytes, dropped_records, "compacts"
    );
    Ok(Some(dropped_records))
}

/// Counts the records and bytes of batches.
#[derive(Default)]
struct Amount {
    bytes: u64,
    records: u64,
}

impl Amount {
    /// Adds batches, and returns how many bytes they have.
    fn add(&mut self, batches: &[StoredBatch]) -> u64 {
        let bytes: u64 = batches.iter().map(|batch| batch.size_bytes() as u64).sum();
        let records = batches.iter().map(|batch| batch.header().record_count);
        self.records += records.map(|count| u64::try_from(count).unwrap_or(0)).sum::<u64>();
        self.bytes += bytes;
        bytes
    }
}

/// Notes the newest offset of each key from the first dirty offset on, until the table is full.
async fn note_keys(
    source: &Source<'_>,
    partition: &Partition,
    manifest: &Manifest,
    range: DirtyRange,
    bytes_max: usize,
) -> Result<KeyOffsets, JobError> {
    let mut keys = KeyOffsets::new(range, bytes_max);
    let mut transactions = Transactions::new(&manifest.aborted);
    let dirty = manifest.segments.iter();
    let dirty = dirty.skip_while(|segment| segment.end_offset <= range.from);
    for segment in dirty.take_while(|segment| segment.end_offset <= range.until) {
        let mut note = |batch: StoredBatch| {
            note_batch(&mut keys, &mut transactions, &batch, |error| {
                partition.note_uncompacted(&batch.header(), error);
            })
        };
        if source.visit(partition.id(), segment, &mut note).await? == Visit::Enough {
            break;
        }
    }
    Ok(keys)
}

/// Notes the keys of a batch. Where the table is full, the rest of the log is left to the next
/// round.
fn note_batch(
    keys: &mut KeyOffsets,
    transactions: &mut Transactions,
    batch: &StoredBatch,
    note_damaged: impl FnOnce(&RecordsError),
) -> Visit {
    let header = batch.header();
    let (from, end) = (keys.end, header.next_offset());
    keys.end = from.max(end);
    if header.is_control() {
        transactions.pass_marker(batch);
        return Visit::More;
    }
    if transactions.pass_records(batch) {
        return Visit::More;
    }
    let mut no_room_at = None;
    let noted = batch.visit_facts(|record| {
        if let Some(key) = &record.key
            && record.offset >= from
            && no_room_at.is_none()
            && !keys.note(key, record.offset)
        {
            no_room_at = Some(record.offset);
        }
    });
    if let Err(error) = noted {
        // A batch that cannot be decoded stays as it is, so that readers see the damage.
        note_damaged(&error);
    }
    let Some(offset) = no_room_at else { return Visit::More };
    keys.end = offset;
    Visit::Enough
}

/// The segments that begin below `end`, in runs of adjacent ones that fit into one object.
fn runs(segments: &[Segment], end: i64) -> impl Iterator<Item = &[Segment]> {
    let mut rest = &segments[..segments.partition_point(|segment| segment.base_offset < end)];
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |segment: &&Segment| {
            bytes += segment.bytes;
            bytes <= OBJECT_BYTES
        };
        let count = rest.iter().take_while(fits).count().max(1).min(rest.len());
        let (run, after) = rest.split_at(count);
        rest = after;
        (!run.is_empty()).then_some(run)
    })
}

/// What compaction leaves of a run of segments.
#[derive(Debug)]
pub struct Cleaned {
    /// The batches that stay.
    pub batches: Vec<StoredBatch>,
    /// Whether it differs from the run.
    pub changed: bool,
}

/// Decides what stays of the batches of a log. It must be given all batches in order, from the
/// first one on, because it follows transactions.
pub struct Cleaner<'a> {
    manifest: &'a Manifest,
    keys: KeyOffsets,
    transactions: Transactions,
    delete_retention_ms: i64,
    now_ms: i64,
}

impl<'a> Cleaner<'a> {
    /// Creates it with the keys of the log's dirty part.
    pub fn new(
        manifest: &'a Manifest,
        keys: KeyOffsets,
        delete_retention_ms: i64,
        now_ms: i64,
    ) -> Self {
        let transactions = Transactions::new(&manifest.aborted);
        Self { manifest, keys, transactions, delete_retention_ms, now_ms }
    }

    /// Returns what stays of the next batches of the log.
    pub fn clean(&mut self, batches: Vec<StoredBatch>) -> Cleaned {
        let mut cleaned = Cleaned { batches: Vec::with_capacity(batches.len()), changed: false };
        for batch in batches {
            match self.clean_batch(&batch) {
                Retained::Same => cleaned.batches.push(batch),
                Retained::Rewritten(less) => {
                    cleaned.changed = true;
                    cleaned.batches.push(less);
                }
                Retained::Nothing if self.must_stay(&batch) => {
                    cleaned.changed |= batch.header().record_count > 0;
                    cleaned.batches.push(batch.emptied());
                }
                Retained::Nothing => cleaned.changed = true,
            }
        }
        cleaned
    }

    fn clean_batch(&mut self, batch: &StoredBatch) -> Retained {
        let header = batch.header();
        let control = header.is_control();
        let discarded = if control {
            self.transactions.pass_marker(batch)
        } else {
            self.transactions.pass_records(batch)
        };
        if header.base_offset >= self.keys.end {
            return Retained::Same;
        }
        let expired = header.delete_horizon_ms().is_some_and(|horizon| horizon <= self.now_ms);
        let all_go = if control { discarded && expired } else { discarded };
        let horizon_ms = self.now_ms.saturating_add(self.delete_retention_ms);
        let keys = &self.keys;
        let retained = batch.retain(horizon_ms, control && discarded, |record| {
            !all_go && (control || record_stays(keys, record, expired))
        });
        // A batch that cannot be decoded stays as it is: nobody knows which of its records are
        // superseded.
        retained.unwrap_or(Retained::Same)
    }

    /// Whether a batch stays even without records. That is so for the last batch of a producer that
    /// is still known, whose sequence numbers it bears, and for the last batch of the round, so
    /// that the log does not seem to end before it.
    fn must_stay(&self, batch: &StoredBatch) -> bool {
        let header = batch.header();
        header.next_offset() == self.keys.end
            || (header.has_producer_id() && self.is_producers_last(batch))
    }

    fn is_producers_last(&self, batch: &StoredBatch) -> bool {
        let header = batch.header();
        let Some(producer) = self.manifest.producers.get(header.producer_id) else { return false };
        match producer.batches.back() {
            Some(last) => last.last_offset == header.last_offset(),
            None => header.is_control() && header.producer_epoch == producer.epoch,
        }
    }
}

fn record_stays(keys: &KeyOffsets, record: &RecordFacts, tombstones_expired: bool) -> bool {
    if record.offset >= keys.end {
        return true;
    }
    // As in Kafka, a compacted log keeps no record without a key.
    let Some(key) = &record.key else { return false };
    keys.is_newest(key, record.offset) && (record.has_value || !tombstones_expired)
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
