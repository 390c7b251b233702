//! Quotas, and the changes over the Kafka protocol that brokers recorded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AdminError, ClusterAdmin};
use freshet_metadata::schema::{ChangeRecord, QuotaEntity, QuotaEntityType, QuotaKey, QuotaValues};

/// The most changes that one call returns.
const CHANGES_AT_ONCE: usize = 1_000;

/// The entity to which quotas apply. An empty name means all entities of the type that have no
/// quota of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaEntityText {
    /// A user's name, without `User:`.
    pub user: Option<String>,
    /// The client id that a client gives itself.
    pub client_id: Option<String>,
    /// A client's address.
    pub ip: Option<String>,
}

/// The quotas of an entity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuotaFacts {
    /// The entity to which they apply.
    pub entity: QuotaEntityText,
    /// The quotas, by Kafka's names.
    pub values: BTreeMap<&'static str, f64>,
}

impl From<QuotaEntityText> for QuotaEntity {
    fn from(text: QuotaEntityText) -> Self {
        use QuotaEntityType::{ClientId, Ip, User};
        let parts = [(User, text.user), (ClientId, text.client_id), (Ip, text.ip)];
        let given = parts.into_iter().filter_map(|(kind, name)| Some((kind, name?)));
        Self(given.map(|(kind, name)| (kind, Some(name).filter(|name| !name.is_empty()))).collect())
    }
}

impl From<&QuotaEntity> for QuotaEntityText {
    fn from(entity: &QuotaEntity) -> Self {
        let name = |kind| entity.0.get(&kind).map(|name| name.clone().unwrap_or_default());
        Self {
            user: name(QuotaEntityType::User),
            client_id: name(QuotaEntityType::ClientId),
            ip: name(QuotaEntityType::Ip),
        }
    }
}

impl ClusterAdmin {
    /// Lists all quotas, sorted by entity, in one read of the store.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn quotas(&self) -> Result<Vec<QuotaFacts>, AdminError> {
        let records = self.metadata.quotas().await?;
        let facts = records.iter().map(|record| QuotaFacts {
            entity: (&record.entity).into(),
            values: record.values.iter().map(|(key, value)| (key.name(), *value)).collect(),
        });
        Ok(facts.collect())
    }

    /// Sets the quotas of an entity, by Kafka's names. Quotas that are not named are removed.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] with the field `entity`, `user`, `client-id`, `ip` or the quota's
    /// name; [`AdminError::NotFound`] where there is no such cluster; those of the metadata store.
    pub async fn set_quota(
        &self,
        entity: QuotaEntityText,
        values: &BTreeMap<String, f64>,
    ) -> Result<(), AdminError> {
        let known = |name: &str| QuotaKey::ALL.into_iter().find(|key| key.name() == name);
        let mut checked = QuotaValues::new();
        for (name, value) in values {
            let unknown = || AdminError::invalid(name, format!("there is no quota {name:?}"));
            checked.insert(known(name).ok_or_else(unknown)?, *value);
        }
        self.require_record().await?;
        self.metadata.set_quotas(None, &entity.into(), &checked).await?;
        Ok(())
    }

    /// Removes the quotas of an entity. Returns whether there were any.
    ///
    /// # Errors
    /// [`AdminError::Invalid`]; those of the metadata store.
    pub async fn remove_quota(&self, entity: QuotaEntityText) -> Result<bool, AdminError> {
        let none = QuotaValues::new();
        Ok(self.metadata.set_quotas(None, &entity.into(), &none).await? > 0)
    }

    /// Lists the changes over the Kafka protocol that follow number `after`, in order and at most
    /// `limit`.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn changes(&self, after: u64, limit: usize) -> Result<Vec<ChangeRecord>, AdminError> {
        Ok(self.metadata.changes(after, limit.min(CHANGES_AT_ONCE)).await?)
    }

    /// Deletes the recorded changes up to number `up_to`. Returns how many there were.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn forget_changes(&self, up_to: u64) -> Result<usize, AdminError> {
        Ok(self.metadata.forget_changes(up_to).await?)
    }
}
