//! The splitter: turns lane files, all partitions mixed, into an object sorted by partition, and
//! manifests that name its segments.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::publish::{Change, Edit};
use super::{BadRecords, JobContext, JobError};
use crate::cold::manifest::Manifest;
use crate::cold::segment::{ObjectRef, Segment, SegmentWriter};
use crate::env::DiskError;
use crate::ids::{Incarnation, PartitionId};
use crate::lane::leftover::Leftover;
use crate::lane::writer::RolledFile;
use crate::lane::{LaneError, LaneFile, LaneSpot};
use crate::partition::Partition;
use crate::records::{BatchHeader, StoredBatch};
use crate::rules::Rule;

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
    /// Files of one's own lane that are split and still there, in the order in which they were
    /// written: they go in that order, and none while it may hold what an offline partition needs.
    split: VecDeque<Leftover>,
    /// Whole lane files, for as long as one split needs them.
    files: BTreeMap<(Incarnation, LaneFile), Bytes>,
}

/// Batches that are split in one go: a fraction of a millisecond.
const BATCHES_AT_ONCE: usize = 256;
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// Clients whose batches are small need most of a processor: a file of those is split little by
/// little, in half of the time in which the next one fills.
fn pause(filled_in: Duration, batches: usize) -> Duration {
    let pauses = u32::try_from(batches / BATCHES_AT_ONCE).unwrap_or(u32::MAX);
    (filled_in / 2).checked_div(pauses).unwrap_or_default().min(PAUSE_MAX)
}

/// What one partition adds to an object.
struct Addition {
    partition: Arc<Partition>,
    batches: Vec<(BatchHeader, crate::ids::Epoch)>,
}

impl Splitter {
    /// A splitter that has nothing to do yet.
    pub fn new(context: Arc<JobContext>) -> Self {
        Self { context, split: VecDeque::new(), files: BTreeMap::new() }
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
        let entries: Vec<_> = entries.collect();
        let pause = pause(file.filled_in, entries.len());
        self.split_with_pauses(entries, pause).await?;
        if self.split.back().is_none_or(|last| last.file < file.leftover.file) {
            self.split.push_back(file.leftover.clone());
        }
        self.retire_split().await
    }

    /// Splits batches from anywhere: afterwards manifests cover them, but for those of partitions
    /// that are, or were taken, offline.
    ///
    /// # Errors
    /// [`JobError`]; nothing was deleted.
    pub async fn split(&mut self, entries: Vec<SplitEntry>) -> Result<(), JobError> {
        self.split_with_pauses(entries, Duration::ZERO).await
    }

    async fn split_with_pauses(
        &mut self,
        mut entries: Vec<SplitEntry>,
        pause: Duration,
    ) -> Result<(), JobError> {
        entries.sort_by_key(|entry| (entry.partition, entry.base_offset));
        let outcome = self.split_sorted(&entries, pause).await;
        self.files.clear();
        outcome
    }

