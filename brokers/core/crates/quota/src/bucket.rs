//! A token bucket: how much of one quota is used.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The bucket holds what its rate allows in this many seconds.
const BURST_S: f64 = 10.0;
/// A client is asked to pause for at most this long at a time. The rest of its debt stays.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// A bucket of units that refills at a rate and holds the units of ten seconds, or of another time.
/// More may be taken than it holds; a pause then pays the debt.
#[derive(Debug)]
pub struct Bucket(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Units a second.
    rate: f64,
    /// It holds what its rate allows in so many seconds.
    burst_s: f64,
    /// Units in the bucket now; below 0 in debt.
    left: f64,
    at: Instant,
}

impl State {
    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.left = passed.mul_add(self.rate, self.left).min(self.capacity());
    }

    fn capacity(&self) -> f64 {
        self.rate * self.burst_s
    }

    fn pause(&self) -> Duration {
        let seconds = (-self.left / self.rate).clamp(0.0, PAUSE_MAX.as_secs_f64());
        Duration::from_secs_f64(seconds)
    }
}

impl Bucket {
    /// A full bucket. `rate` is above 0.
    pub fn new(rate: f64, now: Instant) -> Self {
        Self::holding(rate, BURST_S, now)
    }

    /// A full bucket that holds what its rate allows in so many seconds.
    pub fn holding(rate: f64, burst_s: f64, now: Instant) -> Self {
        Self(Mutex::new(State { rate, burst_s, left: rate * burst_s, at: now }))
    }

    /// Changes the rate from now on; a debt is kept.
    pub fn set_rate(&self, rate: f64, now: Instant) {
        let mut state = self.0.lock();
        if (state.rate - rate).abs() > 0.0 {
            state.refill(now);
            state.rate = rate;
            state.left = state.left.min(state.capacity());
        }
    }

    /// Takes units; returns how long the client has to pause.
    pub fn take(&self, units: f64, now: Instant) -> Duration {
        let mut state = self.0.lock();
        state.refill(now);
        state.left -= units;
        state.pause()
    }

    /// As [`Bucket::take`], unless the bucket is in debt already: then nothing is taken.
    ///
    /// # Errors
    /// The pause until the debt is paid.
    pub fn try_take(&self, units: f64, now: Instant) -> Result<(), Duration> {
        let mut state = self.0.lock();
        state.refill(now);
        if state.left < units {
            let missing = (units - state.left) / state.rate;
            return Err(Duration::from_secs_f64(missing.min(PAUSE_MAX.as_secs_f64())));
        }
        state.left -= units;
        Ok(())
    }

    /// Takes as many of so many whole units as the bucket holds. Returns how many.
    pub fn take_up_to(&self, units: f64, now: Instant) -> f64 {
        let mut state = self.0.lock();
        state.refill(now);
        let taken = units.min(state.left.floor()).max(0.0);
        state.left -= taken;
        taken
    }

    /// How long until the bucket holds so many units.
    pub fn until(&self, units: f64, now: Instant) -> Duration {
        let mut state = self.0.lock();
        state.refill(now);
        let seconds = (units - state.left) / state.rate;
        Duration::from_secs_f64(seconds.clamp(0.0, PAUSE_MAX.as_secs_f64()))
    }

    /// How long to pause before anything more is taken.
    pub fn debt(&self, now: Instant) -> Duration {
        self.take(0.0, now)
    }

    /// The most that can be taken without a debt.
    pub fn capacity(&self) -> f64 {
        self.0.lock().capacity()
    }

    /// Whether it is full, and so equal to a new one.
    pub fn is_full(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        state.refill(now);
        state.left >= state.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_pauses_as_asked_keeps_to_the_rate() {
        let bucket = Bucket::new(MIB, Instant::now());
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
        let bucket = Bucket::new(100.0, Instant::now());
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
        let bucket = Bucket::new(100.0, Instant::now());
        bucket.set_rate(10.0, Instant::now());
        assert_eq!(bucket.take(100.0, Instant::now()), Duration::ZERO);
        assert_eq!(bucket.take(10.0, Instant::now()), Duration::from_secs(1));
        bucket.set_rate(20.0, Instant::now());
        assert_eq!(bucket.debt(Instant::now()), Duration::from_millis(500));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_takes_nothing() {
        let bucket = Bucket::new(1.0, Instant::now());
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
        let bucket = Bucket::new(0.000_001, Instant::now());
        assert_eq!(bucket.take(f64::from(u32::MAX), Instant::now()), PAUSE_MAX);
    }
}
