//! A controller's sweep: list the objects, ask the leaders what they need, compare, delete.

use super::model::ClusterModel;
use super::state::{ClusterState, OBJECTS, PARTITIONS, Part, Sweep, bit};
use crate::rules::Rule;

pub fn list(model: &ClusterModel, state: &mut ClusterState) -> Option<()> {
    if !model.sweeps || state.sweep != Sweep::Idle || state.store.objects == 0 {
        return None;
    }
    let listed = state.store.objects;
    state.sweep = Sweep::Asking { listed, named: 0, epochs: [None; PARTITIONS] };
    Some(())
}

/// A broker answers what its manifests name and its jobs make.
pub fn ask(model: &ClusterModel, state: &mut ClusterState, broker: u8) -> Option<()> {
    let Sweep::Asking { listed, mut named, mut epochs } = state.sweep else { return None };
    let memory = &state.brokers[usize::from(broker)];
    for (tenure, epoch) in memory.tenures.iter().zip(&mut epochs) {
        let Some(tenure) = tenure else { continue };
        *epoch = Some(tenure.epoch);
        named |= state.manifest(tenure.manifest).objects;
    }
    if let Some(job) = memory.job {
        let unapplied = |part| matches!(part, Part::ObjectPut | Part::Installed { .. });
        let making = job.parts.into_iter().any(unapplied);
        if making && model.rules.has(Rule::SweepKeepsWhatIsMade) {
            named |= bit(job.object);
        }
        for (part, tenure) in job.parts.into_iter().zip(memory.tenures) {
            let Part::Installed { manifest, .. } = part else { continue };
            if model.rules.lacks(Rule::SweepKeepsCoveredManifests) {
                let before = state.manifest(tenure.and_then(|tenure| tenure.manifest)).objects;
                let now = state.manifest(Some(manifest)).objects;
                named = named & !(before & !now) | now;
            }
        }
    }
    let asking = Sweep::Asking { listed, named, epochs };
    if asking == state.sweep {
        return None;
    }
    state.sweep = asking;
    Some(())
}

/// Compares, after the answers, that each partition's leader is the one that answered.
pub fn compare(model: &ClusterModel, state: &mut ClusterState) -> Option<()> {
    let Sweep::Asking { listed, named, epochs } = state.sweep else { return None };
    let current = model
        .partitions()
        .all(|partition| epochs[usize::from(partition)] == Some(state.partition(partition).epoch));
    let answered = model.partitions().all(|n| epochs[usize::from(n)].is_some());
    let passes = if model.rules.has(Rule::SweepComparesLeaders) { current } else { answered };
    if !passes {
        return None;
    }
    state.sweep = Sweep::Deleting { objects: listed & !named };
    Some(())
}

pub fn delete(state: &mut ClusterState) -> Option<()> {
    let Sweep::Deleting { objects } = state.sweep else { return None };
    state.store.objects &= !objects;
    state.sweep = Sweep::Done;
    Some(())
}

const _: () = assert!(OBJECTS <= 8, "sets of eight bits");
