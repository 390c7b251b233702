//! Connects the group coordinator with its log, the partitions of `__consumer_offsets`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use kafka_protocol::ResponseError;

use super::EngineSettings;
use freshet_coordinator::group::{DeletedTopics, GroupCoordinator, GroupLimits};
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
/// The principal in whose name is written what nobody asked for, such as expirations.
pub(super) const PRINCIPAL: &str = "User:__freshet";
/// The most bytes that the records of one batch may have once they are decompressed. The
/// coordinator writes its batches uncompressed, so only damage could exceed this.
const UNPACKED_BYTES_MAX: usize = 64 << 20;

struct OffsetsLog {
    view: Arc<MetadataView>,
    partitions: Arc<Partitions>,
    lane: Arc<Lane>,
    clock: Arc<dyn Clock>,
    /// The principal for which is metered what no client asked for.
    service: Arc<str>,
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
        payer: Option<&Arc<str>>,
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
        let payer = payer.unwrap_or(&self.service);
        let staged = partition.stage(&self.lane, batch, payer, pinned_bytes)?;
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

/// Creates the coordinator over the partitions of `__consumer_offsets`, none of which is loaded.
pub fn create_coordinator(
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
        service: PRINCIPAL.into(),
    };
    let existing = view.topics().by_name(OFFSETS_TOPIC).map(|topic| topic.record.partitions);
    let groups = GroupCoordinator::new(
        settings.groups.clone(),
        existing.unwrap_or(settings.offsets_partitions),
        Arc::new(log),
        Arc::clone(&environment.clock),
        Arc::clone(&environment.randomness),
    );
    let view = Arc::clone(view);
    groups.limit_by(move || limits_in(&view.snapshot()));
    Arc::new(groups)
}

fn limits_in(snapshot: &Snapshot) -> GroupLimits {
    let number =
        |limit: Option<u64>| limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let limits = &snapshot.limits;
    GroupLimits {
        groups: number(limits.groups),
        members: number(limits.group_members),
        bytes: number(limits.group_bytes),
    }
}

/// Returns a function that loads a partition of `__consumer_offsets` which has been opened; it does
/// nothing for other partitions. After loading, it forgets the offsets that were committed for
/// topics which were deleted while no broker ran, by the control plane.
pub fn coordinator_loader(
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
            let stale = stale_offsets(&view.snapshot()).into_values();
            forget_offsets(&groups, Some(index), stale).await;
        });
    }
}

/// Forgets the offsets that were committed for topics which are deleted after this call, by brokers
/// or by the control plane. The future ends with the image of the metadata.
pub fn forget_deleted(
    groups: Arc<GroupCoordinator>,
    view: Arc<MetadataView>,
) -> impl Future<Output = ()> + Send {
    let mut changes = view.subscribe();
    let mut seen: BTreeSet<StaleKey> = stale_offsets(&view.snapshot()).into_keys().collect();
    async move {
        while changes.next().await.is_ok() {
            let new = newly_stale(&mut seen, stale_offsets(&view.snapshot()));
            forget_offsets(&groups, None, new.into_values()).await;
        }
    }
}

/// A topic whose committed offsets are stale: `true` where it is gone for good, `false` where it is
/// hidden and another topic has its name. They are separate keys, because one topic can be first
/// the one and then the other.
type StaleKey = (TopicId, bool);

/// The name of each stale topic, and the time in ms until which commits for that name were meant
/// for it.
type Stale = BTreeMap<StaleKey, (String, i64)>;

/// The topics whose committed offsets are stale. Those of a hidden topic that can be restored are
/// not, unless another topic has its name.
fn stale_offsets(snapshot: &Snapshot) -> Stale {
    let gone = snapshot.deleted_topics.iter();
    let gone = gone.map(|(id, mark)| ((*id, true), (mark.name.clone(), mark.deleted_at_ms)));
    let hidden = snapshot.hidden.iter().filter_map(|(id, hidden)| {
        let name = &hidden.topic.record.name;
        snapshot.topics.by_name(name)?;
        Some(((*id, false), (name.clone(), hidden.hidden_at_ms)))
    });
    gone.chain(hidden).collect()
}

/// Those of the stale topics that were not seen yet. What is stale no more is forgotten, so that no
/// more are remembered than there are.
fn newly_stale(seen: &mut BTreeSet<StaleKey>, mut stale: Stale) -> Stale {
    seen.retain(|key| stale.contains_key(key));
    stale.retain(|key, _| seen.insert(*key));
    stale
}

/// Forgets offsets that were committed for these names until these times, in one partition of the
/// coordinator or (`None`) in all that are loaded. A failure is logged only: such offsets are
/// forgotten when the partition is loaded the next time.
async fn forget_offsets(
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
        tracing::warn!(?error, "cannot forget committed offsets of deleted topics yet");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_stale_topics_are_remembered_than_there_are() {
        let stale = |ids: &[u128]| -> Stale {
            let topics = ids.iter().map(|id| ((TopicId::from_u128(*id), true), "t".to_owned()));
            topics.map(|(key, name)| (key, (name, 1))).collect()
        };
        let mut seen = BTreeSet::new();
        let mut new = |ids: &[u128]| {
            let new = newly_stale(&mut seen, stale(ids));
            (new.into_keys().map(|(id, _)| id.as_u128()).collect::<Vec<_>>(), seen.len())
        };
        assert_eq!(new(&[1, 2]), (vec![1, 2], 2));
        assert_eq!(new(&[2, 3]), (vec![3], 2));
        assert_eq!(new(&[]), (vec![], 0));
        assert_eq!(new(&[3]), (vec![3], 1), "it was brought back and deleted again");
    }
}
