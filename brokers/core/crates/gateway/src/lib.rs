//! A gateway: takes clients of all clusters of a cell, authenticates them, wakes their cluster, and
//! forwards their bytes. The crate's `README.md` has the map and the invariants.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use freshet_access::sasl::Mechanism;
use freshet_greeting::log_limit::LogLimit;
use freshet_metadata::MetadataStore;
use freshet_metadata::cell::{CellError, CellMetadata};
use freshet_world::env::background::ComputeThreads;
use freshet_world::env::{Clock, Network, Randomness};

mod attempts;
mod balancers;
mod bucket;
mod buffers;
mod connection;
mod frames;
mod incarnations;
mod kinds;
mod limits;
mod listeners;
mod login;
mod metrics;
mod places;
mod process;
mod pump;
mod reach;
mod secret;
mod serving;
mod sessions;
mod settings;
mod shares;
#[cfg(test)]
mod shares_tests;
#[cfg(test)]
#[path = "../tests/bed/mod.rs"]
mod testing;
#[cfg(test)]
mod tests;
mod tls;
mod turns;
mod users;
mod view;
mod wake;
mod watches;

pub use process::{GatewayError, GatewayProcess};
pub use secret::CellSecret;
pub use settings::GatewaySettings;

use attempts::Attempts;
use balancers::Balancers;
use buffers::BufferMemory;
use limits::Gate;
use metrics::GatewayMetrics;
use serving::Serving;
use sessions::Sessions;
use turns::{TurnLimits, Turns};
use users::Users;
use view::{CellView, Follower, Names, check_usable};
use wake::Wakes;
use watches::Watches;

/// Users that are looked up in the metadata store at a time. Others of a cluster wait for theirs,
/// so that who names many users of one cluster does not delay the clients of another.
const LOOK_UPS: TurnLimits = TurnLimits { in_all: 32, by_cluster: 8 };

/// The interfaces through which a gateway reaches the outside world.
struct World {
    store: Arc<dyn MetadataStore>,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    network: Arc<dyn Network>,
    /// Where passwords are checked.
    compute: ComputeThreads,
}

/// The state that all connections share.
struct Gateway {
    view: watch::Receiver<Arc<CellView>>,
    network: Arc<dyn Network>,
    randomness: Arc<dyn Randomness>,
    cell_secret: CellSecret,
    names: Names,
    /// The zone that it runs in; empty where nobody said.
    zone: String,
    mechanisms: Vec<Mechanism>,
    authentication_time: Duration,
    unauthenticated_bytes_max: usize,
    hold_time: Duration,
    gate: Arc<Gate>,
    users: Users,
    sessions: Arc<Sessions>,
    wakes: Wakes,
    /// The clusters whose brokers it watches.
    watches: Watches,
    metrics: Arc<GatewayMetrics>,
    /// Networks of balancers, which say where their clients come from.
    balancers: Balancers,
    /// How fast passwords may be tried.
    attempts: Arc<Attempts>,
    /// Turns at looking a user up in the metadata store.
    look_ups: Arc<Turns>,
    /// Turns at the check of a password, which takes milliseconds of a core.
    verifications: Arc<Turns>,
    verifying: ComputeThreads,
    buffers: BufferMemory,
    /// Turns at the threads that forward bytes.
    serving: Serving,
    closings: LogLimit,
    connections: TaskTracker,
    drain: CancellationToken,
}

