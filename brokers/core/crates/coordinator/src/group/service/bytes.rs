//! Counts bytes of all groups together: those that they take for good, which have a limit, and
//! those of writes that wait for their append, for which requests wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard, Notify};

/// While the writes that wait take as many bytes, no further request is taken up that may write.
const WAITING_BYTES_MAX: usize = 32 << 20;

/// A sum of bytes.
#[derive(Clone, Default)]
pub(super) struct ByteCount(Arc<AtomicUsize>);

/// Bytes that are part of a [`ByteCount`] until this is dropped.
pub(super) struct Counted {
    count: ByteCount,
    bytes: usize,
}

impl ByteCount {
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Counts bytes, whatever the limit is.
    pub(super) fn add(&self, bytes: usize) -> Counted {
        self.0.fetch_add(bytes, Ordering::AcqRel);
        Counted { count: self.clone(), bytes }
    }

    /// Counts bytes; `None` where there would be more than `limit` together. Of several at the same
    /// time no more are counted than fit. No bytes always fit.
    pub(super) fn add_within(&self, bytes: usize, limit: Option<usize>) -> Option<Counted> {
        if bytes == 0 {
            return Some(self.add(0));
        }
        let limit = limit.unwrap_or(usize::MAX);
        let next = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= limit);
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        before.is_ok().then(|| Counted { count: self.clone(), bytes })
    }
}

impl Counted {
    /// Counts so many bytes instead.
    pub(super) fn set(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.count.0.fetch_add(bytes - self.bytes, Ordering::AcqRel);
        } else {
            self.count.0.fetch_sub(self.bytes - bytes, Ordering::AcqRel);
        }
        self.bytes = bytes;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.count.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// The writes of all groups that wait for their append.
#[derive(Default)]
pub(super) struct WaitingWrites {
    count: ByteCount,
    shrunk: Notify,
    turn: Mutex<()>,
}

/// A part of [`WaitingWrites`], until it is dropped.
pub(super) struct WaitingWrite {
    counted: Counted,
    writes: Arc<WaitingWrites>,
}

impl WaitingWrites {
    pub(super) fn add(self: &Arc<Self>, bytes: usize) -> WaitingWrite {
        WaitingWrite { counted: self.count.add(bytes), writes: Arc::clone(self) }
    }

    /// Waits until there is room for another write of any size. Where requests have to wait they
    /// are let in one after the other, each when what the one before it wrote is counted: the
    /// guard is held until then.
    pub(super) async fn room(&self) -> Option<MutexGuard<'_, ()>> {
        if self.has_room() {
            return None;
        }
        let turn = self.turn.lock().await;
        loop {
            // The future is made before the check, so that a change between the two is not missed.
            let shrunk = self.shrunk.notified();
            if self.has_room() {
                return Some(turn);
            }
            shrunk.await;
        }
    }

    fn has_room(&self) -> bool {
        self.count.bytes() < WAITING_BYTES_MAX
    }
}

impl Drop for WaitingWrite {
    fn drop(&mut self) {
        self.counted.set(0);
        // One waits at most: the others wait for their turn.
        self.writes.shrunk.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn bytes_are_counted_up_to_the_limit_and_come_back() {
        let count = ByteCount::default();
        let mut first = count.add_within(60, Some(100)).unwrap();
        assert!(count.add_within(41, Some(100)).is_none());
        let second = count.add_within(40, Some(100)).unwrap();
        // What exists counts beyond the limit, too; what does not grow is never refused.
        let loaded = count.add(1_000);
        assert!(count.add_within(0, Some(100)).is_some());
        assert!(count.add_within(1, Some(100)).is_none());
        assert!(count.add_within(usize::MAX, None).is_none(), "the sum has no number");
        drop((second, loaded));
        first.set(99);
        assert_eq!(count.bytes(), 99);
        first.set(7);
        assert_eq!(count.bytes(), 7);
        drop(first);
        assert_eq!(count.bytes(), 0);
    }

    #[test]
    fn those_that_wait_for_room_are_let_in_one_after_the_other() {
        let writes = Arc::new(WaitingWrites::default());
        let large = writes.add(WAITING_BYTES_MAX);
        let mut first = Box::pin(writes.room());
        let mut second = Box::pin(writes.room());
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(large);
        let turn = first.as_mut().now_or_never().unwrap();
        assert!(second.as_mut().now_or_never().is_none(), "the first has not written yet");
        let large = writes.add(WAITING_BYTES_MAX);
        drop(turn);
        assert!(second.as_mut().now_or_never().is_none());
        drop(large);
        assert!(second.as_mut().now_or_never().is_some());
        drop(second);
        assert!(writes.room().now_or_never().is_some_and(|turn| turn.is_none()));
    }
}
