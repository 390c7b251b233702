//! One simulation: a cluster, its clients, its faults, and the verdict.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use freshet_jobs::JobSettings;
use freshet_metadata::store::{Entry, MetadataStore};
use freshet_storage::lane::METERED;
use freshet_storage::lane::block::{Block, BlockHeader, BlockKind, HEADER_BYTES};
use freshet_storage::rules::Rules;
use freshet_wire::records::StoredBatch;
use freshet_world::sim::disk::HostId;
use freshet_world::sim::faults::DiskFaults;
use freshet_world::sim::random::Seeded;
use freshet_world::sim::world::World;
use kafka_protocol::ResponseError;
use tokio::sync::{Notify, mpsc, oneshot};

use super::broker::{self, Answer, Ask, BrokerHandle, BrokerSetup, Envelope, Order, Status};
use super::chaos::{Fault, Noticed, Profile};
use super::checker::{Checker, FinalLog, Keeping, Place, records};
use super::clients::{Committer, Producer, Reader, Surveyor, TopicMaker, Trimmer, View};
use super::metadata::{MetadataFaults, SimMetadata};

mod hang;

pub use hang::{simulate_hang, simulate_hang_of_all};

/// A topic of the workload.
struct SimTopic {
    name: &'static str,
    partitions: i32,
    keeping: Keeping,
    configs: &'static [(&'static str, &'static str)],
}

/// The `retention.bytes` of the topic with little room.
const KEPT_BYTES: usize = 6000;

/// The timestamps of the workload are from 1970.
const FOR_EVER: &[(&str, &str)] = &[("retention.ms", "-1")];

const TOPICS: [SimTopic; 4] = [
    SimTopic { name: "orders", partitions: 2, keeping: Keeping::All, configs: FOR_EVER },
    SimTopic { name: "events", partitions: 1, keeping: Keeping::All, configs: FOR_EVER },
    SimTopic {
        name: "table",
        partitions: 1,
        keeping: Keeping::NewestOfKey,
        configs: &[
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", "0.2"),
            ("delete.retention.ms", "300"),
        ],
    },
    SimTopic {
        name: "capped",
        partitions: 1,
        keeping: Keeping::Bytes(KEPT_BYTES),
        configs: &[("retention.ms", "-1"), ("retention.bytes", "6000")],
    },
];
/// The topic with the groups' offsets, which is compacted as in a real cluster.
const OFFSETS: SimTopic = SimTopic {
    name: "__consumer_offsets",
    partitions: 2,
    keeping: Keeping::NewestOfKey,
    configs: &[("cleanup.policy", "compact")],
};
/// The topic whose records are deleted now and then.
const TRIMMED: &str = "events";
const PRODUCERS_EACH: i64 = 2;
/// After this long without a fault, in ms, everything that was under way is over.
const QUIET_MS: u64 = 30_000;
/// How long clients go on after the last fault, in ms.
const AFTERMATH_MS: u64 = 600;
/// How many brokers of a slot clients may still ask.
const REMEMBERED: usize = 3;
/// Among several brokers a death is noticed at most this long after it, in ms, and the slot has
/// another broker at most so long after it.
const NOTICED_MS: u64 = 60;
const REFILLED_MS: u64 = 300;

/// What a simulation did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    pub acked: u64,
    pub takeovers: u64,
    /// How often survivors took over from a broker of another slot.
    pub adoptions: u64,
    /// How many partitions were handed over.
    pub moves: u64,
    pub split_reads: u64,
    pub faults: u64,
    pub metered: u64,
    pub reused_files: u64,
    /// Seeds in which a byte was flipped on purpose.
    pub rotted: u64,
    /// Those of them that ended in a refusal to go on.
    pub refused: u64,
}

impl Totals {
    pub fn add(&mut self, other: &Self) {
        self.acked += other.acked;
        self.takeovers += other.takeovers;
        self.adoptions += other.adoptions;
        self.moves += other.moves;
        self.split_reads += other.split_reads;
        self.faults += other.faults;
        self.metered += other.metered;
        self.reused_files += other.reused_files;
        self.rotted += other.rotted;
        self.refused += other.refused;
    }
}

