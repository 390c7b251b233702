//! Notes of changes that clients requested over the Kafka protocol, for an audit log: who changed
//! what, and from where. A note is written by the transaction that makes the change, so that
//! neither is stored without the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::access::USER_BYTES_MAX;
use super::{
    ClusterError, ClusterMetadata, Fence, MetadataError, Transaction, as_read, delete, put,
};
use crate::schema::keys::CHANGES;
use crate::schema::{
    ChangeRecord, CounterRecord, Key, QuotaEntity, QuotaValues, Stored, TopicRecord,
};
use crate::store::{Compare, Write};
use crate::texts::cut;
use freshet_access::types::{AclBinding, kafka_name};

/// The most notes that wait for a reader, so that no client can fill the store. While there are so
/// many, what clients would change is refused: none is dropped before it was read. Of a cluster
/// without a control plane, which has set no rate of changes, nobody reads them: there the oldest
/// are dropped.
pub const CHANGES_KEPT_MAX: u64 = 5_000;
/// Details beyond so many are left out.
const DETAILS_MAX: usize = 32;
/// Characters of a detail, and of each thing that is known of the client.
const DETAIL_CHARACTERS_MAX: usize = 256;
/// Characters of a principal: no user that can log in has a longer one.
const PRINCIPAL_CHARACTERS_MAX: usize = "User:".len() + USER_BYTES_MAX;
/// Characters of all details together.
const DETAILS_CHARACTERS_MAX: usize = 4_096;
/// Characters of the name of what was changed: an audit log puts the cluster's id before it.
const TARGET_CHARACTERS_MAX: usize = 400;
/// Changes that one transaction forgets.
const FORGOTTEN_AT_ONCE: usize = 100;

/// The client that requests a change over the Kafka protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `User:<name>`.
    pub principal: String,
    /// The client id.
    pub client_id: String,
    /// The client's own address, also behind a gateway.
    pub address: String,
    /// What the gateway calls its connection; empty without one.
    pub connection: String,
}

/// A note of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What was done, as `topic.create`.
    pub action: &'static str,
    /// The kind of thing that was changed, as `topic`.
    pub target_type: &'static str,
    /// Its name.
    pub target: String,
    /// Details by name, as the changed configs.
    pub detail: BTreeMap<String, String>,
}

impl Note {
    /// A note without details. The kind of the target is what stands before the dot.
    #[must_use]
    pub fn new(action: &'static str, target: impl Into<String>) -> Self {
        let target_type = action.split('.').next().unwrap_or(action);
        let target = cut(&target.into(), TARGET_CHARACTERS_MAX);
        Self { action, target_type, target, detail: BTreeMap::new() }
    }

    /// The note with one more detail, cut to what an audit log needs.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let name = cut(name.as_ref(), DETAIL_CHARACTERS_MAX);
        let value = cut(value.as_ref(), DETAIL_CHARACTERS_MAX);
        let characters = |text: &String| text.chars().count();
        let known: usize =
            self.detail.iter().map(|(name, value)| characters(name) + characters(value)).sum();
        let all = known + characters(&name) + characters(&value);
        if self.detail.len() < DETAILS_MAX && all <= DETAILS_CHARACTERS_MAX {
            self.detail.insert(name, value);
        }
        self
    }

    /// The note with changes of configs as details: the new value, or an empty text for the
    /// default.
    #[must_use]
    pub fn with_configs<'a>(
        self,
        configs: impl IntoIterator<Item = (&'a String, Option<&'a String>)>,
    ) -> Self {
        configs
            .into_iter()
            .fold(self, |note, (name, value)| note.with(name, value.map_or("", String::as_str)))
    }

    pub(super) fn of_topic(topic: &TopicRecord) -> Self {
        Self::new("topic.create", topic.name.clone())
            .with("partitions", topic.partitions.to_string())
            .with("replication.factor", topic.replication_factor.to_string())
            .with_configs(topic.configs.iter().map(|(name, value)| (name, Some(value))))
    }

    pub(super) fn of_quotas(
        entity: &QuotaEntity,
        before: &QuotaValues,
        after: &QuotaValues,
    ) -> Self {
        let parts = entity.0.iter().map(|(kind, name)| match name {
            Some(name) => format!("{}={name}", kind.name()),
            None => format!("{}=<default>", kind.name()),
        });
        let target = parts.collect::<Vec<_>>().join(",");
        let action = if after.is_empty() { "quota.remove" } else { "quota.set" };
        let gone = before.keys().filter(|key| !after.contains_key(key));
        let note = gone.fold(Self::new(action, target), |note, key| note.with(key.name(), ""));
        after.iter().fold(note, |note, (key, value)| note.with(key.name(), value.to_string()))
    }

    pub(super) fn of_acl(action: &'static str, binding: &AclBinding) -> Self {
        Self::new(action, binding.resource_name.clone())
            .with("resource_type", kafka_name(&binding.resource_type))
            .with("pattern_type", kafka_name(&binding.pattern_type))
            .with("principal", &binding.principal)
            .with("host", &binding.host)
            .with("operation", kafka_name(&binding.operation))
            .with("permission", kafka_name(&binding.permission))
    }
}

