//! The writer of one's own lane: group commit, and the fence-checked end.
//!
//! One task writes. A write starts as soon as the lane is free, takes what arrived meanwhile up to
//! [`LaneSettings::write_bytes_max`], and is acked once it was written, synced, and the owner token
//! was found to be ours. Anything else ends the instance: there is no second try.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::block::{BlockKind, BlockLabel, HEADER_BYTES, encode, span};
use super::index::{
    DATA_ENTRY_BYTES, DataEntry, InstallEntry, Usage, encode_checkpoint, encode_data,
    encode_installs, encode_usage,
};
use super::leftover::{BlockSummary, Leftover};
use super::queue::{DurableBatch, InstallEffect, Item, Lane, LaneBatch};
use super::token::OwnerToken;
use super::{LaneEnd, LaneError, LaneFile, LanePaths, LaneSpot};
use crate::env::{Clock, Disk, DiskResult, File};
use crate::ids::{Epoch, Incarnation, PartitionId};
use crate::metrics::{CommitStage, LaneMetrics};
use crate::rules::{Rule, Rules};
use crate::standing::Standing;

/// Sizes and times of a lane.
#[derive(Debug, Clone, Copy)]
pub struct LaneSettings {
    /// Bytes of the first file; each next one doubles, up to `file_bytes_max`.
    pub file_bytes_first: u64,
    /// Bytes at which a file is full.
    pub file_bytes_max: u64,
    /// A file that holds anything is ended after this long.
    pub roll_after: Duration,
    /// A write is cut here; one batch may be larger.
    pub write_bytes_max: usize,
}

impl Default for LaneSettings {
    fn default() -> Self {
        Self {
            file_bytes_first: 1 << 20,
            file_bytes_max: 64 << 20,
            roll_after: Duration::from_secs(60),
            write_bytes_max: 1 << 20,
        }
    }
}

/// Says which manifest of each partition counts, for the first block of a file.
pub trait CheckpointSource: Send + Sync {
    /// Every partition that has a manifest.
    fn installed(&self) -> Vec<InstallEntry>;
}

/// A batch of a file that takes no more writes.
#[derive(Debug, Clone)]
pub struct RolledEntry {
    /// Partition that it belongs to.
    pub partition: PartitionId,
    /// Leader epoch under which it was written.
    pub epoch: Epoch,
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offsets that it takes.
    pub record_count: u32,
    /// Where it lies.
    pub spot: LaneSpot,
}

/// A file that takes no more writes and whose every block is durable.
#[derive(Debug)]
pub struct RolledFile {
    /// Its batches, in order.
    pub entries: Vec<RolledEntry>,
    /// What stays of it once they are split.
    pub leftover: Leftover,
}

/// What a writer is made of.
pub struct WriterParts {
    /// The shared file system.
    pub disk: Arc<dyn Disk>,
    /// Says when blocks were written, for the meter.
    pub clock: Arc<dyn Clock>,
    /// Names of the lane's files.
    pub paths: LanePaths,
    /// The right to write here.
    pub token: Arc<OwnerToken>,
    /// Whose lane.
    pub incarnation: Incarnation,
    /// Random bits that mark the lane's blocks; no client may learn them.
    pub nonce: u64,
    /// Sizes and times.
    pub settings: LaneSettings,
    /// What to write first into each file.
    pub checkpoints: Arc<dyn CheckpointSource>,
    /// Tells whoever splits ended files.
    pub rolled: Box<dyn Fn(RolledFile) + Send + Sync>,
    /// Whether the instance may act.
    pub standing: Standing,
    /// Which rules hold.
    pub rules: Rules,
    /// What is counted.
    pub metrics: LaneMetrics,
}

/// Starts the lane: its first file with a durable checkpoint, then the task that writes.
///
/// # Errors
/// The disk's, or [`LaneError::TokenLost`].
pub async fn start(parts: WriterParts) -> Result<(Arc<Lane>, AbortOnDropHandle<()>), LaneError> {
    let lane = Arc::new(Lane::new(parts.incarnation, parts.standing.clone()));
    let first_bytes = parts.settings.file_bytes_first;
    let file = parts.disk.create(&parts.paths.file(LaneFile::Wal(0)), first_bytes).await?;
    let mut writer = Writer {
        parts,
        lane: Arc::clone(&lane),
        current: OpenFile::new(0, file, first_bytes),
        next: None,
        sequence: 0,
        durable_sequence: 0,
        written_at_ms: i64::MIN,
    };
    writer.write_checkpoint().await?;
    writer.prepare_next();
    let (standing, ending) = (writer.parts.standing.clone(), Arc::clone(&lane));
    let task = tokio::spawn(async move {
        match AssertUnwindSafe(writer.run()).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => standing.stand_down(&error.to_string()),
            // What it left behind is unknown, as after a failed write.
            Err(_) => standing.stand_down("the lane's writer panicked"),
        }
        ending.end();
    });
    Ok((lane, AbortOnDropHandle::new(task)))
}

