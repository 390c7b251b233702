//! The way into the lane: what is staged waits here, in order, for the writer.

use std::collections::VecDeque;
use std::sync::Arc;

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

/// A batch on its way into the lane. Its offsets are given already.
pub struct LaneBatch {
    /// Partition that it belongs to.
    pub partition: PartitionId,
    /// Leader epoch.
    pub epoch: Epoch,
    /// Who pays for it.
    pub principal: Arc<str>,
    /// The batch, with its place in the log.
    pub batch: StoredBatch,
    /// Memory that it keeps alive, in bytes.
    pub pinned_bytes: usize,
    /// Told when it is durable.
    pub owner: Arc<dyn BatchOwner>,
    /// Goes when the owner was told, or when nobody ever will tell it.
    pub ack: Option<AckShare>,
}

/// A batch below the fence-checked end.
pub struct DurableBatch {
    /// The batch.
    pub batch: StoredBatch,
    /// Where it can be read again.
    pub spot: LaneSpot,
    /// Memory that it keeps alive, in bytes.
    pub pinned_bytes: usize,
}

/// Whoever staged a batch. Called in the order in which batches were staged.
pub trait BatchOwner: Send + Sync {
    /// The batch is durable, and the token was ours after its sync.
    fn durable(self: Arc<Self>, batch: DurableBatch);
}

/// What happens the moment an install record is durable, before anything else is written: a
/// checkpoint that follows must already name these manifests.
pub type InstallEffect = Box<dyn FnOnce() + Send>;

/// Manifests that are to count.
pub(super) struct Install {
    pub(super) entries: Vec<InstallEntry>,
    pub(super) effect: InstallEffect,
    pub(super) done: oneshot::Sender<()>,
}

/// What the writer is to do, and since when.
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

#[derive(Default)]
struct Queue {
    items: VecDeque<Waiting>,
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
    /// Stages a batch. Order of staging is order in the lane. Once the instance is down, nothing
    /// staged is ever acked.
    ///
    /// # Errors
    /// [`LaneError::Closed`] where the lane takes nothing more.
    pub fn stage(&self, batch: LaneBatch) -> Result<(), LaneError> {
        self.push(Item::Batch(batch))
    }

    /// Stages egress counters.
    ///
    /// # Errors
    /// [`LaneError::Closed`] where the lane takes nothing more.
    pub fn stage_usage(&self, usage: Usage) -> Result<(), LaneError> {
        self.push(Item::Usage(usage))
    }

    /// Makes manifests count; returns once the record of it is durable and `effect` was run.
    ///
    /// # Errors
    /// [`LaneError::Closed`] where the instance ended first.
    pub async fn install(
        &self,
        entries: Vec<InstallEntry>,
        effect: InstallEffect,
    ) -> Result<(), LaneError> {
        let (done, installed) = oneshot::channel();
        self.push(Item::Install(Install { entries, effect, done }))?;
        installed.await.map_err(|_| LaneError::Closed(self.incarnation))
    }

    /// Ends the current file if it holds anything, so that it can be split; returns once whoever
    /// splits has been told.
    ///
    /// # Errors
    /// [`LaneError::Closed`] where the instance ended first.
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

    /// Waits until the writer has taken so much that there is room for another batch, or until the
    /// lane takes nothing more. A disk that is slow makes producers slow, and no queue long: beyond
    /// its bound the queue grows by at most what requests are in flight, which hold their part of
    /// that budget until they are written.
    pub async fn room(&self) {
        loop {
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

    /// Puts a file aside that holds nothing that anybody needs any more: it is used again, or
    /// removed.
    ///
    /// # Errors
    /// The disk's; the file may still be there.
    pub async fn retire(&self, number: u64) -> Result<(), LaneError> {
        self.recycled.retire(number, self.settings.file_bytes(number)).await
    }

    /// Gives up the files that wait to be used again, where the disk is full; says whether there
    /// was one.
    ///
    /// # Errors
    /// The disk's.
    pub async fn make_room(&self) -> Result<bool, LaneError> {
        Ok(self.recycled.make_room().await?)
    }

    /// Keeps only a few of the files that wait to be used again: the next ones fill slowly.
    ///
    /// # Errors
    /// The disk's.
    pub async fn keep_few_recycled(&self) -> Result<(), LaneError> {
        Ok(self.recycled.keep_few().await?)
    }

    /// Items that wait for the writer.
    pub fn waiting(&self) -> usize {
        self.queue.lock().items.len()
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

    /// Takes items from the front for as long as `take` wants the next one.
    pub(super) fn take_while(&self, wanted: &mut dyn Wanted) {
        let mut queue = self.queue.lock();
        let was_full = queue.pinned_bytes >= self.settings.queue_bytes_max;
        while queue.items.front().is_some_and(|waiting| wanted.wants(&waiting.item)) {
            let Some(waiting) = queue.items.pop_front() else { break };
            queue.pinned_bytes -= waiting.item.pinned_bytes();
            wanted.take(waiting);
        }
        let has_room = queue.pinned_bytes < self.settings.queue_bytes_max;
        drop(queue);
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
        queue.closed = matches!(item, Item::Close(_));
        queue.pinned_bytes += item.pinned_bytes();
        queue.items.push_back(Waiting { since, item });
        drop(queue);
        self.work.notify_one();
        Ok(())
    }

    /// Takes nothing more and drops what was not written; who waits for it is told by the drop.
    pub(super) fn end(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.pinned_bytes = 0;
        let dropped = std::mem::take(&mut queue.items);
        drop(queue);
        // Without the lock: those who wait run when their shares go.
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

/// What takes items from the queue.
pub(super) trait Wanted {
    /// Whether the item is to be taken.
    fn wants(&self, item: &Item) -> bool;

    /// Takes it.
    fn take(&mut self, waiting: Waiting);
}
