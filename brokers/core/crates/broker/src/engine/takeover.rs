//! Becoming the successor: claim an incarnation, fence and seal whoever was before, and find out
//! what they left. A restart is a takeover from oneself; there is no other way to start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt};

use super::StartError;
use freshet_jobs::inherit::DeadLane;
use freshet_metadata::cluster::{ClusterError, ClusterMetadata, Fence, PartitionUpdate};
use freshet_metadata::schema::{Extent, IncarnationState, PartitionRecord, SealedEnd, Stored};
use freshet_partition::load::TailBatch;
use freshet_storage::lane::block::BlockKind;
use freshet_storage::lane::heads::Head;
use freshet_storage::lane::index::{decode_checkpoint, decode_data, decode_installs};
use freshet_storage::lane::reader::{ReplayedBlock, replay};
use freshet_storage::lane::seal::seal;
use freshet_storage::lane::token::{OwnerToken, fence};
use freshet_storage::lane::{
    LaneEnd, LaneError, LaneFile, LanePaths, LaneSpot, file_numbers, look_again,
};
use freshet_storage::names::ManifestRef;
use freshet_storage::rules::{Rule, Rules};
use freshet_storage::state::producers::WrittenBatch;
use freshet_wire::ids::{Epoch, Incarnation, PartitionId};
use freshet_wire::records::{BatchHeader, HEADER_BYTES as BATCH_HEADER_BYTES};
use freshet_world::env::{Disk, DiskError, Environment, File};

/// Folders of lanes that are listed side by side.
const LISTS_AT_ONCE: usize = 32;

/// Where a lane ends, as the metadata says it.
fn lane_end(end: SealedEnd) -> LaneEnd {
    LaneEnd { file: end.file, sequence: end.sequence }
}

/// Where a lane ends, for the metadata.
pub(super) fn sealed_end(end: LaneEnd) -> SealedEnd {
    SealedEnd { file: end.file, sequence: end.sequence }
}

/// What a takeover works with.
pub struct Claimant<'a> {
    /// The outside world.
    pub environment: &'a Environment,
    /// The cluster's metadata.
    pub metadata: &'a ClusterMetadata,
    /// The cluster's prefix in storage.
    pub cluster: &'a str,
    /// The broker's place in the cluster.
    pub slot: u32,
    /// For display.
    pub host: &'a str,
    /// Which rules hold.
    pub rules: Rules,
}

/// The right to act, and who was before.
pub struct Claim {
    /// The new incarnation.
    pub incarnation: Incarnation,
    /// What every metadata transaction of it compares.
    pub fence: Fence,
    /// The right to ack.
    pub token: Arc<OwnerToken>,
    /// Every earlier lane with its end.
    pub lanes: BTreeMap<Incarnation, LaneEnd>,
    /// Those of them that the metadata store did not know: it came back from a backup.
    pub unknown_lanes: BTreeSet<Incarnation>,
}

impl Claim {
    /// By how much the epoch of a partition may be above all that storage and metadata name, where
    /// they know `leader` as the last that led it. An incarnation that the metadata does not know
    /// may have led under an epoch that no block of it names, and its lane may be gone for good:
    /// each one raised it by one at the most.
    fn epochs_unnamed(&self, leader: Option<Incarnation>) -> Option<i32> {
        if self.unknown_lanes.is_empty() {
            return Some(0);
        }
        let known = leader.map_or(0, |leader| leader.0);
        i32::try_from(self.incarnation.0.saturating_sub(known.saturating_add(1))).ok()
    }
}

/// What earlier lanes hold.
#[derive(Default)]
pub struct EarlierLanes {
    /// The newest manifest of each partition that counts.
    pub manifests: BTreeMap<PartitionId, ManifestRef>,
    /// Batches by partition, in the order of lanes.
    pub batches: BTreeMap<PartitionId, Vec<TailBatch>>,
    /// The lanes that were read.
    pub lanes: Vec<DeadLane>,
    /// Batches of the lane that is read, whose index is of version 1.
    unread: Vec<(PartitionId, Epoch, LaneSpot)>,
}

