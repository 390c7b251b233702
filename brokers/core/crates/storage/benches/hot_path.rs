//! What one batch costs on its way from the socket to the disk and back out: `cargo bench`.
#![allow(missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use freshet_storage::cache::{HotCache, HotHolder};
use freshet_storage::lane::LanePaths;
use freshet_storage::lane::ack::Acks;
use freshet_storage::lane::block::{BlockKind, BlockLabel, encode};
use freshet_storage::lane::index::InstallEntry;
use freshet_storage::lane::queue::{BatchOwner, DurableBatch, LaneBatch};
use freshet_storage::lane::token::OwnerToken;
use freshet_storage::lane::writer::{CheckpointSource, LaneSettings, WriterParts, start};
use freshet_storage::liveness::Liveness;
use freshet_storage::payers::PayerRules;
use freshet_storage::rules::Rules;
use freshet_telemetry::Metrics;
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_wire::protocol::produce::{
    ProducePartitionResponse, ProduceResponse, ProduceTopicResponse,
};
use freshet_wire::records::{
    BatchBuilder, ProduceLimits, StoredBatch, TimestampType, ValidatedBatch, validate_produced,
};
use freshet_world::env::Disk;
use freshet_world::env::real::{FolderDisk, SystemClock, SystemRandomness};

/// Sizes of a batch: one record of a small producer, and what a busy one sends.
const SIZES: [(&str, usize); 3] = [("1KiB", 1 << 10), ("64KiB", 64 << 10), ("1MiB", 1 << 20)];

fn partition() -> PartitionId {
    PartitionId::new(TopicId::from_u128(7), 0)
}

fn batch(bytes: usize) -> bytes::Bytes {
    let value = vec![7; 1000.min(bytes)];
    let records = bytes.div_ceil(1024).max(1);
    let built = (0..records).fold(BatchBuilder::new(0), |builder, at| {
        builder.record(1_700_000_000_000 + at as i64, None, Some(&value))
    });
    built.build()
}

fn stored(bytes: usize) -> StoredBatch {
    let validated = ValidatedBatch::trusted(batch(bytes)).expect("one batch");
    StoredBatch::new(validated, 1_000_000, 3)
}

fn validation(criterion: &mut Criterion) {
    let limits = ProduceLimits {
        max_message_bytes: 2 << 20,
        now_ms: 1_700_000_000_000,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        message_timestamp_type: TimestampType::CreateTime,
        compacted: false,
        stored_codec: None,
    };
    let mut group = criterion.benchmark_group("validate_produced");
    for (name, size) in SIZES {
        let bytes = batch(size);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| validate_produced(black_box(bytes.clone()), &limits).is_ok());
        });
    }
    group.finish();
}

fn blocks(criterion: &mut Criterion) {
    let label = BlockLabel {
        kind: BlockKind::Data,
        incarnation: Incarnation(7),
        sequence: 9,
        durable_sequence: 8,
        nonce: 5,
        written_at_ms: 1_700_000_000_000,
    };
    let mut group = criterion.benchmark_group("encode_block");
    for (name, size) in SIZES {
        let batch = stored(size);
        group.throughput(Throughput::Bytes(batch.size_bytes() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| encode(label, black_box(b"index"), batch.pieces().to_vec()));
        });
    }
    group.finish();
}

struct NoManifests;

impl CheckpointSource for NoManifests {
    fn installed(&self) -> Vec<InstallEntry> {
        Vec::new()
    }
}

struct Nobody;

impl BatchOwner for Nobody {
    fn durable(self: Arc<Self>, _: DurableBatch) {}
}

impl HotHolder for Nobody {
    fn evict_below(&self, _: i64) {}
}

/// From staging a batch to its ack, on a folder of the disk that holds this checkout.
fn commits(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
    let disk: Arc<dyn Disk> = Arc::new(FolderDisk::new(folder.path()).expect("a disk"));
    let paths = LanePaths::new("bench", Incarnation(1));
    let (lane, _writer) = runtime.block_on(async {
        disk.create_folders(&paths.folder()).await.expect("a folder");
        let randomness = SystemRandomness::open().expect("random bits");
        let token = OwnerToken::claim(disk.as_ref(), &paths, Incarnation(1), &randomness).await;
        let parts = WriterParts {
            disk: Arc::clone(&disk),
            clock: Arc::new(SystemClock),
            paths: paths.clone(),
            token: Arc::new(token.expect("a new lane")),
            incarnation: Incarnation(1),
            nonce: 5,
            settings: LaneSettings::default(),
            checkpoints: Arc::new(NoManifests),
            rolled: Box::new(|_| {}),
            liveness: Liveness::default(),
            rules: Rules::full(),
            metrics: Metrics::new().lane,
            payers: PayerRules::default(),
        };
        start(parts).await.expect("a lane")
    });
    let mut group = criterion.benchmark_group("commit");
    group.sample_size(20);
    for (name, size) in SIZES {
        let batch = stored(size);
        group.throughput(Throughput::Bytes(batch.size_bytes() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut acks = Acks::new(None);
                let staged = lane.stage(LaneBatch {
                    partition: partition(),
                    epoch: 3,
                    principal: "User:bench".into(),
                    batch: batch.clone(),
                    pinned_bytes: 0,
                    owner: Arc::new(Nobody),
                    ack: Some(acks.share()),
                });
                staged.expect("the lane is open");
                runtime.block_on(acks.settled());
            });
        });
    }
    group.finish();
}

fn responses(criterion: &mut Criterion) {
    let partitions = (0..100).map(|index| ProducePartitionResponse {
        base_offset: 1_000_000,
        log_start_offset: 0,
        ..ProducePartitionResponse::failed(index, 0)
    });
    let topic = ProduceTopicResponse { partitions: partitions.collect(), ..Default::default() };
    let response = ProduceResponse { topics: vec![topic], ..Default::default() };
    criterion.bench_function("encode_produce_response/100_partitions", |bencher| {
        bencher.iter(|| black_box(&response).encode(13));
    });
}

fn hot_cache(criterion: &mut Criterion) {
    let cache = HotCache::new(1 << 20);
    let holder = Arc::new(Nobody);
    criterion.bench_function("hot_cache_admit_and_evict", |bencher| {
        bencher.iter_batched(
            || (),
            |()| cache.admit(black_box(&holder), 1, 1 << 10).1.evict(),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(hot_path, validation, blocks, commits, responses, hot_cache);
criterion_main!(hot_path);
