//! Whose storage hangs: whoever waits for too long for a write, while another broker writes. Where
//! nobody writes, storage is broken for all, and a takeover would only need it, too.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use freshet_wire::ids::Incarnation;

use crate::Times;
use crate::messages::StorageReport;

/// What brokers said last of their storage.
pub(crate) struct Hanging {
    hang_max: Duration,
    /// What was said longer ago counts no more: who is silent is a matter of its own.
    silence_max: Duration,
    reports: BTreeMap<Incarnation, (StorageReport, Instant)>,
    /// Since when at each look some broker had written lately.
    working_since: Option<Instant>,
    /// When brokers were named last.
    named_at: Option<Instant>,
    /// When brokers were asked last to show that storage works.
    asked_at: Option<Instant>,
}

impl Hanging {
    pub(crate) fn new(times: Times) -> Self {
        let Times { hang_max, silence_max, .. } = times;
        let reports = BTreeMap::new();
        Self { hang_max, silence_max, reports, working_since: None, named_at: None, asked_at: None }
    }

    /// Notes what one says.
    pub(crate) fn report(&mut self, incarnation: Incarnation, report: StorageReport, now: Instant) {
        self.reports.insert(incarnation, (report, now));
    }

    /// Forgets all that are not expected.
    pub(crate) fn expect(&mut self, is_expected: impl Fn(Incarnation) -> bool) {
        self.reports.retain(|incarnation, _| is_expected(*incarnation));
    }

    /// Those whose storage hangs, the worst first: at most a third of all in
    /// [`Self::proof_max`], so that what goes wrong for one after another takes few. Nobody, where
    /// we stood still at `stood_still_at` or later, and what was sent meanwhile may be unread; and
    /// where storage works again only since a moment ago, and may do so for all.
    pub(crate) fn look(&mut self, now: Instant, stood_still_at: Instant) -> Vec<Incarnation> {
        let is_over = |since: Instant, time: Duration| now.duration_since(since) > time;
        let works = self.reports.keys().any(|one| self.writes(*one, now, self.proof_max()));
        self.working_since = works.then(|| self.working_since.unwrap_or(now));
        let is_due = is_over(stood_still_at, self.silence_max)
            && self.named_at.is_none_or(|at| is_over(at, self.proof_max()))
            && self.working_since.is_some_and(|since| is_over(since, self.proof_max() / 2));
        if !is_due {
            return Vec::new();
        }
        let mut hanging = self.waiting(now, self.hang_max);
        hanging.sort_by_key(|(_, pending_ms)| std::cmp::Reverse(*pending_ms));
        hanging.truncate((self.reports.len() / 3).max(1));
        if !hanging.is_empty() {
            self.named_at = Some(now);
        }
        hanging.into_iter().map(|(incarnation, _)| incarnation).collect()
    }

    /// Those that are to show by a write whether storage works, because another one waits for it
    /// and they have nothing to write. They are named again until that one is named or goes on.
    pub(crate) fn idle(&mut self, now: Instant) -> Vec<Incarnation> {
        let pause = self.proof_max() / 2;
        let is_early = self.asked_at.is_some_and(|at| now.duration_since(at) < pause);
        if is_early || self.waiting(now, self.proof_max()).is_empty() {
            return Vec::new();
        }
        let is_idle = |(one, report): &(Incarnation, StorageReport)| {
            report.pending_ms == 0 && !self.writes(*one, now, pause)
        };
        let idle: Vec<_> = self.current(now).filter(is_idle).map(|(one, _)| one).collect();
        if !idle.is_empty() {
            self.asked_at = Some(now);
        }
        idle
    }

    /// The age up to which a write shows that storage works. It began after one that has waited
    /// for [`Times::hang_max`], with time left for pulses.
    fn proof_max(&self) -> Duration {
        self.hang_max / 3
    }

    fn current(&self, now: Instant) -> impl Iterator<Item = (Incarnation, StorageReport)> {
        let is_current = move |at: Instant| now.duration_since(at) <= self.silence_max;
        let current = self.reports.iter().filter(move |(_, (_, at))| is_current(*at));
        current.map(|(incarnation, (report, _))| (*incarnation, *report))
    }

    /// Those that wait for longer than this for a write, and for how long, in milliseconds.
    fn waiting(&self, now: Instant, longer_than: Duration) -> Vec<(Incarnation, u64)> {
        let current = self.current(now).map(|(one, report)| (one, report.pending_ms));
        current
            .filter(|(_, pending_ms)| u128::from(*pending_ms) > longer_than.as_millis())
            .collect()
    }

