//! What holds for a takeover, before anything is read or led by it.

use freshet_world::invariants::BrokenInvariant;

use super::succession::Succession;

/// All invariants of what a claim succeeds.
///
/// # Errors
/// The first one that does not hold.
pub fn check_succession(succession: &Succession) -> Result<(), BrokenInvariant> {
    every_ended_lane_is_an_earlier_one(succession)?;
    every_unknown_lane_has_an_end(succession)
}

/// A takeover ends the lanes of earlier incarnations alone, never its own and none of a later one.
/// A later one leads already: to end its lane would take away records that it has acknowledged
/// since.
fn every_ended_lane_is_an_earlier_one(succession: &Succession) -> Result<(), BrokenInvariant> {
    match succession.lanes.keys().find(|lane| **lane >= succession.successor) {
        None => Ok(()),
        Some(later) => Err(BrokenInvariant::new(
            "every_ended_lane_is_an_earlier_one",
            format_args!("{} ended lane {later}", succession.successor),
        )),
    }
}

/// A lane that only storage knows was ended like the others, before partitions get extents that
/// name it. Its broker may live behind a metadata store that came back from a backup, and would go
/// on acknowledging what nobody reads.
fn every_unknown_lane_has_an_end(succession: &Succession) -> Result<(), BrokenInvariant> {
    let Succession { lanes, unknown_lanes, .. } = succession;
    match unknown_lanes.iter().find(|lane| !lanes.contains_key(lane)) {
        None => Ok(()),
        Some(open) => Err(BrokenInvariant::new(
            "every_unknown_lane_has_an_end",
            format_args!("lane {open} has none"),
        )),
    }
}
