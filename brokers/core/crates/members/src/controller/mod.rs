//! The controller in its term: it notices who has died, fences them, and spreads what they led over
//! the survivors.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use freshet_metadata::cluster::{ClusterError, Term};
use freshet_metadata::schema::IncarnationState;
use freshet_metadata::view::Snapshot;
use freshet_quota::dealing::Dealer;
use freshet_wire::ids::{Incarnation, PartitionId};

use crate::Times;
use crate::channel::{Channel, ChannelError};
use crate::hanging::Hanging;
use crate::member::{Follower, Member, connect};
use crate::messages::{Adoption, FromController, Order, Pulse};
use crate::planning::{Survivor, spread};
use crate::suspicion::Suspicion;

mod moving;

use moving::Moves;

/// What the controller learns of another member.
enum Event {
    /// It sent a pulse.
    Pulse(Incarnation, Pulse),
    /// The channel of this number to it ended.
    Lost(Incarnation, u64),
    /// Something accepts connections at its address.
    Answers(Incarnation),
    /// Nothing listens at its address any more.
    Refused(Incarnation),
}

/// A member that follows.
struct Link {
    /// Tells a channel from an earlier one to the same member.
    number: u64,
    orders: mpsc::UnboundedSender<FromController>,
}

/// Who is to take a partition over from whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Assignment {
    from: Incarnation,
    to: Incarnation,
}

/// The controller of a term.
pub(crate) struct Controller<'a> {
    member: &'a Member,
    term: Term,
    number: u64,
    /// Orders for this broker itself.
    own_orders: &'a mpsc::UnboundedSender<Order>,
    suspicion: Suspicion,
    hanging: Hanging,
    links: BTreeMap<Incarnation, Link>,
    links_ever: u64,
    /// Those that have followed in this term.
    joined: BTreeSet<Incarnation>,
    /// Those that have not yet, with the moment since which they are expected.
    awaited: BTreeMap<Incarnation, Instant>,
    /// Those that need not be waited for: nothing listens at their addresses, or they were missed
    /// before this term.
    gone: BTreeSet<Incarnation>,
    /// Those that were fenced in this term.
    fenced: BTreeSet<Incarnation>,
    assigned: BTreeMap<PartitionId, Assignment>,
    /// Those that are about to stop, and since when that is known.
    leaving: BTreeMap<Incarnation, Instant>,
    moves: Moves,
    dealer: Dealer,
    dealt_at: Instant,
    began_at: Instant,
    events_in: mpsc::UnboundedSender<Event>,
    events: mpsc::UnboundedReceiver<Event>,
    tasks: JoinSet<()>,
}

impl<'a> Controller<'a> {
    pub(crate) fn new(
        member: &'a Member,
        (term, number): (Term, u64),
        missed: Option<Incarnation>,
        own_orders: &'a mpsc::UnboundedSender<Order>,
    ) -> Self {
        let (events_in, events) = mpsc::unbounded_channel();
        let now = Instant::now();
        Self {
            member,
            term,
            number,
            own_orders,
            suspicion: Suspicion::new(member.times, now),
            hanging: Hanging::new(member.times),
            links: BTreeMap::new(),
            links_ever: 0,
            joined: BTreeSet::new(),
            awaited: BTreeMap::new(),
            gone: missed.into_iter().collect(),
            fenced: BTreeSet::new(),
            assigned: BTreeMap::new(),
            leaving: BTreeMap::new(),
            moves: Moves::new(now),
            dealer: Dealer::default(),
            dealt_at: now,
            began_at: now,
            events_in,
            events,
            tasks: JoinSet::new(),
        }
    }

