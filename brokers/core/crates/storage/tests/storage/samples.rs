//! The stored formats of lanes, objects and manifests. Samples of each version were written by the
//! release that introduced it; they are never changed. See `tests/samples/v1/README.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::cold::reader::ColdReader;
use freshet_storage::cold::segment::SegmentWriter;
use freshet_storage::lane::block::BlockKind;
use freshet_storage::lane::index::{
    DataEntry, InstallEntry, Usage, UsageEntry, decode_checkpoint, decode_data, decode_installs,
    decode_usage,
};
use freshet_storage::lane::leftover::Leftover;
use freshet_storage::lane::queue::LaneBatch;
use freshet_storage::lane::reader::{ReplayedBlock, replay};
use freshet_storage::lane::seal::read_seal;
use freshet_storage::lane::{LaneEnd, LaneFile, LanePaths};
use freshet_storage::names::ManifestRef;
use freshet_storage::names::ObjectRef;
use freshet_storage::rules::Rules;
use freshet_storage::state::epochs::EpochTable;
use freshet_storage::state::producers::Producers;
use freshet_wire::codec::crc32c;
use freshet_wire::ids::{Incarnation, TopicId};
use freshet_wire::records::{
    BatchBuilder, Batches, Compression, StoredBatch, Tail, ValidatedBatch,
};
use freshet_world::env::Disk;
use freshet_world::env::real::FolderDisk;
use freshet_world::env::store::{FolderStore, ObjectStore};

use crate::fixture::{
    CLUSTER, OpenLane, START_MS, STEP_MS, block_cache, eventually, fence_and_seal, partition,
    produced, small_files, wal,
};
use crate::formats;

const TIME_MS: i64 = 1_700_000_000_000;
const OBJECT: ObjectRef = ObjectRef { incarnation: Incarnation(1), number: 0 };

/// A batch of lane 1: partition, principal, and the records.
struct Sample {
    index: i32,
    principal: &'static str,
    batch: StoredBatch,
}

/// What the encoder that wrote version 1 put around the records of the second batch.
const GZIP_HEAD: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01'\0\xd8\xff";
const GZIP_TAIL: &[u8] = b"z\xaf|\x1f'\0\0\0";

/// The second batch with its records as that encoder gave them.
fn with_gzip(batch: &Bytes) -> Bytes {
    const HEADER_BYTES: usize = 61;
    let (header, records) = batch.split_at(HEADER_BYTES);
    let mut bytes = [header, GZIP_HEAD, records, GZIP_TAIL].concat();
    bytes[22] |= Compression::Gzip as u8;
    let length = i32::try_from(bytes.len() - 12).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    bytes.into()
}

fn sample(index: i32, principal: &'static str, base_offset: i64, batch: Bytes) -> Sample {
    let batch = ValidatedBatch::trusted(batch).unwrap();
    Sample { index, principal, batch: StoredBatch::new(batch, base_offset, 3) }
}

fn batches() -> [Sample; 4] {
    let headers: &[(&str, Option<&[u8]>)] = &[("h", Some(b"1")), ("none", None)];
    let plain = BatchBuilder::new(0)
        .record_with_headers(TIME_MS, Some(b"key"), None, headers)
        .record(-1, None, Some(b"undated"));
    [
        sample(0, "User:alice", 0, produced((7, 2), 0, TIME_MS, 3).build()),
        sample(1, "User:bob", 0, with_gzip(&plain.build())),
        sample(0, "User:alice", 3, produced((7, 2), 3, TIME_MS + 50, 2).build()),
        sample(0, "User:bob", 5, produced((8, 0), 0, TIME_MS + 90, 1).build()),
    ]
}

fn usage() -> Usage {
    let entry = |principal: &str, egress_bytes, egress_delta| UsageEntry {
        topic: TopicId::from_u128(5),
        principal: principal.into(),
        egress_bytes,
        egress_delta,
    };
    Usage {
        window_start_ms: TIME_MS,
        window_end_ms: TIME_MS + 1000,
        entries: vec![entry("User:alice", 1 << 40, 1 << 39), entry("User:bob", 17, 17)],
    }
}

fn installs() -> Vec<InstallEntry> {
    let manifest = ManifestRef { epoch: 3, number: 0 };
    (0..2).map(|index| InstallEntry { partition: partition(index), manifest }).collect()
}

