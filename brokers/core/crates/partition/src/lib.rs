//! A partition that this incarnation leads: offsets, idempotence, what is durable, and where its
//! records can be read. See the crate's `README.md`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use kafka_protocol::ResponseError;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use freshet_storage::cache::ahead::Followers;
use freshet_storage::cache::blocks::BlockCache;
use freshet_storage::cache::{HotCache, HotHolder};
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::reader::ColdReader;
use freshet_storage::lane::LaneSpot;
use freshet_storage::lane::ack::AckShare;
use freshet_storage::lane::queue::{BatchOwner, DurableBatch, Lane, LaneBatch};
use freshet_storage::lane::reader::LaneReader;
use freshet_storage::lane::writer::FILE_BATCHES_MAX;
use freshet_storage::liveness::Liveness;
use freshet_storage::names::ManifestRef;
use freshet_storage::rules::{Rule, Rules};
use freshet_storage::state::epochs::EpochTable;
use freshet_storage::state::producers::{Producers, Verdict};
use freshet_telemetry::{Metrics, TopicMetrics};
use freshet_wire::ids::{Epoch, PartitionId};
use freshet_wire::records::{StoredBatch, ValidatedBatch};

pub mod load;
pub mod read;
pub mod read_faults;
pub mod registry;
mod stretch;
pub mod timestamps;

use read_faults::ReadFaults;

/// What all partitions of an engine share.
pub struct Sources {
    /// Newest batches in memory.
    pub cache: HotCache,
    /// Batches in lanes.
    pub lanes: LaneReader,
    /// Batches in segments.
    pub cold: ColdReader,
    /// Blocks of both in memory.
    pub blocks: Arc<BlockCache>,
    /// Who reads these from front to back.
    pub followers: Followers,
    /// What could not be read.
    pub read_faults: ReadFaults,
    /// Batches that are not in a segment yet.
    pub backlog: Backlog,
    /// Whether the instance may act.
    pub liveness: Liveness,
    /// Which rules hold.
    pub rules: Rules,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// Counts batches that are durable and not in a segment yet, over all partitions. Their index is in
/// memory, so their number is bounded: beyond it producers wait for the splitter.
#[derive(Default)]
pub struct Backlog {
    batches: AtomicUsize,
    shrunk: Notify,
}

/// Bytes of index that unsplit batches may have.
const BACKLOG_BYTES_MAX: usize = 8 << 20;

// Else producers would wait for a file that only they can fill.
const _: () = assert!(3 * FILE_BATCHES_MAX * size_of::<Unsplit>() <= BACKLOG_BYTES_MAX);

impl Backlog {
    /// How many there are.
    pub fn batches(&self) -> usize {
        self.batches.load(Ordering::Relaxed)
    }

    /// Whether producers have to wait.
    pub fn is_full(&self) -> bool {
        self.batches() * size_of::<Unsplit>() >= BACKLOG_BYTES_MAX
    }

    /// Waits until there is room for more.
    pub async fn room(&self) {
        loop {
            let shrunk = self.shrunk.notified();
            if !self.is_full() {
                return;
            }
            shrunk.await;
        }
    }

    fn grow(&self, batches: usize) {
        self.batches.fetch_add(batches, Ordering::Relaxed);
    }

    fn shrink(&self, batches: usize) {
        self.batches.fetch_sub(batches, Ordering::Relaxed);
        self.shrunk.notify_waiters();
    }
}

/// A durable batch that is not in a segment yet.
#[derive(Debug, Clone, Copy)]
pub struct Unsplit {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offset after its last.
    pub end_offset: i64,
    /// Largest timestamp, ms.
    pub max_timestamp: i64,
    /// Leader epoch under which it was written.
    pub epoch: Epoch,
    /// Where it lies.
    pub spot: LaneSpot,
}

struct HotBatch {
    base_offset: i64,
    end_offset: i64,
    batch: StoredBatch,
}

struct State {
    /// Offset that the next batch gets.
    next_offset: i64,
    /// The fence-checked end: what readers may see.
    end: i64,
    manifest: Arc<Manifest>,
    unsplit: VecDeque<Unsplit>,
    hot: VecDeque<HotBatch>,
    producers: Producers,
    epochs: EpochTable,
}

/// Under which name a partition is known. A topic that was deleted may come back under another.
struct Label {
    topic: Arc<str>,
    /// None while nobody sees the topic.
    metrics: Option<TopicMetrics>,
}

/// See the module.
pub struct Partition {
    id: PartitionId,
    epoch: Epoch,
    sources: Arc<Sources>,
    label: RwLock<Label>,
    state: Mutex<State>,
    /// The fence-checked end again, for those who wait for it.
    progress: watch::Sender<i64>,
    /// Fetches that wait for anything new.
    readers: Mutex<Vec<Weak<Notify>>>,
}

/// Where a batch was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staged {
    /// Offset of its first record.
    pub base_offset: i64,
    /// It may be acked once the partition's end reaches this.
    pub end_offset: i64,
}

