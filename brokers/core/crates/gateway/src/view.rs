//! The cell's clusters in memory: kept current by a watch, and served on while the metadata store
//! cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use freshet_link::ListenerKind;
use freshet_metadata::MetadataError;
use freshet_metadata::cell::{CellChange, CellError, CellMetadata, CellRecord, CellWatch};
use freshet_metadata::schema::cell::{CellKind, ClusterSpec, ClusterStatus, Phase, SpecState};

use super::incarnations::Incarnations;
use super::metrics::GatewayMetrics;
use super::places::{Brokers, Slot, Target};
use super::settings::host_and_port;

/// The pause after the store could not be read.
const REST: Duration = Duration::from_secs(1);
/// The most brokers of a cluster that get addresses; a spec with more is a mistake.
const SLOTS_MAX: u32 = 128;
/// The slots that have names in each cluster, also where it has fewer brokers.
const SLOTS_MIN: u32 = 3;

/// The clusters of a cell.
#[derive(Debug, Clone, Default)]
pub(super) struct CellView {
    specs: BTreeMap<Arc<str>, Arc<ClusterSpec>>,
    statuses: BTreeMap<Arc<str>, Arc<ClusterStatus>>,
    /// The incarnations of the brokers of those clusters in which they are watched.
    incarnations: BTreeMap<Arc<str>, Arc<Incarnations>>,
    /// Clusters by host label. `None` where several clusters claim it, since the passwords of one
    /// must not reach another.
    hosts: Arc<BTreeMap<String, Option<Arc<str>>>>,
    /// Clusters by port; `None` where several claim it.
    ports: Arc<BTreeMap<u16, Option<Target>>>,
}

impl CellView {
    /// The spec of a cluster.
    pub(super) fn spec(&self, cluster: &str) -> Option<&Arc<ClusterSpec>> {
        self.specs.get(cluster)
    }

    /// All clusters.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.specs.keys()
    }

    /// The ports on which there are to be plain listeners.
    pub(super) fn ports(&self) -> BTreeSet<u16> {
        self.ports.iter().filter(|(_, target)| target.is_some()).map(|(port, _)| *port).collect()
    }

    /// The cluster and broker of a port.
    pub(super) fn of_port(&self, port: u16) -> Option<Target> {
        self.ports.get(&port).cloned().flatten()
    }

    /// The cluster and broker of a name: `<host>.<domain>`, or `b<slot>-<host>.<domain>`. A label
    /// of the second form is never a cluster's own, or that cluster would get passwords that are
    /// meant for a broker of another.
    pub(super) fn of_name(&self, name: &str, domain: &str) -> Option<Target> {
        let name = name.to_ascii_lowercase();
        let label = name.strip_suffix(domain)?.strip_suffix('.')?;
        let (slot, host) = match split_slot(label) {
            Some((slot, host)) => (Slot::Number(slot), host),
            None => (Slot::Any, label),
        };
        let cluster = self.hosts.get(host).cloned().flatten()?;
        Some(Target { cluster, slot })
    }

    /// The brokers of a cluster.
    pub(super) fn brokers(&self, cluster: &str) -> Brokers<'_> {
        let running = self.statuses.get(cluster).filter(|status| status.phase == Phase::Running);
        Brokers {
            listed: running.map_or(&[], |status| &status.brokers),
            incarnations: self.incarnations.get(cluster).map(Arc::as_ref),
        }
    }

    /// Sets what is known of the incarnations of a cluster's brokers; `None` where they are not
    /// watched any more.
    pub(super) fn set_incarnations(&mut self, cluster: &Arc<str>, known: Option<Incarnations>) {
        match known {
            Some(known) => self.incarnations.insert(Arc::clone(cluster), Arc::new(known)),
            None => self.incarnations.remove(cluster),
        };
    }

    fn runs(&self, cluster: &str) -> bool {
        self.statuses.get(cluster).is_some_and(|status| status.phase == Phase::Running)
    }

    fn apply(&mut self, changes: Vec<CellChange>) {
        let mut specs_changed = false;
        for CellChange { cluster, record, .. } in changes {
            let cluster: Arc<str> = cluster.into();
            match record {
                CellRecord::Spec(Some(spec)) => {
                    self.specs.insert(cluster, Arc::new(spec));
                    specs_changed = true;
                }
                CellRecord::Spec(None) => specs_changed |= self.specs.remove(&cluster).is_some(),
                CellRecord::Status(Some(status)) => {
                    self.statuses.insert(cluster, Arc::new(status));
                }
                CellRecord::Status(None) => {
                    self.statuses.remove(&cluster);
                }
                CellRecord::Wake(_)
                | CellRecord::Removal(_)
                | CellRecord::Health(_)
                | CellRecord::Sample(_) => {}
            }
        }
        if specs_changed {
            self.index();
        }
    }

    fn index(&mut self) {
        let mut hosts = BTreeMap::new();
        let mut ports = BTreeMap::new();
        for (cluster, spec) in &self.specs {
            if split_slot(&spec.host).is_some() {
                tracing::error!(
                    %cluster, host = spec.host,
                    "the cluster's host has the form of a broker's name: it gets no name"
                );
            } else {
                claim(&mut hosts, spec.host.clone(), Arc::clone(cluster), cluster);
            }
            if spec.state != SpecState::Deleted {
                for (port, target) in targets_of_ports(cluster, spec) {
                    claim(&mut ports, port, target, cluster);
                }
            }
        }
        // Other clusters may have the ports of deleted ones, whose clients still ask for them.
        for (cluster, spec) in &self.specs {
            if spec.state == SpecState::Deleted {
                for (port, target) in targets_of_ports(cluster, spec) {
                    ports.entry(port).or_insert(Some(target));
                }
            }
        }
        (self.hosts, self.ports) = (Arc::new(hosts), Arc::new(ports));
    }
}

