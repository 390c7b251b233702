//! Reading what producers sent: where, how much at a time, and for how long.

use super::*;
use bytes::Bytes;
use freshet_s3::open_world;
use freshet_wire::records::{BatchBuilder, Compression, TimestampType};

const CODECS: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn limits() -> ProduceLimits {
    ProduceLimits {
        max_message_bytes: 8 << 20,
        now_ms: 1_000,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        message_timestamp_type: TimestampType::CreateTime,
        compacted: false,
        stored_codec: None,
    }
}

fn unread(bytes: Bytes) -> UnreadBatch {
    UnreadBatch { batch: ProducedBatch::parse(bytes, &limits()).unwrap(), limits: limits() }
}

fn zeros(codec: Compression, bytes: usize) -> Bytes {
    BatchBuilder::new(0).compression(codec).record(7, None, Some(&vec![0; bytes])).build()
}

fn reading(memory_bytes: usize) -> (BatchReading, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let world = open_world(folder.path(), folder.path().join("bucket").to_str().unwrap()).unwrap();
    (BatchReading::new(memory_bytes, 2, world.disk), folder)
}

/// Sizes that are read where they are handled, on a blocking thread, and with low priority.
#[tokio::test(flavor = "multi_thread")]
async fn batches_of_every_size_are_read_in_order() {
    let (reading, _folder) = reading(64 << 20);
    for bytes in [10, 200 << 10, HERE_OUTPUT_BYTES + 1, PROMPT_OUTPUT_BYTES + 1] {
        for codec in CODECS {
            let mut bad = zeros(codec, bytes).to_vec();
            *bad.last_mut().unwrap() ^= 1;
            let batches = vec![
                unread(zeros(codec, bytes)),
                unread(bad.into()),
                unread(zeros(Compression::None, 3)),
            ];
            let (results, busy) = reading.read(batches).await;
            assert_eq!(results.len(), 3);
            assert_eq!(results[0].as_ref().unwrap().header().max_timestamp, 7);
            let error = results[1].as_ref().unwrap_err().error;
            assert_eq!(error, ResponseError::CorruptMessage);
            assert_eq!(results[2].as_ref().unwrap().payload().len(), 3 + 7);
            assert!(busy > Duration::ZERO);
        }
    }
    assert_eq!(reading.memory.used_bytes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_more_memory_than_there_is_is_refused_with_the_limit() {
    let (reading, _folder) = reading(1 << 20);
    // One block of snappy holds all of it.
    let records = zeros(Compression::None, 2 << 20).slice(61..);
    let mut batch = zeros(Compression::Snappy, 1)[..61].to_vec();
    batch.extend(snap::raw::Encoder::new().compress_vec(&records).unwrap());
    let length = i32::try_from(batch.len() - 12).unwrap();
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    let crc = freshet_wire::codec::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    let (results, _) = reading.read(vec![unread(batch.into())]).await;
    let rejection = results[0].as_ref().unwrap_err();
    assert_eq!(rejection.error, ResponseError::InvalidRecord);
    assert!(rejection.message.contains("more than 1048576"), "{}", rejection.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_of_a_client_that_has_gone_is_left_alone() {
    let (reading, _folder) = reading(64 << 20);
    let bomb = zeros(Compression::Gzip, 600 << 20);
    let limits = ProduceLimits { max_message_bytes: usize::MAX, ..limits() };
    let batch = ProducedBatch::parse(bomb, &limits).unwrap();
    let mut read = Box::pin(reading.read(vec![UnreadBatch { batch, limits }]));
    let entered = async {
        while reading.lengthy.available_permits() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        biased;
        _ = &mut read => panic!("read before it was looked at"),
        () = entered => {}
    }
    drop(read);
    let turn = tokio::time::timeout(Duration::from_secs(5), reading.lengthy.acquire()).await;
    drop(turn.expect("the bomb's thread has ended").unwrap());
}
