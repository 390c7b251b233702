//! The steps of a successor: fence, read the tail, SEAL, `sealed_end`, reassign, load.

use super::model::{Action, LaneModel};
use super::state::{BLOCKS, Broker, LOADED, LaneState, Role, Seal, Sealing, Token};
use crate::rules::Rule;

pub fn actions(model: &LaneModel, state: &LaneState, actions: &mut Vec<Action>) {
    for broker in model.brokers() {
        match state.broker(broker).role {
            Role::Idle => actions.push(Action::Begin { broker }),
            Role::Sealing { sealing, .. } => seal_actions(model, broker, sealing, actions),
            Role::Sealed { .. } => actions.push(Action::Reassign { broker }),
            Role::Elected { .. } => actions.push(Action::Load { broker }),
            Role::Leading if model.rules.lacks(Rule::ExtentAppendedByTakeover) => {
                actions.push(Action::AppendExtent { broker });
            }
            Role::Leading => {}
        }
    }
    for lane in model.brokers() {
        actions.push(Action::LoseFence { lane });
        actions.push(Action::LoseSeal { lane });
    }
}

fn seal_actions(model: &LaneModel, broker: u8, sealing: Sealing, actions: &mut Vec<Action>) {
    match sealing {
        Sealing::Start => {
            actions.push(Action::WriteFence { broker });
            if model.rules.lacks(Rule::TailReadAfterFence) {
                actions.push(Action::ReadTail { broker, missed: 0 });
            }
            actions.push(Action::TrustClose { broker });
        }
        Sealing::FenceWritten => {
            actions.push(Action::SyncFence { broker });
            if model.rules.lacks(Rule::FenceSyncedBeforeTailRead) {
                actions.push(Action::ReadTail { broker, missed: 0 });
            }
        }
        Sealing::Fenced => {
            actions.push(Action::ReadTail { broker, missed: 0 });
            if model.rules.lacks(Rule::TailReadPastCache) {
                actions.push(Action::ReadTail { broker, missed: 1 });
            }
        }
        Sealing::TailRead { fenced: false, .. } => actions.push(Action::WriteFence { broker }),
        Sealing::TailRead { .. } => {
            actions.push(Action::LinkSeal { broker });
            if model.rules.lacks(Rule::SealedBeforeReassignment) {
                actions.push(Action::Reassign { broker });
            }
        }
        Sealing::Linked { .. } => {
            actions.push(Action::SyncSeal { broker });
            if model.rules.lacks(Rule::SealSyncedBeforeSealedEnd) {
                actions.push(Action::SetSealedEnd { broker });
            }
        }
        Sealing::SealSynced { .. } => actions.push(Action::SetSealedEnd { broker }),
    }
}

/// Reads the partition's record and turns to the first lane that is not sealed.
pub fn begin(model: &LaneModel, state: &mut LaneState, broker: u8) -> Option<()> {
    // The two successors are alike, so the second begins only after the first.
    let alike = broker > 1 && state.broker(broker - 1).role == Role::Idle;
    let epoch = state.metadata.epoch;
    if alike || broker == 0 || epoch == model.last_epoch {
        return None;
    }
    set_role(state, broker, next_role(state, epoch));
    Some(())
}

fn next_role(state: &LaneState, epoch: u8) -> Role {
    match state.metadata.first_unsealed() {
        Some(lane) => Role::Sealing { epoch, lane, sealing: Sealing::Start },
        None => Role::Sealed { epoch },
    }
}

fn set_role(state: &mut LaneState, broker: u8, role: Role) {
    state.brokers[usize::from(broker)].role = role;
}

