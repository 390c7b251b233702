//! Requests wait, for a moment at most, while a partition changes its leader: a client that was
//! sent to one that has ended, or that does not serve yet, would ask again later and later.

use std::time::Duration;

use tokio::time::timeout;
use uuid::Uuid;

use crate::context::Broker;
use freshet_metadata::view::{Snapshot, Topic};
use freshet_wire::ids::PartitionId;

/// How long a request waits. After that the client may as well try the leader that is named.
const LEADERS_TIME: Duration = Duration::from_secs(1);

/// How a request names a topic.
#[derive(Debug, Clone, Copy)]
pub(super) enum NamedBy<'a> {
    Name(&'a str),
    Id(Uuid),
}

impl<'a> NamedBy<'a> {
    /// By its id, or where that is nil, as in requests of older versions, by its name.
    pub(super) fn either(name: &'a str, id: Uuid) -> Self {
        if id.is_nil() { Self::Name(name) } else { Self::Id(id) }
    }
}

impl Broker {
    /// Waits, for a moment at most, while any of these partitions changes its leader.
    pub(super) async fn await_leaders_of<'a, I>(
        &self,
        asked: impl Iterator<Item = (NamedBy<'a>, I)> + Clone,
    ) where
        I: Iterator<Item = i32>,
    {
        let all_led = |snapshot: &Snapshot| {
            asked.clone().all(|(named, mut indexes)| {
                let topic = match named {
                    NamedBy::Name(name) => snapshot.topics.by_name(name),
                    NamedBy::Id(id) => snapshot.topics.by_id(id),
                };
                topic.is_none_or(|topic| indexes.all(|index| self.is_led(snapshot, topic, index)))
            })
        };
        self.await_leaders(all_led).await;
    }

    /// Waits until this holds of the image of the metadata, for a moment at most. In a cluster of
    /// one broker nothing is waited for.
    pub(super) async fn await_leaders(&self, all_led: impl Fn(&Snapshot) -> bool) {
        if self.engine.has_peers() {
            // What does not hold by then is answered as it is.
            let _ = timeout(LEADERS_TIME, self.engine.wait_until(all_led)).await;
        }
    }

    /// Whether a broker that lives leads a partition, and serves it where it is this one. A
    /// partition that does not exist is none to wait for.
    pub(super) fn is_led(&self, snapshot: &Snapshot, topic: &Topic, index: i32) -> bool {
        let Some(stored) = topic.partition(index) else { return true };
        match stored.record.leader {
            None => false,
            Some(leader) if leader == self.engine.incarnation => {
                self.engine.partitions.serves(PartitionId::new(topic.record.id, index))
            }
            Some(leader) => snapshot.is_live(leader),
        }
    }
}
