//! The model of restored metadata: it holds, and each removal is found.

use super::model::{
    ACKED_IS_SERVED, EPOCHS_ARE_UNIQUE, INCARNATIONS_ARE_UNIQUE, ONE_RECORD_PER_OFFSET,
    RestoreModel,
};
use crate::check::{assert_breaks, assert_holds};
use crate::rules::{Rule, Rules};

fn without(rule: Rule) -> RestoreModel {
    RestoreModel { rules: Rules::without(rule) }
}

#[test]
fn the_full_rules_hold_over_a_restore() {
    assert_holds(RestoreModel { rules: Rules::full() });
}

#[test]
fn claiming_without_mkdir_reuses_an_incarnation() {
    assert_breaks(without(Rule::IncarnationConfirmedByMkdir), INCARNATIONS_ARE_UNIQUE);
}

#[test]
fn removing_a_lane_folder_reuses_an_incarnation() {
    assert_breaks(without(Rule::LaneFolderStays), INCARNATIONS_ARE_UNIQUE);
}

#[test]
fn opening_a_restored_store_before_the_scan_loses_an_acked_record() {
    assert_breaks(without(Rule::RestoredStoreOpensAfterScan), ACKED_IS_SERVED);
}

#[test]
fn opening_a_restored_store_before_the_scan_reuses_an_epoch() {
    assert_breaks(without(Rule::RestoredStoreOpensAfterScan), EPOCHS_ARE_UNIQUE);
}

#[test]
fn a_scan_that_fences_only_known_lanes_loses_an_acked_record() {
    assert_breaks(without(Rule::ScanFencesEveryLane), ACKED_IS_SERVED);
}

#[test]
fn epochs_from_the_backup_are_reused() {
    assert_breaks(without(Rule::EpochsAboveHighestFound), EPOCHS_ARE_UNIQUE);
}

#[test]
fn an_epoch_that_is_in_no_lane_is_reused() {
    assert_breaks(without(Rule::EpochInLaneFirst), EPOCHS_ARE_UNIQUE);
}

#[test]
fn extents_from_the_backup_lose_an_acked_record() {
    assert_breaks(without(Rule::ExtentsRebuiltFromLanes), ACKED_IS_SERVED);
}

#[test]
fn sealing_a_lane_again_puts_two_records_at_one_offset() {
    assert_breaks(without(Rule::SealFilesHonoured), ONE_RECORD_PER_OFFSET);
}

#[test]
fn sealing_without_a_seal_file_puts_two_records_at_one_offset() {
    assert_breaks(without(Rule::SealAlwaysWritten), ONE_RECORD_PER_OFFSET);
}

/// `mkdir` finds the taken numbers one by one; starting above them only saves the attempts.
#[test]
fn starting_above_the_highest_incarnation_is_implied_by_mkdir() {
    assert_holds(without(Rule::IncarnationsAboveHighestFound));
}

/// An incarnation that is not live cannot ack, for its token is gone, and its transactions on the
/// partition fail by the epoch. The rule keeps such a broker from leading without effect.
#[test]
fn comparing_that_an_incarnation_is_live_is_implied_by_token_and_epoch() {
    assert_holds(without(Rule::TransactionsCompareLive));
}