/// One step of sealing a lane; `None` if the step cannot be taken.
pub fn seal_step(model: &LaneModel, state: &mut LaneState, action: Action) -> Option<()> {
    let broker = action.broker()?;
    let Role::Sealing { epoch, lane, sealing } = state.broker(broker).role else {
        return None;
    };
    let next = match action {
        Action::WriteFence { .. } => write_fence(state, lane, sealing),
        Action::SyncFence { .. } => sync_fence(state, lane)?,
        Action::TrustClose { .. } => state.lane(lane).closed.map(|_| Sealing::Fenced)?,
        Action::ReadTail { missed, .. } => read_tail(model, state, lane, sealing, missed)?,
        Action::LinkSeal { .. } => link_seal(model, state, lane, sealing)?,
        Action::SyncSeal { .. } => sync_seal(model, state, lane, sealing)?,
        Action::SetSealedEnd { .. } => {
            set_sealed_end(model, state, lane, sealing)?;
            set_role(state, broker, next_role(state, epoch));
            return Some(());
        }
        _ => return None,
    };
    set_role(state, broker, Role::Sealing { epoch, lane, sealing: next });
    Some(())
}

fn write_fence(state: &mut LaneState, lane: u8, sealing: Sealing) -> Sealing {
    let token = &mut state.lanes[usize::from(lane)].token;
    if *token == Token::Own {
        *token = Token::FencedUnsynced;
    }
    match sealing {
        Sealing::TailRead { end, copies, .. } => Sealing::TailRead { end, copies, fenced: true },
        _ => Sealing::FenceWritten,
    }
}

/// The sync succeeds only with the write on the server; a lost write is a failed sync.
fn sync_fence(state: &mut LaneState, lane: u8) -> Option<Sealing> {
    let token = &mut state.lanes[usize::from(lane)].token;
    if *token == Token::Own {
        return None;
    }
    *token = Token::Fenced;
    Some(Sealing::Fenced)
}

fn read_tail(
    model: &LaneModel,
    state: &LaneState,
    lane: u8,
    sealing: Sealing,
    missed: u8,
) -> Option<Sealing> {
    let lane = state.lane(lane);
    let seen = lane.visible_end();
    if seen < missed {
        return None;
    }
    let end = seen - missed;
    let durable = lane.durable_seen();
    if durable > end && missed == 0 && model.rules.has(Rule::GapIsNotAnEnd) {
        return None;
    }
    let uncovered = (durable.min(end)..end).fold(0, |bits, n| bits | 1 << n);
    let copied = model.rules.has(Rule::SealHoldsUncoveredBlocks);
    let copies = if copied { uncovered } else { 0 };
    Some(Sealing::TailRead { end, copies, fenced: sealing != Sealing::Start })
}

/// Links the SEAL; if one is there already, goes on from that one.
fn link_seal(
    model: &LaneModel,
    state: &mut LaneState,
    lane: u8,
    sealing: Sealing,
) -> Option<Sealing> {
    let Sealing::TailRead { end, copies, .. } = sealing else {
        return None;
    };
    let seal = &mut state.lanes[usize::from(lane)].seal;
    match seal {
        Some(linked) if model.rules.has(Rule::SealLinkedExclusively) => {
            let adopts = model.rules.has(Rule::SealedEndIsTheLinkedSeals);
            Some(Sealing::Linked { end: if adopts { linked.end } else { end } })
        }
        _ => {
            *seal = Some(Seal { end, copies, synced: false });
            Some(Sealing::Linked { end })
        }
    }
}

/// As with the fence, a link that the server lost is a failed sync. The end is read again after
/// the sync: the SEAL that is on disk now is the one that stays.
fn sync_seal(
    model: &LaneModel,
    state: &mut LaneState,
    lane: u8,
    sealing: Sealing,
) -> Option<Sealing> {
    let Sealing::Linked { end } = sealing else {
        return None;
    };
    let seal = state.lanes[usize::from(lane)].seal.as_mut()?;
    seal.synced = true;
    let adopts = model.rules.has(Rule::SealedEndIsTheLinkedSeals);
    Some(Sealing::SealSynced { end: if adopts { seal.end } else { end } })
}

fn set_sealed_end(
    model: &LaneModel,
    state: &mut LaneState,
    lane: u8,
    sealing: Sealing,
) -> Option<()> {
    let (Sealing::Linked { end } | Sealing::SealSynced { end }) = sealing else {
        return None;
    };
    let sealed_end = &mut state.metadata.sealed_end[usize::from(lane)];
    if sealed_end.is_none() || model.rules.lacks(Rule::SealedEndSetOnce) {
        *sealed_end = Some(end);
    }
    Some(())
}

