//! Leader hints (KIP-951): the address of the leader, returned with the error that this broker is
//! not the leader, so that clients move without a request for metadata.

use bytes::Bytes;

use super::encode::Encoder;
use crate::ids::Epoch;

/// The current leader of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentLeader {
    /// The leader's node id, or -1 where it is not known.
    pub leader_id: i32,
    /// Its epoch, or -1.
    pub leader_epoch: Epoch,
}

/// The address of a node that an answer names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEndpoint {
    /// Its node id.
    pub node_id: i32,
    /// The host that clients connect to.
    pub host: String,
    /// The port that clients connect to.
    pub port: i32,
    /// Its rack (zone).
    pub rack: Option<String>,
}

impl CurrentLeader {
    pub(super) fn field(self) -> Bytes {
        Encoder::field(|out| {
            out.i32(self.leader_id);
            out.i32(self.leader_epoch);
            out.tagged(&[]);
        })
    }
}

/// The tagged fields of a response that names nodes: tag 0, where there are any.
pub(super) fn endpoint_fields(nodes: &[NodeEndpoint]) -> Vec<(u32, Bytes)> {
    if nodes.is_empty() {
        return Vec::new();
    }
    let field = Encoder::field(|out| {
        out.array(nodes, |out, node| {
            out.i32(node.node_id);
            out.string(&node.host);
            out.i32(node.port);
            out.nullable_string(node.rack.as_deref());
            out.tagged(&[]);
        });
    });
    vec![(0, field)]
}
