//! What the next leader of a partition would find: the manifest in force, and the records.

use super::state::{ClusterState, Kind, OFFSETS, Records, bit};
use crate::rules::{Rule, Rules};

/// A partition as read from its extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextLog {
    pub manifest: Option<u8>,
    in_files: Records,
}

impl NextLog {
    /// Reads the extents as a takeover does. Of a live lane without an end, `more` entries above
    /// the fence-checked end were on the server when the sealer read its tail.
    pub fn read(rules: Rules, state: &ClusterState, partition: u8, more: u8) -> Self {
        let mut log = Self { manifest: None, in_files: [None; OFFSETS] };
        let extents = state.partition(partition).extents;
        for (epoch, extent) in (0u8..).zip(extents) {
            let Some(extent) = extent else { continue };
            let lane = state.lane(extent.lane);
            let reached = lane.sealed.unwrap_or(lane.written().min(lane.covered + more));
            let given = extent.end.filter(|_| rules.has(Rule::ExtentEndsWithMove));
            let end = given.map_or(reached, |end| end.min(reached));
            let checkpoint = lane.checkpoints[usize::from(partition)];
            if let Some((written_in, name)) = checkpoint
                && written_in == epoch
            {
                log.manifest = Some(name);
            }
            for (_, entry) in lane.entries_between(lane.deleted, end) {
                let same = entry.epoch == epoch || rules.lacks(Rule::ReadersFilterByEpoch);
                match entry.kind {
                    _ if entry.partition != partition || !same => {}
                    Kind::Install(name) => log.manifest = Some(name),
                    Kind::Data(offset) => log.in_files[usize::from(offset)] = Some(entry.epoch),
                }
            }
        }
        log
    }

    /// Whether every object that the manifest in force names exists.
    pub fn objects_exist(self, state: &ClusterState) -> bool {
        let named = state.manifest(self.manifest).objects;
        state.store.objects & named == named
    }

    /// The records that can be served.
    pub fn records(self, state: &ClusterState, partition: u8) -> Records {
        let manifest = state.manifest(self.manifest);
        let mut records = self.in_files;
        for (offset, record) in (0u8..).zip(&mut records).take(usize::from(manifest.covered_end)) {
            let contents = (0u8..).zip(state.store.contents).filter_map(|(name, contents)| {
                let named = manifest.objects & state.store.objects & bit(name) != 0;
                contents[usize::from(partition)][usize::from(offset)].filter(|_| named)
            });
            *record = contents.last();
        }
        records
    }
}
