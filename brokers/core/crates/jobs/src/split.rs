//! The splitter: turns lane files, all partitions mixed, into objects sorted by partition, and
//! manifests that name their segments.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::objects::NewObject;
use super::publish::{Change, Edit};
use super::{BadRecords, JobContext, JobError};
use freshet_partition::Partition;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::{Segment, SegmentWriter};
use freshet_storage::lane::leftover::Leftover;
use freshet_storage::lane::writer::RolledFile;
use freshet_storage::lane::{LaneError, LaneFile, PlacedBatch};
use freshet_storage::rules::Rule;
use freshet_wire::ids::{Epoch, Incarnation, PartitionId};
use freshet_wire::records::{BatchHeader, StoredBatch};
use freshet_world::env::DiskError;

/// Sizes of splitting.
#[derive(Debug, Clone, Copy)]
pub struct SplitSettings {
    /// An object is put once it holds so many bytes.
    pub object_bytes: u64,
    /// Files whose batches have so many bytes in the mean are split several at once, and what
    /// memory does not hold of them is read batch by batch. Files of smaller ones are split one by
    /// one, and read whole.
    pub large_batch_bytes: u64,
}

impl Default for SplitSettings {
    fn default() -> Self {
        Self { object_bytes: 32 << 20, large_batch_bytes: 64 << 10 }
    }
}

impl SplitSettings {
    /// Whether these are large batches, so that more files of such are split with them.
    pub fn are_large(&self, batches: &[PlacedBatch]) -> bool {
        bytes_of(batches) >= self.large_batch_bytes * batches.len() as u64
    }

    /// Whether a file's batches fill an object.
    pub fn fill_an_object(&self, batches: &[PlacedBatch]) -> bool {
        bytes_of(batches) >= self.object_bytes
    }
}

fn bytes_of(batches: &[PlacedBatch]) -> u64 {
    batches.iter().map(|batch| u64::from(batch.spot.length)).sum()
}

/// So many files of large batches are split at once: a partition's share of them is large enough
/// to stay a segment of its own, and one manifest names it instead of eight.
pub const FILES_AT_ONCE: usize = 8;

/// See the module.
pub struct Splitter {
    context: Arc<JobContext>,
    settings: SplitSettings,
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

impl Splitter {
    /// A splitter that has nothing to do yet.
    pub fn new(context: Arc<JobContext>, settings: SplitSettings) -> Self {
        Self { context, settings, split: VecDeque::new(), files: BTreeMap::new() }
    }

    /// What it works with.
    pub fn context(&self) -> &Arc<JobContext> {
        &self.context
    }

    /// Its sizes.
    pub fn settings(&self) -> SplitSettings {
        self.settings
    }

    /// Splits files of one's own lane, in order, and leaves only their indexes behind.
    ///
    /// # Errors
    /// [`JobError`]; the files stay then.
    pub async fn split_files(&mut self, files: &[RolledFile]) -> Result<(), JobError> {
        let batches: Vec<_> = files.iter().flat_map(|file| &file.batches).copied().collect();
        let pause = pause(files.iter().map(|file| file.filled_in).sum(), batches.len());
        self.split_with_pauses(batches, pause).await?;
        for RolledFile { leftover, .. } in files {
            if self.split.back().is_none_or(|last| last.file < leftover.file) {
                self.split.push_back(leftover.clone());
            }
        }
        self.retire_split().await?;
        if !files.iter().any(RolledFile::filled_fast) {
            self.context.lane.keep_few_recycled().await?;
        }
        Ok(())
    }

    /// Splits batches from anywhere: afterwards manifests cover them, but for those of partitions
    /// that are, or were taken, offline.
    ///
    /// # Errors
    /// [`JobError`]; nothing was deleted.
    pub async fn split(&mut self, batches: Vec<PlacedBatch>) -> Result<(), JobError> {
        self.split_with_pauses(batches, Duration::ZERO).await
    }

    async fn split_with_pauses(
        &mut self,
        mut batches: Vec<PlacedBatch>,
        pause: Duration,
    ) -> Result<(), JobError> {
        batches.sort_by_key(|batch| (batch.partition, batch.base_offset));
        let outcome = self.split_sorted(&batches, pause).await;
        self.files.clear();
        outcome
    }

    async fn split_sorted(
        &mut self,
        batches: &[PlacedBatch],
        pause: Duration,
    ) -> Result<(), JobError> {
        let whole = !self.settings.are_large(batches);
        let context = Arc::clone(&self.context);
        let mut made = Made::new(&context, self.settings.object_bytes);
        for (number, placed) in batches.iter().enumerate() {
            if number % BATCHES_AT_ONCE == BATCHES_AT_ONCE - 1 && !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let Some(partition) = context.partitions.get(placed.partition) else { continue };
            if placed.base_offset < partition.manifest().covered_end {
                continue;
            }
            // What is still in memory was received and checked; the lane has the same bytes.
            let read = match partition.hot_batch(placed.base_offset) {
                Some(batch) => Ok(batch),
                None => self.read(placed, whole).await,
            };
            match read {
                Err(JobError::Records(bad)) => context.take_offline(&bad),
                read => made.add(&partition, placed, &read?).await?,
            }
        }
        made.install().await
    }

