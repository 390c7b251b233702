//! `ListGroups`, `DescribeGroups` and `DeleteGroups`.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use tokio::sync::oneshot;

use super::removal::Removal;
use super::writes::Settled;
use super::{GroupCoordinator, PartitionState};
use crate::group::api::{DescribedGroup, ListedGroup};
use crate::group::state::GroupState;

/// Kafka's name of the type of these groups.
const GROUP_TYPE: &str = "classic";
/// From this version `DescribeGroups` answers that a group is unknown; before, that it is dead.
const DESCRIBE_KNOWS_GROUP_ID_NOT_FOUND: i16 = 6;

impl GroupCoordinator {
    /// `ListGroups`: the groups of all partitions that are loaded here, by partition and name.
    /// Filters are names, in which case does not matter; an empty filter accepts everything.
    ///
    /// # Errors
    /// `COORDINATOR_LOAD_IN_PROGRESS` while any partition is being loaded.
    pub fn list_groups(
        &self,
        states: &[String],
        types: &[String],
    ) -> Result<Vec<ListedGroup>, ResponseError> {
        let passes = |filter: &[String], name: &str| {
            filter.is_empty() || filter.iter().any(|one| one.trim().eq_ignore_ascii_case(name))
        };
        let mut listed = Vec::new();
        for partition in &self.inner.partitions {
            let state = partition.state.lock();
            let shard = match &*state {
                PartitionState::Active(shard) => shard,
                PartitionState::NotLed => continue,
                PartitionState::Loading(_) => {
                    return Err(ResponseError::CoordinatorLoadInProgress);
                }
            };
            if !passes(types, GROUP_TYPE) {
                continue;
            }
            let visible = shard
                .groups
                .iter()
                .filter(|(_, entry)| entry.exists() && passes(states, entry.group.state().name()));
            listed.extend(visible.map(|(group_id, entry)| ListedGroup {
                group_id: group_id.clone(),
                protocol_type: entry.group.protocol_type().unwrap_or_default().to_owned(),
                state: entry.group.state().name(),
            }));
        }
        Ok(listed)
    }

    /// `DescribeGroups`, in the order of the request. Each group has its own error:
    /// `GROUP_ID_NOT_FOUND` (from version 6; before, the group is `Dead`), `NOT_COORDINATOR`,
    /// `COORDINATOR_LOAD_IN_PROGRESS`.
    pub fn describe_groups(&self, api_version: i16, group_ids: &[String]) -> Vec<DescribedGroup> {
        group_ids.iter().map(|group_id| self.describe_group(api_version, group_id)).collect()
    }

    fn describe_group(&self, api_version: i16, group_id: &str) -> DescribedGroup {
        let described = self.inner.lock(self.inner.index_of(group_id)).and_then(|mut state| {
            let entry = state.active()?.existing(group_id);
            entry.map(|entry| entry.group.describe()).ok_or(ResponseError::GroupIdNotFound)
        });
        let unknown = |error: Option<ResponseError>, state| DescribedGroup {
            group_id: group_id.to_owned(),
            error,
            error_message: None,
            state,
            protocol_type: String::new(),
            protocol_data: String::new(),
            members: Vec::new(),
        };
        match described {
            Ok(group) => group,
            Err(error @ ResponseError::GroupIdNotFound) => {
                let dead = GroupState::Dead.name();
                if api_version < DESCRIBE_KNOWS_GROUP_ID_NOT_FOUND {
                    return unknown(None, dead);
                }
                let error_message = Some(format!("Group {group_id} not found."));
                DescribedGroup { error_message, ..unknown(Some(error), dead) }
            }
            Err(error) => unknown(Some(error), ""),
        }
    }

    /// `DeleteGroups`. Returns once the deletions are durable, with an entry for each group in the
    /// order of the request: `None`, `GROUP_ID_NOT_FOUND`, `NON_EMPTY_GROUP`, `NOT_COORDINATOR`,
    /// `COORDINATOR_LOAD_IN_PROGRESS` or the error of the append.
    pub async fn delete_groups(
        &self,
        payer: &Arc<str>,
        group_ids: Vec<String>,
    ) -> Vec<(String, Option<ResponseError>)> {
        let mut started = Vec::with_capacity(group_ids.len());
        for group_id in group_ids {
            let _room = self.inner.waiting.room().await;
            let settled = self.start_delete_group(payer, &group_id);
            started.push((group_id, settled));
        }
        let mut results = Vec::with_capacity(started.len());
        for (group_id, settled) in started {
            let outcome = match settled {
                Ok(settled) => settled.await.unwrap_or(Err(ResponseError::NotCoordinator)),
                Err(error) => Err(error),
            };
            results.push((group_id, outcome.err()));
        }
        results
    }

    fn start_delete_group(
        &self,
        payer: &Arc<str>,
        group_id: &str,
    ) -> Result<Settled, ResponseError> {
        let index = self.inner.index_of(group_id);
        let mut state = self.inner.lock(index)?;
        let shard = state.active()?;
        if !shard.groups.contains_key(group_id) {
            return Err(ResponseError::GroupIdNotFound);
        }
        let (outcome, settled) = oneshot::channel();
        let payer = Some(Arc::clone(payer));
        self.inner.enqueue_removal(index, shard, group_id, Removal::Group(outcome), payer);
        Ok(settled)
    }
}
