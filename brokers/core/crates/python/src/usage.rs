//! The usage of clusters, for Python. Rows come as columns of bytes, so that Python does nothing
//! row by row.
//!
//! A call releases the interpreter's lock.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use tokio::runtime::Runtime;

use super::StorageError;
use super::errors::raised;
use freshet_inspect::usage_reader::{
    LaneReading, LaneRequest, PartitionSegments, UsageError, UsageReader as Reader,
};
use freshet_s3::open_world;
use freshet_storage::lane::LaneEnd;
use freshet_wire::ids::Incarnation;

/// The most threads for reading files.
const BLOCKING_THREADS_MAX: usize = 4;

/// A lane: its incarnation, the numbers of its indexes, the numbers of its files with records.
type LaneFacts = (u64, Vec<u64>, Vec<u64>);
/// A segment: its bytes, when it was written, its largest timestamp (both ms since 1970).
type SegmentFacts = (u64, i64, i64);
/// A segment that retention dropped: its bytes, when it was written, its largest timestamp, when it
/// was dropped (ms since 1970).
type DroppedFacts = (u64, i64, i64, i64);
/// Bytes that rewriting removed: how many, and the span in which they were stored (ms since 1970).
type ReplacedFacts = (u64, i64, i64);
/// What a partition held before: segments that retention dropped, bytes split by day, and bytes
/// that rewriting removed.
type PastFacts = (Vec<DroppedFacts>, Vec<(i64, u64)>, Vec<ReplacedFacts>);
/// A partition: topic id, index, name of its manifest, log start, covered end, segments, and what
/// it held before.
type PartitionFacts = (String, i32, String, i64, i64, Vec<SegmentFacts>, PastFacts);

/// Reads the usage of clusters. Python code uses it through `brokers.usage`.
#[pyclass(module = "brokers._core", frozen)]
pub(super) struct UsageReader {
    runtime: Option<Runtime>,
    reader: Reader,
}

impl UsageReader {
    fn run<T: Send>(
        &self,
        python: Python<'_>,
        call: impl Future<Output = Result<T, UsageError>> + Send,
    ) -> PyResult<T> {
        let runtime = self.runtime.as_ref().expect("it is taken when this is dropped");
        python.detach(|| runtime.block_on(call)).map_err(raised)
    }
}

impl Drop for UsageReader {
    fn drop(&mut self) {
        // In the background, because the interpreter's lock is held here and must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[pymethods]
impl UsageReader {
    /// Creates a reader of the clusters on this shared file system and in this object store, which
    /// is a folder or an address of S3.
    #[new]
    fn new(dfs: &str, bucket: &str) -> PyResult<Self> {
        let opened = |error: std::io::Error| StorageError::new_err(format!("{dfs}: {error}"));
        let environment = open_world(Path::new(dfs), bucket).map_err(opened)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("usage")
            .enable_all()
            .build()
            .map_err(opened)?;
        Ok(Self { runtime: Some(runtime), reader: Reader::new(&environment) })
    }

    /// The lanes of a cluster, each as (incarnation, numbers of indexes, numbers of files with
    /// records).
    fn lanes(&self, python: Python<'_>, cluster: &str) -> PyResult<Vec<LaneFacts>> {
        let lanes = self.run(python, self.reader.lanes(cluster))?;
        let facts = lanes.into_iter().map(|lane| (lane.incarnation.0, lane.indexes, lane.wals));
        Ok(facts.collect())
    }

    /// The rows of usage of a lane. `sealed_end` is the lane's end as (file, sequence).
    #[pyo3(signature = (
        cluster, incarnation, *, after_sequence = 0, after_file = 0, r#final = false,
        sealed_end = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn read_lane<'python>(
        &self,
        python: Python<'python>,
        cluster: &str,
        incarnation: u64,
        after_sequence: u64,
        after_file: u64,
        r#final: bool,
        sealed_end: Option<(u64, u64)>,
    ) -> PyResult<Bound<'python, PyDict>> {
        let request = LaneRequest {
            after_sequence,
            after_file,
            last_call: r#final,
            sealed_end: sealed_end.map(|(file, sequence)| LaneEnd { file, sequence }),
        };
        let reading = self.reader.read_lane(cluster, Incarnation(incarnation), request);
        to_python(python, &self.run(python, reading)?)
    }

