//! The control plane's access to a cluster without a broker: the calls of Kafka's admin protocol,
//! executed on the metadata store and checked as a broker checks them. In this way a cluster that
//! is asleep can be read and changed; a broker that runs sees the change in its image of the
//! metadata.
//!
//! [`calls`] has the same calls as text, for the Python binding.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use freshet_configs::{BrokerConfig, ConfigError, Overrides};
use freshet_metadata::ScopedStore;
use freshet_metadata::cluster::{ClusterFacts, ClusterMetadata};
use freshet_metadata::schema::{ClusterRecord, ConfigScope, LimitsRecord, Stored};
use freshet_metadata::store::{MetadataStore, Transaction, Write};
use freshet_world::env::{Clock, Randomness};

mod acls;
pub mod calls;
mod error;
mod hidden_topics;
mod history;
mod kinds;
mod quotas;
mod topics;
mod traffic;
mod users;

pub use acls::AclText;
pub use error::AdminError;
pub use hidden_topics::{DeletedTopicFacts, OrphanedTopicFacts};
pub use history::{LaneFacts, TopicHistory};
pub use quotas::{QuotaEntityText, QuotaFacts};
pub use topics::{ConfigFacts, PartitionFacts, TopicFacts, TopicRequest};
pub use users::UserFacts;

/// How many keys one transaction of a purge removes. etcd accepts 128 operations in a transaction
/// by default.
const PURGE_BATCH: usize = 100;
/// The prefix that a purge removes first: a broker that still runs can change nothing from then on.
const INCARNATIONS: &str = freshet_metadata::schema::keys::INCARNATIONS;

/// The facts of a cluster as a whole, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClusterOverview {
    /// Kafka's cluster id: 16 bytes as 22 characters of URL-safe base64.
    pub cluster_id: String,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    /// How many brokers it has while it is awake.
    pub scale: u32,
}

impl From<ClusterRecord> for ClusterOverview {
    fn from(record: ClusterRecord) -> Self {
        let ClusterRecord { cluster_id, created_at_ms, scale, .. } = record;
        Self { cluster_id, created_at_ms, scale }
    }
}

/// A cluster's metadata, as the control plane sees it.
pub struct ClusterAdmin {
    metadata: ClusterMetadata,
    store: Arc<dyn MetadataStore>,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    fixed: BrokerConfig,
}

impl ClusterAdmin {
    /// The access to the cluster `cluster` in the metadata store of its cell. `fixed` has the
    /// static configs of its brokers, by Kafka's names.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] where the name or a config is not acceptable.
    pub fn new(
        store: Arc<dyn MetadataStore>,
        cluster: &str,
        fixed: Overrides,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
    ) -> Result<Self, AdminError> {
        freshet_metadata::schema::cell::check_cluster_id(cluster)
            .map_err(|message| AdminError::invalid("cluster", message))?;
        let fixed = BrokerConfig::new(fixed)
            .map_err(|error| AdminError::invalid("broker_configs", error.message))?;
        let store: Arc<dyn MetadataStore> = Arc::new(ScopedStore::new(store, cluster)?);
        let (time, chance) = (Arc::clone(&clock), Arc::clone(&randomness));
        let metadata = ClusterMetadata::new(Arc::clone(&store), time, chance);
        Ok(Self { metadata, store, clock, randomness, fixed })
    }

    /// Creates the cluster's record; one that exists stays as it is.
    ///
    /// # Errors
    /// [`AdminError::Conflict`] where it is another cluster's; [`AdminError::Invalid`] where an
    /// argument is not acceptable; those of the metadata store.
    pub async fn create(
        &self,
        cluster_id: Option<String>,
        scale: u32,
    ) -> Result<ClusterOverview, AdminError> {
        if let Some(id) = &cluster_id {
            let bytes = URL_SAFE_NO_PAD.decode(id);
            if bytes.map_or(true, |bytes| bytes.len() != 16) {
                let message = format!("{id:?} is not 16 bytes in 22 characters of base64");
                return Err(AdminError::invalid("cluster_id", message));
            }
        }
        check_scale(scale)?;
        let facts = ClusterFacts { cluster_id, scale };
        Ok(self.metadata.open_or_create(&facts).await?.record.into())
    }

