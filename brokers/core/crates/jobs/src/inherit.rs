//! Settles what earlier incarnations left: unsplit batches in the lanes of ended incarnations.
//! First they are split, then the partitions' extents are trimmed so that they no longer name those
//! lanes, and last the lanes' files are removed except for their indexes. In another order an
//! interrupted run could lose records that only a lane holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::split::{FILES_AT_ONCE, Splitter};
use super::{JobContext, JobError};
use freshet_storage::lane::heads::Head;
use freshet_storage::lane::leftover::{BlockSummary, Leftover};
use freshet_storage::lane::reader::replay;
use freshet_storage::lane::{LaneEnd, LaneError, LaneFile, PlacedBatch, file_numbers};
use freshet_wire::ids::{Incarnation, PartitionId};

/// Trims partitions' extent lists to the present epoch.
#[async_trait]
pub trait ExtentTrimmer: Send + Sync {
    /// Removes the extents of earlier epochs from these partitions. The caller has split all that
    /// was written of them under these. The error is a message for the log.
    async fn trim(&self, partitions: &[PartitionId]) -> Result<(), String>;
}

/// A lane of an incarnation that has ended and is sealed.
#[derive(Debug, Clone, Copy)]
pub struct DeadLane {
    /// The incarnation that wrote it.
    pub incarnation: Incarnation,
    /// Its end.
    pub end: LaneEnd,
}

/// What earlier incarnations left to be settled.
pub struct Inherited {
    /// Every earlier lane that still has files.
    pub lanes: Vec<DeadLane>,
    /// Trims the partitions' extents.
    pub trimmer: Arc<dyn ExtentTrimmer>,
}

impl Inherited {
    /// Splits all that earlier lanes hold, trims the extents, and retires the lanes' files.
    ///
    /// # Errors
    /// Any [`JobError`]; what was done by then stays done, and the caller may try again.
    pub async fn settle(&self, splitter: &mut Splitter) -> Result<(), JobError> {
        let context = Arc::clone(splitter.context());
        let sizes = splitter.settings();
        let mut files = inherited_files(&context).into_values().peekable();
        while let Some(mut batches) = files.next() {
            let large = sizes.are_large(&batches);
            for _ in 1..FILES_AT_ONCE {
                let fits = |next: &Vec<_>| large && sizes.are_large(next);
                let Some(next) = files.next_if(fits) else { break };
                batches.extend(next);
            }
            splitter.split(batches).await?;
        }
        let settled: Vec<PartitionId> =
            context.partitions.all().iter().map(|partition| partition.id()).collect();
        self.trimmer.trim(&settled).await.map_err(JobError::Metadata)?;
        if context.partitions.any_offline() {
            // The records of an offline partition may be in any of these lanes.
            return Ok(());
        }
        for lane in &self.lanes {
            retire_lane(splitter, *lane).await?;
        }
        Ok(())
    }
}

/// The unsplit batches of earlier epochs by lane file, in an order in which each partition's
/// offsets ascend.
fn inherited_files(context: &JobContext) -> BTreeMap<(Incarnation, LaneFile), Vec<PlacedBatch>> {
    let mut files: BTreeMap<_, Vec<PlacedBatch>> = BTreeMap::new();
    for partition in context.partitions.all() {
        for batch in partition.unsplit() {
            if batch.epoch >= partition.epoch() {
                break;
            }
            files.entry((batch.spot.incarnation, batch.spot.file)).or_default().push(PlacedBatch {
                partition: partition.id(),
                base_offset: batch.base_offset,
                epoch: batch.epoch,
                spot: batch.spot,
            });
        }
    }
    files
}

async fn retire_lane(splitter: &Splitter, lane: DeadLane) -> Result<(), JobError> {
    let context = splitter.context();
    let paths = context.lane_paths(lane.incarnation);
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
    let disk = context.disk.as_ref();
    replay(disk, &paths, lane.incarnation, lane.end, rules, &mut |block| keep(&block.head)).await?;
    let names = disk.list(&paths.folder()).await.map_err(LaneError::from)?;
    let numbers = file_numbers(&names, "wal");
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
