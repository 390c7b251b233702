//! Members of a cluster that elect a controller, miss each other, and take over. The metadata store
//! is a real one; the network is simulated, and time is that of the runtime.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use freshet_link::LinkSecret;
use freshet_members::channel::ChannelKey;
use freshet_members::{Duties, Member, MemberState, StorageReport, Times};
use freshet_metadata::cluster::{
    ClusterError, ClusterMetadata, Fence, NewTopic, PartitionUpdate, Term,
};
use freshet_metadata::schema::{BrokerPlace, IncarnationState, SealedEnd};
use freshet_metadata::{MetadataStore, MetadataView, SqliteStore};
use freshet_quota::dealing::{LimitId, LimitShare, LimitUse};
use freshet_wire::ids::{Incarnation, PartitionId};
use freshet_world::sim::disk::HostId;
use freshet_world::sim::network::SimNetwork;
use freshet_world::sim::random::{Seeded, SeededRandomness};
use freshet_world::sim::world::SimClock;

const PARTITIONS: i32 = 24;
/// Nothing here takes longer, in the time of the runtime.
const LIMIT: Duration = Duration::from_secs(60);
/// The longest that the others need where a process was killed.
const KILLED_MAX: Duration = Duration::from_millis(150);
const END: SealedEnd = SealedEnd { file: 1, sequence: 1 };

/// The storage of a broker that writes only when it is to show that storage works.
#[derive(Debug, Clone, Copy, Default)]
struct Storage {
    wrote_at: Option<Instant>,
    /// Whether what is written from now on stays where it is.
    hangs: bool,
    /// Since when a write hangs.
    waits_since: Option<Instant>,
}

impl Storage {
    fn write(&mut self) {
        if self.hangs {
            self.waits_since.get_or_insert_with(Instant::now);
        } else {
            self.wrote_at = Some(Instant::now());
        }
    }

    fn report(self) -> StorageReport {
        let pending = self.waits_since.map(|since| since.elapsed()).unwrap_or_default();
        StorageReport::new(pending, self.wrote_at.map(|at| at.elapsed()))
    }
}

/// The clients of a broker, who use as much of one limit as they want and the broker's share
/// allows.
#[derive(Default)]
struct Clients {
    demand: Mutex<f64>,
    /// The share that was dealt last; `None` before that, and where others used nothing either.
    part: Mutex<Option<f64>>,
}

fn limit() -> LimitId {
    LimitId::of(&[Some("a limit")])
}

/// Takes over by changes of metadata only.
struct Successor {
    metadata: Arc<ClusterMetadata>,
    fence: Fence,
    storage: Arc<Mutex<Storage>>,
    clients: Arc<Clients>,
}

impl Successor {
    async fn take_over(
        &self,
        dead: &BTreeSet<Incarnation>,
        partitions: &BTreeSet<PartitionId>,
    ) -> Result<(), ClusterError> {
        for one in dead {
            self.metadata.seal_incarnation(Some(self.fence), *one, END).await?;
        }
        let mut updates = Vec::new();
        for id in partitions {
            let Some(stored) = self.metadata.partition(*id).await? else { continue };
            if stored.record.leader.is_some_and(|leader| dead.contains(&leader)) {
                let led = stored.record.led_by(self.fence.incarnation, |_| Some(END)).unwrap();
                updates.push(PartitionUpdate::takeover(*id, &stored, led).unwrap());
            }
        }
        self.metadata.take_over(self.fence, updates).await?;
        Ok(())
    }
}

#[async_trait]
impl Duties for Successor {
    fn set_term(&self, _term: Option<Term>) {}

    async fn adopt(
        &self,
        dead: &BTreeSet<Incarnation>,
        partitions: &BTreeSet<PartitionId>,
    ) -> Result<(), String> {
        self.take_over(dead, partitions).await.map_err(|error| error.to_string())
    }

