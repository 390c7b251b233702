//! ListOffsets, OffsetFetch, OffsetCommit and DeleteRecords.

use kafka_protocol::messages::ApiKey;

use super::{Request, plain_text, structures};
use freshet_wire::codec::WireError;
use freshet_wire::protocol::decode::Decoder;
use freshet_wire::protocol::encode::Encoder;

/// Partitions of topics with something of each, by topic.
pub(crate) type ByTopic<T> = Vec<(String, Vec<(i32, T)>)>;

/// Writes topics with their partitions, of which `item` writes what follows the number.
pub(crate) fn encode_by_topic<T>(
    out: &mut Encoder,
    topics: &ByTopic<T>,
    mut item: impl FnMut(&mut Encoder, &T),
) {
    out.array(topics, |out, (name, partitions)| {
        out.string(name);
        out.array(partitions, |out, (number, value)| {
            out.i32(*number);
            item(out, value);
            out.tagged(&[]);
        });
        out.tagged(&[]);
    });
}

/// Reads topics with their partitions, of which `item` reads what follows the number.
fn decode_by_topic<T>(
    input: &mut Decoder,
    mut item: impl FnMut(&mut Decoder) -> Result<T, WireError>,
) -> Result<ByTopic<T>, WireError> {
    structures(input, |input| {
        let name = plain_text(input)?;
        Ok((name, structures(input, |input| Ok((input.i32()?, item(input)?)))?))
    })
}

/// Which offset of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The first one that is kept.
    Earliest,
    /// That of the next new record.
    Latest,
    /// That of the first record at or after a moment, in Unix milliseconds.
    At(i64),
}

impl OffsetSpec {
    fn timestamp(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::At(moment_ms) => moment_ms.max(0),
        }
    }
}

/// Asks a leader for offsets.
pub(crate) struct ListOffsets {
    pub topics: ByTopic<OffsetSpec>,
}

impl Request for ListOffsets {
    const API: ApiKey = ApiKey::ListOffsets;
    const VERSION: i16 = 7;
    const NAME: &'static str = "ListOffsets";
    /// The error's code and the offset, −1 for none.
    type Answer = ByTopic<(i16, i64)>;

    fn encode(&self, out: &mut Encoder) {
        out.i32(-1);
        out.i8(0); // up to the high watermark
        encode_by_topic(out, &self.topics, |out, spec| {
            out.i32(-1);
            out.i64(spec.timestamp());
        });
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        decode_by_topic(input, |input| {
            let code = input.i16()?;
            input.i64()?;
            let offset = input.i64()?;
            input.i32()?;
            Ok((code, offset))
        })
    }
}

/// Asks a group's coordinator for all of its committed offsets.
pub(crate) struct OffsetFetch {
    pub group: String,
}

/// An offset that a group committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The topic.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
    /// The offset that the group reads next.
    pub offset: i64,
}

impl Request for OffsetFetch {
    const API: ApiKey = ApiKey::OffsetFetch;
    const VERSION: i16 = 8;
    const NAME: &'static str = "OffsetFetch";
    /// The error of the whole, and the offsets without those that are refused.
    type Answer = Vec<(i16, Vec<CommittedOffset>)>;

    fn encode(&self, out: &mut Encoder) {
        out.array([&self.group], |out, group| {
            out.string(group);
            out.nullable_array(None::<[&str; 0]>, Encoder::string);
            out.tagged(&[]);
        });
        out.i8(0);
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        structures(input, |input| {
            plain_text(input)?;
            let topics = decode_by_topic(input, |input| {
                let offset = input.i64()?;
                input.i32()?;
                input.nullable_text()?;
                Ok((input.i16()?, offset))
            })?;
            let code = input.i16()?;
            let offsets = topics.into_iter().flat_map(|(topic, partitions)| {
                let known = partitions.into_iter().filter(|(_, (code, at))| *code == 0 && *at >= 0);
                known.map(move |(partition, (_, offset))| {
                    let topic = topic.clone();
                    CommittedOffset { topic, partition, offset }
                })
            });
            Ok((code, offsets.collect()))
        })
    }
}

/// Commits offsets of a group without members.
pub(crate) struct OffsetCommit {
    pub group: String,
    pub topics: ByTopic<i64>,
}

impl Request for OffsetCommit {
    const API: ApiKey = ApiKey::OffsetCommit;
    const VERSION: i16 = 8;
    const NAME: &'static str = "OffsetCommit";
    /// The error's code of each partition.
    type Answer = ByTopic<i16>;

    fn encode(&self, out: &mut Encoder) {
        out.string(&self.group);
        out.i32(-1);
        out.string("");
        out.nullable_string(None);
        encode_by_topic(out, &self.topics, |out, offset| {
            out.i64(*offset);
            out.i32(-1);
            out.nullable_string(Some(""));
        });
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        decode_by_topic(input, Decoder::i16)
    }
}

/// Deletes the records before offsets.
pub(crate) struct DeleteRecords {
    pub topics: ByTopic<i64>,
    pub timeout_ms: i32,
}

impl Request for DeleteRecords {
    const API: ApiKey = ApiKey::DeleteRecords;
    const VERSION: i16 = 2;
    const NAME: &'static str = "DeleteRecords";
    /// The error's code of each partition, and where it begins now.
    type Answer = ByTopic<(i16, i64)>;

    fn encode(&self, out: &mut Encoder) {
        encode_by_topic(out, &self.topics, |out, offset| out.i64(*offset));
        out.i32(self.timeout_ms);
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        decode_by_topic(input, |input| {
            let low = input.i64()?;
            Ok((input.i16()?, low))
        })
    }
}

/// Gets an id for an idempotent producer.
pub(crate) struct InitProducerId;

impl Request for InitProducerId {
    const API: ApiKey = ApiKey::InitProducerId;
    const VERSION: i16 = 3;
    const NAME: &'static str = "InitProducerId";
    /// The error's code, the producer's id and its epoch.
    type Answer = (i16, i64, i16);

    fn encode(&self, out: &mut Encoder) {
        out.nullable_string(None);
        out.i32(60_000);
        out.i64(-1);
        out.i16(-1);
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        Ok((input.i16()?, input.i64()?, input.i16()?))
    }
}
