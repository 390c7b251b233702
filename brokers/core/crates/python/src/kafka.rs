//! The service's own Kafka client, for Python. `provisioning.kafka` wraps it.
//!
//! All clients of a process share one runtime and one budget of memory. A call runs on the thread
//! that makes it, with the interpreter's lock released, and ends by its time limit.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::errors::raised;
use super::waiting::wait;
use super::{ConfigError, seconds};
use freshet_access::sasl::Mechanism;
use freshet_client::{
    AclQuery, Batch, BindingCodes, ClientError, ClusterClient, CommittedOffset, DescribedGroup,
    DescribedMember, FetchLimits, FetchedPartition, ListedGroup, Login, Memory, NewRecord,
    OffsetSpec, OpenBatch, Place, Record,
};
use freshet_world::env::background::{ComputeThreads, thread_cpu_time};
use freshet_world::env::real::{SystemClock, SystemRandomness, Tcp};
use freshet_world::env::{Clock, Randomness};

/// The runtime of all clients, by the process that started it: after a fork the child starts one of
/// its own, since it has none of the threads.
static RUNTIME: Mutex<Option<(u32, Arc<ClientRuntime>)>> = Mutex::new(None);

/// How many batches are decoded at a time.
const DECODED_AT_ONCE: usize = 8;

/// What carries the calls of all clients.
struct ClientRuntime {
    calls: Runtime,
    /// Decode batches, with a lower priority than threads that serve requests.
    decoders: ComputeThreads,
}

fn runtime() -> PyResult<Arc<ClientRuntime>> {
    let mut started = RUNTIME.lock();
    let process = std::process::id();
    if let Some((_, runtime)) = started.as_ref().filter(|(of, _)| *of == process) {
        return Ok(Arc::clone(runtime));
    }
    let calls = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("kafka-client")
        .enable_all()
        .build()?;
    let decoders = {
        let _entered = calls.enter();
        ComputeThreads::new("kafka-decoder", DECODED_AT_ONCE)?
    };
    let runtime = Arc::new(ClientRuntime { calls, decoders });
    if let Some((_, inherited)) = started.replace((process, Arc::clone(&runtime))) {
        // Its threads are the parent's: to end it would wait for them.
        std::mem::forget(inherited);
    }
    Ok(runtime)
}

/// What all clients of the process may hold in memory.
fn memory() -> &'static Memory {
    static MEMORY: OnceLock<Memory> = OnceLock::new();
    MEMORY.get_or_init(Memory::default)
}

/// An ACL: type, name and pattern of the resource, principal, host, operation, permission.
type AclCodes = (i8, String, i8, String, String, i8, i8);
/// Offsets by topic and number of a partition.
type PlaceOffsets = BTreeMap<Place, i64>;

/// The brokers of one cluster.
#[pyclass(module = "brokers._core", frozen)]
pub(super) struct KafkaClient {
    runtime: Arc<ClientRuntime>,
    client: Arc<ClusterClient>,
    randomness: Arc<SystemRandomness>,
    /// The process that made it.
    process: u32,
}

impl KafkaClient {
    fn run<T: Send, F: Future<Output = Result<T, ClientError>>>(
        &self,
        python: Python<'_>,
        timeout_s: f64,
        call: impl FnOnce(Instant) -> F + Send,
    ) -> PyResult<T> {
        let deadline = Instant::now() + seconds(timeout_s);
        wait(python, &self.runtime.calls, || async move { call(deadline).await.map_err(raised) })
    }
}

impl Drop for KafkaClient {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // To close a connection in a forked child would take it from the parent's poll.
            std::mem::forget(Arc::clone(&self.client));
        }
    }
}

#[pymethods]
impl KafkaClient {
    /// A client of the brokers at these addresses. It connects when it is first used.
    #[new]
    #[pyo3(signature = (bootstrap, *, user, password, mechanism, client_id))]
    fn new(
        bootstrap: Vec<String>,
        user: String,
        password: String,
        mechanism: &str,
        client_id: String,
    ) -> PyResult<Self> {
        let mechanism: Mechanism =
            mechanism.parse().map_err(|error| ConfigError::new_err(format!("{error}")))?;
        let login = Login { user, password, mechanism, client_id };
        let randomness = Arc::new(SystemRandomness::open()?);
        let shared: Arc<dyn Randomness> = Arc::clone(&randomness) as _;
        let client = ClusterClient::new(bootstrap, login, memory(), Arc::new(Tcp), shared);
        let process = std::process::id();
        Ok(Self { runtime: runtime()?, client: Arc::new(client), randomness, process })
    }