struct OpenFile {
    number: u64,
    file: Arc<dyn File>,
    size: u64,
    position: u64,
    first_sequence: u64,
    checkpoint_end: u64,
    /// When the first batch or counter was written to it.
    used_since: Option<Instant>,
    entries: Vec<RolledEntry>,
    blocks: Vec<BlockSummary>,
}

impl OpenFile {
    fn new(number: u64, file: Arc<dyn File>, size: u64) -> Self {
        Self {
            number,
            file,
            size,
            position: 0,
            first_sequence: 0,
            checkpoint_end: 0,
            used_since: None,
            entries: Vec::new(),
            blocks: Vec::new(),
        }
    }
}

struct Writer {
    parts: WriterParts,
    lane: Arc<Lane>,
    current: OpenFile,
    next: Option<AbortOnDropHandle<DiskResult<Arc<dyn File>>>>,
    sequence: u64,
    durable_sequence: u64,
    /// The time of the last block.
    written_at_ms: i64,
}

/// One write: what was taken from the queue, laid out in blocks.
#[derive(Default)]
struct Write {
    batches: Vec<LaneBatch>,
    entries: Vec<DataEntry>,
    usage: Vec<Usage>,
    installs: Vec<InstallEntry>,
    effects: Vec<(InstallEffect, oneshot::Sender<()>)>,
    payload_bytes: usize,
    /// The file is to be ended; whoever asked for it is told.
    roll: Vec<oneshot::Sender<()>>,
    close: Option<oneshot::Sender<LaneEnd>>,
}

impl Write {
    /// Whether an item may join: a write is cut at `cut` bytes, and nothing joins after its end.
    fn has_room_for(&self, item: &Item, cut: usize) -> bool {
        let bytes = if let Item::Batch(batch) = item { batch.batch.size_bytes() } else { 0 };
        let fits = self.payload_bytes == 0 || self.payload_bytes + bytes <= cut;
        fits && self.roll.is_empty() && self.close.is_none()
    }

    /// Bytes that it takes at the most, with room for its indexes.
    fn room(&self) -> u64 {
        let data = match self.entries.len() {
            0 => 0,
            entries => span(self.payload_bytes + (DATA_ENTRY_BYTES + 16) * entries + 4096),
        };
        let installs = match self.installs.len() {
            0 => 0,
            entries => span(32 * entries + 64),
        };
        let usage: usize =
            self.usage.iter().map(|usage| span(64 * usage.entries.len() + 4096)).sum();
        (data + usage + installs) as u64
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Batch(batch) => {
                let header = batch.batch.header();
                let position = u32::try_from(self.payload_bytes).expect("a write is cut at 1 MiB");
                let (partition, principal) = (batch.partition, Arc::clone(&batch.principal));
                let entry = DataEntry::new(partition, batch.epoch, principal, &header, position);
                self.entries.push(entry);
                self.payload_bytes += batch.batch.size_bytes();
                self.batches.push(batch);
            }
            Item::Usage(usage) => self.usage.push(usage),
            Item::Install(install) => {
                self.installs.extend(install.entries);
                self.effects.push((install.effect, install.done));
            }
            Item::Roll(done) => self.roll.push(done),
            Item::Close(done) => self.close = Some(done),
        }
    }

    fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.usage.is_empty() && self.installs.is_empty()
    }
}

/// A block as it goes to the disk.
struct Encoded {
    kind: BlockKind,
    written_at_ms: i64,
    sequence: u64,
    bytes: u64,
    index_bytes: u64,
}

impl Writer {
    async fn run(&mut self) -> Result<(), LaneError> {
        loop {
            let mut write = self.gather().await;
            if self.parts.standing.is_down() {
                return Ok(());
            }
            if !write.is_empty() {
                self.commit(&mut write).await?;
            }
            if let Some(done) = write.close.take() {
                self.close(done).await?;
                return Ok(());
            }
            let due = self.current.used_since.is_some_and(|since| {
                !write.roll.is_empty() || since.elapsed() >= self.parts.settings.roll_after
            });
            if due {
                self.roll().await?;
            }
            for done in write.roll.drain(..) {
                // Whoever asked may have given up waiting.
                let _ = done.send(());
            }
        }
    }

