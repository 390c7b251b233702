//! Idempotence: the state that a partition keeps of each producer. Rules and limits are those of
//! Kafka's `ProducerStateManager`, `ProducerAppendInfo` and `ProducerStateEntry`.

use std::collections::{BTreeMap, VecDeque};

use kafka_protocol::ResponseError;

use crate::lane::index::{BatchFacts, DataEntry};
use freshet_wire::records::{BatchHeader, NO_PRODUCER_ID};

/// The number of a producer's last batches that are remembered to recognise retries, as in Kafka.
const BATCHES_MAX: usize = 5;

/// A batch that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducedBatch {
    /// Sequence number of its first record.
    pub first_sequence: i32,
    /// Sequence number of its last record.
    pub last_sequence: i32,
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offset of its last record.
    pub last_offset: i64,
}

impl ProducedBatch {
    /// Offset of the record after its last.
    pub fn next_offset(&self) -> i64 {
        self.last_offset.saturating_add(1)
    }
}

/// What the log says of a batch that a producer wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenBatch {
    /// Idempotent producer's id, or -1.
    pub producer_id: i64,
    /// Idempotent producer's epoch, or -1.
    pub producer_epoch: i16,
    /// Largest timestamp, ms.
    pub max_timestamp: i64,
    /// Its sequence numbers and offsets.
    pub produced: ProducedBatch,
}

impl From<&BatchHeader> for WrittenBatch {
    fn from(header: &BatchHeader) -> Self {
        Self {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            max_timestamp: header.max_timestamp,
            produced: ProducedBatch {
                first_sequence: header.base_sequence,
                last_sequence: header.last_sequence(),
                base_offset: header.base_offset,
                last_offset: header.last_offset(),
            },
        }
    }
}

impl WrittenBatch {
    /// The batch that an entry of a block's index describes.
    pub fn of_entry(entry: &DataEntry, facts: &BatchFacts) -> Self {
        let last = entry.record_count.saturating_sub(1);
        let first_sequence = facts.base_sequence;
        let numbered = first_sequence >= 0;
        let last_sequence = first_sequence.wrapping_add_unsigned(last) & i32::MAX;
        Self {
            producer_id: facts.producer_id,
            producer_epoch: facts.producer_epoch,
            max_timestamp: facts.max_timestamp,
            produced: ProducedBatch {
                first_sequence,
                last_sequence: if numbered { last_sequence } else { first_sequence },
                base_offset: entry.base_offset,
                last_offset: entry.base_offset.saturating_add(i64::from(last)),
            },
        }
    }
}

/// The state of one producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    /// Its epoch.
    pub epoch: i16,
    /// Epoch of the transaction coordinator that wrote its last marker, or -1.
    pub coordinator_epoch: i32,
    /// Where its open transaction began.
    pub transaction_first_offset: Option<i64>,
    /// When the block of its last batch was laid out, or that batch's largest timestamp if it is
    /// later, ms. Of a batch that is not durable yet it is the timestamp.
    pub last_timestamp_ms: i64,
    /// Its last batches, oldest first.
    pub batches: VecDeque<ProducedBatch>,
}

/// What to do with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is new.
    Append,
    /// It is a retry of this batch, whose offsets are the answer.
    Duplicate(ProducedBatch),
}

/// Every producer of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Producers(BTreeMap<i64, Producer>);

impl FromIterator<(i64, Producer)> for Producers {
    fn from_iter<I: IntoIterator<Item = (i64, Producer)>>(producers: I) -> Self {
        Self(producers.into_iter().collect())
    }
}

impl Producers {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The state of a producer.
    pub fn get(&self, id: i64) -> Option<&Producer> {
        self.0.get(&id)
    }

