//! Reading records: from memory, from lanes, or from segments.

use std::collections::VecDeque;

use kafka_protocol::ResponseError;

use super::{Bounds, Partition, State};
use crate::cold::ColdError;
use crate::cold::segment::Segment;
use crate::cold::store::StoreError;
use crate::env::DiskError;
use crate::lane::{LaneError, LaneSpot};
use crate::metrics::ReadSource;
use crate::records::{Batches, StoredBatch, Tail};

/// How often a read is planned anew because what it was to read has moved meanwhile.
const PLANS_MAX: usize = 4;

/// Record batches as they lie in the log, and the partition's bounds at that moment.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Whole batches, in order.
    pub batches: Vec<StoredBatch>,
    /// Their bytes.
    pub bytes: usize,
    /// The partition's bounds.
    pub bounds: Bounds,
}

/// Why a read failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The offset is before the log start or past the end.
    #[error("offset out of range")]
    OutOfRange(Bounds),
    /// Storage did not answer properly; the client tries again.
    #[error("{0}")]
    Storage(String),
}

impl ReadError {
    /// Kafka's code for it.
    pub fn code(&self) -> ResponseError {
        match self {
            Self::OutOfRange(_) => ResponseError::OffsetOutOfRange,
            Self::Storage(_) => ResponseError::KafkaStorageError,
        }
    }
}

enum Plan {
    /// Nothing there yet.
    Empty,
    Hot(Vec<StoredBatch>),
    Lane(Vec<LaneSpot>),
    Cold(Segment),
}

impl Plan {
    fn source(&self) -> Option<ReadSource> {
        match self {
            Self::Empty => None,
            Self::Hot(_) => Some(ReadSource::Hot),
            Self::Lane(_) => Some(ReadSource::Lane),
            Self::Cold(_) => Some(ReadSource::Cold),
        }
    }
}

/// What moved while it was read: the plan is made again.
enum Attempt<T> {
    Done(T),
    Moved(String),
    Failed(String),
}

