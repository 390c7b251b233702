//! Keeps the open partitions in step with the metadata store: those of new topics are opened, those
//! of deleted topics closed. Answers also what jobs ask about topics and earlier lanes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::StartError;
use super::configs::BrokerConfigs;
use freshet_configs::TopicConfig;
use freshet_jobs::TopicFacts;
use freshet_jobs::compact::CompactionRules;
use freshet_jobs::garbage::Remains;
use freshet_jobs::inherit::Extents;
use freshet_jobs::retention::LogRules;
use freshet_metadata::cluster::{
    ClusterError, ClusterMetadata, Fence, PartitionUpdate, Term, leader_of, placed_leaders,
};
use freshet_metadata::schema::{IncarnationRecord, ManifestName, Retention, Stored};
use freshet_metadata::view::{MetadataView, Snapshot, Topic, Topics};
use freshet_partition::load::Opening;
use freshet_partition::registry::Partitions;
use freshet_partition::{Partition, Sources};
use freshet_storage::cold::ColdError;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::lane::LaneError;
use freshet_storage::lane::index::InstallEntry;
use freshet_storage::lane::queue::Lane;
use freshet_storage::names::ManifestRef;
use freshet_wire::ids::{Epoch, Incarnation, PartitionId, TopicId};
use freshet_world::env::Clock;
use freshet_world::env::store::ObjectStore;
use freshet_world::watch;

/// How many manifests are read at the same time. Each takes a round trip to the object store and
/// little memory; a start has as many of them as the cluster has partitions.
pub(super) const READS_AT_ONCE: usize = 256;

/// How long [`Extents::trim`] waits for the image to show what its own broker wrote. It is
/// usually there within milliseconds; after this time the trim fails and is tried again.
const VIEW_TIME: Duration = Duration::from_secs(5);

/// Opens and closes partitions.
pub struct TopicKeeper {
    /// The cluster's metadata.
    pub metadata: Arc<ClusterMetadata>,
    /// The image of it.
    pub view: Arc<MetadataView>,
    /// The condition of this incarnation's metadata transactions.
    pub fence: Fence,
    /// The open partitions.
    pub partitions: Arc<Partitions>,
    /// This incarnation's lane.
    pub lane: Arc<Lane>,
    /// What all partitions share.
    pub sources: Arc<Sources>,
    /// What is kept of each partition.
    pub rules: Arc<dyn TopicFacts>,
    /// The wall clock, by which records expire.
    pub clock: Arc<dyn Clock>,
    /// The object store that holds the manifests.
    pub store: Arc<dyn ObjectStore>,
    /// The cluster's prefix in it.
    pub cluster: String,
    /// Asks for another look at all partitions.
    pub again: Notify,
    /// Counts how often the open partitions were brought in step, for those who wait for a topic.
    pub changes: watch::Sender<u64>,
}

/// Why topics are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Something changed.
    First,
    /// Something was left to do a while ago.
    Again,
}

/// Which of a topic's partitions that nobody leads a broker takes at once.
struct Share {
    incarnation: Incarnation,
    leaders: Vec<Incarnation>,
}

impl Share {
    fn of(incarnation: Incarnation, snapshot: &Snapshot, topic: &Topic) -> Self {
        let leaders = placed_leaders(&snapshot.incarnations, &topic.record.name);
        Self { incarnation, leaders }
    }

    fn has(&self, index: i32) -> bool {
        leader_of(&self.leaders, index).is_none_or(|leader| leader == self.incarnation)
    }
}

