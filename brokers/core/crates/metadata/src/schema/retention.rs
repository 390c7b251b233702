//! How a topic's rule of retention changed, and what its earlier rules excluded.
//!
//! Storage is billed by the rule, also while no broker runs that could remove anything. So what a
//! rule excluded for a while must not come back when a looser one follows: brokers remove it
//! before anybody reads, and the meter counts it no more. Both learn it from here.

use serde::{Deserialize, Serialize};

use freshet_wire::ids::Incarnation;

/// For how long a rule must have held before it excludes anything, unless the rule before it
/// excludes the same: longer than the time between two rounds in which a broker applies rules. So
/// a broker that runs has applied each rule that counts, and a wrong value that is corrected at
/// once costs no records of a cluster that sleeps.
pub const SETTLED_AFTER_MS: i64 = 5 * 60_000;

/// The most exclusions that a topic remembers. Those of one sleep are joined, and what one before a
/// start excluded was removed at that start.
const EXCLUSIONS_MAX: usize = 8;

/// How much of a partition is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retention {
    /// `retention.ms`; `None` keeps records of any age.
    pub ms: Option<i64>,
    /// `retention.bytes` of a partition; `None` keeps any size.
    pub bytes: Option<u64>,
}

impl Retention {
    /// The rule that keeps all that either keeps.
    #[must_use]
    pub fn looser(self, other: Self) -> Self {
        Self {
            ms: self.ms.zip(other.ms).map(|(one, other)| one.max(other)),
            bytes: self.bytes.zip(other.bytes).map(|(one, other)| one.max(other)),
        }
    }
}

/// What rules excluded that hold no more: of the segments that were written before `until_ms`,
/// from the oldest on, those whose newest record is older than `older_than_ms`, or behind which
/// there are `bytes` or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusion {
    /// Since when it was excluded at the earliest, ms since 1970 UTC.
    pub since_ms: i64,
    /// When the last of the rules ended, ms since 1970 UTC.
    pub until_ms: i64,
    /// Records with smaller timestamps were excluded, ms since 1970 UTC; `None`: none by age.
    pub older_than_ms: Option<i64>,
    /// How many bytes of a partition were kept; `None`: any size.
    pub bytes: Option<u64>,
    /// The last incarnation before it, where the cluster slept when the rule ended. Nothing is
    /// written between two exclusions that follow the same one.
    pub asleep_after: Option<Incarnation>,
}

impl Exclusion {
    /// Whether it excludes all that an earlier one does.
    fn covers(&self, earlier: &Self) -> bool {
        self.until_ms >= earlier.until_ms
            && earlier.older_than_ms <= self.older_than_ms
            && earlier.bytes.is_none_or(|kept| self.bytes.is_some_and(|bytes| bytes <= kept))
    }

    /// Both in one, where nothing was written between them.
    fn joined(self, later: Self) -> Self {
        let bytes = self.bytes.into_iter().chain(later.bytes).min();
        let older_than_ms = self.older_than_ms.max(later.older_than_ms);
        Self { older_than_ms, bytes, since_ms: self.since_ms.min(later.since_ms), ..later }
    }

    fn follows_in_sleep(&self, earlier: &Self) -> bool {
        self.asleep_after.is_some() && self.asleep_after == earlier.asleep_after
    }
}

/// How a topic's retention changed. A topic whose rule never changed has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionHistory {
    /// Since when the present rule holds, ms since 1970 UTC.
    pub since_ms: i64,
    /// The rule that counted until then.
    pub before: Retention,
    /// What earlier rules excluded, ascending by `until_ms`.
    pub excluded: Vec<Exclusion>,
}

impl RetentionHistory {
    /// The rule that counts at a time from the last change on, where `present` holds.
    #[must_use]
    pub fn counting(&self, present: Retention, at_ms: i64) -> Retention {
        if at_ms.saturating_sub(self.since_ms) >= SETTLED_AFTER_MS {
            present
        } else {
            self.before.looser(present)
        }
    }

