//! Parts of lane files and objects in memory, for readers that are behind the newest batches.
//!
//! Storage is read in runs of up to 8 MiB: exactly what a reader needs, where that is long, or else
//! whole pages. Readers at one place need the same run, and it is read once for all of them (single
//! flight). All runs together keep within a budget of bytes, which counts a run as long as any
//! slice of it lives. A run for which there is no room is read for its reader alone and not kept.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::pace::Pace;
use super::runs::{RUN_BYTES_MAX, cut_run, runs, widen};
use crate::failures::{ColdError, LaneError};
use crate::names::{LaneFile, ObjectRef};
use freshet_telemetry::BlockMetrics;
use freshet_wire::ids::Incarnation;
use freshet_world::env::DiskError;
use freshet_world::env::store::StoreError;

/// Runs that background work reads at a time.
const BACKGROUND_AT_ONCE: usize = 2;
/// After a failed read the same error is returned for this time; then storage is read again.
const FAILED_FOR: Duration = Duration::from_secs(1);
/// Runs that are read at a time ahead of one reader.
const AHEAD_AT_ONCE: usize = 4;

/// Bounds on reading from storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSettings {
    /// Memory for runs.
    pub block_bytes: usize,
    /// How far storage is read ahead of one reader, in bytes.
    pub ahead_bytes_max: u64,
    /// Runs that are read at a time for clients. Reading ahead may use three quarters of them.
    pub loads_at_once: usize,
    /// Bytes a second that readers behind the newest batches and background work read together; 0
    /// for no bound.
    pub bytes_per_s: u64,
}

impl Default for ReadSettings {
    fn default() -> Self {
        Self { block_bytes: 128 << 20, ahead_bytes_max: 32 << 20, loads_at_once: 8, bytes_per_s: 0 }
    }
}

/// The file or object that a run is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A file of a lane.
    Lane(Incarnation, LaneFile),
    /// An object.
    Object(ObjectRef),
}

/// Why a run could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoadError {
    /// The lane could not be read.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// The object could not be read.
    #[error(transparent)]
    Cold(#[from] ColdError),
    /// The task that read it ended without a result.
    #[error("a read was abandoned")]
    Abandoned,
}

impl LoadError {
    /// Whether the file or object exists no more, so that its records may be elsewhere by now.
    pub fn is_gone(&self) -> bool {
        matches!(
            self,
            Self::Lane(LaneError::Disk(DiskError::NotFound(_)))
                | Self::Cold(ColdError::Store(StoreError::NotFound(_)))
        )
    }
}

/// Reads ranges of sources from storage.
#[async_trait]
pub trait Loader: Send + Sync + 'static {
    /// Reads all of a range, or fails.
    async fn load(&self, source: Source, range: Range<u64>) -> Result<Bytes, LoadError>;
}

/// A run in memory. A slice of it keeps the whole run alive.
struct Run {
    start: u64,
    bytes: Bytes,
    /// Positions of which the checksum was verified before.
    checked: Mutex<BTreeSet<u64>>,
    _room: Room,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The part of a range that lies in this run.
    fn part(&self, range: &Range<u64>) -> &[u8] {
        let within = |at: u64| {
            let at = at.clamp(self.start, self.end()) - self.start;
            usize::try_from(at).expect("a run is 8 MiB")
        };
        &self.bytes[within(range.start)..within(range.end)]
    }

    /// Whether only the cache holds it.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }
}

/// A slice of a run that was lent to a reader; it keeps the run alive.
struct Lent {
    run: Arc<Run>,
    range: Range<u64>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.run.part(&self.range)
    }
}

/// Bytes that were read, and the run that holds them where it is kept in the cache.
pub struct Found {
    /// The bytes.
    pub bytes: Bytes,
    run: Option<(Arc<Run>, u64)>,
}

impl Found {
    /// Checks the bytes, unless they were checked in this memory before.
    ///
    /// # Errors
    /// The error that `check` returns.
    pub fn check_once<E>(&self, check: impl FnOnce(&Bytes) -> Result<(), E>) -> Result<(), E> {
        let Some((run, position)) = &self.run else { return check(&self.bytes) };
        if run.checked.lock().contains(position) {
            return Ok(());
        }
        check(&self.bytes)?;
        run.checked.lock().insert(*position);
        Ok(())
    }
}

