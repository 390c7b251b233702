//! The brokers of the cluster, as a client reaches them.

use std::collections::{BTreeMap, BTreeSet};

use super::request::RequestContext;
use freshet_metadata::schema::{BrokerPlace, IncarnationState};
use freshet_wire::protocol::leader::NodeEndpoint;
use freshet_wire::text::split_address;

impl RequestContext {
    /// The brokers that live, by node id, with the addresses that clients of this listener are to
    /// use. One that such clients cannot reach is left out.
    pub fn nodes(&self) -> Vec<NodeEndpoint> {
        let engine = &self.broker().engine;
        let snapshot = engine.view.snapshot();
        let mut nodes = BTreeMap::new();
        // Sorted by incarnation: where one succeeds another in a slot, the later one counts.
        for stored in snapshot.incarnations.values() {
            let record = &stored.record;
            if record.state == IncarnationState::Live
                && let Ok(node_id) = i32::try_from(record.slot)
                && let Some(node) = self.other_node(node_id, &record.place)
            {
                nodes.insert(node_id, node);
            }
        }
        nodes.insert(engine.node_id, self.endpoint());
        nodes.into_values().collect()
    }

    /// The broker of a node id; `None` where it does not live or cannot be reached.
    pub fn node(&self, node_id: i32) -> Option<NodeEndpoint> {
        if node_id == self.broker().engine.node_id {
            return Some(self.endpoint());
        }
        self.nodes().into_iter().find(|node| node.node_id == node_id)
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
