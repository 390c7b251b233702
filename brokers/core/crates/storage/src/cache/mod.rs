//! The hot cache: the newest batches of all partitions, as the very bytes that were written.
//! Readers at the end of a log are served from it.
//!
//! It is a ring in the order of writing with one budget of bytes. A batch counts with the memory
//! that it keeps alive, which may be more than its length: a slice keeps the whole request alive.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub mod ahead;
pub mod blocks;
pub(crate) mod flight;
pub mod pace;
pub(crate) mod recent;
mod runs;

/// An owner of hot batches: a partition.
pub trait HotHolder: Send + Sync {
    /// Drops every hot batch below `end_offset`.
    fn evict_below(&self, end_offset: i64);
}

struct HotEntry {
    holder: Weak<dyn HotHolder>,
    end_offset: i64,
    pinned_bytes: usize,
}

#[derive(Default)]
struct Ring {
    entries: VecDeque<HotEntry>,
    pinned_bytes: usize,
}

/// The order and the size of the hot batches of all partitions (see the module).
pub struct HotCache {
    ring: Mutex<Ring>,
    budget_bytes: usize,
}

impl HotCache {
    /// A cache that pins at most `budget_bytes`.
    pub fn new(budget_bytes: usize) -> Self {
        Self { ring: Mutex::default(), budget_bytes }
    }

    /// Bytes that are pinned now.
    pub fn pinned_bytes(&self) -> usize {
        self.ring.lock().pinned_bytes
    }

    /// Notes that `holder` has taken a batch that ends at `end_offset`, and evicts the oldest ones
    /// of all holders until the budget holds. The caller must not hold a lock that
    /// [`HotHolder::evict_below`] takes.
    pub fn admit(&self, holder: &Arc<impl HotHolder + 'static>, end_offset: i64, pinned: usize) {
        let weak: Weak<dyn HotHolder> = Arc::downgrade(holder) as Weak<dyn HotHolder>;
        let mut victims = Vec::new();
        {
            let mut ring = self.ring.lock();
            ring.pinned_bytes += pinned;
            ring.entries.push_back(HotEntry { holder: weak, end_offset, pinned_bytes: pinned });
            while ring.pinned_bytes > self.budget_bytes {
                let Some(oldest) = ring.entries.pop_front() else { break };
                ring.pinned_bytes -= oldest.pinned_bytes;
                victims.push(oldest);
            }
        }
        for victim in victims {
            if let Some(holder) = victim.holder.upgrade() {
                holder.evict_below(victim.end_offset);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Forgotten(Mutex<Vec<i64>>);

    impl HotHolder for Forgotten {
        fn evict_below(&self, end_offset: i64) {
            self.0.lock().push(end_offset);
        }
    }

    #[test]
    fn the_oldest_batches_of_all_partitions_go_first() {
        let cache = HotCache::new(100);
        let (first, second) = (Arc::new(Forgotten::default()), Arc::new(Forgotten::default()));
        cache.admit(&first, 1, 40);
        cache.admit(&second, 1, 40);
        cache.admit(&first, 2, 40);
        assert_eq!(*first.0.lock(), [1]);
        assert!(second.0.lock().is_empty());
        assert_eq!(cache.pinned_bytes(), 80);
    }

    #[test]
    fn a_batch_larger_than_the_budget_is_not_kept() {
        let cache = HotCache::new(100);
        let holder = Arc::new(Forgotten::default());
        cache.admit(&holder, 1, 1000);
        assert_eq!(*holder.0.lock(), [1]);
        assert_eq!(cache.pinned_bytes(), 0);
    }
}
