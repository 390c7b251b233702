//! Rounds of rewriting: every partition is looked at, and compacted or joined where that is due.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::compact::{CompactionRules, compact};
use super::join::join;
use super::rewrite::{Rewriter, Source};
use super::{JobContext, JobError, JobSettings, TopicFacts};
use crate::cold::ColdError;
use crate::cold::store::StoreError;
use crate::ids::PartitionId;
use crate::lane::index::ManifestRef;
use crate::partition::Partition;

/// See the module.
pub(super) struct Rounds<'a> {
    context: &'a JobContext,
    settings: JobSettings,
    /// Partitions with damaged segments, each with the manifest that names them: they are left
    /// alone until they have another.
    damaged: BTreeMap<PartitionId, ManifestRef>,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(context: &'a JobContext, settings: JobSettings) -> Self {
        Self { context, settings, damaged: BTreeMap::new() }
    }

    /// One round.
    ///
    /// # Errors
    /// [`JobError`] where there is no sense in going on; a partition that cannot be read stays as
    /// it is, and the others go on.
    pub(super) async fn go_round(&mut self, topics: &dyn TopicFacts) -> Result<(), JobError> {
        let source = Source::new(self.context, self.settings.rewrite_bytes_per_s);
        let mut rewriter = Rewriter::new(self.context);
        let mut known = None;
        for partition in self.context.partitions.all() {
            let (id, name) = (partition.id(), partition.manifest().name);
            if self.damaged.get(&id) == Some(&name) {
                continue;
            }
            let rules = match known {
                Some((topic, rules)) if topic == id.topic => rules,
                _ => topics.compaction(id.topic),
            };
            known = Some((id.topic, rules));
            match self.rewrite(&source, &mut rewriter, &partition, rules).await {
                Err(JobError::Cold(error @ ColdError::Damaged { .. })) => {
                    tracing::error!(partition = %id, topic = %partition.topic(), %error,
                        "neither joined nor compacted");
                    self.damaged.insert(id, name);
                }
                // The manifest moved on meanwhile: the next round sees the new one.
                Err(JobError::Cold(ColdError::Store(StoreError::NotFound(key)))) => {
                    tracing::debug!(partition = %id, key, "went while it was read");
                }
                outcome => outcome?,
            }
        }
        rewriter.finish().await
    }

    async fn rewrite(
        &self,
        source: &Source<'_>,
        rewriter: &mut Rewriter<'a>,
        partition: &Arc<Partition>,
        rules: Option<CompactionRules>,
    ) -> Result<(), JobError> {
        if let Some(rules) = rules {
            let now_ms = self.context.clock.now_ms();
            let keys_bytes = self.settings.compaction_keys_bytes;
            if compact(source, rewriter, partition, rules, keys_bytes, now_ms).await? {
                return Ok(());
            }
        }
        join(source, rewriter, partition).await
    }
}
