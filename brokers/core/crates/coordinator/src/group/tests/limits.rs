//! Limits on the number of groups, on their members and on the bytes of members and of all groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::machine::{known_member, payer};
use super::service_support::{
    MemoryLog, PARTITIONS, commit, coordinator_with, join, load_all, loaded, stable_group,
    sync_request,
};
use crate::group::{
    GroupCoordinator, GroupLimits, GroupSettings, JoinRequest, JoinResponse, LeaveRequest,
    LeavingMember, OffsetCommitRequest, OffsetDeleteRequest, Protocol, SyncRequest,
};

const NONE: usize = usize::MAX;

/// Limits that a test changes.
struct Limits {
    groups: AtomicUsize,
    members: AtomicUsize,
    bytes: AtomicUsize,
}

/// Has the coordinator ask for its limits; returns what they are.
fn limited(coordinator: &GroupCoordinator) -> Arc<Limits> {
    let none = || AtomicUsize::new(NONE);
    let limits = Arc::new(Limits { groups: none(), members: none(), bytes: none() });
    let now = Arc::clone(&limits);
    coordinator.limit_by(move || GroupLimits {
        groups: Some(now.groups.load(Ordering::Relaxed)),
        members: Some(now.members.load(Ordering::Relaxed)),
        bytes: Some(now.bytes.load(Ordering::Relaxed)),
    });
    limits
}

fn member_of(group_id: &str) -> JoinRequest {
    JoinRequest { group_id: group_id.to_owned(), ..known_member("") }
}

#[tokio::test(start_paused = true)]
async fn new_groups_are_refused_where_there_are_as_many_as_there_may_be() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let limits = limited(&coordinator);
    limits.groups.store(2, Ordering::Relaxed);
    stable_group(&coordinator, "first").await;
    coordinator.commit_offsets(commit("second", &[("t", 0, 1)])).await.unwrap();
    let refused = coordinator.commit_offsets(commit("third", &[("t", 0, 1)])).await;
    assert_eq!(refused, Err(ResponseError::PolicyViolation));
    let refused = coordinator.join_group(member_of("third")).await;
    assert_eq!(refused.error, Some(ResponseError::GroupMaxSizeReached));
    assert_eq!(log.offsets("third").len(), 0);
    // Those that exist go on, also where the limit is lowered below them.
    limits.groups.store(0, Ordering::Relaxed);
    coordinator.commit_offsets(commit("second", &[("t", 1, 1)])).await.unwrap();
    assert_eq!(coordinator.list_groups(&[], &[]).unwrap().len(), 2);
    // One that is deleted gives its place free; a raised limit takes effect at once.
    limits.groups.store(2, Ordering::Relaxed);
    assert_eq!(coordinator.delete_groups(&payer(), vec!["second".to_owned()]).await[0].1, None);
    coordinator.commit_offsets(commit("third", &[("t", 0, 1)])).await.unwrap();
    limits.groups.store(3, Ordering::Relaxed);
    stable_group(&coordinator, "fourth").await;
}

#[tokio::test(start_paused = true)]
async fn many_new_groups_at_once_do_not_pass_the_limit_together() {
    let log = Arc::new(MemoryLog::default());
    log.set_append_time(Duration::from_millis(50));
    let coordinator = Arc::new(loaded(&log).await);
    limited(&coordinator).groups.store(5, Ordering::Relaxed);
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let coordinator = Arc::clone(&coordinator);
            let request = commit(&format!("g-{number}"), &[("t", 0, 1)]);
            tokio::spawn(async move { coordinator.commit_offsets(request).await.is_ok() })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += usize::from(task.await.unwrap());
    }
    assert_eq!(made, 5);
}

#[tokio::test(start_paused = true)]
async fn groups_that_are_loaded_count() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    for group_id in ["first", "second"] {
        coordinator.commit_offsets(commit(group_id, &[("t", 0, 1)])).await.unwrap();
    }
    let next = coordinator_with(&log, GroupSettings::default());
    limited(&next).groups.store(2, Ordering::Relaxed);
    // Loading again does not count anything twice.
    load_all(&next).await;
    load_all(&next).await;
    let refused = next.commit_offsets(commit("third", &[("t", 0, 1)])).await;
    assert_eq!(refused, Err(ResponseError::PolicyViolation));
    assert_eq!(next.delete_groups(&payer(), vec!["first".to_owned()]).await[0].1, None);
    next.commit_offsets(commit("third", &[("t", 0, 1)])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn members_are_refused_where_the_group_has_as_many_as_it_may() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let limits = limited(&coordinator);
    limits.members.store(1, Ordering::Relaxed);
    stable_group(&coordinator, "g").await;
    let refused = join(&coordinator, member_of("g")).await;
    assert_eq!(refused.error, Some(ResponseError::GroupMaxSizeReached));
    // Ids that are given out and never used are bounded, too.
    let first = coordinator.join_group(member_of("ids")).await;
    assert_eq!(first.error, Some(ResponseError::MemberIdRequired));
    let second = coordinator.join_group(member_of("ids")).await;
    assert_eq!(second.error, Some(ResponseError::GroupMaxSizeReached));
}

