//! Whose bytes the threads that serve forward next: clusters take turns, however many connections
//! they have.
//!
//! The runtime runs tasks in the order in which they are woken, and a connection is a task. A
//! cluster with a thousand busy connections would have a thousand turns for one of another cluster.
//! So a cluster has as many connections in the runtime's queue as there are threads; its further
//! ones that have something to do wait in a queue of the cluster, in the order in which they were
//! woken.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;

/// The queues of all clusters.
pub(super) struct Serving {
    /// Connections of a cluster in the runtime's queue, at most.
    at_once: usize,
    clusters: Mutex<BTreeMap<Arc<str>, Arc<ServingQueue>>>,
}

/// A cluster's connections that have something to do.
pub(super) struct ServingQueue {
    at_once: usize,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    /// Connections that the runtime runs, or is about to run.
    at_runtime: usize,
    waiting: VecDeque<Arc<Connection>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It has nothing to do.
    Quiet,
    /// It waits in the cluster's queue.
    Waiting,
    /// It is in the runtime's queue.
    Due,
    /// It runs.
    Running,
    /// It runs, and has more to do.
    RunningAgain,
    Ended,
}

/// A connection, which is what its sockets and timers wake. Its state is read and changed under the
/// lock of its queue only.
struct Connection {
    queue: Arc<ServingQueue>,
    state: Mutex<ConnectionState>,
}

struct ConnectionState {
    phase: Phase,
    /// The task that serves it, once it was run.
    task: Option<Waker>,
}

impl Serving {
    /// The queues for the runtime that calls it.
    pub(super) fn new() -> Self {
        let at_once = Handle::current().metrics().num_workers();
        Self { at_once, clusters: Mutex::default() }
    }

    /// The queue of a cluster.
    pub(super) fn of_cluster(&self, cluster: &Arc<str>) -> Arc<ServingQueue> {
        let mut clusters = self.clusters.lock();
        let queue = clusters.entry(Arc::clone(cluster));
        Arc::clone(queue.or_insert_with(|| ServingQueue::new(self.at_once)))
    }

    /// Forgets a cluster that is gone.
    pub(super) fn forget(&self, cluster: &str) {
        self.clusters.lock().remove(cluster);
    }
}

impl ServingQueue {
    fn new(at_once: usize) -> Arc<Self> {
        Arc::new(Self { at_once, state: Mutex::default() })
    }

    /// Runs the work of a connection of this cluster, when it is its turn. All that the work waits
    /// for must wake it by the waker that it is polled with.
    pub(super) async fn serve<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        let state = Mutex::new(ConnectionState { phase: Phase::Quiet, task: None });
        let connection = Arc::new(Connection { queue: Arc::clone(self), state });
        let _ending = Ending(&connection);
        let waker = Waker::from(Arc::clone(&connection));
        let mut work = pin!(work);
        let turns = poll_fn(|context| {
            if !connection.begin(context.waker()) {
                return Poll::Pending;
            }
            let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
            connection.pause();
            polled
        });
        turns.await
    }
}

impl QueueState {
    /// Gives a connection's place at the runtime to the first that waits. Returns its task.
    fn pass_on(&mut self) -> Option<Waker> {
        while let Some(next) = self.waiting.pop_front() {
            let mut next = next.state.lock();
            // One that has ended while it waited is passed over.
            if next.phase == Phase::Waiting {
                next.phase = Phase::Due;
                return next.task.clone();
            }
        }
        self.at_runtime -= 1;
        None
    }
}

impl Connection {
    /// Gets a place at the runtime for a connection that has something to do, or waits for one.
    /// Returns whether it got one.
    fn ask(self: &Arc<Self>, queue: &mut QueueState, state: &mut ConnectionState) -> bool {
        let free = queue.at_runtime < self.queue.at_once;
        if free {
            queue.at_runtime += 1;
        } else {
            queue.waiting.push_back(Arc::clone(self));
        }
        state.phase = if free { Phase::Due } else { Phase::Waiting };
        free
    }

    /// Begins a turn of the task that has this waker. Returns whether it is its turn.
    fn begin(self: &Arc<Self>, task: &Waker) -> bool {
        let mut queue = self.queue.state.lock();
        let mut state = self.state.lock();
        match &mut state.task {
            Some(known) => known.clone_from(task),
            unknown => *unknown = Some(task.clone()),
        }
        if state.phase == Phase::Quiet {
            self.ask(&mut queue, &mut state);
        }
        let is_due = state.phase == Phase::Due;
        if is_due {
            state.phase = Phase::Running;
        }
        is_due
    }

    /// Ends a turn. Where there is more to do the connection waits behind the others.
    fn pause(self: &Arc<Self>) {
        let next = {
            let mut queue = self.queue.state.lock();
            let again = {
                let mut state = self.state.lock();
                let again = state.phase == Phase::RunningAgain;
                state.phase = if again { Phase::Waiting } else { Phase::Quiet };
                again
            };
            if again {
                queue.waiting.push_back(Arc::clone(self));
            }
            queue.pass_on()
        };
        wake(next);
    }

    fn end(&self) {
        let next = {
            let mut queue = self.queue.state.lock();
            let phase = std::mem::replace(&mut self.state.lock().phase, Phase::Ended);
            match phase {
                Phase::Due | Phase::Running | Phase::RunningAgain => queue.pass_on(),
                Phase::Quiet | Phase::Waiting | Phase::Ended => None,
            }
        };
        wake(next);
    }
}