    /// The facts in the cluster's record.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where it has none; those of the metadata store.
    pub async fn record(&self) -> Result<ClusterOverview, AdminError> {
        let key = freshet_metadata::schema::Key::Cluster.to_string();
        let Some(entry) = self.store.get(&key).await? else {
            return Err(AdminError::NotFound("the cluster has no record".to_owned()));
        };
        Ok(Stored::<ClusterRecord>::from_entry(&entry)?.record.into())
    }

    /// Changes how many brokers the cluster has while it is awake.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where it has no record; [`AdminError::Invalid`] for 0; those of the
    /// metadata store.
    pub async fn set_scale(&self, scale: u32) -> Result<ClusterOverview, AdminError> {
        check_scale(scale)?;
        self.record().await?;
        Ok(self.metadata.set_scale(scale).await?.record.into())
    }

    /// Removes every record of the cluster from the metadata store, and returns how many there
    /// were. It is meant for a cluster that no broker serves. Where it fails half-way it can be
    /// called again.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn remove_all(&self) -> Result<usize, AdminError> {
        let mut removed = 0;
        for prefix in [INCARNATIONS, ""] {
            loop {
                let page = self.store.range(prefix, None, PURGE_BATCH).await?;
                if page.entries.is_empty() {
                    break;
                }
                removed += page.entries.len();
                let writes = page.entries.into_iter().map(|entry| Write::Delete { key: entry.key });
                let transaction = Transaction { compares: vec![], writes: writes.collect() };
                self.store.commit(transaction).await?;
            }
        }
        Ok(removed)
    }

    /// The same access, whose additions are held to these limits.
    #[must_use]
    pub fn within(&self, limits: LimitsRecord) -> Self {
        Self {
            metadata: self.metadata.within(limits),
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            randomness: Arc::clone(&self.randomness),
            fixed: self.fixed.clone(),
        }
    }

    /// The limits that brokers enforce.
    ///
    /// # Errors
    /// Those of the metadata store (see [`AdminError`]).
    pub async fn limits(&self) -> Result<LimitsRecord, AdminError> {
        Ok(self.metadata.limits().await?)
    }

    /// Replaces the limits that brokers enforce, which those that run do within moments.
    ///
    /// # Errors
    /// [`AdminError::NotFound`] where the cluster has no record; those of the metadata store.
    pub async fn set_limits(&self, limits: &LimitsRecord) -> Result<(), AdminError> {
        self.require_record().await?;
        Ok(self.metadata.set_limits(limits).await?)
    }

    /// Checks that so many more topics and partitions fit in the limits.
    ///
    /// # Errors
    /// [`AdminError::LimitReached`]; those of the metadata store.
    pub async fn check_topic_room(&self, topics: u64, partitions: u64) -> Result<(), AdminError> {
        Ok(self.metadata.check_topic_room(topics, partitions).await?)
    }

    /// The broker configs in force: those stored for all brokers override the static ones.
    async fn broker_config(&self) -> Result<BrokerConfig, AdminError> {
        let stored = self.metadata.broker_configs(ConfigScope::Default).await?;
        if stored.is_empty() {
            return Ok(self.fixed.clone());
        }
        Ok(self.fixed.with_stored(&stored, &Overrides::new()))
    }

    /// Fails where the cluster has no record, so that nothing is written for a cluster that does
    /// not exist.
    async fn require_record(&self) -> Result<(), AdminError> {
        self.record().await.map(drop)
    }
}

fn check_scale(scale: u32) -> Result<(), AdminError> {
    if scale == 0 {
        return Err(AdminError::invalid("scale", "a cluster has at least one broker"));
    }
    Ok(())
}

/// The error for refused configs: it names the first config that is refused by itself, or none
/// where only the combination is.
fn config_refusal(
    error: ConfigError,
    configs: &Overrides,
    check: impl Fn(&Overrides) -> Result<(), ConfigError>,
) -> AdminError {
    let alone = |name: &&String| {
        let alone = Overrides::from([((*name).clone(), configs[*name].clone())]);
        check(&alone).is_err()
    };
    let field = match configs.keys().find(alone) {
        Some(name) => format!("configs/{}", pointer(name)),
        None => "configs".to_owned(),
    };
    AdminError::Invalid { field: Some(field), message: error.message }
}

/// Escapes a name as a part of a JSON pointer (RFC 6901 section 3).
fn pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