/// The verdict.
pub struct Outcome {
    pub violations: Vec<String>,
    pub trace: Vec<String>,
    pub totals: Totals,
}

struct Clients {
    producers: Vec<Producer>,
    readers: Vec<Reader>,
    surveyors: Vec<Surveyor>,
    committers: Vec<Committer>,
    trimmer: Trimmer,
    topic_maker: TopicMaker,
}

fn places() -> Vec<Place> {
    let places = TOPICS
        .iter()
        .flat_map(|topic| (0..topic.partitions).map(|index| (topic.name.to_owned(), index)));
    places.collect()
}

fn keeping(place: &Place) -> Keeping {
    let topic = TOPICS.iter().find(|topic| topic.name == place.0);
    topic.expect("places are of these topics").keeping
}

impl Clients {
    fn new() -> Self {
        let places = places();
        let producer = |number: i64, at: i64, place: &Place| {
            let table = keeping(place) == Keeping::NewestOfKey;
            Producer::new(100 * number + at, place.clone(), table)
        };
        let producers = (0..PRODUCERS_EACH)
            .flat_map(|number| (0..).zip(&places).map(move |(at, place)| (number, at, place)))
            .map(|(number, at, place)| producer(number, at, place))
            .collect();
        let reader = |place: &Place| Reader::new(place.clone(), keeping(place));
        Self {
            producers,
            readers: places.iter().map(reader).collect(),
            surveyors: places.iter().cloned().map(Surveyor::new).collect(),
            committers: vec![Committer::new("group-a", places[0].clone())],
            trimmer: Trimmer::new((TRIMMED.to_owned(), 0)),
            topic_maker: TopicMaker::default(),
        }
    }

    fn step(&mut self, view: &mut View<'_>) {
        self.producers.iter_mut().for_each(|client| client.step(view));
        self.readers.iter_mut().for_each(|client| client.step(view));
        self.surveyors.iter_mut().for_each(|client| client.step(view));
        self.committers.iter_mut().for_each(|client| client.step(view));
        self.trimmer.step(view);
        self.topic_maker.step(view);
    }
}

struct Simulation {
    world: World,
    metadata: SimMetadata,
    rules: Rules,
    jobs: [JobSettings; 2],
    hot_bytes: [usize; 2],
    stale_per_mille: u64,
    random: Seeded,
    slots: u32,
    noticed: Noticed,
    /// Of each slot the current one last.
    brokers: Vec<BrokerHandle>,
    /// When slots get another broker.
    refills: Vec<(u64, u32)>,
    /// When the survivors are to take over from a broker.
    orders: Vec<(u64, Order)>,
    /// When a paused broker goes on.
    resumes: Vec<(u64, HostId)>,
    /// When everything passes between brokers again.
    healed_at_ms: u64,
    clients: Clients,
    checker: Checker,
    totals: Totals,
    trace: Vec<String>,
    backup: Vec<Entry>,
    full_until_ms: (u64, u64),
    draining: bool,
    /// A byte was flipped on purpose.
    rotted: bool,
    /// The cluster refused to go on over that damage, as it should.
    refused: bool,
}

fn is_lane_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "wal")
}

/// The blocks of a lane file, with their positions.
fn blocks_of(bytes: &Bytes) -> Vec<(usize, BlockHeader)> {
    let mut blocks = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let Ok(block) = Block::parse(&bytes.slice(position..)) else { break };
        blocks.push((position, block.header));
        position += block.header.span();
    }
    blocks
}

/// Runs one seed to its verdict.
pub fn simulate(seed: u64, rules: Rules, profile: &Profile) -> Outcome {
    let mut simulation = Simulation::new(seed, rules, profile);
    simulation.set_up();
    simulation.live_through(profile);
    simulation.end()
}

