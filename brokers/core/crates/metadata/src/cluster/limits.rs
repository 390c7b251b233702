//! The limits of a cluster, and how additions are held to them.
//!
//! Every addition to a [`Table`] writes the key `added/<table>`. One that is held to a limit reads
//! that key first, counts the table then, and compares in its transaction that the key is as it
//! was: so whatever another process added since the count makes the transaction fail, and the count
//! is taken again. Additions of one process wait for each other instead. Removals write nothing
//! there: what they free may be counted late, and never early.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::{ClusterError, ClusterMetadata, MetadataError, Transaction, as_read, delete, put};
use crate::names::SERVICE_USER;
use crate::schema::keys::{ACLS, DELETED_TOPICS, QUOTAS, SCRAM_USERS, TOPICS};
use crate::schema::{AdditionRecord, Key, LimitsRecord, Stored, Table, TopicRecord};
use crate::store::{Compare, Expected, Write};
use crate::view::MetadataView;

/// How long a count waits for the image to show the last addition before it asks the store.
const VIEW_TIME: Duration = Duration::from_secs(1);
/// Administrators keep one place in this many of a limit, and at least [`RESERVE_MIN`].
const RESERVE_PART: u64 = 50;
const RESERVE_MIN: u64 = 10;
/// They keep at most one place in this many.
const RESERVE_PART_MAX: u64 = 10;

/// A limit that an addition would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "limit {name} is reached: {used} of {limit} are used and {adding} more do not fit{}",
    reserve_text(*.reserve)
)]
pub struct LimitReached {
    /// The name under which the limit is published.
    pub name: &'static str,
    /// Its value.
    pub limit: u64,
    /// How much is used.
    pub used: u64,
    /// How much would have been added.
    pub adding: u64,
    /// How many of the last places are kept for administrators, who have others take them.
    pub reserve: u64,
}

fn reserve_text(reserve: u64) -> String {
    match reserve {
        0 => String::new(),
        kept => format!("; the last {kept} are kept for the console, REST and Terraform"),
    }
}

/// How many of the last places of a limit only administrators may take, by way of the control
/// plane. So no client can lock them out of a full table.
#[must_use]
pub fn reserve_of(limit: u64) -> u64 {
    (limit / RESERVE_PART).max(RESERVE_MIN).min(limit / RESERVE_PART_MAX)
}

/// The limits to which additions are held.
#[derive(Clone)]
pub(super) struct Bounds {
    limits: LimitsRecord,
    /// Whether the last places are kept for administrators.
    keeps_reserve: bool,
    /// An image from which topics are counted where it is current, which costs less.
    view: Option<Arc<MetadataView>>,
}

/// One lock for each table, shared by all copies of a [`ClusterMetadata`].
#[derive(Default)]
pub(super) struct Turns([Mutex<()>; Table::ALL.len()]);

/// The part of a transaction by which an addition to a table is counted.
#[must_use]
pub(super) struct Gate {
    compare: Option<Compare>,
    write: Option<Write>,
}

impl Gate {
    /// The gate of what no limit counts.
    pub(super) fn none() -> Self {
        Self { compare: None, write: None }
    }

    pub(super) fn guard(&self, transaction: &mut Transaction) {
        transaction.compares.extend(self.compare.clone());
        transaction.writes.extend(self.write.clone());
    }

    /// As [`Gate::guard`], for a further part of an addition, after the one that has this revision;
    /// 0 for the first part.
    pub(super) fn guard_after(&self, revision: u64, transaction: &mut Transaction) {
        let mut compare = self.compare.clone();
        if let (Some(compare), 1..) = (&mut compare, revision) {
            compare.expected = Expected::Revision(revision);
        }
        transaction.compares.extend(compare);
        transaction.writes.extend(self.write.clone());
    }
}

impl ClusterMetadata {
    /// The same metadata, whose additions are held to these limits.
    #[must_use]
    pub fn within(&self, limits: LimitsRecord) -> Self {
        let bounds = Bounds { limits, keeps_reserve: false, view: None };
        Self { bounds: Some(Arc::new(bounds)), ..self.clone() }
    }

    /// The same metadata for a client of the Kafka protocol: its additions are held to these limits
    /// and leave administrators the last places. Topics are counted in the image where it is
    /// current.
    #[must_use]
    pub fn within_for_client(&self, limits: LimitsRecord, view: &Arc<MetadataView>) -> Self {
        let bounds = Bounds { limits, keeps_reserve: true, view: Some(Arc::clone(view)) };
        Self { bounds: Some(Arc::new(bounds)), ..self.clone() }
    }

