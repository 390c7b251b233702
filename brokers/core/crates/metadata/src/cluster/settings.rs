//! The cluster's own record, configurations of brokers, and producer ids.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::changes::Note;
use super::topics::{ConfigChanges, apply_changes};
use super::{
    ClusterError, ClusterMetadata, Fence, MetadataError, Transaction, as_read, delete, put,
};
use crate::schema::{
    BrokerConfigRecord, ClusterRecord, ConfigScope, Configs, Key, ProducerIdRecord, Record,
    RefusalRecord, Stored, ThrottleRecord, TrafficLimit,
};
use crate::store::Compare;
use freshet_wire::ids::Incarnation;

/// Producer ids are handed out in blocks of this many, as in Kafka.
pub const PRODUCER_ID_BLOCK: u32 = 1000;
/// The lower bits of a producer id count within an incarnation; those above are its number.
const PRODUCER_ID_BITS: u32 = 32;
const PRODUCER_IDS_EXHAUSTED: ClusterError = ClusterError::Exhausted("producer id");

/// The first producer id of an incarnation, which is above all ids of earlier ones.
fn first_producer_id(incarnation: Incarnation) -> Result<i64, ClusterError> {
    let number = i64::try_from(incarnation.0).map_err(|_| PRODUCER_IDS_EXHAUSTED)?;
    number.checked_mul(1 << PRODUCER_ID_BITS).ok_or(PRODUCER_IDS_EXHAUSTED)
}

fn limit_of(
    refusal: Option<&Stored<RefusalRecord>>,
    throttle: Option<&Stored<ThrottleRecord>>,
) -> Option<TrafficLimit> {
    let (refusal, throttle) =
        (refusal.map(|stored| stored.record.clone()), throttle.map(|stored| stored.record.clone()));
    TrafficLimit::of(refusal, throttle)
}

/// Compares that a key is as it was read, and gives it this record or none.
fn exchange<R: Record>(
    transaction: &mut Transaction,
    key: &Key,
    read: Option<&Stored<R>>,
    record: Option<&R>,
) -> Result<(), ClusterError> {
    transaction.compares.push(Compare { key: key.to_string(), expected: as_read(read) });
    match (read, record) {
        (_, Some(record)) => transaction.writes.push(put(key, record)?),
        (Some(_), None) => transaction.writes.push(delete(key)),
        (None, None) => {}
    }
    Ok(())
}

/// What the opener of a cluster knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Kafka's cluster id; `None` takes the stored one, or a new one where none is stored.
    pub cluster_id: Option<String>,
    /// How many brokers a new cluster has when awake.
    pub scale: u32,
}

