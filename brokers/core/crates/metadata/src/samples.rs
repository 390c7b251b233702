//! Records that tests share, here and in other crates.

use crate::schema::cell::{ClusterSpec, SpecState};

/// A spec of a cluster.
pub fn spec(id: &str, generation: u64) -> ClusterSpec {
    ClusterSpec {
        id: id.to_owned(),
        name: "orders".to_owned(),
        organization_id: "org_1".to_owned(),
        generation,
        state: SpecState::Active,
        scale: 1,
        idle_timeout_ms: 300_000,
        ports: vec![9092],
        host: "orders-1a".to_owned(),
        connections_max: 1000,
        wakes_per_minute_max: 6,
        deletions: vec![(10, Some(20)), (20, None)],
    }
}
