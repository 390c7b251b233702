//! The model of splitting and sweeping: it holds, and each removal is found.

use super::model::{ACKED_IS_SERVED, ColdModel, LIVE_OBJECTS_EXIST};
use crate::check::{assert_breaks, assert_holds};
use crate::rules::{Rule, Rules};

/// Jobs of a leader, and of its successor while it is a zombie.
const TWO_LEADERS: ColdModel = ColdModel {
    rules: Rules::full(),
    jobs_max: [0, 2, 1],
    sweeps: [false; 3],
    files_max: [0, 2, 1],
};
/// Jobs of a leader whose lane gets more files.
const MANY_FILES: ColdModel =
    ColdModel { jobs_max: [0, 2, 0], files_max: [0, 3, 2], ..TWO_LEADERS };
const ZOMBIE_SWEEPS: ColdModel =
    ColdModel { jobs_max: [0, 1, 1], sweeps: [false, true, false], ..TWO_LEADERS };
const SUCCESSOR_SWEEPS: ColdModel =
    ColdModel { jobs_max: [0, 1, 1], sweeps: [false, false, true], ..TWO_LEADERS };

fn without(rule: Rule, model: ColdModel) -> ColdModel {
    ColdModel { rules: Rules::without(rule), ..model }
}

#[test]
fn the_full_rules_hold_for_two_leaders() {
    assert_holds(TWO_LEADERS);
}

#[test]
fn the_full_rules_hold_for_a_lane_of_many_files() {
    assert_holds(MANY_FILES);
}

#[test]
fn the_full_rules_hold_while_a_zombie_sweeps() {
    assert_holds(ZOMBIE_SWEEPS);
}

#[test]
fn the_full_rules_hold_while_a_successor_sweeps() {
    assert_holds(SUCCESSOR_SWEEPS);
}

#[test]
fn counting_manifests_that_are_not_installed_names_a_deleted_object() {
    assert_breaks(without(Rule::ManifestCountsOnceInstalled, SUCCESSOR_SWEEPS), LIVE_OBJECTS_EXIST);
}

#[test]
fn deleting_before_the_install_record_is_covered_loses_an_acked_record() {
    assert_breaks(without(Rule::DeleteAfterInstallCovered, TWO_LEADERS), ACKED_IS_SERVED);
}

#[test]
fn a_failed_job_that_cleans_up_deletes_a_live_object() {
    assert_breaks(without(Rule::FailedJobDeletesNothing, TWO_LEADERS), LIVE_OBJECTS_EXIST);
}

#[test]
fn a_sweep_without_a_check_after_listing_deletes_a_live_object() {
    assert_breaks(without(Rule::SweepChecksTokenAfterListing, ZOMBIE_SWEEPS), LIVE_OBJECTS_EXIST);
}

#[test]
fn a_sweep_of_the_own_jobs_objects_deletes_a_live_object() {
    assert_breaks(without(Rule::SweepKeepsOwnJobs, ZOMBIE_SWEEPS), LIVE_OBJECTS_EXIST);
}

#[test]
fn trimming_before_an_own_checkpoint_loses_an_acked_record() {
    assert_breaks(without(Rule::TrimAfterOwnCheckpoint, TWO_LEADERS), ACKED_IS_SERVED);
}

#[test]
fn trimming_without_comparison_loses_an_acked_record() {
    assert_breaks(without(Rule::TrimComparesAndSwaps, TWO_LEADERS), ACKED_IS_SERVED);
}

#[test]
fn a_checkpoint_that_misses_an_install_loses_an_acked_record() {
    assert_breaks(without(Rule::CheckpointHoldsEarlierInstalls, MANY_FILES), ACKED_IS_SERVED);
}

#[test]
fn two_manifest_changes_at_a_time_lose_an_acked_record() {
    assert_breaks(without(Rule::OneManifestChangeAtATime, TWO_LEADERS), ACKED_IS_SERVED);
}

#[test]
fn two_manifest_changes_at_a_time_delete_a_live_object() {
    assert_breaks(without(Rule::OneManifestChangeAtATime, TWO_LEADERS), LIVE_OBJECTS_EXIST);
}

#[test]
fn changing_the_manifest_from_which_the_work_began_loses_an_acked_record() {
    assert_breaks(without(Rule::EditWhatCounts, TWO_LEADERS), ACKED_IS_SERVED);
}

#[test]
fn changing_the_manifest_from_which_the_work_began_deletes_a_live_object() {
    assert_breaks(without(Rule::EditWhatCounts, TWO_LEADERS), LIVE_OBJECTS_EXIST);
}

#[test]
fn deleting_the_last_file_loses_an_acked_record() {
    assert_breaks(without(Rule::OnlyClosedFilesGo, TWO_LEADERS), ACKED_IS_SERVED);
}

/// A covered install record is below every later seal, so what it replaced stays replaced, whoever
/// leads. The check matters once a partition can move while its old leader's token stays good.
#[test]
fn a_second_check_before_deleting_is_implied_by_the_covered_install_record() {
    assert_holds(without(Rule::CheckBeforeDelete, TWO_LEADERS));
}

/// The order keeps an extent from naming files that are gone; no record depends on it.
#[test]
fn deleting_dead_lanes_before_trimming_loses_nothing() {
    assert_holds(without(Rule::DeleteAfterTrim, TWO_LEADERS));
}
