//! ACLs and SCRAM users.

use std::collections::BTreeMap;

use super::{
    ClusterError, ClusterMetadata, Fence, Step, Transaction, batches, delete, put, transaction_of,
};
use crate::auth::types::{AclBinding, ScramCredential, ScramMechanism};
use crate::metadata::schema::keys::{ACLS, SCRAM_USERS};
use crate::metadata::schema::{AclRecord, Key, ScramRecord, Stored};
use crate::metadata::store::Write;

/// The longest name of a user, in bytes.
pub const USER_BYTES_MAX: usize = 255;

impl ClusterMetadata {
    /// All ACLs, as the store has them now.
    ///
    /// # Errors
    /// As the store.
    pub async fn list_acls(&self) -> Result<Vec<AclBinding>, ClusterError> {
        let entries = self.read_all(ACLS).await?;
        let binding = |entry| Ok(Stored::<AclRecord>::from_entry(entry)?.record.binding);
        entries.iter().map(binding).collect()
    }

    /// Adds ACLs; those that are there already stay. Gives a revision that a view can wait for,
    /// 0 where the list is empty.
    ///
    /// # Errors
    /// [`ClusterError::TooLarge`], [`ClusterError::Fenced`]; as the store. Some of a long list may
    /// have been added then.
    pub async fn add_acls(
        &self,
        fence: Option<Fence>,
        bindings: &[AclBinding],
    ) -> Result<u64, ClusterError> {
        let mut writes = BTreeMap::new();
        for binding in bindings {
            let key = Key::of_acl(binding);
            let write = put(&key, &AclRecord { binding: binding.clone() })?;
            writes.insert(key, write);
        }
        self.write_all(fence, writes).await
    }

    /// Removes ACLs; those that are not there are no error. Gives a revision that a view can wait
    /// for, 0 where nothing was removed.
    ///
    /// # Errors
    /// [`ClusterError::Fenced`]; as the store. Some of a long list may have been removed then.
    pub async fn remove_acls(
        &self,
        fence: Option<Fence>,
        bindings: &[AclBinding],
    ) -> Result<u64, ClusterError> {
        let keys = bindings.iter().map(Key::of_acl);
        let writes = keys.map(|key| (key.clone(), delete(&key))).collect();
        self.write_all(fence, writes).await
    }

    async fn write_all(
        &self,
        fence: Option<Fence>,
        writes: BTreeMap<Key, Write>,
    ) -> Result<u64, ClusterError> {
        let steps = writes.into_values().map(|write| Step { compare: None, write }).collect();
        let mut last = 0;
        for batch in batches(steps) {
            last = last.max(self.commit(fence, transaction_of(&batch)).await?);
        }
        Ok(last)
    }

    /// Sets the password of a user for a mechanism. Gives a revision that a view can wait for.
    ///
    /// # Errors
    /// [`ClusterError::InvalidUser`], [`ClusterError::Fenced`]; as the store.
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
        self.commit(fence, transaction).await
    }

    /// Removes the password of a user for a mechanism. Gives a revision that a view can wait for;
    /// 0 where there was none.
    ///
    /// # Errors
    /// [`ClusterError::InvalidUser`], [`ClusterError::Fenced`]; as the store.
    pub async fn remove_scram(
        &self,
        fence: Option<Fence>,
        user: &str,
        mechanism: ScramMechanism,
    ) -> Result<u64, ClusterError> {
        check_user(user)?;
        let transaction = Transaction::new();
        let transaction = transaction.delete(Key::Scram(mechanism, user.to_owned()).to_string());
        self.commit(fence, transaction).await
    }

    /// All users with a password, as the store has them now.
    ///
    /// # Errors
    /// As the store.
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