    /// Every producer by id.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &Producer)> {
        self.0.iter().map(|(id, producer)| (*id, producer))
    }

    /// Decides what to do with a batch before it gets its offsets.
    ///
    /// # Errors
    /// `INVALID_PRODUCER_EPOCH` for an older epoch, `OUT_OF_ORDER_SEQUENCE_NUMBER` for a hole, a
    /// step back that is no retry, or a new epoch that does not start at 0.
    pub fn judge(&self, batch: &BatchHeader) -> Result<Verdict, ResponseError> {
        let known = if batch.has_producer_id() { self.0.get(&batch.producer_id) } else { None };
        let Some(producer) = known else { return Ok(Verdict::Append) };
        if batch.producer_epoch < producer.epoch {
            return Err(ResponseError::InvalidProducerEpoch);
        }
        if batch.producer_epoch > producer.epoch {
            let fresh = batch.base_sequence == 0;
            return if fresh {
                Ok(Verdict::Append)
            } else {
                Err(ResponseError::OutOfOrderSequenceNumber)
            };
        }
        let retried = producer.batches.iter().find(|known| {
            known.first_sequence == batch.base_sequence
                && known.last_sequence == batch.last_sequence()
        });
        if let Some(retried) = retried {
            return Ok(Verdict::Duplicate(*retried));
        }
        let due = producer.batches.back().map(|last| next_sequence(last.last_sequence));
        if due.is_none_or(|due| due == batch.base_sequence) {
            Ok(Verdict::Append)
        } else {
            Err(ResponseError::OutOfOrderSequenceNumber)
        }
    }

    /// Remembers a batch that has got its offsets.
    pub fn record(&mut self, batch: &BatchHeader) {
        self.record_written(&WrittenBatch::from(batch));
    }

    /// Remembers a batch that the log holds.
    pub fn record_written(&mut self, batch: &WrittenBatch) {
        if batch.producer_id <= NO_PRODUCER_ID {
            return;
        }
        let producer = self.0.entry(batch.producer_id).or_insert_with(|| Producer {
            epoch: batch.producer_epoch,
            coordinator_epoch: -1,
            transaction_first_offset: None,
            last_timestamp_ms: batch.max_timestamp,
            batches: VecDeque::with_capacity(1),
        });
        if producer.epoch != batch.producer_epoch {
            producer.epoch = batch.producer_epoch;
            producer.batches.clear();
        }
        if producer.batches.len() == BATCHES_MAX {
            producer.batches.pop_front();
        }
        producer.last_timestamp_ms = batch.max_timestamp;
        producer.batches.push_back(batch.produced);
    }

    /// Notes that a producer was alive at `now_ms` by the broker's clock: its own timestamps may be
    /// of any year, and a retry of what was just written must be recognised whatever they say.
    pub fn touch(&mut self, id: i64, now_ms: i64) {
        if let Some(producer) = self.0.get_mut(&id) {
            producer.last_timestamp_ms = producer.last_timestamp_ms.max(now_ms);
        }
    }

    /// Forgets producers that were last alive at `since_ms` or before, but none with an open
    /// transaction, and none whose last batch lies at or behind `end`, because that is being
    /// written.
    pub fn expire(&mut self, since_ms: i64, end: i64) {
        self.0.retain(|_, producer| {
            let last = producer.batches.back();
            producer.transaction_first_offset.is_some()
                || producer.last_timestamp_ms > since_ms
                || last.is_some_and(|last| last.last_offset >= end)
        });
    }

    /// Forgets those whose last batch lies first in the log, until so many are left, but none with
    /// an open transaction. Returns whether any was forgotten.
    pub fn forget_oldest(&mut self, left: usize) -> bool {
        let Some(surplus) = self.0.len().checked_sub(left).filter(|surplus| *surplus > 0) else {
            return false;
        };
        let closed = self.0.iter().filter(|(_, one)| one.transaction_first_offset.is_none());
        let mut by_age: Vec<_> = closed
            .map(|(id, one)| (one.batches.back().map_or(-1, |last| last.last_offset), *id))
            .collect();
        if surplus < by_age.len() {
            by_age.select_nth_unstable(surplus);
        }
        by_age.truncate(surplus);
        for (_, id) in &by_age {
            self.0.remove(id);
        }
        !by_age.is_empty()
    }

    /// Keeps only producers that `others` have, too.
    pub fn keep_common(&mut self, others: &Self) {
        self.0.retain(|id, _| others.0.contains_key(id));
    }

    /// Forgets producers that are not in `known`, the producers at `end`, unless they have written
    /// from there on.
    pub fn retain_known(&mut self, known: &Self, end: i64) {
        self.0.retain(|id, producer| {
            let newer = producer.batches.back().is_some_and(|last| last.last_offset >= end);
            newer || known.0.contains_key(id)
        });
    }
}

/// Sequence numbers wrap from 2³¹ − 1 to 0.
fn next_sequence(sequence: i32) -> i32 {
    if sequence == i32::MAX { 0 } else { sequence + 1 }
}
