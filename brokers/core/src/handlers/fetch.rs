//! Fetch: records from many partitions, waiting for enough of them.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::ResponseError;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::context::RequestContext;
use super::topics::NotServed;
use crate::auth::types::Operation;
use crate::ids::TopicId;
use crate::metadata::view::Topic;
use crate::partition::Partition;
use crate::partition::read::ReadError;
use crate::protocol::fetch::{
    EpochEndOffset, FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse,
    FetchTopic, FetchTopicResponse,
};
use crate::protocol::leader::CurrentLeader;
use crate::server::Share;
use crate::usage::Handing;

/// From this version on topics are named by their ids.
const TOPIC_IDS_FROM: i16 = 13;
/// From this version on errors name the leader and its address.
const LEADERS_FROM: i16 = 16;
/// Session epochs that ask for everything, so that no session is needed (KIP-227).
const FULL_FETCH_EPOCHS: [i32; 2] = [-1, 0];

/// A response, and what is to be counted once it has been sent.
pub struct Fetched {
    /// The response.
    pub response: FetchResponse,
    /// Bytes of records by topic, for the meter; internal topics are free.
    pub egress: Vec<(TopicId, u64)>,
    /// The memory that the records hold.
    pub memory: Option<Share>,
    /// To be held until the bytes are counted.
    pub handing: Option<Handing>,
}

impl Fetched {
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
}

/// One fetch.
struct Fetch<'a> {
    context: &'a RequestContext,
    request: FetchRequest,
    bytes_max: usize,
    wanted: Vec<Wanted>,
    bytes: usize,
    has_failed: bool,
    memory: Option<Share>,
}

/// Handles the request. Waits up to the client's `max_wait_ms` for `min_bytes`, and no longer once
/// the instance ends.
pub async fn handle(context: &RequestContext, mut request: FetchRequest) -> Fetched {
    if !FULL_FETCH_EPOCHS.contains(&request.session_epoch) {
        let error_code = ResponseError::FetchSessionIdNotFound.code();
        let response = FetchResponse { error_code, ..FetchResponse::default() };
        return Fetched { response, egress: Vec::new(), memory: None, handing: None };
    }
    let throttle_time_ms = context.charge_fetch(0);
    if throttle_time_ms > 0 {
        // Nothing more until the debt is paid; the client asks again then.
        let response = FetchResponse { throttle_time_ms, ..FetchResponse::default() };
        return Fetched { response, egress: Vec::new(), memory: None, handing: None };
    }
    let broker = context.broker();
    let limit = broker.config().fetch_max_bytes;
    let bytes_max = usize::try_from(request.max_bytes.min(limit)).unwrap_or(0);
    let bytes_max = bytes_max.min(context.fetch_bytes_max());
    let bytes_min = usize::try_from(request.min_bytes).unwrap_or(0).min(bytes_max);
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let wanted = std::mem::take(&mut request.topics);
    let wanted = wanted.into_iter().map(|topic| Wanted::find(context, topic)).collect();
    let mut fetch =
        Fetch { context, request, bytes_max, wanted, bytes: 0, has_failed: false, memory: None };
    fetch.gather(bytes_min, Instant::now() + wait).await;
    let handing = broker.engine.egress.begin();
    if handing.is_none() && fetch.bytes > 0 {
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
            known.cloned().ok_or(ResponseError::UnknownTopicOrPartition)
        };
        let find = |wanted: &FetchPartition| {
            let partition = match &topic {
                Ok(topic) => context.broker().partition(topic, wanted.index),
                Err(error) => Err((*error).into()),
            };
            WantedPartition { partition, seen_end: -1, response: None }
        };
        let partitions = request.partitions.iter().map(find).collect();
        Self { request, topic, partitions }
    }
}

