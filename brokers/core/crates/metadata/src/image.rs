//! Snapshots of a cluster's metadata, built from the entries of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::schema::{
    AclRecord, BrokerConfigRecord, ClusterRecord, ConfigScope, Configs, ControllerTerm,
    DeletedTopicRecord, HiddenTopicRecord, IncarnationRecord, IncarnationState, Key, LimitsRecord,
    PartitionRecord, QuotaEntity, QuotaRecord, QuotaValues, Record, RefusalRecord, SchemaError,
    ScramRecord, Stored, ThrottleRecord, TopicRecord, TrafficLimit, WantedLeaderRecord, decode,
};
use super::store::MetadataError;
use freshet_access::types::{AclBinding, ScramCredential, ScramMechanism};
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};

/// Why a view cannot show the metadata.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] MetadataError),
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] SchemaError),
    /// A topic exists without one of its partitions.
    #[error("{0} has no record")]
    Missing(PartitionId),
}

/// A topic with its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its record.
    pub record: TopicRecord,
    /// Revision of the record.
    pub revision: u64,
    /// Its partitions by index; as many as the record says.
    pub partitions: Vec<Arc<Stored<PartitionRecord>>>,
}

impl Topic {
    /// A partition; `None` where the topic has none of this index.
    #[must_use]
    pub fn partition(&self, index: i32) -> Option<&Stored<PartitionRecord>> {
        self.partitions.get(usize::try_from(index).ok()?).map(|partition| &**partition)
    }
}

/// All topics that exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topics {
    by_name: BTreeMap<String, Arc<Topic>>,
    by_id: BTreeMap<TopicId, Arc<Topic>>,
}

impl Topics {
    /// The topic of a name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    /// The topic of an id.
    #[must_use]
    pub fn by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    /// A partition; none where topic or index do not exist.
    #[must_use]
    pub fn partition(&self, partition: PartitionId) -> Option<&Stored<PartitionRecord>> {
        self.by_id(partition.topic)?.partition(partition.index)
    }

    /// All, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    fn remove(&mut self, id: TopicId) {
        let Some(topic) = self.by_id.remove(&id) else { return };
        // A later topic may have the name already.
        if self.by_name.get(&topic.record.name).is_some_and(|other| other.record.id == id) {
            self.by_name.remove(&topic.record.name);
        }
    }

    fn insert(&mut self, topic: Arc<Topic>) {
        self.by_name.insert(topic.record.name.clone(), topic.clone());
        self.by_id.insert(topic.record.id, topic);
    }
}

/// A topic that is led and kept, and that clients do not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenTopic {
    /// The topic as it was.
    pub topic: Topic,
    /// When it was hidden, ms since 1970 UTC.
    pub hidden_at_ms: i64,
    /// Until when it can be restored, ms since 1970 UTC; `None` where it was found on storage.
    pub restorable_until_ms: Option<i64>,
}

/// Passwords by mechanism and user.
pub type ScramUsers = BTreeMap<(ScramMechanism, String), ScramCredential>;

/// Quotas by the entity that they apply to.
pub type Quotas = BTreeMap<QuotaEntity, QuotaValues>;

/// The metadata of a cluster as of one revision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// The revision.
    pub revision: u64,
    /// The cluster's record; none before the cluster was created.
    pub cluster: Option<Arc<Stored<ClusterRecord>>>,
    /// The term of the controller.
    pub controller: Option<Arc<Stored<ControllerTerm>>>,
    /// All incarnations that are known.
    pub incarnations: Arc<BTreeMap<Incarnation, Stored<IncarnationRecord>>>,
    /// All topics that exist.
    pub topics: Arc<Topics>,
    /// Hidden topics, whose partitions are led and kept, and which clients do not see.
    pub hidden: Arc<BTreeMap<TopicId, Arc<HiddenTopic>>>,
    /// Topics that were deleted for good, so that storage may delete their records.
    pub deleted_topics: Arc<BTreeMap<TopicId, DeletedTopicRecord>>,
    /// Who is to lead a partition that another broker leads yet.
    pub wanted_leaders: Arc<BTreeMap<PartitionId, Stored<WantedLeaderRecord>>>,
    /// Configurations that were set for brokers.
    pub broker_configs: Arc<BTreeMap<ConfigScope, Configs>>,
    /// All ACLs, in a stable order. The `Arc` is another one exactly where the list changed.
    pub acls: Arc<Vec<AclBinding>>,
    /// All users with a password.
    pub scram: Arc<ScramUsers>,
    /// What clients may produce and fetch; `None` where that is not limited.
    pub traffic_limit: Option<Arc<TrafficLimit>>,
    /// How much the cluster may have.
    pub limits: LimitsRecord,
    /// All quotas. The `Arc` is another one exactly where a quota changed.
    pub quotas: Arc<Quotas>,
}