/// The offsets that bound a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// First offset that may be read.
    pub log_start: i64,
    /// First offset of the oldest open transaction.
    pub last_stable_offset: i64,
    /// Offset after the last record that may be read (Kafka's high watermark).
    pub end: i64,
}

impl Partition {
    /// Its identity.
    pub fn id(&self) -> PartitionId {
        self.id
    }

    /// Its topic's name.
    pub fn topic(&self) -> Arc<str> {
        Arc::clone(&self.label.read().topic)
    }

    /// Gives it its topic's name, and has it counted under that as long as clients see the topic.
    pub fn relabel(&self, topic: &Arc<str>, seen: bool) {
        let known = self.label.read();
        if known.topic == *topic && known.metrics.is_some() == seen {
            return;
        }
        drop(known);
        let metrics = seen.then(|| self.sources.metrics.topic(topic));
        *self.label.write() = Label { topic: Arc::clone(topic), metrics };
    }

    /// The epoch under which this incarnation leads it.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Gives a batch its offsets and stages it in the lane, in one step, so that order in the lane
    /// is order of offsets. `pinned_bytes` is the memory that the batch keeps alive.
    ///
    /// # Errors
    /// What [`Producers::judge`] says, or `NOT_LEADER_OR_FOLLOWER` once the instance is down.
    pub fn stage(
        self: &Arc<Self>,
        lane: &Lane,
        batch: ValidatedBatch,
        principal: &Arc<str>,
        pinned_bytes: usize,
    ) -> Result<Staged, ResponseError> {
        self.stage_for(lane, batch, principal, pinned_bytes, None)
    }

    /// As [`Partition::stage`], for a request that waits for all of its batches at once. The share
    /// of a duplicate goes at once: who acks it waits for its original by [`Partition::durable`].
    ///
    /// # Errors
    /// As [`Partition::stage`].
    pub fn stage_for(
        self: &Arc<Self>,
        lane: &Lane,
        batch: ValidatedBatch,
        principal: &Arc<str>,
        pinned_bytes: usize,
        ack: Option<AckShare>,
    ) -> Result<Staged, ResponseError> {
        let mut state = self.state.lock();
        if let Verdict::Duplicate(known) = state.producers.judge(batch.header())? {
            let base_offset = known.base_offset;
            return Ok(Staged {
                base_offset,
                end_offset: self.duplicate_end(known.last_offset + 1),
            });
        }
        let base_offset = state.next_offset;
        let stored = StoredBatch::new(batch, base_offset, self.epoch);
        let header = stored.header();
        lane.stage(LaneBatch {
            partition: self.id,
            epoch: self.epoch,
            principal: Arc::clone(principal),
            batch: stored,
            pinned_bytes,
            owner: Arc::clone(self) as Arc<dyn BatchOwner>,
            ack,
        })
        .map_err(|_| ResponseError::NotLeaderOrFollower)?;
        state.next_offset = header.next_offset();
        state.producers.record(&header);
        state.epochs.begin(self.epoch, base_offset);
        Ok(Staged { base_offset, end_offset: header.next_offset() })
    }

    /// A duplicate is acked only once its original is durable.
    fn duplicate_end(&self, original_end: i64) -> i64 {
        if self.sources.rules.hold(Rule::DuplicateWaits) { original_end } else { 0 }
    }

    /// Waits until everything below `end_offset` is durable and fence-checked.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER` where the instance ended first: whether the records are in the log
    /// is for the successor to say.
    pub async fn durable(&self, end_offset: i64) -> Result<(), ResponseError> {
        if self.is_durable(end_offset) {
            return Ok(());
        }
        let mut progress = self.progress.subscribe();
        tokio::select! {
            biased;
            reached = progress.wait_for(|end| *end >= end_offset) => {
                reached.map(|_| ()).map_err(|_| ResponseError::NotLeaderOrFollower)
            }
            _ = self.sources.liveness.ended() => Err(ResponseError::NotLeaderOrFollower),
        }
    }

    /// Whether everything below `end_offset` is durable and fence-checked.
    pub fn is_durable(&self, end_offset: i64) -> bool {
        *self.progress.borrow() >= end_offset
    }

    /// The batch that starts at `base_offset`, where it is still in memory.
    pub fn hot_batch(&self, base_offset: i64) -> Option<StoredBatch> {
        let state = self.state.lock();
        let place = state.hot.binary_search_by_key(&base_offset, |hot| hot.base_offset).ok()?;
        Some(state.hot[place].batch.clone())
    }

    /// Has `reader` notified once, when more can be read, unless it is dropped before.
    pub fn notify_on_append(&self, reader: &Arc<Notify>) {
        let mut readers = self.readers.lock();
        readers.retain(|other| other.strong_count() > 0);
        readers.push(Arc::downgrade(reader));
    }

