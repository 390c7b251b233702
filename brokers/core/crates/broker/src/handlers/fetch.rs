//! Fetch: reads records of many partitions, and waits until there are enough of them.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use kafka_protocol::ResponseError;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

pub use super::fetch_memory::Memory;
use super::fetch_refusal::stays_refused;
use super::leaders::NamedBy;
use super::storage_reads::{FromStorage, StorageRead, StorageReads};
use super::topics::{NotServed, open_to_clients};
use super::zone_reads::ZoneReads;
use crate::context::{QuotaKind, RequestContext};
use freshet_access::types::Operation;
use freshet_metadata::view::Topic;
use freshet_partition::read::Fetched as Records;
use freshet_partition::{Bounds, Partition};
use freshet_storage::usage::Handing;
use freshet_wire::budget::Share;
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
/// How long a response waits for more records from storage once it has the first of them. It is
/// short against a read from storage, so that it adds little to the latency, and long enough for
/// reads that were begun together.
const FOLLOWS_WITHIN: Duration = Duration::from_millis(10);
/// A fetch without records waits for those that come from storage for so long beyond its own wait.
const STORAGE_TIME: Duration = Duration::from_secs(1);
/// One response may take at most one part in this many of the memory for older records. A client
/// that reads slowly holds its part for long, and others must be able to catch up meanwhile.
const CATCH_UP_SHARES_MIN: usize = 4;
/// The session epochs of full fetch requests, which need no fetch session (KIP-227).
const FULL_FETCH_EPOCHS: [i32; 2] = [-1, 0];

/// A response, with what is counted and given back once it has been sent.
pub struct Fetched {
    /// The response.
    pub response: FetchResponse,
    /// The bytes of records by topic, for the bill. Internal topics are left out: they are free.
    pub egress: Vec<(TopicId, u64)>,
    /// The memory that its records hold.
    pub memory: Memory,
    /// Held until the bytes are counted, so that the egress meter is not closed before.
    pub handing: Option<Handing>,
}

impl Fetched {
    fn without_records(response: FetchResponse) -> Self {
        Self { response, egress: Vec::new(), memory: Memory::default(), handing: None }
    }

    /// Makes the response ask the client to pause for at least this many milliseconds.
    pub fn throttle(&mut self, throttle_time_ms: i32) {
        let response = &mut self.response;
        response.throttle_time_ms = throttle_time_ms.max(response.throttle_time_ms);
    }
}

/// A topic of the request, with its partitions in the order of the request.
struct RequestedTopic {
    request: FetchTopic,
    topic: Result<Arc<Topic>, ResponseError>,
    partitions: Vec<RequestedPartition>,
}

/// A partition of the request, with its response once it has one.
struct RequestedPartition {
    partition: Result<Arc<Partition>, NotServed>,
    /// The partition's end offset when it was last read; -1 before the first time.
    seen_end: i64,
    response: Option<FetchPartitionResponse>,
    /// Whether the records of the response came from storage.
    is_older: bool,
    /// Whether records are being read from storage for it.
    is_reading: bool,
}

/// A fetch request while its response is being gathered.
struct Fetch<'a> {
    context: &'a RequestContext,
    request: FetchRequest,
    bytes_max: usize,
    topics: Vec<RequestedTopic>,
    zone_reads: Option<ZoneReads>,
    memory: Memory,
    /// The most bytes that the running reads from storage may still bring.
    expected: usize,
    has_failed: bool,
    is_refused: bool,
}

