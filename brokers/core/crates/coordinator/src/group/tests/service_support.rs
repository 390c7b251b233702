//! A log in memory whose appends can be slow, fail, or be lost, and requests for the service.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use kafka_protocol::ResponseError;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::machine::{WALL_MS, known_member, payer};
use crate::group::records::{self, Key};
use crate::group::{
    FetchedTopic, GroupCoordinator, GroupSettings, HeartbeatRequest, JoinRequest, JoinResponse,
    OffsetCommitRequest, OffsetFetchRequest, OffsetToCommit, Offsets, SyncRequest,
};
use crate::{CoordinatorLog, CoordinatorRecord, RecordVisitor};
use freshet_world::env::Clock;
use freshet_world::sim::random::{Seeded, SeededRandomness};

pub(super) const PARTITIONS: i32 = 4;

/// What becomes of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Stored,
    /// Nothing is stored, and the caller learns of it.
    Fails(ResponseError),
    /// The records are stored, but the caller gets an error.
    StoredButFails(ResponseError),
    /// Nothing is stored, and the caller never hears: a crash before the write.
    Lost,
    /// Stored, and the caller never hears: a crash after the write.
    StoredUnheard,
}

#[derive(Default)]
struct LogState {
    partitions: BTreeMap<i32, Vec<CoordinatorRecord>>,
    fates: VecDeque<Fate>,
    appends: Vec<usize>,
    payers: Vec<Option<String>>,
    append_time: Duration,
    slow: Option<(Bytes, Duration)>,
    read_time: Duration,
    read_error: Option<ResponseError>,
    /// When the first coordinator on this log started: their wall clock goes on from then.
    started: Option<Instant>,
}

#[derive(Default)]
pub(super) struct MemoryLog(Mutex<LogState>);

impl MemoryLog {
    pub(super) fn set_append_time(&self, time: Duration) {
        self.0.lock().append_time = time;
    }

    /// Appends with a key that contains `part` take that long.
    pub(super) fn slow_down(&self, part: &str, time: Duration) {
        self.0.lock().slow = Some((Bytes::copy_from_slice(part.as_bytes()), time));
    }

    pub(super) fn set_read(&self, time: Duration, error: Option<ResponseError>) {
        let mut state = self.0.lock();
        state.read_time = time;
        state.read_error = error;
    }

    /// The next appends end so; all others are stored.
    pub(super) fn decide(&self, fates: &[Fate]) {
        self.0.lock().fates = fates.iter().copied().collect();
    }

    /// How many records each append had.
    pub(super) fn appends(&self) -> Vec<usize> {
        self.0.lock().appends.clone()
    }

    /// For whom each append since the last call of this is metered; `None` is the service itself.
    pub(super) fn take_payers(&self) -> Vec<Option<String>> {
        std::mem::take(&mut self.0.lock().payers)
    }

    pub(super) fn put(&self, index: i32, record: CoordinatorRecord) {
        self.0.lock().partitions.entry(index).or_default().push(record);
    }

    /// The offsets of a group that the log holds, read without the coordinator.
    pub(super) fn offsets(&self, group_id: &str) -> Offsets {
        let mut offsets = Offsets::default();
        for record in self.0.lock().partitions.values().flatten() {
            match records::read_key(record.key.clone()).unwrap() {
                Key::Offset { group, topic, partition } if group == group_id => {
                    match record.value.clone() {
                        Some(value) => {
                            offsets.put(&topic, partition, records::read_offset(value).unwrap());
                        }
                        None => offsets.remove(&topic, partition),
                    }
                }
                _ => {}
            }
        }
        offsets
    }

    /// The value of a group's last record.
    pub(super) fn group(&self, group_id: &str) -> Option<records::GroupMetadata> {
        let key = records::group_record(group_id, None).unwrap().key;
        let state = self.0.lock();
        let last = state.partitions.values().flatten().rfind(|record| record.key == key)?;
        last.value.clone().map(|value| records::read_group(value).unwrap())
    }

    fn started(&self) -> Instant {
        *self.0.lock().started.get_or_insert_with(Instant::now)
    }

    fn store(&self, index: i32, records: Vec<CoordinatorRecord>) {
        self.0.lock().partitions.entry(index).or_default().extend(records);
    }
}

