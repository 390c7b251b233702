//! Which share of each of the cluster's limits a broker gets. The controller deals them once a
//! second by what the brokers used. Nothing here waits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use freshet_wire::ids::Incarnation;

/// A broker reports so many limits at a time, those of which it used most.
pub const REPORTED_MAX: usize = 256;
/// So many limits are dealt by use, those of which most is used. The others are shared evenly.
const DEALT_MAX: usize = 256;
/// The least that a broker gets, as a part of an even share: with it a broker begins.
const FLOOR: f64 = 0.1;
/// A broker wants so much more than it used, so that it can use more the next time.
const HEADROOM: f64 = 1.25;
/// What is left of an earlier use after a report of less. Clients that pause use much at a time
/// and then nothing: their broker keeps its share meanwhile.
const KEPT: f64 = 0.8;
/// Whoever used less than this part of a limit did not use it.
const IDLE: f64 = 0.001;

/// Names a limit of the cluster in messages, in the same way in all releases. Names of clients are
/// as long as they please.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LimitId(u64);

impl LimitId {
    /// The id of the limit with these names; `None` is a name that it does not have. Where two
    /// limits have the same id, brokers give of each no more than it says.
    #[must_use]
    pub fn of(names: &[Option<&str>]) -> Self {
        let mut digest = Sha256::new();
        for name in names {
            let length = name.map_or(u64::MAX, |name| name.len() as u64);
            digest.update(length.to_be_bytes());
            digest.update(name.unwrap_or_default());
        }
        let digest = digest.finalize();
        Self(u64::from_be_bytes(*digest.first_chunk().expect("a digest has 32 bytes")))
    }
}

/// How much a broker used of a limit lately.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LimitUse {
    /// The limit.
    pub limit: LimitId,
    /// What it used in a second, as a part of what the whole cluster may use in a second.
    pub used: f64,
    /// Whether its clients had to pause, or were refused something.
    pub is_short: bool,
}

/// What a broker may use of a limit from now on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LimitShare {
    /// The limit.
    pub limit: LimitId,
    /// The part of it, above 0 and at most 1.
    pub part: f64,
}

/// Divides 1 among brokers by the parts that they want. Each gets at least a tenth of an even
/// share, and no more than it wants while another one wants more than it gets. What nobody wants
/// is divided evenly.
#[must_use]
pub fn deal(wants: &[f64]) -> Vec<f64> {
    let floor = FLOOR / wants.len() as f64;
    let mut places: Vec<usize> = (0..wants.len()).collect();
    places.sort_by(|one, other| wants[*one].total_cmp(&wants[*other]));
    let (mut left, mut unserved) = (1.0 - FLOOR, wants.len());
    let mut parts = vec![floor; wants.len()];
    // Who wants least comes first, and leaves the rest to the others.
    for place in places {
        let given = (wants[place] - floor).clamp(0.0, left / unserved as f64);
        parts[place] += given;
        left -= given;
        unserved -= 1;
    }
    let unwanted = left / wants.len() as f64;
    for part in &mut parts {
        *part += unwanted;
    }
    parts
}

/// What a broker is known to need of a limit.
#[derive(Debug, Default)]
struct Need {
    /// What it used in a second; it falls slowly.
    used: f64,
    is_short: bool,
    /// What it was dealt last; 0 before that.
    part: f64,
}

impl Need {
    fn is_idle(&self) -> bool {
        self.used < IDLE && !self.is_short
    }

    /// The part that it wants. Who is short may want anything: more each time, and at once as much
    /// as others that are short.
    fn wants(&self, even: f64) -> f64 {
        let wants = self.used * HEADROOM;
        if self.is_short { wants.max(2.0 * self.part).max(even) } else { wants }
    }
}

/// What a controller knows in its term of the use of limits.
#[derive(Debug, Default)]
pub struct Dealer {
    needs: BTreeMap<LimitId, BTreeMap<Incarnation, Need>>,
    /// Those that have reported. Brokers of earlier releases do not, and know no shares.
    reporters: BTreeSet<Incarnation>,
}

impl Dealer {
    /// Takes note of what a broker used since its last report, about a second ago.
    pub fn note(&mut self, broker: Incarnation, uses: &[LimitUse]) {
        self.reporters.insert(broker);
        for need in self.needs.values_mut().filter_map(|needs| needs.get_mut(&broker)) {
            need.used *= KEPT;
            need.is_short = false;
        }
        for LimitUse { limit, used, is_short } in uses.iter().take(REPORTED_MAX).copied() {
            let need = self.needs.entry(limit).or_default().entry(broker).or_default();
            // Savings let more pass for a while than any share does.
            need.used = need.used.max(used.clamp(0.0, 1.0));
            need.is_short = is_short;
        }
    }

    /// Deals the shares of all limits that are in use. Returns them for each of the live brokers
    /// that reported. Of a limit that is not among them all have even shares.
    pub fn deal(&mut self, live: &BTreeSet<Incarnation>) -> BTreeMap<Incarnation, Vec<LimitShare>> {
        self.reporters.retain(|broker| live.contains(broker));
        self.needs.retain(|_, needs| {
            needs.retain(|broker, need| live.contains(broker) && !need.is_idle());
            !needs.is_empty()
        });
        self.keep_busiest();
        let mut dealt: BTreeMap<_, Vec<LimitShare>> =
            self.reporters.iter().map(|broker| (*broker, Vec::new())).collect();
        let even = 1.0 / live.len().max(1) as f64;
        for (limit, needs) in &mut self.needs {
            let wants: Vec<f64> = live
                .iter()
                .map(|broker| needs.get(broker).map_or(0.0, |need| need.wants(even)))
                .collect();
            for (broker, part) in live.iter().zip(deal(&wants)) {
                if let Some(need) = needs.get_mut(broker) {
                    need.part = part;
                }
                if let Some(shares) = dealt.get_mut(broker) {
                    shares.push(LimitShare { limit: *limit, part });
                }
            }
        }
        dealt
    }

    fn keep_busiest(&mut self) {
        if self.needs.len() <= DEALT_MAX {
            return;
        }
        let busy = |needs: &BTreeMap<_, Need>| {
            let is_short = needs.values().any(|need| need.is_short);
            (is_short, needs.values().map(|need| need.used).sum::<f64>())
        };
        let mut all: Vec<_> =
            self.needs.iter().map(|(limit, needs)| (busy(needs), *limit)).collect();
        all.sort_by(|((short, used), _), ((short_too, used_too), _)| {
            short_too.cmp(short).then(used_too.total_cmp(used))
        });
        for (_, limit) in all.drain(DEALT_MAX..) {
            self.needs.remove(&limit);
        }
    }
}

#[cfg(test)]
#[path = "dealing_tests.rs"]
mod tests;
