//! Retention: drops the oldest segments by age or by size, with Kafka's meaning of both, and
//! forgets producers that have written nothing for long.

use super::publish::{Change, Edit};
use super::{JobContext, JobError, TopicFacts};
use freshet_storage::cold::manifest::Manifest;

/// How much of a partition its topic's configs keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// `retention.ms`; `None` keeps records of any age.
    pub ms: Option<i64>,
    /// `retention.bytes` of a partition; `None` keeps any size.
    pub bytes: Option<u64>,
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
        let retention = topics.retention(partition.id())?;
        let expired = move |current: &Manifest| expired_segments(current, retention, now_ms);
        let change: Change = Box::new(move |current| {
            let expired = expired(current);
            Ok((expired > 0).then(|| drop_segments(current, expired, now_ms, silent_since_ms)))
        });
        (expired(&partition.manifest()) > 0).then_some(Edit { partition, change })
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
    let mut bytes = manifest.bytes();
    let expired = manifest.segments.iter().take_while(|segment| {
        let newest_ms = segment.newest_ms();
        let too_old = retention.ms.is_some_and(|ms| newest_ms < now_ms.saturating_sub(ms));
        let too_large = retention.bytes.is_some_and(|kept| bytes - segment.bytes >= kept);
        let gone = too_old || too_large;
        if gone {
            bytes -= segment.bytes;
        }
        gone
    });
    expired.count()
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
