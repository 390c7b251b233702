//! Attempts that many clients share.

use std::time::Duration;

use tokio::time::Instant;

use super::curve::Admission;
use crate::bucket::Bucket;

/// How many attempts there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoolLimits {
    pub at_once: u32,
    /// A second, in the long run.
    pub per_s: f64,
    /// Of those at once, so many are for clients that have not failed.
    pub reserved: u32,
}

/// Attempts that clients share. A right password gives its attempt back.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// `None` while nothing was taken.
    bucket: Option<Bucket>,
    /// Attempts whose outcome is not known yet.
    begun: u32,
}

impl Pool {
    fn bucket(&mut self, limits: &PoolLimits) -> &mut Bucket {
        self.bucket.get_or_insert_with(|| Bucket::full(limits.at_once))
    }

    /// Whether somebody may begin an attempt, who has failed before or has not.
    pub(super) fn admission(&mut self, limits: &PoolLimits, has_failed: bool) -> Admission {
        let kept = if has_failed { f64::from(limits.reserved) } else { 0.0 };
        let left = self.bucket(limits).level(limits.at_once, limits.per_s) - kept;
        if left >= 1.0 {
            // At most `at_once`, so nothing is lost.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            return Admission::Now(left as u32);
        }
        if left + f64::from(self.begun) >= 1.0 {
            return Admission::AfterOutcome;
        }
        let missing = Duration::from_secs_f64((1.0 - left) / limits.per_s);
        Admission::NotBefore(Instant::now() + missing + Duration::from_millis(1))
    }

    pub(super) fn begin(&mut self, limits: &PoolLimits) {
        self.bucket(limits).take(limits.at_once, limits.per_s);
        self.begun += 1;
    }

    /// Notes that an attempt has failed.
    pub(super) fn fail(&mut self) {
        self.begun = self.begun.saturating_sub(1);
    }

    /// Gives back an attempt that does not count.
    pub(super) fn take_back(&mut self, limits: &PoolLimits) {
        // A new row in the place of a forgotten one has got nothing that could come back.
        if self.begun > 0 {
            self.begun -= 1;
            self.bucket(limits).give_back(limits.at_once);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const LIMITS: PoolLimits = PoolLimits { at_once: 4, per_s: 0.5, reserved: 2 };

    fn wait_ms(admission: Admission) -> u128 {
        match admission {
            Admission::NotBefore(until) => until.duration_since(Instant::now()).as_millis(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn some_attempts_are_for_those_that_have_not_failed() {
        let mut pool = Pool::default();
        for left in [2, 1] {
            assert_eq!(pool.admission(&LIMITS, true), Admission::Now(left));
            pool.begin(&LIMITS);
            pool.fail();
        }
        assert_eq!(wait_ms(pool.admission(&LIMITS, true)), 2001);
        for left in [2, 1] {
            assert_eq!(pool.admission(&LIMITS, false), Admission::Now(left));
            pool.begin(&LIMITS);
        }
        assert_eq!(pool.admission(&LIMITS, false), Admission::AfterOutcome);
        pool.fail();
        pool.fail();
        assert_eq!(wait_ms(pool.admission(&LIMITS, false)), 2001);
        assert_eq!(wait_ms(pool.admission(&LIMITS, true)), 6001);
        advance(Duration::from_secs(2)).await;
        assert_eq!(pool.admission(&LIMITS, false), Admission::Now(1));
    }

    #[tokio::test(start_paused = true)]
    async fn right_passwords_use_nothing_up() {
        let mut pool = Pool::default();
        for _ in 0..100 {
            pool.begin(&LIMITS);
            pool.take_back(&LIMITS);
        }
        pool.take_back(&LIMITS);
        assert_eq!(pool.admission(&LIMITS, false), Admission::Now(4));
    }
}
