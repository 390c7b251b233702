//! Who is suspected to have died: whoever was silent for too long, unless it was ourselves who
//! stood still.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use freshet_wire::ids::Incarnation;

use crate::Times;

/// When others were heard last.
pub(crate) struct Suspicion {
    silence_max: Duration,
    stall: Duration,
    heard: BTreeMap<Incarnation, Instant>,
    looked_at: Instant,
    /// When we last found that we had stood still; at first, when this was made.
    stood_still_at: Instant,
}

impl Suspicion {
    /// Suspects who is silent for longer than `times.silence_max`. Where looks are further apart
    /// than `times.stall`, we stood still, and what was sent to us meanwhile may be unread: then
    /// everybody gets the full time again.
    pub(crate) fn new(times: Times, now: Instant) -> Self {
        let Times { silence_max, stall, .. } = times;
        Self { silence_max, stall, heard: BTreeMap::new(), looked_at: now, stood_still_at: now }
    }

    /// Notes that one was heard.
    pub(crate) fn hear(&mut self, incarnation: Incarnation, now: Instant) {
        self.heard.insert(incarnation, now);
    }

    /// Expects to hear these, and nobody else, from now on.
    pub(crate) fn expect(&mut self, expected: impl Iterator<Item = Incarnation>, now: Instant) {
        let earlier = std::mem::take(&mut self.heard);
        let at = |one: Incarnation| earlier.get(&one).copied().unwrap_or(now);
        self.heard = expected.map(|one| (one, at(one))).collect();
    }

    /// Those that were silent for too long.
    pub(crate) fn look(&mut self, now: Instant) -> BTreeSet<Incarnation> {
        let stood_still = now.duration_since(self.looked_at) > self.stall;
        self.looked_at = now;
        if stood_still {
            tracing::warn!("stood still: suspects nobody for a while");
            self.heard.values_mut().for_each(|at| *at = now);
            self.stood_still_at = now;
        }
        self.silent(now, self.silence_max)
    }

    /// When we last found that we had stood still; at first, when this was made.
    pub(crate) fn stood_still_at(&self) -> Instant {
        self.stood_still_at
    }

    /// Those that were silent for longer than this.
    pub(crate) fn silent(&self, now: Instant, longer_than: Duration) -> BTreeSet<Incarnation> {
        let silent = self.heard.iter().filter(|(_, at)| now.duration_since(**at) > longer_than);
        silent.map(|(incarnation, _)| *incarnation).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(50);

    fn members(numbers: &[u64]) -> BTreeSet<Incarnation> {
        numbers.iter().copied().map(Incarnation).collect()
    }

    #[test]
    fn the_silent_are_suspected_and_the_heard_are_not() {
        let begin = Instant::now();
        let (times, max) = (Times::default(), Times::default().silence_max);
        let mut suspicion = Suspicion::new(times, begin);
        let mut now = begin;
        while now.duration_since(begin) < Duration::from_secs(2) {
            suspicion.expect(members(&[1, 2]).into_iter(), now);
            suspicion.hear(Incarnation(2), now);
            let silent_for = now.duration_since(begin);
            let expected = if silent_for > max { members(&[1]) } else { members(&[]) };
            assert_eq!(suspicion.look(now), expected, "after {silent_for:?}");
            now += STEP;
        }
        suspicion.expect(members(&[2]).into_iter(), now);
        assert_eq!(suspicion.look(now), members(&[]), "nobody expects it any more");
    }

    #[test]
    fn who_stood_still_suspects_nobody_until_all_had_their_time_again() {
        let begin = Instant::now();
        let (times, max) = (Times::default(), Times::default().silence_max);
        let mut suspicion = Suspicion::new(times, begin);
        suspicion.expect(members(&[1]).into_iter(), begin);
        let mut now = begin + Duration::from_secs(5);
        assert_eq!(suspicion.look(now), members(&[]));
        let woke = now;
        while now.duration_since(woke) <= max {
            assert_eq!(suspicion.look(now), members(&[]));
            now += STEP;
        }
        assert_eq!(suspicion.look(now), members(&[1]));
    }
}
