//! Deterministic simulation of the real engine: seeded crashes, pauses, zombies, lost and torn
//! writes, full disks, failing syncs, metadata restored from a backup, and in some seeds damage of
//! what was durable. A failure prints its seed.
//!
//! By hand: `FRESHET_SIM_SEEDS=10000 cargo test --workspace --test simulation -- --nocapture
//! seeds`, or `FRESHET_SIM_SEED=<n>` for one. With `FRESHET_SIM_WITHOUT=<rule>` they run under the
//! rules and faults of that removal, with `FRESHET_SIM_AGAINST=<rule>` under its faults and all
//! rules. `FRESHET_SIM_RECORD=1` records which seed shows what each removed rule does.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the harness outside of the simulated world: environment, wall time, progress"
)]

mod broker;
mod chaos;
mod checker;
mod clients;
mod metadata;
mod run;

use std::time::{Duration, Instant};

use freshet_storage::rules::{Rule, Rules};

use chaos::Profile;
use run::{Outcome, simulate, simulate_hang, simulate_hang_of_all};

/// Wall time that the everyday suite spends on random seeds, in seconds.
const BUDGET_SECONDS: u64 = 20;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The rule that a variable names.
fn named(variable: &str) -> Option<Rule> {
    let name = std::env::var(variable).ok()?;
    let rule = Rule::ALL.into_iter().find(|rule| format!("{rule:?}") == name);
    Some(rule.unwrap_or_else(|| panic!("{variable}: there is no rule {name}")))
}

/// One seed under the rules and faults that the variables ask for.
fn run_seed(seed: u64) -> Outcome {
    let without = named("FRESHET_SIM_WITHOUT");
    let against = without.or(named("FRESHET_SIM_AGAINST"));
    let rules = without.map_or(Rules::full(), Rules::without);
    let profile = against.map_or_else(|| Profile::of_seed(seed), Profile::against);
    simulate(seed, rules, &profile)
}

/// Runs many seeds and lists all that failed, without stopping at the first.
fn survey(first: u64, count: u64) {
    for seed in first..first + count {
        if let Some(violation) = run_seed(seed).violations.first() {
            println!("{seed}: {violation}");
        }
    }
}

fn report(seed: u64, outcome: &Outcome) {
    assert!(
        outcome.violations.is_empty(),
        "seed {seed} failed (run it again with FRESHET_SIM_SEED={seed}):\n{}\n{}",
        outcome.violations.join("\n"),
        outcome.trace.join("\n"),
    );
}

#[test]
fn seeds_lose_nothing_duplicate_nothing_and_reorder_nothing() {
    if let Some(seed) = number("FRESHET_SIM_SEED") {
        tracing_subscriber::fmt().without_time().with_max_level(tracing::Level::INFO).init();
        let outcome = run_seed(seed);
        println!("{}", outcome.trace.join("\n"));
        report(seed, &outcome);
        return;
    }
    let first = number("FRESHET_SIM_FIRST_SEED").unwrap_or(1);
    if let Some(count) = number("FRESHET_SIM_SURVEY") {
        return survey(first, count);
    }
    let count = number("FRESHET_SIM_SEEDS");
    let budget = Duration::from_secs(number("FRESHET_SIM_SECONDS").unwrap_or(BUDGET_SECONDS));
    let started = Instant::now();
    let mut totals = run::Totals::default();
    for seed in first.. {
        let done = seed - first;
        if count.map_or(started.elapsed() >= budget, |count| done >= count) {
            break;
        }
        let outcome = run_seed(seed);
        report(seed, &outcome);
        totals.add(&outcome.totals);
        if done % 100 == 99 {
            println!("{} seeds from {first}: {totals:?}", done + 1);
        }
    }
    println!("{totals:?}");
    assert!(totals.acked > 0 && totals.takeovers > 0 && totals.split_reads > 0, "{totals:?}");
    assert!(totals.reused_files > 0, "no block was written over an old one: {totals:?}");
}

#[test]
fn several_brokers_lose_nothing_duplicate_nothing_and_reorder_nothing() {
    run_several("FRESHET_SIM_BROKERS_SEED", &Profile::of_brokers());
}

