//! The connections of one cluster: few at a time, kept for a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use crate::apis::Request;
use crate::connection::{AnswerShare, BrokerConnection, Opener, decoded};
use crate::error::ClientError;

/// The most connections of a cluster at a time.
const CONNECTIONS_MAX: usize = 32;
/// How long connecting and the login may take.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long a connection is kept without a request.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// A connection and since when it has had no request.
struct Idle {
    connection: BrokerConnection,
    since: Instant,
}

#[derive(Default)]
struct Kept {
    /// By the broker's address, the one that was used last at the end.
    idle: BTreeMap<String, Vec<Idle>>,
    /// Whether a task runs that closes those which were idle for long.
    is_watched: bool,
}

/// The connections of one cluster.
pub(crate) struct Pool {
    opener: Opener,
    kept: Arc<Mutex<Kept>>,
    slots: Semaphore,
}

impl Pool {
    pub(crate) fn new(opener: Opener) -> Self {
        Self { opener, kept: Arc::default(), slots: Semaphore::new(CONNECTIONS_MAX) }
    }

    /// Sends a request to the broker at an address, for which `payer` pays where there is one; of
    /// its answer at most `bytes_max` bytes are read. Returns the memory that the answer holds,
    /// too. Where this is dropped, or the answer makes no sense, the connection is closed.
    pub(crate) async fn call<R: Request>(
        &self,
        address: &str,
        payer: Option<&str>,
        body: Bytes,
        bytes_max: usize,
    ) -> Result<(R::Answer, Option<AnswerShare>), ClientError> {
        let _slot = self.slots.acquire().await.expect("the semaphore is never closed");
        let mut connection = match self.take_idle(address) {
            Some(connection) => connection,
            None => timeout(CONNECT_TIME, BrokerConnection::open(&self.opener, address))
                .await
                .unwrap_or_else(|_| Err(too_slow(address)))?,
        };
        let reply = connection.call::<R>(&self.opener, payer, body, bytes_max).await?;
        let answer = decoded::<R>(&reply)?;
        if connection.is_reusable {
            self.keep(address, connection);
        }
        Ok((answer, reply.share))
    }

    fn take_idle(&self, address: &str) -> Option<BrokerConnection> {
        loop {
            let mut idle = self.kept.lock().idle.get_mut(address)?.pop()?;
            if idle.connection.is_alive() {
                return Some(idle.connection);
            }
        }
    }

    fn keep(&self, address: &str, connection: BrokerConnection) {
        let mut kept = self.kept.lock();
        let idle = Idle { connection, since: Instant::now() };
        kept.idle.entry(address.to_owned()).or_default().push(idle);
        if !std::mem::replace(&mut kept.is_watched, true) {
            tokio::spawn(close_idle(Arc::downgrade(&self.kept)));
        }
    }

    /// How many connections are kept without a request.
    pub(crate) fn idle(&self) -> usize {
        self.kept.lock().idle.values().map(Vec::len).sum()
    }
}

fn too_slow(address: &str) -> ClientError {
    let reason = "connecting and the login took too long".to_owned();
    ClientError::Unreachable { address: address.to_owned(), reason }
}

/// Closes connections that have been idle for long, until none is left.
async fn close_idle(kept: std::sync::Weak<Mutex<Kept>>) {
    loop {
        sleep(IDLE_TIME / 2).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = kept.lock();
        for idle in kept.idle.values_mut() {
            idle.retain(|idle| idle.since.elapsed() < IDLE_TIME);
        }
        kept.idle.retain(|_, idle| !idle.is_empty());
        if kept.idle.is_empty() {
            kept.is_watched = false;
            return;
        }
    }
}