impl Snapshot {
    /// How many brokers the cluster has when awake.
    #[must_use]
    pub fn scale(&self) -> u32 {
        self.cluster.as_ref().map_or(1, |stored| stored.record.scale)
    }

    /// Whether an incarnation may still write metadata.
    #[must_use]
    pub fn is_live(&self, incarnation: Incarnation) -> bool {
        let stored = self.incarnations.get(&incarnation);
        stored.is_some_and(|stored| stored.record.state == IncarnationState::Live)
    }

    /// A topic whose partitions are to be led: one that exists, or a hidden one.
    #[must_use]
    pub fn led_topic(&self, id: TopicId) -> Option<&Topic> {
        let exists = self.topics.by_id(id).map(|topic| &**topic);
        exists.or_else(|| self.hidden.get(&id).map(|hidden| &hidden.topic))
    }

    /// All topics whose partitions are to be led.
    pub fn led_topics(&self) -> impl Iterator<Item = &Topic> {
        let exist = self.topics.iter().map(|topic| &**topic);
        exist.chain(self.hidden.values().map(|hidden| &hidden.topic))
    }
}

/// The difference between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one for each kind of record that has one value")]
pub struct ViewChange {
    /// Topics that were made, changed or removed, or that have a partition in `partitions`.
    pub topics: BTreeSet<TopicId>,
    /// Partitions whose record is another one, or gone.
    pub partitions: BTreeSet<PartitionId>,
    /// Whether the cluster's record changed.
    pub cluster: bool,
    /// Whether the controller changed.
    pub controller: bool,
    /// Whether incarnations changed.
    pub incarnations: bool,
    /// Whether it changed who is to lead partitions.
    pub wanted_leaders: bool,
    /// Whether configurations of brokers changed.
    pub broker_configs: bool,
    /// Whether ACLs changed.
    pub acls: bool,
    /// Whether users changed.
    pub scram: bool,
    /// Whether the limit of what clients may produce and fetch changed.
    pub traffic_limit: bool,
    /// Whether quotas changed.
    pub quotas: bool,
    /// Whether the cluster's limits changed.
    pub limits: bool,
}

impl ViewChange {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.topics.extend(&other.topics);
        self.partitions.extend(&other.partitions);
        self.cluster |= other.cluster;
        self.controller |= other.controller;
        self.incarnations |= other.incarnations;
        self.wanted_leaders |= other.wanted_leaders;
        self.broker_configs |= other.broker_configs;
        self.acls |= other.acls;
        self.scram |= other.scram;
        self.traffic_limit |= other.traffic_limit;
        self.quotas |= other.quotas;
        self.limits |= other.limits;
    }

    /// The difference between any two snapshots.
    pub(super) fn between(old: &Snapshot, new: &Snapshot) -> Self {
        let mut change = Self {
            cluster: old.cluster != new.cluster,
            controller: old.controller != new.controller,
            incarnations: old.incarnations != new.incarnations,
            wanted_leaders: old.wanted_leaders != new.wanted_leaders,
            broker_configs: old.broker_configs != new.broker_configs,
            acls: old.acls != new.acls,
            scram: old.scram != new.scram,
            traffic_limit: old.traffic_limit != new.traffic_limit,
            quotas: old.quotas != new.quotas,
            limits: old.limits != new.limits,
            ..Self::default()
        };
        for topic in old.led_topics().chain(new.led_topics()) {
            let id = &topic.record.id;
            let same_place = old.hidden.get(id) == new.hidden.get(id)
                && old.topics.by_id(*id) == new.topics.by_id(*id);
            if same_place {
                continue;
            }
            let (old, new) = (old.led_topic(*id), new.led_topic(*id));
            change.topics.insert(*id);
            for index in 0..topic.record.partitions {
                let in_old = old.and_then(|topic| topic.partition(index));
                if in_old != new.and_then(|topic| topic.partition(index)) {
                    change.partitions.insert(PartitionId::new(*id, index));
                }
            }
        }
        change
    }
}

