//! The model of the lane: it holds, and each removal is found.

use super::model::{
    ACKED_IS_KEPT, COVERED_BLOCKS_COUNT, FRESH_READS_ARE_FRESH, LaneModel, Loss, NO_DUPLICATE,
    ONE_RECORD_PER_OFFSET,
};
use crate::check::{assert_breaks, assert_holds};
use crate::rules::{Rule, Rules};

const TWO_TAKEOVERS: LaneModel = LaneModel {
    rules: Rules::full(),
    loss: Loss::Unsynced,
    successors: 2,
    last_epoch: 2,
    write_depth: 1,
    last_leader_reads_only: false,
};
const DEEPER_WRITES: LaneModel = LaneModel { write_depth: 2, ..TWO_TAKEOVERS };
const ONE_TAKEOVER: LaneModel = LaneModel { successors: 1, last_epoch: 1, ..TWO_TAKEOVERS };

fn without(rule: Rule) -> LaneModel {
    LaneModel { rules: Rules::without(rule), ..TWO_TAKEOVERS }
}

#[test]
fn the_full_rules_hold_over_two_takeovers() {
    assert_holds(TWO_TAKEOVERS);
}

#[test]
fn the_full_rules_hold_at_write_depth_two() {
    assert_holds(DEEPER_WRITES);
}

#[test]
fn the_full_rules_hold_when_a_covered_block_is_damaged() {
    assert_holds(LaneModel { loss: Loss::DamageOfCovered, write_depth: 2, ..ONE_TAKEOVER });
}

#[test]
fn removing_the_token_check_before_an_ack_loses_an_acked_record() {
    assert_breaks(without(Rule::TokenCheckBeforeAck), ACKED_IS_KEPT);
}

#[test]
fn checking_the_token_before_the_sync_loses_an_acked_record() {
    assert_breaks(without(Rule::TokenCheckAfterSync), ACKED_IS_KEPT);
}

#[test]
fn reading_the_token_from_a_cache_loses_an_acked_record() {
    assert_breaks(without(Rule::TokenReadPastCache), ACKED_IS_KEPT);
}

#[test]
fn trusting_an_absent_fence_marker_loses_an_acked_record() {
    assert_breaks(without(Rule::TokenPresentNotMarkerAbsent), ACKED_IS_KEPT);
}

#[test]
fn acking_with_an_unreadable_token_loses_an_acked_record() {
    assert_breaks(without(Rule::UnreadableTokenIsNotMine), ACKED_IS_KEPT);
}

#[test]
fn fencing_by_a_new_file_loses_an_acked_record() {
    assert_breaks(without(Rule::FenceInPlace), ACKED_IS_KEPT);
}

#[test]
fn relying_on_an_unsynced_fence_loses_an_acked_record() {
    assert_breaks(without(Rule::FenceSyncedBeforeTailRead), ACKED_IS_KEPT);
}

#[test]
fn reading_the_tail_before_the_fence_loses_an_acked_record() {
    assert_breaks(without(Rule::TailReadAfterFence), ACKED_IS_KEPT);
}

#[test]
fn reading_the_tail_from_a_cache_loses_an_acked_record() {
    assert_breaks(without(Rule::TailReadPastCache), ACKED_IS_KEPT);
}

#[test]
fn a_seal_without_the_uncovered_blocks_loses_an_acked_record() {
    assert_breaks(without(Rule::SealHoldsUncoveredBlocks), ACKED_IS_KEPT);
}

#[test]
fn overwriting_a_seal_loses_an_acked_record() {
    assert_breaks(without(Rule::SealLinkedExclusively), ACKED_IS_KEPT);
}

#[test]
fn relying_on_an_unsynced_seal_loses_an_acked_record() {
    assert_breaks(without(Rule::SealSyncedBeforeSealedEnd), ACKED_IS_KEPT);
}

#[test]
fn setting_another_end_than_the_seals_loses_an_acked_record() {
    assert_breaks(without(Rule::SealedEndIsTheLinkedSeals), ACKED_IS_KEPT);
}

#[test]
fn reassigning_before_sealing_shows_two_records_at_one_offset() {
    assert_breaks(without(Rule::SealedBeforeReassignment), ONE_RECORD_PER_OFFSET);
}

#[test]
fn reading_past_sealed_end_shows_two_records_at_one_offset() {
    assert_breaks(without(Rule::ReadersStopAtSealedEnd), ONE_RECORD_PER_OFFSET);
}

