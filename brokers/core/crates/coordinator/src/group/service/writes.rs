//! Appends: the queue of each group and the task that drains it.

use std::collections::VecDeque;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use tokio::sync::oneshot;
use tracing::warn;

use super::bytes::WaitingWrite;
use super::removal::{Doomed, Removal};
use super::{Attached, Inner, Payer, Shard};
use crate::CoordinatorRecord;
use crate::group::context::{Persist, Purpose};
use crate::group::offsets::CommittedOffset;
use crate::group::records::{self, RecordError};

/// Writes are joined into one append up to this many bytes. A larger write is appended alone, so
/// that it cannot make the append of others fail.
const JOINED_BYTES_MAX: usize = 256 * 1024;

/// The most bytes of an append. A batch with more could not be read when the partition is loaded.
pub(super) const APPEND_BYTES_MAX: usize = 32 << 20;

/// What a write takes, or one of its records, without their texts.
const WRITE_BYTES: usize = 256;

/// Sends the outcome of a write to its request.
pub(super) type Outcome = oneshot::Sender<Result<(), ResponseError>>;
/// Receives the outcome of a write. It is closed without one where the partition was unloaded
/// meanwhile.
pub(super) type Settled = oneshot::Receiver<Result<(), ResponseError>>;
/// Offsets by topic and partition.
pub(super) type NewOffsets = Vec<(String, i32, CommittedOffset)>;

/// The writes of one group that wait for their append.
#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<(Write, WaitingWrite)>,
    /// Whether a task is draining the queue.
    is_drained: bool,
}

impl Queue {
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.is_drained
    }

    /// Whether a record of the group itself waits.
    pub(super) fn has_group_record(&self) -> bool {
        self.waiting.iter().any(|(write, _)| write.is_of_group())
    }
}

enum Write {
    /// Records that were encoded when the write was enqueued.
    Records(RecordWrite),
    /// A removal. What it removes is decided once every write before it has been applied.
    Removal(Removal, Payer),
}

impl Write {
    fn is_of_group(&self) -> bool {
        matches!(self, Self::Records(RecordWrite { then: Then::Group(_), .. }))
    }

    /// What it takes while it waits: its records, what follows from them, and the write itself.
    fn bytes(&self) -> usize {
        let more = match self {
            Self::Records(write) => {
                let records = write.records.as_ref().map_or(0, Vec::len);
                2 * write.size() + records * WRITE_BYTES
            }
            Self::Removal(Removal::Offsets(offsets, _), _) => {
                offsets.iter().map(|(topic, _)| WRITE_BYTES + topic.len()).sum()
            }
            Self::Removal(..) => 0,
        };
        WRITE_BYTES + more
    }
}

struct RecordWrite {
    /// Empty for a request that only waits for those before it.
    records: Result<Vec<CoordinatorRecord>, RecordError>,
    then: Then,
    attached: Attached,
}

impl RecordWrite {
    /// For whom its records are metered; `None` where it has none.
    fn payer(&self) -> Option<&Payer> {
        let is_empty = matches!(&self.records, Ok(records) if records.is_empty());
        (!is_empty).then_some(&self.attached.payer)
    }

    fn size(&self) -> usize {
        self.records.iter().flatten().map(CoordinatorRecord::size).sum()
    }
}

/// What is changed in memory once the records are durable.
enum Then {
    Offsets(NewOffsets),
    Group(Purpose),
    Nothing,
}

/// Translates an error of the log into one of the coordinator, as Kafka does.
pub(super) fn coordinator_error(error: ResponseError) -> ResponseError {
    match error {
        ResponseError::UnknownTopicOrPartition
        | ResponseError::NotEnoughReplicas
        | ResponseError::RequestTimedOut => ResponseError::CoordinatorNotAvailable,
        ResponseError::NotLeaderOrFollower | ResponseError::KafkaStorageError => {
            ResponseError::NotCoordinator
        }
        ResponseError::MessageTooLarge
        | ResponseError::RecordListTooLarge
        | ResponseError::InvalidFetchSize => ResponseError::UnknownServerError,
        other => other,
    }
}