impl Fetch<'_> {
    async fn gather(&mut self, bytes_min: usize, deadline: Instant) {
        let standing = self.context.broker().engine.standing.clone();
        if self.request.replica_id >= 0 {
            // There are no replicas, and nobody is allowed to be one.
            return self.fail_all(ResponseError::TopicAuthorizationFailed);
        }
        loop {
            let news = Arc::new(Notify::new());
            self.read(&news).await;
            if let Some(memory) = &mut self.memory {
                // What was read anew is held once.
                memory.shrink_to(self.bytes);
            }
            let enough = self.bytes >= bytes_min || self.has_failed || self.wanted.is_empty();
            if enough || Instant::now() >= deadline {
                return;
            }
            tokio::select! {
                biased;
                _ = standing.ended() => {
                    return self.fail_all(ResponseError::NotLeaderOrFollower);
                }
                () = news.notified() => {}
                () = sleep_until(deadline) => {}
            }
        }
    }

    /// Reads every partition that may have more than when it was last read.
    async fn read(&mut self, news: &Arc<Notify>) {
        let mut wanted = std::mem::take(&mut self.wanted);
        for topic in &mut wanted {
            for (request, partition) in topic.request.partitions.iter().zip(&mut topic.partitions) {
                self.read_partition(request, partition, news).await;
            }
        }
        self.wanted = wanted;
    }

    async fn read_partition(
        &mut self,
        request: &FetchPartition,
        wanted: &mut WantedPartition,
        news: &Arc<Notify>,
    ) {
        let partition = match &wanted.partition {
            Ok(partition) => partition,
            Err(NotServed { error, leader }) => {
                self.has_failed = true;
                wanted.response = Some(failed(request.index, *error, *leader));
                return;
            }
        };
        // First, so that nothing is missed that is appended while it is read.
        partition.notify_on_append(news);
        let end = partition.bounds().end;
        if wanted.response.is_some() && wanted.seen_end == end {
            return;
        }
        wanted.seen_end = end;
        let before = wanted.response.take().map_or(0, |response| response.records_bytes());
        self.bytes -= before;
        let response = match self.records(request, partition).await {
            Ok(response) => response,
            Err(error) => {
                self.has_failed = true;
                let standing = &self.context.broker().engine.standing;
                let error =
                    if standing.is_down() { ResponseError::NotLeaderOrFollower } else { error };
                failed(request.index, error, self.leader_for(error, partition))
            }
        };
        self.bytes += response.records_bytes();
        wanted.response = Some(response);
    }

    async fn records(
        &mut self,
        request: &FetchPartition,
        partition: &Partition,
    ) -> Result<FetchPartitionResponse, ResponseError> {
        partition.check_epoch(request.current_leader_epoch)?;
        let bounds = partition.bounds();
        let mut response = FetchPartitionResponse {
            high_watermark: bounds.end,
            last_stable_offset: bounds.last_stable_offset,
            log_start_offset: bounds.log_start,
            aborted_transactions: (self.request.isolation_level == 1).then(Vec::new),
            ..FetchPartitionResponse::failed(request.index, 0)
        };
        if request.last_fetched_epoch >= 0 {
            response.diverging_epoch = diverging_epoch(request, partition)?;
            if response.diverging_epoch.is_some() {
                self.has_failed = true;
                return Ok(response);
            }
        }
        let partition_max = usize::try_from(request.partition_max_bytes).unwrap_or(0);
        let room = partition_max.min(self.bytes_max.saturating_sub(self.bytes));
        let is_first = self.bytes == 0;
        let may_have = bounds.end > request.fetch_offset && (room > 0 || is_first);
        let Some(mut memory) = self.memory_for(if may_have { room } else { 0 }).await else {
            return Ok(response);
        };
        let fetched = partition.read(request.fetch_offset, room, is_first).await;
        let fetched = fetched.map_err(|error| read_error(&error))?;
        response.high_watermark = fetched.bounds.end;
        response.last_stable_offset = fetched.bounds.last_stable_offset;
        response.log_start_offset = fetched.bounds.log_start;
        memory.shrink_to(fetched.bytes);
        match &mut self.memory {
            Some(held) => held.merge(memory),
            None => self.memory = Some(memory),
        }
        response.records =
            fetched.batches.iter().flat_map(crate::records::StoredBatch::pieces).collect();
        Ok(response)
    }

    /// Memory for records. Who holds some already takes no more than there is, so that nobody waits
    /// for another who waits.
    async fn memory_for(&self, bytes: usize) -> Option<Share> {
        let budget = &self.context.broker().fetch_memory;
        match budget.try_acquire(bytes) {
            None if self.memory.is_none() => Some(budget.acquire(bytes).await),
            granted => granted,
        }
    }

    fn fail_all(&mut self, error: ResponseError) {
        self.bytes = 0;
        self.memory = None;
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
        let throttle_time_ms = self.context.charge_fetch(self.bytes);
        let response =
            FetchResponse { throttle_time_ms, topics, node_endpoints, ..FetchResponse::default() };
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

fn read_error(error: &ReadError) -> ResponseError {
    error.code()
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
