//! The producers of a partition, counted with those of all others.
//!
//! Clients choose their producer ids, and a producer is remembered for a day: so their number is
//! limited. Where there are more, a partition that gets another one forgets those of its own that
//! have written nothing for longest. A retry by such a producer is not recognised any more, as
//! after `producer.id.expiration.ms`.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kafka_protocol::ResponseError;

use crate::tenure::Tenure;
use crate::{Partition, Staged};
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::rules::Rule;
use freshet_storage::state::producers::{ProducedBatch, Producers, Verdict, WrittenBatch};
use freshet_wire::records::BatchHeader;

/// The most producers of one partition.
const OF_PARTITION_MAX: usize = 10_000;
/// With more producers than this in all partitions, a partition that gets another forgets some.
const ALL_MAX: usize = 100_000;
/// It keeps at least so many.
const KEPT_MIN: usize = 32;
/// It forgets one in this many at a time.
const FORGOTTEN_PART: usize = 8;

/// How many producers all partitions of a broker remember together.
#[derive(Default)]
pub struct ProducerCount(AtomicUsize);

impl ProducerCount {
    /// The number.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The producers of a partition.
pub(crate) struct KnownProducers {
    producers: Producers,
    /// How many of them are part of `all`.
    counted: usize,
    /// Whether any was ever forgotten because there were too many.
    limited: bool,
    all: Arc<ProducerCount>,
}

impl KnownProducers {
    pub(crate) fn new(producers: Producers, all: &Arc<ProducerCount>) -> Self {
        let mut known = Self { producers, counted: 0, limited: false, all: Arc::clone(all) };
        known.limit();
        known
    }

    /// Remembers a batch that has got its offsets.
    pub(crate) fn record(&mut self, batch: &BatchHeader) {
        self.producers.record(batch);
        self.limit();
    }

    /// Remembers a batch that the log holds.
    pub(crate) fn record_written(&mut self, batch: &WrittenBatch) {
        self.producers.record_written(batch);
        self.limit();
    }

    /// See [`Producers::touch`].
    pub(crate) fn touch(&mut self, id: i64, now_ms: i64) {
        self.producers.touch(id, now_ms);
    }

    /// See [`Producers::expire`].
    pub(crate) fn expire(&mut self, since_ms: i64, end: i64) {
        self.producers.expire(since_ms, end);
        self.count();
    }

    /// See [`Producers::retain_known`].
    pub(crate) fn retain_known(&mut self, known: &Producers, end: i64) {
        self.producers.retain_known(known, end);
        self.count();
    }

    /// Removes those from a manifest in memory that were forgotten here: otherwise it would bring
    /// them into the next one.
    pub(crate) fn limit_manifest(&self, manifest: &mut Arc<Manifest>) {
        if self.limited {
            Arc::make_mut(manifest).producers.keep_common(&self.producers);
        }
    }

    /// Counts what changed, and forgets some where there are more than there may be.
    fn limit(&mut self) {
        let known = self.producers.len();
        if known == self.counted {
            return;
        }
        self.count();
        if known > OF_PARTITION_MAX || (self.all.get() > ALL_MAX && known > KEPT_MIN) {
            let most = known.min(OF_PARTITION_MAX);
            let left = (most - most / FORGOTTEN_PART).max(KEPT_MIN);
            self.limited |= self.producers.forget_oldest(left);
            self.count();
        }
    }

    fn count(&mut self) {
        let known = self.producers.len();
        self.all.0.fetch_add(known, Ordering::Relaxed);
        self.all.0.fetch_sub(self.counted, Ordering::Relaxed);
        self.counted = known;
    }
}

impl Deref for KnownProducers {
    type Target = Producers;

