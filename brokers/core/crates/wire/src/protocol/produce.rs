//! Produce, versions 3 to 13 (`ProduceRequest.json`, `ProduceResponse.json`). Records are slices of
//! the frame that was received.

use bytes::Bytes;
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::decode::Decoder;
use super::encode::Encoder;
use super::leader::{CurrentLeader, NodeEndpoint, endpoint_fields};
use crate::codec::WireError;
use crate::records::Compression;

const FLEXIBLE_FROM: i16 = 9;
const TOPIC_IDS_FROM: i16 = 13;
const LEADERS_FROM: i16 = 10;

/// A Produce request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceRequest {
    /// The transactional id, for a transactional producer.
    pub transactional_id: Option<StrBytes>,
    /// 0: no answer; 1 and -1: durable before the answer. Anything else is an error.
    pub acks: i16,
    /// How long the client waits, in milliseconds.
    pub timeout_ms: i32,
    /// What to append.
    pub topics: Vec<ProduceTopic>,
}

/// A topic of a Produce request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceTopic {
    /// Its name; empty from version 13 on.
    pub name: StrBytes,
    /// Its id; nil below version 13.
    pub topic_id: Uuid,
    /// Its partitions.
    pub partitions: Vec<ProducePartition>,
}

/// A partition of a Produce request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducePartition {
    /// Its number.
    pub index: i32,
    /// What to append: a slice of the frame.
    pub records: Option<Bytes>,
}

impl ProduceRequest {
    /// Reads a request's body. The version is one that is served. Bytes behind the body are
    /// ignored, as in Kafka.
    ///
    /// # Errors
    /// Any [`WireError`].
    pub fn decode(body: Bytes, version: i16) -> Result<Self, WireError> {
        let mut input = Decoder::new(body, version >= FLEXIBLE_FROM);
        let transactional_id = input.nullable_string()?;
        let acks = input.i16()?;
        let timeout_ms = input.i32()?;
        let topics = input.array(2, |input| ProduceTopic::decode(input, version))?;
        input.skip_tagged()?;
        Ok(Self { transactional_id, acks, timeout_ms, topics })
    }
}

impl ProduceTopic {
    fn decode(input: &mut Decoder, version: i16) -> Result<Self, WireError> {
        let by_id = version >= TOPIC_IDS_FROM;
        let name = if by_id { StrBytes::new() } else { input.string()? };
        let topic_id = if by_id { input.uuid()? } else { Uuid::nil() };
        let partitions = input.array(5, |input| {
            let index = input.i32()?;
            let records = input.nullable_bytes()?;
            input.skip_tagged()?;
            Ok(ProducePartition { index, records })
        })?;
        input.skip_tagged()?;
        Ok(Self { name, topic_id, partitions })
    }
}

/// Whether a request of this version may use a compression type: zstd came with version 7, and
/// Kafka answers UNSUPPORTED_COMPRESSION_TYPE before.
pub fn allows_compression(version: i16, compression: Compression) -> bool {
    version >= 7 || compression != Compression::Zstd
}

/// A Produce response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProduceResponse {
    /// The result of each partition, by topic.
    pub topics: Vec<ProduceTopicResponse>,
    /// How long the client is to pause, in milliseconds.
    pub throttle_time_ms: i32,
    /// Addresses of the leaders that the partitions name. From version 10 on.
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// A topic of a Produce response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProduceTopicResponse {
    /// Its name; below version 13.
    pub name: StrBytes,
    /// Its id; from version 13 on.
    pub topic_id: Uuid,
    /// Its partitions.
    pub partitions: Vec<ProducePartitionResponse>,
}

/// A partition of a Produce response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducePartitionResponse {
    /// Its number.
    pub index: i32,
    /// Kafka's error code, 0 for none.
    pub error_code: i16,
    /// Offset of the first record, or -1.
    pub base_offset: i64,
    /// The append's time in milliseconds for `LogAppendTime`, otherwise -1.
    pub log_append_time_ms: i64,
    /// The partition's first offset, or -1. From version 5 on.
    pub log_start_offset: i64,
    /// Faulty records by their place in the batch. From version 8 on.
    pub record_errors: Vec<(i32, String)>,
    /// The error in words. From version 8 on.
    pub error_message: Option<String>,
    /// Where the leader is. From version 10 on.
    pub current_leader: Option<CurrentLeader>,
}

impl ProducePartitionResponse {
    /// A partition that failed with this code.
    pub fn failed(index: i32, error_code: i16) -> Self {
        Self {
            index,
            error_code,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: None,
        }
    }

    fn encode(&self, out: &mut Encoder, version: i16) {
        out.i32(self.index);
        out.i16(self.error_code);
        out.i64(self.base_offset);
        out.i64(self.log_append_time_ms);
        if version >= 5 {
            out.i64(self.log_start_offset);
        }
        if version >= 8 {
            out.array(&self.record_errors, |out, (batch_index, message)| {
                out.i32(*batch_index);
                out.string(message);
                out.tagged(&[]);
            });
            out.nullable_string(self.error_message.as_deref());
        }
        let leader = self.current_leader.filter(|_| version >= LEADERS_FROM);
        let fields: Vec<_> = leader.map(|leader| (0, leader.field())).into_iter().collect();
        out.tagged(&fields);
    }
}

impl ProduceResponse {
    /// Kafka's error code of each partition, 0 for none.
    pub fn error_codes(&self) -> impl Iterator<Item = i16> {
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.map(|partition| partition.error_code)
    }

    /// The response's body. The version is one that is served.
    pub fn encode(&self, version: i16) -> Bytes {
        let mut out = Encoder::new(version >= FLEXIBLE_FROM);
        out.array(&self.topics, |out, topic| {
            if version >= TOPIC_IDS_FROM {
                out.uuid(topic.topic_id);
            } else {
                out.string(&topic.name);
            }
            out.array(&topic.partitions, |out, partition| partition.encode(out, version));
            out.tagged(&[]);
        });
        out.i32(self.throttle_time_ms);
        let nodes = if version >= LEADERS_FROM { self.node_endpoints.as_slice() } else { &[] };
        out.tagged(&endpoint_fields(nodes));
        out.into_bytes()
    }
}
