//! Labels of metrics, and the buckets of histograms.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TopicLabel {
    pub(super) topic: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabel {
    pub(super) request: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ErrorLabel {
    pub(super) request: String,
    pub(super) error: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabel {
    pub(super) kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct JobLabel {
    pub(super) job: &'static str,
}

/// A group's state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StateLabel {
    /// Kafka's name of it.
    pub state: &'static str,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PartitionLabels {
    /// The topic's name.
    pub topic: String,
    /// The partition's index.
    pub partition: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StageLabel {
    pub(super) stage: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct SourceLabel {
    pub(super) source: &'static str,
}

pub(super) type Histograms<Label> = Family<Label, Histogram, fn() -> Histogram>;

/// From 50 µs, doubling, to 26 s.
pub(super) fn latency() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 2.0, 20))
}

/// From 100 µs, in steps of four, to 26 s: for the parts of a request's time.
pub(super) fn coarse_latency() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 4.0, 10))
}