/// The ports of a cluster. The first is for clients that bootstrap, the others are the slots'. A
/// cluster with a single port has slot 0 there.
fn targets_of_ports(cluster: &Arc<str>, spec: &ClusterSpec) -> impl Iterator<Item = (u16, Target)> {
    let first = if spec.ports.len() > 1 { Slot::Any } else { Slot::Number(0) };
    let slots = std::iter::once(first).chain((0..).map(Slot::Number));
    spec.ports
        .iter()
        .zip(slots)
        .map(|(port, slot)| (*port, Target { cluster: Arc::clone(cluster), slot }))
}

fn claim<K, T>(claims: &mut BTreeMap<K, Option<T>>, what: K, target: T, cluster: &str)
where
    K: Ord + Clone + std::fmt::Debug,
{
    if claims.insert(what.clone(), Some(target)).is_some() {
        tracing::error!(?what, cluster, "several clusters claim a host or a port: none gets it");
        claims.insert(what, None);
    }
}

/// Slot and host of a label `b<slot>-<host>`.
fn split_slot(label: &str) -> Option<(u32, &str)> {
    let (number, host) = label.strip_prefix('b')?.split_once('-')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || host.is_empty() { None } else { Some((number.parse().ok()?, host)) }
}

/// How clients of a kind of listener find the brokers of a cluster.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// Host of plain listeners.
    pub plain_host: String,
    /// The domain of the clusters' names.
    pub domain: String,
    /// Port of the TLS listener as clients see it.
    pub tls_port: u16,
}

impl Names {
    /// `host:port` by slot.
    pub(super) fn advertised(&self, spec: &ClusterSpec, kind: ListenerKind) -> Vec<String> {
        match kind {
            ListenerKind::SaslPlaintext => {
                let of_slots = match spec.ports.as_slice() {
                    [_bootstrap, slots @ ..] if !slots.is_empty() => slots,
                    ports => ports,
                };
                of_slots.iter().map(|port| host_and_port(&self.plain_host, *port)).collect()
            }
            ListenerKind::SaslSsl => {
                let slots = spec.scale.clamp(SLOTS_MIN, SLOTS_MAX);
                let name =
                    |slot| format!("b{slot}-{}.{}:{}", spec.host, self.domain, self.tls_port);
                (0..slots).map(name).collect()
            }
        }
    }
}

