//! A simulated broker: the real engine on one host, reached through messages that are lost when it
//! dies.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use freshet_coordinator::group::{OffsetCommitRequest, OffsetFetchRequest, OffsetToCommit};
use freshet_engine::{Engine, EngineSettings};
use freshet_jobs::JobSettings;
use freshet_jobs::deletion::DeleteBefore;
use freshet_link::LinkSecret;
use freshet_members::channel::ChannelKey;
use freshet_members::{Duties, Member, MemberState, StorageReport, Times};
use freshet_metadata::cluster::{NewTopic, Term};
use freshet_metadata::names::is_internal_topic;
use freshet_metadata::schema::BrokerPlace;
use freshet_metadata::store::MetadataStore;
use freshet_partition::Partition;
use freshet_partition::read::ReadError;
use freshet_quota::dealing::{LimitShare, LimitUse};
use freshet_storage::cache::blocks::ReadSettings;
use freshet_storage::lane::queue::LaneProgress;
use freshet_storage::lane::writer::LaneSettings;
use freshet_storage::rules::{Rule, Rules};
use freshet_wire::ids::{Incarnation, PartitionId};
use freshet_wire::records::{StoredBatch, ValidatedBatch};
use freshet_world::env::{Environment, Listener};
use freshet_world::sim::disk::HostId;
use kafka_protocol::ResponseError;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

/// When an adoption that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(20);
/// Members of a simulated cluster are twenty times as fast as real ones: so are the faults.
pub const TIMES: Times = Times {
    pulse: Duration::from_millis(5),
    silence_max: Duration::from_millis(40),
    stall: Duration::from_millis(20),
    // As long as the simulated disk is slow at most, and more.
    hang_max: Duration::from_millis(1500),
    connect_max: Duration::from_millis(12),
    join_max: Duration::from_millis(500),
    gather: Duration::from_millis(5),
    doubt: Duration::from_millis(30),
    retry: Duration::from_millis(2),
    settle: Duration::from_millis(30),
    move_max: Duration::from_millis(150),
    deal: Duration::from_millis(50),
};

/// A client's question, or an order of the controller.
pub enum Ask {
    /// Append a batch.
    Produce { topic: String, index: i32, batch: bytes::Bytes },
    /// Read from an offset.
    Fetch { topic: String, index: i32, offset: i64 },
    /// The partition's end, which may not be older than the question.
    Latest { topic: String, index: i32 },
    /// Commit an offset of a group.
    Commit { group: String, topic: String, index: i32, offset: i64 },
    /// The committed offset, which may not be older than the question; -1 where there is none.
    Committed { group: String, topic: String, index: i32 },
    /// Which topics exist.
    Topics,
    /// Make a topic.
    Create { topic: String, partitions: i32, configs: &'static [(&'static str, &'static str)] },
    /// Delete the records before an offset.
    DeleteBefore { topic: String, index: i32, offset: i64 },
    /// The partition's log start, which may not be older than the question.
    Earliest { topic: String, index: i32 },
    /// Have so many slots.
    Scale(u32),
    /// Take over a share of what a broker of another slot leads.
    Adopt(Order),
    /// Hand partitions of a topic over to another incarnation.
    HandOver { topic: String, indexes: Vec<i32>, to: u64 },
}

/// A controller's order after the death of a broker. It may come late: another broker may have the
/// slot by then.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// The slot of the broker that died.
    pub slot: u32,
    /// The broker, as far as the controller knows it; 0 is whoever holds the slot.
    pub dead: u64,
    /// Of so many shares the receiver takes one.
    pub shares: i32,
    /// The number of that share.
    pub share: i32,
}

impl Order {
    fn assigns(self, id: PartitionId) -> bool {
        let topic = i32::from(id.topic.as_bytes()[0]);
        (topic + id.index) % self.shares == self.share
    }
}

/// The answer that a client gets.
pub enum Answer {
    /// Offset of the first record.
    Acked(i64),
    /// Batches; the reader was served from segments.
    Read {
        batches: Vec<StoredBatch>,
        from_segments: bool,
        removed: Removed,
    },
    /// The end.
    End(i64),
    /// It is done.
    Created,
    Topics(Vec<String>),
    Failed(ResponseError),
}

/// What the manifest that counted when a read began had removed.
#[derive(Debug, Clone, Copy)]
pub struct Removed {
    /// Everything before this offset.
    pub before: i64,
    /// Of a table, all that another record before this offset supersedes.
    pub superseded_before: i64,
}

