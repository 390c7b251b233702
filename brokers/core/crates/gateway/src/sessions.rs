//! The connections that are being forwarded, so that they can be ended: when their user was
//! removed, when their cluster may not be used any more, or when their broker was replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The connections that are being forwarded (see the module).
#[derive(Default)]
pub(super) struct Sessions(Mutex<Live>);

#[derive(Default)]
struct Live {
    next: u64,
    clusters: BTreeMap<Arc<str>, BTreeMap<u64, Session>>,
}

struct Session {
    user: Arc<str>,
    /// Where its broker takes links, once it is reached.
    link: Option<String>,
    end: CancellationToken,
}

impl Sessions {
    /// Adds a connection, which is to end when its token is cancelled.
    pub(super) fn register(self: &Arc<Self>, cluster: &Arc<str>, user: &str) -> Registered {
        let end = CancellationToken::new();
        let session = Session { user: user.into(), link: None, end: end.clone() };
        let mut live = self.0.lock();
        let number = live.next;
        live.next += 1;
        live.clusters.entry(Arc::clone(cluster)).or_default().insert(number, session);
        Registered { sessions: Arc::clone(self), cluster: Arc::clone(cluster), number, end }
    }

    /// Clusters with connections.
    pub(super) fn clusters(&self) -> Vec<Arc<str>> {
        self.0.lock().clusters.keys().cloned().collect()
    }

    /// Ends all connections of a cluster; returns how many.
    pub(super) fn end_all(&self, cluster: &str) -> usize {
        self.end(cluster, |_| true)
    }

    /// Ends the connections of a cluster whose user is not among `users`; returns how many.
    pub(super) fn end_others(&self, cluster: &str, users: &BTreeSet<String>) -> usize {
        self.end(cluster, |session| !users.contains(&*session.user))
    }

    /// Ends the connections of a cluster that are linked to an address not among `links`; returns
    /// how many.
    pub(super) fn end_elsewhere(&self, cluster: &str, links: &BTreeSet<&str>) -> usize {
        self.end(cluster, |session| {
            session.link.as_deref().is_some_and(|link| !links.contains(link))
        })
    }

    fn end(&self, cluster: &str, ends: impl Fn(&Session) -> bool) -> usize {
        let live = self.0.lock();
        let sessions = live.clusters.get(cluster).into_iter().flat_map(BTreeMap::values);
        let ending = sessions.filter(|session| ends(session) && !session.end.is_cancelled());
        ending.map(|session| session.end.cancel()).count()
    }
}

/// A connection among the sessions; it is removed from them when this is dropped.
pub(super) struct Registered {
    sessions: Arc<Sessions>,
    cluster: Arc<str>,
    number: u64,
    /// Cancelled when the connection is to end.
    pub end: CancellationToken,
}

impl Registered {
    /// Notes where its broker was reached.
    pub(super) fn linked(&self, link: &str) {
        let mut live = self.sessions.0.lock();
        let sessions = live.clusters.get_mut(&self.cluster);
        if let Some(session) = sessions.and_then(|sessions| sessions.get_mut(&self.number)) {
            session.link = Some(link.to_owned());
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut live = self.sessions.0.lock();
        if let Some(sessions) = live.clusters.get_mut(&self.cluster) {
            sessions.remove(&self.number);
            if sessions.is_empty() {
                live.clusters.remove(&self.cluster);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_ended_by_user_and_by_cluster() {
        let sessions = Arc::new(Sessions::default());
        let (one, two): (Arc<str>, Arc<str>) = ("cl_1".into(), "cl_2".into());
        let alice = sessions.register(&one, "alice");
        let bob = sessions.register(&one, "bob");
        let other = sessions.register(&two, "bob");
        assert_eq!(sessions.clusters(), [one.clone(), two.clone()]);
        assert_eq!(sessions.end_others(&one, &BTreeSet::from(["alice".to_owned()])), 1);
        assert!(bob.end.is_cancelled() && !alice.end.is_cancelled() && !other.end.is_cancelled());
        assert_eq!(sessions.end_others(&one, &BTreeSet::from(["alice".to_owned()])), 0);
        alice.linked("10.0.0.1:1");
        let elsewhere = sessions.register(&one, "alice");
        elsewhere.linked("10.0.0.2:1");
        let held = sessions.register(&one, "alice");
        assert_eq!(sessions.end_elsewhere(&one, &BTreeSet::from(["10.0.0.1:1"])), 1);
        assert!(elsewhere.end.is_cancelled() && !alice.end.is_cancelled());
        assert!(!held.end.is_cancelled(), "it is on its way");
        drop((elsewhere, held));
        assert_eq!(sessions.end_all(&two), 1);
        drop((alice, bob, other));
        assert!(sessions.clusters().is_empty());
        assert_eq!(sessions.end_all(&one), 0);
    }
}
