//! The background jobs of a leader: split, compact, trim and delete, sweep.

use super::model::{Action, ColdModel};
use super::state::{
    ColdState, DeadLanes, Entry, JOBS, Job, Kind, LANES, Manifest, NAMES, Step, Sweep, bit,
};
use crate::rules::Rule;

pub fn actions(model: &ColdModel, state: &ColdState, actions: &mut Vec<Action>) {
    for broker in (0u8..).take(LANES).skip(1).filter(|broker| state.broker(*broker).leads) {
        actions.push(Action::Start { broker, kind: Kind::Split });
        actions.push(Action::Start { broker, kind: Kind::Compact });
        for slot in (0u8..).take(JOBS) {
            actions.push(Action::Advance { broker, slot });
            actions.push(Action::Delete { broker, slot });
            if model.rules.lacks(Rule::FailedJobDeletesNothing) {
                actions.push(Action::CleanUp { broker, slot });
            }
        }
        actions.push(Action::Trim { broker });
        actions.push(Action::DeleteDeadLanes { broker });
        actions.push(Action::Sweep { broker });
    }
}

/// Begins a job with its object, from the manifest that the broker takes to be in force. A split
/// and a compaction may run at the same time.
pub fn start(model: &ColdModel, state: &mut ColdState, broker: u8, kind: Kind) -> Option<()> {
    let memory = *state.broker(broker);
    let busy = |job: &Job| job.kind == kind && job.step != Step::Applied;
    if memory.jobs.iter().flatten().any(busy) {
        return None;
    }
    let slot = memory.jobs.iter().position(Option::is_none)?;
    let name = (broker - 1) * 2 + 1 + memory.names_used;
    if memory.names_used == model.jobs_max[usize::from(broker)] || usize::from(name) >= NAMES {
        return None;
    }
    let base = state.manifest(memory.manifest);
    let split = bit(base.covered_end) - 1;
    let contents = match kind {
        Kind::Split => (bit(covered_data_end(state, broker)) - 1) & !split,
        Kind::Compact => split,
    };
    if contents == 0 {
        return None;
    }
    state.store.contents[usize::from(name)] = contents;
    state.store.objects |= bit(name);
    let memory = state.broker_mut(broker);
    memory.names_used += 1;
    memory.jobs[slot] = Some(Job { kind, name, base: memory.manifest, step: Step::ObjectPut });
    Some(())
}

/// The manifest that is to follow `current`; `None` where the objects that the job replaces are not
/// in it any more.
fn change(state: &ColdState, job: Job, current: Option<u8>) -> Option<Manifest> {
    let (began, current) = (state.manifest(job.base), state.manifest(current));
    match job.kind {
        Kind::Split => {
            let contents = state.store.contents[usize::from(job.name)];
            let end = u8::BITS - contents.leading_zeros();
            let covered_end = u8::try_from(end).expect("as many as a byte has bits");
            let objects = current.objects | bit(job.name);
            (began.covered_end == current.covered_end).then_some(Manifest { covered_end, objects })
        }
        Kind::Compact => {
            let objects = current.objects & !began.objects | bit(job.name);
            let is_there = current.objects & began.objects == began.objects;
            is_there.then_some(Manifest { objects, ..current })
        }
    }
}

/// One past the highest offset below the fence-checked end, of this lane and those before it.
fn covered_data_end(state: &ColdState, broker: u8) -> u8 {
    let below = (0..broker).map(|lane| (lane, state.lane(lane).sealed.unwrap_or(0)));
    let all = below.chain([(broker, state.lane(broker).covered)]);
    let ends = all.flat_map(|(lane, end)| data_ends(state, lane, end));
    ends.max().unwrap_or(0)
}

fn data_ends(state: &ColdState, lane: u8, end: u8) -> impl Iterator<Item = u8> {
    state.lane(lane).entries_below(end).filter_map(|(_, entry)| match entry {
        Entry::Data(offset) => Some(offset + 1),
        _ => None,
    })
}

