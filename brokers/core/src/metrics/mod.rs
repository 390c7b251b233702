//! What a broker tells Prometheus.
//!
//! Names are those that Kafka's exporters use where Kafka has the figure
//! (`kafka_server_brokertopicmetrics_bytesin_total`), and begin with `freshet_` where it has not.
//! Everything here counts and nothing decides: no part of the engine reads a metric.
//!
//! Counters are handles that the hot path keeps ([`Metrics::topic`], [`LaneMetrics`]); gauges are
//! looked up when somebody asks ([`Gauges`], filled by the process from the engine).

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kafka_protocol::messages::ApiKey;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub mod http;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TopicLabel {
    topic: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabel {
    request: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabel {
    stage: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabel {
    source: &'static str,
}

type Histograms<Label> = Family<Label, Histogram, fn() -> Histogram>;

/// Above Kafka's numbers of APIs.
const APIS_MAX: usize = 128;

/// From 50 µs, doubling, to 26 s.
fn latency() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 2.0, 20))
}

/// What is counted of a topic. Kept by whoever counts, so that the hot path looks nothing up.
#[derive(Debug, Clone)]
pub struct TopicMetrics {
    /// Bytes of record batches produced.
    pub bytes_in: Counter,
    /// Bytes of record batches handed to sockets.
    pub bytes_out: Counter,
    /// Records produced.
    pub messages_in: Counter,
}

/// What is counted of an API.
#[derive(Debug, Clone)]
pub struct ApiMetrics {
    requests: Counter,
    time: Histogram,
}

impl ApiMetrics {
    /// Notes a request that was answered `after` it had arrived whole.
    pub fn answered(&self, after: Duration) {
        self.requests.inc();
        self.time.observe(after.as_secs_f64());
    }
}

/// A step of a group commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStage {
    /// Write and sync.
    Write,
    /// Reading the owner token again.
    Token,
}

impl CommitStage {
    const ALL: [Self; 2] = [Self::Write, Self::Token];

    fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Token => "token",
        }
    }
}

/// Where a batch was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadSource {
    /// The HotCache.
    Hot,
    /// A lane file.
    Lane,
    /// A segment.
    Cold,
}

impl ReadSource {
    const ALL: [Self; 3] = [Self::Hot, Self::Lane, Self::Cold];

    fn name(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Lane => "lane",
            Self::Cold => "cold",
        }
    }
}

/// What is counted of the lane.
#[derive(Debug, Clone)]
pub struct LaneMetrics {
    blocks: Family<KindLabel, Counter>,
    bytes: Counter,
    stages: [Histogram; 2],
    files: Counter,
}

impl LaneMetrics {
    /// Notes a block of a kind (`data`, `usage`, `install`, `checkpoint`, `close`) with its
    /// padding.
    pub fn block_written(&self, kind: &'static str, bytes: u64) {
        self.blocks.get_or_create(&KindLabel { kind }).inc();
        self.bytes.inc_by(bytes);
    }

    /// Notes how long a step of a group commit took.
    pub fn commit_took(&self, stage: CommitStage, time: Duration) {
        self.stages[stage as usize].observe(time.as_secs_f64());
    }

    /// Notes that a file was ended.
    pub fn file_rolled(&self) {
        self.files.inc();
    }
}

/// What is looked up when somebody asks. Field by field the metric of the same name.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// `kafka_server_socketserver_connections`
    pub connections: Gauge,
    /// `freshet_client_connections`
    pub client_connections: Gauge,
    /// `freshet_in_flight_bytes`
    pub in_flight_bytes: Gauge,
    /// `kafka_server_replicamanager_partitioncount`
    pub partitions: Gauge,
    /// `kafka_controller_kafkacontroller_offlinepartitionscount`
    pub offline_partitions: Gauge,
    /// `kafka_controller_kafkacontroller_globaltopiccount`
    pub topics: Gauge,
    /// `kafka_coordinator_group_groupmetadatamanager_numgroups`
    pub groups: Gauge,
    /// `freshet_cache_pinned_bytes`
    pub cache_bytes: Gauge,
    /// `freshet_lane_unsplit_bytes`
    pub unsplit_bytes: Gauge,
    /// `freshet_lane_unsplit_batches`
    pub unsplit_batches: Gauge,
    /// `freshet_lane_queue_items`
    pub lane_queue_items: Gauge,
    /// `freshet_incarnation`
    pub incarnation: Gauge,
}

