//! Looks up when records were made, in the background, and remembers it.
//!
//! The time of a (partition, offset) never changes, so it is looked up once for as long as anybody
//! asks for it. The work is bounded: [`AT_ONCE`] look-ups, then a pause. It runs on a thread of low
//! priority, and not at all while nothing is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use freshet_partition::registry::Partitions;
use freshet_wire::ids::PartitionId;

/// A partition and an offset in it.
pub(super) type Position = (PartitionId, i64);

/// How many are looked up between two pauses.
const AT_ONCE: usize = 32;
/// How long a pause is. With it, storage is asked at most 160 times a second.
const PAUSE: Duration = Duration::from_millis(200);
/// How long one may take.
const LOOK_UP_TIME: Duration = Duration::from_secs(10);
/// One that failed is tried again after this time at the earliest.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// What is known of the time at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// In ms since 1970; `None` where no record has one, or it could not be read.
    Known(Option<i64>),
    /// It is being looked up.
    Awaited,
}

enum LookUp {
    /// The time in ms since 1970; `None` where no record has one.
    Done(Option<i64>),
    Asked,
    Failed(Instant),
}

#[derive(Default)]
struct TimesState {
    known: BTreeMap<Position, LookUp>,
    asked: BTreeSet<Position>,
    failed: BTreeSet<Position>,
    arrived: Vec<Position>,
}

/// The times of records (see the module).
pub(super) struct Times {
    state: Mutex<TimesState>,
    asked: Notify,
    partitions: Arc<Partitions>,
}

impl Times {
    pub(super) fn new(partitions: Arc<Partitions>) -> Self {
        Self { state: Mutex::default(), asked: Notify::new(), partitions }
    }

    /// The time at a position. Where it is not known it is looked up, and [`Times::take_arrived`]
    /// returns the position later.
    pub(super) fn get(&self, position: Position) -> Time {
        let mut state = self.state.lock();
        match state.known.get(&position) {
            Some(LookUp::Done(time)) => Time::Known(*time),
            Some(LookUp::Failed(_)) => Time::Known(None),
            Some(LookUp::Asked) => Time::Awaited,
            None => {
                state.known.insert(position, LookUp::Asked);
                state.asked.insert(position);
                self.asked.notify_one();
                Time::Awaited
            }
        }
    }

    /// The positions whose times have become known since the last call.
    pub(super) fn take_arrived(&self) -> Vec<Position> {
        std::mem::take(&mut self.state.lock().arrived)
    }

    /// How many positions are remembered.
    pub(super) fn len(&self) -> usize {
        self.state.lock().known.len()
    }

    /// Forgets all positions but these.
    pub(super) fn retain(&self, used: &BTreeSet<Position>) {
        let mut state = self.state.lock();
        let TimesState { known, asked, failed, .. } = &mut *state;
        known.retain(|position, _| used.contains(position));
        asked.retain(|position| used.contains(position));
        failed.retain(|position| used.contains(position));
    }

    /// Asks again for those that failed a while ago.
    pub(super) fn retry_failed(&self) {
        let mut state = self.state.lock();
        if state.failed.is_empty() {
            return;
        }
        let is_due = |position: &Position| {
            let known = state.known.get(position);
            matches!(known, Some(LookUp::Failed(since)) if since.elapsed() >= RETRY_AFTER)
        };
        let due: Vec<Position> = state.failed.iter().copied().filter(is_due).collect();
        for position in &due {
            state.failed.remove(position);
            state.known.insert(*position, LookUp::Asked);
            state.asked.insert(*position);
        }
        if !due.is_empty() {
            self.asked.notify_one();
        }
    }

    /// Looks up what is asked for, until it is dropped.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            let next = self.take_asked();
            if next.is_empty() {
                self.asked.notified().await;
                continue;
            }
            for position in next {
                let looked_up = timeout(LOOK_UP_TIME, self.look_up(position)).await;
                self.enter(position, looked_up.unwrap_or(None));
            }
            sleep(PAUSE).await;
        }
    }

    fn take_asked(&self) -> Vec<Position> {
        let mut state = self.state.lock();
        let next: Vec<Position> = state.asked.iter().take(AT_ONCE).copied().collect();
        for position in &next {
            state.asked.remove(position);
        }
        next
    }

    /// The time at a position; `None` where it could not be read.
    async fn look_up(&self, (partition, offset): Position) -> Option<LookUp> {
        let partition = self.partitions.get(partition)?;
        partition.time_at(offset).await.ok().map(LookUp::Done)
    }

    fn enter(&self, position: Position, outcome: Option<LookUp>) {
        let mut state = self.state.lock();
        // Where it was forgotten meanwhile, nobody asks for it any more.
        let Some(known) = state.known.get_mut(&position) else { return };
        if let Some(time) = outcome {
            *known = time;
        } else {
            *known = LookUp::Failed(Instant::now());
            state.failed.insert(position);
        }
        state.arrived.push(position);
    }
}
