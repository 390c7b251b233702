//! Rounds of rewriting: each round looks at every partition, compacts it or joins its segments
//! where that is due, and reads what an earlier release wrote without reading it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::check::Checker;
use super::compact::{CompactionRules, cleanable, compact_partition};
use super::join::join_segments;
use super::rewrite::{Rewriter, Source};
use super::{JobContext, JobError, JobSettings, TopicFacts};
use freshet_partition::Partition;
use freshet_storage::cache::pace::Pace;
use freshet_storage::cold::ColdError;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::names::ManifestRef;
use freshet_telemetry::JobMetrics;
use freshet_wire::ids::PartitionId;
use freshet_world::env::store::StoreError;

/// Performs rounds of rewriting, and remembers the partitions that it cannot read.
pub(super) struct Rounds<'a> {
    context: &'a JobContext,
    settings: JobSettings,
    /// The partitions with damaged segments, each with the manifest that names them. They are
    /// skipped until they have another manifest.
    damaged: BTreeMap<PartitionId, ManifestRef>,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(context: &'a JobContext, settings: JobSettings) -> Self {
        Self { context, settings, damaged: BTreeMap::new() }
    }

    /// Performs one round. A partition with damaged segments is logged and skipped.
    ///
    /// # Errors
    /// Any [`JobError`] that concerns more than one partition; then the round ends.
    pub(super) async fn go_round(&mut self, topics: &dyn TopicFacts) -> Result<(), JobError> {
        let context = self.context;
        let metrics = &context.sources.metrics.jobs;
        let pace = Pace::new(self.settings.rewrite_bytes_per_s.max(1));
        let compacting = Source::new(context, &pace, &metrics.compact);
        let joining = Source::new(context, &pace, &metrics.join);
        let mut checker = Checker::new(Source::new(context, &pace, &metrics.check));
        let mut rewriter = Rewriter::new(context);
        let mut backlog = Backlog::default();
        let mut known = None;
        let partitions = context.partitions.all();
        self.forget_mended(&partitions);
        for partition in partitions {
            let (id, name) = (partition.id(), partition.manifest().name);
            if self.damaged.contains_key(&id) {
                continue;
            }
            let rules = match known {
                Some((topic, rules)) if topic == id.topic => rules,
                _ => topics.compaction(id.topic),
            };
            known = Some((id.topic, rules));
            let compacted = match rules {
                Some(rules) => {
                    backlog.add(&partition.manifest(), rules, context.clock.now_ms());
                    self.compact(&compacting, &mut rewriter, &partition, rules).await
                }
                None => Ok(None),
            };
            let outcome = match compacted {
                Ok(Some(dropped)) => {
                    metrics.dropped_records.inc_by(dropped);
                    Ok(())
                }
                Ok(None) => join_segments(&joining, &mut rewriter, &partition).await,
                Err(error) => Err(error),
            };
            let outcome = match outcome {
                Ok(()) => checker.check(&mut rewriter, &partition).await,
                failed => failed,
            };
            self.judge_outcome(&partition, name, outcome)?;
        }
        metrics.uncleanable_partitions.set(self.damaged.len().try_into().unwrap_or(i64::MAX));
        backlog.report(metrics);
        rewriter.finish().await?;
        checker.finish(context).await
    }

    /// Forgets the damaged partitions that are gone, or that have another manifest than the one
    /// with the damaged segments: they are tried again.
    fn forget_mended(&mut self, partitions: &[Arc<Partition>]) {
        let now: BTreeMap<_, _> = partitions
            .iter()
            .filter(|partition| self.damaged.contains_key(&partition.id()))
            .map(|partition| (partition.id(), partition.manifest().name))
            .collect();
        self.damaged.retain(|id, name| now.get(id) == Some(name));
    }

    async fn compact(
        &self,
        source: &Source<'_>,
        rewriter: &mut Rewriter<'a>,
        partition: &Arc<Partition>,
        rules: CompactionRules,
    ) -> Result<Option<u64>, JobError> {
        let now_ms = self.context.clock.now_ms();
        let keys_bytes = self.settings.compaction_keys_bytes;
        compact_partition(source, rewriter, partition, rules, keys_bytes, now_ms).await
    }

    /// Decides whether the outcome for one partition ends the round. Damage and a manifest that was
    /// replaced concern only the partition itself.
    fn judge_outcome(
        &mut self,
        partition: &Partition,
        name: ManifestRef,
        outcome: Result<(), JobError>,
    ) -> Result<(), JobError> {
        match outcome {
            Err(JobError::Cold(error @ ColdError::Damaged { .. })) => {
                tracing::error!(partition = %partition.id(), topic = %partition.topic(), %error,
                    "neither joined nor compacted");
                self.damaged.insert(partition.id(), name);
                Ok(())
            }
            // The manifest was replaced meanwhile: the next round reads the new one.
            Err(JobError::Cold(ColdError::Store(StoreError::NotFound(key)))) => {
                tracing::debug!(partition = %partition.id(), key, "went while it was read");
                Ok(())
            }
            outcome => outcome,
        }
    }
}

/// Sums what compaction has not seen yet at the start of a round, for the metrics.
#[derive(Default)]
struct Backlog {
    bytes: u64,
    partitions: i64,
    dirty_ratio_max: f64,
}

impl Backlog {
    fn add(&mut self, manifest: &Manifest, rules: CompactionRules, now_ms: i64) {
        let Some(cleanable) = cleanable(manifest, rules, now_ms) else { return };
        self.bytes += cleanable.dirty_bytes;
        self.partitions += i64::from(cleanable.is_due(rules));
        self.dirty_ratio_max = self.dirty_ratio_max.max(cleanable.dirty_ratio());
    }

    fn report(&self, metrics: &JobMetrics) {
        metrics.backlog_bytes.set(self.bytes.cast_signed());
        metrics.backlog_partitions.set(self.partitions);
        metrics.dirty_percent_max.set(self.dirty_ratio_max * 100.0);
    }
}
