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

impl Budget {
    /// Adds to a share until it has so many units, if they are free right now. Returns whether it
    /// has them.
    fn try_grow(&self, share: &mut Share, target: u32) -> bool {
        let missing = target.saturating_sub(share.units());
        match Arc::clone(&self.units).try_acquire_many_owned(missing) {
            Ok(more) => {
                share.units.merge(more);
                true
            }
            Err(_) => false,
        }
    }

    /// Waits until a share has so many units.
    async fn grow(&self, share: &mut Share, target: u32) {
        let missing = target.saturating_sub(share.units());
        let more = Arc::clone(&self.units).acquire_many_owned(missing).await;
        share.units.merge(more.expect("the semaphore is never closed"));
    }

    /// A share of nothing.
    fn empty_share(&self) -> Share {
        self.try_acquire(0).expect("nothing is always free")
    }
}

impl Share {
    fn units(&self) -> u32 {
        u32::try_from(self.units.num_permits()).expect("a budget counts in 32 bits")
    }

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

/// A budget for requests that arrive piece by piece. A request takes memory for the bytes that have
/// arrived, whatever length it announced.
///
/// # Why no request waits for ever
/// Requests that hold memory and wait for more could wait for each other. So those that have not
/// arrived whole may hold together no more than the budget without its reserve. A request that
/// cannot have more within that bound waits for the turn, which one request has at a time; it may
/// take from the reserve. What is missing of the reserve is held by requests that are complete, and
/// those are answered whatever happens to others. So the request that has the turn gets what it
/// needs, is completed when its bytes arrive, and passes the turn on. Whoever reads it bounds the
/// time for its bytes.
///
/// A request that needs more than the reserve and its own part of the rest is completed with as
/// much.
#[derive(Debug, Clone)]
pub struct ArrivalBudget {
    whole: Budget,
    /// What requests that have not arrived whole may hold, without the one that has the turn.
    partial: Budget,
    reserve: u32,
    turn: Arc<Semaphore>,
}

/// The memory of a request that arrives.
#[derive(Debug)]
pub struct ArrivingMemory {
    budget: ArrivalBudget,
    held: Share,
    partial: Share,
    turn: Option<OwnedSemaphorePermit>,
}

impl ArrivalBudget {
    /// A budget of so many bytes. Its reserve has room for the largest request, but is at most half
    /// of it.
    pub fn new(bytes: usize, request_bytes_max: usize) -> Self {
        let whole = Budget::new(bytes);
        let reserve = units(request_bytes_max).min(whole.total / 2);
        let rest = (whole.total - reserve) as usize * UNIT_BYTES;
        let (partial, turn) = (Budget::new(rest), Arc::new(Semaphore::new(1)));
        Self { whole, partial, reserve, turn }
    }

    /// The memory of a request of which nothing has arrived.
    pub fn start(&self) -> ArrivingMemory {
        let (held, partial) = (self.whole.empty_share(), self.partial.empty_share());
        ArrivingMemory { budget: self.clone(), held, partial, turn: None }
    }

    /// Bytes that are held now.
    pub fn used_bytes(&self) -> usize {
        self.whole.used_bytes()
    }

    /// Whether requests wait for memory.
    pub fn demand(&self) -> &Demand {
        &self.whole.demand
    }
}

impl ArrivingMemory {
    /// Takes memory until it has `bytes`, if it is free right now. Returns whether it has them.
    pub fn try_hold(&mut self, bytes: usize) -> bool {
        let target = units(bytes);
        let budget = &self.budget;
        if self.turn.is_none() {
            if target <= budget.partial.total {
                let held = self.partial.units();
                let granted = budget.partial.try_grow(&mut self.partial, target)
                    && budget.whole.try_grow(&mut self.held, target);
                if !granted {
                    self.partial.shrink_to(held as usize * UNIT_BYTES);
                }
                return granted;
            }
            self.turn = Arc::clone(&budget.turn).try_acquire_owned().ok();
            if self.turn.is_none() {
                return false;
            }
        }
        let target = self.with_turn(target);
        self.budget.whole.try_grow(&mut self.held, target)
    }

    /// Waits until it has `bytes`.
    pub async fn hold(&mut self, bytes: usize) {
        let target = units(bytes);
        let budget = self.budget.clone();
        let _asking = Asking::new(&budget.whole.demand);
        if self.turn.is_none() {
            let turn = async {
                let turn = Arc::clone(&budget.turn).acquire_owned().await;
                turn.expect("the semaphore is never closed")
            };
            if target <= budget.partial.total {
                tokio::select! {
                    biased;
                    () = budget.partial.grow(&mut self.partial, target) => {
                        return budget.whole.grow(&mut self.held, target).await;
                    }
                    turn = turn => self.turn = Some(turn),
                }
            } else {
                self.turn = Some(turn.await);
            }
        }
        let target = self.with_turn(target);
        budget.whole.grow(&mut self.held, target).await;
    }

    /// How much of the target the request may hold that has the turn: the reserve, and what it gets
    /// of the rest without waiting.
    fn with_turn(&mut self, target: u32) -> u32 {
        let budget = &self.budget;
        let part = target.min(budget.partial.total);
        budget.partial.try_grow(&mut self.partial, part);
        target.min(budget.reserve + self.partial.units())
    }

    /// Gives back what it has beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.held.shrink_to(bytes);
        self.partial.shrink_to(bytes);
    }

    /// The memory of the request, which has arrived whole.
    pub fn complete(self) -> Share {
        self.held
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