    /// Removes indexes whose rows were recorded, and returns how many.
    fn drop_indexes(
        &self,
        python: Python<'_>,
        cluster: &str,
        incarnation: u64,
        below_file: u64,
    ) -> PyResult<u64> {
        self.run(python, self.reader.drop_indexes(cluster, Incarnation(incarnation), below_file))
    }

    /// Marks a lane as recorded completely, and returns whether it is marked now.
    fn mark_metered(&self, python: Python<'_>, cluster: &str, incarnation: u64) -> PyResult<bool> {
        self.run(python, self.reader.mark_metered(cluster, Incarnation(incarnation)))
    }

    /// The partitions whose manifest is another one than the known one, with what they hold.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands mappings over")]
    fn manifests(
        &self,
        python: Python<'_>,
        cluster: &str,
        known: BTreeMap<(String, i32), String>,
    ) -> PyResult<Vec<PartitionFacts>> {
        let partitions = self.run(python, self.reader.manifests(cluster, &known))?;
        Ok(partitions.into_iter().map(partition_facts).collect())
    }
}

fn partition_facts(partition: PartitionSegments) -> PartitionFacts {
    let segments = partition.segments.iter();
    let segments = segments.map(|kept| (kept.bytes, kept.written_at_ms, kept.max_timestamp));
    let dropped = partition
        .dropped
        .iter()
        .map(|gone| (gone.bytes, gone.written_at_ms, gone.max_timestamp, gone.dropped_at_ms));
    let replaced = partition.replaced.iter().map(|gone| (gone.bytes, gone.since_ms, gone.until_ms));
    let past =
        (dropped.collect(), partition.split_by_day.into_iter().collect(), replaced.collect());
    (
        partition.partition.topic.simple().to_string(),
        partition.partition.index,
        partition.name,
        partition.log_start,
        partition.covered_end,
        segments.collect(),
        past,
    )
}

fn to_python<'python>(
    python: Python<'python>,
    reading: &LaneReading,
) -> PyResult<Bound<'python, PyDict>> {
    let columns = &reading.columns;
    let dict = PyDict::new(python);
    for (name, column) in [
        ("file", &columns.file),
        ("sequence", &columns.sequence),
        ("written_at_ms", &columns.written_at_ms),
        ("topic", &columns.topic),
        ("partition", &columns.partition),
        ("principal", &columns.principal),
        ("meter", &columns.meter),
        ("quantity", &columns.quantity),
        ("cumulative", &columns.cumulative),
    ] {
        dict.set_item(name, PyBytes::new(python, column))?;
    }
    let topics = columns.topics.iter().map(|topic| topic.simple().to_string());
    let topics: Vec<String> = topics.collect();
    let principals: Vec<&str> = columns.principals.iter().map(AsRef::as_ref).collect();
    dict.set_item("rows", columns.rows)?;
    dict.set_item("topics", PyTuple::new(python, topics)?)?;
    dict.set_item("principals", PyTuple::new(python, principals)?)?;
    dict.set_item("last_sequence", reading.last_sequence)?;
    dict.set_item("last_file", reading.last_file)?;
    dict.set_item("covered_until_ms", reading.covered_until_ms)?;
    dict.set_item("ended", reading.ended)?;
    dict.set_item("more", reading.more)?;
    dict.set_item("unsplit_since_ms", reading.unsplit_since_ms)?;
    dict.set_item("gap", reading.gap)?;
    Ok(dict)
}
