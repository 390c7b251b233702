//! The background jobs of leaders: split, compact, trim, and the deletion of what is not needed.

use super::model::{Action, ClusterModel};
use super::state::{
    BROKERS, ClusterState, Entry, Job, Kind, Lane, MANIFESTS, Manifest, OBJECTS, OFFSETS,
    PARTITIONS, Part, Records, Tenure, bit, brokers, end_of, partitions,
};
use crate::rules::Rule;

pub fn actions(model: &ClusterModel, actions: &mut Vec<Action>) {
    for broker in brokers() {
        actions.push(Action::Split { broker });
        actions.push(Action::DeleteReplaced { broker });
        actions.push(Action::EndJob { broker });
        actions.push(Action::DeleteEntries { broker });
        actions.push(Action::DeleteLane { lane: broker });
        for partition in model.partitions() {
            actions.push(Action::Compact { broker, partition });
            actions.push(Action::Publish { broker, partition });
            actions.push(Action::Checkpoint { broker, partition });
            actions.push(Action::Trim { broker, partition });
        }
    }
}

/// The records of a partition that its leader holds and that are below the fence-checked end.
fn covered_records(state: &ClusterState, broker: u8, partition: u8) -> Records {
    let Some(tenure) = state.tenure(broker, partition) else { return [None; OFFSETS] };
    let lane = state.lane(broker);
    let mut records = tenure.records;
    for (_, entry) in lane.entries_between(lane.covered, lane.written()) {
        if let Kind::Data(offset) = entry.kind
            && entry.partition == partition
        {
            records[usize::from(offset)] = None;
        }
    }
    records
}

/// Begins a job with its object.
fn start(
    model: &ClusterModel,
    state: &mut ClusterState,
    broker: u8,
    compacts: bool,
    contents: [Records; PARTITIONS],
) -> Option<()> {
    let memory = &state.brokers[usize::from(broker)];
    let allowed = model.jobs_max[usize::from(broker)];
    let object = state.store.objects_made;
    if memory.job.is_some() || memory.jobs_begun == allowed || usize::from(object) == OBJECTS {
        return None;
    }
    let mut parts = [Part::Done; PARTITIONS];
    for (part, records) in parts.iter_mut().zip(contents) {
        if end_of(&records) > 0 {
            *part = Part::ObjectPut;
        }
    }
    if parts == [Part::Done; PARTITIONS] {
        return None;
    }
    state.store.contents[usize::from(object)] = contents;
    state.store.objects |= bit(object);
    state.store.objects_made += 1;
    let memory = state.broker_mut(broker);
    memory.jobs_begun += 1;
    memory.job = Some(Job { object, compacts, parts });
    Some(())
}

fn is_moving(model: &ClusterModel, state: &ClusterState, broker: u8, partition: u8) -> bool {
    let tenure = state.tenure(broker, partition);
    let moving = tenure.is_some_and(|tenure| tenure.successor.is_some());
    moving && model.rules.has(Rule::MoveDrainsJobs)
}

/// Puts the records of the lane's partitions into one object.
pub fn split(model: &ClusterModel, state: &mut ClusterState, broker: u8) -> Option<()> {
    let mut contents = [[None; OFFSETS]; PARTITIONS];
    for partition in model.partitions().filter(|n| !is_moving(model, state, broker, *n)) {
        let Some(tenure) = state.tenure(broker, partition) else { continue };
        let below = usize::from(state.manifest(tenure.manifest).covered_end);
        let mut records = covered_records(state, broker, partition);
        records.iter_mut().take(below).for_each(|record| *record = None);
        contents[usize::from(partition)] = records;
    }
    start(model, state, broker, false, contents)
}

/// Puts what a partition's manifest names into an object of its own.
pub fn compact(
    model: &ClusterModel,
    state: &mut ClusterState,
    broker: u8,
    partition: u8,
) -> Option<()> {
    let tenure = state.tenure(broker, partition)?;
    let manifest = state.manifest(tenure.manifest);
    if is_moving(model, state, broker, partition) || manifest.objects == 0 {
        return None;
    }
    let mut contents = [[None; OFFSETS]; PARTITIONS];
    let covered = usize::from(manifest.covered_end);
    let records = &mut contents[usize::from(partition)];
    records[..covered].copy_from_slice(&tenure.records[..covered]);
    start(model, state, broker, true, contents)
}