/// The object with the batches of the first file, and the manifests that name its segments.
fn object_and_manifests() -> (Vec<Bytes>, Vec<Manifest>) {
    let samples = batches();
    let mut writer = SegmentWriter::new(OBJECT);
    for (index, batch) in [(0, &samples[0]), (0, &samples[2]), (1, &samples[1])] {
        writer.add(partition(index), &batch.batch, TIME_MS + 200 + i64::from(index));
    }
    let (pieces, segments) = writer.finish();
    let manifests = segments.into_iter().map(|(id, segment)| {
        let mut producers = Producers::default();
        let of_segment = samples[..3].iter().filter(|sample| partition(sample.index) == id);
        of_segment.for_each(|sample| producers.record(&sample.batch.header()));
        let mut manifest = Manifest {
            name: installs()[0].manifest,
            epochs: EpochTable::from_entries(vec![(3, 0)]),
            producers,
            ..Manifest::empty(id)
        };
        manifest.add_segment(segment, TIME_MS);
        manifest
    });
    let manifests = manifests.collect();
    (pieces, manifests)
}

async fn stage_and_wait(lane: &OpenLane, sample: Sample) {
    let before = lane.recorder.seen().len();
    let batch = LaneBatch {
        partition: partition(sample.index),
        epoch: 3,
        principal: sample.principal.into(),
        pinned_bytes: 0,
        batch: sample.batch,
        owner: Arc::clone(&lane.recorder) as Arc<_>,
        ack: None,
    };
    lane.lane.stage(batch).unwrap();
    lane.recorder.wait_for(before + 1).await;
}

/// Ends a lane's task and removes the file that it made ahead of use.
async fn end_lane(root: &Path, lane: OpenLane, made_ahead: u64) {
    let ahead = root.join(wal(&lane.paths, made_ahead));
    eventually("the next file is made ahead", async || ahead.exists()).await;
    lane.crash().await;
    std::fs::remove_file(ahead).unwrap();
}

/// Writes the tree of samples into an empty folder.
async fn write_samples(root: &Path) {
    let disk: Arc<dyn Disk> = Arc::new(FolderDisk::new(root).unwrap());
    let lane = OpenLane::start(&disk, 1, small_files(32 << 10)).await;
    let [first, second, third, fourth] = batches();
    for sample in [first, second, third] {
        stage_and_wait(&lane, sample).await;
    }
    lane.lane.stage_usage(usage()).unwrap();
    lane.lane.roll().await.unwrap();
    let leftover = lane.rolled.lock().pop().unwrap().leftover;
    leftover.publish(disk.as_ref(), &lane.paths).await.unwrap();
    let store = FolderStore::new(Arc::clone(&disk));
    let (object, manifests) = object_and_manifests();
    store.put_new(&OBJECT.key(CLUSTER), object).await.unwrap();
    for manifest in manifests {
        let key = Manifest::key(CLUSTER, manifest.partition, manifest.name);
        store.put_new(&key, vec![manifest.encode()]).await.unwrap();
    }
    let full = formats::manifest();
    let key = Manifest::key(CLUSTER, full.partition, full.name);
    store.put_new(&key, vec![full.encode()]).await.unwrap();
    let installed = Arc::clone(&lane.installed);
    let effect = Box::new(move || installed.0.lock().extend(installs()));
    lane.lane.install(installs(), effect).await.unwrap();
    stage_and_wait(&lane, fourth).await;
    lane.lane.roll().await.unwrap();
    lane.lane.close().await.unwrap();
    end_lane(root, lane, 3).await;

    let crashed = OpenLane::start(&disk, 2, small_files(32 << 10)).await;
    crashed.write_one_by_one(0..2, 10).await;
    let paths = crashed.paths.clone();
    end_lane(root, crashed, 1).await;
    fence_and_seal(&disk, &paths, 2).await.unwrap();
}

#[derive(Debug, PartialEq)]
enum Content {
    Data(Vec<(DataEntry, Bytes)>),
    Usage(Usage),
    Install(Vec<InstallEntry>),
    Checkpoint(u64, Vec<InstallEntry>),
    Close,
}

/// A block: its file, its numbers, its time, what it holds, and where it was read from.
type BlockFacts = (u64, u64, u64, i64, Content, LaneFile);

