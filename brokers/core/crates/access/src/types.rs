//! The credentials and ACL entries in the metadata store. Names and meanings are Kafka's.

use serde::{Deserialize, Serialize};

/// A SCRAM mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ScramMechanism {
    /// SCRAM-SHA-256 (RFC 7677).
    #[serde(rename = "SCRAM-SHA-256")]
    Sha256,
    /// SCRAM-SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    Sha512,
}

/// The stored form of a password, by which it can be verified but not used (RFC 5802).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScramCredential {
    /// Base64 of the salt.
    pub salt: String,
    /// The PBKDF2 iterations, at least 4096.
    pub iterations: u32,
    /// Base64 of `H(ClientKey)`.
    pub stored_key: String,
    /// Base64 of `ServerKey`.
    pub server_key: String,
}

/// The type of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i8)]
pub enum ResourceType {
    /// A topic.
    Topic = 2,
    /// A consumer group.
    Group = 3,
    /// The cluster itself; its resource name is `kafka-cluster`.
    Cluster = 4,
    /// A transactional id.
    TransactionalId = 5,
    /// A delegation token.
    DelegationToken = 6,
    /// A user.
    User = 7,
}

/// How a resource name is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i8)]
pub enum PatternType {
    /// Exactly, or every resource where the name is `*`.
    Literal = 3,
    /// Every resource whose name starts so.
    Prefixed = 4,
}

/// What is done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i8)]
pub enum Operation {
    /// Every operation.
    All = 2,
    /// Read.
    Read = 3,
    /// Write.
    Write = 4,
    /// Create.
    Create = 5,
    /// Delete.
    Delete = 6,
    /// Alter.
    Alter = 7,
    /// Describe.
    Describe = 8,
    /// Actions of brokers among themselves.
    ClusterAction = 9,
    /// Read configurations.
    DescribeConfigs = 10,
    /// Change configurations.
    AlterConfigs = 11,
    /// Idempotent writes (implied by Write on any topic since Kafka 2.8).
    IdempotentWrite = 12,
    /// Create delegation tokens.
    CreateTokens = 13,
    /// Describe delegation tokens.
    DescribeTokens = 14,
    /// Two-phase commit.
    TwoPhaseCommit = 15,
}

/// Whether an entry allows or denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i8)]
pub enum Permission {
    /// Wins over every allowance.
    Deny = 2,
    /// Allows where nothing denies.
    Allow = 3,
}

/// One entry of the access control list. Its identity is all of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AclBinding {
    /// The type of the resource.
    pub resource_type: ResourceType,
    /// Its name, a prefix of it, or `*`.
    pub resource_name: String,
    /// How the name is matched.
    pub pattern_type: PatternType,
    /// `User:<name>` or `User:*`.
    pub principal: String,
    /// An address, or `*`.
    pub host: String,
    /// What is allowed or denied.
    pub operation: Operation,
    /// Which of the two.
    pub permission: Permission,
}

/// Kafka's name of a value, which is the stored one in capitals.
pub fn kafka_name(value: &impl Serialize) -> String {
    let name = serde_json::to_value(value).expect("an enumeration without fields is a text");
    name.as_str().unwrap_or_default().to_ascii_uppercase()
}