/// Puts the manifest of a partition that is in the job's object, and writes its install record.
pub fn publish(
    model: &ClusterModel,
    state: &mut ClusterState,
    broker: u8,
    partition: u8,
) -> Option<()> {
    let job = state.brokers[usize::from(broker)].job?;
    if job.parts[usize::from(partition)] != Part::ObjectPut {
        return None;
    }
    if is_moving(model, state, broker, partition) {
        return None;
    }
    let Tenure { epoch, manifest, .. } = state.tenure(broker, partition)?;
    let current = state.manifest(manifest);
    let contents = &state.store.contents[usize::from(job.object)][usize::from(partition)];
    let covered_end = current.covered_end.max(end_of(contents));
    let kept = if job.compacts { 0 } else { current.objects };
    let name = state.store.manifests_made;
    if usize::from(name) == MANIFESTS {
        return None;
    }
    let entry = Entry { partition, epoch, kind: Kind::Install(name) };
    let place = state.append(broker, entry)?;
    let objects = kept | bit(job.object);
    state.store.manifests[usize::from(name)] = Manifest { covered_end, objects };
    state.store.manifests_made += 1;
    set_part(state, broker, partition, Part::Installed { manifest: name, place });
    Some(())
}

fn set_part(state: &mut ClusterState, broker: u8, partition: u8, part: Part) {
    if let Some(job) = &mut state.broker_mut(broker).job {
        job.parts[usize::from(partition)] = part;
    }
}

/// The install records below the fence-checked end are in force.
pub fn apply_covered(state: &mut ClusterState, broker: u8) {
    let Some(job) = state.brokers[usize::from(broker)].job else { return };
    let covered = state.lane(broker).covered;
    for partition in partitions() {
        let Part::Installed { manifest, place } = job.parts[usize::from(partition)] else {
            continue;
        };
        if place >= covered {
            continue;
        }
        let mut replaced = 0;
        if let Some(tenure) = state.tenure_mut(broker, partition).as_mut() {
            let before = tenure.manifest.replace(manifest);
            let (before, now) = (state.manifest(before), state.manifest(Some(manifest)));
            replaced = before.objects & !now.objects;
        }
        let part = if replaced == 0 { Part::Done } else { Part::Replaced { objects: replaced } };
        set_part(state, broker, partition, part);
    }
}

/// Deletes the objects that a job's manifests replaced, but for those that others may need.
pub fn delete_replaced(model: &ClusterModel, state: &mut ClusterState, broker: u8) -> Option<()> {
    let job = state.brokers[usize::from(broker)].job?;
    let mut part = None;
    for partition in partitions() {
        let Part::Replaced { objects } = job.parts[usize::from(partition)] else { continue };
        let own = |name: &u8| {
            let contents = state.store.contents[usize::from(*name)];
            let others = (0u8..).zip(contents).filter(|(other, _)| *other != partition);
            others.map(|(_, records)| end_of(&records)).all(|end| end == 0)
        };
        let shared = model.rules.has(Rule::SharedObjectsGoBySweep);
        let names = (0u8..).take(OBJECTS).filter(|name| objects & bit(*name) != 0);
        let deleted = names.filter(|name| !shared || own(name)).fold(0, |all, n| all | bit(n));
        let current = state.token_is_own(broker) && leads(state, broker, partition);
        if !current && model.rules.has(Rule::CheckBeforeDelete) {
            continue;
        }
        part = Some((partition, deleted));
    }
    let (partition, deleted) = part?;
    state.store.objects &= !deleted;
    set_part(state, broker, partition, Part::Done);
    Some(())
}

/// Whether the broker's epoch of the partition is the one in force.
fn leads(state: &ClusterState, broker: u8, partition: u8) -> bool {
    let record = state.partition(partition);
    let tenure = state.tenure(broker, partition);
    tenure.is_some_and(|tenure| record.leader == broker && record.epoch == tenure.epoch)
}

/// A job ends when nothing is left of it.
pub fn end_job(state: &mut ClusterState, broker: u8) -> Option<()> {
    let job = state.brokers[usize::from(broker)].job?;
    if job.parts != [Part::Done; PARTITIONS] {
        return None;
    }
    state.broker_mut(broker).job = None;
    Some(())
}

