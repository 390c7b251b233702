//! The splitter: copies batches from lane files, in which all partitions are mixed, into objects
//! that are sorted by partition, and publishes manifests that name the new segments.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::objects::NewObject;
use super::publish::{Change, Edit};
use super::{BadRecords, JobContext, JobError, TopicFacts};
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

/// The sizes that splitting uses.
#[derive(Debug, Clone, Copy)]
pub struct SplitSettings {
    /// An object is put once it holds this many bytes.
    pub object_bytes: u64,
    /// Files whose batches have on average this many bytes or more are split several at once;
    /// batches of them that are not in memory are read one by one. Files with smaller batches are
    /// split one by one, and read as a whole.
    pub large_batch_bytes: u64,
}

impl Default for SplitSettings {
    fn default() -> Self {
        Self { object_bytes: 32 << 20, large_batch_bytes: 64 << 10 }
    }
}

impl SplitSettings {
    /// Whether these are large batches, so that their file is split together with others like it.
    pub fn are_large(&self, batches: &[PlacedBatch]) -> bool {
        bytes_of(batches) >= self.large_batch_bytes * batches.len() as u64
    }

    /// Whether a file's batches are enough to fill an object.
    pub fn fill_an_object(&self, batches: &[PlacedBatch]) -> bool {
        bytes_of(batches) >= self.object_bytes
    }
}

fn bytes_of(batches: &[PlacedBatch]) -> u64 {
    batches.iter().map(|batch| u64::from(batch.spot.length)).sum()
}

/// How many files of large batches are split at once. A partition's share of eight files is large
/// enough to stay a segment of its own, and needs one manifest instead of eight.
pub const FILES_AT_ONCE: usize = 8;

/// Splits lane files, and removes them afterwards in order.
pub struct Splitter {
    context: Arc<JobContext>,
    topics: Arc<dyn TopicFacts>,
    settings: SplitSettings,
    /// The files of the own lane that are split and still there, in the order in which they were
    /// written. They are removed in that order, and not while they may hold records of an offline
    /// partition.
    split: VecDeque<Leftover>,
    /// Whole lane files in memory, for as long as one split needs them.
    files: BTreeMap<(Incarnation, LaneFile), Bytes>,
}

/// How many batches are split before other tasks get their turn: that takes a fraction of a
/// millisecond.
const BATCHES_AT_ONCE: usize = 256;
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// The pause after each [`BATCHES_AT_ONCE`] batches. Clients that send small batches need most of a
/// processor, so a file of small batches is split slowly: in half of the time in which the next one
/// fills, so that the splitter never falls behind.
fn split_pause(filled_in: Duration, batches: usize) -> Duration {
    let pauses = u32::try_from(batches / BATCHES_AT_ONCE).unwrap_or(u32::MAX);
    (filled_in / 2).checked_div(pauses).unwrap_or_default().min(PAUSE_MAX)
}

impl Splitter {
    /// Creates a splitter.
    pub fn new(
        context: Arc<JobContext>,
        topics: Arc<dyn TopicFacts>,
        settings: SplitSettings,
    ) -> Self {
        Self { context, topics, settings, split: VecDeque::new(), files: BTreeMap::new() }
    }

    /// What its job works with.
    pub fn context(&self) -> &Arc<JobContext> {
        &self.context
    }

    /// The sizes that it uses.
    pub fn settings(&self) -> SplitSettings {
        self.settings
    }

    /// Splits files of the own lane, which must be given in order, and removes them except for
    /// their indexes.
    ///
    /// # Errors
    /// Any [`JobError`]; then the files stay.
    pub async fn split_files(&mut self, files: &[RolledFile]) -> Result<(), JobError> {
        let batches: Vec<_> = files.iter().flat_map(|file| &file.batches).copied().collect();
        let split_pause = split_pause(files.iter().map(|file| file.filled_in).sum(), batches.len());
        self.split_with_pauses(batches, split_pause).await?;
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

    /// Splits batches from any lane. Afterwards manifests cover them, except for those of
    /// partitions that are offline or were taken offline by this.
    ///
    /// # Errors
    /// Any [`JobError`]; then nothing was deleted.
    pub async fn split(&mut self, batches: Vec<PlacedBatch>) -> Result<(), JobError> {
        self.split_with_pauses(batches, Duration::ZERO).await
    }

    async fn split_with_pauses(
        &mut self,
        mut batches: Vec<PlacedBatch>,
        split_pause: Duration,
    ) -> Result<(), JobError> {
        batches.sort_by_key(|batch| (batch.partition, batch.base_offset));
        let outcome = self.split_sorted(&batches, split_pause).await;
        self.files.clear();
        outcome
    }

    async fn split_sorted(
        &mut self,
        batches: &[PlacedBatch],
        split_pause: Duration,
    ) -> Result<(), JobError> {
        let whole = !self.settings.are_large(batches);
        let context = Arc::clone(&self.context);
        let mut made = Made::new(&context, self.settings.object_bytes);
        for (number, placed) in batches.iter().enumerate() {
            if number % BATCHES_AT_ONCE == BATCHES_AT_ONCE - 1 && !split_pause.is_zero() {
                tokio::time::sleep(split_pause).await;
            }
            let Some(partition) = context.partitions.get(placed.partition) else { continue };
            if placed.base_offset < partition.manifest().covered_end {
                continue;
            }
            // A batch that is still in memory was checked when it was received, and the lane has
            // the same bytes.
            let read = match partition.hot_batch(placed.base_offset) {
                Some(batch) => Ok(batch),
                None => self.read(placed, whole).await,
            };
            match read {
                Err(JobError::Records(bad)) => context.take_offline(&bad),
                read => made.add(&partition, placed, read?).await?,
            }
        }
        made.install(self.topics.producer_expiration_ms()).await
    }

    /// Reads a batch from its lane and checks it. Damage is found here, while the lane still has
    /// the batches around it.
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

    /// Removes the files that are split, except where an offline partition may need them.
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

    /// Writes the index of a file, then removes the file. Before this is called, the manifests that
    /// cover its batches must be installed and the checkpoint of a later file must name them.
    ///
    /// # Errors
    /// Any [`JobError`]; then the file stays.
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
    /// Any [`JobError`]; then the file stays.
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
        // The removal is made durable even where the file was gone already, since its own broker
        // may just have renamed it. Files are removed in order: one that reappeared after a crash
        // while a later one is gone would look like damage.
        Ok(context.disk.make_durable(&paths.folder()).await.map_err(LaneError::from)?)
    }
}

