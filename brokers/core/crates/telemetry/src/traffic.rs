//! What principals and clients take of a broker: bytes, and the time of its threads.
//!
//! Clients choose their client ids, so there may be any number of names. The first
//! [`NAMES_MAX`] are counted by themselves. Where more come, the half that took the least is
//! counted as the rest from then on, so that the largest stay.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// The most names that are counted by themselves.
const NAMES_MAX: usize = 256;
/// A longer name counts as part of the rest.
const NAME_BYTES_MAX: usize = 512;
/// The name of the rest, which no principal has.
const REST: &str = "";

/// What was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// Bytes of Produce requests.
    pub bytes_in: u64,
    /// Bytes of records that were fetched.
    pub bytes_out: u64,
    /// Bytes of requests and answers that are not billed.
    pub unbilled: u64,
    /// For how long threads worked.
    pub busy: Duration,
}

impl Use {
    fn add(&mut self, other: &Self) {
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.unbilled += other.unbilled;
        self.busy += other.busy;
    }

    fn rank(&self) -> (u64, Duration) {
        (self.bytes_in + self.bytes_out + self.unbilled, self.busy)
    }
}

/// What was taken, by name.
#[derive(Debug, Default)]
pub struct Counted(Mutex<BTreeMap<Arc<str>, Use>>);

impl Counted {
    /// Adds to what a name has taken.
    pub fn add(&self, name: &str, used: &Use) {
        let name = if name.len() > NAME_BYTES_MAX { REST } else { name };
        let mut uses = self.0.lock();
        if let Some(known) = uses.get_mut(name) {
            known.add(used);
            return;
        }
        if uses.len() >= NAMES_MAX {
            join_the_least(&mut uses);
        }
        uses.entry(name.into()).or_default().add(used);
    }

    /// What names have taken since the broker started. The rest has an empty name.
    pub fn uses(&self) -> BTreeMap<Arc<str>, Use> {
        self.0.lock().clone()
    }
}

fn join_the_least(uses: &mut BTreeMap<Arc<str>, Use>) {
    let mut ranks: Vec<_> = uses.values().map(Use::rank).collect();
    let (_, median, _) = ranks.select_nth_unstable(NAMES_MAX / 2);
    let (median, mut rest) = (*median, Use::default());
    uses.retain(|name, used| {
        let stays = used.rank() > median && &**name != REST;
        if !stays {
            rest.add(used);
        }
        stays
    });
    uses.insert(REST.into(), rest);
}

/// What is taken of a broker.
#[derive(Debug, Default)]
pub struct Traffic {
    /// By principal.
    pub principals: Counted,
    /// By the client id in the header of requests.
    pub clients: Counted,
}

impl Traffic {
    /// Adds to what a client has taken.
    pub fn add(&self, principal: &str, client_id: &str, used: &Use) {
        self.principals.add(principal, used);
        self.clients.add(client_id, used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_in(bytes_in: u64) -> Use {
        Use { bytes_in, ..Use::default() }
    }

    #[test]
    fn the_largest_stay_and_nothing_is_lost() {
        let counted = Counted::default();
        counted.add("large", &bytes_in(1 << 40));
        let mut total = 1 << 40;
        for number in 0..10_000_u64 {
            counted.add(&format!("client-{number}"), &bytes_in(number));
            total += number;
        }
        counted.add(&"x".repeat(NAME_BYTES_MAX + 1), &bytes_in(7));
        let uses = counted.uses();
        assert!(uses.len() <= NAMES_MAX);
        assert_eq!(uses["large"], bytes_in(1 << 40));
        assert_eq!(uses.values().map(|used| used.bytes_in).sum::<u64>(), total + 7);
    }

    #[test]
    fn names_that_took_the_same_are_the_rest() {
        let counted = Counted::default();
        for number in 0..=NAMES_MAX {
            counted.add(&number.to_string(), &bytes_in(1));
        }
        assert_eq!(counted.uses().keys().map(|name| &**name).collect::<Vec<_>>(), ["", "256"]);
    }
}
