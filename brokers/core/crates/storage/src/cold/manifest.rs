//! A partition's manifest: its segments, and what the partition remembers at exactly their end. It
//! is immutable, and counts only once its install record is durable in the lane.
//!
//! Format version 2, little-endian: magic `FRMF`, version `u16`, zero `u16`, CRC-32C `u32` over all
//! that follows; topic id (16), partition `i32`, epoch `i32`, number `u64`, log start `i64`,
//! covered end `i64`, last stable offset `i64`, first dirty offset `i64`; then, each behind a `u32`
//! count: segments (object incarnation `u64`, object number `u64`, section position `u64`, section
//! bytes `u32`, flags `u32`: 1 for compacted, 2 for read; base offset `i64`, end offset `i64`,
//! largest timestamp `i64`, bytes `u64`, when its last block was laid out in ms `i64`, largest
//! timestamp of its first batch `i64`), segments that retention let go within [`DROPPED_KEPT_MS`]
//! (bytes `u64`, when its last block was laid out `i64`, largest timestamp `i64`, when it was let
//! go `i64`), what was split by days (first millisecond of the day `i64`, bytes `u64`), bytes that
//! rewriting let go (bytes `u64`, since `i64`, until `i64`), epochs (epoch `i32`, start offset
//! `i64`), aborted transactions (producer `i64`, first offset `i64`, last offset `i64`), producers
//! (id `i64`, epoch `i16`, coordinator epoch `i32`, first offset of the open transaction or -1
//! `i64`, last timestamp `i64`, `u8` count of batches, each first sequence `i32`, last sequence
//! `i32`, base offset `i64`, last offset `i64`), damaged batches (first offset `i64`, offset of the
//! next one `i64`). Where an earlier release wrote it, the last of these is missing.
//!
//! Version 1, which is read, lacks the first dirty offset (0), flags (0), timestamps of first
//! batches (the segment's largest), and the two tables of the meter (what was split is what the
//! segments and those let go add up to).

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};

use super::ColdError;
use super::segment::{Segment, SegmentPlace};
use crate::names::{ManifestRef, ObjectRef};
use crate::state::epochs::EpochTable;
use crate::state::producers::{ProducedBatch, Producer, Producers};
use freshet_wire::codec::{Reader, WireError, WriteExt, crc32c};
use freshet_wire::ids::{Epoch, Incarnation, PartitionId};
use freshet_wire::records::NO_TIMESTAMP;

const MAGIC: &[u8; 4] = b"FRMF";
const VERSION: u16 = 2;
const VERSION_MIN: u16 = 1;
const SUMMED_FROM: usize = 12;
const SEGMENT_BYTES: usize = 80;
const SEGMENT_BYTES_V1: usize = 72;
const COMPACTED_FLAG: u32 = 1;
const READ_FLAG: u32 = 2;
const DROPPED_BYTES: usize = 32;
const DAY_BYTES: usize = 16;
const REPLACED_BYTES: usize = 24;
const EPOCH_BYTES: usize = 12;
const ABORTED_BYTES: usize = 24;
const PRODUCER_BYTES: usize = 31;
const PRODUCED_BATCH_BYTES: usize = 24;
const DAMAGED_BYTES: usize = 16;

/// For how long a manifest remembers segments that retention let go: the meter, which counts what
/// is stored minute by minute, may come late by this much.
pub const DROPPED_KEPT_MS: i64 = 96 * 3_600_000;

/// For how long a manifest remembers bytes that rewriting let go. A meter that comes later counts
/// them as if they had never been kept: less than the truth, never more.
pub const REPLACED_KEPT_MS: i64 = 2 * 3_600_000;
/// The meter looks at what is stored once a minute.
const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 3_600_000;

/// Bytes that were kept beside what is kept now, because segments were joined or compacted since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplacedBytes {
    /// Bytes of record batches.
    pub bytes: u64,
    /// From this whole minute on, ms since 1970 UTC.
    pub since_ms: i64,
    /// Until this whole minute.
    pub until_ms: i64,
}