/// A group's next append.
enum Batch {
    Records(Vec<(RecordWrite, WaitingWrite)>),
    Removal(Removal, Payer, Result<Doomed, ResponseError>, WaitingWrite),
}

impl Inner {
    pub(super) fn enqueue_group(
        self: &Arc<Self>,
        index: i32,
        shard: &mut Shard,
        group_id: &str,
        persist: Persist,
        attached: Attached,
    ) {
        let records = records::group_record(group_id, Some(&persist.value));
        // Set before the append, which may write the record even where it fails.
        shard.entry(group_id).in_log = true;
        let write = RecordWrite {
            records: records.map(|record| vec![record]),
            then: Then::Group(persist.purpose),
            attached,
        };
        self.enqueue(index, shard, group_id, Write::Records(write));
    }

    pub(super) fn enqueue_offsets(
        self: &Arc<Self>,
        index: i32,
        shard: &mut Shard,
        group_id: &str,
        offsets: NewOffsets,
        attached: Attached,
    ) {
        let record = |(topic, partition, value): &(String, i32, CommittedOffset)| {
            records::offset_record(group_id, topic, *partition, Some(value))
        };
        let records = offsets.iter().map(record).collect();
        let write = RecordWrite { records, then: Then::Offsets(offsets), attached };
        self.enqueue(index, shard, group_id, Write::Records(write));
    }

    /// Enqueues a write without records: `outcome` is sent once every write that precedes it in the
    /// queue has been settled.
    pub(super) fn enqueue_barrier(
        self: &Arc<Self>,
        index: i32,
        shard: &mut Shard,
        group_id: &str,
        outcome: Outcome,
    ) {
        let attached = Attached { outcome: Some(outcome), ..Attached::default() };
        let write = RecordWrite { records: Ok(Vec::new()), then: Then::Nothing, attached };
        self.enqueue(index, shard, group_id, Write::Records(write));
    }

    pub(super) fn enqueue_removal(
        self: &Arc<Self>,
        index: i32,
        shard: &mut Shard,
        group_id: &str,
        removal: Removal,
        payer: Payer,
    ) {
        self.enqueue(index, shard, group_id, Write::Removal(removal, payer));
    }

    fn enqueue(self: &Arc<Self>, index: i32, shard: &mut Shard, group_id: &str, write: Write) {
        let epoch = shard.epoch;
        let queue = &mut shard.entry(group_id).queue;
        let counted = self.waiting.add(write.bytes());
        queue.waiting.push_back((write, counted));
        if !queue.is_drained {
            queue.is_drained = true;
            tokio::spawn(Arc::clone(self).drain(index, epoch, group_id.to_owned()));
        }
    }

    /// Appends the writes in a group's queue until it is empty or the partition is unloaded.
    async fn drain(self: Arc<Self>, index: i32, epoch: u64, group_id: String) {
        let Ok(partition) = self.partition(index) else {
            return;
        };
        loop {
            // Locked before the epoch is compared, so that no load can begin between the two.
            let _appending = partition.appends.read().await;
            let batch = {
                let mut state = partition.state.lock();
                let Some(shard) = state.active_since(epoch) else {
                    return;
                };
                let batch = self.next_batch(shard, &group_id);
                if batch.is_none() {
                    self.tidy(index, shard, &group_id);
                }
                batch
            };
            match batch {
                None => return,
                Some(Batch::Records(writes)) => {
                    self.append_writes(index, epoch, &group_id, writes).await;
                }
                Some(Batch::Removal(removal, payer, doomed, _waiting)) => {
                    let outcome = match doomed {
                        Ok(doomed) => self.remove(index, epoch, &group_id, &payer, doomed).await,
                        Err(error) => Err(error),
                    };
                    removal.settle(&group_id, outcome);
                }
            }
        }
    }

