//! Creating, changing and removing topics.
//!
//! A topic exists while `topic/<name>` does. Its index `topic_id/<id>` is written first and removed
//! last, so that [`ClusterMetadata::sweep_topics`] finds what was half made or half removed there;
//! no view shows that meanwhile. A creation in several steps compares in each that the index is as
//! it was written; a removal of rests rewrites the index first. So the two cannot run into each
//! other.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::changes::Note;
use super::limits::Gate;
use super::placement::leader_of;
use super::{
    ClusterError, ClusterMetadata, Fence, MetadataError, Step, Transaction, as_read, batches,
    compare_absent, compare_revision, delete, put, transaction_of,
};
use crate::names::{check_topic_name, is_internal_topic};
use crate::schema::keys::{HIDDEN_TOPICS, TOPIC_IDS, TOPICS};
use crate::schema::{
    Configs, DeletedTopicRecord, HiddenTopicRecord, IncarnationState, Key, PartitionRecord,
    REPLICATION_FACTOR_MAX, Retention, RetentionHistory, SchemaError, Stored, Table,
    TopicNameRecord, TopicRecord,
};
use crate::store::{Compare, Expected, Write};
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};

/// The most partitions of one topic.
pub const PARTITIONS_PER_TOPIC_MAX: i32 = 10_000;
/// A topic with at most this many partitions is created in one transaction.
const PARTITIONS_AT_ONCE: usize = super::BATCH_WRITES_MAX - 3;

/// Configurations by name: the new value, or `None` to return to the default.
pub type ConfigChanges = BTreeMap<String, Option<String>>;

/// Returns the rule of retention that follows from a topic's configurations.
pub type RuleOf<'a> = &'a (dyn Fn(&Configs) -> Retention + Sync);

/// A topic to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions, from 1 to [`PARTITIONS_PER_TOPIC_MAX`].
    pub partitions: i32,
    /// The replication factor that is reported to clients, from 1 to [`REPLICATION_FACTOR_MAX`].
    pub replication_factor: i16,
    /// Whether the broker makes it to keep its own state in. No other topic has such a name.
    pub internal: bool,
    /// The configurations that are set. The caller has checked names and values.
    pub configs: Configs,
    /// The first leaders of its partitions: each leads the next one, and the first one follows the
    /// last. Empty where no broker runs.
    pub leaders: Vec<Incarnation>,
}