#[tokio::test(start_paused = true)]
async fn a_member_brings_and_gets_a_bounded_number_of_bytes() {
    let log = Arc::new(MemoryLog::default());
    let settings = GroupSettings { member_bytes_max: 1_000, ..GroupSettings::default() };
    let coordinator = coordinator_with(&log, settings);
    load_all(&coordinator).await;
    let protocol = |name: &str, bytes: usize| Protocol {
        name: name.to_owned(),
        metadata: Bytes::from(vec![0; bytes]),
    };
    let protocols = vec![protocol("range", 495), protocol("other", 496)];
    let refused = coordinator.join_group(JoinRequest { protocols, ..member_of("g") }).await;
    assert_eq!(refused.error, Some(ResponseError::PolicyViolation));
    let protocols = vec![protocol("range", 495), protocol("other", 495)];
    let joined = join(&coordinator, JoinRequest { protocols, ..member_of("g") }).await;
    assert_eq!(joined.error, None);
    let assignments = vec![(joined.member_id.clone(), Bytes::from(vec![0; 1_001]))];
    let too_much = SyncRequest { assignments, ..sync_request("g", &joined) };
    let refused = coordinator.sync_group(too_much).await;
    assert_eq!(refused.error, Some(ResponseError::PolicyViolation));
    assert_eq!(coordinator.sync_group(sync_request("g", &joined)).await.error, None);
}

/// A coordinator whose members may bring and get more than fits in a group's record.
async fn of_large_members() -> GroupCoordinator {
    let log = Arc::new(MemoryLog::default());
    let settings = GroupSettings { member_bytes_max: 64 << 20, ..GroupSettings::default() };
    let coordinator = coordinator_with(&log, settings);
    load_all(&coordinator).await;
    coordinator
}

fn with_metadata(request: JoinRequest, bytes: usize) -> JoinRequest {
    let metadata = Bytes::from(vec![0; bytes]);
    JoinRequest { protocols: vec![Protocol { name: "range".to_owned(), metadata }], ..request }
}

/// A `SyncGroup` that assigns so many bytes to the leader, who sends it.
fn assign(joined: &JoinResponse, bytes: usize) -> SyncRequest {
    let assignments = vec![(joined.member_id.clone(), Bytes::from(vec![0; bytes]))];
    SyncRequest { assignments, ..sync_request("g", joined) }
}

#[tokio::test(start_paused = true)]
async fn what_no_record_of_a_group_can_hold_is_refused_as_a_limit() {
    let coordinator = of_large_members().await;
    let refused = coordinator.join_group(with_metadata(member_of("g"), 33 << 20)).await;
    assert_eq!(refused.error, Some(ResponseError::PolicyViolation));
    let joined = join(&coordinator, with_metadata(member_of("g"), 20 << 20)).await;
    assert_eq!(joined.error, None);
    let refused = coordinator.sync_group(assign(&joined, 13 << 20)).await;
    assert_eq!(refused.error, Some(ResponseError::PolicyViolation));
    // The group goes on with an assignment that fits. Another member's metadata would not.
    let again = JoinRequest { member_id: joined.member_id.clone(), ..member_of("g") };
    let again = with_metadata(again, 20 << 20);
    let joined = coordinator.join_group(again).await;
    assert_eq!(coordinator.sync_group(assign(&joined, 11 << 20)).await.error, None);
    let other = coordinator.join_group(with_metadata(member_of("g"), 13 << 20)).await;
    assert_eq!(other.error, Some(ResponseError::PolicyViolation));
}