    async fn hand_over(
        &self,
        partitions: &BTreeSet<PartitionId>,
        successor: Incarnation,
    ) -> Result<(), String> {
        let metadata = &self.metadata;
        let mut known = metadata.incarnations().await.map_err(|error| error.to_string())?;
        let live = known.remove(&successor).ok_or("an unknown successor")?;
        let mut updates = Vec::new();
        for id in partitions {
            // All that others wrote of it is split.
            let stored = metadata.partition(*id).await.unwrap().unwrap();
            let epoch = stored.record.epoch;
            let split = stored.record.without_extents(|extent| extent.epoch < epoch);
            let split = PartitionUpdate::trim(*id, &stored, split).unwrap();
            metadata.trim_extents(self.fence, vec![split]).await.unwrap();
            let stored = metadata.partition(*id).await.unwrap().unwrap();
            let handed = stored.record.handed_to(successor, None).unwrap();
            updates.push(PartitionUpdate::hand_over(*id, &stored, handed).unwrap());
        }
        let handed = metadata.hand_over(self.fence, (successor, &live), updates).await;
        handed.map(drop).map_err(|error| error.to_string())
    }

    fn storage(&self) -> StorageReport {
        self.storage.lock().report()
    }

    fn prove_storage(&self) {
        self.storage.lock().write();
    }

    fn report_use(&self) -> Vec<LimitUse> {
        let (demand, part) = (*self.clients.demand.lock(), self.clients.part.lock().unwrap_or(0.3));
        vec![LimitUse { limit: limit(), used: demand.min(part), is_short: demand > part }]
    }

    fn set_shares(&self, shares: Vec<LimitShare>) {
        let share = shares.iter().find(|share| share.limit == limit());
        *self.clients.part.lock() = share.map(|share| share.part);
    }
}

struct Broker {
    host: HostId,
    storage: Arc<Mutex<Storage>>,
    member: Arc<Member>,
    clients: Arc<Clients>,
    tasks: Vec<JoinHandle<()>>,
}

impl Broker {
    fn incarnation(&self) -> Incarnation {
        self.member.fence.incarnation
    }
}

struct Cluster {
    network: SimNetwork,
    store: Arc<dyn MetadataStore>,
    observer: ClusterMetadata,
    brokers: BTreeMap<u32, Broker>,
    hosts: HostId,
    /// The name of the last topic that the broker of a slot was given.
    topics: BTreeMap<u32, String>,
}

fn metadata_of(store: &Arc<dyn MetadataStore>, seed: u64) -> ClusterMetadata {
    let randomness = Arc::new(SeededRandomness::new(Seeded::new(seed)));
    ClusterMetadata::new(Arc::clone(store), Arc::new(SimClock::default()), randomness)
}

impl Cluster {
    /// A cluster with brokers in so many slots, of which the first leads all partitions of a topic.
    async fn of(slots: u32) -> Self {
        let store: Arc<dyn MetadataStore> = Arc::new(SqliteStore::in_memory());
        let observer = metadata_of(&store, 0);
        let network = SimNetwork::default();
        let mut cluster = Self {
            network,
            store,
            observer,
            brokers: BTreeMap::new(),
            hosts: 0,
            topics: BTreeMap::new(),
        };
        for slot in 0..slots {
            cluster.start(slot).await;
        }
        cluster.until(async |it| it.controller().is_some()).await;
        cluster
    }

    async fn start(&mut self, slot: u32) {
        self.hosts += 1;
        let host = self.hosts;
        let metadata = Arc::new(metadata_of(&self.store, host));
        let incarnation = metadata.next_incarnation().await.unwrap();
        let observed = metadata.slot(slot).await.unwrap();
        let place = BrokerPlace { address: format!("{host}:1"), ..BrokerPlace::default() };
        let fence =
            metadata.register_in_slot(incarnation, slot, "", place, observed.as_ref()).await;
        let fence = fence.unwrap();
        let (view, follower) = MetadataView::open(Arc::clone(&self.store)).await.unwrap();
        let network = self.network.of(host);
        let listener = network.listen("").await.unwrap();
        let storage = Arc::default();
        let clients = Arc::new(Clients::default());
        let member = Arc::new(Member {
            fence,
            metadata: Arc::clone(&metadata),
            view,
            network,
            key: ChannelKey::of(&LinkSecret::new(&[7; 32]).unwrap()),
            duties: Arc::new(Successor {
                metadata,
                fence,
                storage: Arc::clone(&storage),
                clients: Arc::clone(&clients),
            }),
            times: Times::default(),
            state: MemberState::default(),
        });
        let following = tokio::spawn(async move { drop(follower.run().await) });
        let taking_part = tokio::spawn(Arc::clone(&member).run(listener));
        let tasks = vec![following, taking_part];
        self.brokers.insert(slot, Broker { host, storage, member, clients, tasks });
    }

