//! The group coordinator's log: partitions of `__consumer_offsets`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use kafka_protocol::ResponseError;

use super::EngineSettings;
use freshet_coordinator::group::{DeletedTopics, GroupCoordinator};
use freshet_coordinator::{CoordinatorLog, CoordinatorRecord, RecordVisitor};
use freshet_metadata::view::{MetadataView, Snapshot};
use freshet_partition::Partition;
use freshet_partition::registry::Partitions;
use freshet_storage::lane::queue::Lane;
use freshet_wire::ids::{PartitionId, TopicId};
use freshet_wire::records::{BatchBuilder, ValidatedBatch};
use freshet_world::env::{Clock, Environment};

/// The topic that holds groups and their offsets.
pub use freshet_metadata::names::OFFSETS_TOPIC;
/// Who writes internal records; nobody pays for them.
const PRINCIPAL: &str = "User:__freshet";
/// Records of one batch, unpacked.
const UNPACKED_BYTES_MAX: usize = 64 << 20;

struct OffsetsLog {
    view: Arc<MetadataView>,
    partitions: Arc<Partitions>,
    lane: Arc<Lane>,
    clock: Arc<dyn Clock>,
    principal: Arc<str>,
}

impl OffsetsLog {
    fn partition(&self, index: i32) -> Result<Arc<Partition>, ResponseError> {
        let topics = self.view.topics();
        let topic = topics.by_name(OFFSETS_TOPIC).ok_or(ResponseError::NotCoordinator)?;
        let id = PartitionId::new(topic.record.id, index);
        self.partitions.get(id).ok_or(ResponseError::NotCoordinator)
    }
}

#[async_trait]
impl CoordinatorLog for OffsetsLog {
    async fn append(
        &self,
        index: i32,
        records: Vec<CoordinatorRecord>,
    ) -> Result<(), ResponseError> {
        let partition = self.partition(index)?;
        let now_ms = self.clock.now_ms();
        let batch = records.iter().fold(BatchBuilder::new(0), |batch, record| {
            batch.record(now_ms, Some(&record.key), record.value.as_deref())
        });
        let bytes = batch.build();
        let pinned_bytes = bytes.len();
        let batch =
            ValidatedBatch::trusted(bytes).map_err(|_| ResponseError::UnknownServerError)?;
        let staged = partition.stage(&self.lane, batch, &self.principal, pinned_bytes)?;
        partition.durable(staged.end_offset).await
    }

    async fn read(&self, index: i32, visit: &mut RecordVisitor<'_>) -> Result<(), ResponseError> {
        let partition = self.partition(index)?;
        let mut unreadable = false;
        let from = partition.bounds().log_start;
        let mut take = |batch: &freshet_wire::records::StoredBatch| {
            let Ok(records) = batch.records(UNPACKED_BYTES_MAX) else {
                unreadable = true;
                return;
            };
            for record in records {
                match record {
                    Ok(record) => {
                        if let Some(key) = record.key {
                            visit(key, record.value);
                        }
                    }
                    Err(_) => unreadable = true,
                }
            }
        };
        partition.visit(from, &mut take).await.map_err(|error| error.code())?;
        if unreadable { Err(ResponseError::CorruptMessage) } else { Ok(()) }
    }
}

/// A coordinator over the cluster's offsets partitions; none is loaded yet.
pub fn start(
    environment: &Environment,
    settings: &EngineSettings,
    view: &Arc<MetadataView>,
    partitions: &Arc<Partitions>,
    lane: &Arc<Lane>,
) -> Arc<GroupCoordinator> {
    let log = OffsetsLog {
        view: Arc::clone(view),
        partitions: Arc::clone(partitions),
        lane: Arc::clone(lane),
        clock: Arc::clone(&environment.clock),
        principal: PRINCIPAL.into(),
    };
    let existing = view.topics().by_name(OFFSETS_TOPIC).map(|topic| topic.record.partitions);
    Arc::new(GroupCoordinator::new(
        settings.groups.clone(),
        existing.unwrap_or(settings.offsets_partitions),
        Arc::new(log),
        Arc::clone(&environment.clock),
        Arc::clone(&environment.randomness),
    ))
}

/// Loads a coordinator partition once it is open, and forgets what was committed in it for topics
/// that were deleted since: by the control plane while no broker ran.
pub fn loader(
    groups: &Arc<GroupCoordinator>,
    view: &Arc<MetadataView>,
) -> impl Fn(Arc<Partition>) + Send + use<> {
    let (groups, view) = (Arc::clone(groups), Arc::clone(view));
    move |partition| {
        if &*partition.topic() != OFFSETS_TOPIC {
            return;
        }
        let (groups, view) = (Arc::clone(&groups), Arc::clone(&view));
        tokio::spawn(async move {
            let index = partition.id().index;
            if let Err(error) = groups.load(index).await {
                tracing::error!(index, ?error, "the coordinator partition was not loaded");
                return;
            }
            forget(&groups, Some(index), stale(&view.snapshot()).into_values()).await;
        });
    }
}

/// Forgets what was committed for topics that are deleted from this call on, by whomever. Ends with
/// the view.
pub fn forget_deleted(
    groups: Arc<GroupCoordinator>,
    view: Arc<MetadataView>,
) -> impl Future<Output = ()> + Send {
    let mut changes = view.subscribe();
    let mut seen: BTreeSet<StaleKey> = stale(&view.snapshot()).into_keys().collect();
    async move {
        while changes.next().await.is_ok() {
            let mut new = stale(&view.snapshot());
            new.retain(|key, _| seen.insert(*key));
            forget(&groups, None, new.into_values()).await;
        }
    }
}

/// A topic that is gone, or whose name another one has taken while it is hidden.
type StaleKey = (TopicId, bool);

/// What was committed for which name until when is of no use any more.
type Stale = BTreeMap<StaleKey, (String, i64)>;

/// What was committed for a topic that can be restored stays, unless its name is another topic's by
/// now.
fn stale(snapshot: &Snapshot) -> Stale {
    let gone = snapshot.deleted_topics.iter();
    let gone = gone.map(|(id, mark)| ((*id, true), (mark.name.clone(), mark.deleted_at_ms)));
    let hidden = snapshot.hidden.iter().filter_map(|(id, hidden)| {
        let name = &hidden.topic.record.name;
        snapshot.topics.by_name(name)?;
        Some(((*id, false), (name.clone(), hidden.hidden_at_ms)))
    });
    gone.chain(hidden).collect()
}

async fn forget(
    groups: &GroupCoordinator,
    index: Option<i32>,
    stale: impl Iterator<Item = (String, i64)>,
) {
    let mut deleted = DeletedTopics::new();
    for (name, until_ms) in stale {
        let until = deleted.entry(name).or_insert(until_ms);
        *until = (*until).max(until_ms);
    }
    if deleted.is_empty() {
        return;
    }
    if let Err(error) = groups.forget_deleted(index, deleted).await {
        tracing::warn!(?error, "committed offsets of deleted topics stay for now");
    }
}
