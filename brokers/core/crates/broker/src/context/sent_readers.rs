//! Readers that leaders have sent to brokers in their zones (KIP-392).

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::request::RequestContext;
use freshet_wire::ids::PartitionId;

/// A reader is sent away once in this time. So it goes on where the other broker has no copy, and
/// librdkafka, which minds a quicker change, reads without a pause.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How many readers are remembered at most. Where there are more, the rest is not sent away.
const SENT_MAX: usize = 10_000;

/// When readers of partitions were sent to other brokers.
#[derive(Default)]
pub(crate) struct SentReaders {
    hasher: RandomState,
    sent: Mutex<HashMap<(PartitionId, u64), Instant>>,
}

impl SentReaders {
    /// Whether a reader is to be sent away now; then it is remembered.
    pub(crate) fn send(&self, partition: PartitionId, context: &RequestContext) -> bool {
        let reader = (context.client.host, context.client.principal.as_str(), &context.client_id);
        let key = (partition, self.hasher.hash_one(reader));
        let (mut sent, now) = (self.sent.lock(), Instant::now());
        if sent.len() >= SENT_MAX {
            sent.retain(|_, at| now - *at < AGAIN_AFTER);
        }
        let is_due = sent.get(&key).is_none_or(|at| now - *at >= AGAIN_AFTER);
        if is_due && sent.len() < SENT_MAX {
            sent.insert(key, now);
            return true;
        }
        false
    }
}
