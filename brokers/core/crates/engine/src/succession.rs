//! What an incarnation succeeds: the lanes that hold the partitions which it takes over.

use std::collections::{BTreeMap, BTreeSet};

use freshet_metadata::schema::{IncarnationRecord, PartitionRecord, SealedEnd, Stored};
use freshet_metadata::view::Snapshot;
use freshet_storage::lane::LaneEnd;
use freshet_wire::ids::{Incarnation, PartitionId};

/// Converts the end of a lane from its form in the metadata store.
pub(super) fn lane_end(end: SealedEnd) -> LaneEnd {
    LaneEnd { file: end.file, sequence: end.sequence }
}

/// Converts the end of a lane to its form in the metadata store.
pub(super) fn sealed_end(end: LaneEnd) -> SealedEnd {
    SealedEnd { file: end.file, sequence: end.sequence }
}

/// More hand-overs of a partition than there can be between a backup of the metadata and its loss:
/// one a second for twelve days. Epochs last for two thousand restored backups.
const HAND_OVERS_MAX: u64 = 1 << 20;

/// The lanes whose partitions an incarnation takes over.
pub struct Succession {
    /// The incarnation that takes over.
    pub successor: Incarnation,
    /// The end of each lane.
    pub lanes: BTreeMap<Incarnation, LaneEnd>,
    /// Those of them that the metadata store did not know. There are some only where it was
    /// restored from a backup.
    pub unknown_lanes: BTreeSet<Incarnation>,
}

impl Succession {
    /// How far the true leader epoch of a partition may be above the highest epoch that storage and
    /// the metadata store name, where they name `leader` as its last leader; `None` on overflow.
    ///
    /// It is 0 unless the metadata store was restored from a backup. Then incarnations that it does
    /// not know may have led the partition without writing a batch of it, or their lanes may have
    /// been removed, so that no block names their epochs. Each incarnation that takes over raises
    /// the epoch by one at most, and hand-overs among them by [`HAND_OVERS_MAX`].
    pub(super) fn epochs_unnamed(&self, leader: Option<Incarnation>) -> Option<i32> {
        if self.unknown_lanes.is_empty() {
            return Some(0);
        }
        let known = leader.map_or(0, |leader| leader.0);
        let takeovers = self.successor.0.saturating_sub(known.saturating_add(1));
        i32::try_from(takeovers.saturating_add(HAND_OVERS_MAX)).ok()
    }
}

/// The records of the partitions for which `is_taken` holds.
pub(super) fn taken_of(
    snapshot: &Snapshot,
    is_taken: impl Fn(PartitionId, &PartitionRecord) -> bool,
) -> Vec<&PartitionRecord> {
    let partitions = snapshot.led_topics().flat_map(|topic| {
        let records = topic.partitions.iter().map(|stored| &stored.record);
        let id = |index| PartitionId::new(topic.record.id, index);
        (0..).zip(records).map(move |(index, record)| (id(index), record))
    });
    partitions.filter(|(id, record)| is_taken(*id, record)).map(|(_, record)| record).collect()
}

/// The lanes that hold what was written to these partitions, as far as they are sealed.
pub(super) fn lanes_of(
    taken: &[&PartitionRecord],
    known: &BTreeMap<Incarnation, Stored<IncarnationRecord>>,
) -> BTreeMap<Incarnation, LaneEnd> {
    let extents = taken.iter().flat_map(|record| &record.extents);
    let named: BTreeSet<_> = extents.map(|extent| extent.incarnation).collect();
    ends_of(&named, known)
}

/// The ends of the lanes of these incarnations, as far as they are sealed.
pub(super) fn ends_of(
    incarnations: &BTreeSet<Incarnation>,
    known: &BTreeMap<Incarnation, Stored<IncarnationRecord>>,
) -> BTreeMap<Incarnation, LaneEnd> {
    let ends = incarnations.iter().filter_map(|incarnation| {
        let record = &known.get(incarnation)?.record;
        Some((*incarnation, lane_end(record.sealed_end?)))
    });
    ends.collect()
}