#[test]
fn brokers_that_find_out_who_has_died_lose_nothing_and_come_back() {
    run_several("FRESHET_SIM_MEMBERS_SEED", &Profile::of_members());
}

#[test]
fn others_lead_soon_what_a_broker_led_whose_storage_hangs() {
    let mut totals = run::Totals::default();
    // So that the controller is among them.
    for seed in 1..=8 {
        let outcome = simulate_hang(seed);
        report(seed, &outcome);
        totals.add(&outcome.totals);
    }
    println!("{totals:?}");
    assert!(totals.acked > 0 && totals.adoptions >= 8, "{totals:?}");
}

#[test]
fn where_the_storage_of_all_hangs_nobody_is_fenced() {
    for seed in 1..=3 {
        report(seed, &simulate_hang_of_all(seed));
    }
}

/// Runs seeds for a while, or the one that a variable names.
fn run_several(variable: &str, profile: &Profile) {
    if let Some(seed) = number(variable) {
        tracing_subscriber::fmt().without_time().with_max_level(tracing::Level::INFO).init();
        let outcome = simulate(seed, Rules::full(), profile);
        println!("{}", outcome.trace.join("\n"));
        report(seed, &outcome);
        return;
    }
    let budget = Duration::from_secs(number("FRESHET_SIM_SECONDS").unwrap_or(BUDGET_SECONDS));
    let (started, mut totals) = (Instant::now(), run::Totals::default());
    for seed in number("FRESHET_SIM_FIRST_SEED").unwrap_or(1).. {
        if started.elapsed() >= budget {
            break;
        }
        let outcome = simulate(seed, Rules::full(), profile);
        report(seed, &outcome);
        totals.add(&outcome.totals);
    }
    println!("{totals:?}");
    assert!(totals.acked > 0 && totals.split_reads > 0, "{totals:?}");
    assert!(totals.adoptions > 0 && totals.moves > 0, "{totals:?}");
}

/// Among several brokers, too, some seed of the first thousand fails without each of these rules.
#[test]
fn removed_rules_are_found_among_several_brokers() {
    for rule in [
        Rule::SyncBeforeAck,
        Rule::TokenBeforeAck,
        Rule::FenceBeforeSeal,
        Rule::SealOnce,
        Rule::StopAtSealedEnd,
        Rule::SweepTheEnded,
        Rule::IncarnationIsLive,
        Rule::FreshReads,
    ] {
        // Two take over from the same lane where the members themselves find out who has died.
        let profile = match rule {
            Rule::SealOnce => Profile::of_sealers(),
            _ => Profile::of_brokers(),
        };
        let fails =
            |seed: &u64| !simulate(*seed, Rules::without(rule), &profile).violations.is_empty();
        let seed = (1..=1000).find(fails);
        println!("{rule:?}: {seed:?}");
        assert!(seed.is_some(), "{rule:?} was removed and no seed failed");
    }
}

#[test]
fn damage_of_what_was_durable_is_refused() {
    let mut totals = run::Totals::default();
    for seed in (1..=10).map(|number| number * chaos::DAMAGE_EVERY) {
        let outcome = simulate(seed, Rules::full(), &Profile::of_seed(seed));
        report(seed, &outcome);
        totals.add(&outcome.totals);
    }
    assert!(totals.rotted > 0 && totals.refused > 0, "{totals:?}");
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in [3, 11, 12] {
        for profile in [Profile::of_seed(seed), Profile::of_brokers(), Profile::of_members()] {
            let first = simulate(seed, Rules::full(), &profile);
            let second = simulate(seed, Rules::full(), &profile);
            assert_eq!(first.trace, second.trace, "seed {seed}");
            assert_eq!(first.totals, second.totals, "seed {seed}");
        }
    }
}

