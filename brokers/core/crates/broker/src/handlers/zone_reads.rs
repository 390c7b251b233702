//! Reads from a broker in the client's zone (KIP-392): who has much to read is sent there by the
//! leader, reads copies of what segments hold, and comes back for the rest.
//!
//! A broker that has no copy of what is asked for answers NOT_LEADER_OR_FOLLOWER with the leader.
//! All clients go there then and go on; OFFSET_OUT_OF_RANGE would have some of them start anew.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;
use tokio::time::timeout;

use super::topics::NotServed;
use crate::context::{Replicas, RequestContext};
use freshet_engine::copies::Original;
use freshet_metadata::view::Topic;
use freshet_partition::Partition;
use freshet_wire::ids::PartitionId;
use freshet_wire::protocol::fetch::FetchPartition;

/// From this version on clients say their zone.
const ZONES_FROM: i16 = 11;
/// Who has less than this to read in segments reads it from the leader. The way there and back
/// takes some clients half a second.
const BACKLOG_BYTES_MIN: u64 = 32 << 20;
/// How long a fetch waits for copies.
const OPEN_TIME: Duration = Duration::from_secs(1);

/// How the client of a fetch that says its zone may read.
pub(super) enum ZoneReads {
    /// This broker's zone is the client's: it reads copies here.
    Here,
    /// The client's zone is this one.
    Elsewhere(StrBytes),
}

impl ZoneReads {
    /// For a client in this zone; `None` where it reads from leaders only.
    pub(super) fn new(context: &RequestContext, zone: &StrBytes) -> Option<Self> {
        let engine = &context.broker().engine;
        if zone.is_empty() || context.api_version < ZONES_FROM || !engine.has_peers() {
            return None;
        }
        let is_here = engine.settings.place.zone == zone.as_str();
        Some(if is_here { Self::Here } else { Self::Elsewhere(zone.clone()) })
    }

    /// The node from which the client is to read a partition that this broker leads; `None` where
    /// it reads here. Clients go only to replicas that metadata name.
    pub(super) fn other_node(
        &self,
        context: &RequestContext,
        topic: &Topic,
        partition: &Partition,
        offset: i64,
    ) -> Option<i32> {
        let Self::Elsewhere(zone) = self else { return None };
        // First, because whoever reads the newest records ends here.
        if !partition.has_in_segments(offset, BACKLOG_BYTES_MIN) {
            return None;
        }
        let nodes = context.nodes();
        let replicas = Replicas::new(&nodes);
        let replicas = replicas.of(&topic.record, context.broker().engine.node_id);
        let in_zone = nodes.iter().filter(|node| node.rack.as_deref() == Some(zone.as_str()));
        let is_replica = |node: &i32| replicas.iter().any(|replica| replica.0 == *node);
        let fit: Vec<i32> = in_zone.map(|node| node.node_id).filter(is_replica).collect();
        // The readers of a partition share what one broker has cached; partitions are spread.
        let index = usize::try_from(partition.id().index).unwrap_or(0);
        let node = *fit.get(index.checked_rem(fit.len())?)?;
        context.broker().sent_readers.send(partition.id(), context).then_some(node)
    }

    /// Opens copies of the partitions that another broker leads.
    pub(super) async fn open_copies<'a>(
        &self,
        context: &RequestContext,
        asked: impl Iterator<
            Item = (&'a Topic, &'a FetchPartition, &'a mut Result<Arc<Partition>, NotServed>),
        >,
    ) {
        if !matches!(self, Self::Here) {
            return;
        }
        let copies = asked.filter_map(|(topic, request, partition)| {
            let Err(NotServed { error: ResponseError::NotLeaderOrFollower, leader: Some(leader) }) =
                partition
            else {
                return None;
            };
            let original = Original {
                id: PartitionId::new(topic.record.id, request.index),
                topic: topic.record.name.as_str().into(),
                epoch: leader.leader_epoch,
            };
            Some(async move {
                let copies = &context.broker().engine.copies;
                if let Some(copy) = copies.covering(&original, request.fetch_offset).await {
                    *partition = Ok(copy);
                }
            })
        });
        // Those that storage does not show by then are read from their leaders.
        let _ = timeout(OPEN_TIME, join_all(copies)).await;
    }
}