/// A segment that retention let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedSegment {
    /// Bytes of record batches.
    pub bytes: u64,
    /// When its last block was laid out in a lane, ms since 1970 UTC.
    pub written_at_ms: i64,
    /// Largest timestamp in it, ms.
    pub max_timestamp: i64,
    /// When retention dropped it, ms since 1970 UTC.
    pub dropped_at_ms: i64,
}

/// A transaction that was aborted: readers of committed records skip its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// The producer that aborted it.
    pub producer_id: i64,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of its abort marker.
    pub last_offset: i64,
}

/// A manifest (see the module).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The partition whose manifest it is.
    pub partition: PartitionId,
    /// Its name.
    pub name: ManifestRef,
    /// First offset that may be read.
    pub log_start: i64,
    /// Offset after the last record that was split.
    pub covered_end: i64,
    /// First offset of the oldest open transaction, or `covered_end`.
    pub last_stable_offset: i64,
    /// Compaction has seen everything below (Kafka's `cleaner-offset-checkpoint`).
    pub first_dirty_offset: i64,
    /// Segments by offset, each from the end of the one before it.
    pub segments: Vec<Segment>,
    /// Segments that retention dropped within [`DROPPED_KEPT_MS`].
    pub dropped: Vec<DroppedSegment>,
    /// Bytes that were split lately, for the meter. A split counts whole for the UTC day on which
    /// its last block was laid out; the key is that day's first millisecond.
    pub split_by_day: BTreeMap<i64, u64>,
    /// What rewriting removed within [`REPLACED_KEPT_MS`], for the meter.
    pub replaced: Vec<ReplacedBytes>,
    /// Which epoch started where.
    pub epochs: EpochTable,
    /// Aborted transactions by last offset.
    pub aborted: Vec<AbortedTransaction>,
    /// Producers at exactly `covered_end`.
    pub producers: Producers,
    /// The batches that clients cannot read, as far as they are known: the offset of the next one
    /// by that of the first record. An earlier release stored them.
    pub damaged: BTreeMap<i64, i64>,
}

impl Manifest {
    /// The manifest that a partition has before its first.
    pub fn empty(partition: PartitionId) -> Self {
        Self {
            partition,
            name: ManifestRef { epoch: -1, number: 0 },
            log_start: 0,
            covered_end: 0,
            last_stable_offset: 0,
            first_dirty_offset: 0,
            segments: Vec::new(),
            dropped: Vec::new(),
            split_by_day: BTreeMap::new(),
            replaced: Vec::new(),
            epochs: EpochTable::default(),
            aborted: Vec::new(),
            producers: Producers::default(),
            damaged: BTreeMap::new(),
        }
    }

    /// Key of a manifest in the object store.
    pub fn key(cluster: &str, partition: PartitionId, name: ManifestRef) -> String {
        format!("{}/{}", Self::folder(cluster, partition), Self::file_name(name))
    }

    /// The last part of a manifest's key.
    pub fn file_name(name: ManifestRef) -> String {
        format!("{:010}-{:012}", name.epoch, name.number)
    }

    /// Reads the last part of a manifest's key.
    pub fn parse_file_name(file_name: &str) -> Option<ManifestRef> {
        let (epoch, number) = file_name.split_once('-')?;
        Some(ManifestRef { epoch: epoch.parse().ok()?, number: number.parse().ok()? })
    }

    /// Where the manifests of a partition lie.
    pub fn folder(cluster: &str, partition: PartitionId) -> String {
        format!("{}/{}/{}", Self::root(cluster), partition.topic.simple(), partition.index)
    }

    /// Where all manifests of a cluster lie, topic by topic.
    pub fn root(cluster: &str) -> String {
        format!("{cluster}/manifests")
    }

