//! ACLs and SCRAM users.

use std::collections::{BTreeMap, BTreeSet};

use super::changes::Note;
use super::limits::{AclRoom, LimitReached, is_passed};
use super::{ClusterError, ClusterMetadata, Fence, Transaction, delete, put};
use crate::names::is_name;
use crate::schema::keys::{ACLS, SCRAM_USERS};
use crate::schema::{AclRecord, Key, ScramRecord, Stored, Table};
use crate::store::Write;
use freshet_access::types::{AclBinding, ScramCredential, ScramMechanism};

/// Entries of one transaction. Each may take three writes: the entry, a note of the change, and the
/// removal of an old note.
const ACLS_AT_ONCE: usize = 30;
/// The most bytes that resource name, principal and host of an ACL have together: the store is
/// shared by all clusters of a cell.
pub const ACL_BYTES_MAX: usize = 1_024;
/// The longest name of a user, in bytes.
pub const USER_BYTES_MAX: usize = 255;

/// The writes of entries, by their keys.
type AclWrites<'a> = BTreeMap<Key, (Write, &'a AclBinding)>;

/// What came of adding ACLs one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedAcls {
    /// A revision that a view can wait for; 0 where nothing was written.
    pub revision: u64,
    /// For each of the given entries, whether it was refused.
    pub refused: Vec<bool>,
    /// Why they were refused; `None` where none was.
    pub refusal: Option<LimitReached>,
}

