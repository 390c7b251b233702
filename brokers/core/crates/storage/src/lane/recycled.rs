//! Files that are used again. Filling a file with zeros ahead of use costs as much as writing it;
//! one that was split and retired has its blocks on the medium already.
//!
//! A retired `<k>.wal` becomes `<k>.spare`, and a spare the next `<n>.wal`, each by a rename.
//! Before that its first page is cleared and synced, so that a file never begins with a block of a
//! former life. Behind what was written since there still lie whole blocks of that life: their
//! sequence numbers are below all that a reader expects there, and so is what they say was
//! durable.
//!
//! One more file is kept that no records go into: the reserve, in which a lane goes on to its clean
//! end where the disk has no room for another file.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::block::ALIGNMENT;
use super::{LaneError, LaneFile, LanePaths};
use freshet_world::env::{Disk, DiskError, DiskResult, File};

/// As many as the splitter retires at once; more are removed.
const RECYCLED_MAX: usize = 8;
/// So many stay of a lane that seldom fills a file.
const RECYCLED_FEW: usize = 2;

/// The reserve takes the last checkpoint, the install records of what is split at the end, and the
/// end: 100 bytes for each of 10,000 partitions, twice.
const RESERVE_BYTES: u64 = 2 << 20;

/// The recycled of one's own lane.
pub(super) struct RecycledFiles {
    disk: Arc<dyn Disk>,
    paths: LanePaths,
    /// Only files of this size are kept.
    bytes: u64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    numbers: Vec<u64>,
    /// Whether there is a reserve.
    reserve: bool,
    /// The file that was made of it, which is smaller than others.
    made_of_reserve: Option<u64>,
    closed: bool,
}

impl RecycledFiles {
    pub(super) fn new(disk: Arc<dyn Disk>, paths: LanePaths, bytes: u64) -> Self {
        Self { disk, paths, bytes, kept: Mutex::default() }
    }

    /// Bytes of the reserve.
    pub(super) fn reserve_bytes(&self) -> u64 {
        self.bytes.min(RESERVE_BYTES)
    }

    /// Makes the reserve where there is none. Not called by two at once.
    pub(super) async fn keep_reserve(&self) -> DiskResult<()> {
        {
            let kept = self.kept.lock();
            if kept.reserve || kept.closed || kept.made_of_reserve.is_some() {
                return Ok(());
            }
        }
        self.disk.create(&self.paths.reserve(), self.reserve_bytes()).await?;
        self.kept.lock().reserve = true;
        Ok(())
    }

    /// Makes the `number`th file of the reserve; `None` where there is none.
    pub(super) async fn use_reserve(&self, number: u64) -> DiskResult<Option<Arc<dyn File>>> {
        {
            let mut kept = self.kept.lock();
            if !std::mem::take(&mut kept.reserve) {
                return Ok(None);
            }
            kept.made_of_reserve = Some(number);
        }
        let reserve = self.paths.reserve();
        let file = self.disk.open(&reserve).await?;
        self.begin(file, &reserve, number).await.map(Some)
    }

    /// Gives up what is kept, so that its room can be used; says whether there was anything.
    pub(super) async fn make_room(&self) -> DiskResult<bool> {
        let (numbers, reserve) = {
            let mut kept = self.kept.lock();
            let numbers = std::mem::take(&mut kept.numbers);
            // What is needed for the end goes last.
            let reserve = numbers.is_empty() && std::mem::take(&mut kept.reserve);
            (numbers, reserve)
        };
        self.remove_recycled(&numbers).await?;
        if reserve {
            self.disk.remove(&self.paths.reserve()).await?;
        }
        Ok(reserve || !numbers.is_empty())
    }

    /// Removes all but a few.
    pub(super) async fn keep_few(&self) -> DiskResult<()> {
        let given_up = {
            let mut kept = self.kept.lock();
            let few = kept.numbers.len().min(RECYCLED_FEW);
            kept.numbers.split_off(few)
        };
        self.remove_recycled(&given_up).await
    }

    async fn remove_recycled(&self, numbers: &[u64]) -> DiskResult<()> {
        for number in numbers {
            self.disk.remove(&self.paths.recycled(*number)).await?;
        }
        Ok(())
    }

    /// Keeps a file of `bytes` that holds nothing that anybody needs, or removes it.
    pub(super) async fn retire(&self, number: u64, bytes: u64) -> Result<(), LaneError> {
        let path = self.paths.file(LaneFile::Wal(number));
        let wanted = {
            let kept = self.kept.lock();
            let whole = bytes == self.bytes && kept.made_of_reserve != Some(number);
            whole && !kept.closed && kept.numbers.len() < RECYCLED_MAX
        };
        if !wanted {
            return Ok(self.disk.remove(&path).await?);
        }
        let recycled = self.paths.recycled(number);
        match self.disk.rename(&path, &recycled).await {
            // An earlier try was carried out, whatever was said of it.
            Err(DiskError::NotFound(_)) => {}
            renamed => renamed?,
        }
        // Files go in order: one that came back when a later one has gone would look like damage.
        match self.disk.make_durable(&recycled).await {
            Err(DiskError::NotFound(_)) => return Ok(()),
            made => made?,
        }
        let closed = {
            let mut kept = self.kept.lock();
            kept.numbers.push(number);
            kept.closed
        };
        if closed { self.remove_all().await } else { Ok(()) }
    }

    /// Makes the `number`th file, of a recycled where there is one. Its name and its first page, which
    /// is zeros, are durable when this returns.
    pub(super) async fn make_file(&self, number: u64, bytes: u64) -> DiskResult<Arc<dyn File>> {
        let path = self.paths.file(LaneFile::Wal(number));
        let recycled = if bytes == self.bytes { self.kept.lock().numbers.pop() } else { None };
        let Some(recycled) = recycled else { return self.disk.create(&path, bytes).await };
        let recycled = self.paths.recycled(recycled);
        let file = match self.disk.open(&recycled).await {
            Err(DiskError::NotFound(_)) => return self.disk.create(&path, bytes).await,
            opened => opened?,
        };
        self.begin(file, &recycled, number).await
    }

    /// Makes a file that is open under another name the `number`th.
    async fn begin(
        &self,
        file: Arc<dyn File>,
        name: &Path,
        number: u64,
    ) -> DiskResult<Arc<dyn File>> {
        let path = self.paths.file(LaneFile::Wal(number));
        file.write_and_sync(0, vec![Bytes::from_static(&[0; ALIGNMENT])]).await?;
        self.disk.rename(name, &path).await?;
        self.disk.make_durable(&path).await?;
        Ok(file)
    }

    /// Removes them all, and keeps none from now on.
    pub(super) async fn remove_all(&self) -> Result<(), LaneError> {
        self.kept.lock().closed = true;
        while self.make_room().await? {}
        Ok(())
    }
}