impl Simulation {
    fn new(seed: u64, rules: Rules, profile: &Profile) -> Self {
        let mut random = Seeded::new(seed);
        let metadata = SimMetadata::new(random.fork(), MetadataFaults::default());
        Self {
            world: World::new(random.next_u64(), DiskFaults::none()),
            metadata,
            rules,
            jobs: profile.jobs,
            hot_bytes: profile.hot_bytes,
            stale_per_mille: profile.stale_per_mille,
            random,
            slots: profile.slots,
            noticed: profile.noticed,
            brokers: Vec::new(),
            refills: Vec::new(),
            orders: Vec::new(),
            resumes: Vec::new(),
            healed_at_ms: 0,
            clients: Clients::new(),
            checker: Checker::default(),
            totals: Totals::default(),
            trace: Vec::new(),
            backup: Vec::new(),
            full_until_ms: (0, 0),
            draining: false,
            rotted: false,
            refused: false,
        }
    }

    /// Comes to the verdict, without further faults.
    fn end(mut self) -> Outcome {
        self.calm_down();
        self.conclude();
        self.brokers.clone().iter().for_each(|broker| self.count_changes(broker));
        self.totals.reused_files = self.world.disk.reused_files();
        self.totals.rotted = u64::from(self.rotted);
        self.totals.refused = u64::from(self.refused);
        Outcome { violations: self.checker.violations, trace: self.trace, totals: self.totals }
    }

    fn note(&mut self, what: impl std::fmt::Display) {
        self.trace.push(format!("{:6} {what}", self.world.now_ms()));
    }

    fn start_broker(&mut self, slot: u32) {
        let (mailbox, questions) = mpsc::unbounded_channel();
        let (stop, status) = (Arc::new(Notify::new()), Arc::new(Status::default()));
        let store: Arc<dyn MetadataStore> = Arc::new(self.metadata.clone());
        let (on_stop, seen) = (Arc::clone(&stop), Arc::clone(&status));
        let which = (self.totals.takeovers % 2) as usize;
        let (jobs, hot_bytes) = (self.jobs[which], self.hot_bytes[which]);
        let is_member = self.noticed == Noticed::ByMembers;
        let setup = BrokerSetup { slot, rules: self.rules, jobs, hot_bytes, is_member };
        let host = self.world.start(|host, environment| {
            broker::run(host, environment, store, setup, questions, on_stop, seen)
        });
        self.note(format_args!("start {host} in slot {slot}"));
        self.totals.takeovers += 1;
        self.brokers.push(BrokerHandle { slot, host, mailbox, stop, status });
        let of_slot = self.brokers.iter().filter(|broker| broker.slot == slot).count();
        if of_slot > REMEMBERED {
            let oldest = self.brokers.iter().position(|broker| broker.slot == slot);
            let oldest = self.brokers.remove(oldest.expect("there are several"));
            self.end_host(oldest.host);
            self.count_changes(&oldest);
        }
    }

    fn count_changes(&mut self, broker: &BrokerHandle) {
        self.totals.adoptions += broker.status.adoptions.load(Ordering::Relaxed);
        self.totals.moves += broker.status.moves.load(Ordering::Relaxed);
    }

    fn end_host(&mut self, host: HostId) {
        if self.world.is_alive(host) {
            self.world.crash(host);
        }
        self.resumes.retain(|(_, paused)| *paused != host);
    }

    fn current(&self, slot: u32) -> BrokerHandle {
        let mut newest_first = self.brokers.iter().rev();
        newest_first.find(|broker| broker.slot == slot).expect("each slot has a broker").clone()
    }

    fn some_slot(&mut self) -> u32 {
        let at = if self.slots == 1 { 0 } else { self.random.below(u64::from(self.slots)) };
        u32::try_from(at).expect("few")
    }

    fn are_leading(&self) -> bool {
        (0..self.slots).all(|slot| {
            let status = self.current(slot).status;
            status.leading.load(Ordering::Relaxed) && !status.ended.load(Ordering::Relaxed)
        })
    }

