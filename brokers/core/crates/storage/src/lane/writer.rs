//! The writer of one's own lane: group commit, and the fence-checked end.
//!
//! One task writes, on a thread of its own where the disk is a real one. A write starts as soon as
//! the earlier one is done, takes what was staged meanwhile up to
//! [`LaneSettings::write_bytes_max`], and is acknowledged once it was written and synced and the
//! owner token was read again and is ours. Any error ends the incarnation: nobody knows which bytes
//! of a failed write are on the disk, so there is no second try.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::block::{BlockKind, BlockLabel, HEADER_BYTES, encode, span};
use super::index::{InstallEntry, encode_checkpoint, encode_data, encode_installs, encode_usage};
use super::leftover::{BlockSummary, Leftover};
use super::queue::{DurableBatch, Lane};
use super::recycled::RecycledFiles;
use super::token::OwnerToken;
use super::write::{SlowCommits, Stages, Write};
use super::{LaneEnd, LaneError, LaneFile, LanePaths, LaneSpot, PlacedBatch};
use crate::liveness::Liveness;
use crate::payers::{NamedPayers, PayerRules};
use crate::rules::{Rule, Rules};
use freshet_telemetry::{CommitStage, LaneMetrics};
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Clock, Disk, DiskError, DiskResult, File, Room};

/// Sizes and times of a lane.
#[derive(Debug, Clone, Copy)]
pub struct LaneSettings {
    /// Bytes of the first file; each next one doubles, up to `file_bytes_max`.
    pub file_bytes_first: u64,
    /// Bytes at which a file is full.
    pub file_bytes_max: u64,
    /// A file that holds anything is ended after this long.
    pub roll_after: Duration,
    /// A write takes no further batch once its records would have more bytes than this. A single
    /// batch may be larger.
    pub write_bytes_max: usize,
    /// Producers wait while batches that are not written yet keep more memory than this alive.
    pub queue_bytes_max: usize,
    /// A commit that takes longer than this, counted from the moment when its first batch was
    /// staged, is explained in the log.
    pub slow_commit: Duration,
}

impl LaneSettings {
    /// Bytes of the `number`th file: doubling from the first up to the largest.
    pub(super) fn file_bytes(&self, number: u64) -> u64 {
        let doublings = u32::try_from(number.min(32)).expect("at most 32");
        self.file_bytes_first.saturating_mul(1 << doublings).min(self.file_bytes_max)
    }
}

impl Default for LaneSettings {
    fn default() -> Self {
        Self {
            file_bytes_first: 1 << 20,
            file_bytes_max: 64 << 20,
            roll_after: Duration::from_secs(60),
            write_bytes_max: 1 << 20,
            queue_bytes_max: 64 << 20,
            slow_commit: Duration::from_secs(1),
        }
    }
}

/// Says which manifest of each partition counts. The writer asks for each file's checkpoint, which
/// is its first block.
pub trait CheckpointSource: Send + Sync {
    /// Every partition that has a manifest.
    fn installed(&self) -> Vec<InstallEntry>;
}

/// A file that takes no more writes and whose every block is durable.
#[derive(Debug)]
pub struct RolledFile {
    /// Its batches, in order.
    pub batches: Vec<PlacedBatch>,
    /// What the meter still needs of the file once its batches are split.
    pub leftover: Leftover,
    /// How long it took to fill.
    pub filled_in: Duration,
}

/// A lane that filled a file within this time is expected to fill the next one as fast.
const FILLS_FAST: Duration = Duration::from_secs(2);

impl RolledFile {
    /// Whether the next one is likely to end soon, too.
    pub fn filled_fast(&self) -> bool {
        self.filled_in <= FILLS_FAST
    }
}

/// A file with so many batches is full, however small they are. Every batch that is not split yet
/// takes memory, and the limit on their number has room for three such files: one that fills while
/// two wait for the splitter.
pub const FILE_BATCHES_MAX: usize = 32_768;

/// What a writer needs.
pub struct WriterParts {
    /// The shared file system.
    pub disk: Arc<dyn Disk>,
    /// Says when blocks were written, for the meter.
    pub clock: Arc<dyn Clock>,
    /// Names of the lane's files.
    pub paths: LanePaths,
    /// The right to write here.
    pub token: Arc<OwnerToken>,
    /// The incarnation whose lane it is.
    pub incarnation: Incarnation,
    /// Random bits that mark the lane's blocks; no client may learn them.
    pub nonce: u64,
    /// Sizes and times.
    pub settings: LaneSettings,
    /// The source of each file's checkpoint.
    pub checkpoints: Arc<dyn CheckpointSource>,
    /// Called with each file that ended, so that it is split.
    pub rolled: Box<dyn Fn(RolledFile) + Send + Sync>,
    /// Whether the incarnation may still act.
    pub liveness: Liveness,
    /// The safety rules that hold; all of them outside of tests.
    pub rules: Rules,
    /// The metrics of the lane.
    pub metrics: LaneMetrics,
    /// Whose ingress is counted apart.
    pub payers: PayerRules,
}

