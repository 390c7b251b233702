//! Quotas: what a user, a client id, both, or an address may take of a cluster (KIP-13, KIP-124,
//! KIP-546, KIP-612). Names are Kafka's; `max_connections` is of this service.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Record;

/// The kinds of entities that quotas apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum QuotaEntityType {
    /// The user's name, without `User:`.
    #[serde(rename = "user")]
    User,
    /// The client id.
    #[serde(rename = "client-id")]
    ClientId,
    /// The client's address.
    #[serde(rename = "ip")]
    Ip,
}

impl QuotaEntityType {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::User, Self::ClientId, Self::Ip];

    /// Kafka's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::ClientId => "client-id",
            Self::Ip => "ip",
        }
    }
}

/// The entity that quotas apply to: a user, a client id, a user with a client id, or an address.
/// Without a name it means all entities of the type that have no quotas of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QuotaEntity(pub BTreeMap<QuotaEntityType, Option<String>>);

impl QuotaEntity {
    /// Whether the types may be combined.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.0.is_empty() && (self.0.len() == 1 || !self.0.contains_key(&QuotaEntityType::Ip))
    }
}

/// The names of quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuotaKey {
    /// Bytes a second of Produce requests.
    ProducerByteRate,
    /// Bytes a second of records that are fetched.
    ConsumerByteRate,
    /// Percent of one thread's time.
    RequestPercentage,
    /// New connections a second from an address.
    ConnectionCreationRate,
    /// Connections of a user to each broker at a time.
    MaxConnections,
}

impl QuotaKey {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ProducerByteRate,
        Self::ConsumerByteRate,
        Self::RequestPercentage,
        Self::ConnectionCreationRate,
        Self::MaxConnections,
    ];

    /// The name that clients use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProducerByteRate => "producer_byte_rate",
            Self::ConsumerByteRate => "consumer_byte_rate",
            Self::RequestPercentage => "request_percentage",
            Self::ConnectionCreationRate => "connection_creation_rate",
            Self::MaxConnections => "max_connections",
        }
    }

    /// Whether an entity may have it.
    #[must_use]
    pub fn applies_to(self, entity: &QuotaEntity) -> bool {
        let of_address = entity.0.contains_key(&QuotaEntityType::Ip);
        match self {
            Self::ConnectionCreationRate => of_address,
            Self::MaxConnections => entity.0.keys().eq([&QuotaEntityType::User]),
            _ => !of_address,
        }
    }

    /// Whether only whole numbers make sense.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        !matches!(self, Self::RequestPercentage)
    }
}

/// The values of quotas by name; each is above 0.
pub type QuotaValues = BTreeMap<QuotaKey, f64>;

/// `quota/<entity>`: the quotas of one entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuotaRecord {
    /// The entity that they apply to; the same as in the key.
    pub entity: QuotaEntity,
    /// At least one.
    pub values: QuotaValues,
}

impl Record for QuotaRecord {
    const KIND: &'static str = "quota";

    fn check(&self) -> Result<(), String> {
        if !self.entity.is_valid() {
            return Err("an entity that cannot have quotas".to_owned());
        }
        match self.values.iter().find(|(_, value)| !(value.is_finite() && **value > 0.0)) {
            Some((key, value)) => Err(format!("{} of {value}", key.name())),
            None => Ok(()),
        }
    }
}
