//! Settles what earlier incarnations left: unsplit batches in the lanes of ended incarnations.
//! First they are split, then the partitions' extents are trimmed so that they no longer name those
//! lanes, and last the lanes' files are removed except for their indexes. In another order an
//! interrupted run could lose records that only a lane holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use super::JobError;
use super::split::{FILES_AT_ONCE, Splitter};
use freshet_partition::Partition;
use freshet_storage::lane::heads::Head;
use freshet_storage::lane::leftover::{BlockSummary, Leftover};
use freshet_storage::lane::reader::replay;
use freshet_storage::lane::{LaneEnd, LaneError, LaneFile, PlacedBatch, file_numbers};
use freshet_wire::ids::{Incarnation, PartitionId};

/// The extents of the cluster's partitions.
#[async_trait]
pub trait Extents: Send + Sync {
    /// Removes the extents of earlier epochs from these partitions, and returns once
    /// [`Extents::named`] shows it. The caller has split all that was written of them under these.
    /// The error is a message for the log.
    async fn trim(&self, partitions: &[PartitionId]) -> Result<(), String>;

    /// The incarnations that extents name, of partitions of any leader. A later answer may name
    /// fewer of those that have ended, and never one more.
    fn named(&self) -> BTreeSet<Incarnation>;
}

/// A lane of an incarnation that has ended and is sealed.
#[derive(Debug, Clone, Copy)]
pub struct DeadLane {
    /// The incarnation that wrote it.
    pub incarnation: Incarnation,
    /// Its end.
    pub end: LaneEnd,
}

/// What ended incarnations left to be settled.
pub struct Inherited {
    /// Every lane of them that still has files.
    pub lanes: Vec<DeadLane>,
    /// The extents of the cluster's partitions.
    pub extents: Arc<dyn Extents>,
}

impl Inherited {
    /// Splits all that the lanes hold of the own partitions, trims their extents, and retires the
    /// files of lanes that no extent names any more.
    ///
    /// # Errors
    /// Any [`JobError`]; what was done by then stays done, and the caller may try again.
    pub async fn settle(&mut self, splitter: &mut Splitter) -> Result<(), JobError> {
        let context = Arc::clone(splitter.context());
        let sizes = splitter.settings();
        // Partitions that are registered meanwhile are another call's.
        let partitions = context.partitions.all();
        let mut files = inherited_files(&partitions).into_values().peekable();
        while let Some(mut batches) = files.next() {
            let large = sizes.are_large(&batches);
            for _ in 1..FILES_AT_ONCE {
                let fits = |next: &Vec<_>| large && sizes.are_large(next);
                let Some(next) = files.next_if(fits) else { break };
                batches.extend(next);
            }
            splitter.split(batches).await?;
        }
        // Those that went offline meanwhile keep theirs: what they have in lanes was not split.
        let ids = partitions.iter().map(|partition| partition.id());
        let settled: Vec<_> = ids.filter(|id| context.partitions.get(*id).is_some()).collect();
        self.extents.trim(&settled).await.map_err(JobError::Metadata)?;
        self.retire(splitter).await
    }

    /// Retires the files of lanes that no extent names any more; others are left for a later call:
    /// some broker has records in them that are not split yet.
    ///
    /// # Errors
    /// As [`Inherited::settle`].
    pub async fn retire(&mut self, splitter: &Splitter) -> Result<(), JobError> {
        // The records of an offline partition may be in any of these lanes.
        if self.lanes.is_empty() || splitter.context().partitions.any_offline() {
            return Ok(());
        }
        let named = self.extents.named();
        let is_named = |lane: &DeadLane| named.contains(&lane.incarnation);
        for lane in self.lanes.iter().filter(|lane| !is_named(lane)) {
            retire_lane(splitter, *lane).await?;
        }
        self.lanes.retain(is_named);
        Ok(())
    }
}

/// The unsplit batches of earlier epochs by lane file, in an order in which each partition's
/// offsets ascend. First come the files of each partition's earliest epoch, then those of the next
/// one: among several brokers an earlier epoch may be that of a later incarnation.
fn inherited_files(partitions: &[Arc<Partition>]) -> BTreeMap<InheritedFile, Vec<PlacedBatch>> {
    let mut files: BTreeMap<_, Vec<PlacedBatch>> = BTreeMap::new();
    for partition in partitions {
        let (mut epochs, mut newest) = (0, None);
        for batch in partition.unsplit() {
            if batch.epoch >= partition.epoch() {
                break;
            }
            if newest.replace(batch.epoch) != Some(batch.epoch) {
                epochs += 1;
            }
            let file = (epochs, batch.spot.incarnation, batch.spot.file);
            files.entry(file).or_default().push(PlacedBatch {
                partition: partition.id(),
                base_offset: batch.base_offset,
                epoch: batch.epoch,
                spot: batch.spot,
            });
        }
    }
    files
}

/// A file's place in that order: of a partition's first, second or later epoch, the lane, the file.
type InheritedFile = (usize, Incarnation, LaneFile);

async fn retire_lane(splitter: &Splitter, lane: DeadLane) -> Result<(), JobError> {
    let context = splitter.context();
    let paths = context.lane_paths(lane.incarnation);
    let disk = context.disk.as_ref();
    let names = disk.list(&paths.folder()).await.map_err(LaneError::from)?;
    let numbers = file_numbers(&names, "wal");
    if numbers.is_empty() {
        // Another survivor has retired it.
        return Ok(());
    }
    let mut leftovers: BTreeMap<u64, Leftover> = BTreeMap::new();
    let mut keep = |head: &Head| -> Result<(), LaneError> {
        let sequence = head.header.sequence;
        let leftover = leftovers.entry(head.file).or_insert_with(|| Leftover {
            incarnation: lane.incarnation,
            file: head.file,
            sequences: (sequence, sequence),
            blocks: Vec::new(),
        });
        leftover.sequences.1 = sequence;
        leftover.blocks.push(BlockSummary::of(&head.raw).expect("the replay parsed it"));
        Ok(())
    };
    let rules = context.sources.rules;
    replay(disk, &paths, lane.incarnation, lane.end, rules, &mut |block| keep(&block.head)).await?;
    // Files that were created ahead of use are removed first: such a file alone would look like one
    // that lost its checkpoint.
    for number in numbers.iter().filter(|number| !leftovers.contains_key(number)) {
        splitter.remove(lane.incarnation, *number).await?;
    }
    for leftover in leftovers.values().filter(|leftover| numbers.contains(&leftover.file)) {
        splitter.retire(leftover).await?;
    }
    // The copies of blocks in SEAL are not read any more.
    context.sources.lanes.forget(lane.incarnation, LaneFile::Seal);
    Ok(())
}
