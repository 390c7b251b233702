//! Fetch: records from many partitions, waiting for enough of them.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use kafka_protocol::ResponseError;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::topics::{NotServed, open_to_clients};
use crate::context::RequestContext;
use freshet_access::types::Operation;
use freshet_metadata::view::Topic;
use freshet_partition::read::{Fetched as Records, ReadError};
use freshet_partition::{Bounds, Partition};
use freshet_storage::usage::Handing;
use freshet_wire::budget::{Budget, Demand, Share};
use freshet_wire::ids::TopicId;
use freshet_wire::protocol::fetch::{
    EpochEndOffset, FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse,
    FetchTopic, FetchTopicResponse,
};
use freshet_wire::protocol::leader::CurrentLeader;

/// From this version on topics are named by their ids.
const TOPIC_IDS_FROM: i16 = 13;
/// From this version on errors name the leader and its address.
const LEADERS_FROM: i16 = 16;
/// How long after the first older records others still belong to one answer.
const FOLLOWS_WITHIN: Duration = Duration::from_millis(10);
/// Of the memory for older records one answer takes no more than this part: a client that reads
/// slowly holds what it was given, and others catch up meanwhile.
const CATCH_UP_SHARES_MIN: usize = 4;
/// Session epochs that ask for everything, so that no session is needed (KIP-227).
const FULL_FETCH_EPOCHS: [i32; 2] = [-1, 0];

/// A response, and what is to be counted once it has been sent.
pub struct Fetched {
    /// The response.
    pub response: FetchResponse,
    /// Bytes of records by topic, for the meter; internal topics are free.
    pub egress: Vec<(TopicId, u64)>,
    /// The memory that the records hold.
    pub memory: Memory,
    /// To be held until the bytes are counted.
    pub handing: Option<Handing>,
}

/// The memory that records on their way to a client hold, by where they were.
#[derive(Default)]
pub struct Memory {
    newest: Held,
    older: Held,
}

/// Records of one kind.
#[derive(Default)]
struct Held {
    bytes: usize,
    share: Option<Share>,
}

impl Held {
    fn add(&mut self, bytes: usize, mut share: Share) {
        self.bytes += bytes;
        share.shrink_to(bytes);
        match &mut self.share {
            Some(held) => held.merge(share),
            None => self.share = Some(share),
        }
    }

    /// Gives back what is held beyond the bytes: what was read anew is held once.
    fn shrink(&mut self) {
        if let Some(share) = &mut self.share {
            share.shrink_to(self.bytes);
        }
    }
}

impl Memory {
    fn bytes(&self) -> usize {
        self.newest.bytes + self.older.bytes
    }

    /// Who waits for what it holds.
    pub fn demands(&self) -> Vec<Demand> {
        let shares = [&self.newest.share, &self.older.share];
        shares.into_iter().flatten().map(Share::demand).collect()
    }

    fn of(&mut self, is_older: bool) -> &mut Held {
        if is_older { &mut self.older } else { &mut self.newest }
    }
}

impl Fetched {
    fn without_records(response: FetchResponse) -> Self {
        Self { response, egress: Vec::new(), memory: Memory::default(), handing: None }
    }

    /// Tells the client to pause for at least so long.
    pub fn throttle(&mut self, throttle_time_ms: i32) {
        let told = &mut self.response.throttle_time_ms;
        *told = throttle_time_ms.max(*told);
    }
}

/// A topic of the request.
struct Wanted {
    request: FetchTopic,
    topic: Result<Arc<Topic>, ResponseError>,
    partitions: Vec<WantedPartition>,
}

/// A partition of the request.
struct WantedPartition {
    partition: Result<Arc<Partition>, NotServed>,
    /// The partition's end when it was last looked at; -1 before.
    seen_end: i64,
    response: Option<FetchPartitionResponse>,
    /// Whether the records of the response came from storage.
    is_older: bool,
    /// Whether they are being read from there.
    is_coming: bool,
}

/// Records that come from storage, for the partition at this place of the request.
struct Coming {
    place: (usize, usize),
    room: usize,
    read: Result<(Records, Share), ReadError>,
}

