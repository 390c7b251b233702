//! The group coordinator of a broker: all partitions of `__consumer_offsets` that it leads.
//!
//! Each partition is a mutex around plain data, never held across an await. What a step of a group
//! asks for is done under the same lock: answers go to their requests, and records join the
//! group's queue (`writes`), which one task per busy group drains. So the records of a group are
//! appended in order and what arrives during an append goes out together with the next, while
//! other groups append on their own. One task serves the timers of all groups.

mod admin;
mod bytes;
mod load;
mod membership;
mod news;
mod offsets;
mod places;
mod removal;
mod timer;
mod writes;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kafka_protocol::ResponseError;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::api::{JoinResponse, SyncResponse};
use super::context::{Context, Effect, Now, Waiter};
use super::deadlines::Deadlines;
use super::offsets::Offsets;
use super::settings::GroupSettings;
use super::state::{Group, GroupState};
use crate::{CoordinatorLog, partition_for};
use bytes::{ByteCount, Counted, WaitingWrites};
use freshet_world::env::{Clock, Randomness};
pub use load::LoadSummary;
use news::News;
pub use news::{GroupNews, GroupView};
pub use places::GroupLimits;
use places::{GroupPlace, GroupPlaces, LimitSource};
pub use removal::DeletedTopics;
use timer::TimerKey;
use writes::{Outcome, Queue};

/// The group coordinator. See the module for how it works.
///
/// All requests answer `NOT_COORDINATOR` for a group whose partition is not loaded here, and
/// `COORDINATOR_LOAD_IN_PROGRESS` while it is being loaded, before anything else is looked at.
/// Dropping it ends its timers; whoever stops serving should [`GroupCoordinator::close`] it.
pub struct GroupCoordinator {
    inner: Arc<Inner>,
}

/// What requests, the timer task and the writers share.
struct Inner {
    settings: GroupSettings,
    log: Arc<dyn CoordinatorLog>,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    started: Instant,
    partitions: Vec<Partition>,
    deadlines: Mutex<Deadlines<TimerKey>>,
    /// Notified when the earliest deadline became earlier.
    deadlines_changed: Notify,
    next_number: AtomicU64,
    news: News,
    /// The limits that hold now; none where nobody has set where they come from.
    limits: OnceLock<LimitSource>,
    places: GroupPlaces,
    /// What the groups take of memory.
    bytes: ByteCount,
    waiting: Arc<WaitingWrites>,
    closed: CancellationToken,
}

struct Partition {
    state: Mutex<PartitionState>,
    /// Held for reading by appends and for writing by a load, so that a load sees the outcome of
    /// every append that began before it.
    appends: tokio::sync::RwLock<()>,
}

enum PartitionState {
    NotLed,
    /// It is being loaded. The number distinguishes this load from a later one.
    Loading(u64),
    Active(Shard),
}

/// The groups of one partition.
#[derive(Default)]
struct Shard {
    /// The number of the load, which distinguishes it from a later one.
    epoch: u64,
    groups: BTreeMap<String, Entry>,
    places: GroupPlaces,
    bytes: ByteCount,
    waiters: BTreeMap<Waiter, Reply>,
}

/// A group and what the service keeps with it.
struct Entry {
    group: Group,
    offsets: Offsets,
    /// Whether the log may hold a record of the group itself, and not only of its offsets.
    in_log: bool,
    queue: Queue,
    /// When the timer task looks at the group next. Nothing need be due then.
    scheduled: Option<Duration>,
    /// By it the group counts as one of those that there may be.
    _place: GroupPlace,
    /// By it the group counts with its bytes.
    counted: Counted,
}

/// What goes along with the record that a step of a group appends, if it does.
#[derive(Default)]
struct Attached {
    /// Who asked for it; `None` where the service itself did.
    payer: Payer,
    /// Gets the outcome of the append.
    outcome: Option<Outcome>,
    /// Bytes by which the group grows once the record is durable. Until then they count.
    reserved: Option<Counted>,
}

