//! Descriptors of topics: copies in the object store of what the metadata store says of a topic
//! (name, configs, number of partitions). A metadata store that was restored from a backup may lack
//! the topic; then its descriptor is all that is known of it.
//!
//! The object `<cluster>/topics/<topic id>.<incarnation>-<number>.<CRC-32C>` holds the topic's
//! record in the form of the metadata store. The checksum is that of the content, so that a start
//! can see without reading it whether the content has changed. The newest name of a topic counts.
//! Nothing waits for descriptors to be written, and only a restored topic depends on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use freshet_metadata::schema::{TopicRecord, decode, encode};
use freshet_metadata::view::MetadataView;
use freshet_storage::lane::token::OwnerToken;
use freshet_storage::rules::{Rule, Rules};
use freshet_wire::codec::crc32c;
use freshet_wire::ids::{Incarnation, TopicId};
use freshet_world::env::store::{ObjectStore, StoreError, StoreResult};

/// When a round that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The last part of a descriptor's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    topic: TopicId,
    incarnation: Incarnation,
    number: u32,
    checksum: u32,
}

impl Name {
    fn file_name(self) -> String {
        let Self { topic, incarnation, number, checksum } = self;
        format!("{}.{:020}-{number:06}.{checksum:08x}", topic.simple(), incarnation.0)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let topic = TopicId::try_parse(parts.next()?).ok()?;
        let (incarnation, number) = parts.next()?.split_once('-')?;
        let checksum = u32::from_str_radix(parts.next()?, 16).ok()?;
        let incarnation = Incarnation(incarnation.parse().ok()?);
        let name = Self { topic, incarnation, number: number.parse().ok()?, checksum };
        (parts.next().is_none() && name.file_name() == text).then_some(name)
    }
}

fn folder(cluster: &str) -> String {
    format!("{cluster}/topics")
}