/// Wakes a task. It happens without a lock: a task that is woken may be dropped.
fn wake(task: Option<Waker>) {
    if let Some(task) = task {
        task.wake();
    }
}

impl Wake for Connection {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let due = {
            let mut queue = self.queue.state.lock();
            let mut state = self.state.lock();
            let phase = state.phase;
            if phase == Phase::Running {
                state.phase = Phase::RunningAgain;
            }
            let is_due = phase == Phase::Quiet && self.ask(&mut queue, &mut state);
            state.task.clone().filter(|_| is_due)
        };
        wake(due);
    }
}

/// Gives the place of a connection back when its work is over or is given up.
struct Ending<'a>(&'a Arc<Connection>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::sync::mpsc;
    use tokio::task::{JoinSet, yield_now};
    use tokio::time::timeout;

    use super::*;

    const BUSY: usize = 1_000;

    /// Has more to do at once, but leaves the thread to others first.
    async fn leave_for_others() {
        let mut left = false;
        let leaving = poll_fn(|context| {
            if std::mem::replace(&mut left, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        leaving.await;
    }

    fn is_idle(queue: &ServingQueue) -> bool {
        let state = queue.state.lock();
        state.at_runtime == 0 && state.waiting.is_empty()
    }

    #[tokio::test]
    async fn a_connection_waits_for_a_busy_cluster_once_and_not_for_each_of_its_connections() {
        let serving = Serving::new();
        let (busy, other) = (serving.of_cluster(&"a".into()), serving.of_cluster(&"b".into()));
        let turns: Arc<[AtomicUsize]> = (0..BUSY).map(|_| AtomicUsize::new(0)).collect();
        let sum = |turns: &[AtomicUsize]| -> usize {
            turns.iter().map(|turns| turns.load(Ordering::Relaxed)).sum()
        };
        let mut tasks = JoinSet::new();
        for number in 0..BUSY {
            let (busy, turns) = (Arc::clone(&busy), Arc::clone(&turns));
            tasks.spawn(async move {
                let work = async {
                    loop {
                        turns[number].fetch_add(1, Ordering::Relaxed);
                        leave_for_others().await;
                    }
                };
                busy.serve(work).await;
            });
        }
        let (queue, counted) = (Arc::clone(&other), Arc::clone(&turns));
        let looking = tokio::spawn(async move {
            let work = async {
                let mut between = Vec::new();
                for _ in 0..5 * BUSY {
                    let before = sum(&counted);
                    leave_for_others().await;
                    between.push(sum(&counted) - before);
                }
                between
            };
            queue.serve(work).await
        });
        let between = looking.await.unwrap();
        // The runtime's first turns are those in which the connections learn that they must wait.
        let longest = between.iter().skip(BUSY).max().unwrap();
        assert!((1..=2).contains(longest), "{longest} turns of the busy cluster between two");
        let counts: Vec<usize> = turns.iter().map(|turns| turns.load(Ordering::Relaxed)).collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*least > 2 && most - least <= 2, "the busy cluster's own: {least} to {most}");
        tasks.shutdown().await;
        assert!(is_idle(&busy) && is_idle(&other));
        serving.forget("a");
        assert!(!Arc::ptr_eq(&busy, &serving.of_cluster(&"a".into())));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_connection_is_forgotten_whatever_wakes_it() {
        let queue = Serving::new().of_cluster(&"a".into());
        let mut tasks = JoinSet::new();
        for number in 0..100_usize {
            let (sender, mut receiver) = mpsc::channel(1);
            let queue = Arc::clone(&queue);
            // What wakes it is outside of the queue, and comes at any time.
            tasks.spawn(async move {
                for piece in 0..1_000_usize {
                    sender.send(piece).await.unwrap();
                    if (piece + number) % 7 == 0 {
                        yield_now().await;
                    }
                }
                0
            });
            tasks.spawn(async move {
                let receiving = async {
                    let mut sum = 0;
                    while let Some(piece) = receiver.recv().await {
                        sum += piece;
                    }
                    sum
                };
                queue.serve(receiving).await
            });
        }
        let sums = timeout(Duration::from_secs(60), tasks.join_all()).await.unwrap();
        assert_eq!(sums.iter().sum::<usize>(), 100 * (999 * 1_000 / 2));
        assert!(is_idle(&queue));
    }

    #[tokio::test]
    async fn a_connection_that_is_given_up_leaves_its_place_to_the_next() {
        let queue = Serving::new().of_cluster(&"a".into());
        let spawn = |tasks: &mut JoinSet<()>| {
            let queue = Arc::clone(&queue);
            tasks.spawn(async move {
                queue.serve(yield_now()).await;
            })
        };
        let (mut tasks, mut given_up) = (JoinSet::new(), JoinSet::new());
        for _ in 0..10 {
            spawn(&mut given_up);
            spawn(&mut tasks);
        }
        // One of them is due, and the others wait.
        yield_now().await;
        assert_eq!(queue.state.lock().at_runtime, 1);
        given_up.shutdown().await;
        timeout(Duration::from_secs(60), tasks.join_all()).await.unwrap();
        assert!(is_idle(&queue));
    }
}