impl ClusterMetadata {
    /// All ACLs, as the store has them now.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn list_acls(&self) -> Result<Vec<AclBinding>, ClusterError> {
        let entries = self.read_all(ACLS).await?;
        let binding = |entry| Ok(Stored::<AclRecord>::from_entry(entry)?.record.binding);
        entries.iter().map(binding).collect()
    }

    /// Adds ACLs; those that are there already stay. Returns a revision that a view can wait for,
    /// 0 where the list is empty.
    ///
    /// # Errors
    /// Those of [`check_acl`] and [`ClusterError::LimitReached`], and then none was added;
    /// [`ClusterError::TooLarge`], [`ClusterError::Fenced`]; [`ClusterError::Store`]. Some of a
    /// long list may have been added then.
    pub async fn add_acls(
        &self,
        fence: Option<Fence>,
        bindings: &[AclBinding],
    ) -> Result<u64, ClusterError> {
        let added = self.add_acls_up_to(fence, bindings, true).await?;
        Ok(added.revision)
    }

    /// Adds ACLs in their order until the limit is reached; those that are there already stay.
    ///
    /// # Errors
    /// As [`ClusterMetadata::add_acls`], without `LimitReached`.
    pub async fn add_acls_that_fit(
        &self,
        fence: Option<Fence>,
        bindings: &[AclBinding],
    ) -> Result<AddedAcls, ClusterError> {
        self.add_acls_up_to(fence, bindings, false).await
    }

    async fn add_acls_up_to(
        &self,
        fence: Option<Fence>,
        bindings: &[AclBinding],
        all_or_none: bool,
    ) -> Result<AddedAcls, ClusterError> {
        bindings.iter().try_for_each(check_acl)?;
        let _turn = self.turn(Table::Acls).await;
        let mut retry = self.retry();
        loop {
            let room = self.acl_gate().await?;
            let (writes, refusal) = fitting_writes(&room, bindings)?;
            if let (true, Some(refusal)) = (all_or_none, refusal) {
                return Err(refusal.into());
            }
            let refused =
                bindings.iter().map(|binding| !writes.contains_key(&Key::of_acl(binding)));
            let refused = refused.collect();
            match self.write_all(fence, writes, "acl.create", Some(&room)).await {
                Ok(revision) => return Ok(AddedAcls { revision, refused, refusal }),
                Err(error) if is_passed(Table::Acls, &error) => retry.after(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes ACLs; those that are not there are no error. Returns a revision that a view can wait
    /// for, 0 where nothing was removed.
    ///
    /// # Errors
    /// [`ClusterError::Fenced`]; [`ClusterError::Store`]. Some of a long list may have been removed
    /// then.
    pub async fn remove_acls(
        &self,
        fence: Option<Fence>,
        bindings: &[AclBinding],
    ) -> Result<u64, ClusterError> {
        let writes = bindings.iter().map(|binding| {
            let key = Key::of_acl(binding);
            let write = delete(&key);
            (key, (write, binding))
        });
        self.write_all(fence, writes.collect(), "acl.delete", None).await
    }

    async fn write_all(
        &self,
        fence: Option<Fence>,
        writes: AclWrites<'_>,
        action: &'static str,
        room: Option<&AclRoom>,
    ) -> Result<u64, ClusterError> {
        let (writes, bindings): (Vec<_>, Vec<_>) = writes.into_values().unzip();
        let mut last = 0;
        for (writes, bindings) in writes.chunks(ACLS_AT_ONCE).zip(bindings.chunks(ACLS_AT_ONCE)) {
            let mut transaction = Transaction { compares: Vec::new(), writes: writes.to_vec() };
            if let Some(room) = room {
                // From the second transaction on the first one is the last addition.
                room.gate.guard_after(last, &mut transaction);
            }
            let notes = || bindings.iter().map(|acl| Note::of_acl(action, acl)).collect();
            last = last.max(self.commit_all_noted(fence, transaction, notes).await?);
        }
        Ok(last)
    }

    /// Changes the passwords of a user for some mechanisms, all or none of them: a mechanism's new
    /// credential, or `None` where it is to be removed. Returns a revision that a view can wait
    /// for; 0 where nothing was there to be removed.
    ///
    /// # Errors
    /// [`ClusterError::InvalidUser`], [`ClusterError::LimitReached`], [`ClusterError::Fenced`];
    /// [`ClusterError::Store`].
    pub async fn alter_scram(
        &self,
        fence: Option<Fence>,
        user: &str,
        changes: &[(ScramMechanism, Option<ScramCredential>)],
    ) -> Result<u64, ClusterError> {
        check_user(user)?;
        let is_addition = changes.iter().any(|(_, credential)| credential.is_some());
        if is_addition && !is_name(user) {
            return Err(ClusterError::InvalidUser);
        }
        let mut writes = Vec::with_capacity(changes.len());
        for (mechanism, credential) in changes {
            let (key, mechanism) = (Key::Scram(*mechanism, user.to_owned()), *mechanism);
            writes.push(match credential.clone() {
                Some(credential) => {
                    put(&key, &ScramRecord { mechanism, user: user.to_owned(), credential })?
                }
                None => delete(&key),
            });
        }
        let notes = || changes.iter().map(|change| note_of(user, change)).collect();
        let transaction = Transaction { compares: Vec::new(), writes };
        if !is_addition {
            return self.commit_all_noted(fence, transaction, notes).await;
        }
        let _turn = self.turn(Table::Users).await;
        let mut retry = self.retry();
        loop {
            let mut guarded = transaction.clone();
            self.user_gate(user).await?.guard(&mut guarded);
            match self.commit_all_noted(fence, guarded, notes).await {
                Err(error) if is_passed(Table::Users, &error) => retry.after(error).await?,
                outcome => return outcome,
            }
        }
    }

    /// All users with a password, as the store has them now.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn list_scram(&self) -> Result<Vec<ScramRecord>, ClusterError> {
        let entries = self.read_all(SCRAM_USERS).await?;
        entries.iter().map(|entry| Ok(Stored::from_entry(entry)?.record)).collect()
    }
}

fn note_of(user: &str, change: &(ScramMechanism, Option<ScramCredential>)) -> Note {
    let (mechanism, credential) = change;
    let action = if credential.is_some() { "user.set_password" } else { "user.remove_password" };
    Note::new(action, user).with("mechanism", mechanism.name())
}

/// The writes of the ACLs that fit, with the refusal of the others where there are some.
fn fitting_writes<'a>(
    room: &AclRoom,
    bindings: &'a [AclBinding],
) -> Result<(AclWrites<'a>, Option<LimitReached>), ClusterError> {
    let mut new = BTreeSet::new();
    let adding = bindings
        .iter()
        .map(Key::of_acl)
        .filter(|key| !room.existing.contains(&key.to_string()) && new.insert(key.clone()));
    let (mut free, refusal) = room.fitting(adding.count());
    let mut writes = AclWrites::new();
    for binding in bindings {
        let key = Key::of_acl(binding);
        if writes.contains_key(&key) {
            continue;
        }
        if new.contains(&key) {
            if free == 0 {
                continue;
            }
            free -= 1;
        }
        let write = put(&key, &AclRecord { binding: binding.clone() })?;
        writes.insert(key, (write, binding));
    }
    Ok((writes, refusal))
}

/// Checks that the names in an ACL to be added can be such.
///
/// # Errors
/// [`ClusterError::AclTooLong`] and [`ClusterError::InvalidAcl`].
pub fn check_acl(binding: &AclBinding) -> Result<(), ClusterError> {
    let AclBinding { resource_name, principal, host, .. } = binding;
    if resource_name.len() + principal.len() + host.len() > ACL_BYTES_MAX {
        return Err(ClusterError::AclTooLong);
    }
    let names = [("resource name", resource_name), ("principal", principal), ("host", host)];
    match names.into_iter().find(|(_, name)| !is_name(name)) {
        Some((field, _)) => Err(ClusterError::InvalidAcl(field)),
        None => Ok(()),
    }
}

/// Whether the name can be the key of a user: those of an earlier release can be removed, whatever
/// they hold.
fn check_user(user: &str) -> Result<(), ClusterError> {
    if user.is_empty() || user.len() > USER_BYTES_MAX {
        return Err(ClusterError::InvalidUser);
    }
    Ok(())
}
