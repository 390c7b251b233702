//! The restore model: its actions and what must hold in every state.

use stateright::{Model, Property};

use super::state::{NUMBERS, PROCESSES, Phase, RestoreState, Store};
use super::{scan, steps};
use crate::rules::{Rule, Rules};

pub const INCARNATIONS_ARE_UNIQUE: &str = "no two processes have one incarnation";
pub const EPOCHS_ARE_UNIQUE: &str = "no two incarnations write under one epoch";
pub const ACKED_IS_SERVED: &str = "a successor would serve every acked record at its offset";
pub const ONE_RECORD_PER_OFFSET: &str = "no two lanes hold a record of one offset";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Claim { process: u8 },
    MakeFolder { process: u8 },
    RemoveFolder { number: u8 },
    Prepare { process: u8 },
    Commit { process: u8, expected: u8 },
    Checkpoint { process: u8, epoch: u8 },
    Append { process: u8, epoch: u8 },
    Write { process: u8 },
    Land { number: u8 },
    PutManifest { process: u8, epoch: u8 },
    TakeBackup,
    Restore,
    FenceLanes,
    Rebuild,
}

/// Processes that claim incarnations and take over, and a metadata store that is restored once.
#[derive(Clone, Copy, Debug)]
pub struct RestoreModel {
    pub rules: Rules,
}

impl RestoreModel {
    fn process_actions(process: u8, phase: Phase, actions: &mut Vec<Action>) {
        match phase {
            Phase::Started => actions.push(Action::Claim { process }),
            Phase::Claimed => actions.push(Action::MakeFolder { process }),
            Phase::Created => actions.push(Action::Prepare { process }),
            Phase::Prepared(expected) => actions.push(Action::Commit { process, expected }),
            Phase::Leader(epoch) => actions.extend([
                Action::Checkpoint { process, epoch },
                Action::Append { process, epoch },
                Action::Write { process },
                Action::PutManifest { process, epoch },
            ]),
        }
    }
}

impl Model for RestoreModel {
    type State = RestoreState;
    type Action = Action;

    fn init_states(&self) -> Vec<RestoreState> {
        vec![RestoreState::initial()]
    }

    fn actions(&self, state: &RestoreState, actions: &mut Vec<Action>) {
        for process in (0u8..).take(PROCESSES) {
            Self::process_actions(process, state.process(process).phase, actions);
        }
        for number in (0u8..).take(NUMBERS) {
            actions.push(Action::Land { number });
            if self.rules.lacks(Rule::LaneFolderStays) {
                actions.push(Action::RemoveFolder { number });
            }
        }
        let cell = [Action::TakeBackup, Action::Restore, Action::FenceLanes, Action::Rebuild];
        actions.extend(cell);
    }

    fn next_state(&self, last: &RestoreState, action: Action) -> Option<RestoreState> {
        let mut state = *last;
        let next = &mut state;
        let taken = match action {
            Action::Claim { process } => steps::claim(self, next, process),
            Action::MakeFolder { process } => {
                steps::make_folder(self, next, process);
                Some(())
            }
            Action::RemoveFolder { number } => steps::remove_folder(next, number),
            Action::Prepare { process } => steps::prepare(self, next, process),
            Action::Commit { process, expected } => steps::commit(self, next, process, expected),
            Action::Checkpoint { process, epoch } => steps::checkpoint(next, process, epoch),
            Action::Append { process, epoch } => steps::append(self, next, process, epoch),
            Action::Write { process } => steps::write(self, next, process),
            Action::Land { number } => steps::land(next, number),
            Action::PutManifest { process, epoch } => {
                steps::put_manifest(self, next, process, epoch)
            }
            Action::TakeBackup => scan::take_backup(next),
            Action::Restore => scan::restore(next),
            Action::FenceLanes => scan::fence_lanes(self, next),
            Action::Rebuild => scan::rebuild(self, next),
        };
        taken.filter(|()| state != *last).map(|()| state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(INCARNATIONS_ARE_UNIQUE, incarnations_are_unique),
            Property::always(EPOCHS_ARE_UNIQUE, epochs_are_unique),
            Property::always(ACKED_IS_SERVED, acked_is_served),
            Property::always(ONE_RECORD_PER_OFFSET, one_record_per_offset),
            Property::sometimes("a successor acks before the restore", acks_before),
            Property::sometimes("a successor acks after the restore", acks_after),
            Property::sometimes("a number is taken", number_taken),
            Property::sometimes("a late record lies beyond a SEAL", late_record),
        ]
    }
}

/// The restored store counts once it is rebuilt.
fn settled(model: &RestoreModel, state: &RestoreState) -> bool {
    let open = matches!(state.store, Store::Running | Store::Rebuilt);
    open || model.rules.lacks(Rule::RestoredStoreOpensAfterScan)
}

fn incarnations_are_unique(_: &RestoreModel, state: &RestoreState) -> bool {
    !state.incarnation_reused
}

fn epochs_are_unique(_: &RestoreModel, state: &RestoreState) -> bool {
    !state.epoch_reused
}

fn acked_is_served(model: &RestoreModel, state: &RestoreState) -> bool {
    let Some(served) = state.served().filter(|_| settled(model, state)) else {
        return true;
    };
    let mut offsets = state.acked.iter().zip(served);
    offsets.all(|(acked, served)| acked.is_none() || *acked == served)
}

fn one_record_per_offset(model: &RestoreModel, state: &RestoreState) -> bool {
    !settled(model, state) || state.served().is_some()
}

fn acks_before(_: &RestoreModel, state: &RestoreState) -> bool {
    let acked = |number: &u8| state.lane(*number).covered > 0;
    state.store == Store::Restored && (0u8..).take(NUMBERS).skip(1).any(|number| acked(&number))
}

fn acks_after(_: &RestoreModel, state: &RestoreState) -> bool {
    let leader = state.metadata.leader.filter(|_| state.store == Store::Rebuilt);
    leader.is_some_and(|number| state.lane(number).covered > 0)
}

fn number_taken(_: &RestoreModel, state: &RestoreState) -> bool {
    let number = state.process(2).incarnation;
    state.process(2).phase == Phase::Started && number > 0
}

fn late_record(_: &RestoreModel, state: &RestoreState) -> bool {
    state.lanes.iter().any(|lane| lane.seal.is_some_and(|end| end < lane.visible))
}
