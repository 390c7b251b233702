//! One pass over a lane: from the sequence number that is due, through indexes and files with
//! records, up to the first block that is not covered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use bytes::Bytes;

use super::lane::{LaneReading, Place};
use super::{Columns, LaneFiles, LaneRequest, UsageError, wal_path};
use freshet_storage::lane::block::{BlockHeader, BlockKind};
use freshet_storage::lane::heads::{Head, HeadWalk, Here};
use freshet_storage::lane::leftover::Leftover;
use freshet_storage::lane::seal::Seal;
use freshet_storage::lane::{LaneEnd, LanePaths};
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Disk, DiskError};

/// A reading ends once it has this many bytes of columns; the usage of one block may go beyond.
const COLUMN_BYTES_MAX: usize = 24 << 20;
/// A reading that has any row ends behind the index with which it has read this many bytes of
/// indexes.
const INDEX_BYTES_MAX: usize = 64 << 20;

/// Why a pass ended early.
pub(super) enum Stop {
    /// Files moved meanwhile. The error is returned if another pass finds the same.
    Moved(UsageError),
    /// Another pass would not help.
    Failed(UsageError),
}

impl From<UsageError> for Stop {
    fn from(error: UsageError) -> Self {
        match error {
            UsageError::Disk(DiskError::NotFound(_)) => Self::Moved(error),
            error => Self::Failed(error),
        }
    }
}

impl From<DiskError> for Stop {
    fn from(error: DiskError) -> Self {
        UsageError::from(error).into()
    }
}

/// A block of which it is not known yet that it is covered.
struct Waiting {
    file: u64,
    position: u64,
    header: BlockHeader,
    index: Bytes,
}

impl Waiting {
    fn is_metered(&self) -> bool {
        matches!(self.header.kind, BlockKind::Data | BlockKind::Usage)
    }
}

/// A pass over a lane (see the module).
pub(super) struct Look<'a> {
    disk: &'a dyn Disk,
    paths: LanePaths,
    incarnation: Incarnation,
    request: LaneRequest,
    end: Option<LaneEnd>,
    /// Blocks that SEAL holds, by where the lane had them.
    copies: BTreeMap<(u64, u64), Head>,
    columns: Columns,
    index_bytes: usize,
    /// The sequence number after the last block that was read.
    due: u64,
    nonce: Option<u64>,
    /// The highest sequence number that is covered.
    sure: u64,
    waiting: VecDeque<Waiting>,
    next_file: u64,
    last_written_ms: Option<i64>,
    closed: bool,
    /// Whether the last file ends in a block that is not whole.
    torn: bool,
    /// The time of the first block that did not fit into this reading.
    cut_before_ms: Option<i64>,
    gap: Option<(u64, u64)>,
    /// Where an earlier reading stopped.
    from: Option<Place>,
    /// The file that was read last, the position in it, and the sequence number that is due there.
    stopped: Option<(u64, u64, u64)>,
    first_data_ms: BTreeMap<u64, i64>,
    indexes: Vec<u64>,
}

impl<'a> Look<'a> {
    pub(super) fn new(
        disk: &'a dyn Disk,
        paths: LanePaths,
        incarnation: Incarnation,
        request: LaneRequest,
        from: Option<Place>,
    ) -> Self {
        let due = request.after_sequence.saturating_add(1);
        // The time of the block before the one that is due.
        let last_written_ms =
            from.as_ref().filter(|place| place.due == due).and_then(|place| place.last_written_ms);
        let first_data_ms = from.as_ref().map(|place| place.first_data_ms.clone());
        Self {
            disk,
            paths,
            incarnation,
            request,
            end: request.sealed_end,
            copies: BTreeMap::new(),
            columns: Columns::default(),
            index_bytes: 0,
            due,
            nonce: None,
            sure: request.sealed_end.map_or(0, |end| end.sequence),
            waiting: VecDeque::new(),
            next_file: request.after_file,
            last_written_ms,
            closed: false,
            torn: false,
            cut_before_ms: None,
            gap: None,
            from,
            stopped: None,
            first_data_ms: first_data_ms.unwrap_or_default(),
            indexes: Vec::new(),
        }
    }

