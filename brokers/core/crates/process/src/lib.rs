//! A broker in a process: a runtime, the real disk and object store, an engine, and its listeners.
//!
//! A broker that has stood down is not restarted here. Its supervisor starts another one, whose
//! start is the takeover.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::membership::{Membership, TakesPart};
use crate::settings::Settings;
use freshet_access::derivation::{CredentialError, ITERATIONS_MIN};
use freshet_access::types::ScramCredential;
use freshet_broker::context::{Broker, ListenerFacts};
use freshet_broker::server::Server;
use freshet_broker::server::dispatch::KafkaService;
use freshet_broker::server::links::KafkaLinks;
use freshet_engine::{Engine, StartError};
use freshet_etcd::location::open_store;
use freshet_members::channel::ChannelKey;
use freshet_metadata::cluster::ClusterError;
use freshet_metadata::{MetadataError, MetadataStore};
use freshet_s3::open_world;
use freshet_storage::liveness::Liveness;
use freshet_telemetry::BrokerFigures;
use freshet_wire::text::split_address;
use freshet_world::env::priority::serve_promptly;
use freshet_world::env::usage::bound_allocator;
use freshet_world::env::{Environment, Listener};

mod figures;
mod kinds;
mod membership;
pub mod settings;

pub use freshet_settings::log::start_logs;

/// How long a killed broker waits for its threads: a write that is under way cannot be interrupted.
const KILL_TIME: Duration = Duration::from_secs(2);
/// The stack of a thread in bytes: the same as Rust's own threads have.
const STACK_BYTES: usize = 2 << 20;
/// The most threads for blocking work on files, in addition to those that serve clients.
const BLOCKING_THREADS_MAX: usize = 32;
/// An idle thread for blocking work ends after this time.
const BLOCKING_THREAD_TIME: Duration = Duration::from_secs(10);
/// After this many turns of tasks a busy thread looks which sockets are ready. A turn may send or
/// check hundreds of kilobytes, so with the runtime's default of 61 turns a small request would
/// wait for tens of milliseconds before it is read.
const TURNS_BETWEEN_LOOKS: u32 = 5;

