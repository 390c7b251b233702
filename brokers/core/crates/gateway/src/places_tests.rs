//! Which brokers get which clients, by what the keeper lists and what their own records say.

use super::*;
use crate::testing::{Start, listed};
use freshet_metadata::schema::IncarnationState;
use freshet_metadata::schema::IncarnationState::{Closed, Fenced, Live, Sealed};

const A: &str = "10.0.0.1:9091";
const B: &str = "10.0.0.2:9091";
const C: &str = "10.0.0.3:9091";

/// The starts of brokers: number, slot, address and state; the zone is the slot's.
fn incarnations(starts: &[(u64, u32, &str, IncarnationState)]) -> Incarnations {
    let mut incarnations = Incarnations::default();
    for (incarnation, slot, link, state) in starts {
        let zone = format!("zone-{slot}");
        let start = Start { incarnation: *incarnation, slot: *slot, link, zone: &zone };
        let (key, value) = start.entry(*state);
        incarnations.set(&key, Some(&value)).unwrap();
    }
    incarnations
}

fn three() -> [BrokerStatus; 3] {
    [listed(2, C), listed(0, A), listed(1, B)]
}

fn links(brokers: Brokers, slot: Slot, preference: &Preference) -> Vec<String> {
    brokers.places(slot, preference).into_iter().map(|place| place.link).collect()
}

fn place(link: &str, incarnation: Option<u64>) -> ServingBroker {
    ServingBroker { link: link.to_owned(), incarnation: incarnation.map(Incarnation) }
}

fn spread(spread: u64) -> Preference<'static> {
    Preference { zone: "", spread }
}

#[test]
fn bootstrapping_clients_are_spread_over_all_brokers() {
    let all = three();
    let brokers = Brokers { listed: &all, incarnations: None };
    let orders = [0, 1, 2, 3].map(|number| links(brokers, Slot::Any, &spread(number)));
    assert_eq!(orders[..3], [[A, B, C], [B, C, A], [C, A, B]]);
    assert_eq!(orders[3], orders[0]);
    assert_eq!(links(brokers, Slot::Any, &spread(u64::MAX)).len(), 3);
}

#[test]
fn brokers_of_the_own_zone_come_first() {
    let all = three();
    let known = incarnations(&[(1, 0, A, Live), (2, 1, B, Live), (3, 2, C, Live)]);
    let brokers = Brokers { listed: &all, incarnations: Some(&known) };
    for number in 0..9 {
        let order = links(brokers, Slot::Any, &Preference { zone: "zone-1", spread: number });
        assert_eq!(order[0], B);
        assert_eq!(order.len(), 3);
    }
    // Of the others, too, each is the first for some.
    let second = |number| {
        links(brokers, Slot::Any, &Preference { zone: "zone-1", spread: number })[1].clone()
    };
    assert_eq!([second(0), second(1)], [A, C]);
    // A zone without a broker, and one that nobody named, change nothing.
    for zone in ["zone-9", ""] {
        let order = links(brokers, Slot::Any, &Preference { zone, spread: 1 });
        assert_eq!(order, [B, C, A]);
    }
}

#[test]
fn a_slot_has_its_own_broker_or_the_same_other_one_at_every_gateway() {
    let all = three();
    let brokers = Brokers { listed: &all, incarnations: None };
    for number in [0, 7] {
        assert_eq!(links(brokers, Slot::Number(1), &spread(number)), [B]);
        assert_eq!(links(brokers, Slot::Number(4), &spread(number)), [B, C, A]);
    }
    let two = [listed(0, A), listed(2, C)];
    let brokers = Brokers { listed: &two, incarnations: None };
    assert_eq!(links(brokers, Slot::Number(1), &spread(0)), [C, A]);
    assert_eq!(links(brokers, Slot::Number(2), &spread(0)), [C]);
    let none = Brokers { listed: &[], incarnations: None };
    assert!(links(none, Slot::Number(1), &spread(0)).is_empty());
}

