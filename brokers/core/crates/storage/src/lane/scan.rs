//! Reading a lane's files from front to back: which blocks follow each other, where they end, and
//! whether that is the lane's end or damage.

use std::collections::VecDeque;

use bytes::Bytes;

use super::block::{Block, BlockError, BlockHeader, is_of_lane};
use super::heads::{Head, HeadWalk, Here, begins};
use super::{LaneEnd, LaneError, LaneFile, LanePaths, file_numbers, look_again};
use crate::rules::{Rule, Rules};
use freshet_wire::ids::Incarnation;
use freshet_world::env::Disk;

/// A block and where it was found.
#[derive(Debug, Clone)]
pub struct PlacedBlock {
    /// Number of the file that held it.
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
    /// Blocks up to this sequence number were synced while the lane was its owner's: a later block,
    /// a `close` or a SEAL says so.
    pub sure_sequence: u64,
    /// The blocks after it, up to the end.
    pub unsure: Vec<PlacedBlock>,
}

/// Walks over the whole blocks of one file, which the caller has read into memory.
#[derive(Debug, Clone)]
pub struct FileCursor {
    incarnation: Incarnation,
    /// The lane's nonce, once a block of the lane was read.
    nonce: Option<u64>,
    file: u64,
    bytes: Bytes,
    position: usize,
}

