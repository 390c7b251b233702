//! Produce: batches are read, then get their offsets at once, in the order of the requests. The
//! response is sent once they are durable.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;
use tokio::time::{Instant, timeout_at};

use super::leaders::NamedBy;
use super::topics::{NotServed, open_to_clients, time_limit};
use crate::context::{QuotaKind, RequestContext};
use freshet_access::types::{Operation, ResourceType};
use freshet_engine::reading::{ReadBatch, UnreadBatch};
use freshet_metadata::view::Topic;
use freshet_partition::{Partition, Staged};
use freshet_storage::lane::ack::Acks;
use freshet_storage::liveness::Liveness;
use freshet_wire::budget::RequestMemory;
use freshet_wire::protocol::leader::NodeEndpoint;
use freshet_wire::protocol::produce::{
    ProducePartition, ProducePartitionResponse, ProduceRequest, ProduceResponse, ProduceTopic,
    ProduceTopicResponse, allows_compression,
};
use freshet_wire::records::{
    BatchHeader, Compression, ProduceLimits, ProducedBatch, RecordRejection, ValidatedBatch,
};

/// From this version on topics are named by their ids.
const TOPIC_IDS_FROM: i16 = 13;

/// The frame in which a request came.
pub struct Frame {
    /// Its length in bytes.
    pub bytes: usize,
    /// The memory that it holds of the server's budgets. Its batches keep it until they are
    /// written.
    pub memory: Option<RequestMemory>,
}

/// A request whose batches are in the lane's queue, or refused.
pub struct StagedProduce {
    topics: Vec<StagedTopic>,
    /// Completes once every batch that was staged is durable or has failed.
    acks: Acks,
    liveness: Liveness,
    time_limit: Duration,
    throttle_time_ms: i32,
    /// The leaders that refusals name.
    node_endpoints: Vec<NodeEndpoint>,
}

struct StagedTopic {
    name: StrBytes,
    topic_id: uuid::Uuid,
    partitions: Vec<StagedPartition>,
}

enum StagedPartition {
    Refused(ProducePartitionResponse),
    Staged { index: i32, partition: Arc<Partition>, end_offset: i64, answer: Answer },
}

#[derive(Clone, Copy)]
struct Answer {
    base_offset: i64,
    log_append_time_ms: i64,
}

/// A batch to be read, and where it goes.
struct Destination {
    partition: Arc<Partition>,
    /// How many bytes of memory the batch keeps alive as it came.
    pinned_bytes: usize,
    /// How it came.
    attributes: i16,
}

/// Where a batch goes that is read next, or what becomes of it without being read.
type Prepared = Result<Destination, StagedPartition>;

/// A request whose batches are refused, or read next.
struct PreparedTopic {
    name: StrBytes,
    topic_id: uuid::Uuid,
    /// By partition index. What is to be read lies in [`Preparer::unread`], in the same order.
    partitions: Vec<(i32, Prepared)>,
}

/// Reads the batches that may be appended, stages them, and refuses the others. It waits for
/// nothing but the reading, during which the connection takes no other request: so the requests of
/// a connection are staged in the order in which they came.
pub async fn stage_request(
    context: &RequestContext,
    mut request: ProduceRequest,
    frame: Frame,
) -> StagedProduce {
    let begun = Instant::now();
    let time_limit = time_limit(request.timeout_ms);
    let refusal = merge_repeated(&mut request)
        .then(|| ResponseError::InvalidRequest.into())
        .or_else(|| refuse_all(context, &request));
    if refusal.is_none() {
        let asked = request.topics.iter().map(|topic| {
            let named = NamedBy::either(&topic.name, topic.topic_id);
            (named, topic.partitions.iter().map(|partition| partition.index))
        });
        context.broker().await_leaders_of(asked).await;
    }
    let Frame { bytes: frame_bytes, memory } = frame;
    let mut preparer = Preparer { context, frame_bytes, refusal, unread: Vec::new() };
    let topics: Vec<_> = request.topics.into_iter().map(|topic| preparer.topic(topic)).collect();
    let mut busy = begun.elapsed();
    let engine = &context.broker().engine;
    let (batches, reading) = engine.reading.read(preparer.unread).await;
    busy += reading;
    let begun = Instant::now();
    let (batches, acks) = (batches.into_iter(), Acks::new(memory));
    let mut stager = Stager { context, batches, stored_bytes: 0, acks };
    let topics: Vec<_> = topics.into_iter().map(|topic| stager.topic(topic)).collect();
    let partitions = topics.iter().flat_map(|topic| &topic.partitions);
    let node_endpoints = context.nodes_named(partitions.filter_map(StagedPartition::leader_id));
    busy += begun.elapsed();
    let unbilled_ms = context.tally.stored(stager.stored_bytes);
    let throttle_time_ms = context.charge_produce(frame_bytes, busy).max(unbilled_ms);
    let (acks, liveness) = (stager.acks, engine.liveness.clone());
    StagedProduce { topics, acks, liveness, time_limit, throttle_time_ms, node_endpoints }
}

