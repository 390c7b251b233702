//! Entries by key, each with the number of its last change, so that a reader gets what changed
//! since the place up to which it has read.
//!
//! A removal is an entry without text. Some removals are kept; older ones are forgotten, and a
//! reader that may have missed one begins anew. A reader that begins anew knows nothing, so that it
//! needs no removal from before its beginning: a [`ReaderPlace`] names the beginning too, and a
//! reading in several answers comes to its end however many removals were forgotten before.

use std::collections::{BTreeMap, BTreeSet};

/// How far a reader has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderPlace {
    /// The number of the last change when it began, knowing nothing.
    pub began: u64,
    /// The number up to which it knows all changes.
    pub read: u64,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangesSince<'a, K> {
    /// Whether the reader has to forget what it knows before it takes this.
    pub anew: bool,
    /// Keys with their texts, or `None` where they were removed, in the order of their changes.
    pub entries: Vec<(&'a K, Option<&'a str>)>,
    /// How far it has read then.
    pub place: ReaderPlace,
    /// Whether more is left, for which there was no room.
    pub more: bool,
}

struct Entry {
    changed: u64,
    text: Option<Box<str>>,
}

/// The entries (see the module).
pub struct Table<K> {
    entries: BTreeMap<K, Entry>,
    by_change: BTreeMap<u64, K>,
    /// The numbers of the removals that are kept.
    removals: BTreeSet<u64>,
    removals_max: usize,
    /// The highest number of a removal that was forgotten.
    forgotten: u64,
    last: u64,
}

impl<K: Ord + Copy> Table<K> {
    /// An empty one that keeps so many removals.
    pub fn new(removals_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_change: BTreeMap::new(),
            removals: BTreeSet::new(),
            removals_max,
            forgotten: 0,
            last: 0,
        }
    }

    /// Sets the text of an entry. Nothing changes where it has this text.
    pub fn put(&mut self, key: K, text: &str) {
        let known = self.entries.get(&key).and_then(|entry| entry.text.as_deref());
        if known != Some(text) {
            self.change(key, Some(text.into()));
        }
    }

    /// Whether there is such an entry.
    pub fn contains(&self, key: K) -> bool {
        self.entries.get(&key).is_some_and(|entry| entry.text.is_some())
    }

    /// Removes an entry. Nothing changes where there is none.
    pub fn remove(&mut self, key: K) {
        if self.entries.get(&key).is_none_or(|entry| entry.text.is_none()) {
            return;
        }
        self.change(key, None);
        self.removals.insert(self.last);
        while self.removals.len() > self.removals_max {
            let Some(number) = self.removals.pop_first() else { break };
            if let Some(key) = self.by_change.remove(&number) {
                self.entries.remove(&key);
            }
            self.forgotten = number;
        }
    }

    fn change(&mut self, key: K, text: Option<Box<str>>) {
        self.last += 1;
        let entry = Entry { changed: self.last, text };
        if let Some(before) = self.entries.insert(key, entry) {
            self.by_change.remove(&before.changed);
            self.removals.remove(&before.changed);
        }
        self.by_change.insert(self.last, key);
    }

    /// What changed since `place`, or everything where it is `None` or cannot be continued: texts
    /// of up to `bytes_max` bytes together, and at least one entry.
    pub fn since(&self, place: Option<ReaderPlace>, bytes_max: usize) -> ChangesSince<'_, K> {
        let known = place.filter(|place| {
            place.read.max(place.began) <= self.last
                && place.read.max(place.began) >= self.forgotten
        });
        let from = known.unwrap_or(ReaderPlace { began: self.last, read: 0 });
        let mut answer =
            ChangesSince { anew: known.is_none(), entries: Vec::new(), place: from, more: false };
        let mut bytes = 0;
        for (number, key) in self.by_change.range(from.read + 1..) {
            let text = self.entries.get(key).and_then(|entry| entry.text.as_deref());
            if text.is_none() && *number <= from.began {
                continue;
            }
            bytes += text.map_or(REMOVAL_BYTES, str::len);
            if bytes > bytes_max && !answer.entries.is_empty() {
                answer.more = true;
                return answer;
            }
            answer.entries.push((key, text));
            answer.place.read = *number;
        }
        answer.place.read = self.last;
        answer
    }
}