/// Collects entries and changes, and makes snapshots of them.
#[derive(Default)]
pub struct Builder {
    snapshot: Snapshot,
    change: ViewChange,
    /// By name.
    topics: BTreeMap<String, Stored<TopicRecord>>,
    names: BTreeMap<TopicId, String>,
    hidden: BTreeMap<TopicId, Stored<HiddenTopicRecord>>,
    /// Also those of topics that do not exist yet, or no longer.
    partitions: BTreeMap<TopicId, BTreeMap<i32, Arc<Stored<PartitionRecord>>>>,
    /// By the hash in the key.
    acls: BTreeMap<String, AclBinding>,
    refusal: Option<RefusalRecord>,
    throttle: Option<ThrottleRecord>,
}

impl Builder {
    /// Revision up to which changes are in.
    pub fn revision(&self) -> u64 {
        self.snapshot.revision
    }

    /// Applies the new value of a key, or its removal.
    pub fn apply(
        &mut self,
        key: &str,
        value: Option<&[u8]>,
        revision: u64,
    ) -> Result<(), SchemaError> {
        // A kind that this release does not know is ignored, as an unknown field is.
        let Some(parsed) = Key::parse(key)? else { return Ok(()) };
        match parsed {
            Key::Cluster => {
                self.snapshot.cluster = decode_stored(key, value, revision)?.map(Arc::new);
                self.change.cluster = true;
            }
            Key::Term => {
                self.snapshot.controller = decode_stored(key, value, revision)?.map(Arc::new);
                self.change.controller = true;
            }
            Key::Incarnation(incarnation) => {
                let record = decode_stored(key, value, revision)?;
                set_entry(Arc::make_mut(&mut self.snapshot.incarnations), incarnation, record);
                self.change.incarnations = true;
            }
            Key::Topic(name) => self.apply_topic(name, decode_stored(key, value, revision)?),
            Key::Partition(partition) => {
                let record = decode_stored(key, value, revision)?.map(Arc::new);
                self.apply_partition(partition, record);
            }
            Key::WantedLeader(id) => self.apply_wanted(id, decode_stored(key, value, revision)?),
            Key::DeletedTopic(id) => {
                let record = decode_stored::<DeletedTopicRecord>(key, value, revision)?;
                let deleted = Arc::make_mut(&mut self.snapshot.deleted_topics);
                set_entry(deleted, id, record.map(|stored| stored.record));
            }
            Key::HiddenTopic(id) => {
                set_entry(&mut self.hidden, id, decode_stored(key, value, revision)?);
                self.change.topics.insert(id);
            }
            Key::BrokerConfig(scope) => {
                let record = decode_stored::<BrokerConfigRecord>(key, value, revision)?;
                let configs = record.map(|stored| stored.record.configs);
                set_entry(Arc::make_mut(&mut self.snapshot.broker_configs), scope, configs);
                self.change.broker_configs = true;
            }
            Key::Acl(hash) => {
                let record = decode_stored::<AclRecord>(key, value, revision)?;
                set_entry(&mut self.acls, hash, record.map(|stored| stored.record.binding));
                self.change.acls = true;
            }
            Key::Scram(mechanism, user) => {
                let record = decode_stored::<ScramRecord>(key, value, revision)?;
                let credential = record.map(|stored| stored.record.credential);
                set_entry(Arc::make_mut(&mut self.snapshot.scram), (mechanism, user), credential);
                self.change.scram = true;
            }
            Key::Refusal => {
                let record = decode_stored::<RefusalRecord>(key, value, revision)?;
                self.refusal = record.map(|stored| stored.record);
                self.change.traffic_limit = true;
            }
            Key::Throttle => {
                let record = decode_stored::<ThrottleRecord>(key, value, revision)?;
                self.throttle = record.map(|stored| stored.record);
                self.change.traffic_limit = true;
            }
            Key::Limits => self.apply_limits(decode_stored(key, value, revision)?),
            Key::Quota(entity) => self.apply_quota(entity, decode_stored(key, value, revision)?),
            // Read by whoever writes them, never from a view.
            Key::IncarnationCounter
            | Key::Slot(_)
            | Key::ProducerIds
            | Key::TopicId(_)
            | Key::TopicCollision(_)
            | Key::ChangeCounter
            | Key::Change(_)
            | Key::Added(_) => {}
        }
        Ok(())
    }

    fn apply_wanted(&mut self, id: PartitionId, record: Option<Stored<WantedLeaderRecord>>) {
        set_entry(Arc::make_mut(&mut self.snapshot.wanted_leaders), id, record);
        self.change.wanted_leaders = true;
    }