    /// Removes the writes from the front of the queue that can be appended together: those for
    /// which one principal asked.
    fn next_batch(&self, shard: &mut Shard, group_id: &str) -> Option<Batch> {
        let wall_ms = self.now().wall_ms;
        let entry = shard.groups.get_mut(group_id)?;
        let mut writes = Vec::new();
        let mut size = 0;
        let mut payer: Option<Payer> = None;
        loop {
            match entry.queue.waiting.pop_front() {
                Some((Write::Records(write), waiting)) => {
                    size += write.size();
                    let goes_alone = write.records.is_err() || size > JOINED_BYTES_MAX;
                    let of = (payer.as_ref(), write.payer());
                    let is_others = matches!(of, (Some(known), Some(other)) if known != other);
                    if is_others || (goes_alone && !writes.is_empty()) {
                        entry.queue.waiting.push_front((Write::Records(write), waiting));
                        break;
                    }
                    payer = payer.or_else(|| write.payer().cloned());
                    writes.push((write, waiting));
                    if goes_alone {
                        break;
                    }
                }
                Some((Write::Removal(removal, payer), waiting)) if writes.is_empty() => {
                    let doomed = entry.doomed(&removal, wall_ms, &self.settings);
                    return Some(Batch::Removal(removal, payer, doomed, waiting));
                }
                Some(removal) => {
                    entry.queue.waiting.push_front(removal);
                    break;
                }
                None => break,
            }
        }
        entry.queue.is_drained = !writes.is_empty();
        entry.queue.is_drained.then_some(Batch::Records(writes))
    }

    pub(super) async fn append(
        &self,
        index: i32,
        payer: &Payer,
        records: Vec<CoordinatorRecord>,
    ) -> Result<(), ResponseError> {
        if records.is_empty() {
            return Ok(());
        }
        self.log.append(index, payer.as_ref(), records).await.map_err(coordinator_error)
    }

    async fn append_writes(
        self: &Arc<Self>,
        index: i32,
        epoch: u64,
        group_id: &str,
        mut writes: Vec<(RecordWrite, WaitingWrite)>,
    ) {
        let mut records = Vec::new();
        let mut unwritable = None;
        // A group's record is as large as its members and its leader make it: they are to know.
        let is_of_group = writes.iter().any(|(write, _)| matches!(write.then, Then::Group(_)));
        let refusal = if is_of_group {
            ResponseError::PolicyViolation
        } else {
            ResponseError::UnknownServerError
        };
        let payer = writes.iter().find_map(|(write, _)| write.payer()).cloned().flatten();
        for (write, _) in &mut writes {
            match &mut write.records {
                Ok(more) => records.append(more),
                Err(error) => unwritable = Some(*error),
            }
        }
        let size: usize = records.iter().map(CoordinatorRecord::size).sum();
        let outcome = match unwritable {
            None if size > APPEND_BYTES_MAX => {
                warn!(group = group_id, size, "a record is too large to be written");
                Err(refusal)
            }
            None => self.append(index, &payer, records).await,
            Some(error) => {
                warn!(group = group_id, %error, "a record cannot be written");
                Err(refusal)
            }
        };
        let Ok(mut state) = self.lock(index) else {
            return;
        };
        // Where the partition was unloaded meanwhile, the senders are dropped here, which ends the
        // waiting of the requests.
        let Some(shard) = state.active_since(epoch) else {
            return;
        };
        for (write, _waiting) in writes {
            self.settle(index, shard, group_id, write, outcome);
        }
    }

    fn settle(
        self: &Arc<Self>,
        index: i32,
        shard: &mut Shard,
        group_id: &str,
        mut write: RecordWrite,
        mut outcome: Result<(), ResponseError>,
    ) {
        match write.then {
            Then::Offsets(offsets) if outcome.is_ok() => {
                let entry = shard.entry(group_id);
                for (topic, partition, value) in offsets {
                    entry.offsets.put(&topic, partition, value);
                }
                entry.count();
                self.news.note(group_id);
            }
            Then::Group(purpose) => {
                let mut cx = self.context();
                shard.entry(group_id).group.settle(purpose, outcome, &mut cx);
                let payer = write.attached.payer.take();
                let attached = Attached { payer, ..Attached::default() };
                self.carry_out(index, shard, group_id, cx, attached);
            }
            Then::Offsets(_) => {}
            // The write had no records, so it cannot have failed.
            Then::Nothing => outcome = Ok(()),
        }
        // What was reserved is counted with the group by now.
        drop(write.attached.reserved);
        if let Some(reply) = write.attached.outcome {
            let _ = reply.send(outcome);
        }
    }
}