/// About how long a removal is in an answer.
const REMOVAL_BYTES: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a reader has put together from answers.
    #[derive(Default)]
    struct Reader {
        place: Option<ReaderPlace>,
        known: BTreeMap<u8, String>,
        /// Whether its last answer was complete.
        current: bool,
    }

    impl Reader {
        fn read(&mut self, table: &Table<u8>, bytes_max: usize) {
            let answer = table.since(self.place, bytes_max);
            if answer.anew {
                self.known.clear();
            }
            for (key, text) in answer.entries {
                match text {
                    Some(text) => self.known.insert(*key, text.to_owned()),
                    None => self.known.remove(key),
                };
            }
            (self.place, self.current) = (Some(answer.place), !answer.more);
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Put(u8, u8),
        Remove(u8),
        Read { reader: usize, bytes_max: usize },
        Restart(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..12_u8, any::<u8>()).prop_map(|(key, text)| Step::Put(key, text)),
            3 => (0..12_u8).prop_map(Step::Remove),
            4 => (0..2_usize, 0..40_usize)
                .prop_map(|(reader, bytes_max)| Step::Read { reader, bytes_max }),
            1 => (0..2_usize).prop_map(Step::Restart),
        ]
    }

    proptest! {
        /// However changes and readings take turns, and however few removals are kept, a reader
        /// whose answer was complete knows exactly what there is.
        #[test]
        fn readers_know_what_there_is(
            steps in prop::collection::vec(step(), 1..200), removals_max in 0..4_usize,
        ) {
            let mut table = Table::new(removals_max);
            let mut truth: BTreeMap<u8, String> = BTreeMap::new();
            let mut readers = [Reader::default(), Reader::default()];
            for step in steps {
                match step {
                    Step::Put(key, text) => {
                        let text = format!("[{key},{text}]");
                        table.put(key, &text);
                        truth.insert(key, text);
                    }
                    Step::Remove(key) => {
                        table.remove(key);
                        truth.remove(&key);
                    }
                    Step::Read { reader, bytes_max } => {
                        readers[reader].read(&table, bytes_max);
                        if readers[reader].current {
                            prop_assert_eq!(&readers[reader].known, &truth);
                        }
                    }
                    Step::Restart(reader) => readers[reader] = Reader::default(),
                }
            }
            for reader in &mut readers {
                // With nothing changing meanwhile, it comes to its end.
                for _ in 0..=12 {
                    reader.read(&table, 0);
                }
                prop_assert!(reader.current);
                prop_assert_eq!(&reader.known, &truth);
            }
            let kept = table.entries.values().filter(|entry| entry.text.is_none()).count();
            prop_assert!(kept <= removals_max);
            prop_assert_eq!(table.entries.len(), table.by_change.len());
        }
    }

    #[test]
    fn what_is_set_to_what_it_is_has_not_changed() {
        let mut table = Table::new(8);
        table.put(1, "a");
        let place = table.since(None, 100).place;
        table.put(1, "a");
        table.remove(2);
        let answer = table.since(Some(place), 100);
        assert_eq!((answer.anew, answer.entries.len(), answer.place), (false, 0, place));
    }

    #[test]
    fn a_place_of_another_time_begins_anew() {
        let mut table = Table::new(8);
        table.put(1, "a");
        let later = ReaderPlace { began: 0, read: 7 };
        assert!(table.since(Some(later), 100).anew);
        assert_eq!(table.since(Some(later), 100).entries, [(&1, Some("a"))]);
    }
}
