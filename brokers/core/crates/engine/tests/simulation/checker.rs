//! Compares what clients were answered with what the log holds.

use std::collections::{BTreeMap, BTreeSet};

use freshet_wire::records::StoredBatch;

use super::broker::Removed;

/// Topic and partition number.
pub type Place = (String, i32);

/// The most bytes that the records of one batch may have once they are decompressed.
const UNPACKED_BYTES_MAX: usize = 1 << 20;

/// Checks every acknowledgement and every read.
#[derive(Default)]
pub struct Checker {
    /// The records that were acknowledged, by partition and offset.
    acked: BTreeMap<(Place, i64), String>,
    /// The records that were ever read, by partition and offset.
    observed: BTreeMap<(Place, i64), String>,
    /// The smallest end that each partition can have, as clients know it.
    ends: BTreeMap<Place, i64>,
    /// The offsets before which records were deleted: the largest that was requested, and the
    /// largest that was acknowledged.
    trims: BTreeMap<Place, (i64, i64)>,
    pub violations: Vec<String>,
}

/// The header that identifies a record of a table, because the record may have no value.
pub const NAME: &str = "name";
/// Keys of a table.
const KEYS: u64 = 5;
/// One record of a table in this many is a tombstone.
const TOMBSTONE_EVERY: u64 = 4;

/// The offset and the value of each record of a batch; for records of a table, the identifying
/// header instead of the value.
pub fn records(batch: &StoredBatch) -> Vec<(i64, String)> {
    let records = batch.records(UNPACKED_BYTES_MAX).expect("a served batch unpacks");
    records
        .map(|record| {
            let record = record.expect("a served batch unpacks");
            let name = record.headers.into_iter().find(|(key, _)| key == NAME);
            let value = name.map_or(record.value, |(_, name)| name);
            let value = value.expect("the workload writes values");
            (record.offset, String::from_utf8(value.to_vec()).expect("the workload writes text"))
        })
        .collect()
}

fn parts(value: &str) -> (&str, u64) {
    let (producer, sequence) = value.split_once('#').expect("the workload's form");
    (producer, sequence.parse().expect("the workload's form"))
}

/// The key of a record of a table.
pub fn key_of(value: &str) -> String {
    format!("k{}", parts(value).1 % KEYS)
}

/// Whether a record of a table has no value.
pub fn is_tombstone(value: &str) -> bool {
    parts(value).1 % TOMBSTONE_EVERY == 3
}

/// Which records of a partition's log may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// Everything stays, except what DeleteRecords was asked to delete.
    All,
    /// The newest record of each key stays.
    NewestOfKey,
    /// The newest bytes stay.
    Bytes(usize),
}

/// The whole log of a partition, read after the last fault.
pub struct FinalLog {
    pub keeping: Keeping,
    /// Its log start.
    pub start: i64,
    /// Bytes of its batches.
    pub bytes: usize,
    pub records: Vec<(i64, String)>,
}

impl Checker {
    pub fn violate(&mut self, what: String) {
        self.violations.push(what);
    }

    /// A producer got the answer that its records start at `base_offset`.
    pub fn acked(&mut self, place: &Place, base_offset: i64, values: &[String]) {
        for (offset, value) in (base_offset..).zip(values) {
            if let Some(other) = self.acked.insert((place.clone(), offset), value.clone())
                && other != *value
            {
                self.violate(format!("{place:?} {offset}: acked for {other} and for {value}"));
            }
            self.agree(place, offset, value);
        }
        let end = base_offset + values.len() as i64;
        let known = self.ends.entry(place.clone()).or_insert(0);
        *known = (*known).max(end);
    }

    /// A client read batches from a log of which this was removed when the read began.
    pub fn read(
        &mut self,
        place: &Place,
        keeping: Keeping,
        removed: &Removed,
        batches: &[StoredBatch],
    ) {
        for batch in batches {
            let end = batch.last_offset() + 1;
            if end <= removed.before {
                let start = removed.before;
                self.violate(format!("{place:?}: a batch to {end} was read from {start} on"));
            }
            for (offset, value) in records(batch) {
                self.observed(place, offset, &value);
                if keeping == Keeping::NewestOfKey {
                    self.is_not_superseded(place, offset, &value, removed.superseded_before);
                }
            }
        }
    }

    /// Checks that no known record before offset `until` has the key of this one, which was read
    /// after compaction had removed all but the newest of them.
    fn is_not_superseded(&mut self, place: &Place, offset: i64, value: &str, until: i64) {
        let key = key_of(value);
        let later = (place.clone(), offset + 1)..(place.clone(), until.max(offset + 1));
        let known = self.acked.range(later.clone()).chain(self.observed.range(later));
        let newer = known.map(|(_, value)| value).find(|value| key_of(value) == key).cloned();
        if let Some(newer) = newer {
            self.violate(format!(
                "{place:?} {offset}: {value} was read, and {newer} had superseded it"
            ));
        }
    }

