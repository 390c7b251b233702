//! A hand-over: an engine gives partitions to a live broker, by which nothing is copied. What is
//! not split of them yet is split first, so that objects hold all of their records.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::groups::{self, OFFSETS_TOPIC};
use super::{Engine, RETRY_AFTER, StartError};
use freshet_jobs::JobMessage;
use freshet_metadata::cluster::{ClusterError, PartitionUpdate};
use freshet_metadata::schema::{
    IncarnationRecord, IncarnationState, ManifestName, PartitionRecord, Stored,
};
use freshet_metadata::view::Snapshot;
use freshet_partition::Partition;
use freshet_storage::lane::LaneError;
use freshet_storage::names::ManifestRef;
use freshet_wire::ids::{Incarnation, PartitionId};

/// How long a hand-over waits for partitions that are not open here. The controller, whose image of
/// the metadata may be newer, repeats it much later.
const OPEN_MAX: Duration = Duration::from_secs(1);
/// How long partitions may take to be split while they serve on, before they drain. One that takes
/// longer is not handed over now.
const CATCH_UP_MAX: Duration = Duration::from_secs(3);
/// How long partitions may take no batches before it is known whether they can be handed over.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// The name of a manifest, as the metadata store has it.
fn manifest_name(name: ManifestRef) -> ManifestName {
    ManifestName { epoch: name.epoch, number: name.number }
}

impl Engine {
    /// Hands partitions over to another broker of the cluster. While it does, they take no batches;
    /// the successor serves them once its image of the metadata shows it. Returns those that were
    /// handed over: the others go on as before, such as one that has inherited records which are
    /// not split yet.
    ///
    /// # Errors
    /// Where the engine ends, or the successor has ended. Nothing is handed over then.
    pub async fn hand_over(
        &self,
        partitions: &[PartitionId],
        successor: Incarnation,
    ) -> Result<Vec<PartitionId>, StartError> {
        let _handing = self.handing.lock().await;
        let all_open = |_: &Snapshot| partitions.iter().all(|id| self.partitions.serves(*id));
        let _ = timeout(OPEN_MAX, self.wait_until(all_open)).await;
        let open = partitions.iter().filter_map(|id| self.partitions.get(*id));
        let open: Vec<_> = open.collect();
        if open.is_empty() {
            return Ok(Vec::new());
        }
        // While they take batches still, so that what is left to split takes a moment only.
        let Ok(caught_up) = timeout(CATCH_UP_MAX, self.catch_up()).await else {
            return Ok(Vec::new());
        };
        caught_up?;
        // Before they take no more batches: a metadata store that is away would keep them so.
        self.live(successor).await?;
        // Storage may fail meanwhile; then they go on to take batches.
        let drained = timeout(DRAIN_MAX, self.drain(&open)).await;
        let drained = drained.unwrap_or_else(|_| Ok(Vec::new()));
        // One at a time with adoptions: both change what is led.
        let _changing = self.adopting.lock().await;
        let outcome = match &drained {
            Ok(drained) => self.give_away(drained, successor).await,
            Err(_) => Ok(Vec::new()),
        };
        let given = outcome.as_ref().map_or(&[][..], |given| &given[..]);
        let load_groups = groups::coordinator_loader(&self.groups, &self.view);
        for partition in open.iter().filter(|partition| !given.contains(&partition.id())) {
            if self.resolve(partition).await {
                partition.go_on();
                self.partitions.unhold(partition);
                load_groups(Arc::clone(partition));
            }
        }
        drained?;
        outcome
    }

    /// The record of an incarnation that lives, as the metadata store has it now.
    async fn live(
        &self,
        incarnation: Incarnation,
    ) -> Result<Stored<IncarnationRecord>, ClusterError> {
        let mut known = self.metadata.incarnations().await?;
        let live = known.remove(&incarnation);
        let live = live.filter(|stored| stored.record.state == IncarnationState::Live);
        live.ok_or(ClusterError::Fenced(incarnation))
    }

    /// Waits until objects hold all that was taken before.
    async fn catch_up(&self) -> Result<(), StartError> {
        self.lane.roll().await?;
        self.release(Vec::new()).await?;
        Ok(())
    }

