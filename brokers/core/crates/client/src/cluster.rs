//! One cluster: where its brokers are, and how often a request is sent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use crate::apis::metadata::{ClusterView, Metadata, TopicMetadata};
use crate::apis::{Request, encoded};
pub use crate::connection::Login;
use crate::connection::{ANSWER_BYTES_MAX, AnswerMemory, AnswerShare, Opener};
use crate::error::ClientError;
use crate::pool::Pool;
use freshet_wire::budget::Budget;
use freshet_world::env::{Network, Randomness};

/// The first pause before a request is sent again; the next ones are longer.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest of these pauses.
const PAUSE_MAX: Duration = Duration::from_millis(320);
/// How long a broker that refuses connections, or breaks them, is tried again.
const UNREACHABLE_TIME: Duration = Duration::from_secs(2);

/// What all clusters of a process hold in memory at a time, in bytes.
const ANSWERS_BYTES_MAX: usize = 128 << 20;
const UNPACKED_BYTES_MAX: usize = 256 << 20;
/// What one of them may hold of that.
const ANSWERS_BYTES_MAX_CLUSTER: usize = 48 << 20;
const UNPACKED_BYTES_MAX_CLUSTER: usize = 96 << 20;

/// The memory that all clients of a process share.
#[derive(Debug, Clone)]
pub struct Memory {
    answers: Budget,
    unpacked: Budget,
}

impl Default for Memory {
    fn default() -> Self {
        let (answers, unpacked) = (ANSWERS_BYTES_MAX, UNPACKED_BYTES_MAX);
        Self { answers: Budget::new(answers), unpacked: Budget::new(unpacked) }
    }
}

/// Reaches the brokers of one cluster. Calls may be made at the same time, and are bounded by their
/// deadlines; one that is dropped ends. Clones share connections and memory.
#[derive(Clone)]
pub struct ClusterClient {
    bootstrap: Arc<[String]>,
    pool: Arc<Pool>,
    /// The memory for decompressed records.
    pub(crate) unpacked: AnswerMemory,
    /// Producers that no call uses.
    pub(crate) producers: Arc<Mutex<Vec<Producer>>>,
    /// Who pays for the calls; `None` where they are the service's own needs.
    payer: Option<Arc<str>>,
}

/// An idempotent producer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Producer {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    /// The next sequence number, by the topic's id and the partition's number.
    pub(crate) sequences: BTreeMap<(u128, i32), i32>,
}

impl ClusterClient {
    /// A client of the brokers at these addresses (`host:port`). It connects when it is first used.
    pub fn new(
        bootstrap: Vec<String>,
        login: Login,
        memory: &Memory,
        network: Arc<dyn Network>,
        randomness: Arc<dyn Randomness>,
    ) -> Self {
        let own = Budget::new(ANSWERS_BYTES_MAX_CLUSTER);
        let answers = AnswerMemory { own, shared: memory.answers.clone() };
        let own = Budget::new(UNPACKED_BYTES_MAX_CLUSTER);
        let unpacked = AnswerMemory { own, shared: memory.unpacked.clone() };
        let pool = Arc::new(Pool::new(Opener { network, randomness, login, memory: answers }));
        Self { bootstrap: bootstrap.into(), pool, unpacked, producers: Arc::default(), payer: None }
    }

    /// The same client, for whose calls this principal pays. Brokers believe it where the client is
    /// the service's own user, and close the connection where it is no principal that may pay.
    #[must_use]
    pub fn paid_by(&self, payer: &str) -> Self {
        Self { payer: Some(payer.into()), ..self.clone() }
    }

    /// How many connections are open and wait for a request.
    pub fn idle_connections(&self) -> usize {
        self.pool.idle()
    }

    /// Sends a request to a broker.
    pub(crate) async fn send<R: Request>(
        &self,
        address: &str,
        request: &R,
    ) -> Result<R::Answer, ClientError> {
        Ok(self.send_holding(address, request).await?.0)
    }

    /// Sends a request to a broker; returns the memory that its answer holds, too.
    pub(crate) async fn send_holding<R: Request>(
        &self,
        address: &str,
        request: &R,
    ) -> Result<(R::Answer, Option<AnswerShare>), ClientError> {
        let payer = self.payer.as_deref();
        self.pool.call::<R>(address, payer, encoded(request), ANSWER_BYTES_MAX).await
    }

    /// Sends a request to the first broker that answers.
    pub(crate) async fn send_anywhere<R: Request>(
        &self,
        request: &R,
    ) -> Result<R::Answer, ClientError> {
        let mut failure = None;
        for address in self.bootstrap.iter() {
            match self.send(address, request).await {
                Err(error @ ClientError::Unreachable { .. }) => failure = Some(error),
                outcome => return outcome,
            }
        }
        Err(failure.unwrap_or_else(|| ClientError::Unreachable {
            address: String::new(),
            reason: "there is no address of a broker".to_owned(),
        }))
    }

    /// Brokers and topics; all topics without names.
    pub(crate) async fn view(
        &self,
        topics: Option<Vec<String>>,
    ) -> Result<ClusterView, ClientError> {
        self.send_anywhere(&Metadata { topics }).await
    }

    /// One topic, with the brokers.
    pub(crate) async fn topic(
        &self,
        name: &str,
    ) -> Result<(ClusterView, TopicMetadata), ClientError> {
        let mut view = self.view(Some(vec![name.to_owned()])).await?;
        match view.topics.pop() {
            Some(topic) if view.topics.is_empty() => Ok((view, topic)),
            _ => Err(ClientError::Undecodable {
                api: Metadata::NAME,
                reason: "it has another number of topics than were asked for".to_owned(),
            }),
        }
    }
}

/// Makes attempts until one succeeds, or fails for a reason that does not pass. Then the deadline
/// ends it, with the last attempt's error where that says more than that time is over.
pub(crate) async fn persist<T>(
    deadline: Instant,
    mut attempt: impl AsyncFnMut() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let (begun, mut pause, mut last) = (Instant::now(), PAUSE_FIRST, None);
    loop {
        let error = match timeout_at(deadline, attempt()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) if !error.is_passing() => return Err(error),
            Ok(Err(error)) => error,
            Err(_) => return Err(last.unwrap_or(ClientError::TimedOut)),
        };
        let is_unreachable = matches!(error, ClientError::Unreachable { .. });
        if is_unreachable && begun.elapsed() >= UNREACHABLE_TIME {
            return Err(error);
        }
        if Instant::now() + pause >= deadline {
            return Err(error);
        }
        last = Some(error);
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