/// Every metric of a broker. Clones of its parts count into the same figures.
pub struct Metrics {
    registry: Mutex<Registry>,
    topics: TopicFamilies,
    requests: Family<RequestLabel, Counter>,
    request_times: Histograms<RequestLabel>,
    /// By Kafka's number of the API; made when one is first asked for.
    apis: [OnceLock<ApiMetrics>; APIS_MAX],
    throttled: Family<KindLabel, Counter>,
    connections_created: Counter,
    authentication_failures: Counter,
    reads: [(Counter, Counter); 3],
    /// The lane's.
    pub lane: LaneMetrics,
    /// What is looked up when somebody asks.
    pub gauges: Gauges,
}

#[derive(Default)]
struct TopicFamilies {
    bytes_in: Family<TopicLabel, Counter>,
    bytes_out: Family<TopicLabel, Counter>,
    messages_in: Family<TopicLabel, Counter>,
}

impl TopicFamilies {
    /// Each with its name and what it is.
    fn described(&self) -> [(&Family<TopicLabel, Counter>, &'static str, &'static str); 3] {
        [
            (&self.bytes_in, "bytesin", "Bytes of record batches produced"),
            (&self.bytes_out, "bytesout", "Bytes of record batches handed to sockets"),
            (&self.messages_in, "messagesin", "Records produced"),
        ]
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let topics = TopicFamilies::default();
        for (family, name, help) in topics.described() {
            let name = format!("kafka_server_brokertopicmetrics_{name}");
            registry.register(name, help, family.clone());
        }
        let requests = Family::default();
        let request_times = Histograms::new_with_constructor(latency as fn() -> Histogram);
        registry.register("kafka_network_requestmetrics_requests", "Requests", requests.clone());
        registry.register(
            "kafka_network_requestmetrics_totaltime_seconds",
            "From a whole request to its answer",
            request_times.clone(),
        );
        let connections_created = Counter::default();
        let help = "Connections that were accepted";
        let name = "kafka_server_socketserver_connection_creation";
        registry.register(name, help, connections_created.clone());
        let authentication_failures = Counter::default();
        let help = "Clients whose credentials were wrong";
        let name = "kafka_server_socketserver_failed_authentication";
        registry.register(name, help, authentication_failures.clone());
        let throttled = Family::default();
        let help = "Milliseconds for which clients were told to pause";
        registry.register("freshet_throttle_milliseconds", help, throttled.clone());
        let gauges = Gauges::default();
        register_gauges(&mut registry, &gauges);
        Self {
            throttled,
            topics,
            requests,
            request_times,
            apis: [const { OnceLock::new() }; APIS_MAX],
            connections_created,
            authentication_failures,
            reads: register_reads(&mut registry),
            lane: register_lane(&mut registry),
            gauges,
            registry: Mutex::new(registry),
        }
    }

    /// The counters of a topic.
    pub fn topic(&self, name: &str) -> TopicMetrics {
        let label = TopicLabel { topic: name.to_owned() };
        let of = |family: &Family<TopicLabel, Counter>| family.get_or_create_owned(&label);
        TopicMetrics {
            bytes_in: of(&self.topics.bytes_in),
            bytes_out: of(&self.topics.bytes_out),
            messages_in: of(&self.topics.messages_in),
        }
    }

    /// Stops reporting a topic that was deleted.
    pub fn forget_topic(&self, name: &str) {
        let label = TopicLabel { topic: name.to_owned() };
        for (family, ..) in self.topics.described() {
            family.remove(&label);
        }
    }

    /// Notes that a client was told to pause, by a quota of this kind.
    pub fn throttled(&self, kind: &'static str, pause_ms: u64) {
        self.throttled.get_or_create(&KindLabel { kind }).inc_by(pause_ms);
    }

    /// The counters of an API.
    pub fn api(&self, api: ApiKey) -> &ApiMetrics {
        let number = usize::try_from(api as i16).expect("numbers of APIs count from 0");
        self.apis[number].get_or_init(|| {
            let label = RequestLabel { request: format!("{api:?}") };
            ApiMetrics {
                requests: self.requests.get_or_create_owned(&label),
                time: self.request_times.get_or_create_owned(&label),
            }
        })
    }

    /// Notes a connection that was accepted.
    pub fn connected(&self) {
        self.connections_created.inc();
    }

    /// Notes a client whose credentials were wrong.
    pub fn authentication_failed(&self) {
        self.authentication_failures.inc();
    }

    /// Notes batches that were read for a client.
    pub fn read(&self, source: ReadSource, bytes: u64) {
        let (reads, read_bytes) = &self.reads[source as usize];
        reads.inc();
        read_bytes.inc_by(bytes);
    }

    /// All of it in the text format of OpenMetrics 1.0.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(16 << 10);
        encode(&mut text, &self.registry.lock()).expect("text takes text");
        text
    }
}