    /// Whether one has written within this time, and does not wait for long.
    fn writes(&self, one: Incarnation, now: Instant, within: Duration) -> bool {
        let Some((report, at)) = self.reports.get(&one) else { return false };
        let Some(quick_write_ms) = report.quick_write_ms else { return false };
        let age = Duration::from_millis(quick_write_ms) + now.duration_since(*at);
        age <= within && u128::from(report.pending_ms) <= self.proof_max().as_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(50);

    /// A write that never returns, begun at the start.
    fn hangs(now_ms: u64) -> StorageReport {
        StorageReport { pending_ms: now_ms, quick_write_ms: Some(now_ms) }
    }

    /// Writes all the time.
    fn writes(_now_ms: u64) -> StorageReport {
        StorageReport { pending_ms: 5, quick_write_ms: Some(20) }
    }

    /// Has had nothing to write since the start.
    fn idles(now_ms: u64) -> StorageReport {
        StorageReport { pending_ms: 0, quick_write_ms: Some(now_ms) }
    }

    /// Writes, and each write takes four seconds.
    fn is_slow(now_ms: u64) -> StorageReport {
        StorageReport { pending_ms: now_ms % 4000, quick_write_ms: None }
    }

    /// Writes all the time once storage has come back.
    fn hangs_until<const AT_MS: u64>(now_ms: u64) -> StorageReport {
        if now_ms < AT_MS { hangs(now_ms) } else { writes(now_ms) }
    }

    type Says = fn(u64) -> StorageReport;

    /// Looks for ten seconds at brokers numbered from 0, of which those that were named are gone.
    /// Returns after which milliseconds which were named.
    fn named(brokers: &[Says]) -> Vec<(u64, u64)> {
        let begin = Instant::now();
        let mut hanging = Hanging::new(Times::default());
        let mut live: BTreeMap<_, _> = (0..).map(Incarnation).zip(brokers).collect();
        let mut named = Vec::new();
        for step in 0..200 {
            let now = begin + STEP * step;
            let now_ms = u64::from(step) * 50;
            for (one, says) in &live {
                hanging.report(*one, says(now_ms), now);
            }
            hanging.expect(|one| live.contains_key(&one));
            for one in hanging.look(now, begin) {
                live.remove(&one);
                named.push((now_ms, one.0));
            }
        }
        named
    }

    #[test]
    fn who_waits_for_a_write_while_another_writes_is_named() {
        let hang_max = u64::try_from(Times::default().hang_max.as_millis()).unwrap();
        assert_eq!(named(&[writes, hangs, idles]), [(hang_max + 50, 1)]);
    }

    #[test]
    fn nobody_is_named_where_nobody_writes_quickly() {
        for brokers in [[hangs as Says; 3], [hangs, idles, idles], [hangs, is_slow, is_slow]] {
            assert_eq!(named(&brokers), []);
        }
        assert_eq!(named(&[writes, writes, idles]), []);
    }

    /// Storage that comes back does so for one after another.
    #[test]
    fn nobody_is_named_when_storage_has_come_back_for_the_first() {
        assert_eq!(named(&[hangs_until::<5000>, hangs_until::<5400>]), []);
        assert_eq!(named(&[hangs_until::<5000>, hangs_until::<6000>]), [(5550, 1)]);
    }

    #[test]
    fn a_third_is_named_in_a_second() {
        let mut brokers = [hangs as Says; 7];
        brokers[6] = writes;
        let at: Vec<u64> = named(&brokers).into_iter().map(|(at, _)| at).collect();
        assert_eq!(at, [3050, 3050, 4100, 5150, 6200, 7250]);
    }

    #[test]
    fn who_stood_still_names_nobody_until_the_others_had_time_to_say_more() {
        let begin = Instant::now();
        let silence_max = Times::default().silence_max;
        let mut hanging = Hanging::new(Times::default());
        let says = |hanging: &mut Hanging, now| {
            hanging.report(Incarnation(1), hangs(3500), now);
            hanging.report(Incarnation(2), writes(0), now);
        };
        says(&mut hanging, begin);
        assert_eq!(hanging.look(begin, begin), []);
        let later = begin + silence_max + STEP;
        assert_eq!(hanging.look(later, begin), [], "what was said before counts no more");
        says(&mut hanging, later);
        assert_eq!(hanging.look(later, begin), [Incarnation(1)]);
    }

    #[test]
    fn the_idle_are_asked_to_write_while_another_waits_and_a_write_of_theirs_counts() {
        let begin = Instant::now();
        let mut hanging = Hanging::new(Times::default());
        let (hung, idle) = (Incarnation(1), Incarnation(2));
        let mut asked = Vec::new();
        for step in 0..70 {
            let (now, now_ms) = (begin + STEP * step, u64::from(step) * 50);
            let wrote_ms = asked.last().map_or(0, |at| at + 50);
            hanging.report(hung, hangs(now_ms), now);
            hanging.report(idle, idles(now_ms.saturating_sub(wrote_ms)), now);
            if hanging.idle(now).contains(&idle) {
                asked.push(now_ms);
            }
            let expected = if now_ms > 3000 { vec![hung] } else { vec![] };
            let named = hanging.look(now, begin);
            assert_eq!(named, expected, "after {now_ms} ms");
            if !named.is_empty() {
                break;
            }
        }
        assert_eq!(asked, [1050, 1650, 2250, 2850]);
    }
}
