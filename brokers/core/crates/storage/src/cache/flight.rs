//! One call for all callers that need the same result at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;

type Flight<V> = Shared<BoxFuture<'static, Option<V>>>;

/// Calls that are under way, by key. A call that has begun runs to its end, whether or not anybody
/// still waits for it.
pub struct Flights<K, V: Clone> {
    under_way: Arc<Mutex<BTreeMap<K, Flight<V>>>>,
}

impl<K: Ord + Copy + Send + 'static, V: Clone + Send + Sync + 'static> Flights<K, V> {
    /// No calls yet.
    pub fn new() -> Self {
        Self { under_way: Arc::default() }
    }

    /// The result of the call for `key` that is under way; where there is none, `call` begins.
    /// `None` where the runtime ends first.
    pub async fn join<F>(&self, key: K, call: impl FnOnce() -> F) -> Option<V>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let flight = {
            let mut under_way = self.under_way.lock();
            under_way.entry(key).or_insert_with(|| self.begin(key, call())).clone()
        };
        flight.await
    }

    fn begin(&self, key: K, call: impl Future<Output = V> + Send + 'static) -> Flight<V> {
        let under_way = Arc::clone(&self.under_way);
        let task = tokio::spawn(async move {
            let value = call.await;
            under_way.lock().remove(&key);
            value
        });
        async move { task.await.ok() }.boxed().shared()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn callers_at_one_time_share_a_call_and_later_ones_make_another() {
        let calls = Arc::new(AtomicUsize::new(0));
        let flights = Flights::new();
        let call = || {
            let calls = Arc::clone(&calls);
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                calls.fetch_add(1, Ordering::Relaxed)
            }
        };
        let (one, two) = tokio::join!(flights.join(1, call), flights.join(1, call));
        assert_eq!((one, two), (Some(0), Some(0)));
        assert_eq!(flights.join(1, call).await, Some(1));
        assert!(flights.join(2, call).now_or_never().is_none());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(calls.load(Ordering::Relaxed), 3, "nobody waited, and it was made");
    }
}