impl TopicKeeper {
    /// Follows the image of the metadata until it ends. Calls `opened` with every partition that it
    /// opens.
    pub async fn run(self: Arc<Self>, opened: impl Fn(Arc<Partition>) + Send) {
        let mut changes = self.view.subscribe();
        let mut failed = self.reconcile(None, Look::First, &opened).await;
        loop {
            let retry = async {
                if failed {
                    tokio::time::sleep(super::RETRY_AFTER).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                change = changes.next() => match change {
                    Ok(change) => {
                        let topics = change.topics.into_iter().collect();
                        failed |= self.reconcile(Some(topics), Look::First, &opened).await;
                    }
                    Err(_) => return,
                },
                () = self.again.notified() => {
                    failed = self.reconcile(None, Look::First, &opened).await;
                }
                () = retry => failed = self.reconcile(None, Look::Again, &opened).await,
            }
        }
    }

    /// Brings the open partitions of these topics (`None`: of all topics) in step. Returns whether
    /// some could not be opened yet, so that the caller tries again.
    async fn reconcile(
        &self,
        topics: Option<Vec<TopicId>>,
        look: Look,
        opened: &(impl Fn(Arc<Partition>) + Send),
    ) -> bool {
        let snapshot = self.view.snapshot();
        let all = || snapshot.led_topics().map(|topic| topic.record.id).collect();
        let topics = topics.unwrap_or_else(all);
        let mut failed = false;
        for id in topics {
            let seen = snapshot.topics.by_id(id).is_some();
            if !seen {
                self.forget_metrics(id, &snapshot.topics);
            }
            let Some(topic) = snapshot.led_topic(id) else {
                self.partitions.remove_topic(id);
                continue;
            };
            self.relabel(topic, seen);
            match self.open_new(topic, (&snapshot, look), opened).await {
                Ok(all_led) => failed |= !all_led,
                Err(error) => {
                    let topic = topic.record.name.as_str();
                    tracing::warn!(topic, %error, "cannot open all partitions of a topic yet");
                    failed = true;
                }
            }
        }
        self.changes.send_modify(|changes| *changes += 1);
        failed
    }

    /// Gives the open partitions the topic's current name, and has them counted in the metrics only
    /// while clients see the topic. What expired while they did not stays hidden.
    fn relabel(&self, topic: &Topic, seen: bool) {
        let name: Arc<str> = topic.record.name.as_str().into();
        let mut rules = None;
        for partition in self.partitions.of_topic(topic.record.id) {
            if seen && !partition.serves_clients() {
                let rules = rules.get_or_insert_with(|| self.rules.rules(topic.record.id));
                if let Some(rules) = rules {
                    rules.hide_expired(&partition, self.clock.now_ms());
                }
            }
            partition.relabel(&name, seen);
        }
    }

    /// Stops reporting the metrics of a topic that is gone, unless another topic has its name.
    fn forget_metrics(&self, id: TopicId, known: &Topics) {
        let first = self.partitions.get(PartitionId::new(id, 0));
        let name = first.map(|partition| partition.topic());
        if let Some(name) = name.filter(|name| known.by_name(name).is_none()) {
            self.sources.metrics.forget_topic(&name);
        }
    }

    /// Opens the partitions of a topic that are not open. Those that nobody leads are taken over
    /// first, in one transaction: this broker's share of them, or all where nobody took the others
    /// for a while. A partition that another incarnation leads stays closed. Returns whether all
    /// have a leader.
    async fn open_new(
        &self,
        topic: &Topic,
        (snapshot, look): (&Snapshot, Look),
        opened: &(impl Fn(Arc<Partition>) + Send),
    ) -> Result<bool, StartError> {
        let mut epochs = BTreeMap::new();
        let mut unled = Vec::new();
        let mut all_led = true;
        let mut share = None;
        for (index, stored) in (0..).zip(&topic.partitions) {
            let partition = PartitionId::new(topic.record.id, index);
            if self.partitions.contains(partition) {
                continue;
            }
            let record = &stored.record;
            match record.leader {
                Some(leader) if leader == self.fence.incarnation => {
                    // What others wrote of it is loaded by whoever takes it over.
                    if record.extents.iter().all(|extent| extent.incarnation == leader) {
                        epochs.insert(partition, (record.epoch, record.manifest));
                    }
                }
                Some(_) => {}
                None if look == Look::First
                    && !share
                        .get_or_insert_with(|| Share::of(self.fence.incarnation, snapshot, topic))
                        .has(index) =>
                {
                    all_led = false;
                }
                None => {
                    if let Some(record) = record.led_by(self.fence.incarnation, |_| None) {
                        let update = PartitionUpdate::takeover(partition, stored, record);
                        unled.push(update.map_err(ClusterError::from)?);
                    }
                }
            }
        }
        let requested_epochs: BTreeMap<_, _> =
            unled.iter().map(|update| (update.partition, update.record.epoch)).collect();
        let taken = self.metadata.take_over(self.fence, unled).await?;
        self.view.wait_for(taken.revision).await.map_err(|_| self.closed())?;
        epochs.extend(taken.updated.iter().map(|(id, _)| (*id, (requested_epochs[id], None))));
        let mut held = Vec::new();
        let mut failed = None;
        let mut loaded = stream::iter(epochs)
            .map(|(id, led)| async move { (led.0, self.load(topic, id, led).await) })
            .buffered(READS_AT_ONCE);
        while let Some((epoch, loaded)) = loaded.next().await {
            match loaded {
                Ok(partition) if self.partitions.insert_held(&partition) => {
                    held.push((partition, epoch));
                }
                Ok(_) => {}
                // The others are served.
                Err(error) => failed = Some(error),
            }
        }
        self.serve(held, opened).await?;
        failed.map_or(Ok(all_led), Err)
    }

    /// Loads a partition that nobody else leads, from the manifest that counts.
    async fn load(
        &self,
        topic: &Topic,
        id: PartitionId,
        (epoch, handed): (Epoch, Option<ManifestName>),
    ) -> Result<Arc<Partition>, StartError> {
        let opening = Opening {
            id,
            topic: topic.record.name.as_str().into(),
            epoch,
            manifest: self.manifest(id, handed).await?,
            tail: Vec::new(),
            producers_since_ms: i64::MIN,
        };
        let partition = Partition::open(opening, Arc::clone(&self.sources))?;
        if let (Some(_), Some(rules)) = (handed, self.rules.rules(id.topic)) {
            rules.hide_expired(&partition, self.clock.now_ms());
        }
        Ok(partition)
    }

    /// Serves partitions that are held, unless they were handed over meanwhile.
    async fn serve(
        &self,
        held: Vec<(Arc<Partition>, Epoch)>,
        opened: &(impl Fn(Arc<Partition>) + Send),
    ) -> Result<(), LaneError> {
        let named = self.name_manifests(&held).await;
        for (partition, epoch) in held {
            if named.is_ok() && self.is_led(partition.id(), epoch) {
                self.partitions.unhold(&partition);
                opened(partition);
            } else {
                // It may have come back since, and is opened anew then.
                self.partitions.remove(&partition);
                self.look_again();
            }
        }
        named
    }

    /// Has the own lane name the manifests that count of partitions that were handed over, before
    /// they are served: a metadata store that is restored from an earlier backup does not name them
    /// any more, and nor does the lane of the former leader.
    async fn name_manifests(
        &self,
        partitions: &[(Arc<Partition>, Epoch)],
    ) -> Result<(), LaneError> {
        let named = partitions.iter().filter_map(|(partition, _)| {
            let manifest = partition.manifest_name()?;
            Some(InstallEntry { partition: partition.id(), manifest })
        });
        let entries: Vec<_> = named.collect();
        if entries.is_empty() {
            return Ok(());
        }
        self.lane.install(entries, Box::new(|| {})).await
    }

    /// Whether the image shows this incarnation as the leader of a partition under an epoch.
    fn is_led(&self, id: PartitionId, epoch: Epoch) -> bool {
        let snapshot = self.view.snapshot();
        let stored = snapshot.led_topic(id.topic).and_then(|topic| topic.partition(id.index));
        stored.is_some_and(|stored| {
            stored.record.leader == Some(self.fence.incarnation) && stored.record.epoch == epoch
        })
    }

    /// Has all partitions looked at again.
    pub fn look_again(&self) {
        self.again.notify_one();
    }

    fn closed(&self) -> LaneError {
        LaneError::Closed(self.fence.incarnation)
    }

    /// The manifest with which a partition was handed over; an empty one for a new partition.
    async fn manifest(
        &self,
        id: PartitionId,
        handed: Option<ManifestName>,
    ) -> Result<Arc<Manifest>, StartError> {
        let Some(ManifestName { epoch, number }) = handed else {
            return Ok(Arc::new(Manifest::empty(id)));
        };
        let key = Manifest::key(&self.cluster, id, ManifestRef { epoch, number });
        let bytes = self.store.get(&key).await.map_err(ColdError::from)?;
        Ok(Arc::new(Manifest::decode(&bytes)?))
    }
}

impl TopicKeeper {
    /// Brings partitions in step that were opened beside [`TopicKeeper::run`].
    pub fn note_adopted(&self, adopted: &[Arc<Partition>]) {
        // After they were registered: a deletion that comes later finds them.
        let snapshot = self.view.snapshot();
        let topics: BTreeSet<TopicId> = adopted.iter().map(|it| it.id().topic).collect();
        for id in topics {
            match snapshot.led_topic(id) {
                Some(topic) => self.relabel(topic, snapshot.topics.by_id(id).is_some()),
                None => self.partitions.remove_topic(id),
            }
        }
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Waits until the image shows this incarnation as the leader of these partitions, which it has
    /// written before.
    async fn seen_to_lead(&self, partitions: &[PartitionId]) {
        let mut changes = self.view.subscribe();
        let led = |seen: &Snapshot| {
            partitions.iter().all(|id| {
                let topic = seen.led_topic(id.topic);
                let partition = topic.and_then(|topic| topic.partition(id.index));
                partition.is_none_or(|stored| stored.record.leader == Some(self.fence.incarnation))
            })
        };
        while !led(&self.view.snapshot()) && changes.next().await.is_ok() {}
    }
}

#[async_trait]
impl Extents for TopicKeeper {
    async fn trim(&self, partitions: &[PartitionId]) -> Result<(), String> {
        // After the timeout the loop below fails for the partition that is not seen yet.
        let _ = timeout(VIEW_TIME, self.seen_to_lead(partitions)).await;
        let mine = self.fence.incarnation;
        let mut updates = Vec::new();
        let snapshot = self.view.snapshot();
        for id in partitions {
            let topic = snapshot.led_topic(id.topic);
            let Some(stored) = topic.and_then(|topic| topic.partition(id.index)) else { continue };
            if stored.record.leader != Some(mine) {
                // It must not be skipped: its extents name lanes whose files are removed next.
                return Err(format!("{id} is not seen to be led by this incarnation yet"));
            }
            let epoch = stored.record.epoch;
            let record = stored.record.without_extents(|extent| extent.epoch < epoch);
            if record != stored.record {
                let update = PartitionUpdate::trim(*id, stored, record);
                updates.push(update.map_err(|broken| broken.to_string())?);
            }
        }
        let trimmed = self.metadata.trim_extents(self.fence, updates).await;
        let trimmed = trimmed.map_err(|error| error.to_string())?;
        if let Some(lost) = trimmed.lost.first() {
            return Err(format!("{lost} was changed by somebody else meanwhile"));
        }
        self.view.wait_for(trimmed.revision).await.map_err(|error| error.to_string())
    }

