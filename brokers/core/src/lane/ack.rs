//! Waiting for many batches at once: one wake-up for a request, however many partitions it has and
//! however many writes its batches take.
//!
//! Each batch carries a share. A share goes with its batch: when that is durable, or when it is
//! dropped because the instance ended. So the wait always ends, and says nothing of the outcome:
//! whoever waited asks each partition how far it is durable.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;
use tokio::time::Instant;

/// What a request waits for.
#[derive(Debug, Default)]
pub struct Acks(Arc<Shared>);

/// A batch's part in what its request waits for.
#[derive(Debug)]
pub struct AckShare(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    left: AtomicUsize,
    /// When the last share went.
    settled_at: OnceLock<Instant>,
    waker: AtomicWaker,
}

impl Acks {
    /// A share for one more batch. All are handed out before anybody waits.
    pub fn share(&self) -> AckShare {
        self.0.left.fetch_add(1, Ordering::Relaxed);
        AckShare(Arc::clone(&self.0))
    }

    /// Waits until every share has gone.
    pub async fn settled(&self) {
        poll_fn(|context| {
            if self.is_settled() {
                return Poll::Ready(());
            }
            self.0.waker.register(context.waker());
            // The last one may have gone before the waker was there.
            if self.is_settled() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// When the last share went; `None` while there are any, or where there never was one.
    pub fn settled_at(&self) -> Option<Instant> {
        self.0.settled_at.get().copied().filter(|_| self.is_settled())
    }

    fn is_settled(&self) -> bool {
        self.0.left.load(Ordering::Acquire) == 0
    }
}

impl Drop for AckShare {
    fn drop(&mut self) {
        if self.0.left.load(Ordering::Acquire) == 1 {
            // Only the last one comes here, and before anybody is told that there is none left.
            let _ = self.0.settled_at.set(Instant::now());
        }
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_request_without_batches_waits_for_nothing() {
        let acks = Acks::default();
        acks.settled().await;
        assert_eq!(acks.settled_at(), None);
    }

    #[tokio::test]
    async fn the_last_share_that_goes_ends_the_wait() {
        let acks = Acks::default();
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
}