impl Gateway {
    /// A gateway of a cell whose metadata can be read, and the tasks that have to run beside it.
    ///
    /// # Errors
    /// Where the cell's metadata cannot be read.
    async fn new(
        settings: &GatewaySettings,
        names: Names,
        cell_secret: CellSecret,
        world: World,
    ) -> Result<(Arc<Self>, impl Future<Output = ()> + use<>), CellError> {
        let cell = CellMetadata::new(Arc::clone(&world.store));
        let metrics = Arc::new(GatewayMetrics::default());
        let (follower, watch) = Follower::start(cell.clone(), Arc::clone(&metrics)).await?;
        let limits = &settings.limits;
        let sessions = Arc::<Sessions>::default();
        let (watches, watcher) =
            Watches::new(Arc::clone(&world.store), Arc::clone(&sessions), follower.sender());
        let gateway = Arc::new(Self {
            view: follower.subscribe(),
            network: world.network,
            attempts: Attempts::new(world.randomness.as_ref()),
            randomness: world.randomness,
            cell_secret,
            names,
            zone: settings.cell.zone.clone(),
            mechanisms: settings.mechanisms(),
            authentication_time: settings.authentication_time(),
            unauthenticated_bytes_max: limits.unauthenticated_bytes_max,
            hold_time: Duration::from_millis(settings.wake.hold_ms),
            gate: Gate::new(settings.gate()),
            users: Users::new(world.store),
            sessions,
            wakes: Wakes::new(cell, world.clock, Arc::clone(&metrics)),
            watches,
            metrics,
            balancers: settings.balancers(),
            look_ups: Turns::new(LOOK_UPS),
            verifications: Turns::new(TurnLimits {
                in_all: world.compute.count(),
                // So that a cluster whose passwords are guessed leaves a thread to others.
                by_cluster: (world.compute.count() - 1).max(1),
            }),
            verifying: world.compute,
            buffers: BufferMemory::default(),
            serving: Serving::new(),
            closings: LogLimit::default(),
            connections: TaskTracker::new(),
            drain: CancellationToken::new(),
        });
        let (usable, present) = (Arc::clone(&gateway), Arc::clone(&gateway));
        let users_interval = Duration::from_millis(settings.cell.users_interval_ms);
        let background = async move {
            tokio::join!(
                follower.follow(watch),
                watcher.run(),
                usable.end_unusable(),
                present.end_removed_users(users_interval),
            );
        };
        Ok((gateway, background))
    }

    /// Ends connections to clusters that may not be used any more, and to brokers that have ended
    /// or that others have replaced, as soon as that is known: a pod that is lost with its node
    /// never closes them.
    async fn end_unusable(self: Arc<Self>) {
        let mut changes = self.view.clone();
        let mut known = changes.borrow_and_update().clone();
        while changes.changed().await.is_ok() {
            let view = changes.borrow_and_update().clone();
            for cluster in self.sessions.clusters() {
                let (ended, reason) = if let Err(reason) = check_usable(view.spec(&cluster)) {
                    (self.sessions.end_all(&cluster), reason)
                } else {
                    let ended = self.sessions.end_misplaced(&cluster, &view.brokers(&cluster));
                    (ended, "another broker has to serve them")
                };
                if ended > 0 {
                    tracing::info!(%cluster, ended, reason, "ended connections of a cluster");
                }
            }
            for gone in known.clusters().filter(|cluster| view.spec(cluster).is_none()) {
                self.users.forget(gone);
                self.attempts.forget(gone);
                self.wakes.forget(gone);
                self.metrics.forget(gone);
                self.buffers.forget(gone);
                self.serving.forget(gone);
            }
            known = view;
        }
    }

    /// Ends connections of users that were removed. Where the store cannot be read they go on.
    async fn end_removed_users(self: Arc<Self>, every: Duration) {
        let mut rounds = interval(every);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            for cluster in self.sessions.clusters() {
                let Ok(users) = self.users.names(&cluster).await else { continue };
                let ended = self.sessions.end_others(&cluster, &users);
                if ended > 0 {
                    tracing::info!(%cluster, ended, "ended the connections of removed users");
                }
            }
        }
    }

    /// Waits until all connections have ended: each when all its requests were answered, all within
    /// `limit`.
    async fn drain(&self, limit: Duration) {
        self.drain.cancel();
        self.connections.close();
        if tokio::time::timeout(limit, self.connections.wait()).await.is_err() {
            let left = self.connections.len();
            tracing::warn!(
                left,
                "connections had requests without an answer when the time to stop was over"
            );
        }
    }
}
