//! Metrics of the lane.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::labels::{Histograms, KindLabel, StageLabel, latency};

/// A step between a batch that was checked and its acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStage {
    /// Waiting for the write before. It is the longest wait of a write's batches.
    Queue,
    /// Handing the bytes to the file system.
    Write,
    /// Making them durable.
    Sync,
    /// Reading the owner token again.
    Token,
    /// From the acknowledgement until the answer was handed to the socket.
    Respond,
}

impl CommitStage {
    const ALL: [Self; 5] = [Self::Queue, Self::Write, Self::Sync, Self::Token, Self::Respond];

    fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Token => "token",
            Self::Respond => "respond",
        }
    }
}

/// Metrics of the lane.
#[derive(Debug, Clone)]
pub struct LaneMetrics {
    blocks: Family<KindLabel, Counter>,
    bytes: Counter,
    stages: [Histogram; 5],
    files: Counter,
}

impl LaneMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (blocks, bytes, files) = (Family::default(), Counter::default(), Counter::default());
        let stages = Histograms::new_with_constructor(latency as fn() -> Histogram);
        registry.register("freshet_lane_blocks", "Blocks written by kind", blocks.clone());
        registry.register("freshet_lane_bytes", "Bytes written, padding included", bytes.clone());
        registry.register("freshet_lane_files", "Files that were ended", files.clone());
        let help = "Time of a group commit by stage: `queue`, `write`, `sync`, `token`, `respond`";
        registry.register("freshet_lane_commit_seconds", help, stages.clone());
        let stages = CommitStage::ALL
            .map(|stage| stages.get_or_create_owned(&StageLabel { stage: stage.name() }));
        Self { blocks, bytes, stages, files }
    }

    /// Notes a block of a kind (`data`, `usage`, `install`, `checkpoint`, `close`) with its
    /// padding.
    pub fn block_written(&self, kind: &'static str, bytes: u64) {
        self.blocks.get_or_create(&KindLabel { kind }).inc();
        self.bytes.inc_by(bytes);
    }

    /// Notes how long a step of a group commit took.
    pub fn commit_took(&self, stage: CommitStage, time: Duration) {
        self.stages[stage as usize].observe(time.as_secs_f64());
    }

    /// Notes that a file was ended.
    pub fn file_rolled(&self) {
        self.files.inc();
    }
}
