//! The reads from storage that a fetch waits for.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;

use freshet_partition::Partition;
use freshet_partition::read::{Fetched as Records, ReadError};
use freshet_wire::budget::{Budget, Share};

/// Records that were read from storage, for the partition at this place of the request: (index of
/// the topic, index of the partition within it).
pub(super) struct StorageRead {
    pub(super) place: (usize, usize),
    pub(super) room: usize,
    pub(super) read: Result<(Records, Share), ReadError>,
}

/// The reads from storage that run at the same time for one request.
pub(super) type StorageReads = FuturesUnordered<BoxFuture<'static, StorageRead>>;

/// A read from storage that is to be started.
pub(super) struct FromStorage {
    pub(super) partition: Arc<Partition>,
    pub(super) offset: i64,
    pub(super) room: usize,
    pub(super) is_first: bool,
    pub(super) budget: Budget,
    /// The memory for its records; `None` where the read must wait for it first.
    pub(super) share: Option<Share>,
}

impl FromStorage {
    pub(super) fn read(self, place: (usize, usize)) -> BoxFuture<'static, StorageRead> {
        let Self { partition, offset, room, is_first, budget, share } = self;
        async move {
            let share = match share {
                Some(share) => share,
                None => budget.acquire(room).await,
            };
            let read = partition.read(offset, room, is_first).await;
            StorageRead { place, room, read: read.map(|read| (read, share)) }
        }
        .boxed()
    }
}
