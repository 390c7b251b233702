//! Reading from lanes: single batches by where they lie, and whole ended lanes from front to back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use super::block::{BlockKind, HEADER_BYTES};
use super::heads::{Head, HeadWalk, Here};
use super::scan::PlacedBlock;
use super::seal::{SealedBlock, read_seal};
use super::{LaneEnd, LaneError, LaneFile, LanePaths, LaneSpot, file_numbers};
use crate::cache::blocks::{BlockCache, Found, LoadError, Loader, Source};
use crate::rules::{Rule, Rules};
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Disk, DiskError, File};

/// Reads batches out of any lane of a cluster, also a dead broker's.
pub struct LaneReader {
    files: Arc<LaneFiles>,
    blocks: Arc<BlockCache>,
}

/// Open files of lanes.
struct LaneFiles {
    disk: Arc<dyn Disk>,
    cluster: String,
    open: Mutex<OpenFiles>,
}

#[derive(Default)]
struct OpenFiles {
    files: BTreeMap<(Incarnation, LaneFile), Arc<dyn File>>,
    /// The last file of each lane that was forgotten. Files are retired in order, so every earlier
    /// one is gone, too.
    gone: BTreeMap<Incarnation, LaneFile>,
}

impl OpenFiles {
    fn is_gone(&self, incarnation: Incarnation, file: LaneFile) -> bool {
        self.gone.get(&incarnation).is_some_and(|gone| file <= *gone)
    }
}

impl LaneReader {
    /// A reader of the lanes of `cluster`.
    pub fn new(disk: Arc<dyn Disk>, cluster: &str, blocks: Arc<BlockCache>) -> Self {
        let files = LaneFiles { disk, cluster: cluster.to_owned(), open: Mutex::default() };
        Self { files: Arc::new(files), blocks }
    }

    /// Reads one batch. The caller checks the batch's own checksum; this does not. The bytes of the
    /// file before `sure_end` are durable, so the cache may keep what lies around the batch, too;
    /// up to `reach` the reader is going to need it.
    ///
    /// # Errors
    /// [`LoadError::Lane`], also where the file is too short.
    pub async fn read(
        &self,
        spot: LaneSpot,
        reach: u64,
        sure_end: u64,
    ) -> Result<Found, LoadError> {
        let source = Source::Lane(spot.incarnation, spot.file);
        let loader = Arc::clone(&self.files) as Arc<dyn Loader>;
        self.blocks.read(&loader, source, spot.range(), reach, sure_end).await
    }

    /// Reads batches into the cache that a reader is going to need. They lie in one file, in order.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_ahead(&self, spots: &[LaneSpot]) -> Result<(), LoadError> {
        let Some(last) = spots.last() else { return Ok(()) };
        let ranges: Vec<_> = spots.iter().map(LaneSpot::range).collect();
        let source = Source::Lane(last.incarnation, last.file);
        let loader = Arc::clone(&self.files) as Arc<dyn Loader>;
        self.blocks.read_ahead(&loader, source, &ranges, last.range().end).await
    }

    /// Drops from the cache what was read around a batch whose checksum is wrong, so that the next
    /// read asks storage again.
    pub fn reread(&self, spot: &LaneSpot) {
        self.blocks.forget(Source::Lane(spot.incarnation, spot.file));
    }

    /// Reads a whole file, for jobs that need all of it.
    ///
    /// # Errors
    /// [`LaneError::Disk`].
    pub async fn read_whole(
        &self,
        incarnation: Incarnation,
        file: LaneFile,
    ) -> Result<Bytes, LaneError> {
        let file = self.files.file(incarnation, file).await?;
        let size = usize::try_from(file.size().await?).expect("files fit the address space");
        Ok(file.read_once_at(0, size).await?)
    }

    /// Reads a batch past the cache, since nobody will read it again. It may be shorter than it
    /// should be.
    ///
    /// # Errors
    /// [`LaneError::Disk`].
    pub async fn read_once(&self, spot: LaneSpot) -> Result<Bytes, LaneError> {
        let file = self.files.file(spot.incarnation, spot.file).await?;
        Ok(file.read_once_at(spot.position, spot.length as usize).await?)
    }

    /// Forgets a file that is about to be removed or recycled, and every one before it in its lane.
    /// A read that is under way has its bytes from before, or gets an error that the file is gone.
    /// The file is closed, since an open file keeps its room on the disk.
    pub fn forget(&self, incarnation: Incarnation, file: LaneFile) {
        {
            let mut open = self.files.open.lock();
            open.files.remove(&(incarnation, file));
            open.gone.insert(incarnation, file);
        }
        self.blocks.forget(Source::Lane(incarnation, file));
    }
}

impl LaneFiles {
    async fn file(
        &self,
        incarnation: Incarnation,
        file: LaneFile,
    ) -> Result<Arc<dyn File>, LaneError> {
        if let Some(open) = self.open.lock().files.get(&(incarnation, file)) {
            return Ok(Arc::clone(open));
        }
        let opened = self.disk.open(&self.path(incarnation, file)).await?;
        let mut open = self.open.lock();
        if !open.is_gone(incarnation, file) {
            open.files.insert((incarnation, file), Arc::clone(&opened));
        }
        Ok(opened)
    }