/// The next step of a job until its manifest is in force.
pub fn advance(model: &ColdModel, state: &mut ColdState, broker: u8, slot: u8) -> Option<()> {
    let job = state.broker(broker).jobs[usize::from(slot)]?;
    let step = match job.step {
        Step::ObjectPut => return publish(model, state, broker, slot),
        Step::ManifestPut => {
            let place = ColdModel::append(state, broker, Entry::Install(job.name))?;
            Step::InstallWritten(place)
        }
        Step::InstallWritten(place) if state.lane(broker).covered > place => {
            state.broker_mut(broker).manifest = Some(job.name);
            Step::Applied
        }
        Step::InstallWritten(_) | Step::Applied => return None,
    };
    state.broker_mut(broker).jobs[usize::from(slot)] = Some(Job { step, ..job });
    Some(())
}

/// Puts the job's manifest when its turn has come; ends the job where there is nothing to change.
fn publish(model: &ColdModel, state: &mut ColdState, broker: u8, slot: u8) -> Option<()> {
    let memory = *state.broker(broker);
    let job = memory.jobs[usize::from(slot)]?;
    let has_turn = |other: &Job| matches!(other.step, Step::ManifestPut | Step::InstallWritten(_));
    let taken = memory.jobs.iter().flatten().any(has_turn);
    if taken && model.rules.has(Rule::OneManifestChangeAtATime) {
        return None;
    }
    let edits_current = model.rules.has(Rule::EditWhatCounts);
    let base = if edits_current { memory.manifest } else { job.base };
    let changed = change(state, job, base);
    if let Some(manifest) = changed {
        state.store.manifests[usize::from(job.name)] = manifest;
        state.store.existing_manifests |= bit(job.name);
    }
    let next = changed.map(|_| Job { base, step: Step::ManifestPut, ..job });
    state.broker_mut(broker).jobs[usize::from(slot)] = next;
    Some(())
}

/// Deletes what the job's manifest replaces, and ends the job.
pub fn delete(model: &ColdModel, state: &mut ColdState, broker: u8, slot: u8) -> Option<()> {
    let job = state.broker(broker).jobs[usize::from(slot)]?;
    let due = match job.step {
        Step::Applied => state.token_is_own(broker) || model.rules.lacks(Rule::CheckBeforeDelete),
        Step::InstallWritten(_) => model.rules.lacks(Rule::DeleteAfterInstallCovered),
        _ => false,
    };
    if !due {
        return None;
    }
    let manifest = state.store.manifests[usize::from(job.name)];
    let replaced = state.manifest(job.base).objects & !manifest.objects;
    state.store.objects &= !replaced;
    state.store.existing_manifests &= !job.base.map_or(0, bit);
    delete_own_files(model, state, broker, manifest.covered_end);
    state.broker_mut(broker).jobs[usize::from(slot)] = None;
    Some(())
}

/// Deletes the files, from the oldest on, whose records are all in objects.
fn delete_own_files(model: &ColdModel, state: &mut ColdState, broker: u8, covered_end: u8) {
    let lane = state.lane_mut(broker);
    let closed = model.rules.has(Rule::OnlyClosedFilesGo);
    let end = if closed { lane.covered } else { lane.written() };
    let needed = lane.entries_below(lane.written()).find_map(|(file, entry)| match entry {
        Entry::Data(offset) if offset >= covered_end => Some(file),
        _ => None,
    });
    let files = lane.files(end);
    let last = if closed { files.saturating_sub(1) } else { files };
    let deletable = needed.map_or(last, |file| file.min(last));
    lane.files_deleted = lane.files_deleted.max(deletable);
}

