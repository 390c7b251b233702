//! The splitter: turns lane files, all partitions mixed, into an object sorted by partition, and
//! manifests that name its segments.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{JobContext, JobError};
use crate::cold::manifest::Manifest;
use crate::cold::segment::{ObjectRef, Segment, SegmentWriter};
use crate::cold::store::StoreError;
use crate::ids::{Incarnation, PartitionId};
use crate::lane::leftover::Leftover;
use crate::lane::writer::RolledFile;
use crate::lane::{LaneError, LaneFile, LaneSpot};
use crate::partition::Partition;
use crate::records::{BatchHeader, StoredBatch};
use crate::rules::Rule;

/// Manifests that are written side by side.
const PUTS_AT_ONCE: usize = 8;

/// A batch that is to be split.
#[derive(Debug, Clone, Copy)]
pub struct SplitEntry {
    /// Its partition.
    pub partition: PartitionId,
    /// Offset of its first record.
    pub base_offset: i64,
    /// Leader epoch under which it was written.
    pub epoch: crate::ids::Epoch,
    /// Where it lies.
    pub spot: LaneSpot,
}

/// See the module.
pub struct Splitter {
    context: Arc<JobContext>,
    next_object: u64,
    /// Whole lane files, for as long as one split needs them.
    files: BTreeMap<(Incarnation, LaneFile), Bytes>,
}

/// What one partition adds to an object.
struct Addition {
    partition: Arc<Partition>,
    batches: Vec<(BatchHeader, crate::ids::Epoch)>,
}

impl Splitter {
    /// A splitter whose objects are numbered from 0.
    pub fn new(context: Arc<JobContext>) -> Self {
        Self { context, next_object: 0, files: BTreeMap::new() }
    }

    /// What it works with.
    pub fn context(&self) -> &Arc<JobContext> {
        &self.context
    }

    /// Splits a file of one's own lane and leaves only its index behind.
    ///
    /// # Errors
    /// [`JobError`]; the file stays then.
    pub async fn split_file(&mut self, file: &RolledFile) -> Result<(), JobError> {
        let entries = file.entries.iter().map(|entry| SplitEntry {
            partition: entry.partition,
            base_offset: entry.base_offset,
            epoch: entry.epoch,
            spot: entry.spot,
        });
        self.split(entries.collect()).await?;
        self.retire(&file.leftover).await
    }

    /// Splits batches from anywhere: afterwards manifests cover them.
    ///
    /// # Errors
    /// [`JobError`]; nothing was deleted.
    pub async fn split(&mut self, mut entries: Vec<SplitEntry>) -> Result<(), JobError> {
        entries.sort_by_key(|entry| (entry.partition, entry.base_offset));
        let outcome = self.split_sorted(&entries).await;
        self.files.clear();
        outcome
    }

    async fn split_sorted(&mut self, entries: &[SplitEntry]) -> Result<(), JobError> {
        let mut object = self.next_object();
        let mut writer = SegmentWriter::new(object);
        let mut additions: Vec<Addition> = Vec::new();
        for entry in entries {
            let Some(partition) = self.context.partitions.get(entry.partition) else { continue };
            if entry.base_offset < partition.manifest().covered_end {
                continue;
            }
            // What is still in memory was received and checked; the lane has the same bytes.
            let batch = match partition.hot_batch(entry.base_offset) {
                Some(batch) => batch,
                None => self.read(entry).await?,
            };
            writer.add(entry.partition, &batch, entry.spot.written_at_ms);
            let known = additions.last().is_some_and(|last| last.partition.id() == entry.partition);
            if !known {
                additions.push(Addition { partition, batches: Vec::new() });
            }
            let addition = additions.last_mut().expect("just pushed");
            addition.batches.push((batch.header(), entry.epoch));
        }
        if additions.is_empty() {
            return Ok(());
        }
        let (pieces, segments) = writer.finish();
        self.put_object(&mut object, pieces).await?;
        self.install(additions, segments, object).await
    }

    fn next_object(&mut self) -> ObjectRef {
        let number = self.next_object;
        self.next_object += 1;
        ObjectRef { incarnation: self.context.incarnation, number }
    }

