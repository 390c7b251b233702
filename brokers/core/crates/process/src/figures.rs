//! The gauges and the health of a broker, which are computed when `/metrics` or `/healthz` is read.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::{ProcessError, system_error};
use freshet_broker::context::Broker;
use freshet_broker::server::Server;
use freshet_engine::Engine;
use freshet_engine::status::{Status, Surroundings};
use freshet_telemetry::{BrokerState, Gauges, PartitionLabels, Sample, StateLabel, StatusAnswer};
use freshet_world::env::usage::{process_cpu_ms, process_usage};

/// Returns a function that fills the gauges from a running broker and its server.
pub(super) fn sampler(broker: Arc<Broker>, server: Arc<Server>) -> Sample {
    Arc::new(move |gauges: &Gauges| {
        gauges.connections.set(count(server.connections()));
        gauges.client_connections.set(count(server.linked_connections()));
        gauges.in_flight_bytes.set(count(server.in_flight_bytes()));
        gauges.fetch_bytes.set(count(broker.fetch_bytes()));
        gauges.catch_up_fetch_bytes.set(count(broker.catch_up_bytes()));
        let engine = &broker.engine;
        set_engine_gauges(engine, gauges);
        set_group_gauges(engine, gauges);
        if let Some(usage) = process_usage() {
            gauges.process.set(&usage);
        }
        let reason = engine.liveness.reason();
        let state = if reason.is_some() { BrokerState::ShuttingDown } else { BrokerState::Running };
        gauges.broker_state.set(state as i64);
        gauges.active_controllers.set(i64::from(reason.is_none() && engine.term().is_some()));
        reason.map_or(Ok(()), |reason| Err(format!("stood down: {reason}")))
    })
}

/// Returns a function that answers queries of a running broker's status.
///
/// # Errors
/// [`ProcessError::System`] where the machine refuses a thread.
pub(super) fn status(
    engine: Arc<Engine>,
    server: Arc<Server>,
) -> Result<StatusAnswer, ProcessError> {
    let refused = |error| system_error("a thread of the status")(io::Error::other(error));
    let status = Status::new(engine).map_err(refused)?;
    Ok(Arc::new(move |query| {
        let around = Surroundings {
            connections: server.connections(),
            client_connections: server.linked_connections(),
            cpu_ms: process_cpu_ms().unwrap_or(0),
        };
        status.answer(query, around)
    }))
}

fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Sets the gauges that come from the engine: counts of partitions, topics, unsplit batches,
/// following readers and items that wait for the lane's writer; sizes of caches and of unsplit
/// records, in bytes; the incarnation's number. [`sampler`]'s function calls it each time somebody
/// reads `/metrics` or `/healthz`. It never fails.
fn set_engine_gauges(engine: &Engine, gauges: &Gauges) {
    let partitions = engine.partitions.all();
    gauges.partitions.set(count(partitions.len()));
    let topics = engine.view.topics();
    gauges.topics.set(count(topics.len()));
    gauges.all_partitions.set(count(topics.iter().map(|topic| topic.partitions.len()).sum()));
    gauges.offline_partitions.set(count(engine.partitions.count_offline()));
    gauges.cache_bytes.set(count(engine.sources.cache.pinned_bytes()));
    gauges.block_bytes.set(count(engine.sources.blocks.used_bytes()));
    gauges.following_readers.set(count(engine.sources.followers.count()));
    let batches = partitions.iter().map(|partition| partition.unsplit_count()).sum();
    gauges.unsplit_batches.set(count(batches));
    let unsplit: u64 = partitions.iter().map(|partition| partition.unsplit_bytes()).sum();
    gauges.unsplit_bytes.set(unsplit.cast_signed());
    let served = partitions.iter().filter(|partition| partition.serves_clients());
    let unread = served.map(|partition| partition.manifest().unread_bytes());
    gauges.unread_bytes.set(unread.sum::<u64>().cast_signed());
    gauges.lane_queue_items.set(count(engine.lane.waiting()));
    gauges.incarnation.set(engine.incarnation.0.cast_signed());
    set_damaged_batches(engine, gauges);
}

/// Names the partitions that have a damaged batch, and forgets the others.
fn set_damaged_batches(engine: &Engine, gauges: &Gauges) {
    gauges.damaged_batches.clear();
    // A deleted topic keeps its partitions for as long as it can be restored, and its name may be
    // that of another one by now.
    let served = engine.partitions.all().into_iter().filter(|partition| partition.serves_clients());
    for partition in served {
        if let Some(offset) = partition.first_damaged() {
            let topic = partition.topic().to_string();
            let labels = PartitionLabels { topic, partition: partition.id().index };
            gauges.damaged_batches.get_or_create(&labels).set(offset);
        }
    }
}

/// Fills the gauges of groups. While groups are being loaded the gauges keep their last values.
fn set_group_gauges(engine: &Engine, gauges: &Gauges) {
    let Ok(groups) = engine.groups.list_groups(&[], &[]) else { return };
    gauges.groups.set(count(groups.len()));
    let states = ["PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"];
    let mut by_state = BTreeMap::from(states.map(|state| (state, 0)));
    for group in &groups {
        *by_state.entry(group.state).or_default() += 1;
    }
    for (state, groups) in by_state {
        gauges.groups_by_state.get_or_create(&StateLabel { state }).set(groups);
    }
}
