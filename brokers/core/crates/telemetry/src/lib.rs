//! The metrics of a broker, for Prometheus.
//!
//! Names are those that Kafka's exporters use where Kafka has the figure
//! (`kafka_server_brokertopicmetrics_bytesin_total`), and begin with `freshet_` where it has not.
//! Everything here counts and nothing decides: no part of the engine reads a metric.
//!
//! Counters are handles that the hot path keeps ([`Metrics::topic`], [`LaneMetrics`]); gauges are
//! looked up when the metrics are read ([`Gauges`], filled by the process from the engine).

use std::fmt;
use std::sync::Arc;

use kafka_protocol::messages::ApiKey;
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use freshet_world::env::store::StoreMetrics;

mod gauges;
pub mod http;
mod jobs;
mod labels;
mod lane;
mod reads;
mod requests;
pub mod traffic;

pub use gauges::{BrokerState, Gauges, ProcessGauges};
pub use jobs::{JobMetrics, RewriteMetrics};
use labels::{KindLabel, SourceLabel, TopicLabel};
pub use labels::{PartitionLabels, StateLabel};
pub use lane::{CommitStage, LaneMetrics};
pub use reads::BlockMetrics;
pub use requests::{ApiMetrics, RequestMetrics, RequestTimer};

/// The counters of a topic. Whoever counts keeps them, so that the hot path looks nothing up.
#[derive(Debug, Clone)]
pub struct TopicMetrics {
    /// Bytes of record batches produced.
    pub bytes_in: Counter,
    /// Bytes of record batches handed to sockets.
    pub bytes_out: Counter,
    /// Records produced.
    pub messages_in: Counter,
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

/// Every metric of a broker. Clones of its parts count into the same figures.
pub struct Metrics {
    registry: Mutex<Registry>,
    topics: TopicFamilies,
    failed_produces: Counter,
    failed_fetches: Counter,
    throttled: Family<KindLabel, Counter>,
    /// Bytes of requests and answers that are not billed.
    pub unbilled: Counter,
    connections_created: Counter,
    authentications: Counter,
    authentication_failures: Counter,
    reads: [(Counter, Counter); 3],
    /// What principals and clients take.
    pub traffic: traffic::Traffic,
    /// Those of requests.
    pub requests: RequestMetrics,
    /// The lane's.
    pub lane: LaneMetrics,
    /// Metrics of reading lanes and objects.
    pub blocks: BlockMetrics,
    /// Metrics of joining and compaction.
    pub jobs: JobMetrics,
    /// Values that are looked up when the metrics are read.
    pub gauges: Gauges,
}

#[derive(Default)]
struct TopicFamilies {
    bytes_in: Family<TopicLabel, Counter>,
    bytes_out: Family<TopicLabel, Counter>,
    messages_in: Family<TopicLabel, Counter>,
}

impl TopicFamilies {
    /// Each counter of topics with its name and its help text.
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
        let count = |registry: &mut Registry, name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let throttled = Family::default();
        let help = "Milliseconds for which clients were asked to pause";
        registry.register("freshet_throttle_milliseconds", help, throttled.clone());
        Self {
            throttled,
            topics,
            failed_produces: count(
                &mut registry,
                "kafka_server_brokertopicmetrics_failedproducerequests",
                "Partitions of Produce requests that were refused or failed",
            ),
            failed_fetches: count(
                &mut registry,
                "kafka_server_brokertopicmetrics_failedfetchrequests",
                "Partitions of Fetch requests that were refused or failed",
            ),
            connections_created: count(
                &mut registry,
                "kafka_server_socketserver_connection_creation",
                "Connections that were accepted",
            ),
            authentications: count(
                &mut registry,
                "kafka_server_socketserver_successful_authentication",
                "Clients that authenticated",
            ),
            authentication_failures: count(
                &mut registry,
                "kafka_server_socketserver_failed_authentication",
                "Clients whose credentials were wrong",
            ),
            reads: register_reads(&mut registry),
            unbilled: count(
                &mut registry,
                "freshet_unbilled_bytes",
                "Bytes of requests and answers that are not billed",
            ),
            traffic: traffic::Traffic::default(),
            requests: RequestMetrics::register(&mut registry),
            lane: LaneMetrics::register(&mut registry),
            blocks: BlockMetrics::register(&mut registry),
            jobs: JobMetrics::register(&mut registry),
            gauges: Gauges::register(&mut registry),
            registry: Mutex::new(registry),
        }
    }