    /// Sets the lane's end to that of SEAL, and uses SEAL's copies of blocks.
    pub(super) fn keep_to(&mut self, seal: Option<Seal>) {
        let Some(seal) = seal else { return };
        let ends = [self.end, Some(seal.end)].into_iter().flatten();
        self.end = ends.min_by_key(|end| end.sequence);
        self.sure = self.end.map_or(0, |end| end.sequence);
        for copy in seal.blocks.into_values() {
            let (file, position) = (copy.placed.file, copy.placed.position);
            let (header, raw) = (copy.placed.block.header, copy.placed.raw);
            self.copies.insert((file, position), Head::of(file, position, &raw, header));
        }
    }

    /// Goes through the lane's files up to the first block that is not covered, or until the
    /// reading is full.
    pub(super) async fn read(&mut self, files: &LaneFiles) -> Result<(), Stop> {
        self.indexes.clone_from(&files.indexes);
        let all: BTreeSet<u64> = files.indexes.iter().chain(&files.wals).copied().collect();
        let first = all.first().copied();
        for number in all.range(self.request.after_file..) {
            let beyond = self.end.is_some_and(|end| *number > end.file);
            if beyond || self.is_at_end() || self.closed || self.cut_before_ms.is_some() {
                break;
            }
            let is_first = first == Some(*number);
            if files.indexes.contains(number) {
                self.read_index(*number, is_first).await?;
            } else {
                self.read_wal(*number, is_first).await?;
            }
        }
        match self.end {
            Some(end) if !self.is_at_end() && self.cut_before_ms.is_none() => {
                let (due, sequence) = (self.due, end.sequence);
                let what = format!("block {due} is missing before the lane's end {sequence}");
                Err(Stop::Moved(UsageError::damaged(&wal_path(&self.paths, end.file), what)))
            }
            _ => Ok(()),
        }
    }

    fn is_at_end(&self) -> bool {
        self.end.is_some_and(|end| self.due > end.sequence)
    }

    async fn read_index(&mut self, number: u64, is_first: bool) -> Result<(), Stop> {
        let path = self.paths.leftover(number);
        let file = self.disk.open(&path).await?;
        let size = usize::try_from(file.size().await?).expect("files fit the address space");
        let bytes = file.read_uncached_at(0, size).await?;
        let leftover =
            Leftover::decode(&bytes).map_err(|error| UsageError::of_lane(&path, error))?;
        if (leftover.incarnation, leftover.file) != (self.incarnation, number) {
            return Err(UsageError::damaged(&path, "it is the index of another file").into());
        }
        self.index_bytes += size;
        let (first, last) = leftover.sequences;
        self.next_file = number + 1;
        if last < self.due {
            return Ok(());
        }
        self.begin_at(number, first, is_first)?;
        self.sure = self.sure.max(last);
        for block in leftover.blocks {
            let header = block
                .parse_header()
                .map_err(|error| UsageError::damaged(&path, error.to_string()))?;
            self.nonce = Some(header.nonce);
            self.accept(Waiting { file: number, position: 0, header, index: block.index })?;
            if self.cut_before_ms.is_some() {
                return Ok(());
            }
        }
        self.due = self.due.max(last.saturating_add(1));
        if self.index_bytes >= INDEX_BYTES_MAX && self.columns.rows > 0 {
            self.cut_before_ms = self.last_written_ms;
        }
        Ok(())
    }

    /// Checks that nothing is missing before a file whose first block is `sequence`.
    fn begin_at(&mut self, number: u64, sequence: u64, is_first: bool) -> Result<(), Stop> {
        if sequence <= self.due {
            return Ok(());
        }
        let missing = (self.due, sequence - 1);
        if is_first {
            self.gap = Some(missing);
            self.due = sequence;
            return Ok(());
        }
        let what = format!("blocks {} to {} are missing before it", missing.0, missing.1);
        Err(Stop::Moved(UsageError::damaged(&self.source(number), what)))
    }

