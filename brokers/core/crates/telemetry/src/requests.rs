//! Metrics of requests, after Kafka's `RequestMetrics`.
//!
//! The parts of a request's time, in order, are those of Kafka: it waits until it may begin
//! (queue), keeps a thread busy (local), waits for others, as for a disk or for records (remote),
//! its answer waits for earlier ones (response queue) and is sent. Together they are the total.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::labels::{ErrorLabel, Histograms, RequestLabel, coarse_latency, latency};

/// Numbers of APIs in Kafka are below this.
const APIS_MAX: usize = 128;

/// A part of a request's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Queue,
    Local,
    Remote,
    ResponseQueue,
    Send,
}

impl Part {
    const ALL: [Self; 5] =
        [Self::Queue, Self::Local, Self::Remote, Self::ResponseQueue, Self::Send];

    /// The part of its metric's name that is its own, and its help text.
    fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Queue => ("requestqueuetime", "From a whole request until it may begin"),
            Self::Local => ("localtime", "What a request keeps a thread busy"),
            Self::Remote => ("remotetime", "What a request waits for disks, stores and records"),
            Self::ResponseQueue => ("responsequeuetime", "What an answer waits for earlier ones"),
            Self::Send => ("responsesendtime", "Until all of an answer was handed to the socket"),
        }
    }
}

/// Metrics of one API.
#[derive(Debug)]
pub struct ApiMetrics {
    requests: Counter,
    request_bytes: Counter,
    total: Histogram,
    parts: [Histogram; 5],
}

impl ApiMetrics {
    fn took(&self, part: Part, time: Duration) {
        self.parts[part as usize].observe(time.as_secs_f64());
    }
}

/// Follows one request to the end of its answer.
#[derive(Debug)]
pub struct RequestTimer {
    api: Arc<ApiMetrics>,
    arrived: Instant,
    /// The end of the last part: when its answer was ready, then when the answer's turn came.
    reached: Instant,
}

impl RequestTimer {
    /// Notes that the answer is ready. The request had waited for `queued` before it began, and
    /// kept a thread busy for `local`.
    pub fn answered(&mut self, queued: Duration, local: Duration) {
        let now = Instant::now();
        let remote = now.duration_since(self.arrived).saturating_sub(queued + local);
        self.api.took(Part::Queue, queued);
        self.api.took(Part::Local, local);
        self.api.took(Part::Remote, remote);
        self.reached = now;
    }

    /// Notes that no earlier answer is left to be sent.
    pub fn turn_came(&mut self) {
        let now = Instant::now();
        self.api.took(Part::ResponseQueue, now.duration_since(self.reached));
        self.reached = now;
    }

    /// Notes that all of the answer was handed to the socket.
    pub fn sent(self) {
        let now = Instant::now();
        self.api.took(Part::Send, now.duration_since(self.reached));
        self.api.total.observe(now.duration_since(self.arrived).as_secs_f64());
    }
}

/// Metrics of all APIs.
pub struct RequestMetrics {
    requests: Family<RequestLabel, Counter>,
    request_bytes: Family<RequestLabel, Counter>,
    totals: Histograms<RequestLabel>,
    parts: [Histograms<RequestLabel>; 5],
    errors: Family<ErrorLabel, Counter>,
    /// Metrics by Kafka's number of the API; made when a request of the API first arrives.
    apis: [OnceLock<Arc<ApiMetrics>>; APIS_MAX],
}

