//! Hand-overs that the controller orders: of all that a broker leads which is about to stop, to
//! leaders that clients chose, and, once a broker has come, so that all lead about as many
//! partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use tokio::time::Instant;

use freshet_metadata::cluster::ClusterError;
use freshet_metadata::view::Snapshot;
use freshet_wire::ids::{Incarnation, PartitionId};

use super::{Assignment, Controller, leaders, shares};
use crate::messages::{FromController, HandOver, Order};
use crate::planning::{level, spread};

/// The most partitions of a broker that are handed over at a time: while they are, they take no
/// batches.
const AT_ONCE_MAX: usize = 128;
/// So many pulses after a broker said that it is about to stop, its partitions are moved: where the
/// whole cluster stops, the others have said it, too, by then.
const LEAVE_PULSES: u32 = 2;

/// What the controller remembers of hand-overs.
pub(crate) struct Moves {
    /// Those that were ordered, and when.
    ordered: BTreeMap<PartitionId, (Assignment, Instant)>,
    /// Who followed at the last look, and since when the same do.
    settled: (BTreeSet<Incarnation>, Instant),
    /// Whether they lead about as many since. What clients choose later stays.
    are_level: bool,
}

impl Moves {
    pub(crate) fn new(now: Instant) -> Self {
        Self { ordered: BTreeMap::new(), settled: (BTreeSet::new(), now), are_level: false }
    }
}

