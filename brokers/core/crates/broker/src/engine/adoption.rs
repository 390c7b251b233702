//! Adoption: an engine that serves takes over partitions of other brokers, which have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::opening::{Opened, PartitionOpener};
use super::takeover::{Claimant, Succession, lane_end};
use super::{Engine, StartError, groups};
use freshet_jobs::JobMessage;
use freshet_jobs::inherit::DeadLane;
use freshet_metadata::schema::{IncarnationRecord, PartitionRecord, Stored};
use freshet_storage::lane::index::InstallEntry;
use freshet_storage::lane::{LaneEnd, LaneError};
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
        let partitions = snapshot.led_topics().flat_map(|topic| {
            let records = topic.partitions.iter().map(|stored| &stored.record);
            let id = |index| PartitionId::new(topic.record.id, index);
            (0..).zip(records).map(move |(index, record)| (id(index), record))
        });
        let taken: Vec<_> = partitions
            .filter(|(id, record)| is_taken(*id, record))
            .map(|(_, record)| record)
            .collect();
        // Until somebody takes over from a leader, its lane has its last file.
        let whole = taken.iter().filter_map(|record| record.leader).collect();
        let succession = Succession {
            successor: self.incarnation,
            lanes: lanes_of(&taken, dead, &known),
            unknown_lanes: BTreeSet::new(),
        };
        let earlier = claimant.survey(&succession, &whole).await?;
        let lanes = earlier.lanes.clone();
        let metadata = (self.metadata.as_ref(), self.fence);
        let (environment, settings) = (&self.environment, &self.settings);
        let opener =
            PartitionOpener::new(metadata, &self.view, environment, settings, &self.sources);
        let opened = opener.open_all(&succession, earlier, is_taken).await?;
        self.serve(opened, lanes).await?;
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
            scale: self.scale,
            rules: self.settings.rules,
        }
    }
}

/// The lanes that hold what was written to these partitions, and those of the incarnations that
/// ended, as far as they are sealed.
fn lanes_of(
    taken: &[&PartitionRecord],
    dead: &BTreeSet<Incarnation>,
    known: &BTreeMap<Incarnation, Stored<IncarnationRecord>>,
) -> BTreeMap<Incarnation, LaneEnd> {
    let mut named = dead.clone();
    for record in taken {
        named.extend(record.extents.iter().map(|extent| extent.incarnation));
    }
    let ends = named.into_iter().filter_map(|incarnation| {
        let record = &known.get(&incarnation)?.record;
        Some((incarnation, lane_end(record.sealed_end?)))
    });
    ends.collect()
}
