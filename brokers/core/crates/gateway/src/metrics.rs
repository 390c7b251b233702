//! The metrics of a gateway.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::limits::Gate;
use freshet_telemetry::http::Exposed;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClusterLabel {
    cluster: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

type ByCluster<Metric> = Family<ClusterLabel, Metric>;

/// Every metric of a gateway.
pub(super) struct GatewayMetrics {
    registry: Mutex<Registry>,
    connections: ByCluster<Gauge>,
    unauthenticated: Gauge,
    wakes: ByCluster<Counter>,
    wake_seconds: Histogram,
    authentication_failures: ByCluster<Counter>,
    authentication_waits: ByCluster<Counter>,
    bytes_in: ByCluster<Counter>,
    bytes_out: ByCluster<Counter>,
    refusals: Family<ReasonLabel, Counter>,
    /// Whether the cell's metadata could be read the last time.
    pub metadata_readable: Gauge,
    /// Ports that are listened on without TLS.
    pub plain_listeners: Gauge,
}

/// The counters of a connection's bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic {
    /// From the client.
    pub bytes_in: Counter,
    /// To the client.
    pub bytes_out: Counter,
}

impl Default for GatewayMetrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Mutex::default(),
            connections: Family::default(),
            unauthenticated: Gauge::default(),
            wakes: Family::default(),
            // From 10 ms, doubling, to 41 s.
            wake_seconds: Histogram::new(exponential_buckets(0.01, 2.0, 13)),
            authentication_failures: Family::default(),
            authentication_waits: Family::default(),
            bytes_in: Family::default(),
            bytes_out: Family::default(),
            refusals: Family::default(),
            metadata_readable: Gauge::default(),
            plain_listeners: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl GatewayMetrics {
    fn register(&self) {
        let mut registry = self.registry.lock();
        let mut name = |name: &str, help: &str, metric: AnyMetric<'_>| {
            let name = format!("freshet_gateway_{name}");
            match metric {
                AnyMetric::Gauge(gauge) => registry.register(name, help, gauge.clone()),
                AnyMetric::Gauges(gauges) => registry.register(name, help, gauges.clone()),
                AnyMetric::Counters(counters) => registry.register(name, help, counters.clone()),
                AnyMetric::Reasons(reasons) => registry.register(name, help, reasons.clone()),
                AnyMetric::Histogram(times) => registry.register(name, help, times.clone()),
            }
        };
        name("connections", "Connections by cluster", AnyMetric::Gauges(&self.connections));
        let help = "Connections that have not authenticated";
        name("unauthenticated_connections", help, AnyMetric::Gauge(&self.unauthenticated));
        name("wakes", "Wake requests by cluster", AnyMetric::Counters(&self.wakes));
        let help = "How long clients of sleeping clusters were held";
        name("wake_seconds", help, AnyMetric::Histogram(&self.wake_seconds));
        let help = "Clients whose credentials were wrong";
        name("authentication_failures", help, AnyMetric::Counters(&self.authentication_failures));
        let help = "Clients that waited because of wrong credentials before theirs";
        name("authentication_waits", help, AnyMetric::Counters(&self.authentication_waits));
        name("bytes_in", "Bytes from clients", AnyMetric::Counters(&self.bytes_in));
        name("bytes_out", "Bytes to clients", AnyMetric::Counters(&self.bytes_out));
        name("refusals", "Connections that were not taken", AnyMetric::Reasons(&self.refusals));
        let help = "Whether the cell's metadata can be read";
        name("metadata_readable", help, AnyMetric::Gauge(&self.metadata_readable));
        let help = "Ports that are listened on without TLS";
        name("plain_listeners", help, AnyMetric::Gauge(&self.plain_listeners));
    }

    /// Notes a wake request.
    pub(super) fn wake_requested(&self, cluster: &str) {
        self.wakes.get_or_create(&cluster_label(cluster)).inc();
    }

    /// Notes how long a client was held until its broker was reached.
    pub(super) fn held(&self, time: Duration) {
        self.wake_seconds.observe(time.as_secs_f64());
    }

    /// Notes a client whose credentials were wrong.
    pub(super) fn authentication_failed(&self, cluster: &str) {
        self.authentication_failures.get_or_create(&cluster_label(cluster)).inc();
    }

    /// Notes a client that has to wait because of wrong credentials before its own.
    pub(super) fn authentication_waits(&self, cluster: &str) {
        self.authentication_waits.get_or_create(&cluster_label(cluster)).inc();
    }

    /// Notes a connection that was not taken.
    pub(super) fn refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// The counters of a cluster's bytes.
    pub(super) fn traffic(&self, cluster: &str) -> Traffic {
        let label = cluster_label(cluster);
        Traffic {
            bytes_in: self.bytes_in.get_or_create_owned(&label),
            bytes_out: self.bytes_out.get_or_create_owned(&label),
        }
    }

    /// Stops reporting a cluster that is gone.
    pub(super) fn forget(&self, cluster: &str) {
        let label = cluster_label(cluster);
        self.connections.remove(&label);
        for family in [
            &self.wakes,
            &self.authentication_failures,
            &self.authentication_waits,
            &self.bytes_in,
            &self.bytes_out,
        ] {
            family.remove(&label);
        }
    }

    fn render(&self, gate: &Gate) -> String {
        let count = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        self.unauthenticated.set(count(gate.unauthenticated()));
        // Clusters without connections are not shown.
        self.connections.clear();
        for (cluster, open) in gate.by_cluster() {
            self.connections.get_or_create(&cluster_label(&cluster)).set(count(open));
        }
        let mut text = String::with_capacity(8 << 10);
        encode(&mut text, &self.registry.lock()).expect("text takes text");
        text
    }
}