impl Controller<'_> {
    /// Orders the hand-overs that are due.
    pub(crate) fn move_partitions(&mut self, snapshot: &Snapshot, now: Instant) {
        let survivors = self.survivors();
        let own = self.member.incarnation();
        if self.member.leaves() {
            self.leaving.entry(own).or_insert(now);
        }
        self.leaving.retain(|incarnation, _| survivors.contains(incarnation));
        if self.moves.settled.0 != survivors {
            self.moves.settled = (survivors.clone(), now);
            self.moves.are_level = false;
        }
        let led: BTreeMap<_, _> = leaders(snapshot).collect();
        let move_max = self.member.times.move_max;
        self.moves.ordered.retain(|id, (Assignment { from, to }, at)| {
            let is_open = led.get(id) == Some(from) && now.duration_since(*at) < move_max;
            is_open && survivors.contains(to)
        });
        let mut takers = survivors;
        takers.retain(|incarnation| !self.leaving.contains_key(incarnation));
        self.empty_leaving(snapshot, &led, &takers, now);
        self.fulfill_wishes(snapshot, &led, &takers, now);
        let is_settled = now.duration_since(self.moves.settled.1) >= self.member.times.settle;
        let is_calm = self.leaving.is_empty() && self.assigned.is_empty();
        if is_settled && is_calm && self.moves.ordered.is_empty() && !self.moves.are_level {
            self.level(snapshot, &led, &takers, now);
        }
    }

    /// Has partitions of those handed over that are about to stop, and releases who leads nothing.
    fn empty_leaving(
        &mut self,
        snapshot: &Snapshot,
        led: &BTreeMap<PartitionId, Incarnation>,
        takers: &BTreeSet<Incarnation>,
        now: Instant,
    ) {
        let wait = self.member.times.pulse * LEAVE_PULSES;
        let due = self.leaving.iter().filter(|(_, since)| now.duration_since(**since) >= wait);
        for leaving in due.map(|(incarnation, _)| *incarnation).collect::<Vec<_>>() {
            let mut rest = led.iter().filter(|(_, leader)| **leader == leaving).peekable();
            if rest.peek().is_none() || takers.is_empty() {
                self.release(leaving);
                continue;
            }
            if self.moves.ordered.values().any(|(ordered, _)| ordered.from == leaving) {
                continue;
            }
            let batch = rest.take(AT_ONCE_MAX).map(|(id, _)| *id).collect();
            let shares = shares(snapshot, takers, &self.counts(led));
            for (to, partitions) in spread(&batch, &shares) {
                self.order_move(Assignment { from: leaving, to }, partitions, now);
            }
        }
    }

    /// Has partitions handed over to the leaders that clients chose.
    fn fulfill_wishes(
        &mut self,
        snapshot: &Snapshot,
        led: &BTreeMap<PartitionId, Incarnation>,
        takers: &BTreeSet<Incarnation>,
        now: Instant,
    ) {
        if snapshot.wanted_leaders.is_empty() {
            return;
        }
        let slots = takers.iter().filter_map(|taker| {
            let stored = snapshot.incarnations.get(taker)?;
            Some((stored.record.slot, *taker))
        });
        let by_slot: BTreeMap<u32, Incarnation> = slots.collect();
        let mut counts: BTreeMap<Incarnation, usize> = BTreeMap::new();
        for (Assignment { from, .. }, _) in self.moves.ordered.values() {
            *counts.entry(*from).or_default() += 1;
        }
        let mut due: BTreeMap<_, BTreeSet<PartitionId>> = BTreeMap::new();
        for (id, stored) in snapshot.wanted_leaders.iter() {
            let (Some(from), Some(to)) = (led.get(id), by_slot.get(&stored.record.slot)) else {
                continue;
            };
            // All of one that is about to stop is handed over anyway.
            if from == to || !takers.contains(from) || self.moves.ordered.contains_key(id) {
                continue;
            }
            let count = counts.entry(*from).or_default();
            if *count < AT_ONCE_MAX {
                *count += 1;
                due.entry((*from, *to)).or_default().insert(*id);
            }
        }
        for ((from, to), partitions) in due {
            self.order_move(Assignment { from, to }, partitions, now);
        }
    }

    /// Forgets what clients chose where it holds, or where the partition is gone. Breaks where the
    /// term is over.
    pub(crate) async fn forget_wishes(&self, snapshot: &Snapshot) -> ControlFlow<()> {
        let is_done = |id: &PartitionId, slot: u32| {
            let Some(partition) = snapshot.topics.partition(*id) else { return true };
            let leader = partition.record.leader.filter(|leader| snapshot.is_live(*leader));
            let leader = leader.and_then(|leader| snapshot.incarnations.get(&leader));
            leader.is_some_and(|stored| stored.record.slot == slot)
        };
        let wishes = snapshot.wanted_leaders.iter();
        let done = wishes.filter(|(id, stored)| is_done(id, stored.record.slot));
        let done: BTreeMap<_, _> = done.map(|(id, stored)| (*id, stored.revision)).collect();
        if done.is_empty() {
            return ControlFlow::Continue(());
        }
        match self.member.metadata.forget_wanted_leaders(self.term.fence(), &done).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(ClusterError::Deposed | ClusterError::Fenced(_)) => ControlFlow::Break(()),
            Err(error) => {
                tracing::warn!(%error, "cannot forget who was to lead partitions yet");
                ControlFlow::Continue(())
            }
        }
    }

    fn level(
        &mut self,
        snapshot: &Snapshot,
        led: &BTreeMap<PartitionId, Incarnation>,
        brokers: &BTreeSet<Incarnation>,
        now: Instant,
    ) {
        let shares = shares(snapshot, brokers, &self.counts(led));
        let mut free = led.clone();
        free.retain(|id, _| !snapshot.wanted_leaders.contains_key(id));
        let plan = level(&free, &shares, AT_ONCE_MAX);
        self.moves.are_level = plan.is_empty();
        for ((from, to), partitions) in plan {
            self.order_move(Assignment { from, to }, partitions, now);
        }
    }

    /// How many partitions each broker leads, or is to have.
    fn counts(&self, led: &BTreeMap<PartitionId, Incarnation>) -> BTreeMap<Incarnation, usize> {
        let mut counts = BTreeMap::new();
        for (id, leader) in led {
            let ordered = self.moves.ordered.get(id).map(|(ordered, _)| ordered.to);
            *counts.entry(ordered.unwrap_or(*leader)).or_default() += 1;
        }
        counts
    }

    fn order_move(
        &mut self,
        assignment: Assignment,
        partitions: BTreeSet<PartitionId>,
        now: Instant,
    ) {
        let Assignment { from, to } = assignment;
        tracing::info!(%from, %to, partitions = partitions.len(), "orders a hand-over");
        let ordered = partitions.iter().map(|id| (*id, (assignment, now)));
        self.moves.ordered.extend(ordered);
        self.order(from, Order::HandOver(HandOver { successor: to, partitions }));
    }

    fn release(&self, leaving: Incarnation) {
        if leaving == self.member.incarnation() {
            self.member.note_released();
        } else if let Some(link) = self.links.get(&leaving) {
            // It is sent again with the next look, should the channel break.
            let _ = link.orders.send(FromController::Released);
        }
    }
}
