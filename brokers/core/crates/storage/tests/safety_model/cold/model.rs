//! The cold model: its actions and what must hold in every state.

use stateright::{Model, Property};

use super::jobs;
use super::recover::Truth;
use super::state::{ColdState, DeadLanes, ENTRIES, Entry, Kind, LANES, Step, Sweep, bit};
use crate::rules::{Rule, Rules};

pub const ACKED_IS_SERVED: &str = "a successor would serve every acked record";
pub const LIVE_OBJECTS_EXIST: &str = "the manifest in force and its objects exist";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The leader writes a record.
    Write {
        broker: u8,
    },
    /// The leader begins a lane file.
    Roll {
        broker: u8,
    },
    /// The last write is synced and the token checked.
    Cover {
        broker: u8,
    },
    /// Broker 2 fences and seals lane 1; `more` entries above the fence-checked end are in.
    TakeOver {
        more: u8,
    },
    Start {
        broker: u8,
        kind: Kind,
    },
    Advance {
        broker: u8,
        slot: u8,
    },
    Delete {
        broker: u8,
        slot: u8,
    },
    CleanUp {
        broker: u8,
        slot: u8,
    },
    Trim {
        broker: u8,
    },
    DeleteDeadLanes {
        broker: u8,
    },
    Sweep {
        broker: u8,
    },
}

/// A leader with its jobs, and its successor with its own, over one partition.
#[derive(Clone, Copy, Debug)]
pub struct ColdModel {
    pub rules: Rules,
    /// Jobs that each broker may begin.
    pub jobs_max: [u8; LANES],
    /// Whether each broker may sweep.
    pub sweeps: [bool; LANES],
    /// Files that each broker's lane may have.
    pub files_max: [u8; LANES],
}

impl ColdModel {
    /// Writes an entry to the broker's lane, unless one is in flight, and returns its place. A
    /// fenced broker's writes lie beyond the seal, so they are left out.
    pub fn append(state: &mut ColdState, broker: u8, entry: Entry) -> Option<u8> {
        let begins_file = matches!(entry, Entry::Checkpoint(_));
        let lane = state.lane_mut(broker);
        let written = lane.written();
        let free = lane.sealed.is_none() && lane.covered == written;
        if !free || usize::from(written) == ENTRIES || written == 0 && !begins_file {
            return None;
        }
        lane.entries[usize::from(written)] = Some(entry);
        Some(written)
    }

    fn write(state: &mut ColdState, broker: u8) -> Option<()> {
        let lane = state.lane(broker);
        let is_data = |(_, entry): (u8, Entry)| matches!(entry, Entry::Data(_));
        if lane.entries_below(lane.written()).any(is_data) {
            return None;
        }
        let offset = Truth::read(state, 0, false).log_end;
        Self::append(state, broker, Entry::Data(offset)).map(|_| ())
    }

    fn roll(&self, state: &mut ColdState, broker: u8) -> Option<()> {
        let lane = state.lane(broker);
        if lane.files(lane.written()) == self.files_max[usize::from(broker)] {
            return None;
        }
        let memory = state.broker(broker);
        let mut manifest = memory.manifest;
        if self.rules.has(Rule::CheckpointHoldsEarlierInstalls) {
            for (_, entry) in lane.entries_below(lane.covered) {
                match entry {
                    Entry::Install(name) => manifest = Some(name),
                    Entry::Checkpoint(name) => manifest = name,
                    Entry::Data(_) => {}
                }
            }
        }
        Self::append(state, broker, Entry::Checkpoint(manifest)).map(|_| ())
    }

    fn cover(state: &mut ColdState, broker: u8) -> Option<()> {
        let lane = state.lane_mut(broker);
        if lane.sealed.is_some() || lane.covered == lane.written() {
            return None;
        }
        let entry = lane.entries[usize::from(lane.covered)];
        lane.covered += 1;
        if let Some(Entry::Data(offset)) = entry {
            state.acked |= bit(offset);
        }
        Some(())
    }

    fn take_over(&self, state: &mut ColdState, more: u8) -> Option<()> {
        let lane = state.lane(1);
        if state.leader == 2 || lane.covered + more > lane.written() {
            return None;
        }
        let by_listing = self.rules.lacks(Rule::ManifestCountsOnceInstalled);
        let truth = Truth::read(state, more, by_listing);
        let lane = state.lane_mut(1);
        lane.sealed = Some(lane.covered + more);
        state.leader = 2;
        state.extents |= bit(2);
        let memory = state.broker_mut(2);
        (memory.leads, memory.manifest) = (true, truth.manifest);
        Some(())
    }

