//! The right to do the jobs of a whole cluster.

use super::Fence;
use crate::schema::{ControllerTerm, Stored};
use freshet_wire::ids::Incarnation;

/// The right to do the jobs of a whole cluster, which one broker at a time has: its controller.
/// Jobs of a broker's own need none. There are two ways to get one: [`Term::of_only_broker`], and
/// [`super::ClusterMetadata::claim_controller`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    fence: Fence,
}

impl Term {
    /// The term of the broker of a cluster that has one: it begins with the broker's incarnation,
    /// and ends with it, or when a controller is elected because the cluster has more brokers now.
    /// `elected` is the controller that was elected last.
    pub fn of_only_broker(fence: Fence, elected: Option<&Stored<ControllerTerm>>) -> Self {
        Self::of_controller(fence, elected.map_or(0, |stored| stored.revision))
    }

    /// The term of a controller that was elected at this revision.
    pub(super) fn of_controller(fence: Fence, revision: u64) -> Self {
        Self { fence: Fence { term_revision: Some(revision), ..fence } }
    }

    /// The incarnation whose term it is.
    pub fn incarnation(self) -> Incarnation {
        self.fence.incarnation
    }

    /// What every change of metadata in this term compares: that the incarnation is live and, where
    /// a controller was elected, that nobody was elected since.
    pub fn fence(self) -> Fence {
        self.fence
    }
}