impl Removed {
    fn now(partition: &Partition) -> Self {
        let manifest = partition.manifest();
        Self { before: manifest.log_start, superseded_before: manifest.first_dirty_offset }
    }
}

/// A question with the channel for its answer.
pub struct Envelope {
    pub ask: Ask,
    pub reply: oneshot::Sender<Answer>,
}

/// What the outside knows of a broker.
#[derive(Default)]
pub struct Status {
    /// Its incarnation, from its start on.
    pub incarnation: AtomicU64,
    /// How often it took over from a broker of another slot.
    pub adoptions: AtomicU64,
    /// How many partitions it handed over.
    pub moves: AtomicU64,
    pub leading: AtomicBool,
    pub ended: AtomicBool,
    pub reason: Mutex<String>,
    /// The damage that a reader of a lane reported.
    pub damage: Mutex<Option<String>>,
}

/// A broker as seen by clients and by the keeper.
#[derive(Clone)]
pub struct BrokerHandle {
    pub slot: u32,
    pub host: HostId,
    pub mailbox: mpsc::UnboundedSender<Envelope>,
    pub stop: Arc<tokio::sync::Notify>,
    pub status: Arc<Status>,
}

/// What differs between the brokers of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct BrokerSetup {
    pub slot: u32,
    pub rules: Rules,
    pub jobs: JobSettings,
    /// Memory for the newest batches.
    pub hot_bytes: usize,
    /// Whether it elects a controller with the others, and takes over as that one says.
    pub is_member: bool,
}

pub fn settings(host: HostId, setup: BrokerSetup) -> EngineSettings {
    let BrokerSetup { slot, rules, jobs, hot_bytes, .. } = setup;
    // Cached blocks would hide that something was deleted or overwritten.
    let hides = rules.hold(Rule::CheckBeforeDelete) && rules.hold(Rule::ForgetBeforeReuse);
    let block_bytes = if hides { 96 << 10 } else { 0 };
    // Files are recycled while slow reads of them are under way, and every read goes to them.
    let reads_files = !rules.hold(Rule::ForgetBeforeReuse);
    let (roll_after_ms, hot_bytes) = if reads_files { (40, 0) } else { (150, hot_bytes) };
    EngineSettings {
        lane: LaneSettings {
            file_bytes_first: 16 << 10,
            file_bytes_max: 32 << 10,
            roll_after: Duration::from_millis(roll_after_ms),
            write_bytes_max: 16 << 10,
            ..LaneSettings::default()
        },
        slot,
        place: BrokerPlace { address: format!("{host}:1"), ..BrokerPlace::default() },
        hot_bytes,
        reads: ReadSettings { block_bytes, ..ReadSettings::default() },
        jobs,
        offsets_partitions: 2,
        rules,
        ..EngineSettings::new("sim")
    }
}

/// Runs a broker until it stands down, is stopped, or its host dies.
pub async fn run(
    host: HostId,
    environment: Environment,
    store: Arc<dyn MetadataStore>,
    setup: BrokerSetup,
    mut mailbox: mpsc::UnboundedReceiver<Envelope>,
    stop: Arc<tokio::sync::Notify>,
    status: Arc<Status>,
) {
    let listener = environment.network.listen("").await.expect("a simulated port");
    match Engine::start(environment, store, settings(host, setup)).await {
        Ok(engine) => {
            let _member = setup.is_member.then(|| take_part(&engine, &status, listener));
            let offline = engine.partitions.offline();
            *status.reason.lock() =
                offline.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            status.incarnation.store(engine.incarnation.0, Ordering::Relaxed);
            status.leading.store(true, Ordering::Relaxed);
            loop {
                tokio::select! {
                    biased;
                    reason = engine.liveness.ended() => {
                        *status.reason.lock() = reason.to_string();
                        break;
                    }
                    () = stop.notified() => engine.stop().await,
                    envelope = mailbox.recv() => {
                        let Some(envelope) = envelope else { break };
                        tokio::spawn(answer(Arc::clone(&engine), Arc::clone(&status), envelope));
                    }
                }
            }
        }
        Err(error) => *status.reason.lock() = format!("did not start: {error}"),
    }
    status.ended.store(true, Ordering::Relaxed);
}

/// Takes over as the controller says, and counts it.
struct Successor {
    engine: Arc<Engine>,
    status: Arc<Status>,
}

#[async_trait]
impl Duties for Successor {
    fn set_term(&self, term: Option<Term>) {
        self.engine.set_term(term);
    }