impl Claimant<'_> {
    /// Claims an incarnation and ends every earlier one.
    ///
    /// # Errors
    /// [`StartError::Superseded`] where a later incarnation lives, damage in an earlier lane, or
    /// what the disk and the metadata store say.
    pub async fn claim(&self) -> Result<Claim, StartError> {
        let disk = self.environment.disk.as_ref();
        let root = LanePaths::lanes(self.cluster);
        disk.create_folders(&root).await.map_err(LaneError::from)?;
        let names = disk.list(&root).await.map_err(LaneError::from)?;
        let on_storage: BTreeSet<Incarnation> =
            names.iter().filter_map(|name| name.parse().ok().map(Incarnation)).collect();
        let scan = self.rules.hold(Rule::ScanStorageAtStart);
        if let (true, Some(highest)) = (scan, on_storage.last()) {
            self.metadata.advance_incarnation_past(*highest).await?;
        }
        let incarnation = self.claim_number().await?;
        let fence = self.metadata.register_incarnation(incarnation, self.slot, self.host).await?;
        let paths = LanePaths::new(self.cluster, incarnation);
        let randomness = self.environment.randomness.as_ref();
        let token = OwnerToken::claim(disk, &paths, incarnation, randomness).await?;
        let unknown = if scan { on_storage } else { BTreeSet::new() };
        let (lanes, unknown_lanes) = self.end_predecessors(fence, unknown).await?;
        Ok(Claim { incarnation, fence, token: Arc::new(token), lanes, unknown_lanes })
    }

    /// A number is ours once the metadata store gave it and its folder was not there.
    async fn claim_number(&self) -> Result<Incarnation, StartError> {
        loop {
            let incarnation = self.metadata.next_incarnation().await?;
            let folder = LanePaths::new(self.cluster, incarnation).folder();
            match self.environment.disk.create_folder_exclusive(&folder).await {
                Err(DiskError::Exists(_)) => {}
                created => {
                    created.map_err(LaneError::from)?;
                    return Ok(incarnation);
                }
            }
        }
    }

    async fn end_predecessors(
        &self,
        guard: Fence,
        on_storage: BTreeSet<Incarnation>,
    ) -> Result<(BTreeMap<Incarnation, LaneEnd>, BTreeSet<Incarnation>), StartError> {
        let known = self.metadata.incarnations().await?;
        let me = guard.incarnation;
        let mut lanes = BTreeMap::new();
        for (incarnation, stored) in &known {
            if *incarnation > me {
                return Err(StartError::Superseded { by: *incarnation });
            }
            if *incarnation < me {
                let end = match stored.record.state {
                    IncarnationState::Live | IncarnationState::Fenced => {
                        self.end(guard, *incarnation).await?
                    }
                    IncarnationState::Sealed | IncarnationState::Closed => {
                        match stored.record.sealed_end {
                            Some(end) => lane_end(end),
                            // No release writes this; the lane itself says where it ends.
                            None => self.end_on_storage(guard, *incarnation).await?,
                        }
                    }
                };
                lanes.insert(*incarnation, end);
            }
        }
        let strangers: BTreeSet<Incarnation> = on_storage
            .into_iter()
            .filter(|incarnation| *incarnation < me && !known.contains_key(incarnation))
            .collect();
        for stranger in &strangers {
            lanes.insert(*stranger, self.end_on_storage(guard, *stranger).await?);
        }
        Ok((lanes, strangers))
    }

    /// Makes lanes that the metadata store did not know known to it. Only once the partitions'
    /// extents name them: until then each start has to find them anew.
    ///
    /// # Errors
    /// What the metadata store says.
    pub async fn register_unknown_lanes(&self, claim: &Claim) -> Result<(), StartError> {
        for incarnation in &claim.unknown_lanes {
            match self
                .metadata
                .register_incarnation(*incarnation, self.slot, "found on storage")
                .await
            {
                Ok(_) | Err(ClusterError::IncarnationTaken(_)) => {}
                Err(error) => return Err(error.into()),
            }
            self.record_end(claim.fence, *incarnation, claim.lanes[incarnation]).await?;
        }
        Ok(())
    }

    /// Fences a predecessor on storage, then gives its lane the end that everybody keeps to.
    async fn end(&self, guard: Fence, predecessor: Incarnation) -> Result<LaneEnd, StartError> {
        let end = self.end_on_storage(guard, predecessor).await?;
        self.record_end(guard, predecessor, end).await
    }

    async fn end_on_storage(
        &self,
        guard: Fence,
        predecessor: Incarnation,
    ) -> Result<LaneEnd, StartError> {
        let paths = LanePaths::new(self.cluster, predecessor);
        let disk = self.environment.disk.as_ref();
        if self.rules.hold(Rule::FenceBeforeSeal) {
            let randomness = self.environment.randomness.as_ref();
            fence(disk, &paths, guard.incarnation, randomness).await.map_err(LaneError::from)?;
        }
        Ok(seal(disk, &paths, predecessor, self.rules).await?.end)
    }

    async fn record_end(
        &self,
        guard: Fence,
        predecessor: Incarnation,
        end: LaneEnd,
    ) -> Result<LaneEnd, StartError> {
        let guarded = self.rules.hold(Rule::IncarnationIsLive).then_some(guard);
        self.metadata.mark_fenced(guarded, predecessor).await?;
        let stands = self.metadata.seal_incarnation(guarded, predecessor, sealed_end(end)).await?;
        Ok(lane_end(stands))
    }

    /// Reads every earlier lane that still has files. The last one that holds anything must: only a
    /// successor with a lane of its own removes a lane's last file, so where it is missing, nobody
    /// knows any more which manifests count.
    ///
    /// # Errors
    /// Damage, also at another look, or what the disk says.
    pub async fn survey(&self, claim: &Claim) -> Result<EarlierLanes, StartError> {
        Ok(look_again(|| self.survey_once(claim)).await?)
    }

    async fn survey_once(&self, claim: &Claim) -> Result<EarlierLanes, LaneError> {
        let mut earlier = EarlierLanes::default();
        let disk = self.environment.disk.as_ref();
        let newest = claim.lanes.iter().rev().find(|(_, end)| end.sequence > 0);
        let lanes: Vec<_> = claim.lanes.iter().map(|(lane, end)| (*lane, *end)).collect();
        let mut listed = stream::iter(lanes)
            .map(|(incarnation, end)| async move {
                let paths = LanePaths::new(self.cluster, incarnation);
                let names = disk.list(&paths.folder()).await;
                (incarnation, end, paths, names)
            })
            .buffered(LISTS_AT_ONCE);
        while let Some((incarnation, end, paths, names)) = listed.next().await {
            let files = file_numbers(&names?, "wal");
            let lost = newest.is_some_and(|(newest, _)| *newest == incarnation)
                && !files.contains(&end.file);
            if lost && self.rules.hold(Rule::ScanStorageAtStart) {
                let what = "the lane's last file is missing; restore it";
                return Err(LaneError::damaged(incarnation, end.file, 0, what));
            }
            if files.is_empty() {
                continue;
            }
            let mut visit = |block: ReplayedBlock| earlier.take(incarnation, &block);
            replay(disk, &paths, incarnation, end, self.rules, &mut visit).await?;
            earlier.read_headers(disk, &paths).await?;
            earlier.lanes.push(DeadLane { incarnation, end });
        }
        Ok(earlier)
    }
}

