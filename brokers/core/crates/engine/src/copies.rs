//! Copies of partitions that other brokers lead, for clients in this broker's zone (KIP-392).
//!
//! A copy has what the newest manifest in the object store names, and nothing of any lane. All of
//! that was acknowledged, so every leader to come has it too. A copy may be older than the leader's
//! log by [`FRESH_TIME`], and has no end of its own: who reads it to its end goes on at the leader.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::topics::ViewedTopics;
use freshet_jobs::TopicFacts;
use freshet_partition::load::Opening;
use freshet_partition::{Partition, Sources};
use freshet_storage::cold::ColdError;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::state::producers::Producers;
use freshet_wire::ids::{Epoch, PartitionId};
use freshet_world::env::Environment;
use freshet_world::env::store::StoreError;

/// For how long a copy is read before a newer manifest is looked for.
const FRESH_TIME: Duration = Duration::from_secs(5);
/// How long nobody looks for a newer manifest after somebody did, whatever is asked for.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// A copy that nobody read for so long may be forgotten.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// The most copies. A manifest takes some ten to some hundred kilobytes of memory.
const COPIES_MAX: usize = 1000;
/// How many manifests are looked for at a time.
const LOOKS_AT_ONCE: usize = 32;

/// A partition of which a copy is asked for.
#[derive(Debug, Clone)]
pub struct Original {
    /// The id of its topic, and its index.
    pub id: PartitionId,
    /// Its topic's name.
    pub topic: Arc<str>,
    /// The epoch of its leader.
    pub epoch: Epoch,
}

/// The copies that this broker has.
pub struct Copies {
    environment: Environment,
    cluster: String,
    sources: Arc<Sources>,
    topics: Arc<ViewedTopics>,
    known: Mutex<HashMap<PartitionId, Known>>,
    looks: Semaphore,
}

struct Known {
    copy: Arc<tokio::sync::Mutex<Looked>>,
    read_at: Instant,
}

/// What was found when somebody looked for the newest manifest last.
#[derive(Default)]
struct Looked {
    at: Option<Instant>,
    copy: Option<Arc<Partition>>,
}

impl Looked {
    fn is_older_than(&self, time: Duration) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= time)
    }

    /// The copy, where it is of this epoch and has this offset.
    fn covering(&self, epoch: Epoch, offset: i64) -> Option<Arc<Partition>> {
        let copy = self.copy.as_ref().filter(|copy| copy.epoch() == epoch)?;
        let bounds = copy.bounds();
        (bounds.log_start..bounds.end).contains(&offset).then(|| Arc::clone(copy))
    }
}

impl Copies {
    pub(super) fn new(
        environment: Environment,
        cluster: String,
        sources: Arc<Sources>,
        topics: Arc<ViewedTopics>,
    ) -> Self {
        let looks = Semaphore::new(LOOKS_AT_ONCE);
        Self { environment, cluster, sources, topics, known: Mutex::default(), looks }
    }

    /// A copy that has this offset; `None` where there is none now.
    pub async fn covering(&self, original: &Original, offset: i64) -> Option<Arc<Partition>> {
        let known = self.known(original.id)?;
        // Others who ask for the same partition use what the first one finds.
        let mut looked = known.lock().await;
        let covering = looked.covering(original.epoch, offset);
        let pause = if covering.is_some() { FRESH_TIME } else { LOOK_PAUSE };
        if !looked.is_older_than(pause) {
            return covering;
        }
        looked.copy = match self.look(original, looked.copy.take()).await {
            Ok(copy) => copy,
            Err(error) => {
                let (what, partition) = (error.to_string(), original.id);
                self.sources.read_faults.note(&what, false, |passed_over| {
                    tracing::warn!(%partition, what, passed_over, "cannot read for its leader");
                });
                None
            }
        };
        looked.at = Some(Instant::now());
        looked.covering(original.epoch, offset)
    }

    /// What is known of a partition; `None` where there are too many that are read.
    fn known(&self, id: PartitionId) -> Option<Arc<tokio::sync::Mutex<Looked>>> {
        let (mut known, read_at) = (self.known.lock(), Instant::now());
        if let Some(known) = known.get_mut(&id) {
            known.read_at = read_at;
            return Some(Arc::clone(&known.copy));
        }
        if known.len() >= COPIES_MAX {
            known.retain(|_, known| read_at - known.read_at < IDLE_TIME);
        }
        if known.len() >= COPIES_MAX {
            return None;
        }
        let copy = Arc::default();
        known.insert(id, Known { copy: Arc::clone(&copy), read_at });
        Some(copy)
    }

    /// Opens the newest manifest, unless that is the one that was open `before`.
    async fn look(
        &self,
        original: &Original,
        before: Option<Arc<Partition>>,
    ) -> Result<Option<Arc<Partition>>, ColdError> {
        let _permit = self.looks.acquire().await.expect("it is never closed");
        let store = &self.environment.bucket;
        let names = match store.list(&Manifest::folder(&self.cluster, original.id)).await {
            Ok(names) => names,
            Err(StoreError::NotFound(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let newest = names.iter().filter_map(|name| Manifest::parse_file_name(name)).max();
        let Some(newest) = newest else { return Ok(None) };
        let is_open = |copy: &Arc<Partition>| {
            copy.manifest_name() == Some(newest) && copy.epoch() == original.epoch
        };
        let copy = if let Some(copy) = before.filter(is_open) {
            copy
        } else {
            let key = Manifest::key(&self.cluster, original.id, newest);
            self.open(original, Manifest::decode(&store.get(&key).await?)?)
        };
        if let Some(rules) = self.topics.rules(original.id.topic) {
            rules.hide_expired(&copy, self.environment.clock.now_ms());
        }
        Ok(Some(copy))
    }

    fn open(&self, original: &Original, manifest: Manifest) -> Arc<Partition> {
        // Only a leader judges what producers send.
        let manifest = Manifest { producers: Producers::default(), ..manifest };
        let opening = Opening {
            id: original.id,
            topic: Arc::clone(&original.topic),
            epoch: original.epoch,
            manifest: Arc::new(manifest),
            tail: Vec::new(),
            producers_since_ms: 0,
        };
        Partition::open(opening, Arc::clone(&self.sources)).expect("nothing follows the manifest")
    }
}
