//! What clients were told, held against what the log says.

use std::collections::{BTreeMap, BTreeSet};

use freshet_core::records::StoredBatch;

/// Topic and partition number.
pub type Place = (String, i32);

/// Records of one batch, unpacked.
const UNPACKED_BYTES_MAX: usize = 1 << 20;

/// Follows every ack and every read.
#[derive(Default)]
pub struct Checker {
    /// What was acked, by place and offset.
    acked: BTreeMap<(Place, i64), String>,
    /// What anybody ever read, by place and offset.
    observed: BTreeMap<(Place, i64), String>,
    /// Where each partition ended at least, as clients know it.
    ends: BTreeMap<Place, i64>,
    pub violations: Vec<String>,
}

/// Offset and value of each record of a batch.
pub fn records(batch: &StoredBatch) -> Vec<(i64, String)> {
    let records = batch.records(UNPACKED_BYTES_MAX).expect("a served batch unpacks");
    records
        .map(|record| {
            let record = record.expect("a served batch unpacks");
            let value = record.value.expect("the workload writes values");
            (record.offset, String::from_utf8(value.to_vec()).expect("the workload writes text"))
        })
        .collect()
}

impl Checker {
    pub fn violate(&mut self, what: String) {
        self.violations.push(what);
    }

    /// A producer was told that its records start at `base_offset`.
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

    /// Somebody read a record.
    pub fn observed(&mut self, place: &Place, offset: i64, value: &str) {
        self.observed.insert((place.clone(), offset), value.to_owned());
        self.agree(place, offset, value);
        let known = self.ends.entry(place.clone()).or_insert(0);
        *known = (*known).max(offset + 1);
    }

    /// Whoever spoke of this offset spoke of the same record.
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

    /// Where a partition ends at least.
    pub fn known_end(&self, place: &Place) -> i64 {
        self.ends.get(place).copied().unwrap_or(0)
    }

    pub fn acked_count(&self) -> usize {
        self.acked.len()
    }

    /// Holds the whole log of a partition, read when all was quiet, against everything said before.
    pub fn conclude(&mut self, place: &Place, log: &[(i64, String)]) {
        let by_offset: BTreeMap<i64, &String> =
            log.iter().map(|(offset, value)| (*offset, value)).collect();
        let said: Vec<_> = self
            .acked
            .iter()
            .chain(&self.observed)
            .filter(|((at, _), _)| at == place)
            .map(|((_, offset), value)| (*offset, value.clone()))
            .collect();
        for (offset, value) in said {
            match by_offset.get(&offset) {
                Some(found) if **found == value => {}
                Some(found) => {
                    self.violate(format!("{place:?} {offset}: was {value}, is {found}"));
                }
                None => self.violate(format!("{place:?} {offset}: {value} is lost")),
            }
        }
        self.no_duplicates_and_in_order(place, log);
    }

    fn no_duplicates_and_in_order(&mut self, place: &Place, log: &[(i64, String)]) {
        let mut seen = BTreeSet::new();
        let mut last: BTreeMap<&str, u64> = BTreeMap::new();
        let mut due = 0;
        for (offset, value) in log {
            if *offset != due {
                self.violate(format!("{place:?}: offset {due} is missing before {offset}"));
            }
            due = offset + 1;
            if !seen.insert(value) {
                self.violate(format!("{place:?} {offset}: {value} is there twice"));
            }
            let (producer, sequence) = value.split_once('#').expect("the workload's form");
            let sequence = sequence.parse().expect("the workload's form");
            if let Some(before) = last.insert(producer, sequence)
                && before >= sequence
            {
                self.violate(format!("{place:?} {offset}: {value} comes after {before}"));
            }
        }
    }
}