    /// Bytes of record batches from the log start on, whole segments counted.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Bytes of the segments whose records nobody has read.
    pub fn unread_bytes(&self) -> u64 {
        self.segments.iter().filter(|segment| !segment.read).map(|segment| segment.bytes).sum()
    }

    /// Adds a segment with what was split.
    pub fn add_segment(&mut self, segment: Segment, now_ms: i64) {
        self.covered_end = segment.end_offset;
        self.last_stable_offset = segment.end_offset;
        *self.split_by_day.entry(day_of(segment.written_at_ms)).or_default() += segment.bytes;
        self.segments.push(segment);
        self.forget_dropped(now_ms);
    }

    /// Replaces a run of segments by one segment, or by nothing where compaction left no record.
    /// Returns whether the manifest has the run; if not, nothing is changed.
    pub fn replace(&mut self, run: &[SegmentPlace], by: Option<Segment>, now_ms: i64) -> bool {
        let Some(first) = run.first() else { return false };
        let at = self.segments.iter().position(|segment| segment.place() == *first);
        let Some(at) = at else { return false };
        let there = self.segments[at..].iter().map(Segment::place);
        if there.len() < run.len() || !there.zip(run).all(|(there, place)| there == *place) {
            return false;
        }
        let run = at..at + run.len();
        let replaced = replaced_bytes(&self.segments[run.clone()], by.as_ref(), now_ms);
        self.replaced.extend(replaced);
        let mut due = self.segments[at].base_offset;
        self.segments.splice(run, by);
        // Offsets that compaction took off the end of a segment belong to the next one, so that
        // segments follow each other without a hole.
        for segment in &mut self.segments[at..] {
            segment.base_offset = due;
            due = segment.end_offset;
        }
        self.forget_dropped(now_ms);
        true
    }

    /// Drops the oldest `count` segments.
    pub fn drop_segments(&mut self, count: usize, now_ms: i64) {
        let dropped = self.segments.drain(..count).map(|segment| DroppedSegment {
            bytes: segment.bytes,
            written_at_ms: segment.written_at_ms,
            max_timestamp: segment.max_timestamp,
            dropped_at_ms: now_ms,
        });
        self.dropped.extend(dropped);
        self.forget_dropped(now_ms);
    }

    /// Moves the log start forward, and drops the segments that end at or before it.
    pub fn start_at(&mut self, log_start: i64, now_ms: i64) {
        self.log_start = self.log_start.max(log_start);
        let log_start = self.log_start;
        let ended = self.segments.partition_point(|segment| segment.end_offset <= log_start);
        self.drop_segments(ended, now_ms);
        self.epochs.trim(log_start);
        self.aborted.retain(|aborted| aborted.last_offset >= log_start);
        self.damaged.retain(|_, next_offset| *next_offset > log_start);
    }

    /// Forgets dropped and replaced bytes that are older than the meter needs.
    pub fn forget_dropped(&mut self, now_ms: i64) {
        let since_ms = now_ms.saturating_sub(DROPPED_KEPT_MS);
        self.dropped.retain(|dropped| dropped.dropped_at_ms >= since_ms);
        self.split_by_day.retain(|day_ms, _| *day_ms >= since_ms.saturating_sub(DAY_MS));
        let since_ms = now_ms.saturating_sub(REPLACED_KEPT_MS);
        self.replaced.retain(|replaced| replaced.until_ms >= since_ms);
    }

