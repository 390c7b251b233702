//! What all requests share: the engine, settings, and what is derived from the metadata's image.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::payers::Payers;
use super::producer_ids::ProducerIds;
use super::sent_readers::SentReaders;
use freshet_access::acl::{AclIndex, AuthorizerSettings};
use freshet_access::derivation::{Decoy, ITERATIONS_MIN};
use freshet_access::types::AclBinding;
use freshet_configs::{BrokerConfig, TopicConfig};
use freshet_engine::Engine;
use freshet_engine::configs::{BrokerConfigs, Derived};
use freshet_metadata::view::Topic;
use freshet_quota::QuotaManager;
use freshet_wire::budget::Budget;
use freshet_wire::ids::TopicId;

/// How many passwords are checked at the same time: each takes milliseconds of a core, and clients
/// that guess passwords must not take all cores.
const VERIFICATIONS_AT_ONCE: usize = 2;
/// How many resolved configs of topics that are gone may be kept before they are removed together.
const STALE_CONFIGS_MAX: usize = 64;

/// The settings of a broker that concern its clients.
#[derive(Debug, Clone)]
pub struct BrokerSettings {
    /// Static configs, by Kafka's names.
    pub configs: BrokerConfig,
    /// How ACLs are evaluated; without it, everybody may do everything.
    pub authorizer: Option<AuthorizerSettings>,
    /// The PBKDF2 iterations that the cluster's credentials usually have. Unknown users are
    /// answered with this number, so that they look like known ones.
    pub scram_iterations: u32,
    /// The most memory, in bytes, for records being sent to clients that read the newest ones.
    pub fetch_memory_bytes: usize,
    /// The most memory, in bytes, for records being sent to clients that read older ones.
    pub catch_up_memory_bytes: usize,
    /// Whether passwords are checked within the task that asks, and not on a thread for blocking
    /// work. A simulation, which has one thread, needs this.
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

/// What all requests to a broker share.
pub struct Broker {
    /// The engine, which must be running.
    pub engine: Arc<Engine>,
    /// The settings with which it was started.
    pub settings: BrokerSettings,
    /// Producer ids that were reserved and are not handed out yet.
    pub(crate) producer_ids: ProducerIds,
    /// The memory for records being sent to clients that read the newest ones.
    pub(crate) fetch_memory: Budget,
    /// The memory for records being sent to clients that read older ones. It is separate, so that
    /// such clients cannot take the memory of those that read the newest records.
    pub(crate) catch_up_memory: Budget,
    /// A permit of it is held while a password is checked.
    pub(crate) verifications: Semaphore,
    /// Held while `__consumer_offsets` is created, so that requests do not create it at once.
    pub(crate) making_offsets_topic: tokio::sync::Mutex<()>,
    /// The quotas of clients.
    pub quotas: Arc<QuotaManager>,
    /// The principals for whom the service has made requests.
    pub(crate) payers: Payers,
    /// When readers were sent to brokers in their zones.
    pub(crate) sent_readers: SentReaders,
    acls: Derived<Vec<AclBinding>, AclIndex>,
    configs: BrokerConfigs,
    topic_configs: Mutex<BTreeMap<TopicId, ResolvedTopic>>,
}

/// The resolved configs of a topic, with what they were resolved from.
struct ResolvedTopic {
    topic: Arc<Topic>,
    broker: Arc<BrokerConfig>,
    config: Arc<TopicConfig>,
}

impl Broker {
    /// Creates it over a running engine.
    pub fn new(engine: Arc<Engine>, settings: BrokerSettings) -> Arc<Self> {
        Arc::new(Self {
            producer_ids: ProducerIds::default(),
            fetch_memory: Budget::new(settings.fetch_memory_bytes),
            catch_up_memory: Budget::new(settings.catch_up_memory_bytes),
            verifications: Semaphore::new(VERIFICATIONS_AT_ONCE),
            making_offsets_topic: tokio::sync::Mutex::default(),
            quotas: Arc::new(QuotaManager::new(Arc::clone(&engine.view))),
            payers: Payers::default(),
            sent_readers: SentReaders::default(),
            acls: Derived::default(),
            configs: BrokerConfigs::new(
                Arc::clone(&engine.view),
                settings.configs.clone(),
                engine.settings.slot,
            ),
            topic_configs: Mutex::default(),
            engine,
            settings,
        })
    }

    /// How many bytes of the newest records are being sent to clients now.
    pub fn fetch_bytes(&self) -> usize {
        self.fetch_memory.used_bytes()
    }

    /// How many bytes of older records are being sent to clients now.
    pub fn catch_up_bytes(&self) -> usize {
        self.catch_up_memory.used_bytes()
    }

    /// The ACLs as of the image of the metadata; `None` where everybody may do everything.
    pub fn acls(&self) -> Option<Arc<AclIndex>> {
        let settings = self.settings.authorizer.as_ref()?;
        let acls = Arc::clone(&self.engine.view.snapshot().acls);
        Some(self.acls.get(&acls, || AclIndex::new(settings.clone(), acls.iter().cloned())))
    }

    /// The configs of this broker in force.
    pub fn config(&self) -> Arc<BrokerConfig> {
        self.configs.current()
    }

    /// The configs in force of the broker in another slot.
    pub(crate) fn config_of(&self, slot: u32) -> BrokerConfig {
        self.configs.of_slot(slot)
    }

    /// The topic's configs in force. They are resolved again only where the topic or the broker
    /// configs have changed.
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

    /// The source of what unknown users are answered with. Its secret is the cluster's, so that all
    /// brokers answer the same at every start.
    pub(crate) fn decoy(&self) -> Decoy {
        Decoy::new(self.engine.decoy_secret, self.settings.scram_iterations)
    }
}
