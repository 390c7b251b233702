//! Freshness: some reads promise to be no older than their request. They wait for a check of the
//! owner token that begins after they arrived; one check serves all that wait.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kafka_protocol::ResponseError;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use freshet_storage::lane::token::OwnerToken;
use freshet_storage::liveness::Liveness;
use freshet_storage::rules::{Rule, Rules};

/// How often a broker checks its owner token when no read asks for it: the longest time for which
/// an idle broker that was fenced serves old reads.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Checks the owner token, once for all reads that wait at that moment.
pub struct Freshness {
    /// The reads that wait for the next check.
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
    /// Notified when a read begins to wait.
    work: Notify,
    rules: Rules,
    liveness: Liveness,
    /// Whether the lane is being closed. Nobody fences a closed lane, so an unchanged token proves
    /// nothing from then on.
    closed: AtomicBool,
}

impl Freshness {
    /// Creates it; nothing is checked until [`Freshness::run`] runs.
    pub fn new(rules: Rules, liveness: Liveness) -> Self {
        Self {
            waiting: Mutex::default(),
            work: Notify::new(),
            rules,
            liveness,
            closed: AtomicBool::new(false),
        }
    }

    /// Waits for a token check that begins after this call.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER` where the engine ended; where the lane is being closed, it is
    /// returned once the engine ends.
    pub async fn fresh(&self) -> Result<(), ResponseError> {
        if !self.rules.hold(Rule::FreshReads) {
            return Ok(());
        }
        let (done, checked) = oneshot::channel();
        self.waiting.lock().push(done);
        self.work.notify_one();
        let stale = ResponseError::NotLeaderOrFollower;
        tokio::select! {
            biased;
            checked = checked => checked.map_err(|_| stale),
            // The engine ended, so no check will come.
            _ = self.liveness.ended() => Err(stale),
        }
    }

    /// Lets no read pass from now on. It is called before the lane is closed, since a later
    /// incarnation may lead the partitions without fencing a closed lane.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Checks the token whenever a read waits and at least every `CHECK_EVERY`, until the engine
    /// ends. Stands the engine down where the token is lost, or `is_fenced` says that the metadata
    /// show that others fenced this incarnation. That is looked at apart: nobody touches the token
    /// of a broker from which nothing is to be taken over, and storage that hangs shows no token.
    pub async fn run(
        self: Arc<Self>,
        token: Arc<OwnerToken>,
        mut is_fenced: impl FnMut() -> bool + Send,
    ) {
        while !self.liveness.is_down() {
            // The token is checked now, whether a read waits or the time is up.
            let _ = timeout(CHECK_EVERY, self.work.notified()).await;
            let waiting = std::mem::take(&mut *self.waiting.lock());
            let mut check = pin!(token.check());
            let checked = loop {
                match timeout(CHECK_EVERY, &mut check).await {
                    Ok(checked) => break checked,
                    Err(_) if is_fenced() => {
                        self.liveness
                            .stand_down("storage hangs, and another incarnation took over");
                        return;
                    }
                    Err(_) => {}
                }
            };
            if let Err(error) = checked {
                self.liveness.stand_down(&error.to_string());
                return;
            }
            if is_fenced() {
                self.liveness.stand_down("another incarnation has fenced this one");
                return;
            }
            if self.closed.load(Ordering::SeqCst) {
                continue;
            }
            for done in waiting {
                // The send fails where the client's connection closed meanwhile.
                let _ = done.send(());
            }
        }
    }
}
