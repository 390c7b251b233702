//! Walking over the blocks of a lane file by their headers and indexes, without their payloads.
//!
//! A header with its index has a checksum of its own, so what passes it is what was written. That
//! says nothing of the payload behind it. Lane files are recycled: behind the last block there may
//! lie whole blocks of the file's earlier life. Their sequence numbers are lower than those of all
//! blocks written since, and so are the numbers that they call durable.

use std::sync::Arc;

use bytes::Bytes;

use super::block::{ALIGNMENT, BlockError, BlockHeader, BlockKind, HEADER_BYTES, is_of_lane};
use super::index::decode_checkpoint;
use super::{LaneError, LaneFile, LanePaths};
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Disk, File};

/// Bytes of the first read. Each read that the one before it nearly reached doubles them, up to the
/// maximum: small blocks are read many at a time, and of large ones little payload is read.
const WINDOW_BYTES_FIRST: usize = 8 << 10;
const WINDOW_BYTES_MAX: usize = 1 << 20;

/// A block without its payload, and where it lies.
#[derive(Debug, Clone)]
pub struct Head {
    /// Number of the file.
    pub file: u64,
    /// Where it starts in that file.
    pub position: u64,
    /// Header and index as they were written.
    pub raw: Bytes,
    /// Its header.
    pub header: BlockHeader,
}

impl Head {
    /// What the block's kind says that it holds (see [`super::index`]).
    pub fn index(&self) -> Bytes {
        self.raw.slice(HEADER_BYTES..)
    }

    /// The head of a whole block, whose bytes begin `raw`.
    pub fn of(file: u64, position: u64, raw: &Bytes, header: BlockHeader) -> Self {
        let end = HEADER_BYTES + header.index_bytes as usize;
        Self { file, position, raw: raw.slice(..end), header }
    }
}

/// What lies at a place of a lane file.
#[derive(Debug)]
pub enum Here {
    /// A block.
    Block(Head),
    /// No block that was written whole since the file was begun.
    End {
        /// Whether a block was begun here: its write may be under way.
        torn: bool,
    },
}

/// Whether a block may begin a file: only a checkpoint that names the file, or what the file held
/// in an earlier life would pass for the present one.
pub(super) fn begins(file: u64, header: &BlockHeader, index: Bytes) -> bool {
    let named = decode_checkpoint(index).ok().map(|(named, _)| named);
    header.kind == BlockKind::Checkpoint && named == Some(file)
}

/// A walk over the blocks of one lane file (see the module).
pub struct HeadWalk {
    file: Arc<dyn File>,
    incarnation: Incarnation,
    /// The lane's nonce, once a block of the lane was read.
    nonce: Option<u64>,
    number: u64,
    position: u64,
    window: Bytes,
    window_at: u64,
    window_bytes: usize,
}

impl HeadWalk {
    /// Starts at a block's place in a file. `nonce` is that of the lane's earlier blocks; where
    /// none was read yet, it is taken from the first block here.
    ///
    /// # Errors
    /// [`LaneError::Disk`].
    pub async fn open(
        disk: &dyn Disk,
        paths: &LanePaths,
        incarnation: Incarnation,
        nonce: Option<u64>,
        (number, position): (u64, u64),
    ) -> Result<Self, LaneError> {
        let file = disk.open(&paths.file(LaneFile::Wal(number))).await?;
        Ok(Self {
            file,
            incarnation,
            nonce,
            number,
            position,
            window: Bytes::new(),
            window_at: 0,
            window_bytes: WINDOW_BYTES_FIRST / 2,
        })
    }

    /// The file's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Where it stands, in bytes.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Stands behind a block that spans `span` bytes from here.
    pub fn skip(&mut self, span: usize) {
        self.position += span as u64;
    }

    /// The block here, and the position behind it, if it has the number that is due (any number
    /// where none is).
    ///
    /// # Errors
    /// [`LaneError::Disk`], or [`LaneError::Damaged`] for a block of a later release.
    pub async fn take(&mut self, due: Option<u64>) -> Result<Here, LaneError> {
        let head = match self.block_here(due).await? {
            Here::Block(head) => head,
            Here::End { torn } => return Ok(self.end(torn)),
        };
        let sequence = head.header.sequence;
        if due.is_some_and(|due| sequence != due) {
            // A lower number is of the file's former life. A higher one means that the file was
            // recycled since it was opened, and is written again.
            return Ok(self.end(due.is_some_and(|due| sequence > due)));
        }
        if self.position == 0 && !begins(self.number, &head.header, head.index()) {
            return Ok(self.end(false));
        }
        self.nonce = Some(head.header.nonce);
        self.skip(head.header.span());
        Ok(Here::Block(head))
    }

    /// The sequence number of a block anywhere from here on that says that block `due` was durable.
    ///
    /// # Errors
    /// As [`HeadWalk::take`].
    pub async fn proof_of(&mut self, due: u64) -> Result<Option<u64>, LaneError> {
        loop {
            match self.block_here(None).await? {
                Here::Block(head) if head.header.durable_sequence >= due => {
                    return Ok(Some(head.header.sequence));
                }
                _ => {}
            }
            self.skip(ALIGNMENT);
            if self.look(1).await?.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The answer where no block is. The window is dropped, because the bytes may be others by the
    /// next call: the lane may still be written.
    fn end(&mut self, torn: bool) -> Here {
        self.window = Bytes::new();
        Here::End { torn }
    }

    /// The block here, whatever its number. `due` serves to distinguish a write that was left half
    /// done from a block that the file's former life left whole.
    async fn block_here(&mut self, due: Option<u64>) -> Result<Here, LaneError> {
        let bytes = self.look(HEADER_BYTES).await?;
        let ours = is_of_lane(&bytes, self.incarnation, self.nonce);
        let header = match BlockHeader::parse(&bytes) {
            Ok(header) if ours => header,
            Err(error @ BlockError::Version(_)) if ours => {
                let (number, what) = (self.number, error.to_string());
                return Err(LaneError::damaged(self.incarnation, number, self.position, what));
            }
            Err(BlockError::Torn) if ours => return Ok(Here::End { torn: true }),
            Ok(_) | Err(_) => return Ok(Here::End { torn: false }),
        };
        let raw = self.look(HEADER_BYTES + header.index_bytes as usize).await?;
        if header.verify_head(&raw).is_err() {
            return Ok(Here::End { torn: due.is_none_or(|due| header.sequence >= due) });
        }
        Ok(Here::Block(Head { file: self.number, position: self.position, raw, header }))
    }

    /// The next `length` bytes, or fewer at the end of the file.
    async fn look(&mut self, length: usize) -> Result<Bytes, LaneError> {
        let offset = self.position.checked_sub(self.window_at);
        let offset = offset.and_then(|offset| usize::try_from(offset).ok());
        if let Some(offset) = offset
            && self.window.len() >= offset + length
        {
            return Ok(self.window.slice(offset..offset + length));
        }
        let near = offset.is_some_and(|offset| offset <= 2 * self.window_bytes);
        self.window_bytes =
            if near { (2 * self.window_bytes).min(WINDOW_BYTES_MAX) } else { WINDOW_BYTES_FIRST };
        let window_bytes = self.window_bytes.max(length.next_multiple_of(ALIGNMENT));
        self.window = self.file.read_uncached_at(self.position, window_bytes).await?;
        self.window_at = self.position;
        Ok(self.window.slice(..length.min(self.window.len())))
    }
}