    async fn adopt(
        &self,
        dead: &BTreeSet<Incarnation>,
        partitions: &BTreeSet<PartitionId>,
    ) -> Result<(), String> {
        let adopted = self.engine.adopt(dead, |id| partitions.contains(&id)).await;
        adopted.map_err(|error| error.to_string())?;
        self.status.adoptions.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn hand_over(
        &self,
        partitions: &BTreeSet<PartitionId>,
        successor: Incarnation,
    ) -> Result<(), String> {
        let partitions: Vec<_> = partitions.iter().copied().collect();
        let given = self.engine.hand_over(&partitions, successor).await;
        let given = given.map_err(|error| error.to_string())?;
        self.status.moves.fetch_add(given.len().try_into().expect("a count"), Ordering::Relaxed);
        Ok(())
    }

    fn storage(&self) -> StorageReport {
        let LaneProgress { pending, quick_write } = self.engine.lane.progress();
        StorageReport::new(pending, quick_write)
    }

    fn prove_storage(&self) {
        self.engine.prove_storage();
    }

    /// No client here has a quota.
    fn report_use(&self) -> Vec<LimitUse> {
        Vec::new()
    }

    fn set_shares(&self, _shares: Vec<LimitShare>) {}
}

/// Makes a broker take part in its cluster, if that has others.
fn take_part(
    engine: &Arc<Engine>,
    status: &Arc<Status>,
    listener: Box<dyn Listener>,
) -> Option<AbortOnDropHandle<()>> {
    if !engine.has_peers() {
        return None;
    }
    let member = Member {
        fence: engine.registration(),
        metadata: Arc::clone(&engine.metadata),
        view: Arc::clone(&engine.view),
        network: Arc::clone(&engine.environment.network),
        key: ChannelKey::of(&LinkSecret::new(&[7; 32]).expect("it is long enough")),
        duties: Arc::new(Successor { engine: Arc::clone(engine), status: Arc::clone(status) }),
        times: TIMES,
        state: MemberState::default(),
    };
    Some(AbortOnDropHandle::new(tokio::spawn(Arc::new(member).run(listener))))
}

async fn answer(engine: Arc<Engine>, status: Arc<Status>, envelope: Envelope) {
    let outcome = serve(&engine, &status, envelope.ask).await;
    // The client may have given up waiting.
    let _ = envelope.reply.send(outcome.unwrap_or_else(Answer::Failed));
}

fn find(engine: &Engine, topic: &str, index: i32) -> Result<Arc<Partition>, ResponseError> {
    let topics = engine.view.topics();
    let topic = topics.by_name(topic).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let id = PartitionId::new(topic.record.id, index);
    engine.partitions.get(id).ok_or(ResponseError::NotLeaderOrFollower)
}

async fn serve(engine: &Arc<Engine>, status: &Status, ask: Ask) -> Result<Answer, ResponseError> {
    match ask {
        Ask::Produce { topic, index, batch } => {
            let partition = find(engine, &topic, index)?;
            let pinned = batch.len();
            let batch = ValidatedBatch::trusted(batch).map_err(|_| ResponseError::InvalidRecord)?;
            let principal = Arc::from("User:sim");
            let staged = partition.stage(&engine.lane, batch, &principal, pinned)?;
            partition.durable(staged.end_offset).await?;
            Ok(Answer::Acked(staged.base_offset))
        }
        Ask::Fetch { topic, index, offset } => fetch(engine, status, &topic, index, offset).await,
        Ask::Latest { topic, index } => {
            let partition = find(engine, &topic, index)?;
            engine.fresh().await?;
            Ok(Answer::End(partition.bounds().end))
        }
        Ask::Commit { group, topic, index, offset } => {
            commit(engine, group, topic, index, offset).await
        }
        Ask::Committed { group, topic, index } => committed(engine, group, &topic, index).await,
        Ask::Topics => {
            let topics = engine.view.topics();
            Ok(Answer::Topics(topics.iter().map(|topic| topic.record.name.clone()).collect()))
        }
        Ask::DeleteBefore { topic, index, offset } => {
            let partition = find(engine, &topic, index)?.id();
            engine.delete_records(vec![DeleteBefore { partition, offset }]).await?;
            Ok(Answer::Created)
        }
        Ask::Earliest { topic, index } => {
            let partition = find(engine, &topic, index)?;
            engine.fresh().await?;
            Ok(Answer::End(partition.bounds().log_start))
        }
        Ask::Scale(slots) => {
            let set = engine.metadata.set_scale(slots).await;
            set.map_err(|_| ResponseError::UnknownServerError)?;
            Ok(Answer::Created)
        }
        Ask::Adopt(order) => {
            adopt(engine, status, order).await;
            Ok(Answer::Created)
        }
        Ask::HandOver { topic, indexes, to } => {
            hand_over(engine, status, &topic, indexes, Incarnation(to)).await
        }
        Ask::Create { topic, partitions, configs } => {
            let new = NewTopic {
                name: topic.clone(),
                partitions,
                replication_factor: 1,
                internal: is_internal_topic(&topic),
                configs: configs
                    .iter()
                    .map(|(key, value)| ((*key).into(), (*value).into()))
                    .collect(),
                leaders: vec![engine.incarnation],
            };
            let created = engine.metadata.create_topic(engine.fence(), &new).await;
            let created = created.map_err(|_| ResponseError::UnknownServerError)?;
            engine.wait_open(created.record.id, created.record.partitions).await;
            Ok(Answer::Created)
        }
    }
}

/// Tries until it has its share, or its end.
async fn adopt(engine: &Engine, status: &Status, order: Order) {
    let dead = match order.dead {
        0 => engine.metadata.slots().await.ok().and_then(|slots| slots.get(&order.slot).copied()),
        known => Some(Incarnation(known)),
    };
    let Some(dead) = dead else { return };
    while !engine.liveness.is_down() {
        match engine.adopt(&BTreeSet::from([dead]), |id| order.assigns(id)).await {
            Ok(()) => {
                status.adoptions.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Err(error) => tracing::warn!(%error, %dead, "did not take over yet"),
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

async fn hand_over(
    engine: &Engine,
    status: &Status,
    topic: &str,
    indexes: Vec<i32>,
    to: Incarnation,
) -> Result<Answer, ResponseError> {
    let topics = engine.view.topics();
    let topic = topics.by_name(topic).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let id = |index| PartitionId::new(topic.record.id, index);
    let partitions: Vec<_> = indexes.into_iter().map(id).collect();
    let given = engine.hand_over(&partitions, to).await;
    let given = given.map_err(|_| ResponseError::UnknownServerError)?;
    status.moves.fetch_add(given.len() as u64, Ordering::Relaxed);
    Ok(Answer::Created)
}

async fn fetch(
    engine: &Engine,
    status: &Status,
    topic: &str,
    index: i32,
    offset: i64,
) -> Result<Answer, ResponseError> {
    let partition = find(engine, topic, index)?;
    let from_segments = offset < partition.manifest().covered_end;
    let mut removed = Removed::now(&partition);
    let mut read = partition.read(offset, 8 << 10, true).await;
    if matches!(read, Err(ReadError::OutOfRange(_))) {
        engine.fresh().await?;
        removed = Removed::now(&partition);
        read = partition.read(offset, 8 << 10, true).await;
    }
    if let Err(ReadError::Storage(what)) = &read
        && what.starts_with("lane")
        && what.contains("damaged")
    {
        // The client may have given up waiting.
        *status.damage.lock() = Some(what.clone());
    }
    let batches = read.map_err(|error| error.code())?.batches().collect();
    Ok(Answer::Read { batches, from_segments, removed })
}

async fn commit(
    engine: &Engine,
    group: String,
    topic: String,
    index: i32,
    offset: i64,
) -> Result<Answer, ResponseError> {
    let offset =
        OffsetToCommit { topic, partition: index, offset, leader_epoch: -1, metadata: None };
    let request = OffsetCommitRequest {
        payer: "User:simulated".into(),
        api_version: 2,
        group_id: group,
        member_id: String::new(),
        instance_id: None,
        generation: -1,
        retention_time_ms: -1,
        offsets: vec![offset],
    };
    match engine.groups.commit_offsets(request).await?[0] {
        Some(error) => Err(error),
        None => Ok(Answer::Created),
    }
}

async fn committed(
    engine: &Engine,
    group: String,
    topic: &str,
    index: i32,
) -> Result<Answer, ResponseError> {
    let request = OffsetFetchRequest { group_id: group, topics: None, require_stable: false };
    let fetched = engine.groups.fetch_offsets(request).await?;
    engine.fresh().await?;
    let offsets = fetched.iter().filter(|fetched| fetched.topic == topic);
    let mut offsets = offsets.flat_map(|fetched| &fetched.partitions);
    let offset = offsets.find(|offset| offset.partition == index);
    Ok(Answer::End(offset.map_or(-1, |offset| offset.offset)))
}
