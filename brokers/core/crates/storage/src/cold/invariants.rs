//! What holds for every manifest that counts, and for each change from one to the next.
//!
//! A manifest is the only thing that names a partition's objects. What it does not name, the
//! sweeper deletes; what it names wrongly, a reader misses. So each change is looked at before the
//! manifest is put, by whichever job it was made (`freshet_jobs::publish`).

use super::manifest::Manifest;
use freshet_world::invariants::BrokenInvariant;

type Held = Result<(), BrokenInvariant>;

/// All invariants of a manifest, and of the change that led to it.
///
/// # Errors
/// The first one that does not hold.
pub fn check_change(before: &Manifest, after: &Manifest) -> Held {
    check_manifest(after)?;
    offsets_never_go_back(before, after)?;
    only_the_log_start_takes_records_away(before, after)
}

/// All invariants of one manifest.
///
/// # Errors
/// The first one that does not hold.
pub fn check_manifest(manifest: &Manifest) -> Held {
    segments_follow_each_other(manifest)?;
    no_segment_ends_before_the_log_starts(manifest)?;
    offsets_are_within_the_log(manifest)?;
    epochs_ascend(manifest)
}

/// Each segment begins where the one before it ends, and none is empty. A reader looks a segment up
/// by offset: in a hole it would find none and answer that the offset is out of range, and where
/// two overlap it would read one record twice.
fn segments_follow_each_other(manifest: &Manifest) -> Held {
    const NAME: &str = "segments_follow_each_other";
    for segment in &manifest.segments {
        if segment.base_offset >= segment.end_offset {
            let (base, end) = (segment.base_offset, segment.end_offset);
            return Err(BrokenInvariant::new(NAME, format_args!("a segment from {base} to {end}")));
        }
    }
    for pair in manifest.segments.windows(2) {
        if pair[0].end_offset != pair[1].base_offset {
            let (end, base) = (pair[0].end_offset, pair[1].base_offset);
            return Err(BrokenInvariant::new(NAME, format_args!("{base} follows {end}")));
        }
    }
    Ok(())
}

/// Segments that end at or before the log start are gone. One that stayed would be billed, and its
/// object kept, for records that nobody can read.
fn no_segment_ends_before_the_log_starts(manifest: &Manifest) -> Held {
    let first = manifest.segments.first();
    match first.filter(|segment| segment.end_offset <= manifest.log_start) {
        None => Ok(()),
        Some(segment) => Err(BrokenInvariant::new(
            "no_segment_ends_before_the_log_starts",
            format_args!("{} is not after {}", segment.end_offset, manifest.log_start),
        )),
    }
}

/// Segments, the last stable offset and the first dirty offset lie at or below the end of what was
/// split. Beyond it the lanes answer: a takeover adds their batches exactly there, so a segment
/// that reached further would have it add records a second time.
fn offsets_are_within_the_log(manifest: &Manifest) -> Held {
    const NAME: &str = "offsets_are_within_the_log";
    let last = manifest.segments.last().map_or(0, |segment| segment.end_offset);
    for (offset, of) in [
        (last, "the last segment's end"),
        (manifest.last_stable_offset, "the last stable offset"),
        (manifest.first_dirty_offset, "the first dirty offset"),
    ] {
        if offset > manifest.covered_end {
            let end = manifest.covered_end;
            return Err(BrokenInvariant::new(NAME, format_args!("{of}, {offset}, beyond {end}")));
        }
    }
    Ok(())
}

