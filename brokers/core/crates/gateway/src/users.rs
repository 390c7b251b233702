//! Users of the cell's clusters, as the metadata store has them.
//!
//! Each authentication reads the store, so that a new user may connect at once and a changed
//! password counts at once. The credentials that let a client in are remembered, and used only
//! while the store cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use freshet_access::sasl::Credentials;
use freshet_access::types::{ScramCredential, ScramMechanism};
use freshet_metadata::cluster::USER_BYTES_MAX;
use freshet_metadata::schema::keys::SCRAM_USERS;
use freshet_metadata::schema::{Key, ScramRecord, Stored};
use freshet_metadata::{ClusterError, MetadataStore, ScopedStore};

/// The user as which the control plane and the keeper use a broker's internal listener. For a
/// gateway there is no such user, whatever a cluster's records say.
pub(super) const SUPER_USER: &str = "__freshet";

/// A user's credentials by mechanism. Empty where there is no such user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UserCredentials(BTreeMap<ScramMechanism, ScramCredential>);

impl UserCredentials {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What tells one password of the user from the next, without telling the password.
    pub(super) fn stored_keys(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|credential| credential.stored_key.as_str())
    }
}

/// The users (see the module).
pub(super) struct Users {
    store: Arc<dyn MetadataStore>,
    /// Remembered credentials by cluster and name.
    known: Mutex<BTreeMap<Arc<str>, BTreeMap<String, UserCredentials>>>,
}

impl Users {
    pub(super) fn new(store: Arc<dyn MetadataStore>) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// The credentials of a user; where the store cannot be read, the remembered ones.
    ///
    /// # Errors
    /// Where the store cannot be read and no credentials of the user are remembered.
    pub(super) async fn look_up(
        &self,
        cluster: &str,
        user: &str,
    ) -> Result<UserCredentials, ClusterError> {
        if user == SUPER_USER || user.len() > USER_BYTES_MAX {
            return Ok(UserCredentials::default());
        }
        let read = self.read(cluster, user).await;
        read.or_else(|error| {
            let known = self.known.lock();
            known.get(cluster).and_then(|users| users.get(user)).cloned().ok_or(error)
        })
    }

    async fn read(&self, cluster: &str, user: &str) -> Result<UserCredentials, ClusterError> {
        let store = ScopedStore::new(Arc::clone(&self.store), cluster)?;
        let mut credentials = UserCredentials::default();
        for mechanism in ScramMechanism::ALL {
            let key = Key::Scram(mechanism, user.to_owned()).to_string();
            if let Some(entry) = store.get(&key).await? {
                let record = Stored::<ScramRecord>::from_entry(&entry)?.record;
                credentials.0.insert(mechanism, record.credential);
            }
        }
        Ok(credentials)
    }

    /// Remembers the credentials that let a client in.
    pub(super) fn remember(&self, cluster: &Arc<str>, user: &str, credentials: UserCredentials) {
        let mut known = self.known.lock();
        known.entry(Arc::clone(cluster)).or_default().insert(user.to_owned(), credentials);
    }

    /// The names of all users of a cluster. Credentials of other users are forgotten.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub(super) async fn names(&self, cluster: &str) -> Result<BTreeSet<String>, ClusterError> {
        let store = ScopedStore::new(Arc::clone(&self.store), cluster)?;
        let page = store.range(SCRAM_USERS, None, usize::MAX).await?;
        let mut names = BTreeSet::new();
        for entry in page.entries {
            // By the key alone, so that a record of a newer release counts as a user, too.
            if let Some(Key::Scram(_, user)) = Key::parse(&entry.key)? {
                names.insert(user);
            }
        }
        if let Some(known) = self.known.lock().get_mut(cluster) {
            known.retain(|user, _| names.contains(user));
        }
        Ok(names)
    }

    /// Forgets a cluster that is gone.
    pub(super) fn forget(&self, cluster: &str) {
        self.known.lock().remove(cluster);
    }
}

/// The credentials of the one user that a connection named.
#[derive(Default)]
pub(super) struct Named(Mutex<Option<(String, UserCredentials)>>);

