//! Reads that promise freshness: they wait for one token check that began after they arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kafka_protocol::ResponseError;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use freshet_storage::lane::token::OwnerToken;
use freshet_storage::liveness::Liveness;
use freshet_storage::rules::{Rule, Rules};

/// How often an idle broker looks whether it was superseded.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Batches the token checks of reads.
pub struct Freshness {
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
    work: Notify,
    rules: Rules,
    liveness: Liveness,
    /// Nobody fences a closed lane, so its token says nothing any more.
    closed: AtomicBool,
}

impl Freshness {
    /// Checks nothing until [`Freshness::run`] runs.
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
    /// `NOT_LEADER_OR_FOLLOWER` where the instance ended, or the lane is being closed.
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
            // Nobody checks any more.
            _ = self.liveness.ended() => Err(stale),
        }
    }

    /// From now on nothing is fresh: the lane is about to be closed, and a successor needs no
    /// fence.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Checks for whoever waits, until the token is lost. An idle broker looks once in a while too,
    /// so that one that was superseded while nobody wrote does not go on serving old reads.
    pub async fn run(self: Arc<Self>, token: Arc<OwnerToken>) {
        while !self.liveness.is_down() {
            // Either way the token is checked now.
            let _ = tokio::time::timeout(CHECK_EVERY, self.work.notified()).await;
            let waiting = std::mem::take(&mut *self.waiting.lock());
            if let Err(error) = token.check().await {
                self.liveness.stand_down(&error.to_string());
                return;
            }
            if self.closed.load(Ordering::SeqCst) {
                continue;
            }
            for done in waiting {
                // A client that hung up does not wait any more.
                let _ = done.send(());
            }
        }
    }
}
