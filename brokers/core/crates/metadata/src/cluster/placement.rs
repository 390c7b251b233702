//! Which brokers are the first leaders of a topic's partitions.

use std::collections::BTreeMap;

use crate::schema::{IncarnationRecord, IncarnationState, Stored};
use freshet_wire::ids::Incarnation;

const LIVE: IncarnationState = IncarnationState::Live;

/// The brokers that live, in the order in which they are to lead the partitions of a topic, one
/// partition each: brokers of different zones in turn. Topics begin with different brokers, by
/// their names, so that those of few partitions are spread too.
#[must_use]
pub fn placed_leaders(
    incarnations: &BTreeMap<Incarnation, Stored<IncarnationRecord>>,
    topic: &str,
) -> Vec<Incarnation> {
    // Sorted by incarnation: where one succeeds another in a slot, the later one counts.
    let live = incarnations.iter().filter(|(_, stored)| stored.record.state == LIVE);
    let by_slot: BTreeMap<u32, _> =
        live.map(|(id, stored)| (stored.record.slot, (id, stored))).collect();
    let mut zones: BTreeMap<&str, u32> = BTreeMap::new();
    let mut turns = BTreeMap::new();
    for (slot, (incarnation, stored)) in by_slot {
        let zone = stored.record.place.zone.as_str();
        let turn = zones.entry(zone).or_default();
        turns.insert((*turn, zone, slot), *incarnation);
        *turn += 1;
    }
    let mut leaders: Vec<_> = turns.into_values().collect();
    if !leaders.is_empty() {
        let first = topic.bytes().fold(0, |sum: usize, byte| sum + usize::from(byte));
        let first = first % leaders.len();
        leaders.rotate_left(first);
    }
    leaders
}

/// The first leader of a partition: each leads the next one, and the first one follows the last.
#[must_use]
pub fn leader_of(leaders: &[Incarnation], index: i32) -> Option<Incarnation> {
    let place = usize::try_from(index).ok()?.checked_rem(leaders.len())?;
    leaders.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::BrokerPlace;

    fn broker(slot: u32, zone: &str, state: IncarnationState) -> Stored<IncarnationRecord> {
        let place = BrokerPlace { zone: zone.to_owned(), ..BrokerPlace::default() };
        let record = IncarnationRecord {
            state,
            slot,
            host: String::new(),
            started_at_ms: 0,
            ended_at_ms: None,
            sealed_end: None,
            place,
        };
        Stored { record, revision: 1 }
    }

    #[test]
    fn leaders_alternate_between_zones_and_the_dead_are_left_out() {
        let brokers = BTreeMap::from([
            (Incarnation(1), broker(0, "a", IncarnationState::Sealed)),
            (Incarnation(2), broker(1, "a", LIVE)),
            (Incarnation(3), broker(2, "a", LIVE)),
            (Incarnation(4), broker(3, "b", LIVE)),
            (Incarnation(5), broker(0, "b", LIVE)),
        ]);
        let ids = |topic| placed_leaders(&brokers, topic).iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(ids(""), [2, 5, 3, 4]);
        assert_eq!(ids("a"), [5, 3, 4, 2]);
        let leaders = placed_leaders(&brokers, "");
        assert_eq!(leader_of(&leaders, 6), Some(Incarnation(3)));
    }

    #[test]
    fn a_cluster_without_a_broker_has_no_leaders() {
        assert_eq!(placed_leaders(&BTreeMap::new(), "t"), []);
        assert_eq!(leader_of(&[], 0), None);
    }
}
