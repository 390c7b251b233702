//! The members of a cluster: each broker keeps a channel to the one that is controller, by which
//! they notice each other's death. The controller fences who has died, and spreads its partitions
//! over the survivors. The crate's `README.md` has the rules.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use freshet_metadata::cluster::Term;
use freshet_quota::dealing::{LimitShare, LimitUse};
use freshet_wire::ids::{Incarnation, PartitionId};

pub mod channel;
mod controller;
mod election;
mod following;
mod hanging;
mod member;
mod messages;
pub mod planning;
mod suspicion;
mod taking_part;

pub use member::{Member, MemberState};
pub use messages::StorageReport;

/// What a member does for its cluster.
#[async_trait]
pub trait Duties: Send + Sync + 'static {
    /// Begins the jobs of the whole cluster in a term in which this broker is controller, or ends
    /// them.
    fn set_term(&self, term: Option<Term>);

    /// Takes over those of the partitions that these incarnations lead, and serves them. The
    /// controller has fenced the incarnations. It is called again where it failed.
    ///
    /// # Errors
    /// Why it failed, for the log.
    async fn adopt(
        &self,
        dead: &BTreeSet<Incarnation>,
        partitions: &BTreeSet<PartitionId>,
    ) -> Result<(), String>;

    /// Hands over those of the partitions that it leads. It is called again for those of which the
    /// metadata does not show it after a while.
    ///
    /// # Errors
    /// Why it failed, for the log.
    async fn hand_over(
        &self,
        partitions: &BTreeSet<PartitionId>,
        successor: Incarnation,
    ) -> Result<(), String>;

    /// How storage does, for the others. It does not wait for storage.
    fn storage(&self) -> StorageReport;

    /// Begins to write something small, so that [`Self::storage`] shows whether storage works.
    fn prove_storage(&self);

    /// What this broker used of the cluster's limits since the last call.
    fn report_use(&self) -> Vec<LimitUse>;

    /// Takes this broker's shares of the cluster's limits. They hold until the next call, and for
    /// three seconds at most.
    fn set_shares(&self, shares: Vec<LimitShare>);
}

/// How often members speak, and how long they wait for each other.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Between two pulses of a member.
    pub pulse: Duration,
    /// Who is silent for longer is taken for dead.
    pub silence_max: Duration,
    /// Who looks around less often than this stood still, and suspects nobody.
    pub stall: Duration,
    /// Whose oldest write waits for longer, while others write, is taken to have lost its storage.
    pub hang_max: Duration,
    /// For a connection, and for a handshake on it.
    pub connect_max: Duration,
    /// A member that accepts connections may take so long until it follows a new controller: it
    /// may be starting.
    pub join_max: Duration,
    /// A new controller waits at most so long for the others, before it gives them partitions.
    pub gather: Duration,
    /// A controller that does not hear most of the others waits for so much longer, so that they
    /// can elect another one. It is more than they need: twice `connect_max`.
    pub doubt: Duration,
    /// Before what failed is tried again.
    pub retry: Duration,
    /// Since a broker came or went, before partitions are moved so that all lead as many.
    pub settle: Duration,
    /// A hand-over that was ordered and is not done after this time is ordered again.
    pub move_max: Duration,
    /// Between two reports of what a member used, and between two times that shares are dealt.
    pub deal: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            pulse: Duration::from_millis(100),
            silence_max: Duration::from_millis(800),
            stall: Duration::from_millis(200),
            hang_max: Duration::from_secs(3),
            connect_max: Duration::from_millis(250),
            join_max: Duration::from_secs(10),
            gather: Duration::from_millis(100),
            doubt: Duration::from_millis(600),
            retry: Duration::from_millis(20),
            settle: Duration::from_secs(2),
            move_max: Duration::from_secs(5),
            deal: Duration::from_secs(1),
        }
    }
}
