//! The only way to write a cluster's metadata. Every call is one compare-and-swap, or a sequence
//! of them that may stop anywhere without harm.
//!
//! A broker passes its [`Fence`] with each call: the transaction compares that its incarnation is
//! still live, so a broker that was fenced can change nothing any more (rule 7 of safety). The
//! control plane passes none.

use std::sync::Arc;
use std::time::Duration;

use super::names::{HIDDEN_CHARACTERS, InvalidName};
use super::schema::{self, Key, REPLICATION_FACTOR_MAX, Record, SchemaError, Stored};
use super::store::{
    Compare, Entry, Expected, MetadataError, MetadataStore, Page, Transaction, Write,
};
use freshet_wire::ids::{Incarnation, TopicId};
use freshet_world::env::{Clock, Randomness};
use freshet_world::invariants::BrokenInvariant;

mod access;
mod changes;
mod hidden_topics;
mod incarnations;
mod limits;
mod partitions;
mod placement;
mod quotas;
mod settings;
mod term;
mod topics;
mod wanted_leaders;

pub use access::{ACL_BYTES_MAX, AddedAcls, USER_BYTES_MAX, check_acl};
pub use changes::{Actor, CHANGES_KEPT_MAX, Note};
pub use hidden_topics::FoundTopic;
pub use limits::{LimitReached, reserve_of};
pub use partitions::{PartitionUpdate, Updated};
pub use placement::{leader_of, placed_leaders};
pub use quotas::{QuotaChanges, QuotaRefusal, check_quotas};
pub use settings::{ClusterFacts, PRODUCER_ID_BLOCK};
pub use term::Term;
pub use topics::{ConfigChanges, NewTopic, PARTITIONS_PER_TOPIC_MAX};

