//! Fetches of clients that may not fetch now, because the cluster's traffic is refused.
//!
//! A Fetch response has no text for a reason. The error POLICY_VIOLATION is set twice: for the
//! response, which Java's consumer logs before it asks again, and for each partition, which
//! librdkafka gives to the application before it asks again. Java's consumer would end with an
//! exception at the error of a partition; it does not look at partitions where the response has an
//! error. librdkafka does not look at the error of the response. So with both of them consumers
//! stay in their groups, and go on by themselves once fetch is allowed.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::context::RequestContext;

/// A refusal is held back for the time that the client would wait for records, and no longer than
/// this. Without that a client would ask again at once, and so without end.
const HELD_MAX: Duration = Duration::from_secs(1);

/// Whether fetch is refused to this client, also after `wait`. It returns at once where fetch is
/// allowed, and as soon as it is.
pub(super) async fn stays_refused(context: &RequestContext, wait: Duration) -> bool {
    if !context.refuses_fetch() {
        return false;
    }
    let engine = &context.broker().engine;
    let (liveness, mut limits) = (engine.liveness.clone(), engine.view.traffic_limits());
    let until = Instant::now() + wait.min(HELD_MAX);
    // Asked again, because the limit may have changed before it was followed.
    while context.refuses_fetch() {
        tokio::select! {
            biased;
            _ = liveness.ended() => return true,
            changed = limits.changed() => {
                if changed.is_err() {
                    return true;
                }
            }
            () = sleep_until(until) => return true,
        }
    }
    false
}
