//! Budgets: bounds on the bytes that are held in memory at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of a budget: a semaphore counts in 32 bits.
const UNIT_BYTES: usize = 1024;

/// A budget of bytes that may be held at a time. Shares are handed out in the order of asking.
#[derive(Debug, Clone)]
pub struct Budget {
    units: Arc<Semaphore>,
    total: u32,
    demand: Demand,
}

/// Whether anybody waits for a share of a budget.
#[derive(Debug, Clone, Default)]
pub struct Demand(Arc<AtomicUsize>);

impl Demand {
    /// Whether anybody waits.
    pub fn is_some(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// One who waits for a share: it counts as demand for as long as it lives.
struct Asking<'a>(&'a Demand);

impl<'a> Asking<'a> {
    fn new(demand: &'a Demand) -> Self {
        demand.0.fetch_add(1, Ordering::Relaxed);
        Self(demand)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request's two shares: of its connection's budget, and of the budget of all connections.
pub type RequestMemory = (Share, Share);

/// A part of a budget, which is given back when this is dropped.
#[derive(Debug)]
pub struct Share {
    units: OwnedSemaphorePermit,
    demand: Demand,
}

impl Budget {
    /// A budget of so many bytes, rounded up to whole KiB.
    pub fn new(bytes: usize) -> Self {
        let total = units(bytes).max(1);
        let units = Arc::new(Semaphore::new(total as usize));
        Self { units, total, demand: Demand::default() }
    }

    /// Waits for a share of so many bytes. A request for more than the whole budget gets all of it.
    pub async fn acquire(&self, bytes: usize) -> Share {
        let granted = units(bytes).min(self.total);
        let _asking = Asking::new(&self.demand);
        let permit = Arc::clone(&self.units).acquire_many_owned(granted).await;
        self.share(permit.expect("the semaphore is never closed"))
    }

    /// A share of so many bytes, if it is free right now.
    pub fn try_acquire(&self, bytes: usize) -> Option<Share> {
        let granted = units(bytes).min(self.total);
        let permit = Arc::clone(&self.units).try_acquire_many_owned(granted).ok()?;
        Some(self.share(permit))
    }

    fn share(&self, units: OwnedSemaphorePermit) -> Share {
        Share { units, demand: self.demand.clone() }
    }

    /// Bytes that may be held at a time.
    pub fn total_bytes(&self) -> usize {
        self.total as usize * UNIT_BYTES
    }

    /// Bytes that are held now.
    pub fn used_bytes(&self) -> usize {
        self.total_bytes() - self.units.available_permits() * UNIT_BYTES
    }
}

impl Share {
    /// Gives back the part of the share beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.units.num_permits().saturating_sub(units(bytes) as usize);
        drop(self.units.split(surplus));
    }

    /// Joins two shares of the same budget.
    pub fn merge(&mut self, other: Self) {
        self.units.merge(other.units);
    }

    /// The demand for shares of this share's budget, which its holder may look at.
    pub fn demand(&self) -> Demand {
        self.demand.clone()
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX >> 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_budget_holds_what_was_handed_out_and_takes_it_back() {
        let budget = Budget::new(10_000);
        assert_eq!(budget.used_bytes(), 0);
        let mut share = budget.acquire(4096).await;
        assert!(budget.try_acquire(8192).is_none());
        share.shrink_to(1);
        assert_eq!(budget.used_bytes(), 1024);
        share.merge(budget.try_acquire(8192).unwrap());
        assert_eq!(budget.used_bytes(), 9 * 1024);
        drop(share);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[tokio::test]
    async fn more_than_there_is_means_all_of_it() {
        let budget = Budget::new(2048);
        let share = budget.acquire(usize::MAX).await;
        assert_eq!(budget.used_bytes(), 2048);
        assert!(budget.try_acquire(1).is_none());
        drop(share);
        assert!(budget.try_acquire(1 << 40).is_some());
    }
}
