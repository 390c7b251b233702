//! Which batches belong to aborted transactions, and which markers have outlived their records:
//! Kafka's `CleanedTransactionMetadata`.

use std::collections::{BTreeMap, BTreeSet};

use freshet_storage::cold::manifest::AbortedTransaction;
use freshet_wire::records::{BatchHeader, DECOMPRESSED_BYTES_MAX, StoredBatch};

/// Of a marker's key, the second number: what became of the transaction.
const ABORT: i16 = 0;

/// Follows the batches of a log in order.
pub struct Transactions {
    /// Aborted transactions that start later, by first offset, the next one last.
    coming: Vec<AbortedTransaction>,
    /// Aborted ones under way, by producer.
    aborted: BTreeMap<i64, Aborted>,
    /// Producers of others under way that still have a batch.
    committed: BTreeSet<i64>,
}

struct Aborted {
    /// Where its marker is, or was.
    last_offset: i64,
    /// Whether a batch of it is still there.
    seen: bool,
}

impl Transactions {
    /// With the aborted transactions of the partition.
    pub fn new(aborted: &[AbortedTransaction]) -> Self {
        let mut coming = aborted.to_vec();
        coming.sort_by_key(|transaction| std::cmp::Reverse(transaction.first_offset));
        Self { coming, aborted: BTreeMap::new(), committed: BTreeSet::new() }
    }

    /// Passes a batch of records; tells whether it was aborted.
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

    /// Passes a marker; tells whether no batch of its transaction is left.
    pub fn pass_marker(&mut self, batch: &StoredBatch) -> bool {
        let header = batch.header();
        self.come_to(&header);
        match outcome(batch) {
            Some(ABORT) => !self.aborted.remove(&header.producer_id).is_some_and(|it| it.seen),
            Some(_) => !self.committed.remove(&header.producer_id),
            // A marker of which nothing was left but its producer's numbers.
            None => true,
        }
    }

    /// Those that ended before the batch are over, even if their marker is gone; those that began
    /// by its end are under way.
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
