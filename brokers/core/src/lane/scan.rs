//! Reading a lane's files from front to back: where blocks follow each other, where they end, and
//! whether an end is an end or damage.

use std::collections::VecDeque;

use bytes::Bytes;

use super::block::{ALIGNMENT, Block, BlockError, BlockHeader, HEADER_BYTES};
use super::{LaneEnd, LaneError, LaneFile, LanePaths, file_numbers};
use crate::env::Disk;
use crate::ids::Incarnation;
use crate::rules::{Rule, Rules};

/// A block and where it was found.
#[derive(Debug, Clone)]
pub struct PlacedBlock {
    /// File whose turn it is.
    pub file: u64,
    /// Where it starts in that file.
    pub position: u64,
    /// All of it, from header to padding.
    pub raw: Bytes,
    /// Its parts.
    pub block: Block,
}

/// What a scan of a lane's tail found.
#[derive(Debug)]
pub struct TailScan {
    /// The last whole block in sequence.
    pub end: LaneEnd,
    /// Blocks up to here were durable and fence-checked, whatever happens to the disk now.
    pub sure_sequence: u64,
    /// The blocks after it, up to the end.
    pub unsure: Vec<PlacedBlock>,
}

/// Walks over the blocks of one file, which the caller has read into memory.
#[derive(Debug, Clone)]
pub struct FileCursor {
    incarnation: Incarnation,
    /// The lane's, once a block of it was seen.
    nonce: Option<u64>,
    file: u64,
    bytes: Bytes,
    position: usize,
}

impl FileCursor {
    /// Starts at the first block of a file. `nonce` is that of the lane's earlier blocks; where
    /// none was seen, the first one here tells it.
    pub fn new(incarnation: Incarnation, nonce: Option<u64>, file: u64, bytes: Bytes) -> Self {
        Self { incarnation, nonce, file, bytes, position: 0 }
    }

    /// Where the cursor stands, in bytes.
    pub fn position(&self) -> u64 {
        self.position as u64
    }

    /// Stands behind a block that spans `span` bytes from here.
    pub fn skip(&mut self, span: usize) {
        self.position += span;
    }

    fn at(&self, position: usize) -> Result<PlacedBlock, BlockError> {
        if position >= self.bytes.len() {
            return Err(BlockError::Absent);
        }
        let rest = self.bytes.slice(position..);
        let header = BlockHeader::parse(&rest)?;
        let foreign = self.nonce.is_some_and(|nonce| header.nonce != nonce);
        if header.incarnation != self.incarnation || foreign {
            return Err(BlockError::Absent);
        }
        let block = Block::parse(&rest)?;
        let raw = rest.slice(..block.header.span().min(rest.len()));
        Ok(PlacedBlock { file: self.file, position: position as u64, raw, block })
    }

    /// The block here if it has the number that is due (any number, where none is), standing behind
    /// it afterwards.
    pub fn take(&mut self, due: Option<u64>) -> Result<Option<PlacedBlock>, LaneError> {
        match self.at(self.position) {
            Ok(found) if due.is_none_or(|due| found.block.header.sequence == due) => {
                self.position += found.raw.len();
                self.nonce = Some(found.block.header.nonce);
                Ok(Some(found))
            }
            Err(BlockError::Version(version)) => Err(LaneError::damaged(
                self.incarnation,
                self.file,
                self.position(),
                BlockError::Version(version).to_string(),
            )),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// A whole block anywhere from here on that proves that block `due` was durable.
    fn proof_of(&self, due: u64) -> Option<PlacedBlock> {
        (self.position..self.bytes.len())
            .step_by(ALIGNMENT)
            .filter(|at| self.bytes.len() - at >= HEADER_BYTES)
            .filter_map(|at| self.at(at).ok())
            .find(|found| found.block.header.durable_sequence >= due)
    }
}

/// Reads a whole file of a lane past this machine's cache.
pub async fn read_file(
    disk: &dyn Disk,
    paths: &LanePaths,
    number: u64,
) -> Result<Bytes, LaneError> {
    let file = disk.open(&paths.file(LaneFile::Wal(number))).await?;
    let size = usize::try_from(file.size().await?).expect("files fit the address space");
    Ok(file.read_uncached_at(0, size).await?)
}

/// Finds the end of a lane whose broker is fenced.
///
/// # Errors
/// [`LaneError::Damaged`] where something durable is missing: such a lane is never sealed there.
pub async fn scan_tail(
    disk: &dyn Disk,
    paths: &LanePaths,
    incarnation: Incarnation,
    rules: Rules,
) -> Result<TailScan, LaneError> {
    let numbers = file_numbers(&disk.list(&paths.folder()).await?, "wal");
    let mut scan =
        Scan { incarnation, nonce: None, due: None, sure: 0, unsure: VecDeque::new(), end: None };
    let mut stopped: Option<FileCursor> = None;
    for number in numbers.iter().copied() {
        let bytes = read_file(disk, paths, number).await?;
        let mut cursor = FileCursor::new(incarnation, scan.nonce, number, bytes);
        // Which block begins the first file cannot be told; a later file without one before it
        // follows nothing.
        let follows = stopped.is_none() || scan.due.is_some();
        let continued = follows && scan.take_all(&mut cursor)?;
        if let Some(earlier) = stopped.take()
            && !continued
        {
            scan.refuse_damage(&earlier, rules)?;
            scan.refuse_damage(&cursor, rules)?;
        }
        stopped = Some(cursor);
    }
    if let Some(last) = stopped {
        scan.refuse_damage(&last, rules)?;
    }
    scan.finish(numbers.first().copied().unwrap_or(0))
}

struct Scan {
    incarnation: Incarnation,
    nonce: Option<u64>,
    due: Option<u64>,
    sure: u64,
    unsure: VecDeque<PlacedBlock>,
    end: Option<LaneEnd>,
}

impl Scan {
    /// Takes every block that follows in this file; says whether there was any.
    fn take_all(&mut self, cursor: &mut FileCursor) -> Result<bool, LaneError> {
        let mut any = false;
        while let Some(found) = cursor.take(self.due)? {
            any = true;
            let header = found.block.header;
            self.nonce = Some(header.nonce);
            self.due = Some(header.sequence + 1);
            self.end = Some(LaneEnd { file: found.file, sequence: header.sequence });
            self.sure = self.sure.max(header.durable_sequence);
            self.unsure.push_back(found);
            while self.unsure.front().is_some_and(|at| at.block.header.sequence <= self.sure) {
                self.unsure.pop_front();
            }
        }
        Ok(any)
    }

    fn refuse_damage(&self, cursor: &FileCursor, rules: Rules) -> Result<(), LaneError> {
        let due = self.due.unwrap_or(1);
        match cursor.proof_of(due) {
            Some(proof) if rules.hold(Rule::GapIsDamage) => Err(LaneError::damaged(
                self.incarnation,
                cursor.file,
                cursor.position(),
                format!(
                    "block {due} is missing, and block {} says that it was durable; restore the \
                     file before this lane can be taken over",
                    proof.block.header.sequence
                ),
            )),
            _ => Ok(()),
        }
    }

    fn finish(self, first_file: u64) -> Result<TailScan, LaneError> {
        let end = self.end.unwrap_or(LaneEnd { file: first_file, sequence: 0 });
        if end.sequence == 0 && first_file > 0 {
            return Err(LaneError::damaged(
                self.incarnation,
                first_file,
                0,
                "an earlier file was removed after this one's checkpoint was durable, and the \
                 checkpoint is gone; restore the file",
            ));
        }
        Ok(TailScan { end, sure_sequence: self.sure, unsure: self.unsure.into() })
    }
}
