//! The topics and partitions of a status, with their bounds, sizes and counters.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::entries::Key;
use super::{Entries, StatusState};
use crate::Engine;
use crate::groups::OFFSETS_TOPIC;
use freshet_metadata::view::Topics;
use freshet_partition::Partition;
use freshet_wire::ids::{PartitionId, TopicId};

/// A partition by the number of its topic and its index.
pub(super) type Spot = (u32, i32);

/// What is known of a partition that clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownPartition {
    pub(super) id: PartitionId,
    pub(super) log_start: i64,
    pub(super) end: i64,
    bytes: u64,
    damaged: Option<i64>,
}

impl KnownPartition {
    /// Where a reader that has consumed up to `committed` goes on, if a record is there.
    pub(super) fn first_waiting(&self, committed: i64) -> Option<i64> {
        let position = committed.max(self.log_start);
        (position < self.end).then_some(position)
    }
}

/// Names with numbers that are never used again.
#[derive(Default)]
pub(super) struct Numbers {
    by_name: BTreeMap<String, u32>,
    last: u32,
}

impl Numbers {
    /// The number of a name, and whether it is new.
    pub(super) fn of(&mut self, name: &str) -> (u32, bool) {
        if let Some(number) = self.by_name.get(name) {
            return (*number, false);
        }
        self.last += 1;
        self.by_name.insert(name.to_owned(), self.last);
        (self.last, true)
    }

    pub(super) fn known(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (&str, u32)> {
        self.by_name.iter().map(|(name, number)| (name.as_str(), *number))
    }
}

/// What was looked at last, so that nothing is looked at again that cannot have changed.
#[derive(Default)]
pub(super) struct Seen {
    topics: Option<Arc<Topics>>,
    bound_changes: u64,
}

impl StatusState {
    /// The number of a topic's name, for which there is an entry from now on.
    pub(super) fn topic_number(&mut self, name: &str) -> u32 {
        let (number, new) = self.topics.of(name);
        if new {
            put_topic(&mut self.entries, number, name, None);
        }
        number
    }

    /// How many partitions a topic has, as far as was looked.
    pub(super) fn partition_count(&self, name: &str) -> i32 {
        let topic = self.seen.topics.as_ref().and_then(|topics| topics.by_name(name));
        topic.map_or(0, |topic| topic.record.partitions)
    }