impl ClusterMetadata {
    /// The cluster's record; writes it where there is none.
    ///
    /// # Errors
    /// [`ClusterError::WrongCluster`] where the ids differ; [`ClusterError::Store`].
    pub async fn open_or_create(
        &self,
        facts: &ClusterFacts,
    ) -> Result<Stored<ClusterRecord>, ClusterError> {
        let mut retry = self.retry();
        loop {
            if let Some(stored) = self.read::<ClusterRecord>(&Key::Cluster).await? {
                let stored_id = stored.record.cluster_id.clone();
                return match &facts.cluster_id {
                    Some(expected) if *expected != stored_id => Err(ClusterError::WrongCluster {
                        expected: expected.clone(),
                        stored: stored_id,
                    }),
                    _ => Ok(stored),
                };
            }
            let cluster_id = facts.cluster_id.clone();
            let mut decoy_secret = [0; 32];
            self.randomness.fill(&mut decoy_secret);
            let record = ClusterRecord {
                cluster_id: cluster_id
                    .unwrap_or_else(|| URL_SAFE_NO_PAD.encode(self.random_id().as_bytes())),
                created_at_ms: self.clock.now_ms(),
                scale: facts.scale,
                decoy_secret: URL_SAFE_NO_PAD.encode(decoy_secret),
            };
            match self.replace(None, &Key::Cluster, None, &record).await {
                Ok(revision) => return Ok(Stored { record, revision }),
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }

    /// Changes how many brokers the cluster has when awake.
    ///
    /// # Errors
    /// [`ClusterError::Store`]; `Corrupt` where the cluster was never created.
    pub async fn set_scale(&self, scale: u32) -> Result<Stored<ClusterRecord>, ClusterError> {
        let mut retry = self.retry();
        loop {
            let stored = self.read::<ClusterRecord>(&Key::Cluster).await?;
            let Some(stored) = stored else {
                let missing = "the cluster's record is missing".to_owned();
                return Err(MetadataError::Corrupt(missing).into());
            };
            if stored.record.scale == scale {
                return Ok(stored);
            }
            let record = ClusterRecord { scale, ..stored.record.clone() };
            match self.replace(None, &Key::Cluster, Some(&stored), &record).await {
                Ok(revision) => return Ok(Stored { record, revision }),
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }

    /// The configurations that were set for brokers, as the store has them now.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn broker_configs(&self, scope: ConfigScope) -> Result<Configs, ClusterError> {
        let stored = self.read::<BrokerConfigRecord>(&Key::BrokerConfig(scope)).await?;
        Ok(stored.map(|stored| stored.record.configs).unwrap_or_default())
    }

    /// Changes configurations of brokers. Names and values are the caller's to check. Returns a
    /// revision that a view can wait for.
    ///
    /// # Errors
    /// [`ClusterError::TooLarge`], [`ClusterError::Fenced`]; [`ClusterError::Store`].
    pub async fn set_broker_configs(
        &self,
        fence: Option<Fence>,
        scope: ConfigScope,
        changes: &ConfigChanges,
    ) -> Result<u64, ClusterError> {
        let key = Key::BrokerConfig(scope);
        let mut retry = self.retry();
        loop {
            let stored = self.read::<BrokerConfigRecord>(&key).await?;
            let before =
                stored.as_ref().map(|stored| stored.record.configs.clone()).unwrap_or_default();
            let configs = apply_changes(&before, changes);
            if configs == before {
                return Ok(stored.map_or(0, |stored| stored.revision));
            }
            let record = BrokerConfigRecord { configs, changed_at_ms: self.clock.now_ms() };
            let note = || {
                let changed = changes.iter().map(|(name, value)| (name, value.as_ref()));
                Note::new("broker_configs.update", scope.node()).with_configs(changed)
            };
            match self.replace_noted(fence, &key, stored.as_ref(), &record, note).await {
                Ok(revision) => return Ok(revision),
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }

    /// What clients may produce and fetch, as the store has it now; `None` where that is not
    /// limited.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn traffic_limit(&self) -> Result<Option<TrafficLimit>, ClusterError> {
        let (refusal, throttle) = self.stored_limit().await?;
        Ok(limit_of(refusal.as_ref(), throttle.as_ref()))
    }

    /// Has brokers refuse or slow down what clients produce and fetch, but not what the service
    /// does for itself; `None` lifts the limit. Returns the limit that was stored before.
    ///
    /// # Errors
    /// [`ClusterError::TooLarge`]; [`ClusterError::Store`].
    pub async fn set_traffic_limit(
        &self,
        limit: Option<&TrafficLimit>,
    ) -> Result<Option<TrafficLimit>, ClusterError> {
        let mut retry = self.retry();
        loop {
            let (refusal, throttle) = self.stored_limit().await?;
            let before = limit_of(refusal.as_ref(), throttle.as_ref());
            if before.as_ref() == limit {
                return Ok(before);
            }
            let (new_refusal, new_throttle) = TrafficLimit::records(limit);
            let mut transaction = Transaction::new();
            exchange(&mut transaction, &Key::Refusal, refusal.as_ref(), new_refusal.as_ref())?;
            exchange(&mut transaction, &Key::Throttle, throttle.as_ref(), new_throttle.as_ref())?;
            match self.commit(None, transaction).await {
                Ok(_) => return Ok(before),
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }

    /// The records from which the limit of traffic follows.
    async fn stored_limit(
        &self,
    ) -> Result<(Option<Stored<RefusalRecord>>, Option<Stored<ThrottleRecord>>), ClusterError> {
        Ok((self.read(&Key::Refusal).await?, self.read(&Key::Throttle).await?))
    }

    /// Allocates producer ids that nobody else gets, now or later: at least `count`, in whole
    /// blocks of [`PRODUCER_ID_BLOCK`]. None is below the first id of the caller's incarnation. So
    /// ids stay unique where the metadata was restored from a backup and has forgotten which it
    /// handed out: an incarnation that starts then has a higher number than any before.
    ///
    /// # Errors
    /// [`ClusterError::Fenced`], [`ClusterError::Exhausted`]; [`ClusterError::Store`].
    pub async fn allocate_producer_ids(
        &self,
        fence: Option<Fence>,
        count: u32,
    ) -> Result<Range<i64>, ClusterError> {
        let blocks = i64::from(count.div_ceil(PRODUCER_ID_BLOCK).max(1));
        let ids = blocks * i64::from(PRODUCER_ID_BLOCK);
        let first = match fence {
            Some(fence) => first_producer_id(fence.incarnation)?,
            None => 0,
        };
        let mut retry = self.retry();
        loop {
            let stored = self.read::<ProducerIdRecord>(&Key::ProducerIds).await?;
            let next = stored.as_ref().map_or(0, |stored| stored.record.next_producer_id);
            let start = next.max(first);
            let end = start.checked_add(ids).ok_or(PRODUCER_IDS_EXHAUSTED)?;
            let record = ProducerIdRecord { next_producer_id: end };
            match self.replace(fence, &Key::ProducerIds, stored.as_ref(), &record).await {
                Ok(_) => return Ok(start..end),
                // Where the ids were allocated and the answer lost, they are skipped.
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }

    /// Replaces the record that was read, if it is still the same.
    pub(super) async fn replace<R: Record>(
        &self,
        fence: Option<Fence>,
        key: &Key,
        read: Option<&Stored<R>>,
        record: &R,
    ) -> Result<u64, ClusterError> {
        let mut transaction = Transaction::new().compare(key.to_string(), as_read(read));
        transaction.writes.push(put(key, record)?);
        self.commit(fence, transaction).await
    }

    /// As `replace`, with a note of the change in the same transaction.
    pub(super) async fn replace_noted<R: Record>(
        &self,
        fence: Option<Fence>,
        key: &Key,
        read: Option<&Stored<R>>,
        record: &R,
        note: impl FnOnce() -> Note,
    ) -> Result<u64, ClusterError> {
        let mut transaction = Transaction::new().compare(key.to_string(), as_read(read));
        transaction.writes.push(put(key, record)?);
        self.commit_noted(fence, transaction, note).await
    }
}
