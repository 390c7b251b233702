//! Gauges, whose values are looked up when the metrics are read.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{PartitionLabels, StateLabel};
use freshet_world::env::usage::ProcessUsage;

/// Values that are looked up when the metrics are read. Each field names its metric.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// `kafka_server_socketserver_connections`
    pub connections: Gauge,
    /// `freshet_client_connections`
    pub client_connections: Gauge,
    /// `freshet_in_flight_bytes`
    pub in_flight_bytes: Gauge,
    /// `freshet_fetch_bytes`
    pub fetch_bytes: Gauge,
    /// `kafka_server_replicamanager_partitioncount` and `_leadercount`
    pub partitions: Gauge,
    /// `kafka_controller_kafkacontroller_offlinepartitionscount` and `_offlinereplicacount`
    pub offline_partitions: Gauge,
    /// `kafka_controller_kafkacontroller_globaltopiccount`
    pub topics: Gauge,
    /// `kafka_controller_kafkacontroller_globalpartitioncount`
    pub all_partitions: Gauge,
    /// `kafka_coordinator_group_groupmetadatamanager_numgroups`
    pub groups: Gauge,
    /// `freshet_groups`
    pub groups_by_state: Family<StateLabel, Gauge>,
    /// `freshet_damaged_batch_first_offset`
    pub damaged_batches: Family<PartitionLabels, Gauge>,
    /// `freshet_catch_up_fetch_bytes`
    pub catch_up_fetch_bytes: Gauge,
    /// `freshet_block_bytes`
    pub block_bytes: Gauge,
    /// `freshet_following_readers`
    pub following_readers: Gauge,
    /// `freshet_cache_pinned_bytes`
    pub cache_bytes: Gauge,
    /// `freshet_lane_unsplit_bytes`
    pub unsplit_bytes: Gauge,
    /// `freshet_lane_unsplit_batches`
    pub unsplit_batches: Gauge,
    /// `freshet_unread_bytes`
    pub unread_bytes: Gauge,
    /// `freshet_lane_queue_items`
    pub lane_queue_items: Gauge,
    /// `freshet_incarnation`
    pub incarnation: Gauge,
    /// `kafka_server_kafkaserver_brokerstate`
    pub broker_state: Gauge,
    /// `kafka_controller_kafkacontroller_activecontrollercount`
    pub active_controllers: Gauge,
    /// The process's use of its machine.
    pub process: ProcessGauges,
}

/// Kafka's numbers of a broker's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerState {
    /// It serves.
    Running = 3,
    /// It stood down.
    ShuttingDown = 7,
}

/// The process's use of its machine, under Prometheus' standard names.
#[derive(Debug, Clone, Default)]
pub struct ProcessGauges {
    cpu_s: Counter<f64, std::sync::atomic::AtomicU64>,
    resident_bytes: Gauge,
    virtual_bytes: Gauge,
    threads: Gauge,
    open_files: Gauge,
    open_files_max: Gauge,
}

impl ProcessGauges {
    /// Sets them to what the kernel reports.
    pub fn set(&self, usage: &ProcessUsage) {
        self.cpu_s.inc_by((usage.cpu_s - self.cpu_s.get()).max(0.0));
        self.resident_bytes.set(usage.resident_bytes);
        self.virtual_bytes.set(usage.virtual_bytes);
        self.threads.set(usage.threads);
        self.open_files.set(usage.open_files);
        self.open_files_max.set(usage.open_files_max);
    }

    fn register(&self, registry: &mut Registry) {
        let help = "Processor time of the process, user and system, in seconds";
        registry.register("process_cpu_seconds", help, self.cpu_s.clone());
        for (name, help, gauge) in [
            ("process_resident_memory_bytes", "Memory in RAM", &self.resident_bytes),
            ("process_virtual_memory_bytes", "Memory that is mapped", &self.virtual_bytes),
            ("process_threads", "Threads", &self.threads),
            ("process_open_fds", "Open file descriptors", &self.open_files),
            ("process_max_fds", "File descriptors that may be open", &self.open_files_max),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }
}

impl Gauges {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let gauges = Self::default();
        for (name, help, gauge) in gauges.kafkas().into_iter().chain(gauges.own()) {
            registry.register(name, help, gauge.clone());
        }
        let help = "Always 0: storage keeps records, not replicas";
        for name in
            ["underreplicatedpartitions", "underminisrpartitioncount", "atminisrpartitioncount"]
        {
            let name = format!("kafka_server_replicamanager_{name}");
            registry.register(name, help, Gauge::<i64>::default());
        }
        let help = "Groups by state";
        registry.register("freshet_groups", help, gauges.groups_by_state.clone());
        let help = "Offset of a partition's first batch that clients cannot read, as far as known";
        let damaged = gauges.damaged_batches.clone();
        registry.register("freshet_damaged_batch_first_offset", help, damaged);
        gauges.process.register(registry);
        gauges
    }

    fn kafkas(&self) -> [(&'static str, &'static str, &Gauge); 10] {
        [
            ("kafka_server_socketserver_connections", "Open connections", &self.connections),
            ("kafka_server_replicamanager_partitioncount", "Partitions served", &self.partitions),
            ("kafka_server_replicamanager_leadercount", "Partitions led", &self.partitions),
            (
                "kafka_server_replicamanager_offlinereplicacount",
                "Partitions that are kept from service because records are missing",
                &self.offline_partitions,
            ),
            (
                "kafka_controller_kafkacontroller_offlinepartitionscount",
                "Partitions that are kept from service because records are missing",
                &self.offline_partitions,
            ),
            ("kafka_controller_kafkacontroller_globaltopiccount", "Topics", &self.topics),
            (
                "kafka_controller_kafkacontroller_globalpartitioncount",
                "Partitions of all topics",
                &self.all_partitions,
            ),
            (
                "kafka_controller_kafkacontroller_activecontrollercount",
                "1 on the cluster's controller, 0 on its other brokers",
                &self.active_controllers,
            ),
            ("kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups", &self.groups),
            (
                "kafka_server_kafkaserver_brokerstate",
                "3 while it serves, 7 once it stood down",
                &self.broker_state,
            ),
        ]
    }

    fn own(&self) -> [(&'static str, &'static str, &Gauge); 12] {
        [
            (
                "freshet_client_connections",
                "Open connections that came through gateways",
                &self.client_connections,
            ),
            (
                "freshet_in_flight_bytes",
                "Bytes of requests not answered, or whose batches are not written, yet",
                &self.in_flight_bytes,
            ),
            (
                "freshet_fetch_bytes",
                "Bytes of the newest records on their way to clients",
                &self.fetch_bytes,
            ),
            (
                "freshet_catch_up_fetch_bytes",
                "Bytes of older records on their way to clients",
                &self.catch_up_fetch_bytes,
            ),
            ("freshet_block_bytes", "Memory of blocks of lanes and objects", &self.block_bytes),
            (
                "freshet_following_readers",
                "Readers of lanes and objects that go on where they left",
                &self.following_readers,
            ),
            ("freshet_cache_pinned_bytes", "Memory of the newest batches", &self.cache_bytes),
            ("freshet_lane_unsplit_bytes", "Record bytes not in segments yet", &self.unsplit_bytes),
            ("freshet_lane_unsplit_batches", "Batches not in segments yet", &self.unsplit_batches),
            (
                "freshet_unread_bytes",
                "Bytes in segments of an earlier release whose records are still to be read",
                &self.unread_bytes,
            ),
            ("freshet_lane_queue_items", "Items that wait for a write", &self.lane_queue_items),
            ("freshet_incarnation", "Which start of a broker this is", &self.incarnation),
        ]
    }
}
