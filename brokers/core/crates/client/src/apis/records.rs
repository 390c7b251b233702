//! Fetch and Produce.

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;

use super::offsets::{ByTopic, encode_by_topic};
use super::{Request, plain_text, structures, text};
use freshet_wire::codec::WireError;
use freshet_wire::protocol::decode::Decoder;
use freshet_wire::protocol::encode::Encoder;

/// Fetches records.
pub(crate) struct Fetch {
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    pub partition_max_bytes: i32,
    pub committed_only: bool,
    /// The first offset of each partition.
    pub topics: ByTopic<i64>,
}

/// A partition of an answer.
pub(crate) struct FetchedRecords {
    pub topic: String,
    pub partition: i32,
    pub code: i16,
    /// The offset of the next new record, or −1.
    pub end: i64,
    /// The first offset that is kept, or −1.
    pub start: i64,
    /// Batches one after another; the last one may be cut off.
    pub batches: Bytes,
    /// Whether the end of `batches` was not read.
    pub is_cut: bool,
}

impl Request for Fetch {
    const API: ApiKey = ApiKey::Fetch;
    const VERSION: i16 = 12;
    const NAME: &'static str = "Fetch";
    type Answer = (i16, Vec<FetchedRecords>);

    fn encode(&self, out: &mut Encoder) {
        out.i32(-1);
        out.i32(self.max_wait_ms);
        out.i32(self.min_bytes);
        out.i32(self.max_bytes);
        out.i8(i8::from(self.committed_only));
        out.i32(0); // no fetch session
        out.i32(-1);
        encode_by_topic(out, &self.topics, |out, offset| {
            out.i32(-1);
            out.i64(*offset);
            out.i32(-1);
            out.i64(-1);
            out.i32(self.partition_max_bytes);
        });
        out.array([] as [&str; 0], Encoder::string);
        out.string("");
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, cut: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        let code = input.i16()?;
        input.i32()?;
        let mut all = Vec::new();
        let decoded = decode_topics(input, cut, &mut all);
        // What lies before a cut is known all the same.
        if cut { Ok((code, all)) } else { decoded.map(|()| (code, all)) }
    }
}

fn decode_topics(
    input: &mut Decoder,
    cut: bool,
    all: &mut Vec<FetchedRecords>,
) -> Result<(), WireError> {
    // Where the answer is cut, its counts are larger than the bytes that are there allow.
    let topics = if cut { input.uvarint()?.saturating_sub(1) as usize } else { count(input)? };
    for _ in 0..topics {
        let topic = plain_text(input)?;
        let partitions =
            if cut { input.uvarint()?.saturating_sub(1) as usize } else { count(input)? };
        for _ in 0..partitions {
            let fetched = decode_partition(input, &topic, cut)?;
            let ends = fetched.is_cut;
            all.push(fetched);
            if ends {
                return Ok(());
            }
        }
        input.skip_tagged()?;
    }
    input.skip_tagged()
}

fn count(input: &mut Decoder) -> Result<usize, WireError> {
    Ok(input.nullable_count(2)?.unwrap_or(0))
}

fn decode_partition(
    input: &mut Decoder,
    topic: &str,
    cut: bool,
) -> Result<FetchedRecords, WireError> {
    let (partition, code, end) = (input.i32()?, input.i16()?, input.i64()?);
    input.i64()?;
    let start = input.i64()?;
    structures(input, |input| Ok((input.i64()?, input.i64()?)))?;
    input.i32()?;
    let mut fetched = FetchedRecords {
        topic: topic.to_owned(),
        partition,
        code,
        end,
        start,
        batches: Bytes::new(),
        is_cut: false,
    };
    if cut {
        let mut ahead = input.clone();
        let length = ahead.uvarint()?.saturating_sub(1) as usize;
        if length > ahead.remaining() {
            fetched.batches = ahead.rest();
            fetched.is_cut = true;
            return Ok(fetched);
        }
    }
    fetched.batches = input.nullable_bytes()?.unwrap_or_default();
    input.skip_tagged()?;
    Ok(fetched)
}

/// Appends one batch to a partition.
pub(crate) struct Produce {
    pub timeout_ms: i32,
    pub topic: String,
    pub partition: i32,
    pub batch: Bytes,
}

/// What became of it.
pub(crate) struct ProduceAnswer {
    pub code: i16,
    pub message: Option<String>,
    pub offset: i64,
    /// The moment of the append, −1 unless it replaces the record's own.
    pub append_time_ms: i64,
}

impl Request for Produce {
    const API: ApiKey = ApiKey::Produce;
    const VERSION: i16 = 9;
    const NAME: &'static str = "Produce";
    type Answer = Vec<ProduceAnswer>;

    fn encode(&self, out: &mut Encoder) {
        out.nullable_string(None);
        out.i16(-1);
        out.i32(self.timeout_ms);
        out.array([&self.topic], |out, name| {
            out.string(name);
            out.array([self.partition], |out, number| {
                out.i32(number);
                out.byte_pieces([self.batch.clone()]);
                out.tagged(&[]);
            });
            out.tagged(&[]);
        });
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        let topics = structures(input, |input| {
            plain_text(input)?;
            structures(input, |input| {
                input.i32()?;
                let (code, offset, append_time_ms) = (input.i16()?, input.i64()?, input.i64()?);
                input.i64()?;
                let errors = structures(input, |input| {
                    input.i32()?;
                    text(input)
                })?;
                let message = text(input)?;
                let message = message.or_else(|| errors.into_iter().flatten().next());
                Ok(ProduceAnswer { code, message, offset, append_time_ms })
            })
        })?;
        Ok(topics.into_iter().flatten().collect())
    }
}
