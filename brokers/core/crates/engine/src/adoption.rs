//! Adoption: an engine that serves takes over partitions of other brokers, which have ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::opening::{Opened, PartitionOpener};
use super::succession::{Succession, ends_of, lanes_of, taken_of};
use super::takeover::Claimant;
use super::{Engine, StartError, groups};
use freshet_jobs::JobMessage;
use freshet_jobs::inherit::DeadLane;
use freshet_metadata::schema::PartitionRecord;
use freshet_storage::lane::LaneError;
use freshet_storage::lane::index::InstallEntry;
use freshet_wire::ids::{Incarnation, PartitionId};

impl Engine {
    /// Ends incarnations of other brokers, and takes over those of their partitions for which
    /// `is_assigned` holds. They are served once this returns. Several survivors may do this at a
    /// time for the same brokers: of two that want a partition one gets it.
    ///
    /// # Errors
    /// Any [`StartError`]. What was taken over by then is led by this incarnation and not served:
    /// the caller calls this again, or stands down.
    pub async fn adopt(
        &self,
        dead: &BTreeSet<Incarnation>,
        is_assigned: impl Fn(PartitionId) -> bool,
    ) -> Result<(), StartError> {
        // One at a time: what another one has taken and not registered yet must not be taken again.
        let _adopting = self.adopting.lock().await;
        let claimant = self.claimant();
        for incarnation in dead {
            claimant.end(self.fence, *incarnation).await?;
        }
        let known = self.metadata.incarnations().await?;
        let ends = dead.iter().filter_map(|incarnation| known.get(incarnation));
        let ended = ends.map(|stored| stored.revision).max().unwrap_or(0);
        // From here on the image shows all that they wrote to the metadata store.
        self.view.wait_for(ended).await.map_err(|_| LaneError::Closed(self.incarnation))?;
        let snapshot = self.view.snapshot();
        let is_taken = |id: PartitionId, record: &PartitionRecord| {
            let of_dead = record.leader.is_some_and(|leader| dead.contains(&leader));
            // What an earlier call took and could not open. New partitions, of which others have no
            // extents, are opened by the topic keeper.
            let is_left = record.leader == Some(self.incarnation)
                && record.extents.iter().any(|extent| extent.incarnation != self.incarnation)
                && !self.partitions.contains(id);
            is_left || of_dead && is_assigned(id)
        };
        let taken = taken_of(&snapshot, is_taken);
        // Until somebody takes over from a leader, its lane has its last file.
        let whole = taken.iter().filter_map(|record| record.leader).collect();
        let succession = Succession {
            successor: self.incarnation,
            // Others may retire a lane that none of these needs.
            lanes: lanes_of(&taken, &known),
            unknown_lanes: BTreeSet::new(),
        };
        let earlier = claimant.survey(&succession, &whole).await?;
        let mut ended = ends_of(dead, &known);
        ended.extend(earlier.lanes.iter().map(|lane| (lane.incarnation, lane.end)));
        let lanes = ended.into_iter().map(|(incarnation, end)| DeadLane { incarnation, end });
        let metadata = (self.metadata.as_ref(), self.fence);
        let (environment, settings) = (&self.environment, &self.settings);
        let opener =
            PartitionOpener::new(metadata, &self.view, environment, settings, &self.sources);
        let opened = opener.open_all(&succession, earlier, is_taken).await?;
        tracing::info!(?dead, partitions = opened.len(), "took over");
        self.serve(opened, lanes.collect()).await?;
        Ok(())
    }

    /// Serves partitions once this lane names the manifests that count of them.
    async fn serve(&self, opened: Vec<Opened>, lanes: Vec<DeadLane>) -> Result<(), LaneError> {
        let open = |opened: &Opened| match opened {
            Opened::Open(partition) => Some(Arc::clone(partition)),
            Opened::Offline(_) => None,
        };
        let served: Vec<_> = opened.iter().filter_map(open).collect();
        let entries = served.iter().filter_map(|partition| {
            let manifest = partition.manifest_name()?;
            Some(InstallEntry { partition: partition.id(), manifest })
        });
        let entries: Vec<_> = entries.collect();
        let (partitions, jobs) = (Arc::clone(&self.partitions), self.jobs.clone());
        let effect = move || {
            let (done, registered) = oneshot::channel();
            // Before anything can be appended to the partitions: what was written under earlier
            // epochs is split before the first file that holds something of this one.
            let _ = jobs.send(JobMessage::Inherit(lanes, registered));
            for opened in opened {
                opened.register(&partitions);
            }
            let _ = done.send(());
        };
        if entries.is_empty() {
            // All that there is of them is in lanes that their extents name.
            effect();
        } else {
            self.lane.install(entries, Box::new(effect)).await?;
        }
        let load_groups = groups::coordinator_loader(&self.groups, &self.view);
        served.iter().cloned().for_each(load_groups);
        self.keeper.note_adopted(&served);
        Ok(())
    }

    fn claimant(&self) -> Claimant<'_> {
        Claimant {
            environment: &self.environment,
            metadata: &self.metadata,
            cluster: &self.settings.cluster,
            slot: self.settings.slot,
            host: &self.settings.host,
            place: &self.settings.place,
            scale: self.view.snapshot().scale(),
            rules: self.settings.rules,
        }
    }
}
