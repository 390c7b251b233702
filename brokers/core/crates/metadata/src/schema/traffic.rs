//! Limits of what clients of a cluster may produce and fetch, which whoever runs the service sets.

use serde::{Deserialize, Serialize};

use super::Record;

/// `produce_suspension`: brokers refuse the records of all but the service itself. The key and the
/// field `reason` are older than `fetch`; a release that does not know `fetch` refuses produce
/// alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalRecord {
    /// The reason, which producers get as the error's text.
    pub reason: String,
    /// Whether fetch is refused, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fetch: bool,
}

impl Record for RefusalRecord {
    const KIND: &'static str = "refusal";
}

/// `throttle`: all clients of the cluster but the service itself produce and fetch so many bytes a
/// second together. A release that does not know the key does not slow them down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThrottleRecord {
    /// The reason, for whoever looks at the cluster.
    pub reason: String,
    /// Bytes a second of the whole cluster; above 0.
    pub bytes_per_s: u64,
}

impl Record for ThrottleRecord {
    const KIND: &'static str = "throttle";

    fn check(&self) -> Result<(), String> {
        if self.bytes_per_s == 0 {
            return Err("a rate of 0 bytes a second".to_owned());
        }
        Ok(())
    }
}

/// What clients of a cluster may produce and fetch. The service itself is never limited, unless it
/// asks on behalf of somebody who pays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TrafficLimit {
    /// Produce is refused.
    RefuseProduce {
        /// Why, for clients.
        reason: String,
    },
    /// Produce and fetch are refused.
    Refuse {
        /// Why, for clients.
        reason: String,
    },
    /// Produce and fetch are slowed down.
    Throttle {
        /// Why.
        reason: String,
        /// Bytes a second of both together, of the whole cluster; above 0.
        bytes_per_s: u64,
    },
}

impl TrafficLimit {
    /// The limit that follows from what is stored.
    #[must_use]
    pub fn of(refusal: Option<RefusalRecord>, throttle: Option<ThrottleRecord>) -> Option<Self> {
        match (refusal, throttle) {
            (Some(RefusalRecord { reason, fetch: true }), _) => Some(Self::Refuse { reason }),
            (Some(RefusalRecord { reason, .. }), _) => Some(Self::RefuseProduce { reason }),
            (None, Some(ThrottleRecord { reason, bytes_per_s })) => {
                Some(Self::Throttle { reason, bytes_per_s })
            }
            (None, None) => None,
        }
    }

    /// What is stored for a limit, or for none.
    #[must_use]
    pub fn records(limit: Option<&Self>) -> (Option<RefusalRecord>, Option<ThrottleRecord>) {
        let refusal = |reason: &str, fetch| RefusalRecord { reason: reason.to_owned(), fetch };
        match limit {
            Some(Self::RefuseProduce { reason }) => (Some(refusal(reason, false)), None),
            Some(Self::Refuse { reason }) => (Some(refusal(reason, true)), None),
            Some(Self::Throttle { reason, bytes_per_s }) => {
                let (reason, bytes_per_s) = (reason.clone(), *bytes_per_s);
                (None, Some(ThrottleRecord { reason, bytes_per_s }))
            }
            None => (None, None),
        }
    }

    /// Why there is a limit.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::RefuseProduce { reason }
            | Self::Refuse { reason }
            | Self::Throttle { reason, .. } => reason,
        }
    }

    /// Whether produce is refused.
    #[must_use]
    pub fn refuses_produce(&self) -> bool {
        matches!(self, Self::RefuseProduce { .. } | Self::Refuse { .. })
    }

    /// Whether fetch is refused.
    #[must_use]
    pub fn refuses_fetch(&self) -> bool {
        matches!(self, Self::Refuse { .. })
    }

    /// The bytes a second to which produce and fetch are slowed down together, if they are.
    #[must_use]
    pub fn throttle_bytes_per_s(&self) -> Option<u64> {
        match self {
            Self::Throttle { bytes_per_s, .. } => Some(*bytes_per_s),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_for_a_limit_is_read_as_that_limit() {
        let reason = || "why".to_owned();
        for limit in [
            None,
            Some(TrafficLimit::RefuseProduce { reason: reason() }),
            Some(TrafficLimit::Refuse { reason: reason() }),
            Some(TrafficLimit::Throttle { reason: reason(), bytes_per_s: 7 }),
        ] {
            let (refusal, throttle) = TrafficLimit::records(limit.as_ref());
            assert_eq!(TrafficLimit::of(refusal, throttle), limit);
        }
    }

    #[test]
    fn a_refusal_goes_before_a_throttle() {
        let (_, throttle) = TrafficLimit::records(Some(&TrafficLimit::Throttle {
            reason: "slow".to_owned(),
            bytes_per_s: 7,
        }));
        let refusal = RefusalRecord { reason: "none".to_owned(), fetch: false };
        let limit = TrafficLimit::of(Some(refusal), throttle);
        assert_eq!(limit, Some(TrafficLimit::RefuseProduce { reason: "none".to_owned() }));
    }
}
