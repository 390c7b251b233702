//! What all requests share: the engine, settings, and what is derived from the metadata's image.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::producer_ids::ProducerIds;
use crate::engine::Engine;
use crate::engine::configs::{BrokerConfigs, Derived};
use freshet_access::acl::{AclIndex, AuthorizerSettings};
use freshet_access::derivation::{Decoy, ITERATIONS_MIN};
use freshet_access::types::AclBinding;
use freshet_configs::{BrokerConfig, TopicConfig};
use freshet_metadata::view::Topic;
use freshet_quota::QuotaManager;
use freshet_wire::budget::Budget;
use freshet_wire::ids::TopicId;

/// Passwords that are checked at a time: each costs milliseconds of a core.
const VERIFICATIONS_AT_ONCE: usize = 2;
/// Topic configurations that may be kept of topics that are gone.
const STALE_CONFIGS_MAX: usize = 64;

/// What is set of a broker as clients see it.
#[derive(Debug, Clone)]
pub struct BrokerSettings {
    /// Static configs, by Kafka's names.
    pub configs: BrokerConfig,
    /// How ACLs are judged; with none, everybody may do everything.
    pub authorizer: Option<AuthorizerSettings>,
    /// PBKDF2 rounds that the cluster's credentials usually have.
    pub scram_iterations: u32,
    /// Memory for records on their way to clients that read the newest ones, in bytes.
    pub fetch_memory_bytes: usize,
    /// Memory for records on their way to clients that catch up, in bytes.
    pub catch_up_memory_bytes: usize,
    /// Passwords are checked by the task that asks: for simulations, which have one thread.
    pub inline_crypto: bool,
}

impl Default for BrokerSettings {
    fn default() -> Self {
        Self {
            configs: BrokerConfig::default(),
            authorizer: None,
            scram_iterations: ITERATIONS_MIN,
            fetch_memory_bytes: 256 << 20,
            catch_up_memory_bytes: 64 << 20,
            inline_crypto: false,
        }
    }
}

/// See the module.
pub struct Broker {
    /// The engine.
    pub engine: Arc<Engine>,
    /// What was set.
    pub settings: BrokerSettings,
    /// Producer ids that are not handed out yet.
    pub(crate) producer_ids: ProducerIds,
    /// Memory for records on their way to clients that read the newest ones.
    pub(crate) fetch_memory: Budget,
    /// Memory for records on their way to clients that catch up: whoever does not takes none of it.
    pub(crate) catch_up_memory: Budget,
    /// Held while a password is checked.
    pub(crate) verifications: Semaphore,
    /// Held while the topic of the group coordinator is made.
    pub(crate) making_offsets_topic: tokio::sync::Mutex<()>,
    /// What clients may take.
    pub(crate) quotas: Arc<QuotaManager>,
    acls: Derived<Vec<AclBinding>, AclIndex>,
    configs: BrokerConfigs,
    topic_configs: Mutex<BTreeMap<TopicId, ResolvedTopic>>,
}

struct ResolvedTopic {
    topic: Arc<Topic>,
    broker: Arc<BrokerConfig>,
    config: Arc<TopicConfig>,
}

impl Broker {
    /// A broker over a running engine.
    pub fn new(engine: Arc<Engine>, settings: BrokerSettings) -> Arc<Self> {
        Arc::new(Self {
            producer_ids: ProducerIds::default(),
            fetch_memory: Budget::new(settings.fetch_memory_bytes),
            catch_up_memory: Budget::new(settings.catch_up_memory_bytes),
            verifications: Semaphore::new(VERIFICATIONS_AT_ONCE),
            making_offsets_topic: tokio::sync::Mutex::default(),
            quotas: Arc::new(QuotaManager::new(Arc::clone(&engine.view))),
            acls: Derived::default(),
            configs: BrokerConfigs::new(Arc::clone(&engine.view), settings.configs.clone()),
            topic_configs: Mutex::default(),
            engine,
            settings,
        })
    }

    /// Bytes of the newest records that are on their way to clients now.
    pub fn fetch_bytes(&self) -> usize {
        self.fetch_memory.used_bytes()
    }

    /// Bytes of older records that are on their way to clients now.
    pub fn catch_up_bytes(&self) -> usize {
        self.catch_up_memory.used_bytes()
    }

    /// Who may do what, as far as the view knows; none where everybody may do everything.
    pub fn acls(&self) -> Option<Arc<AclIndex>> {
        let settings = self.settings.authorizer.as_ref()?;
        let acls = Arc::clone(&self.engine.view.snapshot().acls);
        Some(self.acls.get(&acls, || AclIndex::new(settings.clone(), acls.iter().cloned())))
    }

    /// The configs of brokers that hold now.
    pub fn config(&self) -> Arc<BrokerConfig> {
        self.configs.current()
    }

    /// The configs of a topic that hold now.
    pub fn topic_config(&self, topic: &Arc<Topic>) -> Arc<TopicConfig> {
        let broker = self.config();
        let id = topic.record.id;
        let mut resolved = self.topic_configs.lock();
        if let Some(known) = resolved.get(&id)
            && Arc::ptr_eq(&known.topic, topic)
            && Arc::ptr_eq(&known.broker, &broker)
        {
            return Arc::clone(&known.config);
        }
        let config = Arc::new(TopicConfig::resolve(&topic.record.configs, &broker));
        let topics = self.engine.view.topics();
        if resolved.len() > topics.len() + STALE_CONFIGS_MAX {
            resolved.retain(|id, _| topics.by_id(*id).is_some());
        }
        let topic = Arc::clone(topic);
        resolved.insert(id, ResolvedTopic { topic, broker, config: Arc::clone(&config) });
        config
    }

    /// What unknown users are answered with. Its secret is the same for all brokers of the cluster
    /// and at every start.
    pub(crate) fn decoy(&self) -> Decoy {
        Decoy::new(self.engine.decoy_secret, self.settings.scram_iterations)
    }
}