    /// Looks at the bounds of all partitions, where any have changed, and at the sizes, damaged
    /// batches and counters of those; with `sizes` at those of all. Returns the partitions that
    /// have changed, or that came or went.
    pub(super) fn look_at_partitions(&mut self, engine: &Engine, sizes: bool) -> Vec<Spot> {
        let topics = engine.view.topics();
        let bound_changes = engine.sources.bound_changes.load(std::sync::atomic::Ordering::Acquire);
        let same = self.seen.topics.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &topics));
        if same && self.seen.bound_changes == bound_changes && !sizes {
            return Vec::new();
        }
        let mut changed = Vec::new();
        let mut gone = std::mem::take(&mut self.partitions);
        for topic in topics.iter().filter(|topic| topic.record.name != OFFSETS_TOPIC) {
            let number = self.topic_number(&topic.record.name);
            let changed_before = changed.len();
            for partition in engine.partitions.of_topic(topic.record.id) {
                // Between the image and the opening of a partition it is not served yet.
                if !partition.serves_clients() {
                    continue;
                }
                let spot = (number, partition.id().index);
                let before = gone.remove(&spot);
                let known = look_at(&partition, before, sizes);
                self.partitions.insert(spot, known);
                if before != Some(known) {
                    put_partition(&mut self.entries, spot, &known);
                    changed.push(spot);
                }
            }
            if sizes || changed.len() > changed_before {
                self.put_counters(engine, number, &topic.record.name);
            }
        }
        for spot in gone.into_keys() {
            self.entries.remove(Key::Partition(spot.0, spot.1));
            changed.push(spot);
        }
        if !same {
            self.forget_topics(&topics);
            // Behind the partitions of the topics that had these names before: so a reader that has
            // read up to here takes none of theirs for those of the new topic.
            for (name, number) in self.topics.names() {
                let id = topics.by_name(name).map(|topic| topic.record.id);
                put_topic(&mut self.entries, number, name, id);
            }
        }
        self.seen = Seen { topics: Some(topics), bound_changes };
        changed
    }

    fn put_counters(&mut self, engine: &Engine, number: u32, name: &str) {
        let counts = engine.settings.metrics.topic_counts(name);
        let key = Key::Counters(number);
        match counts {
            Some([bytes_in, bytes_out, records_in]) if bytes_in + bytes_out > 0 => {
                let fields = key.entry().number(bytes_in).number(bytes_out).number(records_in);
                self.entries.put(key, &fields.text());
            }
            _ => self.entries.remove(key),
        }
    }

    /// Forgets the names of topics that are gone and for which no group has an offset.
    fn forget_topics(&mut self, topics: &Topics) {
        let names = self.topics.names();
        let unused: Vec<(String, u32)> = names
            .filter(|(name, number)| {
                let used = (*number, i32::MIN)..=(*number, i32::MAX);
                topics.by_name(name).is_none() && self.readers.range(used).next().is_none()
            })
            .map(|(name, number)| (name.to_owned(), number))
            .collect();
        for (name, number) in unused {
            self.topics.forget(&name);
            self.entries.remove(Key::Topic(number));
            self.entries.remove(Key::Counters(number));
        }
    }
}

fn put_topic(entries: &mut Entries, number: u32, name: &str, id: Option<TopicId>) {
    let key = Key::Topic(number);
    let id = id.map(|id| URL_SAFE_NO_PAD.encode(id.as_bytes()));
    entries.put(key, &key.entry().name(name).name_or_null(id.as_deref()).text());
}

fn look_at(partition: &Partition, before: Option<KnownPartition>, sizes: bool) -> KnownPartition {
    let bounds = partition.bounds();
    let id = partition.id();
    let unmoved = |known: &KnownPartition| {
        (known.id, known.log_start, known.end) == (id, bounds.log_start, bounds.end)
    };
    let (bytes, damaged) = match before {
        Some(known) if !sizes && unmoved(&known) => (known.bytes, known.damaged),
        _ => (partition.bytes(), partition.first_damaged()),
    };
    KnownPartition { id, log_start: bounds.log_start, end: bounds.end, bytes, damaged }
}

fn put_partition(entries: &mut Entries, (topic, index): Spot, known: &KnownPartition) {
    let key = Key::Partition(topic, index);
    let bounds = key.entry().number(known.log_start).number(known.end);
    entries.put(key, &bounds.number(known.bytes).number_or_null(known.damaged).text());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_goes_on_behind_what_it_committed_or_at_the_log_start() {
        let id = PartitionId::new(uuid::Uuid::from_u128(1), 0);
        let known = KnownPartition { id, log_start: 10, end: 20, bytes: 0, damaged: None };
        assert_eq!(known.first_waiting(15), Some(15));
        assert_eq!(known.first_waiting(-1), Some(10), "nothing is committed");
        assert_eq!(known.first_waiting(5), Some(10), "retention removed what it would read next");
        assert_eq!(known.first_waiting(20), None);
        assert_eq!(known.first_waiting(25), None);
    }

    #[test]
    fn a_number_is_of_one_name_for_ever() {
        let mut numbers = Numbers::default();
        assert_eq!(
            (numbers.of("a"), numbers.of("b"), numbers.of("a")),
            ((1, true), (2, true), (1, false))
        );
        numbers.forget("a");
        assert_eq!(numbers.known("a"), None);
        assert_eq!(numbers.of("a"), (3, true));
        assert_eq!(numbers.len(), 2);
    }
}
