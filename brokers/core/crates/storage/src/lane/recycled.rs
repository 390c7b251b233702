//! Recycled files: retired lane files that are written again. To fill a new file with zeros ahead
//! of use costs as much as to write it; a retired file has its blocks allocated on the disk
//! already. In a new file that is only reserved, each commit waits for the file system's journal
//! too: that is worth it only where files fill so fast that the zeros would take as much of the
//! disk as the records.
//!
//! A retired `<k>.wal` becomes `<k>.spare`, and that becomes the next `<n>.wal`, each by a rename.
//! Before it gets its new name its first page is cleared and synced, so that a file never begins
//! with a block of its former life. Behind what was written since there still lie whole blocks of
//! that life: their sequence numbers are below all that a reader expects there, and so are the
//! numbers that they call durable.
//!
//! One more file is kept, into which no records go: the reserve, in which a lane is closed where
//! the disk has no room for another file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::block::ALIGNMENT;
use super::{LaneError, LaneFile, LanePaths};
use freshet_world::env::{Disk, DiskError, DiskResult, File, Room};

/// Recycled files that are kept at most: as many as the splitter retires at once.
const RECYCLED_MAX: usize = 8;
/// New files are only reserved where files fill at this rate or faster.
const RESERVED_FROM_BYTES_PER_S: u64 = 32 << 20;
/// Recycled files that a lane keeps which seldom fills a file.
const RECYCLED_FEW: usize = 2;

/// Bytes of the reserve: it takes the last checkpoint, the install records of what is split at the
/// end, and the `close` block. That is 100 bytes for each of 10,000 partitions, twice.
const RESERVE_BYTES: u64 = 2 << 20;

/// The recycled files of one's own lane, and its reserve.
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
    /// How the next new file is made.
    room: Room,
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

    /// Makes the reserve where there is none. Two calls must not run at the same time.
    pub(super) async fn keep_reserve(&self) -> DiskResult<()> {
        {
            let kept = self.kept.lock();
            if kept.reserve || kept.closed || kept.made_of_reserve.is_some() {
                return Ok(());
            }
        }
        self.disk.create(&self.paths.reserve(), self.reserve_bytes(), Room::Filled).await?;
        self.kept.lock().reserve = true;
        Ok(())
    }

    /// Turns the reserve into the `number`th file; `None` where there is no reserve.
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

    /// Removes the recycled files, so that their room can be used; where there are none, the
    /// reserve. Returns whether there was anything to remove.
    pub(super) async fn make_room(&self) -> DiskResult<bool> {
        let (numbers, reserve) = {
            let mut kept = self.kept.lock();
            let numbers = std::mem::take(&mut kept.numbers);
            // The reserve goes last: without it the lane cannot be closed on a full disk.
            let reserve = numbers.is_empty() && std::mem::take(&mut kept.reserve);
            (numbers, reserve)
        };
        self.remove_recycled(&numbers).await?;
        if reserve {
            self.disk.remove(&self.paths.reserve()).await?;
        }
        Ok(reserve || !numbers.is_empty())
    }

    /// Removes all but [`RECYCLED_FEW`].
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

    /// Retires a file of `bytes`: recycles it if it has the right size and there is room, or
    /// removes it.
    pub(super) async fn retire(&self, number: u64, bytes: u64) -> Result<(), LaneError> {
        let path = self.paths.file(LaneFile::Wal(number));
        let keep = {
            let kept = self.kept.lock();
            let whole = bytes == self.bytes && kept.made_of_reserve != Some(number);
            whole && !kept.closed && kept.numbers.len() < RECYCLED_MAX
        };
        if !keep {
            return Ok(self.disk.remove(&path).await?);
        }
        let recycled = self.paths.recycled(number);
        match self.disk.rename(&path, &recycled).await {
            // An earlier try was carried out, although it returned an error.
            Err(DiskError::NotFound(_)) => {}
            renamed => renamed?,
        }
        // The rename must be durable before a later file is retired: lane files disappear in order,
        // and one that came back after a crash, before a missing one, would look like damage.
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

    /// Notes how long it took to fill a file with so many bytes, which says how the next new file
    /// is made.
    pub(super) fn note_filled(&self, bytes: u64, filled_in: Duration) {
        self.kept.lock().room = room_after(bytes, filled_in);
    }

    /// Makes the `number`th file, from a recycled one where there is one. Its name and its first
    /// page, which is zeros, are durable when this returns.
    pub(super) async fn make_file(&self, number: u64, bytes: u64) -> DiskResult<Arc<dyn File>> {
        let path = self.paths.file(LaneFile::Wal(number));
        let (recycled, room) = {
            let mut kept = self.kept.lock();
            let recycled = if bytes == self.bytes { kept.numbers.pop() } else { None };
            (recycled, kept.room)
        };
        let Some(recycled) = recycled else { return self.disk.create(&path, bytes, room).await };
        let recycled = self.paths.recycled(recycled);
        let file = match self.disk.open(&recycled).await {
            Err(DiskError::NotFound(_)) => return self.disk.create(&path, bytes, room).await,
            opened => opened?,
        };
        self.begin(file, &recycled, number).await
    }

    /// Turns a file that is open under another name into the `number`th.
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

    /// Removes all recycled files and the reserve, and keeps none from now on.
    pub(super) async fn remove_all(&self) -> Result<(), LaneError> {
        self.kept.lock().closed = true;
        while self.make_room().await? {}
        Ok(())
    }
}

/// How new files are made after one of so many bytes that took so long to fill.
fn room_after(bytes: u64, filled_in: Duration) -> Room {
    let bytes_per_s = u128::from(bytes) * 1_000_000 / filled_in.as_micros().max(1);
    if bytes_per_s >= u128::from(RESERVED_FROM_BYTES_PER_S) { Room::Reserved } else { Room::Filled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lane_that_fills_files_fast_does_without_zeros() {
        let second = Duration::from_secs(1);
        assert_eq!(room_after(64 << 20, 2 * second), Room::Reserved);
        assert_eq!(room_after(64 << 20, 3 * second), Room::Filled);
        assert_eq!(room_after(1 << 20, second / 10), Room::Filled);
        assert_eq!(room_after(1 << 20, Duration::ZERO), Room::Reserved);
        assert_eq!(room_after(0, second), Room::Filled, "nothing was written to it");
    }
}