    fn apply_limits(&mut self, record: Option<Stored<LimitsRecord>>) {
        self.snapshot.limits = record.map(|stored| stored.record).unwrap_or_default();
        self.change.limits = true;
    }

    fn apply_quota(&mut self, entity: QuotaEntity, record: Option<Stored<QuotaRecord>>) {
        let values = record.map(|stored| stored.record.values);
        set_entry(Arc::make_mut(&mut self.snapshot.quotas), entity, values);
        self.change.quotas = true;
    }

    fn apply_topic(&mut self, name: String, record: Option<Stored<TopicRecord>>) {
        if let Some(old) = self.topics.remove(&name) {
            self.names.remove(&old.record.id);
            self.change.topics.insert(old.record.id);
        }
        if let Some(record) = record {
            self.change.topics.insert(record.record.id);
            self.names.insert(record.record.id, name.clone());
            self.topics.insert(name, record);
        }
    }

    fn apply_partition(
        &mut self,
        partition: PartitionId,
        record: Option<Arc<Stored<PartitionRecord>>>,
    ) {
        self.change.topics.insert(partition.topic);
        self.change.partitions.insert(partition);
        let partitions = self.partitions.entry(partition.topic).or_default();
        set_entry(partitions, partition.index, record);
        if partitions.is_empty() {
            self.partitions.remove(&partition.topic);
        }
    }

    /// The snapshot of all changes up to `revision`, and what changed since the last snapshot.
    pub fn finish(&mut self, revision: u64) -> Result<(Snapshot, ViewChange), ViewError> {
        let change = std::mem::take(&mut self.change);
        self.snapshot.revision = revision;
        if change.acls {
            self.snapshot.acls = Arc::new(self.acls.values().cloned().collect());
        }
        if change.traffic_limit {
            let limit = TrafficLimit::of(self.refusal.clone(), self.throttle.clone());
            self.snapshot.traffic_limit = limit.map(Arc::new);
        }
        if !change.topics.is_empty() {
            let mut topics = Topics::clone(&self.snapshot.topics);
            // Removed topics first: a name may have come back with another id.
            for id in &change.topics {
                if !self.names.contains_key(id) {
                    topics.remove(*id);
                }
            }
            for id in &change.topics {
                if let Some(topic) = self.topic(*id)? {
                    topics.insert(Arc::new(topic));
                }
                self.hide(*id)?;
            }
            self.snapshot.topics = Arc::new(topics);
        }
        Ok((self.snapshot.clone(), change))
    }

    fn topic(&self, id: TopicId) -> Result<Option<Topic>, ViewError> {
        let stored = self.names.get(&id).and_then(|name| self.topics.get(name));
        let Some(Stored { record, revision }) = stored else { return Ok(None) };
        self.with_partitions(record, *revision).map(Some)
    }

    /// Updates a hidden topic in the snapshot.
    fn hide(&mut self, id: TopicId) -> Result<(), ViewError> {
        let hidden = match self.hidden.get(&id) {
            Some(Stored { record, revision }) => Some(Arc::new(HiddenTopic {
                topic: self.with_partitions(&record.topic, *revision)?,
                hidden_at_ms: record.hidden_at_ms,
                restorable_until_ms: record.restorable_until_ms,
            })),
            None => None,
        };
        if hidden.is_some() || self.snapshot.hidden.contains_key(&id) {
            set_entry(Arc::make_mut(&mut self.snapshot.hidden), id, hidden);
        }
        Ok(())
    }

    fn with_partitions(&self, record: &TopicRecord, revision: u64) -> Result<Topic, ViewError> {
        let id = record.id;
        let known = self.partitions.get(&id);
        let partition = |index| {
            let partition = known.and_then(|known| known.get(&index)).cloned();
            partition.ok_or(ViewError::Missing(PartitionId::new(id, index)))
        };
        let partitions = (0..record.partitions).map(partition).collect::<Result<_, _>>()?;
        Ok(Topic { record: record.clone(), revision, partitions })
    }
}

fn decode_stored<R: Record>(
    key: &str,
    value: Option<&[u8]>,
    revision: u64,
) -> Result<Option<Stored<R>>, SchemaError> {
    let Some(value) = value else { return Ok(None) };
    Ok(Some(Stored { record: decode(key, value)?, revision }))
}

fn set_entry<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}
