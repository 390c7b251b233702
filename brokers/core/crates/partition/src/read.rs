//! Reads records from memory, from lanes, or from segments.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use tokio_util::task::AbortOnDropHandle;

use super::stretch::{Gathering, Stretch};
use super::{Bounds, Partition, Sources, State, Unsplit};
use freshet_storage::cache::ahead::Follower;
use freshet_storage::cache::blocks::LoadError;
use freshet_storage::cold::ColdError;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::segment::Segment;
use freshet_storage::lane::{LaneError, LaneSpot};
use freshet_telemetry::ReadSource;
use freshet_wire::ids::PartitionId;
use freshet_wire::records::StoredBatch;

/// How often a read is planned again because its batches were moved meanwhile: from memory to a
/// lane, from a lane to a segment, or to another segment. That this happens four times in one read
/// means that something is wrong.
const PLANS_MAX: usize = 4;
/// The most batches in lanes that are read ahead of a reader at a time.
const SPOTS_AHEAD_MAX: usize = 2048;

/// The batches that a read returned, and the partition's bounds at that moment.
#[derive(Debug, Clone)]
pub struct Fetched {
    stretches: Vec<Stretch>,
    /// The bytes of all batches.
    pub bytes: usize,
    /// The partition's bounds.
    pub bounds: Bounds,
}

impl Fetched {
    /// The batches, whole and in order.
    pub fn batches(&self) -> impl Iterator<Item = StoredBatch> + '_ {
        self.stretches.iter().flat_map(Stretch::batches)
    }

    /// Their bytes in pieces, which are to be written one after another.
    pub fn into_pieces(self) -> Vec<Bytes> {
        let mut pieces = Vec::with_capacity(self.stretches.len() * 2);
        self.stretches.into_iter().for_each(|stretch| stretch.put_pieces(&mut pieces));
        pieces
    }
}

/// Why a read failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The offset is before the log start or past the end.
    #[error("offset out of range")]
    OutOfRange(Bounds),
    /// Storage failed or is damaged. The client tries again.
    #[error("{0}")]
    Storage(String),
}

impl ReadError {
    /// Kafka's error code for it.
    pub fn code(&self) -> ResponseError {
        match self {
            Self::OutOfRange(_) => ResponseError::OffsetOutOfRange,
            Self::Storage(_) => ResponseError::KafkaStorageError,
        }
    }
}

/// The arguments of [`Partition::read`].
#[derive(Debug, Clone, Copy)]
struct ReadRange {
    offset: i64,
    bytes_max: usize,
    whole_first: bool,
}

impl ReadRange {
    fn gathering(self) -> Gathering {
        Gathering::new(self.offset, self.bytes_max, self.whole_first)
    }
}

/// Where the batches of a read are.
enum Plan {
    /// Nowhere: the offset is the end of the log.
    Empty,
    Hot(Gathering),
    Lane(Vec<Unsplit>),
    Cold(Segment),
}

/// The outcome of a read that was planned. After `Moved` the read is planned again.
enum Attempt {
    Done(Gathering),
    Moved(String),
    Failed(String),
    /// The bytes are damaged; the text names their place.
    Damaged(String),
}

