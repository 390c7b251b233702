//! Objects and manifests read back as written, and every damage of them is refused.

use std::collections::BTreeMap;

use bytes::Bytes;
use freshet_storage::cold::manifest::{
    AbortedTransaction, DROPPED_KEPT_MS, DroppedSegment, Manifest, REPLACED_KEPT_MS, ReplacedBytes,
};
use freshet_storage::cold::segment::{Segment, SegmentWriter, decode_section};
use freshet_storage::names::ManifestRef;
use freshet_storage::names::ObjectRef;
use freshet_storage::state::epochs::EpochTable;
use freshet_storage::state::producers::{ProducedBatch, Producer, Producers};
use freshet_wire::codec::crc32c;
use freshet_wire::ids::Incarnation;
use freshet_wire::records::{Batches, Tail};

use crate::fixture::{partition, stored};

pub const OBJECT: ObjectRef = ObjectRef { incarnation: Incarnation(3), number: 12 };

/// A manifest with something in every field.
pub fn manifest() -> Manifest {
    let segment = |base_offset: i64| Segment {
        object: OBJECT,
        section_position: 1 << 40,
        section_bytes: 76,
        base_offset,
        end_offset: base_offset + 50,
        first_timestamp: 1_699_999_999_000,
        max_timestamp: 1_700_000_000_000,
        bytes: 1 << 33,
        written_at_ms: 1_700_000_000_500 + base_offset,
        compacted: base_offset == 50,
        read: base_offset == 100,
    };
    let dropped = DroppedSegment {
        bytes: 1 << 34,
        written_at_ms: 1_600_000_000_000,
        max_timestamp: -1,
        dropped_at_ms: 1_700_000_000_600,
    };
    let batch = |first_sequence: i32| ProducedBatch {
        first_sequence,
        last_sequence: first_sequence.wrapping_add(4) & i32::MAX,
        base_offset: 100,
        last_offset: 104,
    };
    let producer = |transaction_first_offset| Producer {
        epoch: 3,
        coordinator_epoch: -1,
        transaction_first_offset,
        last_timestamp_ms: -1,
        batches: [0, i32::MAX - 2].into_iter().map(batch).collect(),
    };
    let producers: Producers =
        [(1, producer(None)), (i64::MAX, producer(Some(0)))].into_iter().collect();
    Manifest {
        partition: partition(7),
        name: ManifestRef { epoch: 4, number: 1 << 35 },
        log_start: 60,
        covered_end: 150,
        last_stable_offset: 120,
        first_dirty_offset: 100,
        segments: vec![segment(50), segment(100)],
        dropped: vec![dropped],
        split_by_day: BTreeMap::from([(1_699_920_000_000, 1 << 35)]),
        replaced: vec![ReplacedBytes { bytes: 7, since_ms: 60_000, until_ms: 120_000 }],
        epochs: EpochTable::from_entries(vec![(1, 60), (4, 110)]),
        aborted: vec![AbortedTransaction { producer_id: 9, first_offset: 61, last_offset: 70 }],
        producers,
        damaged: BTreeMap::from([(59, 61), (110, 112)]),
    }
}

#[test]
fn a_manifest_reads_back_and_every_damage_is_refused() {
    let bytes = manifest().encode();
    assert_eq!(Manifest::decode(&bytes).unwrap(), manifest());
    for at in 0..bytes.len() {
        assert!(Manifest::decode(&bytes.slice(..at)).is_err(), "cut at {at}");
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 0x04;
        // Bytes 6 and 7 are unused.
        assert_eq!(Manifest::decode(&flipped.into()).is_ok(), (6..8).contains(&at), "byte {at}");
    }
    let empty = Manifest::empty(partition(0));
    assert_eq!(Manifest::decode(&empty.encode()).unwrap(), empty);
}

/// Earlier releases did not read records, and wrote neither the flag nor the table of damaged
/// batches.
#[test]
fn a_manifest_of_an_earlier_release_says_that_its_segments_were_not_read() {
    let mut earlier = manifest();
    earlier.segments.iter_mut().for_each(|segment| segment.read = false);
    earlier.damaged.clear();
    let mut bytes = earlier.encode().to_vec();
    bytes.truncate(bytes.len() - 4);
    let checksum = crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(Manifest::decode(&bytes.into()).unwrap(), earlier);
}