#[test]
fn a_takeover_without_comparison_loses_an_acked_record() {
    assert_breaks(without(Rule::TakeoverComparesAndSwaps), ACKED_IS_KEPT);
}

#[test]
fn appending_the_extent_later_loses_an_acked_record() {
    assert_breaks(without(Rule::ExtentAppendedByTakeover), ACKED_IS_KEPT);
}

#[test]
fn loading_the_extents_of_a_later_takeover_acks_an_unsynced_record() {
    assert_breaks(without(Rule::LoadsExtentsOfOwnTakeover), FRESH_READS_ARE_FRESH);
}

#[test]
fn serving_past_the_fence_checked_end_shows_two_records_at_one_offset() {
    assert_breaks(without(Rule::FetchBelowFenceCheckedEnd), ONE_RECORD_PER_OFFSET);
}

#[test]
fn answering_a_fresh_read_without_a_check_misses_an_acked_record() {
    assert_breaks(without(Rule::FreshReadChecksToken), FRESH_READS_ARE_FRESH);
}

#[test]
fn answering_a_fresh_read_with_an_earlier_check_misses_an_acked_record() {
    assert_breaks(without(Rule::FreshReadCheckBegunAfterArrival), FRESH_READS_ARE_FRESH);
}

#[test]
fn acking_a_duplicate_at_once_loses_an_acked_record() {
    assert_breaks(without(Rule::DuplicateWaitsForOriginal), ACKED_IS_KEPT);
}

#[test]
fn a_successor_without_producer_state_appends_a_duplicate() {
    assert_breaks(without(Rule::ProducerStateLoaded), NO_DUPLICATE);
}

#[test]
fn retrying_a_failed_sync_loses_an_acked_record() {
    assert_breaks(without(Rule::FailedSyncStops), ACKED_IS_KEPT);
}

#[test]
fn writing_close_before_the_last_ack_loses_an_acked_record() {
    assert_breaks(without(Rule::CloseAfterLastAck), ACKED_IS_KEPT);
}

#[test]
fn answering_a_fresh_read_after_close_misses_an_acked_record() {
    assert_breaks(without(Rule::NoFreshReadAfterClose), FRESH_READS_ARE_FRESH);
}

#[test]
fn taking_a_gap_for_the_end_loses_an_acked_record() {
    let rules = Rules::without(Rule::GapIsNotAnEnd);
    let model = LaneModel { rules, loss: Loss::DamageOfCovered, ..ONE_TAKEOVER };
    assert_breaks(model, ACKED_IS_KEPT);
}

#[test]
fn reading_past_a_gap_in_a_sealed_lane_loses_an_acked_record() {
    let rules = Rules::without(Rule::NothingIsReadPastAGap);
    let model = LaneModel { rules, loss: Loss::DamageOfCovered, ..ONE_TAKEOVER };
    assert_breaks(model, ACKED_IS_KEPT);
}

#[test]
fn acking_out_of_order_at_write_depth_two_loses_an_acked_record() {
    let rules = Rules::without(Rule::AcksInBlockOrder);
    assert_breaks(LaneModel { rules, ..DEEPER_WRITES }, ACKED_IS_KEPT);
}

#[test]
fn durable_seq_without_the_token_check_covers_a_block_outside_the_log() {
    let rules = Rules::without(Rule::DurableSeqIsFenceChecked);
    assert_breaks(LaneModel { rules, ..DEEPER_WRITES }, COVERED_BLOCKS_COUNT);
}

/// The exclusive SEAL alone decides the end, so setting `sealed_end` twice changes nothing.
#[test]
fn setting_sealed_end_once_is_implied_by_the_exclusive_seal() {
    assert_holds(without(Rule::SealedEndSetOnce));
}

#[test]
fn setting_sealed_end_twice_without_the_exclusive_seal_loses_an_acked_record() {
    let rules = Rules::without(Rule::SealedEndSetOnce).and_without(Rule::SealedEndIsTheLinkedSeals);
    assert_breaks(LaneModel { rules, ..TWO_TAKEOVERS }, ACKED_IS_KEPT);
}

/// A limit, not a rule: nothing distinguishes a damaged last block from a write that never landed.
#[test]
fn damage_of_the_last_block_is_beyond_the_rules() {
    let model = LaneModel { loss: Loss::DamageOfAny, ..ONE_TAKEOVER };
    assert_breaks(model, ACKED_IS_KEPT);
}
