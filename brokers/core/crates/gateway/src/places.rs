//! Which brokers of a cluster serve, and which of them a client is linked to.

use std::sync::Arc;

use super::incarnations::{BrokerStart, Incarnations};
use freshet_metadata::schema::cell::BrokerStatus;
use freshet_wire::ids::Incarnation;

/// The broker of a cluster that a client connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    /// Any broker: the client bootstraps.
    Any,
    /// The broker of this slot.
    Number(u32),
}

/// The cluster and the broker that a client connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub cluster: Arc<str>,
    pub slot: Slot,
}

/// A broker to which clients can be linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServingBroker {
    /// Where it takes links.
    pub link: String,
    /// Its incarnation, where that is known.
    pub incarnation: Option<Incarnation>,
}

impl ServingBroker {
    /// Whether this is still the same broker, by what is known now.
    pub(super) fn is(&self, now: &ServingBroker) -> bool {
        let same_start = self.incarnation.is_none() || self.incarnation == now.incarnation;
        self.link == now.link && same_start
    }
}

/// Which of several brokers a bootstrapping client gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preference<'a> {
    /// The zone whose brokers come first; empty: none.
    pub zone: &'a str,
    /// A random number, which spreads clients over brokers.
    pub spread: u64,
}

/// The brokers of a cluster.
#[derive(Debug, Clone, Copy)]
pub(super) struct Brokers<'a> {
    /// Those that the keeper says serve; none unless the cluster runs.
    pub listed: &'a [BrokerStatus],
    /// What the cluster's own metadata says about them, where it is watched.
    pub incarnations: Option<&'a Incarnations>,
}

/// A broker that serves.
struct Server<'a> {
    slot: u32,
    link: &'a str,
    start: Option<(Incarnation, &'a BrokerStart)>,
}

impl Server<'_> {
    fn place(&self) -> ServingBroker {
        let incarnation = self.start.map(|(incarnation, _)| incarnation);
        ServingBroker { link: self.link.to_owned(), incarnation }
    }

    fn is_in(&self, zone: &str) -> bool {
        !zone.is_empty() && self.start.is_some_and(|(_, start)| start.zone == zone)
    }
}

impl<'a> Brokers<'a> {
    /// Whether the keeper says that there are any.
    pub(super) fn are_listed(&self) -> bool {
        !self.listed.is_empty()
    }

    /// The brokers that serve a client of a slot, the one to try first in front.
    ///
    /// A slot has its own broker alone. Where that is missing all others serve its clients, and
    /// every gateway begins with the same one.
    pub(super) fn places(&self, slot: Slot, preference: &Preference) -> Vec<ServingBroker> {
        let mut servers: Vec<Server> = self.servers().collect();
        servers.sort_by_key(|server| server.slot);
        match slot {
            Slot::Any => {
                let (near, far): (Vec<_>, Vec<_>) =
                    servers.iter().partition(|server| server.is_in(preference.zone));
                let groups = [near, far].into_iter();
                groups.flat_map(|group| places_from(&group, preference.spread)).collect()
            }
            Slot::Number(number) => match servers.iter().find(|server| server.slot == number) {
                Some(own) => vec![own.place()],
                None => places_from(&servers.iter().collect::<Vec<_>>(), number.into()),
            },
        }
    }

    /// Whether a client of a slot may stay at the broker that it was linked to: not where that
    /// broker has ended or was replaced, and not where the slot has a broker of its own by now,
    /// since a client cannot see that it has come to another one.
    pub(super) fn keep(&self, slot: Slot, place: &ServingBroker) -> bool {
        let ended = self
            .incarnations
            .is_some_and(|incarnations| incarnations.has_ended(&place.link, place.incarnation));
        if ended {
            return false;
        }
        if !self.are_listed() {
            return true;
        }
        let elsewhere = match slot {
            Slot::Any => false,
            Slot::Number(number) => {
                self.servers().any(|server| server.slot == number && server.link != place.link)
            }
        };
        !elsewhere && self.listed.iter().any(|broker| broker.link == place.link)
    }

    /// The incarnation of the broker that takes links at an address, where that is known.
    pub(super) fn incarnation_at(&self, link: &str) -> Option<Incarnation> {
        let newest = self.incarnations?.newest_at(link);
        newest.map(|(incarnation, _)| incarnation)
    }

    /// Those that are listed and have not ended, as far as that is known.
    fn servers(&self) -> impl Iterator<Item = Server<'a>> {
        let incarnations = self.incarnations;
        self.listed.iter().filter_map(move |broker| {
            let start = incarnations.and_then(|incarnations| incarnations.newest_at(&broker.link));
            // An address at which another slot's broker started is not this one's any more.
            let serves = start.is_none_or(|(_, start)| start.lives && start.slot == broker.slot);
            serves.then_some(Server { slot: broker.slot, link: &broker.link, start })
        })
    }
}

/// All of these brokers, beginning with the one that a number falls on.
fn places_from(servers: &[&Server], number: u64) -> Vec<ServingBroker> {
    let count = servers.len().max(1) as u64;
    let first = usize::try_from(number % count).expect("it is below the number of brokers");
    let (before, behind) = servers.split_at(first);
    behind.iter().chain(before).map(|server| server.place()).collect()
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
