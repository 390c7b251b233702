//! What holds for each change of who leads a partition, of where its unsplit records lie, and of
//! where a lane ends. A record alone is checked when it is written or read
//! ([`super::Record::check`]); here a record is compared with the one that it replaces.

use super::{Extent, IncarnationRecord, IncarnationState, PartitionRecord};
use freshet_world::invariants::BrokenInvariant;

type Held = Result<(), BrokenInvariant>;

/// All invariants of a takeover: `after` is to replace `before`.
///
/// # Errors
/// The first one that does not hold.
pub fn check_takeover(before: &PartitionRecord, after: &PartitionRecord) -> Held {
    the_epoch_rises(before, after)?;
    every_extent_is_kept(before, after)?;
    only_the_leaders_extent_is_open(after)
}

/// All invariants of a hand-over by the leader of `before`: `after` is to replace it.
///
/// # Errors
/// The first one that does not hold.
pub fn check_hand_over(before: &PartitionRecord, after: &PartitionRecord) -> Held {
    the_epoch_rises(before, after)?;
    only_the_leaders_extent_is_open(after)?;
    a_hand_over_leaves_no_extent(before, after)
}

/// All invariants of forgetting extents whose records are in objects: `after` is to replace
/// `before`.
///
/// # Errors
/// The first one that does not hold.
pub fn check_trim(before: &PartitionRecord, after: &PartitionRecord) -> Held {
    a_trim_changes_no_leader(before, after)?;
    the_leaders_extent_stays(before, after)
}

/// A takeover's epoch is higher than every earlier one. Clients take the leader of the highest
/// epoch; with an epoch that was used before, they would go on sending to the fenced broker, and
/// two brokers would write one epoch's records.
fn the_epoch_rises(before: &PartitionRecord, after: &PartitionRecord) -> Held {
    if after.epoch > before.epoch {
        return Ok(());
    }
    let (earlier, later) = (before.epoch, after.epoch);
    Err(BrokenInvariant::new("the_epoch_rises", format_args!("from {earlier} to {later}")))
}

/// A takeover keeps every extent, with the end that it has. An extent that was lost is a lane whose
/// records nobody reads any more, though they were acknowledged; an end that moved cuts some of
/// them off, or adds some that another reader has not seen.
fn every_extent_is_kept(before: &PartitionRecord, after: &PartitionRecord) -> Held {
    let is_kept = |extent: &&Extent| {
        after.extents.iter().any(|kept| {
            (kept.epoch, kept.incarnation) == (extent.epoch, extent.incarnation)
                && (extent.end.is_none() || kept.end == extent.end)
        })
    };
    match before.extents.iter().find(|extent| !is_kept(extent)) {
        None => Ok(()),
        Some(lost) => Err(BrokenInvariant::new("every_extent_is_kept", format_args!("{lost:?}"))),
    }
}

/// Only the last extent is open, and it is the leader's. An earlier extent without an end is a lane
/// that a broker may still write to, while somebody else leads the partition.
fn only_the_leaders_extent_is_open(after: &PartitionRecord) -> Held {
    const NAME: &str = "only_the_leaders_extent_is_open";
    let Some((last, earlier)) = after.extents.split_last() else {
        return Err(BrokenInvariant::new(NAME, "a leader without an extent"));
    };
    if Some(last.incarnation) != after.leader || last.end.is_some() {
        return Err(BrokenInvariant::new(NAME, format_args!("the last one is {last:?}")));
    }
    match earlier.iter().find(|extent| extent.end.is_none()) {
        None => Ok(()),
        Some(open) => Err(BrokenInvariant::new(NAME, format_args!("{open:?} is open, too"))),
    }
}

/// Only who leads a partition alone hands it over: its own extent is the only one, and the
/// successor's is the only one afterwards. What another extent names would be read by nobody.
fn a_hand_over_leaves_no_extent(before: &PartitionRecord, after: &PartitionRecord) -> Held {
    let own = |record: &PartitionRecord| {
        record.extents.iter().all(|extent| Some(extent.incarnation) == record.leader)
    };
    if own(before) && own(after) && after.manifest >= before.manifest {
        return Ok(());
    }
    let what = format_args!("{before:?} → {after:?}");
    Err(BrokenInvariant::new("a_hand_over_leaves_no_extent", what))
}

/// Forgetting extents changes neither leader nor epoch, and adds no extent: it is no takeover, and
/// whoever leads goes on as before.
fn a_trim_changes_no_leader(before: &PartitionRecord, after: &PartitionRecord) -> Held {
    let same = (after.leader, after.epoch) == (before.leader, before.epoch);
    if same && after.extents.iter().all(|extent| before.extents.contains(extent)) {
        return Ok(());
    }
    Err(BrokenInvariant::new("a_trim_changes_no_leader", format_args!("{before:?} → {after:?}")))
}

/// A trim keeps the extent of the leader's own lane. The lane holds records that are in no object
/// yet, and gets more with every batch. Without the extent a takeover would not look there.
/// [`a_trim_changes_no_leader`] is checked first, so both records name the same leader.
fn the_leaders_extent_stays(before: &PartitionRecord, after: &PartitionRecord) -> Held {
    let own = |record: &PartitionRecord| {
        record.extents.iter().any(|extent| Some(extent.incarnation) == record.leader)
    };
    if own(before) && !own(after) {
        let what = format_args!("{:?} of epoch {}", before.leader, before.epoch);
        return Err(BrokenInvariant::new("the_leaders_extent_stays", what));
    }
    Ok(())
}

