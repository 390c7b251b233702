//! The hot cache: the newest batches of all partitions, as the very bytes that were written.
//! Readers at the end of a log are served from it.
//!
//! It is a ring in the order of writing with one budget of bytes. A batch counts with the memory
//! that it keeps alive, which may be more than its length: a slice keeps the whole request alive.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub mod ahead;
pub mod blocks;
pub(crate) mod flight;
pub mod pace;
pub(crate) mod recent;
pub(crate) mod runs;

/// An owner of hot batches: a partition.
pub trait HotHolder: Send + Sync {
    /// Drops every hot batch below `end_offset`.
    fn evict_below(&self, end_offset: i64);
}

/// A batch's place in the order of the hot cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HotTicket(u64);

struct HotEntry {
    holder: Weak<dyn HotHolder>,
    end_offset: i64,
    pinned_bytes: usize,
}

#[derive(Default)]
struct Ring {
    /// By ticket, and so in the order of writing.
    entries: BTreeMap<HotTicket, HotEntry>,
    admitted: u64,
    pinned_bytes: usize,
}

/// The order and the size of the hot batches of all partitions (see the module).
pub struct HotCache {
    ring: Mutex<Ring>,
    budget_bytes: usize,
}

/// The batches that have to leave the cache, because a newer one has taken their room.
#[must_use = "the budget counts them no more, but their holders still have them"]
pub struct Victims(Vec<HotEntry>);

impl Victims {
    /// Has their holders drop them. The caller must not hold a lock that
    /// [`HotHolder::evict_below`] takes.
    pub fn evict(self) {
        for victim in self.0 {
            if let Some(holder) = victim.holder.upgrade() {
                holder.evict_below(victim.end_offset);
            }
        }
    }
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

    /// Notes that `holder` takes a batch that ends at `end_offset` and keeps `pinned` bytes of
    /// memory alive. Returns the batch's ticket, and the oldest batches of all holders that must go
    /// so that the budget holds. It is called under the holder's lock, so that the holder never has
    /// a batch whose ticket it does not know.
    pub fn admit(
        &self,
        holder: &Arc<impl HotHolder + 'static>,
        end_offset: i64,
        pinned: usize,
    ) -> (HotTicket, Victims) {
        let holder: Weak<dyn HotHolder> = Arc::downgrade(holder) as Weak<dyn HotHolder>;
        let mut victims = Vec::new();
        let mut ring = self.ring.lock();
        let ticket = HotTicket(ring.admitted);
        ring.admitted += 1;
        ring.pinned_bytes += pinned;
        ring.entries.insert(ticket, HotEntry { holder, end_offset, pinned_bytes: pinned });
        while ring.pinned_bytes > self.budget_bytes {
            let Some((_, oldest)) = ring.entries.pop_first() else { break };
            ring.pinned_bytes -= oldest.pinned_bytes;
            victims.push(oldest);
        }
        (ticket, Victims(victims))
    }

    /// Gives back the room of batches that their holder drops itself. Those that the cache evicts
    /// at the same moment are given back already.
    pub fn release(&self, tickets: impl IntoIterator<Item = HotTicket>) {
        let mut ring = self.ring.lock();
        for ticket in tickets {
            if let Some(entry) = ring.entries.remove(&ticket) {
                ring.pinned_bytes -= entry.pinned_bytes;
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

    fn admit(cache: &HotCache, holder: &Arc<Forgotten>, end: i64, pinned: usize) -> HotTicket {
        let (ticket, victims) = cache.admit(holder, end, pinned);
        victims.evict();
        ticket
    }

    #[test]
    fn the_oldest_batches_of_all_partitions_go_first() {
        let cache = HotCache::new(100);
        let (first, second) = (Arc::new(Forgotten::default()), Arc::new(Forgotten::default()));
        admit(&cache, &first, 1, 40);
        admit(&cache, &second, 1, 40);
        admit(&cache, &first, 2, 40);
        assert_eq!(*first.0.lock(), [1]);
        assert!(second.0.lock().is_empty());
        assert_eq!(cache.pinned_bytes(), 80);
    }

    #[test]
    fn a_batch_larger_than_the_budget_is_not_kept() {
        let cache = HotCache::new(100);
        let holder = Arc::new(Forgotten::default());
        admit(&cache, &holder, 1, 1000);
        assert_eq!(*holder.0.lock(), [1]);
        assert_eq!(cache.pinned_bytes(), 0);
    }

    #[test]
    fn what_a_holder_gives_back_makes_room_once() {
        let cache = HotCache::new(100);
        let (first, second) = (Arc::new(Forgotten::default()), Arc::new(Forgotten::default()));
        admit(&cache, &first, 1, 40);
        let dropped = admit(&cache, &second, 1, 40);
        cache.release([dropped]);
        cache.release([dropped]);
        assert_eq!(cache.pinned_bytes(), 40);
        let newest = admit(&cache, &second, 2, 60);
        assert!(first.0.lock().is_empty(), "there was room");
        admit(&cache, &second, 3, 100);
        assert_eq!((&first.0.lock()[..], &second.0.lock()[..]), (&[1][..], &[2][..]));
        cache.release([newest]);
        assert_eq!(cache.pinned_bytes(), 100, "what was evicted is given back already");
    }
}
