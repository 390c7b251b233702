//! The queue into the lane: what is staged waits here, in order, for the writer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::ack::AckShare;
use super::index::{InstallEntry, Usage};
use super::recycled::RecycledFiles;
use super::writer::LaneSettings;
use super::{LaneEnd, LaneError, LaneSpot};
use crate::liveness::Liveness;
use freshet_wire::ids::{Epoch, Incarnation, PartitionId};
use freshet_wire::records::StoredBatch;

/// A batch on its way into the lane. Its offsets were assigned before it was staged.
pub struct LaneBatch {
    /// Partition that it belongs to.
    pub partition: PartitionId,
    /// Leader epoch.
    pub epoch: Epoch,
    /// The principal that produced it, for the meter.
    pub principal: Arc<str>,
    /// The batch, with its place in the log.
    pub batch: StoredBatch,
    /// Memory that it keeps alive, in bytes; more than its size where it is part of a larger
    /// buffer.
    pub pinned_bytes: usize,
    /// Called when it is durable.
    pub owner: Arc<dyn BatchOwner>,
    /// Dropped after the owner was called, or when the batch was dropped and the owner never will
    /// be.
    pub ack: Option<AckShare>,
}

/// A batch that is durable, written while the lane was ours.
pub struct DurableBatch {
    /// The batch.
    pub batch: StoredBatch,
    /// Where it can be read again.
    pub spot: LaneSpot,
    /// Memory that it keeps alive, in bytes; more than its size where it is part of a larger
    /// buffer.
    pub pinned_bytes: usize,
}

/// The owner of staged batches: a partition. It is called in the order in which they were staged.
pub trait BatchOwner: Send + Sync {
    /// The batch is durable, and the token was ours after its sync.
    fn durable(self: Arc<Self>, batch: DurableBatch);
}

/// Runs the moment an install record is durable, before anything else is written: a checkpoint that
/// follows must already name these manifests, or a reader that begins at it would miss them.
pub type InstallEffect = Box<dyn FnOnce() + Send>;

/// Manifests that are to count.
pub(super) struct Install {
    pub(super) entries: Vec<InstallEntry>,
    pub(super) effect: InstallEffect,
    pub(super) done: oneshot::Sender<()>,
}

/// An item of the queue, and since when it waits.
pub(super) struct Waiting {
    pub(super) since: Instant,
    pub(super) item: Item,
}

pub(super) enum Item {
    Batch(LaneBatch),
    Usage(Usage),
    Install(Install),
    Roll(oneshot::Sender<()>),
    Close(oneshot::Sender<LaneEnd>),
}

/// A write that is durable within this time shows that storage works. One that took longer shows
/// little: where all are as slow, nobody is to be taken for broken.
const QUICK_WRITE: Duration = Duration::from_secs(1);

/// Whether a lane gets on with what it was given to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneProgress {
    /// For how long the oldest write that storage was given is not durable; zero where there is
    /// none. It does not count how long a batch waited in the queue: a queue that is long and
    /// moves is no reason to give a broker up.
    pub pending: Duration,
    /// How long ago a write was durable that took a second at most; `None` where none was yet.
    pub quick_write: Option<Duration>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Waiting>,
    /// Since when the writer has items that it is not done with.
    writing: Option<Instant>,
    /// When a write was last durable that took a second at most.
    quick_write: Option<Instant>,
    /// Memory that the batches among them keep alive.
    pinned_bytes: usize,
    closed: bool,
}

/// The way into the lane.
pub struct Lane {
    queue: Mutex<Queue>,
    settings: LaneSettings,
    pub(super) recycled: Arc<RecycledFiles>,
    work: Notify,
    shrunk: Notify,
    incarnation: Incarnation,
    liveness: Liveness,
}

impl Lane {
    /// Stages a batch. Batches lie in the lane in the order in which they were staged. Once the
    /// incarnation has stood down, nothing that was staged is ever acknowledged.
    ///
    /// # Errors
    /// [`LaneError::Closed`] where the lane takes nothing more.
    pub fn stage(&self, batch: LaneBatch) -> Result<(), LaneError> {
        self.push(Item::Batch(batch))
    }

    /// Stages the counters of what was handed to clients.
    ///
    /// # Errors
    /// [`LaneError::Closed`] where the lane takes nothing more.
    pub fn stage_usage(&self, usage: Usage) -> Result<(), LaneError> {
        self.push(Item::Usage(usage))
    }

    /// Makes manifests count; returns once the install record is durable and `effect` has run.
    ///
    /// # Errors
    /// [`LaneError::Closed`] where the incarnation ended first.
    pub async fn install(
        &self,
        entries: Vec<InstallEntry>,
        effect: InstallEffect,
    ) -> Result<(), LaneError> {
        let (done, installed) = oneshot::channel();
        self.push(Item::Install(Install { entries, effect, done }))?;
        installed.await.map_err(|_| LaneError::Closed(self.incarnation))
    }

    /// Ends the current file if it holds anything, so that it can be split; returns once the file
    /// was handed to the splitter.
    ///
    /// # Errors
    /// [`LaneError::Closed`] where the incarnation ended first.
    pub async fn roll(&self) -> Result<(), LaneError> {
        let (done, rolled) = oneshot::channel();
        self.push(Item::Roll(done))?;
        rolled.await.map_err(|_| LaneError::Closed(self.incarnation))
    }

