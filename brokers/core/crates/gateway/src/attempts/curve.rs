//! Failures in a row, and how long the next attempt waits after them.

use std::time::Duration;

use tokio::time::Instant;

/// How a wait grows with the failures before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Curve {
    /// So many failures cause no wait: people mistype.
    pub free: u32,
    /// The wait after one more.
    pub first: Duration,
    /// So often it doubles, with each further one.
    pub doublings: u32,
    /// Each time that so long passes without a failure, one is forgotten.
    pub forgotten: Duration,
}

impl Curve {
    /// The wait after so many failures.
    pub(super) fn wait(&self, failures: u32) -> Duration {
        match failures.checked_sub(self.free) {
            None => Duration::ZERO,
            Some(further) => self.first * (1 << further.min(self.doublings)),
        }
    }
}

/// Whether somebody may begin an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Admission {
    /// So many attempts may begin now.
    Now(u32),
    /// None may before that time.
    NotBefore(Instant),
    /// None may before the outcome of another is known, which takes milliseconds.
    AfterOutcome,
}

/// The failures of one subject.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: u32,
    last: Option<Instant>,
    /// Attempts whose outcome is not known yet.
    begun: u32,
}

impl Failures {
    /// Failures that are not forgotten.
    pub(super) fn count(&self, curve: &Curve) -> u32 {
        let quiet = self.last.map_or(Duration::ZERO, |last| last.elapsed());
        let forgotten = quiet.as_millis() / curve.forgotten.as_millis();
        self.count.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }

    /// Whether another attempt may begin. Attempts whose outcome is not known count like failures.
    pub(super) fn admission(&self, curve: &Curve) -> Admission {
        let count = self.count(curve);
        let left = curve.free.saturating_sub(count + self.begun);
        if left > 0 {
            return Admission::Now(left);
        }
        if self.begun > 0 {
            return Admission::AfterOutcome;
        }
        match self.last.map(|last| last + curve.wait(count)) {
            Some(until) if until > Instant::now() => Admission::NotBefore(until),
            _ => Admission::Now(1),
        }
    }

    pub(super) fn begin(&mut self) {
        self.begun += 1;
    }

    /// Notes that an attempt is over that does not count.
    pub(super) fn take_back(&mut self) {
        // The row may be a new one in the place of a forgotten one.
        self.begun = self.begun.saturating_sub(1);
    }

    /// Notes that an attempt has failed.
    pub(super) fn fail(&mut self, curve: &Curve) {
        self.take_back();
        self.note(curve);
    }

    /// Notes a failure that was not begun here.
    pub(super) fn note(&mut self, curve: &Curve) {
        // Bounded, so that a long attack is forgotten as soon as one that has just reached it.
        self.count = (self.count(curve) + 1).min(curve.free + curve.doublings);
        self.last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const CURVE: Curve = Curve {
        free: 2,
        first: Duration::from_secs(1),
        doublings: 3,
        forgotten: Duration::from_secs(60),
    };

    fn fail(failures: &mut Failures) {
        failures.begin();
        failures.fail(&CURVE);
    }

    /// How long the next attempt waits, in seconds.
    fn wait_s(failures: &Failures) -> u64 {
        match failures.admission(&CURVE) {
            Admission::NotBefore(until) => until.duration_since(Instant::now()).as_secs(),
            _ => 0,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_to_a_bound_and_are_forgotten() {
        let mut failures = Failures::default();
        let mut waits = Vec::new();
        for _ in 0..7 {
            fail(&mut failures);
            waits.push(wait_s(&failures));
        }
        assert_eq!(waits, [0, 1, 2, 4, 8, 8, 8]);
        advance(Duration::from_secs(8)).await;
        assert_eq!(failures.admission(&CURVE), Admission::Now(1));
        advance(Duration::from_secs(60)).await;
        fail(&mut failures);
        assert_eq!(wait_s(&failures), 8, "one was forgotten, and came again");
        advance(Duration::from_secs(5 * 60)).await;
        assert_eq!(failures.admission(&CURVE), Admission::Now(2));
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_without_an_outcome_count_until_they_have_one() {
        let mut failures = Failures::default();
        failures.begin();
        assert_eq!(failures.admission(&CURVE), Admission::Now(1));
        failures.begin();
        assert_eq!(failures.admission(&CURVE), Admission::AfterOutcome);
        failures.take_back();
        assert_eq!(failures.admission(&CURVE), Admission::Now(1));
        failures.take_back();
        failures.take_back();
        assert_eq!(failures.admission(&CURVE), Admission::Now(2));
    }
}