/// Handles the request. Waits until there are `min_bytes` bytes of records, for `max_wait_ms` at
/// most, or until fetch is refused or the engine ends.
///
/// A response with records from memory does not wait for those from storage. They are read
/// meanwhile, and the client gets them with its next request.
pub async fn handle(context: &RequestContext, mut request: FetchRequest) -> Fetched {
    if !FULL_FETCH_EPOCHS.contains(&request.session_epoch) {
        let error_code = ResponseError::FetchSessionIdNotFound.code();
        return Fetched::without_records(FetchResponse { error_code, ..FetchResponse::default() });
    }
    let throttle_time_ms = context.refused_for(QuotaKind::Fetch);
    if throttle_time_ms > 0 {
        let error_code = ResponseError::ThrottlingQuotaExceeded.code();
        let response = FetchResponse { error_code, throttle_time_ms, ..FetchResponse::default() };
        return Fetched::without_records(response);
    }
    let throttle_time_ms = context.charge_fetch(0);
    if throttle_time_ms > 0 {
        // The client has overdrawn its quota: it gets no records until the pause is over, and asks
        // again then.
        let response = FetchResponse { throttle_time_ms, ..FetchResponse::default() };
        return Fetched::without_records(response);
    }
    let broker = context.broker();
    let bytes_max = request.max_bytes.min(broker.config().fetch_max_bytes);
    let bytes_max = usize::try_from(bytes_max).unwrap_or(0).min(context.fetch_bytes_max());
    let bytes_min = usize::try_from(request.min_bytes).unwrap_or(0).min(bytes_max);
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let asked = request.topics.iter().map(|topic| {
        let indexes = topic.partitions.iter().map(|partition| partition.index);
        (NamedBy::either(&topic.name, topic.topic_id), indexes)
    });
    broker.await_leaders_of(asked).await;
    let topics = std::mem::take(&mut request.topics).into_iter();
    let mut topics: Vec<_> = topics.map(|topic| RequestedTopic::find(context, topic)).collect();
    let zone_reads = ZoneReads::new(context, &request.rack_id);
    if let Some(zone_reads) = &zone_reads {
        let asked = topics.iter_mut().flat_map(RequestedTopic::partitions_mut);
        zone_reads.open_copies(context, asked).await;
    }
    let mut fetch = Fetch {
        context,
        request,
        bytes_max,
        topics,
        zone_reads,
        memory: Memory::default(),
        expected: 0,
        has_failed: false,
        is_refused: false,
    };
    if stays_refused(context, wait).await {
        fetch.refuse();
    } else {
        fetch.gather(bytes_min, Instant::now() + wait).await;
    }
    let handing = broker.engine.egress.begin();
    if handing.is_none() && fetch.memory.bytes() > 0 {
        // The egress meter is closed because the broker stops: these records would not be billed.
        fetch.fail_all(ResponseError::NotLeaderOrFollower);
    }
    fetch.finish(handing)
}

impl RequestedTopic {
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
        let find = |requested: &FetchPartition| {
            let partition = match &topic {
                Ok(topic) => context.broker().partition(topic, requested.index),
                Err(error) => Err((*error).into()),
            };
            RequestedPartition::new(partition)
        };
        let partitions = request.partitions.iter().map(find).collect();
        Self { request, topic, partitions }
    }

    /// The partitions, where clients may read the topic.
    fn partitions_mut(
        &mut self,
    ) -> impl Iterator<Item = (&Topic, &FetchPartition, &mut Result<Arc<Partition>, NotServed>)>
    {
        let Self { request, topic, partitions } = self;
        let topic = topic.as_deref().ok();
        let partitions = request.partitions.iter().zip(partitions);
        partitions.filter_map(move |(request, requested)| {
            topic.map(|topic| (topic, request, &mut requested.partition))
        })
    }
}

impl RequestedPartition {
    fn new(partition: Result<Arc<Partition>, NotServed>) -> Self {
        Self { partition, seen_end: -1, response: None, is_older: false, is_reading: false }
    }

    /// Has `news` notified once this partition may have something new: more records where it is to
    /// be read again, else only that it is no longer served. Returns whether it is served.
    ///
    /// This comes before the read and before the look at whether it is served, so that neither a
    /// batch that is appended during the read nor the end of its topic is missed.
    fn stays_served(&self, partition: &Partition, news: &Arc<Notify>) -> bool {
        if self.is_reading || self.is_older {
            partition.notify_on_close(news);
        } else {
            partition.notify_on_append(news);
        }
        partition.serves_clients()
    }