/// All that is read from storage for one request, at the same time.
type AllComing = FuturesUnordered<BoxFuture<'static, Coming>>;

/// One fetch.
struct Fetch<'a> {
    context: &'a RequestContext,
    request: FetchRequest,
    bytes_max: usize,
    wanted: Vec<Wanted>,
    memory: Memory,
    /// What may come from storage.
    expected: usize,
    has_failed: bool,
}

/// Handles the request. Waits up to the client's `max_wait_ms` for `min_bytes`, and no longer once
/// the instance ends.
///
/// Who also reads the newest records does not wait for older ones: these are read from storage
/// meanwhile, and handed out when the client asks again.
pub async fn handle(context: &RequestContext, mut request: FetchRequest) -> Fetched {
    if !FULL_FETCH_EPOCHS.contains(&request.session_epoch) {
        let error_code = ResponseError::FetchSessionIdNotFound.code();
        return Fetched::without_records(FetchResponse { error_code, ..FetchResponse::default() });
    }
    let throttle_time_ms = context.charge_fetch(0);
    if throttle_time_ms > 0 {
        // Nothing more until the debt is paid; the client asks again then.
        let response = FetchResponse { throttle_time_ms, ..FetchResponse::default() };
        return Fetched::without_records(response);
    }
    let broker = context.broker();
    let limit = broker.config().fetch_max_bytes;
    let bytes_max = usize::try_from(request.max_bytes.min(limit)).unwrap_or(0);
    let bytes_max = bytes_max.min(context.fetch_bytes_max());
    let bytes_min = usize::try_from(request.min_bytes).unwrap_or(0).min(bytes_max);
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let wanted = std::mem::take(&mut request.topics);
    let wanted = wanted.into_iter().map(|topic| Wanted::find(context, topic)).collect();
    let (memory, expected) = (Memory::default(), 0);
    let mut fetch =
        Fetch { context, request, bytes_max, wanted, memory, expected, has_failed: false };
    fetch.gather(bytes_min, Instant::now() + wait).await;
    let handing = broker.engine.egress.begin();
    if handing.is_none() && fetch.memory.bytes() > 0 {
        // What is handed out now would be in no count.
        fetch.fail_all(ResponseError::NotLeaderOrFollower);
    }
    fetch.finish(handing)
}

impl Wanted {
    fn find(context: &RequestContext, request: FetchTopic) -> Self {
        let topics = context.broker().engine.view.topics();
        let by_id = context.api_version >= TOPIC_IDS_FROM;
        let known =
            if by_id { topics.by_id(request.topic_id) } else { topics.by_name(&request.name) };
        let name = known.map_or(request.name.as_str(), |topic| topic.record.name.as_str());
        let topic = if by_id && known.is_none() {
            Err(ResponseError::UnknownTopicId)
        } else if !context.may_topic(Operation::Read, name) {
            Err(ResponseError::TopicAuthorizationFailed)
        } else {
            known.ok_or(ResponseError::UnknownTopicOrPartition).and_then(open_to_clients)
        };
        let find = |wanted: &FetchPartition| {
            let partition = match &topic {
                Ok(topic) => context.broker().partition(topic, wanted.index),
                Err(error) => Err((*error).into()),
            };
            WantedPartition::new(partition)
        };
        let partitions = request.partitions.iter().map(find).collect();
        Self { request, topic, partitions }
    }
}

impl WantedPartition {
    fn new(partition: Result<Arc<Partition>, NotServed>) -> Self {
        Self { partition, seen_end: -1, response: None, is_older: false, is_coming: false }
    }

    /// Takes back what was to be answered.
    fn clear(&mut self, memory: &mut Memory) {
        let bytes = self.response.take().map_or(0, |response| response.records_bytes());
        memory.of(self.is_older).bytes -= bytes;
    }
}

