//! Reading and changing quotas.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::changes::Note;
use super::{ClusterError, ClusterMetadata, Fence, Transaction, as_read, delete, put};
use crate::names::{HIDDEN_CHARACTERS, is_name};
use crate::schema::keys::QUOTAS;
use crate::schema::{
    Key, QuotaEntity, QuotaEntityType, QuotaKey, QuotaRecord, QuotaValues, Stored, Table,
};

/// The largest value: 2⁵³ − 1, up to which an `f64` holds every whole number.
const VALUE_MAX: f64 = 9_007_199_254_740_991.0;
/// Kafka takes a value that is this close to a whole number for that number.
const WHOLE_WITHIN: f64 = 1e-6;
/// The longest name of an entity, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The longest key of an entity in the store, its names escaped.
const KEY_BYTES_MAX: usize = 800;

/// Changes of an entity's quotas: the new value, or `None` to remove it.
pub type QuotaChanges = BTreeMap<QuotaKey, Option<f64>>;

/// Why an entity cannot have a quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QuotaRefusal {
    /// What is wrong: an entity type, or the name of a quota.
    pub field: &'static str,
    /// Why it is refused.
    pub message: String,
}

impl QuotaRefusal {
    fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}

impl ClusterMetadata {
    /// All quotas, as the store has them now, sorted by entity.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn quotas(&self) -> Result<Vec<QuotaRecord>, ClusterError> {
        let entries = self.read_all(QUOTAS).await?;
        let record = |entry| Ok(Stored::<QuotaRecord>::from_entry(entry)?.record);
        let mut quotas = entries.iter().map(record).collect::<Result<Vec<_>, ClusterError>>()?;
        quotas.sort_by(|one, other| one.entity.cmp(&other.entity));
        Ok(quotas)
    }

    /// Changes quotas of an entity; those that `changes` does not name stay. Returns a revision
    /// that a view can wait for, and the quotas that the entity has now.
    ///
    /// # Errors
    /// [`ClusterError::InvalidQuota`], [`ClusterError::LimitReached`], [`ClusterError::Fenced`];
    /// [`ClusterError::Store`].
    pub async fn alter_quotas(
        &self,
        fence: Option<Fence>,
        entity: &QuotaEntity,
        changes: &QuotaChanges,
    ) -> Result<(u64, QuotaValues), ClusterError> {
        check_quotas(entity, changes)?;
        self.change_quotas(fence, entity, |before| {
            let mut values = before.clone();
            for (key, value) in changes {
                match value {
                    Some(value) => values.insert(*key, *value),
                    None => values.remove(key),
                };
            }
            values
        })
        .await
    }

    /// Checks that an alteration fits in the limits, and writes nothing.
    ///
    /// # Errors
    /// [`ClusterError::LimitReached`]; [`ClusterError::Store`].
    pub async fn check_quota_room(
        &self,
        entity: &QuotaEntity,
        changes: &QuotaChanges,
    ) -> Result<(), ClusterError> {
        let known = self.read::<QuotaRecord>(&Key::Quota(entity.clone())).await?.is_some();
        if known || changes.values().all(Option::is_none) {
            return Ok(());
        }
        self.quota_gate().await.map(drop)
    }

    /// Replaces all quotas of an entity; an empty map removes the entity. Returns a revision that a
    /// view can wait for.
    ///
    /// # Errors
    /// As [`ClusterMetadata::alter_quotas`].
    pub async fn set_quotas(
        &self,
        fence: Option<Fence>,
        entity: &QuotaEntity,
        values: &QuotaValues,
    ) -> Result<u64, ClusterError> {
        let changes = values.iter().map(|(key, value)| (*key, Some(*value))).collect();
        check_quotas(entity, &changes)?;
        Ok(self.change_quotas(fence, entity, |_| values.clone()).await?.0)
    }

    async fn change_quotas(
        &self,
        fence: Option<Fence>,
        entity: &QuotaEntity,
        change: impl Fn(&QuotaValues) -> QuotaValues,
    ) -> Result<(u64, QuotaValues), ClusterError> {
        let key = Key::Quota(entity.clone());
        let _turn = self.turn(Table::Quotas).await;
        let mut retry = self.retry();
        loop {
            let stored = self.read::<QuotaRecord>(&key).await?;
            let before =
                stored.as_ref().map(|stored| stored.record.values.clone()).unwrap_or_default();
            let values = change(&before);
            if values == before {
                return Ok((stored.map_or(0, |stored| stored.revision), values));
            }
            let mut transaction =
                Transaction::new().compare(key.to_string(), as_read(stored.as_ref()));
            transaction.writes.push(if values.is_empty() {
                delete(&key)
            } else {
                put(&key, &QuotaRecord { entity: entity.clone(), values: values.clone() })?
            });
            if stored.is_none() {
                self.quota_gate().await?.guard(&mut transaction);
            }
            let note = || Note::of_quotas(entity, &before, &values);
            match self.commit_noted(fence, transaction, note).await {
                Ok(revision) => return Ok((revision, values)),
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }
}

/// Checks what Kafka checks of an alteration (`ClientQuotaControlManager`).
///
/// # Errors
/// [`QuotaRefusal`].
pub fn check_quotas(entity: &QuotaEntity, changes: &QuotaChanges) -> Result<(), QuotaRefusal> {
    if !entity.is_valid() {
        let message = "quotas are for a user, a client-id, both, or an ip";
        return Err(QuotaRefusal::new("entity", message));
    }
    for (kind, name) in &entity.0 {
        let Some(name) = name else { continue };
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let message = format!("a name has 1 to {NAME_BYTES_MAX} bytes");
            return Err(QuotaRefusal::new(kind.name(), message));
        }
        // What an earlier release took can be removed.
        if !is_name(name) && changes.values().any(Option::is_some) {
            return Err(QuotaRefusal::new(
                kind.name(),
                format!("a name is without {HIDDEN_CHARACTERS}"),
            ));
        }
        if *kind == QuotaEntityType::Ip && name.parse::<IpAddr>().is_err() {
            return Err(QuotaRefusal::new("ip", format!("{name} is not a valid IP")));
        }
    }
    if Key::Quota(entity.clone()).to_string().len() > KEY_BYTES_MAX {
        return Err(QuotaRefusal::new("entity", "the names are too long together"));
    }
    for (key, value) in changes {
        if !key.applies_to(entity) {
            let message = format!("Invalid configuration key {} for this entity", key.name());
            return Err(QuotaRefusal::new(key.name(), message));
        }
        if let Some(value) = value {
            check_value(*key, *value)?;
        }
    }
    Ok(())
}

