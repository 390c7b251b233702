//! Backup, restore, and the scan of storage that follows a restore.

use super::model::RestoreModel;
use super::state::{NUMBERS, RestoreState, Store};
use super::steps::seal;
use crate::rules::Rule;

pub fn take_backup(state: &mut RestoreState) -> Option<()> {
    if state.backup.is_some() || state.store != Store::Running {
        return None;
    }
    state.backup = Some(state.metadata);
    Some(())
}

pub fn restore(state: &mut RestoreState) -> Option<()> {
    if state.store != Store::Running {
        return None;
    }
    state.metadata = state.backup.take()?;
    state.store = Store::Restored;
    Some(())
}

/// Lists the lanes and fences those found.
pub fn fence_lanes(model: &RestoreModel, state: &mut RestoreState) -> Option<()> {
    if state.store != Store::Restored {
        return None;
    }
    let mut numbers = 0;
    for number in (0u8..).take(NUMBERS) {
        if !state.lane(number).folder {
            continue;
        }
        numbers |= 1 << number;
        let known = state.metadata.is_live(number);
        if known || model.rules.has(Rule::ScanFencesEveryLane) {
            state.lane_mut(number).owner = None;
        }
    }
    state.store = Store::Fenced(numbers);
    Some(())
}

/// Seals the lanes of `numbers`, rebuilds the metadata from them and opens the store.
pub fn rebuild(model: &RestoreModel, state: &mut RestoreState) -> Option<()> {
    let Store::Fenced(numbers) = state.store else {
        return None;
    };
    let mut lanes: Vec<u8> = (0u8..).take(NUMBERS).filter(|n| numbers & (1 << n) != 0).collect();
    for lane in &lanes {
        let owner = state.lane(*lane).owner;
        let end = seal(model, state, *lane);
        state.lane_mut(*lane).owner = owner;
        state.metadata.sealed_end[usize::from(*lane)] = Some(end);
    }
    if model.rules.has(Rule::IncarnationsAboveHighestFound) {
        let above = lanes.iter().max().map_or(0, |highest| highest + 1);
        state.metadata.next_incarnation = state.metadata.next_incarnation.max(above);
    }
    if model.rules.has(Rule::EpochsAboveHighestFound) {
        let highest = lanes.iter().filter_map(|lane| state.lane(*lane).epoch).max();
        state.metadata.epoch = state.metadata.epoch.max(highest.unwrap_or(0));
    }
    if model.rules.has(Rule::ExtentsRebuiltFromLanes) {
        lanes.retain(|lane| state.lane(*lane).epoch.is_some());
        lanes.sort_by_key(|lane| state.lane(*lane).epoch);
        state.metadata.extents = std::array::from_fn(|n| lanes.get(n).copied());
    }
    state.metadata.leader = None;
    state.metadata.live = 0;
    state.store = Store::Rebuilt;
    Some(())
}