async fn content_of(disk: &dyn Disk, replayed: &ReplayedBlock) -> BlockFacts {
    let (header, index) = (replayed.head.header, replayed.head.index());
    let content = match header.kind {
        BlockKind::Data => {
            let paths = LanePaths::new(CLUSTER, header.incarnation);
            let file = disk.open(&paths.file(replayed.file)).await.unwrap();
            let mut with_bytes = Vec::new();
            for entry in decode_data(index, &header).unwrap() {
                let position = replayed.payload_position + u64::from(entry.position);
                let bytes = file.read_at(position, entry.length as usize).await.unwrap();
                with_bytes.push((entry, bytes));
            }
            Content::Data(with_bytes)
        }
        BlockKind::Usage => Content::Usage(decode_usage(index).unwrap()),
        BlockKind::Install => Content::Install(decode_installs(index).unwrap()),
        BlockKind::Checkpoint => {
            let (file, entries) = decode_checkpoint(index).unwrap();
            Content::Checkpoint(file, entries)
        }
        BlockKind::Close => Content::Close,
    };
    let written_at_ms = header.written_at_ms;
    let file = replayed.head.file;
    (file, header.sequence, header.durable_sequence, written_at_ms, content, replayed.file)
}

async fn blocks(disk: &dyn Disk, incarnation: u64, end: LaneEnd) -> Vec<BlockFacts> {
    let incarnation = Incarnation(incarnation);
    let paths = LanePaths::new(CLUSTER, incarnation);
    let mut replayed = Vec::new();
    replay(disk, &paths, incarnation, end, Rules::full(), &mut |block| {
        replayed.push(block);
        Ok(())
    })
    .await
    .unwrap();
    let mut all = Vec::new();
    for block in &replayed {
        all.push(content_of(disk, block).await);
    }
    all
}

/// The content of a data block of one batch, as a block of `version` has it.
fn data(sample: &Sample, version: u16) -> Content {
    let bytes = sample.batch.to_bytes();
    let (id, header) = (partition(sample.index), sample.batch.header());
    let mut entry = DataEntry::new(id, 3, sample.principal.into(), &header, 0);
    if version == 1 {
        entry.facts = None;
    }
    Content::Data(vec![(entry, bytes)])
}

async fn assert_closed_lane(disk: &dyn Disk, version: u16) {
    let [first, second, third, fourth] = batches();
    let expected = [
        (0, Content::Checkpoint(0, Vec::new())),
        (0, data(&first, version)),
        (0, data(&second, version)),
        (0, data(&third, version)),
        (0, Content::Usage(usage())),
        (1, Content::Checkpoint(1, Vec::new())),
        (1, Content::Install(installs())),
        (1, data(&fourth, version)),
        (2, Content::Checkpoint(2, installs())),
        (2, Content::Close),
    ];
    let expected = (1..).zip(expected).map(|(sequence, (file, content))| {
        let written_at_ms = START_MS + STEP_MS * (sequence as i64 - 1);
        (file, sequence, sequence - 1, written_at_ms, content, LaneFile::Wal(file))
    });
    let blocks_read = blocks(disk, 1, LaneEnd { file: 2, sequence: 10 }).await;
    assert_eq!(blocks_read, expected.collect::<Vec<_>>());
}

async fn assert_sealed_lane(disk: &dyn Disk, version: u16) {
    let paths = LanePaths::new(CLUSTER, Incarnation(2));
    let seal = read_seal(disk, &paths, Incarnation(2)).await.unwrap().unwrap();
    assert_eq!(seal.end, LaneEnd { file: 0, sequence: 3 });
    assert_eq!(seal.blocks.keys().copied().collect::<Vec<_>>(), [3]);
    let blocks_read = blocks(disk, 2, seal.end).await;
    let places: Vec<_> = blocks_read.iter().map(|(.., file)| *file).collect();
    assert_eq!(places, [LaneFile::Wal(0), LaneFile::Wal(0), LaneFile::Seal]);
    let sample = |offset| sample(0, "User:alice", offset, record_of(offset).build());
    let expected = |offset| data(&sample(offset), version);
    assert_eq!((&blocks_read[1].4, &blocks_read[2].4), (&expected(0), &expected(1)));
}

/// What [`OpenLane::write_one_by_one`] writes.
fn record_of(offset: i64) -> BatchBuilder {
    BatchBuilder::new(0).record(1_000 + offset, None, Some(b"xxxxxxxxxx"))
}

/// Which incarnation a token names.
fn holder(root: &Path, incarnation: u64) -> u64 {
    let owner = LanePaths::new(CLUSTER, Incarnation(incarnation)).owner();
    let token = std::fs::read(root.join(owner)).unwrap();
    assert_eq!((token.len(), &token[..8]), (4096, &b"FRLO\x01\0\0\0"[..]));
    u64::from_le_bytes(token[8..16].try_into().unwrap())
}

