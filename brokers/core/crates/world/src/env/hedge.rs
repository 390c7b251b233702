//! Repeats a read that an object store is slow to answer, and takes the first answer (hedging).
//!
//! A read that has waited longer than 95 of 100 reads did is sent a second time. At most one read
//! in twenty is, and none while the store asks for fewer requests, so that a store that is slow
//! altogether does not get twice the work.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::store::{ObjectStore, StoreError, StoreMetrics, StoreResult};

/// Answers that are remembered of each kind of read.
const ANSWERS_MAX: usize = 128;
/// With fewer answers than this no delay is derived from them.
const ANSWERS_MIN: usize = 20;
/// How long an answer is waited for until there are enough.
const DELAY_FIRST: Duration = Duration::from_millis(500);
const DELAY_MIN: Duration = Duration::from_millis(20);
const DELAY_MAX: Duration = Duration::from_secs(2);
/// The credit that one read earns. A repeated read costs [`COST`], and at most [`SAVED_MAX`] are
/// saved.
const EARNED: u32 = 1;
const COST: u32 = 20;
const SAVED_MAX: u32 = 8 * COST;
/// Reads of at most this many bytes are of one kind, larger ones and whole objects of another.
const SMALL_BYTES_MAX: u64 = 256 << 10;

/// How long reads of one kind took.
#[derive(Default)]
struct Answers {
    newest: VecDeque<Duration>,
    /// The time that 95 of 100 did not exceed, as it was last computed.
    delay: Option<Duration>,
}

impl Answers {
    fn note(&mut self, took: Duration) {
        if self.newest.len() == ANSWERS_MAX {
            self.newest.pop_front();
        }
        self.newest.push_back(took);
        if self.newest.len() < ANSWERS_MIN {
            return;
        }
        let mut sorted: Vec<_> = self.newest.iter().copied().collect();
        let at = sorted.len() * 95 / 100;
        let (_, percentile, _) = sorted.select_nth_unstable(at);
        self.delay = Some((*percentile).clamp(DELAY_MIN, DELAY_MAX));
    }
}

struct State {
    small: Answers,
    large: Answers,
    saved: u32,
}

/// A store whose slow reads are repeated (see the module).
pub struct HedgedStore {
    inner: Arc<dyn ObjectStore>,
    state: Mutex<State>,
    metrics: StoreMetrics,
}

impl HedgedStore {
    /// The store `inner` with hedged reads.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        let metrics = inner.metrics().cloned().unwrap_or_default();
        let (small, large) = (Answers::default(), Answers::default());
        Self { inner, state: Mutex::new(State { small, large, saved: SAVED_MAX }), metrics }
    }

    fn delay(&self, is_small: bool) -> Duration {
        let mut state = self.state.lock();
        state.saved = (state.saved + EARNED).min(SAVED_MAX);
        let answers = if is_small { &state.small } else { &state.large };
        answers.delay.unwrap_or(DELAY_FIRST)
    }

    fn note(&self, is_small: bool, took: Duration) {
        let mut state = self.state.lock();
        let answers = if is_small { &mut state.small } else { &mut state.large };
        answers.note(took);
    }

    /// Whether a slow read may be repeated.
    fn may_hedge(&self, throttled_before: u64) -> bool {
        let mut state = self.state.lock();
        if state.saved < COST || self.metrics.throttled.get() != throttled_before {
            return false;
        }
        state.saved -= COST;
        true
    }

    async fn hedged<F>(&self, is_small: bool, ask: impl Fn() -> F + Send) -> StoreResult<Bytes>
    where
        F: Future<Output = StoreResult<Bytes>> + Send,
    {
        let begun = Instant::now();
        let throttled = self.metrics.throttled.get();
        let delay = self.delay(is_small);
        let mut first = pin!(ask());
        let early = tokio::select! {
            biased;
            answer = &mut first => Some(answer),
            () = sleep(delay) => None,
        };
        let answer = match early {
            Some(answer) => answer,
            None if self.may_hedge(throttled) => self.race(first, ask()).await,
            None => first.await,
        };
        if answer.is_ok() {
            self.note(is_small, begun.elapsed());
        }
        answer
    }

    /// The first of two answers that is not a failure of the store.
    async fn race<F, S>(&self, mut first: F, second: S) -> StoreResult<Bytes>
    where
        F: Future<Output = StoreResult<Bytes>> + Unpin + Send,
        S: Future<Output = StoreResult<Bytes>> + Send,
    {
        self.metrics.hedges.inc();
        let mut second = pin!(second);
        tokio::select! {
            biased;
            answer = &mut first => match answer {
                Err(StoreError::Unavailable(_)) => second.await,
                answer => answer,
            },
            answer = &mut second => match answer {
                Err(StoreError::Unavailable(_)) => first.await,
                answer => {
                    self.metrics.hedges_won.inc();
                    answer
                }
            },
        }
    }
}

#[async_trait]
impl ObjectStore for HedgedStore {
    async fn put_new(&self, key: &str, pieces: Vec<Bytes>) -> StoreResult<()> {
        self.inner.put_new(key, pieces).await
    }

    async fn get(&self, key: &str) -> StoreResult<Bytes> {
        self.hedged(false, || self.inner.get(key)).await
    }

    async fn get_range(&self, key: &str, position: u64, length: u64) -> StoreResult<Bytes> {
        let is_small = length <= SMALL_BYTES_MAX;
        self.hedged(is_small, || self.inner.get_range(key, position, length)).await
    }

    async fn list(&self, folder: &str) -> StoreResult<Vec<String>> {
        self.inner.list(folder).await
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        self.inner.delete(key).await
    }

    async fn list_half_made(&self, folder: &str) -> StoreResult<Vec<String>> {
        self.inner.list_half_made(folder).await
    }

    fn puts_at_once(&self) -> usize {
        self.inner.puts_at_once()
    }

    fn metrics(&self) -> Option<&StoreMetrics> {
        Some(&self.metrics)
    }
}

#[cfg(test)]
#[path = "hedge_tests.rs"]
mod tests;
