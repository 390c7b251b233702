//! Shares that are dealt by use.

use proptest::prelude::*;

use super::*;

const LIMIT: &str = "a limit";

fn id() -> LimitId {
    LimitId::of(&[Some(LIMIT)])
}

fn brokers(count: usize) -> BTreeSet<Incarnation> {
    (1..=count as u64).map(Incarnation).collect()
}

/// Has brokers use as much of a limit as their clients want and their shares allow, for so many
/// seconds. Returns the parts of each second.
fn run(dealer: &mut Dealer, demand: &[f64], seconds: usize) -> Vec<Vec<f64>> {
    let live = brokers(demand.len());
    let even = 1.0 / demand.len() as f64;
    let mut parts = vec![even; demand.len()];
    let mut history = Vec::new();
    for _ in 0..seconds {
        for ((broker, part), wants) in live.iter().zip(&parts).zip(demand) {
            let used = wants.min(*part);
            let reported = LimitUse { limit: id(), used, is_short: wants > part };
            dealer.note(*broker, &[reported]);
        }
        let dealt = dealer.deal(&live);
        let part_of = |broker| {
            let share = dealt[broker].iter().find(|share| share.limit == id());
            share.map_or(even, |share| share.part)
        };
        parts = live.iter().map(part_of).collect();
        history.push(parts.clone());
    }
    history
}

fn assert_near(parts: &[f64], expected: &[f64]) {
    let is_near = |(part, expected): (&f64, &f64)| (part - expected).abs() < 0.01;
    assert!(parts.iter().zip(expected).all(is_near), "{parts:?}, not {expected:?}");
}