/// Why a broker did not start, or its storage could not be inspected.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The operating system refused a thread, a folder or an address.
    #[error("{what}: {error}")]
    System {
        /// What was attempted.
        what: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The metadata store cannot be opened.
    #[error("metadata store {path}: {error}")]
    Metadata {
        /// Its file or address.
        path: String,
        /// The store's error.
        error: MetadataError,
    },
    /// The engine did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A user of the settings could not be created.
    #[error("user {name}: {error}")]
    User {
        /// The user.
        name: String,
        /// What is wrong with the password.
        error: CredentialError,
    },
    /// A user of the settings could not be stored.
    #[error("users: {0}")]
    Users(#[from] ClusterError),
}

fn system_error(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ProcessError {
    let what = what.into();
    |error| ProcessError::System { what, error }
}

/// The disk and the object store that the settings name.
///
/// # Errors
/// [`ProcessError::System`] where a folder cannot be used.
pub fn real_environment(settings: &Settings) -> Result<Environment, ProcessError> {
    let storage = &settings.storage;
    open_world(Path::new(&storage.dfs), &storage.bucket)
        .map_err(system_error(format!("storage {} and {}", storage.dfs, storage.bucket)))
}

/// Opens the metadata store that the settings name.
///
/// # Errors
/// [`ProcessError::Metadata`] where it cannot be opened.
pub async fn open_metadata(settings: &Settings) -> Result<Arc<dyn MetadataStore>, ProcessError> {
    let path = &settings.storage.metadata;
    let opened = open_store(path).await;
    opened.map_err(|error| ProcessError::Metadata { path: path.clone(), error })
}

/// A broker that runs.
pub struct BrokerProcess {
    runtime: Runtime,
    engine: Arc<Engine>,
    takes_part: Option<TakesPart>,
    serving: JoinHandle<()>,
    _metrics: Option<AbortOnDropHandle<()>>,
    bootstrap: String,
    metrics_address: Option<String>,
    link_address: Option<String>,
}

impl BrokerProcess {
    /// Starts a broker. It serves clients when this returns.
    ///
    /// # Errors
    /// Any [`ProcessError`].
    pub fn start(settings: &Settings) -> Result<Self, ProcessError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = settings.threads.on(cores);
        bound_allocator(threads);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_keep_alive(BLOCKING_THREAD_TIME)
            .event_interval(TURNS_BETWEEN_LOOKS)
            .thread_stack_size(STACK_BYTES)
            .thread_name("freshet")
            .on_thread_start(serve_promptly)
            .enable_all()
            .build()
            .map_err(system_error("threads"))?;
        let started = runtime.block_on(Started::start(settings));
        match started {
            Ok(started) => Ok(Self {
                runtime,
                engine: started.engine,
                takes_part: started.takes_part,
                serving: started.serving,
                _metrics: started.metrics,
                bootstrap: started.bootstrap,
                metrics_address: started.metrics_address,
                link_address: started.link_address,
            }),
            Err(error) => {
                runtime.shutdown_timeout(KILL_TIME);
                Err(error)
            }
        }
    }

    /// `host:port` for Kafka clients.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// `host:port` of `/metrics`; `None` where it is not served.
    pub fn metrics_address(&self) -> Option<&str> {
        self.metrics_address.as_deref()
    }

    /// `host:port` for gateways; `None` where there is no such listener.
    pub fn link_address(&self) -> Option<&str> {
        self.link_address.as_deref()
    }

    /// The number of its incarnation.
    pub fn incarnation(&self) -> u64 {
        self.engine.incarnation.0
    }

    /// Whether it may still act, for [`wait_ended`].
    pub fn liveness(&self) -> Liveness {
        self.engine.liveness.clone()
    }

    /// Stops cleanly: the cluster's other brokers take over what this one leads, all batches are
    /// split and the lane is closed, then the remaining answers are sent. After `limit` the rest is
    /// dropped, and others, or the next start, take over.
    pub fn stop(self, limit: Duration) {
        let Self { runtime, engine, takes_part, serving, .. } = self;
        runtime.block_on(async {
            let stopping = async {
                if let Some(takes_part) = &takes_part
                    && tokio::time::timeout(limit / 2, takes_part.leave()).await.is_err()
                {
                    tracing::warn!("not all partitions were handed over: others take them over");
                }
                engine.stop().await;
                // An error is a panic of a connection, which was logged where it happened.
                let _ = serving.await;
            };
            if tokio::time::timeout(limit, stopping).await.is_err() {
                tracing::warn!("not stopped in time; the next start takes over");
            }
        });
        drop(takes_part);
        drop(engine);
        runtime.shutdown_timeout(KILL_TIME);
    }

    /// Drops everything without a clean stop, as the death of the process would.
    pub fn kill(self) {
        let liveness = self.liveness();
        let Self { runtime, takes_part, .. } = self;
        drop(takes_part);
        runtime.shutdown_timeout(KILL_TIME);
        // Nothing runs any more; this wakes those who wait for the end.
        liveness.stand_down("killed");
    }
}

/// Blocks this thread until a broker has stood down, and returns why; `None` after `limit`.
///
/// # Errors
/// [`ProcessError::System`] where the thread cannot wait.
pub fn wait_ended(liveness: &Liveness, limit: Duration) -> Result<Option<String>, ProcessError> {
    let waiting =
        Builder::new_current_thread().enable_time().build().map_err(system_error("a timer"))?;
    waiting.block_on(async {
        let ended = tokio::time::timeout(limit, liveness.ended()).await;
        Ok(ended.ok().map(|reason| reason.to_string()))
    })
}

struct Started {
    engine: Arc<Engine>,
    takes_part: Option<TakesPart>,
    serving: JoinHandle<()>,
    metrics: Option<AbortOnDropHandle<()>>,
    bootstrap: String,
    metrics_address: Option<String>,
    link_address: Option<String>,
}

impl Started {
    async fn start(settings: &Settings) -> Result<Self, ProcessError> {
        let (cluster, broker) = (&settings.storage.cluster, &settings.broker);
        let (slot, started_for) = (broker.node_id, &broker.started_for);
        tracing::info!(cluster, slot, started_for, "starts");
        let environment = real_environment(settings)?;
        // Listen before taking over, so that an address in use costs the present broker nothing;
        // clients that connect meanwhile wait in the kernel.
        let listener = listen_on(&environment, &settings.listener.kafka).await?;
        let for_metrics = listen_if_set(&environment, &settings.listener.metrics).await?;
        let for_links = listen_if_set(&environment, &settings.listener.link).await?;
        let membership = match settings.listener.brokers.as_str() {
            "" => None,
            address => Some(Membership::listen(Arc::clone(&environment.network), address).await?),
        };
        let facts = listener_facts(settings, listener.as_ref());
        let bootstrap = format!("{}:{}", facts.advertised_host, facts.advertised_port);
        let store = open_metadata(settings).await?;
        let bucket = Arc::clone(&environment.bucket);
        let mut engine_settings = settings.engine(&bootstrap);
        engine_settings.place.kafka.clone_from(&bootstrap);
        if let Some(membership) = &membership {
            engine_settings.place.address.clone_from(&membership.address);
        }
        if let Some(links) = &for_links {
            engine_settings.place.link = link_address(settings, links.local_address());
        }
        let engine = Engine::start(environment, store, engine_settings).await?;
        let broker = Broker::new(Arc::clone(&engine), settings.handlers());
        let takes_part = membership.map(|membership| {
            let secret = settings.link_secret().expect("it was checked with the settings");
            membership.take_part(&broker, ChannelKey::of(&secret))
        });
        if let Some(counted) = bucket.metrics() {
            engine.settings.metrics.add_store(counted);
        }
        create_users(&engine, settings).await?;
        let server = Server::new(settings.server_limits(), engine.liveness.clone());
        let metrics = Arc::clone(&engine.settings.metrics);
        let metrics_address = for_metrics.as_ref().map(|at| at.local_address().to_string());
        let sample = figures::sampler(Arc::clone(&broker), Arc::clone(&server));
        let status = figures::status(Arc::clone(&engine), Arc::clone(&server))?;
        let metrics = for_metrics.map(|listener| {
            let figures = Arc::new(BrokerFigures { metrics, sample, status });
            let serving = freshet_telemetry::http::serve(listener, figures);
            AbortOnDropHandle::new(tokio::spawn(serving))
        });
        let link_address = for_links.as_ref().map(|at| at.local_address().to_string());
        let links = for_links.map(|listener| {
            let secret = settings.link_secret().expect("it was checked with the settings");
            let service = KafkaLinks::new(Arc::clone(&broker), secret);
            service.serve(Arc::clone(&server), listener)
        });
        let service = if settings.listener.super_users_only {
            KafkaService::for_super_users(broker, facts)
        } else {
            KafkaService::new(broker, facts)
        };
        let clients = service.serve(server, listener);
        let serving = tokio::spawn(async move {
            // Two tasks, so that the one kind of clients does not wait for the other.
            let links = links.map(|links| AbortOnDropHandle::new(tokio::spawn(links)));
            clients.await;
            if let Some(links) = links {
                // An error is a panic of a connection, which was logged where it happened.
                let _ = links.await;
            }
        });
        Ok(Self { engine, takes_part, serving, metrics, bootstrap, metrics_address, link_address })
    }
}

/// Where gateways reach the listener for links: where it listens at all addresses, at the one by
/// which the other brokers reach this one.
fn link_address(settings: &Settings, bound: SocketAddr) -> String {
    let host = split_address(&settings.listener.brokers).map(|(host, _)| host);
    match host {
        Some(host) if bound.ip().is_unspecified() => format!("{host}:{}", bound.port()),
        _ => bound.to_string(),
    }
}

async fn listen_if_set(
    environment: &Environment,
    address: &str,
) -> Result<Option<Box<dyn Listener>>, ProcessError> {
    if address.is_empty() {
        return Ok(None);
    }
    listen_on(environment, address).await.map(Some)
}

async fn listen_on(
    environment: &Environment,
    address: &str,
) -> Result<Box<dyn Listener>, ProcessError> {
    let listening = environment.network.listen(address).await;
    listening.map_err(system_error(format!("cannot listen on {address}")))
}

/// The facts of the listener that responses give to clients.
fn listener_facts(settings: &Settings, listener: &dyn Listener) -> ListenerFacts {
    let bound = listener.local_address();
    let (host, port) = split_address(&settings.listener.advertised)
        .or_else(|| split_address(&settings.listener.kafka))
        .expect("addresses were checked with the settings");
    let sasl_mechanisms = settings.mechanisms();
    ListenerFacts {
        name: if sasl_mechanisms.is_empty() { "PLAINTEXT" } else { "SASL_PLAINTEXT" }.to_owned(),
        advertised_host: host.to_owned(),
        advertised_port: if port == 0 { bound.port() } else { port },
        advertised_by_slot: Vec::new(),
        sasl_mechanisms,
    }
}

/// Creates the users that the settings name and that do not exist yet.
async fn create_users(engine: &Engine, settings: &Settings) -> Result<(), ProcessError> {
    if settings.security.users.is_empty() {
        return Ok(());
    }
    let existing = engine.metadata.list_scram().await?;
    for user in &settings.security.users {
        let mechanism = user.scram_mechanism().expect("users were checked with the settings");
        let known = |record: &&freshet_metadata::schema::ScramRecord| {
            record.user == user.name && record.mechanism == mechanism
        };
        if existing.iter().any(|record| known(&record)) {
            continue;
        }
        let credential = ScramCredential::from_password(
            &user.password,
            mechanism,
            ITERATIONS_MIN,
            engine.environment.randomness.as_ref(),
        )
        .map_err(|error| ProcessError::User { name: user.name.clone(), error })?;
        let fence = engine.fence();
        let change = [(mechanism, Some(credential))];
        let revision = engine.metadata.alter_scram(fence, &user.name, &change).await?;
        // This fails where the image of the metadata has ended, which also ends the engine and is
        // logged there.
        let _ = engine.view.wait_for(revision).await;
        tracing::info!(user = user.name, mechanism = mechanism.name(), "created a user");
    }
    Ok(())
}
