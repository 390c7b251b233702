//! Finds topics and partitions for handlers, and creates topics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::BrokerId;
use tokio::time::timeout;

use super::errors::ApiError;
use crate::context::{Broker, RequestContext};
use freshet_coordinator::group::DeletedTopics;
use freshet_metadata::ClusterMetadata;
use freshet_metadata::cluster::{NewTopic, leader_of, placed_leaders};
pub(super) use freshet_metadata::names::{OFFSETS_TOPIC, is_internal_topic as is_internal};
use freshet_metadata::schema::{PartitionRecord, REPLICATION_FACTOR_MAX, Stored, TopicRecord};
use freshet_metadata::view::Topic;
use freshet_partition::Partition;
use freshet_wire::ids::{Incarnation, PartitionId};
use freshet_wire::protocol::leader::CurrentLeader;

/// How long the partitions of a topic that was created for a request may take to open.
const OPEN_TIME: Duration = Duration::from_secs(10);

/// The timeout of a request that gives none.
const TIME_LIMIT_DEFAULT: Duration = Duration::from_secs(30);

/// The timeout of a request with this `timeout_ms`. Some clients send values without a meaning (0
/// or less), and none expects an error for that.
pub(super) fn time_limit(timeout_ms: i32) -> Duration {
    match u64::try_from(timeout_ms) {
        Ok(ms @ 1..) => Duration::from_millis(ms),
        _ => TIME_LIMIT_DEFAULT,
    }
}

/// Why a partition is not served by this broker, and its leader if it is known.
pub(super) struct NotServed {
    pub(super) error: ResponseError,
    pub(super) leader: Option<CurrentLeader>,
}

impl From<ResponseError> for NotServed {
    fn from(error: ResponseError) -> Self {
        Self { error, leader: None }
    }
}

impl Broker {
    /// Returns a partition of a topic.
    ///
    /// # Errors
    /// [`NotServed`] where the partition does not exist, is offline, or is led by another broker.
    pub(super) fn partition(&self, topic: &Topic, index: i32) -> Result<Arc<Partition>, NotServed> {
        let stored = topic.partition(index).ok_or(ResponseError::UnknownTopicOrPartition)?;
        if self.engine.liveness.is_down() {
            return Err(ResponseError::NotLeaderOrFollower.into());
        }
        let id = PartitionId::new(topic.record.id, index);
        if let Some(partition) = self.engine.partitions.get(id) {
            return Ok(partition);
        }
        if self.engine.partitions.offline_reason(id).is_some() {
            return Err(ResponseError::KafkaStorageError.into());
        }
        let leader = stored.record.leader.filter(|leader| *leader != self.engine.incarnation);
        let leader = leader.and_then(|leader| self.current_leader(leader, &stored.record));
        Err(NotServed { error: ResponseError::NotLeaderOrFollower, leader })
    }

    /// Why a partition that was served when a request came is not served any more; `None` where it
    /// is. `by_id` says how the request names topics. Where the topic was deleted, it does not
    /// matter whether another has its name by now.
    pub(super) fn withdrawn(&self, topic: &Topic, index: i32, by_id: bool) -> Option<NotServed> {
        if self.engine.view.topics().by_id(topic.record.id).is_none() {
            let by_name = ResponseError::UnknownTopicOrPartition;
            return Some(if by_id { ResponseError::UnknownTopicId } else { by_name }.into());
        }
        self.partition(topic, index).err()
    }

    fn current_leader(
        &self,
        leader: Incarnation,
        record: &PartitionRecord,
    ) -> Option<CurrentLeader> {
        let leader_id = self.node_of(leader)?;
        Some(CurrentLeader { leader_id, leader_epoch: record.epoch })
    }

    /// The node id of the broker whose incarnation this is; `None` where it is unknown.
    pub(crate) fn node_of(&self, incarnation: Incarnation) -> Option<i32> {
        if incarnation == self.engine.incarnation {
            return Some(self.engine.node_id);
        }
        let incarnations = Arc::clone(&self.engine.view.snapshot().incarnations);
        i32::try_from(incarnations.get(&incarnation)?.record.slot).ok()
    }

    /// The node id of a partition's leader; `None` where it has none.
    pub(super) fn leader_node(&self, partition: &Stored<PartitionRecord>) -> Option<i32> {
        self.node_of(partition.record.leader?)
    }

    /// The first leaders of a topic's partitions: all brokers that live.
    pub(super) fn first_leaders(&self, topic: &str) -> Vec<Incarnation> {
        let leaders = placed_leaders(&self.engine.view.snapshot().incarnations, topic);
        // The image may not show this broker yet.
        if leaders.is_empty() { vec![self.engine.incarnation] } else { leaders }
    }

    /// The first leaders of a topic's partitions, one for each, where a client assigned some:
    /// `assigned` has the node that it named first, by partition. A node without a broker that
    /// lives leads nothing.
    pub(super) fn assigned_leaders(
        &self,
        topic: &str,
        partitions: i32,
        assigned: &BTreeMap<i32, BrokerId>,
    ) -> Vec<Incarnation> {
        let placed = self.first_leaders(topic);
        if assigned.is_empty() {
            return placed;
        }
        let nodes = placed.iter().filter_map(|leader| Some((self.node_of(*leader)?, *leader)));
        let by_node: BTreeMap<i32, Incarnation> = nodes.collect();
        let leader = |index| {
            let chosen = assigned.get(&index).and_then(|node| by_node.get(&node.0)).copied();
            chosen.or_else(|| leader_of(&placed, index))
        };
        (0..partitions).filter_map(leader).collect()
    }