proptest! {
    #[test]
    fn the_parts_are_a_whole_and_nobody_has_less_than_the_floor(
        wants in prop::collection::vec(0.0..3.0_f64, 1..=16)
    ) {
        let parts = deal(&wants);
        let floor = FLOOR / wants.len() as f64;
        prop_assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{parts:?}");
        prop_assert!(parts.iter().all(|part| *part >= floor - 1e-9), "{parts:?}");
        // Whoever wants more has no less.
        let pairs = (0..wants.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        for (one, other) in pairs {
            prop_assert!(wants[one] < wants[other] || parts[one] >= parts[other] - 1e-9);
        }
    }

    #[test]
    fn whoever_wants_no_more_than_an_even_share_gets_it(
        wants in prop::collection::vec(0.0..3.0_f64, 1..=16)
    ) {
        let parts = deal(&wants);
        let even = (1.0 - FLOOR) / wants.len() as f64;
        for (part, wants) in parts.iter().zip(&wants) {
            prop_assert!(*part >= wants.min(even) - 1e-9, "{parts:?}");
        }
    }

    #[test]
    fn shares_come_to_what_is_used_and_stay_there(
        demand in prop::collection::vec(0.0..1.0_f64, 2..=16)
    ) {
        // All together want two thirds of the limit.
        let sum = demand.iter().sum::<f64>().max(0.1);
        let demand: Vec<f64> = demand.iter().map(|one| one / sum / 1.5).collect();
        let history = run(&mut Dealer::default(), &demand, 60);
        for parts in &history[40..] {
            for (part, demand) in parts.iter().zip(&demand) {
                prop_assert!(part >= demand, "{parts:?} for {demand:?}");
            }
            let moved = parts.iter().zip(&history[40]).map(|(one, other)| (one - other).abs());
            prop_assert!(moved.fold(0.0, f64::max) < 0.01, "{parts:?}, before {:?}", history[40]);
        }
    }
}

#[test]
fn without_use_shares_are_even() {
    assert_near(&deal(&[0.0; 4]), &[0.25; 4]);
    assert_eq!(deal(&[]), Vec::<f64>::new());
    let mut dealer = Dealer::default();
    let history = run(&mut dealer, &[1.0, 0.0], 3);
    assert_near(&history[2], &[0.95, 0.05]);
    let history = run(&mut dealer, &[0.0, 0.0], 40);
    assert_near(&history[39], &[0.5, 0.5]);
    assert!(dealer.needs.is_empty(), "it is forgotten");
}

#[test]
fn who_is_alone_has_the_most_within_three_seconds_and_keeps_it() {
    let history = run(&mut Dealer::default(), &[9.0, 0.0, 0.0], 20);
    let most = 1.0 - FLOOR * 2.0 / 3.0;
    for parts in &history[2..] {
        assert_near(parts, &[most, FLOOR / 3.0, FLOOR / 3.0]);
    }
}

#[test]
fn those_that_are_short_come_to_the_same_whoever_was_first() {
    let mut dealer = Dealer::default();
    run(&mut dealer, &[9.0, 0.0, 0.0], 10);
    let history = run(&mut dealer, &[9.0, 9.0, 0.1], 10);
    // The third one gets what it wants, and a quarter more.
    for parts in &history[6..] {
        assert_near(parts, &[0.4375, 0.4375, 0.125]);
    }
    // Once the first one has no clients any more, the second one has its part.
    let history = run(&mut dealer, &[0.0, 9.0, 0.0], 30);
    let most = 1.0 - FLOOR * 2.0 / 3.0;
    assert_near(&history[29], &[FLOOR / 3.0, most, FLOOR / 3.0]);
}

#[test]
fn a_client_that_pauses_keeps_its_share() {
    let (mut dealer, live) = (Dealer::default(), brokers(2));
    let second = |dealer: &mut Dealer, used| {
        dealer.note(Incarnation(1), &[LimitUse { limit: id(), used, is_short: false }]);
        dealer.note(Incarnation(2), &[]);
        dealer.deal(&live)[&Incarnation(1)][0].part
    };
    second(&mut dealer, 0.8);
    for _ in 0..20 {
        // Of three seconds one has a batch.
        let parts = [0.0, 0.0, 0.8].map(|used| second(&mut dealer, used));
        assert!(parts.iter().all(|part| *part > 0.75), "{parts:?}");
    }
}

#[test]
fn brokers_that_report_nothing_are_counted_and_sent_nothing() {
    let (mut dealer, live) = (Dealer::default(), brokers(3));
    dealer.note(Incarnation(1), &[LimitUse { limit: id(), used: 1.0, is_short: true }]);
    dealer.note(Incarnation(9), &[]);
    dealer.deal(&live);
    let dealt = dealer.deal(&live);
    assert_eq!(dealt.keys().copied().collect::<Vec<_>>(), [Incarnation(1)]);
    assert!(dealt[&Incarnation(1)][0].part <= 1.0 - FLOOR * 2.0 / 3.0 + 1e-9);
}

#[test]
fn the_busiest_limits_are_dealt_and_no_more() {
    let (mut dealer, live) = (Dealer::default(), brokers(2));
    let limit = |number: usize| LimitId::of(&[Some(&number.to_string())]);
    let uses = |from: usize| {
        let used = |number: usize| 0.1 + number as f64 / 1e4;
        (from..from + REPORTED_MAX)
            .map(|number| LimitUse { limit: limit(number), used: used(number), is_short: false })
            .collect::<Vec<_>>()
    };
    dealer.note(Incarnation(1), &uses(0));
    dealer.note(Incarnation(2), &uses(REPORTED_MAX));
    let dealt = dealer.deal(&live);
    for shares in dealt.values() {
        assert_eq!(shares.len(), DEALT_MAX);
        assert!(shares.iter().all(|share| share.limit != limit(0)));
    }
    // A message with more than any release sends is cut off.
    let mut many = uses(0);
    many.extend(uses(REPORTED_MAX));
    dealer.note(Incarnation(1), &many);
    assert!(dealer.needs.len() <= 2 * REPORTED_MAX);
}

#[test]
fn ids_tell_limits_apart_and_are_the_same_in_all_releases() {
    let alice = LimitId::of(&[Some("producer_byte_rate"), Some("alice"), None]);
    assert_eq!(serde_json::to_string(&alice).unwrap(), "16279044248331083244");
    let others = [
        LimitId::of(&[Some("producer_byte_rate"), None, Some("alice")]),
        LimitId::of(&[Some("producer_byte_rate"), Some("alice"), Some("")]),
        LimitId::of(&[Some("producer_byte_ratealice"), None, None]),
    ];
    assert!(others.iter().all(|other| *other != alice));
}