impl EarlierLanes {
    fn take(
        &mut self,
        incarnation: Incarnation,
        replayed: &ReplayedBlock,
    ) -> Result<(), LaneError> {
        let (file, position) = (replayed.head.file, replayed.head.position);
        let unreadable = |error| LaneError::unreadable(incarnation, file, position, &error);
        let index = replayed.head.index();
        match replayed.kind() {
            BlockKind::Data => self.take_data(incarnation, replayed),
            BlockKind::Install => {
                self.take_installs(decode_installs(index).map_err(unreadable)?);
                Ok(())
            }
            BlockKind::Checkpoint => {
                self.take_installs(decode_checkpoint(index).map_err(unreadable)?.1);
                Ok(())
            }
            BlockKind::Usage | BlockKind::Close => Ok(()),
        }
    }

    fn take_installs(&mut self, installs: Vec<freshet_storage::lane::index::InstallEntry>) {
        for install in installs {
            let newest = self.manifests.entry(install.partition).or_insert(install.manifest);
            *newest = (*newest).max(install.manifest);
        }
    }

    fn take_data(
        &mut self,
        incarnation: Incarnation,
        replayed: &ReplayedBlock,
    ) -> Result<(), LaneError> {
        let Head { file, position, header, .. } = &replayed.head;
        let entries = decode_data(replayed.head.index(), header)
            .map_err(|error| LaneError::unreadable(incarnation, *file, *position, &error))?;
        for entry in entries {
            let spot = LaneSpot {
                incarnation,
                file: replayed.file,
                position: replayed.payload_position + u64::from(entry.position),
                length: entry.length,
                written_at_ms: header.written_at_ms,
            };
            match &entry.facts {
                Some(facts) => {
                    let written = WrittenBatch::of_entry(&entry, facts);
                    self.take_batch(
                        entry.partition,
                        TailBatch { written, epoch: entry.epoch, spot },
                    );
                }
                None => self.unread.push((entry.partition, entry.epoch, spot)),
            }
        }
        Ok(())
    }

