//! The lane model: its actions and what must hold in every state.

use stateright::{Model, Property};

use super::state::{BROKERS, LaneState, RECORDS, Token};
use super::{takeover, write};
use crate::rules::{Rule, Rules};

pub const ACKED_IS_KEPT: &str = "a leader serves every acked record at its offset";
pub const ONE_RECORD_PER_OFFSET: &str = "readers never see two records at one offset";
pub const NO_DUPLICATE: &str = "no record is in the log twice";
pub const FRESH_READS_ARE_FRESH: &str = "a fresh read covers every acked record";
pub const COVERED_BLOCKS_COUNT: &str = "a block that a later one covers is in the log";

/// What the disk may do to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Lose what was not synced.
    Unsynced,
    /// Also damage a synced block that a later block covers.
    DamageOfCovered,
    /// Also damage the last synced block.
    DamageOfAny,
}

/// How a broker comes to believe that the token is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRead {
    /// It reads what the server has.
    Direct,
    /// It does not read.
    NotAtAll,
    /// It reads a cached page.
    CachedPage,
    /// It looks a fence marker up and a stale look-up says that there is none.
    StaleLookUp,
    /// It gets an error and goes on.
    ErrorIgnored,
    /// Its descriptor shows the file that the fence replaced.
    ReplacedFile,
    /// It reads what the server has, to use the answer later.
    Early,
    /// It uses an answer from before.
    UsedEarly,
}

impl TokenRead {
    pub const ALL: [Self; 8] = [
        Self::Direct,
        Self::NotAtAll,
        Self::CachedPage,
        Self::StaleLookUp,
        Self::ErrorIgnored,
        Self::ReplacedFile,
        Self::Early,
        Self::UsedEarly,
    ];

    /// Whether a broker under these rules can do this.
    pub fn possible(self, rules: Rules) -> bool {
        match self {
            Self::Direct => true,
            Self::NotAtAll => rules.lacks(Rule::TokenCheckBeforeAck),
            Self::CachedPage => rules.lacks(Rule::TokenReadPastCache),
            Self::StaleLookUp => rules.lacks(Rule::TokenPresentNotMarkerAbsent),
            Self::ErrorIgnored => rules.lacks(Rule::UnreadableTokenIsNotMine),
            Self::ReplacedFile => rules.lacks(Rule::FenceInPlace),
            Self::Early => {
                rules.lacks(Rule::TokenCheckAfterSync)
                    || rules.lacks(Rule::FreshReadCheckBegunAfterArrival)
            }
            Self::UsedEarly => rules.lacks(Rule::TokenCheckAfterSync),
        }
    }

    pub fn passes(self, token: Token) -> bool {
        !matches!(self, Self::Direct | Self::Early) || token == Token::Own
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Produce { broker: u8, record: u8 },
    Sync { broker: u8 },
    RetrySync { broker: u8 },
    Check { broker: u8, read: TokenRead },
    AckOutOfOrder { broker: u8 },
    Close { broker: u8 },
    Land { lane: u8, block: u8 },
    Lose { lane: u8, block: u8 },
    Damage { lane: u8, block: u8 },
    Begin { broker: u8 },
    WriteFence { broker: u8 },
    SyncFence { broker: u8 },
    LoseFence { lane: u8 },
    TrustClose { broker: u8 },
    ReadTail { broker: u8, missed: u8 },
    LinkSeal { broker: u8 },
    SyncSeal { broker: u8 },
    LoseSeal { lane: u8 },
    SetSealedEnd { broker: u8 },
    Reassign { broker: u8 },
    AppendExtent { broker: u8 },
    Load { broker: u8 },
}

impl Action {
    /// The broker that seals, for a step of sealing.
    pub fn broker(self) -> Option<u8> {
        match self {
            Self::WriteFence { broker }
            | Self::SyncFence { broker }
            | Self::TrustClose { broker }
            | Self::ReadTail { broker, .. }
            | Self::LinkSeal { broker }
            | Self::SyncSeal { broker }
            | Self::SetSealedEnd { broker } => Some(broker),
            _ => None,
        }
    }
}

/// A first leader and its successors on a shared disk.
#[derive(Clone, Copy, Debug)]
pub struct LaneModel {
    pub rules: Rules,
    pub loss: Loss,
    /// How many successors race.
    pub successors: u8,
    /// How many takeovers there may be.
    pub last_epoch: u8,
    /// Blocks that a broker may have written and not yet fence-checked.
    pub write_depth: u8,
    /// The leader of the last epoch appends nothing: nobody would read it any more.
    pub last_leader_reads_only: bool,
}

impl LaneModel {
    pub fn brokers(&self) -> std::ops::RangeInclusive<u8> {
        0..=self.successors
    }

    /// The end of what a broker serves to Fetch.
    fn served_end(&self, state: &LaneState, broker: u8) -> u8 {
        if self.rules.has(Rule::FetchBelowFenceCheckedEnd) {
            state.broker(broker).fence_checked_end()
        } else {
            state.log_end(broker)
        }
    }

    /// Whether a broker would answer a fresh read that arrives now.
    fn answers_fresh_read(&self, state: &LaneState, broker: u8) -> bool {
        let (memory, lane) = (state.broker(broker), state.lane(broker));
        if lane.closed.is_some() && self.rules.has(Rule::NoFreshReadAfterClose) {
            return false;
        }
        let checks = self.rules.has(Rule::FreshReadChecksToken);
        let early = memory.early_check && self.rules.lacks(Rule::FreshReadCheckBegunAfterArrival);
        state.leading(broker) && (!checks || early || lane.token == Token::Own)
    }
}

impl Model for LaneModel {
    type State = LaneState;
    type Action = Action;

