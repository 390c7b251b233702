//! A gateway in this process, for Python.

use parking_lot::Mutex;
use pyo3::prelude::*;

use super::errors::raised;
use super::{ConfigError, StartError, StoppedError, seconds};
use freshet_gateway::{GatewayProcess as Process, GatewaySettings};
use freshet_process::settings::ProcessSettings;

/// Every setting of a gateway with its default, as TOML.
#[pyfunction]
pub(super) fn default_gateway_settings() -> String {
    GatewaySettings::default().to_toml()
}

/// Settings of a gateway with their overrides and defaults filled in, as TOML.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands lists over")]
pub(super) fn resolve_gateway_settings(settings: &str, overrides: Vec<String>) -> PyResult<String> {
    GatewaySettings::from_toml(settings, &overrides).map(|it| it.to_toml()).map_err(raised)
}

/// A gateway in this process.
#[pyclass(module = "brokers._core", frozen)]
pub(super) struct GatewayProcess {
    settings: GatewaySettings,
    running: Mutex<Option<Process>>,
}

impl GatewayProcess {
    fn with_running<T>(&self, ask: impl FnOnce(&Process) -> T) -> PyResult<T> {
        let running = self.running.lock();
        running.as_ref().map(ask).ok_or_else(|| StoppedError::new_err("the gateway does not run"))
    }
}

#[pymethods]
impl GatewayProcess {
    /// Creates a gateway with these settings, which does not run yet.
    #[new]
    fn new(settings: &str) -> PyResult<Self> {
        let settings = GatewaySettings::from_toml(settings, &[]).map_err(raised)?;
        Ok(Self { settings, running: Mutex::new(None) })
    }

    /// Starts it, and logging. It serves clients when this returns.
    fn start(&self, python: Python<'_>) -> PyResult<()> {
        python.detach(|| {
            let mut running = self.running.lock();
            if running.is_some() {
                return Err(StartError::new_err("the gateway runs already"));
            }
            freshet_process::start_logs(&self.settings.log)
                .map_err(|error| ConfigError::new_err(format!("log.level: {error}")))?;
            *running = Some(Process::start(&self.settings).map_err(raised)?);
            Ok(())
        })
    }

    /// How many ports it listens on without TLS.
    #[getter]
    fn plain_listeners(&self, python: Python<'_>) -> PyResult<usize> {
        python.detach(|| self.with_running(Process::plain_listeners))
    }

    /// `host:port` of the listener with TLS; None where there is none.
    #[getter]
    fn tls_address(&self, python: Python<'_>) -> PyResult<Option<String>> {
        python.detach(|| self.with_running(|process| process.tls_address().map(str::to_owned)))
    }

    /// `host:port` of `/metrics` and `/healthz`; none where they are off.
    #[getter]
    fn metrics_address(&self, python: Python<'_>) -> PyResult<Option<String>> {
        python.detach(|| self.with_running(|process| process.metrics_address().map(str::to_owned)))
    }

    /// Accepts no more connections, waits until the present ones are idle, and drops the rest after
    /// `timeout_s`. Does nothing where it does not run.
    #[pyo3(signature = (timeout_s = 30.0))]
    fn stop(&self, python: Python<'_>, timeout_s: f64) {
        python.detach(|| {
            let process = self.running.lock().take();
            if let Some(process) = process {
                process.stop(seconds(timeout_s));
            }
        });
    }
}
