//! The part of Kafka's embedded consumer protocol that the coordinator understands: the topics of
//! a subscription (`ConsumerProtocolSubscription`, whose version 0 is a prefix of all others).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use bytes::Bytes;

use freshet_wire::codec::{Reader, WireError};

/// The protocol type of consumers.
pub(super) const CONSUMER: &str = "consumer";

/// The most topics of one group that are kept. A group that subscribes to more counts as one whose
/// subscriptions cannot be decoded.
const TOPICS_MAX: usize = 100_000;

/// The topics to which the members of a group subscribe, in one allocation: a client can make up
/// names that are shorter than what a tree needs for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subscriptions {
    /// All names in order.
    names: Box<str>,
    /// Where each name ends.
    ends: Box<[usize]>,
}

impl Subscriptions {
    fn new(topics: &BTreeSet<String>) -> Self {
        let mut names = String::with_capacity(topics.iter().map(String::len).sum());
        let mut ends = Vec::with_capacity(topics.len());
        for topic in topics {
            names.push_str(topic);
            ends.push(names.len());
        }
        Self { names: names.into(), ends: ends.into() }
    }

    /// The topics of these members' metadata; `None` where any of it cannot be decoded, or where
    /// there are too many topics.
    pub(super) fn read(members: impl Iterator<Item = Bytes>) -> Option<Self> {
        let mut topics = BTreeSet::new();
        for metadata in members {
            if !matches!(add_topics(metadata, &mut topics), Ok(true)) {
                return None;
            }
        }
        Some(Self::new(&topics))
    }

    fn name(&self, place: usize) -> &str {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.names[start..self.ends[place]]
    }

    /// Whether the topic is one of them.
    pub(super) fn contains(&self, topic: &str) -> bool {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.name(middle).cmp(topic) {
                Ordering::Equal => return true,
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        false
    }

    /// What they take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.names.len() + size_of_val(&*self.ends)
    }
}

/// Adds the topics of one member. Returns false where its metadata is none of a consumer, or where
/// there are more than [`TOPICS_MAX`] topics.
fn add_topics(metadata: Bytes, topics: &mut BTreeSet<String>) -> Result<bool, WireError> {
    let mut reader = Reader::new(metadata);
    if reader.i16_be()? < 0 {
        return Ok(false);
    }
    let count = i64::from(reader.i32_be()?);
    let count = reader.count(count, 2)?;
    for _ in 0..count {
        let position = reader.position();
        let length = i64::from(reader.i16_be()?);
        let length = reader.count(length, 1)?;
        let bytes = reader.take(length)?;
        let topic = std::str::from_utf8(&bytes).map_err(|_| WireError::Utf8 { position })?;
        if !topics.contains(topic) {
            if topics.len() == TOPICS_MAX {
                return Ok(false);
            }
            topics.insert(topic.to_owned());
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &'static [u8]) -> Option<Subscriptions> {
        Subscriptions::read([Bytes::from_static(bytes)].into_iter())
    }

    fn names(topics: &[&str]) -> Subscriptions {
        Subscriptions::new(&topics.iter().map(|topic| (*topic).to_owned()).collect())
    }

    fn metadata(topics: impl Iterator<Item = String>) -> Bytes {
        let mut bytes = vec![0; 6];
        let mut count = 0_i32;
        for topic in topics {
            bytes.extend(u16::try_from(topic.len()).unwrap().to_be_bytes());
            bytes.extend(topic.as_bytes());
            count += 1;
        }
        bytes[2..6].copy_from_slice(&count.to_be_bytes());
        bytes.into()
    }

    #[test]
    fn topics_are_read_from_any_version() {
        let expected = names(&["a", "bc"]);
        let version_1 = b"\x00\x01\x00\x00\x00\x02\x00\x01a\x00\x02bc\xff\xff\xff\xff\x00\x00";
        assert_eq!(read(version_1), Some(expected));
        assert_eq!(read(b"\x00\x00\x00\x00\x00\x00"), Some(names(&[])));
    }

    #[test]
    fn exactly_the_topics_of_all_members_are_subscribed_to() {
        let members = [vec!["b", "", "longer"], vec!["b", "a", "é"]];
        let members = members.map(|topics| metadata(topics.into_iter().map(str::to_owned)));
        let read = Subscriptions::read(members.into_iter()).unwrap();
        assert_eq!(read, names(&["", "a", "b", "longer", "é"]));
        assert!(["", "a", "b", "longer", "é"].iter().all(|topic| read.contains(topic)));
        assert!(!["ab", "c", "long", "longers", "ba"].iter().any(|topic| read.contains(topic)));
        assert!(!names(&[]).contains(""));
    }

    #[test]
    fn more_topics_than_are_kept_are_unknown() {
        let read = |count: usize| {
            let topics = (0..count).map(|number| number.to_string());
            Subscriptions::read([metadata(topics)].into_iter())
        };
        assert!(read(TOPICS_MAX).is_some_and(|topics| topics.contains("99999")));
        assert_eq!(read(TOPICS_MAX + 1), None);
    }

    #[test]
    fn what_is_no_subscription_is_refused() {
        assert_eq!(read(b""), None);
        assert_eq!(read(b"\xff\xff\x00\x00\x00\x00"), None);
        assert_eq!(read(b"\x00\x00\x7f\xff\xff\xff"), None);
        assert_eq!(read(b"\x00\x00\x00\x00\x00\x01\x00\x05ab"), None);
        assert_eq!(read(b"\x00\x00\x00\x00\x00\x01\x00\x01\xff"), None);
    }
}
