//! Which payers have usage of their own, and which are counted together as [`OTHERS`].
//!
//! Each pair of a topic and a payer that moved bytes in a minute becomes a row of usage, and one
//! job takes in the rows of all clusters of a cell. So a broker names a limited number of pairs in
//! a minute, those that come first, and counts the rest by topic. It does so before the usage is
//! written into the lane: whoever reads the lane, and however often, gets the same rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freshet_wire::ids::{PartitionId, TopicId};

/// The payer of what is counted together. A name has no `*`, so it is nobody's.
pub const OTHERS: &str = "Others:*";
const MINUTE_MS: i64 = 60_000;
/// Ingress is counted by partition. So many pairs of a partition and a payer are named for each
/// pair of a topic and a payer.
const PLACES_PER_PAIR: usize = 4;

/// Who is named.
#[derive(Clone)]
pub struct PayerRules {
    /// How many pairs of a topic and a payer are named in a minute; `None` for any number.
    pub pairs_max: Arc<dyn Fn() -> Option<usize> + Send + Sync>,
    /// Who is always named: the service itself, which does not pay.
    pub free: Arc<str>,
}

impl Default for PayerRules {
    /// Everybody is named.
    fn default() -> Self {
        Self { pairs_max: Arc::new(|| None), free: "".into() }
    }
}

/// What one payer has used in this minute.
#[derive(Default)]
struct Used {
    topics: BTreeSet<TopicId>,
    partitions: BTreeSet<PartitionId>,
}

/// The pairs that are named in this minute.
pub(crate) struct NamedPayers {
    rules: PayerRules,
    others: Arc<str>,
    minute: i64,
    pairs_max: usize,
    used: BTreeMap<Arc<str>, Used>,
    pairs: usize,
    places: usize,
}

impl NamedPayers {
    pub(crate) fn new(rules: PayerRules) -> Self {
        let pairs_max = pairs_max_of(&rules);
        let (others, used) = (OTHERS.into(), BTreeMap::new());
        Self { rules, others, minute: i64::MIN, pairs_max, used, pairs: 0, places: 0 }
    }

    /// Asks for the limit, and begins anew where this time (Unix ms) lies in another minute.
    pub(crate) fn go_on_at(&mut self, now_ms: i64) {
        self.pairs_max = pairs_max_of(&self.rules);
        let minute = now_ms.div_euclid(MINUTE_MS);
        if minute != self.minute {
            self.minute = minute;
            (self.pairs, self.places) = (0, 0);
            self.used.clear();
        }
    }

    /// By whom bytes are counted that have no payer of their own: [`OTHERS`].
    pub(crate) fn others(&self) -> Arc<str> {
        Arc::clone(&self.others)
    }

    /// By whom bytes of a topic are counted: the payer itself, or [`OTHERS`].
    pub(crate) fn of_topic(&mut self, topic: TopicId, payer: &Arc<str>) -> Arc<str> {
        if self.name_pair(topic, payer) { payer } else { &self.others }.clone()
    }

    /// By whom bytes of a partition are counted: the payer itself, or [`OTHERS`].
    pub(crate) fn of_partition(&mut self, partition: PartitionId, payer: &Arc<str>) -> Arc<str> {
        if self.name_place(partition, payer) { payer } else { &self.others }.clone()
    }

    fn name_pair(&mut self, topic: TopicId, payer: &Arc<str>) -> bool {
        if self.used.get(&**payer).is_some_and(|used| used.topics.contains(&topic)) {
            return true;
        }
        if *payer == self.rules.free {
            return true;
        }
        if self.pairs >= self.pairs_max {
            return false;
        }
        self.pairs += 1;
        self.used.entry(Arc::clone(payer)).or_default().topics.insert(topic)
    }

    fn name_place(&mut self, partition: PartitionId, payer: &Arc<str>) -> bool {
        if self.used.get(&**payer).is_some_and(|used| used.partitions.contains(&partition)) {
            return true;
        }
        if *payer == self.rules.free {
            return true;
        }
        if self.places >= self.pairs_max.saturating_mul(PLACES_PER_PAIR)
            || !self.name_pair(partition.topic, payer)
        {
            return false;
        }
        self.places += 1;
        self.used.entry(Arc::clone(payer)).or_default().partitions.insert(partition)
    }
}

fn pairs_max_of(rules: &PayerRules) -> usize {
    (rules.pairs_max)().unwrap_or(usize::MAX)
}

impl Default for NamedPayers {
    fn default() -> Self {
        Self::new(PayerRules::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: &str = "User:service";

    fn named(pairs_max: usize) -> NamedPayers {
        let pairs_max = Arc::new(move || Some(pairs_max));
        let mut named = NamedPayers::new(PayerRules { pairs_max, free: FREE.into() });
        named.go_on_at(1);
        named
    }

    fn topic(number: u128) -> TopicId {
        TopicId::from_u128(number)
    }

    fn partition(of: u128, index: i32) -> PartitionId {
        PartitionId::new(topic(of), index)
    }

    fn user(number: usize) -> Arc<str> {
        format!("User:{number}").into()
    }

    #[test]
    fn the_first_pairs_of_a_minute_stay_named_and_the_rest_are_others() {
        let mut named = named(3);
        for _ in 0..2 {
            let names: Vec<_> =
                (0..5).map(|number| named.of_topic(topic(1), &user(number))).collect();
            let expected = ["User:0", "User:1", "User:2", OTHERS, OTHERS];
            assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), expected);
        }
        assert_eq!(&*named.of_topic(topic(2), &user(0)), OTHERS, "another topic is another pair");
        assert_eq!(&*named.of_partition(partition(1, 7), &user(0)), "User:0");
        assert_eq!(&*named.of_partition(partition(1, 7), &user(4)), OTHERS);
    }

    #[test]
    fn another_minute_begins_anew() {
        let mut named = named(1);
        assert_eq!(&*named.of_topic(topic(1), &user(1)), "User:1");
        named.go_on_at(MINUTE_MS - 1);
        assert_eq!(&*named.of_topic(topic(1), &user(2)), OTHERS);
        named.go_on_at(MINUTE_MS);
        assert_eq!(&*named.of_topic(topic(1), &user(2)), "User:2");
        assert_eq!(&*named.of_topic(topic(1), &user(1)), OTHERS);
    }

    #[test]
    fn a_payer_is_named_at_a_few_partitions_for_each_pair() {
        let mut named = named(2);
        let own =
            (0..20).filter(|index| *named.of_partition(partition(1, *index), &user(1)) != *OTHERS);
        assert_eq!(own.count(), 2 * PLACES_PER_PAIR);
    }

    #[test]
    fn what_is_free_is_never_counted_with_what_is_paid() {
        let mut named = named(0);
        let free = Arc::from(FREE);
        assert_eq!(&*named.of_topic(topic(1), &free), FREE);
        assert_eq!(&*named.of_partition(partition(1, 1), &free), FREE);
        assert_eq!(&*named.of_topic(topic(1), &user(1)), OTHERS);
    }

    #[test]
    fn without_a_limit_all_are_named() {
        let mut named = NamedPayers::default();
        named.go_on_at(0);
        for number in 0..10_000 {
            assert_ne!(&*named.of_partition(partition(1, 0), &user(number)), OTHERS);
        }
    }
}
