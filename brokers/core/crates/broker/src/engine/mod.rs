//! The engine: one incarnation of a broker, from its claim to its end.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::ResponseError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use freshet_configs::BrokerConfig;
use freshet_coordinator::group::{GroupCoordinator, GroupSettings};
use freshet_jobs::deletion::DeleteBefore;
use freshet_jobs::{JobMessage, JobSettings};
use freshet_metadata::cluster::{ClusterError, ClusterMetadata, Fence, Term};
use freshet_metadata::store::MetadataError;
use freshet_metadata::view::{MetadataView, ViewError};
use freshet_partition::Sources;
use freshet_partition::load::MissingOffsets;
use freshet_partition::registry::Partitions;
use freshet_storage::cache::blocks::ReadSettings;
use freshet_storage::cold::ColdError;
use freshet_storage::lane::LaneError;
use freshet_storage::lane::queue::Lane;
use freshet_storage::lane::writer::LaneSettings;
use freshet_storage::liveness::Liveness;
use freshet_storage::rules::Rules;
use freshet_storage::usage::EgressMeter;
use freshet_telemetry::Metrics;
use freshet_wire::ids::{Incarnation, TopicId};
use freshet_world::env::Environment;

pub mod configs;
pub mod descriptors;
pub mod freshness;
pub mod groups;
pub mod hidden_topics;
pub mod opening;
mod start;
pub mod takeover;
mod topic_jobs;
pub mod topics;

use freshness::Freshness;

/// What could not be done now is tried again after this long.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// A clean stop that takes longer is given up: the next start takes over instead.
const STOP_MAX: Duration = Duration::from_secs(20);

/// Everything that can be set of an engine.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The cluster's prefix in storage and in the metadata store.
    pub cluster: String,
    /// The broker's place in the cluster: its node id.
    pub slot: u32,
    /// For display.
    pub host: String,
    /// Sizes and times of the lane.
    pub lane: LaneSettings,
    /// Memory for the newest batches, in bytes.
    pub hot_bytes: usize,
    /// Bounds of reading from storage.
    pub reads: ReadSettings,
    /// How often jobs run.
    pub jobs: JobSettings,
    /// The group coordinator's.
    pub groups: GroupSettings,
    /// `offsets.topic.num.partitions`.
    pub offsets_partitions: i32,
    /// Static configs, by Kafka's names.
    pub configs: BrokerConfig,
    /// What is counted, for whoever wants to know.
    pub metrics: Arc<Metrics>,
    /// Which rules of safety hold: all, but in a simulation.
    pub rules: Rules,
}