impl FileCursor {
    /// Starts at the first block of a file. `nonce` is that of the lane's earlier blocks; where
    /// none was read yet, it is taken from the first block of this file.
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
        let header = BlockHeader::parse(&rest);
        if !is_of_lane(&rest, self.incarnation, self.nonce) {
            return Err(BlockError::Absent);
        }
        header?;
        let block = Block::parse(&rest)?;
        if position == 0 && !begins(self.file, &block.header, block.index.clone()) {
            return Err(BlockError::Absent);
        }
        let raw = rest.slice(..block.header.span().min(rest.len()));
        Ok(PlacedBlock { file: self.file, position: position as u64, raw, block })
    }

    /// The block at the position if its sequence number is `due` (any number where `due` is
    /// `None`); the position is behind it afterwards. `None` where there is no such block.
    ///
    /// # Errors
    /// [`LaneError::Damaged`] for a block of a newer format version: to take it for the lane's end
    /// would lose what a newer release wrote.
    pub fn take(&mut self, due: Option<u64>) -> Result<Option<PlacedBlock>, LaneError> {
        match self.at(self.position) {
            Ok(placed) if due.is_none_or(|due| placed.block.header.sequence == due) => {
                self.position += placed.raw.len();
                self.nonce = Some(placed.block.header.nonce);
                Ok(Some(placed))
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
}

/// Reads a whole file of a lane past this machine's cache, which may be older than the file.
///
/// # Errors
/// [`LaneError::Disk`].
pub async fn read_file(
    disk: &dyn Disk,
    paths: &LanePaths,
    number: u64,
) -> Result<Bytes, LaneError> {
    let file = disk.open(&paths.file(LaneFile::Wal(number))).await?;
    let size = usize::try_from(file.size().await?).expect("files fit the address space");
    Ok(file.read_uncached_at(0, size).await?)
}

/// Finds the end of a lane whose broker is fenced. Payloads are read only of blocks of which
/// nothing says that they were durable: only those may be torn.
///
/// # Errors
/// [`LaneError::Damaged`] where something durable is missing, and still is when the scan is
/// repeated: such a lane is not sealed. [`LaneError::Disk`].
pub async fn scan_tail(
    disk: &dyn Disk,
    paths: &LanePaths,
    incarnation: Incarnation,
    rules: Rules,
) -> Result<TailScan, LaneError> {
    look_again(|| scan_once(disk, paths, incarnation, rules)).await
}

async fn scan_once(
    disk: &dyn Disk,
    paths: &LanePaths,
    incarnation: Incarnation,
    rules: Rules,
) -> Result<TailScan, LaneError> {
    let numbers = file_numbers(&disk.list(&paths.folder()).await?, "wal");
    let first = numbers.first().copied();
    let mut scan = Scan::new(incarnation);
    let mut last = None;
    // Files, and rests of files, in which the lane does not go on.
    let mut suspects = Vec::new();
    for number in numbers {
        let mut walk = HeadWalk::open(disk, paths, incarnation, scan.nonce, (number, 0)).await?;
        // The first file may begin with any number, because earlier files may have been retired. A
        // later file continues the lane only where a block before it says which number is due.
        let follows = first == Some(number) || scan.due.is_some();
        if follows && scan.take_all(&mut walk, rules).await? {
            last = Some(walk);
        } else {
            suspects.push(walk);
        }
    }
    // The rest of the file in which the lane ended is looked at, too: a proof behind its end shows
    // that the end is damage.
    suspects.extend(last);
    // Before the search for damage: a torn block ends the lane earlier than its headers say, and
    // then its number is the one that is due.
    let (end, unsure) = scan.verify(disk, paths).await?;
    let due = end.map_or(1, |end| end.sequence + 1);
    for walk in &mut suspects {
        scan.refuse_damage(walk, due, rules).await?;
    }
    let end = end.unwrap_or(LaneEnd { file: first.unwrap_or(0), sequence: 0 });
    if end.sequence == 0 && end.file > 0 {
        return Err(LaneError::damaged(
            incarnation,
            end.file,
            0,
            "an earlier file was removed after this one's checkpoint was durable, and the \
             checkpoint is gone; restore the file",
        ));
    }
    Ok(TailScan { end, sure_sequence: scan.sure, unsure })
}

struct Scan {
    incarnation: Incarnation,
    nonce: Option<u64>,
    due: Option<u64>,
    sure: u64,
    /// The last block that is sure.
    sure_end: Option<LaneEnd>,
    /// The blocks after it, as far as their headers follow each other.
    unsure: VecDeque<Head>,
}

fn end_of(head: &Head) -> LaneEnd {
    LaneEnd { file: head.file, sequence: head.header.sequence }
}

impl Scan {
    fn new(incarnation: Incarnation) -> Self {
        let unsure = VecDeque::new();
        Self { incarnation, nonce: None, due: None, sure: 0, sure_end: None, unsure }
    }

    /// Takes every block of this file that follows; returns whether there was any.
    async fn take_all(&mut self, walk: &mut HeadWalk, rules: Rules) -> Result<bool, LaneError> {
        let mut any = false;
        let only_due = rules.hold(Rule::CountWhatIsDue);
        while let Here::Block(head) = walk.take(self.due.filter(|_| only_due)).await? {
            any = true;
            self.nonce = Some(head.header.nonce);
            self.due = Some(head.header.sequence + 1);
            self.sure = self.sure.max(head.header.durable_sequence);
            self.unsure.push_back(head);
            while self.unsure.front().is_some_and(|head| head.header.sequence <= self.sure) {
                self.sure_end = self.unsure.pop_front().as_ref().map(end_of);
            }
        }
        Ok(any)
    }

    /// Reads the unsure blocks in full. The lane ends before the first that is not whole: its sync
    /// did not complete, so neither it nor anything behind it was acknowledged.
    async fn verify(
        &mut self,
        disk: &dyn Disk,
        paths: &LanePaths,
    ) -> Result<(Option<LaneEnd>, Vec<PlacedBlock>), LaneError> {
        let mut end = self.sure_end;
        let mut whole = Vec::new();
        for head in std::mem::take(&mut self.unsure) {
            let file = disk.open(&paths.file(LaneFile::Wal(head.file))).await?;
            let raw = file.read_uncached_at(head.position, head.header.span()).await?;
            let Some(block) = Block::parse(&raw).ok().filter(|block| block.header == head.header)
            else {
                break;
            };
            end = Some(end_of(&head));
            whole.push(PlacedBlock { file: head.file, position: head.position, raw, block });
        }
        Ok((end, whole))
    }

    /// Searches a file behind the end for a block that says that block `due` was durable. Without
    /// such a proof the end is a write that never landed; with it, acknowledged records are
    /// missing.
    ///
    /// # Errors
    /// [`LaneError::Damaged`] with the position where the block should lie.
    async fn refuse_damage(
        &self,
        walk: &mut HeadWalk,
        due: u64,
        rules: Rules,
    ) -> Result<(), LaneError> {
        let position = walk.position();
        match walk.proof_of(due).await? {
            Some(proof) if rules.hold(Rule::GapIsDamage) => Err(LaneError::damaged(
                self.incarnation,
                walk.number(),
                position,
                format!(
                    "block {due} is missing, and block {proof} says that it was durable; restore \
                     the file before this lane can be taken over"
                ),
            )),
            _ => Ok(()),
        }
    }
}
