//! The steps of a leader: produce, sync, token check, ack; and what may become of its writes.

use super::model::{Action, LaneModel, Loss, TokenRead};
use super::state::{BLOCKS, Block, LaneState, RECORDS, Stored, Token};
use crate::rules::Rule;

pub fn actions(model: &LaneModel, state: &LaneState, actions: &mut Vec<Action>) {
    for broker in model.brokers().filter(|broker| state.leading(*broker)) {
        actions.extend((0u8..).take(RECORDS).map(|record| Action::Produce { broker, record }));
        actions.push(Action::Sync { broker });
        if model.rules.lacks(Rule::FailedSyncStops) {
            actions.push(Action::RetrySync { broker });
        }
        if model.rules.lacks(Rule::AcksInBlockOrder) {
            actions.push(Action::AckOutOfOrder { broker });
        }
        let reads = TokenRead::ALL.into_iter().filter(|read| read.possible(model.rules));
        actions.extend(reads.map(|read| Action::Check { broker, read }));
        actions.push(Action::Close { broker });
    }
    for lane in model.brokers() {
        for block in 0..state.lane(lane).written() {
            actions.push(Action::Land { lane, block });
            actions.push(Action::Lose { lane, block });
            if model.loss != Loss::Unsynced {
                actions.push(Action::Damage { lane, block });
            }
        }
    }
}

/// A producer sends its record, for the first time or again.
pub fn produce(model: &LaneModel, state: &mut LaneState, broker: u8, record: u8) -> Option<()> {
    if let Some(offset) = original(model, state, broker, record) {
        let checked = offset < state.broker(broker).fence_checked_end();
        let acked = checked || model.rules.lacks(Rule::DuplicateWaitsForOriginal);
        return acked.then(|| state.ack(record, offset));
    }
    let may_append = state.broker(broker).epoch < model.last_epoch || !model.last_leader_reads_only;
    let lane = state.lane(broker);
    let written = lane.written();
    let closing = lane.closed.is_some() && model.rules.has(Rule::CloseAfterLastAck);
    if !may_append || closing || usize::from(written) == BLOCKS {
        return None;
    }
    let memory = state.broker(broker);
    if written - memory.checked >= model.write_depth {
        return None;
    }
    let checked_only = model.rules.has(Rule::DurableSeqIsFenceChecked);
    let durable = if checked_only { memory.checked } else { memory.synced };
    let block = Block { record, durable, stored: Stored::InFlight };
    state.lanes[usize::from(broker)].blocks[usize::from(written)] = Some(block);
    Some(())
}

/// The offset of a record that the broker knows to have appended before.
fn original(model: &LaneModel, state: &LaneState, broker: u8, record: u8) -> Option<u8> {
    let offset = state.offset_of(broker, record)?;
    let own = offset >= state.broker(broker).base;
    (own || model.rules.has(Rule::ProducerStateLoaded)).then_some(offset)
}

/// `fdatasync` succeeds: every block up to the first that is not on the server is on disk.
pub fn sync(state: &mut LaneState, broker: u8) -> Option<()> {
    let lane = &mut state.lanes[usize::from(broker)];
    let end = lane.visible_end();
    let memory = &mut state.brokers[usize::from(broker)];
    if end <= memory.synced {
        return None;
    }
    for block in lane.blocks.iter_mut().take(usize::from(end)).flatten() {
        block.stored = Stored::Synced;
    }
    memory.synced = end;
    Some(())
}

/// `fdatasync` failed and is called again: it reports success, and nothing was written.
pub fn retry_sync(state: &mut LaneState, broker: u8) -> Option<()> {
    let written = state.lane(broker).written();
    let memory = &mut state.brokers[usize::from(broker)];
    let changed = memory.synced < written;
    memory.synced = written;
    changed.then_some(())
}

/// Reads the token; if it passes, the synced blocks are fence-checked and their records acked.
pub fn check(model: &LaneModel, state: &mut LaneState, broker: u8, read: TokenRead) -> Option<()> {
    if !read.passes(state.lane(broker).token) {
        return None;
    }
    let memory = *state.broker(broker);
    if read == TokenRead::Early {
        state.brokers[usize::from(broker)].early_check = true;
        return (!memory.early_check).then_some(());
    }
    let used_early = read == TokenRead::UsedEarly;
    if used_early && !memory.early_check || memory.synced == memory.checked {
        return None;
    }
    let closed = state.lane(broker).closed.is_some();
    debug_assert!(!closed || model.rules.lacks(Rule::CloseAfterLastAck), "acks after close");
    for n in memory.checked..memory.synced {
        let block = state.lane(broker).block(n).expect("a synced block was written");
        state.ack(block.record, memory.base + n);
    }
    state.brokers[usize::from(broker)].checked = memory.synced;
    Some(())
}

/// Acks the last block once it is synced, whatever became of the blocks before it.
pub fn ack_out_of_order(state: &mut LaneState, broker: u8) -> Option<()> {
    let last = state.lane(broker).written().checked_sub(1)?;
    let base = state.broker(broker).base;
    let lane = &mut state.lanes[usize::from(broker)];
    let block = lane.blocks[usize::from(last)].as_mut()?;
    if !block.visible() || lane.token != Token::Own {
        return None;
    }
    block.stored = Stored::Synced;
    let record = block.record;
    state.ack(record, base + last);
    Some(())
}

/// A clean stop: the last block of the lane says that nothing follows, so no fence is needed.
pub fn close(model: &LaneModel, state: &mut LaneState, broker: u8) -> Option<()> {
    let written = state.lane(broker).written();
    let drained = state.broker(broker).checked == written;
    if !drained && model.rules.has(Rule::CloseAfterLastAck) {
        return None;
    }
    let lane = &mut state.lanes[usize::from(broker)];
    if lane.closed.is_some() {
        return None;
    }
    lane.closed = Some(written);
    Some(())
}

pub fn land(state: &mut LaneState, lane: u8, block: u8) -> Option<()> {
    change(state, lane, block, |stored| stored == Stored::InFlight, Stored::OnServer)
}

/// A write that never lands, or that the server forgets.
pub fn lose(state: &mut LaneState, lane: u8, block: u8) -> Option<()> {
    let unsynced = |stored| matches!(stored, Stored::InFlight | Stored::OnServer);
    change(state, lane, block, unsynced, Stored::Lost)
}

/// A block on disk becomes unreadable, once, at any time: also when its lane has its end.
pub fn damage(model: &LaneModel, state: &mut LaneState, lane: u8, block: u8) -> Option<()> {
    let mut blocks = state.lanes.iter().flat_map(|lane| lane.blocks).flatten();
    if blocks.any(|block| block.stored == Stored::Damaged) {
        return None;
    }
    let synced = state.lane(lane).blocks.into_iter().flatten().filter(on_disk);
    let closed = state.lane(lane).closed;
    let covered = synced.map(|later| later.durable).chain(closed).max() > Some(block);
    if model.loss == Loss::DamageOfCovered && !covered {
        return None;
    }
    change(state, lane, block, |stored| stored == Stored::Synced, Stored::Damaged)
}

fn on_disk(block: &Block) -> bool {
    block.stored == Stored::Synced
}

fn change(
    state: &mut LaneState,
    lane: u8,
    block: u8,
    from: impl Fn(Stored) -> bool,
    to: Stored,
) -> Option<()> {
    let block = state.lanes[usize::from(lane)].blocks[usize::from(block)].as_mut()?;
    let possible = from(block.stored);
    block.stored = to;
    possible.then_some(())
}