impl EngineSettings {
    /// Defaults for a cluster.
    pub fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            slot: 0,
            host: String::new(),
            lane: LaneSettings::default(),
            hot_bytes: 256 << 20,
            reads: ReadSettings::default(),
            jobs: JobSettings::default(),
            groups: GroupSettings::default(),
            offsets_partitions: 50,
            configs: BrokerConfig::default(),
            metrics: Arc::default(),
            rules: Rules::full(),
        }
    }
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A later incarnation is alive: this one steps aside.
    #[error("incarnation {by} has taken over")]
    Superseded {
        /// Which one.
        by: Incarnation,
    },
    /// The shared file system, or an earlier lane.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// Metadata.
    #[error("metadata: {0}")]
    Metadata(#[from] ClusterError),
    /// The metadata store.
    #[error("metadata store: {0}")]
    Store(#[from] MetadataError),
    /// The image of the metadata.
    #[error("metadata: {0}")]
    View(#[from] ViewError),
    /// A partition whose log has a hole.
    #[error(transparent)]
    Missing(#[from] MissingOffsets),
    /// The object store.
    #[error(transparent)]
    Cold(#[from] ColdError),
}

/// One incarnation of a broker.
pub struct Engine {
    /// Kafka's cluster id.
    pub cluster_id: String,
    /// From which answers to unknown users are derived.
    pub decoy_secret: [u8; 32],
    /// The broker's node id.
    pub node_id: i32,
    /// Which incarnation it is.
    pub incarnation: Incarnation,
    /// The outside world.
    pub environment: Environment,
    /// What was set.
    pub settings: Arc<EngineSettings>,
    /// The cluster's metadata, for changes.
    pub metadata: Arc<ClusterMetadata>,
    /// Its image, for reads.
    pub view: Arc<MetadataView>,
    /// What is led.
    pub partitions: Arc<Partitions>,
    /// What partitions share.
    pub sources: Arc<Sources>,
    /// The way into the log.
    pub lane: Arc<Lane>,
    /// Whether the instance may act.
    pub liveness: Liveness,
    /// Consumer groups.
    pub groups: Arc<GroupCoordinator>,
    /// What was handed to whom.
    pub egress: Arc<EgressMeter>,
    fence: Fence,
    term: Term,
    freshness: Arc<Freshness>,
    opened: watch::Receiver<u64>,
    jobs: mpsc::UnboundedSender<JobMessage>,
    /// End with the engine.
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Engine {
    /// What every change of metadata by this incarnation compares.
    pub fn fence(&self) -> Option<Fence> {
        let guarded = self.settings.rules.hold(freshet_storage::rules::Rule::IncarnationIsLive);
        guarded.then_some(self.fence)
    }

    /// In which jobs of the cluster are done here.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Waits for a token check that begins after this call: what is read afterwards is no older
    /// than the call.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER` where the token is lost.
    pub async fn fresh(&self) -> Result<(), ResponseError> {
        self.freshness.fresh().await
    }

    /// Waits until every partition of a topic is open here, or the instance ends.
    pub async fn wait_open(&self, topic: TopicId, partitions: i32) {
        let mut opened = self.opened.clone();
        let open = |_: &u64| self.partitions.count_of(topic) >= partitions;
        tokio::select! {
            biased;
            // The keeper ends with the engine only.
            _ = opened.wait_for(open) => {}
            _ = self.liveness.ended() => {}
        }
    }

    /// Deletes the records of partitions before an offset each; each partition is named once.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER` where the instance ended, `KAFKA_STORAGE_ERROR` where storage did
    /// not take it; then it may have happened or not.
    pub async fn delete_records(&self, wanted: Vec<DeleteBefore>) -> Result<(), ResponseError> {
        let ended = ResponseError::NotLeaderOrFollower;
        let (done, deleted) = oneshot::channel();
        self.jobs.send(JobMessage::DeleteRecords(wanted, done)).map_err(|_| ended)?;
        match deleted.await {
            // Where nothing was to change, a broker that was superseded could say so too.
            Ok(Ok(())) => self.fresh().await,
            Ok(Err(error)) => {
                tracing::warn!(%error, "records are not deleted");
                let down = self.liveness.is_down();
                Err(if down { ended } else { ResponseError::KafkaStorageError })
            }
            Err(_) => Err(ended),
        }
    }

    /// Stops cleanly: everything is split, and the lane gets its end, so that the next start needs
    /// no fence. Where that takes too long the next start takes over instead.
    pub async fn stop(&self) {
        self.groups.close();
        let clean = tokio::time::timeout(STOP_MAX, self.stop_cleanly()).await;
        match clean {
            Ok(Ok(())) => tracing::info!("stopped cleanly"),
            Ok(Err(error)) => tracing::warn!(%error, "not stopped cleanly"),
            Err(_) => tracing::warn!("not stopped cleanly: storage is too slow"),
        }
        self.liveness.stop();
    }

    async fn stop_cleanly(&self) -> Result<(), StartError> {
        let now_ms = self.environment.clock.now_ms();
        self.egress.flush(&self.lane, self.environment.clock.as_ref(), now_ms);
        self.lane.roll().await?;
        let (done, drained) = oneshot::channel();
        let closed = || LaneError::Closed(self.incarnation);
        self.jobs.send(JobMessage::Drain(done)).map_err(|_| closed())?;
        drained.await.map_err(|_| closed())?;
        self.freshness.close();
        // What was handed out meanwhile; more is not.
        self.egress.close().await;
        self.egress.flush(&self.lane, self.environment.clock.as_ref(), now_ms);
        let end = self.lane.close().await?;
        self.metadata.close_incarnation(self.fence, takeover::sealed_end(end)).await?;
        Ok(())
    }
}