impl Named {
    pub(super) fn set(&self, user: String, credentials: UserCredentials) {
        *self.0.lock() = Some((user, credentials));
    }

    /// The name that was set; empty where none was.
    pub(super) fn name(&self) -> String {
        self.0.lock().as_ref().map(|(name, _)| name.clone()).unwrap_or_default()
    }

    /// The credentials that were set; none where none were.
    pub(super) fn credentials(&self) -> UserCredentials {
        self.0.lock().as_ref().map(|(_, credentials)| credentials.clone()).unwrap_or_default()
    }

    /// What was set, if it is of this user, and one that exists.
    pub(super) fn take(&self, user: &str) -> Option<UserCredentials> {
        let (named, credentials) = self.0.lock().take()?;
        (named == user && !credentials.is_empty()).then_some(credentials)
    }
}

impl Credentials for Named {
    fn scram(&self, user: &str, mechanism: ScramMechanism) -> Option<ScramCredential> {
        let named = self.0.lock();
        let (_, credentials) = named.as_ref().filter(|(named, _)| named == user)?;
        credentials.0.get(&mechanism).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Switched, add_user, remove_user};

    #[tokio::test]
    async fn users_are_those_of_their_own_cluster_and_of_this_moment() {
        let store: Arc<dyn MetadataStore> = Switched::new();
        let users = Users::new(Arc::clone(&store));
        assert!(users.look_up("cl_1", "alice").await.unwrap().is_empty());
        add_user(&store, "cl_1", "alice", "one").await;
        let first = users.look_up("cl_1", "alice").await.unwrap();
        assert!(!first.is_empty());
        add_user(&store, "cl_1", "alice", "two").await;
        assert_ne!(users.look_up("cl_1", "alice").await.unwrap(), first);
        assert!(users.look_up("cl_2", "alice").await.unwrap().is_empty());
        assert_eq!(users.names("cl_1").await.unwrap(), BTreeSet::from(["alice".to_owned()]));
        assert!(users.names("cl_2").await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn there_is_no_super_user() {
        let store: Arc<dyn MetadataStore> = Switched::new();
        add_user(&store, "cl_1", SUPER_USER, "secret").await;
        let users = Users::new(store);
        assert!(users.look_up("cl_1", SUPER_USER).await.unwrap().is_empty());
        assert!(users.look_up("cl_1", &"x".repeat(5000)).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn who_was_let_in_is_known_while_the_store_is_down() {
        let switched = Switched::new();
        let store: Arc<dyn MetadataStore> = switched.clone();
        for user in ["alice", "bob", "carol"] {
            add_user(&store, "cl_1", user, "secret").await;
        }
        let users = Users::new(store.clone());
        let cluster: Arc<str> = "cl_1".into();
        for user in ["alice", "bob"] {
            let credentials = users.look_up(&cluster, user).await.unwrap();
            users.remember(&cluster, user, credentials);
        }
        remove_user(&store, "cl_1", "bob").await;
        users.names(&cluster).await.unwrap();
        switched.turn_off();
        assert!(!users.look_up("cl_1", "alice").await.unwrap().is_empty());
        assert!(users.look_up("cl_1", "bob").await.is_err(), "removed before it went down");
        assert!(users.look_up("cl_1", "carol").await.is_err(), "never let in");
        users.forget("cl_1");
        assert!(users.look_up("cl_1", "alice").await.is_err());
    }

    #[tokio::test]
    async fn a_connection_sees_the_user_that_it_named_only() {
        let store: Arc<dyn MetadataStore> = Switched::new();
        add_user(&store, "cl_1", "alice", "secret").await;
        let credentials = Users::new(store).look_up("cl_1", "alice").await.unwrap();
        let named = Named::default();
        assert!(named.scram("alice", ScramMechanism::Sha256).is_none());
        named.set("alice".to_owned(), credentials.clone());
        assert!(named.scram("alice", ScramMechanism::Sha256).is_some());
        assert!(named.scram("bob", ScramMechanism::Sha256).is_none());
        assert_eq!(named.take("alice"), Some(credentials));
        assert_eq!(named.take("alice"), None);
    }
}
