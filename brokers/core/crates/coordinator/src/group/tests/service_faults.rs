//! Appends that fail or are never heard of: clients must not see what the log does not have, and a
//! coordinator that loads the log must have all that was acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use tokio::time::timeout;

use super::machine::{known_member, payer, static_member};
use super::service_support::{
    Fate, MemoryLog, commit, fetch, flat, heartbeat, join, loaded, stable_group, sync_request,
};
use crate::group::{DescribedGroup, GroupCoordinator, JoinRequest, JoinResponse, Offsets};
use freshet_world::sim::random::Seeded;

const ERROR: ResponseError = ResponseError::NotLeaderOrFollower;
const FATES: [Fate; 4] =
    [Fate::Fails(ERROR), Fate::StoredButFails(ERROR), Fate::Lost, Fate::StoredUnheard];

/// Whether an append of that fate ends up in the log.
fn is_stored(fate: Fate) -> bool {
    matches!(fate, Fate::Stored | Fate::StoredButFails(_) | Fate::StoredUnheard)
}

/// The answer, unless it never comes.
async fn answered<T>(request: impl Future<Output = T>) -> Option<T> {
    timeout(Duration::from_secs(5), request).await.ok()
}

fn describe(coordinator: &GroupCoordinator) -> DescribedGroup {
    coordinator.describe_groups(6, &["g".to_owned()]).remove(0)
}

async fn offsets_of(coordinator: &GroupCoordinator, group_id: &str) -> Vec<(String, i32, i64)> {
    let topics = coordinator.fetch_offsets(fetch(group_id)).await.unwrap();
    flat(&topics).into_iter().map(|(topic, one, offset)| (topic.to_owned(), one, offset)).collect()
}

fn as_list(offsets: &Offsets) -> Vec<(String, i32, i64)> {
    offsets.iter().map(|(topic, one, value)| (topic.to_owned(), one, value.offset)).collect()
}