    /// Reads a batch and checks it: damage is found here, while the lane still has its neighbours.
    async fn read(&mut self, placed: &PlacedBatch, whole: bool) -> Result<StoredBatch, JobError> {
        let bytes = if whole {
            self.read_of_whole(placed).await?
        } else {
            self.context.sources.lanes.read_once(placed.spot).await?
        };
        let batch = StoredBatch::from_contiguous(bytes)
            .and_then(|batch| batch.verify_checksum().map(|()| batch))
            .map_err(|error| bad(placed, format!("{:?}: {error}", placed.spot)))?;
        if batch.base_offset() == placed.base_offset {
            Ok(batch)
        } else {
            Err(bad(placed, format!("{:?} holds another batch", placed.spot)))
        }
    }

    async fn read_of_whole(&mut self, placed: &PlacedBatch) -> Result<Bytes, JobError> {
        let key = (placed.spot.incarnation, placed.spot.file);
        if !self.files.contains_key(&key) {
            let whole = self.context.sources.lanes.read_whole(key.0, key.1).await?;
            self.files.insert(key, whole);
        }
        let file = &self.files[&key];
        let start = usize::try_from(placed.spot.position).unwrap_or(usize::MAX).min(file.len());
        let end = start.saturating_add(placed.spot.length as usize).min(file.len());
        Ok(file.slice(start..end))
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

/// What one partition gets of a split.
struct Addition {
    partition: Arc<Partition>,
    batches: Vec<(BatchHeader, Epoch)>,
    segments: Vec<Segment>,
}

/// What a split has made so far.
struct Made<'a> {
    context: &'a JobContext,
    object_bytes: u64,
    writer: SegmentWriter,
    additions: BTreeMap<PartitionId, Addition>,
    /// Put, and kept by the sweeper until they are named.
    objects: Vec<NewObject>,
}

impl<'a> Made<'a> {
    fn new(context: &'a JobContext, object_bytes: u64) -> Self {
        let writer = context.segment_writer();
        Self { context, object_bytes, writer, additions: BTreeMap::new(), objects: Vec::new() }
    }

    async fn add(
        &mut self,
        partition: &Arc<Partition>,
        placed: &PlacedBatch,
        batch: &StoredBatch,
    ) -> Result<(), JobError> {
        // A partition goes on in the next object only where it alone fills one.
        let continues = self.additions.contains_key(&placed.partition);
        if self.writer.bytes() >= self.object_bytes * if continues { 2 } else { 1 } {
            self.put().await?;
        }
        self.writer.add(placed.partition, batch, placed.spot.written_at_ms);
        let addition = self.additions.entry(placed.partition).or_insert_with(|| Addition {
            partition: Arc::clone(partition),
            batches: Vec::new(),
            segments: Vec::new(),
        });
        addition.batches.push((batch.header(), placed.epoch));
        Ok(())
    }

    async fn put(&mut self) -> Result<(), JobError> {
        let writer = std::mem::replace(&mut self.writer, self.context.segment_writer());
        let (object, segments) = self.context.put_segments(writer).await?;
        self.objects.push(object);
        for (partition, segment) in segments {
            let addition = self.additions.get_mut(&partition).expect("added with its batches");
            addition.segments.push(segment);
        }
        Ok(())
    }

    async fn install(mut self) -> Result<(), JobError> {
        if self.additions.is_empty() {
            return Ok(());
        }
        self.put().await?;
        let now_ms = self.context.clock.now_ms();
        let served = |addition: &Addition| {
            // Not one that a later batch took offline, or whose topic is gone meanwhile.
            self.context.partitions.get(addition.partition.id()).is_some()
        };
        let additions = self.additions.into_values().filter(served);
        let edits = additions.map(|addition| {
            let partition = Arc::clone(&addition.partition);
            let change: Change =
                Box::new(move |current| addition.extend(current, now_ms).map(Some));
            Edit { partition, change }
        });
        let outcome = self.context.edit(edits.collect()).await;
        // Until here the sweeper kept them.
        drop(self.objects);
        outcome
    }
}

impl Addition {
    /// The manifest after the one that counts, with what is new.
    fn extend(&self, current: &Manifest, now_ms: i64) -> Result<Manifest, JobError> {
        let mut manifest = current.clone();
        for segment in &self.segments {
            if segment.base_offset != manifest.covered_end {
                let what = format!(
                    "the segment starts at {}, the manifest ends at {}",
                    segment.base_offset, manifest.covered_end
                );
                let (partition, offset) = (manifest.partition, manifest.covered_end);
                return Err(JobError::Records(BadRecords { partition, offset, what }));
            }
            manifest.add_segment(*segment, now_ms);
        }
        for (header, epoch) in &self.batches {
            manifest.producers.record(header);
            manifest.producers.touch(header.producer_id, now_ms);
            manifest.epochs.begin(*epoch, header.base_offset);
        }
        manifest.producers.expire(now_ms);
        // Records may have been deleted before they were split.
        manifest.start_at(manifest.log_start, now_ms);
        Ok(manifest)
    }
}

fn bad(placed: &PlacedBatch, what: String) -> JobError {
    let (partition, offset) = (placed.partition, placed.base_offset);
    JobError::Records(BadRecords { partition, offset, what })
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