impl Fetch<'_> {
    async fn gather(&mut self, bytes_min: usize, deadline: Instant) {
        let liveness = self.context.broker().engine.liveness.clone();
        if self.request.replica_id >= 0 {
            // There are no replicas, and nobody is allowed to be one.
            return self.fail_all(ResponseError::TopicAuthorizationFailed);
        }
        let mut all_coming = AllComing::new();
        loop {
            let news = Arc::new(Notify::new());
            self.read(&news, &mut all_coming).await;
            while let Some(Some(come)) = all_coming.next().now_or_never() {
                self.take(come);
            }
            self.memory.newest.shrink();
            self.memory.older.shrink();
            let enough = self.memory.bytes() >= bytes_min;
            let enough = enough || self.has_failed || self.wanted.is_empty();
            if enough && self.memory.newest.bytes == 0 {
                self.take_what_follows(&mut all_coming, deadline).await;
            }
            if enough || Instant::now() >= deadline {
                return self.answer_rest();
            }
            tokio::select! {
                biased;
                _ = liveness.ended() => {
                    return self.fail_all(ResponseError::NotLeaderOrFollower);
                }
                Some(come) = all_coming.next() => self.take(come),
                () = news.notified() => {}
                () = sleep_until(deadline) => {}
            }
        }
    }

    /// Takes what comes from storage soon after the first of it: a client with one request under
    /// way gets as many partitions at a time as it asked for, and not one.
    async fn take_what_follows(&mut self, all_coming: &mut AllComing, deadline: Instant) {
        let until = deadline.min(Instant::now() + FOLLOWS_WITHIN);
        while let Ok(Some(come)) = timeout_at(until, all_coming.next()).await {
            self.take(come);
        }
        self.memory.older.shrink();
    }

    /// Reads every partition that may have more than when it was last read.
    async fn read(&mut self, news: &Arc<Notify>, all_coming: &mut AllComing) {
        let mut wanted = std::mem::take(&mut self.wanted);
        for (at, topic) in wanted.iter_mut().enumerate() {
            let partitions = topic.request.partitions.iter().zip(&mut topic.partitions);
            for (within, (request, partition)) in partitions.enumerate() {
                let coming = self.read_partition(request, partition, news).await;
                all_coming.extend(coming.map(|from| from.read((at, within))));
            }
        }
        self.wanted = wanted;
    }

    /// Reads what is in memory. Gives what is to be read from storage.
    async fn read_partition(
        &mut self,
        request: &FetchPartition,
        wanted: &mut WantedPartition,
        news: &Arc<Notify>,
    ) -> Option<FromStorage> {
        let partition = match &wanted.partition {
            Ok(partition) => Arc::clone(partition),
            Err(NotServed { error, leader }) => {
                self.has_failed = true;
                wanted.response = Some(failed(request.index, *error, *leader));
                return None;
            }
        };
        if wanted.is_coming || wanted.is_older {
            return None;
        }
        // First, so that nothing is missed that is appended while it is read.
        partition.notify_on_append(news);
        let end = partition.bounds().end;
        if wanted.response.is_some() && wanted.seen_end == end {
            return None;
        }
        wanted.seen_end = end;
        wanted.clear(&mut self.memory);
        let answered = self.judge(request, &partition);
        let outcome = match answered {
            Ok(Some(response)) => Ok(response),
            Ok(None) if partition.reads_hot(request.fetch_offset) => {
                self.newest(request, &partition).await
            }
            Ok(None) => {
                let coming = self.stored(request, &partition);
                wanted.is_coming = coming.is_some();
                return coming;
            }
            Err(error) => Err(error),
        };
        let response = outcome.unwrap_or_else(|error| self.failure(request, &partition, error));
        wanted.response = Some(response);
        None
    }

    /// What the request gets before anything is read: an error, or where its log left ours.
    fn judge(
        &mut self,
        request: &FetchPartition,
        partition: &Partition,
    ) -> Result<Option<FetchPartitionResponse>, ResponseError> {
        partition.check_epoch(request.current_leader_epoch)?;
        if request.last_fetched_epoch < 0 {
            return Ok(None);
        }
        let Some(diverging) = diverging_epoch(request, partition)? else { return Ok(None) };
        self.has_failed = true;
        let response = self.empty(request, partition.bounds());
        Ok(Some(FetchPartitionResponse { diverging_epoch: Some(diverging), ..response }))
    }

    fn empty(&self, request: &FetchPartition, bounds: Bounds) -> FetchPartitionResponse {
        FetchPartitionResponse {
            high_watermark: bounds.end,
            last_stable_offset: bounds.last_stable_offset,
            log_start_offset: bounds.log_start,
            aborted_transactions: (self.request.isolation_level == 1).then(Vec::new),
            ..FetchPartitionResponse::failed(request.index, 0)
        }
    }

    fn failure(
        &mut self,
        request: &FetchPartition,
        partition: &Partition,
        error: ResponseError,
    ) -> FetchPartitionResponse {
        self.has_failed = true;
        let liveness = &self.context.broker().engine.liveness;
        let error = if liveness.is_down() { ResponseError::NotLeaderOrFollower } else { error };
        failed(request.index, error, self.leader_for(error, partition))
    }

    /// Bytes that a partition may still add.
    fn room(&self, request: &FetchPartition) -> usize {
        let partition_max = usize::try_from(request.partition_max_bytes).unwrap_or(0);
        partition_max.min(self.bytes_max.saturating_sub(self.memory.bytes() + self.expected))
    }

    async fn newest(
        &mut self,
        request: &FetchPartition,
        partition: &Partition,
    ) -> Result<FetchPartitionResponse, ResponseError> {
        let bounds = partition.bounds();
        let room = self.room(request);
        let is_first = self.memory.bytes() == 0;
        let may_have = bounds.end > request.fetch_offset && (room > 0 || is_first);
        let Some(share) = self.memory_for(if may_have { room } else { 0 }).await else {
            return Ok(self.empty(request, bounds));
        };
        let read = partition.read(request.fetch_offset, room, is_first).await;
        let read = read.map_err(|error| error.code())?;
        Ok(self.with_records(request, read, share, false))
    }

    fn with_records(
        &mut self,
        request: &FetchPartition,
        read: Records,
        share: Share,
        is_older: bool,
    ) -> FetchPartitionResponse {
        self.memory.of(is_older).add(read.bytes, share);
        let response = self.empty(request, read.bounds);
        FetchPartitionResponse { records: read.into_pieces(), ..response }
    }

    /// Memory for records. Who holds some already takes no more than there is, so that nobody waits
    /// for another who waits.
    async fn memory_for(&self, bytes: usize) -> Option<Share> {
        let budget = &self.context.broker().fetch_memory;
        match budget.try_acquire(bytes) {
            None if self.memory.newest.share.is_none() => Some(budget.acquire(bytes).await),
            granted => granted,
        }
    }

    /// What is to be read from storage, if there is room for it now.
    fn stored(
        &mut self,
        request: &FetchPartition,
        partition: &Arc<Partition>,
    ) -> Option<FromStorage> {
        let is_first = self.memory.bytes() + self.expected == 0;
        let budget = &self.context.broker().catch_up_memory;
        let share_max = budget.total_bytes() / CATCH_UP_SHARES_MIN;
        let left = share_max.saturating_sub(self.memory.older.bytes + self.expected);
        let room = self.room(request).min(left);
        if room == 0 && !is_first {
            return None;
        }
        let share = budget.try_acquire(room);
        if share.is_none() && !is_first {
            return None;
        }
        self.expected += room;
        let (partition, offset) = (Arc::clone(partition), request.fetch_offset);
        Some(FromStorage { partition, offset, room, is_first, budget: budget.clone(), share })
    }

    /// Takes what came from storage.
    fn take(&mut self, come: Coming) {
        let (at, within) = come.place;
        let mut wanted = std::mem::take(&mut self.wanted);
        self.expected -= come.room;
        let topic = &mut wanted[at];
        let (request, wanted_partition) =
            (&topic.request.partitions[within], &mut topic.partitions[within]);
        wanted_partition.is_coming = false;
        if let Ok(partition) = &wanted_partition.partition {
            let response = match come.read {
                Ok((read, share)) => {
                    wanted_partition.is_older = read.bytes > 0;
                    self.with_records(request, read, share, true)
                }
                Err(error) => self.failure(request, partition, error.code()),
            };
            wanted_partition.response = Some(response);
        }
        self.wanted = wanted;
    }

    /// Partitions whose records did not come in time are answered without any.
    fn answer_rest(&mut self) {
        let mut wanted = std::mem::take(&mut self.wanted);
        for topic in &mut wanted {
            for (request, wanted) in topic.request.partitions.iter().zip(&mut topic.partitions) {
                if let (None, Ok(partition)) = (&wanted.response, &wanted.partition) {
                    wanted.response = Some(self.empty(request, partition.bounds()));
                }
            }
        }
        self.wanted = wanted;
    }

    fn fail_all(&mut self, error: ResponseError) {
        self.memory = Memory::default();
        for topic in &mut self.wanted {
            for (request, wanted) in topic.request.partitions.iter().zip(&mut topic.partitions) {
                wanted.response = Some(failed(request.index, error, None));
            }
        }
    }

    /// Who leads, where the client has an older idea of it.
    fn leader_for(&self, error: ResponseError, partition: &Partition) -> Option<CurrentLeader> {
        (error == ResponseError::FencedLeaderEpoch).then(|| CurrentLeader {
            leader_id: self.context.broker().engine.node_id,
            leader_epoch: partition.epoch(),
        })
    }

    fn finish(self, handing: Option<Handing>) -> Fetched {
        let names_leaders = self.context.api_version >= LEADERS_FROM;
        let this = self.context.endpoint();
        let mut names_this = false;
        let mut egress = Vec::new();
        let mut topics = Vec::with_capacity(self.wanted.len());
        for wanted in self.wanted {
            let mut partitions: Vec<_> =
                wanted.partitions.into_iter().filter_map(|partition| partition.response).collect();
            for partition in &mut partitions {
                partition.current_leader = partition.current_leader.filter(|_| names_leaders);
                names_this |=
                    partition.current_leader.is_some_and(|leader| leader.leader_id == this.node_id);
            }
            let bytes: usize = partitions.iter().map(FetchPartitionResponse::records_bytes).sum();
            if let Ok(topic) = &wanted.topic
                && !topic.record.internal
                && bytes > 0
            {
                egress.push((topic.record.id, bytes as u64));
            }
            let (name, topic_id) = (wanted.request.name, wanted.request.topic_id);
            topics.push(FetchTopicResponse { name, topic_id, partitions });
        }
        let node_endpoints = if names_this { vec![this] } else { Vec::new() };
        let throttle_time_ms = self.context.charge_fetch(self.memory.bytes());
        let response =
            FetchResponse { throttle_time_ms, topics, node_endpoints, ..FetchResponse::default() };
        Fetched { response, egress, memory: self.memory, handing }
    }
}

