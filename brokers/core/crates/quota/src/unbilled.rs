//! What is bounded because nobody is billed for it (`exchange.rs`). See
//! `docs/decisions/0019-what-is-not-billed-is-bounded.md`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Mute;
use crate::bucket::PAUSE_MAX;
use crate::dealing::{LimitId, LimitUse};
use crate::shares::{BrokerShare, Shares, SharesNow};
use freshet_metadata::view::MetadataView;

/// The cluster saves what its rate allows in this many seconds.
const SAVINGS_S: f64 = 64.0;
/// How fast the price of a byte rises with the debt. With a steeper price fewer bytes beyond the
/// rate pass until many connections are slowed down enough; with a flatter one a few connections
/// pause less at first.
const PRICE: f64 = 4.0;
/// Shares that are full are forgotten this often, so that the others become larger.
const FORGET_EVERY: Duration = Duration::from_secs(1);
/// A new connection waits so long at first where others of its principal pause: by then it is known
/// whether one of them was closed, whose pause it keeps.
const HOLD: Duration = Duration::from_secs(1);
/// So many principals have shares of their own; further ones have one together.
const SHARES_MAX: usize = 1_024;
/// Who has the share of those that come when there are so many. No principal has this name.
const OTHERS: &str = "";
/// The unbilled traffic of a broker's clients.
pub struct UnbilledMeter {
    view: Arc<MetadataView>,
    limit: LimitId,
    state: Mutex<Balances>,
}

/// What is left of savings, in bytes; below 0 in debt.
#[derive(Debug, Clone, Copy)]
struct Balance {
    left: f64,
    at: Instant,
}

/// How fast savings come back, and up to how much.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Bytes a second.
    rate: f64,
    /// Bytes.
    savings_max: f64,
}

impl Pace {
    /// That of a broker. It saves as much as every other one: many clients that start at once come
    /// to a broker that was not used before.
    fn of_broker(of_cluster: f64, share: BrokerShare) -> Self {
        Self { rate: of_cluster * share.part, savings_max: of_cluster * share.even * SAVINGS_S }
    }

    /// That of one of so many principals.
    fn divided_by(self, principals: usize) -> Self {
        let principals = principals as f64;
        Self { rate: self.rate / principals, savings_max: self.savings_max / principals }
    }
}

impl Balance {
    fn full(pace: Pace, at: Instant) -> Self {
        Self { left: pace.savings_max, at }
    }

    fn refill(&mut self, pace: Pace, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.left = passed.mul_add(pace.rate, self.left).min(pace.savings_max);
    }

    fn is_full(&self, pace: Pace) -> bool {
        self.left >= pace.savings_max
    }
}

#[derive(Default)]
struct Balances {
    /// This broker's share of the cluster's rate.
    share: BrokerShare,
    /// Bytes that were taken since the last report.
    used: f64,
    /// Whether a connection had to pause since then.
    is_short: bool,
    /// That of all clients together; `None` until something is taken.
    cluster: Option<Balance>,
    /// Those of the principals that took something lately. Each has the same part of the rate.
    shares: BTreeMap<Arc<str>, Balance>,
    forgotten_at: Option<Instant>,
    /// Until when the connections of each principal pause, the last of them.
    pausing: BTreeMap<Arc<str>, Instant>,
    /// Pauses of connections that were closed before the end, which the principal's next
    /// connections keep.
    left_behind: BTreeMap<Arc<str>, Vec<Instant>>,
}

