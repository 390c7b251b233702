//! What is kept in the metadata store: typed records ([`records`]) under typed keys ([`keys`]).
//!
//! A value is a JSON object with the version of its kind in `v`. A reader takes every version up to
//! its own, refuses newer ones by name, and overlooks fields that it does not know: a field may be
//! added without a new version where older readers may overlook it.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::store::Entry;

pub mod cell;
pub mod changes;
pub mod invariants;
pub mod keys;
pub mod limits;
pub mod partition;
pub mod quotas;
pub mod records;
pub mod retention;
pub mod traffic;

pub use changes::ChangeRecord;
pub use keys::{ConfigScope, Key};
pub use limits::{AdditionRecord, LimitsRecord, Table};
pub use partition::{Extent, ManifestName, PartitionRecord};
pub use quotas::{QuotaEntity, QuotaEntityType, QuotaKey, QuotaRecord, QuotaValues};
pub use records::{
    AclRecord, BrokerConfigRecord, BrokerPlace, ClusterRecord, Configs, ControllerTerm,
    CounterRecord, DeletedTopicRecord, HiddenTopicRecord, IncarnationRecord, IncarnationState,
    ProducerIdRecord, REPLICATION_FACTOR_MAX, ScramRecord, SealedEnd, SlotRecord, TopicNameRecord,
    TopicRecord, WantedLeaderRecord,
};
pub use retention::{Exclusion, Retention, RetentionHistory};
pub use traffic::{RefusalRecord, ThrottleRecord, TrafficLimit};

/// What is wrong with a key or a value of the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A newer release wrote it.
    #[error("{key}: written by a newer release ({kind} of version {stored}, known up to {known})")]
    Newer {
        /// Its key.
        key: String,
        /// The kind of record.
        kind: &'static str,
        /// Its version.
        stored: u32,
        /// The newest version that this release reads.
        known: u32,
    },
    /// Not a record of this kind.
    #[error("{key}: not a {kind} record: {reason}")]
    Unreadable {
        /// Its key.
        key: String,
        /// The kind of record that the key says.
        kind: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A key of a known kind that does not follow its form.
    #[error("malformed key {0}")]
    Key(String),
}

/// A kind of record.
pub trait Record: Serialize + DeserializeOwned {
    /// What it is called in messages.
    const KIND: &'static str;
    /// The version that is written, and the newest that is read.
    const VERSION: u32 = 1;

    /// Checks what serde cannot. The text says what is wrong.
    ///
    /// # Errors
    /// Where the record contradicts itself.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

#[derive(Serialize)]
struct Versioned<'a, R> {
    v: u32,
    #[serde(flatten)]
    record: &'a R,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

/// The stored form of a record.
///
/// # Panics
/// Never: a record is an object with text keys, which JSON can always say.
#[must_use]
pub fn encode<R: Record>(record: &R) -> Bytes {
    let versioned = Versioned { v: R::VERSION, record };
    serde_json::to_vec(&versioned).expect("records are JSON objects").into()
}

/// Reads a record; `key` is for messages.
///
/// # Errors
/// [`SchemaError::Newer`] or [`SchemaError::Unreadable`].
pub fn decode<R: Record>(key: &str, value: &[u8]) -> Result<R, SchemaError> {
    let unreadable =
        |reason: String| SchemaError::Unreadable { key: key.to_owned(), kind: R::KIND, reason };
    // The version is read first, because the fields of a newer one may have other types.
    let stored = if let Some(stored) = leading_version(value) {
        stored
    } else {
        let read = serde_json::from_slice::<Version>(value);
        read.map_err(|error| unreadable(error.to_string()))?.v
    };
    if stored > R::VERSION {
        let (key, known) = (key.to_owned(), R::VERSION);
        return Err(SchemaError::Newer { key, kind: R::KIND, stored, known });
    }
    if stored == 0 {
        return Err(unreadable("version 0".to_owned()));
    }
    let record: R = serde_json::from_slice(value).map_err(|error| unreadable(error.to_string()))?;
    record.check().map_err(unreadable)?;
    Ok(record)
}

/// The version where it is the first field, as it is written. Records are read by the thousand, and
/// a full parse for the version alone would take half of the time.
fn leading_version(value: &[u8]) -> Option<u32> {
    let rest = value.strip_prefix(br#"{"v":"#)?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    if !matches!(rest[digits], b',' | b'}') {
        return None;
    }
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// A record with the revision that a compare needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<R> {
    /// The record.
    pub record: R,
    /// Revision of the transaction that last changed it.
    pub revision: u64,
}

impl<R: Record> Stored<R> {
    /// Reads the record of an entry.
    ///
    /// # Errors
    /// As [`decode`].
    pub fn from_entry(entry: &Entry) -> Result<Self, SchemaError> {
        let record = decode(&entry.key, &entry.value)?;
        Ok(Self { record, revision: entry.revision })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_version_is_named_before_its_fields_are_read() {
        for value in [&br#"{"v":2,"term":"seven"}"#[..], br#"{"term":"seven","v":2}"#] {
            let error = decode::<ControllerTerm>("term", value).unwrap_err();
            assert_eq!(
                error.to_string(),
                "term: written by a newer release (controller term of version 2, known up to 1)"
            );
        }
    }

    #[test]
    fn unknown_fields_are_overlooked() {
        let front = br#"{"v":1,"term":7,"incarnation":3,"colour":{"new":[1]}}"#;
        let behind = br#" {"term":7,"colour":{"v":9},"incarnation":3,"v":1}"#;
        for value in [&front[..], &behind[..]] {
            let term: ControllerTerm = decode("term", value).unwrap();
            assert_eq!(
                term,
                ControllerTerm { term: 7, incarnation: freshet_wire::ids::Incarnation(3) }
            );
        }
    }

    #[test]
    fn values_that_are_no_records_are_errors() {
        for value in
            [&b""[..], b"null", b"[]", b"{}", b"\xff", br#"{"v":1}"#, br#"{"v":0}"#, br#"{"v":1,"#]
        {
            let error = decode::<ControllerTerm>("term", value).unwrap_err();
            assert!(matches!(error, SchemaError::Unreadable { .. }), "{error:?}");
        }
    }

    #[test]
    fn version_comes_first_in_a_value() {
        let value = encode(&CounterRecord { next: 5 });
        assert_eq!(&value[..], br#"{"v":1,"next":5}"#);
    }
}