/// Each rule is necessary: without it some seed fails.
mod removed_rules {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};
    use std::sync::Mutex;

    use super::*;

    /// How many seeds are tried where the recorded one no longer fails: a change of the engine
    /// gives every seed another history.
    const SEEDS: u64 = 100;
    /// How many seeds are tried for a record before the rule counts as unnecessary.
    const SEEDS_FOR_RECORD: u64 = 2000;

    /// The rules, each with a seed that fails without it, one per line. `make test-all PART=engine`
    /// writes the file.
    fn file() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulation/removed_rules.txt")
    }

    fn recorded() -> BTreeMap<String, u64> {
        let text = std::fs::read_to_string(file()).expect("the file of recorded seeds");
        let line = |line: &str| {
            let (rule, seed) = line.split_once(' ')?;
            Some((rule.to_owned(), seed.parse().ok()?))
        };
        let read = |text| line(text).unwrap_or_else(|| panic!("not a rule and a seed: {text}"));
        text.lines().map(read).collect()
    }

    /// One at a time: the tests run beside each other.
    fn record(rule: Rule, seed: u64) {
        static WRITING: Mutex<()> = Mutex::new(());
        let _writing = WRITING.lock().expect("nobody panicked while writing");
        let mut all = recorded();
        all.insert(format!("{rule:?}"), seed);
        all.retain(|name, _| Rule::ALL.iter().any(|rule| format!("{rule:?}") == *name));
        let lines: Vec<String> = all.iter().map(|(rule, seed)| format!("{rule} {seed}")).collect();
        std::fs::write(file(), lines.join("\n") + "\n").expect("the file of recorded seeds");
    }

    /// Whether a seed fails without the rule. With it, it must hold.
    fn shows(rule: Rule, seed: u64) -> bool {
        let profile = Profile::against(rule);
        if simulate(seed, Rules::without(rule), &profile).violations.is_empty() {
            return false;
        }
        let outcome = simulate(seed, Rules::full(), &profile);
        assert!(
            outcome.violations.is_empty(),
            "{rule:?}: seed {seed} fails with all rules too (run it again with \
             FRESHET_SIM_AGAINST={rule:?} FRESHET_SIM_SEED={seed}):\n{}\n{}",
            outcome.violations.join("\n"),
            outcome.trace.join("\n"),
        );
        true
    }

    fn is_found(rule: Rule) {
        let shown = if number("FRESHET_SIM_RECORD").is_some() {
            let shown = (1..=SEEDS_FOR_RECORD).find(|seed| shows(rule, *seed));
            shown.inspect(|seed| record(rule, *seed))
        } else {
            let known = recorded().get(&format!("{rule:?}")).copied();
            assert!(known.is_some(), "no seed is recorded for {rule:?}: make test-all PART=engine");
            known.into_iter().chain(1..=SEEDS).find(|seed| shows(rule, *seed))
        };
        let shown = shown.unwrap_or_else(|| {
            panic!(
                "{rule:?} was removed and no seed failed; `make test-all PART=engine` tries \
                 {SEEDS_FOR_RECORD} and records which do"
            )
        });
        println!("{rule:?}: seed {shown}");
    }

    macro_rules! removals {
        ($($name:ident: $rule:ident;)*) => {$(
            #[test]
            fn $name() {
                is_found(Rule::$rule);
            }
        )*};
    }

    removals! {
        ack_before_sync_is_found: SyncBeforeAck;
        ack_without_token_is_found: TokenBeforeAck;
        seal_without_fence_is_found: FenceBeforeSeal;
        seal_without_copies_is_found: SealUnsureBlocks;
        reading_past_the_sealed_end_is_found: StopAtSealedEnd;
        taking_a_gap_for_an_end_is_found: GapIsDamage;
        counting_blocks_of_a_former_life_is_found: CountWhatIsDue;
        going_on_after_a_failed_sync_is_found: UnknownMeansStop;
        deleting_without_a_check_is_found: CheckBeforeDelete;
        using_a_manifest_before_its_install_is_found: InstallBeforeUse;
        changing_a_manifest_that_counts_no_more_is_found: EditWhatCounts;
        sweeping_objects_that_are_being_made_is_found: KeepNewObjects;
        reading_a_file_that_is_used_again_is_found: ForgetBeforeReuse;
        reading_what_was_removed_is_found: ForgetRemoved;
        metadata_writes_of_the_dead_are_found: IncarnationIsLive;
        stale_answers_to_fresh_reads_are_found: FreshReads;
        acking_a_duplicate_early_is_found: DuplicateWaits;
        starting_without_a_scan_is_found: ScanStorageAtStart;
    }
}
