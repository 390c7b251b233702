//! Takeover: a new incarnation claims its number and its slot, fences and seals the lane of every
//! earlier incarnation but those that hold the cluster's other slots, and reads what those lanes
//! hold. A restart is a takeover from the same broker's earlier incarnation; there is no other way
//! to start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt};

use super::StartError;
use super::invariants::check_succession;
use super::succession::{Succession, lane_end, lanes_of, sealed_end, taken_of};
use freshet_jobs::inherit::DeadLane;
use freshet_metadata::cluster::{ClusterError, ClusterMetadata, Fence, PartitionUpdate};
use freshet_metadata::schema::{
    BrokerPlace, Extent, IncarnationRecord, IncarnationState, PartitionRecord, Stored,
};
use freshet_metadata::view::Snapshot;
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
use freshet_world::invariants::{BrokenInvariant, expect_held};

/// How many lane folders are listed at the same time: each listing is a round trip to the shared
/// file system, and a cluster that was restarted often has many lanes.
const LISTS_AT_ONCE: usize = 32;

/// An incarnation that is about to take over, and what it needs for that.
pub struct Claimant<'a> {
    /// The disk, the object store, the clock and the source of randomness.
    pub environment: &'a Environment,
    /// The cluster's metadata.
    pub metadata: &'a ClusterMetadata,
    /// The cluster's prefix in storage.
    pub cluster: &'a str,
    /// The broker's place in the cluster.
    pub slot: u32,
    /// The machine's name, which is recorded for display only.
    pub host: &'a str,
    /// Its zone and release, and how the cluster's other brokers reach it.
    pub place: &'a BrokerPlace,
    /// How many slots the cluster has.
    pub scale: u32,
    /// Which rules of safety hold: all of them, except in a simulation.
    pub rules: Rules,
}

/// An incarnation that was claimed, and the lanes that it ended, which are sealed by then.
pub struct Claim {
    /// The new incarnation.
    pub incarnation: Incarnation,
    /// The condition of its metadata transactions: each fails once a later incarnation fenced it.
    pub fence: Fence,
    /// The owner token of its own lane: while it is unchanged, the incarnation may acknowledge.
    pub token: Arc<OwnerToken>,
    /// What it succeeds.
    pub succession: Succession,
    /// The brokers of the cluster's other slots. What they lead stays theirs.
    pub peers: BTreeSet<Incarnation>,
}

impl Claim {
    /// Whether a start takes a partition over: where nobody leads it, or one that it ended. A
    /// leader that it does not know was started since the claim.
    pub fn takes(&self) -> impl Fn(PartitionId, &PartitionRecord) -> bool {
        |_, record| record.leader.is_none_or(|leader| self.succession.lanes.contains_key(&leader))
    }

    /// Adds the lanes of peers that ended since the claim, as far as an earlier incarnation took
    /// over from them before it ended itself.
    pub fn succeed_what_others_took(&mut self, snapshot: &Snapshot) {
        let taken = taken_of(snapshot, self.takes());
        let lanes = lanes_of(&taken, &snapshot.incarnations);
        for (lane, end) in lanes {
            self.succession.lanes.entry(lane).or_insert(end);
        }
    }

    /// The lanes that must have their last file: in a cluster of one slot the newest one with
    /// blocks, whose partitions nobody took over yet. Among several brokers a lane of any number
    /// may be that of a partition's leader. Who that is, nobody knows of metadata that was restored
    /// from a backup; then each partition's offsets alone show what is missing.
    pub fn lanes_to_be_whole(&self, scale: u32, snapshot: &Snapshot) -> BTreeSet<Incarnation> {
        let Succession { lanes, unknown_lanes, .. } = &self.succession;
        if scale <= 1 {
            let newest = lanes.iter().rev().find(|(_, end)| end.sequence > 0);
            return newest.map(|(lane, _)| *lane).into_iter().collect();
        }
        if !unknown_lanes.is_empty() {
            return BTreeSet::new();
        }
        let topics = snapshot.led_topics();
        let leaders = topics.flat_map(|topic| &topic.partitions).filter_map(|it| it.record.leader);
        leaders.filter(|leader| lanes.contains_key(leader)).collect()
    }
}