impl From<LoadError> for Attempt {
    fn from(error: LoadError) -> Self {
        match &error {
            gone if gone.is_gone() => Self::Moved(gone.to_string()),
            LoadError::Cold(ColdError::Damaged { .. })
            | LoadError::Lane(LaneError::Damaged { .. }) => Self::Damaged(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Partition {
    /// Reads whole batches, beginning with the one that contains `offset`: up to `bytes_max` bytes,
    /// and with `whole_first` at least one batch even where it is larger.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] where the offset is not in the log, [`ReadError::Storage`] where
    /// storage fails or is damaged.
    pub async fn read(
        &self,
        offset: i64,
        bytes_max: usize,
        whole_first: bool,
    ) -> Result<Fetched, ReadError> {
        let range = ReadRange { offset, bytes_max, whole_first };
        let (fetched, source) = self.read_planned(range, true).await?;
        if let Some(source) = source {
            self.sources.metrics.read(source, fetched.bytes as u64);
        }
        Ok(fetched)
    }

    /// Reads the batch that contains `offset`, or the first one after it. Nothing is read ahead,
    /// and nothing is counted as read for a client.
    ///
    /// # Errors
    /// Those of [`Partition::read`].
    pub(super) async fn read_aside(&self, offset: i64) -> Result<Fetched, ReadError> {
        let range = ReadRange { offset, bytes_max: 1, whole_first: true };
        self.read_planned(range, false).await.map(|(fetched, _)| fetched)
    }

    /// Reads, and returns where from. With `follows`, what a reader of the whole log will read next
    /// is read ahead.
    async fn read_planned(
        &self,
        range: ReadRange,
        follows: bool,
    ) -> Result<(Fetched, Option<ReadSource>), ReadError> {
        let mut moved = String::new();
        for _ in 0..PLANS_MAX {
            let (plan, bounds) = self.plan(range)?;
            let (source, attempt) = match plan {
                Plan::Empty => (None, Attempt::Done(range.gathering())),
                Plan::Hot(gathered) => (Some(ReadSource::Hot), Attempt::Done(gathered)),
                Plan::Lane(batches) => {
                    let read = self.read_lane(&batches, range);
                    let attempt = self.read_following(range, read, follows).await;
                    (Some(ReadSource::Lane), attempt)
                }
                Plan::Cold(segment) => {
                    let read = self.read_segment(&segment, range);
                    let attempt = self.read_following(range, read, follows).await;
                    (Some(ReadSource::Cold), attempt)
                }
            };
            match attempt {
                Attempt::Done(gathered) => {
                    let (stretches, bytes) = gathered.finish();
                    return Ok((Fetched { stretches, bytes, bounds }, source));
                }
                Attempt::Moved(what) => moved = what,
                Attempt::Failed(what) => return Err(self.storage_error(what, false)),
                Attempt::Damaged(what) => return Err(self.storage_error(what, true)),
            }
        }
        Err(self.storage_error(format!("{moved}, and nothing took its place"), false))
    }

    /// Whether a read at this offset can be answered at once: its batches are in the hot cache, or
    /// there are none.
    pub fn reads_hot(&self, offset: i64) -> bool {
        let state = self.state.lock();
        offset < state.log_start() || offset >= state.end || is_hot(&state, offset)
    }

    /// Whether `offset` is not in memory any more, and segments have at least so many bytes of
    /// records from there on.
    pub fn has_in_segments(&self, offset: i64, bytes: u64) -> bool {
        let state = self.state.lock();
        if offset < state.log_start() || is_hot(&state, offset) {
            return false;
        }
        let segments = &state.manifest.segments;
        let first = segments.partition_point(|segment| segment.end_offset <= offset);
        let mut left = bytes;
        segments[first..].iter().any(|segment| {
            left = left.saturating_sub(segment.bytes);
            left == 0
        })
    }

    fn storage_error(&self, what: String, is_damage: bool) -> ReadError {
        let (partition, topic) = (self.id(), self.topic());
        self.sources.read_faults.note(&what, is_damage, |passed_over| {
            tracing::error!(%partition, %topic, what, passed_over, "cannot read records");
        });
        ReadError::Storage(what)
    }

    fn plan(&self, range: ReadRange) -> Result<(Plan, Bounds), ReadError> {
        let state = self.state.lock();
        let bounds = state.bounds();
        if range.offset < bounds.log_start || range.offset > state.next_offset {
            return Err(ReadError::OutOfRange(bounds));
        }
        Ok((plan_within(&state, range), bounds))
    }

    /// Reads from storage, and with `follows` has the blocks after it read ahead where the reader
    /// reads the log from front to back.
    async fn read_following(
        &self,
        range: ReadRange,
        read: impl Future<Output = Attempt> + Send,
        follows: bool,
    ) -> Attempt {
        if !follows {
            return read.await;
        }
        let followers = &self.sources.followers;
        let mut follower = followers.come(self.id(), range.offset);
        self.go_ahead(&mut follower, range);
        let attempt = read.await;
        if let Attempt::Done(gathered) = &attempt {
            followers.go(self.id(), range.offset, gathered.next_offset(), follower);
        }
        attempt
    }

    fn go_ahead(&self, follower: &mut Follower, range: ReadRange) {
        let window_max = self.sources.followers.window_max();
        let Some(bytes) = follower.advance(range.bytes_max as u64, window_max) else { return };
        let ahead = {
            let state = self.state.lock();
            let first = state.unsplit.partition_point(|batch| batch.end_offset <= range.offset);
            let spots = state.unsplit.range(first..).map(|batch| batch.spot);
            Ahead {
                sources: Arc::clone(&self.sources),
                partition: self.id(),
                offset: range.offset,
                manifest: Arc::clone(&state.manifest),
                unsplit: spots.take(SPOTS_AHEAD_MAX).collect(),
                bytes,
            }
        };
        follower.run(AbortOnDropHandle::new(tokio::spawn(ahead.run())));
    }

    async fn read_lane(&self, batches: &[Unsplit], range: ReadRange) -> Attempt {
        let mut gathering = range.gathering();
        for of_file in batches.chunk_by(|one, other| same_file(&one.spot, &other.spot)) {
            // All that precedes a durable batch in a file is durable too, so up to here the file
            // can be read ahead and cached.
            let sure_end = of_file.last().expect("no chunk is empty").spot.range().end;
            for batch in of_file {
                let spot = batch.spot;
                let read_bytes = match self.sources.lanes.read(spot, sure_end, sure_end).await {
                    Ok(read_bytes) => read_bytes,
                    Err(error) => return error.into(),
                };
                if let Err(error) = read_bytes.check_once(|bytes| check_batch(bytes, batch)) {
                    self.sources.lanes.reread(&spot);
                    return LoadError::from(error).into();
                }
                assert!(gathering.add_run(&read_bytes.bytes), "it was checked to be a batch");
            }
        }
        Attempt::Done(gathering)
    }

    async fn read_segment(&self, segment: &Segment, range: ReadRange) -> Attempt {
        let chunks = match self.sources.cold.chunks(self.id(), segment).await {
            Ok(chunks) => chunks,
            Err(error) => return LoadError::from(error).into(),
        };
        let first = chunks.partition_point(|chunk| chunk.end_offset <= range.offset);
        let mut gathering = range.gathering();
        for (at, chunk) in chunks.iter().enumerate().skip(first) {
            let some_fits = gathering.is_empty() && !chunk.is_one_batch();
            if !some_fits && !gathering.takes_whole(chunk.length) {
                break;
            }
            let (following, bytes_max) = (&chunks[at..], range.bytes_max as u64);
            let read = match self.sources.cold.fetch(segment, following, bytes_max).await {
                Ok(read) => read,
                Err(error) => return error.into(),
            };
            if !gathering.add_run(&read) {
                let what = "a checked chunk does not split into batches";
                return Attempt::Damaged(format!("object {:?}: {what}", segment.object));
            }
            if gathering.is_full() {
                break;
            }
        }
        Attempt::Done(gathering)
    }
}

fn same_file(one: &LaneSpot, other: &LaneSpot) -> bool {
    (one.incarnation, one.file) == (other.incarnation, other.file)
}

fn spot_error(spot: &LaneSpot, what: impl Into<String>) -> LaneError {
    LaneError::damaged(spot.incarnation, spot.file.number(), spot.position, what)
}

fn check_batch(bytes: &Bytes, expected: &Unsplit) -> Result<(), LaneError> {
    let batch = StoredBatch::from_contiguous(bytes.clone());
    let checked = batch.and_then(|batch| batch.verify_checksum().map(|()| batch));
    let batch = checked.map_err(|error| spot_error(&expected.spot, error.to_string()))?;
    let header = batch.header();
    if (header.base_offset, header.next_offset()) == (expected.base_offset, expected.end_offset) {
        return Ok(());
    }
    Err(spot_error(&expected.spot, "it holds another batch"))
}

fn is_hot(state: &State, offset: i64) -> bool {
    state.hot.front().is_some_and(|first| first.base_offset <= offset)
}

fn plan_within(state: &State, range: ReadRange) -> Plan {
    let offset = range.offset;
    if offset >= state.end {
        return Plan::Empty;
    }
    if is_hot(state, offset) {
        return Plan::Hot(hot_from(state, range));
    }
    let unsplit = &state.unsplit;
    if unsplit.front().is_some_and(|first| first.base_offset <= offset) {
        return Plan::Lane(lane_from(unsplit, range));
    }
    let segments = &state.manifest.segments;
    let at = segments.partition_point(|segment| segment.end_offset <= offset);
    segments.get(at).map_or(Plan::Empty, |segment| Plan::Cold(*segment))
}

fn hot_from(state: &State, range: ReadRange) -> Gathering {
    let first = state.hot.partition_point(|hot| hot.end_offset <= range.offset);
    let mut gathering = range.gathering();
    for hot in state.hot.range(first..) {
        if !gathering.add_batch(&hot.batch, hot.end_offset) {
            break;
        }
    }
    gathering
}

fn lane_from(unsplit: &VecDeque<Unsplit>, range: ReadRange) -> Vec<Unsplit> {
    let first = unsplit.partition_point(|batch| batch.end_offset <= range.offset);
    let mut batches = Vec::new();
    let mut bytes = 0;
    for batch in unsplit.range(first..) {
        bytes += batch.spot.length as usize;
        if bytes > range.bytes_max && !(batches.is_empty() && range.whole_first) {
            break;
        }
        batches.push(*batch);
    }
    batches
}

/// A read ahead of a reader.
struct Ahead {
    sources: Arc<Sources>,
    partition: PartitionId,
    offset: i64,
    manifest: Arc<Manifest>,
    unsplit: Vec<LaneSpot>,
    bytes: u64,
}

impl Ahead {
    /// Reads into the block cache. A failure is only logged for debugging: the reader that needs
    /// the bytes gets the error.
    async fn run(mut self) {
        if let Err(error) = self.try_run().await {
            tracing::debug!(partition = %self.partition, %error, "not read ahead");
        }
    }

    async fn try_run(&mut self) -> Result<(), LoadError> {
        let manifest = Arc::clone(&self.manifest);
        let segments = &manifest.segments;
        let first = segments.partition_point(|segment| segment.end_offset <= self.offset);
        for segment in &segments[first..] {
            if self.bytes == 0 {
                return Ok(());
            }
            let chunks = self.sources.cold.chunks(self.partition, segment).await?;
            let first = chunks.partition_point(|chunk| chunk.end_offset <= self.offset);
            let taken =
                chunks[first..].iter().take_while(|chunk| self.take_bytes(chunk.length)).count();
            self.sources.cold.read_ahead(segment, &chunks[first..first + taken]).await?;
        }
        let unsplit = std::mem::take(&mut self.unsplit);
        let taken =
            unsplit.iter().take_while(|spot| self.take_bytes(u64::from(spot.length))).count();
        for of_file in unsplit[..taken].chunk_by(same_file) {
            self.sources.lanes.read_ahead(of_file).await?;
        }
        Ok(())
    }

    /// Takes these bytes from what may still be read ahead. Returns false where nothing was left.
    fn take_bytes(&mut self, bytes: u64) -> bool {
        let some = self.bytes > 0;
        self.bytes = self.bytes.saturating_sub(bytes);
        some
    }
}

impl Partition {
    /// Calls `visit` with every batch from `offset` to the present end, in order. The coordinator
    /// and jobs use it.
    ///
    /// # Errors
    /// Those of [`Partition::read`].
    pub async fn visit(
        &self,
        mut offset: i64,
        visit: &mut (dyn FnMut(&StoredBatch) + Send),
    ) -> Result<(), ReadError> {
        const STEP_BYTES: usize = 4 << 20;
        let end = self.bounds().end;
        while offset < end {
            let before = offset;
            for batch in self.read(offset, STEP_BYTES, true).await?.batches() {
                offset = batch.last_offset() + 1;
                visit(&batch);
            }
            if offset == before {
                return Err(self.storage_error("a hole in the log".to_owned(), true));
            }
        }
        Ok(())
    }
}
