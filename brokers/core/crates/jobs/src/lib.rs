//! Background work: jobs of a broker on what it leads ([`BrokerJobs`]: splitting ended lane files,
//! retention, rewriting) and jobs of the whole cluster ([`ClusterJobs`]: sweeping, garbage), which
//! only whoever has a [`freshet_metadata::cluster::Term`] can start.
//!
//! Jobs work beside each other; manifests they change one at a time (`publish`). Each deletes last,
//! and only after it has looked again that it may.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use freshet_partition::Sources;
use freshet_partition::load::MissingOffsets;
use freshet_partition::registry::Partitions;
use freshet_storage::cold::ColdError;
use freshet_storage::lane::queue::Lane;
use freshet_storage::lane::token::OwnerToken;
use freshet_storage::lane::writer::RolledFile;
use freshet_storage::lane::{LaneError, LanePaths};
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_world::env::store::{ObjectStore, StoreError};
use freshet_world::env::{Clock, Disk};

mod broker;
mod cluster;
pub mod compact;
pub mod deletion;
pub mod garbage;
mod inbox;
pub mod inherit;
pub mod join;
pub mod objects;
pub mod publish;
pub mod retention;
mod rewrite;
mod rounds;
pub mod split;
pub mod sweep;

pub use broker::BrokerJobs;
pub use cluster::ClusterJobs;

/// A failed put is tried again after this long, doubling up to [`RETRY_AFTER_MAX`].
const RETRY_AFTER_FIRST: Duration = Duration::from_millis(100);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);

/// Why a job gave up. It deletes nothing then, not even what it made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JobError {
    /// The lane ended, or cannot be read.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// Objects cannot be written or read.
    #[error(transparent)]
    Cold(#[from] ColdError),
    /// The metadata store said no, or nothing.
    #[error("metadata: {0}")]
    Metadata(String),
    /// Records to be split do not check, or are not where they should be.
    #[error(transparent)]
    Records(#[from] BadRecords),
    /// The instance stops; the next one goes on.
    #[error("the lane is about to end")]
    Stopping,
}

/// Records of a partition that were acked and cannot be split.
#[derive(Debug, Clone, thiserror::Error)]
#[error("partition {partition}, offset {offset}: {what}")]
pub struct BadRecords {
    /// Which partition.
    pub partition: PartitionId,
    /// First offset that is missing.
    pub offset: i64,
    /// What is wrong.
    pub what: String,
}

impl From<StoreError> for JobError {
    fn from(error: StoreError) -> Self {
        Self::Cold(error.into())
    }
}

/// What jobs work with.
pub struct JobContext {
    /// Wall clock, for retention only.
    pub clock: Arc<dyn Clock>,
    /// The shared file system.
    pub disk: Arc<dyn Disk>,
    /// The object store.
    pub store: Arc<dyn ObjectStore>,
    /// Prefix of the cluster in both.
    pub cluster: String,
    /// Who works.
    pub incarnation: Incarnation,
    /// One's own lane.
    pub lane: Arc<Lane>,
    /// The right to act.
    pub token: Arc<OwnerToken>,
    /// What partitions share.
    pub sources: Arc<Sources>,
    /// What is led.
    pub partitions: Arc<Partitions>,
    /// Objects that no manifest names yet.
    pub making: Arc<objects::Making>,
    /// Whose turn it is to change manifests.
    pub turns: publish::Turns,
}

impl JobContext {
    fn lane_paths(&self, incarnation: Incarnation) -> LanePaths {
        LanePaths::new(&self.cluster, incarnation)
    }

    /// Keeps a partition from service from now on, alone and loudly: its log has a hole. What it
    /// was acked stays where it is, for whoever mends it.
    fn take_offline(&self, bad: &BadRecords) {
        tracing::error!(%bad, "offline: what was acked cannot be read");
        let end = self.partitions.get(bad.partition).map(|partition| partition.bounds().end);
        self.partitions.take_offline(MissingOffsets {
            partition: bad.partition,
            due: bad.offset,
            found: end.unwrap_or(bad.offset),
        });
    }
}

/// What jobs ask about topics.
pub trait TopicFacts: Send + Sync {
    /// What to keep of a partition; `None` where its topic is not cleaned by deletion.
    fn retention(&self, partition: PartitionId) -> Option<retention::Retention>;

    /// How a topic is compacted; `None` where it is not.
    fn compaction(&self, topic: TopicId) -> Option<compact::CompactionRules>;

    /// Whether somebody deleted the topic for good. A topic that is merely unknown (the metadata
    /// store came back from a backup) keeps its records.
    fn was_deleted(&self, topic: TopicId) -> bool;
}

/// What the job task is told.
pub enum JobMessage {
    /// A lane file ended.
    Rolled(RolledFile),
    /// Move log starts forward, each partition named once, and answer when that is durable.
    DeleteRecords(Vec<deletion::DeleteBefore>, oneshot::Sender<Result<(), JobError>>),
    /// Answer once everything before this was done.
    Drain(oneshot::Sender<()>),
}

/// How long after each other periodic jobs run.
#[derive(Debug, Clone, Copy)]
pub struct JobSettings {
    /// Between two rounds of retention.
    pub retention_interval: Duration,
    /// Between two rounds of sweeping; an object goes after two.
    pub sweep_interval: Duration,
    /// Between two rounds of joining and compaction (Kafka's `log.cleaner.backoff.ms`).
    pub rewrite_interval: Duration,
    /// Bytes that these may read in a second.
    pub rewrite_bytes_per_s: u64,
    /// Memory for the keys of a partition that is compacted.
    pub compaction_keys_bytes: usize,
    /// Sizes of splitting.
    pub split: split::SplitSettings,
    /// For how long the rests of a dead lane wait for the meter; `None`: until it comes.
    pub unmetered_lanes_kept: Option<Duration>,
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            retention_interval: Duration::from_secs(60),
            sweep_interval: Duration::from_secs(300),
            rewrite_interval: Duration::from_secs(15),
            rewrite_bytes_per_s: 64 << 20,
            compaction_keys_bytes: 32 << 20,
            split: split::SplitSettings::default(),
            unmetered_lanes_kept: None,
        }
    }
}