#[async_trait]
impl CoordinatorLog for MemoryLog {
    async fn append(
        &self,
        index: i32,
        payer: Option<&Arc<str>>,
        records: Vec<CoordinatorRecord>,
    ) -> Result<(), ResponseError> {
        let (fate, time) = {
            let mut state = self.0.lock();
            state.appends.push(records.len());
            state.payers.push(payer.map(ToString::to_string));
            let is_slow = |part: &[u8]| {
                records.iter().any(|record| record.key.windows(part.len()).any(|one| one == part))
            };
            let slow = state.slow.as_ref().filter(|(part, _)| is_slow(part));
            let time = slow.map_or(state.append_time, |(_, time)| *time);
            (state.fates.pop_front().unwrap_or(Fate::Stored), time)
        };
        tokio::time::sleep(time).await;
        match fate {
            Fate::Stored => self.store(index, records),
            Fate::Fails(error) => return Err(error),
            Fate::StoredButFails(error) => {
                self.store(index, records);
                return Err(error);
            }
            Fate::Lost => return std::future::pending().await,
            Fate::StoredUnheard => {
                self.store(index, records);
                return std::future::pending().await;
            }
        }
        Ok(())
    }

    async fn read(&self, index: i32, visit: &mut RecordVisitor<'_>) -> Result<(), ResponseError> {
        let (time, error) = {
            let state = self.0.lock();
            (state.read_time, state.read_error)
        };
        tokio::time::sleep(time).await;
        let records = self.0.lock().partitions.get(&index).cloned().unwrap_or_default();
        for record in records {
            visit(record.key, record.value);
        }
        error.map_or(Ok(()), Err)
    }
}

/// A wall clock that goes with the paused one.
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now_ms(&self) -> i64 {
        WALL_MS + i64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

pub(super) fn coordinator_with(log: &Arc<MemoryLog>, settings: GroupSettings) -> GroupCoordinator {
    GroupCoordinator::new(
        settings,
        PARTITIONS,
        Arc::clone(log) as Arc<dyn CoordinatorLog>,
        Arc::new(PausedClock(log.started())),
        Arc::new(SeededRandomness::new(Seeded::new(1))),
    )
}

/// A coordinator that has loaded all its partitions.
pub(super) async fn loaded(log: &Arc<MemoryLog>) -> GroupCoordinator {
    let coordinator = coordinator_with(log, GroupSettings::default());
    load_all(&coordinator).await;
    coordinator
}

pub(super) async fn load_all(coordinator: &GroupCoordinator) {
    for index in 0..PARTITIONS {
        coordinator.load(index).await.unwrap();
    }
}

pub(super) fn commit(group_id: &str, offsets: &[(&str, i32, i64)]) -> OffsetCommitRequest {
    let offset = |(topic, partition, offset): &(&str, i32, i64)| OffsetToCommit {
        topic: (*topic).to_owned(),
        partition: *partition,
        offset: *offset,
        leader_epoch: 5,
        metadata: None,
    };
    OffsetCommitRequest {
        payer: payer(),
        api_version: 9,
        group_id: group_id.to_owned(),
        member_id: String::new(),
        instance_id: None,
        generation: -1,
        retention_time_ms: -1,
        offsets: offsets.iter().map(offset).collect(),
    }
}

pub(super) fn fetch(group_id: &str) -> OffsetFetchRequest {
    OffsetFetchRequest { group_id: group_id.to_owned(), topics: None, require_stable: false }
}

/// Topic, partition and offset of everything that was fetched.
pub(super) fn flat(topics: &[FetchedTopic]) -> Vec<(&str, i32, i64)> {
    topics
        .iter()
        .flat_map(|topic| {
            let partitions = topic.partitions.iter();
            partitions.map(|one| (topic.topic.as_str(), one.partition, one.offset))
        })
        .collect()
}

pub(super) fn sync_request(group_id: &str, joined: &JoinResponse) -> SyncRequest {
    let work = |id: &str| (id.to_owned(), Bytes::from(format!("work of {id}")));
    SyncRequest {
        payer: payer(),
        group_id: group_id.to_owned(),
        generation: joined.generation,
        member_id: joined.member_id.clone(),
        instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: joined.members.iter().map(|member| work(&member.member_id)).collect(),
    }
}

pub(super) fn heartbeat(group_id: &str, joined: &JoinResponse) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: group_id.to_owned(),
        generation: joined.generation,
        member_id: joined.member_id.clone(),
        instance_id: None,
    }
}

/// Joins a group as its clients do: once more where the member must bring its id.
pub(super) async fn join(coordinator: &GroupCoordinator, request: JoinRequest) -> JoinResponse {
    let response = coordinator.join_group(request.clone()).await;
    if response.error != Some(ResponseError::MemberIdRequired) {
        return response;
    }
    let member_id = response.member_id;
    coordinator.join_group(JoinRequest { member_id, ..request }).await
}

/// A stable group of one member.
pub(super) async fn stable_group(coordinator: &GroupCoordinator, group_id: &str) -> JoinResponse {
    let request = JoinRequest { group_id: group_id.to_owned(), ..known_member("") };
    let joined = join(coordinator, request).await;
    assert_eq!(joined.error, None);
    let synced = coordinator.sync_group(sync_request(group_id, &joined)).await;
    assert_eq!(synced.error, None);
    joined
}
