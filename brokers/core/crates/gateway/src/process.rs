//! A gateway in a process: its runtime, its listeners, and the real network and files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

use super::listeners::{PlainListeners, serve_tls};
use super::metrics::GatewayFigures;
use super::settings::GatewaySettings;
use super::tls::{Certificate, Files, TlsError, ensure_authority};
use super::view::Names;
use super::{CellSecret, Gateway, World};
use freshet_etcd::location::open_store;
use freshet_metadata::MetadataError;
use freshet_metadata::cell::CellError;
use freshet_wire::text::split_address;
use freshet_world::env::background::ComputeThreads;
use freshet_world::env::files::{FileError, read_private};
use freshet_world::env::priority::serve_promptly;
use freshet_world::env::real::{SystemClock, SystemRandomness, Tcp};
use freshet_world::env::usage::bound_allocator;
use freshet_world::env::{Listener, Network};

/// How long tasks of a gateway that is dropped may still run.
const KILL_TIME: Duration = Duration::from_secs(2);
/// Threads for files, beyond those that serve.
const BLOCKING_THREADS_MAX: usize = 16;
/// An idle one of these ends after this long.
const BLOCKING_THREAD_TIME: Duration = Duration::from_secs(10);
/// After this many turns of connections a busy thread looks which sockets are ready. A turn
/// forwards up to some hundreds of kilobytes, so with the runtime's default of 61 turns a small
/// request would wait for milliseconds before its connection has a turn.
const TURNS_BETWEEN_LOOKS: u32 = 5;

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The machine refused a thread or a socket.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The metadata store cannot be opened or read.
    #[error("metadata store {path}: {error}")]
    Metadata {
        /// Its file or address.
        path: String,
        /// The store's error.
        error: CellError,
    },
    /// The file of the cell's secret cannot be read.
    #[error(transparent)]
    Secret(#[from] FileError),
    /// The file of the cell's secret holds something else.
    #[error("{0}: not a cell's secret, which is 64 hex digits")]
    NoSecret(String),
    /// There is no certificate with a key that can be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

fn system_error(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> GatewayError {
    let what = what.into();
    |error| GatewayError::System { what, error }
}

/// A gateway that runs.
pub struct GatewayProcess {
    runtime: Runtime,
    running: Running,
    drain_time: Duration,
}

impl GatewayProcess {
    /// Starts a gateway; it serves when this returns.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn start(settings: &GatewaySettings) -> Result<Self, GatewayError> {
        let threads = serving_threads(settings);
        bound_allocator(threads);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_keep_alive(BLOCKING_THREAD_TIME)
            .event_interval(TURNS_BETWEEN_LOOKS)
            .thread_name("freshet-gateway")
            .on_thread_start(serve_promptly)
            .enable_all()
            .build()
            .map_err(system_error("threads"))?;
        match runtime.block_on(Running::start(settings)) {
            Ok(running) => Ok(Self { runtime, running, drain_time: settings.drain_time() }),
            Err(error) => {
                runtime.shutdown_timeout(KILL_TIME);
                Err(error)
            }
        }
    }

    /// Ports that were listened on without TLS when it started.
    pub fn plain_listeners(&self) -> usize {
        self.running.plain_listeners
    }

    /// `host:port` of the listener with TLS, if there is one.
    pub fn tls_address(&self) -> Option<&str> {
        self.running.tls_address.as_deref()
    }

    /// `host:port` of `/metrics`, if it is served.
    pub fn metrics_address(&self) -> Option<&str> {
        self.running.metrics_address.as_deref()
    }

    /// Stops: takes no more connections, ends each when its requests were answered, and all after
    /// the settings' drain time, but within `limit`.
    pub fn stop(self, limit: Duration) {
        let Self { runtime, running, drain_time } = self;
        let Running { gateway, serving, .. } = running;
        runtime.block_on(async {
            drop(serving);
            gateway.drain(drain_time.min(limit)).await;
        });
        drop(gateway);
        runtime.shutdown_timeout(KILL_TIME);
    }
}

struct Running {
    gateway: Arc<Gateway>,
    /// The tasks that accept connections. They are dropped first, so that no connection arrives
    /// while the others end.
    serving: Vec<AbortOnDropHandle<()>>,
    _background: Vec<AbortOnDropHandle<()>>,
    plain_listeners: usize,
    tls_address: Option<String>,
    metrics_address: Option<String>,
}

impl Running {
    async fn start(settings: &GatewaySettings) -> Result<Self, GatewayError> {
        let listener = &settings.listener;
        let for_tls = listen_if_set(&listener.tls).await?;
        let for_metrics = listen_if_set(&listener.metrics).await?;
        let tls_port = for_tls.as_ref().map_or(0, |listener| listener.local_address().port());
        let names = Names {
            plain_host: listener.plain.clone(),
            domain: listener.domain.clone(),
            tls_port: if listener.tls_advertised_port == 0 {
                tls_port
            } else {
                listener.tls_advertised_port
            },
        };
        let (gateway, background) = open(settings, names).await?;
        let mut background = vec![spawn_work(background)];
        let mut serving = Vec::new();
        let tls_address = for_tls.as_ref().map(|_| with_port(&listener.tls, tls_port));
        if let Some(listener) = for_tls {
            let certificate = load_certificate(settings).await?;
            let acceptor = certificate.acceptor();
            serving.push(spawn_work(serve_tls(Arc::clone(&gateway), listener, acceptor)));
            let every = Duration::from_millis(settings.tls.reload_interval_ms);
            background.push(spawn_work(certificate.follow(every)));
        }
        let mut plain_listeners = 0;
        if !listener.plain.is_empty() {
            let listeners = PlainListeners::open(Arc::clone(&gateway)).await;
            plain_listeners = listeners.count();
            serving.push(spawn_work(listeners.follow()));
        }
        let metrics_address = for_metrics.as_ref().map(|at| at.local_address().to_string());
        if let Some(listener) = for_metrics {
            let (metrics, gate) = (Arc::clone(&gateway.metrics), Arc::clone(&gateway.gate));
            let figures = Arc::new(GatewayFigures { metrics, gate });
            background.push(spawn_work(freshet_telemetry::http::serve(listener, figures)));
        }
        Ok(Self {
            gateway,
            serving,
            _background: background,
            plain_listeners,
            tls_address,
            metrics_address,
        })
    }
}

fn spawn_work(work: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(work))
}