fn register_reads(registry: &mut Registry) -> [(Counter, Counter); 3] {
    let (reads, bytes) = (Family::default(), Family::default());
    let help = "Reads for clients by where the records were";
    registry.register("freshet_reads", help, reads.clone());
    let help = "Bytes read for clients by where the records were";
    registry.register("freshet_read_bytes", help, bytes.clone());
    ReadSource::ALL.map(|source| {
        let label = SourceLabel { source: source.name() };
        (reads.get_or_create_owned(&label), bytes.get_or_create_owned(&label))
    })
}

fn register_lane(registry: &mut Registry) -> LaneMetrics {
    let (blocks, bytes, files) = (Family::default(), Counter::default(), Counter::default());
    let stages = Histograms::new_with_constructor(latency as fn() -> Histogram);
    registry.register("freshet_lane_blocks", "Blocks written by kind", blocks.clone());
    registry.register("freshet_lane_bytes", "Bytes written, padding included", bytes.clone());
    registry.register("freshet_lane_files", "Files that were ended", files.clone());
    let help = "Time of a group commit by stage";
    registry.register("freshet_lane_commit_seconds", help, stages.clone());
    let stages = CommitStage::ALL
        .map(|stage| stages.get_or_create_owned(&StageLabel { stage: stage.name() }));
    LaneMetrics { blocks, bytes, stages, files }
}

fn register_gauges(registry: &mut Registry, gauges: &Gauges) {
    let described = [
        ("kafka_server_socketserver_connections", "Open connections", &gauges.connections),
        (
            "freshet_client_connections",
            "Open connections that came through gateways",
            &gauges.client_connections,
        ),
        ("freshet_in_flight_bytes", "Bytes of requests not answered yet", &gauges.in_flight_bytes),
        ("kafka_server_replicamanager_partitioncount", "Partitions served", &gauges.partitions),
        (
            "kafka_controller_kafkacontroller_offlinepartitionscount",
            "Partitions that are kept from service because records are missing",
            &gauges.offline_partitions,
        ),
        ("kafka_controller_kafkacontroller_globaltopiccount", "Topics", &gauges.topics),
        ("kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups", &gauges.groups),
        ("freshet_cache_pinned_bytes", "Memory of the newest batches", &gauges.cache_bytes),
        ("freshet_lane_unsplit_bytes", "Record bytes not in segments yet", &gauges.unsplit_bytes),
        ("freshet_lane_unsplit_batches", "Batches not in segments yet", &gauges.unsplit_batches),
        ("freshet_lane_queue_items", "Items that wait for a write", &gauges.lane_queue_items),
        ("freshet_incarnation", "Which start of a broker this is", &gauges.incarnation),
    ];
    for (name, help, gauge) in described {
        registry.register(name, help, gauge.clone());
    }
}

/// Fills the gauges and says whether the broker is well; the text says what is wrong.
pub type Sample = Arc<dyn Fn(&Gauges) -> Result<(), String> + Send + Sync>;

/// What a broker shows of itself.
pub struct BrokerFigures {
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// What it is asked for.
    pub sample: Sample,
}

impl http::Exposed for BrokerFigures {
    fn metrics(&self) -> String {
        // A broker that is not well still says what it counted.
        let _ = (self.sample)(&self.metrics.gauges);
        self.metrics.render()
    }

    fn health(&self) -> Result<(), String> {
        (self.sample)(&self.metrics.gauges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_rendered_under_kafkas_names() {
        let metrics = Metrics::new();
        let topic = metrics.topic("or\"ders");
        topic.bytes_in.inc_by(100);
        metrics.topic("or\"ders").bytes_in.inc_by(1);
        metrics.api(ApiKey::Produce).answered(Duration::from_millis(3));
        metrics.read(ReadSource::Cold, 5);
        metrics.lane.block_written("data", 4096);
        metrics.lane.commit_took(CommitStage::Token, Duration::from_micros(60));
        metrics.gauges.incarnation.set(7);
        let text = metrics.render();
        for line in [
            r#"kafka_server_brokertopicmetrics_bytesin_total{topic="or\"ders"} 101"#,
            r#"kafka_network_requestmetrics_requests_total{request="Produce"} 1"#,
            r#"kafka_network_requestmetrics_totaltime_seconds_count{request="Produce"} 1"#,
            r#"freshet_read_bytes_total{source="cold"} 5"#,
            r#"freshet_lane_blocks_total{kind="data"} 1"#,
            r#"freshet_lane_commit_seconds_count{stage="token"} 1"#,
            "freshet_incarnation 7",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_deleted_topic_is_not_reported_any_more() {
        let metrics = Metrics::new();
        metrics.topic("orders").messages_in.inc();
        metrics.forget_topic("orders");
        assert!(!metrics.render().contains("orders"));
    }
}
