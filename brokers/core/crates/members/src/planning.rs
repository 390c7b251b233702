//! Which survivor takes over which partition. Nothing here waits or remembers: the same question
//! has the same answer on every broker.

use std::collections::{BTreeMap, BTreeSet};

use freshet_wire::ids::{Incarnation, PartitionId};

/// A broker that can take over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Its slot, which the next incarnation there has too.
    pub slot: u32,
    /// How many partitions it leads, or is to take over.
    pub partitions: usize,
}

/// Spreads partitions that have lost their leader: each goes to its standby, unless that would have
/// much more than its share then.
///
/// Returns nothing where nobody survives.
#[must_use]
pub fn spread(
    orphans: &BTreeSet<PartitionId>,
    survivors: &[Survivor],
) -> BTreeMap<Incarnation, BTreeSet<PartitionId>> {
    let mut plan: BTreeMap<Incarnation, BTreeSet<PartitionId>> = BTreeMap::new();
    if survivors.is_empty() {
        return plan;
    }
    let led: usize = survivors.iter().map(|survivor| survivor.partitions).sum();
    // A quarter more than an equal share, and one: a standby is ready sooner, which is worth that.
    let share_max = (led + orphans.len()) * 5 / (survivors.len() * 4) + 1;
    let mut counts: Vec<usize> = survivors.iter().map(|survivor| survivor.partitions).collect();
    for orphan in orphans {
        let least = *counts.iter().min().expect("somebody survives");
        let has_room = |at: &usize| counts[*at] < share_max || counts[*at] == least;
        let chosen = ranked(*orphan, survivors).into_iter().find(has_room);
        let chosen = chosen.expect("one of them has the least");
        counts[chosen] += 1;
        plan.entry(survivors[chosen].incarnation).or_default().insert(*orphan);
    }
    plan
}

/// Partitions to hand over, by former and next leader, so that nobody leads much more than others:
/// at most `count_max` of them. Nothing, where the one that leads most has hardly more than the one
/// that leads least: a hand-over costs more than that.
#[must_use]
pub fn level(
    led: &BTreeMap<PartitionId, Incarnation>,
    brokers: &[Survivor],
    count_max: usize,
) -> BTreeMap<(Incarnation, Incarnation), BTreeSet<PartitionId>> {
    let mut plan: BTreeMap<_, BTreeSet<PartitionId>> = BTreeMap::new();
    let mut counts: Vec<usize> = brokers.iter().map(|broker| broker.partitions).collect();
    let (Some(least), Some(most)) = (counts.iter().min(), counts.iter().max()) else { return plan };
    let share = counts.iter().sum::<usize>() / counts.len();
    if most - least <= 1 + share / 10 {
        return plan;
    }
    let mut left: BTreeMap<Incarnation, BTreeSet<PartitionId>> = BTreeMap::new();
    for (id, leader) in led {
        left.entry(*leader).or_default().insert(*id);
    }
    let extreme = |counts: &[usize], most: bool| {
        let places = 0..counts.len();
        let of = |at: &usize| (counts[*at], *at);
        if most { places.max_by_key(of) } else { places.min_by_key(of) }
    };
    for _ in 0..count_max {
        let (Some(from), Some(to)) = (extreme(&counts, true), extreme(&counts, false)) else {
            break;
        };
        if counts[from] - counts[to] <= 1 {
            break;
        }
        let (giver, taker) = (&brokers[from], &brokers[to]);
        let Some(given) = left.get_mut(&giver.incarnation) else { break };
        let Some(best) = given.iter().copied().max_by_key(|id| weight(*id, taker.slot)) else {
            break;
        };
        given.remove(&best);
        plan.entry((giver.incarnation, taker.incarnation)).or_default().insert(best);
        counts[from] -= 1;
        counts[to] += 1;
    }
    plan
}

/// The places of brokers in the order in which they are to take over a partition. Each partition
/// has an order of its own, which stays as it is for those that stay.
fn ranked(partition: PartitionId, brokers: &[Survivor]) -> Vec<usize> {
    let mut places: Vec<_> = (0..brokers.len()).collect();
    places.sort_by_key(|at| std::cmp::Reverse((weight(partition, brokers[*at].slot), *at)));
    places
}