/// Leader epochs ascend, and so do the offsets at which they start. Consumers find by them where a
/// log was cut (`OffsetForLeaderEpoch`, KIP-320); the table is searched by halves.
fn epochs_ascend(manifest: &Manifest) -> Held {
    let ascend = |pair: &[(i32, i64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
    match manifest.epochs.entries().windows(2).find(|pair| !ascend(pair)) {
        None => Ok(()),
        Some(pair) => Err(BrokenInvariant::new("epochs_ascend", format_args!("{pair:?}"))),
    }
}

/// The log start, the end of what was split and the first dirty offset never go back. An end that
/// went back would have a takeover give offsets anew that clients have committed; a log start that
/// went back would promise records whose objects are deleted.
fn offsets_never_go_back(before: &Manifest, after: &Manifest) -> Held {
    for (earlier, later, of) in [
        (before.log_start, after.log_start, "the log start"),
        (before.covered_end, after.covered_end, "the end of what was split"),
        (before.first_dirty_offset, after.first_dirty_offset, "the first dirty offset"),
    ] {
        if later < earlier {
            return Err(BrokenInvariant::new(
                "offsets_never_go_back",
                format_args!("{of} goes from {earlier} to {later}"),
            ));
        }
    }
    Ok(())
}

/// The first segment begins where it began, or at or before the new log start: records go by
/// retention, by DeleteRecords, or by compaction within their segments. Anything else that shortens
/// the list loses what was acknowledged.
fn only_the_log_start_takes_records_away(before: &Manifest, after: &Manifest) -> Held {
    let begins = |manifest: &Manifest| {
        manifest.segments.first().map_or(manifest.covered_end, |segment| segment.base_offset)
    };
    let allowed = begins(before).max(after.log_start);
    // Where all were compacted away, or given up, nothing is left to begin anywhere.
    if after.segments.is_empty() || begins(after) <= allowed {
        return Ok(());
    }
    Err(BrokenInvariant::new(
        "only_the_log_start_takes_records_away",
        format_args!("the first segment begins at {}, and not by {allowed}", begins(after)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cold::segment::Segment;
    use crate::names::ObjectRef;
    use crate::state::epochs::EpochTable;
    use freshet_wire::ids::{Incarnation, PartitionId};

    fn segment(base_offset: i64, end_offset: i64) -> Segment {
        Segment {
            object: ObjectRef { incarnation: Incarnation(1), number: base_offset.cast_unsigned() },
            section_position: 16,
            section_bytes: 100,
            base_offset,
            end_offset,
            first_timestamp: 0,
            max_timestamp: 0,
            bytes: 100,
            written_at_ms: 0,
            compacted: false,
            read: true,
        }
    }

    fn manifest() -> Manifest {
        let mut manifest = Manifest::empty(PartitionId::new(uuid::Uuid::nil(), 0));
        manifest.add_segment(segment(0, 10), 0);
        manifest.add_segment(segment(10, 30), 0);
        manifest.epochs = EpochTable::from_entries(vec![(0, 0), (2, 10)]);
        manifest
    }

    fn broken_by(change: impl FnOnce(&mut Manifest)) -> &'static str {
        let before = manifest();
        let mut after = before.clone();
        change(&mut after);
        check_change(&before, &after).unwrap_err().invariant
    }

    #[test]
    fn what_jobs_do_breaks_none() {
        let before = manifest();
        check_change(&Manifest::empty(before.partition), &before).unwrap();
        let mut after = before.clone();
        after.add_segment(segment(30, 40), 0);
        check_change(&before, &after).unwrap();
        let (mut deleted, mut joined) = (after.clone(), after.clone());
        deleted.start_at(15, 0);
        check_change(&after, &deleted).unwrap();
        deleted.start_at(100, 0);
        check_change(&after, &deleted).unwrap();
        let run = [segment(0, 10).place(), segment(10, 30).place()];
        assert!(joined.replace(&run, Some(segment(0, 30)), 0));
        check_change(&after, &joined).unwrap();
        let mut compacted = after.clone();
        assert!(compacted.replace(&run[..1], None, 0));
        check_change(&after, &compacted).unwrap();
    }

    #[test]
    fn each_one_can_be_broken() {
        let follow = "segments_follow_each_other";
        assert_eq!(broken_by(|manifest| manifest.segments[1].base_offset = 11), follow);
        assert_eq!(broken_by(|manifest| manifest.segments[1].base_offset = 9), follow);
        assert_eq!(broken_by(|manifest| manifest.segments[0].end_offset = 0), follow);
        let (log_start, within) =
            ("no_segment_ends_before_the_log_starts", "offsets_are_within_the_log");
        assert_eq!(broken_by(|manifest| manifest.log_start = 10), log_start);
        assert_eq!(broken_by(|manifest| manifest.last_stable_offset = 31), within);
        assert_eq!(broken_by(|manifest| manifest.covered_end = 29), within);
        let back = vec![(0, 0), (2, 10), (1, 20)];
        assert_eq!(
            broken_by(|manifest| manifest.epochs = EpochTable::from_entries(back)),
            "epochs_ascend"
        );
        let again = "offsets_never_go_back";
        assert_eq!(broken_by(|manifest| manifest.log_start = -1), again);
        let lost = "only_the_log_start_takes_records_away";
        assert_eq!(broken_by(|manifest| manifest.segments = manifest.segments.split_off(1)), lost);
    }
}