/// The most bytes of a stored record.
pub const RECORD_BYTES_MAX: usize = 256 * 1024;
/// The most writes of a transaction here: room is left for compares of fence, term and topic below
/// the store's limit.
const BATCH_WRITES_MAX: usize = 100;
/// The most bytes of values of a transaction here.
const BATCH_BYTES_MAX: usize = 512 * 1024;
/// How often a compare-and-swap is tried before it fails as [`ClusterError::Contended`].
const ATTEMPTS_MAX: u32 = 64;
/// How many of these tries follow each other without a pause.
const ATTEMPTS_AT_ONCE: u32 = 4;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] MetadataError),
    /// What is stored cannot be understood.
    #[error(transparent)]
    Record(#[from] SchemaError),
    /// A change that would have broken what must hold.
    #[error(transparent)]
    Invariant(#[from] BrokenInvariant),
    /// Others changed this key again and again, or since the revision that the caller named.
    #[error("{0} was changed by somebody else meanwhile")]
    Contended(String),
    /// The calling broker was fenced: it must stop.
    #[error("incarnation {0} is not live any more")]
    Fenced(Incarnation),
    /// The caller is not the controller any more.
    #[error("another controller was elected")]
    Deposed,
    /// The number belongs to another start of a broker; take the next one.
    #[error("incarnation {0} is taken")]
    IncarnationTaken(Incarnation),
    /// No such incarnation.
    #[error("incarnation {0} does not exist")]
    UnknownIncarnation(Incarnation),
    /// It must be fenced before its lane can be sealed.
    #[error("incarnation {0} is still live")]
    StillLive(Incarnation),
    /// It must be sealed or closed before it can be removed.
    #[error("incarnation {0} has no end yet")]
    NotEnded(Incarnation),
    /// The store's prefix belongs to another cluster than the caller expects.
    #[error("the metadata is of cluster {stored}, not {expected}")]
    WrongCluster {
        /// The cluster id that the caller expects.
        expected: String,
        /// The cluster id that is stored.
        stored: String,
    },
    /// There is a topic of this name.
    #[error("topic '{0}' already exists")]
    TopicExists(String),
    /// There is no topic of this name, or not with this id.
    #[error("topic '{0}' does not exist")]
    UnknownTopic(String),
    /// There is no topic of this id that could be restored.
    #[error("there is no topic with the id {0} to be restored")]
    UnknownHiddenTopic(TopicId),
    /// A topic cannot have this name.
    #[error("topic name is invalid: {0}")]
    InvalidTopicName(#[from] InvalidName),
    /// The names differ only in `.` and `_`.
    #[error("topic '{name}' collides with existing topic: {existing}")]
    TopicCollision {
        /// The new topic.
        name: String,
        /// The one that exists.
        existing: String,
    },
    /// A topic cannot have so many partitions. The text says why.
    #[error("{0}")]
    InvalidPartitions(String),
    /// A topic cannot have this replication factor.
    #[error("replication factor {0} is not between 1 and {REPLICATION_FACTOR_MAX}")]
    InvalidReplicationFactor(i16),
    /// A topic of this name belongs to the brokers.
    #[error("{0} is internal: only brokers make or change it")]
    InternalTopic(String),
    /// A user cannot have this name.
    #[error("a user name has 1 to {USER_BYTES_MAX} bytes, without {HIDDEN_CHARACTERS}")]
    InvalidUser,
    /// The names in an ACL are too long.
    #[error("resource name, principal and host of an ACL have at most {ACL_BYTES_MAX} bytes")]
    AclTooLong,
    /// One of the names in an ACL cannot be one.
    #[error("the {0} of an ACL is without {HIDDEN_CHARACTERS}")]
    InvalidAcl(&'static str),
    /// An entity cannot have this quota.
    #[error(transparent)]
    InvalidQuota(#[from] QuotaRefusal),
    /// There is no room for what would be added.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// So many changes of clients wait to be read that no more may be made.
    #[error(
        "{CHANGES_KEPT_MAX} changes by Kafka clients wait to be taken into the audit log, which is \
         the most there may be; try again in some seconds"
    )]
    ChangesWait,
    /// A record would be larger than [`RECORD_BYTES_MAX`].
    #[error("{key} would have {bytes} bytes, {RECORD_BYTES_MAX} are allowed")]
    TooLarge {
        /// The record's key.
        key: String,
        /// Its size.
        bytes: usize,
    },
    /// All numbers of a kind were handed out.
    #[error("no {0} is left")]
    Exhausted(&'static str),
}

/// A broker's proof, with each write, that its incarnation is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// The incarnation that writes.
    pub incarnation: Incarnation,
    /// Revision of its record. The record is not touched while the incarnation is live, so any
    /// other revision means that it no longer is.
    pub revision: u64,
    /// Revision of the controller's term, where the caller acts as controller; 0 where it is the
    /// cluster's only broker, and nobody was ever elected.
    pub term_revision: Option<u64>,
}

impl Fence {
    fn compares(self) -> impl Iterator<Item = Compare> {
        let term = self.term_revision.map(|revision| match revision {
            0 => compare_absent(&Key::Term),
            revision => compare_revision(&Key::Term, revision),
        });
        let incarnation = Key::Incarnation(self.incarnation);
        std::iter::once(compare_revision(&incarnation, self.revision)).chain(term)
    }
}

/// A cluster's metadata.
#[derive(Clone)]
pub struct ClusterMetadata {
    store: Arc<dyn MetadataStore>,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    /// The client whose changes are noted; `None` for changes that no client requested.
    actor: Option<Arc<Actor>>,
    /// The limits to which additions are held; `None` for additions that have no limit.
    bounds: Option<Arc<limits::Bounds>>,
    turns: Arc<limits::Turns>,
}

impl ClusterMetadata {
    /// The metadata in `store`, which is the cluster's own part of the store
    /// ([`super::ScopedStore`]).
    #[must_use]
    pub fn new(
        store: Arc<dyn MetadataStore>,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
    ) -> Self {
        Self { store, clock, randomness, actor: None, bounds: None, turns: Arc::default() }
    }

    /// The store behind it, for a view.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn MetadataStore> {
        &self.store
    }

    async fn read<R: Record>(&self, key: &Key) -> Result<Option<Stored<R>>, ClusterError> {
        let entry = self.store.get(&key.to_string()).await?;
        Ok(entry.as_ref().map(Stored::from_entry).transpose()?)
    }

    /// All entries under a prefix, at one revision.
    async fn read_all(&self, prefix: &str) -> Result<Vec<Entry>, ClusterError> {
        let Page { entries, .. } = self.store.range(prefix, None, usize::MAX).await?;
        Ok(entries)
    }

    /// Commits, provided that the fence holds.
    async fn commit(
        &self,
        fence: Option<Fence>,
        mut transaction: Transaction,
    ) -> Result<u64, ClusterError> {
        let Some(fence) = fence else { return Ok(self.store.commit(transaction).await?) };
        // In front, because the store names the first conflict: a fenced caller must learn that it
        // is fenced.
        transaction.compares.splice(0..0, fence.compares());
        self.store.commit(transaction).await.map_err(|error| match error {
            MetadataError::Conflict { key } => {
                if key == Key::Incarnation(fence.incarnation).to_string() {
                    ClusterError::Fenced(fence.incarnation)
                } else if fence.term_revision.is_some() && key == Key::Term.to_string() {
                    ClusterError::Deposed
                } else {
                    ClusterError::Store(MetadataError::Conflict { key })
                }
            }
            error => ClusterError::Store(error),
        })
    }

    fn retry(&self) -> Retry<'_> {
        Retry { randomness: &*self.randomness, attempts: 0 }
    }
}