    /// Its stored form.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_slice(MAGIC);
        out.put_u16_le(VERSION);
        out.put_u16_le(0);
        out.put_u32_le(0);
        out.put_uuid(self.partition.topic);
        out.put_i32_le(self.partition.index);
        out.put_i32_le(self.name.epoch);
        out.put_u64_le(self.name.number);
        out.put_i64_le(self.log_start);
        out.put_i64_le(self.covered_end);
        out.put_i64_le(self.last_stable_offset);
        out.put_i64_le(self.first_dirty_offset);
        put_count(&mut out, self.segments.len());
        for segment in &self.segments {
            put_segment(&mut out, segment);
        }
        self.put_meter(&mut out);
        put_count(&mut out, self.epochs.entries().len());
        for (epoch, start) in self.epochs.entries() {
            out.put_i32_le(*epoch);
            out.put_i64_le(*start);
        }
        put_count(&mut out, self.aborted.len());
        for aborted in &self.aborted {
            out.put_i64_le(aborted.producer_id);
            out.put_i64_le(aborted.first_offset);
            out.put_i64_le(aborted.last_offset);
        }
        put_count(&mut out, self.producers.len());
        for (id, producer) in self.producers.iter() {
            put_producer(&mut out, id, producer);
        }
        put_count(&mut out, self.damaged.len());
        for (first, next) in &self.damaged {
            out.put_i64_le(*first);
            out.put_i64_le(*next);
        }
        let checksum = crc32c(&out[SUMMED_FROM..]);
        out[SUMMED_FROM - 4..SUMMED_FROM].copy_from_slice(&checksum.to_le_bytes());
        out.freeze()
    }

    fn put_meter(&self, out: &mut BytesMut) {
        put_count(out, self.dropped.len());
        for dropped in &self.dropped {
            out.put_u64_le(dropped.bytes);
            out.put_i64_le(dropped.written_at_ms);
            out.put_i64_le(dropped.max_timestamp);
            out.put_i64_le(dropped.dropped_at_ms);
        }
        put_count(out, self.split_by_day.len());
        for (day_ms, bytes) in &self.split_by_day {
            out.put_i64_le(*day_ms);
            out.put_u64_le(*bytes);
        }
        put_count(out, self.replaced.len());
        for replaced in &self.replaced {
            out.put_u64_le(replaced.bytes);
            out.put_i64_le(replaced.since_ms);
            out.put_i64_le(replaced.until_ms);
        }
    }

    /// Reads its stored form.
    ///
    /// # Errors
    /// [`ColdError::Damaged`], also for a later version.
    pub fn decode(bytes: &Bytes) -> Result<Self, ColdError> {
        let damaged = |what: &str| ColdError::damaged("a manifest", what);
        if bytes.len() < SUMMED_FROM || &bytes[..4] != MAGIC {
            return Err(damaged("not a manifest"));
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(damaged(&format!("version {version} is newer than this release reads")));
        }
        if bytes[SUMMED_FROM - 4..SUMMED_FROM] != crc32c(&bytes[SUMMED_FROM..]).to_le_bytes() {
            return Err(damaged("wrong checksum"));
        }
        parse_manifest(bytes.slice(SUMMED_FROM..), version)
            .map_err(|error| damaged(&error.to_string()))
    }
}

fn day_of(at_ms: i64) -> i64 {
    at_ms.saturating_sub(at_ms.rem_euclid(DAY_MS))
}

/// The first whole minute at or after a moment: there the meter sees what exists since then.
fn minute_after(at_ms: i64) -> i64 {
    at_ms.saturating_sub(at_ms.rem_euclid(MINUTE_MS)).saturating_add(MINUTE_MS)
}

/// What was stored beside `by` until it replaced `run`. Later the meter sees `by` alone, as if it
/// had been there since the last of its blocks was written.
fn replaced_bytes(run: &[Segment], by: Option<&Segment>, now_ms: i64) -> Vec<ReplacedBytes> {
    let now = now_ms - now_ms.rem_euclid(MINUTE_MS);
    let complete = run.iter().map(|segment| minute_after(segment.written_at_ms)).max();
    let complete = complete.unwrap_or(now).min(now);
    let kept = by.map_or(0, |segment| segment.bytes);
    let before: u64 = run.iter().map(|segment| segment.bytes).sum();
    let mut spans = vec![ReplacedBytes {
        bytes: before.saturating_sub(kept),
        since_ms: complete,
        until_ms: now,
    }];
    // Summed by the minute, since the meter looks at nothing finer.
    let mut early: BTreeMap<i64, u64> = BTreeMap::new();
    for segment in run {
        *early.entry(minute_after(segment.written_at_ms)).or_default() += segment.bytes;
    }
    spans.extend(early.into_iter().map(|(since_ms, bytes)| ReplacedBytes {
        bytes,
        since_ms,
        until_ms: complete,
    }));
    let oldest_ms = now_ms.saturating_sub(REPLACED_KEPT_MS);
    let counts = |span: &ReplacedBytes| span.bytes > 0 && span.since_ms < span.until_ms;
    spans.retain(|span| counts(span) && span.until_ms >= oldest_ms);
    spans
}

