//! An image of the metadata in memory, read without waiting and kept current by one task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::image::Builder;
pub use super::image::{
    HiddenTopic, Quotas, ScramUsers, Snapshot, Topic, Topics, ViewChange, ViewError,
};
use super::schema::TrafficLimit;
use super::store::{MetadataError, MetadataStore, Page, Watch};
use freshet_world::watch;

/// The first pause between attempts to reach a store that is away; each one is twice as long, up to
/// the maximum.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// The image does not follow the store any more, so a wait for a change would never end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the view of the metadata has stopped")]
pub struct ViewStopped;

#[derive(Debug, Clone, Copy)]
struct Progress {
    revision: u64,
    stopped: bool,
}

/// An image of a cluster's metadata: complete from the start, then a little behind the store.
pub struct MetadataView {
    snapshot: RwLock<Arc<Snapshot>>,
    progress: watch::Sender<Progress>,
    subscribers: Mutex<Vec<Weak<Mutex<ViewChange>>>>,
    /// Whether the snapshot has any quota. It is read for each request, so it needs no lock.
    has_quotas: AtomicBool,
    traffic: watch::Sender<Option<Arc<TrafficLimit>>>,
    /// Whether there is a limit of traffic. It is read for each request, so it needs no lock.
    has_traffic_limit: AtomicBool,
    /// Whether the cluster has several brokers. It is read for each request, so it needs no lock.
    has_several: AtomicBool,
}

impl MetadataView {
    /// Reads all metadata in `store`, which is the cluster's own part of it. The image stays as it
    /// is until [`Follower::run`] runs, which the caller spawns.
    ///
    /// # Errors
    /// As the store; [`ViewError::Record`] and [`ViewError::Missing`] where the metadata is not
    /// understood.
    pub async fn open(
        store: Arc<dyn MetadataStore>,
    ) -> Result<(Arc<MetadataView>, Follower), ViewError> {
        let (builder, snapshot) = load_snapshot(&*store).await?;
        let progress = Progress { revision: snapshot.revision, stopped: false };
        let has_quotas = AtomicBool::new(!snapshot.quotas.is_empty());
        let view = Arc::new(MetadataView {
            has_quotas,
            has_traffic_limit: AtomicBool::new(snapshot.traffic_limit.is_some()),
            has_several: AtomicBool::new(snapshot.scale() > 1),
            traffic: watch::Sender::new(snapshot.traffic_limit.clone()),
            snapshot: RwLock::new(Arc::new(snapshot)),
            progress: watch::Sender::new(progress),
            subscribers: Mutex::default(),
        });
        Ok((view.clone(), Follower { store, view, builder }))
    }

    /// The newest snapshot. This copies one reference and never waits.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().clone()
    }

    /// All topics that are known now.
    #[must_use]
    pub fn topics(&self) -> Arc<Topics> {
        self.snapshot.read().topics.clone()
    }

    /// Whether there is any quota now. Takes no lock.
    #[must_use]
    pub fn has_quotas(&self) -> bool {
        self.has_quotas.load(Ordering::Acquire)
    }

    /// Whether the cluster has several brokers when awake. Takes no lock.
    #[must_use]
    pub fn has_several_brokers(&self) -> bool {
        self.has_several.load(Ordering::Acquire)
    }

    /// What clients may produce and fetch now; `None` where that is not limited, which takes no
    /// lock.
    #[must_use]
    pub fn traffic_limit(&self) -> Option<Arc<TrafficLimit>> {
        if !self.has_traffic_limit.load(Ordering::Acquire) {
            return None;
        }
        self.traffic.borrow().clone()
    }

    /// Follows what clients may produce and fetch, from now on.
    #[must_use]
    pub fn traffic_limits(&self) -> watch::Receiver<Option<Arc<TrafficLimit>>> {
        self.traffic.subscribe()
    }

    /// Waits until the image shows a revision that a write of this cluster's metadata gave.
    /// 0, which a write returns that changed nothing, has always been reached.
    ///
    /// # Errors
    /// [`ViewStopped`].
    pub async fn wait_for(&self, revision: u64) -> Result<(), ViewStopped> {
        let mut progress = self.progress.subscribe();
        let reached = |progress: &Progress| progress.revision >= revision || progress.stopped;
        let progress = progress.wait_for(reached).await.map_err(|_| ViewStopped)?;
        if progress.revision >= revision { Ok(()) } else { Err(ViewStopped) }
    }

    /// The revision that the image shows, as it grows.
    pub fn revisions(&self) -> impl Fn() -> u64 + use<> {
        let progress = self.progress.subscribe();
        move || progress.borrow().revision
    }

    /// Collects changes from now on. To miss none, subscribe first and take the snapshot then.
    #[must_use]
    pub fn subscribe(&self) -> ViewChanges {
        let progress = self.progress.subscribe();
        let pending = Arc::new(Mutex::new(ViewChange::default()));
        self.subscribers.lock().push(Arc::downgrade(&pending));
        ViewChanges { pending, progress }
    }

    fn publish(&self, snapshot: Snapshot, change: &ViewChange) {
        let revision = snapshot.revision;
        let has_quotas = !snapshot.quotas.is_empty();
        let has_several = snapshot.scale() > 1;
        let traffic_limit = snapshot.traffic_limit.clone();
        // The snapshot is replaced before the change is announced, so that whoever hears of a
        // change finds it in the snapshot.
        *self.snapshot.write() = Arc::new(snapshot);
        self.has_quotas.store(has_quotas, Ordering::Release);
        self.has_several.store(has_several, Ordering::Release);
        self.traffic.send_if_modified(|shown| {
            let is_changed = *shown != traffic_limit;
            *shown = traffic_limit;
            self.has_traffic_limit.store(shown.is_some(), Ordering::Release);
            is_changed
        });
        self.subscribers.lock().retain(|pending| {
            pending.upgrade().map(|pending| pending.lock().merge(change)).is_some()
        });
        self.progress.send_modify(|progress| progress.revision = revision);
    }
}

