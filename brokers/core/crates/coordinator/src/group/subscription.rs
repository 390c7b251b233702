//! The part of Kafka's embedded consumer protocol that the coordinator understands: the topics of
//! a subscription (`ConsumerProtocolSubscription`, whose version 0 is a prefix of all others).

use std::collections::BTreeSet;

use bytes::Bytes;

use freshet_wire::codec::{Reader, WireError};

/// The protocol type of consumers.
pub(super) const CONSUMER: &str = "consumer";

/// Adds the topics of one member's subscription. Returns whether it could be decoded.
pub(super) fn add_topics(metadata: &Bytes, topics: &mut BTreeSet<String>) -> bool {
    match read_topics(metadata.clone()) {
        Ok(Some(read)) => {
            topics.extend(read);
            true
        }
        Ok(None) | Err(_) => false,
    }
}

fn read_topics(metadata: Bytes) -> Result<Option<Vec<String>>, WireError> {
    let mut reader = Reader::new(metadata);
    if reader.i16_be()? < 0 {
        return Ok(None);
    }
    let count = i64::from(reader.i32_be()?);
    let count = reader.count(count, 2)?;
    let mut topics = Vec::new();
    for _ in 0..count {
        let position = reader.position();
        let length = i64::from(reader.i16_be()?);
        let length = reader.count(length, 1)?;
        let text = String::from_utf8(reader.take(length)?.into());
        topics.push(text.map_err(|_| WireError::Utf8 { position })?);
    }
    Ok(Some(topics))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &'static [u8]) -> Option<BTreeSet<String>> {
        let mut topics = BTreeSet::new();
        add_topics(&Bytes::from_static(bytes), &mut topics).then_some(topics)
    }

    #[test]
    fn topics_are_read_from_any_version() {
        let expected = BTreeSet::from(["a".to_owned(), "bc".to_owned()]);
        let version_1 = b"\x00\x01\x00\x00\x00\x02\x00\x01a\x00\x02bc\xff\xff\xff\xff\x00\x00";
        assert_eq!(read(version_1), Some(expected));
        assert_eq!(read(b"\x00\x00\x00\x00\x00\x00"), Some(BTreeSet::new()));
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
