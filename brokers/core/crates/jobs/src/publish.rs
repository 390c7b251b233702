//! Changing manifests: publish, then install, one turn at a time.
//!
//! Jobs run beside each other and may work for long. What each of them wants of a manifest is said
//! as an edit of the one that counts when its turn comes, never of one that it read before: another
//! job may have replaced it meanwhile.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::{JobContext, JobError, RETRY_AFTER_FIRST, pause};
use freshet_partition::Partition;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::lane::index::InstallEntry;
use freshet_storage::lane::queue::InstallEffect;
use freshet_storage::names::ManifestRef;
use freshet_storage::rules::Rule;
use freshet_world::env::store::{StoreError, StoreResult};

/// Of manifests that are put, so many go one after another, where not too few go side by side then.
const PUTS_IN_A_ROW: usize = 64;
const PUTS_AT_ONCE_MIN: usize = 4;

/// The manifest that is to follow the one that counts; none where there is nothing to change.
pub(super) type Change =
    Box<dyn FnOnce(&Manifest) -> Result<Option<Manifest>, JobError> + Send + Sync>;

/// What a job wants of one partition's manifest.
pub(super) struct Edit {
    pub(super) partition: Arc<Partition>,
    pub(super) change: Change,
}

/// Whose turn it is to change manifests.
#[derive(Default)]
pub struct Turns(tokio::sync::Mutex<Turn>);

#[derive(Default)]
struct Turn {
    /// The lane gets its end: nothing is installed any more.
    over: bool,
}

impl JobContext {
    /// Changes manifests: all are durable, and count, when this returns. A partition whose edit
    /// fails is taken offline, and the others go on.
    ///
    /// # Errors
    /// [`JobError`]; every partition keeps the manifest that it had.
    pub(super) async fn edit(&self, edits: Vec<Edit>) -> Result<(), JobError> {
        let turn = self.turns.0.lock().await;
        if turn.over {
            return Err(JobError::Stopping);
        }
        let mut changed = Vec::with_capacity(edits.len());
        for Edit { partition, change } in edits {
            match change(&partition.manifest()) {
                Ok(Some(manifest)) => changed.push((partition, manifest)),
                Ok(None) => {}
                Err(JobError::Records(bad)) => self.take_offline(&bad),
                Err(error) => return Err(error),
            }
        }
        let puts = changed.into_iter().map(|(partition, manifest)| async move {
            let published = self.publish_manifest(&partition, manifest).await?;
            Ok::<_, JobError>((partition, published))
        });
        let at_once = puts_at_once(puts.len(), self.store.puts_at_once());
        let published: Vec<_> = stream::iter(puts).buffered(at_once).try_collect().await?;
        if published.is_empty() { Ok(()) } else { self.install(published).await }
    }

    /// Waits for the turn under way and gives no other: the lane is about to end.
    pub(super) async fn end_turns(&self) {
        self.turns.0.lock().await.over = true;
    }

    /// Repeats a put until the store answers: an object store that is down delays jobs, not
    /// clients.
    pub(super) async fn put_when_possible<F>(&self, mut put: impl FnMut() -> F) -> StoreResult<()>
    where
        F: Future<Output = StoreResult<()>>,
    {
        let mut wait = RETRY_AFTER_FIRST;
        loop {
            match put().await {
                Err(StoreError::Unavailable(what)) => {
                    tracing::warn!(what, wait_ms = wait.as_millis(), "object store: trying again");
                    pause(&mut wait).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Publishes the manifest that follows a partition's current one, under the next free name.
    async fn publish_manifest(
        &self,
        partition: &Partition,
        mut manifest: Manifest,
    ) -> Result<Arc<Manifest>, JobError> {
        manifest.name = next_name(partition);
        loop {
            let key = Manifest::key(&self.cluster, manifest.partition, manifest.name);
            let bytes = manifest.encode();
            match self.put_when_possible(|| self.store.put_new(&key, vec![bytes.clone()])).await {
                // An earlier try under this name may have been another manifest: leave it be.
                Err(StoreError::Exists(_)) => manifest.name.number += 1,
                outcome => {
                    outcome?;
                    return Ok(Arc::new(manifest));
                }
            }
        }
    }

    /// Makes published manifests count.
    async fn install(
        &self,
        manifests: Vec<(Arc<Partition>, Arc<Manifest>)>,
    ) -> Result<(), JobError> {
        let entries = manifests
            .iter()
            .map(|(partition, manifest)| InstallEntry {
                partition: partition.id(),
                manifest: manifest.name,
            })
            .collect();
        let effect: InstallEffect = Box::new(move || {
            for (partition, manifest) in manifests {
                partition.apply(manifest);
            }
        });
        if self.sources.rules.hold(Rule::InstallBeforeUse) {
            Ok(self.lane.install(entries, effect).await?)
        } else {
            effect();
            Ok(())
        }
    }
}

/// A round of thousands is to end; one of few leaves the processor to clients.
fn puts_at_once(puts: usize, best: usize) -> usize {
    (puts / PUTS_IN_A_ROW).clamp(PUTS_AT_ONCE_MIN.min(best), best)
}

fn next_name(partition: &Partition) -> ManifestRef {
    let epoch = partition.epoch();
    let number = match partition.manifest_name() {
        Some(name) if name.epoch == epoch => name.number + 1,
        _ => 0,
    };
    ManifestRef { epoch, number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_of_thousands_is_put_faster_than_one_of_a_few() {
        assert_eq!(puts_at_once(1, 24), 4);
        assert_eq!(puts_at_once(640, 24), 10);
        assert_eq!(puts_at_once(10_000, 24), 24);
        assert_eq!(puts_at_once(1, 2), 2, "never more than the store is given");
    }
}