/// The error with which records are refused.
#[derive(Clone)]
struct Refusal {
    error: ResponseError,
    message: Option<String>,
}

impl From<ResponseError> for Refusal {
    fn from(error: ResponseError) -> Self {
        Self { error, message: None }
    }
}

impl Refusal {
    fn of_partition(&self, index: i32) -> ProducePartitionResponse {
        let error_message = self.message.clone();
        ProducePartitionResponse {
            error_message,
            ..ProducePartitionResponse::failed(index, self.error.code())
        }
    }
}

/// The error of the whole request, if it has one.
fn refuse_all(context: &RequestContext, request: &ProduceRequest) -> Option<Refusal> {
    if !matches!(request.acks, -1..=1) {
        return Some(ResponseError::InvalidRequiredAcks.into());
    }
    let may_use_transaction = match request.transactional_id.as_deref() {
        Some(id) => context.may(Operation::Write, ResourceType::TransactionalId, id),
        None => !is_transactional(request),
    };
    if !may_use_transaction {
        return Some(ResponseError::TransactionalIdAuthorizationFailed.into());
    }
    let wait_ms = context.refused_for(QuotaKind::Produce);
    if wait_ms > 0 {
        let message = Some(format!("the quota is used up for {wait_ms} ms"));
        return Some(Refusal { error: ResponseError::ThrottlingQuotaExceeded, message });
    }
    let limit = context.traffic_limit().filter(|limit| limit.refuses_produce())?;
    let message = Some(limit.reason().to_owned());
    Some(Refusal { error: ResponseError::PolicyViolation, message })
}

/// Joins the topics that are named twice, so that each is answered once. Returns whether a
/// partition is named twice, of which one stays: Kafka appends one of its batches and drops the
/// others, while here the request is refused.
fn merge_repeated(request: &mut ProduceRequest) -> bool {
    let mut merged: Vec<ProduceTopic> = Vec::with_capacity(request.topics.len());
    let mut places = BTreeMap::new();
    for topic in std::mem::take(&mut request.topics) {
        match places.entry((topic.name.clone(), topic.topic_id)) {
            Entry::Occupied(place) => {
                let known: &mut ProduceTopic = &mut merged[*place.get()];
                known.partitions.extend(topic.partitions);
            }
            Entry::Vacant(place) => {
                place.insert(merged.len());
                merged.push(topic);
            }
        }
    }
    let mut is_repeated = false;
    for topic in &mut merged {
        let mut seen = BTreeSet::new();
        let named = topic.partitions.len();
        topic.partitions.retain(|partition| seen.insert(partition.index));
        is_repeated |= topic.partitions.len() < named;
    }
    request.topics = merged;
    is_repeated
}

/// Whether any batch says that it belongs to a transaction.
fn is_transactional(request: &ProduceRequest) -> bool {
    let mut partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.any(|partition| {
        let header = partition.records.as_deref().map(BatchHeader::parse);
        matches!(header, Some(Ok(header)) if header.is_transactional())
    })
}

struct Preparer<'a> {
    context: &'a RequestContext,
    frame_bytes: usize,
    refusal: Option<Refusal>,
    unread: Vec<UnreadBatch>,
}

