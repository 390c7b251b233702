//! How much a cluster may have, and the tables whose additions are counted.

use serde::{Deserialize, Serialize};

use super::Record;

/// `limits`: the limits of the cluster's specification that its brokers enforce. The fields have
/// the names under which limits are published; of what has no number there may be any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsRecord {
    /// Topics, without Kafka's internal ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<u64>,
    /// Partitions of all these topics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u64>,
    /// Topics that are gone for good and of which usage may still be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_topics: Option<u64>,
    /// Entries of the access control list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acls: Option<u64>,
    /// Users with a password, without the service's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<u64>,
    /// Entities that have quotas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quotas: Option<u64>,
    /// Groups, with those that only have committed offsets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// Members of one group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_members: Option<u64>,
    /// Bytes of memory that all groups take together, with their members and offsets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_bytes: Option<u64>,
    /// Bytes of requests and answers that are not billed, of all clients in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbilled_bytes_per_second: Option<u64>,
    /// Changes that clients may make in a second, all of them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_per_second: Option<u64>,
    /// Pairs of a topic and a principal of which usage is counted apart in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_pairs_per_minute: Option<u64>,
}

impl Record for LimitsRecord {
    const KIND: &'static str = "limits";
}

/// A kind of records of which a cluster may have a limited number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Topics and their partitions.
    Topics,
    /// Entries of the access control list.
    Acls,
    /// Users with a password.
    Users,
    /// Entities that have quotas.
    Quotas,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Topics, Self::Acls, Self::Users, Self::Quotas];

    /// Its name in keys.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Topics => "topics",
            Self::Acls => "acls",
            Self::Users => "users",
            Self::Quotas => "quotas",
        }
    }
}

/// `added/<table>`: every addition to a table writes it, so that its revision is that of the last
/// one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdditionRecord {}

impl Record for AdditionRecord {
    const KIND: &'static str = "addition";
}