/// The changes of a view since the last call of [`ViewChanges::next`].
pub struct ViewChanges {
    pending: Arc<Mutex<ViewChange>>,
    progress: watch::Receiver<Progress>,
}

impl ViewChanges {
    /// Waits for a change; returns all that changed since the last call. The view shows at least
    /// that. Cancel safe.
    ///
    /// # Errors
    /// [`ViewStopped`].
    pub async fn next(&mut self) -> Result<ViewChange, ViewStopped> {
        loop {
            let stopped = self.progress.borrow_and_update().stopped;
            let change = std::mem::take(&mut *self.pending.lock());
            if !change.is_empty() {
                return Ok(change);
            }
            if stopped {
                return Err(ViewStopped);
            }
            self.progress.changed().await.map_err(|_| ViewStopped)?;
        }
    }
}

/// Keeps a view current. Dropping it stops the view.
pub struct Follower {
    store: Arc<dyn MetadataStore>,
    view: Arc<MetadataView>,
    builder: Builder,
}

impl Follower {
    /// Follows the store until it fails for good; a store that is away for a while is waited for.
    pub async fn run(mut self) -> ViewError {
        let mut watch = None;
        let mut pause = RETRY_FIRST;
        loop {
            let error = match self.step(&mut watch).await {
                Ok(()) => {
                    pause = RETRY_FIRST;
                    continue;
                }
                Err(error) => error,
            };
            watch = None;
            let error = match error {
                ViewError::Store(MetadataError::Compacted) => match self.reload().await {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                error => error,
            };
            match error {
                ViewError::Store(MetadataError::Unavailable(_) | MetadataError::Compacted) => {
                    tracing::warn!(%error, "the metadata store cannot be reached: trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
                error => {
                    tracing::error!(%error, "the view of the metadata has failed and stops");
                    return error;
                }
            }
        }
    }

    async fn step(&mut self, watch: &mut Option<Box<dyn Watch>>) -> Result<(), ViewError> {
        let open = match watch {
            Some(open) => open,
            None => watch.insert(self.store.watch("", self.builder.revision()).await?),
        };
        let changes = open.next().await?;
        let mut revision = self.builder.revision();
        for change in changes {
            self.builder.apply(&change.key, change.value.as_deref(), change.revision)?;
            revision = revision.max(change.revision);
        }
        let (snapshot, change) = self.builder.finish(revision)?;
        self.view.publish(snapshot, &change);
        Ok(())
    }

    /// Reads all metadata again, because the history of changes does not reach back far enough.
    async fn reload(&mut self) -> Result<(), ViewError> {
        let (builder, snapshot) = load_snapshot(&*self.store).await?;
        let change = ViewChange::between(&self.view.snapshot(), &snapshot);
        self.builder = builder;
        self.view.publish(snapshot, &change);
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.view.progress.send_modify(|progress| progress.stopped = true);
    }
}

async fn load_snapshot(store: &dyn MetadataStore) -> Result<(Builder, Snapshot), ViewError> {
    let Page { entries, revision, .. } = store.range("", None, usize::MAX).await?;
    let mut builder = Builder::default();
    for entry in entries {
        builder.apply(&entry.key, Some(&entry.value), entry.revision)?;
    }
    let (snapshot, _) = builder.finish(revision)?;
    Ok((builder, snapshot))
}