impl ClusterMetadata {
    /// A topic, as the store has it now.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn topic(&self, name: &str) -> Result<Option<Stored<TopicRecord>>, ClusterError> {
        self.read(&Key::Topic(name.to_owned())).await
    }

    /// Checks all that [`ClusterMetadata::create_topic`] checks, and writes nothing.
    ///
    /// # Errors
    /// As [`ClusterMetadata::create_topic`].
    pub async fn check_new_topic(&self, new: &NewTopic) -> Result<(), ClusterError> {
        check_topic_name(&new.name)?;
        check_internal(&new.name, new.internal)?;
        if new.partitions < 1 {
            let text = format!("number of partitions {} is below 1", new.partitions);
            return Err(ClusterError::InvalidPartitions(text));
        }
        check_partitions_max(new.partitions)?;
        if !(1..=REPLICATION_FACTOR_MAX).contains(&new.replication_factor) {
            return Err(ClusterError::InvalidReplicationFactor(new.replication_factor));
        }
        self.check_name_free(&new.name).await?;
        if !new.internal {
            self.check_deleted_room().await?;
        }
        self.gate_of(new).await.map(drop)
    }

    /// The gate of a new topic. Internal topics do not count.
    async fn gate_of(&self, new: &NewTopic) -> Result<Gate, ClusterError> {
        if new.internal {
            return Ok(Gate::none());
        }
        self.topic_gate(1, u64::try_from(new.partitions).unwrap_or(0)).await
    }

    pub(super) async fn check_name_free(&self, name: &str) -> Result<(), ClusterError> {
        if self.topic(name).await?.is_some() {
            return Err(ClusterError::TopicExists(name.to_owned()));
        }
        match self.read::<TopicNameRecord>(&Key::collision_of(name)).await? {
            None => Ok(()),
            // It was created between the two reads.
            Some(other) if other.record.name == name => {
                Err(ClusterError::TopicExists(name.to_owned()))
            }
            Some(other) => {
                let (name, existing) = (name.to_owned(), other.record.name);
                Err(ClusterError::TopicCollision { name, existing })
            }
        }
    }

    /// Creates a topic with all its partitions. It appears at once, however many they are.
    ///
    /// # Errors
    /// `InvalidTopicName`, `InternalTopic`, `InvalidPartitions`, `InvalidReplicationFactor`,
    /// `TopicExists`, `TopicCollision`, `LimitReached`, `TooLarge` and `Fenced` of
    /// [`ClusterError`]; [`ClusterError::Store`]. After any error but `Unknown` the topic does not
    /// exist.
    pub async fn create_topic(
        &self,
        fence: Option<Fence>,
        new: &NewTopic,
    ) -> Result<Stored<TopicRecord>, ClusterError> {
        let _turn = self.turn(Table::Topics).await;
        self.check_new_topic(new).await?;
        let mut retry = self.retry();
        loop {
            let gate = self.gate_of(new).await?;
            let record = TopicRecord {
                id: self.random_id(),
                name: new.name.clone(),
                partitions: new.partitions,
                replication_factor: new.replication_factor,
                internal: new.internal,
                created_at_ms: self.clock.now_ms(),
                configs: new.configs.clone(),
                partition_counts: Vec::new(),
                deletions: Vec::new(),
                retention: None,
            };
            match self.create_as(fence, &record, &new.leaders, &gate).await {
                Ok(revision) => return Ok(Stored { record, revision }),
                Err(error) => retry.after(error).await?,
            }
            self.check_name_free(&new.name).await?;
        }
    }

    async fn create_as(
        &self,
        fence: Option<Fence>,
        record: &TopicRecord,
        leaders: &[Incarnation],
        gate: &Gate,
    ) -> Result<u64, ClusterError> {
        let (topic, index) = (Key::Topic(record.name.clone()), Key::TopicId(record.id));
        let collision = Key::collision_of(&record.name);
        let name = TopicNameRecord { name: record.name.clone() };
        let free = [compare_absent(&topic), compare_absent(&collision)];
        let visible = [put(&collision, &name)?, put(&topic, record)?];
        let steps = (0..record.partitions)
            .map(|i| {
                let key = Key::Partition(PartitionId::new(record.id, i));
                let partition = PartitionRecord::new(leader_of(leaders, i), 0);
                Ok(Step { compare: None, write: put(&key, &partition)? })
            })
            .collect::<Result<Vec<_>, ClusterError>>()?;

        let mut first = Transaction::new().compare(index.to_string(), Expected::Absent);
        first.compares.extend(free.clone());
        first.writes.push(put(&index, &name)?);
        if steps.len() <= PARTITIONS_AT_ONCE {
            first.writes.extend(steps.into_iter().map(|step| step.write));
            first.writes.extend(visible);
            gate.guard(&mut first);
            return self.commit_noted(fence, first, || Note::of_topic(record)).await;
        }
        self.check_room_for_change().await?;
        let revision = self.commit(fence, first).await?;
        let begun = compare_revision(&index, revision);
        let mut last = Transaction { compares: free.into(), writes: visible.into() };
        last.compares.push(begun.clone());
        gate.guard(&mut last);
        let result = self.create_in_steps(fence, &begun, steps, last, record).await;
        if matches!(result, Err(ClusterError::Store(MetadataError::Conflict { .. }))) {
            self.remove_rest(fence, record.id).await?;
        }
        // After other errors the next sweep removes what was half made.
        result
    }

    async fn create_in_steps(
        &self,
        fence: Option<Fence>,
        begun: &Compare,
        partitions: Vec<Step>,
        last: Transaction,
        record: &TopicRecord,
    ) -> Result<u64, ClusterError> {
        for batch in batches(partitions) {
            let mut transaction = transaction_of(&batch);
            transaction.compares.push(begun.clone());
            self.commit(fence, transaction).await?;
        }
        self.commit_noted(fence, last, || Note::of_topic(record)).await
    }

    /// Deletes a topic with all its partitions, which disappear at once. With `id`, it must be this
    /// topic and not a later one of the same name. Returns the topic, with the revision of the
    /// deletion. For `keep_ms` it can be restored ([`ClusterMetadata::restore_topic`]), unless so
    /// many are deleted after it that all deleted ones together exceed the limits of topics; where
    /// `keep_ms` is not above 0 it is deleted for good, and storage removes its records.
    ///
    /// # Errors
    /// `UnknownTopic`, `Fenced` of [`ClusterError`]; [`ClusterError::Store`].
    pub async fn delete_topic(
        &self,
        fence: Option<Fence>,
        name: &str,
        id: Option<TopicId>,
        keep_ms: i64,
    ) -> Result<Stored<TopicRecord>, ClusterError> {
        let key = Key::Topic(name.to_owned());
        let mut retry = self.retry();
        let (record, revision) = loop {
            let stored = self.known_topic(name).await?;
            if id.is_some_and(|id| id != stored.record.id) {
                return Err(ClusterError::UnknownTopic(name.to_owned()));
            }
            let compares = vec![compare_revision(&key, stored.revision)];
            let mark = self.mark_of(&stored.record, keep_ms)?;
            let writes = vec![delete(&key), delete(&Key::collision_of(name)), mark];
            let transaction = Transaction { compares, writes };
            let note = || {
                let id = URL_SAFE_NO_PAD.encode(stored.record.id.as_bytes());
                Note::new("topic.delete", name).with("id", id)
            };
            match self.commit_noted(fence, transaction, note).await {
                Ok(revision) => break (stored.record, revision),
                Err(error) => retry.after(error).await?,
            }
        };
        if keep_ms > 0 {
            if let Err(error) = self.give_up_oldest(fence, record.id).await {
                tracing::warn!(topic = name, %error, "more deleted topics are kept than may be");
            }
            return Ok(Stored { record, revision });
        }
        if let Err(error) = self.remove_rest(fence, record.id).await {
            tracing::warn!(
                topic = name, %error,
                "records of a deleted topic are left in the metadata until the next sweep"
            );
        }
        Ok(Stored { record, revision })
    }

    /// Removes the marks of deleted topics. The caller has made sure that storage has nothing of
    /// them.
    ///
    /// # Errors
    /// [`ClusterError::Fenced`]; [`ClusterError::Store`]. Some may be forgotten then.
    pub async fn forget_deleted_topics(
        &self,
        fence: Option<Fence>,
        topics: impl IntoIterator<Item = TopicId>,
    ) -> Result<(), ClusterError> {
        let step = |id| Step { compare: None, write: delete(&Key::DeletedTopic(id)) };
        for batch in batches(topics.into_iter().map(step).collect()) {
            self.commit(fence, transaction_of(&batch)).await?;
        }
        Ok(())
    }

    /// The record that a topic leaves which is deleted now.
    fn mark_of(&self, topic: &TopicRecord, keep_ms: i64) -> Result<Write, ClusterError> {
        let now_ms = self.clock.now_ms();
        if keep_ms <= 0 {
            let deleted = DeletedTopicRecord::of(topic, now_ms);
            return put(&Key::DeletedTopic(topic.id), &deleted);
        }
        let hidden = HiddenTopicRecord {
            topic: topic.clone(),
            hidden_at_ms: now_ms,
            restorable_until_ms: Some(now_ms.saturating_add(keep_ms)),
        };
        put(&Key::HiddenTopic(topic.id), &hidden)
    }

    /// Raises the number of partitions to `total`; the new ones are led by `leaders`, as
    /// those of a [`NewTopic`].
    ///
    /// # Errors
    /// `UnknownTopic`, `InvalidPartitions`, `LimitReached`, `Fenced` of [`ClusterError`];
    /// [`ClusterError::Store`].
    pub async fn create_partitions(
        &self,
        fence: Option<Fence>,
        name: &str,
        total: i32,
        leaders: &[Incarnation],
    ) -> Result<Stored<TopicRecord>, ClusterError> {
        let _turn = self.turn(Table::Topics).await;
        let mut retry = self.retry();
        loop {
            let stored = self.known_topic(name).await?;
            check_partitions(stored.record.partitions, total)?;
            let adding = total.abs_diff(stored.record.partitions);
            let gate = self.topic_gate(0, adding.into()).await?;
            let record = stored.record.extended(total, self.clock.now_ms());
            match self.extend_topic(fence, &stored, &record, leaders, &gate).await {
                Ok(revision) => return Ok(Stored { record, revision }),
                Err(error) => retry.after(error).await?,
            }
        }
    }

    async fn extend_topic(
        &self,
        fence: Option<Fence>,
        stored: &Stored<TopicRecord>,
        record: &TopicRecord,
        leaders: &[Incarnation],
        gate: &Gate,
    ) -> Result<u64, ClusterError> {
        self.check_room_for_change().await?;
        // An earlier attempt that stopped half-way may have written some; no view shows them.
        let left: BTreeMap<PartitionId, Stored<PartitionRecord>> =
            self.partitions_of(record.id).await?.into_iter().collect();
        let topic = Key::Topic(record.name.clone());
        let mut steps = Vec::new();
        for index in stored.record.partitions..record.partitions {
            let partition = PartitionId::new(record.id, index);
            let left = left.get(&partition);
            let epoch = left.map_or(Some(0), |left| left.record.epoch.checked_add(1));
            let epoch = epoch.ok_or(ClusterError::Exhausted("leader epoch"))?;
            let new = PartitionRecord::new(leader_of(leaders, index), epoch);
            steps.push(Step::put(&Key::Partition(partition), as_read(left), &new)?);
        }
        // In the last batch, because the new partitions count from this write on.
        steps.push(Step { compare: None, write: put(&topic, record)? });
        let mut batches = batches(steps);
        let last = batches.pop().unwrap_or_default();
        let guarded = |batch: &[Step]| {
            let mut transaction = transaction_of(batch);
            transaction.compares.push(compare_revision(&topic, stored.revision));
            transaction
        };
        for batch in batches {
            self.commit(fence, guarded(&batch)).await?;
        }
        let note = || {
            Note::new("topic.create_partitions", record.name.clone())
                .with("partitions", record.partitions.to_string())
        };
        let mut last = guarded(&last);
        gate.guard(&mut last);
        self.commit_noted(fence, last, note).await
    }

    /// Changes configurations of a topic. The caller has checked names and values. With `expected`,
    /// the record must still have this revision: for changes that were derived from it. `rule` says
    /// which retention follows from configurations.
    ///
    /// # Errors
    /// `UnknownTopic`, `TooLarge`, `Fenced` of [`ClusterError`], `Contended` where the record has
    /// another revision than `expected`; [`ClusterError::Store`].
    pub async fn set_topic_configs(
        &self,
        fence: Option<Fence>,
        name: &str,
        expected: Option<u64>,
        changes: &ConfigChanges,
        rule: RuleOf<'_>,
    ) -> Result<Stored<TopicRecord>, ClusterError> {
        let key = Key::Topic(name.to_owned());
        let mut retry = self.retry();
        loop {
            let stored = self.known_topic(name).await?;
            if expected.is_some_and(|expected| expected != stored.revision) {
                return Err(ClusterError::Contended(key.to_string()));
            }
            let configs = apply_changes(&stored.record.configs, changes);
            if configs == stored.record.configs {
                return Ok(stored);
            }
            let retention = self.retention_after(&stored.record, &configs, rule).await?;
            let record = TopicRecord { configs, retention, ..stored.record.clone() };
            let note = || {
                let changed = changes.iter().map(|(name, value)| (name, value.as_ref()));
                Note::new("topic.update", name).with_configs(changed)
            };
            match self.replace_noted(fence, &key, Some(&stored), &record, note).await {
                Ok(revision) => return Ok(Stored { record, revision }),
                Err(error) => retry.after(error).await?,
            }
        }
    }

    /// The history of a topic's retention once it has these configs.
    async fn retention_after(
        &self,
        topic: &TopicRecord,
        configs: &Configs,
        rule: RuleOf<'_>,
    ) -> Result<Option<RetentionHistory>, ClusterError> {
        let before = rule(&topic.configs);
        if before == rule(configs) {
            return Ok(topic.retention.clone());
        }
        // Before the incarnations are read, so that whatever a later one writes is later.
        let now_ms = self.clock.now_ms();
        let incarnations = self.incarnations().await?;
        let asleep = incarnations.values().all(|one| one.record.state != IncarnationState::Live);
        let last = incarnations.last_key_value().map(|(incarnation, _)| *incarnation);
        Ok(Some(RetentionHistory::after(
            topic.retention.as_ref(),
            topic.created_at_ms,
            before,
            now_ms,
            last.filter(|_| asleep),
        )))
    }

    async fn known_topic(&self, name: &str) -> Result<Stored<TopicRecord>, ClusterError> {
        self.topic(name).await?.ok_or_else(|| ClusterError::UnknownTopic(name.to_owned()))
    }

    /// Removes what is left of topics that were half made or half removed when a broker died. A
    /// creation that is under way meanwhile begins again. Returns how many there were.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn sweep_topics(&self, fence: Option<Fence>) -> Result<usize, ClusterError> {
        let indexed = self.read_all(TOPIC_IDS).await?;
        let mut existing = BTreeSet::new();
        for entry in self.read_all(TOPICS).await? {
            existing.insert(Stored::<TopicRecord>::from_entry(&entry)?.record.id);
        }
        for entry in self.read_all(HIDDEN_TOPICS).await? {
            existing.insert(Stored::<HiddenTopicRecord>::from_entry(&entry)?.record.topic.id);
        }
        let mut swept = 0;
        for entry in indexed {
            let Some(Key::TopicId(id)) = Key::parse(&entry.key)? else {
                return Err(SchemaError::Key(entry.key).into());
            };
            if !existing.contains(&id) && self.remove_rest(fence, id).await? {
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// Removes index and partitions of a topic id that is neither visible nor hidden, and returns
    /// whether there were any.
    pub(super) async fn remove_rest(
        &self,
        fence: Option<Fence>,
        id: TopicId,
    ) -> Result<bool, ClusterError> {
        let index = Key::TopicId(id);
        let mut retry = self.retry();
        loop {
            let Some(stored) = self.read::<TopicNameRecord>(&index).await? else {
                return Ok(false);
            };
            let topic = Key::Topic(stored.record.name.clone());
            let visible = self.topic(&stored.record.name).await?;
            if visible.as_ref().is_some_and(|visible| visible.record.id == id) {
                return Ok(false);
            }
            let hidden = Key::HiddenTopic(id);
            if self.read::<HiddenTopicRecord>(&hidden).await?.is_some() {
                return Ok(false);
            }
            // From here on a creation that is under way finds the index changed, and stops.
            let expected = as_read(visible.as_ref());
            let compares = vec![
                Compare { key: topic.to_string(), expected },
                compare_revision(&index, stored.revision),
                compare_absent(&hidden),
            ];
            let writes = vec![put(&index, &stored.record)?];
            match self.commit(fence, Transaction { compares, writes }).await {
                Ok(_) => break,
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
        let partitions = self.partitions_of(id).await?;
        let writes = partitions.iter().map(|(id, _)| delete(&Key::Partition(*id)));
        let steps = writes.map(|write: Write| Step { compare: None, write }).collect();
        for batch in batches(steps) {
            self.commit(fence, transaction_of(&batch)).await?;
        }
        self.commit(fence, Transaction::new().delete(index.to_string())).await?;
        Ok(true)
    }

    /// A random id as Kafka makes them: not a reserved one, and not one whose text form begins
    /// with a dash, which tools would take for an option.
    pub(super) fn random_id(&self) -> TopicId {
        loop {
            let mut bytes = [0; 16];
            self.randomness.fill(&mut bytes);
            let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
            // The first six bits are the first character of URL-safe base64; 62 is the dash.
            if id.as_bytes()[0] >> 2 != 62 {
                return id;
            }
        }
    }
}

/// The configurations after the changes.
pub(super) fn apply_changes(before: &Configs, changes: &ConfigChanges) -> Configs {
    let mut configs = before.clone();
    for (name, value) in changes {
        match value {
            Some(value) => configs.insert(name.clone(), value.clone()),
            None => configs.remove(name),
        };
    }
    configs
}

fn check_partitions(current: i32, total: i32) -> Result<(), ClusterError> {
    if total == current {
        let text = format!("topic already has {current} partition(s)");
        return Err(ClusterError::InvalidPartitions(text));
    }
    if total < current {
        let text = format!(
            "the topic currently has {current} partition(s); {total} would not be an increase"
        );
        return Err(ClusterError::InvalidPartitions(text));
    }
    check_partitions_max(total)
}

/// Checks that a topic has a name of Kafka's internal topics exactly if it is internal.
pub(super) fn check_internal(name: &str, internal: bool) -> Result<(), ClusterError> {
    if internal == is_internal_topic(name) {
        Ok(())
    } else {
        Err(ClusterError::InternalTopic(name.to_owned()))
    }
}

fn check_partitions_max(partitions: i32) -> Result<(), ClusterError> {
    if partitions > PARTITIONS_PER_TOPIC_MAX {
        let text =
            format!("{partitions} partitions, a topic has at most {PARTITIONS_PER_TOPIC_MAX}");
        return Err(ClusterError::InvalidPartitions(text));
    }
    Ok(())
}
