//! The cluster model: its actions and what must hold in every state.

use stateright::{Model, Property};

use super::recover::NextLog;
use super::state::{
    BROKERS, ClusterState, ENTRIES, EPOCHS, Entry, Extent, Kind, OFFSETS, PARTITIONS, Part, Sweep,
    Tenure, brokers, end_of, partitions,
};
use super::{jobs, sweep};
use crate::rules::{Rule, Rules};

pub const ACKED_IS_SERVED: &str = "the next leader would serve every acked record";
pub const LIVE_OBJECTS_EXIST: &str = "the objects of each manifest in force exist";
pub const ACKED_ONCE: &str = "no two records are acked at one offset";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A leader writes a record.
    Write {
        broker: u8,
        partition: u8,
    },
    /// The last write is synced and the token checked.
    Cover {
        broker: u8,
    },
    /// The lane is fenced and sealed; `more` entries above the fence-checked end are in.
    Seal {
        lane: u8,
        more: u8,
    },
    /// A controller orders a broker to take a dead leader's partition.
    Order {
        broker: u8,
        partition: u8,
    },
    TakeOver {
        broker: u8,
        partition: u8,
    },
    /// A leader is to give its partition to another broker.
    BeginMove {
        broker: u8,
        partition: u8,
        successor: u8,
    },
    GiveAway {
        broker: u8,
        partition: u8,
    },
    /// A broker loads the partition that it was given.
    Adopt {
        broker: u8,
        partition: u8,
    },
    Split {
        broker: u8,
    },
    Compact {
        broker: u8,
        partition: u8,
    },
    Publish {
        broker: u8,
        partition: u8,
    },
    DeleteReplaced {
        broker: u8,
    },
    EndJob {
        broker: u8,
    },
    Checkpoint {
        broker: u8,
        partition: u8,
    },
    Trim {
        broker: u8,
        partition: u8,
    },
    DeleteEntries {
        broker: u8,
    },
    DeleteLane {
        lane: u8,
    },
    List,
    Ask {
        broker: u8,
    },
    Compare,
    Sweep,
}

/// Brokers that lead partitions together.
#[derive(Clone, Copy, Debug)]
pub struct ClusterModel {
    pub rules: Rules,
    pub partitions: u8,
    /// Records that each broker may write.
    pub writes_max: [u8; BROKERS],
    /// Jobs that each broker may begin.
    pub jobs_max: [u8; BROKERS],
    /// Whether each broker may be fenced.
    pub fenced: [bool; BROKERS],
    /// The last epoch that a partition may reach by moves, and by takeovers.
    pub last_epoch: u8,
    pub moves: bool,
    pub deletes_entries: bool,
    pub sweeps: bool,
}

impl ClusterModel {
    pub fn partitions(&self) -> impl Iterator<Item = u8> + use<> {
        partitions().take(usize::from(self.partitions))
    }

    fn write(&self, state: &mut ClusterState, broker: u8, partition: u8) -> Option<()> {
        let tenure = state.tenure(broker, partition)?;
        let moving = tenure.successor.is_some() && self.rules.has(Rule::MoveStopsAppendsFirst);
        let lane = state.lane(broker);
        let is_data = |(_, entry): &(u8, Entry)| matches!(entry.kind, Kind::Data(_));
        let written = lane.entries_between(0, lane.written()).filter(is_data).count();
        let offset = end_of(&tenure.records).max(state.manifest(tenure.manifest).covered_end);
        let full = written == usize::from(self.writes_max[usize::from(broker)]);
        if moving || full || usize::from(offset) == OFFSETS {
            return None;
        }
        let epoch = tenure.epoch;
        state.append(broker, Entry { partition, epoch, kind: Kind::Data(offset) })?;
        let tenure = state.tenure_mut(broker, partition).as_mut()?;
        tenure.records[usize::from(offset)] = Some(epoch);
        Some(())
    }

    fn cover(state: &mut ClusterState, broker: u8) -> Option<()> {
        let lane = state.lane_mut(broker);
        if lane.sealed.is_some() || lane.covered == lane.written() {
            return None;
        }
        let entry = lane.entries[usize::from(lane.covered)]?;
        lane.covered += 1;
        if let Kind::Data(offset) = entry.kind {
            let acked = &mut state.partition_mut(entry.partition).acked[usize::from(offset)];
            let before = acked.replace(entry.epoch);
            state.acked_twice |= before.is_some();
        }
        jobs::apply_covered(state, broker);
        Some(())
    }

    fn seal(&self, state: &mut ClusterState, lane: u8, more: u8) -> Option<()> {
        let dead = state.lane_mut(lane);
        let end = dead.covered + more;
        if !self.fenced[usize::from(lane)] || dead.sealed.is_some() || end > dead.written() {
            return None;
        }
        dead.sealed = Some(end);
        Some(())
    }