/// What the lanes of earlier incarnations hold.
#[derive(Default)]
pub struct EarlierLanes {
    /// The newest manifest of each partition that a lane made count.
    pub manifests: BTreeMap<PartitionId, ManifestRef>,
    /// The batches of each partition, lane after lane and in the order of writing in each.
    pub batches: BTreeMap<PartitionId, Vec<TailBatch>>,
    /// The lanes that still have files.
    pub lanes: Vec<DeadLane>,
    /// Batches of the lane being read whose headers must still be read: an index of version 1 does
    /// not say their offsets.
    unread: Vec<(PartitionId, Epoch, LaneSpot)>,
}

impl Claimant<'_> {
    /// Claims an incarnation and the slot, then fences and seals the lane of every earlier one
    /// whose slot is this one, or nobody's.
    ///
    /// # Errors
    /// [`StartError::Superseded`] where a later incarnation has the slot; [`StartError::Lane`]
    /// where the disk fails or an earlier lane is damaged; [`StartError::Metadata`] where the
    /// metadata store fails.
    pub async fn claim(&self) -> Result<Claim, StartError> {
        let disk = self.environment.disk.as_ref();
        let root = LanePaths::lanes(self.cluster);
        disk.create_folders(&root).await.map_err(LaneError::from)?;
        let names = disk.list(&root).await.map_err(LaneError::from)?;
        let on_storage: BTreeSet<Incarnation> =
            names.iter().filter_map(|name| name.parse().ok().map(Incarnation)).collect();
        let scan = self.rules.hold(Rule::ScanStorageAtStart);
        if let (true, Some(highest)) = (scan, on_storage.last()) {
            // A metadata store that was restored from a backup would give numbers again that lanes
            // on storage already have.
            self.metadata.advance_incarnation_past(*highest).await?;
        }
        // The record before the owner token, and both before the predecessors are ended: whoever
        // starts next then finds this incarnation in the metadata store and ends its lane as well.
        let incarnation = self.claim_number().await?;
        let fence = self.register(incarnation).await?;
        let paths = LanePaths::new(self.cluster, incarnation);
        let randomness = self.environment.randomness.as_ref();
        let token = OwnerToken::claim(disk, &paths, incarnation, randomness).await?;
        let unknown = if scan { on_storage } else { BTreeSet::new() };
        let known = self.metadata.incarnations().await?;
        let peers = self.peers(incarnation, &known).await?;
        let (lanes, unknown_lanes) = self.end_predecessors(fence, known, &peers, unknown).await?;
        let succession = Succession { successor: incarnation, lanes, unknown_lanes };
        expect_held(check_succession(&succession)).map_err(LaneError::from)?;
        Ok(Claim { incarnation, fence, token: Arc::new(token), succession, peers })
    }

    /// Claims a number: the metadata store hands it out, and the exclusive creation of its folder
    /// makes sure that no incarnation on this storage ever had it, even where the metadata store
    /// was restored from a backup.
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

    /// Registers the incarnation in its slot. Of two starts that want the slot the later one gets
    /// it: it ends the other.
    async fn register(&self, incarnation: Incarnation) -> Result<Fence, StartError> {
        let (metadata, slot) = (self.metadata, self.slot);
        loop {
            let observed = metadata.slot(slot).await?;
            let holder = observed.as_ref().map(|stored| stored.record.incarnation);
            if let Some(by) = holder.filter(|holder| *holder > incarnation) {
                return Err(StartError::Superseded { by });
            }
            let (place, observed) = (self.place.clone(), observed.as_ref());
            match metadata.register_in_slot(incarnation, slot, self.host, place, observed).await {
                // Somebody else claimed it between the two.
                Err(ClusterError::Contended(_)) => {}
                registered => return Ok(registered?),
            }
        }
    }

    /// The incarnations that hold the cluster's other slots and have not ended, and those of other
    /// slots that were registered since this one.
    async fn peers(
        &self,
        me: Incarnation,
        known: &BTreeMap<Incarnation, Stored<IncarnationRecord>>,
    ) -> Result<BTreeSet<Incarnation>, StartError> {
        if self.scale <= 1 {
            return Ok(BTreeSet::new());
        }
        let slots = self.metadata.slots().await?;
        // Also in slots beyond the scale: they are about to stop, and hand over what they lead.
        let others = slots.into_iter().filter(|(slot, _)| *slot != self.slot);
        let holders: BTreeSet<_> = others.map(|(_, holder)| holder).collect();
        let peers = known.iter().filter(|(incarnation, Stored { record, .. })| {
            let is_later = **incarnation > me && record.slot != self.slot;
            is_later || holders.contains(incarnation) && record.state == IncarnationState::Live
        });
        Ok(peers.map(|(incarnation, _)| *incarnation).collect())
    }

    /// Ends the lane of every earlier incarnation that is no peer, of those that the metadata store
    /// knows and of those that only storage has. Returns the end of each lane, and the incarnations
    /// that the metadata store did not know. An incarnation that was sealed or closed keeps the end
    /// that is recorded: a lane's end is set once.
    async fn end_predecessors(
        &self,
        guard: Fence,
        known: BTreeMap<Incarnation, Stored<IncarnationRecord>>,
        peers: &BTreeSet<Incarnation>,
        on_storage: BTreeSet<Incarnation>,
    ) -> Result<(BTreeMap<Incarnation, LaneEnd>, BTreeSet<Incarnation>), StartError> {
        let me = guard.incarnation;
        let mut lanes = BTreeMap::new();
        for (incarnation, stored) in &known {
            if peers.contains(incarnation) {
                continue;
            }
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
        let unregistered = on_storage
            .into_iter()
            .filter(|incarnation| *incarnation < me && !known.contains_key(incarnation));
        let mut unknown = BTreeSet::new();
        for incarnation in unregistered {
            // Among several brokers another one may be starting: it registers before it claims the
            // token, and nothing is written without that.
            if self.scale <= 1
                || self.has_token(incarnation).await?
                    && !self.metadata.incarnations().await?.contains_key(&incarnation)
            {
                unknown.insert(incarnation);
            }
        }
        for incarnation in &unknown {
            lanes.insert(*incarnation, self.end_on_storage(guard, *incarnation).await?);
        }
        Ok((lanes, unknown))
    }

    async fn has_token(&self, incarnation: Incarnation) -> Result<bool, StartError> {
        let owner = LanePaths::new(self.cluster, incarnation).owner();
        match self.environment.disk.open(&owner).await {
            Ok(_) => Ok(true),
            Err(DiskError::NotFound(_)) => Ok(false),
            Err(error) => Err(LaneError::from(error).into()),
        }
    }

    /// Records in the metadata store the lanes that it did not know, with their ends. This is done
    /// after the partitions' extents name these lanes: a start that is interrupted before must find
    /// them unknown again, because that is how it learns that extents are missing.
    ///
    /// # Errors
    /// [`StartError::Metadata`] where the metadata store fails.
    pub async fn register_unknown_lanes(&self, claim: &Claim) -> Result<(), StartError> {
        let Succession { lanes, unknown_lanes, .. } = &claim.succession;
        for incarnation in unknown_lanes {
            match self
                .metadata
                .register_incarnation(
                    *incarnation,
                    self.slot,
                    "found on storage",
                    BrokerPlace::default(),
                )
                .await
            {
                Ok(_) | Err(ClusterError::IncarnationTaken(_)) => {}
                Err(error) => return Err(error.into()),
            }
            self.record_end(claim.fence, *incarnation, lanes[incarnation]).await?;
        }
        Ok(())
    }

    /// Fences a predecessor and seals its lane on storage, then records the lane's end. Returns the
    /// end that is recorded, which is another takeover's where that one was first.
    pub async fn end(&self, guard: Fence, predecessor: Incarnation) -> Result<LaneEnd, StartError> {
        let end = self.end_on_storage(guard, predecessor).await?;
        self.record_end(guard, predecessor, end).await
    }

    /// Fences a predecessor and seals its lane on storage only. The fence comes first: a
    /// predecessor that was not fenced could acknowledge a block after the end was chosen.
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

    /// Records that a predecessor is fenced, then the end of its lane, and returns the end that is
    /// recorded. Fenced first: its metadata transactions must fail before anybody relies on the
    /// end.
    async fn record_end(
        &self,
        guard: Fence,
        predecessor: Incarnation,
        end: LaneEnd,
    ) -> Result<LaneEnd, StartError> {
        let guarded = self.rules.hold(Rule::IncarnationIsLive).then_some(guard);
        self.metadata.mark_fenced(guarded, predecessor).await?;
        let recorded =
            self.metadata.seal_incarnation(guarded, predecessor, sealed_end(end)).await?;
        Ok(if self.rules.hold(Rule::SealOnce) { lane_end(recorded) } else { end })
    }

    /// Reads every lane of a succession that still has files. A lane of `whole` with blocks must
    /// have its last file: only an incarnation that took its partitions over removes that file,
    /// once its own checkpoint is durable, so where it is missing and no such incarnation exists,
    /// nobody knows which manifests count.
    ///
    /// # Errors
    /// [`StartError::Lane`] where a lane is damaged and still is when it is read again, where such
    /// a last file is missing, or where the disk fails.
    pub async fn survey(
        &self,
        succession: &Succession,
        whole: &BTreeSet<Incarnation>,
    ) -> Result<EarlierLanes, StartError> {
        Ok(look_again(|| self.survey_once(succession, whole)).await?)
    }

    async fn survey_once(
        &self,
        succession: &Succession,
        whole: &BTreeSet<Incarnation>,
    ) -> Result<EarlierLanes, LaneError> {
        let mut earlier = EarlierLanes::default();
        let disk = self.environment.disk.as_ref();
        let lanes: Vec<_> = succession.lanes.iter().map(|(lane, end)| (*lane, *end)).collect();
        let mut listed = stream::iter(lanes)
            .map(|(incarnation, end)| async move {
                let paths = LanePaths::new(self.cluster, incarnation);
                let names = disk.list(&paths.folder()).await;
                (incarnation, end, paths, names)
            })
            .buffered(LISTS_AT_ONCE);
        while let Some((incarnation, end, paths, names)) = listed.next().await {
            let files = file_numbers(&names?, "wal");
            let is_lost =
                whole.contains(&incarnation) && end.sequence > 0 && !files.contains(&end.file);
            if is_lost && self.rules.hold(Rule::ScanStorageAtStart) {
                let what = "the lane's last file is missing; restore it";
                return Err(LaneError::damaged(incarnation, end.file, 0, what));
            }
            if files.is_empty() {
                continue;
            }
            let mut visit = |block: ReplayedBlock| earlier.add_block(incarnation, &block);
            replay(disk, &paths, incarnation, end, self.rules, &mut visit).await?;
            earlier.read_headers(disk, &paths).await?;
            earlier.lanes.push(DeadLane { incarnation, end });
        }
        Ok(earlier)
    }
}