/// A part of the budget, which is given back when this is dropped.
struct Room {
    used: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

type Loading = Shared<BoxFuture<'static, Result<Arc<Run>, LoadError>>>;

enum Entry {
    Ready { run: Arc<Run>, used: u64 },
    Loading { id: u64, end: u64, loading: Loading, failed_at: Option<Instant> },
}

impl Entry {
    /// Whether its read failed so long ago that it may be tried again.
    fn is_over(&self, now: Instant) -> bool {
        matches!(self, Self::Loading { failed_at: Some(at), .. } if now - *at >= FAILED_FOR)
    }

    fn end(&self) -> u64 {
        match self {
            Self::Ready { run, .. } => run.end(),
            Self::Loading { end, .. } => *end,
        }
    }
}

type Key = (Source, u64);

#[derive(Default)]
struct State {
    /// Entries by source and start. They do not overlap.
    entries: BTreeMap<Key, Entry>,
    by_use: BTreeMap<u64, Key>,
    uses: u64,
}

/// A piece of a range that is to be read.
enum Piece {
    Ready(Arc<Run>),
    Loading(Loading),
    Missing(Range<u64>),
}

impl State {
    /// The pieces of a range in order: those that are there, being read, or missing.
    fn pieces(&mut self, source: Source, range: &Range<u64>) -> Vec<Piece> {
        self.forget_failed(source, range);
        let mut pieces = Vec::new();
        let mut position = range.start;
        let before = self.entries.range(..=(source, range.start)).next_back();
        let first = before.filter(|((of, _), entry)| *of == source && entry.end() > range.start);
        let first = first.map_or((source, range.start), |(key, _)| *key);
        let mut touched = Vec::new();
        for (key, entry) in self.entries.range(first..(source, range.end)) {
            if key.1 > position {
                pieces.push(Piece::Missing(position..key.1));
            }
            pieces.push(match entry {
                Entry::Ready { run, .. } => {
                    touched.push(*key);
                    Piece::Ready(Arc::clone(run))
                }
                Entry::Loading { loading, .. } => Piece::Loading(loading.clone()),
            });
            position = entry.end();
        }
        if position < range.end {
            pieces.push(Piece::Missing(position..range.end));
        }
        for key in touched {
            self.touch(key);
        }
        pieces
    }

    fn forget_failed(&mut self, source: Source, range: &Range<u64>) {
        let now = Instant::now();
        let from = range.start.saturating_sub(RUN_BYTES_MAX);
        let around = self.entries.range((source, from)..(source, range.end));
        let over = around.filter(|(_, entry)| entry.is_over(now)).map(|(key, _)| *key);
        for key in over.collect::<Vec<_>>() {
            self.entries.remove(&key);
        }
    }

    fn touch(&mut self, key: Key) {
        self.uses += 1;
        if let Some(Entry::Ready { used, .. }) = self.entries.get_mut(&key) {
            self.by_use.remove(used);
            *used = self.uses;
            self.by_use.insert(self.uses, key);
        }
    }

    fn keep(&mut self, key: Key, run: Arc<Run>) {
        self.uses += 1;
        self.entries.insert(key, Entry::Ready { run, used: self.uses });
        self.by_use.insert(self.uses, key);
    }

    /// Evicts the run that was least recently used of those that nobody reads; returns whether
    /// there was one.
    fn evict_one(&mut self) -> bool {
        let idle = self.by_use.iter().find(|(_, key)| {
            matches!(self.entries.get(key), Some(Entry::Ready { run, .. }) if run.is_idle())
        });
        let Some((used, key)) = idle.map(|(used, key)| (*used, *key)) else { return false };
        self.by_use.remove(&used);
        self.entries.remove(&key);
        true
    }

    fn forget(&mut self, source: Source) {
        let of_source = self.entries.range((source, 0)..=(source, u64::MAX));
        for key in of_source.map(|(key, _)| *key).collect::<Vec<_>>() {
            if let Some(Entry::Ready { used, .. }) = self.entries.remove(&key) {
                self.by_use.remove(&used);
            }
        }
    }
}

/// The runs in memory (see the module).
pub struct BlockCache {
    state: Mutex<State>,
    used: Arc<AtomicUsize>,
    settings: ReadSettings,
    loads: Arc<Semaphore>,
    ahead: Semaphore,
    background: Arc<Semaphore>,
    pace: Pace,
    metrics: BlockMetrics,
    next_id: AtomicU64,
}

impl BlockCache {
    /// An empty cache.
    pub fn new(settings: ReadSettings, metrics: BlockMetrics) -> Self {
        let loads = settings.loads_at_once.max(1);
        Self {
            state: Mutex::default(),
            used: Arc::default(),
            settings,
            loads: Arc::new(Semaphore::new(loads)),
            ahead: Semaphore::new((loads - loads / 4).max(1)),
            background: Arc::new(Semaphore::new(BACKGROUND_AT_ONCE)),
            pace: Pace::new(settings.bytes_per_s),
            metrics,
            next_id: AtomicU64::new(0),
        }
    }

