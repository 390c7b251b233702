//! Finds out who is controller, and runs for it where nobody is.

use futures::future::join_all;
use tokio::time::sleep;

use freshet_metadata::cluster::{ClusterError, Term};
use freshet_metadata::schema::{ControllerTerm, Stored};

use freshet_wire::ids::Incarnation;

use crate::channel::{ChannelError, within};
use crate::member::Member;
use crate::messages::Opening;

/// What a member is in a term.
pub(crate) enum Role {
    /// It follows the controller of this term.
    Follows(ControllerTerm),
    /// It is the controller. The one before it is missed, if that is named.
    Leads { term: Term, number: u64, missed: Option<Incarnation> },
}

impl Member {
    /// The role of this member; `None` where it was fenced. `missed` is the term whose controller
    /// it does not hear any more.
    pub(crate) async fn find_role(&self, missed: &mut Option<u64>) -> Option<Role> {
        loop {
            let stored = match self.metadata.controller().await {
                Ok(stored) => stored,
                Err(error) => {
                    tracing::warn!(%error, "cannot find out who is controller yet");
                    sleep(self.times.pulse).await;
                    continue;
                }
            };
            if let Some(stored) = &stored {
                if self.is_followed(stored, *missed) {
                    return Some(Role::Follows(stored.record.clone()));
                }
                if self.is_heard_by_others(&stored.record).await {
                    // It is us whom something is wrong with.
                    *missed = None;
                    sleep(self.times.retry).await;
                    continue;
                }
            }
            let number = stored.as_ref().map_or(0, |stored| stored.record.term) + 1;
            match self.metadata.claim_controller(self.fence, stored.as_ref()).await {
                Ok(term) => {
                    tracing::info!(number, "elected controller");
                    let before = stored.map(|stored| stored.record);
                    let before = before.filter(|before| Some(before.term) == *missed);
                    let missed = before.map(|before| before.incarnation);
                    return Some(Role::Leads { term, number, missed });
                }
                Err(ClusterError::Fenced(_)) => return None,
                // Another one was elected.
                Err(ClusterError::Deposed) => {}
                Err(error) => {
                    tracing::warn!(%error, "was not elected controller");
                    sleep(self.times.retry).await;
                }
            }
        }
    }

    /// Whether there is a controller, other than this member, that is not missed.
    fn is_followed(&self, stored: &Stored<ControllerTerm>, missed: Option<u64>) -> bool {
        let ControllerTerm { term, incarnation } = stored.record;
        let is_missed = missed == Some(term) || self.has_ended(incarnation);
        incarnation != self.incarnation() && !is_missed
    }

    /// Whether any of the others hears the controller of a term.
    async fn is_heard_by_others(&self, controller: &ControllerTerm) -> bool {
        let term = controller.term;
        let mut others = self.peers();
        others.retain(|incarnation| *incarnation != controller.incarnation);
        let asked = others.iter().map(async |incarnation| {
            let heard = self.ask_hears(*incarnation, term).await;
            heard.inspect_err(|error| tracing::debug!(%error, %incarnation, "did not answer"))
        });
        join_all(asked).await.into_iter().any(|heard| heard.unwrap_or(false))
    }

    async fn ask_hears(&self, other: Incarnation, term: u64) -> Result<bool, ChannelError> {
        let mut channel = self.reach(other).await?;
        let asking = async {
            channel.sender.send(&Opening::Hears { term }).await?;
            channel.receiver.receive().await
        };
        within(self.times.connect_max, asking).await
    }
}