/// A job that finds its broker fenced deletes what it made (only with that rule removed).
pub fn clean_up(state: &mut ColdState, broker: u8, slot: u8) -> Option<()> {
    let job = state.broker(broker).jobs[usize::from(slot)]?;
    if state.token_is_own(broker) {
        return None;
    }
    state.store.objects &= !bit(job.name);
    state.store.existing_manifests &= !bit(job.name);
    state.broker_mut(broker).jobs[usize::from(slot)] = None;
    Some(())
}

/// Whether the dead lanes' records are all in objects, and who takes over next would know it.
fn dead_lanes_covered(model: &ColdModel, state: &ColdState, broker: u8) -> bool {
    let own_entry = state.lane(broker).covered > 0;
    let manifest = state.manifest(state.broker(broker).manifest);
    let needed = (0..broker)
        .flat_map(|lane| data_ends(state, lane, state.lane(lane).sealed.unwrap_or(0)))
        .any(|end| end > manifest.covered_end);
    !needed && (own_entry || model.rules.lacks(Rule::TrimAfterOwnCheckpoint))
}

/// Takes the dead lanes out of the extents.
pub fn trim(model: &ColdModel, state: &mut ColdState, broker: u8) -> Option<()> {
    let memory = *state.broker(broker);
    if memory.dead_lanes != DeadLanes::Kept || !dead_lanes_covered(model, state, broker) {
        return None;
    }
    if model.rules.has(Rule::TrimComparesAndSwaps) && state.leader != broker {
        return None;
    }
    state.extents = bit(broker);
    state.broker_mut(broker).dead_lanes = DeadLanes::Trimmed;
    Some(())
}

/// Deletes the dead lanes' files, however long after the trim.
pub fn delete_dead_lanes(model: &ColdModel, state: &mut ColdState, broker: u8) -> Option<()> {
    let untrimmed = model.rules.lacks(Rule::DeleteAfterTrim);
    let next = match state.broker(broker).dead_lanes {
        DeadLanes::Kept if untrimmed && dead_lanes_covered(model, state, broker) => {
            DeadLanes::Deleted
        }
        DeadLanes::Trimmed => DeadLanes::Deleted,
        _ => return None,
    };
    if next == DeadLanes::Deleted {
        for lane in state.lanes.iter_mut().take(usize::from(broker)) {
            lane.files_deleted = lane.files(lane.written());
        }
    }
    state.broker_mut(broker).dead_lanes = next;
    Some(())
}

/// Lists what the manifest in force does not name, checks the token, deletes it.
pub fn sweep(model: &ColdModel, state: &mut ColdState, broker: u8) -> Option<()> {
    let memory = *state.broker(broker);
    let next = match memory.sweep {
        Sweep::Idle if state.swept || !model.sweeps[usize::from(broker)] => return None,
        Sweep::Idle => list(model, state, broker)?,
        Sweep::Listed { objects, manifests }
            if state.token_is_own(broker)
                || model.rules.lacks(Rule::SweepChecksTokenAfterListing) =>
        {
            Sweep::Checked { objects, manifests }
        }
        Sweep::Listed { .. } => return None,
        Sweep::Checked { objects, manifests } => {
            state.store.objects &= !objects;
            state.store.existing_manifests &= !manifests;
            state.swept = true;
            Sweep::Idle
        }
    };
    state.broker_mut(broker).sweep = next;
    Some(())
}

fn list(model: &ColdModel, state: &ColdState, broker: u8) -> Option<Sweep> {
    let memory = state.broker(broker);
    let keeps = model.rules.has(Rule::SweepKeepsOwnJobs);
    let jobs = memory.jobs.iter().flatten().filter(|_| keeps);
    let own = jobs.fold(0, |bits, job| bits | bit(job.name));
    let named = state.manifest(memory.manifest).objects;
    let objects = state.store.objects & !named & !own;
    let manifests = state.store.existing_manifests & !memory.manifest.map_or(0, bit) & !own;
    (objects | manifests != 0).then_some(Sweep::Listed { objects, manifests })
}
