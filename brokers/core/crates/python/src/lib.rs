//! The only binding to Python: the module `brokers._core`. No other crate knows Python.
//!
//! Every function that waits releases the interpreter's lock.

// `#[pymodule]` makes items that cannot carry documentation of their own.
#![allow(missing_docs)]

#[cfg(all(feature = "sim", not(debug_assertions)))]
compile_error!("what `sim` brings is not for releases: build without it");

use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use freshet_inspect::inspect::{InspectOptions, inspect as inspect_storage};
use freshet_process::settings::{ProcessSettings, Settings};
use freshet_process::{BrokerProcess as Process, open_metadata, real_environment, wait_ended};
use freshet_wire::ids::Incarnation;
use freshet_world::env::real::is_remote as is_remote_folder;
use freshet_world::kinds::ErrorKind;

mod errors;
mod gateway;
mod kafka;
mod metadata;
mod usage;
mod waiting;

use errors::raised;
use gateway::{GatewayProcess, default_gateway_settings, resolve_gateway_settings};
use kafka::{KafkaBatch, KafkaClient, KafkaPartition};
use metadata::{ClusterMetadata, Metadata};
use usage::UsageReader;

create_exception!(brokers._core, BrokerError, PyException, "Something about a broker failed.");
create_exception!(brokers._core, ConfigError, BrokerError, "Settings that make no sense.");
create_exception!(brokers._core, StorageError, BrokerError, "Storage that cannot be used.");
create_exception!(brokers._core, StartError, BrokerError, "A broker that did not start.");
create_exception!(brokers._core, StoppedError, BrokerError, "A broker that does not run.");

create_exception!(brokers._core, KafkaError, BrokerError, "A call to a cluster's brokers failed.");

create_exception!(brokers._core, MetadataError, BrokerError, "A call on metadata failed.");
create_exception!(brokers._core, NotFoundError, MetadataError, "It does not exist.");
create_exception!(brokers._core, ExistsError, MetadataError, "It exists already.");
create_exception!(brokers._core, ConflictError, MetadataError, "Somebody else was faster.");
create_exception!(brokers._core, InvalidError, MetadataError, "It cannot be.");
create_exception!(brokers._core, LimitReachedError, MetadataError, "There is no room for it.");
create_exception!(brokers._core, TooLargeError, MetadataError, "It is too large.");
create_exception!(brokers._core, UnavailableError, MetadataError, "Nothing happened; try again.");
create_exception!(brokers._core, UnknownOutcomeError, MetadataError, "It may have happened.");
create_exception!(brokers._core, CompactedError, MetadataError, "The history is shorter.");
create_exception!(brokers._core, CorruptError, MetadataError, "What is stored makes no sense.");

/// Sets the class attributes of the exceptions, which hold where an exception has none of its own:
/// the kind of the error, the field that is wrong, and what its catcher should do.
fn describe_errors(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (name, kind) in [
        ("MetadataError", "metadata"),
        ("NotFoundError", "not_found"),
        ("ExistsError", "exists"),
        ("ConflictError", "conflict"),
        ("InvalidError", "invalid"),
        ("LimitReachedError", "limit_reached"),
        ("TooLargeError", "too_large"),
        ("UnavailableError", "unavailable"),
        ("UnknownOutcomeError", "unknown"),
        ("CompactedError", "compacted"),
        ("CorruptError", "corrupt"),
    ] {
        module.getattr(name)?.setattr("kind", kind)?;
    }
    module.getattr("BrokerError")?.setattr("action", ErrorKind::Report.name())?;
    module.getattr("ConfigError")?.setattr("action", ErrorKind::Correct.name())?;
    module.getattr("StoppedError")?.setattr("action", ErrorKind::Stop.name())?;
    module.getattr("MetadataError")?.setattr("field", module.py().None())?;
    module.getattr("KafkaError")?.setattr("kind", "undecodable")?;
    module.getattr("KafkaError")?.setattr("name", module.py().None())
}

/// The longest wait. A longer one counts as a wait without end.
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(WAIT_MAX).min(WAIT_MAX)
}

/// The broker's version.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Every setting with its default, as TOML.
#[pyfunction]
fn default_settings() -> String {
    Settings::default().to_toml()
}

/// Settings with their overrides and defaults filled in, as TOML.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands lists over")]
fn resolve_settings(settings: &str, overrides: Vec<String>) -> PyResult<String> {
    Settings::from_toml(settings, &overrides).map(|it| it.to_toml()).map_err(raised)
}

/// Starts logging to standard error, as the settings say. Only the first call in a process has an
/// effect.
#[pyfunction]
fn start_logs(settings: &str) -> PyResult<()> {
    let settings = Settings::from_toml(settings, &[]).map_err(raised)?;
    freshet_process::start_logs(&settings.log)
        .map_err(|error| ConfigError::new_err(format!("log.level: {error}")))
}