    /// A millisecond: clients, hosts, and a keeper that replaces what has ended.
    fn step(&mut self) {
        let now_ms = self.world.now_ms();
        let due: Vec<_> = self.resumes.iter().filter(|(at, _)| *at <= now_ms).copied().collect();
        for (at, host) in due {
            self.note(format_args!("resume {host}"));
            self.world.resume(host);
            self.resumes.retain(|other| *other != (at, host));
        }
        if now_ms == self.healed_at_ms {
            self.world.network.heal();
        }
        self.world.disk.set_full(now_ms < self.full_until_ms.0);
        self.world.bucket.set_full(now_ms < self.full_until_ms.1);
        let mut view = View {
            now_ms,
            random: &mut self.random,
            brokers: &self.brokers,
            slots: self.slots,
            checker: &mut self.checker,
            totals: &mut self.totals,
            stale_per_mille: self.stale_per_mille,
            draining: self.draining,
        };
        self.clients.step(&mut view);
        self.world.step();
        self.keep();
    }

    fn keep(&mut self) {
        for broker in &self.brokers {
            let damage = broker.status.damage.lock().take().filter(|_| !self.rotted);
            if let Some(damage) = damage {
                self.checker
                    .violate(format!("a reader found damage where there is none: {damage}"));
            }
        }
        let ended: Vec<_> = self
            .brokers
            .iter()
            .filter(|broker| broker.status.ended.load(Ordering::Relaxed))
            .map(|broker| (broker.host, broker.status.reason.lock().clone()))
            .filter(|(host, _)| self.world.is_alive(*host))
            .collect();
        for (host, reason) in ended {
            self.note(format_args!("ended {host}: {reason}"));
            self.end_host(host);
        }
        for slot in 0..self.slots {
            if !self.world.is_alive(self.current(slot).host) {
                self.replace(slot);
            }
        }
        self.give_orders();
    }

    /// Has a slot's broker replaced: at once by another one where it is the only one, else by the
    /// survivors and in a while.
    fn replace(&mut self, slot: u32) {
        if self.slots == 1 {
            self.start_broker(slot);
            return;
        }
        if self.refills.iter().any(|(_, refilled)| *refilled == slot) {
            return;
        }
        let now_ms = self.world.now_ms();
        self.refills.push((now_ms + self.random.between(0, REFILLED_MS), slot));
        if self.noticed == Noticed::ByMembers {
            return;
        }
        let dead = self.current(slot).status.incarnation.load(Ordering::Relaxed);
        let noticed_ms = now_ms + self.random.between(1, NOTICED_MS);
        let (one, other) = ((slot + 1) % self.slots, (slot + 2) % self.slots);
        // Now and then both are to take all of it.
        let shares = if self.random.chance(200) { 1 } else { 2 };
        for (share, _) in (0..).zip([one, other]) {
            let order = Order { slot, dead, shares, share: share % shares };
            self.orders.push((noticed_ms, order));
        }
    }

    fn give_orders(&mut self) {
        let now_ms = self.world.now_ms();
        let is_due = |at: &u64| *at <= now_ms;
        let orders = std::mem::take(&mut self.orders);
        let (due, later): (Vec<_>, Vec<_>) = orders.into_iter().partition(|(at, _)| is_due(at));
        self.orders = later;
        for (number, (_, order)) in (1..).zip(due) {
            let survivor = self.current((order.slot + 1 + number % 2) % self.slots);
            let (reply, _) = oneshot::channel();
            // A survivor that died in the meantime takes nothing; the slot's next broker does.
            let _ = survivor.mailbox.send(Envelope { ask: Ask::Adopt(order), reply });
        }
        let refills = std::mem::take(&mut self.refills);
        let (due, later): (Vec<_>, Vec<_>) = refills.into_iter().partition(|(at, _)| is_due(at));
        self.refills = later;
        for (_, slot) in due {
            self.start_broker(slot);
        }
    }

    fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.step();
        }
    }

    fn set_up(&mut self) {
        self.start_broker(0);
        if self.slots > 1 {
            let slots = std::mem::replace(&mut self.slots, 1);
            let is_done = |answer: &Answer| matches!(answer, Answer::Created);
            let set = self.ask_until(10_000, is_done, || Ask::Scale(slots));
            assert!(set.is_some(), "the cluster has one slot: {:?}", self.trace);
            self.slots = slots;
            // It was started as the only broker.
            self.end_host(self.current(0).host);
            (0..slots).for_each(|slot| self.start_broker(slot));
        }
        for SimTopic { name, partitions, configs, .. } in TOPICS.into_iter().chain([OFFSETS]) {
            let created = self.ask_until(
                10_000,
                |answer| matches!(answer, Answer::Created),
                || Ask::Create { topic: name.to_owned(), partitions, configs },
            );
            assert!(created.is_some(), "{name} was not created: {:?}", self.trace);
        }
        self.backup = self.metadata.backup();
        self.note("set up");
    }

    /// Asks the current broker, or that of each slot in turn, until one gives an answer that will
    /// do.
    fn ask_until(
        &mut self,
        limit_ms: u64,
        good: impl Fn(&Answer) -> bool,
        question: impl Fn() -> Ask,
    ) -> Option<Answer> {
        let until = self.world.now_ms() + limit_ms;
        let mut turns = (0..self.slots).cycle();
        let mut refusals = BTreeSet::new();
        while self.world.now_ms() < until {
            let (reply, mut answered) = oneshot::channel();
            let slot = turns.next().expect("it never ends");
            // A broker that is gone leaves the question unanswered.
            let _ = self.current(slot).mailbox.send(Envelope { ask: question(), reply });
            for _ in 0..500 {
                self.world.step();
                self.keep();
                match answered.try_recv() {
                    Ok(answer) if good(&answer) => return Some(answer),
                    Ok(Answer::Failed(error)) => {
                        refusals.insert(format!("slot {slot}: {error}"));
                        break;
                    }
                    Ok(_) | Err(oneshot::error::TryRecvError::Closed) => break,
                    Err(oneshot::error::TryRecvError::Empty) => {}
                }
            }
        }
        self.note(format_args!("nobody answered as it should: {refusals:?}"));
        None
    }

    fn live_through(&mut self, profile: &Profile) {
        self.set_faults(profile.disk, profile.metadata);
        let until = self.world.now_ms() + profile.faults_ms;
        while self.world.now_ms() < until {
            let pause = self.random.between(5, profile.pause_ms_max);
            self.steps(pause);
            let at = self.random.below(profile.faults.len() as u64);
            let fault = profile.faults[usize::try_from(at).expect("few")];
            self.note(format_args!("{fault:?}"));
            self.totals.faults += 1;
            self.cause(fault);
        }
        // What the last fault leads to, zombies that wake up included, meets clients too.
        self.steps(AFTERMATH_MS);
    }

    fn set_faults(&mut self, disk: DiskFaults, metadata: MetadataFaults) {
        self.world.disk.set_faults(disk);
        self.world.bucket.set_faults(DiskFaults { stale_look_up: 0, ..disk });
        self.metadata.set_faults(metadata);
    }

    fn cause(&mut self, fault: Fault) {
        let slot = self.some_slot();
        let current = self.current(slot);
        let now_ms = self.world.now_ms();
        match fault {
            Fault::Crash => self.end_host(current.host),
            Fault::Zombie => {
                if self.world.is_alive(current.host) {
                    self.world.pause(current.host);
                    let resume = now_ms + self.random.between(20, 500);
                    self.resumes.push((resume, current.host));
                }
                self.replace(slot);
            }
            Fault::PowerLoss => {
                for slot in 0..self.slots {
                    self.end_host(self.current(slot).host);
                }
                self.world.disk.restart();
                self.world.bucket.restart();
            }
            Fault::ServerRestart => self.world.disk.restart(),
            Fault::CleanStop => {
                current.stop.notify_one();
                let pause = self.random.between(10, 300);
                self.steps(pause);
            }
            Fault::DiskFull => self.full_until_ms.0 = now_ms + self.random.between(50, 300),
            Fault::BucketFull => self.full_until_ms.1 = now_ms + self.random.between(50, 400),
            Fault::RestoredMetadata => {
                for host in self.brokers.iter().map(|broker| broker.host).collect::<Vec<_>>() {
                    self.end_host(host);
                }
                self.metadata.restore(&self.backup);
                if self.random.chance(300) {
                    self.backup = self.metadata.backup();
                }
            }
            Fault::Rot => {
                self.rot();
                self.end_host(current.host);
            }
            Fault::Race => {
                self.start_broker(slot);
                self.start_broker(slot);
            }
            Fault::Metered => self.meter(),
            Fault::Move => self.move_topic(slot),
            Fault::Cut => {
                let other = self.current((slot + 1) % self.slots).host;
                let (from, to) = if self.random.chance(500) {
                    (current.host, other)
                } else {
                    (other, current.host)
                };
                self.world.network.cut(from, to);
                self.healed_at_ms = now_ms + self.random.between(5, 200);
            }
            Fault::Hang => {
                self.world.disk.hang(current.host, now_ms + self.random.between(50, 4000));
            }
        }
        self.keep();
    }

    /// Has all others hand what they lead of a topic over to the broker of a slot.
    fn move_topic(&mut self, to: u32) {
        let topics = TOPICS.iter().chain([&OFFSETS]);
        let topics: Vec<_> = topics.map(|topic| (topic.name, topic.partitions)).collect();
        let at = usize::try_from(self.random.below(topics.len() as u64)).expect("few");
        let (topic, partitions) = topics[at];
        let successor = self.current(to).status.incarnation.load(Ordering::Relaxed);
        for slot in (0..self.slots).filter(|slot| *slot != to) {
            let (topic, indexes) = (topic.to_owned(), (0..partitions).collect());
            let ask = Ask::HandOver { topic, indexes, to: successor };
            let (reply, _) = oneshot::channel();
            // It may be gone.
            let _ = self.current(slot).mailbox.send(Envelope { ask, reply });
        }
    }

    /// Marks every lane of which only indexes are left.
    fn meter(&mut self) {
        let files = self.world.disk.durable_files();
        let lane_of = |path: &Path| path.parent().map(Path::to_owned);
        let held: BTreeSet<_> =
            files.keys().filter(|path| is_lane_file(path)).map(|path| lane_of(path)).collect();
        let split: BTreeSet<_> = files
            .keys()
            .filter(|path| path.extension().is_some_and(|extension| extension == "idx"))
            .map(|path| lane_of(path))
            .filter(|lane| !held.contains(lane))
            .collect();
        for lane in split.into_iter().flatten() {
            self.totals.metered += 1;
            self.world.disk.touch(&lane.join(METERED));
        }
    }

    /// Flips a byte of a block that a later one of the same file says was durable, once.
    fn rot(&mut self) {
        if self.rotted {
            return;
        }
        let files = self.world.disk.durable_files();
        let mut lanes: Vec<_> = files.iter().filter(|(path, _)| is_lane_file(path)).collect();
        while let Some((path, bytes)) = lanes.pop() {
            let blocks = blocks_of(bytes);
            let last_sure = blocks.iter().map(|(_, header)| header.durable_sequence).max();
            let sure = blocks
                .iter()
                .filter(|(_, header)| last_sure.is_some_and(|sure| header.sequence <= sure));
            let data: Vec<_> = sure.filter(|(_, header)| header.kind == BlockKind::Data).collect();
            if let Some((position, header)) = data.last() {
                let path = path.clone();
                self.note(format_args!("block {} of {} rots", header.sequence, path.display()));
                self.world.disk.rot(&path, position + HEADER_BYTES);
                self.rotted = true;
                return;
            }
        }
    }

    /// A lane that was damaged on purpose is not sealed where the damage is: nobody starts.
    fn refuses_damage(&self) -> bool {
        self.brokers.iter().any(|broker| broker.status.reason.lock().contains("damaged"))
    }

    /// Fault ends: everything under way is answered by one broker.
    fn calm_down(&mut self) {
        self.set_faults(DiskFaults::none(), MetadataFaults::default());
        self.full_until_ms = (0, 0);
        self.world.network.heal();
        self.draining = true;
        self.note("calm");
        for _ in 0..QUIET_MS {
            let idle = self.clients.producers.iter().all(Producer::is_idle);
            if idle && self.are_leading() && self.resumes.is_empty() {
                return;
            }
            self.step();
        }
        let reasons = (0..self.slots).map(|slot| self.current(slot).status.reason.lock().clone());
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        if self.rotted && self.refuses_damage() {
            self.note("refuses the damage");
            self.refused = true;
            return;
        }
        for (path, bytes) in self.world.disk.durable_files() {
            self.note(format_args!("{} {}", path.display(), bytes.len()));
        }
        self.checker.violate(format!("the cluster does not come back: {reasons}"));
    }

    /// Every topic that exists is led by whoever lives.
    fn conclude_topics(&mut self) {
        let known =
            self.ask_until(QUIET_MS, |answer| matches!(answer, Answer::Topics(_)), || Ask::Topics);
        let Some(Answer::Topics(topics)) = known else {
            self.checker.violate("nobody knows which topics exist".to_owned());
            return;
        };
        for topic in topics {
            let answer = self.ask_until(
                3000,
                |answer| matches!(answer, Answer::End(_)),
                || Ask::Latest { topic: topic.clone(), index: 0 },
            );
            if answer.is_none() {
                self.note_leaders();
                self.checker.violate(format!("topic {topic} exists, and nobody leads it"));
            }
        }
    }

    /// Notes what the metadata store says of who leads what.
    fn note_leaders(&mut self) {
        for Entry { key, value, .. } in self.metadata.backup() {
            if ["partition/", "slot/", "incarnation/"].iter().any(|kind| key.contains(kind)) {
                self.note(format_args!("{key} {}", String::from_utf8_lossy(&value)));
            }
        }
    }

    fn conclude(&mut self) {
        if self.refused || !self.checker.violations.is_empty() {
            return;
        }
        self.conclude_topics();
        for place in places() {
            let Some(log) = self.read_whole(&place) else {
                self.note_leaders();
                self.checker.violate(format!("{place:?} cannot be read"));
                return;
            };
            self.checker.conclude(&place, &log);
        }
        self.note(format_args!("{} records acked", self.checker.acked_count()));
    }

    /// Reads a partition from its start to its end.
    fn read_whole(&mut self, place: &Place) -> Option<FinalLog> {
        let (topic, index) = place.clone();
        let bound = |answer: &Answer| matches!(answer, Answer::End(_));
        let end = || Ask::Latest { topic: topic.clone(), index };
        let Answer::End(end) = self.ask_until(QUIET_MS, bound, end)? else { return None };
        // Retention may still move it forward.
        for _ in 0..10 {
            let start = || Ask::Earliest { topic: topic.clone(), index };
            let Answer::End(start) = self.ask_until(QUIET_MS, bound, start)? else { return None };
            if let Some(log) = self.read_from(place, start, end) {
                return Some(log);
            }
        }
        None
    }

    fn read_from(&mut self, place: &Place, start: i64, end: i64) -> Option<FinalLog> {
        let (topic, index) = place.clone();
        let mut log = FinalLog { keeping: keeping(place), start, bytes: 0, records: Vec::new() };
        let mut offset = start;
        while offset < end {
            let answer = self.ask_until(
                QUIET_MS,
                |answer| match answer {
                    Answer::Read { .. } => true,
                    Answer::Failed(error) => *error == ResponseError::OffsetOutOfRange,
                    _ => false,
                },
                || Ask::Fetch { topic: topic.clone(), index, offset },
            );
            let Some(Answer::Read { batches, removed, .. }) = answer else { return None };
            self.checker.read(place, keeping(place), &removed, &batches);
            let last = batches.last()?;
            log.bytes += batches.iter().map(StoredBatch::size_bytes).sum::<usize>();
            let decoded = batches.iter().flat_map(records);
            log.records.extend(decoded.filter(|(record_offset, _)| *record_offset >= offset));
            offset = last.last_offset() + 1;
        }
        Some(log)
    }
}