fn assert_leftover(root: &Path) {
    let path = LanePaths::new(CLUSTER, Incarnation(1)).leftover(0);
    let bytes = Bytes::from(std::fs::read(root.join(path)).unwrap());
    let leftover = Leftover::decode(&bytes).unwrap();
    assert_eq!((leftover.incarnation, leftover.file), (Incarnation(1), 0));
    assert_eq!(leftover.sequences, (1, 5));
    let kinds = leftover.blocks.iter().map(|block| block.parse_header().unwrap().kind);
    let data = BlockKind::Data;
    assert_eq!(kinds.collect::<Vec<_>>(), [data, data, data, BlockKind::Usage]);
    assert_eq!(decode_usage(leftover.blocks[3].index.clone()).unwrap(), usage());
    assert_eq!(leftover.encode(), bytes);
}

async fn assert_cold(disk: Arc<dyn Disk>, version: u16, names_read: bool) {
    let store = Arc::new(FolderStore::new(disk));
    let reader = ColdReader::new(Arc::clone(&store) as Arc<_>, CLUSTER, block_cache());
    let (object, mut expected) = object_and_manifests();
    let mut full = formats::manifest();
    if !names_read {
        expected.iter_mut().for_each(forget_what_was_read);
        forget_what_was_read(&mut full);
    }
    assert_eq!(store.get(&OBJECT.key(CLUSTER)).await.unwrap(), object.concat());
    for manifest in expected {
        let id = manifest.partition;
        let bytes = store.get(&Manifest::key(CLUSTER, id, manifest.name)).await.unwrap();
        let mut decoded = Manifest::decode(&bytes).unwrap();
        assert_eq!(Manifest::decode(&decoded.encode()).unwrap(), decoded);
        if version == 1 {
            // The older format has neither field; the reader takes the smallest values that are
            // true.
            let segment = &mut decoded.segments[0];
            assert_eq!(decoded.split_by_day.values().sum::<u64>(), segment.bytes);
            segment.first_timestamp = manifest.segments[0].first_timestamp;
            decoded.split_by_day = manifest.split_by_day.clone();
        }
        assert_eq!(decoded, manifest);
        let chunks = reader.chunks(id, &manifest.segments[0]).await.unwrap();
        let mut read_batches = Vec::new();
        for chunk in chunks.iter() {
            let bytes = reader.read(OBJECT, chunk).await.unwrap();
            read_batches.extend(Batches::new(bytes, Tail::Report).map(Result::unwrap));
        }
        let samples = batches().into_iter().take(3);
        let of_partition = samples.filter(|sample| partition(sample.index) == id);
        assert_eq!(read_batches, of_partition.map(|sample| sample.batch).collect::<Vec<_>>());
    }
    if version > 1 {
        let bytes = store.get(&Manifest::key(CLUSTER, full.partition, full.name)).await.unwrap();
        assert_eq!(Manifest::decode(&bytes).unwrap(), full);
    }
}

/// Takes out what manifests of version 2 have got since.
fn forget_what_was_read(manifest: &mut Manifest) {
    manifest.segments.iter_mut().for_each(|segment| segment.read = false);
    manifest.damaged.clear();
}

/// `version` is that of blocks and manifests; `names_read` says whether manifests say which
/// segments were read.
async fn assert_samples(root: &Path, version: u16, names_read: bool) {
    let disk: Arc<dyn Disk> = Arc::new(FolderDisk::new(root).unwrap());
    assert_closed_lane(disk.as_ref(), version).await;
    assert_sealed_lane(disk.as_ref(), version).await;
    assert_leftover(root);
    assert_eq!((holder(root, 1), holder(root, 2)), (1, 99));
    assert_cold(disk, version, names_read).await;
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn the_samples_of_every_version_are_read() {
    for (name, version, names_read) in [("v1", 1, false), ("v2", 2, false), ("v2_read", 2, true)] {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
        let folder = tempfile::tempdir().unwrap();
        copy_tree(&samples.join(name), folder.path());
        assert_samples(folder.path(), version, names_read).await;
    }
}

/// Where `FRESHET_SAMPLES` names an empty folder, the samples of the present formats stay there.
#[tokio::test]
async fn what_is_written_today_is_read_in_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    let target = std::env::var_os("FRESHET_SAMPLES").map(PathBuf::from);
    let root = target.as_deref().unwrap_or(folder.path());
    write_samples(root).await;
    assert_samples(root, 2, true).await;
}
