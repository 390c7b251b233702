//! Runs the checker and asserts its result.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// Explores every state: no safety property may be broken, every interesting state is reached.
pub fn assert_holds<M>(model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let failures = HasDiscoveries::AnyOf(safety_properties(&model));
    let checker = model.checker().finish_when(failures).spawn_bfs().join();
    println!("{} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
    assert!(checker.is_done(), "the checker left states unexplored");
}

/// Explores until the property is broken, and fails when no state breaks it.
pub fn assert_breaks<M>(model: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let discovery = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = model.checker().finish_when(discovery).spawn_bfs().join();
    println!("{} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    let path = checker.assert_any_discovery(property);
    let steps: Vec<String> = path.into_actions().iter().map(|step| format!("{step:?}")).collect();
    println!("{property}:\n  {}", steps.join("\n  "));
}

fn safety_properties<M: Model>(model: &M) -> BTreeSet<&'static str> {
    let properties = model.properties();
    let always = properties.iter().filter(|p| p.expectation == Expectation::Always);
    always.map(|p| p.name).collect()
}