/// The principal for which what is appended is metered; `None` is the service itself.
type Payer = Option<Arc<str>>;

/// The channel to a parked request.
enum Reply {
    Join(oneshot::Sender<JoinResponse>),
    Sync(oneshot::Sender<SyncResponse>),
}

impl Entry {
    fn new(group: Group, place: GroupPlace, counted: Counted) -> Self {
        Self {
            group,
            offsets: Offsets::default(),
            in_log: false,
            queue: Queue::default(),
            scheduled: None,
            _place: place,
            counted,
        }
    }

    /// Counts what the group takes now.
    fn count(&mut self) {
        self.counted.set(self.group.bytes() + self.offsets.bytes());
    }

    /// Whether clients may see the group. One that nobody has joined and that has nothing in the
    /// log exists only to queue writes.
    fn exists(&self) -> bool {
        self.in_log
            || !self.offsets.is_empty()
            || self.group.state() != GroupState::Empty
            || self.group.has_anyone()
    }
}

impl Shard {
    /// The group, if clients may see it.
    fn existing(&self, group_id: &str) -> Option<&Entry> {
        self.groups.get(group_id).filter(|entry| entry.exists())
    }

    fn entry(&mut self, group_id: &str) -> &mut Entry {
        if !self.groups.contains_key(group_id) {
            let group = Group::new(group_id);
            let entry = Entry::new(group, self.places.take(), self.bytes.add(0));
            self.groups.insert(group_id.to_owned(), entry);
        }
        self.groups.get_mut(group_id).expect("it was just put in")
    }

    /// As [`Shard::entry`], for a request that may make the group; `None` where it would be a new
    /// one and there are as many as there may be.
    fn entry_within(&mut self, group_id: &str, limits: GroupLimits) -> Option<&mut Entry> {
        if !self.groups.contains_key(group_id) {
            let place = self.places.take_below(limits.groups)?;
            let entry = Entry::new(Group::new(group_id), place, self.bytes.add(0));
            self.groups.insert(group_id.to_owned(), entry);
        }
        self.groups.get_mut(group_id)
    }

    fn answer(&mut self, effect: Effect) {
        // The send fails where the client has closed its connection, which is no error.
        match effect {
            Effect::Join(waiter, response) => {
                if let Some(Reply::Join(reply)) = self.waiters.remove(&waiter) {
                    let _ = reply.send(response);
                }
            }
            Effect::Sync(waiter, response) => {
                if let Some(Reply::Sync(reply)) = self.waiters.remove(&waiter) {
                    let _ = reply.send(response);
                }
            }
            Effect::Persist(_) => {}
        }
    }
}

impl PartitionState {
    fn active(&mut self) -> Result<&mut Shard, ResponseError> {
        match self {
            Self::Active(shard) => Ok(shard),
            Self::Loading(_) => Err(ResponseError::CoordinatorLoadInProgress),
            Self::NotLed => Err(ResponseError::NotCoordinator),
        }
    }

    fn is_loading(&self, epoch: u64) -> bool {
        matches!(self, Self::Loading(current) if *current == epoch)
    }

    /// The shard, if it is still the one of that load.
    fn active_since(&mut self, epoch: u64) -> Option<&mut Shard> {
        match self {
            Self::Active(shard) if shard.epoch == epoch => Some(shard),
            _ => None,
        }
    }
}

impl Inner {
    fn now(&self) -> Now {
        Now { monotonic: self.started.elapsed(), wall_ms: self.clock.now_ms() }
    }

