//! Which quota applies to a client: Kafka's order of precedence (`DefaultQuotaCallback`), followed
//! for each kind of quota by itself.

use crate::dealing::LimitId;
use freshet_metadata::schema::{QuotaEntity, QuotaEntityType, QuotaKey};
use freshet_metadata::view::Quotas;

/// The key of a bucket: what is bounded, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BucketKey {
    /// What is bounded.
    pub key: QuotaKey,
    /// The user; `None` where users share the bucket.
    pub user: Option<String>,
    /// The client id; `None` where client ids share the bucket.
    pub client_id: Option<String>,
    /// The address, of a quota for addresses.
    pub ip: Option<String>,
    /// Whom the service made the request for. A name of its own kind: a user may have any name.
    pub payer: Option<String>,
}

impl BucketKey {
    /// The id of what it bounds, which is the same on all brokers.
    pub fn limit(&self) -> LimitId {
        let names = [&self.user, &self.client_id, &self.ip, &self.payer].map(Option::as_deref);
        let mut all = vec![Some(self.key.name())];
        all.extend(names);
        LimitId::of(&all)
    }

    /// Bytes of the names in it.
    pub fn name_bytes(&self) -> usize {
        let names = [&self.user, &self.client_id, &self.ip, &self.payer];
        names.into_iter().flatten().map(String::len).sum()
    }
}

/// How a quota names a user or client id.
#[derive(Clone, Copy)]
enum Part {
    Named,
    Default,
    Absent,
}

use Part::{Absent, Default, Named};

/// The order of precedence, the most specific quota first.
const PRECEDENCE: [(Part, Part); 8] = [
    (Named, Named),
    (Named, Default),
    (Named, Absent),
    (Default, Named),
    (Default, Default),
    (Default, Absent),
    (Absent, Named),
    (Absent, Default),
];

/// The quota that applies to a user's client, and the key of its bucket.
pub fn of_client(
    quotas: &Quotas,
    key: QuotaKey,
    user: &str,
    client_id: &str,
) -> Option<(f64, BucketKey)> {
    PRECEDENCE.into_iter().find_map(|(of_user, of_client)| {
        let mut entity = QuotaEntity::default();
        let mut add = |kind, part, name: &str| match part {
            Absent => None,
            Default => {
                entity.0.insert(kind, None);
                Some(name.to_owned())
            }
            Named => {
                entity.0.insert(kind, Some(name.to_owned()));
                Some(name.to_owned())
            }
        };
        // Where a default applies, each user or client id has a bucket of its own.
        let user = add(QuotaEntityType::User, of_user, user);
        let client_id = add(QuotaEntityType::ClientId, of_client, client_id);
        let value = *quotas.get(&entity)?.get(&key)?;
        Some((value, BucketKey { key, user, client_id, ip: None, payer: None }))
    })
}

/// The quota that applies to an address, and the key of its bucket.
pub fn of_address(quotas: &Quotas, key: QuotaKey, address: &str) -> Option<(f64, BucketKey)> {
    let value = [Some(address.to_owned()), None].into_iter().find_map(|name| {
        let entity = QuotaEntity([(QuotaEntityType::Ip, name)].into());
        quotas.get(&entity)?.get(&key).copied()
    })?;
    let ip = Some(address.to_owned());
    Some((value, BucketKey { key, user: None, client_id: None, ip, payer: None }))
}