    /// Gives up the partition and the records that were read of it.
    fn withdraw(&mut self, not_served: NotServed, memory: &mut Memory) {
        self.clear(memory);
        self.is_older = false;
        self.partition = Err(not_served);
    }

    /// Drops the response that it has, because the partition is read again.
    fn clear(&mut self, memory: &mut Memory) {
        let bytes = self.response.take().map_or(0, |response| response.records_bytes());
        memory.of(self.is_older).bytes -= bytes;
    }
}

impl Fetch<'_> {
    async fn gather(&mut self, bytes_min: usize, deadline: Instant) {
        let engine = &self.context.broker().engine;
        let (liveness, mut limits) = (engine.liveness.clone(), engine.view.traffic_limits());
        if self.request.replica_id >= 0 {
            // The request claims to come from a replica. There are none, so no client may be
            // one.
            return self.fail_all(ResponseError::TopicAuthorizationFailed);
        }
        let mut storage_reads = StorageReads::new();
        loop {
            if self.context.refuses_fetch() {
                return self.refuse();
            }
            let news = Arc::new(Notify::new());
            self.read_partitions(&news, &mut storage_reads).await;
            while let Some(Some(arrived)) = storage_reads.next().now_or_never() {
                self.add_read(arrived);
            }
            self.memory.newest.shrink();
            self.memory.older.shrink();
            // Records that exist are given, also to a client that waits for none.
            let owes = self.memory.bytes() == 0 && !storage_reads.is_empty();
            let enough = self.memory.bytes() >= bytes_min && !owes;
            let enough = enough || self.has_failed || self.topics.is_empty();
            let until = if owes { deadline + STORAGE_TIME } else { deadline };
            if enough && self.memory.newest.bytes == 0 {
                self.take_what_follows(&mut storage_reads, deadline).await;
            }
            if enough || Instant::now() >= until {
                return self.answer_rest();
            }
            tokio::select! {
                biased;
                _ = liveness.ended() => {
                    return self.fail_all(ResponseError::NotLeaderOrFollower);
                }
                Ok(()) = limits.changed() => {}
                Some(arrived) = storage_reads.next() => self.add_read(arrived),
                () = news.notified() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Takes the records that come from storage soon after the first ones. A client with one
    /// request at a time so gets records of all partitions that it asked for, and not of one per
    /// request.
    async fn take_what_follows(&mut self, storage_reads: &mut StorageReads, deadline: Instant) {
        let until = deadline.min(Instant::now() + FOLLOWS_WITHIN);
        while let Ok(Some(arrived)) = timeout_at(until, storage_reads.next()).await {
            self.add_read(arrived);
        }
        self.memory.older.shrink();
    }

    /// Reads every partition that may have more records than when it was last read.
    async fn read_partitions(&mut self, news: &Arc<Notify>, storage_reads: &mut StorageReads) {
        let mut topics = std::mem::take(&mut self.topics);
        for (at, topic) in topics.iter_mut().enumerate() {
            let partitions = topic.request.partitions.iter().zip(&mut topic.partitions);
            for (within, (request, partition)) in partitions.enumerate() {
                let by_id = self.context.api_version >= TOPIC_IDS_FROM;
                if let (Ok(known), Ok(log)) = (&topic.topic, &partition.partition)
                    && !partition.stays_served(log, news)
                    && let Some(gone) = self.context.broker().withdrawn(known, request.index, by_id)
                {
                    partition.withdraw(gone, &mut self.memory);
                }
                let storage_read = self.read_partition(&topic.topic, request, partition).await;
                storage_reads.extend(storage_read.map(|from| from.read((at, within))));
            }
        }
        self.topics = topics;
    }

    /// Reads a partition's records where they are in memory, and returns the read where they must
    /// come from storage.
    async fn read_partition(
        &mut self,
        topic: &Result<Arc<Topic>, ResponseError>,
        request: &FetchPartition,
        requested: &mut RequestedPartition,
    ) -> Option<FromStorage> {
        let partition = match &requested.partition {
            Ok(partition) => Arc::clone(partition),
            Err(NotServed { error, leader }) => {
                self.has_failed = true;
                requested.response = Some(failed(request.index, *error, *leader));
                return None;
            }
        };
        if requested.is_reading || requested.is_older {
            return None;
        }
        let end = partition.bounds().end;
        if requested.response.is_some() && requested.seen_end == end {
            return None;
        }
        requested.seen_end = end;
        requested.clear(&mut self.memory);
        let answered = self.check_position(topic, request, &partition);
        let outcome = match answered {
            Ok(Some(response)) => Ok(response),
            Ok(None) if partition.reads_hot(request.fetch_offset) => {
                self.read_hot(request, &partition).await
            }
            Ok(None) => {
                let storage_read = self.plan_storage_read(request, &partition);
                requested.is_reading = storage_read.is_some();
                return storage_read;
            }
            Err(error) => Err(error),
        };
        let response = outcome.unwrap_or_else(|error| self.failure(request, &partition, error));
        requested.response = Some(response);
        None
    }

    /// Checks a partition's request before anything is read. Returns a response where the client's
    /// log diverges from the partition's, or it is to read from a broker in its zone, and `None`
    /// where records are to be read.
    ///
    /// # Errors
    /// The error of a leader epoch that is not the partition's, or of an unknown epoch.
    fn check_position(
        &mut self,
        topic: &Result<Arc<Topic>, ResponseError>,
        request: &FetchPartition,
        partition: &Partition,
    ) -> Result<Option<FetchPartitionResponse>, ResponseError> {
        partition.check_epoch(request.current_leader_epoch)?;
        if let Some(node) = self.other_node(topic, request, partition) {
            self.has_failed = true;
            let response = self.empty(request, partition.bounds());
            return Ok(Some(FetchPartitionResponse { preferred_read_replica: node, ..response }));
        }
        if request.last_fetched_epoch < 0 {
            return Ok(None);
        }
        let Some(diverging) = diverging_epoch(request, partition)? else { return Ok(None) };
        self.has_failed = true;
        let response = self.empty(request, partition.bounds());
        Ok(Some(FetchPartitionResponse { diverging_epoch: Some(diverging), ..response }))
    }

    /// The node in the client's zone from which it is to read this partition.
    fn other_node(
        &self,
        topic: &Result<Arc<Topic>, ResponseError>,
        request: &FetchPartition,
        partition: &Partition,
    ) -> Option<i32> {
        let (zone_reads, topic) = (self.zone_reads.as_ref()?, topic.as_ref().ok()?);
        zone_reads.other_node(self.context, topic, partition, request.fetch_offset)
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

    /// How many bytes of records a partition may still add to the response.
    fn room(&self, request: &FetchPartition) -> usize {
        let partition_max = usize::try_from(request.partition_max_bytes).unwrap_or(0);
        partition_max.min(self.bytes_max.saturating_sub(self.memory.bytes() + self.expected))
    }

    async fn read_hot(
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

    /// Acquires memory for records. A request that holds some already does not wait for more and
    /// gets `None` where there is none, so that no two requests can wait for each other.
    async fn memory_for(&self, bytes: usize) -> Option<Share> {
        let budget = &self.context.broker().fetch_memory;
        match budget.try_acquire(bytes) {
            None if self.memory.newest.share.is_none() => Some(budget.acquire(bytes).await),
            granted => granted,
        }
    }

    /// Prepares a read from storage; `None` where there is no room for its records now.
    fn plan_storage_read(
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

    /// Puts records that were read from storage into the response.
    fn add_read(&mut self, arrived: StorageRead) {
        let (at, within) = arrived.place;
        let mut topics = std::mem::take(&mut self.topics);
        self.expected -= arrived.room;
        let topic = &mut topics[at];
        let (request, requested_partition) =
            (&topic.request.partitions[within], &mut topic.partitions[within]);
        requested_partition.is_reading = false;
        if let Ok(partition) = &requested_partition.partition {
            let response = match arrived.read {
                Ok((read, share)) => {
                    requested_partition.is_older = read.bytes > 0;
                    self.with_records(request, read, share, true)
                }
                Err(error) => self.failure(request, partition, error.code()),
            };
            requested_partition.response = Some(response);
        }
        self.topics = topics;
    }

    /// Gives every partition whose records did not come in time a response without records.
    fn answer_rest(&mut self) {
        let mut topics = std::mem::take(&mut self.topics);
        for topic in &mut topics {
            for (request, partition) in topic.request.partitions.iter().zip(&mut topic.partitions) {
                if let (None, Ok(log)) = (&partition.response, &partition.partition) {
                    partition.response = Some(self.empty(request, log.bounds()));
                }
            }
        }
        self.topics = topics;
    }

    fn fail_all(&mut self, error: ResponseError) {
        self.memory = Memory::default();
        for topic in &mut self.topics {
            for (request, partition) in topic.request.partitions.iter().zip(&mut topic.partitions) {
                partition.response = Some(failed(request.index, error, None));
            }
        }
    }

    /// Refuses the request as a whole and by partition: some clients look at the one, some at the
    /// other (see `fetch_refusal.rs`).
    fn refuse(&mut self) {
        self.is_refused = true;
        self.fail_all(ResponseError::PolicyViolation);
    }

    /// The partition's leader, for the response to a client whose leader epoch is older.
    fn leader_for(&self, error: ResponseError, partition: &Partition) -> Option<CurrentLeader> {
        (error == ResponseError::FencedLeaderEpoch).then(|| CurrentLeader {
            leader_id: self.context.broker().engine.node_id,
            leader_epoch: partition.epoch(),
        })
    }

    fn finish(self, handing: Option<Handing>) -> Fetched {
        let names_leaders = self.context.api_version >= LEADERS_FROM;
        let mut leaders = Vec::new();
        let mut egress = Vec::new();
        let mut topics = Vec::with_capacity(self.topics.len());
        for topic in self.topics {
            let mut partitions: Vec<_> =
                topic.partitions.into_iter().filter_map(|partition| partition.response).collect();
            for partition in &mut partitions {
                partition.current_leader = partition.current_leader.filter(|_| names_leaders);
                leaders.extend(partition.current_leader.map(|leader| leader.leader_id));
            }
            let bytes: usize = partitions.iter().map(FetchPartitionResponse::records_bytes).sum();
            if let Ok(known) = &topic.topic
                && !known.record.internal
                && bytes > 0
            {
                egress.push((known.record.id, bytes as u64));
            }
            let (name, topic_id) = (topic.request.name, topic.request.topic_id);
            topics.push(FetchTopicResponse { name, topic_id, partitions });
        }
        let node_endpoints = self.context.nodes_named(leaders.into_iter());
        let throttle_time_ms = self.context.charge_fetch(self.memory.bytes());
        let error_code = if self.is_refused { ResponseError::PolicyViolation.code() } else { 0 };
        let response = FetchResponse {
            throttle_time_ms,
            error_code,
            topics,
            node_endpoints,
            ..FetchResponse::default()
        };
        Fetched { response, egress, memory: self.memory, handing }
    }
}

fn failed(
    index: i32,
    error: ResponseError,
    current_leader: Option<CurrentLeader>,
) -> FetchPartitionResponse {
    FetchPartitionResponse { current_leader, ..FetchPartitionResponse::failed(index, error.code()) }
}

/// Where the client's log diverges from the partition's: the client has records of an epoch that
/// ended before them here. `None` where the logs agree.
fn diverging_epoch(
    request: &FetchPartition,
    partition: &Partition,
) -> Result<Option<EpochEndOffset>, ResponseError> {
    let epoch_end = partition.end_of_epoch(request.last_fetched_epoch);
    let (epoch, end_offset) = epoch_end.ok_or(ResponseError::OffsetOutOfRange)?;
    let diverges = epoch < request.last_fetched_epoch || end_offset < request.fetch_offset;
    Ok(diverges.then_some(EpochEndOffset { epoch, end_offset }))
}
