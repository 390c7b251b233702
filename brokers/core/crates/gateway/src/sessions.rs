//! The connections that are being forwarded, so that they can be ended: when their user was
//! removed, when their cluster may not be used any more, or when another broker has to serve them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::places::{Brokers, ServingBroker, Slot};

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
    /// Which broker it asked for and which one it got, once that is reached.
    linked: Option<(Slot, ServingBroker)>,
    end: CancellationToken,
}

impl Session {
    /// Ends it where it may not stay at its broker, by what is known of brokers now. Returns
    /// whether it did.
    fn revise(&mut self, brokers: &Brokers) -> bool {
        let Some((slot, place)) = &mut self.linked else { return false };
        if self.end.is_cancelled() {
            return false;
        }
        if brokers.keep(*slot, place) {
            // Some are linked before the incarnations of the brokers are known.
            place.incarnation = place.incarnation.or(brokers.incarnation_at(&place.link));
            return false;
        }
        self.end.cancel();
        true
    }
}

impl Sessions {
    /// Adds a connection, which is to end when its token is cancelled.
    pub(super) fn register(self: &Arc<Self>, cluster: &Arc<str>, user: &str) -> Registered {
        let end = CancellationToken::new();
        let session = Session { user: user.into(), linked: None, end: end.clone() };
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

    /// Ends the connections of a cluster that may not stay at the broker that they are linked to,
    /// by what is known of its brokers now; returns how many.
    pub(super) fn end_misplaced(&self, cluster: &str, brokers: &Brokers) -> usize {
        let mut live = self.0.lock();
        let sessions = live.clusters.get_mut(cluster).into_iter().flat_map(BTreeMap::values_mut);
        sessions.filter_map(|session| session.revise(brokers).then_some(())).count()
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
    /// Notes which broker was reached, and ends the connection where it may not stay there, by what
    /// is known of brokers now. The caller holds that, so that nobody learns more meanwhile and
    /// misses this connection.
    pub(super) fn linked(&self, slot: Slot, place: ServingBroker, brokers: &Brokers) {
        let mut live = self.sessions.0.lock();
        let sessions = live.clusters.get_mut(&self.cluster);
        if let Some(session) = sessions.and_then(|sessions| sessions.get_mut(&self.number)) {
            session.linked = Some((slot, place));
            session.revise(brokers);
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
    use crate::testing::listed;

    #[test]
    fn connections_are_ended_by_user_and_by_cluster() {
        let sessions = Arc::new(Sessions::default());
        let (one, other_cluster): (Arc<str>, Arc<str>) = ("cl_1".into(), "cl_2".into());
        let alice = sessions.register(&one, "alice");
        let bob = sessions.register(&one, "bob");
        let other = sessions.register(&other_cluster, "bob");
        assert_eq!(sessions.clusters(), [one.clone(), other_cluster.clone()]);
        assert_eq!(sessions.end_others(&one, &BTreeSet::from(["alice".to_owned()])), 1);
        assert!(bob.end.is_cancelled() && !alice.end.is_cancelled() && !other.end.is_cancelled());
        assert_eq!(sessions.end_others(&one, &BTreeSet::from(["alice".to_owned()])), 0);
        let place = |link: &str| ServingBroker { link: link.to_owned(), incarnation: None };
        let [two, one_alone] =
            [vec![listed(0, "10.0.0.1:1"), listed(1, "10.0.0.2:1")], vec![listed(0, "10.0.0.1:1")]];
        let brokers = |listed| Brokers { listed, incarnations: None };
        alice.linked(Slot::Any, place("10.0.0.1:1"), &brokers(&two));
        let elsewhere = sessions.register(&one, "alice");
        elsewhere.linked(Slot::Any, place("10.0.0.2:1"), &brokers(&two));
        assert!(!elsewhere.end.is_cancelled());
        let held = sessions.register(&one, "alice");
        assert_eq!(sessions.end_misplaced(&one, &brokers(&one_alone)), 1);
        let late = sessions.register(&one, "alice");
        late.linked(Slot::Any, place("10.0.0.2:1"), &brokers(&one_alone));
        assert!(late.end.is_cancelled(), "its broker was replaced while it was linked");
        assert!(elsewhere.end.is_cancelled() && !alice.end.is_cancelled());
        assert!(!held.end.is_cancelled(), "it is on its way");
        drop((elsewhere, held, late));
        assert_eq!(sessions.end_all(&other_cluster), 1);
        drop((alice, bob, other));
        assert!(sessions.clusters().is_empty());
        assert_eq!(sessions.end_all(&one), 0);
    }
}