    /// Its settings.
    pub fn settings(&self) -> &ReadSettings {
        &self.settings
    }

    /// Its metrics.
    pub fn metrics(&self) -> &BlockMetrics {
        &self.metrics
    }

    /// Bytes of all runs in memory, also of evicted ones that a reader still holds.
    pub fn used_bytes(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Reads a range. What is missing is loaded together with what follows it up to `reach`; where
    /// that is short, whole pages around it are loaded. Nothing at or behind `limit` is.
    ///
    /// # Errors
    /// The [`LoadError`] of the loader, also one of the last second; [`LoadError::Abandoned`].
    pub async fn read(
        self: &Arc<Self>,
        loader: &Arc<dyn Loader>,
        source: Source,
        range: Range<u64>,
        reach: u64,
        limit: u64,
    ) -> Result<Found, LoadError> {
        let limit = limit.max(range.end);
        let mut runs = Vec::new();
        let mut loaded = false;
        let mut position = range.start;
        while position < range.end {
            let piece = {
                let mut state = self.state.lock();
                let first = state.pieces(source, &(position..range.end)).into_iter().next();
                match first.expect("the range is not empty") {
                    Piece::Missing(gap) => {
                        let reach = reach.clamp(range.end, limit);
                        let around = cut_run(widen(gap.start..reach, limit));
                        let begun = self.begin(&mut state, loader, source, &around, gap.start);
                        begun.map(Piece::Loading)
                    }
                    piece => Some(piece),
                }
            };
            let run = match piece {
                None => return self.read_alone(loader, source, range).await,
                Some(Piece::Ready(run)) => run,
                Some(Piece::Loading(loading)) => {
                    loaded = true;
                    loading.await?
                }
                Some(Piece::Missing(_)) => unreachable!("what is missing is being loaded"),
            };
            position = run.end();
            runs.push(run);
        }
        self.metrics.read(!loaded, range.end - range.start);
        Ok(join_runs(&runs, &range))
    }

    /// Reads into the cache what is missing of ranges, which are in order, up to 8 MiB at a time,
    /// while there is room. Returns when all is there. Reads that have not begun when this is
    /// dropped do not begin.
    pub async fn read_ahead(
        self: &Arc<Self>,
        loader: &Arc<dyn Loader>,
        source: Source,
        ranges: &[Range<u64>],
        limit: u64,
    ) -> Result<(), LoadError> {
        let reads = runs(ranges, limit).into_iter().map(|run| self.read_run(loader, source, run));
        futures::stream::iter(reads)
            .buffered(AHEAD_AT_ONCE)
            .try_for_each(|()| async { Ok(()) })
            .await
    }

    async fn read_run(
        self: &Arc<Self>,
        loader: &Arc<dyn Loader>,
        source: Source,
        run: Range<u64>,
    ) -> Result<(), LoadError> {
        let _turn = self.ahead.acquire().await.expect("the semaphore is never closed");
        let begun: Vec<_> = {
            let mut state = self.state.lock();
            let missing = state.pieces(source, &run).into_iter().filter_map(|piece| match piece {
                Piece::Missing(gap) => Some(gap),
                Piece::Ready(_) | Piece::Loading(_) => None,
            });
            let missing: Vec<_> = missing.collect();
            let begin = |gap: Range<u64>| {
                let loading = self.begin(&mut state, loader, source, &gap, gap.start)?;
                self.metrics.read_ahead(gap.end - gap.start);
                Some(loading)
            };
            missing.into_iter().map_while(begin).collect()
        };
        for loading in begun {
            loading.await?;
        }
        Ok(())
    }

    /// Forgets a source that is about to be removed or recycled. What is being read of it is not
    /// kept.
    pub fn forget(&self, source: Source) {
        self.state.lock().forget(source);
    }

    /// Waits until background work may read so many bytes. The permit is one of
    /// [`BACKGROUND_AT_ONCE`] and is held until it is dropped.
    pub async fn background(&self, bytes: u64) -> OwnedSemaphorePermit {
        let permit = Arc::clone(&self.background).acquire_owned().await;
        self.pace.take(bytes).await;
        permit.expect("the semaphore is never closed")
    }

    /// Takes room in the budget, and evicts runs that nobody reads for it. `None` where that is not
    /// enough.
    fn room(&self, state: &mut State, bytes: usize) -> Option<Room> {
        if bytes > self.settings.block_bytes {
            return None;
        }
        while self.used_bytes() + bytes > self.settings.block_bytes {
            if !state.evict_one() {
                return None;
            }
        }
        self.used.fetch_add(bytes, Ordering::AcqRel);
        Some(Room { used: Arc::clone(&self.used), bytes })
    }

    /// Begins to load the part of `reach` around `needed` that no entry covers; `None` where there
    /// is no room for it.
    fn begin(
        self: &Arc<Self>,
        state: &mut State,
        loader: &Arc<dyn Loader>,
        source: Source,
        reach: &Range<u64>,
        needed: u64,
    ) -> Option<Loading> {
        let range = state.gap(source, reach, needed);
        let bytes = usize::try_from(range.end - range.start).expect("a run is 8 MiB");
        let room = self.room(state, bytes)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (cache, loader) = (Arc::clone(self), Arc::clone(loader));
        let end = range.end;
        let key = (source, range.start);
        let task = tokio::spawn(async move {
            let loaded = cache.load(&loader, source, range, room).await;
            cache.loaded(key, id, &loaded);
            loaded
        });
        let loading = async move { task.await.unwrap_or(Err(LoadError::Abandoned)) };
        let loading = loading.boxed().shared();
        let entry = Entry::Loading { id, end, loading: loading.clone(), failed_at: None };
        state.entries.insert(key, entry);
        Some(loading)
    }

    async fn load(
        &self,
        loader: &Arc<dyn Loader>,
        source: Source,
        range: Range<u64>,
        room: Room,
    ) -> Result<Arc<Run>, LoadError> {
        let start = range.start;
        let bytes = self.load_in_turn(loader, source, range).await?;
        Ok(Arc::new(Run { start, bytes, checked: Mutex::default(), _room: room }))
    }

    async fn load_in_turn(
        &self,
        loader: &Arc<dyn Loader>,
        source: Source,
        range: Range<u64>,
    ) -> Result<Bytes, LoadError> {
        let _turn = self.loads.acquire().await.expect("the semaphore is never closed");
        let bytes_loaded = range.end - range.start;
        self.pace.take(bytes_loaded).await;
        let bytes = loader.load(source, range).await?;
        self.metrics.loaded(bytes_loaded);
        Ok(bytes)
    }

    /// Keeps the result of a load. `id` says whether the entry is still that load's: it may have
    /// been forgotten, and another begun at the same place.
    fn loaded(&self, key: Key, id: u64, loaded: &Result<Arc<Run>, LoadError>) {
        let mut state = self.state.lock();
        let Some(Entry::Loading { id: entry_id, failed_at, .. }) = state.entries.get_mut(&key)
        else {
            return;
        };
        if *entry_id != id {
            return;
        }
        match loaded {
            Ok(run) => state.keep(key, Arc::clone(run)),
            Err(error) if error.is_gone() => drop(state.entries.remove(&key)),
            // The error is returned to readers that come soon, even where nobody waited for it.
            Err(_) => *failed_at = Some(Instant::now()),
        }
    }

    /// Reads for one reader only, without keeping the bytes.
    async fn read_alone(
        &self,
        loader: &Arc<dyn Loader>,
        source: Source,
        range: Range<u64>,
    ) -> Result<Found, LoadError> {
        self.metrics.read(false, range.end - range.start);
        let bytes = self.load_in_turn(loader, source, range).await?;
        Ok(Found { bytes, run: None })
    }
}

impl State {
    /// The part of `reach` around `needed` that no entry covers.
    fn gap(&self, source: Source, reach: &Range<u64>, needed: u64) -> Range<u64> {
        let before = self.entries.range((source, 0)..(source, needed)).next_back();
        let after = self.entries.range((source, needed)..=(source, u64::MAX)).next();
        let start = before.map_or(0, |(_, entry)| entry.end()).max(reach.start);
        let end = after.map_or(u64::MAX, |((_, start), _)| *start).min(reach.end);
        start..end
    }
}

fn join_runs(runs: &[Arc<Run>], range: &Range<u64>) -> Found {
    if let [run] = runs {
        let run = Arc::clone(run);
        let lent = Lent { run: Arc::clone(&run), range: range.clone() };
        return Found { bytes: Bytes::from_owner(lent), run: Some((run, range.start)) };
    }
    let length = usize::try_from(range.end - range.start).expect("what is read fits memory");
    let mut bytes = BytesMut::with_capacity(length);
    for run in runs {
        bytes.extend_from_slice(run.part(range));
    }
    Found { bytes: bytes.freeze(), run: None }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