    fn init_states(&self) -> Vec<LaneState> {
        assert!(usize::from(self.successors) < BROKERS);
        vec![LaneState::initial()]
    }

    fn actions(&self, state: &LaneState, actions: &mut Vec<Action>) {
        write::actions(self, state, actions);
        takeover::actions(self, state, actions);
    }

    fn next_state(&self, last: &LaneState, action: Action) -> Option<LaneState> {
        let mut state = *last;
        let next = &mut state;
        let taken = match action {
            Action::Produce { broker, record } => write::produce(self, next, broker, record),
            Action::Sync { broker } => write::sync(next, broker),
            Action::RetrySync { broker } => write::retry_sync(next, broker),
            Action::Check { broker, read } => write::check(self, next, broker, read),
            Action::AckOutOfOrder { broker } => write::ack_out_of_order(next, broker),
            Action::Close { broker } => write::close(self, next, broker),
            Action::Land { lane, block } => write::land(next, lane, block),
            Action::Lose { lane, block } => write::lose(next, lane, block),
            Action::Damage { lane, block } => write::damage(self, next, lane, block),
            Action::Begin { broker } => takeover::begin(self, next, broker),
            Action::LoseFence { lane } => takeover::lose_fence(next, lane),
            Action::LoseSeal { lane } => takeover::lose_seal(next, lane),
            Action::Reassign { broker } => takeover::reassign(self, next, broker),
            Action::AppendExtent { broker } => takeover::append_extent(next, broker),
            Action::Load { broker } => takeover::load(self, next, broker),
            sealing => takeover::seal_step(self, next, sealing),
        };
        taken.filter(|()| state != *last).map(|()| state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(ACKED_IS_KEPT, acked_is_kept),
            Property::always(ONE_RECORD_PER_OFFSET, one_record_per_offset),
            Property::always(NO_DUPLICATE, no_duplicate),
            Property::always(FRESH_READS_ARE_FRESH, fresh_reads_are_fresh),
            Property::always(COVERED_BLOCKS_COUNT, covered_blocks_count),
            Property::sometimes("a late block lies beyond sealed_end", late_block_beyond_the_end),
            Property::sometimes("SEAL holds a block", seal_holds_a_block),
            Property::sometimes("a closed lane needs no fence", closed_lane_needs_no_fence),
        ];
        if !self.last_leader_reads_only || self.last_epoch > 1 {
            properties.push(Property::sometimes("a successor acks", successor_acks));
        }
        if self.last_epoch > 1 {
            properties.push(Property::sometimes("a second takeover", second_takeover));
        }
        properties
    }
}

fn acked_is_kept(model: &LaneModel, state: &LaneState) -> bool {
    let leader = state.metadata.leader;
    let kept = |record: u8| {
        let offset = state.acked[usize::from(record)];
        offset.is_none_or(|offset| state.record_at(leader, offset) == Some(record))
    };
    debug_assert!(model.brokers().contains(&leader));
    !state.leading(leader) || (0u8..).take(RECORDS).all(kept)
}

fn one_record_per_offset(model: &LaneModel, state: &LaneState) -> bool {
    model.brokers().filter(|a| state.leading(*a)).all(|a| {
        (0..a).filter(|b| state.leading(*b)).all(|b| {
            let end = model.served_end(state, a).min(model.served_end(state, b));
            (0..end).all(|offset| {
                let (one, other) = (state.record_at(a, offset), state.record_at(b, offset));
                one.is_none() || other.is_none() || one == other
            })
        })
    })
}

fn no_duplicate(model: &LaneModel, state: &LaneState) -> bool {
    model.brokers().filter(|broker| state.leading(*broker)).all(|broker| {
        let end = state.log_end(broker);
        (0u8..).take(RECORDS).all(|record| {
            let holds = |offset: &u8| state.record_at(broker, *offset) == Some(record);
            (0..end).filter(holds).count() <= 1
        })
    })
}

fn fresh_reads_are_fresh(model: &LaneModel, state: &LaneState) -> bool {
    model.brokers().filter(|broker| model.answers_fresh_read(state, *broker)).all(|broker| {
        let end = state.broker(broker).fence_checked_end();
        end >= state.acked_end()
    })
}

/// The meter and other readers of a lane rely on what a later block's `durable_seq` covers.
fn covered_blocks_count(_: &LaneModel, state: &LaneState) -> bool {
    state
        .lanes
        .iter()
        .zip(state.metadata.sealed_end)
        .all(|(lane, sealed_end)| sealed_end.is_none_or(|end| lane.durable_seen() <= end))
}

fn late_block_beyond_the_end(_: &LaneModel, state: &LaneState) -> bool {
    state.lanes.iter().zip(state.metadata.sealed_end).any(|(lane, sealed_end)| {
        let beyond = sealed_end.and_then(|end| lane.block(end));
        beyond.is_some_and(|block| block.visible())
    })
}

fn seal_holds_a_block(_: &LaneModel, state: &LaneState) -> bool {
    state.lanes.iter().zip(state.metadata.sealed_end).any(|(lane, sealed_end)| {
        lane.seal.is_some_and(|seal| seal.copies != 0) && sealed_end.is_some()
    })
}

fn closed_lane_needs_no_fence(_: &LaneModel, state: &LaneState) -> bool {
    let lane = &state.lanes[0];
    lane.closed.is_some() && lane.token == Token::Own && state.metadata.epoch > 0
}

fn successor_acks(_: &LaneModel, state: &LaneState) -> bool {
    state.brokers.iter().any(|broker| broker.epoch > 0 && broker.checked > 0)
}

fn second_takeover(model: &LaneModel, state: &LaneState) -> bool {
    model.brokers().any(|n| state.leading(n) && state.broker(n).epoch == 2)
}
