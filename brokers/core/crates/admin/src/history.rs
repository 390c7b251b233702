//! What the metering agent asks about a cluster: its lanes, and its topics from their creation to
//! their end.

use serde::Serialize;

use super::{AdminError, ClusterAdmin};
use freshet_configs::TopicConfig;
use freshet_metadata::schema::{
    BrokerConfigRecord, ConfigScope, Configs, DeletedTopicRecord, Exclusion, HiddenTopicRecord,
    IncarnationState, Key, Retention, SealedEnd, TopicRecord, decode,
};
use freshet_wire::ids::TopicId;

/// An incarnation of a broker and its lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneFacts {
    /// Its number.
    pub incarnation: u64,
    /// Whether it is live, fenced, sealed or closed.
    pub state: IncarnationState,
    /// Milliseconds since 1970.
    pub started_at_ms: i64,
    /// The end of its lane; `None` while it is not sealed or closed.
    pub sealed_end: Option<SealedEnd>,
}

/// A topic that exists or existed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopicHistory {
    /// Its id, as 32 hexadecimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether it is one of Kafka's internal topics.
    pub internal: bool,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    /// When it was deleted, in ms since 1970; `None` where it exists.
    pub deleted_at_ms: Option<i64>,
    /// The spans [from, until) in ms since 1970, ascending, in which it was hidden: deleted and
    /// restorable, or orphaned. The last one may have no end yet. Its storage is not billed in
    /// the first span.
    pub deletions: Vec<(i64, Option<i64>)>,
    /// Its numbers of partitions as (from when on, in ms since 1970, and how many), ascending.
    pub partition_counts: Vec<(i64, i32)>,
    /// For how long records are kept, in ms; `None`: without a limit.
    pub retention_ms: Option<i64>,
    /// How many bytes of a partition are kept; `None`: without a limit.
    pub retention_bytes: Option<u64>,
    /// Since when these two hold at the earliest, in ms since 1970; 0 where they never changed.
    pub retention_since_ms: i64,
    /// The two that counted until then; `None` where that is not known, or they never changed.
    pub retention_before: Option<(Option<i64>, Option<u64>)>,
    /// What earlier rules excluded, as (since when in ms since 1970, until when, records with
    /// smaller timestamps, all but so many bytes). Brokers hand none of it out again.
    pub excluded: Vec<(i64, i64, Option<i64>, Option<u64>)>,
    /// Whether it is compacted, that is, keeps the newest record of each key.
    pub compacted: bool,
}

/// Whether and how a topic has ended.
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
    fn new(
        id: TopicId,
        topic: DeletedTopicRecord,
        end: End,
        config: &TopicConfig,
        defaults_since_ms: i64,
    ) -> Self {
        let history = topic.retention;
        let since_ms = history.as_ref().map_or(0, |history| history.since_ms);
        // A later change of the cluster's defaults does not say what the topic had before.
        let known = history.as_ref().filter(|_| since_ms >= defaults_since_ms);
        let before = known.map(|history| history.before);
        let parts = |one: Exclusion| (one.since_ms, one.until_ms, one.older_than_ms, one.bytes);
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
            retention_ms: config.retention_ms,
            retention_bytes: config.retention_bytes,
            retention_since_ms: since_ms.max(defaults_since_ms),
            retention_before: before.map(|Retention { ms, bytes }| (ms, bytes)),
            excluded: history
                .map(|history| history.excluded.into_iter().map(parts).collect())
                .unwrap_or_default(),
            compacted: config.cleanup.compact,
        }
    }
}

impl ClusterAdmin {
    /// Lists all known incarnations, in order.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
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

    /// Lists all topics that exist or were deleted, by creation, in one read of the store.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn topics_history(&self) -> Result<Vec<TopicHistory>, AdminError> {
        let broker = self.broker_config().await?;
        let page = self.store.range("", None, usize::MAX).await?;
        let defaults = Key::BrokerConfig(ConfigScope::Default).to_string();
        let defaults = page.entries.iter().find(|entry| entry.key == defaults);
        let defaults = defaults.map(|entry| decode(&entry.key, &entry.value)).transpose()?;
        let defaults_since_ms =
            defaults.map_or(0, |record: BrokerConfigRecord| record.changed_at_ms);
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
            topics.push(TopicHistory::new(id, topic, end, &config, defaults_since_ms));
        }
        topics.sort_by(|a, b| (a.created_at_ms, &a.id).cmp(&(b.created_at_ms, &b.id)));
        Ok(topics)
    }
}
