//! Files that are used again. Filling a file with zeros ahead of use costs as much as writing it;
//! one that was split and retired has its blocks on the medium already.
//!
//! A retired `<k>.wal` becomes `<k>.spare`, and a spare the next `<n>.wal`, each by a rename.
//! Before that its first page is cleared and synced, so that a file never begins with a block of a
//! former life. Behind what was written since there still lie whole blocks of that life: their
//! sequence numbers are below all that a reader expects there, and so is what they say was
//! durable.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::block::ALIGNMENT;
use super::{LaneError, LaneFile, LanePaths};
use crate::env::{Disk, DiskError, DiskResult, File};

/// More are removed.
const SPARES_MAX: usize = 2;

/// The spares of one's own lane.
pub(super) struct Spares {
    disk: Arc<dyn Disk>,
    paths: LanePaths,
    /// Only files of this size are kept.
    bytes: u64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    numbers: Vec<u64>,
    closed: bool,
}

impl Spares {
    pub(super) fn new(disk: Arc<dyn Disk>, paths: LanePaths, bytes: u64) -> Self {
        Self { disk, paths, bytes, kept: Mutex::default() }
    }

    /// Keeps a file of `bytes` that holds nothing that anybody needs, or removes it.
    pub(super) async fn retire(&self, number: u64, bytes: u64) -> Result<(), LaneError> {
        let path = self.paths.file(LaneFile::Wal(number));
        let wanted = {
            let kept = self.kept.lock();
            bytes == self.bytes && !kept.closed && kept.numbers.len() < SPARES_MAX
        };
        if !wanted {
            return Ok(self.disk.remove(&path).await?);
        }
        let spare = self.paths.spare(number);
        match self.disk.rename(&path, &spare).await {
            // An earlier try was carried out, whatever was said of it.
            Err(DiskError::NotFound(_)) => {}
            renamed => renamed?,
        }
        // Files go in order: one that came back when a later one has gone would look like damage.
        match self.disk.make_durable(&spare).await {
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

    /// Makes the `number`th file, of a spare where there is one. Its name and its first page, which
    /// is zeros, are durable when this returns.
    pub(super) async fn make_file(&self, number: u64, bytes: u64) -> DiskResult<Arc<dyn File>> {
        let path = self.paths.file(LaneFile::Wal(number));
        let spare = if bytes == self.bytes { self.kept.lock().numbers.pop() } else { None };
        let Some(spare) = spare else { return self.disk.create(&path, bytes).await };
        let spare = self.paths.spare(spare);
        let file = match self.disk.open(&spare).await {
            Err(DiskError::NotFound(_)) => return self.disk.create(&path, bytes).await,
            opened => opened?,
        };
        file.write_and_sync(0, vec![Bytes::from_static(&[0; ALIGNMENT])]).await?;
        self.disk.rename(&spare, &path).await?;
        self.disk.make_durable(&path).await?;
        Ok(file)
    }

    /// Removes them all, and keeps none from now on.
    pub(super) async fn remove_all(&self) -> Result<(), LaneError> {
        let numbers = {
            let mut kept = self.kept.lock();
            kept.closed = true;
            std::mem::take(&mut kept.numbers)
        };
        for number in numbers {
            self.disk.remove(&self.paths.spare(number)).await?;
        }
        Ok(())
    }
}
