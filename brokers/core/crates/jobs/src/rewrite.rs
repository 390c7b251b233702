//! Rewriting: runs of adjacent segments of a partition become one segment each, in objects that
//! small partitions share. Joining and compaction both come down to this.
//!
//! Reading and building take long and hold nothing up. What was built counts only if the run that
//! it is to replace is still there when the turn comes; else it is left to the sweeper.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::publish::{Change, Edit};
use super::{JobContext, JobError};
use freshet_partition::Partition;
use freshet_storage::cache::pace::Pace;
use freshet_storage::cold::ColdError;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::{Segment, SegmentPlace, SegmentWriter};
use freshet_storage::rules::Rule;
use freshet_telemetry::RewriteMetrics;
use freshet_wire::ids::PartitionId;
use freshet_wire::records::{Batches, StoredBatch, Tail};

/// An object is put once it holds this much. A run is at most as large, unless it is one segment.
pub(super) const OBJECT_BYTES: u64 = 32 << 20;

/// A run of segments, and what takes its place.
struct Replacement {
    run: Vec<SegmentPlace>,
    /// Which of the object's segments; none where nothing is left of the run.
    by: Option<usize>,
}

/// What becomes of one partition.
struct Plan {
    partition: Arc<Partition>,
    /// The manifest from which the work began.
    seen: Arc<Manifest>,
    replacements: Vec<Replacement>,
    first_dirty_offset: Option<i64>,
}

/// Gathers rewritten segments of many partitions until an object is full.
pub(super) struct Rewriter<'a> {
    context: &'a JobContext,
    writer: SegmentWriter,
    segments: usize,
    plans: BTreeMap<PartitionId, Plan>,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(context: &'a JobContext) -> Self {
        Self { context, writer: context.segment_writer(), segments: 0, plans: BTreeMap::new() }
    }

    /// Has `batches` take the place of a run of segments of a partition; their segment starts where
    /// the run does.
    ///
    /// # Errors
    /// [`JobError`], where the object was full and could not be put or installed.
    pub(super) async fn replace(
        &mut self,
        partition: &Arc<Partition>,
        seen: &Arc<Manifest>,
        run: &[Segment],
        batches: &[StoredBatch],
        compacted: bool,
    ) -> Result<(), JobError> {
        let Some(first) = run.first() else { return Ok(()) };
        let by = if batches.is_empty() { None } else { Some(self.segments) };
        if by.is_some() {
            let written_at_ms = run.iter().map(|segment| segment.written_at_ms).max();
            let compacted = compacted || run.iter().any(|segment| segment.compacted);
            self.writer.begin(partition.id(), first.base_offset, compacted);
            for batch in batches {
                self.writer.add(partition.id(), batch, written_at_ms.unwrap_or(0));
            }
            self.segments += 1;
        }
        let run = run.iter().map(Segment::place).collect();
        self.plan(partition, seen).replacements.push(Replacement { run, by });
        if self.writer.bytes() >= OBJECT_BYTES { self.finish().await } else { Ok(()) }
    }

    /// Notes that compaction has seen everything of a partition below an offset.
    pub(super) fn is_clean(
        &mut self,
        partition: &Arc<Partition>,
        seen: &Arc<Manifest>,
        until: i64,
    ) {
        self.plan(partition, seen).first_dirty_offset = Some(until);
    }

    fn plan(&mut self, partition: &Arc<Partition>, seen: &Arc<Manifest>) -> &mut Plan {
        self.plans.entry(partition.id()).or_insert_with(|| Plan {
            partition: Arc::clone(partition),
            seen: Arc::clone(seen),
            replacements: Vec::new(),
            first_dirty_offset: None,
        })
    }

    /// Puts what was gathered, and has it count.
    ///
    /// # Errors
    /// [`JobError`]; every partition keeps the segments that it had.
    pub(super) async fn finish(&mut self) -> Result<(), JobError> {
        let next = Self::new(self.context);
        let Self { writer, segments, plans, .. } = std::mem::replace(self, next);
        let (mut built, mut object) = (Vec::new(), None);
        if segments > 0 {
            let (put, made) = self.context.put_segments(writer).await?;
            object = Some(put);
            built.extend(made.into_iter().map(|(_, segment)| segment));
        }
        let now_ms = self.context.clock.now_ms();
        let edits_current = self.context.sources.rules.hold(Rule::EditWhatCounts);
        let built = Arc::new(built);
        let edits = plans.into_values().map(|plan| {
            let partition = Arc::clone(&plan.partition);
            let built = Arc::clone(&built);
            let change: Change = Box::new(move |current| {
                let base = if edits_current { current } else { &plan.seen };
                Ok(plan.apply(base, &built, now_ms))
            });
            Edit { partition, change }
        });
        let outcome = self.context.edit(edits.collect()).await;
        // Until here the sweeper kept it.
        drop(object);
        outcome
    }
}

