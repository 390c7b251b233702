//! What the meter asks of a cluster: its lanes, and topics from their creation to their end; and
//! whether brokers take records.

use serde::Serialize;

use super::{AdminError, ClusterAdmin};
use freshet_configs::TopicConfig;
use freshet_metadata::schema::{
    Configs, DeletedTopicRecord, HiddenTopicRecord, IncarnationState, Key, SealedEnd, TopicRecord,
    decode,
};
use freshet_wire::ids::TopicId;

/// The most characters of the reason for which brokers take no records.
const REASON_CHARACTERS_MAX: usize = 1024;

/// A start of a broker, which is a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneFacts {
    /// Its number.
    pub incarnation: u64,
    /// What it may do.
    pub state: IncarnationState,
    /// Milliseconds since 1970.
    pub started_at_ms: i64,
    /// Where its lane ends for ever.
    pub sealed_end: Option<SealedEnd>,
}

/// A topic that exists or existed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopicHistory {
    /// Its identity, 32 hexadecimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether Kafka itself keeps, or kept, state in it.
    pub internal: bool,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    /// Milliseconds since 1970; none where it exists.
    pub deleted_at_ms: Option<i64>,
    /// [from, until) in ms, ascending, in which it was deleted and could be restored, or was not
    /// known; the last one may have no end yet. Nothing is counted then.
    pub deletions: Vec<(i64, Option<i64>)>,
    /// From when on, in ms, it had how many partitions; ascending.
    pub partition_counts: Vec<(i64, i32)>,
    /// For how long records are kept; none keeps them at any age.
    pub retention_ms: Option<i64>,
    /// How many bytes of a partition are kept; none keeps any size.
    pub retention_bytes: Option<u64>,
    /// Whether the newest record of each key is kept.
    pub compacted: bool,
}

/// What has become of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It exists.
    None,
    /// It is hidden.
    Hidden,
    /// It is gone for good.
    Deleted,
}

impl TopicHistory {
    fn new(id: TopicId, topic: DeletedTopicRecord, end: End, config: &TopicConfig) -> Self {
        let deletes = config.cleanup.delete;
        let ended = topic.deletions.iter().map(|(from_ms, until_ms)| (*from_ms, Some(*until_ms)));
        let open = (end == End::Hidden).then_some((topic.deleted_at_ms, None));
        Self {
            id: id.simple().to_string(),
            name: topic.name,
            internal: topic.internal,
            created_at_ms: topic.created_at_ms,
            deleted_at_ms: (end == End::Deleted).then_some(topic.deleted_at_ms),
            deletions: ended.chain(open).collect(),
            partition_counts: topic.partition_counts,
            retention_ms: config.retention_ms.filter(|_| deletes),
            retention_bytes: config.retention_bytes.filter(|_| deletes),
            compacted: config.cleanup.compact,
        }
    }
}

impl ClusterAdmin {
    /// All starts of brokers that are known, in order.
    ///
    /// # Errors
    /// As the store.
    pub async fn lanes(&self) -> Result<Vec<LaneFacts>, AdminError> {
        let incarnations = self.metadata.incarnations().await?;
        let lanes = incarnations.into_iter().map(|(incarnation, stored)| LaneFacts {
            incarnation: incarnation.0,
            state: stored.record.state,
            started_at_ms: stored.record.started_at_ms,
            sealed_end: stored.record.sealed_end,
        });
        Ok(lanes.collect())
    }

    /// All topics that exist or were deleted, by creation, in one read of the store.
    ///
    /// # Errors
    /// As the store.
    pub async fn topics_history(&self) -> Result<Vec<TopicHistory>, AdminError> {
        let broker = self.broker_config().await?;
        let page = self.store.range("", None, usize::MAX).await?;
        let mut topics = Vec::new();
        for entry in page.entries {
            let (id, topic, end) = match Key::parse(&entry.key)? {
                Some(Key::Topic(_)) => {
                    let record: TopicRecord = decode(&entry.key, &entry.value)?;
                    (record.id, DeletedTopicRecord::of(&record, 0), End::None)
                }
                Some(Key::HiddenTopic(id)) => {
                    let record: HiddenTopicRecord = decode(&entry.key, &entry.value)?;
                    (id, record.removed(), End::Hidden)
                }
                Some(Key::DeletedTopic(id)) => {
                    (id, decode(&entry.key, &entry.value)?, End::Deleted)
                }
                _ => continue,
            };
            let configs: &Configs = &topic.configs;
            let config = TopicConfig::resolve(configs, &broker);
            topics.push(TopicHistory::new(id, topic, end, &config));
        }
        topics.sort_by(|a, b| (a.created_at_ms, &a.id).cmp(&(b.created_at_ms, &b.id)));
        Ok(topics)
    }

    /// Has brokers take no records but the service's own, now and after every start.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where there is no such cluster, [`AdminError::Invalid`]; as the
    /// store.
    pub async fn suspend_produce(&self, reason: &str) -> Result<(), AdminError> {
        let characters = reason.chars().count();
        if reason.trim().is_empty() || characters > REASON_CHARACTERS_MAX {
            let message =
                format!("a reason has 1 to {REASON_CHARACTERS_MAX} characters, not {characters}");
            return Err(AdminError::invalid("reason", message));
        }
        self.require_record().await?;
        self.metadata.set_produce_suspension(Some(reason)).await?;
        Ok(())
    }

    /// Has brokers take records again; tells whether they were told not to.
    ///
    /// # Errors
    /// As the store.
    pub async fn resume_produce(&self) -> Result<bool, AdminError> {
        Ok(self.metadata.set_produce_suspension(None).await?.is_some())
    }

    /// Why brokers take no records; none where they do.
    ///
    /// # Errors
    /// As the store.
    pub async fn produce_suspension(&self) -> Result<Option<String>, AdminError> {
        Ok(self.metadata.produce_suspension().await?)
    }
}