    /// A client read a record.
    fn observed(&mut self, place: &Place, offset: i64, value: &str) {
        self.observed.insert((place.clone(), offset), value.to_owned());
        self.agree(place, offset, value);
        let known = self.ends.entry(place.clone()).or_insert(0);
        *known = (*known).max(offset + 1);
    }

    /// Checks that all answers about an offset named the same record.
    fn agree(&mut self, place: &Place, offset: i64, value: &str) {
        let key = (place.clone(), offset);
        for other in [self.acked.get(&key), self.observed.get(&key)].into_iter().flatten() {
            if other != value {
                let what = format!("{place:?} {offset}: both {other} and {value}");
                self.violations.push(what);
                return;
            }
        }
    }

    /// The smallest end that a partition can have.
    pub fn known_end(&self, place: &Place) -> i64 {
        self.ends.get(place).copied().unwrap_or(0)
    }

    /// A client asks to delete the records before an offset.
    pub fn trim_asked(&mut self, place: &Place, offset: i64) {
        let (asked, _) = self.trims.entry(place.clone()).or_default();
        *asked = (*asked).max(offset);
    }

    /// The answer was that these records are deleted.
    pub fn trim_acked(&mut self, place: &Place, offset: i64) {
        let (_, acked) = self.trims.entry(place.clone()).or_default();
        *acked = (*acked).max(offset);
    }

    /// The offset before which records may be gone because a client asked to delete them.
    pub fn trimmed_at_most(&self, place: &Place) -> i64 {
        self.trims.get(place).map_or(0, |(asked, _)| *asked)
    }

    pub fn acked_count(&self) -> usize {
        self.acked.len()
    }

    /// Compares the whole log of a partition with all answers that clients got before.
    pub fn conclude(&mut self, place: &Place, log: &FinalLog) {
        self.starts_where_it_may(place, log);
        let by_offset: BTreeMap<i64, &String> =
            log.records.iter().map(|(offset, value)| (*offset, value)).collect();
        let promised: BTreeMap<i64, String> = self
            .acked
            .iter()
            .chain(&self.observed)
            .filter(|((at, offset), _)| at == place && *offset >= log.start)
            .map(|((_, offset), value)| (*offset, value.clone()))
            .collect();
        for (offset, value) in &promised {
            match by_offset.get(offset) {
                Some(logged) if *logged == value => {}
                Some(logged) => {
                    self.violate(format!("{place:?} {offset}: was {value}, is {logged}"));
                }
                None if log.keeping == Keeping::NewestOfKey
                    && may_be_compacted(*offset, value, &promised) => {}
                None => self.violate(format!("{place:?} {offset}: {value} is lost")),
            }
        }
        self.no_duplicates_and_in_order(place, log);
    }

    fn starts_where_it_may(&mut self, place: &Place, log: &FinalLog) {
        let (asked, acked) = self.trims.get(place).copied().unwrap_or_default();
        let start = log.start;
        if start < acked {
            self.violate(format!("{place:?} starts at {start}, and was deleted before {acked}"));
        }
        match log.keeping {
            Keeping::All if start > asked => {
                self.violate(format!("{place:?} starts at {start}, nobody deleted past {asked}"));
            }
            Keeping::Bytes(kept) if start > 0 && log.bytes < kept => {
                let bytes = log.bytes;
                self.violate(format!("{place:?} keeps {bytes} bytes, and should {kept}"));
            }
            Keeping::NewestOfKey if start > 0 => {
                self.violate(format!("{place:?} is compacted, and starts at {start}"));
            }
            _ => {}
        }
    }

    fn no_duplicates_and_in_order(&mut self, place: &Place, log: &FinalLog) {
        let mut seen = BTreeSet::new();
        let mut last: BTreeMap<&str, u64> = BTreeMap::new();
        let mut due = log.start;
        for (offset, value) in &log.records {
            if *offset != due && log.keeping != Keeping::NewestOfKey {
                self.violate(format!("{place:?}: offset {due} is missing before {offset}"));
            }
            due = offset + 1;
            if !seen.insert(value) {
                self.violate(format!("{place:?} {offset}: {value} is there twice"));
            }
            let (producer, sequence) = parts(value);
            if let Some(before) = last.insert(producer, sequence)
                && before >= sequence
            {
                self.violate(format!("{place:?} {offset}: {value} comes after {before}"));
            }
        }
    }
}

/// Whether compaction may remove a record: a tombstone, or one that a later record of the same key
/// supersedes.
fn may_be_compacted(offset: i64, value: &str, promised: &BTreeMap<i64, String>) -> bool {
    let key = key_of(value);
    is_tombstone(value) || promised.range(offset + 1..).any(|(_, later)| key_of(later) == key)
}
