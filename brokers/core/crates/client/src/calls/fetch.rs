//! Fetching records: what partitions hold from offsets on, at most so many bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use kafka_protocol::ResponseError;
use tokio::time::Instant;

use super::AT_ONCE;
use super::offsets::{by_leader, names_of};
use crate::Place;
use crate::apis::records::{Fetch, FetchedRecords};
use crate::batches::FetchedPartition;
use crate::cluster::{ClusterClient, persist};
use crate::connection::AnswerShare;
use crate::error::{ClientError, KafkaError};

/// Where to read a partition.
pub type Position = (Place, i64);

/// How much to fetch.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// The most bytes of batches, but for a first batch that is larger by itself.
    pub bytes_max: usize,
    /// The most bytes of one partition, but for a first batch.
    pub partition_bytes_max: usize,
    /// How long brokers wait for records where there is none yet.
    pub wait: Duration,
    /// Whether to read only what is not part of an open transaction.
    pub committed_only: bool,
}

/// Bytes as a number of the protocol.
fn number(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

impl ClusterClient {
    /// Fetches what partitions hold from offsets on. A partition may have nothing in the answer
    /// although it holds more: where the bytes did not suffice, or storage was not read yet.
    ///
    /// # Errors
    /// Any [`ClientError`]; UNKNOWN_TOPIC_OR_PARTITION where one does not exist. An offset out of
    /// range is an error of its partition alone.
    pub async fn fetch(
        &self,
        positions: &BTreeMap<Place, i64>,
        limits: FetchLimits,
        deadline: Instant,
    ) -> Result<Vec<FetchedPartition>, ClientError> {
        persist(deadline, async || {
            let view = self.view(Some(names_of(positions.keys()))).await?;
            let places = positions.iter().map(|(place, offset)| (place, *offset));
            let mut answers = stream::iter(by_leader(&view, places)?)
                .map(|(address, topics)| async move {
                    let request = Fetch {
                        max_wait_ms: number(limits.wait.as_millis().try_into().unwrap_or(0)),
                        min_bytes: 1,
                        max_bytes: number(limits.bytes_max),
                        partition_max_bytes: number(limits.partition_bytes_max),
                        committed_only: limits.committed_only,
                        topics: topics.into_iter().collect(),
                    };
                    self.send_holding(&address, &request).await
                })
                .buffered(AT_ONCE);
            let mut all = Vec::new();
            while let Some(answer) = answers.next().await {
                let ((code, partitions), share) = answer?;
                KafkaError::check(code, None)?;
                let share = share.map(Arc::new);
                for partition in partitions {
                    all.push(self.fetched(partition, positions, share.clone())?);
                }
            }
            Ok(all)
        })
        .await
    }

    fn fetched(
        &self,
        records: FetchedRecords,
        positions: &BTreeMap<Place, i64>,
        share: Option<Arc<AnswerShare>>,
    ) -> Result<FetchedPartition, ClientError> {
        let out_of_range = records.code == ResponseError::OffsetOutOfRange.code();
        if !out_of_range {
            KafkaError::check(records.code, None)?;
        }
        let place = (records.topic.clone(), records.partition);
        let Some(offset) = positions.get(&place) else {
            let reason = format!("nobody asked for {}-{}", place.0, place.1);
            return Err(ClientError::Undecodable { api: "Fetch", reason });
        };
        Ok(FetchedPartition::new(records, *offset, out_of_range, share, self.unpacked.clone()))
    }
}
