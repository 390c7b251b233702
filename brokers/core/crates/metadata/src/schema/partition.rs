//! The record of a partition: who leads it, and where its unsplit data lies.

use serde::{Deserialize, Serialize};

use super::{Record, SealedEnd};
use freshet_wire::ids::{Epoch, Incarnation};

/// A lane in which data of a partition may lie that no manifest covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// The leader epoch under which it was written.
    pub epoch: Epoch,
    /// The incarnation whose lane it is.
    pub incarnation: Incarnation,
    /// Where the lane ends; `None` while the incarnation may still write.
    pub end: Option<SealedEnd>,
}

/// A manifest of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ManifestName {
    /// Leader epoch in which it was written.
    pub epoch: Epoch,
    /// Number within the epoch.
    pub number: u64,
}

/// `partition/<topic id>/<index>`: who leads a partition, and where its unsplit data lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionRecord {
    /// The leader; `None` before the first.
    pub leader: Option<Incarnation>,
    /// Kafka's leader epoch. Never goes back.
    pub epoch: Epoch,
    /// By ascending epoch.
    pub extents: Vec<Extent>,
    /// The manifest that counted when a leader last handed the partition over, with all records of
    /// it; `None` where none did, or it had no records. Lanes name those that were made since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestName>,
}

impl PartitionRecord {
    /// A partition without data. A leader has its lane as the first extent from the start, so that
    /// no data can lie where the record does not say.
    #[must_use]
    pub fn new(leader: Option<Incarnation>, epoch: Epoch) -> Self {
        let extents = leader.map(|incarnation| Extent { epoch, incarnation, end: None });
        Self { leader, epoch, extents: extents.into_iter().collect(), manifest: None }
    }

    /// The same partition handed over to another incarnation, under the next epoch: all of its
    /// records are in objects, which `manifest` names.
    ///
    /// `None` where the epochs are used up.
    #[must_use]
    pub fn handed_to(
        &self,
        successor: Incarnation,
        manifest: Option<ManifestName>,
    ) -> Option<Self> {
        let epoch = self.epoch.checked_add(1)?;
        let manifest = manifest.max(self.manifest);
        Some(Self { manifest, ..Self::new(Some(successor), epoch) })
    }

    /// The same partition led by another incarnation, under the next epoch. `end_of` returns the
    /// ends of lanes; an extent without an end gets the one that it returns.
    ///
    /// `None` where the epochs are used up, after 2³¹ leaders.
    #[must_use]
    pub fn led_by(
        &self,
        leader: Incarnation,
        end_of: impl Fn(Incarnation) -> Option<SealedEnd>,
    ) -> Option<Self> {
        let epoch = self.epoch.checked_add(1)?;
        let ended = |extent: &Extent| {
            let end = extent.end.or_else(|| end_of(extent.incarnation));
            Extent { end, ..*extent }
        };
        let mut extents: Vec<Extent> = self.extents.iter().map(ended).collect();
        extents.push(Extent { epoch, incarnation: leader, end: None });
        Some(Self { leader: Some(leader), epoch, extents, manifest: self.manifest })
    }

    /// The same record without the extents that a manifest covers.
    #[must_use]
    pub fn without_extents(&self, covered: impl Fn(&Extent) -> bool) -> Self {
        let extents = self.extents.iter().filter(|extent| !covered(extent)).copied().collect();
        Self { extents, ..self.clone() }
    }
}

impl Record for PartitionRecord {
    const KIND: &'static str = "partition";

    fn check(&self) -> Result<(), String> {
        if self.epoch < 0 {
            return Err(format!("epoch {}", self.epoch));
        }
        let mut last = -1;
        for extent in &self.extents {
            if extent.epoch <= last || extent.epoch > self.epoch {
                return Err(format!("an extent of epoch {} behind {last}", extent.epoch));
            }
            last = extent.epoch;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(file: u64) -> SealedEnd {
        SealedEnd { file, sequence: file * 10 }
    }

    #[test]
    fn takeover_closes_the_old_extent_and_opens_the_next_epoch() {
        let record = PartitionRecord::new(Some(Incarnation(1)), 0);
        let record = record.led_by(Incarnation(4), |_| Some(end(7))).unwrap();
        assert_eq!((record.leader, record.epoch), (Some(Incarnation(4)), 1));
        let extents = [
            Extent { epoch: 0, incarnation: Incarnation(1), end: Some(end(7)) },
            Extent { epoch: 1, incarnation: Incarnation(4), end: None },
        ];
        assert_eq!(record.extents, extents);
        record.check().unwrap();
        // An end that is set is not replaced.
        let again = record.led_by(Incarnation(5), |_| Some(end(9))).unwrap();
        assert_eq!(again.extents[0].end, Some(end(7)));
        assert_eq!(again.extents[1].end, Some(end(9)));
    }

    #[test]
    fn a_hand_over_names_the_newest_manifest_and_takeovers_keep_it() {
        let name = |epoch, number| Some(ManifestName { epoch, number });
        let record = PartitionRecord::new(Some(Incarnation(1)), 3);
        let handed = record.handed_to(Incarnation(2), name(3, 7)).unwrap();
        assert_eq!((handed.leader, handed.epoch), (Some(Incarnation(2)), 4));
        assert_eq!(handed.manifest, name(3, 7));
        assert_eq!(handed.extents.len(), 1);
        // Nothing was written of it since.
        let back = handed.handed_to(Incarnation(1), None).unwrap();
        assert_eq!((back.epoch, back.manifest), (5, name(3, 7)));
        let taken = back.led_by(Incarnation(3), |_| Some(end(1))).unwrap();
        assert_eq!(taken.manifest, name(3, 7));
    }

    #[test]
    fn partition_without_a_leader_has_no_extent() {
        assert_eq!(PartitionRecord::new(None, 0).extents, []);
    }

    #[test]
    fn covered_extents_go() {
        let record = PartitionRecord::new(Some(Incarnation(1)), 0);
        let record = record.led_by(Incarnation(2), |_| Some(end(1))).unwrap();
        let trimmed = record.without_extents(|extent| extent.epoch < 1);
        assert_eq!(trimmed.extents, record.extents[1..]);
        assert_eq!(trimmed.epoch, record.epoch);
    }

    #[test]
    fn epochs_never_wrap() {
        let last = PartitionRecord::new(None, i32::MAX);
        assert_eq!(last.led_by(Incarnation(1), |_| None), None);
        assert_eq!(last.handed_to(Incarnation(1), None), None);
    }

    #[test]
    fn partitions_that_contradict_themselves_are_refused() {
        let extent = |epoch| Extent { epoch, incarnation: Incarnation(1), end: None };
        let partition =
            |epoch, extents| PartitionRecord { extents, ..PartitionRecord::new(None, epoch) };
        assert!(partition(-1, vec![]).check().is_err());
        assert!(partition(1, vec![extent(2)]).check().is_err());
        assert!(partition(2, vec![extent(1), extent(1)]).check().is_err());
        assert!(partition(2, vec![extent(0), extent(2)]).check().is_ok());
    }
}
