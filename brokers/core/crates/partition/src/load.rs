//! Opens a partition from its manifest and from the batches that lanes hold beyond it. This is the
//! only way in, for a restart, a takeover and a new topic.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::{Mutex, RwLock};

use super::producers::KnownProducers;
use super::tenure::{Access, Tenure};
use super::{Label, Partition, Sources, State, Unsplit};
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::lane::LaneSpot;
use freshet_storage::state::producers::WrittenBatch;
use freshet_wire::ids::{Epoch, PartitionId};
use freshet_world::watch;

/// A batch of the partition in a lane that its extents name.
#[derive(Debug, Clone, Copy)]
pub struct TailBatch {
    /// Its producer's numbers and its offsets.
    pub written: WrittenBatch,
    /// The leader epoch under which it was written.
    pub epoch: Epoch,
    /// Its place in the lane.
    pub spot: LaneSpot,
}

/// Everything that a partition is opened from.
pub struct Opening {
    /// The id of its topic, and its index.
    pub id: PartitionId,
    /// Its topic's name.
    pub topic: Arc<str>,
    /// The leader epoch under which it is led from now on.
    pub epoch: Epoch,
    /// The manifest that counts.
    pub manifest: Arc<Manifest>,
    /// The batches that its extents cover, in the order of the extents and, within each, of its
    /// lane.
    pub tail: Vec<TailBatch>,
    /// Producers whose last batch was written at this time or before are forgotten; ms since 1970.
    pub producers_since_ms: i64,
}

/// Offsets that were acknowledged are missing, so the partition must not be served.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "partition {partition}: offsets {from_offset} to {to_offset} are missing; restore the lane or \
     manifest that held them"
)]
pub struct MissingOffsets {
    /// The partition.
    pub partition: PartitionId,
    /// The first offset that is missing.
    pub from_offset: i64,
    /// The first offset after the hole that is there again; -1 where it is not known.
    pub to_offset: i64,
}

impl Partition {
    /// Opens a partition. Batches of the tail that the manifest covers are skipped.
    ///
    /// # Errors
    /// [`MissingOffsets`] where the batches of the tail do not follow the manifest and each other.
    pub fn open(opening: Opening, sources: Arc<Sources>) -> Result<Arc<Self>, MissingOffsets> {
        let mut manifest = opening.manifest;
        let damaged = manifest.damaged.clone();
        let producers = KnownProducers::new(manifest.producers.clone(), &sources.producers);
        producers.limit_manifest(&mut manifest);
        let mut state = State {
            next_offset: manifest.covered_end,
            end: manifest.covered_end,
            unsplit: std::collections::VecDeque::new(),
            hot: std::collections::VecDeque::new(),
            access: Access::Clients,
            tenure: Tenure::Leads,
            producers,
            epochs: manifest.epochs.clone(),
            manifest,
            hidden_below: 0,
        };
        for batch in opening.tail {
            let produced = batch.written.produced;
            let (base_offset, end_offset) = (produced.base_offset, produced.next_offset());
            if end_offset <= state.end {
                continue;
            }
            if base_offset != state.end {
                let (from_offset, to_offset) = (state.end, base_offset);
                return Err(MissingOffsets { partition: opening.id, from_offset, to_offset });
            }
            state.end = end_offset;
            state.next_offset = end_offset;
            state.producers.record_written(&batch.written);
            state.producers.touch(batch.written.producer_id, batch.spot.written_at_ms);
            state.epochs.begin(batch.epoch, base_offset);
            state.unsplit.push_back(Unsplit {
                base_offset,
                end_offset,
                max_timestamp: batch.written.max_timestamp,
                epoch: batch.epoch,
                spot: batch.spot,
            });
        }
        state.producers.expire(opening.producers_since_ms, state.end);
        // The log start may be beyond the manifest's last segment: records can be deleted before
        // they are split.
        state.epochs.trim(state.manifest.log_start);
        sources.backlog.grow(state.unsplit.len());
        let metrics = Some(sources.metrics.topic(&opening.topic));
        let label = Label { topic: opening.topic, metrics };
        Ok(Arc::new(Self {
            id: opening.id,
            label: RwLock::new(label),
            epoch: opening.epoch,
            sources,
            progress: watch::Sender::new(state.end),
            state: Mutex::new(state),
            readers: Mutex::default(),
            bystanders: Mutex::default(),
            damaged: Mutex::new(damaged),
            serves_clients: AtomicBool::new(true),
        }))
    }
}