    /// The same client, for whose calls this principal pays.
    fn paid_by(&self, payer: &str) -> Self {
        Self {
            runtime: Arc::clone(&self.runtime),
            client: Arc::new(self.client.paid_by(payer)),
            randomness: Arc::clone(&self.randomness),
            process: self.process,
        }
    }

    /// How many connections wait for a request.
    #[getter]
    fn idle_connections(&self) -> usize {
        self.client.idle_connections()
    }

    /// All groups: id, protocol type, state and type.
    fn list_groups(
        &self,
        python: Python<'_>,
        timeout_s: f64,
    ) -> PyResult<Vec<(String, String, String, String)>> {
        let groups = self.run(python, timeout_s, |deadline| self.client.list_groups(deadline))?;
        let fields = |it: ListedGroup| (it.group, it.protocol_type, it.state, it.kind);
        Ok(groups.into_iter().map(fields).collect())
    }

    /// Groups with their members, in the order of `names`.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands lists over")]
    fn describe_groups<'python>(
        &self,
        python: Python<'python>,
        names: Vec<String>,
        assigned_max: usize,
        timeout_s: f64,
    ) -> PyResult<Bound<'python, PyList>> {
        let groups = self.run(python, timeout_s, |deadline| {
            self.client.describe_groups(&names, assigned_max, deadline)
        })?;
        let groups = groups.iter().map(|group| group_dict(python, group));
        PyList::new(python, groups.collect::<PyResult<Vec<_>>>()?)
    }

    /// What groups committed, in the order of `names`.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands lists over")]
    fn committed_offsets(
        &self,
        python: Python<'_>,
        names: Vec<String>,
        timeout_s: f64,
    ) -> PyResult<Vec<Option<PlaceOffsets>>> {
        let groups = self
            .run(python, timeout_s, |deadline| self.client.committed_offsets(&names, deadline))?;
        let places = |offsets: Vec<CommittedOffset>| {
            offsets.into_iter().map(|it| ((it.topic, it.partition), it.offset)).collect()
        };
        Ok(groups.into_iter().map(|offsets| offsets.map(places)).collect())
    }

    /// Commits offsets of a group without members.
    fn commit_offsets(
        &self,
        python: Python<'_>,
        group: &str,
        offsets: PlaceOffsets,
        timeout_s: f64,
    ) -> PyResult<()> {
        let offsets: Vec<_> = offsets.into_iter().collect();
        self.run(python, timeout_s, |deadline| {
            self.client.commit_offsets(group, &offsets, deadline)
        })
    }

    /// Deletes a group with its committed offsets.
    fn delete_group(&self, python: Python<'_>, group: &str, timeout_s: f64) -> PyResult<()> {
        self.run(python, timeout_s, |deadline| self.client.delete_group(group, deadline))
    }

    /// The partitions of topics that exist; of all topics where none is named.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands lists over")]
    fn partitions(
        &self,
        python: Python<'_>,
        topics: Option<Vec<String>>,
        timeout_s: f64,
    ) -> PyResult<BTreeMap<String, Vec<i32>>> {
        self.run(python, timeout_s, |deadline| self.client.partitions(topics.as_deref(), deadline))
    }

    /// Offsets of partitions: of −1 the end, of −2 the beginning, of others that of a moment.
    fn list_offsets(
        &self,
        python: Python<'_>,
        specs: PlaceOffsets,
        timeout_s: f64,
    ) -> PyResult<BTreeMap<Place, Option<i64>>> {
        let spec = |value| match value {
            -1 => OffsetSpec::Latest,
            -2 => OffsetSpec::Earliest,
            moment_ms => OffsetSpec::At(moment_ms),
        };
        let specs = specs.into_iter().map(|(place, value)| (place, spec(value))).collect();
        self.run(python, timeout_s, |deadline| self.client.list_offsets(&specs, deadline))
    }

    /// Deletes records before offsets; returns where the partitions begin now.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands mappings over")]
    fn delete_records(
        &self,
        python: Python<'_>,
        before: PlaceOffsets,
        timeout_s: f64,
    ) -> PyResult<PlaceOffsets> {
        self.run(python, timeout_s, |deadline| self.client.delete_records(&before, deadline))
    }

    /// Fetches what partitions hold from offsets on.
    #[pyo3(signature = (
        positions, *, bytes_max, partition_bytes_max, wait_s, committed_only, timeout_s
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    #[expect(clippy::needless_pass_by_value, reason = "Python hands mappings over")]
    fn fetch(
        &self,
        python: Python<'_>,
        positions: PlaceOffsets,
        bytes_max: usize,
        partition_bytes_max: usize,
        wait_s: f64,
        committed_only: bool,
        timeout_s: f64,
    ) -> PyResult<Vec<KafkaPartition>> {
        let wait = seconds(wait_s);
        let limits = FetchLimits { bytes_max, partition_bytes_max, wait, committed_only };
        let fetched = self
            .run(python, timeout_s, |deadline| self.client.fetch(&positions, limits, deadline))?;
        let runtime = &self.runtime;
        let fetched = fetched.into_iter().map(|it| KafkaPartition::new(it, Arc::clone(runtime)));
        Ok(fetched.collect())
    }

    /// Produces one record; returns its partition, its offset and its moment.
    #[pyo3(signature = (topic, *, key, value, headers, partition, timeout_s))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn produce(
        &self,
        python: Python<'_>,
        topic: &str,
        key: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
        headers: Vec<(String, Option<Vec<u8>>)>,
        partition: Option<i32>,
        timeout_s: f64,
    ) -> PyResult<(i32, i64, i64)> {
        let (timestamp_ms, random) = (SystemClock.now_ms(), self.randomness.next_u64());
        let record = NewRecord { key, value, headers, partition, timestamp_ms, random };
        let produced =
            self.run(python, timeout_s, |deadline| self.client.produce(topic, &record, deadline))?;
        Ok((produced.partition, produced.offset, produced.timestamp_ms))
    }

    /// The ACLs of a principal, with Kafka's codes.
    fn acls(
        &self,
        python: Python<'_>,
        principal: String,
        timeout_s: f64,
    ) -> PyResult<Vec<AclCodes>> {
        let query = AclQuery { principal };
        let acls = self.run(python, timeout_s, |deadline| self.client.acls(&query, deadline))?;
        let fields = |it: BindingCodes| {
            let resource = (it.resource_type, it.resource_name, it.pattern_type);
            let (kind, name, pattern) = resource;
            (kind, name, pattern, it.principal, it.host, it.operation, it.permission)
        };
        Ok(acls.into_iter().map(fields).collect())
    }

    /// Whether a user has credentials.
    fn has_user(&self, python: Python<'_>, user: &str, timeout_s: f64) -> PyResult<bool> {
        self.run(python, timeout_s, |deadline| self.client.has_user(user, deadline))
    }
}

