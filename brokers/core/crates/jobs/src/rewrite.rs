//! Rewriting: a run of adjacent segments of a partition is replaced by one segment, in an object
//! that partitions share. Joining and compaction both use this.
//!
//! Reading and building take long and block no other job. A new segment is used only where the run
//! that it replaces is still there when the job's turn comes to change the manifest; else the
//! sweeper removes it.

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

/// An object is put once it holds this many bytes. A run has at most as many, unless it is a single
/// segment.
pub(super) const OBJECT_BYTES: u64 = 32 << 20;

/// A run of segments that is replaced.
struct Replacement {
    run: Vec<SegmentPlace>,
    /// The index in the object of the segment that replaces it; `None` where no record of the run
    /// is left.
    by: Option<usize>,
}

/// The changes of one partition that wait for the object to be put.
struct Plan {
    partition: Arc<Partition>,
    /// The manifest from which the job read.
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

    /// Replaces a run of segments of a partition by a segment of `batches`, which starts where the
    /// run does. The change counts once the object is full, or [`Rewriter::finish`] is called.
    ///
    /// # Errors
    /// Any [`JobError`] where the object was full and could not be put or installed.
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
                let batch = partition.read_batch(batch.clone());
                self.writer.add(partition.id(), &batch, written_at_ms.unwrap_or(0));
            }
            self.segments += 1;
        }
        let run = run.iter().map(Segment::place).collect();
        self.plan(partition, seen).replacements.push(Replacement { run, by });
        if self.writer.bytes() >= OBJECT_BYTES { self.finish().await } else { Ok(()) }
    }

    /// Records that compaction has seen everything of a partition below an offset.
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

    /// Puts the object, and changes the manifests so that its segments count.
    ///
    /// # Errors
    /// Any [`JobError`]; then every partition keeps the segments that it had.
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
        // Dropped only now, when manifests name the object: until then the sweeper must keep it.
        drop(object);
        outcome
    }
}

impl Plan {
    /// The manifest in which those runs are replaced that are still there; `None` where nothing
    /// changes.
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

/// Reads segments for a job, no faster than the pace that all rewriting jobs share.
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

    /// The metrics of the job.
    pub(super) fn metrics(&self) -> &RewriteMetrics {
        self.metrics
    }

    /// Calls `visit` with the batches of a segment, chunk by chunk and in order, until it returns
    /// [`Visit::Enough`].
    ///
    /// # Errors
    /// [`ColdError`]; its `Damaged` where a checksum is wrong.
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
            // Other tasks get their turn before the batches of this chunk are decoded.
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

    /// Reads all batches of a run of segments.
    ///
    /// # Errors
    /// Those of [`Source::visit`].
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

/// Whether a visitor wants more batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    More,
    Enough,
}