/// The quota that applies to requests that the service makes for somebody, and the key of its
/// bucket: one of a user with the name that the bill has for them (`ApiKey:…`, `Member:…`), or what
/// applies to any user or client. They are no client id.
pub fn of_payer(quotas: &Quotas, key: QuotaKey, payer: &str) -> Option<(f64, BucketKey)> {
    const USER: QuotaEntityType = QuotaEntityType::User;
    const CLIENT_ID: QuotaEntityType = QuotaEntityType::ClientId;
    let named = || (USER, Some(payer.to_owned()));
    let value = [
        QuotaEntity([named(), (CLIENT_ID, None)].into()),
        QuotaEntity([named()].into()),
        QuotaEntity([(USER, None), (CLIENT_ID, None)].into()),
        QuotaEntity([(USER, None)].into()),
        QuotaEntity([(CLIENT_ID, None)].into()),
    ]
    .iter()
    .find_map(|entity| quotas.get(entity)?.get(&key).copied())?;
    let payer = Some(payer.to_owned());
    Some((value, BucketKey { key, user: None, client_id: None, ip: None, payer }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_metadata::schema::QuotaValues;

    const KEY: QuotaKey = QuotaKey::ProducerByteRate;

    fn entity(user: Part, client: Part) -> QuotaEntity {
        let parts = [(QuotaEntityType::User, user, "u"), (QuotaEntityType::ClientId, client, "c")];
        let parts = parts.into_iter().filter_map(|(kind, part, name)| match part {
            Absent => None,
            Default => Some((kind, None)),
            Named => Some((kind, Some(name.to_owned()))),
        });
        QuotaEntity(parts.collect())
    }

    /// All eight kinds of entities, the least specific first, with the user and client of the
    /// bucket.
    fn ladder() -> Vec<(QuotaEntity, Option<&'static str>, Option<&'static str>)> {
        vec![
            (entity(Absent, Default), None, Some("c")),
            (entity(Absent, Named), None, Some("c")),
            (entity(Default, Absent), Some("u"), None),
            (entity(Default, Default), Some("u"), Some("c")),
            (entity(Default, Named), Some("u"), Some("c")),
            (entity(Named, Absent), Some("u"), None),
            (entity(Named, Default), Some("u"), Some("c")),
            (entity(Named, Named), Some("u"), Some("c")),
        ]
    }

    #[test]
    fn the_most_particular_quota_applies() {
        let mut quotas = Quotas::new();
        assert_eq!(of_client(&quotas, KEY, "u", "c"), None);
        for (step, (entity, user, client)) in ladder().into_iter().enumerate() {
            let value = 1.0 + step as f64;
            quotas.insert(entity, [(KEY, value)].into());
            let (rate, bucket) = of_client(&quotas, KEY, "u", "c").unwrap();
            assert!((rate - value).abs() < f64::EPSILON, "step {step}: {rate}");
            assert_eq!((bucket.user.as_deref(), bucket.client_id.as_deref()), (user, client));
        }
        // Other users and clients get the less specific quotas.
        let of = |user, client| of_client(&quotas, KEY, user, client).unwrap().0.to_string();
        assert_eq!([of("u", "x"), of("x", "c"), of("x", "x")], ["7", "5", "4"]);
    }

    #[test]
    fn each_kind_of_quota_is_looked_for_by_itself() {
        let mut quotas = Quotas::new();
        quotas.insert(entity(Named, Absent), [(KEY, 1.0)].into());
        let of_default: QuotaValues = [(QuotaKey::ConsumerByteRate, 2.0)].into();
        quotas.insert(entity(Default, Absent), of_default);
        let limit = of_client(&quotas, QuotaKey::ConsumerByteRate, "u", "c").unwrap();
        assert!((limit.0 - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn whom_the_service_asks_for_has_quotas_by_their_name_and_a_bucket_of_their_own() {
        let mut quotas = Quotas::new();
        quotas.insert(entity(Named, Named), [(KEY, 1.0)].into());
        quotas.insert(entity(Absent, Named), [(KEY, 3.0)].into());
        assert_eq!(of_payer(&quotas, KEY, "u"), None);
        let steps = [
            (Absent, Default),
            (Default, Absent),
            (Default, Default),
            (Named, Absent),
            (Named, Default),
        ];
        for ((user, client), value) in steps.into_iter().zip([4.0, 5.0, 6.0, 7.0, 8.0]) {
            quotas.insert(entity(user, client), [(KEY, value)].into());
            let (rate, bucket) = of_payer(&quotas, KEY, "u").unwrap();
            assert!((rate - value).abs() < f64::EPSILON, "{rate}");
            assert_eq!((bucket.payer.as_deref(), bucket.user), (Some("u"), None));
        }
    }

    #[test]
    fn an_address_has_its_own_or_the_default() {
        let of_ip = |name: Option<&str>| {
            QuotaEntity([(QuotaEntityType::Ip, name.map(str::to_owned))].into())
        };
        let key = QuotaKey::ConnectionCreationRate;
        let mut quotas = Quotas::new();
        quotas.insert(of_ip(None), [(key, 1.0)].into());
        quotas.insert(of_ip(Some("10.0.0.1")), [(key, 2.0)].into());
        assert_eq!(of_address(&quotas, key, "10.0.0.1").unwrap().0.to_string(), "2");
        let (value, bucket) = of_address(&quotas, key, "10.0.0.2").unwrap();
        assert_eq!((value.to_string().as_str(), bucket.ip.as_deref()), ("1", Some("10.0.0.2")));
    }
}