    /// What a successor could find, for each end that the leader's lane could be sealed at.
    fn truths(self, state: &ColdState) -> impl Iterator<Item = Truth> {
        let by_listing = self.rules.lacks(Rule::ManifestCountsOnceInstalled);
        let lane = state.lane(state.leader);
        (0..=lane.written() - lane.covered).map(move |more| Truth::read(state, more, by_listing))
    }
}

impl Model for ColdModel {
    type State = ColdState;
    type Action = Action;

    fn init_states(&self) -> Vec<ColdState> {
        vec![ColdState::initial(false), ColdState::initial(true)]
    }

    fn actions(&self, state: &ColdState, actions: &mut Vec<Action>) {
        let leader = state.leader;
        actions.extend([
            Action::Write { broker: leader },
            Action::Roll { broker: leader },
            Action::Cover { broker: leader },
            Action::TakeOver { more: 0 },
            Action::TakeOver { more: 1 },
        ]);
        jobs::actions(self, state, actions);
    }

    fn next_state(&self, last: &ColdState, action: Action) -> Option<ColdState> {
        let mut state = *last;
        let next = &mut state;
        let taken = match action {
            Action::Write { broker } => Self::write(next, broker),
            Action::Roll { broker } => self.roll(next, broker),
            Action::Cover { broker } => Self::cover(next, broker),
            Action::TakeOver { more } => self.take_over(next, more),
            Action::Start { broker, kind } => jobs::start(self, next, broker, kind),
            Action::Advance { broker, slot } => jobs::advance(self, next, broker, slot),
            Action::Delete { broker, slot } => jobs::delete(self, next, broker, slot),
            Action::CleanUp { broker, slot } => jobs::clean_up(next, broker, slot),
            Action::Trim { broker } => jobs::trim(self, next, broker),
            Action::DeleteDeadLanes { broker } => jobs::delete_dead_lanes(self, next, broker),
            Action::Sweep { broker } => jobs::sweep(self, next, broker),
        };
        taken.map(|()| state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(ACKED_IS_SERVED, acked_is_served),
            Property::always(LIVE_OBJECTS_EXIST, live_objects_exist),
            Property::sometimes("a sealed install its job does not know", sealed_install),
            Property::sometimes("a zombie's job has yet to delete", zombie_may_delete),
            Property::sometimes("a live lane's file is deleted", live_file_deleted),
            Property::sometimes("dead lanes are deleted", dead_lanes_deleted),
        ];
        if self.jobs_max[2] > 0 {
            properties.push(Property::sometimes("a successor publishes", successor_publishes));
        }
        if self.sweeps[1] {
            properties.push(Property::sometimes("a zombie sweeps", zombie_sweeps));
        }
        if self.sweeps[2] {
            properties.push(Property::sometimes("an orphan is swept", orphan_swept));
        }
        properties
    }
}

fn acked_is_served(model: &ColdModel, state: &ColdState) -> bool {
    model.truths(state).all(|truth| state.acked & !truth.served(state) == 0)
}

fn live_objects_exist(model: &ColdModel, state: &ColdState) -> bool {
    model.truths(state).all(|truth| truth.objects_exist(state))
}

fn sealed_install(_: &ColdModel, state: &ColdState) -> bool {
    let lane = state.lane(1);
    let unknown = lane.sealed.is_some_and(|sealed| sealed > lane.covered);
    unknown && matches!(lane.entries.iter().flatten().last(), Some(Entry::Install(_)))
}

fn zombie_may_delete(_: &ColdModel, state: &ColdState) -> bool {
    let mut jobs = state.broker(1).jobs.iter().flatten();
    state.leader == 2 && jobs.any(|job| job.step == Step::Applied)
}

fn zombie_sweeps(_: &ColdModel, state: &ColdState) -> bool {
    state.leader == 2 && matches!(state.broker(1).sweep, Sweep::Checked { .. })
}

fn live_file_deleted(_: &ColdModel, state: &ColdState) -> bool {
    state.lane(1).files_deleted > 0 && state.token_is_own(1)
}

fn dead_lanes_deleted(_: &ColdModel, state: &ColdState) -> bool {
    state.broker(2).dead_lanes == DeadLanes::Deleted
}

fn successor_publishes(_: &ColdModel, state: &ColdState) -> bool {
    state.acked == 0b111 && state.broker(2).manifest >= Some(3)
}

fn orphan_swept(_: &ColdModel, state: &ColdState) -> bool {
    state.swept
}
