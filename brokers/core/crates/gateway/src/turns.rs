//! Turns at work that is scarce, handed out fairly: to one cluster after another, and within a
//! cluster to one client address after another. Who asks for many waits for its own, and others do
//! not wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A client's address; empty where there is none to share by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Asker(Option<IpAddr>);

/// How many turns there are at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnLimits {
    pub in_all: usize,
    pub by_cluster: usize,
}

/// Turns at one kind of work (see the module).
pub(super) struct Turns {
    limits: TurnLimits,
    state: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    taken: usize,
    clusters: BTreeMap<Arc<str>, ClusterQueue>,
    /// The cluster that got the last turn.
    last: Option<Arc<str>>,
}

#[derive(Default)]
struct ClusterQueue {
    taken: usize,
    waiting: BTreeMap<Asker, VecDeque<oneshot::Sender<Turn>>>,
    /// The address that got the cluster's last turn.
    last: Option<Asker>,
}

/// A turn, which is over when this is dropped.
pub(super) struct Turn {
    cluster: Arc<str>,
    /// `None` where nobody took the turn, and it is over already.
    turns: Option<Arc<Turns>>,
}

impl Turns {
    pub(super) fn new(limits: TurnLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    /// Waits for a turn of a cluster's client.
    pub(super) async fn take(
        self: &Arc<Self>,
        cluster: &Arc<str>,
        address: Option<IpAddr>,
    ) -> Turn {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state.lock();
            let of_cluster = state.clusters.entry(Arc::clone(cluster)).or_default();
            of_cluster.waiting.entry(Asker(address)).or_default().push_back(sender);
        }
        self.hand_out();
        receiver.await.expect("whoever waits gets a turn")
    }

    fn hand_out(self: &Arc<Self>) {
        loop {
            let next = self.state.lock().next(self.limits);
            let Some((cluster, waiting)) = next else { return };
            let turn = Turn { cluster, turns: Some(Arc::clone(self)) };
            if let Err(mut unclaimed) = waiting.send(turn) {
                // Its client has left.
                unclaimed.turns = None;
                self.state.lock().end(&unclaimed.cluster);
            }
        }
    }
}

impl Queues {
    /// Gives the next turn, if there is one to give and somebody waits for it.
    fn next(&mut self, limits: TurnLimits) -> Option<(Arc<str>, oneshot::Sender<Turn>)> {
        if self.taken >= limits.in_all {
            return None;
        }
        let due = |of_cluster: &ClusterQueue| {
            of_cluster.taken < limits.by_cluster && !of_cluster.waiting.is_empty()
        };
        let cluster = after(&self.clusters, self.last.as_ref(), due)?;
        let of_cluster = self.clusters.get_mut(&cluster)?;
        let address = after(&of_cluster.waiting, of_cluster.last.as_ref(), |_| true)?;
        let queue = of_cluster.waiting.get_mut(&address)?;
        let waiting = queue.pop_front()?;
        if queue.is_empty() {
            of_cluster.waiting.remove(&address);
        }
        of_cluster.taken += 1;
        of_cluster.last = Some(address);
        self.taken += 1;
        self.last = Some(Arc::clone(&cluster));
        Some((cluster, waiting))
    }

    fn end(&mut self, cluster: &Arc<str>) {
        self.taken -= 1;
        let Some(of_cluster) = self.clusters.get_mut(cluster) else { return };
        of_cluster.taken -= 1;
        if of_cluster.taken == 0 && of_cluster.waiting.is_empty() {
            self.clusters.remove(cluster);
        }
    }
}

/// The first key after `last` whose value is due; beyond the last key it goes on with the first.
fn after<K: Ord + Clone, V>(
    map: &BTreeMap<K, V>,
    last: Option<&K>,
    due: impl Fn(&V) -> bool,
) -> Option<K> {
    let from = last.map_or(Unbounded, Excluded);
    let later = map.range((from, Unbounded));
    let mut keys = later.chain(map.iter()).filter(|(_, value)| due(value));
    keys.next().map(|(key, _)| key.clone())
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = &self.turns {
            turns.state.lock().end(&self.cluster);
            turns.hand_out();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn cluster(name: &str) -> Arc<str> {
        name.into()
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    /// Asks for turns in this order, takes one after another, and returns who got them.
    async fn order_of(
        turns: &Arc<Turns>,
        asking: &[(&'static str, u8)],
    ) -> Vec<(&'static str, u8)> {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let waiting: Vec<_> = asking
            .iter()
            .map(|&(name, last)| {
                let (turns, sender) = (Arc::clone(turns), sender.clone());
                tokio::spawn(async move {
                    let turn = turns.take(&cluster(name), Some(address(last))).await;
                    sender.send((name, last)).unwrap();
                    drop(turn);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(sender);
        let mut order = Vec::new();
        while let Some(took) = receiver.recv().await {
            order.push(took);
        }
        for task in waiting {
            task.await.unwrap();
        }
        order
    }

    #[tokio::test]
    async fn clusters_take_turns_and_their_addresses_too() {
        let turns = Turns::new(TurnLimits { in_all: 1, by_cluster: 1 });
        let first = turns.take(&cluster("a"), Some(address(9))).await;
        let asking = [("a", 1), ("a", 1), ("a", 1), ("a", 2), ("b", 7), ("b", 7), ("c", 1)];
        let order = order_of(&turns, &asking);
        let ending = async {
            tokio::task::yield_now().await;
            drop(first);
        };
        let (order, ()) = tokio::join!(order, ending);
        let expected = [("b", 7), ("c", 1), ("a", 1), ("b", 7), ("a", 2), ("a", 1), ("a", 1)];
        assert_eq!(order, expected);
        assert!(turns.state.lock().clusters.is_empty());
    }

    #[tokio::test]
    async fn a_cluster_has_so_many_turns_and_leaves_the_rest_to_others() {
        let turns = Turns::new(TurnLimits { in_all: 3, by_cluster: 2 });
        let taken = [turns.take(&cluster("a"), None).await, turns.take(&cluster("a"), None).await];
        assert!(turns.take(&cluster("a"), None).now_or_never().is_none());
        let other = turns.take(&cluster("b"), None).now_or_never().unwrap();
        assert!(turns.take(&cluster("c"), None).now_or_never().is_none(), "three in all");
        drop(taken);
        // Those that left without their turn are passed over.
        drop(turns.take(&cluster("c"), None).now_or_never().unwrap());
        drop(other);
        assert_eq!(turns.state.lock().taken, 0);
        assert!(turns.state.lock().clusters.is_empty());
    }
}
