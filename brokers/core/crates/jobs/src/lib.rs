//! Background work: jobs of a broker on the partitions that it leads ([`BrokerJobs`]: splitting,
//! retention, rewriting), and those that remove what nobody needs ([`ClusterJobs`]: sweeping,
//! garbage). What other incarnations left they remove in a
//! [`freshet_metadata::cluster::Term`] only.
//!
//! Jobs run concurrently, but change manifests one at a time (`publish`). A job deletes last, and
//! only after it has checked its right to do so once more.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use freshet_partition::load::MissingOffsets;
use freshet_partition::registry::Partitions;
use freshet_partition::{Partition, Sources};
use freshet_storage::cold::ColdError;
use freshet_storage::lane::queue::Lane;
use freshet_storage::lane::token::OwnerToken;
use freshet_storage::lane::writer::RolledFile;
use freshet_storage::lane::{LaneError, LanePaths};
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_world::env::store::{ObjectStore, StoreError};
use freshet_world::env::{Clock, Disk};

mod broker;
mod check;
mod cluster;
pub mod compact;
pub mod deletion;
pub mod descriptors;
pub mod garbage;
mod inbox;
pub mod inherit;
pub mod join;
mod kinds;
pub mod objects;
pub mod publish;
pub mod retention;
mod rewrite;
mod rounds;
pub mod split;
pub mod sweep;

pub use broker::BrokerJobs;
pub use cluster::ClusterJobs;

/// How long a job waits before it tries again after the first failure. The time doubles with each
/// failure, up to [`RETRY_AFTER_MAX`].
const RETRY_AFTER_FIRST: Duration = Duration::from_millis(100);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);