    fn order(&self, state: &mut ClusterState, broker: u8, partition: u8) -> Option<()> {
        let record = state.partition(partition);
        let dead = state.lane(record.leader).sealed.is_some();
        let epoch = record.epoch;
        if !dead || epoch == self.last_epoch || !state.token_is_own(broker) {
            return None;
        }
        let order = &mut state.broker_mut(broker).orders[usize::from(partition)];
        let new = *order != Some(epoch);
        *order = Some(epoch);
        new.then_some(())
    }

    fn take_over(&self, state: &mut ClusterState, broker: u8, partition: u8) -> Option<()> {
        let ordered = state.brokers[usize::from(broker)].orders[usize::from(partition)]?;
        let record = state.partition_mut(partition);
        let compares = self.rules.has(Rule::TakeoverComparesAndSwaps);
        if record.epoch != ordered && compares || record.epoch == self.last_epoch {
            return None;
        }
        record.leader = broker;
        record.epoch = ordered + 1;
        record.extents[usize::from(ordered + 1)] = Some(Extent { lane: broker, end: None });
        state.broker_mut(broker).orders[usize::from(partition)] = None;
        self.load(state, broker, partition);
        Some(())
    }

    /// Loads a partition of which the broker is the leader.
    fn load(&self, state: &mut ClusterState, broker: u8, partition: u8) {
        let log = NextLog::read(self.rules, state, partition, 0);
        let epoch = state.partition(partition).epoch;
        let records = log.records(state, partition);
        let manifest = log.manifest;
        let tenure = Tenure { epoch, manifest, records, successor: None, trimmed: false };
        *state.tenure_mut(broker, partition) = Some(tenure);
    }

    fn begin_move(
        &self,
        state: &mut ClusterState,
        broker: u8,
        partition: u8,
        successor: u8,
    ) -> Option<()> {
        let last_epoch = self.last_epoch;
        let tenure = state.tenure_mut(broker, partition).as_mut()?;
        let possible = self.moves && broker != successor && tenure.epoch < last_epoch;
        if !possible || tenure.successor.is_some() {
            return None;
        }
        tenure.successor = Some(successor);
        Some(())
    }

    /// Hands a partition over by compare-and-swap.
    fn give_away(&self, state: &mut ClusterState, broker: u8, partition: u8) -> Option<()> {
        let tenure = state.tenure(broker, partition)?;
        let successor = tenure.successor?;
        let lane = state.lane(broker);
        let of_partition = |(_, entry): (u8, Entry)| entry.partition == partition;
        let unflushed = lane.entries_between(lane.covered, lane.written()).any(of_partition);
        if unflushed && self.rules.has(Rule::MoveFlushesFirst) {
            return None;
        }
        let end = lane.written();
        let job = state.brokers[usize::from(broker)].job;
        let part = job.map_or(Part::Done, |job| job.parts[usize::from(partition)]);
        if self.rules.has(Rule::MoveDrainsJobs) {
            match part {
                Part::Installed { .. } => return None,
                // What it has not published it gives up; what it replaced is left to a sweep.
                Part::ObjectPut | Part::Replaced { .. } | Part::Done => {
                    if let Some(job) = &mut state.broker_mut(broker).job {
                        job.parts[usize::from(partition)] = Part::Done;
                    }
                }
            }
        }
        let record = state.partition_mut(partition);
        if record.leader != broker || record.epoch != tenure.epoch {
            return None;
        }
        record.leader = successor;
        record.epoch = tenure.epoch + 1;
        record.extents[usize::from(tenure.epoch)].as_mut()?.end = Some(end);
        record.extents[usize::from(record.epoch)] = Some(Extent { lane: successor, end: None });
        if self.rules.has(Rule::MoveStopsAppendsFirst) {
            *state.tenure_mut(broker, partition) = None;
        }
        Some(())
    }

    fn adopt(&self, state: &mut ClusterState, broker: u8, partition: u8) -> Option<()> {
        let record = state.partition(partition);
        let known = state.tenure(broker, partition).map(|tenure| tenure.epoch);
        if record.leader != broker || known == Some(record.epoch) {
            return None;
        }
        self.load(state, broker, partition);
        Some(())
    }

    /// What a next leader could find, for each end that the leader's lane could be sealed at.
    fn next_logs(
        self,
        state: &ClusterState,
        partition: u8,
    ) -> impl Iterator<Item = NextLog> + use<'_> {
        let lane = state.lane(state.partition(partition).leader);
        let rules = self.rules;
        (0..=lane.written() - lane.covered)
            .map(move |more| NextLog::read(rules, state, partition, more))
    }
}

impl Model for ClusterModel {
    type State = ClusterState;
    type Action = Action;

    fn init_states(&self) -> Vec<ClusterState> {
        assert!(
            usize::from(self.last_epoch) < EPOCHS && usize::from(self.partitions) <= PARTITIONS
        );
        assert!(self.writes_max.iter().all(|most| usize::from(*most) <= ENTRIES));
        vec![ClusterState::initial()]
    }

