//! A member: a task that follows the cluster's controller, or is it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use freshet_metadata::cluster::{ClusterMetadata, Fence};
use freshet_metadata::schema::{IncarnationRecord, IncarnationState, Stored};
use freshet_metadata::view::MetadataView;
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Listener, Network, Stream};

use crate::channel::{self, Channel, ChannelError, ChannelKey};
use crate::controller::Controller;
use crate::election::Role;
use crate::messages::{Adoption, Opening};
use crate::{Duties, Times};

/// The most handshakes at a time: the address is open to whoever reaches it.
const HANDSHAKES_MAX: usize = 64;
/// The term of one that is not controller; the first term is 1.
const NO_TERM: u64 = 0;

/// A broker as a member of its cluster.
pub struct Member {
    /// Its right to change metadata.
    pub fence: Fence,
    /// The cluster's metadata.
    pub metadata: Arc<ClusterMetadata>,
    /// The image of it.
    pub view: Arc<MetadataView>,
    /// How it reaches the others.
    pub network: Arc<dyn Network>,
    /// What all of them know.
    pub key: ChannelKey,
    /// What it does for the cluster.
    pub duties: Arc<dyn Duties>,
    /// How often it speaks, and how long it waits.
    pub times: Times,
    /// What others ask of it meanwhile.
    pub state: MemberState,
}

/// What a member knows of its controller.
#[derive(Debug, Default)]
pub struct MemberState {
    /// The term in which it is controller.
    leads: AtomicU64,
    /// The term whose controller it heard last, and when.
    heard: Mutex<Option<(u64, Instant)>>,
}

/// A member that wants to follow this one.
pub(crate) struct Follower {
    pub(crate) incarnation: Incarnation,
    pub(crate) channel: Channel,
}

impl Member {
    /// The incarnation of this broker.
    pub(crate) fn incarnation(&self) -> Incarnation {
        self.fence.incarnation
    }

    /// The term in which it is controller; `None` where it is not.
    pub fn leads(&self) -> Option<u64> {
        Some(self.state.leads.load(Ordering::Acquire)).filter(|term| *term != NO_TERM)
    }

    /// Takes part in the cluster. Ends where another incarnation has fenced this one.
    pub async fn run(self: Arc<Self>, listener: Box<dyn Listener>) {
        let (followers_in, mut followers) = mpsc::channel(HANDSHAKES_MAX);
        let (orders_in, orders) = mpsc::unbounded_channel();
        let take_part = async {
            let mut missed = None;
            while let Some(role) = self.find_role(&mut missed).await {
                match role {
                    Role::Follows(term) => missed = self.follow(&term, &orders_in).await,
                    Role::Leads { term, number, missed } => {
                        self.state.leads.store(number, Ordering::Release);
                        let term = Controller::new(&self, (term, number), missed, &orders_in);
                        term.run(&mut followers).await;
                        self.state.leads.store(NO_TERM, Ordering::Release);
                        // Whoever came for this term must look for the next one.
                        while followers.try_recv().is_ok() {}
                    }
                }
            }
        };
        tokio::select! {
            () = take_part => {}
            () = self.admit_all(listener, &followers_in) => {}
            () = self.carry_out(orders) => {}
        }
    }

    /// Notes that the controller of a term was heard.
    pub(crate) fn note_heard(&self, term: u64) {
        *self.state.heard.lock() = Some((term, Instant::now()));
    }

    /// Notes that the channel to the controller ended.
    pub(crate) fn note_unheard(&self) {
        *self.state.heard.lock() = None;
    }

    /// Whether it is the controller of a term, or has just heard it.
    fn hears(&self, term: u64) -> bool {
        let recently =
            |(heard, at): (u64, Instant)| heard == term && at.elapsed() <= self.times.pulse * 2;
        self.leads() == Some(term) || self.state.heard.lock().is_some_and(recently)
    }

    /// Connects to another broker and opens a channel; each of the two takes `connect_max` at most.
    pub(crate) async fn reach(&self, address: &str) -> Result<Channel, ChannelError> {
        let slow = |_| io::Error::from(io::ErrorKind::TimedOut);
        let stream = connect(self.network.as_ref(), address, self.times.connect_max).await?;
        let opened = timeout(self.times.connect_max, channel::open(stream, &self.key)).await;
        opened.map_err(slow)?
    }

    /// The addresses of the other brokers that live, as far as the image shows.
    pub(crate) fn peers(&self) -> Vec<(Incarnation, String)> {
        let snapshot = self.view.snapshot();
        let others = snapshot.incarnations.iter().filter(|(incarnation, stored)| {
            **incarnation != self.incarnation() && stored.record.state == IncarnationState::Live
        });
        let address = |stored: &Stored<IncarnationRecord>| stored.record.place.address.clone();
        others.map(|(incarnation, stored)| (*incarnation, address(stored))).collect()
    }

    async fn admit_all(
        self: &Arc<Self>,
        mut listener: Box<dyn Listener>,
        followers: &mpsc::Sender<Follower>,
    ) {
        let places = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        let mut handshakes = JoinSet::new();
        loop {
            while handshakes.try_join_next().is_some() {}
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections of other brokers");
                    sleep(self.times.pulse).await;
                    continue;
                }
            };
            // Without a place the connection is closed: who belongs here tries again.
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let (member, followers) = (Arc::clone(self), followers.clone());
            handshakes.spawn(async move {
                let admitted = member.admit(stream, &followers).await;
                if let Err(error) = admitted {
                    tracing::debug!(%error, "did not admit a connection");
                }
                drop(place);
            });
        }
    }

    async fn admit(
        &self,
        stream: Box<dyn Stream>,
        followers: &mpsc::Sender<Follower>,
    ) -> Result<(), ChannelError> {
        let opening = async {
            let mut channel = channel::accept(stream, &self.key).await?;
            let opening = channel.receiver.receive().await?;
            Ok::<_, ChannelError>((channel, opening))
        };
        let slow = |_| io::Error::from(io::ErrorKind::TimedOut);
        let (mut channel, opening) =
            timeout(self.times.connect_max, opening).await.map_err(slow)??;
        match opening {
            Opening::Hears { term } => channel.sender.send(&self.hears(term)).await,
            Opening::Follow { incarnation, term } => {
                if self.leads() == Some(term) {
                    // The receiver is gone where the member ends.
                    let _ = followers.send(Follower { incarnation, channel }).await;
                }
                Ok(())
            }
        }
    }

    /// Carries out the controller's orders, one after the other.
    async fn carry_out(&self, mut orders: mpsc::UnboundedReceiver<Adoption>) {
        let mut due = Adoption::default();
        loop {
            if due.is_empty() {
                let Some(order) = orders.recv().await else { return };
                due = order;
            }
            while let Ok(order) = orders.try_recv() {
                due.add(order);
            }
            match self.duties.adopt(&due.dead, &due.partitions).await {
                Ok(()) => due = Adoption::default(),
                Err(error) => {
                    tracing::warn!(%error, dead = ?due.dead, "did not take over yet");
                    sleep(self.times.retry).await;
                }
            }
        }
    }
}

/// Connects to another broker.
pub(crate) async fn connect(
    network: &dyn Network,
    address: &str,
    time_max: Duration,
) -> io::Result<Box<dyn Stream>> {
    let connected = timeout(time_max, network.connect(address)).await;
    connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
