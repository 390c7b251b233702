//! Hidden topics: deleted and restorable, or found on storage behind metadata that came
//! back from a backup.

use serde::Serialize;

use super::topics::{Found, TopicFacts, id_of, id_text, refuse_internal};
use super::{AdminError, ClusterAdmin};
use freshet_metadata::cluster::ClusterError;
use freshet_metadata::schema::HiddenTopicRecord;
use freshet_wire::ids::TopicId;

/// A topic that was deleted and can be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeletedTopicFacts {
    /// Its identity as Kafka writes it.
    pub id: String,
    /// The name that it had.
    pub name: String,
    /// How many partitions it has.
    pub partitions: i32,
    /// When it was deleted, ms since 1970.
    pub deleted_at_ms: i64,
    /// Until when it can be restored, ms since 1970.
    pub restorable_until_ms: i64,
}

/// A topic that storage has and the metadata did not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OrphanedTopicFacts {
    /// Its identity as Kafka writes it.
    pub id: String,
    /// The name that it had; none where storage does not tell.
    pub name: Option<String>,
    /// How many partitions of it there are on storage.
    pub partitions: i32,
    /// When a broker found it, ms since 1970.
    pub found_at_ms: i64,
}

impl ClusterAdmin {
    /// Topics that were deleted and can be restored, the last deleted one first.
    ///
    /// # Errors
    /// As the store.
    pub async fn deleted_topics(&self) -> Result<Vec<DeletedTopicFacts>, AdminError> {
        let now_ms = self.clock.now_ms();
        let hidden = self.metadata.hidden_topics().await?.into_iter();
        let mut deleted: Vec<DeletedTopicFacts> = hidden
            .filter(|hidden| !hidden.is_due(now_ms))
            .filter_map(|hidden| {
                Some(DeletedTopicFacts {
                    restorable_until_ms: hidden.restorable_until_ms?,
                    id: id_text(hidden.topic.id),
                    name: hidden.topic.name,
                    partitions: hidden.topic.partitions,
                    deleted_at_ms: hidden.hidden_at_ms,
                })
            })
            .collect();
        deleted.sort_by(|one, other| {
            (other.deleted_at_ms, &one.name, &one.id).cmp(&(
                one.deleted_at_ms,
                &other.name,
                &other.id,
            ))
        });
        Ok(deleted)
    }

    /// Topics that storage has and the metadata did not know when it came back from a backup, by
    /// name. They are known from the first start of a broker on.
    ///
    /// # Errors
    /// As the store.
    pub async fn orphaned_topics(&self) -> Result<Vec<OrphanedTopicFacts>, AdminError> {
        let hidden = self.metadata.hidden_topics().await?.into_iter();
        let orphans = hidden.filter(HiddenTopicRecord::is_orphaned);
        let facts = orphans.map(|hidden| OrphanedTopicFacts {
            id: id_text(hidden.topic.id),
            name: Some(hidden.topic.name).filter(|name| !name.is_empty()),
            partitions: hidden.topic.partitions,
            found_at_ms: hidden.hidden_at_ms,
        });
        let mut facts: Vec<OrphanedTopicFacts> = facts.collect();
        facts.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        Ok(facts)
    }

    /// Brings a deleted topic back, under its old name or another one. With `validate_only` it
    /// gives what would come back, and changes nothing.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where there is none, or its time is over; [`AdminError::Exists`]
    /// where the name is taken, [`AdminError::Invalid`]; as the store.
    pub async fn undelete_topic(
        &self,
        id: &str,
        name: Option<&str>,
        validate_only: bool,
    ) -> Result<TopicFacts, AdminError> {
        self.restore(id, name, false, validate_only).await
    }

    /// Makes a topic that was found on storage one of the cluster's again. `validate_only` as in
    /// [`ClusterAdmin::undelete_topic`].
    ///
    /// # Errors
    /// As [`ClusterAdmin::undelete_topic`]; [`AdminError::Invalid`] where storage does not tell its
    /// name and none is given.
    pub async fn attach_topic(
        &self,
        id: &str,
        name: Option<&str>,
        validate_only: bool,
    ) -> Result<TopicFacts, AdminError> {
        self.restore(id, name, true, validate_only).await
    }

    async fn restore(
        &self,
        id: &str,
        name: Option<&str>,
        orphaned: bool,
        validate_only: bool,
    ) -> Result<TopicFacts, AdminError> {
        if let Some(name) = name {
            refuse_internal(name)?;
        }
        let id = id_of(id)?;
        let hidden = self.hidden(id, orphaned).await?;
        if name.is_none() && hidden.topic.name.is_empty() {
            let message = "storage does not tell its name: give one";
            return Err(AdminError::invalid("name", message));
        }
        if validate_only {
            let stored = self.metadata.restored_topic(id, name).await?;
            return Ok(Found::default().facts(&stored.record));
        }
        let stored = self.metadata.restore_topic(None, id, name).await?;
        Ok(self.leaders_of(&stored.record).await?.facts(&stored.record))
    }

    /// Gives up a hidden topic: its records go.
    ///
    /// # Errors
    /// [`AdminError::NotFound`]; as the store.
    pub async fn purge_topic(&self, id: &str) -> Result<TopicFacts, AdminError> {
        let purged = self.metadata.purge_topic(None, id_of(id)?).await?;
        Ok(Found::default().facts(&purged.record.topic))
    }

    async fn hidden(&self, id: TopicId, orphaned: bool) -> Result<HiddenTopicRecord, AdminError> {
        let hidden = self.metadata.hidden_topics().await?;
        let found = hidden.into_iter().find(|hidden| hidden.topic.id == id);
        let found = found.filter(|hidden| hidden.is_orphaned() == orphaned);
        found.ok_or_else(|| ClusterError::UnknownHiddenTopic(id).into())
    }
}