    /// Adds the metrics of an object store.
    pub fn add_store(&self, store: &StoreMetrics) {
        let described = [
            ("freshet_object_store_hedges", "Reads asked for twice", &store.hedges),
            ("freshet_object_store_hedges_won", "Second reads that came first", &store.hedges_won),
            ("freshet_object_store_throttled", "Answers to slow down", &store.throttled),
        ];
        let mut registry = self.registry.lock();
        for (name, help, counter) in described {
            registry.register(name, help, counter.clone());
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

    /// What was counted of a topic: bytes produced, bytes fetched, records produced. `None` where
    /// the topic is not counted.
    pub fn topic_counts(&self, name: &str) -> Option<[u64; 3]> {
        let label = TopicLabel { topic: name.to_owned() };
        let of = |family: &Family<TopicLabel, Counter>| Some(family.get(&label)?.get());
        let topics = &self.topics;
        Some([of(&topics.bytes_in)?, of(&topics.bytes_out)?, of(&topics.messages_in)?])
    }

    /// Partitions of Produce and of Fetch requests that were refused or failed.
    pub fn failures(&self) -> [u64; 2] {
        [self.failed_produces.get(), self.failed_fetches.get()]
    }

    /// Stops reporting a topic that was deleted.
    pub fn forget_topic(&self, name: &str) {
        let label = TopicLabel { topic: name.to_owned() };
        for (family, ..) in self.topics.described() {
            family.remove(&label);
        }
    }

    /// Notes that a client was asked to pause, by a quota of this kind.
    pub fn throttled(&self, kind: &'static str, pause_ms: u64) {
        self.throttled.get_or_create(&KindLabel { kind }).inc_by(pause_ms);
    }

    /// Notes the error codes in an answer to Produce.
    pub fn produced(&self, codes: impl Iterator<Item = i16>) {
        self.failed_produces.inc_by(self.requests.failed(ApiKey::Produce, codes));
    }

    /// Notes the error codes in an answer to Fetch.
    pub fn fetched(&self, codes: impl Iterator<Item = i16>) {
        self.failed_fetches.inc_by(self.requests.failed(ApiKey::Fetch, codes));
    }

    /// Notes a connection that was accepted.
    pub fn connected(&self) {
        self.connections_created.inc();
    }

    /// Notes a client that authenticated.
    pub fn authenticated(&self) {
        self.authentications.inc();
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

    /// All metrics in the text format of OpenMetrics 1.0.
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

/// Fills the gauges and checks that the broker is healthy; the error's text says what is wrong.
pub type Sample = Arc<dyn Fn(&Gauges) -> Result<(), String> + Send + Sync>;

/// Returns what a query asks of a broker's status.
pub type StatusAnswer = Arc<dyn Fn(Option<&str>) -> String + Send + Sync>;

/// The metrics, the health and the status of a broker.
pub struct BrokerFigures {
    /// Its metrics.
    pub metrics: Arc<Metrics>,
    /// Called when the metrics or the health are read.
    pub sample: Sample,
    /// Called when the status is read.
    pub status: StatusAnswer,
}

impl http::Exposed for BrokerFigures {
    fn metrics(&self) -> String {
        // A broker that is not healthy still reports its metrics.
        let _ = (self.sample)(&self.metrics.gauges);
        self.metrics.render()
    }

    fn health(&self) -> Result<(), String> {
        (self.sample)(&self.metrics.gauges)
    }

    fn status(&self, query: Option<&str>) -> Option<String> {
        Some((self.status)(query))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_counted_is_rendered_under_kafkas_names() {
        let metrics = Metrics::new();
        let topic = metrics.topic("or\"ders");
        topic.bytes_in.inc_by(100);
        metrics.topic("or\"ders").bytes_in.inc_by(1);
        metrics.requests.arrived(ApiKey::Produce, 1).sent();
        metrics.read(ReadSource::Cold, 5);
        metrics.lane.block_written("data", 4096);
        metrics.lane.commit_took(CommitStage::Token, Duration::from_micros(60));
        metrics.jobs.compact.runs.inc();
        metrics.jobs.dirty_percent_max.set(62.5);
        metrics.gauges.incarnation.set(7);
        let text = metrics.render();
        for line in [
            r#"kafka_server_brokertopicmetrics_bytesin_total{topic="or\"ders"} 101"#,
            r#"kafka_network_requestmetrics_requests_total{request="Produce"} 1"#,
            r#"kafka_network_requestmetrics_totaltime_seconds_count{request="Produce"} 1"#,
            r#"freshet_read_bytes_total{source="cold"} 5"#,
            r#"freshet_lane_blocks_total{kind="data"} 1"#,
            r#"freshet_lane_commit_seconds_count{stage="token"} 1"#,
            r#"freshet_rewrites_total{job="compact"} 1"#,
            "kafka_log_logcleanermanager_max_dirty_percent 62.5",
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
        assert_eq!(metrics.topic_counts("orders"), Some([0, 0, 1]));
        metrics.forget_topic("orders");
        assert_eq!(metrics.topic_counts("orders"), None);
        assert!(!metrics.render().contains("orders"));
    }
}