/// Runs all jobs until the instance ends: the broker's own, and the cluster's beside them once what
/// was inherited is settled. Boxed, so that it is compiled here and not once more for its caller.
pub fn run(own: BrokerJobs, of_cluster: ClusterJobs) -> BoxFuture<'static, ()> {
    run_all(own, of_cluster).boxed()
}

async fn run_all(own: BrokerJobs, of_cluster: ClusterJobs) {
    let liveness = own.context.sources.liveness.clone();
    let work = async {
        let splitter = own.settle().await;
        tokio::select! {
            biased;
            () = own.run(splitter) => {}
            () = of_cluster.run() => {}
        }
    };
    tokio::select! {
        biased;
        _ = liveness.ended() => {}
        () = work => {}
    }
}

/// Waits, and longer the next time.
async fn pause(wait: &mut Duration) {
    tokio::time::sleep(*wait).await;
    *wait = (*wait * 2).min(RETRY_AFTER_MAX);
}

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn report(job: &str, outcome: Result<(), JobError>) {
    match outcome {
        Ok(()) => {}
        // The lane was closed by a clean stop, or ended by something that was told of.
        Err(error @ (JobError::Stopping | JobError::Lane(LaneError::Closed(_)))) => {
            tracing::debug!(job, %error, "ended with the lane");
        }
        Err(error) => tracing::error!(job, %error, "job failed; what it was to delete stays"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_storage::cold::manifest::Manifest;
    use freshet_storage::cold::segment::Segment;
    use freshet_storage::names::ObjectRef;

    /// A log of segments of these bytes, each of ten offsets.
    pub(super) fn log(bytes: &[u64]) -> Manifest {
        let segment = |(number, bytes): (u32, &u64)| Segment {
            object: ObjectRef { incarnation: Incarnation(1), number: number.into() },
            section_position: 0,
            section_bytes: 0,
            base_offset: 10 * i64::from(number),
            end_offset: 10 * i64::from(number) + 10,
            first_timestamp: 0,
            max_timestamp: 0,
            bytes: *bytes,
            written_at_ms: 0,
            compacted: false,
        };
        let segments: Vec<Segment> = (0..).zip(bytes).map(segment).collect();
        let end = segments.last().map_or(0, |last| last.end_offset);
        let (covered_end, last_stable_offset) = (end, end);
        let id = PartitionId::new(TopicId::from_u128(1), 0);
        Manifest { covered_end, last_stable_offset, segments, ..Manifest::empty(id) }
    }
}