    /// The limits of the cluster's specification; none where the control plane has written none.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn limits(&self) -> Result<LimitsRecord, ClusterError> {
        let stored = self.read::<LimitsRecord>(&Key::Limits).await?;
        Ok(stored.map(|stored| stored.record).unwrap_or_default())
    }

    /// Replaces the limits that brokers enforce. What exists beyond a limit stays.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn set_limits(&self, limits: &LimitsRecord) -> Result<(), ClusterError> {
        let key = Key::Limits;
        let mut retry = self.retry();
        loop {
            let stored = self.read::<LimitsRecord>(&key).await?;
            if stored.as_ref().map(|stored| stored.record).unwrap_or_default() == *limits {
                return Ok(());
            }
            let mut transaction =
                Transaction::new().compare(key.to_string(), as_read(stored.as_ref()));
            let none = *limits == LimitsRecord::default();
            transaction.writes.push(if none { delete(&key) } else { put(&key, limits)? });
            match self.commit(None, transaction).await {
                Ok(_) => return Ok(()),
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }

    /// Checks that so many more topics and partitions fit in the limits, and writes nothing.
    ///
    /// # Errors
    /// [`ClusterError::LimitReached`]; [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn check_topic_room(&self, topics: u64, partitions: u64) -> Result<(), ClusterError> {
        self.topic_gate(topics, partitions).await.map(drop)
    }

    /// Checks that a further topic may be made although it will leave a mark when it is deleted:
    /// marks stay for weeks. What is made at the same moment may exceed the limit together.
    pub(super) async fn check_deleted_room(&self) -> Result<(), ClusterError> {
        let Some(bounds) = self.bounds.clone() else { return Ok(()) };
        let Some(limit) = bounds.limits.deleted_topics else { return Ok(()) };
        let used = match &bounds.view {
            Some(view) => view.snapshot().deleted_topics.len(),
            None => self.keys(DELETED_TOPICS).await?.len(),
        };
        Ok(room("deleted_topics", Some(limit), used as u64, 1, 0)?)
    }

    /// Waits for the turn to add to a table; at once where no limit holds. It is held until the
    /// addition is committed.
    pub(super) async fn turn(&self, table: Table) -> Option<MutexGuard<'_, ()>> {
        self.bounds.as_ref()?;
        Some(self.turns.0[table as usize].lock().await)
    }

    /// The gate of an addition to the topics, if there is room for it.
    pub(super) async fn topic_gate(
        &self,
        topics: u64,
        partitions: u64,
    ) -> Result<Gate, ClusterError> {
        let Some(bounds) = self.bounds.clone() else { return Self::open_gate(Table::Topics) };
        let LimitsRecord { topics: topics_max, partitions: partitions_max, .. } = bounds.limits;
        if topics_max.is_none() && partitions_max.is_none() {
            return Self::open_gate(Table::Topics);
        }
        let fit = |(used_topics, used_partitions): (u64, u64)| {
            room("topics", topics_max, used_topics, topics, 0)?;
            room("partitions", partitions_max, used_partitions, partitions, 0)
        };
        let (gate, revision) = self.closed_gate(Table::Topics).await?;
        if let Some(view) = &bounds.view
            && let Ok(Ok(())) = timeout(VIEW_TIME, view.wait_for(revision)).await
        {
            let all = view.topics();
            let counted = all.iter().map(|topic| &topic.record);
            if fit(count_topics(counted)).is_ok() {
                return Ok(gate);
            }
            // The image may not show yet what was deleted last.
        }
        let records = self.read_all(TOPICS).await?;
        let records = records.iter().map(Stored::<TopicRecord>::from_entry);
        let records = records.collect::<Result<Vec<_>, _>>()?;
        fit(count_topics(records.iter().map(|stored| &stored.record)))?;
        Ok(gate)
    }

    /// The keys of the ACL entries that exist, the gate of an addition to them, and how many more
    /// there may be.
    pub(super) async fn acl_gate(&self) -> Result<AclRoom, ClusterError> {
        let Some((limit, reserve)) = self.limit_of(|limits| limits.acls) else {
            let gate = Self::open_gate(Table::Acls)?;
            return Ok(AclRoom { gate, existing: BTreeSet::new(), limit: None, reserve: 0 });
        };
        let (gate, _) = self.closed_gate(Table::Acls).await?;
        let existing = self.keys(ACLS).await?;
        Ok(AclRoom { gate, existing, limit: Some(limit), reserve })
    }

    /// The gate of an addition to the users, if there is room for this one or it exists.
    pub(super) async fn user_gate(&self, user: &str) -> Result<Gate, ClusterError> {
        let Some((limit, reserve)) = self.limit_of(|limits| limits.credentials) else {
            return Self::open_gate(Table::Users);
        };
        let (gate, _) = self.closed_gate(Table::Users).await?;
        let mut users = BTreeSet::new();
        for key in self.keys(SCRAM_USERS).await? {
            if let Some(Key::Scram(_, name)) = Key::parse(&key)? {
                users.insert(name);
            }
        }
        users.remove(SERVICE_USER);
        if !users.contains(user) && user != SERVICE_USER {
            room("credentials", Some(limit), users.len() as u64, 1, reserve)?;
        }
        Ok(gate)
    }

    /// The gate of an addition to the quotas, if there is room for one more entity.
    pub(super) async fn quota_gate(&self) -> Result<Gate, ClusterError> {
        let Some((limit, reserve)) = self.limit_of(|limits| limits.quotas) else {
            return Self::open_gate(Table::Quotas);
        };
        let (gate, _) = self.closed_gate(Table::Quotas).await?;
        let used = self.keys(QUOTAS).await?.len() as u64;
        room("quotas", Some(limit), used, 1, reserve)?;
        Ok(gate)
    }

    /// The limits to which additions are held; `None` where they are held to none.
    pub(super) fn limits_held(&self) -> Option<LimitsRecord> {
        self.bounds.as_ref().map(|bounds| bounds.limits)
    }

    /// A limit with its reserve; `None` where there is none.
    fn limit_of(&self, choose: impl Fn(&LimitsRecord) -> Option<u64>) -> Option<(u64, u64)> {
        let bounds = self.bounds.as_ref()?;
        let limit = choose(&bounds.limits)?;
        Some((limit, if bounds.keeps_reserve { reserve_of(limit) } else { 0 }))
    }

    async fn keys(&self, prefix: &str) -> Result<BTreeSet<String>, ClusterError> {
        let entries = self.read_all(prefix).await?;
        Ok(entries.into_iter().map(|entry| entry.key).collect())
    }

    /// A gate that others' additions pass: they are noticed, and make this one wait for nothing.
    fn open_gate(table: Table) -> Result<Gate, ClusterError> {
        let write = put(&Key::Added(table), &AdditionRecord {})?;
        Ok(Gate { compare: None, write: Some(write) })
    }

    /// A gate through which only an addition passes that is the next one after the last, and the
    /// revision of that; 0 before the first.
    async fn closed_gate(&self, table: Table) -> Result<(Gate, u64), ClusterError> {
        let key = Key::Added(table);
        let stored = self.read::<AdditionRecord>(&key).await?;
        let revision = stored.as_ref().map_or(0, |stored| stored.revision);
        let compare = Compare { key: key.to_string(), expected: as_read(stored.as_ref()) };
        let Gate { write, .. } = Self::open_gate(table)?;
        Ok((Gate { compare: Some(compare), write }, revision))
    }
}

