//! What is told of changes over the Kafka protocol.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Record;

/// `change/<sequence>`: one change that somebody asked for over the Kafka protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// From 1, one more for each.
    pub sequence: u64,
    /// Milliseconds since 1970 UTC, by the broker's clock.
    pub at_ms: i64,
    /// Who asked, as `User:<name>`.
    pub principal: String,
    /// What the client calls itself.
    pub client_id: String,
    /// The client's own address.
    pub address: String,
    /// What the gateway called its connection; empty where it came through none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub connection: String,
    /// What was done, as `topic.create`.
    pub action: String,
    /// To what, as `topic`.
    pub target_type: String,
    /// Its name.
    pub target: String,
    /// What else there is to say.
    pub detail: BTreeMap<String, String>,
}

impl Record for ChangeRecord {
    const KIND: &'static str = "change";
}
