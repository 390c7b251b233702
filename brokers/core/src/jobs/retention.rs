//! Retention: the oldest segments go by age or by size, with Kafka's meaning of both.

use super::{JobContext, JobError, TopicFacts};
use crate::cold::manifest::Manifest;

/// What a topic's configuration keeps.
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
/// [`JobError`]; a partition whose manifest was not installed keeps all that it had.
pub async fn enforce(context: &JobContext, topics: &dyn TopicFacts) -> Result<(), JobError> {
    let now_ms = context.clock.now_ms();
    let mut manifests = Vec::new();
    for partition in context.partitions.all() {
        let Some(retention) = topics.retention(partition.id()) else { continue };
        let current = partition.manifest();
        let expired = expired_segments(&current, retention, now_ms);
        if expired > 0 {
            let shortened = shorten(&current, expired, now_ms);
            let published = context.publish_manifest(&partition, shortened).await?;
            manifests.push((partition, published));
        }
    }
    if manifests.is_empty() { Ok(()) } else { context.install(manifests).await }
}

/// How many of the oldest segments retention lets go.
pub fn expired_segments(manifest: &Manifest, retention: Retention, now_ms: i64) -> usize {
    let mut bytes = manifest.bytes();
    let expired = manifest.segments.iter().take_while(|segment| {
        // Records without a timestamp (-1) have no age. Kafka takes the age of their file.
        let dated = segment.max_timestamp >= 0;
        let too_old = dated
            && retention.ms.is_some_and(|ms| segment.max_timestamp < now_ms.saturating_sub(ms));
        let too_large = retention.bytes.is_some_and(|kept| bytes - segment.bytes >= kept);
        let gone = too_old || too_large;
        if gone {
            bytes -= segment.bytes;
        }
        gone
    });
    expired.count()
}

fn shorten(current: &Manifest, expired: usize, now_ms: i64) -> Manifest {
    let mut manifest = current.clone();
    let end = current.segments[expired - 1].end_offset;
    manifest.start_at(end, now_ms);
    manifest.producers.expire(now_ms);
    manifest
}