async fn list_descriptors(store: &dyn ObjectStore, cluster: &str) -> StoreResult<BTreeSet<Name>> {
    match store.list(&folder(cluster)).await {
        Ok(names) => Ok(names.iter().filter_map(|name| Name::parse(name)).collect()),
        Err(StoreError::NotFound(_)) => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

/// Reads the descriptors of these topics. Topics without one, or with one that cannot be decoded,
/// are left out.
///
/// # Errors
/// Any [`StoreError`] of the object store but `NotFound`.
pub async fn read_descriptors(
    store: &dyn ObjectStore,
    cluster: &str,
    topics: &BTreeSet<TopicId>,
) -> StoreResult<BTreeMap<TopicId, TopicRecord>> {
    let mut records = BTreeMap::new();
    if topics.is_empty() {
        return Ok(records);
    }
    // Ascending: the newest of a topic comes last.
    for name in list_descriptors(store, cluster).await? {
        if !topics.contains(&name.topic) {
            continue;
        }
        let key = format!("{}/{}", folder(cluster), name.file_name());
        let bytes = match store.get(&key).await {
            Err(StoreError::NotFound(_)) => continue,
            bytes => bytes?,
        };
        match decode::<TopicRecord>(&key, &bytes) {
            Ok(record) if record.id == name.topic => {
                records.insert(name.topic, record);
            }
            Ok(_) => tracing::warn!(key, "a descriptor names another topic: it is ignored"),
            Err(error) => tracing::warn!(key, %error, "a descriptor is damaged: it is ignored"),
        }
    }
    Ok(records)
}

/// Keeps the descriptors in step with the metadata store.
pub struct Descriptors {
    /// The object store that holds them.
    pub store: Arc<dyn ObjectStore>,
    /// The cluster's prefix in the object store.
    pub cluster: String,
    /// The incarnation that writes, which is part of their names.
    pub incarnation: Incarnation,
    /// The owner token, which is checked before anything is deleted.
    pub token: Arc<OwnerToken>,
    /// Which rules of safety hold.
    pub rules: Rules,
    /// The image of the metadata.
    pub view: Arc<MetadataView>,
}

impl Descriptors {
    /// Follows the image of the metadata until it ends.
    pub async fn run(self) {
        let mut changes = self.view.subscribe();
        let mut known = None;
        let mut number = 0;
        let mut due: Option<BTreeSet<TopicId>> = None;
        loop {
            let failed = match self.update(&mut known, due.take(), &mut number).await {
                Ok(()) => None,
                Err(error) => {
                    tracing::warn!(%error, "descriptors of topics are written later");
                    Some(RETRY_AFTER)
                }
            };
            let again = async {
                match failed {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                change = changes.next() => match change {
                    // After a failure all topics are compared again: it is not known which of them
                    // were done.
                    Ok(change) => due = failed.is_none().then_some(change.topics),
                    Err(_) => return,
                },
                () = again => {}
            }
        }
    }

    /// Writes the descriptors of the topics in `due` (`None`: of all topics) that have changed, and
    /// removes the older ones and those of deleted topics. `known` caches the names in the object
    /// store, `number` the last one that this incarnation used.
    async fn update(
        &self,
        known: &mut Option<BTreeSet<Name>>,
        due: Option<BTreeSet<TopicId>>,
        number: &mut u32,
    ) -> StoreResult<()> {
        let known = match known {
            Some(known) => known,
            None => known.insert(list_descriptors(self.store.as_ref(), &self.cluster).await?),
        };
        let snapshot = self.view.snapshot();
        let due = due.unwrap_or_else(|| {
            let exist = snapshot.topics.iter().map(|topic| topic.record.id);
            exist.chain(known.iter().map(|name| name.topic)).collect()
        });
        for id in due {
            let newest = known.iter().rfind(|name| name.topic == id).copied();
            if let Some(topic) = snapshot.topics.by_id(id) {
                let content = encode(&topic.record);
                let checksum = crc32c(&content);
                if newest.is_none_or(|newest| newest.checksum != checksum) {
                    *number += 1;
                    let (incarnation, number) = (self.incarnation, *number);
                    let name = Name { topic: id, incarnation, number, checksum };
                    self.write(name, content).await?;
                    known.insert(name);
                    self.remove(known, |other| other.topic == id && *other < name).await?;
                }
            } else if snapshot.deleted_topics.contains_key(&id) {
                self.remove(known, |name| name.topic == id).await?;
            }
        }
        Ok(())
    }

    async fn write(&self, name: Name, content: Bytes) -> StoreResult<()> {
        let key = format!("{}/{}", folder(&self.cluster), name.file_name());
        match self.store.put_new(&key, vec![content]).await {
            // An earlier attempt succeeded and its answer was lost: the name holds the checksum, so
            // the content is the same.
            Err(StoreError::Exists(_)) => Ok(()),
            written => written,
        }
    }

    /// Removes descriptors. The owner token is checked before each, because an incarnation that was
    /// fenced must delete nothing.
    async fn remove(
        &self,
        known: &mut BTreeSet<Name>,
        doomed: impl Fn(&Name) -> bool,
    ) -> StoreResult<()> {
        let doomed: Vec<Name> = known.iter().filter(|name| doomed(name)).copied().collect();
        for name in doomed {
            if self.rules.hold(Rule::CheckBeforeDelete)
                && let Err(error) = self.token.check().await
            {
                return Err(StoreError::Unavailable(error.to_string()));
            }
            let key = format!("{}/{}", folder(&self.cluster), name.file_name());
            self.store.delete(&key).await?;
            known.remove(&name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_come_back_and_sort_by_age() {
        let name = |incarnation, number, checksum| Name {
            topic: TopicId::from_u128(7),
            incarnation: Incarnation(incarnation),
            number,
            checksum,
        };
        let names = [name(1, 2, 9), name(1, 3, 0), name(2, 1, u32::MAX)];
        assert!(names.is_sorted());
        let texts = names.map(Name::file_name);
        assert!(texts.is_sorted());
        assert_eq!(
            texts[0],
            "00000000000000000000000000000007.00000000000000000001-000002.00000009"
        );
        for (text, name) in texts.iter().zip(names) {
            assert_eq!(Name::parse(text), Some(name));
        }
    }

    proptest! {
        #[test]
        fn parsing_any_name_does_not_panic(text in ".*") {
            let _ = Name::parse(&text);
        }
    }
}
