//! The model of several brokers: it holds, and each removal is found.

use super::model::{ACKED_IS_SERVED, ACKED_ONCE, ClusterModel, LIVE_OBJECTS_EXIST};
use crate::check::{assert_breaks, assert_holds};
use crate::rules::{Rule, Rules};

/// A partition moves there and back, while any of two brokers may be fenced.
const MOVES: ClusterModel = ClusterModel {
    rules: Rules::full(),
    partitions: 1,
    writes_max: [2, 1, 0],
    jobs_max: [1, 0, 0],
    fenced: [true, true, false],
    last_epoch: 2,
    moves: true,
    deletes_entries: true,
    sweeps: false,
};
/// Two brokers take the partitions of a third, which share its lane and its object.
const TAKEOVERS: ClusterModel = ClusterModel {
    partitions: 2,
    writes_max: [2, 0, 0],
    jobs_max: [1, 1, 0],
    fenced: [true, false, false],
    last_epoch: 1,
    moves: false,
    deletes_entries: false,
    ..MOVES
};
/// A partition is compacted out of an object that it shares, and may be taken over.
const SHARED_OBJECTS: ClusterModel = ClusterModel { jobs_max: [2, 0, 0], ..TAKEOVERS };
/// A controller, however slow, sweeps while a partition moves there and back.
const SWEEPS: ClusterModel = ClusterModel {
    writes_max: [1, 0, 0],
    jobs_max: [2, 0, 0],
    fenced: [true, false, false],
    deletes_entries: false,
    sweeps: true,
    ..MOVES
};
/// As before, with a job of a successor and none of there and back.
const SUCCESSORS_JOBS: ClusterModel =
    ClusterModel { writes_max: [1, 1, 0], jobs_max: [1, 1, 0], last_epoch: 1, ..SWEEPS };

/// A successor trims what its predecessor left, and is taken over itself.
const TRIMS: ClusterModel =
    ClusterModel { writes_max: [1, 1, 0], jobs_max: [0, 1, 1], moves: false, ..MOVES };

fn without(rule: Rule, model: ClusterModel) -> ClusterModel {
    ClusterModel { rules: Rules::without(rule), ..model }
}

#[test]
fn the_full_rules_hold_while_a_partition_moves() {
    assert_holds(MOVES);
}

#[test]
fn the_full_rules_hold_while_two_take_over() {
    assert_holds(TAKEOVERS);
}

#[test]
fn the_full_rules_hold_for_objects_that_partitions_share() {
    assert_holds(SHARED_OBJECTS);
}

#[test]
fn the_full_rules_hold_while_a_controller_sweeps() {
    assert_holds(SWEEPS);
}

#[test]
fn the_full_rules_hold_while_a_successors_job_is_swept_around() {
    assert_holds(SUCCESSORS_JOBS);
}

#[test]
fn the_full_rules_hold_while_successors_trim() {
    assert_holds(TRIMS);
}

#[test]
fn a_takeover_without_comparison_acks_two_records_at_one_offset() {
    assert_breaks(without(Rule::TakeoverComparesAndSwaps, MOVES), ACKED_ONCE);
}

#[test]
fn appending_after_a_move_loses_an_acked_record() {
    assert_breaks(without(Rule::MoveStopsAppendsFirst, MOVES), ACKED_IS_SERVED);
}

#[test]
fn moving_before_the_flush_loses_an_acked_record() {
    assert_breaks(without(Rule::MoveFlushesFirst, MOVES), ACKED_IS_SERVED);
}

#[test]
fn deleting_entries_of_a_partition_that_moved_loses_an_acked_record() {
    assert_breaks(without(Rule::MovedPartitionsKeepFiles, MOVES), ACKED_IS_SERVED);
}

#[test]
fn deleting_a_dead_lane_with_one_partitions_extent_loses_anothers_record() {
    assert_breaks(without(Rule::DeadLaneGoesWithItsLastExtent, TAKEOVERS), ACKED_IS_SERVED);
}

#[test]
fn deleting_a_shared_object_by_a_job_deletes_anothers() {
    assert_breaks(without(Rule::SharedObjectsGoBySweep, SHARED_OBJECTS), LIVE_OBJECTS_EXIST);
}

#[test]
fn a_sweep_that_does_not_compare_deletes_a_live_object() {
    assert_breaks(without(Rule::SweepComparesLeaders, SUCCESSORS_JOBS), LIVE_OBJECTS_EXIST);
}

#[test]
fn a_sweep_of_what_is_being_made_deletes_a_live_object() {
    assert_breaks(without(Rule::SweepKeepsWhatIsMade, SWEEPS), LIVE_OBJECTS_EXIST);
}

#[test]
fn a_sweep_of_what_an_uncovered_manifest_replaces_deletes_a_live_object() {
    assert_breaks(without(Rule::SweepKeepsCoveredManifests, SWEEPS), LIVE_OBJECTS_EXIST);
}

/// A job that goes on after its partition moved away and back publishes what was swept meanwhile.
#[test]
fn a_job_that_is_not_drained_names_a_deleted_object() {
    assert_breaks(without(Rule::MoveDrainsJobs, SWEEPS), LIVE_OBJECTS_EXIST);
}

/// Who trims takes the extents of earlier epochs alone, which no later leader needs.
#[test]
fn trimming_by_epoch_needs_no_comparison() {
    assert_holds(without(Rule::TrimComparesAndSwaps, TRIMS));
}

/// After the last append and the flush, nothing of the epoch follows.
#[test]
fn the_end_of_an_extent_is_implied_by_the_flush() {
    assert_holds(without(Rule::ExtentEndsWithMove, MOVES));
}

/// Extents are read in the order of their epochs, so what a later one says counts.
#[test]
fn filtering_by_epoch_is_implied_by_the_order_of_extents() {
    assert_holds(without(Rule::ReadersFilterByEpoch, MOVES));
}

/// A drained job has nothing left to delete, and one of a fenced broker only what is replaced.
#[test]
fn a_second_check_before_deleting_is_implied_by_drained_jobs() {
    assert_holds(without(Rule::CheckBeforeDelete, SWEEPS));
}
