//! Timers expressed as deadlines: at most one for each key, ordered by time and then by key.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Deadlines on a monotonic clock.
#[derive(Debug, Clone)]
pub(super) struct Deadlines<K> {
    by_key: BTreeMap<K, Duration>,
    by_time: BTreeSet<(Duration, K)>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self { by_key: BTreeMap::new(), by_time: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Deadlines<K> {
    /// Sets the deadline of `key`, in place of an earlier one.
    pub(super) fn schedule(&mut self, key: K, at: Duration) {
        if let Some(before) = self.by_key.insert(key.clone(), at) {
            self.by_time.remove(&(before, key.clone()));
        }
        self.by_time.insert((at, key));
    }

    /// Sets the deadline of `key` unless it has one that is as early or earlier. Returns whether
    /// the earliest deadline of all keys became earlier.
    pub(super) fn schedule_earlier(&mut self, key: K, at: Duration) -> bool {
        if self.by_key.get(&key).is_some_and(|before| *before <= at) {
            return false;
        }
        let is_first = self.next().is_none_or(|next| at < next);
        self.schedule(key, at);
        is_first
    }

    /// Forgets the deadline of `key`.
    pub(super) fn cancel(&mut self, key: &K) {
        if let Some(at) = self.by_key.remove(key) {
            self.by_time.remove(&(at, key.clone()));
        }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Duration> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes and returns the key with the earliest deadline, where that has come by `now`.
    pub(super) fn pop_due(&mut self, now: Duration) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    /// Forgets every key that does not fulfil the condition.
    pub(super) fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.by_key.retain(|key, _| keep(key));
        self.by_time.retain(|(_, key)| keep(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_key_has_one_deadline() {
        let mut deadlines = Deadlines::default();
        deadlines.schedule("a", seconds(5));
        deadlines.schedule("a", seconds(9));
        assert_eq!(deadlines.next(), Some(seconds(9)));
        assert_eq!(deadlines.pop_due(seconds(8)), None);
        assert_eq!(deadlines.pop_due(seconds(9)), Some("a"));
        assert_eq!(deadlines.next(), None);
    }

    #[test]
    fn deadlines_come_in_order_and_can_be_cancelled() {
        let mut deadlines = Deadlines::default();
        deadlines.schedule("b", seconds(1));
        deadlines.schedule("a", seconds(1));
        deadlines.schedule("c", seconds(0));
        deadlines.cancel(&"b");
        assert_eq!(deadlines.pop_due(seconds(1)), Some("c"));
        assert_eq!(deadlines.pop_due(seconds(1)), Some("a"));
        assert_eq!(deadlines.pop_due(seconds(1)), None);
    }

    #[test]
    fn schedule_earlier_never_postpones() {
        let mut deadlines = Deadlines::default();
        assert!(deadlines.schedule_earlier("a", seconds(5)));
        assert!(!deadlines.schedule_earlier("a", seconds(6)));
        assert!(!deadlines.schedule_earlier("b", seconds(6)));
        assert!(deadlines.schedule_earlier("b", seconds(2)));
        assert_eq!(deadlines.next(), Some(seconds(2)));
        deadlines.retain(|key| *key == "a");
        assert_eq!(deadlines.next(), Some(seconds(5)));
    }
}