    async fn read_wal(&mut self, number: u64, is_first: bool) -> Result<(), Stop> {
        let from = self.from.as_ref();
        let from = from.filter(|from| from.file == number && from.due == self.due);
        let position = from.map_or(0, |from| from.position);
        let mut expected = from.map(|from| from.due);
        let nonce = self.nonce.or(from.and_then(|from| from.nonce));
        if expected.is_some() {
            (self.nonce, self.next_file) = (nonce, number);
        }
        let mut walk = self.walk(number, nonce, position).await?;
        loop {
            let head = match self.next_head(number, &mut walk, expected).await? {
                Here::End { torn } => {
                    self.torn = torn;
                    break;
                }
                Here::Block(head) => head,
            };
            self.torn = false;
            let sequence = head.header.sequence;
            if expected.is_none() {
                self.begin_at(number, sequence, is_first)?;
                self.next_file = number;
            }
            if self.end.is_some_and(|end| sequence > end.sequence) {
                // It was written by a broker that had been fenced.
                return Ok(());
            }
            self.nonce = Some(head.header.nonce);
            expected = Some(sequence + 1);
            let (position, index) = (head.position, head.index());
            self.accept(Waiting { file: number, position, header: head.header, index })?;
            self.due = self.due.max(sequence + 1);
            if self.closed || self.cut_before_ms.is_some() {
                break;
            }
        }
        // A closed lane's last file is read by each pass as far as its `close`.
        if let Some(due) = expected.filter(|_| !self.closed) {
            self.stopped = Some((number, walk.position(), due));
        }
        Ok(())
    }

    async fn walk(
        &self,
        number: u64,
        nonce: Option<u64>,
        position: u64,
    ) -> Result<HeadWalk, UsageError> {
        let place = (number, position);
        let walk = HeadWalk::open(self.disk, &self.paths, self.incarnation, nonce, place).await;
        walk.map_err(|error| UsageError::of_lane(&wal_path(&self.paths, number), error))
    }

    /// The next block of a file, from SEAL where that has a copy.
    async fn next_head(
        &self,
        number: u64,
        walk: &mut HeadWalk,
        due: Option<u64>,
    ) -> Result<Here, UsageError> {
        let Some(copy) = self.copies.get(&(number, walk.position())) else {
            let here = walk.take(due).await;
            return here
                .map_err(|error| UsageError::of_lane(&wal_path(&self.paths, number), error));
        };
        walk.skip(copy.header.span());
        Ok(Here::Block(copy.clone()))
    }

    /// Takes a block, and every block before it that is covered by now.
    fn accept(&mut self, block: Waiting) -> Result<(), UsageError> {
        let header = block.header;
        if self.end.is_some_and(|end| header.sequence > end.sequence) {
            return Ok(());
        }
        if self.end.is_none() {
            self.sure = self.sure.max(header.durable_sequence);
        }
        if header.kind == BlockKind::Close {
            self.closed = true;
            self.sure = self.sure.max(header.sequence);
        }
        if header.sequence < self.due {
            // It was read by an earlier call.
            self.last_written_ms = Some(header.written_at_ms);
            return Ok(());
        }
        self.waiting.push_back(block);
        while let Some(first) = self.waiting.front() {
            let header = first.header;
            if header.sequence > self.sure {
                break;
            }
            if self.columns.bytes() >= COLUMN_BYTES_MAX && first.is_metered() {
                self.cut_before_ms = Some(header.written_at_ms);
                break;
            }
            let Some(Waiting { file, index, .. }) = self.waiting.pop_front() else { break };
            self.last_written_ms = Some(header.written_at_ms);
            self.columns.take(file, &header, index).map_err(|error| {
                let what = format!("the index of block {}: {error}", header.sequence);
                UsageError::damaged(&self.source(file), what)
            })?;
        }
        Ok(())
    }

    /// The path of the file from which the blocks of a lane file were read.
    fn source(&self, number: u64) -> PathBuf {
        if self.indexes.contains(&number) {
            self.paths.leftover(number)
        } else {
            wal_path(&self.paths, number)
        }
    }

