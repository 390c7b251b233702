//! The incarnations of a cluster's brokers, as far as they say which of them has ended.
//!
//! The brokers' controller ends the incarnation of a broker that died in the cluster's own
//! metadata, long before the keeper looks at it again.

use std::collections::BTreeMap;

use freshet_metadata::schema::{IncarnationRecord, IncarnationState, Key, SchemaError, decode};
use freshet_wire::ids::Incarnation;

/// A start of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BrokerStart {
    /// Whether it may still serve. Once it has ended it never lives again.
    pub lives: bool,
    /// The slot that it has.
    pub slot: u32,
    /// `<host>:<port>` at which it takes links; empty where it did not say.
    pub link: String,
    /// The zone that it runs in; empty where nobody said.
    pub zone: String,
}

impl From<IncarnationRecord> for BrokerStart {
    fn from(record: IncarnationRecord) -> Self {
        let lives = record.state == IncarnationState::Live;
        Self { lives, slot: record.slot, link: record.place.link, zone: record.place.zone }
    }
}

/// The starts of a cluster's brokers that are known (see the module).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Incarnations(BTreeMap<Incarnation, BrokerStart>);

impl Incarnations {
    /// Takes over what is stored under a key; `None` where it was removed. Of a record that cannot
    /// be understood stays what was known before.
    ///
    /// # Errors
    /// [`SchemaError`] where key or record cannot be understood.
    pub(super) fn set(&mut self, key: &str, value: Option<&[u8]>) -> Result<(), SchemaError> {
        let Some(Key::Incarnation(incarnation)) = Key::parse(key)? else { return Ok(()) };
        match value {
            Some(value) => {
                let record = decode::<IncarnationRecord>(key, value)?;
                self.0.insert(incarnation, record.into());
            }
            None => {
                self.0.remove(&incarnation);
            }
        }
        Ok(())
    }

    /// The last start of a broker that takes links at this address. Earlier ones there are gone,
    /// since the address is another process's now.
    pub(super) fn newest_at(&self, link: &str) -> Option<(Incarnation, &BrokerStart)> {
        let newest = self.0.iter().rev().find(|(_, start)| start.link == link);
        newest.map(|(incarnation, start)| (*incarnation, start))
    }

    /// Whether the broker that took a link there has ended. Where it is not known which start of
    /// a broker that was, it is the last one at the address.
    pub(super) fn has_ended(&self, link: &str, incarnation: Option<Incarnation>) -> bool {
        match incarnation {
            // A record is removed only a while after its end.
            Some(incarnation) => !self.0.get(&incarnation).is_some_and(|start| start.lives),
            None => self.newest_at(link).is_some_and(|(_, start)| !start.lives),
        }
    }
}