impl EarlierLanes {
    /// Adds a block of a lane: its batches, or the manifests that it makes count.
    fn add_block(
        &mut self,
        incarnation: Incarnation,
        replayed: &ReplayedBlock,
    ) -> Result<(), LaneError> {
        let (file, position) = (replayed.head.file, replayed.head.position);
        let unreadable = |error| LaneError::unreadable(incarnation, file, position, &error);
        let index = replayed.head.index();
        match replayed.kind() {
            BlockKind::Data => self.add_data(incarnation, replayed),
            BlockKind::Install => {
                self.add_installs(decode_installs(index).map_err(unreadable)?);
                Ok(())
            }
            BlockKind::Checkpoint => {
                self.add_installs(decode_checkpoint(index).map_err(unreadable)?.1);
                Ok(())
            }
            BlockKind::Usage | BlockKind::Close => Ok(()),
        }
    }

    fn add_installs(&mut self, installs: Vec<freshet_storage::lane::index::InstallEntry>) {
        for install in installs {
            let newest = self.manifests.entry(install.partition).or_insert(install.manifest);
            *newest = (*newest).max(install.manifest);
        }
    }

    fn add_data(
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
                    self.add_batch(
                        entry.partition,
                        TailBatch { written, epoch: entry.epoch, spot },
                    );
                }
                None => self.unread.push((entry.partition, entry.epoch, spot)),
            }
        }
        Ok(())
    }

    fn add_batch(&mut self, partition: PartitionId, batch: TailBatch) {
        self.batches.entry(partition).or_default().push(batch);
    }

    /// Adds the batches in `unread`, whose offsets it reads from their headers in the lane. The
    /// last file that was opened stays open for the next batch: batches come file by file.
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
            self.add_batch(partition, TailBatch { written, epoch, spot });
        }
        Ok(())
    }

    /// One extent for each epoch under which a lane that the metadata store did not know holds
    /// batches of a partition.
    fn unknown_extents(&self, succession: &Succession, partition: PartitionId) -> Vec<Extent> {
        let batches = self.batches.get(&partition).into_iter().flatten();
        let spans: BTreeSet<(Epoch, Incarnation)> = batches
            .filter(|batch| succession.unknown_lanes.contains(&batch.spot.incarnation))
            .map(|batch| (batch.epoch, batch.spot.incarnation))
            .collect();
        let extents = spans.into_iter().map(|(epoch, incarnation)| Extent {
            epoch,
            incarnation,
            end: succession.lanes.get(&incarnation).map(|end| sealed_end(*end)),
        });
        extents.collect()
    }

    /// The change of the metadata store by which the new incarnation becomes leader of a partition:
    /// extents of unknown lanes are added, the epoch is raised above every epoch that may have been
    /// used, and the new incarnation's own extent is opened. `None` where the epoch would overflow.
    ///
    /// # Errors
    /// The invariant that the change would break.
    pub fn succession(
        &self,
        succession: &Succession,
        partition: PartitionId,
        stored: &Stored<PartitionRecord>,
    ) -> Result<Option<PartitionUpdate>, BrokenInvariant> {
        let record = self.succeeded(succession, partition, stored);
        record.map(|record| PartitionUpdate::takeover(partition, stored, record)).transpose()
    }

    fn succeeded(
        &self,
        succession: &Succession,
        partition: PartitionId,
        stored: &Stored<PartitionRecord>,
    ) -> Option<PartitionRecord> {
        let mut record = stored.record.clone();
        for extent in self.unknown_extents(succession, partition) {
            let known = record.extents.iter().any(|other| other.epoch == extent.epoch);
            if !known {
                record.extents.push(extent);
            }
        }
        record.extents.sort_by_key(|extent| extent.epoch);
        let of_extents = record.extents.iter().map(|extent| extent.epoch).max();
        let of_manifest = self.manifest(partition, &record).map(|manifest| manifest.epoch);
        record.epoch = record.epoch.max(of_extents.unwrap_or(0)).max(of_manifest.unwrap_or(0));
        record.epoch = record.epoch.checked_add(succession.epochs_unnamed(record.leader)?)?;
        let ends = |incarnation| succession.lanes.get(&incarnation).map(|end| sealed_end(*end));
        record.led_by(succession.successor, ends)
    }

    /// The manifest that counts of a partition, as lanes or its record name it.
    pub fn manifest(&self, id: PartitionId, record: &PartitionRecord) -> Option<ManifestRef> {
        let handed = record.manifest;
        let handed = handed.map(|it| ManifestRef { epoch: it.epoch, number: it.number });
        self.manifests.get(&id).copied().max(handed)
    }

    /// Removes and returns the batches of a partition that its extents cover, in the order of the
    /// extents. Others were written by a leader that was fenced meanwhile, or are in objects; they
    /// do not belong to the log.
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