/// The compare-and-swap that makes this broker the leader. One that lost the race begins again.
pub fn reassign(model: &LaneModel, state: &mut LaneState, broker: u8) -> Option<()> {
    let (expected, own_view) = match state.broker(broker).role {
        Role::Sealed { epoch } => (epoch, None),
        Role::Sealing { epoch, lane, sealing: Sealing::TailRead { end, .. } } => {
            (epoch, Some((lane, end)))
        }
        _ => return None,
    };
    let compares = model.rules.has(Rule::TakeoverComparesAndSwaps);
    if compares && expected != state.metadata.epoch {
        set_role(state, broker, Role::Idle);
        return Some(());
    }
    state.metadata.epoch = expected + 1;
    state.metadata.leader = broker;
    if model.rules.has(Rule::ExtentAppendedByTakeover) {
        state.metadata.append_extent(broker);
    }
    state.brokers[usize::from(broker)].epoch = expected + 1;
    set_role(state, broker, Role::Elected { own_view });
    Some(())
}

/// Appends the lane to the extents long after the takeover (only with that rule removed).
pub fn append_extent(state: &mut LaneState, broker: u8) -> Option<()> {
    let known = state.metadata.extents.contains(&Some(broker));
    if known || state.metadata.leader != broker {
        return None;
    }
    state.metadata.append_extent(broker);
    Some(())
}

/// Reads the records of every earlier lane. Where a block before the end of one cannot be read,
/// nobody leads, whatever follows it.
pub fn load(model: &LaneModel, state: &mut LaneState, broker: u8) -> Option<()> {
    let Role::Elected { own_view } = state.broker(broker).role else {
        return None;
    };
    let mut loaded = [None; LOADED];
    let mut base = 0;
    for lane in predecessors(model, state, broker) {
        for n in 0..loaded_end(model, state, lane, own_view) {
            let damaged = state.lane(lane).is_damaged(n);
            if damaged && model.rules.has(Rule::NothingIsReadPastAGap) {
                return None;
            }
            if usize::from(base) < LOADED {
                loaded[usize::from(base)] = state.lane(lane).read(n);
                base += 1;
            }
        }
    }
    let memory = *state.broker(broker);
    let loaded = Broker { role: Role::Leading, loaded, base, ..memory };
    state.brokers[usize::from(broker)] = loaded;
    Some(())
}

/// The lanes of the extents that this broker took over, which its own lane follows.
fn predecessors(model: &LaneModel, state: &LaneState, broker: u8) -> Vec<u8> {
    let extents = state.metadata.extents.into_iter().flatten();
    if model.rules.has(Rule::LoadsExtentsOfOwnTakeover) {
        extents.take_while(|lane| *lane != broker).collect()
    } else {
        extents.filter(|lane| *lane != broker).collect()
    }
}

fn loaded_end(model: &LaneModel, state: &LaneState, lane: u8, own_view: Option<(u8, u8)>) -> u8 {
    let sealed_end = state.metadata.sealed_end[usize::from(lane)];
    let visible = state.lane(lane).visible_end();
    match (sealed_end, own_view) {
        (Some(end), _) if model.rules.has(Rule::ReadersStopAtSealedEnd) => end,
        (Some(end), _) => end.max(visible),
        (None, Some((viewed, end))) if viewed == lane => end,
        (None, _) => visible,
    }
}

/// The server restarts and forgets a fence that was not synced.
pub fn lose_fence(state: &mut LaneState, lane: u8) -> Option<()> {
    let token = &mut state.lanes[usize::from(lane)].token;
    let lost = *token == Token::FencedUnsynced;
    *token = Token::Own;
    lost.then_some(())
}

/// The server restarts and forgets a SEAL whose folder was not synced.
pub fn lose_seal(state: &mut LaneState, lane: u8) -> Option<()> {
    let seal = &mut state.lanes[usize::from(lane)].seal;
    let lost = seal.is_some_and(|seal| !seal.synced);
    *seal = None;
    lost.then_some(())
}

const _: () = assert!(BLOCKS <= 8, "copies is a set of eight bits");
