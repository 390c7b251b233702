//! Producing one record, once.

use kafka_protocol::ResponseError;
use tokio::time::Instant;

use super::offsets::leader_of;
use crate::apis::metadata::TopicMetadata;
use crate::apis::offsets::InitProducerId;
use crate::apis::records::{Produce, ProduceAnswer};
use crate::cluster::{ClusterClient, Producer, persist};
use crate::error::{ClientError, KafkaError};
use freshet_wire::records::BatchBuilder;

/// The most producers that are kept.
const PRODUCERS_MAX: usize = 32;
/// A producer that knows more partitions is not kept.
const SEQUENCES_MAX: usize = 1_000;
/// Errors after which a new producer may write the record: the broker has forgotten this one, and
/// has not written it.
const FORGOTTEN: [ResponseError; 3] = [
    ResponseError::UnknownProducerId,
    ResponseError::OutOfOrderSequenceNumber,
    ResponseError::InvalidProducerEpoch,
];

/// A record to produce.
#[derive(Debug, Clone, Default)]
pub struct NewRecord {
    /// Its key, which chooses the partition where that is not given.
    pub key: Option<Vec<u8>>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Its headers, in order; names may repeat.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// The number of its partition.
    pub partition: Option<i32>,
    /// Its moment, in Unix milliseconds.
    pub timestamp_ms: i64,
    /// Chooses the partition of a record without key and partition.
    pub random: u64,
}

/// Where a record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Produced {
    /// The partition's number.
    pub partition: i32,
    /// The record's offset.
    pub offset: i64,
    /// The record's moment, in Unix milliseconds.
    pub timestamp_ms: i64,
}

impl ClusterClient {
    /// Produces one record and waits until it is durable. It is never written twice.
    ///
    /// # Errors
    /// Any [`ClientError`]. After `TimedOut`, `Unreachable` and errors that pass the record may
    /// have been written.
    pub async fn produce(
        &self,
        topic: &str,
        record: &NewRecord,
        deadline: Instant,
    ) -> Result<Produced, ClientError> {
        let known = persist(deadline, async || {
            let (view, known) = self.topic(topic).await?;
            let first = known.leaders.keys().next().copied();
            let number = record.partition.or(first).unwrap_or(0);
            match leader_of(&view, Some(&known), topic, number) {
                Err(error) if !error.is_passing() => Err(error),
                // Whether a leader is there counts for the partition that is chosen alone.
                _ => Ok(known),
            }
        })
        .await?;
        let partition = record.partition.unwrap_or_else(|| partition_for(record, &known));
        let kept = self.producers.lock().pop();
        let was_kept = kept.is_some();
        let mut producer = match kept {
            Some(producer) => producer,
            None => self.new_producer(deadline).await?,
        };
        let mut outcome = self.append(&mut producer, &known, partition, record, deadline).await;
        if was_kept && outcome.as_ref().is_err_and(is_forgotten) {
            producer = self.new_producer(deadline).await?;
            outcome = self.append(&mut producer, &known, partition, record, deadline).await;
        }
        // After an error nobody knows which sequence number comes next.
        if outcome.is_ok() && producer.sequences.len() <= SEQUENCES_MAX {
            let mut producers = self.producers.lock();
            if producers.len() < PRODUCERS_MAX {
                producers.push(producer);
            }
        }
        outcome
    }

    async fn new_producer(&self, deadline: Instant) -> Result<Producer, ClientError> {
        persist(deadline, async || {
            let (code, id, epoch) = self.send_anywhere(&InitProducerId).await?;
            KafkaError::check(code, None)?;
            Ok(Producer { id, epoch, ..Producer::default() })
        })
        .await
    }

    async fn append(
        &self,
        producer: &mut Producer,
        topic: &TopicMetadata,
        partition: i32,
        record: &NewRecord,
        deadline: Instant,
    ) -> Result<Produced, ClientError> {
        let sequence = producer.sequences.entry((topic.id.as_u128(), partition)).or_default();
        let batch = batch_of(record, producer.id, producer.epoch, *sequence);
        let answer = persist(deadline, async || {
            let (view, now) = self.topic(&topic.name).await?;
            if now.id != topic.id {
                let message = format!("there is another topic {} now", topic.name);
                return Err(ClientError::refused(ResponseError::UnknownTopicOrPartition, message));
            }
            let address = leader_of(&view, Some(&now), &topic.name, partition)?;
            let left_ms = deadline.saturating_duration_since(Instant::now()).as_millis();
            let request = Produce {
                timeout_ms: i32::try_from(left_ms).unwrap_or(i32::MAX),
                topic: topic.name.clone(),
                partition,
                batch: batch.clone(),
            };
            let mut answers = self.send(&address, &request).await?;
            let answer = answers.pop().filter(|_| answers.is_empty());
            let answer = answer.ok_or_else(|| ClientError::Undecodable {
                api: "Produce",
                reason: "it has another number of partitions than were asked for".to_owned(),
            })?;
            accepted(answer)
        })
        .await?;
        *sequence = sequence.checked_add(1).unwrap_or(0);
        let timestamp_ms =
            if answer.append_time_ms >= 0 { answer.append_time_ms } else { record.timestamp_ms };
        Ok(Produced { partition, offset: answer.offset, timestamp_ms })
    }
}

/// An answer without its error. A record that was written by an earlier attempt is written.
fn accepted(answer: ProduceAnswer) -> Result<ProduceAnswer, ClientError> {
    if answer.code != ResponseError::DuplicateSequenceNumber.code() {
        KafkaError::check(answer.code, answer.message.clone())?;
    }
    Ok(answer)
}

fn is_forgotten(error: &ClientError) -> bool {
    let ClientError::Refused(error) = error else { return false };
    FORGOTTEN.iter().any(|forgotten| forgotten.code() == error.code)
}

fn batch_of(record: &NewRecord, id: i64, epoch: i16, sequence: i32) -> bytes::Bytes {
    let headers: Vec<(&str, Option<&[u8]>)> =
        record.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    let (key, value) = (record.key.as_deref(), record.value.as_deref());
    BatchBuilder::new(0)
        .producer(id, epoch, sequence)
        .record_with_headers(record.timestamp_ms, key, value, &headers)
        .build()
}

/// The partition that Java's clients would choose for the record's key; any one without a key.
fn partition_for(record: &NewRecord, topic: &TopicMetadata) -> i32 {
    let count = i32::try_from(topic.leaders.len()).unwrap_or(i32::MAX).max(1);
    match &record.key {
        Some(key) => (murmur2(key).cast_signed() & i32::MAX) % count,
        None => i32::try_from(record.random % u64::from(count.unsigned_abs())).unwrap_or(0),
    }
}

/// Austin Appleby's MurmurHash2 with Kafka's seed (`Utils.murmur2`).
fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut blocks = data.chunks_exact(4);
    for block in &mut blocks {
        let mut k = u32::from_le_bytes(block.try_into().expect("four bytes"));
        k = k.wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = blocks.remainder();
    for (place, byte) in rest.iter().enumerate() {
        hash ^= u32::from(*byte) << (8 * place);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hash_as_in_kafkas_own_tests() {
        for (key, hash) in [
            (&b"21"[..], -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key).cast_signed(), hash);
        }
    }
}
