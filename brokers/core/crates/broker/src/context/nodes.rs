//! The brokers of the cluster, as a client reaches them.

use std::collections::{BTreeMap, BTreeSet};

use super::request::RequestContext;
use freshet_metadata::schema::{BrokerPlace, TopicRecord};
use freshet_wire::protocol::leader::NodeEndpoint;
use freshet_wire::text::split_address;
use kafka_protocol::messages::BrokerId;

/// The fewest nodes of a cluster that clients of a gateway see, so that three replicas of a
/// partition have node ids of their own.
const NODES_MIN: u32 = 3;

/// A node of the cluster that a request names.
pub(crate) struct NamedNode {
    /// Its node id.
    pub(crate) node_id: i32,
    /// The same number, as the metadata store has it.
    pub(crate) slot: u32,
    /// Its zone; `None` where that is not known.
    pub(crate) zone: Option<String>,
}

/// The node ids of a cluster, in their order.
pub(crate) struct Replicas(Vec<i32>);

impl Replicas {
    /// Takes nodes in the order of their ids.
    pub(crate) fn new(nodes: &[NodeEndpoint]) -> Self {
        Self(nodes.iter().map(|node| node.node_id).collect())
    }

    /// The node ids of a partition's replicas in responses: its leader, and the next ones, as many
    /// as the topic's replication factor says. Storage provides durability, so there are no other
    /// replicas; but tools compare their number with `min.insync.replicas` and with the requested
    /// one. Where the cluster has fewer nodes, the leader is named again.
    pub(crate) fn of(&self, topic: &TopicRecord, leader: i32) -> Vec<BrokerId> {
        let factor = usize::try_from(topic.replication_factor).unwrap_or(1).max(1);
        let behind = self.0.partition_point(|node| *node <= leader);
        let (before, behind) = self.0.split_at(behind);
        let others = behind.iter().chain(before).copied().filter(|node| *node != leader);
        let nodes = std::iter::once(leader).chain(others).chain(std::iter::repeat(leader));
        nodes.take(factor).map(BrokerId).collect()
    }
}

impl RequestContext {
    /// The brokers that live, by node id, with the addresses that clients of this listener are to
    /// use. One that such clients cannot reach is left out. Clients of a gateway see
    /// [`NODES_MIN`] at least: it connects them to a broker of another slot where one has none.
    pub fn nodes(&self) -> Vec<NodeEndpoint> {
        let engine = &self.broker().engine;
        let snapshot = engine.view.snapshot();
        let mut nodes = BTreeMap::new();
        // Sorted by incarnation: where one succeeds another in a slot, the later one counts.
        for (incarnation, stored) in snapshot.incarnations.iter() {
            let record = &stored.record;
            if snapshot.is_live(*incarnation)
                && let Ok(node_id) = i32::try_from(record.slot)
                && let Some(node) = self.other_node(node_id, &record.place)
            {
                nodes.insert(node_id, node);
            }
        }
        nodes.insert(engine.node_id, self.endpoint());
        let slots = NODES_MIN.max(snapshot.scale()).cast_signed();
        for node_id in (0..slots).filter(|_| !self.client.listener.advertised_by_slot.is_empty()) {
            if !nodes.contains_key(&node_id)
                && let Some(node) = self.other_node(node_id, &BrokerPlace::default())
            {
                nodes.insert(node_id, node);
            }
        }
        nodes.into_values().collect()
    }

    /// The broker of a node id; `None` where it does not live or cannot be reached.
    pub fn node(&self, node_id: i32) -> Option<NodeEndpoint> {
        if node_id == self.broker().engine.node_id {
            return Some(self.endpoint());
        }
        self.nodes().into_iter().find(|node| node.node_id == node_id)
    }

    /// The node that a resource of type BROKER names, with its zone where it lives; `None` where
    /// the cluster has no such broker, awake or asleep.
    pub(crate) fn named_node(&self, node_id: i32) -> Option<NamedNode> {
        let slot = u32::try_from(node_id).ok()?;
        let node = self.node(node_id);
        let scale = self.broker().engine.view.snapshot().scale();
        (node.is_some() || slot < scale).then(|| NamedNode {
            node_id,
            slot,
            zone: node.and_then(|node| node.rack),
        })
    }

    /// The brokers that an answer names as leaders, so that clients can go there.
    pub(crate) fn nodes_named(&self, leaders: impl Iterator<Item = i32>) -> Vec<NodeEndpoint> {
        let named: BTreeSet<i32> = leaders.collect();
        if named.is_empty() {
            return Vec::new();
        }
        self.nodes().into_iter().filter(|node| named.contains(&node.node_id)).collect()
    }

    /// The node id of the cluster's controller. Where it is not known, that of this broker, which
    /// serves all that clients ask of a controller, too.
    pub fn controller_id(&self) -> i32 {
        let broker = self.broker();
        let controller = broker.engine.view.snapshot().controller.clone();
        let node = controller.and_then(|stored| broker.node_of(stored.record.incarnation));
        node.unwrap_or(broker.engine.node_id)
    }

    /// The node ids of replicas, as responses to this client name them. An answer asks for them
    /// once, not for each topic: it is a walk over all brokers.
    pub(crate) fn replicas(&self) -> Replicas {
        Replicas::new(&self.nodes())
    }

    fn other_node(&self, node_id: i32, place: &BrokerPlace) -> Option<NodeEndpoint> {
        let by_slot = &self.client.listener.advertised_by_slot;
        let address = if by_slot.is_empty() {
            &place.kafka
        } else {
            by_slot.get(usize::try_from(node_id).ok()?)?
        };
        let (host, port) = split_address(address)?;
        Some(NodeEndpoint { node_id, host: host.to_owned(), port: port.into(), rack: place.rack() })
    }
}