/// The weight of a slot for a partition, as in rendezvous hashing.
fn weight(partition: PartitionId, slot: u32) -> u64 {
    let (high, low) = partition.topic.as_u64_pair();
    let index = u64::from(partition.index.cast_unsigned());
    [high, low, index, u64::from(slot)].into_iter().fold(0, |mixed, part| mix(mixed ^ part))
}

/// A bijection whose output bits each depend on all input bits (the finalizer of `SplitMix64`).
fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use freshet_wire::ids::TopicId;

    use super::*;

    fn survivors(partitions: &[usize]) -> Vec<Survivor> {
        let survivor = |(slot, partitions): (u32, &usize)| Survivor {
            incarnation: Incarnation(u64::from(slot) + 10),
            slot,
            partitions: *partitions,
        };
        (0..).zip(partitions).map(survivor).collect()
    }

    fn orphans(count: i32) -> BTreeSet<PartitionId> {
        (0..count).map(|index| PartitionId::new(TopicId::from_u128(7), index)).collect()
    }

    #[test]
    fn every_orphan_goes_to_exactly_one_survivor() {
        for count in [0, 1, 2, 7, 1_000] {
            let plan = spread(&orphans(count), &survivors(&[3, 0, 5]));
            let mut all: Vec<_> = plan.values().flatten().copied().collect();
            all.sort();
            assert_eq!(all, orphans(count).into_iter().collect::<Vec<_>>());
        }
        assert!(spread(&orphans(3), &[]).is_empty());
    }

    #[test]
    fn nobody_gets_much_more_than_a_share() {
        for (led, count) in [(&[0, 0, 0][..], 12), (&[100, 0, 100], 150), (&[9; 15], 400)] {
            let brokers = survivors(led);
            let plan = spread(&orphans(count), &brokers);
            let total = led.iter().sum::<usize>() + usize::try_from(count).unwrap();
            let share = total as f64 / led.len() as f64;
            for broker in &brokers {
                let new = plan.get(&broker.incarnation).map_or(0, BTreeSet::len);
                let has = (broker.partitions + new) as f64;
                assert!(has <= share * 1.25 + 2.0 || new == 0, "{has} of {share} for {led:?}");
            }
        }
    }

    #[test]
    fn a_broker_that_came_gets_its_share_and_small_differences_stay() {
        let brokers = survivors(&[20, 20, 0]);
        let ids: Vec<_> = orphans(40).into_iter().collect();
        let led: BTreeMap<_, _> = ids
            .iter()
            .zip(0..)
            .map(|(id, place): (_, usize)| (*id, brokers[place % 2].incarnation))
            .collect();
        let plan = level(&led, &brokers, 128);
        let moved: Vec<_> =
            plan.iter().flat_map(|(way, ids)| ids.iter().map(move |id| (*id, *way))).collect();
        assert_eq!(moved.len(), 13);
        for (id, (from, to)) in moved {
            assert_eq!((led[&id], brokers[2].incarnation), (from, to));
        }
        assert_eq!(level(&led, &brokers, 5).values().map(BTreeSet::len).sum::<usize>(), 5);
        assert!(level(&led, &survivors(&[20, 18, 19]), 128).is_empty());
        assert!(level(&BTreeMap::new(), &[], 128).is_empty());
    }

    #[test]
    fn who_stays_keeps_what_it_would_have_got() {
        let four = survivors(&[1_000; 4]);
        let three: Vec<_> = four.iter().filter(|broker| broker.slot != 2).cloned().collect();
        let first = |orphan: &PartitionId, brokers: &[Survivor]| {
            brokers[ranked(*orphan, brokers)[0]].incarnation
        };
        let moved = orphans(400)
            .iter()
            .filter(|orphan| first(orphan, &four) != first(orphan, &three))
            .inspect(|orphan| assert_eq!(first(orphan, &four), four[2].incarnation))
            .count();
        assert!((60..140).contains(&moved), "about a quarter had the one that left: {moved}");
    }
}