    /// The history after `rule`, which held since `history` says or else since the topic's
    /// creation, ends at `now_ms`. `asleep_after`: the last incarnation, where none is live.
    #[must_use]
    pub fn after(
        history: Option<&Self>,
        created_at_ms: i64,
        rule: Retention,
        now_ms: i64,
        asleep_after: Option<Incarnation>,
    ) -> Self {
        let since_ms = history.map_or(created_at_ms, |history| history.since_ms);
        let now_ms = now_ms.max(since_ms);
        let before = history.map_or(rule, |history| history.counting(rule, now_ms));
        let mut excluded = history.map(|history| history.excluded.clone()).unwrap_or_default();
        if before != Retention::default() {
            let ended = Exclusion {
                since_ms,
                until_ms: now_ms,
                older_than_ms: before.ms.map(|ms| now_ms.saturating_sub(ms)),
                bytes: before.bytes,
                asleep_after,
            };
            let last = excluded.pop_if(|last| ended.follows_in_sleep(last) || ended.covers(last));
            excluded.push(last.map_or(ended, |last| last.joined(ended)));
            excluded.drain(..excluded.len().saturating_sub(EXCLUSIONS_MAX));
        }
        Self { since_ms: now_ms, before, excluded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const DAY: i64 = 24 * 60 * MINUTE;
    const WEEK: Retention = Retention { ms: Some(7 * DAY), bytes: None };
    const STRICT: Retention = Retention { ms: Some(1), bytes: None };

    fn change(
        history: Option<&RetentionHistory>,
        rule: Retention,
        now_ms: i64,
        asleep_after: Option<u64>,
    ) -> RetentionHistory {
        RetentionHistory::after(history, 0, rule, now_ms, asleep_after.map(Incarnation))
    }

    #[test]
    fn what_a_settled_rule_excluded_stays_excluded() {
        let strict = change(None, WEEK, DAY, Some(3));
        assert_eq!((strict.since_ms, strict.before), (DAY, WEEK));
        assert_eq!(strict.counting(STRICT, DAY + 4 * MINUTE), WEEK);
        assert_eq!(strict.counting(STRICT, DAY + 5 * MINUTE), STRICT);
        let loose = change(Some(&strict), STRICT, 2 * DAY, Some(3));
        let [excluded] = loose.excluded[..] else { panic!("{loose:?}") };
        assert_eq!((excluded.since_ms, excluded.until_ms), (0, 2 * DAY));
        assert_eq!(excluded.older_than_ms, Some(2 * DAY - 1));
        assert_eq!((loose.before, loose.counting(WEEK, 2 * DAY)), (STRICT, WEEK));
    }

    #[test]
    fn a_wrong_value_that_is_corrected_at_once_excludes_nothing() {
        let wrong = change(None, WEEK, 30 * DAY, Some(3));
        let corrected = change(Some(&wrong), STRICT, 30 * DAY + 4 * MINUTE, Some(3));
        assert_eq!(corrected.before, WEEK);
        let oldest = corrected.excluded.iter().filter_map(|one| one.older_than_ms).max();
        assert_eq!(oldest, Some(23 * DAY + 4 * MINUTE), "as the week's rule says");
    }

    #[test]
    fn however_often_a_rule_changes_in_one_sleep_the_strictest_stays() {
        let small = Retention { ms: None, bytes: Some(10) };
        let mut history = change(None, WEEK, DAY, Some(3));
        history = change(Some(&history), STRICT, 2 * DAY, Some(3));
        history = change(Some(&history), small, 3 * DAY, Some(3));
        for day in 4..100 {
            history = change(Some(&history), WEEK, day * DAY, Some(3));
        }
        let [excluded] = history.excluded[..] else { panic!("{history:?}") };
        let oldest = Some(92 * DAY);
        assert_eq!((excluded.older_than_ms, excluded.bytes), (oldest, Some(10)));
        assert_eq!((excluded.since_ms, excluded.until_ms), (0, 99 * DAY));
    }

    #[test]
    fn exclusions_with_records_written_between_them_are_not_joined() {
        let asleep = change(None, STRICT, DAY, Some(3));
        let awake = change(Some(&asleep), WEEK, 2 * DAY, None);
        let bounds: Vec<_> = awake.excluded.iter().map(|one| one.older_than_ms).collect();
        assert_eq!(bounds, [Some(DAY - 1), Some(-5 * DAY)]);
        let later = change(Some(&awake), WEEK, 3 * DAY, Some(4));
        assert_eq!(later.excluded.len(), 2, "one that excludes more takes the place of the last");
        let mut many = later;
        for round in 1_u32..40 {
            let rule = Retention { ms: Some(DAY * i64::from(round) * 2), bytes: None };
            many = change(Some(&many), rule, (3 + i64::from(round)) * DAY, None);
        }
        assert_eq!(many.excluded.len(), EXCLUSIONS_MAX);
    }
}
