//! Metadata: which brokers there are, and which partitions they lead. FindCoordinator: which of
//! them keeps a group.

use std::collections::BTreeMap;

use kafka_protocol::messages::ApiKey;
use uuid::Uuid;

use super::{Request, plain_text, structures, text};
use freshet_wire::codec::WireError;
use freshet_wire::protocol::decode::Decoder;
use freshet_wire::protocol::encode::Encoder;

/// Asks for brokers and topics. It never creates a topic.
pub(crate) struct Metadata {
    /// The names of topics; `None` for all.
    pub topics: Option<Vec<String>>,
}

/// A topic as brokers know it.
#[derive(Debug, Clone)]
pub(crate) struct TopicMetadata {
    pub code: i16,
    pub name: String,
    pub id: Uuid,
    /// The node id of each partition's leader, −1 where there is none, by the partition's number.
    pub leaders: BTreeMap<i32, i32>,
}

/// The brokers' addresses by node id, and topics.
#[derive(Debug, Clone)]
pub(crate) struct ClusterView {
    pub brokers: BTreeMap<i32, String>,
    pub topics: Vec<TopicMetadata>,
}

impl Request for Metadata {
    const API: ApiKey = ApiKey::Metadata;
    const VERSION: i16 = 12;
    const NAME: &'static str = "Metadata";
    type Answer = ClusterView;

    fn encode(&self, out: &mut Encoder) {
        out.nullable_array(self.topics.as_ref(), |out, name| {
            out.uuid(Uuid::nil());
            out.string(name);
            out.tagged(&[]);
        });
        out.i8(0); // no topic is created
        out.i8(0);
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<ClusterView, WireError> {
        input.i32()?;
        let brokers = structures(input, |input| {
            let (node, host, port) = (input.i32()?, plain_text(input)?, input.i32()?);
            text(input)?;
            Ok((node, format!("{host}:{port}")))
        })?;
        text(input)?;
        input.i32()?;
        let topics = structures(input, decode_topic)?;
        Ok(ClusterView { brokers: brokers.into_iter().collect(), topics })
    }
}

fn decode_topic(input: &mut Decoder) -> Result<TopicMetadata, WireError> {
    let (code, name, id) = (input.i16()?, plain_text(input)?, input.uuid()?);
    input.i8()?;
    let leaders = structures(input, |input| {
        input.i16()?;
        let (number, leader) = (input.i32()?, input.i32()?);
        input.i32()?;
        for _ in 0..3 {
            input.array(4, Decoder::i32)?;
        }
        Ok((number, leader))
    })?;
    input.i32()?;
    Ok(TopicMetadata { code, name, id, leaders: leaders.into_iter().collect() })
}

/// Asks for the coordinators of groups.
pub(crate) struct FindCoordinator {
    pub groups: Vec<String>,
}

/// The coordinator of one group.
pub(crate) struct Coordinator {
    pub group: String,
    pub node: i32,
    pub address: String,
    pub code: i16,
    pub message: Option<String>,
}

impl Request for FindCoordinator {
    const API: ApiKey = ApiKey::FindCoordinator;
    const VERSION: i16 = 4;
    const NAME: &'static str = "FindCoordinator";
    type Answer = Vec<Coordinator>;

    fn encode(&self, out: &mut Encoder) {
        out.i8(0); // the keys are groups
        out.array(&self.groups, |out, group| out.string(group));
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Vec<Coordinator>, WireError> {
        input.i32()?;
        structures(input, |input| {
            let (group, node) = (plain_text(input)?, input.i32()?);
            let (host, port) = (plain_text(input)?, input.i32()?);
            let (code, message) = (input.i16()?, text(input)?);
            Ok(Coordinator { group, node, address: format!("{host}:{port}"), code, message })
        })
    }
}