    /// Reads a batch and checks it: damage is found here, while the lane still has its neighbours.
    async fn read(&mut self, entry: &SplitEntry) -> Result<StoredBatch, JobError> {
        let key = (entry.spot.incarnation, entry.spot.file);
        if !self.files.contains_key(&key) {
            let whole = self.context.sources.lanes.read_whole(key.0, key.1).await?;
            self.files.insert(key, whole);
        }
        let file = &self.files[&key];
        let start = usize::try_from(entry.spot.position).unwrap_or(usize::MAX).min(file.len());
        let end = start.saturating_add(entry.spot.length as usize).min(file.len());
        let batch = StoredBatch::from_contiguous(file.slice(start..end))
            .and_then(|batch| batch.verify_checksum().map(|()| batch))
            .map_err(|error| records(entry.partition, format!("{:?}: {error}", entry.spot)))?;
        if batch.base_offset() == entry.base_offset {
            Ok(batch)
        } else {
            Err(records(entry.partition, format!("{:?} holds another batch", entry.spot)))
        }
    }

    /// Puts the object, under another number where an earlier try whose answer was lost took it.
    async fn put_object(
        &mut self,
        object: &mut ObjectRef,
        pieces: Vec<Bytes>,
    ) -> Result<(), JobError> {
        loop {
            let key = object.key(&self.context.cluster);
            let store = &self.context.store;
            match self.context.put_when_possible(|| store.put_new(&key, pieces.clone())).await {
                Err(StoreError::Exists(_)) => *object = self.next_object(),
                outcome => return Ok(outcome?),
            }
        }
    }

    async fn install(
        &self,
        additions: Vec<Addition>,
        segments: Vec<(PartitionId, Segment)>,
        object: ObjectRef,
    ) -> Result<(), JobError> {
        let now_ms = self.context.clock.now_ms();
        let mut manifests = Vec::with_capacity(additions.len());
        let mut work: Vec<_> = additions.into_iter().zip(segments).rev().collect();
        while !work.is_empty() {
            let group = work.split_off(work.len().saturating_sub(PUTS_AT_ONCE));
            let puts = group.into_iter().rev().map(|(addition, (_, segment))| async move {
                let segment = Segment { object, ..segment };
                let manifest = extend(&addition, segment, now_ms)?;
                let published =
                    self.context.publish_manifest(&addition.partition, manifest).await?;
                Ok::<_, JobError>((addition.partition, published))
            });
            for published in futures::future::join_all(puts).await {
                manifests.push(published?);
            }
        }
        self.context.install(manifests).await
    }

    /// Leaves the index of a file behind and removes the file. The manifests that cover it are
    /// installed, and a later file's checkpoint names them.
    ///
    /// # Errors
    /// [`JobError`]; the file stays then.
    pub async fn retire(&self, leftover: &Leftover) -> Result<(), JobError> {
        let context = &self.context;
        let paths = context.lane_paths(leftover.incarnation);
        leftover.publish(context.disk.as_ref(), &paths).await?;
        self.remove(leftover.incarnation, leftover.file).await
    }

    /// Removes a file that holds nothing that anybody needs.
    ///
    /// # Errors
    /// [`JobError`]; the file stays then.
    pub async fn remove(&self, incarnation: Incarnation, number: u64) -> Result<(), JobError> {
        let context = &self.context;
        if context.sources.rules.hold(Rule::CheckBeforeDelete) {
            context.token.check().await?;
        }
        let file = LaneFile::Wal(number);
        context.sources.lanes.forget(incarnation, file);
        if incarnation == context.incarnation {
            return Ok(context.lane.retire(number).await?);
        }
        let path = context.lane_paths(incarnation).file(file);
        Ok(context.disk.remove(&path).await.map_err(LaneError::from)?)
    }
}

fn records(partition: PartitionId, what: impl Into<String>) -> JobError {
    JobError::Records { partition, what: what.into() }
}

/// The manifest after a partition's current one, with one more segment.
fn extend(addition: &Addition, segment: Segment, now_ms: i64) -> Result<Manifest, JobError> {
    let mut manifest = Manifest::clone(&addition.partition.manifest());
    if segment.base_offset != manifest.covered_end {
        let what = format!(
            "the segment starts at {}, the manifest ends at {}",
            segment.base_offset, manifest.covered_end
        );
        return Err(records(manifest.partition, what));
    }
    for (header, epoch) in &addition.batches {
        manifest.producers.record(header);
        manifest.producers.touch(header.producer_id, now_ms);
        manifest.epochs.begin(*epoch, header.base_offset);
    }
    manifest.producers.expire(now_ms);
    manifest.forget_dropped(now_ms);
    manifest.covered_end = segment.end_offset;
    manifest.last_stable_offset = segment.end_offset;
    manifest.segments.push(segment);
    // Records may have been deleted before they were split.
    manifest.start_at(manifest.log_start, now_ms);
    Ok(manifest)
}