    /// When the first block with records was written that lies in a file without an index.
    pub(super) async fn unsplit_since(&mut self, files: &LaneFiles) -> Result<Option<i64>, Stop> {
        let unsplit = files.wals.iter().filter(|number| !files.indexes.contains(number));
        let unsplit = unsplit.filter(|number| self.end.is_none_or(|end| **number <= end.file));
        let unsplit: Vec<u64> = unsplit.copied().collect();
        self.first_data_ms.retain(|number, _| unsplit.contains(number));
        for number in unsplit {
            if let Some(known) = self.first_data_ms.get(&number) {
                return Ok(Some(*known));
            }
            let mut walk = self.walk(number, self.nonce, 0).await?;
            let mut expected = None;
            while let Here::Block(head) = self.next_head(number, &mut walk, expected).await? {
                let header = head.header;
                if self.end.is_some_and(|end| header.sequence > end.sequence) {
                    break;
                }
                if header.kind == BlockKind::Data {
                    self.first_data_ms.insert(number, header.written_at_ms);
                    return Ok(Some(header.written_at_ms));
                }
                expected = Some(header.sequence + 1);
            }
        }
        Ok(None)
    }

    /// The reading, and where the next one goes on.
    pub(super) async fn finish(
        mut self,
        now_ms: i64,
        unsplit_since_ms: Option<i64>,
    ) -> Result<(LaneReading, Option<Place>), Stop> {
        let more = self.cut_before_ms.is_some();
        let last_call = self.request.last_call && !more && !self.closed && self.end.is_none();
        if last_call {
            self.refuse_damage().await?;
        }
        let first = self.waiting.front();
        let next = first.map_or(self.due, |first| first.header.sequence);
        let ended = !more && (self.closed || self.is_at_end() || last_call);
        let reading = LaneReading {
            last_sequence: next - 1,
            last_file: first.map_or(self.next_file, |first| first.file),
            covered_until_ms: if ended { now_ms } else { self.covered_until(now_ms) },
            ended,
            more,
            unsplit_since_ms,
            gap: self.gap,
            columns: std::mem::take(&mut self.columns),
        };
        let place = self.place(next);
        Ok((reading, place))
    }

    fn covered_until(&self, now_ms: i64) -> i64 {
        // Just before the block's time, since blocks behind it may have the same time.
        let before = |at_ms: i64| now_ms.min(at_ms.saturating_sub(1));
        let unread = self.waiting.iter().find(|waiting| waiting.is_metered());
        match (self.cut_before_ms, unread, self.last_written_ms) {
            (Some(cut_ms), ..) => before(cut_ms),
            (None, Some(waiting), _) => before(waiting.header.written_at_ms),
            (None, None, Some(last_ms)) if self.torn => before(last_ms),
            _ => now_ms,
        }
    }

    fn place(&self, next: u64) -> Option<Place> {
        let (file, position) = match (self.waiting.front(), self.stopped) {
            (Some(first), Some(_)) => (first.file, first.position),
            (None, Some((file, position, due))) if due == next => (file, position),
            _ => return None,
        };
        Some(Place {
            file,
            position,
            due: next,
            nonce: self.nonce,
            last_written_ms: self.last_written_ms,
            first_data_ms: self.first_data_ms.clone(),
        })
    }

    /// Searches behind the place where reading stopped for a block that says that more was durable.
    ///
    /// # Errors
    /// [`Stop::Moved`] with the damage, where there is one.
    async fn refuse_damage(&self) -> Result<(), Stop> {
        let Some((number, position, due)) = self.stopped else { return Ok(()) };
        let mut walk = self.walk(number, self.nonce, position).await?;
        let path = wal_path(&self.paths, number);
        let proof = walk.proof_of(due).await;
        match proof.map_err(|error| UsageError::of_lane(&path, error))? {
            None => Ok(()),
            Some(sequence) => {
                let what = format!(
                    "block {due} is missing at position {position}, and block {sequence} says that \
                     it was durable"
                );
                Err(UsageError::damaged(&path, what).into())
            }
        }
    }
}