    /// Acts as controller until the term is over.
    pub(crate) async fn run(mut self, followers: &mut mpsc::Receiver<Follower>) {
        let mut looks = interval(self.member.times.pulse / 2);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while self.tasks.try_join_next().is_some() {}
            let is_due = tokio::select! {
                biased;
                _ = looks.tick() => true,
                Some(follower) = followers.recv() => {
                    self.admit(follower);
                    true
                }
                Some(event) = self.events.recv() => self.learn(event),
            };
            if is_due && self.look().await.is_break() {
                tracing::info!(term = self.number, "the term is over");
                return;
            }
        }
    }

    fn admit(&mut self, follower: Follower) {
        let Follower { incarnation, channel } = follower;
        self.links_ever += 1;
        let number = self.links_ever;
        let (orders, due) = mpsc::unbounded_channel();
        self.links.insert(incarnation, Link { number, orders });
        self.joined.insert(incarnation);
        self.awaited.remove(&incarnation);
        self.gone.remove(&incarnation);
        self.suspicion.hear(incarnation, Instant::now());
        // An order may have been lost with an earlier channel.
        self.assigned.retain(|_, assignment| assignment.to != incarnation);
        let events = self.events_in.clone();
        self.tasks.spawn(async move {
            let Err(error) = serve(channel, due, incarnation, &events).await;
            tracing::debug!(%error, %incarnation, "a channel ended");
            // The receiver is gone where the term is over.
            let _ = events.send(Event::Lost(incarnation, number));
        });
    }

    /// Takes note of an event; returns whether something may have to be done at once.
    fn learn(&mut self, event: Event) -> bool {
        let now = Instant::now();
        match event {
            Event::Pulse(incarnation, Pulse { leaves, storage, used }) => {
                self.suspicion.hear(incarnation, now);
                if leaves {
                    self.leaving.entry(incarnation).or_insert(now);
                }
                if let Some(storage) = storage {
                    self.hanging.report(incarnation, storage, now);
                }
                if let Some(uses) = used {
                    self.dealer.note(incarnation, &uses);
                }
                false
            }
            Event::Lost(incarnation, number) => {
                if self.links.get(&incarnation).is_some_and(|link| link.number == number) {
                    self.links.remove(&incarnation);
                    self.probe(incarnation);
                }
                false
            }
            Event::Answers(incarnation) => {
                let join_max = self.member.times.join_max;
                let since = self.awaited.get(&incarnation);
                if since.is_some_and(|since| now.duration_since(*since) < join_max) {
                    self.suspicion.hear(incarnation, now);
                }
                // Of a process that ends the connections may go before the listener.
                if !self.links.contains_key(&incarnation) {
                    self.probe(incarnation);
                }
                false
            }
            Event::Refused(incarnation) => self.gone.insert(incarnation),
        }
    }

    /// Finds out, in a moment, whether anything listens at a member's address.
    fn probe(&mut self, incarnation: Incarnation) {
        if !self.member.peers().contains(&incarnation) {
            return;
        }
        let address = self.member.address_of(incarnation);
        let Times { pulse, retry, connect_max, .. } = self.member.times;
        // One that starts takes a while; one whose channel has ended is back at once, or dead.
        let pause = if self.awaited.contains_key(&incarnation) { pulse } else { retry };
        let events = self.events_in.clone();
        let network = Arc::clone(&self.member.network);
        self.tasks.spawn(async move {
            let event = match connect(network.as_ref(), &address, connect_max).await {
                Ok(_) => {
                    sleep(pause).await;
                    Event::Answers(incarnation)
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    Event::Refused(incarnation)
                }
                // Whether it lives is seen by its pulses.
                Err(_) => return,
            };
            let _ = events.send(event);
        });
    }

    /// Looks who has died, and who has to take over. Breaks where the term is over.
    async fn look(&mut self) -> ControlFlow<()> {
        let snapshot = self.member.view.snapshot();
        if snapshot.controller.as_ref().is_some_and(|stored| stored.record.term > self.number) {
            return ControlFlow::Break(());
        }
        let now = Instant::now();
        let peers = self.peers();
        self.suspicion.expect(peers.iter().copied(), now);
        self.links.retain(|incarnation, _| peers.contains(incarnation));
        self.awaited.retain(|incarnation, _| peers.contains(incarnation));
        self.gone.retain(|incarnation| peers.contains(incarnation));
        let new = peers
            .iter()
            .filter(|peer| !self.joined.contains(peer) && !self.awaited.contains_key(peer));
        for peer in new.copied().collect::<Vec<_>>() {
            self.awaited.insert(peer, now);
            self.probe(peer);
        }
        let mut suspects = self.suspicion.look(now);
        if peers.len() > 1 && suspects.len() * 2 > peers.len() {
            // It may be this broker that nobody hears: then they elect another one meanwhile.
            let Times { silence_max, doubt, .. } = self.member.times;
            suspects = self.suspicion.silent(now, silence_max + doubt);
        }
        suspects.extend(&self.gone);
        for suspect in suspects {
            let gone = self.gone.contains(&suspect);
            let why = if gone { "nothing listens at its address" } else { "it says nothing" };
            self.fence(suspect, why).await?;
        }
        self.fence_hanging(&peers, now).await?;
        self.assign(&snapshot, now);
        self.move_partitions(&snapshot, now);
        self.deal_shares(now);
        self.forget_wishes(&snapshot).await
    }

    /// The other brokers that live, as far as this one knows.
    fn peers(&self) -> BTreeSet<Incarnation> {
        let live = self.member.peers().into_iter();
        live.filter(|incarnation| !self.fenced.contains(incarnation)).collect()
    }

    /// Fences whose storage hangs. This broker may be one of them: then it fences itself, and its
    /// term is over. Nothing but this decides over a controller, because nobody else has the
    /// reports of all, and its pulses need no storage.
    async fn fence_hanging(
        &mut self,
        peers: &BTreeSet<Incarnation>,
        now: Instant,
    ) -> ControlFlow<()> {
        let own = self.member.incarnation();
        self.hanging.report(own, self.member.duties.storage(), now);
        self.hanging.expect(|one| one == own || peers.contains(&one));
        for idle in self.hanging.idle(now) {
            if idle == own {
                self.member.duties.prove_storage();
            } else if let Some(link) = self.links.get(&idle) {
                // It is asked again where this is lost.
                let _ = link.orders.send(FromController::Prove);
            }
        }
        for suspect in self.hanging.look(now, self.suspicion.stood_still_at()) {
            self.fence(suspect, "its storage hangs while others write").await?;
            if self.fenced.contains(&own) {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Ends the right of a member to change metadata.
    async fn fence(&mut self, suspect: Incarnation, why: &str) -> ControlFlow<()> {
        let fence = Some(self.term.fence());
        let marked = self.member.metadata.mark_fenced(fence, suspect).await;
        match marked {
            Ok(_) | Err(ClusterError::UnknownIncarnation(_)) => {
                // It may have stopped, which the image does not show yet.
                if marked.is_ok_and(|record| record.state == IncarnationState::Fenced) {
                    tracing::warn!(%suspect, why, "fenced a broker");
                }
                self.fenced.insert(suspect);
                self.links.remove(&suspect);
                ControlFlow::Continue(())
            }
            Err(ClusterError::Deposed | ClusterError::Fenced(_)) => ControlFlow::Break(()),
            Err(error) => {
                tracing::warn!(%error, %suspect, "cannot fence a broker yet");
                ControlFlow::Continue(())
            }
        }
    }

    /// Gives the partitions that have lost their leader to the survivors.
    fn assign(&mut self, snapshot: &Snapshot, now: Instant) {
        let live = self.peers();
        let is_early = now.duration_since(self.began_at) < self.member.times.gather;
        if is_early && live.iter().any(|peer| !self.links.contains_key(peer)) {
            return;
        }
        let own = self.member.incarnation();
        let mut led: BTreeMap<Incarnation, usize> = BTreeMap::new();
        let mut orphans = BTreeMap::new();
        for (id, leader) in leaders(snapshot) {
            if leader == own || live.contains(&leader) {
                *led.entry(leader).or_default() += 1;
            } else {
                orphans.insert(id, leader);
            }
        }
        let survivors = self.survivors();
        self.assigned.retain(|id, Assignment { from, to }| {
            orphans.get(id) == Some(from) && survivors.contains(to)
        });
        for assignment in self.assigned.values() {
            *led.entry(assignment.to).or_default() += 1;
        }
        let new: BTreeSet<_> =
            orphans.keys().filter(|id| !self.assigned.contains_key(id)).copied().collect();
        if new.is_empty() {
            return;
        }
        let staying: BTreeSet<_> =
            survivors.iter().filter(|one| !self.leaving.contains_key(one)).copied().collect();
        // Who is about to stop takes over where nobody else can.
        let takers = if staying.is_empty() { survivors } else { staying };
        for (to, partitions) in spread(&new, &shares(snapshot, &takers, &led)) {
            let from = |id: &PartitionId| orphans[id];
            for id in &partitions {
                self.assigned.insert(*id, Assignment { from: from(id), to });
            }
            let dead: BTreeSet<_> = partitions.iter().map(from).collect();
            tracing::info!(%to, ?dead, partitions = partitions.len(), "orders a takeover");
            self.order(to, Order::Adopt(Adoption { dead, partitions }));
        }
    }

    /// Deals shares of the cluster's limits to those that live, by what they used.
    fn deal_shares(&mut self, now: Instant) {
        if now.duration_since(self.dealt_at) < self.member.times.deal {
            return;
        }
        self.dealt_at = now;
        let own = self.member.incarnation();
        let mut live = self.peers();
        if live.is_empty() {
            return;
        }
        live.insert(own);
        self.dealer.note(own, &self.member.duties.report_use());
        for (broker, shares) in self.dealer.deal(&live) {
            if broker == own {
                self.member.duties.set_shares(shares);
            } else if let Some(link) = self.links.get(&broker) {
                // A receiver that is gone gets the next ones.
                let _ = link.orders.send(FromController::Shares(shares));
            }
        }
    }

    /// The brokers that can be given something to do: this one, and those that follow it.
    fn survivors(&self) -> BTreeSet<Incarnation> {
        self.links.keys().copied().chain([self.member.incarnation()]).collect()
    }

    /// Has a broker do something.
    fn order(&self, to: Incarnation, order: Order) {
        // A receiver that is gone gets the order again once it follows again, or another one does.
        if to == self.member.incarnation() {
            let _ = self.own_orders.send(order);
        } else if let Some(link) = self.links.get(&to) {
            let _ = link.orders.send(FromController::Do(order));
        }
    }
}

/// Brokers with the number of partitions that each leads, or is to take over.
fn shares(
    snapshot: &Snapshot,
    brokers: &BTreeSet<Incarnation>,
    led: &BTreeMap<Incarnation, usize>,
) -> Vec<Survivor> {
    let known = brokers.iter().filter_map(|one| Some((one, snapshot.incarnations.get(one)?)));
    known
        .map(|(incarnation, stored)| Survivor {
            incarnation: *incarnation,
            slot: stored.record.slot,
            partitions: led.get(incarnation).copied().unwrap_or(0),
        })
        .collect()
}

/// The partitions that have a leader, and who that is.
fn leaders(snapshot: &Snapshot) -> impl Iterator<Item = (PartitionId, Incarnation)> {
    snapshot.led_topics().flat_map(|topic| {
        let leaders = topic.partitions.iter().map(|stored| stored.record.leader);
        let led = (0..).zip(leaders).filter_map(|(index, leader)| Some((index, leader?)));
        led.map(|(index, leader)| (PartitionId::new(topic.record.id, index), leader))
    })
}

/// Answers the pulses of a follower, and sends it what it is to do, until the channel ends.
async fn serve(
    channel: Channel,
    mut orders: mpsc::UnboundedReceiver<FromController>,
    incarnation: Incarnation,
    events: &mpsc::UnboundedSender<Event>,
) -> Result<std::convert::Infallible, ChannelError> {
    let Channel { mut sender, mut receiver } = channel;
    loop {
        tokio::select! {
            biased;
            pulse = receiver.receive() => {
                let _ = events.send(Event::Pulse(incarnation, pulse?));
                sender.send(&FromController::Heard).await?;
            }
            order = orders.recv() => match order {
                Some(order) => sender.send(&order).await?,
                // The member was fenced, or follows by another channel.
                None => return Err(std::io::Error::from(ErrorKind::ConnectionAborted).into()),
            },
        }
    }
}
