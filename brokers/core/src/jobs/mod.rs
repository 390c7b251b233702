//! Background work of one incarnation: splitting ended lane files, retention, and sweeping.
//!
//! One task runs the jobs one after another, so no two of them ever change a partition's manifest
//! at the same time. Each deletes last, and only after it has looked again that it may.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::cold::ColdError;
use crate::cold::manifest::Manifest;
use crate::cold::store::{ObjectStore, StoreError, StoreResult};
use crate::env::{Clock, Disk};
use crate::ids::{Incarnation, PartitionId, TopicId};
use crate::lane::index::{InstallEntry, ManifestRef};
use crate::lane::queue::{InstallEffect, Lane};
use crate::lane::token::OwnerToken;
use crate::lane::writer::RolledFile;
use crate::lane::{LaneError, LanePaths};
use crate::partition::registry::Partitions;
use crate::partition::{Partition, Sources};

pub mod deletion;
pub mod garbage;
pub mod inherit;
pub mod retention;
pub mod split;
pub mod sweep;

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
    #[error("partition {partition}: {what}")]
    Records {
        /// Which partition.
        partition: PartitionId,
        /// What is wrong.
        what: String,
    },
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
}

impl JobContext {
    fn lane_paths(&self, incarnation: Incarnation) -> LanePaths {
        LanePaths::new(&self.cluster, incarnation)
    }

    /// Repeats a put until the store answers: an object store that is down delays jobs, not
    /// clients.
    async fn put_when_possible<F>(&self, mut put: impl FnMut() -> F) -> StoreResult<()>
    where
        F: Future<Output = StoreResult<()>>,
    {
        let mut wait = RETRY_AFTER_FIRST;
        loop {
            match put().await {
                Err(StoreError::Unavailable(what)) => {
                    tracing::warn!(what, wait_ms = wait.as_millis(), "object store: trying again");
                    pause(&mut wait).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Publishes the manifest that follows a partition's current one, under the next free name.
    async fn publish_manifest(
        &self,
        partition: &Partition,
        mut manifest: Manifest,
    ) -> Result<Arc<Manifest>, JobError> {
        manifest.name = next_name(partition);
        loop {
            let key = Manifest::key(&self.cluster, manifest.partition, manifest.name);
            let bytes = manifest.encode();
            match self.put_when_possible(|| self.store.put_new(&key, vec![bytes.clone()])).await {
                // An earlier try under this name may have been another manifest: leave it be.
                Err(StoreError::Exists(_)) => manifest.name.number += 1,
                outcome => {
                    outcome?;
                    return Ok(Arc::new(manifest));
                }
            }
        }
    }

    /// Makes published manifests count.
    async fn install(
        &self,
        manifests: Vec<(Arc<Partition>, Arc<Manifest>)>,
    ) -> Result<(), JobError> {
        let entries = manifests
            .iter()
            .map(|(partition, manifest)| InstallEntry {
                partition: partition.id(),
                manifest: manifest.name,
            })
            .collect();
        let effect: InstallEffect = Box::new(move || {
            for (partition, manifest) in manifests {
                partition.apply(manifest);
            }
        });
        if self.sources.rules.hold(crate::rules::Rule::InstallBeforeUse) {
            Ok(self.lane.install(entries, effect).await?)
        } else {
            effect();
            Ok(())
        }
    }
}

fn next_name(partition: &Partition) -> ManifestRef {
    let epoch = partition.epoch();
    let number = match partition.manifest_name() {
        Some(name) if name.epoch == epoch => name.number + 1,
        _ => 0,
    };
    ManifestRef { epoch, number }
}

/// What jobs ask about topics.
pub trait TopicFacts: Send + Sync {
    /// What to keep of a partition; `None` where its topic is not cleaned by deletion.
    fn retention(&self, partition: PartitionId) -> Option<retention::Retention>;

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
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            retention_interval: Duration::from_secs(60),
            sweep_interval: Duration::from_secs(300),
        }
    }
}

/// Runs all jobs until the instance ends.
pub async fn run(
    context: Arc<JobContext>,
    topics: Arc<dyn TopicFacts>,
    inherited: inherit::Inherited,
    settings: JobSettings,
    mut messages: mpsc::UnboundedReceiver<JobMessage>,
) {
    let standing = context.sources.standing.clone();
    let work = async {
        let mut splitter = split::Splitter::new(Arc::clone(&context));
        settle(&inherited, &mut splitter).await;
        let mut sweeper = sweep::Sweeper::default();
        let mut garbage = garbage::Garbage::default();
        let mut retention_due = ticks(settings.retention_interval);
        let mut sweep_due = ticks(settings.sweep_interval);
        loop {
            tokio::select! {
                biased;
                message = messages.recv() => match message {
                    Some(JobMessage::Rolled(file)) => split_file(&mut splitter, &file).await,
                    // Whoever asked may have given up waiting.
                    Some(JobMessage::DeleteRecords(wanted, done)) => {
                        drop(done.send(deletion::delete_records(&context, &wanted).await));
                    }
                    Some(JobMessage::Drain(done)) => drop(done.send(())),
                    None => return,
                },
                _ = retention_due.tick() => {
                    report("retention", retention::enforce(&context, topics.as_ref()).await);
                }
                _ = sweep_due.tick() => {
                    report("sweep", sweeper.sweep(&context, topics.as_ref()).await);
                    let remains = inherited.remains.as_ref();
                    report("garbage", garbage.collect(&context, remains).await);
                }
            }
        }
    };
    tokio::select! {
        biased;
        _ = standing.ended() => {}
        () = work => {}
    }
}

/// Settles the inheritance however often it takes: new segments follow the inherited ones.
async fn settle(inherited: &inherit::Inherited, splitter: &mut split::Splitter) {
    let mut wait = RETRY_AFTER_FIRST;
    while let Err(error) = inherited.settle(splitter).await {
        report("inherit", Err(error));
        pause(&mut wait).await;
    }
}

/// Splits a file however often it takes: files go in the order in which they were written, since a
/// lane with a file missing between others counts as damaged.
async fn split_file(splitter: &mut split::Splitter, file: &RolledFile) {
    let mut wait = RETRY_AFTER_FIRST;
    while let Err(error) = splitter.split_file(file).await {
        report("split", Err(error));
        pause(&mut wait).await;
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
        Err(JobError::Lane(LaneError::Closed(_))) => tracing::debug!(job, "ended with the lane"),
        Err(error) => tracing::error!(job, %error, "job failed; what it was to delete stays"),
    }
}