fn group_dict<'python>(
    python: Python<'python>,
    group: &DescribedGroup,
) -> PyResult<Bound<'python, PyDict>> {
    let dict = PyDict::new(python);
    let members = group.members.iter().map(|member| member_dict(python, member));
    dict.set_item("group", &group.group)?;
    dict.set_item("state", &group.state)?;
    dict.set_item("protocol_type", &group.protocol_type)?;
    dict.set_item("protocol", &group.protocol)?;
    dict.set_item("coordinator", group.coordinator)?;
    dict.set_item("fault", group.fault.as_deref())?;
    dict.set_item("members", members.collect::<PyResult<Vec<_>>>()?)?;
    Ok(dict)
}

fn member_dict<'python>(
    python: Python<'python>,
    member: &DescribedMember,
) -> PyResult<Bound<'python, PyDict>> {
    let dict = PyDict::new(python);
    dict.set_item("member_id", &member.member_id)?;
    dict.set_item("instance_id", member.instance_id.as_deref())?;
    dict.set_item("client_id", &member.client_id)?;
    dict.set_item("host", &member.host)?;
    dict.set_item("assignment", &member.assignment)?;
    dict.set_item("truncated", member.is_truncated)?;
    dict.set_item("undecodable", member.is_undecodable)?;
    Ok(dict)
}

/// What was fetched of a partition.
#[pyclass(module = "brokers._core", frozen)]
pub(super) struct KafkaPartition {
    /// The topic.
    #[pyo3(get)]
    topic: String,
    /// The partition's number.
    #[pyo3(get)]
    partition: i32,
    /// The offset of the next new record.
    #[pyo3(get)]
    end: i64,
    /// The first offset that is kept.
    #[pyo3(get)]
    start: i64,
    /// Whether the offset that was asked for lies outside of the log.
    #[pyo3(get)]
    out_of_range: bool,
    fetched: Mutex<FetchedPartition>,
    runtime: Arc<ClientRuntime>,
}

impl KafkaPartition {
    fn new(fetched: FetchedPartition, runtime: Arc<ClientRuntime>) -> Self {
        Self {
            topic: fetched.topic.clone(),
            partition: fetched.partition,
            end: fetched.end,
            start: fetched.start,
            out_of_range: fetched.is_out_of_range,
            fetched: Mutex::new(fetched),
            runtime,
        }
    }
}

#[pymethods]
impl KafkaPartition {
    /// The next batch that was fetched; None at the end.
    fn next_batch(&self) -> PyResult<Option<KafkaBatch>> {
        let batch = self.fetched.lock().next_batch().transpose().map_err(raised)?;
        Ok(batch.map(|batch| KafkaBatch::new(batch, Arc::clone(&self.runtime))))
    }
}