    /// Waits for something to do, then takes what is there up to the cut.
    async fn gather(&self) -> Write {
        let roll_at = self.current.used_since.map(|since| since + self.parts.settings.roll_after);
        loop {
            let arrived = self.lane.pushed();
            if let Some(write) = self.take_queued() {
                return write;
            }
            let roll_due = async {
                match roll_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = arrived => {}
                _ = self.parts.standing.ended() => return Write::default(),
                () = roll_due => return Write::default(),
            }
        }
    }

    fn take_queued(&self) -> Option<Write> {
        let mut write = Write::default();
        let mut any = false;
        let cut = self.parts.settings.write_bytes_max;
        while let Some(item) = self.lane.pop_if(|item| write.has_room_for(item, cut)) {
            write.take(item);
            any = true;
        }
        any.then_some(write)
    }

    /// Writes, syncs, checks the token; then tells whoever waits.
    async fn commit(&mut self, write: &mut Write) -> Result<(), LaneError> {
        let room = write.room();
        let full = self.current.position + room > self.current.size;
        if full && self.current.position > self.current.checkpoint_end {
            self.roll().await?;
        }
        let (pieces, blocks) = self.lay_out(write);
        let first_position = self.current.position;
        self.put(pieces).await?;
        self.acknowledge(write, &blocks, first_position);
        Ok(())
    }

    fn lay_out(&mut self, write: &mut Write) -> (Vec<Bytes>, Vec<Encoded>) {
        let mut pieces = Vec::new();
        let mut blocks = Vec::new();
        if !write.entries.is_empty() {
            let payload = write.batches.iter().flat_map(|batch| batch.batch.pieces()).collect();
            let index = encode_data(&write.entries);
            self.add_block(BlockKind::Data, &index, payload, &mut pieces, &mut blocks);
        }
        for usage in &write.usage {
            let index = encode_usage(usage);
            self.add_block(BlockKind::Usage, &index, Vec::new(), &mut pieces, &mut blocks);
        }
        if !write.installs.is_empty() {
            let index = encode_installs(&write.installs);
            self.add_block(BlockKind::Install, &index, Vec::new(), &mut pieces, &mut blocks);
        }
        (pieces, blocks)
    }

    fn add_block(
        &mut self,
        kind: BlockKind,
        index: &Bytes,
        payload: Vec<Bytes>,
        pieces: &mut Vec<Bytes>,
        blocks: &mut Vec<Encoded>,
    ) {
        self.sequence += 1;
        // A clock that is set back does not take the lane back with it.
        self.written_at_ms = self.written_at_ms.max(self.parts.clock.now_ms());
        let label = BlockLabel {
            kind,
            incarnation: self.parts.incarnation,
            sequence: self.sequence,
            durable_sequence: self.durable_sequence,
            nonce: self.parts.nonce,
            written_at_ms: self.written_at_ms,
        };
        let encoded = encode(label, index, payload);
        let bytes: usize = encoded.iter().map(Bytes::len).sum();
        if matches!(kind, BlockKind::Data | BlockKind::Usage) {
            let summary = BlockSummary::of(&encoded[0]).expect("just written");
            self.current.blocks.push(summary);
        }
        blocks.push(Encoded {
            kind,
            written_at_ms: self.written_at_ms,
            sequence: self.sequence,
            bytes: bytes as u64,
            index_bytes: index.len() as u64,
        });
        self.parts.metrics.block_written(kind.name(), bytes as u64);
        pieces.extend(encoded);
    }

    /// The one place where blocks become durable.
    async fn put(&mut self, pieces: Vec<Bytes>) -> Result<(), LaneError> {
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        let rules = self.parts.rules;
        let (file, position) = (&self.current.file, self.current.position);
        let begun = Instant::now();
        let written = if rules.hold(Rule::SyncBeforeAck) {
            file.write_and_sync(position, pieces).await
        } else {
            file.write_at(position, pieces).await
        };
        if rules.hold(Rule::UnknownMeansStop) {
            written?;
        } else if written.is_err() {
            file.sync().await?;
        }
        let synced = Instant::now();
        self.parts.metrics.commit_took(CommitStage::Write, synced - begun);
        if rules.hold(Rule::TokenBeforeAck) {
            self.parts.token.check().await?;
            self.parts.metrics.commit_took(CommitStage::Token, synced.elapsed());
        }
        self.current.position += bytes as u64;
        self.durable_sequence = self.sequence;
        Ok(())
    }

