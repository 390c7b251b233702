//! Jobs of the cluster on what its metadata says of topics.

use std::sync::Arc;
use std::time::Duration;

use freshet_metadata::cluster::{ClusterError, ClusterMetadata, Fence, Term};
use freshet_metadata::view::MetadataView;
use freshet_storage::rules::{Rule, Rules};
use freshet_world::env::Clock;

/// How often it is looked whether a topic's time is over.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Removing rests of topics, and deleted topics for good.
#[derive(Clone)]
pub struct TopicJobs {
    /// The right to do them.
    pub term: Term,
    /// Which rules of safety hold.
    pub rules: Rules,
    /// The cluster's metadata.
    pub metadata: Arc<ClusterMetadata>,
    /// Its image.
    pub view: Arc<MetadataView>,
    /// Wall clock: a topic can be restored until a time of day.
    pub clock: Arc<dyn Clock>,
}

impl TopicJobs {
    fn guard(&self) -> Option<Fence> {
        self.rules.hold(Rule::IncarnationIsLive).then(|| self.term.fence())
    }

    /// Removes what is left of topics that were half made or half removed. Nothing waits for it.
    pub async fn sweep(self) {
        match self.metadata.sweep_topics(self.guard()).await {
            Ok(0) => {}
            Ok(swept) => tracing::info!(swept, "removed rests of topics"),
            Err(error) => tracing::warn!(%error, "rests of topics are left to the next start"),
        }
    }

    /// Gives up topics whose time to be restored is over, for as long as it runs. A topic of a
    /// cluster that sleeps is given up when it wakes.
    pub async fn purge_when_due(self) {
        let guard = self.guard();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let (hidden, now_ms) = (Arc::clone(&self.view.snapshot().hidden), self.clock.now_ms());
            for (id, topic) in hidden.iter() {
                if topic.restorable_until_ms.is_none_or(|until_ms| until_ms > now_ms) {
                    continue;
                }
                match self.metadata.purge_topic(guard, *id).await {
                    Ok(purged) => {
                        tracing::info!(topic = purged.record.topic.name, "gave up a topic");
                    }
                    // Restored, or given up by somebody else, this moment.
                    Err(ClusterError::UnknownHiddenTopic(_)) => {}
                    Err(error) => tracing::warn!(%id, %error, "a topic is given up later"),
                }
            }
        }
    }
}
