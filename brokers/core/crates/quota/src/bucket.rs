//! A token bucket: how much of one limit is used.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::dealing::{LimitId, LimitUse};
use crate::shares::BrokerShare;

/// The bucket holds what its rate allows in this many seconds.
const BURST_S: f64 = 10.0;
/// A client is asked to pause for at most this long at a time. The rest of its debt stays.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// A bucket of units that refills at a broker's share of a rate and holds the units of ten seconds,
/// or of another time. More may be taken than it holds; a pause then pays the debt.
#[derive(Debug)]
pub struct Bucket {
    limit: LimitId,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Units a second of the whole cluster.
    rate: f64,
    share: BrokerShare,
    /// It holds what its rate allows in so many seconds.
    burst_s: f64,
    /// Units in the bucket now; below 0 in debt.
    left: f64,
    at: Instant,
    /// Units that were taken since the last report.
    used: f64,
    /// Whether somebody had to pause or was refused something since then.
    is_short: bool,
}

impl State {
    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.left = passed.mul_add(self.rate * self.share.part, self.left).min(self.capacity());
    }

    fn take(&mut self, units: f64) {
        self.left -= units;
        self.used += units;
        self.is_short |= self.left < 0.0;
    }

    fn capacity(&self) -> f64 {
        self.rate * self.share.part * self.burst_s
    }

    /// How long it takes until so many units are there.
    fn seconds_for(&self, units: f64) -> f64 {
        units / (self.rate * self.share.paying())
    }

    fn pause(&self) -> Duration {
        let seconds = self.seconds_for(-self.left).clamp(0.0, PAUSE_MAX.as_secs_f64());
        Duration::from_secs_f64(seconds)
    }
}

impl Bucket {
    /// A full bucket of a limit. `rate` is the whole cluster's, and above 0.
    pub fn new(limit: LimitId, rate: f64, share: BrokerShare, now: Instant) -> Self {
        Self::holding(limit, rate, share, BURST_S, now)
    }

    /// A full bucket that holds what its rate allows in so many seconds.
    pub fn holding(
        limit: LimitId,
        rate: f64,
        share: BrokerShare,
        burst_s: f64,
        now: Instant,
    ) -> Self {
        let left = rate * share.part * burst_s;
        let (used, is_short) = (0.0, false);
        Self {
            limit,
            state: Mutex::new(State { rate, share, burst_s, left, at: now, used, is_short }),
        }
    }

    /// Changes the whole cluster's rate from now on; a debt is kept.
    pub fn set_rate(&self, rate: f64, now: Instant) {
        let mut state = self.state.lock();
        if (state.rate - rate).abs() > 0.0 {
            state.refill(now);
            state.rate = rate;
            state.left = state.left.min(state.capacity());
        }
    }

    /// Changes this broker's share of the rate from now on; a debt is kept.
    pub(crate) fn set_share(&self, share: BrokerShare, now: Instant) {
        let mut state = self.state.lock();
        if state.share != share {
            state.refill(now);
            state.share = share;
            state.left = state.left.min(state.capacity());
        }
    }

    /// The limit that is taken from it.
    pub(crate) fn limit(&self) -> LimitId {
        self.limit
    }

    /// What was used of it in a second, since it was asked the last time so many seconds ago.
    pub(crate) fn take_use(&self, seconds: f64, now: Instant) -> LimitUse {
        let mut state = self.state.lock();
        state.refill(now);
        let used = std::mem::take(&mut state.used) / state.rate / seconds;
        // While they pause, clients in debt take nothing.
        let is_short = std::mem::take(&mut state.is_short) || state.left < 0.0;
        LimitUse { limit: self.limit, used, is_short }
    }

    /// Takes units; returns how long the client has to pause.
    pub fn take(&self, units: f64, now: Instant) -> Duration {
        let mut state = self.state.lock();
        state.refill(now);
        state.take(units);
        state.pause()
    }

    /// As [`Bucket::take`], unless there are fewer in it: then nothing is taken. Where it never
    /// holds as many, it must be full.
    ///
    /// # Errors
    /// The pause until there are enough.
    pub fn try_take(&self, units: f64, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock();
        state.refill(now);
        let needed = units.min(state.capacity());
        if state.left < needed {
            state.is_short = true;
            let missing = state.seconds_for(needed - state.left);
            return Err(Duration::from_secs_f64(missing.min(PAUSE_MAX.as_secs_f64())));
        }
        state.take(units);
        Ok(())
    }

    /// Takes as many of so many whole units as the bucket holds. Returns how many.
    pub fn take_up_to(&self, units: f64, now: Instant) -> f64 {
        let mut state = self.state.lock();
        state.refill(now);
        let taken = units.min(state.left.floor()).max(0.0);
        state.take(taken);
        state.is_short |= taken < units;
        taken
    }

    /// How long until the bucket holds so many units.
    pub fn until(&self, units: f64, now: Instant) -> Duration {
        let mut state = self.state.lock();
        state.refill(now);
        let seconds = state.seconds_for(units - state.left);
        Duration::from_secs_f64(seconds.clamp(0.0, PAUSE_MAX.as_secs_f64()))
    }

    /// How long to pause before anything more is taken.
    pub fn debt(&self, now: Instant) -> Duration {
        self.take(0.0, now)
    }

    /// The most that can be taken without a debt.
    pub fn capacity(&self) -> f64 {
        self.state.lock().capacity()
    }