/// Whether the lane has an install record of the tenure below `end`.
fn is_installed(lane: &Lane, partition: u8, tenure: Tenure, end: u8) -> bool {
    lane.entries_between(0, end).any(|(_, entry)| {
        entry.partition == partition
            && entry.epoch == tenure.epoch
            && matches!(entry.kind, Kind::Install(_))
    })
}

/// Writes the manifest in force into a successor's own lane.
pub fn checkpoint(state: &mut ClusterState, broker: u8, partition: u8) -> Option<()> {
    let tenure = state.tenure(broker, partition)?;
    let name = tenure.manifest?;
    let lane = state.lane(broker);
    if is_installed(lane, partition, tenure, lane.written()) {
        return None;
    }
    let entry = Entry { partition, epoch: tenure.epoch, kind: Kind::Install(name) };
    state.append(broker, entry).map(|_| ())
}

/// Takes the extents of earlier leaders away once nothing in them is needed.
pub fn trim(
    model: &ClusterModel,
    state: &mut ClusterState,
    broker: u8,
    partition: u8,
) -> Option<()> {
    let tenure = state.tenure(broker, partition)?;
    let lane = state.lane(broker);
    let installed = is_installed(lane, partition, tenure, lane.covered);
    let covered_end = state.manifest(tenure.manifest).covered_end;
    let of_others = (0u8..)
        .zip(tenure.records)
        .filter(|(_, record)| record.is_some_and(|epoch| epoch != tenure.epoch));
    let needed = of_others.into_iter().any(|(offset, _)| offset >= covered_end);
    if tenure.trimmed || needed || !installed {
        return None;
    }
    if model.rules.has(Rule::TrimComparesAndSwaps) && !leads(state, broker, partition) {
        return None;
    }
    let record = state.partition_mut(partition);
    record.extents.iter_mut().take(usize::from(tenure.epoch)).for_each(|extent| *extent = None);
    state.tenure_mut(broker, partition).as_mut()?.trimmed = true;
    Some(())
}

/// Deletes the entries of a live lane whose records are all in objects; the file that follows
/// begins with the manifests of the partitions that the broker leads.
pub fn delete_entries(model: &ClusterModel, state: &mut ClusterState, broker: u8) -> Option<()> {
    let lane = *state.lane(broker);
    if lane.sealed.is_some() || lane.covered == lane.deleted || !model.deletes_entries {
        return None;
    }
    let needed = |(_, entry): (u8, Entry)| {
        let leads = state.tenure(broker, entry.partition).filter(|now| now.epoch == entry.epoch);
        match (leads, entry.kind) {
            (Some(tenure), Kind::Data(offset)) => {
                offset >= state.manifest(tenure.manifest).covered_end
            }
            (Some(_), Kind::Install(_)) => false,
            (None, _) => {
                let record = state.partition(entry.partition);
                let kept = record.extents[usize::from(entry.epoch)].is_some();
                kept && model.rules.has(Rule::MovedPartitionsKeepFiles)
            }
        }
    };
    if lane.entries_between(lane.deleted, lane.covered).any(needed) {
        return None;
    }
    let checkpoint = |n| state.tenure(broker, n).and_then(|now| Some((now.epoch, now.manifest?)));
    let mut checkpoints = [None; PARTITIONS];
    for (place, partition) in checkpoints.iter_mut().zip(partitions()) {
        *place = checkpoint(partition);
    }
    let lane = state.lane_mut(broker);
    lane.deleted = lane.covered;
    lane.checkpoints = checkpoints;
    Some(())
}

/// Deletes a dead lane.
pub fn delete_lane(model: &ClusterModel, state: &mut ClusterState, lane: u8) -> Option<()> {
    let dead = state.lane(lane);
    let written = dead.written();
    if dead.sealed.is_none() || dead.deleted == written {
        return None;
    }
    let names = |partition: u8| {
        let extents = state.partition(partition).extents;
        extents.into_iter().flatten().any(|extent| extent.lane == lane)
    };
    let waits = if model.rules.has(Rule::DeadLaneGoesWithItsLastExtent) {
        model.partitions().any(names)
    } else {
        model.partitions().all(names)
    };
    if waits {
        return None;
    }
    let dead = state.lane_mut(lane);
    dead.deleted = written;
    dead.checkpoints = [None; PARTITIONS];
    Some(())
}

const _: () = assert!(BROKERS < 8 && OBJECTS <= 8, "sets of eight bits");