    fn context(&self) -> Context<'_> {
        Context::new(self.now(), &self.settings).with_members_max(self.limits().members)
    }

    fn limits(&self) -> GroupLimits {
        self.limits.get().map(|limits| limits()).unwrap_or_default()
    }

    fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn index_of(&self, group_id: &str) -> i32 {
        let count = i32::try_from(self.partitions.len()).unwrap_or(i32::MAX);
        partition_for(group_id, count)
    }

    fn partition(&self, index: i32) -> Result<&Partition, ResponseError> {
        let known = usize::try_from(index).ok().and_then(|index| self.partitions.get(index));
        known.ok_or(ResponseError::NotCoordinator)
    }

    fn lock(&self, index: i32) -> Result<MutexGuard<'_, PartitionState>, ResponseError> {
        Ok(self.partition(index)?.state.lock())
    }

    /// Performs the effects of a group's step, counts its bytes and schedules its next deadline.
    fn carry_out(
        self: &Arc<Self>,
        index: i32,
        shard: &mut Shard,
        group_id: &str,
        cx: Context<'_>,
        mut attached: Attached,
    ) {
        for effect in cx.effects {
            match effect {
                Effect::Persist(persist) => {
                    let attached = std::mem::take(&mut attached);
                    self.enqueue_group(index, shard, group_id, persist, attached);
                }
                answer => shard.answer(answer),
            }
        }
        if let Some(entry) = shard.groups.get_mut(group_id) {
            entry.count();
        }
        self.tidy(index, shard, group_id);
    }

    /// Forgets a group of which nothing is left; schedules the next deadline of any other.
    fn tidy(&self, index: i32, shard: &mut Shard, group_id: &str) {
        self.news.note(group_id);
        let Some(entry) = shard.groups.get_mut(group_id) else {
            return;
        };
        if !entry.exists() && entry.queue.is_idle() {
            shard.groups.remove(group_id);
            return;
        }
        let Some(next) = entry.group.next_deadline() else {
            return;
        };
        // A deadline that became later, as by every heartbeat, is not scheduled again: the timer
        // task finds out when it looks at the group.
        if entry.scheduled.is_none_or(|scheduled| next < scheduled) {
            entry.scheduled = Some(next);
            self.schedule(TimerKey::group(index, group_id), next);
        }
    }
}

impl GroupCoordinator {
    /// Creates a coordinator over `partition_count` partitions, none of which is loaded. It must be
    /// called within a tokio runtime, on which its timers and appends run.
    pub fn new(
        settings: GroupSettings,
        partition_count: i32,
        log: Arc<dyn CoordinatorLog>,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
    ) -> Self {
        let partition = |_| Partition {
            state: Mutex::new(PartitionState::NotLed),
            appends: tokio::sync::RwLock::new(()),
        };
        let inner = Arc::new(Inner {
            settings,
            log,
            clock,
            randomness,
            started: Instant::now(),
            partitions: (0..partition_count).map(partition).collect(),
            deadlines: Mutex::new(Deadlines::default()),
            deadlines_changed: Notify::new(),
            next_number: AtomicU64::new(1),
            news: News::default(),
            limits: OnceLock::new(),
            places: GroupPlaces::default(),
            bytes: ByteCount::default(),
            waiting: Arc::default(),
            closed: CancellationToken::new(),
        });
        tokio::spawn(Arc::clone(&inner).run_timers());
        Self { inner }
    }

    /// Sets where the limits come from that hold for new groups and members; only the first call
    /// has an effect. What exists beyond a limit stays.
    pub fn limit_by(&self, source: impl Fn() -> GroupLimits + Send + Sync + 'static) {
        let _ = self.inner.limits.set(Box::new(source));
    }

    /// Bytes of memory that all groups take together, with their members and offsets.
    pub fn bytes(&self) -> usize {
        self.inner.bytes.bytes()
    }

    /// The partition of `__consumer_offsets` that holds the group.
    pub fn partition_for(&self, group_id: &str) -> i32 {
        self.inner.index_of(group_id)
    }

    /// Unloads every partition and ends the timers.
    pub fn close(&self) {
        self.inner.closed.cancel();
        let count = i32::try_from(self.inner.partitions.len()).unwrap_or(i32::MAX);
        for index in 0..count {
            self.unload(index);
        }
    }
}

impl Drop for GroupCoordinator {
    fn drop(&mut self) {
        self.inner.closed.cancel();
    }
}