/// A partition's records that are to be read from storage.
struct FromStorage {
    partition: Arc<Partition>,
    offset: i64,
    room: usize,
    is_first: bool,
    budget: Budget,
    /// Memory for them; none where it has to be waited for.
    share: Option<Share>,
}

impl FromStorage {
    fn read(self, place: (usize, usize)) -> BoxFuture<'static, Coming> {
        let Self { partition, offset, room, is_first, budget, share } = self;
        async move {
            let share = match share {
                Some(share) => share,
                None => budget.acquire(room).await,
            };
            let read = partition.read(offset, room, is_first).await;
            Coming { place, room, read: read.map(|read| (read, share)) }
        }
        .boxed()
    }
}

fn failed(
    index: i32,
    error: ResponseError,
    current_leader: Option<CurrentLeader>,
) -> FetchPartitionResponse {
    FetchPartitionResponse { current_leader, ..FetchPartitionResponse::failed(index, error.code()) }
}

/// Where the client's log left ours: it was written under an epoch that ended earlier here.
fn diverging_epoch(
    request: &FetchPartition,
    partition: &Partition,
) -> Result<Option<EpochEndOffset>, ResponseError> {
    let found = partition.end_of_epoch(request.last_fetched_epoch);
    let (epoch, end_offset) = found.ok_or(ResponseError::OffsetOutOfRange)?;
    let diverges = epoch < request.last_fetched_epoch || end_offset < request.fetch_offset;
    Ok(diverges.then_some(EpochEndOffset { epoch, end_offset }))
}