impl From<LaneError> for Attempt<Vec<StoredBatch>> {
    fn from(error: LaneError) -> Self {
        match error {
            LaneError::Disk(DiskError::NotFound(what)) => Self::Moved(what),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<ColdError> for Attempt<Vec<StoredBatch>> {
    fn from(error: ColdError) -> Self {
        match error {
            ColdError::Store(StoreError::NotFound(what)) => Self::Moved(what),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl Partition {
    /// Reads whole batches from the one that holds `offset` on: up to `bytes_max`, and at least one
    /// where `whole_first` asks for it even if it is larger.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read(
        &self,
        offset: i64,
        bytes_max: usize,
        whole_first: bool,
    ) -> Result<Fetched, ReadError> {
        let mut moved = String::new();
        for _ in 0..PLANS_MAX {
            let (plan, bounds) = self.plan(offset, bytes_max)?;
            let source = plan.source();
            let attempt = match plan {
                Plan::Empty => Attempt::Done(Vec::new()),
                Plan::Hot(batches) => Attempt::Done(batches),
                Plan::Lane(spots) => self.read_lane(&spots).await,
                Plan::Cold(segment) => self.read_segment(&segment, offset, bytes_max).await,
            };
            match attempt {
                Attempt::Done(batches) => {
                    let fetched = cut(batches, bytes_max, whole_first, bounds);
                    if let Some(source) = source {
                        self.sources.metrics.read(source, fetched.bytes as u64);
                    }
                    return Ok(fetched);
                }
                Attempt::Moved(what) => moved = what,
                Attempt::Failed(what) => return Err(self.storage_error(&what)),
            }
        }
        Err(self.storage_error(&format!("{moved} is gone, and nothing took its place")))
    }

    fn storage_error(&self, what: &str) -> ReadError {
        tracing::error!(partition = %self.id(), topic = %self.topic(), what, "read failed");
        ReadError::Storage(what.to_owned())
    }

    fn plan(&self, offset: i64, bytes_max: usize) -> Result<(Plan, Bounds), ReadError> {
        let state = self.state.lock();
        let bounds = Bounds {
            log_start: state.manifest.log_start,
            last_stable_offset: state.end,
            end: state.end,
        };
        if offset < bounds.log_start || offset > state.next_offset {
            return Err(ReadError::OutOfRange(bounds));
        }
        Ok((plan_within(&state, offset, bytes_max), bounds))
    }

    async fn read_lane(&self, spots: &[LaneSpot]) -> Attempt<Vec<StoredBatch>> {
        let mut batches = Vec::with_capacity(spots.len());
        for spot in spots {
            let bytes = match self.sources.lanes.read(*spot).await {
                Ok(bytes) => bytes,
                Err(error) => return error.into(),
            };
            let checked = StoredBatch::from_contiguous(bytes)
                .and_then(|batch| batch.verify_checksum().map(|()| batch));
            match checked {
                Ok(batch) => batches.push(batch),
                Err(error) => return Attempt::Failed(format!("{spot:?}: {error}")),
            }
        }
        Attempt::Done(batches)
    }

    async fn read_segment(
        &self,
        segment: &Segment,
        offset: i64,
        bytes_max: usize,
    ) -> Attempt<Vec<StoredBatch>> {
        let chunks = match self.sources.cold.chunks(self.id(), segment).await {
            Ok(chunks) => chunks,
            Err(error) => return error.into(),
        };
        let first = chunks.partition_point(|chunk| chunk.end_offset <= offset);
        let mut batches = Vec::new();
        let mut bytes = 0;
        for chunk in &chunks[first..] {
            let read = match self.sources.cold.read(segment.object, chunk).await {
                Ok(read) => read,
                Err(error) => return error.into(),
            };
            for batch in Batches::new(read, Tail::Report) {
                let Ok(batch) = batch else {
                    return Attempt::Failed("a checked chunk does not split into batches".into());
                };
                if batch.last_offset() >= offset {
                    bytes += batch.size_bytes();
                    batches.push(batch);
                }
            }
            if bytes >= bytes_max {
                break;
            }
        }
        Attempt::Done(batches)
    }
}

fn plan_within(state: &State, offset: i64, bytes_max: usize) -> Plan {
    if offset >= state.end {
        return Plan::Empty;
    }
    if state.hot.front().is_some_and(|first| first.base_offset <= offset) {
        return Plan::Hot(hot_from(state, offset, bytes_max));
    }
    let unsplit = &state.unsplit;
    if unsplit.front().is_some_and(|first| first.base_offset <= offset) {
        return Plan::Lane(lane_from(unsplit, offset, bytes_max));
    }
    let segments = &state.manifest.segments;
    let at = segments.partition_point(|segment| segment.end_offset <= offset);
    segments.get(at).map_or(Plan::Empty, |segment| Plan::Cold(*segment))
}

fn hot_from(state: &State, offset: i64, bytes_max: usize) -> Vec<StoredBatch> {
    let first = state.hot.partition_point(|hot| hot.end_offset <= offset);
    let mut batches = Vec::new();
    let mut bytes = 0;
    for hot in state.hot.range(first..) {
        bytes += hot.batch.size_bytes();
        if !batches.is_empty() && bytes > bytes_max {
            break;
        }
        batches.push(hot.batch.clone());
    }
    batches
}

fn lane_from(unsplit: &VecDeque<super::Unsplit>, offset: i64, bytes_max: usize) -> Vec<LaneSpot> {
    let first = unsplit.partition_point(|batch| batch.end_offset <= offset);
    let mut spots = Vec::new();
    let mut bytes = 0;
    for batch in unsplit.range(first..) {
        let length = batch.spot.length as usize;
        if bytes > 0 && bytes + length > bytes_max {
            break;
        }
        bytes += length;
        spots.push(batch.spot);
    }
    spots
}

/// Keeps whole batches up to the limit.
fn cut(
    mut batches: Vec<StoredBatch>,
    bytes_max: usize,
    whole_first: bool,
    bounds: Bounds,
) -> Fetched {
    let mut bytes = 0;
    let mut kept = 0;
    for batch in &batches {
        let larger = bytes + batch.size_bytes();
        if larger > bytes_max && !(kept == 0 && whole_first) {
            break;
        }
        bytes = larger;
        kept += 1;
    }
    batches.truncate(kept);
    Fetched { batches, bytes, bounds }
}

/// For coordinators and jobs: everything from an offset to the end, batch by batch.
impl Partition {
    /// Visits every batch from `offset` to the current end, in order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn visit(
        &self,
        mut offset: i64,
        visit: &mut (dyn FnMut(&StoredBatch) + Send),
    ) -> Result<(), ReadError> {
        const STEP_BYTES: usize = 4 << 20;
        let end = self.bounds().end;
        while offset < end {
            let before = offset;
            for batch in &self.read(offset, STEP_BYTES, true).await?.batches {
                offset = batch.last_offset() + 1;
                visit(batch);
            }
            if offset == before {
                return Err(self.storage_error("a hole in the log"));
            }
        }
        Ok(())
    }
}
