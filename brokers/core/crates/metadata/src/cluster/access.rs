//! ACLs and SCRAM users.

use std::collections::BTreeMap;

use super::changes::Note;
use super::{ClusterError, ClusterMetadata, Fence, Transaction, delete, put};
use crate::schema::keys::{ACLS, SCRAM_USERS};
use crate::schema::{AclRecord, Key, ScramRecord, Stored};
use crate::store::Write;
use freshet_access::types::{AclBinding, ScramCredential, ScramMechanism};

/// Entries of one transaction. Each may take three writes: the entry, a note of the change, and the
/// removal of an old note.
const ACLS_AT_ONCE: usize = 30;
/// The longest name of a user, in bytes.
pub const USER_BYTES_MAX: usize = 255;

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
    /// [`ClusterError::TooLarge`], [`ClusterError::Fenced`]; [`ClusterError::Store`]. Some of a
    /// long list may have been added then.
    pub async fn add_acls(
        &self,
        fence: Option<Fence>,
        bindings: &[AclBinding],
    ) -> Result<u64, ClusterError> {
        let mut writes = BTreeMap::new();
        for binding in bindings {
            let key = Key::of_acl(binding);
            let write = put(&key, &AclRecord { binding: binding.clone() })?;
            writes.insert(key, (write, binding));
        }
        self.write_all(fence, writes, "acl.create").await
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
        self.write_all(fence, writes.collect(), "acl.delete").await
    }

    async fn write_all(
        &self,
        fence: Option<Fence>,
        writes: BTreeMap<Key, (Write, &AclBinding)>,
        action: &'static str,
    ) -> Result<u64, ClusterError> {
        let (writes, bindings): (Vec<_>, Vec<_>) = writes.into_values().unzip();
        let mut last = 0;
        for (writes, bindings) in writes.chunks(ACLS_AT_ONCE).zip(bindings.chunks(ACLS_AT_ONCE)) {
            let transaction = Transaction { compares: Vec::new(), writes: writes.to_vec() };
            let notes = || bindings.iter().map(|acl| Note::of_acl(action, acl)).collect();
            last = last.max(self.commit_all_noted(fence, transaction, notes).await?);
        }
        Ok(last)
    }

    /// Sets the password of a user for a mechanism. Returns a revision that a view can wait for.
    ///
    /// # Errors
    /// [`ClusterError::InvalidUser`], [`ClusterError::Fenced`]; [`ClusterError::Store`].
    pub async fn set_scram(
        &self,
        fence: Option<Fence>,
        user: &str,
        mechanism: ScramMechanism,
        credential: ScramCredential,
    ) -> Result<u64, ClusterError> {
        check_user(user)?;
        let key = Key::Scram(mechanism, user.to_owned());
        let record = ScramRecord { mechanism, user: user.to_owned(), credential };
        let mut transaction = Transaction::new();
        transaction.writes.push(put(&key, &record)?);
        let note = || Note::new("user.set_password", user).with("mechanism", mechanism.name());
        self.commit_noted(fence, transaction, note).await
    }

    /// Removes the password of a user for a mechanism. Returns a revision that a view can wait for;
    /// 0 where there was none.
    ///
    /// # Errors
    /// [`ClusterError::InvalidUser`], [`ClusterError::Fenced`]; [`ClusterError::Store`].
    pub async fn remove_scram(
        &self,
        fence: Option<Fence>,
        user: &str,
        mechanism: ScramMechanism,
    ) -> Result<u64, ClusterError> {
        check_user(user)?;
        let transaction = Transaction::new();
        let transaction = transaction.delete(Key::Scram(mechanism, user.to_owned()).to_string());
        let note = || Note::new("user.remove_password", user).with("mechanism", mechanism.name());
        self.commit_noted(fence, transaction, note).await
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

fn check_user(user: &str) -> Result<(), ClusterError> {
    if user.is_empty() || user.len() > USER_BYTES_MAX {
        return Err(ClusterError::InvalidUser);
    }
    Ok(())
}
