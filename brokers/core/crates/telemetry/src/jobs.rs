//! Metrics of joining, compaction and the check.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::JobLabel;

/// Metrics of one kind of job that reads and rewrites segments.
#[derive(Debug, Clone)]
pub struct RewriteMetrics {
    /// Partitions of which something was rewritten.
    pub runs: Counter,
    /// Bytes of segments that were read for that, each time they were.
    pub read_bytes: Counter,
    /// Bytes of record batches that were written for that.
    pub written_bytes: Counter,
}

/// Metrics of joining, compaction and the check.
#[derive(Debug, Clone)]
pub struct JobMetrics {
    /// Joining of small segments.
    pub join: RewriteMetrics,
    /// Compaction.
    pub compact: RewriteMetrics,
    /// The check, which only reads.
    pub check: RewriteMetrics,
    /// Records that compaction took out.
    pub dropped_records: Counter,
    /// Bytes that compaction may see and has not seen yet, by the last round.
    pub backlog_bytes: Gauge,
    /// Partitions whose share of such bytes is large enough for them to be compacted, by the last
    /// round.
    pub backlog_partitions: Gauge,
    /// The largest share of such bytes of any partition in percent, by the last round.
    pub dirty_percent_max: Gauge<f64, AtomicU64>,
    /// Partitions that are not compacted because a segment of theirs is damaged.
    pub uncleanable_partitions: Gauge,
}

impl JobMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let mut family = |name: &str, help: &str| {
            let family = Family::<JobLabel, Counter>::default();
            registry.register(name, help, family.clone());
            move |job| family.get_or_create_owned(&JobLabel { job })
        };
        let runs = family(
            "freshet_rewrites",
            "Partitions of which segments were rewritten, by `join` and `compact`",
        );
        let read = family(
            "freshet_rewrite_read_bytes",
            "Bytes read to rewrite segments, or by `check` only to read records",
        );
        let written =
            family("freshet_rewrite_written_bytes", "Bytes of record batches written anew");
        let of = |job| RewriteMetrics {
            runs: runs(job),
            read_bytes: read(job),
            written_bytes: written(job),
        };
        let metrics = Self {
            join: of("join"),
            compact: of("compact"),
            check: of("check"),
            dropped_records: Counter::default(),
            backlog_bytes: Gauge::default(),
            backlog_partitions: Gauge::default(),
            dirty_percent_max: Gauge::default(),
            uncleanable_partitions: Gauge::default(),
        };
        metrics.register_compaction(registry);
        metrics
    }

    fn register_compaction(&self, registry: &mut Registry) {
        registry.register(
            "freshet_compaction_dropped_records",
            "Records that compaction took out",
            self.dropped_records.clone(),
        );
        registry.register(
            "freshet_compaction_backlog_bytes",
            "Bytes that compaction may see and has not seen yet",
            self.backlog_bytes.clone(),
        );
        registry.register(
            "freshet_compaction_backlog_partitions",
            "Partitions that are due to be compacted",
            self.backlog_partitions.clone(),
        );
        registry.register(
            "kafka_log_logcleanermanager_max_dirty_percent",
            "Largest share that compaction has not seen yet of what it may see of a partition",
            self.dirty_percent_max.clone(),
        );
        registry.register(
            "kafka_log_logcleanermanager_uncleanable_partitions_count",
            "Partitions that are neither joined nor compacted because a segment is damaged",
            self.uncleanable_partitions.clone(),
        );
    }
}