impl ClusterMetadata {
    /// The same metadata, whose changes are noted as this client's. What the client chose is cut to
    /// what an audit log needs.
    #[must_use]
    pub fn on_behalf_of(&self, actor: &Actor) -> Self {
        let short = |text: &str| cut(text, DETAIL_CHARACTERS_MAX);
        let actor = Actor {
            principal: cut(&actor.principal, PRINCIPAL_CHARACTERS_MAX),
            client_id: short(&actor.client_id),
            address: short(&actor.address),
            connection: short(&actor.connection),
        };
        Self { actor: Some(Arc::new(actor)), ..self.clone() }
    }

    /// How many more changes of clients may be noted before some are read; any number where no
    /// client asks, and where nobody reads them.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn room_for_changes(&self) -> Result<u64, ClusterError> {
        if self.actor.is_none() || !self.has_reader() {
            return Ok(u64::MAX);
        }
        let stored = self.read::<CounterRecord>(&Key::ChangeCounter).await?;
        let next = stored.map_or(1, |stored| stored.record.next);
        Ok(CHANGES_KEPT_MAX.saturating_sub(self.waiting(next).await?))
    }

    /// Checks that a change can be noted before it is made in several steps.
    pub(super) async fn check_room_for_change(&self) -> Result<(), ClusterError> {
        match self.room_for_changes().await? {
            0 => Err(ClusterError::ChangesWait),
            _ => Ok(()),
        }
    }

    /// Whether a control plane reads the notes.
    fn has_reader(&self) -> bool {
        self.limits_held().is_some_and(|limits| limits.changes_per_second.is_some())
    }

    /// How many notes below `next` wait for a reader, or a few more where one reads them now.
    async fn waiting(&self, next: u64) -> Result<u64, ClusterError> {
        let oldest = self.changes(0, 1).await?;
        Ok(oldest.first().map_or(0, |oldest| next.saturating_sub(oldest.sequence)))
    }

    /// Writes a note of something that changed no metadata. Does nothing where no client requested
    /// it.
    ///
    /// # Errors
    /// [`ClusterError::ChangesWait`], [`ClusterError::Fenced`]; [`ClusterError::Store`].
    pub async fn note(&self, fence: Option<Fence>, note: Note) -> Result<(), ClusterError> {
        if self.actor.is_some() {
            self.commit_noted(fence, Transaction::new(), || note).await?;
        }
        Ok(())
    }

    /// As `commit`, and notes the change in the same transaction where a client asked for it.
    pub(super) async fn commit_noted(
        &self,
        fence: Option<Fence>,
        transaction: Transaction,
        note: impl FnOnce() -> Note,
    ) -> Result<u64, ClusterError> {
        self.commit_all_noted(fence, transaction, || vec![note()]).await
    }

    /// As `commit_noted`, with several notes.
    ///
    /// # Errors
    /// [`ClusterError::ChangesWait`] where so many notes wait that these do not fit; then nothing
    /// is changed.
    pub(super) async fn commit_all_noted(
        &self,
        fence: Option<Fence>,
        transaction: Transaction,
        notes: impl FnOnce() -> Vec<Note>,
    ) -> Result<u64, ClusterError> {
        let Some(actor) = &self.actor else { return self.commit(fence, transaction).await };
        let (notes, counter) = (notes(), Key::ChangeCounter);
        let mut retry = self.retry();
        loop {
            let stored = self.read::<CounterRecord>(&counter).await?;
            let first = stored.as_ref().map_or(1, |stored| stored.record.next);
            // Behind the counter: what is read meanwhile only makes more room.
            if self.has_reader()
                && self.waiting(first).await? + notes.len() as u64 > CHANGES_KEPT_MAX
            {
                return Err(ClusterError::ChangesWait);
            }
            let mut noted = transaction.clone();
            noted.writes.extend(self.writes_of(actor, first, &notes)?);
            let expected = as_read(stored.as_ref());
            noted.compares.push(Compare { key: counter.to_string(), expected });
            match self.commit(fence, noted).await {
                // Another note took the number; the records of the change may be as they were.
                Err(ClusterError::Store(MetadataError::Conflict { key }))
                    if key == counter.to_string() =>
                {
                    retry.after(MetadataError::Conflict { key }.into()).await?;
                }
                outcome => return outcome,
            }
        }
    }

    fn writes_of(
        &self,
        actor: &Actor,
        first: u64,
        notes: &[Note],
    ) -> Result<Vec<Write>, ClusterError> {
        let at_ms = self.clock.now_ms();
        let mut writes = Vec::with_capacity(notes.len() * 2 + 1);
        let mut sequence = first;
        for note in notes {
            let record = ChangeRecord {
                sequence,
                at_ms,
                principal: actor.principal.clone(),
                client_id: actor.client_id.clone(),
                address: actor.address.clone(),
                connection: actor.connection.clone(),
                action: note.action.to_owned(),
                target_type: note.target_type.to_owned(),
                target: note.target.clone(),
                detail: note.detail.clone(),
            };
            writes.push(put(&Key::Change(sequence), &record)?);
            let oldest = sequence.checked_sub(CHANGES_KEPT_MAX).filter(|oldest| *oldest > 0);
            if let Some(oldest) = oldest.filter(|_| !self.has_reader()) {
                writes.push(delete(&Key::Change(oldest)));
            }
            sequence = sequence.checked_add(1).ok_or(ClusterError::Exhausted("change"))?;
        }
        writes.push(put(&Key::ChangeCounter, &CounterRecord { next: sequence })?);
        Ok(writes)
    }

    /// Notes with numbers above `after`, in order, at most `limit`. Where a number is missing,
    /// notes were lost before they were read: by a release that dropped the oldest, or with the
    /// store.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn changes(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<ChangeRecord>, ClusterError> {
        let after = Key::Change(after).to_string();
        let page = self.store.range(CHANGES, Some(&after), limit).await?;
        let record = |entry| Ok(Stored::<ChangeRecord>::from_entry(entry)?.record);
        page.entries.iter().map(record).collect()
    }

    /// Drops all notes up to the one of this number. Returns how many there were.
    ///
    /// # Errors
    /// [`ClusterError::Store`]; some may have been dropped then.
    pub async fn forget_changes(&self, up_to: u64) -> Result<usize, ClusterError> {
        let mut forgotten = 0;
        loop {
            let page = self.store.range(CHANGES, None, FORGOTTEN_AT_ONCE).await?;
            let last = Key::Change(up_to).to_string();
            let due = page.entries.into_iter().take_while(|entry| entry.key <= last);
            let writes: Vec<Write> = due.map(|entry| Write::Delete { key: entry.key }).collect();
            if writes.is_empty() {
                return Ok(forgotten);
            }
            forgotten += writes.len();
            self.commit(None, Transaction { compares: Vec::new(), writes }).await?;
        }
    }
}