/// Why a job gave up. It then deletes nothing, not even the objects that it wrote itself: a
/// manifest may name them, and the sweeper finds out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JobError {
    /// The own lane has ended, or a lane cannot be read or written.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// Objects cannot be read or written, or are damaged.
    #[error(transparent)]
    Cold(#[from] ColdError),
    /// The metadata store refused a change or did not answer.
    #[error("metadata: {0}")]
    Metadata(String),
    /// Records that are to be split are damaged or missing.
    #[error(transparent)]
    Records(#[from] BadRecords),
    /// Another broker leads a partition by now, or will at once.
    #[error("the partition is led by another broker")]
    Moved,
    /// The engine stops; the next incarnation goes on.
    #[error("the lane is about to end")]
    Stopping,
}

/// Records of a partition that were acknowledged and cannot be split.
#[derive(Debug, Clone, thiserror::Error)]
#[error("partition {partition}, offset {offset}: {what}")]
pub struct BadRecords {
    /// The partition.
    pub partition: PartitionId,
    /// The first offset that is missing.
    pub offset: i64,
    /// What is wrong with them, for the log.
    pub what: String,
}

impl From<StoreError> for JobError {
    fn from(error: StoreError) -> Self {
        Self::Cold(error.into())
    }
}

/// What all jobs work with.
pub struct JobContext {
    /// The wall clock, by which records expire.
    pub clock: Arc<dyn Clock>,
    /// The shared file system.
    pub disk: Arc<dyn Disk>,
    /// The object store.
    pub store: Arc<dyn ObjectStore>,
    /// The cluster's prefix in the file system and in the object store.
    pub cluster: String,
    /// The incarnation of the broker whose jobs these are.
    pub incarnation: Incarnation,
    /// The lane of this incarnation.
    pub lane: Arc<Lane>,
    /// The owner token of this incarnation, which is checked before anything is deleted.
    pub token: Arc<OwnerToken>,
    /// What partitions share.
    pub sources: Arc<Sources>,
    /// The partitions that this incarnation leads.
    pub partitions: Arc<Partitions>,
    /// The objects that are being written and that no manifest names yet.
    pub making: Arc<objects::Making>,
    /// Lets one job at a time change manifests.
    pub turns: publish::Turns,
}

impl JobContext {
    fn lane_paths(&self, incarnation: Incarnation) -> LanePaths {
        LanePaths::new(&self.cluster, incarnation)
    }

    /// Takes a partition offline because its log has a hole, and logs it as an error. Other
    /// partitions are not affected. Its records stay where they are, for whoever repairs the log.
    fn take_offline(&self, bad: &BadRecords) {
        tracing::error!(%bad, "a partition is offline: acknowledged records cannot be read");
        let end = self.partitions.get(bad.partition).map(|partition| partition.bounds().end);
        self.partitions.take_offline(MissingOffsets {
            partition: bad.partition,
            from_offset: bad.offset,
            to_offset: end.unwrap_or(bad.offset),
        });
    }
}

/// Answers what jobs ask about topics.
pub trait TopicFacts: Send + Sync {
    /// What is kept of each partition of a topic; `None` where the topic is unknown.
    fn rules(&self, topic: TopicId) -> Option<retention::LogRules>;

    /// How a topic is compacted; `None` where `cleanup.policy` does not include `compact`.
    fn compaction(&self, topic: TopicId) -> Option<compact::CompactionRules>;

    /// For how long a partition remembers a producer that writes nothing, in ms
    /// (`producer.id.expiration.ms`).
    fn producer_expiration_ms(&self) -> i64;

    /// Whether the topic was deleted for good. A topic that is merely unknown, because the metadata
    /// store was restored from a backup, keeps its records.
    fn was_deleted(&self, topic: TopicId) -> bool;
}

/// A request to the job task.
pub enum JobMessage {
    /// A lane file has ended: split it.
    Rolled(RolledFile),
    /// Settle what these lanes hold, as soon as the partitions that were taken over with them are
    /// registered.
    Inherit(Vec<inherit::DeadLane>, oneshot::Receiver<()>),
    /// Move log starts forward, and answer once that is durable. Each partition may be named once.
    DeleteRecords(Vec<deletion::DeleteBefore>, oneshot::Sender<Result<(), JobError>>),
    /// Change the manifests of these partitions no more, which take no more batches, once
    /// everything that was requested before this is done. Answer with those that are wholly in
    /// objects then.
    Release(Vec<Arc<Partition>>, oneshot::Sender<Vec<Arc<Partition>>>),
    /// Answer once everything that was requested before this is done, and change no manifest
    /// afterwards.
    Drain(oneshot::Sender<()>),
}

/// The settings of jobs: how often they run, and how much they may use.
#[derive(Debug, Clone, Copy)]
pub struct JobSettings {
    /// The time between two rounds of retention.
    pub retention_interval: Duration,
    /// The time between two rounds of sweeping. An object is deleted after two rounds.
    pub sweep_interval: Duration,
    /// The time between two rounds of joining, of compaction (Kafka's `log.cleaner.backoff.ms`) and
    /// of the check.
    pub rewrite_interval: Duration,
    /// How many bytes joining, compaction and the check together may read per second.
    pub rewrite_bytes_per_s: u64,
    /// The memory, in bytes, for the keys of a partition that is being compacted.
    pub compaction_keys_bytes: usize,
    /// The sizes that splitting uses.
    pub split: split::SplitSettings,
    /// How long an ended lane waits for the metering agent's mark before it is removed; `None`: for
    /// ever.
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

/// Runs all jobs until the engine ends: first what earlier incarnations left is settled, then the
/// broker's jobs and those of the cluster, if it has the term for these, run concurrently. The
/// future is boxed so that it is compiled in this crate only, and not again in its caller's.
pub fn run(own: BrokerJobs, of_cluster: ClusterJobs) -> BoxFuture<'static, ()> {
    run_all(own, of_cluster).boxed()
}

async fn run_all(mut own: BrokerJobs, of_cluster: ClusterJobs) {
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

/// Waits, and doubles the time to wait for the next call, up to [`RETRY_AFTER_MAX`].
async fn back_off(wait: &mut Duration) {
    tokio::time::sleep(*wait).await;
    *wait = (*wait * 2).min(RETRY_AFTER_MAX);
}

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn report_outcome(job: &str, outcome: Result<(), JobError>) {
    match outcome {
        Ok(()) => {}
        // Not worth an error: the lane was closed by a clean stop, or what ended it was logged.
        Err(error @ (JobError::Stopping | JobError::Lane(LaneError::Closed(_)))) => {
            tracing::debug!(job, %error, "ended with the lane");
        }
        Err(error) => {
            tracing::error!(job, %error, "a job failed; what it was to delete stays for now");
        }
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
            read: true,
        };
        let segments: Vec<Segment> = (0..).zip(bytes).map(segment).collect();
        let end = segments.last().map_or(0, |last| last.end_offset);
        let (covered_end, last_stable_offset) = (end, end);
        let id = PartitionId::new(TopicId::from_u128(1), 0);
        Manifest { covered_end, last_stable_offset, segments, ..Manifest::empty(id) }
    }
}
