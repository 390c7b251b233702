//! Fetch, versions 4 to 18 (`FetchRequest.json`, `FetchResponse.json`). Records are sent as the
//! very slices that the log or the cache holds.

use bytes::Bytes;
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::decode::Decoder;
use super::encode::Encoder;
use super::leader::{CurrentLeader, NodeEndpoint, endpoint_fields};
use crate::codec::WireError;
use crate::ids::Epoch;

const FLEXIBLE_FROM: i16 = 12;
const TOPIC_IDS_FROM: i16 = 13;
const REPLICA_STATE_FROM: i16 = 15;
const ENDPOINTS_FROM: i16 = 16;

/// A Fetch request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// The id of the cluster that the client expects.
    pub cluster_id: Option<StrBytes>,
    /// The replica that asks; -1 for a consumer.
    pub replica_id: i32,
    /// The replica's epoch, or -1.
    pub replica_epoch: i64,
    /// How long to wait for `min_bytes`, in milliseconds.
    pub max_wait_ms: i32,
    /// How many bytes to gather before answering.
    pub min_bytes: i32,
    /// How many bytes to answer at most.
    pub max_bytes: i32,
    /// 0: uncommitted, 1: committed records only.
    pub isolation_level: i8,
    /// The fetch session, 0 for none.
    pub session_id: i32,
    /// The session's epoch, -1 for none, 0 to start one.
    pub session_epoch: i32,
    /// What to fetch, or what to add to the session.
    pub topics: Vec<FetchTopic>,
    /// What to remove from the session.
    pub forgotten_topics: Vec<ForgottenTopic>,
    /// The client's rack (zone), or empty.
    pub rack_id: StrBytes,
}

/// A topic of a Fetch request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchTopic {
    /// Its name; empty from version 13 on.
    pub name: StrBytes,
    /// Its id; nil below version 13.
    pub topic_id: Uuid,
    /// Its partitions.
    pub partitions: Vec<FetchPartition>,
}

/// A partition of a Fetch request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchPartition {
    /// Its number.
    pub index: i32,
    /// The leader epoch that the client knows, or -1.
    pub current_leader_epoch: Epoch,
    /// The first offset to read.
    pub fetch_offset: i64,
    /// Epoch of the last record that the client has, or -1.
    pub last_fetched_epoch: Epoch,
    /// The replica's first offset; -1 for a consumer.
    pub log_start_offset: i64,
    /// How many bytes to answer at most for this partition.
    pub partition_max_bytes: i32,
    /// The replica's folder; nil for a consumer.
    pub replica_directory_id: Uuid,
    /// The replica's high watermark; `i64::MAX` where the request has none.
    pub high_watermark: i64,
}

/// A topic that leaves the fetch session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenTopic {
    /// Its name; empty from version 13 on.
    pub name: StrBytes,
    /// Its id; nil below version 13.
    pub topic_id: Uuid,
    /// Numbers of its partitions.
    pub partitions: Vec<i32>,
}

impl FetchRequest {
    /// Reads a request's body. The version is one that is served. Bytes behind the body are
    /// ignored, as in Kafka.
    ///
    /// # Errors
    /// Any [`WireError`].
    pub fn decode(body: Bytes, version: i16) -> Result<Self, WireError> {
        let mut input = Decoder::new(body, version >= FLEXIBLE_FROM);
        let sessions = version >= 7;
        let mut request = Self {
            cluster_id: None,
            replica_id: if version < REPLICA_STATE_FROM { input.i32()? } else { -1 },
            replica_epoch: -1,
            max_wait_ms: input.i32()?,
            min_bytes: input.i32()?,
            max_bytes: input.i32()?,
            isolation_level: input.i8()?,
            session_id: if sessions { input.i32()? } else { 0 },
            session_epoch: if sessions { input.i32()? } else { -1 },
            topics: input.array(2, |input| FetchTopic::decode(input, version))?,
            forgotten_topics: Vec::new(),
            rack_id: StrBytes::new(),
        };
        if sessions {
            let forgotten = input.array(2, |input| ForgottenTopic::decode(input, version))?;
            request.forgotten_topics = forgotten;
        }
        if version >= 11 {
            request.rack_id = input.string()?;
        }
        input.tagged(|tag, field| match tag {
            0 => {
                request.cluster_id = field.nullable_string()?;
                Ok(true)
            }
            1 if version >= REPLICA_STATE_FROM => {
                request.replica_id = field.i32()?;
                request.replica_epoch = field.i64()?;
                field.skip_tagged()?;
                Ok(true)
            }
            _ => Ok(false),
        })?;
        Ok(request)
    }
}