/// A lane, and the task that writes it. The task ends when its handle is dropped.
pub type StartedLane = (Arc<Lane>, AbortOnDropHandle<()>);

/// Starts the lane: creates its first file with a durable checkpoint, then the task that writes.
/// The future is boxed, so that it is compiled in this crate and not again in each caller's.
///
/// # Errors
/// [`LaneError::Disk`] where the file or its checkpoint cannot be written;
/// [`LaneError::TokenLost`] where another incarnation has fenced the lane.
pub fn start(parts: WriterParts) -> BoxFuture<'static, Result<StartedLane, LaneError>> {
    open_lane(parts).boxed()
}

async fn open_lane(parts: WriterParts) -> Result<StartedLane, LaneError> {
    let (disk, settings) = (Arc::clone(&parts.disk), parts.settings);
    let recycled =
        RecycledFiles::new(Arc::clone(&disk), parts.paths.clone(), settings.file_bytes_max);
    let (liveness, recycled) = (parts.liveness.clone(), Arc::new(recycled));
    let lane = Arc::new(Lane::new(parts.incarnation, liveness.clone(), settings, recycled));
    let first_bytes = settings.file_bytes_first;
    let file = disk.create(&parts.paths.file(LaneFile::Wal(0)), first_bytes, Room::Filled).await?;
    let mut writer = Writer {
        payers: NamedPayers::new(parts.payers.clone()),
        parts,
        lane: Arc::clone(&lane),
        current: OpenFile::new(0, file, first_bytes),
        next: None,
        sequence: 0,
        durable_sequence: 0,
        written_at_ms: i64::MIN,
        slow: SlowCommits::default(),
    };
    writer.write_checkpoint().await?;
    writer.prepare_next();
    let ending = Arc::clone(&lane);
    let task = async move {
        match AssertUnwindSafe(writer.run()).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => liveness.stand_down(&error.to_string()),
            // Nobody knows what was written, as after a failed write.
            Err(_) => liveness.stand_down("the lane's writer panicked"),
        }
        ending.end();
    };
    Ok((lane, disk.dedicate(task.boxed())?))
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
    batches: Vec<PlacedBatch>,
    /// The file is full once it has so many batches.
    batches_max: usize,
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
            batches: Vec::new(),
            batches_max: FILE_BATCHES_MAX,
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
    /// The time that the last block bears, in milliseconds since 1970 UTC.
    written_at_ms: i64,
    slow: SlowCommits,
    payers: NamedPayers,
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
            if self.parts.liveness.is_down() {
                return Ok(());
            }
            if !write.is_empty() {
                self.commit(&mut write).await?;
            }
            if let Some(done) = write.close.take() {
                self.close(done).await?;
                return Ok(());
            }
            let asked = !write.roll.is_empty();
            let due = self.current.used_since.is_some_and(|since| {
                asked
                    || since.elapsed() >= self.parts.settings.roll_after
                    || self.current.batches.len() >= self.current.batches_max
            });
            if due {
                self.roll_early(asked).await?;
            }
            for done in write.roll.drain(..) {
                // The receiver is gone where the caller gave up waiting. The file ended all the
                // same.
                let _ = done.send(());
            }
        }
    }

    /// Waits until something is staged, the file is due to end, or the incarnation stood down; then
    /// takes what is staged, up to the size of one write.
    async fn gather(&self) -> Write {
        let roll_at = self.current.used_since.map(|since| since + self.parts.settings.roll_after);
        loop {
            // The future is made before the queue is looked at: what is pushed between the look and
            // the wait wakes it.
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
                _ = self.parts.liveness.ended() => return self.empty_write(),
                () = roll_due => return self.empty_write(),
            }
        }
    }

    fn empty_write(&self) -> Write {
        Write::new(self.parts.settings.write_bytes_max)
    }

    fn take_queued(&self) -> Option<Write> {
        let mut write = self.empty_write();
        self.lane.take_while(&mut write);
        (!write.is_idle()).then_some(write)
    }

    /// Writes and syncs a write, checks the token, and then acknowledges the batches to their
    /// owners.
    async fn commit(&mut self, write: &mut Write) -> Result<(), LaneError> {
        let queued = write.since.map(|since| since.elapsed()).unwrap_or_default();
        let room = write.room();
        // A file that holds nothing but its checkpoint takes a write of any size, and grows where
        // it has to: to roll would only leave an empty file behind.
        let full = self.current.position + room > self.current.size;
        if full && self.current.position > self.current.checkpoint_end {
            self.roll().await?;
        }
        let (pieces, blocks) = self.lay_out(write);
        let first_position = self.current.position;
        let mut stages = self.put(pieces).await?;
        stages.queue = queued;
        self.parts.metrics.commit_took(CommitStage::Queue, queued);
        if stages.total() >= self.parts.settings.slow_commit {
            self.slow.explain(stages, write, self.lane.waiting());
        }
        self.acknowledge(write, &blocks, first_position);
        Ok(())
    }

    /// Encodes a write as blocks, in the order data, usage, installs: [`Self::acknowledge`] relies
    /// on the data block being the first.
    fn lay_out(&mut self, write: &mut Write) -> (Vec<Bytes>, Vec<Encoded>) {
        let mut pieces = Vec::new();
        let mut blocks = Vec::new();
        if !write.entries.is_empty() {
            self.payers.go_on_at(self.written_at_ms);
            for entry in &mut write.entries {
                entry.principal = self.payers.of_partition(entry.partition, &entry.principal);
            }
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
        // The clock may have been set back; the times in a lane never go back, because the meter
        // takes the time of a block as the end of what it has covered.
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

    /// Writes blocks at the end of the file and makes them durable. No other function does.
    ///
    /// The order is the safety of an acknowledgement: first write, then sync, then read the token.
    /// A token that is still ours after the sync proves that the blocks were durable before anybody
    /// fenced the lane, so whoever fences it later finds them. Read before the sync, it would prove
    /// nothing.
    async fn put(&mut self, pieces: Vec<Bytes>) -> Result<Stages, LaneError> {
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        let (rules, metrics) = (self.parts.rules, &self.parts.metrics);
        let (file, position) = (&self.current.file, self.current.position);
        let begun = Instant::now();
        let mut done = file.write_at(position, pieces).await;
        let written = Instant::now();
        if done.is_ok() && rules.hold(Rule::SyncBeforeAck) {
            done = file.sync().await;
        }
        if rules.hold(Rule::UnknownMeansStop) {
            done?;
        } else if done.is_err() {
            // Only in tests of the rule: a sync after a failed one may succeed without the bytes.
            file.sync().await?;
        }
        let synced = Instant::now();
        let (write, sync) = (written - begun, synced - written);
        let mut stages = Stages { write, sync, ..Stages::default() };
        metrics.commit_took(CommitStage::Write, write);
        metrics.commit_took(CommitStage::Sync, sync);
        if rules.hold(Rule::TokenBeforeAck) {
            self.parts.token.check().await?;
            stages.token = synced.elapsed();
            metrics.commit_took(CommitStage::Token, stages.token);
        }
        // Not before the token was checked: the next block repeats this number to its readers as
        // the last one that is sure.
        self.current.position += bytes as u64;
        self.durable_sequence = self.sequence;
        Ok(stages)
    }

    /// Hands the batches of a durable write to their owners, then runs the effects of its installs.
    /// This happens before the next write, so a checkpoint that follows names what was installed.
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
            self.current.batches.push(PlacedBatch {
                partition: entry.partition,
                epoch: entry.epoch,
                base_offset: entry.base_offset,
                spot,
            });
            let (pinned_bytes, ack) = (batch.pinned_bytes, batch.ack);
            batch.owner.durable(DurableBatch { batch: batch.batch, spot, pinned_bytes });
            // After the owner has the batch: the drop wakes a request, which asks the owner for
            // the result.
            drop(ack);
        }
        for (effect, done) in write.effects.drain(..) {
            effect();
            // The receiver is gone where the job that waited was dropped. The install counts.
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

    /// Ends a file that is full, and goes on in the next one.
    async fn roll(&mut self) -> Result<(), LaneError> {
        let file = self.next_file().await?;
        self.go_on_in(file, self.next_bytes()).await
    }

    /// Ends the file before it is full. On a full disk the file stays in use, unless its end was
    /// requested (`asked`), which happens before the lane is closed: then the lane goes on in the
    /// reserve, which has room for what is written until the close.
    async fn roll_early(&mut self, asked: bool) -> Result<(), LaneError> {
        let number = self.current.number + 1;
        match self.next_file().await {
            Err(DiskError::NoSpace(what)) if asked => {
                let reserve = self.lane.recycled.use_reserve(number).await?;
                let file = reserve.ok_or(DiskError::NoSpace(what))?;
                tracing::warn!("the disk is full: the lane is closed in the reserved file");
                self.go_on_in(file, self.lane.recycled.reserve_bytes()).await
            }
            Err(DiskError::NoSpace(what)) => {
                tracing::warn!(
                    what,
                    "the disk has no room for the next lane file: this one stays in use"
                );
                self.current.used_since = Some(Instant::now());
                self.current.batches_max = self.current.batches.len() + FILE_BATCHES_MAX;
                self.prepare_next();
                Ok(())
            }
            made => self.go_on_in(made?, self.next_bytes()).await,
        }
    }

    /// Goes on in another file. The ended one is handed to the splitter only after the new file's
    /// checkpoint is durable: that checkpoint says that every block of the ended file was durable,
    /// and names the manifests without which the ended file could not be removed.
    async fn go_on_in(&mut self, file: Arc<dyn File>, size: u64) -> Result<(), LaneError> {
        let number = self.current.number + 1;
        let ended = std::mem::replace(&mut self.current, OpenFile::new(number, file, size));
        let filled_in = ended.used_since.map(|since| since.elapsed()).unwrap_or_default();
        self.lane.recycled.note_filled(ended.position, filled_in);
        let last_sequence = self.sequence;
        self.write_checkpoint().await?;
        self.prepare_next();
        self.parts.metrics.file_rolled();
        self.hand_over(ended, last_sequence, filled_in);
        Ok(())
    }

    /// The next file, which was made ahead of use. Where the disk was full then, it is made now,
    /// for which there may be room by now.
    async fn next_file(&mut self) -> DiskResult<Arc<dyn File>> {
        if let Some(prepared) = self.next.take() {
            match prepared.await.expect("preparing a file does not panic") {
                Err(DiskError::NoSpace(what)) => {
                    tracing::warn!(what, "the disk had no room for the next lane file");
                }
                made => return made,
            }
        }
        let number = self.current.number + 1;
        self.lane.recycled.make_file(number, self.next_bytes()).await
    }

    /// The size of the next file.
    fn next_bytes(&self) -> u64 {
        self.parts.settings.file_bytes(self.current.number + 1)
    }

    /// Begins to make the next file ahead of use, and the reserve before it: on a disk that is
    /// about to be full the clean end comes first.
    fn prepare_next(&mut self) {
        let (number, bytes) = (self.current.number + 1, self.next_bytes());
        let recycled = Arc::clone(&self.lane.recycled);
        let preparing = tokio::spawn(async move {
            if let Err(error) = recycled.keep_reserve().await {
                tracing::warn!(%error, "the file reserved for closing the lane was not made");
            }
            recycled.make_file(number, bytes).await
        });
        self.next = Some(AbortOnDropHandle::new(preparing));
    }

    fn hand_over(&self, ended: OpenFile, last_sequence: u64, filled_in: Duration) {
        let leftover = Leftover {
            incarnation: self.parts.incarnation,
            file: ended.number,
            sequences: (ended.first_sequence, last_sequence),
            blocks: ended.blocks,
        };
        (self.parts.rolled)(RolledFile { batches: ended.batches, leftover, filled_in });
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

    /// Writes the block that is the lane's clean end, after which a successor need not fence it.
    async fn close(&mut self, done: oneshot::Sender<LaneEnd>) -> Result<(), LaneError> {
        if self.current.position + span(0) as u64 > self.current.size {
            self.roll_early(true).await?;
        }
        // The file that is being made ahead of use must be there before the lane has its end. After
        // that a successor may remove the lane's files, and one that appeared later would be alone
        // in the folder and look as if its checkpoint were lost.
        if let Some(prepared) = self.next.take()
            && let Err(error) = prepared.await.expect("preparing a file does not panic")
        {
            tracing::debug!(%error, "the file that was being made ahead of use failed");
        }
        self.lane.recycled.remove_all().await?;
        let (mut pieces, mut blocks) = (Vec::new(), Vec::new());
        self.add_block(BlockKind::Close, &Bytes::new(), Vec::new(), &mut pieces, &mut blocks);
        self.put(pieces).await?;
        // The receiver is gone where the caller gave up waiting. The lane has its end all the same.
        let _ = done.send(LaneEnd { file: self.current.number, sequence: self.sequence });
        Ok(())
    }
}