fn put_count(out: &mut BytesMut, count: usize) {
    out.put_u32_le(u32::try_from(count).expect("far fewer than 4 billion"));
}

fn put_segment(out: &mut BytesMut, segment: &Segment) {
    out.put_u64_le(segment.object.incarnation.0);
    out.put_u64_le(segment.object.number);
    out.put_u64_le(segment.section_position);
    out.put_u32_le(segment.section_bytes);
    let compacted = if segment.compacted { COMPACTED_FLAG } else { 0 };
    out.put_u32_le(compacted | if segment.read { READ_FLAG } else { 0 });
    out.put_i64_le(segment.base_offset);
    out.put_i64_le(segment.end_offset);
    out.put_i64_le(segment.max_timestamp);
    out.put_u64_le(segment.bytes);
    out.put_i64_le(segment.written_at_ms);
    out.put_i64_le(segment.first_timestamp);
}

fn put_producer(out: &mut BytesMut, id: i64, producer: &Producer) {
    out.put_i64_le(id);
    out.put_i16_le(producer.epoch);
    out.put_i32_le(producer.coordinator_epoch);
    out.put_i64_le(producer.transaction_first_offset.unwrap_or(-1));
    out.put_i64_le(producer.last_timestamp_ms);
    out.put_u8(u8::try_from(producer.batches.len()).expect("at most five"));
    for batch in &producer.batches {
        out.put_i32_le(batch.first_sequence);
        out.put_i32_le(batch.last_sequence);
        out.put_i64_le(batch.base_offset);
        out.put_i64_le(batch.last_offset);
    }
}

fn parse_manifest(bytes: Bytes, version: u16) -> Result<Manifest, WireError> {
    let mut reader = Reader::new(bytes);
    let partition = PartitionId::new(reader.uuid()?, reader.i32_le()?);
    let name = ManifestRef { epoch: reader.i32_le()?, number: reader.u64_le()? };
    let mut manifest = Manifest { name, ..Manifest::empty(partition) };
    manifest.log_start = reader.i64_le()?;
    manifest.covered_end = reader.i64_le()?;
    manifest.last_stable_offset = reader.i64_le()?;
    if version == 1 {
        manifest.segments = get_all(&mut reader, SEGMENT_BYTES_V1, |reader| {
            let segment = get_segment(reader)?;
            Ok(Segment { first_timestamp: segment.max_timestamp, ..segment })
        })?;
    } else {
        manifest.first_dirty_offset = reader.i64_le()?;
        manifest.segments = get_all(&mut reader, SEGMENT_BYTES, |reader| {
            let segment = get_segment(reader)?;
            Ok(Segment { first_timestamp: reader.i64_le()?, ..segment })
        })?;
    }
    manifest.dropped = get_all(&mut reader, DROPPED_BYTES, get_dropped)?;
    if version == 1 {
        let kept = manifest.segments.iter().map(|segment| (segment.written_at_ms, segment.bytes));
        let gone = manifest.dropped.iter().map(|segment| (segment.written_at_ms, segment.bytes));
        for (written_at_ms, bytes) in kept.chain(gone) {
            let day = manifest.split_by_day.entry(day_of(written_at_ms)).or_default();
            *day = day.saturating_add(bytes);
        }
    } else {
        let days =
            get_all(&mut reader, DAY_BYTES, |reader| Ok((reader.i64_le()?, reader.u64_le()?)))?;
        manifest.split_by_day = days.into_iter().collect();
        manifest.replaced = get_all(&mut reader, REPLACED_BYTES, |reader| {
            Ok(ReplacedBytes {
                bytes: reader.u64_le()?,
                since_ms: reader.i64_le()?,
                until_ms: reader.i64_le()?,
            })
        })?;
    }
    let epochs: Vec<(Epoch, i64)> =
        get_all(&mut reader, EPOCH_BYTES, |reader| Ok((reader.i32_le()?, reader.i64_le()?)))?;
    manifest.epochs = EpochTable::from_entries(epochs);
    manifest.aborted = get_all(&mut reader, ABORTED_BYTES, |reader| {
        Ok(AbortedTransaction {
            producer_id: reader.i64_le()?,
            first_offset: reader.i64_le()?,
            last_offset: reader.i64_le()?,
        })
    })?;
    let producers = get_all(&mut reader, PRODUCER_BYTES, get_producer)?;
    manifest.producers = producers.into_iter().collect();
    if reader.remaining() > 0 {
        let damaged =
            get_all(&mut reader, DAMAGED_BYTES, |reader| Ok((reader.i64_le()?, reader.i64_le()?)))?;
        manifest.damaged = damaged.into_iter().collect();
    }
    Ok(manifest)
}

