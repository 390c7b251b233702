//! Partitions of topics, and their offsets.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use tokio::time::Instant;

use crate::Place;
use crate::apis::metadata::{ClusterView, TopicMetadata};
use crate::apis::offsets::{DeleteRecords, ListOffsets, OffsetSpec};
use crate::cluster::{ClusterClient, persist};
use crate::error::{ClientError, KafkaError};

/// What was asked of each partition, by the address of the broker that leads it.
pub(super) type ByLeader<T> = BTreeMap<String, BTreeMap<String, Vec<(i32, T)>>>;

impl ClusterClient {
    /// The numbers of the partitions of topics that exist, by their names; of all topics without
    /// names. It never creates a topic.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn partitions(
        &self,
        topics: Option<&[String]>,
        deadline: Instant,
    ) -> Result<BTreeMap<String, Vec<i32>>, ClientError> {
        persist(deadline, async || {
            let view = self.view(topics.map(<[String]>::to_vec)).await?;
            let known = view.topics.into_iter().filter(|topic| topic.code == 0);
            Ok(known.map(|it| (it.name, it.leaders.into_keys().collect())).collect())
        })
        .await
    }

    /// Offsets of partitions; `None` where no record is at or after the moment that was asked for.
    ///
    /// # Errors
    /// Any [`ClientError`]; UNKNOWN_TOPIC_OR_PARTITION where one does not exist.
    pub async fn list_offsets(
        &self,
        specs: &BTreeMap<Place, OffsetSpec>,
        deadline: Instant,
    ) -> Result<BTreeMap<Place, Option<i64>>, ClientError> {
        if specs.is_empty() {
            return Ok(BTreeMap::new());
        }
        persist(deadline, async || {
            let places = specs.iter().map(|(place, spec)| (place, *spec));
            let view = self.view(Some(names_of(specs.keys()))).await?;
            let mut offsets = BTreeMap::new();
            for (address, topics) in by_leader(&view, places)? {
                let topics = topics.into_iter().collect();
                for (topic, partitions) in self.send(&address, &ListOffsets { topics }).await? {
                    for (number, (code, offset)) in partitions {
                        KafkaError::check(code, None)?;
                        let offset = (offset >= 0).then_some(offset);
                        offsets.insert((topic.clone(), number), offset);
                    }
                }
            }
            complete(specs.keys(), &offsets)?;
            Ok(offsets)
        })
        .await
    }

    /// Deletes the records of a topic's partitions before offsets (−1 is the end). Returns where
    /// each partition begins now.
    ///
    /// # Errors
    /// Any [`ClientError`]; UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE. Where one partition is
    /// refused, records of others may have been deleted.
    pub async fn delete_records(
        &self,
        before: &BTreeMap<Place, i64>,
        deadline: Instant,
    ) -> Result<BTreeMap<Place, i64>, ClientError> {
        persist(deadline, async || {
            let places = before.iter().map(|(place, offset)| (place, *offset));
            let view = self.view(Some(names_of(before.keys()))).await?;
            let mut starts = BTreeMap::new();
            for (address, topics) in by_leader(&view, places)? {
                let left_ms = deadline.saturating_duration_since(Instant::now()).as_millis();
                let timeout_ms = i32::try_from(left_ms).unwrap_or(i32::MAX);
                let request = DeleteRecords { topics: topics.into_iter().collect(), timeout_ms };
                for (topic, partitions) in self.send(&address, &request).await? {
                    for (number, (code, low)) in partitions {
                        KafkaError::check(code, None)?;
                        starts.insert((topic.clone(), number), low);
                    }
                }
            }
            complete(before.keys(), &starts)?;
            Ok(starts)
        })
        .await
    }
}

/// The topics of places, once each.
pub(super) fn names_of<'a>(places: impl Iterator<Item = &'a Place>) -> Vec<String> {
    let mut names: Vec<String> = places.map(|(topic, _)| topic.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Sorts what is asked of partitions by the brokers that lead them.
pub(super) fn by_leader<'a, T>(
    view: &ClusterView,
    places: impl Iterator<Item = (&'a Place, T)>,
) -> Result<ByLeader<T>, ClientError> {
    let topics: BTreeMap<&str, &TopicMetadata> =
        view.topics.iter().map(|topic| (topic.name.as_str(), topic)).collect();
    let mut by_leader = ByLeader::new();
    for ((name, number), value) in places {
        let address = leader_of(view, topics.get(name.as_str()).copied(), name, *number)?;
        let of_topic = by_leader.entry(address).or_default().entry(name.clone()).or_default();
        of_topic.push((*number, value));
    }
    Ok(by_leader)
}

/// The address of the broker that leads a partition.
pub(super) fn leader_of(
    view: &ClusterView,
    topic: Option<&TopicMetadata>,
    name: &str,
    number: i32,
) -> Result<String, ClientError> {
    let unknown =
        |message| Err(ClientError::refused(ResponseError::UnknownTopicOrPartition, message));
    let Some(topic) = topic else { return unknown(format!("there is no topic {name}")) };
    if topic.code == ResponseError::UnknownTopicOrPartition.code() {
        return unknown(format!("there is no topic {name}"));
    }
    KafkaError::check(topic.code, None)?;
    let Some(leader) = topic.leaders.get(&number) else {
        return unknown(format!("{name} has no partition {number}"));
    };
    view.brokers.get(leader).cloned().ok_or_else(|| {
        let message = format!("{name}-{number} has no leader");
        ClientError::refused(ResponseError::LeaderNotAvailable, message)
    })
}

/// Checks that the brokers answered for every partition.
fn complete<'a, T>(
    mut places: impl Iterator<Item = &'a Place>,
    answers: &BTreeMap<Place, T>,
) -> Result<(), ClientError> {
    match places.find(|place| !answers.contains_key(*place)) {
        None => Ok(()),
        Some((topic, number)) => Err(ClientError::Undecodable {
            api: "offsets",
            reason: format!("it says nothing about {topic}-{number}"),
        }),
    }
}
