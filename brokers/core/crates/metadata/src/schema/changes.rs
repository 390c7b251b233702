//! Records of changes that clients made over the Kafka protocol.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Record;

/// `change/<sequence>`: one change that a client requested over the Kafka protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// The number of the note, from 1.
    pub sequence: u64,
    /// Milliseconds since 1970 UTC, by the broker's clock.
    pub at_ms: i64,
    /// The client's principal, as `User:<name>`.
    pub principal: String,
    /// The client id.
    pub client_id: String,
    /// The client's own address.
    pub address: String,
    /// What the gateway called its connection; empty where it came through none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub connection: String,
    /// What was done, as `topic.create`.
    pub action: String,
    /// The kind of thing that was changed, as `topic`.
    pub target_type: String,
    /// Its name.
    pub target: String,
    /// Details by name.
    pub detail: BTreeMap<String, String>,
}

impl Record for ChangeRecord {
    const KIND: &'static str = "change";
}