    /// Makes the broker of a slot lead a topic.
    async fn give_topic(&mut self, slot: u32) {
        let name = format!("of-{slot}-{}", self.hosts);
        self.topics.insert(slot, name.clone());
        let new = NewTopic {
            name,
            partitions: PARTITIONS,
            replication_factor: 3,
            internal: false,
            configs: BTreeMap::new(),
            leaders: vec![self.brokers[&slot].incarnation()],
        };
        self.observer.create_topic(None, &new).await.unwrap();
    }

    /// Ends the process of a slot. Its connections end, and a moment later nothing listens there
    /// any more: so it is where the system closes what a process had open.
    async fn kill(&mut self, slot: u32) -> Incarnation {
        let broker = self.brokers.remove(&slot).unwrap();
        let open_still = self.network.of(broker.host).listen("").await.unwrap();
        for task in broker.tasks {
            task.abort();
            assert!(task.await.is_err_and(|error| error.is_cancelled()));
        }
        sleep(Duration::from_millis(2)).await;
        drop(open_still);
        self.network.forget(broker.host);
        broker.member.fence.incarnation
    }

    /// From now on nothing that a broker writes is durable.
    fn hang_storage(&self, slot: u32) {
        self.brokers[&slot].storage.lock().hangs = true;
    }

    /// Has a broker write.
    fn write(&self, slot: u32) {
        self.brokers[&slot].storage.lock().write();
    }

    /// Cuts a host off, both ways.
    fn isolate(&self, slot: u32) {
        let cut_off = self.brokers[&slot].host;
        for other in 1..=self.hosts {
            self.network.cut(cut_off, other);
            self.network.cut(other, cut_off);
        }
    }

    fn controller(&self) -> Option<u32> {
        let mut leading = self.brokers.iter().filter(|(_, broker)| broker.member.leads().is_some());
        let first = leading.next().map(|(slot, _)| *slot);
        first.filter(|_| leading.next().is_none())
    }

    fn follower(&self) -> u32 {
        let controller = self.controller().unwrap();
        *self.brokers.keys().find(|slot| **slot != controller).unwrap()
    }

    async fn term(&self) -> u64 {
        self.observer.controller().await.unwrap().unwrap().record.term
    }

    async fn state(&self, incarnation: Incarnation) -> IncarnationState {
        self.observer.incarnations().await.unwrap()[&incarnation].record.state
    }

    /// How many partitions of a slot's topic each incarnation leads.
    async fn leaders(&self, slot: u32) -> BTreeMap<Incarnation, usize> {
        let topic = self.observer.topic(&self.topics[&slot]).await.unwrap().unwrap().record.id;
        let mut leaders = BTreeMap::new();
        for index in 0..PARTITIONS {
            let stored = self.observer.partition(PartitionId::new(topic, index)).await.unwrap();
            *leaders.entry(stored.unwrap().record.leader.unwrap()).or_default() += 1;
        }
        leaders
    }

    /// Waits until something holds; returns how long that took.
    async fn until(&self, holds: impl AsyncFn(&Self) -> bool) -> Duration {
        let begun = Instant::now();
        while !holds(self).await {
            assert!(begun.elapsed() < LIMIT, "it did not come");
            sleep(Duration::from_millis(1)).await;
        }
        begun.elapsed()
    }

    /// Waits until others lead all partitions that one led; returns how long that took.
    async fn until_taken(&self, slot: u32, dead: Incarnation) -> Duration {
        self.until(async |it| !it.leaders(slot).await.contains_key(&dead)).await
    }
}

#[tokio::test(start_paused = true)]
async fn while_all_live_one_is_controller_and_nobody_is_fenced() {
    let cluster = Cluster::of(5).await;
    sleep(LIMIT).await;
    assert!(cluster.controller().is_some());
    assert_eq!(cluster.term().await, 1);
    for broker in cluster.brokers.values() {
        assert_eq!(cluster.state(broker.incarnation()).await, IncarnationState::Live);
    }
}