/// A topic's name (below version 13) or id.
fn decode_topic(input: &mut Decoder, version: i16) -> Result<(StrBytes, Uuid), WireError> {
    if version >= TOPIC_IDS_FROM {
        Ok((StrBytes::new(), input.uuid()?))
    } else {
        Ok((input.string()?, Uuid::nil()))
    }
}

impl FetchTopic {
    fn decode(input: &mut Decoder, version: i16) -> Result<Self, WireError> {
        let (name, topic_id) = decode_topic(input, version)?;
        let partitions = input.array(16, |input| FetchPartition::decode(input, version))?;
        input.skip_tagged()?;
        Ok(Self { name, topic_id, partitions })
    }
}

impl ForgottenTopic {
    fn decode(input: &mut Decoder, version: i16) -> Result<Self, WireError> {
        let (name, topic_id) = decode_topic(input, version)?;
        let partitions = input.array(4, Decoder::i32)?;
        input.skip_tagged()?;
        Ok(Self { name, topic_id, partitions })
    }
}

impl FetchPartition {
    fn decode(input: &mut Decoder, version: i16) -> Result<Self, WireError> {
        let mut partition = Self {
            index: input.i32()?,
            current_leader_epoch: if version >= 9 { input.i32()? } else { -1 },
            fetch_offset: input.i64()?,
            last_fetched_epoch: if version >= 12 { input.i32()? } else { -1 },
            log_start_offset: if version >= 5 { input.i64()? } else { -1 },
            partition_max_bytes: input.i32()?,
            replica_directory_id: Uuid::nil(),
            high_watermark: i64::MAX,
        };
        input.tagged(|tag, field| match tag {
            0 if version >= 17 => {
                partition.replica_directory_id = field.uuid()?;
                Ok(true)
            }
            1 if version >= 18 => {
                partition.high_watermark = field.i64()?;
                Ok(true)
            }
            _ => Ok(false),
        })?;
        Ok(partition)
    }
}

/// A Fetch response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FetchResponse {
    /// How long the client is to pause, in milliseconds.
    pub throttle_time_ms: i32,
    /// The whole request's error code, 0 for none. From version 7 on.
    pub error_code: i16,
    /// The fetch session, 0 for none. From version 7 on.
    pub session_id: i32,
    /// What was read.
    pub topics: Vec<FetchTopicResponse>,
    /// Addresses of the leaders that the partitions name. From version 16 on.
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// A topic of a Fetch response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FetchTopicResponse {
    /// Its name; below version 13.
    pub name: StrBytes,
    /// Its id; from version 13 on.
    pub topic_id: Uuid,
    /// Its partitions.
    pub partitions: Vec<FetchPartitionResponse>,
}

