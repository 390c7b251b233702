//! A partition that this incarnation leads. It gives batches their offsets, recognises retries of
//! producers, knows which batches are durable, and reads records. See the crate's `README.md`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use kafka_protocol::ResponseError;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use freshet_storage::cache::ahead::Followers;
use freshet_storage::cache::blocks::BlockCache;
use freshet_storage::cache::{HotCache, HotHolder, HotTicket};
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
use freshet_storage::state::producers::Verdict;
use freshet_telemetry::{Metrics, TopicMetrics};
use freshet_wire::ids::{Epoch, PartitionId};
use freshet_wire::records::{StoredBatch, ValidatedBatch};

mod damaged;
pub mod load;
mod producers;
pub mod read;
pub mod read_faults;
pub mod registry;
mod stretch;
mod tenure;
mod times;
pub mod timestamps;

use freshet_world::watch;
use producers::KnownProducers;
pub use producers::ProducerCount;
use read_faults::ReadFaults;
use tenure::{Access, Tenure};

/// What all partitions of an engine share to read records and to count.
pub struct Sources {
    /// The newest batches, in memory.
    pub cache: HotCache,
    /// Reads batches from lanes.
    pub lanes: LaneReader,
    /// Reads batches from segments in the object store.
    pub cold: ColdReader,
    /// The memory for blocks that were read from lanes and segments.
    pub blocks: Arc<BlockCache>,
    /// The readers that read storage from front to back, ahead of whom blocks are read.
    pub followers: Followers,
    /// The places that could not be read.
    pub read_faults: ReadFaults,
    /// Counts the batches that are not in a segment yet.
    pub backlog: Backlog,
    /// How many producers are remembered.
    pub producers: Arc<ProducerCount>,
    /// How often the offsets that bound any partition have changed.
    pub bound_changes: AtomicU64,
    /// Whether the incarnation may still act.
    pub liveness: Liveness,
    /// Which rules of safety hold: all of them, except in a simulation.
    pub rules: Rules,
    /// The metrics of the engine.
    pub metrics: Arc<Metrics>,
}

/// Counts the batches of all partitions that are durable and not in a segment yet. The index of
/// these batches is in memory, so their number is limited: where there are more, producers wait for
/// the splitter.
#[derive(Default)]
pub struct Backlog {
    batches: AtomicUsize,
    shrunk: Notify,
}

/// The most bytes that the index of unsplit batches may have.
const BACKLOG_BYTES_MAX: usize = 8 << 20;

// With less room than for three files, producers could wait for the split of a file that has not
// ended yet and that only they can fill.
const _: () = assert!(3 * FILE_BATCHES_MAX * size_of::<Unsplit>() <= BACKLOG_BYTES_MAX);

impl Backlog {
    /// How many unsplit batches there are.
    pub fn batches(&self) -> usize {
        self.batches.load(Ordering::Relaxed)
    }

    /// Whether producers have to wait.
    pub fn is_full(&self) -> bool {
        self.batches() * size_of::<Unsplit>() >= BACKLOG_BYTES_MAX
    }

    /// Waits until there is room for more batches.
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
    /// The offset of its first record.
    pub base_offset: i64,
    /// The offset after its last record.
    pub end_offset: i64,
    /// The largest timestamp of its records, in ms since 1970.
    pub max_timestamp: i64,
    /// The leader epoch under which it was written.
    pub epoch: Epoch,
    /// Its place in a lane.
    pub spot: LaneSpot,
}

struct HotBatch {
    base_offset: i64,
    end_offset: i64,
    batch: StoredBatch,
    ticket: HotTicket,
}

struct State {
    /// The offset that the next batch gets. It is ahead of `end` by the batches that are staged.
    next_offset: i64,
    /// The end offset up to which batches are durable and were written while the incarnation was
    /// not fenced. Readers see nothing beyond it.
    end: i64,
    manifest: Arc<Manifest>,
    /// Readers see nothing before it: retention has excluded that, and will remove it.
    hidden_below: i64,
    unsplit: VecDeque<Unsplit>,
    hot: VecDeque<HotBatch>,
    access: Access,
    tenure: Tenure,
    producers: KnownProducers,
    epochs: EpochTable,
}

impl State {
    /// The first offset that may be read.
    fn log_start(&self) -> i64 {
        self.manifest.log_start.max(self.hidden_below)
    }

    fn bounds(&self) -> Bounds {
        Bounds { log_start: self.log_start(), last_stable_offset: self.end, end: self.end }
    }