    /// Whether it is full, and so equal to a new one.
    pub fn is_full(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        state.refill(now);
        state.left >= state.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;
    const FLOOR: BrokerShare = BrokerShare { part: 0.05, even: 0.5 };

    fn bucket_of(rate: f64, share: BrokerShare) -> Bucket {
        Bucket::new(LimitId::of(&[]), rate, share, Instant::now())
    }

    /// The bucket of a broker that is the only one.
    fn whole(rate: f64) -> Bucket {
        bucket_of(rate, BrokerShare::WHOLE)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_pauses_as_asked_keeps_to_the_rate() {
        let bucket = whole(MIB);
        let mut paused = Duration::ZERO;
        let mut taken = 0.0;
        while taken < 60.0 * MIB {
            let pause = bucket.take(MIB / 4.0, Instant::now());
            taken += MIB / 4.0;
            paused += pause;
            tokio::time::advance(pause).await;
        }
        // The bucket holds ten seconds at first; pauses pay for everything else.
        assert!((paused.as_secs_f64() - 50.0).abs() < 0.01, "{paused:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_debt_is_shared_and_shrinks_with_time() {
        let bucket = whole(100.0);
        assert_eq!(bucket.take(1_000.0, Instant::now()), Duration::ZERO);
        assert_eq!(bucket.take(50.0, Instant::now()), Duration::from_millis(500));
        assert_eq!(bucket.take(50.0, Instant::now()), Duration::from_secs(1));
        tokio::time::advance(Duration::from_millis(400)).await;
        assert_eq!(bucket.debt(Instant::now()), Duration::from_millis(600));
        assert!(!bucket.is_full(Instant::now()));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(bucket.is_full(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_rate_keeps_the_debt_and_no_more_than_its_own_savings() {
        let bucket = whole(100.0);
        bucket.set_rate(10.0, Instant::now());
        assert_eq!(bucket.take(100.0, Instant::now()), Duration::ZERO);
        assert_eq!(bucket.take(10.0, Instant::now()), Duration::from_secs(1));
        bucket.set_rate(20.0, Instant::now());
        assert_eq!(bucket.debt(Instant::now()), Duration::from_millis(500));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_takes_nothing() {
        let bucket = whole(1.0);
        for _ in 0..10 {
            bucket.try_take(1.0, Instant::now()).unwrap();
        }
        for _ in 0..3 {
            assert_eq!(bucket.try_take(1.0, Instant::now()), Err(Duration::from_secs(1)));
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        bucket.try_take(1.0, Instant::now()).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn no_pause_is_longer_than_an_hour() {
        let bucket = whole(0.000_001);
        assert_eq!(bucket.take(f64::from(u32::MAX), Instant::now()), PAUSE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_share_is_of_the_rate_and_of_what_the_bucket_holds() {
        let bucket = bucket_of(100.0, BrokerShare { part: 0.5, even: 0.5 });
        assert_eq!(bucket.take(500.0, Instant::now()), Duration::ZERO);
        assert_eq!(bucket.take(50.0, Instant::now()), Duration::from_secs(1));
        bucket.set_share(BrokerShare { part: 1.0, even: 0.5 }, Instant::now());
        assert_eq!(bucket.debt(Instant::now()), Duration::from_millis(500));
        tokio::time::advance(Duration::from_secs(60)).await;
        // With a smaller share savings are smaller, too, and they do not come back with a larger.
        bucket.set_share(FLOOR, Instant::now());
        bucket.set_share(BrokerShare::WHOLE, Instant::now());
        assert_eq!(bucket.take(50.0, Instant::now()), Duration::ZERO);
        assert_eq!(bucket.take(50.0, Instant::now()), Duration::from_millis(500));
    }

    /// Whoever is short gets an even share in a few seconds, so nobody pauses for as long as the
    /// debt would take with the least share.
    #[tokio::test(start_paused = true)]
    async fn a_debt_is_paid_at_an_even_share_at_least() {
        let bucket = bucket_of(100.0, FLOOR);
        assert_eq!(bucket.take(50.0, Instant::now()), Duration::ZERO);
        assert_eq!(bucket.take(100.0, Instant::now()), Duration::from_secs(2));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!bucket.debt(Instant::now()).is_zero(), "what is not paid yet is owed still");
    }

    #[tokio::test(start_paused = true)]
    async fn of_the_least_share_one_is_taken_at_a_time() {
        let bucket = bucket_of(1.0, FLOOR);
        bucket.try_take(1.0, Instant::now()).unwrap();
        assert!(bucket.try_take(1.0, Instant::now()).is_err());
        // Ten seconds' worth is half of one, and half of one is owed.
        tokio::time::advance(Duration::from_secs(19)).await;
        assert!(bucket.try_take(1.0, Instant::now()).is_err());
        tokio::time::advance(Duration::from_secs(2)).await;
        bucket.try_take(1.0, Instant::now()).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_says_what_was_used_and_whether_it_was_too_little() {
        let bucket = bucket_of(100.0, BrokerShare { part: 0.5, even: 0.5 });
        let report = |seconds: f64| {
            let LimitUse { used, is_short, .. } = bucket.take_use(seconds, Instant::now());
            ((used * 1e6).round() / 1e6, is_short)
        };
        bucket.take(300.0, Instant::now());
        assert_eq!(report(2.0), (1.5, false));
        bucket.take(300.0, Instant::now());
        assert_eq!((report(1.0), report(1.0)), ((3.0, true), (0.0, true)));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(report(1.0), (0.0, false), "the debt is paid");
        assert!(bucket.try_take(500.0, Instant::now()).is_err());
        assert_eq!((report(1.0), report(1.0)), ((0.0, true), (0.0, false)));
    }
}