#[test]
fn ended_brokers_get_no_clients_and_keep_none() {
    let all = three();
    for state in [Fenced, Sealed, Closed] {
        let known = incarnations(&[(1, 0, A, Live), (2, 1, B, state), (3, 2, C, Live)]);
        let brokers = Brokers { listed: &all, incarnations: Some(&known) };
        assert_eq!(links(brokers, Slot::Any, &spread(0)), [A, C]);
        assert_eq!(links(brokers, Slot::Number(1), &spread(0)), [C, A]);
        for incarnation in [Some(2), None] {
            assert!(!brokers.keep(Slot::Any, &place(B, incarnation)));
            assert!(!brokers.keep(Slot::Number(1), &place(B, incarnation)));
        }
        assert!(brokers.keep(Slot::Any, &place(A, Some(1))));
        assert!(brokers.keep(Slot::Number(1), &place(C, Some(3))), "no broker of its own");
    }
    let known = incarnations(&[(1, 0, A, Fenced), (2, 1, B, Fenced), (3, 2, C, Fenced)]);
    let brokers = Brokers { listed: &all, incarnations: Some(&known) };
    assert!(links(brokers, Slot::Any, &spread(0)).is_empty() && brokers.are_listed());
}

#[test]
fn a_newer_broker_at_the_address_is_not_the_ended_one() {
    let all = three();
    let known = incarnations(&[(2, 1, B, Fenced), (9, 1, B, Live), (10, 2, C, Live)]);
    let brokers = Brokers { listed: &all, incarnations: Some(&known) };
    assert_eq!(brokers.places(Slot::Number(1), &spread(0)), [place(B, Some(9))]);
    assert_eq!(brokers.incarnation_at(B), Some(Incarnation(9)));
    assert!(brokers.keep(Slot::Number(1), &place(B, Some(9))));
    assert!(!brokers.keep(Slot::Number(1), &place(B, Some(2))));
    assert!(!brokers.keep(Slot::Number(1), &place(B, Some(1))), "its record is gone");
    // A broker of another slot took the address over: the list is behind.
    let moved = incarnations(&[(2, 1, B, Fenced), (11, 0, B, Live)]);
    let brokers = Brokers { listed: &all, incarnations: Some(&moved) };
    assert_eq!(links(brokers, Slot::Number(1), &spread(0)), [C, A]);
}

#[test]
fn a_client_stays_where_it_is_until_its_slot_has_a_broker_of_its_own() {
    let two = [listed(0, A), listed(2, C)];
    let brokers = Brokers { listed: &two, incarnations: None };
    assert!(brokers.keep(Slot::Number(1), &place(A, None)));
    let all = three();
    let brokers = Brokers { listed: &all, incarnations: None };
    assert!(!brokers.keep(Slot::Number(1), &place(A, None)));
    assert!(brokers.keep(Slot::Number(1), &place(B, None)));
    assert!(brokers.keep(Slot::Any, &place(A, None)));
    assert!(!brokers.keep(Slot::Any, &place("10.0.0.9:9091", None)), "it was replaced");
    let none = Brokers { listed: &[], incarnations: None };
    assert!(none.keep(Slot::Number(1), &place(A, None)), "it says itself that it stops");
}

#[test]
fn a_link_is_still_offered_where_no_other_broker_took_its_address() {
    assert!(place(A, None).is(&place(A, Some(1))));
    assert!(place(A, Some(1)).is(&place(A, Some(1))));
    assert!(!place(A, Some(1)).is(&place(A, Some(2))));
    assert!(!place(A, None).is(&place(B, None)));
}

#[test]
fn records_of_newer_releases_change_nothing_that_is_known() {
    let mut known = incarnations(&[(1, 0, A, Live)]);
    let before = known.clone();
    let (key, _) = Start { incarnation: 1, slot: 0, link: A, zone: "" }.entry(Live);
    known.set(&key, Some(b"{\"v\":9}")).unwrap_err();
    assert_eq!(known, before);
    known.set(&key, None).unwrap();
    assert_eq!(known, Incarnations::default());
}
