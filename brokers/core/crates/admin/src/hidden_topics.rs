//! Hidden topics: deleted topics, which can be restored, and orphaned topics, which storage has and
//! a metadata store that was restored from a backup does not know.

use serde::Serialize;

use super::topics::{TopicFacts, TopicRecords, id_of, id_text, refuse_internal};
use super::{AdminError, ClusterAdmin};
use freshet_metadata::cluster::ClusterError;
use freshet_metadata::schema::HiddenTopicRecord;
use freshet_wire::ids::TopicId;

/// A deleted topic, which can be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeletedTopicFacts {
    /// Its id as Kafka writes it.
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

/// An orphaned topic: storage has it and the metadata store did not know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OrphanedTopicFacts {
    /// Its id as Kafka writes it.
    pub id: String,
    /// The name that it had; `None` where storage has no descriptor of it.
    pub name: Option<String>,
    /// How many partitions of it there are on storage.
    pub partitions: i32,
    /// When a broker discovered it, in ms since 1970.
    pub found_at_ms: i64,
}

impl ClusterAdmin {
    /// Lists the deleted topics, the last deleted one first.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
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

    /// Lists the orphaned topics by name. They are known once a broker has started after the
    /// metadata store was restored.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
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

    /// Restores a deleted topic, under its old name or another one. With `validate_only` it returns
    /// the topic as it would be restored, and changes nothing.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where there is no such topic, or the time to restore it is over;
    /// [`AdminError::Exists`] where another topic has the name; [`AdminError::Invalid`] where the
    /// name is not acceptable; those of the metadata store.
    pub async fn undelete_topic(
        &self,
        id: &str,
        name: Option<&str>,
        validate_only: bool,
    ) -> Result<TopicFacts, AdminError> {
        self.restore(id, name, false, validate_only).await
    }

    /// Makes an orphaned topic one of the cluster's topics again. `validate_only` has the same
    /// effect as in [`ClusterAdmin::undelete_topic`].
    ///
    /// # Errors
    /// Those of [`ClusterAdmin::undelete_topic`]; [`AdminError::Invalid`] where storage does not
    /// have its name and none is given.
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
            let message = "its name is not on storage: give one";
            return Err(AdminError::invalid("name", message));
        }
        if validate_only {
            let stored = self.metadata.restored_topic(id, name).await?;
            return Ok(TopicRecords::default().facts(&stored.record));
        }
        let stored = self.metadata.restore_topic(None, id, name).await?;
        Ok(self.leaders_of(&stored.record).await?.facts(&stored.record))
    }

    /// Gives up a hidden topic for good; its records are deleted later.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where there is no such topic; those of the metadata store.
    pub async fn purge_topic(&self, id: &str) -> Result<TopicFacts, AdminError> {
        let purged = self.metadata.purge_topic(None, id_of(id)?).await?;
        Ok(TopicRecords::default().facts(&purged.record.topic))
    }

    async fn hidden(&self, id: TopicId, orphaned: bool) -> Result<HiddenTopicRecord, AdminError> {
        let hidden = self.metadata.hidden_topics().await?;
        let topic = hidden.into_iter().find(|hidden| hidden.topic.id == id);
        let topic = topic.filter(|hidden| hidden.is_orphaned() == orphaned);
        topic.ok_or_else(|| ClusterError::UnknownHiddenTopic(id).into())
    }
}
