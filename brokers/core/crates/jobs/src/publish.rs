//! Changes manifests, for one job at a time: first a new manifest is published, that is, put into
//! the object store; then it is installed, that is, a record in the lane makes it count. In the
//! other order a manifest could count that does not exist.
//!
//! Jobs run concurrently and may work for long. A job states its change as a function of the
//! manifest that counts when its turn comes, never of one that it read before, because another job
//! may have replaced that one meanwhile.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::{BadRecords, JobContext, JobError, RETRY_AFTER_FIRST, back_off};
use freshet_partition::Partition;
use freshet_storage::cold::invariants::check_change;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::lane::index::InstallEntry;
use freshet_storage::lane::queue::InstallEffect;
use freshet_storage::names::ManifestRef;
use freshet_storage::rules::Rule;
use freshet_world::env::store::{StoreError, StoreResult};
use freshet_world::invariants::expect_held;

/// A round of puts runs one put at the same time for each 64 that it has, and at least
/// [`PUTS_AT_ONCE_MIN`].
const PUTS_IN_A_ROW: usize = 64;
const PUTS_AT_ONCE_MIN: usize = 4;

/// Returns the manifest that is to follow the one that counts; `None` where nothing is to change.
pub(super) type Change =
    Box<dyn FnOnce(&Manifest) -> Result<Option<Manifest>, JobError> + Send + Sync>;

/// A job's change of one partition's manifest.
pub(super) struct Edit {
    pub(super) partition: Arc<Partition>,
    pub(super) change: Change,
}

/// Lets one job at a time change manifests.
#[derive(Default)]
pub struct Turns(tokio::sync::Mutex<Turn>);

#[derive(Default)]
struct Turn {
    /// Whether the lane is being closed, so that nothing may be installed any more.
    over: bool,
}

impl JobContext {
    /// Changes manifests. When it returns, the new ones are durable and count. A partition whose
    /// edit fails is taken offline, and the others are changed.
    ///
    /// # Errors
    /// Any [`JobError`]; then every partition keeps the manifest that it had.
    pub(super) async fn edit(&self, edits: Vec<Edit>) -> Result<(), JobError> {
        let turn = self.turns.0.lock().await;
        if turn.over {
            return Err(JobError::Stopping);
        }
        let mut changed = Vec::with_capacity(edits.len());
        for Edit { partition, change } in edits {
            if partition.is_released() {
                continue;
            }
            let current = partition.manifest();
            let next = change(&current).and_then(|next| self.check_next(&current, next));
            match next {
                Ok(Some(mut manifest)) => {
                    manifest.damaged = partition.damaged_from(manifest.log_start);
                    changed.push((partition, manifest));
                }
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

    /// Passes the next manifest on if every invariant holds.
    ///
    /// # Errors
    /// [`JobError::Records`] where one does not hold. The partition then keeps the manifest that
    /// counts and goes offline, since nobody knows what the change would have lost.
    fn check_next(
        &self,
        current: &Manifest,
        next: Option<Manifest>,
    ) -> Result<Option<Manifest>, JobError> {
        let Some(next) = next else { return Ok(None) };
        // Without that rule a job may put back a manifest that counts no more: the simulator is to
        // show what comes of it.
        if self.sources.rules.hold(Rule::EditWhatCounts) {
            let (partition, offset) = (next.partition, current.covered_end);
            expect_held(check_change(current, &next)).map_err(|broken| BadRecords {
                partition,
                offset,
                what: broken.to_string(),
            })?;
        }
        Ok(Some(next))
    }

    /// Lets no job change the manifests of these partitions any more, which are to be handed over.
    /// Returns those of which the manifest has all records; the others go on as before.
    pub(super) async fn release(&self, partitions: Vec<Arc<Partition>>) -> Vec<Arc<Partition>> {
        let _turn = self.turns.0.lock().await;
        partitions.into_iter().filter(|partition| partition.release()).collect()
    }

    /// Waits until the present turn is over and lets no other begin, because the lane is being
    /// closed.
    pub(super) async fn end_turns(&self) {
        self.turns.0.lock().await.over = true;
    }

    /// Repeats a put until the object store answers. An object store that is down so delays jobs
    /// and no client.
    pub(super) async fn put_when_possible<F>(&self, mut put: impl FnMut() -> F) -> StoreResult<()>
    where
        F: Future<Output = StoreResult<()>>,
    {
        let mut wait = RETRY_AFTER_FIRST;
        loop {
            match put().await {
                Err(StoreError::Unavailable(what)) => {
                    tracing::warn!(what, wait_ms = wait.as_millis(), "object store: trying again");
                    back_off(&mut wait).await;
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
                // An earlier attempt under this name may have put another manifest, so the name is
                // left to it.
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

/// How many of `puts` puts run at the same time: a round of thousands must end in a reasonable
/// time, and a small one leaves the processor to clients.
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
