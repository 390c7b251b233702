//! Linking a client that has authenticated to its broker, whatever the cluster is doing: it may be
//! asleep, starting, or restarted at this moment.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::Gateway;
use super::places::{Preference, ServingBroker, Target};
use super::view::{CellView, check_usable};
use freshet_link::{LinkError, LinkedClient};
use freshet_world::env::Stream;

/// How long connecting and the handshake may take.
const LINK_TIME: Duration = Duration::from_secs(3);
/// How long they may take where another broker was not tried yet.
const LINK_TIME_BEFORE_OTHERS: Duration = Duration::from_secs(1);
/// The first wait until brokers that refused are tried again. Each one is twice as long.
const RETRY_FIRST: Duration = Duration::from_millis(10);
/// The longest of these waits.
const RETRY_MAX: Duration = Duration::from_millis(160);
/// Where brokers that should run cannot be reached for this long, a wake is requested, too.
const UNREACHED_TIME: Duration = Duration::from_secs(2);

/// Why a client's broker was not reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreached {
    #[error("{0}")]
    NotUsable(&'static str),
    #[error("the cluster did not run in time")]
    TooLate,
}

/// A link to a broker.
pub(super) struct Reached {
    pub stream: Box<dyn Stream>,
    pub place: ServingBroker,
}

/// The brokers that a client may be linked to, and which of them were tried.
struct Round {
    /// Whether the keeper says that the cluster has brokers.
    listed: bool,
    places: Vec<ServingBroker>,
    /// Where brokers of these did not take a link.
    failed: BTreeSet<String>,
    /// Whether all were tried once before.
    is_repeated: bool,
    /// How long to wait before all are tried again.
    pause: Duration,
}

impl Round {
    fn new(listed: bool, places: Vec<ServingBroker>) -> Self {
        let (failed, pause) = (BTreeSet::new(), RETRY_FIRST);
        Self { listed, places, failed, is_repeated: false, pause }
    }

    /// The next broker to try, and for how long; `None` where all were tried.
    fn next(&self) -> Option<(&ServingBroker, Duration)> {
        let mut untried = self.places.iter().filter(|place| !self.failed.contains(&place.link));
        let place = untried.next()?;
        // One that does not answer must not keep a client from those that do.
        let hurries = !self.is_repeated && untried.next().is_some();
        Some((place, if hurries { LINK_TIME_BEFORE_OTHERS } else { LINK_TIME }))
    }

    fn repeat(&mut self) {
        self.failed.clear();
        self.is_repeated = true;
        self.pause = (self.pause * 2).min(RETRY_MAX);
    }
}

impl Gateway {
    /// Links the client to its broker, after waking the cluster where it is asleep.
    ///
    /// # Errors
    /// [`Unreached`].
    pub(super) async fn reach(
        &self,
        target: &Target,
        client: &LinkedClient,
    ) -> Result<Reached, Unreached> {
        let began = Instant::now();
        let mut held = false;
        let reached = timeout(self.hold_time, self.try_until_reached(target, client, &mut held));
        let reached = reached.await.unwrap_or(Err(Unreached::TooLate))?;
        if held {
            self.wakes.reached(&target.cluster).await;
            self.metrics.held(began.elapsed());
            let (cluster, connection) = (&target.cluster, &client.connection);
            tracing::debug!(%cluster, %connection, "linked to the broker after a wait");
        }
        Ok(reached)
    }

    async fn try_until_reached(
        &self,
        target: &Target,
        client: &LinkedClient,
        held: &mut bool,
    ) -> Result<Reached, Unreached> {
        let mut changes = self.view.clone();
        let began = Instant::now();
        let preference = Preference { zone: &self.zone, spread: self.randomness.next_u64() };
        let mut round = Round::new(false, Vec::new());
        let mut asking = pin!(self.keep_asking(&target.cluster, &client.connection));
        loop {
            let view = changes.borrow_and_update().clone();
            check_usable(view.spec(&target.cluster)).map_err(Unreached::NotUsable)?;
            let brokers = view.brokers(&target.cluster);
            let (listed, places) = (brokers.are_listed(), brokers.places(target.slot, &preference));
            if (round.listed, &round.places) != (listed, &places) {
                round = Round::new(listed, places);
            }
            let is_offered = |view: &CellView, place: &ServingBroker| {
                let places = view.brokers(&target.cluster).places(target.slot, &preference);
                check_usable(view.spec(&target.cluster)).is_ok()
                    && places.iter().any(|now| place.is(now))
            };
            let is_other = |view: &CellView| {
                let brokers = view.brokers(&target.cluster);
                check_usable(view.spec(&target.cluster)).is_err()
                    || brokers.are_listed() != round.listed
                    || brokers.places(target.slot, &preference) != round.places
            };
            if let Some((place, limit)) = round.next() {
                let linked = tokio::select! {
                    biased;
                    linked = self.link(&target.cluster, &place.link, client, limit) => linked,
                    // A broker whose node is lost neither answers nor refuses: the attempt ends as
                    // soon as it is known that the broker has ended, or that another is there.
                    changed = until(&mut changes, |view| !is_offered(view, place)) => {
                        changed?;
                        continue;
                    }
                };
                let link = place.link.clone();
                match linked {
                    Ok(stream) => return Ok(Reached { stream, place: place.clone() }),
                    Err(error) => {
                        let (cluster, connection) = (&target.cluster, &client.connection);
                        tracing::debug!(
                            %cluster, %connection, link, %error,
                            "the broker cannot be reached yet"
                        );
                        round.failed.insert(link);
                    }
                }
                if round.next().is_some() {
                    continue;
                }
            }
            let asks = !round.listed || began.elapsed() >= UNREACHED_TIME;
            *held |= asks;
            tokio::select! {
                biased;
                changed = until(&mut changes, is_other) => changed?,
                () = &mut asking, if asks => return Err(Unreached::TooLate),
                () = sleep(round.pause), if !round.places.is_empty() => round.repeat(),
                () = sleep(UNREACHED_TIME) => {}
            }
        }
    }

    /// Requests wakes of the cluster until this is dropped or the cluster is deleted.
    async fn keep_asking(&self, cluster: &str, connection: &str) {
        loop {
            let spec = self.view.borrow().spec(cluster).cloned();
            let Some(spec) = spec else { return };
            self.wakes.ask(&spec, connection).await;
            sleep(UNREACHED_TIME).await;
        }
    }

    async fn link(
        &self,
        cluster: &str,
        address: &str,
        client: &LinkedClient,
        limit: Duration,
    ) -> Result<Box<dyn Stream>, LinkError> {
        let linking = async {
            let mut stream = self.network.connect(address).await?;
            let secret = self.cell_secret.link(cluster);
            freshet_link::open(stream.as_mut(), &secret, self.randomness.as_ref(), client).await?;
            Ok(stream)
        };
        timeout(limit, linking).await.unwrap_or(Err(LinkError::TooSlow))
    }
}

/// Waits for a view.
///
/// # Errors
/// The task that keeps the view current has ended, because the gateway ends.
async fn until(
    changes: &mut watch::Receiver<Arc<CellView>>,
    is_there: impl Fn(&CellView) -> bool,
) -> Result<(), Unreached> {
    let changed = changes.wait_for(|view| is_there(view)).await;
    changed.map(|_| ()).map_err(|_| Unreached::TooLate)
}