impl Balances {
    /// Takes bytes for a principal; `of_cluster` is what the whole cluster may take in a second.
    /// Returns for how long its connection pauses.
    fn take(
        &mut self,
        principal: &Arc<str>,
        bytes: f64,
        of_cluster: f64,
        now: Instant,
    ) -> Duration {
        let pace = Pace::of_broker(of_cluster, self.share);
        if self.forgotten_at.is_none_or(|at| now.saturating_duration_since(at) >= FORGET_EVERY) {
            self.forget(pace, now);
        }
        self.used += bytes;
        let cluster = self.cluster.get_or_insert_with(|| Balance::full(pace, now));
        cluster.refill(pace, now);
        let is_known = self.shares.contains_key(principal);
        let holder = if is_known || self.shares.len() < SHARES_MAX {
            Arc::clone(principal)
        } else {
            OTHERS.into()
        };
        let others = self.shares.len() - usize::from(self.shares.contains_key(&holder));
        let pace_of_share = pace.divided_by(others + 1);
        let share = self.shares.entry(holder);
        let share = share.or_insert_with(|| Balance::full(pace_of_share, now));
        share.refill(pace_of_share, now);
        if cluster.left >= 0.0 {
            // What others leave is anybody's: nobody owes for having taken of it.
            share.left = share.left.max(0.0);
        }
        cluster.left -= bytes;
        share.left -= bytes;
        self.is_short |= cluster.left < 0.0;
        if cluster.left >= 0.0 || share.left >= 0.0 {
            return Duration::ZERO;
        }
        let rate = of_cluster * self.share.paying();
        let seconds = bytes / rate * PRICE * (-cluster.left / rate);
        let pause = Duration::from_secs_f64(seconds.min(PAUSE_MAX.as_secs_f64()));
        let pausing = self.pausing.entry(Arc::clone(principal)).or_insert(now);
        *pausing = (*pausing).max(now + pause);
        pause
    }

    fn forget(&mut self, pace: Pace, now: Instant) {
        self.forgotten_at = Some(now);
        let pace_of_share = pace.divided_by(self.shares.len().max(1));
        self.shares.retain(|_, share| {
            share.refill(pace_of_share, now);
            !share.is_full(pace_of_share)
        });
        self.pausing.retain(|_, until| *until > now);
        self.left_behind.retain(|_, pauses| {
            pauses.retain(|until| *until > now);
            !pauses.is_empty()
        });
    }
}

impl UnbilledMeter {
    /// The meter of a broker whose cluster has the limit in `view`.
    #[must_use]
    pub fn new(view: Arc<MetadataView>, shares: &Shares) -> Self {
        let limit = LimitId::of(&[Some("unbilled_bytes_per_second")]);
        let balances = Balances { share: shares.of_broker(limit), ..Balances::default() };
        Self { view, limit, state: Mutex::new(balances) }
    }

    /// Takes this broker's share of the limit.
    pub(crate) fn set_share(&self, shares: &SharesNow) {
        let share = shares.of_broker(self.limit);
        let now = Instant::now();
        let of_cluster = self.of_cluster();
        let mut state = self.state.lock();
        if state.share == share {
            return;
        }
        // What was saved until now, was at the share of until now.
        let pace = of_cluster.map(|of_cluster| Pace::of_broker(of_cluster, state.share));
        if let (Some(pace), Some(cluster)) = (pace, &mut state.cluster) {
            cluster.refill(pace, now);
        }
        state.share = share;
    }

    /// What was taken in a second, since it was asked the last time so many seconds ago; `None`
    /// where there is no limit.
    pub(crate) fn take_use(&self, seconds: f64) -> Option<LimitUse> {
        let of_cluster = self.of_cluster()?;
        let mut state = self.state.lock();
        let used = std::mem::take(&mut state.used) / of_cluster / seconds;
        let is_short = std::mem::take(&mut state.is_short);
        Some(LimitUse { limit: self.limit, used, is_short })
    }

    /// The account of a new connection. It is muted for a moment where others of its principal
    /// pause, and for longer where one of them was closed before its pause was over.
    #[must_use]
    pub fn open(self: &Arc<Self>, principal: &Arc<str>, mute: &Arc<Mute>) -> UnbilledAccount {
        let now = Instant::now();
        if self.state.lock().pausing.get(principal).is_some_and(|until| *until > now) {
            mute.pause(HOLD);
        }
        UnbilledAccount {
            meter: Arc::clone(self),
            principal: Arc::clone(principal),
            mute: Arc::clone(mute),
            is_new: AtomicBool::new(true),
        }
    }

    /// What all clients of the cluster may take in a second; `None` where there is no limit.
    fn of_cluster(&self) -> Option<f64> {
        let rate = self.view.snapshot().limits.unbilled_bytes_per_second?;
        Some(rate.max(1) as f64)
    }
}

/// What one connection takes of its principal's share.
pub struct UnbilledAccount {
    meter: Arc<UnbilledMeter>,
    principal: Arc<str>,
    mute: Arc<Mute>,
    /// Whether it has not been asked yet whether the connection may be read.
    is_new: AtomicBool,
}

