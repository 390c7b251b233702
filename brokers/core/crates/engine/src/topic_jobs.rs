//! Jobs of the cluster that change the metadata of topics and nothing else.

use std::sync::Arc;
use std::time::Duration;

use freshet_metadata::cluster::{ClusterError, ClusterMetadata, Fence, Term};
use freshet_metadata::view::MetadataView;
use freshet_storage::rules::{Rule, Rules};
use freshet_world::env::Clock;
use freshet_world::watch;

/// How often the deleted topics are compared with the clock. They can be restored for days, so a
/// minute more makes no difference.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Removes what interrupted changes left of topics, and gives up deleted topics in the end.
pub struct TopicJobs {
    /// The right to run the cluster's jobs, while this broker has it.
    pub term: watch::Receiver<Option<Term>>,
    /// Which rules of safety hold.
    pub rules: Rules,
    /// The cluster's metadata.
    pub metadata: Arc<ClusterMetadata>,
    /// The image of it.
    pub view: Arc<MetadataView>,
    /// The wall clock, with which the times are compared until which topics can be restored.
    pub clock: Arc<dyn Clock>,
}

impl TopicJobs {
    /// Runs for as long as the engine does, whenever this broker has the term. Deleted topics of a
    /// cluster that is asleep are given up after it has woken.
    pub async fn run(mut self) {
        let mut swept = None;
        loop {
            let term = *self.term.borrow_and_update();
            let look = async {
                match term {
                    Some(_) => tokio::time::sleep(LOOK_EVERY).await,
                    None => std::future::pending().await,
                }
            };
            if let Some(term) = term.filter(|_| term != swept) {
                self.sweep(self.guard(term)).await;
                swept = Some(term);
            }
            tokio::select! {
                biased;
                changed = self.term.changed() => if changed.is_err() {
                    return;
                },
                () = look => if let Some(term) = term {
                    self.purge(self.guard(term)).await;
                },
            }
        }
    }

    fn guard(&self, term: Term) -> Option<Fence> {
        self.rules.hold(Rule::IncarnationIsLive).then(|| term.fence())
    }

    /// Removes what an interrupted creation or deletion of a topic left in the metadata store.
    /// Nothing waits for it.
    async fn sweep(&self, guard: Option<Fence>) {
        match self.metadata.sweep_topics(guard).await {
            Ok(0) => {}
            Ok(swept) => tracing::info!(swept, "removed the rests of half-made or deleted topics"),
            Err(error) => {
                tracing::warn!(%error, "cannot remove the rests of topics; the next term tries");
            }
        }
    }

    /// Gives up the deleted topics that can no longer be restored.
    async fn purge(&self, guard: Option<Fence>) {
        let (hidden, now_ms) = (Arc::clone(&self.view.snapshot().hidden), self.clock.now_ms());
        for (id, topic) in hidden.iter() {
            if topic.restorable_until_ms.is_none_or(|until_ms| until_ms > now_ms) {
                continue;
            }
            match self.metadata.purge_topic(guard, *id).await {
                Ok(purged) => {
                    tracing::info!(topic = purged.record.topic.name, "gave up a topic");
                }
                // The topic was restored or given up by somebody else just now.
                Err(ClusterError::UnknownHiddenTopic(_)) => {}
                Err(error) => {
                    tracing::warn!(%id, %error, "cannot give up a deleted topic yet");
                }
            }
        }
    }
}
