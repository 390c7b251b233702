//! Blocks are read once, kept within their bound, and let go when nobody reads them.
#![allow(clippy::single_range_in_vec_init, reason = "runs are ranges, and there may be one")]

use tokio::sync::Notify;
use tokio::time::sleep;

use super::*;
use crate::cache::runs::PAGE_BYTES;

const MIB: u64 = 1 << 20;
const SOURCE: Source = Source::Lane(Incarnation(1), LaneFile::Wal(0));
const END: u64 = 100 * MIB;

/// Storage in which each byte's value follows from its position, and which records the ranges that
/// were read.
#[derive(Default)]
struct Storage {
    asked: Mutex<Vec<Range<u64>>>,
    /// Where it is set, reads wait for it.
    gate: Option<Notify>,
    failures: AtomicU64,
}

fn byte_at(position: u64) -> u8 {
    (position / 4096 % 251) as u8
}

fn bytes_of(range: &Range<u64>) -> Bytes {
    range.clone().map(byte_at).collect()
}

#[async_trait]
impl Loader for Storage {
    async fn load(&self, _: Source, range: Range<u64>) -> Result<Bytes, LoadError> {
        self.asked.lock().push(range.clone());
        if let Some(gate) = &self.gate {
            gate.notified().await;
        }
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.fetch_sub(1, Ordering::Relaxed);
            return Err(ColdError::from(StoreError::Unavailable("busy".into())).into());
        }
        Ok(bytes_of(&range))
    }
}

impl Storage {
    fn asked(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.asked.lock())
    }
}

fn with(storage: Storage, block_bytes: u64) -> (Arc<Storage>, Arc<dyn Loader>, Arc<BlockCache>) {
    let settings = ReadSettings {
        block_bytes: usize::try_from(block_bytes).unwrap(),
        ..ReadSettings::default()
    };
    let storage = Arc::new(storage);
    let cache = Arc::new(BlockCache::new(settings, BlockMetrics::default()));
    (Arc::clone(&storage), storage as Arc<dyn Loader>, cache)
}

fn small() -> (Arc<Storage>, Arc<dyn Loader>, Arc<BlockCache>) {
    with(Storage::default(), 64 * MIB)
}

async fn read(cache: &Arc<BlockCache>, loader: &Arc<dyn Loader>, range: Range<u64>) -> Bytes {
    let reach = range.end;
    let bytes = cache.read(loader, SOURCE, range.clone(), reach, END).await.unwrap().bytes;
    assert!(bytes == bytes_of(&range), "{range:?}");
    bytes
}

#[tokio::test]
async fn whole_pages_are_read_once_whoever_wants_a_part_of_them() {
    let (storage, loader, cache) = small();
    read(&cache, &loader, 700_000..700_010).await;
    assert_eq!(storage.asked(), [PAGE_BYTES..2 * PAGE_BYTES]);
    read(&cache, &loader, PAGE_BYTES..2 * PAGE_BYTES).await;
    assert_eq!(storage.asked(), []);
    read(&cache, &loader, 0..3 * PAGE_BYTES).await;
    assert_eq!(storage.asked(), [0..PAGE_BYTES, 2 * PAGE_BYTES..3 * PAGE_BYTES], "what is missing");
    assert_eq!(cache.used_bytes() as u64, 3 * PAGE_BYTES);
}

#[tokio::test]
async fn a_read_goes_as_far_as_its_reach_but_not_over_a_run_or_the_end() {
    let (storage, loader, cache) = small();
    cache.read(&loader, SOURCE, 0..10, 5 * MIB, END).await.unwrap();
    cache.read(&loader, SOURCE, 7 * MIB..7 * MIB + 1, 30 * MIB, END).await.unwrap();
    let end = 20 * MIB + 5;
    cache.read(&loader, SOURCE, 20 * MIB..20 * MIB + 1, 30 * MIB, end).await.unwrap();
    assert_eq!(storage.asked(), [0..5 * MIB, 7 * MIB..15 * MIB, 20 * MIB..end]);
}

#[tokio::test(start_paused = true)]
async fn readers_at_one_place_share_a_read() {
    let gated = Storage { gate: Some(Notify::new()), ..Storage::default() };
    let (storage, loader, cache) = with(gated, 64 * MIB);
    let opens = async {
        sleep(Duration::from_millis(1)).await;
        storage.gate.as_ref().unwrap().notify_waiters();
    };
    let range = || 0..100;
    tokio::join!(
        read(&cache, &loader, range()),
        read(&cache, &loader, range()),
        read(&cache, &loader, 50..200),
        opens
    );
    assert_eq!(storage.asked().len(), 1);
}

