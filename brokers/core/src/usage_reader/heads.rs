//! Walking over the blocks of a lane file by their headers and indexes, without their payloads.
//!
//! A header with its index has a checksum of its own, so what is found is what was written. Whether
//! the payload behind it was written too is not looked at: whoever counts a block asks whether it
//! is covered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::UsageError;
use crate::env::File;
use crate::ids::Incarnation;
use crate::lane::block::{ALIGNMENT, BlockError, BlockHeader, HEADER_BYTES};

/// Bytes that are read at once: few where blocks are large and most of them would be payload, more
/// and more while blocks are small.
const WINDOW_BYTES_FIRST: usize = 8 << 10;
const WINDOW_BYTES_MAX: usize = 256 << 10;

/// Where reading stopped in a file that still grows.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The file.
    pub(super) file: u64,
    /// Where in it the next block starts.
    pub(super) position: u64,
    /// Its sequence number.
    pub(super) due: u64,
    /// The lane's.
    pub(super) nonce: Option<u64>,
    /// When the block before it was written.
    pub(super) last_written_ms: Option<i64>,
    /// Of files without an index, when their first block with records was written.
    pub(super) first_data_ms: BTreeMap<u64, i64>,
}

/// A block without its payload.
#[derive(Debug, Clone)]
pub(super) struct Head {
    /// Where it starts in the file.
    pub(super) position: u64,
    /// Its header.
    pub(super) header: BlockHeader,
    /// Its index.
    pub(super) index: Bytes,
}

/// What is at a place.
#[derive(Debug)]
pub(super) enum Found {
    /// A block.
    Block(Head),
    /// No block that was written whole since the file was begun.
    End {
        /// Whether one was begun here: a write may be under way.
        torn: bool,
    },
}

/// See the module.
pub(super) struct HeadWalk {
    file: Arc<dyn File>,
    path: PathBuf,
    incarnation: Incarnation,
    nonce: Option<u64>,
    position: u64,
    window: Bytes,
    window_at: u64,
    window_bytes: usize,
}

impl HeadWalk {
    /// Starts at a block's place. Without a nonce the first block tells it.
    pub(super) fn new(
        file: Arc<dyn File>,
        path: PathBuf,
        incarnation: Incarnation,
        nonce: Option<u64>,
        position: u64,
    ) -> Self {
        let (window, window_bytes) = (Bytes::new(), WINDOW_BYTES_FIRST / 2);
        Self { file, path, incarnation, nonce, position, window, window_at: 0, window_bytes }
    }

    /// Where it stands, in bytes.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Stands behind a block that spans `span` bytes from here.
    pub(super) fn skip(&mut self, span: usize) {
        self.position += span as u64;
    }

    /// The block here, standing behind it afterwards, if it has the number that is due (any number
    /// where none is).
    pub(super) async fn take(&mut self, due: Option<u64>) -> Result<Found, UsageError> {
        let found = self.block_here(due).await?;
        match found {
            Found::Block(head) if due.is_none_or(|due| head.header.sequence == due) => {
                self.nonce = Some(head.header.nonce);
                self.skip(head.header.span());
                Ok(Found::Block(head))
            }
            // Of a former life of the file; or the file has begun another one since it was opened.
            Found::Block(head) => Ok(self.end(due.is_some_and(|due| head.header.sequence > due))),
            Found::End { torn } => Ok(self.end(torn)),
        }
    }

    /// The sequence number of a block anywhere from here on that says that block `due` was durable.
    pub(super) async fn proof_of(&mut self, due: u64) -> Result<Option<u64>, UsageError> {
        loop {
            match self.block_here(None).await? {
                Found::Block(head) if head.header.durable_sequence >= due => {
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

    fn end(&mut self, torn: bool) -> Found {
        self.window = Bytes::new();
        Found::End { torn }
    }

    /// The block here, whatever its number. `due` tells what a write left half done from what a
    /// former life of the file left whole.
    async fn block_here(&mut self, due: Option<u64>) -> Result<Found, UsageError> {
        let bytes = self.look(HEADER_BYTES).await?;
        let header = match BlockHeader::parse(&bytes) {
            Ok(header) => header,
            Err(BlockError::Absent) => return Ok(Found::End { torn: false }),
            Err(BlockError::Torn) => return Ok(Found::End { torn: true }),
            Err(error @ BlockError::Version(_)) => {
                let what = format!("position {}: {error}", self.position);
                return Err(UsageError::damaged(&self.path, what));
            }
        };
        let foreign = self.nonce.is_some_and(|nonce| header.nonce != nonce);
        if foreign || header.incarnation != self.incarnation {
            return Ok(Found::End { torn: false });
        }
        let end = HEADER_BYTES + header.index_bytes as usize;
        let head = self.look(end).await?;
        if header.verify_head(&head).is_err() {
            return Ok(Found::End { torn: due.is_none_or(|due| header.sequence >= due) });
        }
        let index = Bytes::copy_from_slice(&head[HEADER_BYTES..end]);
        Ok(Found::Block(Head { position: self.position, header, index }))
    }

    /// The next `length` bytes; fewer at the end of the file.
    async fn look(&mut self, length: usize) -> Result<Bytes, UsageError> {
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
        let wanted = self.window_bytes.max(length.next_multiple_of(ALIGNMENT));
        self.window = self.file.read_uncached_at(self.position, wanted).await?;
        self.window_at = self.position;
        Ok(self.window.slice(..length.min(self.window.len())))
    }
}