    fn take_batch(&mut self, partition: PartitionId, batch: TailBatch) {
        self.batches.entry(partition).or_default().push(batch);
    }

    /// Takes the batches whose index says too little of them, by their headers.
    async fn read_headers(&mut self, disk: &dyn Disk, paths: &LanePaths) -> Result<(), LaneError> {
        let mut open: Option<(LaneFile, Arc<dyn File>)> = None;
        for (partition, epoch, spot) in std::mem::take(&mut self.unread) {
            let file = match &open {
                Some((known, file)) if *known == spot.file => file,
                _ => &open.insert((spot.file, disk.open(&paths.file(spot.file)).await?)).1,
            };
            let bytes = file.read_uncached_at(spot.position, BATCH_HEADER_BYTES).await?;
            let header = BatchHeader::parse(&bytes).map_err(|error| {
                let number = if let LaneFile::Wal(number) = spot.file { number } else { 0 };
                let what = error.to_string();
                LaneError::damaged(spot.incarnation, number, spot.position, what)
            })?;
            let written = WrittenBatch::from(&header);
            self.take_batch(partition, TailBatch { written, epoch, spot });
        }
        Ok(())
    }

    /// The epochs under which unknown lanes hold something of a partition.
    fn unknown_extents(&self, claim: &Claim, partition: PartitionId) -> Vec<Extent> {
        let batches = self.batches.get(&partition).into_iter().flatten();
        let found: BTreeSet<(Epoch, Incarnation)> = batches
            .filter(|batch| claim.unknown_lanes.contains(&batch.spot.incarnation))
            .map(|batch| (batch.epoch, batch.spot.incarnation))
            .collect();
        let extents = found.into_iter().map(|(epoch, incarnation)| Extent {
            epoch,
            incarnation,
            end: claim.lanes.get(&incarnation).map(|end| sealed_end(*end)),
        });
        extents.collect()
    }

    /// The record by which the new incarnation takes a partition over.
    pub fn succession(
        &self,
        claim: &Claim,
        partition: PartitionId,
        stored: &Stored<PartitionRecord>,
    ) -> Option<PartitionUpdate> {
        let mut record = stored.record.clone();
        for extent in self.unknown_extents(claim, partition) {
            let known = record.extents.iter().any(|other| other.epoch == extent.epoch);
            if !known {
                record.extents.push(extent);
            }
        }
        record.extents.sort_by_key(|extent| extent.epoch);
        let of_extents = record.extents.iter().map(|extent| extent.epoch).max();
        let of_manifest = self.manifests.get(&partition).map(|manifest| manifest.epoch);
        record.epoch = record.epoch.max(of_extents.unwrap_or(0)).max(of_manifest.unwrap_or(0));
        record.epoch = record.epoch.checked_add(claim.epochs_unnamed(record.leader)?)?;
        let ends = |incarnation| claim.lanes.get(&incarnation).map(|end| sealed_end(*end));
        let record = record.led_by(claim.incarnation, ends)?;
        Some(PartitionUpdate { partition, revision: stored.revision, record })
    }

    /// The batches of a partition that its extents cover, in the order of the extents.
    pub fn tail(&mut self, partition: PartitionId, record: &PartitionRecord) -> Vec<TailBatch> {
        let mut batches = self.batches.remove(&partition).unwrap_or_default();
        let extent = |batch: &TailBatch| (batch.epoch, batch.spot.incarnation);
        let extents: BTreeSet<_> =
            record.extents.iter().map(|extent| (extent.epoch, extent.incarnation)).collect();
        batches.retain(|batch| extents.contains(&extent(batch)));
        batches.sort_by_key(|batch| batch.epoch);
        batches
    }
}
