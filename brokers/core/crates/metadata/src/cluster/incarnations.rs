//! Incarnations and the controller among them.

use std::collections::BTreeMap;

use super::{
    ClusterError, ClusterMetadata, Fence, MetadataError, Term, Transaction, as_read,
    compare_absent, compare_revision, delete, put,
};
use crate::schema::invariants::check_lane_end;
use crate::schema::keys::{INCARNATIONS, SLOTS};
use crate::schema::{
    BrokerPlace, ControllerTerm, CounterRecord, IncarnationRecord, IncarnationState, Key,
    SchemaError, SealedEnd, SlotRecord, Stored,
};
use crate::store::Compare;
use freshet_wire::ids::Incarnation;
use freshet_world::invariants::expect_held;

impl ClusterMetadata {
    /// Claims a number for a start of a broker, from 1. The broker then makes the lane's folder
    /// exclusively. Where that folder exists, the metadata is older than the storage, and
    /// [`ClusterMetadata::advance_incarnation_past`] skips the number.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn next_incarnation(&self) -> Result<Incarnation, ClusterError> {
        let used = self.advance_counter(Some).await?;
        Ok(Incarnation(used))
    }

    /// Makes all numbers up to `taken` unavailable, for metadata that was restored from a backup.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn advance_incarnation_past(&self, taken: Incarnation) -> Result<(), ClusterError> {
        self.advance_counter(|next| (taken.0 >= next).then_some(taken.0)).await?;
        Ok(())
    }

    /// Moves the counter past the number that `use_up(next)` returns, never back. Returns that
    /// number.
    async fn advance_counter(
        &self,
        use_up: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, ClusterError> {
        let key = Key::IncarnationCounter;
        let mut retry = self.retry();
        loop {
            let stored = self.read::<CounterRecord>(&key).await?;
            let due = stored.as_ref().map_or(1, |stored| stored.record.next);
            let Some(used) = use_up(due) else { return Ok(due) };
            let next = used.checked_add(1).ok_or(ClusterError::Exhausted("incarnation"))?;
            let mut transaction =
                Transaction::new().compare(key.to_string(), as_read(stored.as_ref()));
            transaction.writes.push(put(&key, &CounterRecord { next })?);
            match self.commit(None, transaction).await {
                Ok(_) => return Ok(used),
                // Where the number was claimed and the answer lost, the number is skipped.
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }

    /// Makes a claimed incarnation live, as the node `slot` that others hold.
    ///
    /// # Errors
    /// [`ClusterError::IncarnationTaken`]; [`ClusterError::Store`].
    pub async fn register_incarnation(
        &self,
        incarnation: Incarnation,
        slot: u32,
        host: &str,
        place: BrokerPlace,
    ) -> Result<Fence, ClusterError> {
        self.register(incarnation, slot, host, place, Transaction::new()).await
    }

    /// Makes a claimed incarnation live and claims the node `slot` for it, in one transaction: of
    /// several that have seen the same holder, one gets the slot. The caller ends the incarnation
    /// that held it before.
    ///
    /// # Errors
    /// [`ClusterError::Contended`] where somebody claimed the slot since;
    /// [`ClusterError::IncarnationTaken`]; [`ClusterError::Store`].
    pub async fn register_in_slot(
        &self,
        incarnation: Incarnation,
        slot: u32,
        host: &str,
        place: BrokerPlace,
        observed: Option<&Stored<SlotRecord>>,
    ) -> Result<Fence, ClusterError> {
        let key = Key::Slot(slot);
        let mut transaction = Transaction::new().compare(key.to_string(), as_read(observed));
        transaction.writes.push(put(&key, &SlotRecord { incarnation })?);
        self.register(incarnation, slot, host, place, transaction).await
    }

    /// Registers an incarnation with what else the transaction compares and writes.
    async fn register(
        &self,
        incarnation: Incarnation,
        slot: u32,
        host: &str,
        place: BrokerPlace,
        mut transaction: Transaction,
    ) -> Result<Fence, ClusterError> {
        let key = Key::Incarnation(incarnation);
        let record = IncarnationRecord {
            state: IncarnationState::Live,
            slot,
            sealed_end: None,
            started_at_ms: self.clock.now_ms(),
            ended_at_ms: None,
            host: host.to_owned(),
            place,
        };
        transaction.compares.push(compare_absent(&key));
        transaction.writes.push(put(&key, &record)?);
        match self.commit(None, transaction).await {
            Ok(revision) => Ok(Fence { incarnation, revision, term_revision: None }),
            Err(ClusterError::Store(MetadataError::Conflict { key: in_conflict })) => {
                Err(if in_conflict == key.to_string() {
                    ClusterError::IncarnationTaken(incarnation)
                } else {
                    ClusterError::Contended(in_conflict)
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Who claimed a slot last; `None` where nobody has since slots are claimed.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn slot(&self, slot: u32) -> Result<Option<Stored<SlotRecord>>, ClusterError> {
        self.read(&Key::Slot(slot)).await
    }

    /// Who claimed each slot last.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn slots(&self) -> Result<BTreeMap<u32, Incarnation>, ClusterError> {
        let mut slots = BTreeMap::new();
        for entry in self.read_all(SLOTS).await? {
            let Some(Key::Slot(slot)) = Key::parse(&entry.key)? else {
                return Err(SchemaError::Key(entry.key).into());
            };
            slots.insert(slot, Stored::<SlotRecord>::from_entry(&entry)?.record.incarnation);
        }
        Ok(slots)
    }

    /// All incarnations that are known.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn incarnations(
        &self,
    ) -> Result<BTreeMap<Incarnation, Stored<IncarnationRecord>>, ClusterError> {
        let mut incarnations = BTreeMap::new();
        for entry in self.read_all(INCARNATIONS).await? {
            let Some(Key::Incarnation(incarnation)) = Key::parse(&entry.key)? else {
                return Err(SchemaError::Key(entry.key).into());
            };
            incarnations.insert(incarnation, Stored::from_entry(&entry)?);
        }
        Ok(incarnations)
    }

    /// The incarnations that may write, or that were fenced and whose end is not known yet: what
    /// these wrote to their lanes may still count.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn unended_incarnations(
        &self,
    ) -> Result<BTreeMap<Incarnation, Stored<IncarnationRecord>>, ClusterError> {
        let mut incarnations = self.incarnations().await?;
        let has_ended = [IncarnationState::Sealed, IncarnationState::Closed];
        incarnations.retain(|_, stored| !has_ended.contains(&stored.record.state));
        Ok(incarnations)
    }

    /// Ends the right of `incarnation` to write metadata. The record of one that is not live stays
    /// as it is. Returns the record that is stored.
    ///
    /// # Errors
    /// [`ClusterError::UnknownIncarnation`], [`ClusterError::Fenced`] (the caller);
    /// [`ClusterError::Store`].
    pub async fn mark_fenced(
        &self,
        fence: Option<Fence>,
        incarnation: Incarnation,
    ) -> Result<IncarnationRecord, ClusterError> {
        self.change_incarnation(fence, incarnation, |record| {
            Ok((record.state == IncarnationState::Live)
                .then(|| IncarnationRecord { state: IncarnationState::Fenced, ..record.clone() }))
        })
        .await
    }

    /// Records where the lane of a fenced incarnation ends. The first call sets the end; every call
    /// returns the record with it.
    ///
    /// # Errors
    /// [`ClusterError::StillLive`], [`ClusterError::UnknownIncarnation`],
    /// [`ClusterError::Fenced`] (the caller); [`ClusterError::Store`].
    pub async fn seal_incarnation(
        &self,
        fence: Option<Fence>,
        incarnation: Incarnation,
        end: SealedEnd,
    ) -> Result<SealedEnd, ClusterError> {
        let record = self
            .change_incarnation(fence, incarnation, |record| match record.state {
                IncarnationState::Live => Err(ClusterError::StillLive(incarnation)),
                IncarnationState::Fenced => {
                    Ok(Some(self.ended(record, IncarnationState::Sealed, end)))
                }
                IncarnationState::Sealed | IncarnationState::Closed => Ok(None),
            })
            .await?;
        record.sealed_end.ok_or(ClusterError::NotEnded(incarnation))
    }

    /// Records that the caller has stopped, and where its lane ends.
    ///
    /// # Errors
    /// [`ClusterError::Fenced`] where somebody fenced it before; [`ClusterError::Store`].
    pub async fn close_incarnation(
        &self,
        fence: Fence,
        end: SealedEnd,
    ) -> Result<(), ClusterError> {
        let key = Key::Incarnation(fence.incarnation);
        let stored = self.read::<IncarnationRecord>(&key).await?;
        let Some(Stored { record, .. }) = stored else {
            return Err(ClusterError::UnknownIncarnation(fence.incarnation));
        };
        let closed = self.ended(&record, IncarnationState::Closed, end);
        expect_held(check_lane_end(&record, &closed))?;
        let mut transaction = Transaction::new();
        transaction.writes.push(put(&key, &closed)?);
        self.commit(Some(fence), transaction).await?;
        Ok(())
    }

    /// Forgets an incarnation that has ended. The caller has made sure that no extent names it and
    /// that its lane is gone.
    ///
    /// # Errors
    /// [`ClusterError::NotEnded`], [`ClusterError::Fenced`] (the caller); [`ClusterError::Store`].
    pub async fn remove_incarnation(
        &self,
        fence: Option<Fence>,
        incarnation: Incarnation,
    ) -> Result<(), ClusterError> {
        let key = Key::Incarnation(incarnation);
        let Some(stored) = self.read::<IncarnationRecord>(&key).await? else { return Ok(()) };
        if stored.record.sealed_end.is_none() {
            return Err(ClusterError::NotEnded(incarnation));
        }
        // What has ended never changes: a conflict can only mean that it is gone already.
        let compares = vec![compare_revision(&key, stored.revision)];
        let transaction = Transaction { compares, writes: vec![delete(&key)] };
        match self.commit(fence, transaction).await {
            Ok(_) | Err(ClusterError::Store(MetadataError::Conflict { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn ended(
        &self,
        record: &IncarnationRecord,
        state: IncarnationState,
        end: SealedEnd,
    ) -> IncarnationRecord {
        let (sealed_end, ended_at_ms) = (Some(end), Some(self.clock.now_ms()));
        IncarnationRecord { state, sealed_end, ended_at_ms, ..record.clone() }
    }

    /// Replaces a record by the one that `change` returns; `None` leaves it as it is.
    async fn change_incarnation(
        &self,
        fence: Option<Fence>,
        incarnation: Incarnation,
        change: impl Fn(&IncarnationRecord) -> Result<Option<IncarnationRecord>, ClusterError>,
    ) -> Result<IncarnationRecord, ClusterError> {
        let key = Key::Incarnation(incarnation);
        let mut retry = self.retry();
        loop {
            let stored = self.read::<IncarnationRecord>(&key).await?;
            let stored = stored.ok_or(ClusterError::UnknownIncarnation(incarnation))?;
            let Some(record) = change(&stored.record)? else { return Ok(stored.record) };
            expect_held(check_lane_end(&stored.record, &record))?;
            let compares = vec![compare_revision(&key, stored.revision)];
            let transaction = Transaction { compares, writes: vec![put(&key, &record)?] };
            match self.commit(fence, transaction).await {
                Ok(_) => return Ok(record),
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }

    /// The term of the controller.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn controller(&self) -> Result<Option<Stored<ControllerTerm>>, ClusterError> {
        self.read(&Key::Term).await
    }

    /// Makes the caller controller in the term after `observed`, or in the first one where that is
    /// `None`. Returns the term in which it may act as controller.
    ///
    /// # Errors
    /// [`ClusterError::Deposed`] where another was elected meanwhile, [`ClusterError::Fenced`]
    /// (the caller); [`ClusterError::Store`].
    pub async fn claim_controller(
        &self,
        fence: Fence,
        observed: Option<&Stored<ControllerTerm>>,
    ) -> Result<Term, ClusterError> {
        let term = observed.map_or(0, |stored| stored.record.term);
        let term = term.checked_add(1).ok_or(ClusterError::Exhausted("term"))?;
        let record = ControllerTerm { term, incarnation: fence.incarnation };
        let compare = Compare { key: Key::Term.to_string(), expected: as_read(observed) };
        let transaction =
            Transaction { compares: vec![compare], writes: vec![put(&Key::Term, &record)?] };
        // Without the term of an earlier election, which is over.
        let fence = Fence { term_revision: None, ..fence };
        match self.commit(Some(fence), transaction).await {
            Ok(revision) => Ok(Term::of_controller(fence, revision)),
            Err(ClusterError::Store(MetadataError::Conflict { .. })) => Err(ClusterError::Deposed),
            Err(error) => Err(error),
        }
    }
}