    /// The offsets that bound it now.
    pub fn bounds(&self) -> Bounds {
        let state = self.state.lock();
        Bounds {
            log_start: state.manifest.log_start,
            last_stable_offset: state.end,
            end: state.end,
        }
    }

    /// The largest epoch not above `requested` with its end offset, for OffsetForLeaderEpoch.
    pub fn end_of_epoch(&self, requested: Epoch) -> Option<(Epoch, i64)> {
        let state = self.state.lock();
        if requested == self.epoch {
            return Some((requested, state.end));
        }
        if requested > self.epoch {
            return None;
        }
        let (epoch, end) = state.epochs.end_of(requested, state.end)?;
        Some((epoch, end.min(state.end)))
    }

    /// Checks the leader epoch that a client believes in.
    ///
    /// # Errors
    /// `FENCED_LEADER_EPOCH` or `UNKNOWN_LEADER_EPOCH`.
    pub fn check_epoch(&self, believed: Epoch) -> Result<(), ResponseError> {
        match believed {
            -1 => Ok(()),
            older if older < self.epoch => Err(ResponseError::FencedLeaderEpoch),
            newer if newer > self.epoch => Err(ResponseError::UnknownLeaderEpoch),
            _ => Ok(()),
        }
    }

    /// The epoch under which the record at `offset` was written, or the current one.
    pub fn epoch_of(&self, offset: i64) -> Epoch {
        self.state.lock().epochs.epoch_of(offset).unwrap_or(self.epoch)
    }

    /// The manifest that counts.
    pub fn manifest(&self) -> Arc<Manifest> {
        Arc::clone(&self.state.lock().manifest)
    }

    /// Name of the manifest that counts, if there is one.
    pub fn manifest_name(&self) -> Option<ManifestRef> {
        let name = self.state.lock().manifest.name;
        (name.epoch >= 0).then_some(name)
    }

    /// What is durable and not in a segment.
    pub fn unsplit(&self) -> Vec<Unsplit> {
        self.state.lock().unsplit.iter().copied().collect()
    }

    /// Batches that are durable and not in a segment.
    pub fn unsplit_count(&self) -> usize {
        self.state.lock().unsplit.len()
    }

    /// Bytes of records that are durable and not in a segment.
    pub fn unsplit_bytes(&self) -> u64 {
        let state = self.state.lock();
        state.unsplit.iter().map(|batch| u64::from(batch.spot.length)).sum()
    }

    /// Bytes of records, in segments and in lanes.
    pub fn bytes(&self) -> u64 {
        self.unsplit_bytes() + self.manifest().bytes()
    }

    /// Lets a manifest count. Called by the lane's writer the moment its install record is durable.
    pub fn apply(&self, manifest: Arc<Manifest>) {
        let mut state = self.state.lock();
        debug_assert!(manifest.name > state.manifest.name, "manifests only advance");
        let covered = manifest.covered_end;
        let split = state.unsplit.partition_point(|batch| batch.end_offset <= covered);
        state.unsplit.drain(..split);
        self.sources.backlog.shrink(split);
        state.epochs.trim(manifest.log_start);
        state.producers.retain_known(&manifest.producers, covered);
        state.manifest = manifest;
    }

    fn announce(&self, end: i64) {
        self.progress.send_replace(end);
        let readers = std::mem::take(&mut *self.readers.lock());
        for reader in readers.iter().filter_map(Weak::upgrade) {
            reader.notify_one();
        }
    }
}

/// A partition's share in the lane.
impl BatchOwner for Partition {
    fn durable(self: Arc<Self>, durable: DurableBatch) {
        let header = durable.batch.header();
        let (base_offset, end_offset) = (header.base_offset, header.next_offset());
        {
            let mut state = self.state.lock();
            debug_assert_eq!(state.end, base_offset, "batches become durable in order");
            state.end = end_offset;
            state.unsplit.push_back(Unsplit {
                base_offset,
                end_offset,
                max_timestamp: header.max_timestamp,
                epoch: self.epoch,
                spot: durable.spot,
            });
            state.hot.push_back(HotBatch { base_offset, end_offset, batch: durable.batch });
        }
        if let Some(metrics) = &self.label.read().metrics {
            metrics.bytes_in.inc_by(u64::from(durable.spot.length));
            metrics.messages_in.inc_by(end_offset.abs_diff(base_offset));
        }
        self.sources.backlog.grow(1);
        self.sources.cache.admit(&self, end_offset, durable.pinned_bytes);
        self.announce(end_offset);
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        self.sources.backlog.shrink(self.state.get_mut().unsplit.len());
    }
}

impl HotHolder for Partition {
    fn evict_below(&self, end_offset: i64) {
        let mut state = self.state.lock();
        while state.hot.front().is_some_and(|batch| batch.end_offset <= end_offset) {
            state.hot.pop_front();
        }
    }
}