/// What is known of the ACL entries before some are added.
pub(super) struct AclRoom {
    pub(super) gate: Gate,
    /// Keys of the entries that exist; none where no limit holds.
    pub(super) existing: BTreeSet<String>,
    limit: Option<u64>,
    reserve: u64,
}

impl AclRoom {
    /// How many more entries fit, and the refusal where those are fewer than `adding`.
    pub(super) fn fitting(&self, adding: usize) -> (usize, Option<LimitReached>) {
        let used = self.existing.len() as u64;
        match room("acls", self.limit, used, adding as u64, self.reserve) {
            Ok(()) => (adding, None),
            Err(refusal) => {
                let free = refusal.limit.saturating_sub(self.reserve).saturating_sub(used);
                (usize::try_from(free).unwrap_or(usize::MAX).min(adding), Some(refusal))
            }
        }
    }
}

fn count_topics<'a>(records: impl Iterator<Item = &'a TopicRecord>) -> (u64, u64) {
    let counted = records.filter(|record| !record.internal);
    counted.fold((0, 0), |(topics, partitions), record| {
        (topics + 1, partitions + u64::try_from(record.partitions).unwrap_or(0))
    })
}

/// Checks that `adding` more fit in a limit without its reserve. An addition of nothing always
/// does.
fn room(
    name: &'static str,
    limit: Option<u64>,
    used: u64,
    adding: u64,
    reserve: u64,
) -> Result<(), LimitReached> {
    let Some(limit) = limit else { return Ok(()) };
    if adding == 0 || used.saturating_add(adding) <= limit.saturating_sub(reserve) {
        return Ok(());
    }
    Err(LimitReached { name, limit, used, adding, reserve })
}

/// Whether a transaction failed because somebody else added to the table meanwhile.
pub(super) fn is_passed(table: Table, error: &ClusterError) -> bool {
    matches!(error, ClusterError::Store(MetadataError::Conflict { key })
        if *key == Key::Added(table).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_ten_or_two_percent_and_never_most_of_the_limit() {
        let cases = [(0, 0), (5, 0), (50, 5), (200, 10), (500, 10), (2_000, 40), (100_000, 2_000)];
        for (limit, reserve) in cases {
            assert_eq!(reserve_of(limit), reserve, "{limit}");
        }
    }

    #[test]
    fn a_refusal_names_the_limit_its_number_and_the_reserve() {
        let refused = room("acls", Some(2_000), 1_960, 1, reserve_of(2_000)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "limit acls is reached: 1960 of 2000 are used and 1 more do not fit; the last 40 are \
             kept for the console, REST and Terraform"
        );
        assert_eq!(room("acls", Some(2_000), 1_960, 1, 0), Ok(()));
        assert_eq!(room("acls", Some(5), 7, 0, 0), Ok(()), "nothing is added");
        assert_eq!(room("acls", None, u64::MAX, 1, 0), Ok(()));
    }
}
