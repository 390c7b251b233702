//! Retention: drops the oldest segments by age or by size, with Kafka's meaning of both, and
//! forgets producers that have written nothing for long.

use super::publish::{Change, Edit};
use super::{JobContext, JobError, TopicFacts};
use freshet_metadata::schema::{Exclusion, Retention, RetentionHistory};
use freshet_partition::Partition;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::Segment;

/// The rules of a partition's topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRules {
    /// The present one.
    pub present: Retention,
    /// The earlier ones, where there were any.
    pub history: Option<RetentionHistory>,
}

impl LogRules {
    /// How many of the oldest segments are to be dropped. `now_ms` is the time in ms since 1970.
    fn expired(&self, manifest: &Manifest, now_ms: i64) -> usize {
        self.excluded_by(self.present, manifest, now_ms)
    }

    /// How many of the oldest segments `rule` or an earlier rule excludes.
    fn excluded_by(&self, rule: Retention, manifest: &Manifest, now_ms: i64) -> usize {
        let earlier = self.history.iter().flat_map(|history| &history.excluded);
        let now = expired_segments(manifest, rule, now_ms);
        earlier.fold(now, |most, one| most.max(excluded_segments(manifest, one)))
    }

    /// Hides from readers what is not billed any more, until the next round of retention drops it.
    /// A rule that does not count yet hides nothing.
    pub fn hide_expired(&self, partition: &Partition, now_ms: i64) {
        let counting = self
            .history
            .as_ref()
            .map_or(self.present, |history| history.counting(self.present, now_ms));
        let manifest = partition.manifest();
        if let Some(last) = self.excluded_by(counting, &manifest, now_ms).checked_sub(1) {
            partition.hide_below(manifest.segments[last].end_offset);
        }
    }
}

/// Applies retention to every partition.
///
/// # Errors
/// Any [`JobError`]; then partitions whose manifest was not installed keep all their segments.
pub async fn enforce_retention(
    context: &JobContext,
    topics: &dyn TopicFacts,
) -> Result<(), JobError> {
    let now_ms = context.clock.now_ms();
    let silent_since_ms = now_ms.saturating_sub(topics.producer_expiration_ms());
    let edits = context.partitions.all().into_iter().filter_map(|partition| {
        let rules = topics.rules(partition.id().topic)?;
        let hidden_below = partition.hidden_below();
        let expired = move |current: &Manifest| {
            let hidden = |segment: &Segment| segment.end_offset <= hidden_below;
            rules.expired(current, now_ms).max(current.segments.partition_point(hidden))
        };
        if expired(&partition.manifest()) == 0 {
            return None;
        }
        let change: Change = Box::new(move |current| {
            let expired = expired(current);
            Ok((expired > 0).then(|| drop_segments(current, expired, now_ms, silent_since_ms)))
        });
        Some(Edit { partition, change })
    });
    context.edit(edits.collect()).await
}

/// Forgets the producers of every partition that have written nothing for long. This changes no
/// manifest: those forget the same producers when they change for another reason, and a partition
/// that is opened forgets them anew.
pub fn expire_producers(context: &JobContext, topics: &dyn TopicFacts) {
    let since_ms = context.clock.now_ms().saturating_sub(topics.producer_expiration_ms());
    for partition in context.partitions.all() {
        partition.expire_producers(since_ms);
    }
}

/// How many of the oldest segments retention drops. `now_ms` is the time in ms since 1970.
pub fn expired_segments(manifest: &Manifest, retention: Retention, now_ms: i64) -> usize {
    let older_than_ms = retention.ms.map(|ms| now_ms.saturating_sub(ms));
    count_excluded(&manifest.segments, older_than_ms, retention.bytes)
}

/// How many of the oldest segments rules excluded that hold no more.
pub fn excluded_segments(manifest: &Manifest, excluded: &Exclusion) -> usize {
    let written = |segment: &Segment| segment.written_at_ms < excluded.until_ms;
    let later = manifest.segments.iter().position(|segment| !written(segment));
    let there = &manifest.segments[..later.unwrap_or(manifest.segments.len())];
    count_excluded(there, excluded.older_than_ms, excluded.bytes)
}

/// How many of the oldest segments are older than a time, or have `kept` bytes or more behind them.
fn count_excluded(segments: &[Segment], older_than_ms: Option<i64>, kept: Option<u64>) -> usize {
    let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let excluded = segments.iter().take_while(|segment| {
        let too_old = older_than_ms.is_some_and(|ms| segment.newest_ms() < ms);
        let too_large = kept.is_some_and(|kept| bytes - segment.bytes >= kept);
        let gone = too_old || too_large;
        if gone {
            bytes -= segment.bytes;
        }
        gone
    });
    excluded.count()
}

fn drop_segments(
    current: &Manifest,
    expired: usize,
    now_ms: i64,
    silent_since_ms: i64,
) -> Manifest {
    let mut manifest = current.clone();
    let end = current.segments[expired - 1].end_offset;
    manifest.start_at(end, now_ms);
    manifest.producers.expire(silent_since_ms, manifest.covered_end);
    manifest
}
