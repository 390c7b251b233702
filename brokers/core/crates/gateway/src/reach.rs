//! Linking a client that has authenticated to its broker, whatever the cluster is doing: it may be
//! asleep, starting, or restarted at this moment.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::Gateway;
use super::view::{CellView, Target, check_usable};
use freshet_link::{LinkError, LinkedClient};
use freshet_world::env::Stream;

/// How long connecting and the handshake may take.
const LINK_TIME: Duration = Duration::from_secs(3);
/// The first wait until a broker that refused is tried again. Each one is twice as long.
const RETRY_FIRST: Duration = Duration::from_millis(10);
/// The longest of these waits.
const RETRY_MAX: Duration = Duration::from_millis(160);
/// Where a broker that should run cannot be reached for this long, a wake is requested, too.
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
    /// Where the broker takes links.
    pub link: String,
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
        let mut pause = RETRY_FIRST;
        let mut asking = pin!(self.keep_asking(&target.cluster, &client.connection));
        loop {
            let view = changes.borrow_and_update().clone();
            check_usable(view.spec(&target.cluster)).map_err(Unreached::NotUsable)?;
            let link = view.link_of(target);
            if let Some(address) = &link {
                let linked = tokio::select! {
                    biased;
                    linked = self.link(&target.cluster, address, client) => linked,
                    // A broker whose node is lost neither answers nor refuses: the attempt ends as
                    // soon as the status says that another broker took its place.
                    () = until_moved(&mut changes, target, address) => continue,
                };
                match linked {
                    Ok(stream) => return Ok(Reached { stream, link: address.clone() }),
                    Err(error) => {
                        let (cluster, connection) = (&target.cluster, &client.connection);
                        tracing::debug!(
                            %cluster, %connection, address, %error,
                            "the broker cannot be reached yet"
                        );
                    }
                }
            }
            let asks = link.is_none() || began.elapsed() >= UNREACHED_TIME;
            *held |= asks;
            tokio::select! {
                biased;
                changed = changes.changed() => if changed.is_err() {
                    // The task that keeps the view current has ended, because the gateway ends.
                    return Err(Unreached::TooLate);
                } else {
                    pause = RETRY_FIRST;
                },
                () = &mut asking, if asks => return Err(Unreached::TooLate),
                () = sleep(pause), if link.is_some() => pause = (pause * 2).min(RETRY_MAX),
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
    ) -> Result<Box<dyn Stream>, LinkError> {
        let linking = async {
            let mut stream = self.network.connect(address).await?;
            let secret = self.cell_secret.link(cluster);
            freshet_link::open(stream.as_mut(), &secret, self.randomness.as_ref(), client).await?;
            Ok(stream)
        };
        timeout(LINK_TIME, linking).await.unwrap_or(Err(LinkError::TooSlow))
    }
}

/// Waits until the status says that the broker takes links at another address, or at none.
async fn until_moved(changes: &mut watch::Receiver<Arc<CellView>>, target: &Target, link: &str) {
    while changes.borrow().link_of(target).as_deref() == Some(link) {
        if changes.changed().await.is_err() {
            // The view is closed because the gateway ends, which drops this attempt, too.
            std::future::pending::<()>().await;
        }
    }
}