#[tokio::test(start_paused = true)]
async fn an_assignment_that_is_not_acknowledged_is_not_given_out() {
    for fate in FATES {
        let log = Arc::new(MemoryLog::default());
        let before = loaded(&log).await;
        let joined = join(&before, known_member("")).await;
        log.decide(&[fate]);
        let synced = answered(before.sync_group(sync_request("g", &joined))).await;
        if let Some(synced) = synced {
            assert_eq!(synced.error, Some(ResponseError::NotCoordinator));
            assert_eq!(synced.assignment, Bytes::new());
        }
        assert_ne!(describe(&before).state, "Stable");
        drop(before);

        let after = loaded(&log).await;
        let alive = after.heartbeat(&heartbeat("g", &joined));
        let group = describe(&after);
        if is_stored(fate) {
            assert_eq!((alive, group.state), (Ok(()), "Stable"), "{fate:?}");
        } else {
            assert_eq!(alive, Err(ResponseError::UnknownMemberId), "{fate:?}");
            assert_eq!(group.error, Some(ResponseError::GroupIdNotFound));
        }
        // Either way the client gets on.
        let again = join(&after, known_member("")).await;
        assert_eq!(again.error, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_static_return_that_is_not_acknowledged_is_not_seen() {
    for fate in FATES {
        let log = Arc::new(MemoryLog::default());
        let before = loaded(&log).await;
        let joined = join(&before, static_member("one")).await;
        let synced = before.sync_group(sync_request("g", &joined)).await;
        assert_eq!(synced.error, None);
        let seen = describe(&before);
        log.decide(&[fate]);
        let returned = answered(before.join_group(static_member("one"))).await;
        assert!(returned.is_none_or(|one| one.error == Some(ResponseError::NotCoordinator)));
        assert_eq!(describe(&before), seen);
        assert_eq!(before.heartbeat(&heartbeat("g", &joined)), Ok(()));
        drop(before);

        let after = loaded(&log).await;
        assert_eq!(describe(&after) == seen, !is_stored(fate), "{fate:?}");
        let again = after.join_group(static_member("one")).await;
        assert_eq!((again.error, again.generation), (None, joined.generation));
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_not_acknowledged_is_not_seen() {
    for fate in FATES {
        let log = Arc::new(MemoryLog::default());
        let before = loaded(&log).await;
        before.commit_offsets(commit("g", &[("t", 0, 1)])).await.unwrap();
        log.decide(&[fate]);
        let deleted = answered(before.delete_groups(&payer(), vec!["g".to_owned()])).await;
        assert!(deleted.is_none_or(|one| one[0].1 == Some(ResponseError::NotCoordinator)));
        assert_eq!(offsets_of(&before, "g").await.len(), 1);
        drop(before);
        let after = loaded(&log).await;
        assert_eq!(offsets_of(&after, "g").await.is_empty(), is_stored(fate), "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_is_not_acknowledged_is_not_seen_and_its_retry_is() {
    for fate in FATES {
        let log = Arc::new(MemoryLog::default());
        let before = loaded(&log).await;
        before.commit_offsets(commit("g", &[("t", 0, 1)])).await.unwrap();
        log.decide(&[fate]);
        let committed = answered(before.commit_offsets(commit("g", &[("t", 0, 2)]))).await;
        assert!(committed.is_none_or(|one| one == Err(ResponseError::NotCoordinator)));
        assert_eq!(offsets_of(&before, "g").await, [("t".to_owned(), 0, 1)]);
        drop(before);
        let after = loaded(&log).await;
        let expected = if is_stored(fate) { 2 } else { 1 };
        assert_eq!(offsets_of(&after, "g").await, [("t".to_owned(), 0, expected)]);
        after.commit_offsets(commit("g", &[("t", 0, 2)])).await.unwrap();
        assert_eq!(offsets_of(&after, "g").await, [("t".to_owned(), 0, 2)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_does_not_undo_its_commit() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    log.set_append_time(Duration::from_secs(1));
    let commit = coordinator.commit_offsets(commit("g", &[("t", 0, 1)]));
    assert!(timeout(Duration::from_millis(500), commit).await.is_err());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(offsets_of(&coordinator, "g").await, as_list(&log.offsets("g")));
    assert_eq!(offsets_of(&coordinator, "g").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_does_not_hold_up_its_group() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let request = JoinRequest { api_version: 3, ..known_member("") };
    let gone = coordinator.join_group(request);
    assert!(timeout(Duration::from_secs(1), gone).await.is_err());
    let joined = join(&coordinator, known_member("")).await;
    assert_eq!((joined.error, joined.generation), (None, 1));
}

/// What the acknowledged commits and deletions of one seed amount to.
struct Reference {
    log: Arc<MemoryLog>,
    coordinator: GroupCoordinator,
    acknowledged: BTreeMap<(String, String, i32), i64>,
    random: Seeded,
    next_offset: i64,
}

impl Reference {
    async fn new(seed: u64) -> Self {
        let log = Arc::new(MemoryLog::default());
        let coordinator = loaded(&log).await;
        let random = Seeded::new(seed);
        Self { log, coordinator, acknowledged: BTreeMap::new(), random, next_offset: 0 }
    }

    fn group_id(&mut self) -> String {
        format!("g{}", self.random.below(3))
    }

    /// What the next append comes to. A step that is not acknowledged may or may not be in the
    /// log: that alone decides, and `adopt` takes it over.
    fn fate(&mut self) -> Fate {
        let fate = match self.random.below(12) {
            0 => Fate::Fails(ERROR),
            1 => Fate::StoredButFails(ERROR),
            2 => Fate::Lost,
            3 => Fate::StoredUnheard,
            _ => Fate::Stored,
        };
        self.log.decide(&[fate]);
        fate
    }

    async fn commit(&mut self) {
        let group_id = self.group_id();
        let topic = format!("t{}", self.random.below(2));
        let partition = i32::try_from(self.random.below(3)).unwrap();
        self.next_offset += 1;
        let fate = self.fate();
        let request = commit(&group_id, &[(&topic, partition, self.next_offset)]);
        let answer = answered(self.coordinator.commit_offsets(request)).await;
        let is_acknowledged = matches!(answer, Some(Ok(_)));
        assert_eq!(is_acknowledged, fate == Fate::Stored);
        if is_acknowledged {
            self.acknowledged.insert((group_id, topic, partition), self.next_offset);
        }
        self.settle(fate).await;
    }

    async fn delete(&mut self) {
        let group_id = self.group_id();
        let exists = self.acknowledged.keys().any(|(group, _, _)| *group == group_id);
        let fate = if exists { self.fate() } else { Fate::Stored };
        let answer =
            answered(self.coordinator.delete_groups(&payer(), vec![group_id.clone()])).await;
        match answer.map(|mut groups| groups.remove(0).1) {
            Some(None) => {
                assert!(exists && fate == Fate::Stored);
                self.acknowledged.retain(|(group, _, _), _| *group != group_id);
            }
            Some(Some(ResponseError::GroupIdNotFound)) => assert!(!exists),
            Some(Some(error)) => assert_eq!(error, ResponseError::NotCoordinator),
            None => assert!(matches!(fate, Fate::Lost | Fate::StoredUnheard)),
        }
        self.settle(fate).await;
    }

    /// After an append whose outcome is open, the partition is taken over anew.
    async fn settle(&mut self, fate: Fate) {
        if matches!(fate, Fate::StoredButFails(_) | Fate::Lost | Fate::StoredUnheard) {
            self.check_visible().await;
            self.coordinator = loaded(&self.log).await;
            self.adopt();
        } else if self.random.chance(100) {
            self.coordinator = loaded(&self.log).await;
        }
        self.check_visible().await;
    }

    /// What was not acknowledged may have happened. Nothing that was may be missing.
    fn adopt(&mut self) {
        let before = std::mem::take(&mut self.acknowledged);
        for number in 0..3 {
            let group = format!("g{number}");
            for (topic, partition, value) in self.log.offsets(&group).iter() {
                let key = (group.clone(), topic.to_owned(), partition);
                assert!(before.get(&key).is_none_or(|offset| *offset <= value.offset));
                self.acknowledged.insert(key, value.offset);
            }
        }
    }

    async fn check_visible(&self) {
        for number in 0..3 {
            let group_id = format!("g{number}");
            let expected: Vec<_> = self
                .acknowledged
                .iter()
                .filter(|((group, _, _), _)| *group == group_id)
                .map(|((_, topic, partition), offset)| (topic.clone(), *partition, *offset))
                .collect();
            assert_eq!(offsets_of(&self.coordinator, &group_id).await, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn offsets_equal_the_acknowledged_ones_whatever_fails() {
    for seed in 0..60 {
        let mut reference = Reference::new(seed).await;
        for _ in 0..80 {
            match reference.random.below(8) {
                0 => reference.delete().await,
                _ => reference.commit().await,
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_generation_outlives_any_number_of_restarts() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let joined: JoinResponse = stable_group(&coordinator, "g").await;
    let seen = describe(&coordinator);
    drop(coordinator);
    for _ in 0..5 {
        let coordinator = loaded(&log).await;
        assert_eq!(describe(&coordinator), seen);
        assert_eq!(coordinator.heartbeat(&heartbeat("g", &joined)), Ok(()));
    }
    assert_eq!(log.appends(), [1], "a load writes nothing");
}