    async fn split_sorted(
        &mut self,
        entries: &[SplitEntry],
        pause: Duration,
    ) -> Result<(), JobError> {
        let mut object = self.context.new_object();
        let mut writer = SegmentWriter::new(object.name());
        let mut additions: Vec<Addition> = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            if number % BATCHES_AT_ONCE == BATCHES_AT_ONCE - 1 && !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let Some(partition) = self.context.partitions.get(entry.partition) else { continue };
            if entry.base_offset < partition.manifest().covered_end {
                continue;
            }
            // What is still in memory was received and checked; the lane has the same bytes.
            let read = match partition.hot_batch(entry.base_offset) {
                Some(batch) => Ok(batch),
                None => self.read(entry).await,
            };
            let batch = match read {
                Err(JobError::Records(bad)) => {
                    self.context.take_offline(&bad);
                    continue;
                }
                read => read?,
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
        self.context.put_object(&mut object, pieces).await?;
        self.install(additions, segments, object.name()).await
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
            .map_err(|error| bad(entry, format!("{:?}: {error}", entry.spot)))?;
        if batch.base_offset() == entry.base_offset {
            Ok(batch)
        } else {
            Err(bad(entry, format!("{:?} holds another batch", entry.spot)))
        }
    }

    async fn install(
        &self,
        additions: Vec<Addition>,
        segments: Vec<(PartitionId, Segment)>,
        object: ObjectRef,
    ) -> Result<(), JobError> {
        let now_ms = self.context.clock.now_ms();
        let served = |addition: &Addition| {
            // Not one that a later batch took offline, or whose topic is gone meanwhile.
            self.context.partitions.get(addition.partition.id()).is_some()
        };
        let pairs = additions.into_iter().zip(segments);
        let edits = pairs.filter(|(addition, _)| served(addition)).map(|(addition, segment)| {
            let segment = Segment { object, ..segment.1 };
            let partition = Arc::clone(&addition.partition);
            let change: Change =
                Box::new(move |current| extend(current, &addition, segment, now_ms).map(Some));
            Edit { partition, change }
        });
        self.context.edit(edits.collect()).await
    }

    /// Removes the files that are split, but for those that stay for an offline partition.
    async fn retire_split(&mut self) -> Result<(), JobError> {
        while let Some(leftover) = self.split.front() {
            if self.context.partitions.any_taken_offline() {
                tracing::warn!(
                    file = leftover.file,
                    kept = self.split.len(),
                    "lane files stay: a partition is offline whose records they may hold"
                );
                return Ok(());
            }
            self.retire(leftover).await?;
            self.split.pop_front();
        }
        Ok(())
    }

    /// Leaves the index of a file behind and removes the file. The manifests that cover it are
    /// installed, and a later file's checkpoint names them.
    ///
    /// # Errors
    /// [`JobError`]; the file stays then.
    pub async fn retire(&self, leftover: &Leftover) -> Result<(), JobError> {
        let context = &self.context;
        let paths = context.lane_paths(leftover.incarnation);
        let published = leftover.publish(context.disk.as_ref(), &paths).await;
        if matches!(published, Err(LaneError::Disk(DiskError::NoSpace(_))))
            && context.lane.make_room().await?
        {
            leftover.publish(context.disk.as_ref(), &paths).await?;
        } else {
            published?;
        }
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
        if context.sources.rules.hold(Rule::ForgetBeforeReuse) {
            context.sources.lanes.forget(incarnation, file);
        }
        if incarnation == context.incarnation {
            return Ok(context.lane.retire(number).await?);
        }
        let paths = context.lane_paths(incarnation);
        context.disk.remove(&paths.file(file)).await.map_err(LaneError::from)?;
        // Its own broker may just have given it another name. Files go in order: one that came back
        // when a later one has gone would look like damage.
        Ok(context.disk.make_durable(&paths.folder()).await.map_err(LaneError::from)?)
    }
}

fn bad(entry: &SplitEntry, what: String) -> JobError {
    let (partition, offset) = (entry.partition, entry.base_offset);
    JobError::Records(BadRecords { partition, offset, what })
}

/// The manifest after the one that counts, with one more segment.
fn extend(
    current: &Manifest,
    addition: &Addition,
    segment: Segment,
    now_ms: i64,
) -> Result<Manifest, JobError> {
    let mut manifest = current.clone();
    if segment.base_offset != manifest.covered_end {
        let what = format!(
            "the segment starts at {}, the manifest ends at {}",
            segment.base_offset, manifest.covered_end
        );
        let (partition, offset) = (manifest.partition, manifest.covered_end);
        return Err(JobError::Records(BadRecords { partition, offset, what }));
    }
    for (header, epoch) in &addition.batches {
        manifest.producers.record(header);
        manifest.producers.touch(header.producer_id, now_ms);
        manifest.epochs.begin(*epoch, header.base_offset);
    }
    manifest.producers.expire(now_ms);
    manifest.add_segment(segment, now_ms);
    // Records may have been deleted before they were split.
    manifest.start_at(manifest.log_start, now_ms);
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_many_batches_is_split_in_half_the_time_that_it_took_to_fill_at_most() {
        let second = Duration::from_secs(1);
        assert_eq!(pause(second, 256 * 1000), second / 2000);
        assert_eq!(pause(60 * second, 256 * 100), PAUSE_MAX, "what trickles in waits for nothing");
        assert_eq!(pause(second, 255), Duration::ZERO, "a few large batches are one go");
    }
}