/// The attempts of a compare-and-swap.
struct Retry<'a> {
    randomness: &'a dyn Randomness,
    attempts: u32,
}

impl Retry<'_> {
    /// Waits after a conflict, so that the caller reads and tries again. Returns every other error,
    /// and the conflict itself after [`ATTEMPTS_MAX`].
    async fn after(&mut self, error: ClusterError) -> Result<(), ClusterError> {
        let ClusterError::Store(MetadataError::Conflict { key }) = error else {
            return Err(error);
        };
        self.attempts += 1;
        if self.attempts >= ATTEMPTS_MAX {
            return Err(ClusterError::Contended(key));
        }
        if self.attempts > ATTEMPTS_AT_ONCE {
            // So that many writers of the same key do not run in step.
            let jitter_us = self.randomness.next_u64() % 1000;
            tokio::time::sleep(Duration::from_micros(u64::from(self.attempts) * jitter_us)).await;
        }
        Ok(())
    }

    /// As [`Retry::after`], also where the outcome is unknown: for calls that may be repeated
    /// after they succeeded.
    async fn after_idempotent(&mut self, error: ClusterError) -> Result<(), ClusterError> {
        let error = match error {
            ClusterError::Store(MetadataError::Unknown(text)) => {
                ClusterError::Store(MetadataError::Conflict { key: text })
            }
            error => error,
        };
        self.after(error).await
    }
}

/// One write of a batch, and the compare that goes with it.
struct Step {
    compare: Option<Compare>,
    write: Write,
}

impl Step {
    fn put<R: Record>(key: &Key, expected: Expected, record: &R) -> Result<Self, ClusterError> {
        let compare = Some(Compare { key: key.to_string(), expected });
        Ok(Self { compare, write: put(key, record)? })
    }
}

/// Splits steps into transactions that every store takes.
fn batches(steps: Vec<Step>) -> Vec<Vec<Step>> {
    let mut batches: Vec<Vec<Step>> = Vec::new();
    let mut bytes = 0;
    for step in steps {
        let size = match &step.write {
            Write::Put { value, .. } => value.len(),
            Write::Delete { .. } => 0,
        };
        bytes += size;
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH_WRITES_MAX && bytes <= BATCH_BYTES_MAX => {
                batch.push(step);
            }
            _ => {
                bytes = size;
                batches.push(vec![step]);
            }
        }
    }
    batches
}

fn transaction_of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Transaction {
    let mut transaction = Transaction::new();
    for step in steps {
        transaction.compares.extend(step.compare.clone());
        transaction.writes.push(step.write.clone());
    }
    transaction
}

fn put<R: Record>(key: &Key, record: &R) -> Result<Write, ClusterError> {
    let (key, value) = (key.to_string(), schema::encode(record));
    if value.len() > RECORD_BYTES_MAX {
        return Err(ClusterError::TooLarge { key, bytes: value.len() });
    }
    Ok(Write::Put { key, value })
}

fn delete(key: &Key) -> Write {
    Write::Delete { key: key.to_string() }
}

fn compare_revision(key: &Key, revision: u64) -> Compare {
    Compare { key: key.to_string(), expected: Expected::Revision(revision) }
}

fn compare_absent(key: &Key) -> Compare {
    Compare { key: key.to_string(), expected: Expected::Absent }
}

/// The compare that holds as long as a key is as it was read.
fn as_read<R>(stored: Option<&Stored<R>>) -> Expected {
    stored.map_or(Expected::Absent, |stored| Expected::Revision(stored.revision))
}
