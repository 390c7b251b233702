//! The metadata of a cell and its clusters for Python, with calls as JSON text.
//!
//! A call releases the interpreter's lock, and while it waits, Python's signal handlers run.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pyo3::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::timeout;

use super::errors::raised;
use super::seconds;
use super::waiting::wait;
use freshet_admin::calls::{call_cell, call_cluster, changes_text, kinds_of};
use freshet_admin::{AdminError, ClusterAdmin};
use freshet_configs::Overrides;
use freshet_etcd::location::open_store;
use freshet_metadata::MetadataStore;
use freshet_metadata::cell::{CellError, CellMetadata, CellWatch};
use freshet_metadata::store::MetadataError;
use freshet_world::env::real::{SystemClock, SystemRandomness};

/// The most threads for SQL. The store has one connection for reads and one for writes, so few are
/// enough.
const BLOCKING_THREADS_MAX: usize = 4;
/// The most watches that are kept between calls.
const WATCHES_MAX: usize = 8;

/// The key prefixes of a watch, and the revision that its next call goes on from.
type WatchPlace = (Vec<String>, u64);

struct Shared {
    runtime: Option<Runtime>,
    store: Arc<dyn MetadataStore>,
    cell: CellMetadata,
    /// The watches that calls left open, by where their next call goes on.
    watches: Mutex<BTreeMap<WatchPlace, CellWatch>>,
    interrupted: watch::Sender<u64>,
}

impl Shared {
    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken when this is dropped")
    }

    /// Runs a call to its end; returns `None` after its timeout.
    fn run<T: Send>(
        &self,
        python: Python<'_>,
        limit: Option<Duration>,
        call: impl Future<Output = Result<T, AdminError>> + Send,
    ) -> PyResult<Option<T>> {
        let work = async move {
            let outcome = match limit {
                Some(limit) => timeout(limit, call).await.ok().transpose(),
                None => call.await.map(Some),
            };
            outcome.map_err(raised)
        };
        wait(python, self.runtime(), || work)
    }

    async fn watch(&self, prefixes: Vec<String>, after: u64) -> Result<String, AdminError> {
        let kinds = kinds_of(&prefixes)?;
        let place = (prefixes, after);
        let kept = self.watches.lock().remove(&place);
        let watch = match kept {
            Some(watch) => watch,
            None => self.cell.watch(&kinds, after).await?,
        };
        // `Kept` puts the watch back even where this call is dropped at its timeout.
        let mut kept = Kept { shared: self, place, watch: Some(watch) };
        let mut interrupted = self.interrupted.subscribe();
        let changes = tokio::select! {
            biased;
            _ = interrupted.changed() => return Ok("[]".to_owned()),
            changes = kept.next() => changes?,
        };
        Ok(changes_text(&changes))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // In the background, because the interpreter's lock is held here and must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A watch that a call uses. Dropping it keeps the watch for the next call.
struct Kept<'a> {
    shared: &'a Shared,
    place: WatchPlace,
    watch: Option<CellWatch>,
}

impl Kept<'_> {
    async fn next(&mut self) -> Result<Vec<freshet_metadata::cell::CellChange>, AdminError> {
        let watch = self.watch.as_mut().expect("it is taken at the end only");
        match watch.next().await {
            Ok(changes) => {
                self.place.1 = changes.last().map_or(self.place.1, |change| change.revision);
                Ok(changes)
            }
            Err(error) => {
                if !matches!(error, CellError::Store(MetadataError::Unavailable(_))) {
                    self.watch = None;
                }
                Err(error.into())
            }
        }
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let Some(watch) = self.watch.take() else { return };
        let mut watches = self.shared.watches.lock();
        watches.insert(std::mem::take(&mut self.place), watch);
        if watches.len() > WATCHES_MAX {
            watches.pop_first();
        }
    }
}

/// The metadata store of a cell.
#[pyclass(module = "brokers._core", frozen)]
pub struct Metadata {
    shared: Arc<Shared>,
}

#[pymethods]
impl Metadata {
    /// Opens the store at an address of etcd, or the one in a file, which is created where it does
    /// not exist.
    #[new]
    fn new(python: Python<'_>, location: &str) -> PyResult<Self> {
        python.detach(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .max_blocking_threads(BLOCKING_THREADS_MAX)
                .thread_name("freshet-metadata")
                .enable_all()
                .build()?;
            let store =
                runtime.block_on(open_store(location)).map_err(AdminError::from).map_err(raised)?;
            let cell = CellMetadata::new(Arc::clone(&store));
            let (watches, interrupted) = (Mutex::default(), watch::Sender::new(0));
            let shared = Shared { runtime: Some(runtime), store, cell, watches, interrupted };
            Ok(Self { shared: Arc::new(shared) })
        })
    }

    /// Executes a call on the records of the cell itself. The request and the answer are JSON.
    fn call(&self, python: Python<'_>, request: &str) -> PyResult<String> {
        let answer = self.shared.run(python, None, call_cell(&self.shared.cell, request))?;
        Ok(answer.expect("a call without a limit has an answer"))
    }

    /// Waits for changes of the cell's records after a revision; returns None after `timeout_s`.
    fn watch(
        &self,
        python: Python<'_>,
        prefixes: Vec<String>,
        after_revision: u64,
        timeout_s: f64,
    ) -> PyResult<String> {
        let watch = self.shared.watch(prefixes, after_revision);
        let changes = self.shared.run(python, Some(seconds(timeout_s)), watch)?;
        Ok(changes.unwrap_or_else(|| "[]".to_owned()))
    }

    /// Ends the waiting of other threads in `watch`.
    fn interrupt(&self) {
        self.shared.interrupted.send_modify(|count| *count += 1);
    }

    /// The metadata of a cluster. `broker_configs` are the static configs of its brokers.
    fn cluster(
        &self,
        cluster: &str,
        broker_configs: BTreeMap<String, String>,
    ) -> PyResult<ClusterMetadata> {
        let store = Arc::clone(&self.shared.store);
        let randomness = Arc::new(SystemRandomness::open()?);
        let configs: Overrides = broker_configs;
        let clock = Arc::new(SystemClock);
        let admin =
            ClusterAdmin::new(store, cluster, configs, clock, randomness).map_err(raised)?;
        Ok(ClusterMetadata { shared: Arc::clone(&self.shared), admin })
    }
}

/// The metadata of a cluster.
#[pyclass(module = "brokers._core", frozen)]
pub struct ClusterMetadata {
    shared: Arc<Shared>,
    admin: ClusterAdmin,
}

#[pymethods]
impl ClusterMetadata {
    /// Executes a call. The request and the answer are JSON. Returns None after `timeout_s`.
    #[pyo3(signature = (request, timeout_s = None))]
    fn call(
        &self,
        python: Python<'_>,
        request: &str,
        timeout_s: Option<f64>,
    ) -> PyResult<Option<String>> {
        let limit = timeout_s.map(seconds);
        self.shared.run(python, limit, call_cluster(&self.admin, request))
    }
}