#[test]
fn damaged_batches_go_with_the_log_start() {
    let mut manifest = manifest();
    manifest.start_at(60, 1_700_000_000_600);
    assert_eq!(manifest.damaged.len(), 2, "the log begins within the first");
    manifest.start_at(61, 1_700_000_000_600);
    assert_eq!(manifest.damaged, BTreeMap::from([(110, 112)]));
}

#[test]
fn what_retention_let_go_is_remembered_for_four_days() {
    let mut manifest = manifest();
    let (earlier, gone) = (manifest.dropped[0], manifest.segments[0]);
    let now_ms = earlier.dropped_at_ms + DROPPED_KEPT_MS;
    manifest.drop_segments(1, now_ms);
    let dropped = DroppedSegment {
        bytes: gone.bytes,
        written_at_ms: gone.written_at_ms,
        max_timestamp: gone.max_timestamp,
        dropped_at_ms: now_ms,
    };
    assert_eq!(manifest.dropped, [earlier, dropped]);
    assert_eq!(manifest.segments.len(), 1);
    manifest.forget_dropped(now_ms + 1);
    assert_eq!(manifest.dropped, [dropped]);
}

const MINUTE_MS: i64 = 60_000;

/// Two adjacent segments, written in the first and in the third minute.
fn two_segments() -> Manifest {
    let mut manifest = Manifest::empty(partition(0));
    for (number, minute, bytes) in [(0, 0, 100), (1, 2, 50)] {
        let segment = Segment {
            object: ObjectRef { number, ..OBJECT },
            base_offset: 10 * number.cast_signed(),
            end_offset: 10 * number.cast_signed() + 10,
            bytes,
            written_at_ms: minute * MINUTE_MS + 1,
            ..self::manifest().segments[0]
        };
        manifest.add_segment(segment, 0);
    }
    manifest
}

#[test]
fn a_run_is_replaced_where_it_is_still_there_and_nothing_is_lost_between_segments() {
    let mut manifest = two_segments();
    let places: Vec<_> = manifest.segments.iter().map(Segment::place).collect();
    let less = Segment { object: OBJECT, bytes: 30, end_offset: 7, ..manifest.segments[0] };
    assert!(manifest.replace(&places[..1], Some(less), 0));
    assert!(!manifest.replace(&places, Some(less), 0), "the first of the run is gone");
    let spans: Vec<_> =
        manifest.segments.iter().map(|segment| (segment.base_offset, segment.end_offset)).collect();
    assert_eq!(spans, [(0, 7), (7, 20)], "the next segment takes up what was taken off the end");
    assert!(manifest.replace(&[less.place()], None, 0));
    assert_eq!((manifest.segments.len(), manifest.segments[0].base_offset), (1, 0));
    assert_eq!((manifest.covered_end, manifest.bytes()), (20, 50));
    assert_eq!(manifest.split_by_day, BTreeMap::from([(0, 150)]), "for ever what was split");
}

#[test]
fn the_meter_sees_what_was_kept_before_a_run_was_replaced() {
    let mut manifest = two_segments();
    let places: Vec<_> = manifest.segments.iter().map(Segment::place).collect();
    let by = Segment {
        object: OBJECT,
        bytes: 120,
        written_at_ms: 2 * MINUTE_MS + 1,
        ..manifest.segments[1]
    };
    let now_ms = 10 * MINUTE_MS + 7;
    assert!(manifest.replace(&places, Some(by), now_ms));
    let span = |bytes, since: i64, until: i64| ReplacedBytes {
        bytes,
        since_ms: since * MINUTE_MS,
        until_ms: until * MINUTE_MS,
    };
    // 120 bytes count from the third minute on; before there were 100, and until now 150.
    assert_eq!(manifest.replaced, [span(30, 3, 10), span(100, 1, 3)]);
    manifest.forget_dropped(now_ms + REPLACED_KEPT_MS);
    assert_eq!(manifest.replaced, []);
}

#[test]
fn a_manifest_of_a_later_release_says_so() {
    let mut later = manifest().encode().to_vec();
    later[4] = 3;
    let refused = Manifest::decode(&later.into()).unwrap_err().to_string();
    assert!(refused.contains("version 3 is newer"), "{refused}");
}