fn get_dropped(reader: &mut Reader) -> Result<DroppedSegment, WireError> {
    Ok(DroppedSegment {
        bytes: reader.u64_le()?,
        written_at_ms: reader.i64_le()?,
        max_timestamp: reader.i64_le()?,
        dropped_at_ms: reader.i64_le()?,
    })
}

fn get_all<T>(
    reader: &mut Reader,
    bytes_each: usize,
    mut get: impl FnMut(&mut Reader) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let count = reader.u32_le()?;
    let count = reader.count(i64::from(count), bytes_each)?;
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(get(reader)?);
    }
    Ok(all)
}

fn get_segment(reader: &mut Reader) -> Result<Segment, WireError> {
    let object = ObjectRef { incarnation: Incarnation(reader.u64_le()?), number: reader.u64_le()? };
    let section_position = reader.u64_le()?;
    let section_bytes = reader.u32_le()?;
    let flags = reader.u32_le()?;
    Ok(Segment {
        object,
        section_position,
        section_bytes,
        base_offset: reader.i64_le()?,
        end_offset: reader.i64_le()?,
        max_timestamp: reader.i64_le()?,
        bytes: reader.u64_le()?,
        written_at_ms: reader.i64_le()?,
        first_timestamp: NO_TIMESTAMP,
        compacted: flags & COMPACTED_FLAG != 0,
        read: flags & READ_FLAG != 0,
    })
}

fn get_producer(reader: &mut Reader) -> Result<(i64, Producer), WireError> {
    let id = reader.i64_le()?;
    let epoch = reader.i16_le()?;
    let coordinator_epoch = reader.i32_le()?;
    let first_offset = reader.i64_le()?;
    let last_timestamp_ms = reader.i64_le()?;
    let count = reader.u8()?;
    let count = reader.count(i64::from(count), PRODUCED_BATCH_BYTES)?;
    let mut producer = Producer {
        epoch,
        coordinator_epoch,
        transaction_first_offset: (first_offset >= 0).then_some(first_offset),
        last_timestamp_ms,
        batches: std::collections::VecDeque::with_capacity(count),
    };
    for _ in 0..count {
        producer.batches.push_back(ProducedBatch {
            first_sequence: reader.i32_le()?,
            last_sequence: reader.i32_le()?,
            base_offset: reader.i64_le()?,
            last_offset: reader.i64_le()?,
        });
    }
    Ok((id, producer))
}