impl UnbilledAccount {
    /// Until when nothing is read from the connection; `None` where it may be read now. A new one
    /// keeps the pause of one that was closed, if there is any.
    pub fn muted_until(&self) -> Option<Instant> {
        if let Some(until) = self.mute.until() {
            return Some(until);
        }
        if !self.is_new.load(Ordering::Relaxed) {
            return None;
        }
        self.is_new.store(false, Ordering::Relaxed);
        let now = Instant::now();
        let mut state = self.meter.state.lock();
        let until = state.left_behind.get_mut(&self.principal).and_then(Vec::pop)?;
        self.mute.pause(until.saturating_duration_since(now));
        self.mute.until()
    }

    /// Takes bytes, and mutes the connection for as long as it returns.
    pub fn take(&self, bytes: usize) -> Duration {
        if bytes == 0 {
            return Duration::ZERO;
        }
        self.meter.of_cluster().map_or(Duration::ZERO, |rate| self.take_at(rate, bytes))
    }

    fn take_at(&self, of_cluster: f64, bytes: usize) -> Duration {
        let now = Instant::now();
        let pause = self.meter.state.lock().take(&self.principal, bytes as f64, of_cluster, now);
        if !pause.is_zero() {
            self.mute.pause(pause);
        }
        pause
    }
}