impl Preparer<'_> {
    fn topic(&mut self, topic: ProduceTopic) -> PreparedTopic {
        let known_topic = match &self.refusal {
            Some(refusal) => Err(refusal.clone()),
            None => self.find(&topic).map_err(Refusal::from),
        };
        let prepare = |partition: ProducePartition| {
            let index = partition.index;
            let prepared = match &known_topic {
                Ok(known_topic) => self.partition(known_topic, partition),
                Err(refusal) => Err(StagedPartition::Refused(refusal.of_partition(index))),
            };
            (index, prepared)
        };
        let partitions = topic.partitions.into_iter().map(prepare).collect();
        PreparedTopic { name: topic.name, topic_id: topic.topic_id, partitions }
    }

    fn find(&self, requested: &ProduceTopic) -> Result<Arc<Topic>, ResponseError> {
        let topics = self.context.broker().engine.view.topics();
        let by_id = self.context.api_version >= TOPIC_IDS_FROM;
        let topic = if by_id {
            Some(topics.by_id(requested.topic_id).ok_or(ResponseError::UnknownTopicId)?)
        } else {
            topics.by_name(&requested.name)
        };
        let name = topic.map_or(requested.name.as_str(), |topic| topic.record.name.as_str());
        if !self.context.may_topic(Operation::Write, name) {
            return Err(ResponseError::TopicAuthorizationFailed);
        }
        open_to_clients(topic.ok_or(ResponseError::UnknownTopicOrPartition)?)
    }

    fn partition(&mut self, topic: &Arc<Topic>, requested: ProducePartition) -> Prepared {
        let index = requested.index;
        let failed = |error| StagedPartition::failed(index, error);
        let broker = self.context.broker();
        let partition = broker.partition(topic, index).map_err(|NotServed { error, leader }| {
            let response = ProducePartitionResponse::failed(index, error.code());
            let current_leader = leader;
            StagedPartition::Refused(ProducePartitionResponse { current_leader, ..response })
        })?;
        let (records, pinned_bytes) = self.own_memory(requested.records.unwrap_or_default());
        self.check_version(&records).map_err(failed)?;
        let limits = self.limits(topic);
        let batch = ProducedBatch::parse(records, &limits)
            .map_err(|rejection| StagedPartition::rejected(index, rejection))?;
        // What is not stored anyhow costs no decompression. Requests of a connection are staged in
        // order, so that nothing is on its way that would change the verdict.
        if let Some(foreseen) = partition.foresee(batch.header()) {
            batch.verify().map_err(|rejection| StagedPartition::rejected(index, rejection))?;
            let staged = foreseen.map_err(failed)?;
            let log_append_time_ms = limits.log_append_time_ms().unwrap_or(-1);
            return Err(StagedPartition::of(index, partition, staged, log_append_time_ms));
        }
        let attributes = batch.header().attributes;
        self.unread.push(UnreadBatch { batch, limits });
        Ok(Destination { partition, pinned_bytes, attributes })
    }

    /// The batch, and how many bytes of memory it keeps alive. A batch of less than half its frame
    /// is copied, so that it does not keep the whole frame.
    fn own_memory(&self, records: Bytes) -> (Bytes, usize) {
        let bytes = records.len();
        if bytes * 2 < self.frame_bytes {
            (Bytes::copy_from_slice(&records), bytes)
        } else {
            (records, self.frame_bytes)
        }
    }

    fn check_version(&self, records: &Bytes) -> Result<(), ResponseError> {
        let compression = BatchHeader::parse(records).and_then(|header| header.compression());
        match compression {
            Ok(compression) if !allows_compression(self.context.api_version, compression) => {
                Err(ResponseError::UnsupportedCompressionType)
            }
            // Bytes that are no batch are refused later, with the error for that.
            _ => Ok(()),
        }
    }

    fn limits(&self, topic: &Arc<Topic>) -> ProduceLimits {
        let broker = self.context.broker();
        let config = broker.topic_config(topic);
        ProduceLimits {
            max_message_bytes: config.max_message_bytes as usize,
            now_ms: broker.engine.environment.clock.now_ms(),
            timestamp_before_max_ms: config.timestamp_before_max_ms,
            timestamp_after_max_ms: config.timestamp_after_max_ms,
            message_timestamp_type: config.timestamp_type,
            compacted: config.cleanup.compact,
            stored_codec: config.stored_codec,
        }
    }
}

struct Stager<'a> {
    context: &'a RequestContext,
    batches: std::vec::IntoIter<ReadBatch>,
    /// Bytes of the batches that are stored, which are billed.
    stored_bytes: usize,
    acks: Acks,
}

