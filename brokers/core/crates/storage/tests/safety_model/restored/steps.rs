//! The steps of a process: claim an incarnation, take over, lead.

use super::model::RestoreModel;
use super::state::{Phase, RECORDS, RestoreState, Store};
use crate::rules::Rule;

/// Whether transactions reach the metadata store.
fn is_open(model: &RestoreModel, state: &RestoreState) -> bool {
    let rebuilt = matches!(state.store, Store::Running | Store::Rebuilt);
    rebuilt || model.rules.lacks(Rule::RestoredStoreOpensAfterScan)
}

/// Takes the next number from the metadata store.
pub fn claim(model: &RestoreModel, state: &mut RestoreState, process: u8) -> Option<()> {
    // The two that start later are alike, so the second starts only after the first.
    let alike = process == 2 && state.process(1).phase == Phase::Started;
    let number = state.metadata.next_incarnation;
    let exhausted = usize::from(number) == state.lanes.len();
    if alike || exhausted || !is_open(model, state) {
        return None;
    }
    state.metadata.next_incarnation += 1;
    state.metadata.live |= 1 << number;
    state.processes[usize::from(process)].incarnation = number;
    state.set_phase(process, Phase::Claimed);
    Some(())
}

/// Confirms the number by making the lane's folder; if it is there, the number is taken.
pub fn make_folder(model: &RestoreModel, state: &mut RestoreState, process: u8) {
    let number = state.process(process).incarnation;
    let taken = state.lane(number).folder;
    if taken && model.rules.has(Rule::IncarnationConfirmedByMkdir) {
        state.set_phase(process, Phase::Started);
        return;
    }
    let lane = state.lane_mut(number);
    (lane.folder, lane.owner) = (true, Some(process));
    let maker = state.made_by[usize::from(number)].get_or_insert(process);
    state.incarnation_reused |= *maker != process;
    state.set_phase(process, Phase::Created);
}

/// A cleaner fences a lane without records and removes its folder (only with that rule removed).
pub fn remove_folder(state: &mut RestoreState, number: u8) -> Option<()> {
    let led = state.metadata.leader == Some(number);
    let extent = state.metadata.extents.contains(&Some(number));
    let lane = state.lane_mut(number);
    if led || extent || !lane.folder || lane.visible > 0 {
        return None;
    }
    (lane.folder, lane.owner) = (false, None);
    Some(())
}

/// Reads the partition's record, fences and seals every lane of its extents.
pub fn prepare(model: &RestoreModel, state: &mut RestoreState, process: u8) -> Option<()> {
    if !may_transact(model, state, process) {
        return None;
    }
    let unsealed = |lane: &u8| state.metadata.sealed_end[usize::from(*lane)].is_none();
    let lanes: Vec<u8> = state.metadata.extents.into_iter().flatten().filter(unsealed).collect();
    for lane in lanes {
        let end = seal(model, state, lane);
        state.metadata.sealed_end[usize::from(lane)] = Some(end);
    }
    state.set_phase(process, Phase::Prepared(state.metadata.epoch));
    Some(())
}

/// Fences a lane, and links a SEAL unless one is there. Returns the end that counts.
pub fn seal(model: &RestoreModel, state: &mut RestoreState, lane: u8) -> u8 {
    let honoured = model.rules.has(Rule::SealFilesHonoured);
    let always = model.rules.has(Rule::SealAlwaysWritten);
    let lane = state.lane_mut(lane);
    lane.owner = None;
    let end = lane.seal.filter(|_| honoured).unwrap_or(lane.visible);
    if always || lane.visible > lane.covered {
        lane.seal = Some(end);
    }
    end
}

fn may_transact(model: &RestoreModel, state: &RestoreState, process: u8) -> bool {
    let live = state.metadata.is_live(state.process(process).incarnation);
    is_open(model, state) && (live || model.rules.lacks(Rule::TransactionsCompareLive))
}

/// The compare-and-swap that makes the process leader; one that comes too late prepares again.
pub fn commit(
    model: &RestoreModel,
    state: &mut RestoreState,
    process: u8,
    expected: u8,
) -> Option<()> {
    if !may_transact(model, state, process) {
        return None;
    }
    if state.metadata.epoch != expected {
        state.set_phase(process, Phase::Created);
        return Some(());
    }
    let number = state.process(process).incarnation;
    let epoch = expected + 1;
    if usize::from(epoch) == state.epoch_used_by.len() {
        return None;
    }
    state.lane_mut(number).base = state.log_end();
    state.metadata.epoch = epoch;
    state.metadata.leader = Some(number);
    state.metadata.append_extent(number);
    state.set_phase(process, Phase::Leader(epoch));
    Some(())
}

/// Covers a checkpoint, which names the epoch, in the lane.
pub fn checkpoint(state: &mut RestoreState, process: u8, epoch: u8) -> Option<()> {
    let number = state.process(process).incarnation;
    let lane = state.lane_mut(number);
    if lane.owner != Some(process) || lane.epoch.is_some() {
        return None;
    }
    lane.epoch = Some(epoch);
    state.use_epoch(epoch, number);
    Some(())
}

fn may_use_epoch(model: &RestoreModel, state: &RestoreState, number: u8) -> bool {
    state.lane(number).epoch.is_some() || model.rules.lacks(Rule::EpochInLaneFirst)
}

/// Writes a record, syncs it, checks the token, acks it and all before it.
pub fn append(
    model: &RestoreModel,
    state: &mut RestoreState,
    process: u8,
    epoch: u8,
) -> Option<()> {
    let number = state.process(process).incarnation;
    let mut lane = *state.lane(number);
    let own = lane.owner == Some(process) && may_use_epoch(model, state, number);
    if !own || lane.in_flight || lane.visible == RECORDS {
        return None;
    }
    lane.epoch.get_or_insert(epoch);
    lane.visible += 1;
    for place in lane.covered..lane.visible {
        let offset = usize::from(lane.base + place);
        state.acked.get_mut(offset)?.get_or_insert((number, place));
    }
    lane.covered = lane.visible;
    *state.lane_mut(number) = lane;
    state.use_epoch(epoch, number);
    Some(())
}

/// Issues the write of a record that is not acked; a dead or paused process's may land later.
pub fn write(model: &RestoreModel, state: &mut RestoreState, process: u8) -> Option<()> {
    let number = state.process(process).incarnation;
    let ready = may_use_epoch(model, state, number);
    let lane = state.lane_mut(number);
    let free = !lane.in_flight && lane.visible < RECORDS && lane.visible == lane.covered;
    if !ready || !free || lane.owner != Some(process) {
        return None;
    }
    lane.in_flight = true;
    Some(())
}

pub fn land(state: &mut RestoreState, number: u8) -> Option<()> {
    let lane = state.lane_mut(number);
    if !lane.in_flight {
        return None;
    }
    lane.in_flight = false;
    lane.visible += 1;
    Some(())
}

/// Puts a manifest, whose name holds the epoch. The object store knows no fence, so a zombie's
/// put succeeds as well.
pub fn put_manifest(
    model: &RestoreModel,
    state: &mut RestoreState,
    process: u8,
    epoch: u8,
) -> Option<()> {
    let number = state.process(process).incarnation;
    if !may_use_epoch(model, state, number) {
        return None;
    }
    state.use_epoch(epoch, number);
    Some(())
}