    /// Creates a topic and waits until its partitions are open here, for [`OPEN_TIME`] at most.
    pub(super) async fn make_topic(
        &self,
        metadata: &ClusterMetadata,
        new: &NewTopic,
    ) -> Result<Stored<TopicRecord>, ApiError> {
        let made = metadata.create_topic(self.engine.fence(), new).await;
        let stored = made.map_err(|error| self.metadata_error(&error))?;
        self.await_topic(&stored, OPEN_TIME).await?;
        Ok(stored)
    }

    /// Forgets the offsets that were committed for deleted topics of this name that can still be
    /// restored: they must not become those of the new topic.
    pub(super) async fn forget_earlier(&self, name: &str) {
        let snapshot = self.engine.view.snapshot();
        let earlier = snapshot.hidden.values().filter(|hidden| hidden.topic.record.name == name);
        let Some(until_ms) = earlier.map(|hidden| hidden.hidden_at_ms).max() else { return };
        let stale = DeletedTopics::from([(name.to_owned(), until_ms)]);
        if let Err(error) = self.engine.groups.forget_deleted(None, stale).await {
            tracing::warn!(
                topic = name,
                ?error,
                "cannot forget the offsets of a deleted topic of the same name"
            );
        }
    }

    /// Waits until the image shows a change of a topic and the topic's partitions are open here.
    ///
    /// # Errors
    /// REQUEST_TIMED_OUT after `time_limit`.
    pub(super) async fn await_topic(
        &self,
        stored: &Stored<TopicRecord>,
        time_limit: Duration,
    ) -> Result<(), ApiError> {
        let in_effect = async {
            self.await_revision(stored.revision).await?;
            self.engine.wait_open(stored.record.id, stored.record.partitions).await;
            self.forget_earlier(&stored.record.name).await;
            Ok(())
        };
        timeout(time_limit, in_effect).await.unwrap_or(Err(ResponseError::RequestTimedOut.into()))
    }

    /// Waits until the image of the metadata shows this revision of the metadata store.
    pub(super) async fn await_revision(&self, revision: u64) -> Result<(), ApiError> {
        let shown = self.engine.view.wait_for(revision).await;
        shown.map_err(|_| ResponseError::NotController.into())
    }

    /// Returns the coordinator's topic, `__consumer_offsets`. Creates it where it does not exist.
    pub(super) async fn offsets_topic(&self) -> Result<Arc<Topic>, ApiError> {
        if let Some(topic) = self.engine.view.topics().by_name(OFFSETS_TOPIC) {
            return Ok(Arc::clone(topic));
        }
        let _making = self.making_offsets_topic.lock().await;
        if self.engine.view.topics().by_name(OFFSETS_TOPIC).is_none() {
            let configs = [
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", "104857600"),
            ];
            let configs = configs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let new = NewTopic {
                name: OFFSETS_TOPIC.to_owned(),
                partitions: self.engine.settings.offsets_partitions,
                replication_factor: self.config().offsets_replication_factor,
                internal: true,
                configs: configs.into(),
                leaders: self.first_leaders(OFFSETS_TOPIC),
            };
            match self.make_topic(&self.engine.metadata, &new).await {
                // Somebody else has created it; the image may not show it yet.
                Err(error) if error.error == ResponseError::TopicAlreadyExists => {}
                made => _ = made?,
            }
        }
        let known = self.engine.view.topics().by_name(OFFSETS_TOPIC).cloned();
        known.ok_or_else(|| ResponseError::CoordinatorNotAvailable.into())
    }
}

/// Checks the brokers to which a client assigns one partition. The first one is to lead it; there
/// are no other replicas, so only the form of the rest is checked.
///
/// # Errors
/// INVALID_REPLICATION_FACTOR for more than [`REPLICATION_FACTOR_MAX`] brokers, and
/// INVALID_REPLICA_ASSIGNMENT for none, for one twice and for one that is not registered.
pub(super) fn check_assignment(
    context: &RequestContext,
    brokers: &[BrokerId],
) -> Result<(), ApiError> {
    if brokers.len() > usize::try_from(REPLICATION_FACTOR_MAX).unwrap_or(usize::MAX) {
        let message = format!(
            "The manual partition assignment has {} replicas, {REPLICATION_FACTOR_MAX} are \
             allowed.",
            brokers.len()
        );
        return Err(ApiError::new(ResponseError::InvalidReplicationFactor, message));
    }
    let refused = |message: String| ApiError::new(ResponseError::InvalidReplicaAssignment, message);
    let distinct: BTreeSet<i32> = brokers.iter().map(|id| id.0).collect();
    if distinct.is_empty() || distinct.len() != brokers.len() {
        let message = "The manual partition assignment includes duplicate or no brokers.";
        return Err(refused(message.to_owned()));
    }
    let nodes = context.nodes();
    let is_known = |id: &i32| nodes.iter().any(|node| node.node_id == *id);
    match distinct.into_iter().find(|id| !is_known(id)) {
        None => Ok(()),
        Some(unknown) => Err(refused(format!(
            "The manual partition assignment includes broker {unknown}, but no such broker is \
             registered."
        ))),
    }
}

/// Returns the topic where clients may read and write its records. Those of internal topics belong
/// to the brokers, whatever the ACLs allow.
///
/// # Errors
/// TOPIC_AUTHORIZATION_FAILED for an internal topic.
pub(super) fn open_to_clients(topic: &Arc<Topic>) -> Result<Arc<Topic>, ResponseError> {
    if topic.record.internal || is_internal(&topic.record.name) {
        return Err(ResponseError::TopicAuthorizationFailed);
    }
    Ok(Arc::clone(topic))
}