impl Stager<'_> {
    fn topic(&mut self, topic: PreparedTopic) -> StagedTopic {
        let stage = |(index, prepared): (i32, Prepared)| match prepared {
            Err(settled) => settled,
            Ok(destination) => match self.batches.next().expect("a result for each batch") {
                Ok(batch) => self
                    .partition(index, destination, batch)
                    .unwrap_or_else(|error| StagedPartition::failed(index, error)),
                Err(rejection) => StagedPartition::rejected(index, rejection),
            },
        };
        let partitions = topic.partitions.into_iter().map(stage).collect();
        StagedTopic { name: topic.name, topic_id: topic.topic_id, partitions }
    }

    fn partition(
        &mut self,
        index: i32,
        destination: Destination,
        batch: ValidatedBatch,
    ) -> Result<StagedPartition, ResponseError> {
        if batch.header().is_transactional() {
            return Err(ResponseError::InvalidTxnState);
        }
        let Destination { partition, pinned_bytes, attributes } = destination;
        let is_as_sent = batch.header().compression() == Compression::of_attributes(attributes);
        let pinned_bytes = if is_as_sent { pinned_bytes } else { batch.size_bytes() };
        let log_append_time_ms = batch.log_append_time_ms().unwrap_or(-1);
        let (lane, payer) = (&self.context.broker().engine.lane, &self.context.payer);
        let ack = Some(self.acks.share());
        let staged = partition.stage_for(lane, batch, payer, pinned_bytes, ack)?;
        self.stored_bytes += staged.stored_bytes;
        Ok(StagedPartition::of(index, partition, staged, log_append_time_ms))
    }
}

impl StagedProduce {
    /// Whether any batch was refused. A client that wants no response (acks=0) learns of it by the
    /// end of its connection.
    pub fn has_failed(&self) -> bool {
        let mut partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.any(|partition| matches!(partition, StagedPartition::Refused(_)))
    }

    /// Waits until all staged batches are durable, or the client's timeout or the engine ends.
    /// Returns the response, and since when it could have been sent.
    pub async fn acknowledge(mut self) -> (ProduceResponse, Option<Instant>) {
        let deadline = Instant::now() + self.time_limit;
        tokio::select! {
            biased;
            // The outcome is ignored here: each batch is asked for its own below.
            _ = timeout_at(deadline, self.acks.settled()) => {}
            _ = self.liveness.ended() => {}
        }
        let settled_at = self.acks.settled_at();
        let mut topics = Vec::with_capacity(self.topics.len());
        for topic in self.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for partition in topic.partitions {
                partitions.push(partition.acknowledge(deadline).await);
            }
            let (name, topic_id) = (topic.name, topic.topic_id);
            topics.push(ProduceTopicResponse { name, topic_id, partitions });
        }
        let Self { throttle_time_ms, node_endpoints, .. } = self;
        let response = ProduceResponse { topics, throttle_time_ms, node_endpoints };
        (response, settled_at)
    }
}

impl StagedPartition {
    /// The leader that a refusal names.
    fn leader_id(&self) -> Option<i32> {
        match self {
            Self::Refused(response) => response.current_leader.map(|leader| leader.leader_id),
            Self::Staged { .. } => None,
        }
    }

    fn of(index: i32, partition: Arc<Partition>, staged: Staged, log_append_time_ms: i64) -> Self {
        let Staged { base_offset, end_offset, .. } = staged;
        let answer = Answer { base_offset, log_append_time_ms };
        Self::Staged { index, partition, end_offset, answer }
    }

    fn failed(index: i32, error: ResponseError) -> Self {
        Self::Refused(ProducePartitionResponse::failed(index, error.code()))
    }

    fn rejected(index: i32, rejection: RecordRejection) -> Self {
        Self::Refused(ProducePartitionResponse {
            record_errors: rejection.record_errors,
            error_message: Some(rejection.message),
            ..ProducePartitionResponse::failed(index, rejection.error.code())
        })
    }

    /// The response for one batch. It waits only where the batch is a duplicate of one that is not
    /// durable yet; all others are settled.
    async fn acknowledge(self, deadline: Instant) -> ProducePartitionResponse {
        let (index, partition, end_offset, answer) = match self {
            Self::Refused(response) => return response,
            Self::Staged { index, partition, end_offset, answer } => {
                (index, partition, end_offset, answer)
            }
        };
        let durable = timeout_at(deadline, partition.durable(end_offset)).await;
        match durable.unwrap_or(Err(ResponseError::RequestTimedOut)) {
            Ok(()) => ProducePartitionResponse {
                error_code: 0,
                base_offset: answer.base_offset,
                log_append_time_ms: answer.log_append_time_ms,
                log_start_offset: partition.bounds().log_start,
                ..ProducePartitionResponse::failed(index, 0)
            },
            Err(error) => ProducePartitionResponse::failed(index, error.code()),
        }
    }
}
