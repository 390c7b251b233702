//! One write: what was taken from the queue, and how it is laid out in blocks.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::LaneEnd;
use super::block::span;
use super::index::{DATA_ENTRY_BYTES, DataEntry, InstallEntry, Usage};
use super::queue::{InstallEffect, Item, LaneBatch, Waiting, Wanted};

/// The content of one write.
pub(super) struct Write {
    /// Bytes of records beyond which no further batch joins; a single batch may be larger.
    cut: usize,
    pub(super) batches: Vec<LaneBatch>,
    pub(super) entries: Vec<DataEntry>,
    pub(super) usage: Vec<Usage>,
    pub(super) installs: Vec<InstallEntry>,
    pub(super) effects: Vec<(InstallEffect, oneshot::Sender<()>)>,
    pub(super) payload_bytes: usize,
    /// Where to report that the file was ended. If there is any, the file ends after this write.
    pub(super) roll: Vec<oneshot::Sender<()>>,
    pub(super) close: Option<oneshot::Sender<LaneEnd>>,
    /// When its first item was staged.
    pub(super) since: Option<Instant>,
}

impl Write {
    pub(super) fn new(cut: usize) -> Self {
        Self {
            cut,
            batches: Vec::new(),
            entries: Vec::new(),
            usage: Vec::new(),
            installs: Vec::new(),
            effects: Vec::new(),
            payload_bytes: 0,
            roll: Vec::new(),
            close: None,
            since: None,
        }
    }

    /// An upper bound of its bytes in the file. The constants are generous bounds of what a
    /// principal's name, a topic's id and the tables of an index take: too much ends a file a
    /// little early, too little would write past its end.
    pub(super) fn room(&self) -> u64 {
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

    /// Whether there is anything to write.
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.usage.is_empty() && self.installs.is_empty()
    }

    /// Whether nothing was taken from the queue.
    pub(super) fn is_idle(&self) -> bool {
        self.since.is_none()
    }

    fn add_batch(&mut self, batch: LaneBatch) {
        let header = batch.batch.header();
        let position = u32::try_from(self.payload_bytes).expect("a write is cut at 1 MiB");
        let (partition, principal) = (batch.partition, Arc::clone(&batch.principal));
        self.entries.push(DataEntry::new(partition, batch.epoch, principal, &header, position));
        self.payload_bytes += batch.batch.size_bytes();
        self.batches.push(batch);
    }
}

impl Wanted for Write {
    /// Batches join up to the cut. Nothing joins behind a request to end the file or the lane,
    /// since what is staged after it belongs to the next file.
    fn wants(&self, item: &Item) -> bool {
        let fits = match item {
            Item::Batch(batch) => {
                let bytes = self.payload_bytes + batch.batch.size_bytes();
                self.payload_bytes == 0 || bytes <= self.cut
            }
            _ => true,
        };
        fits && self.roll.is_empty() && self.close.is_none()
    }

    fn take(&mut self, waiting: Waiting) {
        self.since.get_or_insert(waiting.since);
        match waiting.item {
            Item::Batch(batch) => self.add_batch(batch),
            Item::Usage(usage) => self.usage.push(usage),
            Item::Install(install) => {
                self.installs.extend(install.entries);
                self.effects.push((install.effect, install.done));
            }
            Item::Roll(done) => self.roll.push(done),
            Item::Close(done) => self.close = Some(done),
        }
    }
}

/// How long each step of a group commit took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stages {
    /// For how long the first item had waited.
    pub(super) queue: Duration,
    /// Handing the bytes to the file system.
    pub(super) write: Duration,
    /// Making them durable.
    pub(super) sync: Duration,
    /// Reading the owner token again.
    pub(super) token: Duration,
}

impl Stages {
    pub(super) fn total(&self) -> Duration {
        self.queue + self.write + self.sync + self.token
    }
}

/// Explains slow commits in the log, at most one a second.
#[derive(Default)]
pub(super) struct SlowCommits {
    last: Option<Instant>,
    suppressed: u64,
}

impl SlowCommits {
    /// At most one line per period; the commits between are counted.
    const PERIOD: Duration = Duration::from_secs(1);

    pub(super) fn explain(&mut self, stages: Stages, write: &Write, waiting: usize) {
        if self.last.is_some_and(|last| last.elapsed() < Self::PERIOD) {
            self.suppressed += 1;
            return;
        }
        self.last = Some(Instant::now());
        tracing::warn!(
            queue_ms = stages.queue.as_millis(),
            write_ms = stages.write.as_millis(),
            sync_ms = stages.sync.as_millis(),
            token_ms = stages.token.as_millis(),
            bytes = write.payload_bytes,
            batches = write.batches.len(),
            waiting,
            suppressed = std::mem::take(&mut self.suppressed),
            "a commit to the lane was slow: the stage with the most milliseconds says where"
        );
    }
}
