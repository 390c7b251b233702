//! What a successor would find now: the manifest in force, and the records that it can serve.

use super::state::{ColdState, Entry, NAMES, bit};

/// The truth as read from the extents' lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    pub manifest: Option<u8>,
    /// One past the highest offset that was written.
    pub log_end: u8,
    /// Offsets in lane files that exist, as bits.
    in_files: u8,
}

impl Truth {
    /// Reads the lanes as a takeover does. Of the live lane, `more` entries above the fence-checked
    /// end were on the server when the sealer read its tail.
    pub fn read(state: &ColdState, more: u8, by_listing: bool) -> Self {
        let mut truth = Self { manifest: None, log_end: 0, in_files: 0 };
        for lane in state.lanes_in_extents().map(|lane| state.lane(lane)) {
            let end = lane.sealed.unwrap_or(lane.covered + more);
            let kept = lane.entries_below(end).filter(|(file, _)| *file >= lane.files_deleted);
            for (_, entry) in kept {
                match entry {
                    Entry::Checkpoint(name) => truth.manifest = name,
                    Entry::Install(name) => truth.manifest = Some(name),
                    Entry::Data(offset) => truth.in_files |= bit(offset),
                }
            }
        }
        if by_listing {
            let existing = |name: &u8| state.store.existing_manifests & bit(*name) != 0;
            truth.manifest = (0u8..).take(NAMES).filter(existing).last();
        }
        let covered_end = state.manifest(truth.manifest).covered_end;
        let in_files = (0..7).filter(|offset| truth.in_files & bit(*offset) != 0);
        let in_files_end = in_files.max().map_or(0, |last| last + 1);
        truth.log_end = covered_end.max(in_files_end);
        truth
    }

    /// Whether the manifest in force and every object that it names exist.
    pub fn objects_exist(self, state: &ColdState) -> bool {
        let named = state.manifest(self.manifest).objects;
        let exists = |name| state.store.existing_manifests & bit(name) != 0;
        self.manifest.is_none_or(exists) && state.store.objects & named == named
    }

    /// The offsets that can be served, as bits.
    pub fn served(self, state: &ColdState) -> u8 {
        let manifest = state.manifest(self.manifest);
        let below = bit(manifest.covered_end) - 1;
        let named = |name: &u8| manifest.objects & state.store.objects & bit(*name) != 0;
        let contents = (0u8..).take(NAMES).filter(named);
        let in_objects =
            contents.fold(0, |bits, name| bits | state.store.contents[usize::from(name)]);
        in_objects & below | self.in_files & !below
    }
}
