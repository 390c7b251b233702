//! What the brokers of a cluster say to each other.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use freshet_quota::dealing::{LimitShare, LimitUse};
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
/// [`FromController::Heard`]. Brokers of two releases follow each other during a roll-out: what a
/// release adds, others pass over, and it has a value for where it is absent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pulse {
    /// It is about to stop, and others are to take over what it leads.
    pub(crate) leaves: bool,
    /// How its storage does. Earlier releases do not say it: they are taken to wait for nothing.
    #[serde(default)]
    pub(crate) storage: Option<StorageReport>,
    /// What it used of the cluster's limits since it said so last. It is answered by
    /// [`FromController::Shares`], which earlier releases do not know: they do not say this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) used: Option<Vec<LimitUse>>,
}

/// What a broker says of its storage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageReport {
    /// For how long the oldest write that storage was given is not durable, in milliseconds; 0
    /// where there is none.
    pub pending_ms: u64,
    /// How long ago a write was durable that took a second at most, in milliseconds; `None` where
    /// none was yet.
    pub quick_write_ms: Option<u64>,
}

impl StorageReport {
    /// A report of times as they are measured.
    #[must_use]
    pub fn new(pending: Duration, quick_write: Option<Duration>) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self { pending_ms: ms(pending), quick_write_ms: quick_write.map(ms) }
    }
}

/// What a controller says to a broker that follows it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromController {
    /// It has heard a pulse.
    Heard,
    /// The broker has something to do.
    Do(Order),
    /// What the broker may use of the cluster's limits from now on.
    Shares(Vec<LimitShare>),
    /// The broker may stop: it leads nothing any more, or nobody can take over what it leads.
    Released,
    /// The broker is to write something, so that its pulses show whether storage works. It is sent
    /// only to who says how its storage does: earlier releases cannot read it.
    Prove,
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

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_quota::dealing::LimitId;

    /// The brokers of a cluster have two releases while it is upgraded.
    #[test]
    fn a_pulse_of_an_earlier_release_says_only_what_that_knows() {
        let pulse: Pulse = serde_json::from_str(r#"{"leaves":true}"#).unwrap();
        assert!(pulse.leaves);
        assert_eq!((pulse.storage, pulse.used), (None, None));
    }

    #[test]
    fn an_earlier_release_reads_a_pulse_that_says_more() {
        #[derive(Deserialize)]
        struct EarlierPulse {
            leaves: bool,
        }
        let storage = Some(StorageReport { pending_ms: 1, quick_write_ms: None });
        let used = Some(vec![LimitUse { limit: LimitId::of(&[]), used: 0.5, is_short: true }]);
        let pulse = Pulse { leaves: true, storage, used: used.clone() };
        let text = serde_json::to_string(&pulse).unwrap();
        assert!(serde_json::from_str::<EarlierPulse>(&text).unwrap().leaves);
        let pulse: Pulse = serde_json::from_str(&text).unwrap();
        assert_eq!((pulse.storage, pulse.used), (storage, used));
    }
}
