//! Which share of the cluster's limits this broker gives: what its controller dealt lately, or as
//! much as every other broker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::dealing::{LimitId, LimitShare};
use freshet_metadata::schema::IncarnationState;
use freshet_metadata::view::MetadataView;

/// What was dealt holds for so long. The controller deals every second.
const DEALT_FOR: Duration = Duration::from_secs(3);

/// The share that a broker has of one limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BrokerShare {
    /// The part that it gives, above 0 and at most 1.
    pub part: f64,
    /// The part that each broker gave if all gave the same.
    pub even: f64,
}

impl BrokerShare {
    /// That of a broker that is the only one.
    pub const WHOLE: Self = Self { part: 1.0, even: 1.0 };

    /// The part at which a debt is paid. Whoever is in debt has an even share in a few seconds.
    #[must_use]
    pub fn paying(self) -> f64 {
        self.part.max(self.even)
    }
}

impl Default for BrokerShare {
    fn default() -> Self {
        Self::WHOLE
    }
}

type Parts = BTreeMap<LimitId, f64>;

/// The shares of a broker.
pub struct Shares {
    view: Arc<MetadataView>,
    dealt: Mutex<Option<(Instant, Arc<Parts>)>>,
}

/// The shares of a broker at one moment.
pub(crate) struct SharesNow {
    even: f64,
    dealt: Option<Arc<Parts>>,
}

impl SharesNow {
    /// The share of a limit.
    pub(crate) fn of_broker(&self, limit: LimitId) -> BrokerShare {
        let dealt = self.dealt.as_ref().and_then(|parts| parts.get(&limit).copied());
        BrokerShare { part: dealt.unwrap_or(self.even), even: self.even }
    }
}

impl Shares {
    /// Those of a broker of a cluster, of which nothing was dealt yet.
    #[must_use]
    pub fn new(view: Arc<MetadataView>) -> Self {
        Self { view, dealt: Mutex::default() }
    }

    /// Takes what the controller dealt. It holds for three seconds.
    pub(crate) fn set(&self, dealt: Vec<LimitShare>) {
        let part = |part: f64| part.clamp(f64::EPSILON, 1.0);
        let parts = dealt.into_iter().map(|share| (share.limit, part(share.part))).collect();
        *self.dealt.lock() = Some((Instant::now(), Arc::new(parts)));
    }

    /// The share of a limit as of now.
    pub(crate) fn of_broker(&self, limit: LimitId) -> BrokerShare {
        self.now().of_broker(limit)
    }

    /// The shares of all limits as of now.
    pub(crate) fn now(&self) -> SharesNow {
        let snapshot = self.view.snapshot();
        let states = snapshot.incarnations.values().map(|stored| stored.record.state);
        let live = states.filter(|state| *state == IncarnationState::Live).count().max(1);
        let dealt = self.dealt.lock().clone();
        let fresh = dealt.filter(|(at, _)| live > 1 && at.elapsed() <= DEALT_FOR);
        SharesNow { even: 1.0 / live as f64, dealt: fresh.map(|(_, parts)| parts) }
    }
}