#[tokio::test]
async fn what_was_not_used_for_longest_goes_and_the_budget_holds() {
    let (storage, loader, cache) = with(Storage::default(), 2 * MIB);
    for page in 0..4 {
        read(&cache, &loader, page * PAGE_BYTES..page * PAGE_BYTES + 1).await;
    }
    read(&cache, &loader, 0..1).await;
    storage.asked();
    read(&cache, &loader, 4 * PAGE_BYTES..4 * PAGE_BYTES + 1).await;
    read(&cache, &loader, 0..1).await;
    assert_eq!(storage.asked().len(), 1, "the first was used since");
    read(&cache, &loader, PAGE_BYTES..PAGE_BYTES + 1).await;
    assert_eq!(storage.asked().len(), 1, "the second was not");
    assert!(cache.used_bytes() as u64 <= 2 * MIB);
}

#[tokio::test]
async fn memory_that_clients_hold_counts_and_does_not_stop_others() {
    let (storage, loader, cache) = with(Storage::default(), 2 * MIB);
    let mut held = Vec::new();
    for page in 0..4 {
        held.push(read(&cache, &loader, page * PAGE_BYTES..page * PAGE_BYTES + 1).await);
    }
    assert_eq!(cache.used_bytes() as u64, 2 * MIB);
    storage.asked();
    let range = 10 * MIB..10 * MIB + 7;
    read(&cache, &loader, range.clone()).await;
    assert_eq!(storage.asked(), [range], "for its reader alone");
    cache.forget(SOURCE);
    assert_eq!(cache.used_bytes() as u64, 2 * MIB, "it is held still");
    held.clear();
    assert_eq!(cache.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_returned_for_a_while_and_then_storage_is_read_again() {
    let (storage, loader, cache) = small();
    storage.failures.store(1, Ordering::Relaxed);
    for _ in 0..2 {
        let failed = cache.read(&loader, SOURCE, 0..1, 1, END).await;
        assert!(matches!(failed, Err(LoadError::Cold(_))));
    }
    assert_eq!(storage.asked().len(), 1);
    sleep(FAILED_FOR).await;
    read(&cache, &loader, 0..1).await;
    assert_eq!(storage.asked().len(), 1);
    assert_eq!(cache.used_bytes() as u64, PAGE_BYTES);
}

#[tokio::test(start_paused = true)]
async fn what_was_being_read_of_a_source_that_is_forgotten_is_not_kept() {
    let gated = Storage { gate: Some(Notify::new()), ..Storage::default() };
    let (storage, loader, cache) = with(gated, 64 * MIB);
    let forgets = async {
        sleep(Duration::from_millis(1)).await;
        cache.forget(SOURCE);
        storage.gate.as_ref().unwrap().notify_waiters();
    };
    tokio::join!(read(&cache, &loader, 0..1), forgets);
    tokio::task::yield_now().await;
    assert_eq!(cache.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn reading_ahead_is_long_and_stops_when_nobody_wants_it() {
    let gated = Storage { gate: Some(Notify::new()), ..Storage::default() };
    let (storage, loader, cache) = with(gated, 64 * MIB);
    let ranges: Vec<_> = (3..40).map(|mib| mib * MIB + 5..(mib + 1) * MIB + 5).collect();
    {
        let ahead = cache.read_ahead(&loader, SOURCE, &ranges, 100 * MIB);
        tokio::select! {
            biased;
            _ = ahead => panic!("nothing was answered"),
            () = sleep(Duration::from_millis(1)) => {}
        }
    }
    let runs = [3, 11, 19, 27].map(|mib| mib * MIB + 5..(mib + 8) * MIB + 5);
    assert_eq!(storage.asked(), runs);
    storage.gate.as_ref().unwrap().notify_waiters();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(storage.asked(), [], "the rest is not read");
    assert_eq!(cache.used_bytes() as u64, 32 * MIB, "what was begun is kept");
}

#[tokio::test]
async fn a_place_is_checked_once_while_it_is_in_memory() {
    let (_, loader, cache) = small();
    let checks = AtomicU64::new(0);
    let check = |_: &Bytes| {
        checks.fetch_add(1, Ordering::Relaxed);
        Ok::<_, ()>(())
    };
    for _ in 0..3 {
        let read = cache.read(&loader, SOURCE, 5..10, 10, END).await.unwrap();
        read.check_once(check).unwrap();
    }
    assert_eq!(checks.load(Ordering::Relaxed), 1);
    let read = cache.read(&loader, SOURCE, 5..10, 10, END).await.unwrap();
    assert!(read.check_once(|_| Err(())).is_ok(), "it is not looked at again");
    cache.forget(SOURCE);
    let read = cache.read(&loader, SOURCE, 5..10, 10, END).await.unwrap();
    assert!(read.check_once(|_| Err(())).is_err());
    assert!(read.check_once(|_| Err(())).is_err(), "what failed was not checked");
}
