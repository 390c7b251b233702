//! The engine: one incarnation of a broker, from its claim to its end.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::ResponseError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use freshet_configs::BrokerConfig;
use freshet_coordinator::group::{GroupCoordinator, GroupSettings};
use freshet_jobs::deletion::DeleteBefore;
use freshet_jobs::{JobError, JobMessage, JobSettings};
use freshet_metadata::cluster::{ClusterError, ClusterMetadata, Fence, Term};
use freshet_metadata::schema::{BrokerPlace, PartitionRecord, Stored};
use freshet_metadata::store::MetadataError;
use freshet_metadata::view::{MetadataView, Snapshot, ViewError};
use freshet_partition::Sources;
use freshet_partition::load::MissingOffsets;
use freshet_partition::registry::Partitions;
use freshet_storage::cache::blocks::ReadSettings;
use freshet_storage::cold::ColdError;
use freshet_storage::lane::LaneError;
use freshet_storage::lane::index::Usage;
use freshet_storage::lane::queue::Lane;
use freshet_storage::lane::writer::LaneSettings;
use freshet_storage::liveness::Liveness;
use freshet_storage::rules::Rules;
use freshet_storage::usage::EgressMeter;
use freshet_telemetry::Metrics;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_world::env::Environment;
use freshet_world::watch;

mod adoption;
pub mod configs;
pub mod copies;
pub mod freshness;
pub mod groups;
mod handover;
pub mod hidden_topics;
mod invariants;
mod kinds;
pub mod opening;
pub mod reading;
mod start;
pub mod status;
mod succession;
pub mod takeover;
mod topic_jobs;
pub mod topics;

use copies::Copies;
use freshness::Freshness;
use reading::BatchReading;
use topics::TopicKeeper;

/// How long the engine's tasks wait before they try again what failed.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// A clean stop that takes longer is given up, and the next start takes over instead. By default a
/// broker gets 30 s to end; the rest of that is for its connections.
const STOP_MAX: Duration = Duration::from_secs(20);

/// The settings of an engine.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The cluster's prefix in storage and in the metadata store.
    pub cluster: String,
    /// The broker's place in the cluster: its node id.
    pub slot: u32,
    /// The machine's name, which is recorded for display only.
    pub host: String,
    /// Its zone and release, and how the cluster's other brokers reach it.
    pub place: BrokerPlace,
    /// Sizes and times of the lane.
    pub lane: LaneSettings,
    /// Memory for the newest batches, in bytes.
    pub hot_bytes: usize,
    /// Memory that all decompressions of produced batches may hold together, in bytes.
    pub decompression_bytes: usize,
    /// Bounds of reading from storage.
    pub reads: ReadSettings,
    /// How often jobs run.
    pub jobs: JobSettings,
    /// The settings of the group coordinator.
    pub groups: GroupSettings,
    /// The number of partitions of `__consumer_offsets` where the topic does not exist yet
    /// (`offsets.topic.num.partitions`).
    pub offsets_partitions: i32,
    /// Static configs, by Kafka's names.
    pub configs: BrokerConfig,
    /// The metrics that the engine counts in.
    pub metrics: Arc<Metrics>,
    /// Which rules of safety hold: all of them, except in a simulation.
    pub rules: Rules,
}