impl Plan {
    /// The manifest with what is still there replaced; none where nothing changes.
    fn apply(&self, current: &Manifest, built: &[Segment], now_ms: i64) -> Option<Manifest> {
        let mut manifest = current.clone();
        let mut changed = false;
        for Replacement { run, by } in &self.replacements {
            let by = by.map(|at| built[at]);
            changed |= manifest.replace(run, by, now_ms);
        }
        if let Some(until) = self.first_dirty_offset
            && until > manifest.first_dirty_offset
        {
            manifest.first_dirty_offset = until;
            changed = true;
        }
        changed.then_some(manifest)
    }
}

/// Reads for a job, no faster than all of them may together.
pub(super) struct Source<'a> {
    context: &'a JobContext,
    pace: &'a Pace,
    metrics: &'a RewriteMetrics,
}

impl<'a> Source<'a> {
    pub(super) fn new(
        context: &'a JobContext,
        pace: &'a Pace,
        metrics: &'a RewriteMetrics,
    ) -> Self {
        Self { context, pace, metrics }
    }

    /// What is counted of the job.
    pub(super) fn metrics(&self) -> &RewriteMetrics {
        self.metrics
    }

    /// Visits the batches of a segment in order, until `visit` has enough.
    ///
    /// # Errors
    /// The store's; [`ColdError::Damaged`] where something does not check.
    pub(super) async fn visit(
        &self,
        partition: PartitionId,
        segment: &Segment,
        visit: &mut (dyn FnMut(StoredBatch) -> Visit + Send),
    ) -> Result<Visit, JobError> {
        let cold = &self.context.sources.cold;
        for chunk in cold.chunks(partition, segment).await?.iter() {
            let bytes = cold.read(segment.object, chunk).await?;
            self.metrics.read_bytes.inc_by(bytes.len() as u64);
            self.pace.take(bytes.len() as u64).await;
            // Others go on before the batches are looked through.
            tokio::task::yield_now().await;
            for batch in Batches::new(bytes, Tail::Report) {
                let batch = batch.map_err(|error| ColdError::Damaged {
                    object: segment.object.key(&self.context.cluster),
                    what: format!("the chunk at {}: {error}", chunk.position),
                })?;
                if visit(batch) == Visit::Enough {
                    return Ok(Visit::Enough);
                }
            }
        }
        Ok(Visit::More)
    }

    /// All batches of a run of segments.
    ///
    /// # Errors
    /// As [`Source::visit`].
    pub(super) async fn read(
        &self,
        partition: PartitionId,
        run: &[Segment],
    ) -> Result<Vec<StoredBatch>, JobError> {
        let mut batches = Vec::new();
        for segment in run {
            let mut take = |batch| {
                batches.push(batch);
                Visit::More
            };
            self.visit(partition, segment, &mut take).await?;
        }
        Ok(batches)
    }
}

/// Whether a visitor wants more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    More,
    Enough,
}