    /// Takes the hot batches out that end at or before `end_offset`.
    fn take_hot_below(&mut self, end_offset: i64) -> VecDeque<HotBatch> {
        let ended = self.hot.partition_point(|batch| batch.end_offset <= end_offset);
        self.hot.drain(..ended).collect()
    }
}

/// The name of a partition's topic. A deleted topic can be restored under another name, so it may
/// change.
struct Label {
    topic: Arc<str>,
    /// The metrics of the topic; `None` while clients do not see it.
    metrics: Option<TopicMetrics>,
}

/// A partition that this incarnation leads.
pub struct Partition {
    id: PartitionId,
    epoch: Epoch,
    sources: Arc<Sources>,
    label: RwLock<Label>,
    state: Mutex<State>,
    /// A copy of `State::end`, for those who wait until it reaches an offset.
    progress: watch::Sender<i64>,
    /// The fetches that wait for new batches.
    readers: Mutex<Vec<Weak<Notify>>>,
    /// The fetches that wait for batches of others, or for storage.
    bystanders: Mutex<Vec<Weak<Notify>>>,
    /// The first offsets of batches that cannot be read.
    damaged: Mutex<BTreeMap<i64, i64>>,
    /// A copy of whether `State::access` is that of clients, for fetches.
    serves_clients: AtomicBool,
}

/// The offsets that a staged batch got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staged {
    /// The offset of its first record.
    pub base_offset: i64,
    /// The batch may be acknowledged once the partition's end reaches this offset.
    pub end_offset: i64,
    /// Bytes of the batch that are stored for it, and so billed: none of a duplicate.
    pub stored_bytes: usize,
}

/// The offsets that bound a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The first offset that may be read.
    pub log_start: i64,
    /// The first offset of the oldest open transaction; the end where there is none.
    pub last_stable_offset: i64,
    /// The offset after the last record that may be read (Kafka's high watermark).
    pub end: i64,
}

impl Partition {
    /// The id of its topic, and its index.
    pub fn id(&self) -> PartitionId {
        self.id
    }

    /// The present name of its topic.
    pub fn topic(&self) -> Arc<str> {
        Arc::clone(&self.label.read().topic)
    }

    /// Sets the name of its topic, and whether clients see the topic: only then it is counted in
    /// the metrics, and batches are kept in memory. Where clients see it no more, the fetches that
    /// wait for it are notified.
    pub fn relabel(&self, topic: &Arc<str>, seen: bool) {
        let known = self.label.read();
        if known.topic == *topic && known.metrics.is_some() == seen {
            return;
        }
        drop(known);
        let metrics = seen.then(|| self.sources.metrics.topic(topic));
        *self.label.write() = Label { topic: Arc::clone(topic), metrics };
        self.set_access(if seen { Access::Clients } else { Access::Hidden });
    }

    /// Closes it, because its topic is gone or it was taken offline: its memory is given back, and
    /// the fetches that wait for it are notified. Batches that are in the lane's queue become
    /// durable all the same.
    pub fn close(&self) {
        self.set_access(Access::Closed);
    }

    /// Whether clients may read it: they see its topic, and it is not closed.
    pub fn serves_clients(&self) -> bool {
        self.serves_clients.load(Ordering::Acquire)
    }

    fn set_access(&self, access: Access) {
        let hot = {
            let mut state = self.state.lock();
            if state.access == Access::Closed {
                return;
            }
            state.access = access;
            let serves_clients = access == Access::Clients;
            self.serves_clients.store(serves_clients, Ordering::Release);
            self.sources.bound_changes.fetch_add(1, Ordering::Release);
            if serves_clients {
                return;
            }
            state.take_hot_below(i64::MAX)
        };
        self.give_back(&hot);
        notify(&self.readers);
        notify(&self.bystanders);
    }

    fn give_back(&self, hot: &VecDeque<HotBatch>) {
        self.sources.cache.release(hot.iter().map(|batch| batch.ticket));
    }

    /// The leader epoch under which this incarnation leads it.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Gives a batch its offsets and puts it into the lane's queue, under one lock, so that the
    /// order in the lane is the order of offsets. `pinned_bytes` is how much memory the batch keeps
    /// alive.
    ///
    /// # Errors
    /// Those of `Producers::judge`, and `NOT_LEADER_OR_FOLLOWER` once the engine has stood down.
    pub fn stage(
        self: &Arc<Self>,
        lane: &Lane,
        batch: ValidatedBatch,
        principal: &Arc<str>,
        pinned_bytes: usize,
    ) -> Result<Staged, ResponseError> {
        self.stage_for(lane, batch, principal, pinned_bytes, None)
    }