/// Describes what is on a cluster's storage, as JSON.
#[pyfunction]
#[pyo3(signature = (settings, *, verify = false, lane = None, topic = None))]
fn inspect(
    python: Python<'_>,
    settings: &str,
    verify: bool,
    lane: Option<u64>,
    topic: Option<String>,
) -> PyResult<String> {
    let settings = Settings::from_toml(settings, &[]).map_err(raised)?;
    let options = InspectOptions { verify, lane: lane.map(Incarnation), topic };
    python.detach(|| {
        let environment = real_environment(&settings).map_err(raised)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let report = runtime.block_on(async {
            let store = open_metadata(&settings).await.map_err(raised)?;
            let cluster = &settings.storage.cluster;
            inspect_storage(&environment, store, cluster, &options).await.map_err(raised)
        })?;
        Ok(serde_json::to_string(&report).expect("a report is a JSON object"))
    })
}

/// Whether the folder is on a network file system, whose files may change without this machine's
/// page cache noticing.
#[pyfunction]
fn is_remote(folder: &str) -> PyResult<bool> {
    Ok(is_remote_folder(Path::new(folder))?)
}

/// A broker in this process.
#[pyclass(module = "brokers._core", frozen)]
struct BrokerProcess {
    settings: Settings,
    running: Mutex<Option<Process>>,
}

impl BrokerProcess {
    fn with_running<T>(&self, ask: impl FnOnce(&Process) -> T) -> PyResult<T> {
        let running = self.running.lock();
        running.as_ref().map(ask).ok_or_else(|| StoppedError::new_err("the broker does not run"))
    }
}

#[pymethods]
impl BrokerProcess {
    /// Creates a broker with these settings, which does not run yet.
    #[new]
    fn new(settings: &str) -> PyResult<Self> {
        let settings = Settings::from_toml(settings, &[]).map_err(raised)?;
        Ok(Self { settings, running: Mutex::new(None) })
    }

    /// Starts it. It serves clients when this returns. When it is started again after it ended, it
    /// takes over from its earlier incarnation.
    fn start(&self, python: Python<'_>) -> PyResult<()> {
        python.detach(|| {
            let mut running = self.running.lock();
            if running.is_some() {
                return Err(StartError::new_err("the broker runs already"));
            }
            *running = Some(Process::start(&self.settings).map_err(raised)?);
            Ok(())
        })
    }

    /// `host:port` for Kafka clients.
    #[getter]
    fn bootstrap(&self, python: Python<'_>) -> PyResult<String> {
        python.detach(|| self.with_running(|process| process.bootstrap().to_owned()))
    }

    /// `host:port` of `/metrics` and `/healthz`; none where they are off.
    #[getter]
    fn metrics_address(&self, python: Python<'_>) -> PyResult<Option<String>> {
        python.detach(|| self.with_running(|process| process.metrics_address().map(str::to_owned)))
    }

    /// `host:port` for gateways; None where there is no such listener.
    #[getter]
    fn link_address(&self, python: Python<'_>) -> PyResult<Option<String>> {
        python.detach(|| self.with_running(|process| process.link_address().map(str::to_owned)))
    }

    /// The number of its incarnation.
    #[getter]
    fn incarnation(&self, python: Python<'_>) -> PyResult<u64> {
        python.detach(|| self.with_running(Process::incarnation))
    }

    /// Waits until the broker has stood down, and returns why; None after `timeout_s`.
    fn ended(&self, python: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        python.detach(|| {
            // The wait holds no lock, so that another thread can stop the broker.
            let liveness = self.with_running(Process::liveness)?;
            wait_ended(&liveness, seconds(timeout_s)).map_err(raised)
        })
    }

    /// Stops cleanly, and drops the rest after `timeout_s`. Does nothing where it does not run.
    #[pyo3(signature = (timeout_s = 30.0))]
    fn stop(&self, python: Python<'_>, timeout_s: f64) {
        python.detach(|| {
            let process = self.running.lock().take();
            if let Some(process) = process {
                process.stop(seconds(timeout_s));
            }
        });
    }

    /// Drops everything without a clean stop, as the death of the process would.
    fn kill(&self, python: Python<'_>) {
        python.detach(|| {
            let process = self.running.lock().take();
            if let Some(process) = process {
                process.kill();
            }
        });
    }
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::{
        BrokerError, BrokerProcess, ClusterMetadata, CompactedError, ConfigError, ConflictError,
        CorruptError, ExistsError, GatewayProcess, InvalidError, KafkaBatch, KafkaClient,
        KafkaError, KafkaPartition, LimitReachedError, Metadata, MetadataError, NotFoundError,
        StartError, StoppedError, StorageError, TooLargeError, UnavailableError,
        UnknownOutcomeError, UsageReader, default_gateway_settings, default_settings, inspect,
        is_remote, resolve_gateway_settings, resolve_settings, start_logs, version,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        super::describe_errors(module)
    }
}
