//! The partitions that this incarnation leads.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::Partition;
use super::load::MissingOffsets;
use crate::ids::{PartitionId, TopicId};
use crate::lane::index::InstallEntry;
use crate::lane::writer::CheckpointSource;

/// A partition's place: served, or kept from service because its log has a hole.
enum Place {
    Open(Arc<Partition>),
    Offline(MissingOffsets),
}

/// By identity, in a fixed order.
#[derive(Default)]
pub struct Partitions(RwLock<BTreeMap<PartitionId, Place>>);

impl Partitions {
    /// The partition, if this incarnation leads it and it can be served.
    pub fn get(&self, id: PartitionId) -> Option<Arc<Partition>> {
        match self.0.read().get(&id) {
            Some(Place::Open(partition)) => Some(Arc::clone(partition)),
            _ => None,
        }
    }

    /// Every partition that is served.
    pub fn all(&self) -> Vec<Arc<Partition>> {
        let places = self.0.read();
        let open = places.values().filter_map(|place| match place {
            Place::Open(partition) => Some(Arc::clone(partition)),
            Place::Offline(_) => None,
        });
        open.collect()
    }

    /// Every partition of a topic that is served.
    pub fn of_topic(&self, topic: TopicId) -> Vec<Arc<Partition>> {
        let places = self.0.read();
        let of_topic = PartitionId::new(topic, 0)..=PartitionId::new(topic, i32::MAX);
        let open = places.range(of_topic).filter_map(|(_, place)| match place {
            Place::Open(partition) => Some(Arc::clone(partition)),
            Place::Offline(_) => None,
        });
        open.collect()
    }

    /// Adds a partition.
    pub fn insert(&self, partition: Arc<Partition>) {
        self.0.write().insert(partition.id(), Place::Open(partition));
    }

    /// Notes that a partition is not served, and why.
    pub fn insert_offline(&self, missing: MissingOffsets) {
        self.0.write().insert(missing.partition, Place::Offline(missing));
    }

    /// Why a partition is not served.
    pub fn offline_reason(&self, id: PartitionId) -> Option<MissingOffsets> {
        match self.0.read().get(&id) {
            Some(Place::Offline(missing)) => Some(missing.clone()),
            _ => None,
        }
    }

    /// Every partition that is not served, with the reason.
    pub fn offline(&self) -> Vec<MissingOffsets> {
        let places = self.0.read();
        let offline = places.values().filter_map(|place| match place {
            Place::Open(_) => None,
            Place::Offline(missing) => Some(missing.clone()),
        });
        offline.collect()
    }

    /// How many partitions are not served.
    pub fn count_offline(&self) -> usize {
        let places = self.0.read();
        places.values().filter(|place| matches!(place, Place::Offline(_))).count()
    }

    /// Whether any partition is not served. Nothing that may be its is deleted then.
    pub fn any_offline(&self) -> bool {
        self.0.read().values().any(|place| matches!(place, Place::Offline(_)))
    }

    /// Whether the partition is open, or known to be offline.
    pub fn contains(&self, id: PartitionId) -> bool {
        self.0.read().contains_key(&id)
    }

    /// How many partitions of a topic are open or known to be offline.
    pub fn count_of(&self, topic: TopicId) -> i32 {
        let places = self.0.read();
        let of_topic = PartitionId::new(topic, 0)..=PartitionId::new(topic, i32::MAX);
        i32::try_from(places.range(of_topic).count()).expect("partitions are counted as i32")
    }

    /// Forgets the partitions of a topic that was deleted.
    pub fn remove_topic(&self, topic: TopicId) {
        self.0.write().retain(|id, _| id.topic != topic);
    }
}

impl CheckpointSource for Partitions {
    fn installed(&self) -> Vec<InstallEntry> {
        let named = self.all().into_iter().filter_map(|partition| {
            let manifest = partition.manifest_name()?;
            Some(InstallEntry { partition: partition.id(), manifest })
        });
        named.collect()
    }
}
