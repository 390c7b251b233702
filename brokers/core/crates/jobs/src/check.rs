//! The check: reads the records of segments that an earlier release wrote, which did not read what
//! it acknowledged. So each damaged batch is named before a client meets it, and headers name the
//! largest timestamp of their records. The manifest keeps which segments were read, and a later
//! start goes on from there.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::publish::{Change, Edit};
use super::rewrite::{Rewriter, Source, Visit};
use super::{JobContext, JobError};
use freshet_partition::Partition;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::{Segment, SegmentPlace};
use freshet_wire::records::StoredBatch;

/// Bytes that one round begins to read: compaction and joining wait no longer than these take.
const ROUND_BYTES: u64 = 512 << 20;

/// Checks partitions until a round's bytes are read, and gathers what it has to keep.
pub(super) struct Checker<'a> {
    source: Source<'a>,
    edits: Vec<Edit>,
    read_bytes: u64,
}

impl<'a> Checker<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        Self { source, edits: Vec::new(), read_bytes: 0 }
    }

    /// Reads the segments of a partition whose records nobody has read. A segment with a wrong
    /// header is replaced by one with the right header, so that its index is right too.
    ///
    /// # Errors
    /// Any [`JobError`]; what was read by then is kept all the same.
    pub(super) async fn check(
        &mut self,
        rewriter: &mut Rewriter<'_>,
        partition: &Arc<Partition>,
    ) -> Result<(), JobError> {
        let manifest = partition.manifest();
        let mut places = BTreeSet::new();
        let mut outcome = Ok(());
        for segment in manifest.segments.iter().filter(|segment| !segment.read) {
            if self.read_bytes >= ROUND_BYTES {
                break;
            }
            self.read_bytes += segment.bytes;
            match self.check_segment(rewriter, partition, &manifest, segment).await {
                Ok(true) => drop(places.insert(segment.place())),
                Ok(false) => {}
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        if !places.is_empty() {
            let change: Change = Box::new(move |current| Ok(mark_read(current, &places)));
            self.edits.push(Edit { partition: Arc::clone(partition), change });
        }
        outcome
    }

    /// Reads a segment. Returns false where it is replaced.
    async fn check_segment(
        &self,
        rewriter: &mut Rewriter<'_>,
        partition: &Arc<Partition>,
        manifest: &Arc<Manifest>,
        segment: &Segment,
    ) -> Result<bool, JobError> {
        let mut is_right = true;
        let mut read = |batch: StoredBatch| {
            let named = batch.header().max_timestamp;
            is_right &= partition.read_batch(batch).header().max_timestamp == named;
            Visit::More
        };
        self.source.visit(partition.id(), segment, &mut read).await?;
        if !is_right {
            let run = std::slice::from_ref(segment);
            let batches = self.source.read(partition.id(), run).await?;
            rewriter.replace(partition, manifest, run, &batches, segment.compacted).await?;
        }
        Ok(is_right)
    }

    /// Keeps what was read.
    ///
    /// # Errors
    /// Any [`JobError`]; then the next round reads all of it again.
    pub(super) async fn finish(self, context: &JobContext) -> Result<(), JobError> {
        context.edit(self.edits).await
    }
}

/// The manifest with these segments marked as read; `None` where none of them is left.
fn mark_read(current: &Manifest, places: &BTreeSet<SegmentPlace>) -> Option<Manifest> {
    let mut manifest = current.clone();
    let left = manifest.segments.iter_mut().filter(|segment| places.contains(&segment.place()));
    left.for_each(|segment| segment.read = true);
    (manifest != *current).then_some(manifest)
}