async fn open(
    settings: &GatewaySettings,
    names: Names,
) -> Result<(Arc<Gateway>, impl Future<Output = ()> + use<>), GatewayError> {
    let path = &settings.cell.secret;
    let secret = read_private(Path::new(path)).await?;
    let secret = String::from_utf8(secret).ok().and_then(|text| CellSecret::from_text(&text));
    let secret = secret.ok_or_else(|| GatewayError::NoSecret(path.clone()))?;
    let path = &settings.cell.metadata;
    let unreadable = |error: CellError| GatewayError::Metadata { path: path.clone(), error };
    let store = open_store(path).await;
    let store = store.map_err(|error: MetadataError| unreadable(error.into()))?;
    let world = World {
        store,
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness::open().map_err(system_error("randomness"))?),
        network: Arc::new(Tcp),
        compute: ComputeThreads::new("freshet-verify", verifying_threads(settings))
            .map_err(system_error("threads"))?,
    };
    Gateway::new(settings, names, secret, world).await.map_err(unreadable)
}

/// Threads that serve clients.
fn serving_threads(settings: &GatewaySettings) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    settings.threads.on(cores)
}

/// Threads that check passwords: they may use all the cores that nobody needs for serving, and one
/// more of them is left to other clusters when the passwords of one are guessed.
fn verifying_threads(settings: &GatewaySettings) -> usize {
    serving_threads(settings) + 1
}

async fn load_certificate(settings: &GatewaySettings) -> Result<Certificate, TlsError> {
    let (tls, domain) = (&settings.tls, &settings.listener.domain);
    let files = if tls.certificate.is_empty() {
        ensure_authority(Path::new(&tls.folder), domain, &SystemClock).await?
    } else {
        Files { certificate: (&tls.certificate).into(), key: (&tls.key).into() }
    };
    Certificate::load(files, domain).await
}

async fn listen_if_set(address: &str) -> Result<Option<Box<dyn Listener>>, GatewayError> {
    if address.is_empty() {
        return Ok(None);
    }
    let listening = Tcp.listen(address).await;
    listening.map(Some).map_err(system_error(format!("cannot listen on {address}")))
}

/// An address with the port that the system chose in the place of port 0.
fn with_port(address: &str, port: u16) -> String {
    let (host, _) = split_address(address).expect("addresses were checked with the settings");
    super::settings::host_and_port(host, port)
}