/// The end of a lane is set once, when its incarnation has ended, and never changes: readers stop
/// there, and two readers with two ends would see two logs. An incarnation that has ended never
/// lives again.
///
/// # Errors
/// That it does not hold.
pub fn check_lane_end(before: &IncarnationRecord, after: &IncarnationRecord) -> Held {
    const NAME: &str = "check_lane_end";
    if before.sealed_end.is_some() && after.sealed_end != before.sealed_end {
        let (earlier, later) = (before.sealed_end, after.sealed_end);
        return Err(BrokenInvariant::new(NAME, format_args!("{earlier:?} becomes {later:?}")));
    }
    let lives = |record: &IncarnationRecord| record.state == IncarnationState::Live;
    if lives(after) && (!lives(before) || after.sealed_end.is_some()) {
        return Err(BrokenInvariant::new(NAME, format_args!("{after:?} lives again")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{BrokerPlace, SealedEnd};
    use freshet_wire::ids::Incarnation;

    const END: SealedEnd = SealedEnd { file: 2, sequence: 9 };

    fn led() -> PartitionRecord {
        PartitionRecord::new(Some(Incarnation(1)), 3)
    }

    fn taken_over() -> PartitionRecord {
        led().led_by(Incarnation(2), |_| Some(END)).unwrap()
    }

    fn broken(held: Held) -> &'static str {
        held.unwrap_err().invariant
    }

    #[test]
    fn a_hand_over_leaves_nothing_behind() {
        let handed = led().handed_to(Incarnation(2), None).unwrap();
        check_hand_over(&led(), &handed).unwrap();
        // An extent of another lane would be read by nobody.
        let later = taken_over().handed_to(Incarnation(3), None).unwrap();
        assert_eq!(broken(check_hand_over(&taken_over(), &later)), "a_hand_over_leaves_no_extent");
        let same = PartitionRecord { epoch: 3, ..handed };
        assert_eq!(broken(check_hand_over(&led(), &same)), "the_epoch_rises");
    }

    #[test]
    fn a_takeover_and_a_trim_break_none() {
        check_takeover(&led(), &taken_over()).unwrap();
        check_takeover(&PartitionRecord::new(None, 0), &led()).unwrap();
        let trimmed = taken_over().without_extents(|extent| extent.epoch == 3);
        check_trim(&taken_over(), &trimmed).unwrap();
        assert_eq!(trimmed.extents.len(), 1);
    }

    #[test]
    fn each_one_of_a_takeover_can_be_broken() {
        let after = |change: fn(&mut PartitionRecord)| {
            let mut record = taken_over();
            change(&mut record);
            broken(check_takeover(&led(), &record))
        };
        assert_eq!(after(|record| record.epoch = 3), "the_epoch_rises");
        assert_eq!(
            after(|record| record.extents = record.extents.split_off(1)),
            "every_extent_is_kept"
        );
        let open = "only_the_leaders_extent_is_open";
        assert_eq!(after(|record| record.extents[0].end = None), open);
        assert_eq!(after(|record| record.extents[1].end = Some(END)), open);
        assert_eq!(after(|record| record.leader = Some(Incarnation(7))), open);
        let mut moved = taken_over().led_by(Incarnation(3), |_| Some(END)).unwrap();
        moved.extents[0].end = Some(SealedEnd { sequence: 8, ..END });
        assert_eq!(broken(check_takeover(&taken_over(), &moved)), "every_extent_is_kept");
    }

    #[test]
    fn each_one_of_a_trim_can_be_broken() {
        let nothing = taken_over().without_extents(|_| true);
        assert_eq!(broken(check_trim(&taken_over(), &nothing)), "the_leaders_extent_stays");
        let other = PartitionRecord { epoch: 9, ..taken_over() };
        assert_eq!(broken(check_trim(&taken_over(), &other)), "a_trim_changes_no_leader");
    }

    #[test]
    fn an_end_is_set_once() {
        let live = IncarnationRecord {
            state: IncarnationState::Live,
            slot: 0,
            sealed_end: None,
            started_at_ms: 0,
            ended_at_ms: None,
            host: String::new(),
            place: BrokerPlace::default(),
        };
        let fenced = IncarnationRecord { state: IncarnationState::Fenced, ..live.clone() };
        let (state, sealed_end) = (IncarnationState::Sealed, Some(END));
        let sealed = IncarnationRecord { state, sealed_end, ..live.clone() };
        for (before, after) in [(&live, &fenced), (&fenced, &sealed), (&sealed, &sealed)] {
            check_lane_end(before, after).unwrap();
        }
        let sealed_end = Some(SealedEnd { sequence: 10, ..END });
        let moved = IncarnationRecord { sealed_end, ..sealed.clone() };
        for (before, after) in [(&sealed, &moved), (&fenced, &live), (&sealed, &fenced)] {
            assert_eq!(broken(check_lane_end(before, after)), "check_lane_end");
        }
    }
}