#[tokio::test(start_paused = true)]
async fn a_static_member_that_returns_with_more_than_a_record_holds_is_refused_as_a_limit() {
    let coordinator = of_large_members().await;
    let member = JoinRequest { instance_id: Some("one".to_owned()), ..member_of("g") };
    let joined = join(&coordinator, with_metadata(member.clone(), 1 << 20)).await;
    assert_eq!(coordinator.sync_group(assign(&joined, 30 << 20)).await.error, None);
    let refused = coordinator.join_group(with_metadata(member.clone(), 3 << 20)).await;
    assert_eq!(refused.error, Some(ResponseError::PolicyViolation));
    let returned = coordinator.join_group(with_metadata(member, 1 << 20)).await;
    assert_eq!(returned.error, None);
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_name_no_record_can_hold_is_refused_as_a_limit() {
    let coordinator = of_large_members().await;
    let mut member = member_of("g");
    member.client.client_id = "c".repeat(32_767);
    let joined = join(&coordinator, member).await;
    assert_eq!(joined.error, None);
    let refused = coordinator.sync_group(assign(&joined, 1)).await;
    assert_eq!(refused.error, Some(ResponseError::PolicyViolation));
}

/// A commit of one partition with so many bytes of metadata.
fn commit_of(group_id: &str, partition: i32, bytes: usize) -> OffsetCommitRequest {
    let mut request = commit(group_id, &[("t", partition, 1)]);
    request.offsets[0].metadata = Some("x".repeat(bytes));
    request
}

#[tokio::test(start_paused = true)]
async fn offsets_grow_up_to_the_bytes_of_all_groups_and_what_is_deleted_frees_them() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let limits = limited(&coordinator);
    assert_eq!(coordinator.bytes(), 0);
    coordinator.commit_offsets(commit_of("a", 0, 4_000)).await.unwrap();
    coordinator.commit_offsets(commit_of("b", 0, 1)).await.unwrap();
    // From now on nothing may grow, and all that does not grow goes on.
    let full = coordinator.bytes();
    limits.bytes.store(full, Ordering::Relaxed);
    let refused = Err(ResponseError::PolicyViolation);
    for request in [commit_of("a", 0, 4_001), commit_of("a", 1, 0), commit_of("c", 0, 0)] {
        assert_eq!(coordinator.commit_offsets(request).await, refused);
    }
    coordinator.commit_offsets(commit_of("a", 0, 4_000)).await.unwrap();
    assert_eq!(coordinator.bytes(), full);
    coordinator.commit_offsets(commit_of("a", 0, 2_000)).await.unwrap();
    assert_eq!(coordinator.bytes(), full - 2_000);
    coordinator.commit_offsets(commit_of("a", 0, 4_000)).await.unwrap();
    // Deletion works at the limit, and below it there is room again.
    assert_eq!(coordinator.delete_groups(&payer(), vec!["a".to_owned()]).await[0].1, None);
    assert!(coordinator.bytes() < full - 4_000);
    coordinator.commit_offsets(commit_of("c", 0, 4_000)).await.unwrap();
    assert_eq!(coordinator.bytes(), full);
    limits.bytes.store(0, Ordering::Relaxed);
    let topics = vec![("t".to_owned(), vec![0])];
    let request = OffsetDeleteRequest { payer: payer(), group_id: "c".to_owned(), topics };
    coordinator.delete_offsets(request).await.unwrap();
    coordinator.forget_topic("t").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(coordinator.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_expires_frees_its_bytes() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    coordinator.commit_offsets(commit_of("a", 0, 4_000)).await.unwrap();
    limited(&coordinator).bytes.store(0, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(8 * 24 * 3600)).await;
    assert_eq!(coordinator.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn members_and_assignments_count_until_their_members_have_left() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let limits = limited(&coordinator);
    let metadata = Bytes::from(vec![0; 10_000]);
    let protocols = vec![Protocol { name: "range".to_owned(), metadata }];
    let request = JoinRequest { protocols, ..member_of("g") };
    limits.bytes.store(10_000, Ordering::Relaxed);
    let refused = coordinator.join_group(request.clone()).await;
    assert_eq!(refused.error, Some(ResponseError::PolicyViolation));
    assert_eq!((refused.member_id.as_str(), coordinator.bytes()), ("", 0));
    limits.bytes.store(20_000, Ordering::Relaxed);
    let joined = join(&coordinator, request.clone()).await;
    assert_eq!(joined.error, None);
    let held = coordinator.bytes();
    assert!((10_000..20_000).contains(&held), "{held}");
    // An assignment that does not fit is refused, and the member can be given a smaller one.
    let assign = |bytes: usize| {
        let assignments = vec![(joined.member_id.clone(), Bytes::from(vec![0; bytes]))];
        SyncRequest { assignments, ..sync_request("g", &joined) }
    };
    let refused = coordinator.sync_group(assign(20_001 - held)).await;
    assert_eq!(refused.error, Some(ResponseError::PolicyViolation));
    assert_eq!(coordinator.bytes(), held);
    assert_eq!(coordinator.sync_group(assign(20_000 - held)).await.error, None);
    assert_eq!(coordinator.bytes(), 20_000);
    // A member that joins again as it was takes nothing more, also where the limit was lowered.
    limits.bytes.store(0, Ordering::Relaxed);
    let again = JoinRequest { member_id: joined.member_id.clone(), ..request.clone() };
    let joined = coordinator.join_group(again).await;
    assert_eq!(joined.error, None);
    let other = coordinator.join_group(request).await;
    assert_eq!(other.error, Some(ResponseError::PolicyViolation));
    let member_id = joined.member_id.clone();
    let leaving = LeavingMember { member_id, instance_id: None, reason: None };
    let request = LeaveRequest { payer: payer(), group_id: "g".to_owned(), members: vec![leaving] };
    assert_eq!(coordinator.leave_group(request).await.error, None);
    assert!(coordinator.bytes() < 5_000, "an empty group is left: {}", coordinator.bytes());
    assert_eq!(coordinator.delete_groups(&payer(), vec!["g".to_owned()]).await[0].1, None);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(coordinator.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn many_commits_at_once_do_not_pass_the_limit_of_bytes_together() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = Arc::new(loaded(&log).await);
    coordinator.commit_offsets(commit_of("g-0", 0, 4_000)).await.unwrap();
    let one = coordinator.bytes();
    limited(&coordinator).bytes.store(5 * one, Ordering::Relaxed);
    log.set_append_time(Duration::from_millis(50));
    let commits = (0..20).map(|number| {
        // Some go to one group, one after the other; all wait for their appends together.
        let group_id = format!("g-{}", number.min(10));
        coordinator.commit_offsets(commit_of(&group_id, number, 4_000))
    });
    let outcomes = futures::future::join_all(commits).await;
    let made = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let refused = Err(ResponseError::PolicyViolation);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == refused).count(), 20 - made);
    // The first one is there already with the same bytes, and four more fit; of a group that
    // exists, an offset takes less.
    assert!((5..=7).contains(&made), "{made}");
    assert!(coordinator.bytes() <= 5 * one);
}

#[tokio::test(start_paused = true)]
async fn what_was_stored_under_a_higher_limit_is_loaded_and_only_growth_is_refused() {
    let log = Arc::new(MemoryLog::default());
    let first = loaded(&log).await;
    first.commit_offsets(commit_of("offsets", 0, 4_000)).await.unwrap();
    stable_group(&first, "members").await;
    let stored = first.bytes();
    let next = coordinator_with(&log, GroupSettings::default());
    let limits = limited(&next);
    limits.bytes.store(0, Ordering::Relaxed);
    load_all(&next).await;
    load_all(&next).await;
    assert_eq!(next.bytes(), stored, "loading again counts nothing twice");
    next.commit_offsets(commit_of("offsets", 0, 4_000)).await.unwrap();
    let refused = next.commit_offsets(commit_of("offsets", 1, 0)).await;
    assert_eq!(refused, Err(ResponseError::PolicyViolation));
    let refused = next.join_group(member_of("members")).await;
    assert_eq!(refused.error, Some(ResponseError::PolicyViolation));
    (0..PARTITIONS).for_each(|index| next.unload(index));
    assert_eq!(next.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_no_load_could_read_is_refused_before_it_is_written() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    // Each record has the group's name, so that a small request makes large records.
    let group_id = "g".repeat(32_767);
    let offsets: Vec<_> = (0..1_025).map(|partition| ("t", partition, 1)).collect();
    let refused = coordinator.commit_offsets(commit(&group_id, &offsets)).await;
    assert_eq!(refused, Err(ResponseError::InvalidCommitOffsetSize));
    assert_eq!((log.appends().len(), coordinator.bytes()), (0, 0));
    coordinator.commit_offsets(commit(&group_id, &offsets[..1_000])).await.unwrap();
    assert_eq!(log.offsets(&group_id).len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn requests_wait_while_many_bytes_wait_for_their_append() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = Arc::new(loaded(&log).await);
    log.set_append_time(Duration::from_secs(60));
    let group_id = "g".repeat(32_000);
    let offsets: Vec<_> = (0..1_000).map(|partition| ("t", partition, 1)).collect();
    let large = commit(&group_id, &offsets);
    // Clients that give up leave their writes behind.
    for _ in 0..10 {
        let commits = coordinator.commit_offsets(large.clone());
        assert!(tokio::time::timeout(Duration::from_secs(1), commits).await.is_err());
    }
    let payer = payer();
    let removal = coordinator.delete_groups(&payer, vec![group_id.clone()]);
    assert!(tokio::time::timeout(Duration::from_secs(1), removal).await.is_err());
    coordinator.commit_offsets(commit("other", &[("t", 0, 1)])).await.unwrap();
    // Only the first one of the large ones was let in.
    let records: Vec<usize> = log.appends();
    assert_eq!(records.iter().filter(|records| **records == 1_000).count(), 1, "{records:?}");
}
