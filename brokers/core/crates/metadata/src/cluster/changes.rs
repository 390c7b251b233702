//! Notes of changes that clients requested over the Kafka protocol, for an audit log: who changed
//! what, and from where. A note is written by the transaction that makes the change, so that
//! neither is stored without the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    ClusterError, ClusterMetadata, Fence, MetadataError, Transaction, as_read, delete, put,
};
use crate::schema::keys::CHANGES;
use crate::schema::{
    ChangeRecord, CounterRecord, Key, QuotaEntity, QuotaValues, Stored, TopicRecord,
};
use crate::store::{Compare, Write};
use freshet_access::types::{AclBinding, kafka_name};

/// The most notes that are kept, so that no client can fill the store. The oldest are dropped
/// first; a gap in the numbers shows a reader that it came too late.
pub const CHANGES_KEPT_MAX: u64 = 2_000;
/// Details beyond so many are left out.
const DETAILS_MAX: usize = 32;
/// Characters of a detail.
const DETAIL_CHARACTERS_MAX: usize = 256;
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
        Self { action, target_type, target: target.into(), detail: BTreeMap::new() }
    }

    /// The note with one more detail, cut to what an audit log needs.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl AsRef<str>) -> Self {
        if self.detail.len() < DETAILS_MAX {
            let value = value.as_ref().chars().take(DETAIL_CHARACTERS_MAX).collect();
            self.detail.insert(name.into(), value);
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
        configs.into_iter().fold(self, |note, (name, value)| {
            note.with(name.clone(), value.map_or("", String::as_str))
        })
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
    /// The same metadata, whose changes are noted as this client's.
    #[must_use]
    pub fn on_behalf_of(&self, actor: Actor) -> Self {
        Self { actor: Some(Arc::new(actor)), ..self.clone() }
    }

    /// Writes a note of something that changed no metadata. Does nothing where no client requested
    /// it.
    ///
    /// # Errors
    /// [`ClusterError::Fenced`]; [`ClusterError::Store`].
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
            if let Some(oldest) = sequence.checked_sub(CHANGES_KEPT_MAX).filter(|old| *old > 0) {
                writes.push(delete(&Key::Change(oldest)));
            }
            sequence = sequence.checked_add(1).ok_or(ClusterError::Exhausted("change"))?;
        }
        writes.push(put(&Key::ChangeCounter, &CounterRecord { next: sequence })?);
        Ok(writes)
    }

    /// Notes with numbers above `after`, in order, at most `limit`. Where a number is missing,
    /// notes were dropped before they were read.
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
