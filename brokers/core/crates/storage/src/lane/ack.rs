//! Waiting for many batches at once: one wake-up for a request, however many partitions it has and
//! however many writes its batches take.
//!
//! Each batch carries a share. A share is dropped with its batch: when that is durable, or because
//! the incarnation ended. So the wait always ends, and says nothing of the outcome: whoever waited
//! asks each partition how far it is durable.
//!
//! The request's memory is given back with the last share, also where nobody waits any more: the
//! batches of a client that gave up or left are in the queue all the same.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;
use tokio::time::Instant;

use freshet_wire::budget::RequestMemory;

/// The batches that a request waits for.
#[derive(Debug)]
pub struct Acks {
    shared: Arc<Shared>,
    handed_out: usize,
    /// Whether it has given up its own place in the count, which it holds until all shares are
    /// handed out: without that place the first share that is dropped could settle the request
    /// early.
    waits: bool,
}

/// A batch's share in what its request waits for. Dropping it settles the batch.
#[derive(Debug)]
pub struct AckShare(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Shares that are not dropped, plus one for the request while it hands them out.
    left: AtomicUsize,
    /// When the last of them was dropped.
    settled_at: OnceLock<Instant>,
    waker: AtomicWaker,
    /// Given back when the request and all its shares are dropped.
    _memory: Option<RequestMemory>,
}

impl Shared {
    /// Takes one from the count; the last one wakes the request.
    fn leave(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Only one caller reaches zero, and no share is handed out after that.
            let _ = self.settled_at.set(Instant::now());
            self.waker.wake();
        }
    }
}

impl Acks {
    /// Shares of a request that holds `memory` of the budgets for its batches.
    pub fn new(memory: Option<RequestMemory>) -> Self {
        let shared = Shared {
            left: AtomicUsize::new(1),
            settled_at: OnceLock::new(),
            waker: AtomicWaker::new(),
            _memory: memory,
        };
        Self { shared: Arc::new(shared), handed_out: 0, waits: false }
    }

    /// A share for one more batch. All shares are handed out before [`Self::settled`] is called.
    pub fn share(&mut self) -> AckShare {
        debug_assert!(!self.waits, "shares are handed out before anybody waits");
        self.handed_out += 1;
        self.shared.left.fetch_add(1, Ordering::Relaxed);
        AckShare(Arc::clone(&self.shared))
    }

    /// Waits until every share was dropped.
    pub async fn settled(&mut self) {
        if !std::mem::replace(&mut self.waits, true) {
            self.shared.leave();
        }
        let is_settled = || self.shared.settled_at.get().is_some();
        poll_fn(|context| {
            if is_settled() {
                return Poll::Ready(());
            }
            self.shared.waker.register(context.waker());
            // Checked again: the last share may have been dropped before the waker was registered.
            if is_settled() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// When the last share was dropped; `None` while there are any, or where there never was one.
    pub fn settled_at(&self) -> Option<Instant> {
        self.shared.settled_at.get().copied().filter(|_| self.handed_out > 0)
    }
}

impl Drop for AckShare {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use freshet_wire::budget::Budget;

    #[tokio::test]
    async fn a_request_without_batches_waits_for_nothing() {
        let mut acks = Acks::new(None);
        acks.settled().await;
        assert_eq!(acks.settled_at(), None);
    }

    #[tokio::test]
    async fn the_last_share_that_goes_ends_the_wait() {
        let mut acks = Acks::new(None);
        let (first, second) = (acks.share(), acks.share());
        assert!(acks.settled().now_or_never().is_none());
        drop(second);
        assert!(acks.settled().now_or_never().is_none());
        assert_eq!(acks.settled_at(), None);
        let waiting = tokio::spawn(async move {
            acks.settled().await;
            acks.settled_at()
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_share_that_goes_before_the_next_is_handed_out_settles_nothing() {
        let mut acks = Acks::new(None);
        drop(acks.share());
        let second = acks.share();
        assert!(acks.settled().now_or_never().is_none());
        assert_eq!(acks.settled_at(), None);
        drop(second);
        acks.settled().await;
        assert!(acks.settled_at().is_some());
    }

    /// Two shares that go at once must not each take the other for the last.
    #[tokio::test(flavor = "multi_thread")]
    async fn who_settles_last_is_known_however_many_go_at_once() {
        for _ in 0..1000 {
            let mut acks = Acks::new(None);
            for share in [acks.share(), acks.share()] {
                tokio::spawn(async move { drop(share) });
            }
            acks.settled().await;
            assert!(acks.settled_at().is_some());
        }
    }

    #[test]
    fn the_memory_of_a_request_that_is_not_waited_for_goes_with_its_last_batch() {
        let (own, all) = (Budget::new(4096), Budget::new(8192));
        let taken = (own.try_acquire(4096).unwrap(), all.try_acquire(4096).unwrap());
        let mut acks = Acks::new(Some(taken));
        let (first, second) = (acks.share(), acks.share());
        drop(acks);
        drop(first);
        assert_eq!((own.used_bytes(), all.used_bytes()), (4096, 4096));
        drop(second);
        assert_eq!((own.used_bytes(), all.used_bytes()), (0, 0));
    }
}