fn check_value(key: QuotaKey, value: f64) -> Result<(), QuotaRefusal> {
    let name = key.name();
    if !value.is_finite() || value <= 0.0 {
        return Err(QuotaRefusal::new(name, format!("Quota {name} must be greater than 0")));
    }
    if value > VALUE_MAX {
        return Err(QuotaRefusal::new(name, format!("{value} is above {VALUE_MAX}")));
    }
    if key.is_whole() && (value - value.round()).abs() > WHOLE_WITHIN {
        return Err(QuotaRefusal::new(name, format!("{name} cannot be a fractional value")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(names: &[(QuotaEntityType, Option<&str>)]) -> QuotaEntity {
        let names = names.iter().map(|(kind, name)| (*kind, name.map(str::to_owned)));
        QuotaEntity(names.collect())
    }

    #[test]
    fn what_kafka_refuses_is_refused() {
        use QuotaEntityType::{ClientId, Ip, User};
        use QuotaKey::*;
        let user = entity(&[(User, Some("alice"))]);
        let both = entity(&[(User, None), (ClientId, Some("app"))]);
        let ip = entity(&[(Ip, Some("10.0.0.1"))]);
        let cases = [
            (&user, ProducerByteRate, 1024.0, None),
            (&both, RequestPercentage, 0.5, None),
            (&ip, ConnectionCreationRate, 5.0, None),
            (&user, MaxConnections, 5.0, None),
            (&both, MaxConnections, 5.0, Some("max_connections")),
            (&user, ConnectionCreationRate, 5.0, Some("connection_creation_rate")),
            (&ip, ProducerByteRate, 5.0, Some("producer_byte_rate")),
            (&user, ProducerByteRate, 0.0, Some("producer_byte_rate")),
            (&user, ProducerByteRate, -1.0, Some("producer_byte_rate")),
            (&user, ProducerByteRate, 1.5, Some("producer_byte_rate")),
            (&user, RequestPercentage, f64::NAN, Some("request_percentage")),
        ];
        for (entity, key, value, field) in cases {
            let refusal = check_quotas(entity, &[(key, Some(value))].into()).err();
            assert_eq!(refusal.map(|refusal| refusal.field), field, "{entity:?} {key:?} {value}");
        }
        let wrong = [
            (entity(&[]), "entity"),
            (entity(&[(Ip, None), (User, None)]), "entity"),
            (entity(&[(Ip, Some("localhost"))]), "ip"),
            (entity(&[(User, Some(""))]), "user"),
            (entity(&[(ClientId, Some(""))]), "client-id"),
        ];
        for (entity, field) in wrong {
            assert_eq!(check_quotas(&entity, &QuotaChanges::new()).unwrap_err().field, field);
        }
    }

    #[test]
    fn a_name_with_hidden_characters_gets_no_quota_and_loses_one() {
        use QuotaEntityType::{ClientId, User};
        for (kind, field) in [(User, "user"), (ClientId, "client-id")] {
            let hidden = entity(&[(kind, Some("a\0"))]);
            let change = |value| [(QuotaKey::ProducerByteRate, value)].into();
            assert_eq!(check_quotas(&hidden, &change(Some(1.0))).unwrap_err().field, field);
            assert_eq!(check_quotas(&hidden, &change(None)), Ok(()));
        }
    }
}