    /// Writes the clean end of the lane; nothing can be staged afterwards.
    ///
    /// # Errors
    /// [`LaneError::Closed`] where the lane had ended otherwise.
    pub async fn close(&self) -> Result<LaneEnd, LaneError> {
        let (done, closed) = oneshot::channel();
        self.push(Item::Close(done))?;
        closed.await.map_err(|_| LaneError::Closed(self.incarnation))
    }

    /// Waits until the queue keeps less than `queue_bytes_max` of memory alive, or until the lane
    /// takes nothing more. So a slow disk makes producers wait, and not the queue long. Requests
    /// that were let in at the same moment may exceed the bound together, by at most the budget of
    /// requests in flight: each holds its part of that budget until its batches are written.
    pub async fn room(&self) {
        loop {
            // The future is made before the check, so that a change between the two is not missed.
            let shrunk = self.shrunk.notified();
            if self.has_room() {
                return;
            }
            shrunk.await;
        }
    }

    fn has_room(&self) -> bool {
        let queue = self.queue.lock();
        queue.closed || queue.pinned_bytes < self.settings.queue_bytes_max
    }

    /// Memory that waiting batches keep alive, in bytes.
    pub fn pinned_bytes(&self) -> usize {
        self.queue.lock().pinned_bytes
    }

    /// Retires a file all of whose batches are in objects: it is kept as a recycled file, or
    /// removed.
    ///
    /// # Errors
    /// [`LaneError::Disk`]; the file may still be there.
    pub async fn retire(&self, number: u64) -> Result<(), LaneError> {
        self.recycled.retire(number, self.settings.file_bytes(number)).await
    }

    /// Removes the recycled files because the disk is full; returns whether there was one.
    ///
    /// # Errors
    /// [`LaneError::Disk`].
    pub async fn make_room(&self) -> Result<bool, LaneError> {
        Ok(self.recycled.make_room().await?)
    }

    /// Keeps only a few recycled files: a lane that fills its files slowly needs no more.
    ///
    /// # Errors
    /// [`LaneError::Disk`].
    pub async fn keep_few_recycled(&self) -> Result<(), LaneError> {
        Ok(self.recycled.keep_few().await?)
    }

    /// Items that wait for the writer.
    pub fn waiting(&self) -> usize {
        self.queue.lock().items.len()
    }

    /// Whether the lane gets on. Nothing here waits for storage.
    pub fn progress(&self) -> LaneProgress {
        let queue = self.queue.lock();
        // The writer takes at once what is staged while it has nothing.
        let oldest = queue.writing.or(queue.items.front().map(|waiting| waiting.since));
        LaneProgress {
            pending: oldest.map(|since| since.elapsed()).unwrap_or_default(),
            quick_write: queue.quick_write.map(|at| at.elapsed()),
        }
    }

    pub(super) fn new(
        incarnation: Incarnation,
        liveness: Liveness,
        settings: LaneSettings,
        recycled: Arc<RecycledFiles>,
    ) -> Self {
        let (work, shrunk) = (Notify::new(), Notify::new());
        Self { queue: Mutex::default(), settings, recycled, work, shrunk, incarnation, liveness }
    }

    /// Waits until something is pushed after this call.
    pub(super) async fn pushed(&self) {
        self.work.notified().await;
    }

    /// Hands items from the front to `taker` for as long as it wants the next one. The writer calls
    /// it once it is done with what it took before: all of that is durable.
    pub(super) fn take_while(&self, taker: &mut dyn Wanted) {
        let mut queue = self.queue.lock();
        let now = Instant::now();
        if queue.writing.take().is_some_and(|since| now.duration_since(since) <= QUICK_WRITE) {
            queue.quick_write = Some(now);
        }
        let was_full = queue.pinned_bytes >= self.settings.queue_bytes_max;
        while queue.items.front().is_some_and(|waiting| taker.wants(&waiting.item)) {
            let Some(waiting) = queue.items.pop_front() else { break };
            queue.pinned_bytes -= waiting.item.pinned_bytes();
            queue.writing = Some(now);
            taker.take(waiting);
        }
        let has_room = queue.pinned_bytes < self.settings.queue_bytes_max;
        drop(queue);
        // Only where the bound was crossed: most writes find nobody waiting for room.
        if was_full && has_room {
            self.shrunk.notify_waiters();
        }
    }

    fn push(&self, item: Item) -> Result<(), LaneError> {
        let since = Instant::now();
        let mut queue = self.queue.lock();
        if queue.closed || self.liveness.is_down() {
            return Err(LaneError::Closed(self.incarnation));
        }
        // In the same step as the close is queued, so that it is the last item.
        queue.closed = matches!(item, Item::Close(_));
        queue.pinned_bytes += item.pinned_bytes();
        queue.items.push_back(Waiting { since, item });
        drop(queue);
        self.work.notify_one();
        Ok(())
    }

    /// Takes nothing more and drops what was not written. Whoever waits for it gets an error,
    /// because the drop closes the channel or the share that it waits on.
    pub(super) fn end(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.pinned_bytes = 0;
        queue.writing = None;
        let dropped = std::mem::take(&mut queue.items);
        drop(queue);
        // Not under the lock: the drop of a share may run its waiter, which may take the lock.
        drop(dropped);
        self.shrunk.notify_waiters();
    }
}

impl Item {
    fn pinned_bytes(&self) -> usize {
        if let Self::Batch(batch) = self {
            batch.pinned_bytes.max(batch.batch.size_bytes())
        } else {
            0
        }
    }
}

/// A taker of items from the queue.
pub(super) trait Wanted {
    /// Whether the item is to be taken.
    fn wants(&self, item: &Item) -> bool;

    /// Takes it.
    fn take(&mut self, waiting: Waiting);
}
