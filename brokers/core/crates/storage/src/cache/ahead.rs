//! Which readers read a log from front to back, and how far storage is read ahead of each.
//!
//! A fetch does not name the fetch before it, so a reader is recognised by the offset at which its
//! next fetch has to begin. A reader that goes on there gets twice the window. One that does not
//! come back is forgotten, and what was still to be read for it is not read.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use freshet_wire::ids::PartitionId;

/// The window of a reader's first fetch, in bytes.
const WINDOW_FIRST: u64 = 512 << 10;
/// A reader that sends no other fetch within this time has stopped.
const STOPPED_AFTER: Duration = Duration::from_secs(3);
/// Readers that are remembered. With one more, the reader whose last fetch is the oldest is
/// forgotten.
const READERS_MAX: usize = 1024;

/// A reader, from one of its fetches to the next.
#[derive(Debug, Default)]
pub struct Follower {
    window: u64,
    /// Bytes behind the reader's place that were requested from storage already.
    ahead: u64,
    /// The task that reads ahead; it is aborted when the reader is forgotten.
    task: Option<AbortOnDropHandle<()>>,
}

impl Follower {
    /// Advances the reader by a fetch of `taken` bytes, which doubles its window up to
    /// `window_max`. Returns how many bytes from the reader's place on are to be read ahead now.
    /// `None` while an earlier read is under way or more than half a window is left, so that reads
    /// stay long, and where the window is 0.
    pub fn advance(&mut self, taken: u64, window_max: u64) -> Option<u64> {
        self.ahead = self.ahead.saturating_sub(taken);
        let doubled = self.window.saturating_mul(2).max(WINDOW_FIRST);
        self.window = doubled.min(window_max);
        let busy = self.task.as_ref().is_some_and(|task| !task.is_finished());
        if busy || self.window == 0 || self.ahead > self.window / 2 {
            return None;
        }
        self.ahead = self.window;
        Some(taken + self.window)
    }

    /// Keeps the task that reads ahead, so that it ends with the reader.
    pub fn run(&mut self, task: AbortOnDropHandle<()>) {
        self.task = Some(task);
    }
}

struct WaitingReader {
    /// Where its last fetch began: a fetch that waits for more begins there again.
    began: i64,
    since: Instant,
    follower: Follower,
}

/// The readers of all partitions.
pub struct Followers {
    /// Readers between two fetches, by partition and the offset at which they go on.
    waiting: Mutex<BTreeMap<(PartitionId, i64), WaitingReader>>,
    window_max: u64,
    /// Bytes of all windows together.
    windows_total: u64,
}

impl Followers {
    /// Windows of up to `window_max` bytes each, and of up to `windows_total` together.
    pub fn new(window_max: u64, windows_total: u64) -> Self {
        Self { waiting: Mutex::default(), window_max, windows_total }
    }

    /// The largest window that a reader may have now, in bytes; 0 where there are so many readers
    /// that each would evict from the cache what was read for the others.
    pub fn window_max(&self) -> u64 {
        let readers = self.waiting.lock().len() as u64;
        let share = self.windows_total / readers.max(1);
        if share < WINDOW_FIRST { 0 } else { self.window_max.min(share) }
    }

    /// Takes out the reader that goes on at this offset, or makes a new one. Readers that have
    /// stopped are forgotten.
    pub fn come(&self, partition: PartitionId, offset: i64) -> Follower {
        let mut waiting = self.waiting.lock();
        let now = Instant::now();
        waiting.retain(|_, reader| now - reader.since < STOPPED_AFTER);
        let of_partition = waiting.range((partition, i64::MIN)..=(partition, i64::MAX));
        let known = of_partition
            .filter(|((_, next), reader)| *next == offset || reader.began == offset)
            .map(|(key, _)| *key)
            .next();
        let known_reader = known.and_then(|key| waiting.remove(&key));
        known_reader.map(|reader| reader.follower).unwrap_or_default()
    }

    /// Remembers a reader whose fetch from `began` on ended before `next`.
    pub fn go(&self, partition: PartitionId, began: i64, next: i64, follower: Follower) {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= READERS_MAX {
            let longest = waiting.iter().min_by_key(|(_, reader)| reader.since);
            if let Some(key) = longest.map(|(key, _)| *key) {
                waiting.remove(&key);
            }
        }
        let since = Instant::now();
        waiting.insert((partition, next), WaitingReader { began, since, follower });
    }

    /// Readers that are remembered now.
    pub fn count(&self) -> usize {
        self.waiting.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const MIB: u64 = 1 << 20;

    fn partition() -> PartitionId {
        PartitionId::new(Uuid::from_u128(1), 0)
    }

    /// Fetches 1 MiB at each of `offsets`; returns what was requested from storage at each.
    fn follow(followers: &Followers, offsets: std::ops::Range<i64>) -> Vec<Option<u64>> {
        let fetch = |offset| {
            let mut follower = followers.come(partition(), offset);
            let asked = follower.advance(MIB, followers.window_max());
            followers.go(partition(), offset, offset + 1, follower);
            asked.map(|bytes| bytes - MIB)
        };
        offsets.map(fetch).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_window_doubles_up_to_its_limit_while_a_reader_goes_on() {
        let followers = Followers::new(8 * MIB, 1 << 40);
        let asked = follow(&followers, 0..8);
        let some = |mib: u64| Some(mib * MIB);
        assert_eq!(asked[..4], [Some(MIB / 2), some(1), some(2), some(4)]);
        assert_eq!(asked[4..], [some(8), None, None, None], "half a window is left to go first");
        assert_eq!(followers.count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_jumps_or_stays_away_begins_anew() {
        let followers = Followers::new(8 * MIB, 1 << 40);
        follow(&followers, 0..4);
        assert_eq!(follow(&followers, 100..101), [Some(MIB / 2)]);
        assert_eq!(followers.count(), 2, "another reader may go on where this one left");
        tokio::time::advance(STOPPED_AFTER).await;
        assert_eq!(follow(&followers, 101..102), [Some(MIB / 2)]);
        assert_eq!(followers.count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_looks_again_is_the_same_reader() {
        let followers = Followers::new(8 * MIB, 1 << 40);
        follow(&followers, 0..2);
        follow(&followers, 1..2);
        assert_eq!(followers.count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn all_windows_together_keep_within_their_budget() {
        let followers = Followers::new(8 * MIB, 8 * MIB);
        for reader in 0..8 {
            follow(&followers, reader * 100..reader * 100 + 10);
        }
        assert_eq!(followers.window_max(), MIB);
        for reader in 8..17 {
            follow(&followers, reader * 100..reader * 100 + 1);
        }
        assert_eq!(followers.window_max(), 0, "too many to read ahead of any");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_read_for_a_reader_ends_when_it_has_stopped() {
        let followers = Followers::new(8 * MIB, 1 << 40);
        let (ended, mut running) = tokio::sync::oneshot::channel::<()>();
        let mut follower = followers.come(partition(), 0);
        follower.run(AbortOnDropHandle::new(tokio::spawn(async move {
            let _held = ended;
            std::future::pending::<()>().await;
        })));
        followers.go(partition(), 0, 1, follower);
        tokio::task::yield_now().await;
        assert!(running.try_recv().is_err());
        tokio::time::advance(STOPPED_AFTER).await;
        followers.come(partition(), 7);
        assert!(running.await.is_err(), "the task was dropped");
    }
}