    /// Does what [`Partition::stage`] does, for a request that waits for all of its batches
    /// together. A duplicate is not waited for here: its caller waits for the original with
    /// [`Partition::durable`].
    ///
    /// # Errors
    /// Those of [`Partition::stage`].
    pub fn stage_for(
        self: &Arc<Self>,
        lane: &Lane,
        batch: ValidatedBatch,
        principal: &Arc<str>,
        pinned_bytes: usize,
        ack: Option<AckShare>,
    ) -> Result<Staged, ResponseError> {
        let mut state = self.state.lock();
        if state.tenure != Tenure::Leads {
            return Err(ResponseError::NotLeaderOrFollower);
        }
        if let Verdict::Duplicate(known) = state.producers.judge(batch.header())? {
            return Ok(self.duplicate_of(&known));
        }
        let base_offset = state.next_offset;
        let stored = StoredBatch::new(batch, base_offset, self.epoch);
        let (header, stored_bytes) = (stored.header(), stored.size_bytes());
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
        Ok(Staged { base_offset, end_offset: header.next_offset(), stored_bytes })
    }

    /// Waits until everything below `end_offset` is durable and may be acknowledged.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER` where the engine ended first. Whether the records are in the log
    /// then is known only after the next takeover.
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

    /// Whether everything below `end_offset` is durable and may be acknowledged.
    pub fn is_durable(&self, end_offset: i64) -> bool {
        *self.progress.borrow() >= end_offset
    }

    /// The batch that starts at `base_offset`; `None` where it is not in memory any more.
    pub fn hot_batch(&self, base_offset: i64) -> Option<StoredBatch> {
        let state = self.state.lock();
        let place = state.hot.binary_search_by_key(&base_offset, |hot| hot.base_offset).ok()?;
        Some(state.hot[place].batch.clone())
    }

    /// Notifies `reader` once, when more records can be read or it is no longer open to clients.
    /// Does nothing where it was dropped by then.
    pub fn notify_on_append(&self, reader: &Arc<Notify>) {
        register(&self.readers, reader);
    }

    /// Whether a fetch waits to be notified.
    pub fn is_awaited(&self) -> bool {
        let waits = |reader: &Weak<Notify>| reader.strong_count() > 0;
        self.readers.lock().iter().any(waits)
    }

    /// Notifies `reader` once, when the partition is no longer open to clients. Does nothing where
    /// it was dropped by then.
    pub fn notify_on_close(&self, reader: &Arc<Notify>) {
        register(&self.bystanders, reader);
    }

    /// The offsets that bound it at this moment.
    pub fn bounds(&self) -> Bounds {
        self.state.lock().bounds()
    }

    /// Readers see nothing before this offset, whatever the manifest that counts still has.
    pub fn hidden_below(&self) -> i64 {
        self.state.lock().hidden_below
    }

    /// Hands out nothing before `offset` any more. The next round of retention removes it; until
    /// then the manifest that counts still has it.
    pub fn hide_below(&self, offset: i64) {
        let mut state = self.state.lock();
        state.hidden_below = state.hidden_below.max(offset);
        drop(state);
        self.sources.bound_changes.fetch_add(1, Ordering::Release);
    }

    /// The largest leader epoch that is not above `requested`, with its end offset, for
    /// OffsetForLeaderEpoch; `None` where there is none.
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

    /// Checks the leader epoch that a request names; -1 names none.
    ///
    /// # Errors
    /// `FENCED_LEADER_EPOCH` where it is below the partition's, `UNKNOWN_LEADER_EPOCH` where it is
    /// above.
    pub fn check_epoch(&self, believed: Epoch) -> Result<(), ResponseError> {
        match believed {
            -1 => Ok(()),
            older if older < self.epoch => Err(ResponseError::FencedLeaderEpoch),
            newer if newer > self.epoch => Err(ResponseError::UnknownLeaderEpoch),
            _ => Ok(()),
        }
    }

    /// The leader epoch under which the record at `offset` was written; the current one where there
    /// is no such record.
    pub fn epoch_of(&self, offset: i64) -> Epoch {
        self.state.lock().epochs.epoch_of(offset).unwrap_or(self.epoch)
    }

    /// The manifest that counts.
    pub fn manifest(&self) -> Arc<Manifest> {
        Arc::clone(&self.state.lock().manifest)
    }

    /// The name of the manifest that counts; `None` where the partition has none yet.
    pub fn manifest_name(&self) -> Option<ManifestRef> {
        let name = self.state.lock().manifest.name;
        (name.epoch >= 0).then_some(name)
    }