    fn acknowledge(&mut self, write: &mut Write, blocks: &[Encoded], first_position: u64) {
        let has_data = blocks.first().is_some_and(|block| block.kind == BlockKind::Data);
        let data = blocks.first().filter(|_| has_data);
        let (index_bytes, written_at_ms) =
            data.map_or((0, 0), |block| (block.index_bytes, block.written_at_ms));
        let payload_at = first_position + HEADER_BYTES as u64 + index_bytes;
        if has_data || blocks.iter().any(|block| block.kind == BlockKind::Usage) {
            self.current.used_since.get_or_insert_with(Instant::now);
        }
        for (entry, batch) in write.entries.drain(..).zip(write.batches.drain(..)) {
            let spot = LaneSpot {
                incarnation: self.parts.incarnation,
                file: LaneFile::Wal(self.current.number),
                position: payload_at + u64::from(entry.position),
                length: entry.length,
                written_at_ms,
            };
            self.current.entries.push(RolledEntry {
                partition: entry.partition,
                epoch: entry.epoch,
                base_offset: entry.base_offset,
                record_count: entry.record_count,
                spot,
            });
            let (batch, pinned_bytes, owner) = (batch.batch, batch.pinned_bytes, batch.owner);
            owner.durable(DurableBatch { batch, spot, pinned_bytes });
        }
        for (effect, done) in write.effects.drain(..) {
            effect();
            // Whoever waited for the install may have been dropped with its job.
            let _ = done.send(());
        }
        debug_assert_eq!(
            blocks.last().map_or(self.sequence, |block| block.sequence),
            self.sequence
        );
        debug_assert_eq!(
            first_position + blocks.iter().map(|block| block.bytes).sum::<u64>(),
            self.current.position
        );
    }

    /// Ends the file and goes on in the next, whose checkpoint makes every block of this one sure.
    async fn roll(&mut self) -> Result<(), LaneError> {
        let file = match self.next.take() {
            Some(prepared) => prepared.await.expect("preparing a file does not panic")?,
            None => self.create_file(self.current.number + 1).await?,
        };
        let number = self.current.number + 1;
        let ended = std::mem::replace(
            &mut self.current,
            OpenFile::new(number, file, file_size(&self.parts.settings, number)),
        );
        let last_sequence = self.sequence;
        self.write_checkpoint().await?;
        self.prepare_next();
        self.parts.metrics.file_rolled();
        self.hand_over(ended, last_sequence);
        Ok(())
    }

    async fn create_file(&self, number: u64) -> DiskResult<Arc<dyn File>> {
        let path = self.parts.paths.file(LaneFile::Wal(number));
        self.parts.disk.create(&path, file_size(&self.parts.settings, number)).await
    }

    fn prepare_next(&mut self) {
        let number = self.current.number + 1;
        let disk = Arc::clone(&self.parts.disk);
        let path = self.parts.paths.file(LaneFile::Wal(number));
        let size = file_size(&self.parts.settings, number);
        let preparing = tokio::spawn(async move { disk.create(&path, size).await });
        self.next = Some(AbortOnDropHandle::new(preparing));
    }

    fn hand_over(&self, ended: OpenFile, last_sequence: u64) {
        let leftover = Leftover {
            incarnation: self.parts.incarnation,
            file: ended.number,
            sequences: (ended.first_sequence, last_sequence),
            blocks: ended.blocks,
        };
        (self.parts.rolled)(RolledFile { entries: ended.entries, leftover });
    }

    async fn write_checkpoint(&mut self) -> Result<(), LaneError> {
        let index = encode_checkpoint(self.current.number, &self.parts.checkpoints.installed());
        let (mut pieces, mut blocks) = (Vec::new(), Vec::new());
        self.add_block(BlockKind::Checkpoint, &index, Vec::new(), &mut pieces, &mut blocks);
        self.current.first_sequence = self.sequence;
        self.put(pieces).await?;
        self.current.checkpoint_end = self.current.position;
        Ok(())
    }

    async fn close(&mut self, done: oneshot::Sender<LaneEnd>) -> Result<(), LaneError> {
        // Before the lane has its end, after which a successor removes its files: one that was made
        // later would stand alone, and look as if its checkpoint were lost.
        if let Some(prepared) = self.next.take()
            && let Err(error) = prepared.await.expect("preparing a file does not panic")
        {
            tracing::debug!(%error, "no file was made ahead of the end");
        }
        let (mut pieces, mut blocks) = (Vec::new(), Vec::new());
        self.add_block(BlockKind::Close, &Bytes::new(), Vec::new(), &mut pieces, &mut blocks);
        self.put(pieces).await?;
        // Whoever asked may have given up waiting; the end stands all the same.
        let _ = done.send(LaneEnd { file: self.current.number, sequence: self.sequence });
        Ok(())
    }
}

/// Bytes of the `number`th file: doubling from the first up to the largest.
fn file_size(settings: &LaneSettings, number: u64) -> u64 {
    let doublings = u32::try_from(number.min(32)).expect("at most 32");
    settings.file_bytes_first.saturating_mul(1 << doublings).min(settings.file_bytes_max)
}
