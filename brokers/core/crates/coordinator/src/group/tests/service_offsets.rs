//! Committed offsets through the service.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kafka_protocol::ResponseError;
use tokio::time::{Instant, sleep};

use super::machine::{known_member, leaving, payer};
use super::service_support::{
    Fate, MemoryLog, commit, coordinator_with, fetch, flat, heartbeat, join, load_all, loaded,
    stable_group, sync_request,
};
use crate::group::{
    GroupCoordinator, GroupSettings, JoinRequest, JoinResponse, LeaveRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn fetched(coordinator: &GroupCoordinator, group_id: &str) -> Vec<(String, i32, i64)> {
    let topics = coordinator.fetch_offsets(fetch(group_id)).await.unwrap();
    let owned =
        |(topic, partition, offset): (&str, i32, i64)| (topic.to_owned(), partition, offset);
    flat(&topics).into_iter().map(owned).collect()
}

fn of_member(joined: &JoinResponse, request: OffsetCommitRequest) -> OffsetCommitRequest {
    OffsetCommitRequest {
        member_id: joined.member_id.clone(),
        generation: joined.generation,
        ..request
    }
}

async fn delete(coordinator: &GroupCoordinator, group_id: &str) -> Option<ResponseError> {
    coordinator.delete_groups(&payer(), vec![group_id.to_owned()]).await.remove(0).1
}

async fn leave(coordinator: &GroupCoordinator, group_id: &str, joined: &JoinResponse) {
    let members = vec![leaving(&joined.member_id, None)];
    let left = coordinator.leave_group(LeaveRequest {
        payer: payer(),
        group_id: group_id.to_owned(),
        members,
    });
    assert_eq!(left.await.error, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_committed_is_fetched() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let mut request = commit("g", &[("t", 0, 10), ("t", 1, 20)]);
    request.offsets[0].metadata = Some("note".to_owned());
    assert_eq!(coordinator.commit_offsets(request).await, Ok(vec![None, None]));
    let some = OffsetFetchRequest {
        topics: Some(vec![("t".to_owned(), vec![1, 2, 0]), ("u".to_owned(), vec![0])]),
        ..fetch("g")
    };
    let topics = coordinator.fetch_offsets(some).await.unwrap();
    assert_eq!(flat(&topics), [("t", 1, 20), ("t", 2, -1), ("t", 0, 10), ("u", 0, -1)]);
    let first = &topics[0].partitions[2];
    assert_eq!((first.leader_epoch, first.metadata.as_str()), (5, "note"));
    assert_eq!(topics[0].partitions[1].leader_epoch, -1);
    assert_eq!(fetched(&coordinator, "unknown").await, []);
    // The group with an empty name may commit, as with Kafka.
    coordinator.commit_offsets(commit("", &[("t", 0, 1)])).await.unwrap();
    assert_eq!(fetched(&coordinator, "").await, [("t".to_owned(), 0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn metadata_that_is_too_large_fails_alone() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let mut request = commit("g", &[("t", 0, 1), ("t", 1, 2), ("t", 2, 3)]);
    request.offsets[0].metadata = Some("\u{fc}".repeat(4_096));
    request.offsets[1].metadata = Some("x".repeat(4_097));
    let errors = coordinator.commit_offsets(request).await.unwrap();
    assert_eq!(errors, [None, Some(ResponseError::OffsetMetadataTooLarge), None]);
    let offsets = fetched(&coordinator, "g").await;
    assert_eq!(offsets, [("t".to_owned(), 0, 1), ("t".to_owned(), 2, 3)]);

    let mut request = commit("nothing", &[("t", 0, 1)]);
    request.offsets[0].metadata = Some("x".repeat(5_000));
    coordinator.commit_offsets(request).await.unwrap();
    assert_eq!(coordinator.list_groups(&[], &[]).unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_invisible_until_it_is_durable() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = Arc::new(loaded(&log).await);
    log.set_append_time(Duration::from_secs(1));
    let committing = coordinator.commit_offsets(commit("g", &[("t", 0, 1)]));
    let looking = async {
        sleep(Duration::from_millis(900)).await;
        assert_eq!(fetched(&coordinator, "g").await, []);
        assert_eq!(coordinator.list_groups(&[], &[]), Ok(Vec::new()));
    };
    let (committed, ()) = tokio::join!(committing, looking);
    assert_eq!(committed, Ok(vec![None]));
    assert_eq!(fetched(&coordinator, "g").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_commit_leaves_everything_as_it_was() {
    use ResponseError as E;
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let translated = [
        (E::NotLeaderOrFollower, E::NotCoordinator),
        (E::KafkaStorageError, E::NotCoordinator),
        (E::NotCoordinator, E::NotCoordinator),
        (E::RequestTimedOut, E::CoordinatorNotAvailable),
        (E::NotEnoughReplicas, E::CoordinatorNotAvailable),
        (E::MessageTooLarge, E::UnknownServerError),
    ];
    for (of_log, of_coordinator) in translated {
        log.decide(&[Fate::Fails(of_log)]);
        let committed = coordinator.commit_offsets(commit("g", &[("t", 0, 1)])).await;
        assert_eq!(committed, Err(of_coordinator));
        assert_eq!(fetched(&coordinator, "g").await, []);
        assert_eq!(coordinator.list_groups(&[], &[]), Ok(Vec::new()));
    }
    coordinator.commit_offsets(commit("g", &[("t", 0, 1)])).await.unwrap();
    log.decide(&[Fate::Fails(E::NotCoordinator)]);
    coordinator.commit_offsets(commit("g", &[("t", 0, 2)])).await.unwrap_err();
    assert_eq!(fetched(&coordinator, "g").await, [("t".to_owned(), 0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn commits_that_come_during_an_append_go_together_in_order() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    log.set_append_time(Duration::from_millis(10));
    let started = Instant::now();
    let commits = (0..20).map(|number| {
        let coordinator = &coordinator;
        async move { coordinator.commit_offsets(commit("g", &[("t", 0, number)])).await }
    });
    assert!(join_all(commits).await.iter().all(Result::is_ok));
    // All are polled before the task that appends runs.
    assert_eq!(log.appends(), [20]);
    assert_eq!(started.elapsed(), Duration::from_millis(10));
    assert_eq!(fetched(&coordinator, "g").await, [("t".to_owned(), 0, 19)]);

    let commits = (20..30).map(|number| {
        let coordinator = &coordinator;
        async move {
            sleep(Duration::from_millis(u64::try_from(number - 20).unwrap())).await;
            coordinator.commit_offsets(commit("g", &[("t", 0, number)])).await
        }
    });
    assert!(join_all(commits).await.iter().all(Result::is_ok));
    assert_eq!(log.appends(), [20, 1, 9], "what came during the second append is in the third");
    assert_eq!(log.offsets("g").get("t", 0).unwrap().offset, 29);
}

#[tokio::test(start_paused = true)]
async fn large_writes_go_alone() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    log.set_append_time(Duration::from_millis(10));
    let large = |topic: String| {
        let offsets: Vec<_> = (0..50).map(|partition| (topic.as_str(), partition, 1)).collect();
        let mut request = commit("g", &offsets);
        for offset in &mut request.offsets {
            offset.metadata = Some("x".repeat(4_000));
        }
        coordinator.commit_offsets(request)
    };
    let committed = join_all((0..3).map(|number| large(format!("t{number}")))).await;
    assert!(committed.iter().all(Result::is_ok));
    assert_eq!(log.appends(), [50, 50, 50], "two of 200 kB are more than go together");
}

#[tokio::test(start_paused = true)]
async fn a_slow_group_does_not_hold_up_others() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    log.slow_down("slow", Duration::from_secs(10));
    let started = Instant::now();
    let time = async |group_id: &str| {
        coordinator.commit_offsets(commit(group_id, &[("t", 0, 1)])).await.unwrap();
        started.elapsed()
    };
    let (slow, quick) = tokio::join!(time("slow"), time("quick"));
    assert_eq!(slow, Duration::from_secs(10));
    assert!(quick < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_stable_fetch_waits_for_commits_under_way() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    log.set_append_time(Duration::from_secs(1));
    let stable = || OffsetFetchRequest { require_stable: true, ..fetch("g") };
    for fate in [Fate::Fails(ResponseError::NotCoordinator), Fate::Stored] {
        log.decide(&[fate]);
        let committing = coordinator.commit_offsets(commit("g", &[("t", 0, 1)]));
        let (committed, topics) = tokio::join!(committing, coordinator.fetch_offsets(stable()));
        assert_eq!(flat(&topics.unwrap()).len(), usize::from(committed.is_ok()));
    }
    let started = Instant::now();
    coordinator.fetch_offsets(stable()).await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO, "nothing is under way");
}

#[tokio::test(start_paused = true)]
async fn commits_are_checked_against_the_group() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let of_generation = |api_version| OffsetCommitRequest {
        api_version,
        generation: 3,
        ..commit("unknown", &[("t", 0, 1)])
    };
    let committed = coordinator.commit_offsets(of_generation(9)).await;
    assert_eq!(committed, Err(ResponseError::GroupIdNotFound));
    let committed = coordinator.commit_offsets(of_generation(8)).await;
    assert_eq!(committed, Err(ResponseError::IllegalGeneration));

    let joined = stable_group(&coordinator, "g").await;
    let good = of_member(&joined, commit("g", &[("t", 0, 4)]));
    assert_eq!(coordinator.commit_offsets(good).await, Ok(vec![None]));
    let non_member = commit("g", &[("t", 0, 5)]);
    let committed = coordinator.commit_offsets(non_member).await;
    assert_eq!(committed, Err(ResponseError::UnknownMemberId));
    assert_eq!(fetched(&coordinator, "g").await, [("t".to_owned(), 0, 4)]);
}

#[tokio::test(start_paused = true)]
async fn commits_keep_a_member_alive() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let joined = stable_group(&coordinator, "g").await;
    for number in 0..10 {
        sleep(Duration::from_secs(8)).await;
        let request = of_member(&joined, commit("g", &[("t", 0, number)]));
        assert_eq!(coordinator.commit_offsets(request).await, Ok(vec![None]));
    }
}

#[tokio::test(start_paused = true)]
async fn offsets_expire_a_week_after_the_commit_where_nobody_joins() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    coordinator.commit_offsets(commit("g", &[("t", 0, 1)])).await.unwrap();
    let own = OffsetCommitRequest { retention_time_ms: 1_000, ..commit("own", &[("t", 0, 1)]) };
    coordinator.commit_offsets(own).await.unwrap();
    sleep(Duration::from_secs(601)).await;
    assert_eq!(fetched(&coordinator, "own").await, []);
    sleep(DAY * 6).await;
    coordinator.commit_offsets(commit("g", &[("t", 1, 1)])).await.unwrap();
    sleep(DAY + Duration::from_secs(601)).await;
    assert_eq!(fetched(&coordinator, "g").await, [("t".to_owned(), 1, 1)]);
    sleep(DAY * 6).await;
    assert_eq!(coordinator.list_groups(&[], &[]), Ok(Vec::new()), "gone with its last offset");
    assert!(log.offsets("g").is_empty());
    let after = loaded(&log).await;
    assert_eq!(after.list_groups(&[], &[]), Ok(Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn offsets_of_a_group_expire_a_week_after_it_became_empty() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let joined = stable_group(&coordinator, "g").await;
    let request = of_member(&joined, commit("g", &[("t", 0, 1)]));
    coordinator.commit_offsets(request).await.unwrap();
    for _ in 0..DAY.as_secs() * 8 / 9 {
        sleep(Duration::from_secs(9)).await;
        let alive = heartbeat("g", &joined);
        assert_eq!(coordinator.heartbeat(&alive), Ok(()));
    }
    assert_eq!(fetched(&coordinator, "g").await.len(), 1, "it is subscribed to the topic");
    leave(&coordinator, "g", &joined).await;
    sleep(DAY * 6).await;
    drop(coordinator);
    let coordinator = loaded(&log).await;
    assert_eq!(fetched(&coordinator, "g").await.len(), 1);
    sleep(DAY * 7 + Duration::from_secs(601)).await;
    assert_eq!(fetched(&coordinator, "g").await, []);
    assert_eq!(log.group("g"), None);
}

#[tokio::test(start_paused = true)]
async fn an_expiry_that_cannot_be_stored_is_tried_again() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    coordinator.commit_offsets(commit("g", &[("t", 0, 1)])).await.unwrap();
    log.decide(&[Fate::Fails(ResponseError::CoordinatorNotAvailable)]);
    sleep(DAY * 7 + Duration::from_secs(300)).await;
    assert_eq!(fetched(&coordinator, "g").await.len(), 1);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(fetched(&coordinator, "g").await, []);
}

#[tokio::test(start_paused = true)]
async fn only_an_empty_group_can_be_deleted() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    assert_eq!(delete(&coordinator, "g").await, Some(ResponseError::GroupIdNotFound));
    let joined = stable_group(&coordinator, "g").await;
    let request = of_member(&joined, commit("g", &[("t", 0, 1), ("u", 3, 1)]));
    coordinator.commit_offsets(request).await.unwrap();
    assert_eq!(delete(&coordinator, "g").await, Some(ResponseError::NonEmptyGroup));
    leave(&coordinator, "g", &joined).await;
    assert_eq!(delete(&coordinator, "g").await, None);
    assert_eq!(coordinator.list_groups(&[], &[]), Ok(Vec::new()));
    assert_eq!(delete(&coordinator, "g").await, Some(ResponseError::GroupIdNotFound));
    let after = loaded(&log).await;
    assert_eq!(after.list_groups(&[], &[]), Ok(Vec::new()));
    assert_eq!(fetched(&after, "g").await, []);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_takes_the_commits_before_it_and_leaves_those_after() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    log.set_append_time(Duration::from_millis(10));
    let (before, deleted, after) = tokio::join!(
        coordinator.commit_offsets(commit("g", &[("before", 0, 1)])),
        delete(&coordinator, "g"),
        coordinator.commit_offsets(commit("g", &[("after", 0, 1)])),
    );
    assert_eq!((before, deleted, after), (Ok(vec![None]), None, Ok(vec![None])));
    let expected = [("after".to_owned(), 0, 1)];
    assert_eq!(fetched(&coordinator, "g").await, expected);
    assert_eq!(fetched(&loaded(&log).await, "g").await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_joined_while_it_is_deleted_lives_on_without_its_offsets() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    coordinator.commit_offsets(commit("g", &[("t", 0, 1)])).await.unwrap();
    log.set_append_time(Duration::from_secs(1));
    let member = JoinRequest { api_version: 3, ..known_member("") };
    let joining = async {
        sleep(Duration::from_millis(500)).await;
        join(&coordinator, member).await
    };
    let (deleted, joined) = tokio::join!(delete(&coordinator, "g"), joining);
    assert_eq!((deleted, joined.error), (None, None));
    assert_eq!(fetched(&coordinator, "g").await, []);
    let request = sync_request("g", &joined);
    assert_eq!(coordinator.sync_group(request).await.error, None);
    assert_eq!(log.group("g").unwrap().members.len(), 1);
    let described = coordinator.describe_groups(6, &["g".to_owned()]);
    assert_eq!(loaded(&log).await.describe_groups(6, &["g".to_owned()]), described);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_came_and_went_while_it_was_deleted_is_as_the_log_has_it() {
    let log = Arc::new(MemoryLog::default());
    let settings = GroupSettings { initial_rebalance_delay_ms: 0, ..GroupSettings::default() };
    let coordinator = coordinator_with(&log, settings);
    load_all(&coordinator).await;
    coordinator.commit_offsets(commit("g", &[("t", 0, 1)])).await.unwrap();
    log.set_append_time(Duration::from_secs(1));
    let coming = async {
        sleep(Duration::from_millis(500)).await;
        let joined = join(&coordinator, known_member("")).await;
        leave(&coordinator, "g", &joined).await;
    };
    let (deleted, ()) = tokio::join!(delete(&coordinator, "g"), coming);
    assert_eq!(deleted, None);
    let listed = coordinator.list_groups(&[], &[]).unwrap();
    assert_eq!((listed.len(), listed[0].state), (1, "Empty"));
    assert_eq!(loaded(&log).await.list_groups(&[], &[]), Ok(listed));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_leaves_the_group() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    coordinator.commit_offsets(commit("g", &[("t", 0, 1)])).await.unwrap();
    log.decide(&[Fate::Fails(ResponseError::RequestTimedOut)]);
    assert_eq!(delete(&coordinator, "g").await, Some(ResponseError::CoordinatorNotAvailable));
    assert_eq!(fetched(&coordinator, "g").await, [("t".to_owned(), 0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_group_with_many_offsets_is_deleted_in_several_appends() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let offsets: Vec<_> = (0..2_500).map(|partition| ("t", partition, 1)).collect();
    coordinator.commit_offsets(commit("g", &offsets)).await.unwrap();
    assert_eq!(delete(&coordinator, "g").await, None);
    assert_eq!(log.appends(), [2_500, 1_000, 1_000, 501]);
    assert!(log.offsets("g").is_empty());
    assert_eq!(coordinator.list_groups(&[], &[]), Ok(Vec::new()));
}

fn to_delete(group_id: &str, topics: &[(&str, &[i32])]) -> OffsetDeleteRequest {
    let topics =
        topics.iter().map(|(topic, partitions)| ((*topic).to_owned(), partitions.to_vec()));
    OffsetDeleteRequest { payer: payer(), group_id: group_id.to_owned(), topics: topics.collect() }
}

#[tokio::test(start_paused = true)]
async fn offsets_of_topics_that_nobody_subscribes_to_can_be_deleted() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let joined = stable_group(&coordinator, "g").await;
    let request = of_member(&joined, commit("g", &[("t", 0, 1), ("u", 0, 2), ("u", 1, 3)]));
    coordinator.commit_offsets(request).await.unwrap();
    let request = to_delete("g", &[("t", &[0]), ("u", &[0, 7])]);
    let errors = coordinator.delete_offsets(request).await.unwrap();
    let subscribed = Some(ResponseError::GroupSubscribedToTopic);
    let expected =
        [("t".to_owned(), vec![(0, subscribed)]), ("u".to_owned(), vec![(0, None), (7, None)])];
    assert_eq!(errors, expected);
    let left = [("t".to_owned(), 0, 1), ("u".to_owned(), 1, 3)];
    assert_eq!(fetched(&coordinator, "g").await, left);
    assert_eq!(fetched(&loaded(&log).await, "g").await, left);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_offsets_is_checked() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let outcome = async |request| coordinator.delete_offsets(request).await.unwrap_err();
    let nothing: &[(&str, &[i32])] = &[];
    assert_eq!(outcome(to_delete("", nothing)).await, ResponseError::InvalidGroupId);
    assert_eq!(outcome(to_delete("x", nothing)).await, ResponseError::GroupIdNotFound);
    let connect = JoinRequest { protocol_type: "connect".to_owned(), ..known_member("") };
    join(&coordinator, connect).await;
    assert_eq!(outcome(to_delete("g", nothing)).await, ResponseError::NonEmptyGroup);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_topic_is_forgotten_by_all_groups() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    for group_id in ["a", "b", "c"] {
        let request = commit(group_id, &[("gone", 0, 1), ("gone", 1, 2), ("kept", 0, 3)]);
        coordinator.commit_offsets(request).await.unwrap();
    }
    coordinator.forget_topic("gone").await.unwrap();
    for group_id in ["a", "b", "c"] {
        assert_eq!(fetched(&coordinator, group_id).await, [("kept".to_owned(), 0, 3)]);
        assert_eq!(log.offsets(group_id).len(), 1);
    }
    log.decide(&[Fate::Fails(ResponseError::NotCoordinator)]);
    let forgotten = coordinator.forget_topic("kept").await;
    assert_eq!(forgotten, Err(ResponseError::NotCoordinator));
    assert_eq!(coordinator.list_groups(&[], &[]).unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_committed_after_a_deletion_stays() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let request = commit("g", &[("again", 0, 1), ("kept", 0, 3)]);
    coordinator.commit_offsets(request).await.unwrap();
    let committed_ms = log.offsets("g").get("again", 0).unwrap().commit_timestamp_ms;
    let deleted = |until_ms| [("again".to_owned(), until_ms), ("other".to_owned(), i64::MAX)];
    coordinator.forget_deleted(None, deleted(committed_ms - 1).into()).await.unwrap();
    assert_eq!(fetched(&coordinator, "g").await.len(), 2);
    coordinator.forget_deleted(None, deleted(committed_ms).into()).await.unwrap();
    assert_eq!(fetched(&coordinator, "g").await, [("kept".to_owned(), 0, 3)]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_fails_alone() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let endless = "x".repeat(40_000);
    let (refused, taken) = tokio::join!(
        coordinator.commit_offsets(commit("g", &[(&endless, 0, 1)])),
        coordinator.commit_offsets(commit("g", &[("t", 0, 1)])),
    );
    assert_eq!(refused, Err(ResponseError::UnknownServerError));
    assert_eq!(taken, Ok(vec![None]));
    assert_eq!(log.appends(), [1]);
}