#[test]
fn names_of_manifests_sort_and_read_back() {
    let names = [(0, 0), (0, 11), (9, 2), (10, 0)];
    let names = names.map(|(epoch, number)| ManifestRef { epoch, number });
    let files = names.map(Manifest::file_name);
    assert!(files.is_sorted());
    assert_eq!(files.each_ref().map(|file| Manifest::parse_file_name(file).unwrap()), names);
    for other in ["", "-", "1-", "draft-00", "1-2-3", "x-1"] {
        assert_eq!(Manifest::parse_file_name(other), None, "{other}");
    }
}

/// An object of two partitions; the second has a chunk and a batch of its own size in another.
fn object() -> (Bytes, Vec<(freshet_wire::ids::PartitionId, Segment)>) {
    let mut writer = SegmentWriter::new(OBJECT);
    writer.add(partition(1), &stored(40, 100), 5);
    writer.add(partition(1), &stored(41, 200), 4);
    writer.add(partition(2), &stored(7, 600 << 10), 4);
    writer.add(partition(2), &stored(8, 2 << 20), 6);
    writer.add(partition(2), &stored(9, 10), 9);
    let (pieces, segments) = writer.finish();
    (pieces.concat().into(), segments)
}

fn section(object: &Bytes, segment: &Segment) -> Bytes {
    let start = usize::try_from(segment.section_position).unwrap();
    object.slice(start..start + segment.section_bytes as usize)
}

#[test]
fn an_object_reads_back_chunk_by_chunk() {
    let (bytes, segments) = object();
    let expected = [(1, 40, vec![2], 5), (2, 7, vec![1, 1, 1], 9)];
    assert_eq!(segments.len(), expected.len());
    for ((id, segment), (index, base, batches_of, written_at_ms)) in segments.iter().zip(expected) {
        assert_eq!((*id, segment.base_offset), (partition(index), base));
        assert_eq!(segment.written_at_ms, written_at_ms, "that of the newest block");
        let chunks = decode_section(&section(&bytes, segment), *id, OBJECT).unwrap();
        assert_eq!(chunks.len(), batches_of.len(), "a chunk is cut at 1 MiB");
        let mut due = base;
        for (chunk, count) in chunks.iter().zip(batches_of) {
            let start = usize::try_from(chunk.position).unwrap();
            let part = bytes.slice(start..start + usize::try_from(chunk.length).unwrap());
            chunk.verify(OBJECT, &part).unwrap();
            assert_eq!(chunk.base_offset, due);
            let batches: Vec<_> = Batches::new(part, Tail::Report).map(Result::unwrap).collect();
            assert_eq!(batches.len(), count);
            due = batches[count - 1].last_offset() + 1;
            assert_eq!(chunk.end_offset, due);
        }
        assert_eq!(segment.end_offset, due);
        assert_eq!(segment.max_timestamp, 1_000 + due - 1);
        assert_eq!(segment.bytes, chunks.iter().map(|chunk| chunk.length).sum::<u64>());
    }
}

#[test]
fn every_damage_of_a_section_or_a_chunk_is_refused() {
    let (bytes, segments) = object();
    let (id, segment) = segments[0];
    let whole = section(&bytes, &segment);
    for at in 0..whole.len() {
        assert!(decode_section(&whole.slice(..at), id, OBJECT).is_err(), "cut at {at}");
        let mut flipped = whole.to_vec();
        flipped[at] ^= 0x20;
        assert!(decode_section(&flipped.into(), id, OBJECT).is_err(), "byte {at}");
    }
    let refused = decode_section(&whole, partition(9), OBJECT).unwrap_err().to_string();
    assert!(refused.contains("is one of"), "{refused}");
    let chunk = decode_section(&whole, id, OBJECT).unwrap()[0];
    let start = usize::try_from(chunk.position).unwrap();
    let part = bytes.slice(start..start + usize::try_from(chunk.length).unwrap());
    for at in 0..part.len() {
        let mut flipped = part.to_vec();
        flipped[at] ^= 1;
        assert!(chunk.verify(OBJECT, &flipped.into()).is_err(), "byte {at}");
    }
    assert!(chunk.verify(OBJECT, &part.slice(1..)).is_err());
}