    /// The batches that are durable and not in a segment yet.
    pub fn unsplit(&self) -> Vec<Unsplit> {
        self.state.lock().unsplit.iter().copied().collect()
    }

    /// How many batches are durable and not in a segment yet.
    pub fn unsplit_count(&self) -> usize {
        self.state.lock().unsplit.len()
    }

    /// How many bytes of batches are durable and not in a segment yet.
    pub fn unsplit_bytes(&self) -> u64 {
        let state = self.state.lock();
        state.unsplit.iter().map(|batch| u64::from(batch.spot.length)).sum()
    }

    /// How many bytes of batches it has, in segments and in lanes.
    pub fn bytes(&self) -> u64 {
        self.unsplit_bytes() + self.manifest().bytes()
    }

    /// Forgets the producers whose last batch was written at `since_ms` or before.
    pub fn expire_producers(&self, since_ms: i64) {
        let mut state = self.state.lock();
        let end = state.end;
        state.producers.expire(since_ms, end);
    }

    /// Whether it knows a producer, whose retries are then recognised.
    pub fn knows_producer(&self, id: i64) -> bool {
        self.state.lock().producers.get(id).is_some()
    }

    /// Makes a manifest count. The lane's writer calls it as soon as the block that installs the
    /// manifest is durable.
    ///
    /// A read that begins afterwards gets no record that the manifest removed: in the same step
    /// memory gives up what lies below the offset up to which records were removed, so that such
    /// reads come from the segments that the manifest names.
    pub fn apply(&self, mut manifest: Arc<Manifest>) {
        let removed = {
            let mut state = self.state.lock();
            debug_assert!(manifest.name > state.manifest.name, "manifests only advance");
            let covered = manifest.covered_end;
            let split = state.unsplit.partition_point(|batch| batch.end_offset <= covered);
            state.unsplit.drain(..split);
            self.sources.backlog.shrink(split);
            state.epochs.trim(manifest.log_start);
            state.producers.retain_known(&manifest.producers, covered);
            state.producers.limit_manifest(&mut manifest);
            let forgets = self.sources.rules.hold(Rule::ForgetRemoved) && !state.hot.is_empty();
            let removed_below = if forgets { manifest.removed_below(&state.manifest) } else { 0 };
            state.manifest = manifest;
            state.take_hot_below(removed_below)
        };
        self.sources.bound_changes.fetch_add(1, Ordering::Release);
        self.give_back(&removed);
    }

    fn announce(&self, end: i64) {
        self.progress.send_replace(end);
        notify(&self.readers);
    }
}

fn register(waiting: &Mutex<Vec<Weak<Notify>>>, reader: &Arc<Notify>) {
    let mut waiting = waiting.lock();
    waiting.retain(|other| other.strong_count() > 0);
    waiting.push(Arc::downgrade(reader));
}

fn notify(waiting: &Mutex<Vec<Weak<Notify>>>) {
    let waiting = std::mem::take(&mut *waiting.lock());
    for reader in waiting.iter().filter_map(Weak::upgrade) {
        reader.notify_one();
    }
}

/// What the lane's writer calls for each batch of the partition.
impl BatchOwner for Partition {
    fn durable(self: Arc<Self>, durable: DurableBatch) {
        let header = durable.batch.header();
        let (base_offset, end_offset) = (header.base_offset, header.next_offset());
        let victims = {
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
            state.producers.touch(header.producer_id, durable.spot.written_at_ms);
            (state.access == Access::Clients).then(|| {
                let (batch, pinned) = (durable.batch, durable.pinned_bytes);
                let (ticket, victims) = self.sources.cache.admit(&self, end_offset, pinned);
                state.hot.push_back(HotBatch { base_offset, end_offset, batch, ticket });
                victims
            })
        };
        if let Some(victims) = victims {
            victims.evict();
        }
        if let Some(metrics) = &self.label.read().metrics {
            metrics.bytes_in.inc_by(u64::from(durable.spot.length));
            metrics.messages_in.inc_by(end_offset.abs_diff(base_offset));
        }
        self.sources.backlog.grow(1);
        self.sources.bound_changes.fetch_add(1, Ordering::Release);
        self.announce(end_offset);
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        self.sources.backlog.shrink(state.unsplit.len());
        self.sources.cache.release(state.hot.iter().map(|batch| batch.ticket));
    }
}

impl HotHolder for Partition {
    fn evict_below(&self, end_offset: i64) {
        let evicted = self.state.lock().take_hot_below(end_offset);
        // Freed here and not under the lock.
        drop(evicted);
    }
}