/// Checks that a cluster may be used; the error is the text for its clients.
pub(super) fn check_usable(spec: Option<&Arc<ClusterSpec>>) -> Result<(), &'static str> {
    match spec.map(|spec| spec.state) {
        Some(SpecState::Active) => Ok(()),
        Some(SpecState::Suspended) => Err("the cluster is suspended"),
        Some(SpecState::Deleted) | None => Err("the cluster was deleted"),
    }
}

/// The records that are watched.
const KINDS: [CellKind; 2] = [CellKind::Spec, CellKind::Status];

/// The task that keeps the view current.
pub(super) struct Follower {
    cell: CellMetadata,
    metrics: Arc<GatewayMetrics>,
    view: watch::Sender<Arc<CellView>>,
}

impl Follower {
    /// Reads the cell. Returns a view of it, and the watch that keeps it current.
    ///
    /// # Errors
    /// [`CellError`] where the cell's metadata cannot be read.
    pub(super) async fn start(
        cell: CellMetadata,
        metrics: Arc<GatewayMetrics>,
    ) -> Result<(Self, CellWatch), CellError> {
        let (view, watch) = load_cell(&cell).await?;
        metrics.metadata_readable.set(1);
        Ok((Self { cell, metrics, view: watch::Sender::new(Arc::new(view)) }, watch))
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<CellView>> {
        self.view.subscribe()
    }

    /// The view, for those who add to it what they know.
    pub(super) fn sender(&self) -> watch::Sender<Arc<CellView>> {
        self.view.clone()
    }

    /// Keeps the view current until this is dropped.
    pub(super) async fn follow(self, mut watch: CellWatch) {
        loop {
            match watch.next().await {
                Ok(changes) => {
                    for change in &changes {
                        self.log_start(change);
                    }
                    self.view.send_modify(|view| Arc::make_mut(view).apply(changes));
                    self.readable();
                }
                Err(CellError::Store(MetadataError::Unavailable(reason))) => {
                    self.unreadable(&reason);
                    sleep(REST).await;
                }
                Err(error) => {
                    self.unreadable(&error);
                    watch = self.reload().await;
                }
            }
        }
    }

    /// Logs that a cluster begins to run, and what it was started for.
    fn log_start(&self, change: &CellChange) {
        let CellRecord::Status(Some(status)) = &change.record else { return };
        let ran = self.view.borrow().runs(&change.cluster);
        if status.phase == Phase::Running && !ran {
            let (cluster, started_for) = (&change.cluster, &status.started_for);
            tracing::info!(cluster, started_for, "the cluster runs");
        }
    }

    async fn reload(&self) -> CellWatch {
        loop {
            match load_cell(&self.cell).await {
                Ok((view, watch)) => {
                    self.view.send_modify(|former| {
                        let incarnations = former.incarnations.clone();
                        *former = Arc::new(CellView { incarnations, ..view });
                    });
                    self.readable();
                    return watch;
                }
                Err(error) => {
                    self.unreadable(&error);
                    sleep(REST).await;
                }
            }
        }
    }

    fn readable(&self) {
        if self.metrics.metadata_readable.set(1) == 0 {
            tracing::info!("the cell's metadata can be read again");
        }
    }

    /// Logs once that the store cannot be read, until it can be read again.
    fn unreadable(&self, error: &dyn std::fmt::Display) {
        if self.metrics.metadata_readable.set(0) == 1 {
            tracing::warn!(
                %error,
                "the cell's metadata cannot be read: the clusters and users that are known are \
                 served on"
            );
        }
    }
}

async fn load_cell(cell: &CellMetadata) -> Result<(CellView, CellWatch), CellError> {
    let (specs, statuses) = (cell.specs().await?, cell.statuses().await?);
    // From the earlier of the two revisions: a change between the lists arrives once more, and sets
    // what is already set.
    let watch = cell.watch(&KINDS, specs.revision.min(statuses.revision)).await?;
    let mut view = CellView::default();
    for (cluster, spec) in specs.records {
        view.specs.insert(cluster.into(), Arc::new(spec.record));
    }
    for (cluster, status) in statuses.records {
        view.statuses.insert(cluster.into(), Arc::new(status.record));
    }
    view.index();
    Ok((view, watch))
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