impl RequestMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (requests, request_bytes, errors) =
            (Family::default(), Family::default(), Family::default());
        let named = |name: &str| format!("kafka_network_requestmetrics_{name}");
        registry.register(named("requests"), "Requests", requests.clone());
        registry.register(named("requestbytes"), "Bytes of requests", request_bytes.clone());
        let help = "Errors in answers to Produce and Fetch by Kafka's name";
        registry.register(named("errors"), help, errors.clone());
        let totals = Histograms::new_with_constructor(latency as fn() -> Histogram);
        let help = "From a whole request until all of its answer was handed to the socket";
        registry.register(named("totaltime_seconds"), help, totals.clone());
        let parts = Part::ALL.map(|part| {
            let (name, help) = part.described();
            let times = Histograms::new_with_constructor(coarse_latency as fn() -> Histogram);
            registry.register(named(&format!("{name}_seconds")), help, times.clone());
            times
        });
        let apis = [const { OnceLock::new() }; APIS_MAX];
        Self { requests, request_bytes, totals, parts, errors, apis }
    }

    fn api(&self, api: ApiKey) -> &Arc<ApiMetrics> {
        let number = usize::try_from(api as i16).expect("numbers of APIs count from 0");
        self.apis[number].get_or_init(|| {
            let label = RequestLabel { request: format!("{api:?}") };
            Arc::new(ApiMetrics {
                requests: self.requests.get_or_create_owned(&label),
                request_bytes: self.request_bytes.get_or_create_owned(&label),
                total: self.totals.get_or_create_owned(&label),
                parts: self.parts.each_ref().map(|times| times.get_or_create_owned(&label)),
            })
        })
    }

    /// Notes that a whole request of so many bytes has arrived.
    pub fn arrived(&self, api: ApiKey, bytes: usize) -> RequestTimer {
        let api = self.api(api);
        api.requests.inc();
        api.request_bytes.inc_by(bytes as u64);
        let now = Instant::now();
        RequestTimer { api: Arc::clone(api), arrived: now, reached: now }
    }

    /// Counts the errors among the codes of an answer; returns how many there are.
    pub fn failed(&self, api: ApiKey, codes: impl Iterator<Item = i16>) -> u64 {
        let mut failed = 0;
        for code in codes.filter(|code| *code != 0) {
            failed += 1;
            let error = ResponseError::try_from_code(code)
                .map_or_else(|| code.to_string(), |error| kafka_name(&format!("{error:?}")));
            let label = ErrorLabel { request: format!("{api:?}"), error };
            self.errors.get_or_create(&label).inc();
        }
        failed
    }
}

/// `NOT_LEADER_OR_FOLLOWER` for `NotLeaderOrFollower`.
fn kafka_name(name: &str) -> String {
    let mut written = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !written.is_empty() {
            written.push('_');
        }
        written.push(letter.to_ascii_uppercase());
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;
    use super::*;

    #[test]
    fn errors_have_the_names_that_kafka_gives_them() {
        let metrics = Metrics::new();
        let codes = [0, ResponseError::NotLeaderOrFollower.code(), 0, 3];
        assert_eq!(metrics.requests.failed(ApiKey::Produce, codes.into_iter()), 2);
        let text = metrics.render();
        let metric = "kafka_network_requestmetrics_errors_total";
        for error in ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"] {
            let line = format!(r#"{metric}{{request="Produce",error="{error}"}} 1"#);
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_parts_of_a_requests_time_are_its_total() {
        let metrics = Metrics::new();
        let mut timer = metrics.requests.arrived(ApiKey::Produce, 100);
        let pass = |ms| tokio::time::advance(Duration::from_millis(ms));
        pass(1 + 2 + 4).await;
        timer.answered(Duration::from_millis(1), Duration::from_millis(2));
        pass(8).await;
        timer.turn_came();
        pass(16).await;
        timer.sent();
        let text = metrics.render();
        for (name, sum) in [
            ("requestqueuetime", "0.001"),
            ("localtime", "0.002"),
            ("remotetime", "0.004"),
            ("responsequeuetime", "0.008"),
            ("responsesendtime", "0.016"),
            ("totaltime", "0.031"),
        ] {
            let metric = format!("kafka_network_requestmetrics_{name}_seconds_sum");
            let line = format!(r#"{metric}{{request="Produce"}} {sum}"#);
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        let bytes = r#"kafka_network_requestmetrics_requestbytes_total{request="Produce"} 100"#;
        assert!(text.contains(bytes));
    }
}
