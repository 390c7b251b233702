//! Waiting for asynchronous work from Python: the interpreter's lock is released meanwhile, and
//! Python's signal handlers run, so that Ctrl-C ends the wait.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// How often a wait lets Python's signal handlers run.
const SIGNAL_CHECK: Duration = Duration::from_millis(100);

/// Begins a future and runs it to its end on this thread; drops it where a signal handler raises.
pub(super) fn wait<T: Send, F: Future<Output = PyResult<T>>>(
    python: Python<'_>,
    runtime: &Runtime,
    begin: impl FnOnce() -> F + Send,
) -> PyResult<T> {
    python.detach(|| {
        let mut work = pin!(begin());
        loop {
            let slice = async { timeout(SIGNAL_CHECK, &mut work).await };
            match runtime.block_on(slice) {
                Ok(outcome) => return outcome,
                Err(_) => let_signals_run()?,
            }
        }
    })
}

#[expect(clippy::redundant_closure_for_method_calls, reason = "the method is of one lifetime only")]
fn let_signals_run() -> PyResult<()> {
    Python::attach(|python| python.check_signals())
}
