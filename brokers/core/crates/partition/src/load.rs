//! Opening a partition: its manifest, and what lanes hold beyond it. A restart, a takeover and the
//! first use of a new topic all come through here.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::{Label, Partition, Sources, State, Unsplit};
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::lane::LaneSpot;
use freshet_storage::state::producers::WrittenBatch;
use freshet_wire::ids::{Epoch, PartitionId};

/// A batch that a lane of the partition's extents holds.
#[derive(Debug, Clone, Copy)]
pub struct TailBatch {
    /// Who wrote it, and its offsets.
    pub written: WrittenBatch,
    /// Leader epoch under which it was written.
    pub epoch: Epoch,
    /// Where it lies.
    pub spot: LaneSpot,
}

/// Everything that a partition is opened from.
pub struct Opening {
    /// Its identity.
    pub id: PartitionId,
    /// Its topic's name.
    pub topic: Arc<str>,
    /// The epoch under which it is led from now on.
    pub epoch: Epoch,
    /// The manifest that counts.
    pub manifest: Arc<Manifest>,
    /// Batches of its extents, in the order of the extents and of the lanes.
    pub tail: Vec<TailBatch>,
}

/// Offsets that were acked are missing: the partition must not be served.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "partition {partition}: offsets {due} to {found} are missing; restore the lane or manifest \
     that held them"
)]
pub struct MissingOffsets {
    /// Which partition.
    pub partition: PartitionId,
    /// First offset that is missing.
    pub due: i64,
    /// First offset that is there again.
    pub found: i64,
}

impl Partition {
    /// Opens a partition.
    ///
    /// # Errors
    /// [`MissingOffsets`] where the log has a hole.
    pub fn open(opening: Opening, sources: Arc<Sources>) -> Result<Arc<Self>, MissingOffsets> {
        let manifest = opening.manifest;
        let mut state = State {
            next_offset: manifest.covered_end,
            end: manifest.covered_end,
            unsplit: std::collections::VecDeque::new(),
            hot: std::collections::VecDeque::new(),
            producers: manifest.producers.clone(),
            epochs: manifest.epochs.clone(),
            manifest,
        };
        for batch in opening.tail {
            let produced = batch.written.produced;
            let (base_offset, end_offset) = (produced.base_offset, produced.next_offset());
            if end_offset <= state.end {
                continue;
            }
            if base_offset != state.end {
                let (due, found) = (state.end, base_offset);
                return Err(MissingOffsets { partition: opening.id, due, found });
            }
            state.end = end_offset;
            state.next_offset = end_offset;
            state.producers.record_written(&batch.written);
            state.epochs.begin(batch.epoch, base_offset);
            state.unsplit.push_back(Unsplit {
                base_offset,
                end_offset,
                max_timestamp: batch.written.max_timestamp,
                epoch: batch.epoch,
                spot: batch.spot,
            });
        }
        // Records may have been deleted before they were split.
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
        }))
    }
}
