//! Slow reads are repeated, and few of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A store that answers each read after the next of the given delays.
#[derive(Default)]
struct Slow {
    answers: Mutex<VecDeque<(u64, StoreResult<Bytes>)>>,
    asked: AtomicUsize,
    metrics: StoreMetrics,
}

const QUICK_MS: u64 = 10;

impl Slow {
    fn plan(&self, answers: impl IntoIterator<Item = (u64, StoreResult<Bytes>)>) {
        self.answers.lock().extend(answers);
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::Relaxed)
    }
}

#[allow(clippy::unnecessary_wraps, reason = "it is one of several answers")]
fn value(text: &'static str) -> StoreResult<Bytes> {
    Ok(Bytes::from_static(text.as_bytes()))
}

fn silent() -> (u64, StoreResult<Bytes>) {
    (1 << 40, value("never"))
}

fn unavailable() -> StoreResult<Bytes> {
    Err(StoreError::Unavailable("busy".into()))
}

#[async_trait]
impl ObjectStore for Slow {
    async fn put_new(&self, _: &str, _: Vec<Bytes>) -> StoreResult<()> {
        Ok(())
    }

    async fn get(&self, key: &str) -> StoreResult<Bytes> {
        self.get_range(key, 0, 0).await
    }

    async fn get_range(&self, _: &str, _: u64, _: u64) -> StoreResult<Bytes> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let planned = self.answers.lock().pop_front();
        let (after_ms, answer) = planned.unwrap_or((QUICK_MS, value("quick")));
        sleep(Duration::from_millis(after_ms)).await;
        answer
    }

    async fn list(&self, _: &str) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    async fn delete(&self, _: &str) -> StoreResult<()> {
        Ok(())
    }

    async fn list_half_made(&self, _: &str) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    fn metrics(&self) -> Option<&StoreMetrics> {
        Some(&self.metrics)
    }
}

async fn known() -> (Arc<Slow>, HedgedStore) {
    let slow = Arc::new(Slow::default());
    let store = HedgedStore::new(Arc::clone(&slow) as Arc<dyn ObjectStore>);
    for _ in 0..ANSWERS_MIN {
        store.get_range("k", 0, 1).await.unwrap();
    }
    assert_eq!(slow.asked(), ANSWERS_MIN, "nothing was asked twice");
    (slow, store)
}

#[tokio::test(start_paused = true)]
async fn a_silent_answer_is_overtaken_by_a_second_one() {
    let (slow, store) = known().await;
    let begun = Instant::now();
    slow.plan([silent()]);
    assert_eq!(store.get_range("k", 0, 1).await.unwrap(), "quick");
    assert_eq!(begun.elapsed(), DELAY_MIN + Duration::from_millis(QUICK_MS));
    assert_eq!((slow.metrics.hedges.get(), slow.metrics.hedges_won.get()), (1, 1));
    assert_eq!(slow.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_store_of_which_nothing_is_known_is_asked_again_too() {
    let slow = Arc::new(Slow::default());
    let store = HedgedStore::new(Arc::clone(&slow) as Arc<dyn ObjectStore>);
    let begun = Instant::now();
    slow.plan([silent()]);
    assert_eq!(store.get("k").await.unwrap(), "quick");
    assert_eq!(begun.elapsed(), DELAY_FIRST + Duration::from_millis(QUICK_MS));
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_that_says_something_of_the_object() {
    let (slow, store) = known().await;
    slow.plan([(100, value("first")), (10, unavailable())]);
    assert_eq!(store.get_range("k", 0, 1).await.unwrap(), "first");
    slow.plan([(100, unavailable()), (200, value("second"))]);
    assert_eq!(store.get_range("k", 0, 1).await.unwrap(), "second");
    slow.plan([silent(), (10, Err(StoreError::NotFound("k".into())))]);
    let absent = store.get_range("k", 0, 1).await;
    assert!(matches!(absent, Err(StoreError::NotFound(_))), "{absent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_slow_altogether_gets_little_more_work() {
    let (slow, store) = known().await;
    // Past any delay.
    let reads = 400;
    slow.plan((0..2 * reads).map(|_| (3_000, value("slow"))));
    for _ in 0..reads {
        store.get_range("k", 0, 1).await.unwrap();
    }
    let more = slow.asked() - reads;
    let most = (reads + SAVED_MAX as usize) / COST as usize + 1;
    assert!(more <= most, "{more} of {reads} were asked twice");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_asks_for_fewer_requests_gets_none_more() {
    let (slow, store) = known().await;
    slow.plan([(1_000, value("late"))]);
    let throttled = slow.metrics.throttled.clone();
    let (answer, ()) = tokio::join!(store.get_range("k", 0, 1), async {
        throttled.inc();
    });
    assert_eq!(answer.unwrap(), "late");
    assert_eq!(slow.asked(), 1);
}
