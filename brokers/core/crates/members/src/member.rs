//! A member: a broker with what it knows of the others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use freshet_metadata::cluster::{ClusterMetadata, Fence};
use freshet_metadata::schema::IncarnationState;
use freshet_metadata::view::MetadataView;
use freshet_wire::ids::Incarnation;
use freshet_world::env::{Network, Stream};
use freshet_world::watch;

use crate::channel::{self, Channel, ChannelError, ChannelKey, within};
use crate::{Duties, Times};

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
    /// Whether it is about to stop.
    leaves: AtomicBool,
    /// Whether the controller said that it may.
    released: watch::Sender<bool>,
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

    /// Notes the term in which it is controller, or that it is not.
    pub(crate) fn note_leads(&self, term: Option<u64>) {
        self.state.leads.store(term.unwrap_or(NO_TERM), Ordering::Release);
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
    pub(crate) fn hears(&self, term: u64) -> bool {
        let recently =
            |(heard, at): (u64, Instant)| heard == term && at.elapsed() <= self.times.pulse * 2;
        self.leads() == Some(term) || self.state.heard.lock().is_some_and(recently)
    }

    /// Has the others take over what this broker leads, before it stops. Returns once it leads
    /// nothing any more, or nobody can take over. While nobody is controller, it waits.
    pub async fn leave(&self) {
        let mut released = self.state.released.subscribe();
        self.state.leaves.store(true, Ordering::Release);
        // It does not fail: the sender is this member's.
        let _ = released.wait_for(|released| *released).await;
    }

    /// Whether it is about to stop.
    pub(crate) fn leaves(&self) -> bool {
        self.state.leaves.load(Ordering::Acquire)
    }

    /// Notes that it may stop.
    pub(crate) fn note_released(&self) {
        self.state.released.send_replace(true);
    }

    /// Connects to another broker and opens a channel; each of the two takes `connect_max` at most.
    pub(crate) async fn reach(&self, other: Incarnation) -> Result<Channel, ChannelError> {
        let address = self.address_of(other);
        let stream = connect(self.network.as_ref(), &address, self.times.connect_max).await?;
        within(self.times.connect_max, channel::open(stream, &self.key)).await
    }

    /// The other brokers that live, as far as the image shows.
    pub(crate) fn peers(&self) -> Vec<Incarnation> {
        let snapshot = self.view.snapshot();
        let others = snapshot.incarnations.iter().filter(|(incarnation, stored)| {
            **incarnation != self.incarnation() && stored.record.state == IncarnationState::Live
        });
        others.map(|(incarnation, _)| *incarnation).collect()
    }

    /// Whether the image shows that an incarnation has ended. One that it does not show has just
    /// registered.
    pub(crate) fn has_ended(&self, incarnation: Incarnation) -> bool {
        let snapshot = self.view.snapshot();
        let stored = snapshot.incarnations.get(&incarnation);
        stored.is_some_and(|stored| stored.record.state != IncarnationState::Live)
    }

    /// The address by which brokers reach an incarnation; empty where it is not known.
    pub(crate) fn address_of(&self, incarnation: Incarnation) -> String {
        let snapshot = self.view.snapshot();
        let stored = snapshot.incarnations.get(&incarnation);
        stored.map(|stored| stored.record.place.address.clone()).unwrap_or_default()
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