    fn named(&self) -> BTreeSet<Incarnation> {
        let snapshot = self.view.snapshot();
        let partitions = snapshot.led_topics().flat_map(|topic| &topic.partitions);
        let extents = partitions.flat_map(|stored| &stored.record.extents);
        extents.map(|extent| extent.incarnation).collect()
    }
}

/// The incarnations that have ended, and when. Earlier releases, under which a cluster had one
/// broker, did not record the moment: such a one had ended when the next one was started.
fn ends_of(
    incarnations: &BTreeMap<Incarnation, Stored<IncarnationRecord>>,
) -> BTreeMap<Incarnation, i64> {
    let mut ends = BTreeMap::new();
    let mut next_started_ms = None;
    for (incarnation, Stored { record, .. }) in incarnations.iter().rev() {
        let ended_ms = record.ended_at_ms.or(next_started_ms);
        if let (Some(_), Some(ended_ms)) = (record.sealed_end, ended_ms) {
            ends.insert(*incarnation, ended_ms);
        }
        next_started_ms = Some(record.started_at_ms);
    }
    ends
}

#[async_trait]
impl Remains for TopicKeeper {
    async fn unended(&self) -> Result<BTreeSet<Incarnation>, String> {
        let unended = self.metadata.unended_incarnations().await;
        Ok(unended.map_err(|error| error.to_string())?.into_keys().collect())
    }