/// How far a batch has been read.
enum Reading {
    Closed(Box<Batch>),
    Open(Box<OpenBatch>),
    Done,
}

/// A batch.
#[pyclass(module = "brokers._core", frozen)]
pub(super) struct KafkaBatch {
    /// The offset of its first record.
    #[pyo3(get)]
    first_offset: i64,
    /// The offset behind its last record.
    #[pyo3(get)]
    next_offset: i64,
    /// How many records it holds.
    #[pyo3(get)]
    records: i32,
    /// The checksum of what follows it in the batch.
    #[pyo3(get)]
    crc: u32,
    /// The moment of its first record, or of its append, in Unix milliseconds.
    #[pyo3(get)]
    timestamp_ms: i64,
    /// Whether the moments of its records are that of the append.
    #[pyo3(get)]
    append_time: bool,
    /// Whether it holds a transaction's end instead of records.
    #[pyo3(get)]
    control: bool,
    reading: Mutex<Reading>,
    runtime: Arc<ClientRuntime>,
}

impl KafkaBatch {
    fn new(batch: Batch, runtime: Arc<ClientRuntime>) -> Self {
        let head = batch.head();
        Self {
            first_offset: head.first_offset,
            next_offset: head.next_offset,
            records: head.records,
            crc: head.crc,
            timestamp_ms: head.timestamp_ms,
            append_time: head.is_append_time,
            control: head.is_control,
            reading: Mutex::new(Reading::Closed(Box::new(batch))),
            runtime,
        }
    }
}

#[pymethods]
impl KafkaBatch {
    /// Decodes it, once, within a time limit. Returns why that cannot be, or None where it can, and
    /// the CPU seconds that it took.
    fn open(&self, python: Python<'_>, timeout_s: f64) -> PyResult<(Option<&'static str>, f64)> {
        let reading = std::mem::replace(&mut *self.reading.lock(), Reading::Done);
        let Reading::Closed(batch) = reading else {
            *self.reading.lock() = reading;
            return Ok((None, 0.0));
        };
        let calls = self.runtime.calls.handle().clone();
        let decode = move || {
            let began = thread_cpu_time();
            let opened = calls.block_on(batch.open(seconds(timeout_s)));
            (opened, thread_cpu_time().saturating_sub(began))
        };
        let decoding = self.runtime.decoders.run(decode);
        let (opened, took) = wait(python, &self.runtime.calls, || async move {
            decoding.await.map_err(|error| PyRuntimeError::new_err(error.to_string()))
        })?;
        let damage = match opened.map_err(raised)? {
            Ok(open) => {
                *self.reading.lock() = Reading::Open(Box::new(open));
                None
            }
            Err(damage) => Some(damage.name()),
        };
        Ok((damage, took.as_secs_f64()))
    }

    /// The next records from an offset on, in order. Of each key and value at most `shown_max`
    /// bytes are returned.
    fn take<'python>(
        &self,
        python: Python<'python>,
        from_offset: i64,
        count: usize,
        bytes_max: usize,
        shown_max: usize,
    ) -> PyResult<Bound<'python, PyList>> {
        let records = python.detach(|| match &mut *self.reading.lock() {
            Reading::Open(open) => open.take(from_offset, count, bytes_max),
            Reading::Closed(_) | Reading::Done => Ok(Vec::new()),
        });
        let records = records.map_err(raised)?;
        let records = records.iter().map(|record| record_tuple(python, record, shown_max));
        PyList::new(python, records.collect::<PyResult<Vec<_>>>()?)
    }
}

/// Offset, moment, key, its size, value, its size, headers (name, value, its size), size.
fn record_tuple<'python>(
    python: Python<'python>,
    record: &Record,
    shown_max: usize,
) -> PyResult<Bound<'python, PyTuple>> {
    let shown = |bytes: Option<&Bytes>| {
        let size = bytes.map_or(0, Bytes::len);
        (bytes.map(|bytes| PyBytes::new(python, &bytes[..size.min(shown_max)])), size)
    };
    let (key, key_size) = shown(record.key.as_ref());
    let (value, value_size) = shown(record.value.as_ref());
    let headers = record.headers.iter().map(|header| {
        let (value, size) = shown(header.value.as_ref());
        let name = &header.name[..header.name.len().min(shown_max)];
        (PyBytes::new(python, name), value, size)
    });
    let headers = PyList::new(python, headers.collect::<Vec<_>>())?;
    (record.offset, record.timestamp_ms, key, key_size, value, value_size, headers, record.size)
        .into_pyobject(python)
}