    fn deref(&self) -> &Producers {
        &self.producers
    }
}

impl Drop for KnownProducers {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// Batches that are not stored, because their producer sent them before or out of order.
impl Partition {
    /// What [`Partition::stage_for`] would answer for a batch that is not stored, by its header
    /// alone: so that nothing of it needs to be decompressed. `None` where it is to be read, after
    /// which `stage_for` decides.
    pub fn foresee(&self, header: &BatchHeader) -> Option<Result<Staged, ResponseError>> {
        if !header.has_producer_id() {
            return None;
        }
        let state = self.state.lock();
        if state.tenure != Tenure::Leads {
            // Its successor judges: one that follows a batch which was refused is not out of order.
            return Some(Err(ResponseError::NotLeaderOrFollower));
        }
        match state.producers.judge(header) {
            Ok(Verdict::Append) => None,
            Ok(Verdict::Duplicate(known)) => Some(Ok(self.duplicate_of(&known))),
            Err(error) => Some(Err(error)),
        }
    }

    /// What is answered for a batch that was sent before.
    pub(crate) fn duplicate_of(&self, original: &ProducedBatch) -> Staged {
        let end_offset = self.duplicate_end(original.last_offset + 1);
        Staged { base_offset: original.base_offset, end_offset, stored_bytes: 0 }
    }

    /// The end offset for which the acknowledgement of a duplicate must wait: that of its original,
    /// which may not be durable yet.
    fn duplicate_end(&self, original_end: i64) -> i64 {
        if self.sources.rules.hold(Rule::DuplicateWaits) { original_end } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_wire::ids::{PartitionId, TopicId};

    fn written(id: i64, offset: i64) -> WrittenBatch {
        let (first_sequence, last_sequence) = (0, 0);
        let produced = ProducedBatch {
            first_sequence,
            last_sequence,
            base_offset: offset,
            last_offset: offset,
        };
        WrittenBatch { producer_id: id, producer_epoch: 0, max_timestamp: 1, produced }
    }

    fn filled(all: &Arc<ProducerCount>, count: usize) -> KnownProducers {
        let mut known = KnownProducers::new(Producers::default(), all);
        for id in 0..i64::try_from(count).unwrap() {
            known.record_written(&written(id, id));
        }
        known
    }

    #[test]
    fn a_partition_forgets_those_that_were_silent_for_longest() {
        let all = Arc::default();
        let mut known = filled(&all, OF_PARTITION_MAX);
        assert_eq!(known.len(), OF_PARTITION_MAX);
        // The first one writes again, and so is one of the newest.
        known.record_written(&written(0, 100_000));
        known.record_written(&written(200_000, 200_000));
        assert_eq!(known.len(), OF_PARTITION_MAX - OF_PARTITION_MAX / FORGOTTEN_PART);
        assert!(known.get(0).is_some() && known.get(200_000).is_some());
        assert!(known.get(1).is_none() && known.get(9_999).is_some());
        assert_eq!(all.get(), known.len());
        drop(known);
        assert_eq!(all.get(), 0);
    }

    #[test]
    fn where_all_have_many_those_that_get_more_give_some_up_and_small_ones_keep_theirs() {
        let all = Arc::default();
        let small = filled(&all, KEPT_MIN);
        let large: Vec<_> = (0..20).map(|_| filled(&all, 9_000)).collect();
        assert!(all.get() <= ALL_MAX + large.len() * KEPT_MIN, "{}", all.get());
        assert_eq!(small.len(), KEPT_MIN);
        assert!(large.iter().all(|known| known.len() >= KEPT_MIN && known.get(8_999).is_some()));
        let next = filled(&all, KEPT_MIN);
        assert_eq!(next.len(), KEPT_MIN);
        // What a manifest brings from before is bounded as well.
        let stored = filled(&Arc::default(), 9_000).producers.clone();
        let loaded = KnownProducers::new(stored.clone(), &all);
        assert!(loaded.len() < 9_000);
        let id = PartitionId::new(TopicId::from_u128(1), 0);
        let mut manifest = Arc::new(Manifest { producers: stored, ..Manifest::empty(id) });
        loaded.limit_manifest(&mut manifest);
        assert_eq!(manifest.producers, *loaded);
        drop((small, large, next, loaded));
        assert_eq!(all.get(), 0);
    }
}