impl EngineSettings {
    /// The default settings for the cluster with this prefix.
    pub fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            slot: 0,
            host: String::new(),
            place: BrokerPlace::default(),
            lane: LaneSettings::default(),
            hot_bytes: 256 << 20,
            decompression_bytes: 64 << 20,
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
    /// A later incarnation is alive and leads the cluster's partitions.
    #[error("incarnation {by} has taken over")]
    Superseded {
        /// The later incarnation.
        by: Incarnation,
    },
    /// The shared file system failed, or an earlier lane is damaged.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// A change of the cluster's metadata failed.
    #[error("metadata: {0}")]
    Metadata(#[from] ClusterError),
    /// The metadata store could not be opened or read.
    #[error("metadata store: {0}")]
    Store(#[from] MetadataError),
    /// The image of the metadata could not be opened.
    #[error("metadata: {0}")]
    View(#[from] ViewError),
    /// A partition's log has a hole. It takes that partition offline and does not stop the start.
    #[error(transparent)]
    Missing(#[from] MissingOffsets),
    /// The object store failed, or an object is damaged.
    #[error(transparent)]
    Cold(#[from] ColdError),
}

/// One incarnation of a broker, while it leads the cluster's partitions.
pub struct Engine {
    /// The cluster id that Kafka clients see.
    pub cluster_id: String,
    /// The secret of the cluster from which the salts of unknown users are derived.
    pub decoy_secret: [u8; 32],
    /// The broker's node id.
    pub node_id: i32,
    /// The incarnation.
    pub incarnation: Incarnation,
    /// The disk, the object store, the clock and the source of randomness.
    pub environment: Environment,
    /// The settings with which it was started.
    pub settings: Arc<EngineSettings>,
    /// The cluster's metadata, through which changes go.
    pub metadata: Arc<ClusterMetadata>,
    /// The image of it, from which everything is read.
    pub view: Arc<MetadataView>,
    /// The partitions that it leads.
    pub partitions: Arc<Partitions>,
    /// Copies of partitions that other brokers lead.
    pub copies: Copies,
    /// What all partitions share: caches, readers, metrics.
    pub sources: Arc<Sources>,
    /// The lane: every batch is written through it.
    pub lane: Arc<Lane>,
    /// Reads what producers sent, before it is staged.
    pub reading: BatchReading,
    /// Whether the incarnation may still act.
    pub liveness: Liveness,
    /// The coordinator of consumer groups.
    pub groups: Arc<GroupCoordinator>,
    /// Counts the bytes that were handed to each client, for the bill.
    pub egress: Arc<EgressMeter>,
    keeper: Arc<TopicKeeper>,
    /// Held by what changes which partitions are led: an adoption, or the end of a hand-over.
    adopting: tokio::sync::Mutex<()>,
    /// Held by the hand-over that goes on.
    handing: tokio::sync::Mutex<()>,
    fence: Fence,
    term: watch::Sender<Option<Term>>,
    freshness: Arc<Freshness>,
    opened: watch::Receiver<u64>,
    jobs: mpsc::UnboundedSender<JobMessage>,
    /// Held so that the tasks end when the engine is dropped.
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Engine {
    /// The condition of this incarnation's metadata transactions: each fails once a later
    /// incarnation has fenced this one. `None` only in a simulation without that rule.
    pub fn fence(&self) -> Option<Fence> {
        let guarded = self.settings.rules.hold(freshet_storage::rules::Rule::IncarnationIsLive);
        guarded.then_some(self.fence)
    }

    /// The registration of this incarnation, by which it claims what only one may have.
    pub fn registration(&self) -> Fence {
        self.fence
    }

    /// The term in which this broker runs the jobs of the cluster, if it does. The only broker of a
    /// cluster has one from its start to its end.
    pub fn term(&self) -> Option<Term> {
        *self.term.borrow()
    }

    /// Begins or ends the term of a broker among several, which was elected controller or deposed.
    pub fn set_term(&self, term: Option<Term>) {
        self.term.send_replace(term);
    }

    /// Whether the cluster has other brokers, of which one is elected controller.
    pub fn has_peers(&self) -> bool {
        self.view.has_several_brokers()
    }

    /// Waits until the cluster has other brokers, or the engine ends. From then on this broker runs
    /// the jobs of the cluster only where it is elected.
    pub async fn wait_peers(&self) {
        self.wait_until(|_| self.has_peers()).await;
    }

    /// Waits until something holds of the image and of what is open here, or the engine ends.
    pub async fn wait_until(&self, holds: impl Fn(&Snapshot) -> bool) {
        if holds(&self.view.snapshot()) {
            return;
        }
        let (mut changes, mut opened) = (self.view.subscribe(), self.opened.clone());
        while !holds(&self.view.snapshot()) {
            let has_ended = tokio::select! {
                biased;
                change = changes.next() => change.is_err(),
                change = opened.changed() => change.is_err(),
            };
            if has_ended {
                return;
            }
        }
    }

    /// Writes a block of usage without entries to the lane, so that [`Lane::progress`] shows
    /// whether storage works.
    pub fn prove_storage(&self) {
        let now_ms = self.environment.clock.now_ms();
        let nothing = Usage { window_start_ms: now_ms, window_end_ms: now_ms, entries: Vec::new() };
        // A lane that takes nothing more has ended, and so does the broker.
        let _ = self.lane.stage_usage(nothing);
    }

    /// Waits for a check of the owner token that begins after this call. What is read afterwards is
    /// then no older than the call.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER` where another incarnation has fenced this one, or the engine ends.
    pub async fn fresh(&self) -> Result<(), ResponseError> {
        self.freshness.fresh().await
    }

    /// Waits until the image shows `partitions` partitions of the topic, each with a leader, and
    /// those that this broker leads are open; or the engine ends.
    pub async fn wait_open(&self, topic: TopicId, partitions: i32) {
        tokio::select! {
            biased;
            () = self.wait_until(|seen| self.is_open(seen, topic, partitions)) => {}
            _ = self.liveness.ended() => {}
        }
    }

    fn is_open(&self, snapshot: &Snapshot, topic: TopicId, partitions: i32) -> bool {
        let Some(topic) = snapshot.led_topic(topic) else { return false };
        let is_ready = |(index, stored): (i32, &Arc<Stored<PartitionRecord>>)| {
            let is_own = stored.record.leader == Some(self.incarnation);
            let id = PartitionId::new(topic.record.id, index);
            stored.record.leader.is_some() && (!is_own || self.partitions.serves(id))
        };
        topic.record.partitions >= partitions && (0..).zip(&topic.partitions).all(is_ready)
    }

    /// Deletes the records of each partition that precede the offset given for it. A partition may
    /// be named once only. Returns once the new log starts are durable.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER` where the engine ended; `KAFKA_STORAGE_ERROR` where storage failed,
    /// in which case the records may have been deleted or not.
    pub async fn delete_records(&self, deletions: Vec<DeleteBefore>) -> Result<(), ResponseError> {
        let ended = ResponseError::NotLeaderOrFollower;
        let (done, deleted) = oneshot::channel();
        self.jobs.send(JobMessage::DeleteRecords(deletions, done)).map_err(|_| ended)?;
        match deleted.await {
            // Checked, because nothing may have been written: where the log starts were there
            // already, an incarnation that was fenced gets here as well.
            Ok(Ok(())) => self.fresh().await,
            Ok(Err(JobError::Moved)) => Err(ended),
            Ok(Err(error)) => {
                tracing::warn!(%error, "records were not deleted");
                let down = self.liveness.is_down();
                Err(if down { ended } else { ResponseError::KafkaStorageError })
            }
            Err(_) => Err(ended),
        }
    }

    /// Stops cleanly: all batches are split into objects and the lane is closed, so that the next
    /// start has nothing to fence and little to read. Where this takes longer than `STOP_MAX` it
    /// is given up, and the next start takes over instead.
    pub async fn stop(&self) {
        self.groups.close();
        let clean = tokio::time::timeout(STOP_MAX, self.stop_cleanly()).await;
        match clean {
            Ok(Ok(())) => tracing::info!("stopped cleanly"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "not stopped cleanly: the next start takes over");
            }
            Err(_) => {
                tracing::warn!(
                    "not stopped cleanly: storage took too long; the next start takes over"
                );
            }
        }
        self.liveness.stop();
    }

    /// The order matters: usage is written before the last file ends, so that it is split with it;
    /// the splitter is drained before the lane closes, because it writes to the lane; and nothing
    /// is fresh any more before the close is durable, because nobody fences a closed lane.
    async fn stop_cleanly(&self) -> Result<(), StartError> {
        let now_ms = self.environment.clock.now_ms();
        self.egress.flush(&self.lane, self.environment.clock.as_ref(), now_ms);
        self.lane.roll().await?;
        let (done, drained) = oneshot::channel();
        let closed = || LaneError::Closed(self.incarnation);
        self.jobs.send(JobMessage::Drain(done)).map_err(|_| closed())?;
        drained.await.map_err(|_| closed())?;
        self.freshness.close();
        // Usage once more: clients fetched while the splitter was drained. From here on the meter
        // is closed, and fetches fail.
        self.egress.close().await;
        self.egress.flush(&self.lane, self.environment.clock.as_ref(), now_ms);
        let end = self.lane.close().await?;
        self.metadata.close_incarnation(self.fence, succession::sealed_end(end)).await?;
        Ok(())
    }
}