impl Drop for UnbilledAccount {
    fn drop(&mut self) {
        if let Some(until) = self.mute.until() {
            let mut state = self.meter.state.lock();
            state.left_behind.entry(Arc::clone(&self.principal)).or_default().push(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;
    const RATE: f64 = 4.0 * MIB;

    /// Connections that each send a request as soon as they may.
    struct Senders {
        principal: Arc<str>,
        bytes: f64,
        /// How long each waits of its own accord after each request.
        every: Duration,
        ready_at: Vec<Instant>,
        taken: f64,
        longest: Duration,
    }

    impl Senders {
        fn new(name: &str, connections: usize, bytes: f64, every: Duration) -> Self {
            let ready_at = vec![Instant::now(); connections];
            let (taken, longest) = (0.0, Duration::ZERO);
            Self { principal: name.into(), bytes, every, ready_at, taken, longest }
        }
    }

    /// Moves a clock of milliseconds by hand, and has all senders send whenever they may.
    fn run(state: &mut Balances, senders: &mut [Senders], from: Instant, time: Duration) {
        for ms in 0..u64::try_from(time.as_millis()).unwrap() {
            let now = from + Duration::from_millis(ms);
            for Senders { principal, bytes, every, ready_at, taken, longest } in senders.iter_mut()
            {
                for ready_at in ready_at.iter_mut().filter(|ready_at| **ready_at <= now) {
                    let pause = state.take(principal, *bytes, RATE, now);
                    *taken += *bytes;
                    *longest = (*longest).max(pause);
                    *ready_at = now + (*every).max(pause);
                }
            }
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn however_many_connections_ask_for_however_much_the_rate_holds() {
        for connections in [1, 30, 1_000] {
            for bytes in [150.0, 30_000.0, 3.6 * MIB] {
                let (mut state, from) = (Balances::default(), Instant::now());
                let every = Duration::from_millis(1);
                let mut hostile = [Senders::new("User:eve", connections, bytes, every)];
                run(&mut state, &mut hostile, from, seconds(300));
                let [Senders { taken, .. }] = hostile;
                // The savings, the rate, one request of each connection, and what passes until the
                // price is right: a second for four connections.
                let allowed = RATE * (SAVINGS_S + 300.0 + connections as f64 / PRICE)
                    + connections as f64 * bytes;
                assert!(taken <= allowed, "{connections} {bytes}: {} s", taken / RATE);
                // It is not far below either, where a pause is not longer than the test.
                let asked = connections as f64 * bytes * 1_000.0;
                if asked > 2.0 * RATE && bytes < MIB {
                    let least = RATE * (SAVINGS_S + 280.0);
                    assert!(taken >= least, "{connections} {bytes}: {} s", taken / RATE);
                }
            }
        }
    }

    #[test]
    fn whoever_stays_within_the_share_never_pauses() {
        let (mut state, from) = (Balances::default(), Instant::now());
        let every = seconds(1);
        let mut all = [
            Senders::new("User:eve", 100, 30_000.0, Duration::from_millis(1)),
            Senders::new("User:mallory", 1, 30.0 * MIB, Duration::from_millis(1)),
            // A group of 1,000 partitions that commits each second; heartbeats of 300 members.
            Senders::new("User:alice", 1, 40_000.0, every),
            Senders::new("User:bob", 300, 150.0, every * 3),
        ];
        run(&mut state, &mut all, from, seconds(300));
        let [eve, mallory, alice, bob] = all;
        assert!(!eve.longest.is_zero() && !mallory.longest.is_zero());
        assert_eq!((alice.longest, bob.longest), (Duration::ZERO, Duration::ZERO));
        let sum = eve.taken + mallory.taken + alice.taken + bob.taken;
        assert!(sum <= RATE * (SAVINGS_S + 300.0 + 110.0 / PRICE) + 60.0 * MIB, "{}", sum / RATE);
    }

    #[test]
    fn heartbeats_under_the_name_of_the_hostile_pause_for_less_than_a_second() {
        let (mut state, from) = (Balances::default(), Instant::now());
        let mut all = [
            Senders::new("User:eve", 200, 30_000.0, Duration::from_millis(1)),
            Senders::new("User:eve", 100, 150.0, seconds(3)),
        ];
        run(&mut state, &mut all, from, seconds(200));
        let [loud, members] = all;
        assert!(loud.longest > seconds(1), "{:?}", loud.longest);
        assert!(
            !members.longest.is_zero() && members.longest < seconds(1),
            "{:?}",
            members.longest
        );
    }

    #[test]
    fn what_honest_clusters_do_is_free() {
        let (mut state, from) = (Balances::default(), Instant::now());
        let every = seconds(1);
        // 1,000 clients start at once, with metadata of 4,000 partitions, and read it again every
        // five minutes; a group of 1,000 partitions commits; all of them are members.
        let mut all = [
            Senders::new("User:app", 1_000, 200_000.0, every * 300),
            Senders::new("User:app", 1, 40_000.0, every),
            Senders::new("User:app", 1_000, 150.0, every * 3),
        ];
        run(&mut state, &mut all, from, seconds(400));
        assert!(all.iter().all(|senders| senders.longest.is_zero()));
    }

    #[test]
    fn shares_of_those_that_are_gone_are_given_to_the_others() {
        let (mut state, from) = (Balances::default(), Instant::now());
        for number in 0..2 * SHARES_MAX {
            state.take(&format!("User:{number}").into(), 1.0, RATE, from);
        }
        assert_eq!(state.shares.len(), SHARES_MAX + 1, "the others have one");
        let later = from + seconds(600);
        state.take(&"User:one".into(), 1.0, RATE, later);
        assert_eq!(state.shares.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_not_over_because_its_connection_is() {
        let store = Arc::new(freshet_metadata::SqliteStore::in_memory());
        let (view, _follower) = MetadataView::open(store).await.unwrap();
        let meter = Arc::new(UnbilledMeter::new(Arc::clone(&view), &Shares::new(view)));
        let eve: Arc<str> = "User:eve".into();
        let open = || {
            let mute = Arc::new(Mute::default());
            (meter.open(&eve, &mute), mute)
        };
        let (account, _mute) = open();
        assert_eq!(account.take(1 << 30), Duration::ZERO, "there is no limit");
        assert!(account.take_at(1_000.0, 100_000) > seconds(100));
        // Where the next one is opened first, it is held until it is known that this one is closed.
        let (again, _mute) = open();
        assert!(again.muted_until().is_some_and(|until| until == Instant::now() + HOLD));
        drop(account);
        tokio::time::advance(HOLD).await;
        assert!(again.muted_until().is_some_and(|until| until > Instant::now() + seconds(98)));
        // Of two connections one has the pause, and so has the one after it.
        let (second, _mute) = open();
        tokio::time::advance(HOLD).await;
        assert!(second.muted_until().is_none());
        drop(again);
        let (third, _mute) = open();
        tokio::time::advance(HOLD).await;
        assert!(third.muted_until().is_some_and(|until| until > Instant::now() + seconds(90)));
        let other = meter.open(&"User:alice".into(), &Arc::new(Mute::default()));
        assert!(other.muted_until().is_none());
    }
}
