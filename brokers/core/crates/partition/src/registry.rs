//! The partitions that this incarnation leads.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use parking_lot::RwLock;

use super::Partition;
use super::load::MissingOffsets;
use freshet_storage::lane::index::InstallEntry;
use freshet_storage::lane::writer::CheckpointSource;
use freshet_storage::names::ManifestRef;
use freshet_wire::ids::{PartitionId, TopicId};

/// Whether a partition is open, or offline because its log has a hole.
enum Place {
    Open(Arc<Partition>),
    /// It is being handed over, or opened: nobody is served, and nobody else opens it here.
    Held(Arc<Partition>),
    Offline(MissingOffsets),
    /// It is offline and was open before, with this manifest if it has one.
    TakenOffline(MissingOffsets, Option<ManifestRef>),
}

impl Place {
    fn open(&self) -> Option<&Arc<Partition>> {
        if let Self::Open(partition) = self { Some(partition) } else { None }
    }

    fn missing(&self) -> Option<&MissingOffsets> {
        match self {
            Self::Open(_) | Self::Held(_) => None,
            Self::Offline(missing) | Self::TakenOffline(missing, _) => Some(missing),
        }
    }
}

/// The partitions that this incarnation leads, by topic id and index.
#[derive(Default)]
pub struct Partitions(RwLock<BTreeMap<PartitionId, Place>>);

impl Partitions {
    /// The partition, if it is open.
    pub fn get(&self, id: PartitionId) -> Option<Arc<Partition>> {
        self.0.read().get(&id).and_then(Place::open).cloned()
    }

    /// Every open partition.
    pub fn all(&self) -> Vec<Arc<Partition>> {
        let places = self.0.read();
        places.values().filter_map(Place::open).cloned().collect()
    }

    /// Every open partition of a topic.
    pub fn of_topic(&self, topic: TopicId) -> Vec<Arc<Partition>> {
        let places = self.0.read();
        let of_topic = PartitionId::new(topic, 0)..=PartitionId::new(topic, i32::MAX);
        places.range(of_topic).filter_map(|(_, place)| place.open()).cloned().collect()
    }

    /// Adds an open partition.
    pub fn insert(&self, partition: Arc<Partition>) {
        self.0.write().insert(partition.id(), Place::Open(partition));
    }

    /// Adds a partition that is not served yet, unless it is here in any way. Returns whether it
    /// was added.
    pub fn insert_held(&self, partition: &Arc<Partition>) -> bool {
        match self.0.write().entry(partition.id()) {
            Entry::Vacant(place) => {
                place.insert(Place::Held(Arc::clone(partition)));
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Serves an open partition no more, but keeps it.
    pub fn hold(&self, partition: &Arc<Partition>) {
        let mut places = self.0.write();
        if let Some(place) = places.get_mut(&partition.id())
            && place.open().is_some()
        {
            *place = Place::Held(Arc::clone(partition));
        }
    }

    /// Serves a partition that was held, unless its topic is gone.
    pub fn unhold(&self, partition: &Arc<Partition>) {
        let mut places = self.0.write();
        if let Some(place @ Place::Held(_)) = places.get_mut(&partition.id()) {
            *place = Place::Open(Arc::clone(partition));
        }
    }

    /// Closes and forgets a partition that is led no more.
    pub fn remove(&self, partition: &Partition) {
        self.0.write().remove(&partition.id());
        partition.close();
    }

    /// Adds a partition that is offline from the start.
    pub fn insert_offline(&self, missing: MissingOffsets) {
        self.0.write().insert(missing.partition, Place::Offline(missing));
    }

    /// Takes a partition offline that was open.
    pub fn take_offline(&self, missing: MissingOffsets) {
        let mut places = self.0.write();
        let Some(place) = places.get_mut(&missing.partition) else { return };
        let Some(partition) = place.open().cloned() else { return };
        *place = Place::TakenOffline(missing, partition.manifest_name());
        drop(places);
        partition.close();
    }

    /// Whether any partition was taken offline after it had been open. Then nothing of the own lane
    /// may be removed, because that partition's records may be there.
    pub fn any_taken_offline(&self) -> bool {
        let places = self.0.read();
        places.values().any(|place| matches!(place, Place::TakenOffline(..)))
    }

    /// Why a partition is offline; `None` where it is not.
    pub fn offline_reason(&self, id: PartitionId) -> Option<MissingOffsets> {
        self.0.read().get(&id).and_then(Place::missing).cloned()
    }

    /// The reasons of all partitions that are offline.
    pub fn offline(&self) -> Vec<MissingOffsets> {
        let places = self.0.read();
        places.values().filter_map(Place::missing).cloned().collect()
    }

    /// How many partitions are offline.
    pub fn count_offline(&self) -> usize {
        let places = self.0.read();
        places.values().filter_map(Place::missing).count()
    }

    /// Whether any partition is offline. Then no object or lane is deleted that it may need.
    pub fn any_offline(&self) -> bool {
        self.0.read().values().any(|place| place.missing().is_some())
    }

    /// Whether what asks for the partition is answered: it is open, or offline.
    pub fn serves(&self, id: PartitionId) -> bool {
        self.0.read().get(&id).is_some_and(|place| !matches!(place, Place::Held(_)))
    }

    /// Whether the partition is open, held or offline.
    pub fn contains(&self, id: PartitionId) -> bool {
        self.0.read().contains_key(&id)
    }

    /// How many partitions of a topic are open, held or offline.
    pub fn count_of(&self, topic: TopicId) -> i32 {
        let places = self.0.read();
        let of_topic = PartitionId::new(topic, 0)..=PartitionId::new(topic, i32::MAX);
        i32::try_from(places.range(of_topic).count()).expect("partitions are counted as i32")
    }

    /// Closes and forgets the partitions of a topic that was deleted.
    pub fn remove_topic(&self, topic: TopicId) {
        let of_topic = self.of_topic(topic);
        self.0.write().retain(|id, _| id.topic != topic);
        for partition in of_topic {
            partition.close();
        }
    }
}

impl CheckpointSource for Partitions {
    fn installed(&self) -> Vec<InstallEntry> {
        let places = self.0.read();
        let named = places.iter().filter_map(|(id, place)| {
            let manifest = match place {
                Place::Open(partition) | Place::Held(partition) => partition.manifest_name(),
                Place::Offline(_) => None,
                Place::TakenOffline(_, manifest) => *manifest,
            };
            Some(InstallEntry { partition: *id, manifest: manifest? })
        });
        named.collect()
    }
}