/// What a manifest remembers of a batch that was split.
struct SplitBatch {
    header: BatchHeader,
    epoch: Epoch,
    /// When its block was laid out, ms since 1970.
    written_at_ms: i64,
}

/// The new segments of one partition.
struct Addition {
    partition: Arc<Partition>,
    batches: Vec<SplitBatch>,
    segments: Vec<Segment>,
}

/// The objects and segments of a split that is under way.
struct Made<'a> {
    context: &'a JobContext,
    object_bytes: u64,
    writer: SegmentWriter,
    additions: BTreeMap<PartitionId, Addition>,
    /// Objects that were put. The sweeper keeps them while they are in this list.
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
        batch: StoredBatch,
    ) -> Result<(), JobError> {
        // A partition is continued in the next object only where it alone fills one.
        let continues = self.additions.contains_key(&placed.partition);
        if self.writer.bytes() >= self.object_bytes * if continues { 2 } else { 1 } {
            self.put().await?;
        }
        // What this incarnation stored, it has read.
        let is_own = placed.spot.incarnation == self.context.incarnation;
        let batch = if is_own { batch } else { partition.read_batch(batch) };
        self.writer.add(placed.partition, &batch, placed.spot.written_at_ms);
        let addition = self.additions.entry(placed.partition).or_insert_with(|| Addition {
            partition: Arc::clone(partition),
            batches: Vec::new(),
            segments: Vec::new(),
        });
        addition.batches.push(SplitBatch {
            header: batch.header(),
            epoch: placed.epoch,
            written_at_ms: placed.spot.written_at_ms,
        });
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

    async fn install(mut self, producer_expiration_ms: i64) -> Result<(), JobError> {
        if self.additions.is_empty() {
            return Ok(());
        }
        self.put().await?;
        let now_ms = self.context.clock.now_ms();
        let silent_since_ms = now_ms.saturating_sub(producer_expiration_ms);
        let served = |addition: &Addition| {
            // The partition is left out where a later batch took it offline, or its topic is gone.
            self.context.partitions.get(addition.partition.id()).is_some()
        };
        let additions = self.additions.into_values().filter(served);
        let edits = additions.map(|addition| {
            let partition = Arc::clone(&addition.partition);
            let change: Change = Box::new(move |current| {
                addition.extend(current, now_ms, silent_since_ms).map(Some)
            });
            Edit { partition, change }
        });
        let outcome = self.context.edit(edits.collect()).await;
        // Dropped only now, when manifests name the objects: until then the sweeper must keep them.
        drop(self.objects);
        outcome
    }
}

impl Addition {
    /// The manifest that follows `current`, with the new segments.
    ///
    /// # Errors
    /// [`JobError::Records`] where the segments do not follow those of `current`.
    fn extend(
        &self,
        current: &Manifest,
        now_ms: i64,
        silent_since_ms: i64,
    ) -> Result<Manifest, JobError> {
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
        for SplitBatch { header, epoch, written_at_ms } in &self.batches {
            manifest.producers.record(header);
            manifest.producers.touch(header.producer_id, *written_at_ms);
            manifest.epochs.begin(*epoch, header.base_offset);
        }
        manifest.producers.expire(silent_since_ms, manifest.covered_end);
        // Records that were deleted before they were split are dropped here.
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
        assert_eq!(split_pause(second, 256 * 1000), second / 2000);
        assert_eq!(
            split_pause(60 * second, 256 * 100),
            PAUSE_MAX,
            "what trickles in waits for nothing"
        );
        assert_eq!(split_pause(second, 255), Duration::ZERO, "a few large batches are one go");
    }
}