    fn path(&self, incarnation: Incarnation, file: LaneFile) -> PathBuf {
        LanePaths::new(&self.cluster, incarnation).file(file)
    }
}

#[async_trait]
impl Loader for LaneFiles {
    async fn load(&self, source: Source, range: Range<u64>) -> Result<Bytes, LoadError> {
        let Source::Lane(incarnation, file) = source else {
            unreachable!("objects have a loader of their own")
        };
        let length = usize::try_from(range.end - range.start).expect("runs fit the address space");
        let open = self.file(incarnation, file).await?;
        let bytes = open.read_at(range.start, length).await.map_err(LaneError::from)?;
        // Checked after the read: the file may have been recycled under it, but is always forgotten
        // before that.
        if self.open.lock().is_gone(incarnation, file) {
            let path = self.path(incarnation, file).display().to_string();
            return Err(LaneError::from(DiskError::NotFound(path)).into());
        }
        if bytes.len() == length {
            return Ok(bytes);
        }
        let what = "the file is too short";
        Err(LaneError::damaged(incarnation, file.number(), range.start, what).into())
    }
}

/// A block of a lane that has its end, and where its payload can be read.
#[derive(Debug)]
pub struct ReplayedBlock {
    /// Its header and index, and where the lane had it.
    pub head: Head,
    /// The file to read it from: the lane's own, or SEAL.
    pub file: LaneFile,
    /// Where the payload starts in that file.
    pub payload_position: u64,
}

/// Visits the blocks of a lane in order, up to its end, reading headers and indexes only.
///
/// # Errors
/// [`LaneError::Damaged`] where a block before the end is missing.
pub async fn replay(
    disk: &dyn Disk,
    paths: &LanePaths,
    incarnation: Incarnation,
    end: LaneEnd,
    rules: Rules,
    visit: &mut (dyn FnMut(ReplayedBlock) -> Result<(), LaneError> + Send),
) -> Result<(), LaneError> {
    let sealed = read_seal(disk, paths, incarnation).await?.map(|seal| seal.blocks);
    let mut sealed = sealed.unwrap_or_default();
    let (mut due, mut nonce) = (None, None);
    // Behind the last block that was visited.
    let mut reached = (end.file, 0);
    let only_due = rules.hold(Rule::CountWhatIsDue);
    let within = |sequence: u64| sequence <= end.sequence || !rules.hold(Rule::StopAtSealedEnd);
    let names = disk.list(&paths.folder()).await?;
    for number in file_numbers(&names, "wal") {
        if number > end.file && rules.hold(Rule::StopAtSealedEnd) {
            // The file was made ahead of use, or lies beyond the lane's end.
            break;
        }
        let mut walk = HeadWalk::open(disk, paths, incarnation, nonce, (number, 0)).await?;
        loop {
            let here = (number, walk.position());
            let due_here = due.filter(|_| only_due);
            let copy = sealed.first_entry().filter(|entry| {
                let copy = &entry.get().placed;
                (copy.file, copy.position) == here
            });
            let replayed = if let Some(copy) = copy {
                let SealedBlock { placed, seal_position } = copy.remove();
                if due_here.is_some_and(|due_here| placed.block.header.sequence != due_here) {
                    // An earlier file could not be read to its end, so the copy does not follow.
                    break;
                }
                walk.skip(placed.raw.len());
                let PlacedBlock { file, position, raw, block } = placed;
                let head = Head::of(file, position, &raw, block.header);
                ReplayedBlock::new(head, LaneFile::Seal, seal_position)
            } else {
                let Here::Block(head) = walk.take(due_here).await? else { break };
                let position = head.position;
                ReplayedBlock::new(head, LaneFile::Wal(number), position)
            };
            let header = replayed.head.header;
            if !within(header.sequence) {
                return Ok(());
            }
            (due, nonce) = (Some(header.sequence + 1), Some(header.nonce));
            reached = (number, walk.position());
            visit(replayed)?;
        }
        if due.is_none() && end.sequence > 0 && number <= end.file {
            let what = "the file's first block is damaged, and with it what followed";
            return Err(LaneError::damaged(incarnation, number, 0, what));
        }
    }
    match due {
        Some(missing) if missing <= end.sequence => {
            let what = format!("block {missing} is missing before the sealed end {}", end.sequence);
            let (file, position) = reached;
            Err(LaneError::damaged(incarnation, file, position, what))
        }
        None if end.sequence > 0 && file_numbers(&names, "idx").is_empty() => {
            let what = "every file is missing, and nothing says that they were split";
            Err(LaneError::damaged(incarnation, end.file, 0, what))
        }
        _ => Ok(()),
    }
}

impl ReplayedBlock {
    /// A block that starts at `position` of `file`.
    fn new(head: Head, file: LaneFile, position: u64) -> Self {
        let index_bytes = u64::from(head.header.index_bytes);
        Self { head, file, payload_position: position + HEADER_BYTES as u64 + index_bytes }
    }

    /// Its kind.
    pub fn kind(&self) -> BlockKind {
        self.head.header.kind
    }
}