    /// Waits until the jobs have split what was rolled, and lets them change the manifests of these
    /// partitions no more. Returns those of which objects hold all.
    async fn release(
        &self,
        partitions: Vec<Arc<Partition>>,
    ) -> Result<Vec<Arc<Partition>>, StartError> {
        let closed = || LaneError::Closed(self.incarnation);
        let (done, released) = oneshot::channel();
        self.jobs.send(JobMessage::Release(partitions, done)).map_err(|_| closed())?;
        Ok(released.await.map_err(|_| closed())?)
    }

    /// Takes no more batches, and waits until objects hold all that was taken. Returns the
    /// partitions of which that is so.
    async fn drain(&self, open: &[Arc<Partition>]) -> Result<Vec<Arc<Partition>>, StartError> {
        let closed = || LaneError::Closed(self.incarnation);
        self.unload_groups(open);
        let ends: Vec<_> = open.iter().map(|partition| partition.drain()).collect();
        for (partition, end) in open.iter().zip(ends) {
            partition.durable(end).await.map_err(|_| closed())?;
        }
        self.lane.roll().await?;
        self.release(open.to_vec()).await
    }

    fn unload_groups(&self, partitions: &[Arc<Partition>]) {
        for partition in partitions.iter().filter(|it| &*it.topic() == OFFSETS_TOPIC) {
            self.groups.unload(partition.id().index);
        }
    }

    /// Makes the successor the leader of partitions that are drained. Returns those of which the
    /// metadata store says so.
    async fn give_away(
        &self,
        drained: &[Arc<Partition>],
        successor: Incarnation,
    ) -> Result<Vec<PartitionId>, StartError> {
        let live = self.live(successor).await?;
        let mut updates = Vec::with_capacity(drained.len());
        for partition in drained {
            // Before the successor can lead it, nobody learns here where it ends.
            self.partitions.hold(partition);
            // Again: they may have been loaded since, as after an adoption a moment ago. Whoever
            // loads them from here on finds no partition.
            self.unload_groups(std::slice::from_ref(partition));
            let Some(stored) = self.metadata.partition(partition.id()).await? else { continue };
            let manifest = partition.manifest_name().map(manifest_name);
            let is_own = |record: &PartitionRecord| {
                let mut extents = record.extents.iter();
                extents.all(|extent| extent.incarnation == self.incarnation)
            };
            if stored.record.leader != Some(self.incarnation) || !is_own(&stored.record) {
                continue;
            }
            let Some(record) = stored.record.handed_to(successor, manifest) else { continue };
            let update = PartitionUpdate::hand_over(partition.id(), &stored, record);
            updates.push(update.map_err(ClusterError::from)?);
        }
        let changed = self.metadata.hand_over(self.fence, (successor, &live), updates).await?;
        // Not before the image shows it: the topic keeper would open what it believes to lead.
        self.view
            .wait_for(changed.revision)
            .await
            .map_err(|_| LaneError::Closed(self.incarnation))?;
        let given: Vec<_> = changed.updated.iter().map(|(id, _)| *id).collect();
        for partition in drained.iter().filter(|partition| given.contains(&partition.id())) {
            self.partitions.remove(partition);
        }
        tracing::info!(to = successor.0, partitions = given.len(), "handed over");
        // Some may have come back before they were removed here.
        self.keeper.look_again();
        Ok(given)
    }

    /// Finds out who leads a partition of which that is not known, and forgets it where it is
    /// somebody else. Returns whether this engine goes on to lead it.
    ///
    /// A transaction whose answer was lost may still be carried out. The record is written anew, so
    /// that it is not.
    async fn resolve(&self, partition: &Arc<Partition>) -> bool {
        while !self.liveness.is_down() {
            match self.metadata.partition(partition.id()).await {
                Ok(Some(stored)) if stored.record.leader == Some(self.incarnation) => {
                    if self.renew(partition.id(), &stored).await {
                        return true;
                    }
                }
                Ok(Some(stored)) => {
                    if self.view.wait_for(stored.revision).await.is_ok() {
                        self.partitions.remove(partition);
                        self.keeper.look_again();
                    }
                    return false;
                }
                // Its topic is gone: the topic keeper closes it.
                Ok(None) => return false,
                Err(error) => tracing::warn!(%error, "cannot find out who leads a partition yet"),
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
        false
    }

    async fn renew(&self, id: PartitionId, stored: &Stored<PartitionRecord>) -> bool {
        let Ok(same) = PartitionUpdate::trim(id, stored, stored.record.clone()) else {
            return false;
        };
        let renewed = self.metadata.trim_extents(self.fence, vec![same]).await;
        renewed.is_ok_and(|renewed| renewed.lost.is_empty())
    }
}