/// A metric of any kind.
enum AnyMetric<'a> {
    Gauge(&'a Gauge),
    Gauges(&'a ByCluster<Gauge>),
    Counters(&'a ByCluster<Counter>),
    Reasons(&'a Family<ReasonLabel, Counter>),
    Histogram(&'a Histogram),
}

fn cluster_label(cluster: &str) -> ClusterLabel {
    ClusterLabel { cluster: cluster.to_owned() }
}

/// The metrics and the health of a gateway. It is healthy for as long as it runs: it serves what it
/// knows also where the metadata store cannot be read.
pub(super) struct GatewayFigures {
    pub metrics: Arc<GatewayMetrics>,
    pub gate: Arc<Gate>,
}

impl Exposed for GatewayFigures {
    fn metrics(&self) -> String {
        self.metrics.render(&self.gate)
    }

    fn health(&self) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::GatewaySettings;
    use super::*;

    #[test]
    fn what_was_counted_is_rendered_until_the_cluster_is_gone() {
        let metrics = Arc::new(GatewayMetrics::default());
        metrics.wake_requested("cl_1");
        metrics.held(Duration::from_millis(30));
        metrics.authentication_failed("cl_1");
        metrics.authentication_waits("cl_1");
        metrics.refused("rate");
        metrics.traffic("cl_1").bytes_in.inc_by(7);
        metrics.metadata_readable.set(1);
        let gate = Gate::new(GatewaySettings::default().gate());
        let figures = GatewayFigures { metrics: Arc::clone(&metrics), gate };
        let text = figures.metrics();
        for line in [
            r#"freshet_gateway_wakes_total{cluster="cl_1"} 1"#,
            "freshet_gateway_wake_seconds_count 1",
            r#"freshet_gateway_authentication_failures_total{cluster="cl_1"} 1"#,
            r#"freshet_gateway_authentication_waits_total{cluster="cl_1"} 1"#,
            r#"freshet_gateway_refusals_total{reason="rate"} 1"#,
            r#"freshet_gateway_bytes_in_total{cluster="cl_1"} 7"#,
            "freshet_gateway_metadata_readable 1",
            "freshet_gateway_unauthenticated_connections 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        metrics.forget("cl_1");
        assert!(!figures.metrics().contains("cl_1"));
        assert_eq!(figures.health(), Ok(()));
    }
}
