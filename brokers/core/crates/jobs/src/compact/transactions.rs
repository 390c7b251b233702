//! Finds which batches belong to aborted transactions and which markers are no longer needed, as
//! Kafka's `CleanedTransactionMetadata` does.

use std::collections::{BTreeMap, BTreeSet};

use freshet_storage::cold::manifest::AbortedTransaction;
use freshet_wire::records::{BatchHeader, DECOMPRESSED_BYTES_MAX, StoredBatch};

/// The type in the key of a marker that aborts a transaction.
const ABORT: i16 = 0;

/// Follows the batches of a log in order.
pub struct Transactions {
    /// The aborted transactions that start later in the log, sorted by first offset with the next
    /// one last.
    coming: Vec<AbortedTransaction>,
    /// The aborted transactions under way, by producer id.
    aborted: BTreeMap<i64, Aborted>,
    /// The producer ids of other transactions under way that still have a batch.
    committed: BTreeSet<i64>,
}

struct Aborted {
    /// The offset of its marker, which may have been removed.
    last_offset: i64,
    /// Whether a batch of it is still there.
    seen: bool,
}

impl Transactions {
    /// Creates it with the aborted transactions of the partition, at the start of its log.
    pub fn new(aborted: &[AbortedTransaction]) -> Self {
        let mut coming = aborted.to_vec();
        coming.sort_by_key(|transaction| std::cmp::Reverse(transaction.first_offset));
        Self { coming, aborted: BTreeMap::new(), committed: BTreeSet::new() }
    }

    /// Passes a batch of records. Returns whether its transaction was aborted.
    pub fn pass_records(&mut self, batch: &StoredBatch) -> bool {
        let header = batch.header();
        self.come_to(&header);
        if !header.is_transactional() {
            return false;
        }
        if let Some(aborted) = self.aborted.get_mut(&header.producer_id) {
            aborted.seen = true;
            return true;
        }
        self.committed.insert(header.producer_id);
        false
    }

    /// Passes a marker. Returns whether no batch of its transaction is left, so that it can be
    /// removed.
    pub fn pass_marker(&mut self, batch: &StoredBatch) -> bool {
        let header = batch.header();
        self.come_to(&header);
        match outcome(batch) {
            Some(ABORT) => !self.aborted.remove(&header.producer_id).is_some_and(|it| it.seen),
            Some(_) => !self.committed.remove(&header.producer_id),
            // The marker's record was removed before; only the producer's numbers are left of it.
            None => true,
        }
    }

    /// Moves on to a batch: transactions that ended before it are over, even where their marker was
    /// removed; those that began by its end are under way.
    fn come_to(&mut self, header: &BatchHeader) {
        let over = |last_offset: i64| last_offset < header.base_offset;
        self.aborted.retain(|_, aborted| !over(aborted.last_offset));
        while let Some(next) = self.coming.pop_if(|next| next.first_offset <= header.last_offset())
        {
            let AbortedTransaction { producer_id, last_offset, .. } = next;
            if !over(last_offset) {
                self.aborted.insert(producer_id, Aborted { last_offset, seen: false });
            }
        }
    }
}

/// The type in a marker's key (Kafka's `ControlRecordType`).
fn outcome(marker: &StoredBatch) -> Option<i16> {
    let mut records = marker.records(DECOMPRESSED_BYTES_MAX).ok()?;
    let key = records.next()?.ok()?.key?;
    let [_, _, high, low] = key.first_chunk::<4>()?;
    Some(i16::from_be_bytes([*high, *low]))
}
