//! Watching the incarnations of brokers, in clusters of several brokers that have connections here.
//!
//! A broker that died is known by its record within a second. The keeper lists it for longer, and a
//! connection to a lost host hangs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::incarnations::Incarnations;
use super::sessions::Sessions;
use super::view::CellView;
use freshet_metadata::schema::keys::INCARNATIONS;
use freshet_metadata::store::Watch;
use freshet_metadata::{MetadataError, MetadataStore, ScopedStore};

/// The pause after the store could not be read.
const REST: Duration = Duration::from_secs(1);
/// A cluster is still watched for so long after its last connection.
const UNUSED_TIME: Duration = Duration::from_secs(60);

/// The watches of a gateway, as connections see them.
pub(super) struct Watches {
    view: watch::Receiver<Arc<CellView>>,
    unwatched: Arc<Notify>,
}

impl Watches {
    /// The watches, and the task that keeps them, which writes what it learns into the view.
    pub(super) fn new(
        store: Arc<dyn MetadataStore>,
        sessions: Arc<Sessions>,
        view: watch::Sender<Arc<CellView>>,
    ) -> (Self, Watcher) {
        let unwatched = Arc::new(Notify::new());
        let watches = Self { view: view.subscribe(), unwatched: Arc::clone(&unwatched) };
        (watches, Watcher { store, sessions, view, unwatched, watched: BTreeMap::new() })
    }

    /// Has a cluster watched that has several brokers, for as long as it has connections.
    pub(super) fn want(&self, cluster: &str) {
        let view = self.view.borrow();
        if has_several(&view, cluster) && view.brokers(cluster).incarnations.is_none() {
            self.unwatched.notify_one();
        }
    }
}

fn has_several(view: &CellView, cluster: &str) -> bool {
    view.spec(cluster).is_some_and(|spec| spec.scale > 1)
}

/// The task that keeps the watches.
pub(super) struct Watcher {
    store: Arc<dyn MetadataStore>,
    sessions: Arc<Sessions>,
    view: watch::Sender<Arc<CellView>>,
    /// Notified when a connection comes whose cluster is not watched.
    unwatched: Arc<Notify>,
    watched: BTreeMap<Arc<str>, Watched>,
}

struct Watched {
    /// When it was last seen to have connections.
    used_at: Instant,
    following: AbortOnDropHandle<()>,
}

impl Watcher {
    /// Watches what has to be watched until it is dropped.
    pub(super) async fn run(mut self) {
        let mut changes = self.view.subscribe();
        loop {
            let view = changes.borrow_and_update().clone();
            self.begin(&view);
            self.end(&view).await;
            tokio::select! {
                biased;
                changed = changes.changed() => if changed.is_err() { return },
                () = self.unwatched.notified() => {}
                () = sleep(UNUSED_TIME), if !self.watched.is_empty() => {}
            }
        }
    }

    fn begin(&mut self, view: &CellView) {
        let used_at = Instant::now();
        let clusters = self.sessions.clusters().into_iter();
        for cluster in clusters.filter(|cluster| has_several(view, cluster)) {
            if let Some(watched) = self.watched.get_mut(&cluster) {
                watched.used_at = used_at;
                continue;
            }
            // The ids of clusters that the cell's records name can be scopes.
            let Ok(store) = ScopedStore::new(Arc::clone(&self.store), &cluster) else { continue };
            let follower = IncarnationFollower {
                store,
                cluster: Arc::clone(&cluster),
                view: self.view.clone(),
            };
            let following = AbortOnDropHandle::new(tokio::spawn(follower.follow()));
            self.watched.insert(cluster, Watched { used_at, following });
        }
    }

    async fn end(&mut self, view: &CellView) {
        let is_over = |(cluster, watched): (&Arc<str>, &Watched)| {
            let over = !has_several(view, cluster) || watched.used_at.elapsed() >= UNUSED_TIME;
            over.then(|| Arc::clone(cluster))
        };
        for cluster in self.watched.iter().filter_map(is_over).collect::<Vec<_>>() {
            let Some(Watched { following, .. }) = self.watched.remove(&cluster) else { continue };
            following.abort();
            // What it knows must not be written any more once it is forgotten: a broker that
            // started since at the address of an ended one would count as ended.
            let _ = following.await;
            self.view.send_modify(|view| Arc::make_mut(view).set_incarnations(&cluster, None));
        }
    }
}

/// What follows the incarnations of one cluster.
struct IncarnationFollower {
    store: ScopedStore,
    cluster: Arc<str>,
    view: watch::Sender<Arc<CellView>>,
}

impl IncarnationFollower {
    /// Follows them until it is dropped. While the store cannot be read, what is known stays.
    async fn follow(self) {
        loop {
            match self.load().await {
                Ok((incarnations, watch)) => self.follow_watch(incarnations, watch).await,
                Err(error) => self.log_failure(&error),
            }
            sleep(REST).await;
        }
    }

    async fn load(&self) -> Result<(Incarnations, Box<dyn Watch>), MetadataError> {
        let page = self.store.range(INCARNATIONS, None, usize::MAX).await?;
        let watch = self.store.watch(INCARNATIONS, page.revision).await?;
        let mut incarnations = Incarnations::default();
        for entry in page.entries {
            self.take(&mut incarnations, &entry.key, Some(&entry.value));
        }
        self.publish(&incarnations);
        Ok((incarnations, watch))
    }

    /// Returns where the watch is of no use any more.
    async fn follow_watch(&self, mut incarnations: Incarnations, mut watch: Box<dyn Watch>) {
        loop {
            match watch.next().await {
                Ok(changes) => {
                    for change in changes {
                        self.take(&mut incarnations, &change.key, change.value.as_deref());
                    }
                    self.publish(&incarnations);
                }
                Err(error @ MetadataError::Unavailable(_)) => {
                    self.log_failure(&error);
                    sleep(REST).await;
                }
                Err(error) => return self.log_failure(&error),
            }
        }
    }

    fn take(&self, incarnations: &mut Incarnations, key: &str, value: Option<&[u8]>) {
        if let Err(error) = incarnations.set(key, value) {
            let cluster = &self.cluster;
            tracing::warn!(%cluster, %error, "an incarnation's record cannot be understood");
        }
    }

    fn publish(&self, incarnations: &Incarnations) {
        self.view.send_if_modified(|view| {
            if view.brokers(&self.cluster).incarnations == Some(incarnations) {
                return false;
            }
            let known = Some(incarnations.clone());
            Arc::make_mut(view).set_incarnations(&self.cluster, known);
            true
        });
    }

    /// At this level, since that the store cannot be read is in the log for the whole cell.
    fn log_failure(&self, error: &MetadataError) {
        tracing::debug!(cluster = %self.cluster, %error, "cannot watch the cluster's brokers");
    }
}

#[cfg(test)]
#[path = "watches_tests.rs"]
mod tests;
