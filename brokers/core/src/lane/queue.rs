//! The way into the lane: what is staged waits here, in order, for the writer.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::index::{InstallEntry, Usage};
use super::{LaneEnd, LaneError, LaneSpot};
use crate::ids::{Epoch, Incarnation, PartitionId};
use crate::records::StoredBatch;
use crate::standing::Standing;

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

/// What the writer is to do.
pub(super) enum Item {
    Batch(LaneBatch),
    Usage(Usage),
    Install(Install),
    Roll(oneshot::Sender<()>),
    Close(oneshot::Sender<LaneEnd>),
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    closed: bool,
}

/// The way into the lane.
pub struct Lane {
    queue: Mutex<Queue>,
    work: Notify,
    incarnation: Incarnation,
    standing: Standing,
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

    /// Items that wait for the writer.
    pub fn waiting(&self) -> usize {
        self.queue.lock().items.len()
    }

    pub(super) fn new(incarnation: Incarnation, standing: Standing) -> Self {
        Self { queue: Mutex::default(), work: Notify::new(), incarnation, standing }
    }

    /// Waits until something is pushed after this call.
    pub(super) async fn pushed(&self) {
        self.work.notified().await;
    }

    /// Takes the first item if `wanted` says so.
    pub(super) fn pop_if(&self, wanted: impl FnOnce(&Item) -> bool) -> Option<Item> {
        let mut queue = self.queue.lock();
        if queue.items.front().is_some_and(wanted) { queue.items.pop_front() } else { None }
    }

    fn push(&self, item: Item) -> Result<(), LaneError> {
        let mut queue = self.queue.lock();
        if queue.closed || self.standing.is_down() {
            return Err(LaneError::Closed(self.incarnation));
        }
        queue.closed = matches!(item, Item::Close(_));
        queue.items.push_back(item);
        drop(queue);
        self.work.notify_one();
        Ok(())
    }

    /// Takes nothing more and drops what was not written; who waits for it is told by the drop.
    pub(super) fn end(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.items.clear();
    }
}