    fn ended(&self) -> BTreeMap<Incarnation, i64> {
        let snapshot = self.view.snapshot();
        let mut ended = ends_of(&snapshot.incarnations);
        let named = self.named();
        ended.retain(|incarnation, _| !named.contains(incarnation));
        ended
    }

    fn deleted_before(&self, before_ms: i64) -> BTreeSet<TopicId> {
        let snapshot = self.view.snapshot();
        let long_ago = snapshot.deleted_topics.iter();
        let long_ago = long_ago.filter(|(_, deleted)| deleted.deleted_at_ms < before_ms);
        long_ago.map(|(id, _)| *id).collect()
    }

    async fn forget_incarnation(&self, term: Term, incarnation: Incarnation) -> Result<(), String> {
        let guard = Some(term.fence());
        let forgotten = self.metadata.remove_incarnation(guard, incarnation).await;
        forgotten.map_err(|error| error.to_string())
    }

    async fn forget_deleted(&self, term: Term, topics: BTreeSet<TopicId>) -> Result<(), String> {
        let guard = Some(term.fence());
        let forgotten = self.metadata.forget_deleted_topics(guard, topics).await;
        forgotten.map_err(|error| error.to_string())
    }
}

/// Answers what jobs ask about topics from the image of the metadata.
pub struct ViewedTopics {
    /// The image of the metadata.
    pub view: Arc<MetadataView>,
    /// The broker configs, which hold for topics that do not set a config themselves.
    pub configs: BrokerConfigs,
}

impl TopicFacts for ViewedTopics {
    fn rules(&self, topic: TopicId) -> Option<LogRules> {
        let snapshot = self.view.snapshot();
        let record = &snapshot.led_topic(topic)?.record;
        let present = if snapshot.topics.by_id(topic).is_some() {
            let config = TopicConfig::resolve(&record.configs, &self.configs.current());
            Retention { ms: config.retention_ms, bytes: config.retention_bytes }
        } else {
            // What clients do not see can be restored, and is kept for that.
            Retention { ms: None, bytes: None }
        };
        Some(LogRules { present, history: record.retention.clone() })
    }

    fn compaction(&self, topic: TopicId) -> Option<CompactionRules> {
        let snapshot = self.view.snapshot();
        let topic = snapshot.topics.by_id(topic)?;
        let config = TopicConfig::resolve(&topic.record.configs, &self.configs.current());
        config.cleanup.compact.then_some(CompactionRules {
            lag_ms_min: config.min_compaction_lag_ms,
            lag_ms_max: config.max_compaction_lag_ms,
            dirty_ratio_min: config.min_cleanable_dirty_ratio,
            delete_retention_ms: config.delete_retention_ms,
        })
    }

    fn producer_expiration_ms(&self) -> i64 {
        self.configs.current().producer_id_expiration_ms.into()
    }

    fn was_deleted(&self, topic: TopicId) -> bool {
        self.view.snapshot().deleted_topics.contains_key(&topic)
    }
}