/// A partition of a Fetch response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchPartitionResponse {
    /// Its number.
    pub index: i32,
    /// Kafka's error code, 0 for none.
    pub error_code: i16,
    /// Where readers of uncommitted records stop, or -1.
    pub high_watermark: i64,
    /// Where readers of committed records stop, or -1.
    pub last_stable_offset: i64,
    /// The partition's first offset, or -1. From version 5 on.
    pub log_start_offset: i64,
    /// Aborted transactions in what was read; `None` for readers of uncommitted records.
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// Node to read from instead, or -1. From version 11 on.
    pub preferred_read_replica: i32,
    /// Whole batches, in pieces. Never null on the wire: some clients fail on that.
    pub records: Vec<Bytes>,
    /// Where the client's log diverged from ours. From version 12 on.
    pub diverging_epoch: Option<EpochEndOffset>,
    /// Where the leader is. From version 12 on.
    pub current_leader: Option<CurrentLeader>,
}

/// A transaction whose records a reader of committed records leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Its producer.
    pub producer_id: i64,
    /// Its first offset.
    pub first_offset: i64,
}

/// An epoch and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEndOffset {
    /// The epoch.
    pub epoch: Epoch,
    /// The offset after its last record.
    pub end_offset: i64,
}

impl FetchPartitionResponse {
    /// A partition that failed with this code.
    pub fn failed(index: i32, error_code: i16) -> Self {
        Self {
            index,
            error_code,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            aborted_transactions: None,
            preferred_read_replica: -1,
            records: Vec::new(),
            diverging_epoch: None,
            current_leader: None,
        }
    }

    /// Size of the records in bytes.
    pub fn records_bytes(&self) -> usize {
        self.records.iter().map(Bytes::len).sum()
    }

    fn encode(self, out: &mut Encoder, version: i16) {
        out.i32(self.index);
        out.i16(self.error_code);
        out.i64(self.high_watermark);
        out.i64(self.last_stable_offset);
        if version >= 5 {
            out.i64(self.log_start_offset);
        }
        out.nullable_array(self.aborted_transactions, |out, transaction| {
            out.i64(transaction.producer_id);
            out.i64(transaction.first_offset);
            out.tagged(&[]);
        });
        if version >= 11 {
            out.i32(self.preferred_read_replica);
        }
        out.byte_pieces(self.records);
        let diverging = self.diverging_epoch.map(|diverging| {
            let field = Encoder::field(|out| {
                out.i32(diverging.epoch);
                out.i64(diverging.end_offset);
                out.tagged(&[]);
            });
            (0, field)
        });
        let leader = self.current_leader.map(|leader| (1, leader.field()));
        let fields: Vec<_> = diverging.into_iter().chain(leader).collect();
        out.tagged(&fields);
    }
}

impl FetchResponse {
    /// Kafka's error codes of the whole and of each partition, 0 for none.
    pub fn error_codes(&self) -> impl Iterator<Item = i16> {
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        std::iter::once(self.error_code).chain(partitions.map(|partition| partition.error_code))
    }

    /// Sets the pause in a body that is encoded already, of any version: it comes first.
    pub fn throttle_encoded(body: &mut Vec<Bytes>, throttle_time_ms: i32) {
        if let Some(first) = body.first_mut() {
            *first = first.slice(4..);
            body.insert(0, Bytes::copy_from_slice(&throttle_time_ms.to_be_bytes()));
        }
    }

    /// The response's body in pieces, to be written one after another; large pieces are the
    /// records' own. The version is one that is served.
    pub fn encode(self, version: i16) -> Vec<Bytes> {
        let mut out = Encoder::new(version >= FLEXIBLE_FROM);
        out.i32(self.throttle_time_ms);
        if version >= 7 {
            out.i16(self.error_code);
            out.i32(self.session_id);
        }
        out.array(self.topics, |out, topic| {
            if version >= TOPIC_IDS_FROM {
                out.uuid(topic.topic_id);
            } else {
                out.string(&topic.name);
            }
            out.array(topic.partitions, |out, partition| partition.encode(out, version));
            out.tagged(&[]);
        });
        let nodes = if version >= ENDPOINTS_FROM { self.node_endpoints.as_slice() } else { &[] };
        out.tagged(&endpoint_fields(nodes));
        out.into_pieces()
    }
}
