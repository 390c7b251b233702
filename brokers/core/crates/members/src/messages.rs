//! What the brokers of a cluster say to each other.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use freshet_wire::ids::{Incarnation, PartitionId};

/// The first message on a channel, of the end that connected.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Opening {
    /// It follows the other end, which it believes to be controller in this term. Where that is so
    /// it is answered by [`FromController`], else the channel ends.
    Follow { incarnation: Incarnation, term: u64 },
    /// It asks whether the other end hears the controller of this term. The answer is a `bool`.
    Hears { term: u64 },
}

/// What a broker says to its controller while it lives. It is answered by
/// [`FromController::Heard`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pulse {
    /// It is about to stop, and others are to take over what it leads.
    pub(crate) leaves: bool,
}

/// What a controller says to a broker that follows it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromController {
    /// It has heard a pulse.
    Heard,
    /// The broker has something to do.
    Do(Order),
    /// The broker may stop: it leads nothing any more, or nobody can take over what it leads.
    Released,
}

/// What a controller has a broker do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// To take over.
    Adopt(Adoption),
    /// To hand over.
    HandOver(HandOver),
}

/// Partitions to hand over to a broker that lives.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandOver {
    pub(crate) successor: Incarnation,
    pub(crate) partitions: BTreeSet<PartitionId>,
}

/// Partitions to take over from brokers that have ended. The controller has fenced those.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Adoption {
    pub(crate) dead: BTreeSet<Incarnation>,
    pub(crate) partitions: BTreeSet<PartitionId>,
}

impl Adoption {
    pub(crate) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.dead.extend(other.dead);
        self.partitions.extend(other.partitions);
    }
}