    fn actions(&self, _: &ClusterState, actions: &mut Vec<Action>) {
        for broker in brokers() {
            actions.push(Action::Cover { broker });
            actions.push(Action::Seal { lane: broker, more: 0 });
            actions.push(Action::Seal { lane: broker, more: 1 });
            actions.push(Action::Ask { broker });
            for partition in self.partitions() {
                actions.push(Action::Write { broker, partition });
                actions.push(Action::Order { broker, partition });
                actions.push(Action::TakeOver { broker, partition });
                actions.push(Action::GiveAway { broker, partition });
                actions.push(Action::Adopt { broker, partition });
                for successor in brokers() {
                    actions.push(Action::BeginMove { broker, partition, successor });
                }
            }
        }
        actions.extend([Action::List, Action::Compare, Action::Sweep]);
        jobs::actions(self, actions);
    }

    fn next_state(&self, last: &ClusterState, action: Action) -> Option<ClusterState> {
        let mut state = *last;
        let next = &mut state;
        let taken = match action {
            Action::Write { broker, partition } => self.write(next, broker, partition),
            Action::Cover { broker } => Self::cover(next, broker),
            Action::Seal { lane, more } => self.seal(next, lane, more),
            Action::Order { broker, partition } => self.order(next, broker, partition),
            Action::TakeOver { broker, partition } => self.take_over(next, broker, partition),
            Action::BeginMove { broker, partition, successor } => {
                self.begin_move(next, broker, partition, successor)
            }
            Action::GiveAway { broker, partition } => self.give_away(next, broker, partition),
            Action::Adopt { broker, partition } => self.adopt(next, broker, partition),
            Action::Split { broker } => jobs::split(self, next, broker),
            Action::Compact { broker, partition } => jobs::compact(self, next, broker, partition),
            Action::Publish { broker, partition } => jobs::publish(self, next, broker, partition),
            Action::DeleteReplaced { broker } => jobs::delete_replaced(self, next, broker),
            Action::EndJob { broker } => jobs::end_job(next, broker),
            Action::Checkpoint { broker, partition } => jobs::checkpoint(next, broker, partition),
            Action::Trim { broker, partition } => jobs::trim(self, next, broker, partition),
            Action::DeleteEntries { broker } => jobs::delete_entries(self, next, broker),
            Action::DeleteLane { lane } => jobs::delete_lane(self, next, lane),
            Action::List => sweep::list(self, next),
            Action::Ask { broker } => sweep::ask(self, next, broker),
            Action::Compare => sweep::compare(self, next),
            Action::Sweep => sweep::delete(next),
        };
        taken.map(|()| state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(ACKED_IS_SERVED, acked_is_served),
            Property::always(LIVE_OBJECTS_EXIST, live_objects_exist),
            Property::always(ACKED_ONCE, |_, state: &ClusterState| !state.acked_twice),
        ];
        if self.moves {
            properties.push(Property::sometimes("a moved partition is written to", moved_written));
        }
        if self.fenced[0] && self.partitions > 1 {
            properties.push(Property::sometimes("two brokers take over one's partitions", spread));
        }
        if self.sweeps {
            properties.push(Property::sometimes("an object is swept", swept));
        }
        if self.jobs_max[1] > 0 {
            properties.push(Property::sometimes("extents are trimmed", trimmed));
        }
        properties
    }
}

fn acked_is_served(model: &ClusterModel, state: &ClusterState) -> bool {
    model.partitions().all(|partition| {
        let acked = state.partition(partition).acked;
        model.next_logs(state, partition).all(|log| {
            let served = log.records(state, partition);
            acked.iter().zip(served).all(|(acked, served)| acked.is_none() || *acked == served)
        })
    })
}

fn live_objects_exist(model: &ClusterModel, state: &ClusterState) -> bool {
    let exist = |partition| model.next_logs(state, partition).all(|log| log.objects_exist(state));
    model.partitions().all(exist)
}

fn moved_written(_: &ClusterModel, state: &ClusterState) -> bool {
    let moved =
        |extents: &[Option<Extent>]| extents.iter().flatten().any(|extent| extent.end.is_some());
    let written = |epoch: &Option<u8>| epoch.is_some_and(|epoch| epoch > 0);
    state.partitions.iter().any(|p| moved(&p.extents) && p.acked.iter().any(written))
}

fn spread(_: &ClusterModel, state: &ClusterState) -> bool {
    let leaders = state.partitions.map(|partition| partition.leader);
    leaders == [1, 2]
}

fn swept(_: &ClusterModel, state: &ClusterState) -> bool {
    let made = (1u16 << state.store.objects_made) - 1;
    state.sweep == Sweep::Done && u16::from(state.store.objects) != made
}

fn trimmed(_: &ClusterModel, state: &ClusterState) -> bool {
    state.partitions.iter().any(|partition| partition.extents[0].is_none())
}