#[tokio::test(start_paused = true)]
async fn survivors_share_at_once_what_a_killed_process_led() {
    for kill_controller in [false, true] {
        let mut cluster = Cluster::of(3).await;
        sleep(Duration::from_secs(2)).await;
        let controller = cluster.controller().unwrap();
        let killed = if kill_controller { controller } else { cluster.follower() };
        cluster.give_topic(killed).await;
        let dead = cluster.kill(killed).await;
        let took = cluster.until_taken(killed, dead).await;
        assert!(took < KILLED_MAX, "{took:?}, controller: {kill_controller}");
        let shares: Vec<_> = cluster.leaders(killed).await.into_values().collect();
        assert_eq!(shares.len(), 2, "{shares:?}");
        let least = shares.iter().min().unwrap();
        assert!(*least * 3 >= usize::try_from(PARTITIONS).unwrap(), "{shares:?}");
        assert_eq!(cluster.term().await, 1 + u64::from(kill_controller));
        // The slot has another broker, and the cluster goes on.
        cluster.start(killed).await;
        sleep(Duration::from_secs(2)).await;
        for broker in cluster.brokers.values() {
            assert_eq!(cluster.state(broker.incarnation()).await, IncarnationState::Live);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn others_take_over_from_a_broker_before_it_stops() {
    for leave_as_controller in [false, true] {
        let mut cluster = Cluster::of(3).await;
        sleep(Duration::from_secs(1)).await;
        let controller = cluster.controller().unwrap();
        let leaving = if leave_as_controller { controller } else { cluster.follower() };
        cluster.give_topic(leaving).await;
        let broker = &cluster.brokers[&leaving];
        timeout(Duration::from_secs(1), broker.member.leave()).await.unwrap();
        let leaders = cluster.leaders(leaving).await;
        assert_eq!(leaders.len(), 2, "{leaders:?}");
        assert!(!leaders.contains_key(&broker.incarnation()));
        assert_eq!(cluster.state(broker.incarnation()).await, IncarnationState::Live);
        assert_eq!(cluster.term().await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn where_all_brokers_stop_nobody_takes_over() {
    let mut cluster = Cluster::of(3).await;
    sleep(Duration::from_secs(1)).await;
    cluster.give_topic(0).await;
    let leaving = join_all(cluster.brokers.values().map(|broker| broker.member.leave()));
    timeout(Duration::from_secs(1), leaving).await.unwrap();
    let own = cluster.brokers[&0].incarnation();
    assert_eq!(cluster.leaders(0).await.into_keys().collect::<Vec<_>>(), [own]);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_comes_gets_its_share() {
    let mut cluster = Cluster::of(2).await;
    cluster.give_topic(0).await;
    cluster.until(async |it| it.leaders(0).await.len() == 2).await;
    cluster.start(2).await;
    cluster.until(async |it| it.leaders(0).await.len() == 3).await;
    sleep(Duration::from_secs(10)).await;
    let leaders = cluster.leaders(0).await;
    assert!(leaders.values().all(|count| *count == 8), "{leaders:?}");
}

#[tokio::test(start_paused = true)]
async fn a_chosen_leader_gets_its_partition_once_its_slot_has_a_broker() {
    let mut cluster = Cluster::of(3).await;
    cluster.give_topic(0).await;
    cluster.until(async |it| it.leaders(0).await.len() == 3).await;
    sleep(Duration::from_secs(10)).await;
    let name = cluster.topics[&0].clone();
    let topic = cluster.observer.topic(&name).await.unwrap().unwrap().record.id;
    let id = PartitionId::new(topic, 0);
    let leader = async |it: &Cluster| {
        it.observer.partition(id).await.unwrap().unwrap().record.leader.unwrap()
    };
    let now = leader(&cluster).await;
    let slots = cluster.brokers.iter();
    let mut others = slots.filter(|(_, broker)| broker.incarnation() != now);
    let chosen = *others.next().unwrap().0;
    let wish = BTreeMap::from([(id, Some(chosen))]);
    cluster.observer.set_wanted_leaders(None, &name, &wish).await.unwrap();
    let to = cluster.brokers[&chosen].incarnation();
    cluster.until(async |it| leader(it).await == to).await;
    // The wish is forgotten once it holds, and one for a slot without a broker waits.
    let wishes = async |it: &Cluster| it.store.range("wanted_leader/", None, 9).await.unwrap();
    cluster.until(async |it| wishes(it).await.entries.is_empty()).await;
    let missing = BTreeMap::from([(id, Some(3))]);
    cluster.observer.set_wanted_leaders(None, &name, &missing).await.unwrap();
    sleep(Duration::from_secs(10)).await;
    assert_eq!(leader(&cluster).await, to);
    assert_eq!(wishes(&cluster).await.entries.len(), 1);
    cluster.start(3).await;
    let came = cluster.brokers[&3].incarnation();
    cluster.until(async |it| leader(it).await == came).await;
    cluster.until(async |it| wishes(it).await.entries.is_empty()).await;
    // Of a topic that is gone nothing stays.
    let absent = BTreeMap::from([(id, Some(9))]);
    cluster.observer.set_wanted_leaders(None, &name, &absent).await.unwrap();
    cluster.observer.delete_topic(None, &name, Some(topic), 0).await.unwrap();
    cluster.until(async |it| wishes(it).await.entries.is_empty()).await;
    let gone = cluster.observer.set_wanted_leaders(None, &name, &absent).await;
    assert_eq!(gone, Err(ClusterError::UnknownTopic(name)));
}

#[tokio::test(start_paused = true)]
async fn one_broker_after_another_can_be_killed() {
    let mut cluster = Cluster::of(3).await;
    for round in 0..12 {
        sleep(Duration::from_millis(300 + 370 * round)).await;
        let controller = cluster.controller().unwrap();
        let killed = if round % 3 == 0 { cluster.follower() } else { controller };
        cluster.give_topic(killed).await;
        let dead = cluster.kill(killed).await;
        let took = cluster.until_taken(killed, dead).await;
        assert!(
            took < KILLED_MAX,
            "{took:?} in round {round}, controller: {}",
            killed == controller
        );
        cluster.start(killed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_nobody_hears_is_fenced_within_a_second() {
    for isolate_controller in [false, true] {
        let mut cluster = Cluster::of(3).await;
        sleep(Duration::from_secs(2)).await;
        let controller = cluster.controller().unwrap();
        let silent = if isolate_controller { controller } else { cluster.follower() };
        cluster.give_topic(silent).await;
        let dead = cluster.brokers[&silent].incarnation();
        cluster.isolate(silent);
        let took = cluster.until_taken(silent, dead).await;
        let silence_max = Times::default().silence_max;
        assert!(took + Times::default().pulse > silence_max, "{took:?}: it was heard until then");
        let slowest = silence_max + if isolate_controller { 4 } else { 2 } * KILLED_MAX;
        assert!(took < slowest, "{took:?}, controller: {isolate_controller}");
        // It cannot become controller any more, and the others go on.
        sleep(Duration::from_secs(10)).await;
        assert_eq!(cluster.term().await, 1 + u64::from(isolate_controller));
        let live = cluster.brokers.iter().filter(|(slot, _)| **slot != silent);
        for (_, broker) in live {
            assert_eq!(cluster.state(broker.incarnation()).await, IncarnationState::Live);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_whose_storage_hangs_is_fenced_within_four_seconds() {
    for hang_controller in [false, true] {
        let mut cluster = Cluster::of(3).await;
        sleep(Duration::from_secs(2)).await;
        let controller = cluster.controller().unwrap();
        let hung = if hang_controller { controller } else { cluster.follower() };
        cluster.give_topic(hung).await;
        let dead = cluster.brokers[&hung].incarnation();
        cluster.hang_storage(hung);
        cluster.write(hung);
        let took = cluster.until_taken(hung, dead).await;
        let hang_max = Times::default().hang_max;
        assert!(took > hang_max, "{took:?}: it may have been slow only");
        assert!(took < hang_max + Duration::from_secs(1), "{took:?}");
        // The others go on, and it cannot become controller any more.
        sleep(Duration::from_secs(10)).await;
        assert_eq!(cluster.term().await, 1 + u64::from(hang_controller));
        let live = cluster.brokers.iter().filter(|(slot, _)| **slot != hung);
        for (_, broker) in live {
            assert_eq!(cluster.state(broker.incarnation()).await, IncarnationState::Live);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_storage_hangs_for_all_brokers_nobody_is_fenced() {
    let cluster = Cluster::of(3).await;
    sleep(Duration::from_secs(2)).await;
    cluster.brokers.keys().for_each(|slot| cluster.write(*slot));
    cluster.brokers.keys().for_each(|slot| cluster.hang_storage(*slot));
    cluster.write(0);
    sleep(LIMIT).await;
    assert_eq!(cluster.term().await, 1);
    for broker in cluster.brokers.values() {
        assert_eq!(cluster.state(broker.incarnation()).await, IncarnationState::Live);
        assert!(broker.storage.lock().waits_since.is_some(), "it was asked to write");
    }
}

#[tokio::test(start_paused = true)]
async fn who_alone_does_not_hear_the_controller_does_not_replace_it() {
    let cluster = Cluster::of(3).await;
    sleep(Duration::from_secs(2)).await;
    let (controller, deaf) = (cluster.controller().unwrap(), cluster.follower());
    let hosts = (cluster.brokers[&controller].host, cluster.brokers[&deaf].host);
    cluster.network.cut(hosts.0, hosts.1);
    let dead = cluster.brokers[&deaf].incarnation();
    cluster.until(async |it| it.state(dead).await != IncarnationState::Live).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!((cluster.controller(), cluster.term().await), (Some(controller), 1));
}

#[tokio::test(start_paused = true)]
async fn the_first_broker_after_an_outage_takes_what_nobody_leads() {
    let mut cluster = Cluster::of(3).await;
    cluster.give_topic(1).await;
    let mut dead = Vec::new();
    // All at once: nobody is left who could take over.
    for slot in [0, 1, 2] {
        dead.push(cluster.kill(slot).await);
    }
    cluster.start(2).await;
    cluster.until_taken(1, dead[1]).await;
    let first = cluster.brokers[&2].incarnation();
    assert_eq!(cluster.leaders(1).await, BTreeMap::from([(first, 24)]));
    assert_eq!(cluster.controller(), Some(2));
}

impl Cluster {
    /// Has the clients of a slot's broker want so much of the limit.
    fn want(&self, slot: u32, demand: f64) {
        *self.brokers[&slot].clients.demand.lock() = demand;
    }

    /// The share of each broker, as far as one was dealt.
    fn parts(&self) -> Vec<Option<f64>> {
        self.brokers.values().map(|broker| *broker.clients.part.lock()).collect()
    }

    /// Waits until each broker has about this share.
    async fn until_parts(&self, expected: &[f64]) {
        let is_near = |(part, expected): (Option<f64>, &f64)| {
            part.is_some_and(|part| (part - expected).abs() < 0.02)
        };
        self.until(async |it| it.parts().into_iter().zip(expected).all(is_near)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_controller_deals_shares_of_limits_by_what_each_broker_used() {
    let mut cluster = Cluster::of(3).await;
    sleep(Duration::from_secs(3)).await;
    assert_eq!(cluster.parts(), [None; 3], "nobody used anything");
    cluster.want(0, 9.0);
    cluster.until_parts(&[0.933, 0.033, 0.033]).await;
    cluster.want(1, 9.0);
    cluster.until_parts(&[0.483, 0.483, 0.033]).await;
    // The clients move.
    cluster.want(0, 0.0);
    cluster.until_parts(&[0.033, 0.933, 0.033]).await;
    // Another controller knows nothing at first, and comes to the same.
    let controller = cluster.controller().unwrap();
    cluster.kill(controller).await;
    for slot in cluster.brokers.keys() {
        cluster.want(*slot, 9.0);
    }
    cluster.until_parts(&[0.5, 0.5]).await;
    cluster.start(controller).await;
    cluster.want(controller, 9.0);
    cluster.until_parts(&[1.0 / 3.0; 3]).await;
}
