//! Members of groups through the service.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use tokio::time::{Instant, sleep};

use super::machine::{leaving, new_member, payer};
use super::service_support::{
    Fate, MemoryLog, PARTITIONS, commit, coordinator_with, fetch, flat, heartbeat, join, load_all,
    loaded, stable_group, sync_request,
};
use crate::CoordinatorRecord;
use crate::group::{GroupSettings, JoinRequest, LeaveRequest, LoadSummary};

fn member_of(group_id: &str) -> JoinRequest {
    JoinRequest { group_id: group_id.to_owned(), ..new_member("client") }
}

#[tokio::test(start_paused = true)]
async fn members_join_sync_and_live() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let started = Instant::now();
    let (one, two) =
        tokio::join!(join(&coordinator, member_of("g")), join(&coordinator, member_of("g")));
    assert_eq!(started.elapsed(), Duration::from_secs(6), "the delay and one extension");
    assert_eq!((one.error, two.error), (None, None));
    let (leader, follower) = if one.leader == one.member_id { (one, two) } else { (two, one) };
    assert_eq!((leader.members.len(), follower.members.len()), (2, 0));

    let (of_follower, of_leader) = tokio::join!(
        coordinator.sync_group(sync_request("g", &follower)),
        coordinator.sync_group(sync_request("g", &leader)),
    );
    assert_eq!(of_leader.assignment, format!("work of {}", leader.member_id));
    assert_eq!(of_follower.assignment, format!("work of {}", follower.member_id));
    for _ in 0..30 {
        sleep(Duration::from_secs(3)).await;
        assert_eq!(coordinator.heartbeat(&heartbeat("g", &leader)), Ok(()));
        assert_eq!(coordinator.heartbeat(&heartbeat("g", &follower)), Ok(()));
    }
    sleep(Duration::from_secs(11)).await;
    let unknown = Err(ResponseError::UnknownMemberId);
    assert_eq!(coordinator.heartbeat(&heartbeat("g", &leader)), unknown);
    assert_eq!(log.group("g").unwrap().members.len(), 0, "the empty group was stored");
}

#[tokio::test(start_paused = true)]
async fn without_an_initial_delay_a_member_is_in_at_once() {
    let log = Arc::new(MemoryLog::default());
    let settings = GroupSettings { initial_rebalance_delay_ms: 0, ..GroupSettings::default() };
    let coordinator = coordinator_with(&log, settings);
    load_all(&coordinator).await;
    let started = Instant::now();
    stable_group(&coordinator, "g").await;
    assert!(started.elapsed() <= Duration::from_millis(3), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn requests_are_checked_before_the_group_is_looked_for() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = coordinator_with(&log, GroupSettings::default());
    let invalid = Some(ResponseError::InvalidGroupId);
    assert_eq!(coordinator.join_group(member_of("")).await.error, invalid);
    for session_timeout_ms in [5_999, 1_800_001] {
        let request = JoinRequest { session_timeout_ms, ..member_of("g") };
        let error = coordinator.join_group(request).await.error;
        assert_eq!(error, Some(ResponseError::InvalidSessionTimeout));
    }
    let leave = LeaveRequest { payer: payer(), group_id: String::new(), members: Vec::new() };
    assert_eq!(coordinator.leave_group(leave).await.error, invalid);
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_is_not_led_sends_everybody_away() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = coordinator_with(&log, GroupSettings::default());
    let elsewhere = ResponseError::NotCoordinator;
    let joined = coordinator.join_group(member_of("g")).await;
    assert_eq!(joined.error, Some(elsewhere));
    let synced = coordinator.sync_group(sync_request("g", &joined)).await;
    assert_eq!(synced.error, Some(elsewhere));
    assert_eq!(coordinator.heartbeat(&heartbeat("g", &joined)), Err(elsewhere));
    let leave = LeaveRequest {
        payer: payer(),
        group_id: "g".to_owned(),
        members: vec![leaving("x", None)],
    };
    assert_eq!(coordinator.leave_group(leave).await.error, Some(elsewhere));
    let committed = coordinator.commit_offsets(commit("g", &[("t", 0, 1)])).await;
    assert_eq!(committed, Err(elsewhere));
    assert_eq!(coordinator.fetch_offsets(fetch("g")).await, Err(elsewhere));
    let described = coordinator.describe_groups(6, &["g".to_owned()]);
    assert_eq!(described[0].error, Some(elsewhere));
    assert_eq!(coordinator.list_groups(&[], &[]), Ok(Vec::new()));
    let deleted = coordinator.delete_groups(&payer(), vec!["g".to_owned()]).await;
    assert_eq!(deleted, [("g".to_owned(), Some(elsewhere))]);
}

#[tokio::test(start_paused = true)]
async fn while_a_partition_is_loaded_nobody_is_unknown() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = Arc::new(loaded(&log).await);
    let joined = stable_group(&coordinator, "g").await;
    log.set_read(Duration::from_secs(2), None);
    let index = coordinator.partition_for("g");
    let loading = tokio::spawn({
        let coordinator = Arc::clone(&coordinator);
        async move { coordinator.load(index).await }
    });
    sleep(Duration::from_secs(1)).await;
    let in_progress = ResponseError::CoordinatorLoadInProgress;
    let again = JoinRequest { member_id: joined.member_id.clone(), ..member_of("g") };
    assert_eq!(coordinator.join_group(again).await.error, Some(in_progress));
    let synced = coordinator.sync_group(sync_request("g", &joined)).await;
    assert_eq!(synced.error, Some(in_progress));
    assert_eq!(coordinator.heartbeat(&heartbeat("g", &joined)), Ok(()));
    assert_eq!(coordinator.fetch_offsets(fetch("g")).await, Err(in_progress));
    assert_eq!(coordinator.list_groups(&[], &[]), Err(in_progress));
    let described = coordinator.describe_groups(0, &["g".to_owned()]);
    assert_eq!(described[0].error, Some(in_progress));
    assert!(loading.await.unwrap().is_ok());
    assert_eq!(coordinator.heartbeat(&heartbeat("g", &joined)), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_restart_within_the_session_goes_unnoticed() {
    let log = Arc::new(MemoryLog::default());
    let before = loaded(&log).await;
    let joined = stable_group(&before, "g").await;
    before.commit_offsets(commit("other", &[("t", 0, 7)])).await.unwrap();
    sleep(Duration::from_secs(9)).await;
    let described = before.describe_groups(6, &["g".to_owned()]);
    drop(before);

    let after = loaded(&log).await;
    assert_eq!(after.describe_groups(6, &["g".to_owned()]), described);
    sleep(Duration::from_secs(9)).await;
    assert_eq!(after.heartbeat(&heartbeat("g", &joined)), Ok(()));
    let synced = after.sync_group(sync_request("g", &joined)).await;
    assert_eq!(synced.assignment, format!("work of {}", joined.member_id));
    let fetched = after.fetch_offsets(fetch("other")).await.unwrap();
    assert_eq!(flat(&fetched), [("t", 0, 7)]);
    sleep(Duration::from_secs(11)).await;
    let unknown = Err(ResponseError::UnknownMemberId);
    assert_eq!(after.heartbeat(&heartbeat("g", &joined)), unknown);
}

#[tokio::test(start_paused = true)]
async fn an_unloaded_partition_answers_those_who_wait() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = Arc::new(loaded(&log).await);
    let waiting = tokio::spawn({
        let coordinator = Arc::clone(&coordinator);
        async move { join(&coordinator, member_of("g")).await }
    });
    sleep(Duration::from_secs(1)).await;
    coordinator.unload(coordinator.partition_for("g"));
    assert_eq!(waiting.await.unwrap().error, Some(ResponseError::NotCoordinator));
}

#[tokio::test(start_paused = true)]
async fn a_write_during_which_the_partition_is_given_up_is_not_acknowledged() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = Arc::new(loaded(&log).await);
    log.set_append_time(Duration::from_secs(5));
    let committing = tokio::spawn({
        let coordinator = Arc::clone(&coordinator);
        async move { coordinator.commit_offsets(commit("g", &[("t", 0, 1)])).await }
    });
    sleep(Duration::from_secs(1)).await;
    let started = Instant::now();
    // The load must not miss what is being appended.
    coordinator.load(coordinator.partition_for("g")).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(4));
    assert_eq!(committing.await.unwrap(), Err(ResponseError::NotCoordinator));
    let fetched = coordinator.fetch_offsets(fetch("g")).await.unwrap();
    assert_eq!(flat(&fetched), [("t", 0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_load_that_fails_or_is_given_up_leaves_the_partition_unled() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = coordinator_with(&log, GroupSettings::default());
    let index = coordinator.partition_for("g");
    let elsewhere = Err(ResponseError::NotCoordinator);
    log.set_read(Duration::from_secs(1), Some(ResponseError::KafkaStorageError));
    assert_eq!(coordinator.load(index).await, Err(ResponseError::KafkaStorageError));
    assert_eq!(coordinator.fetch_offsets(fetch("g")).await, elsewhere);

    log.set_read(Duration::from_secs(1), None);
    let given_up = tokio::time::timeout(Duration::from_millis(500), coordinator.load(index)).await;
    assert!(given_up.is_err());
    assert_eq!(coordinator.fetch_offsets(fetch("g")).await, elsewhere);

    let unloaded = async {
        sleep(Duration::from_millis(500)).await;
        coordinator.unload(index);
    };
    let (load, ()) = tokio::join!(coordinator.load(index), unloaded);
    assert_eq!(load, Err(ResponseError::NotCoordinator));

    let second = async {
        sleep(Duration::from_millis(500)).await;
        coordinator.load(index).await
    };
    let (first, second) = tokio::join!(coordinator.load(index), second);
    assert_eq!(first, Err(ResponseError::NotCoordinator));
    assert!(second.is_ok());
    assert_eq!(coordinator.fetch_offsets(fetch("g")).await, Ok(Vec::new()));
    assert_eq!(coordinator.load(PARTITIONS).await, Err(ResponseError::NotCoordinator));
}

#[tokio::test(start_paused = true)]
async fn a_load_skips_what_it_cannot_read() {
    let log = Arc::new(MemoryLog::default());
    let before = loaded(&log).await;
    before.commit_offsets(commit("g", &[("t", 0, 1), ("t", 1, 2)])).await.unwrap();
    let index = before.partition_for("g");
    drop(before);
    let newer = [&b"\x00\x03\x00\x01g"[..], b"\x00\x10whatever", b"\x00", b"\x00\x02\x00\x01x"];
    for key in newer {
        let value = Some(Bytes::from_static(b"\x00\x09"));
        log.put(index, CoordinatorRecord { key: Bytes::from_static(key), value });
    }
    let after = coordinator_with(&log, GroupSettings::default());
    let summary = after.load(index).await.unwrap();
    assert_eq!(summary, LoadSummary { records: 6, skipped: 4, groups: 1, offsets: 2 });
    let fetched = after.fetch_offsets(fetch("g")).await.unwrap();
    assert_eq!(flat(&fetched), [("t", 0, 1), ("t", 1, 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_last_to_leave_is_answered_when_that_is_durable() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let request = |id: &str| LeaveRequest {
        payer: payer(),
        group_id: "g".to_owned(),
        members: vec![leaving(id, None)],
    };
    let joined = stable_group(&coordinator, "g").await;
    log.set_append_time(Duration::from_secs(1));
    let started = Instant::now();
    let left = coordinator.leave_group(request(&joined.member_id)).await;
    assert_eq!((left.error, left.members[0].error), (None, None));
    assert_eq!(started.elapsed(), Duration::from_secs(1));

    let joined = stable_group(&coordinator, "g").await;
    log.decide(&[Fate::Fails(ResponseError::NotLeaderOrFollower)]);
    let left = coordinator.leave_group(request(&joined.member_id)).await;
    assert_eq!(left.error, Some(ResponseError::NotCoordinator));

    let left = coordinator.leave_group(request("nobody")).await;
    assert_eq!(left.error, None);
    assert_eq!(left.members[0].error, Some(ResponseError::UnknownMemberId));
}

#[tokio::test(start_paused = true)]
async fn a_group_that_came_to_nothing_is_forgotten() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let refused = coordinator.join_group(member_of("g")).await;
    assert_eq!(refused.error, Some(ResponseError::MemberIdRequired));
    assert_eq!(coordinator.list_groups(&[], &[]).unwrap().len(), 1);
    sleep(Duration::from_secs(11)).await;
    assert_eq!(coordinator.list_groups(&[], &[]), Ok(Vec::new()));
    assert_eq!(log.appends(), [0; 0], "nothing was ever stored");
}

#[tokio::test(start_paused = true)]
async fn groups_are_listed_by_state_and_type() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    stable_group(&coordinator, "members").await;
    coordinator.commit_offsets(commit("offsets", &[("t", 0, 1)])).await.unwrap();
    let listed = |states: &[&str], types: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let groups = coordinator.list_groups(&owned(states), &owned(types)).unwrap();
        let mut ids: Vec<String> = groups.into_iter().map(|group| group.group_id).collect();
        ids.sort();
        ids
    };
    assert_eq!(listed(&[], &[]), ["members", "offsets"]);
    assert_eq!(listed(&["stable"], &[]), ["members"]);
    assert_eq!(listed(&["Empty", " STABLE "], &["Classic"]), ["members", "offsets"]);
    assert_eq!(listed(&["Dead"], &[]), [""; 0]);
    assert_eq!(listed(&[], &["consumer"]), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn groups_are_described() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let joined = stable_group(&coordinator, "g").await;
    let group = coordinator.describe_groups(6, &["g".to_owned()]).remove(0);
    assert_eq!((group.error, group.state), (None, "Stable"));
    assert_eq!((group.protocol_type.as_str(), group.protocol_data.as_str()), ("consumer", "range"));
    let member = &group.members[0];
    assert_eq!(member.member_id, joined.member_id);
    assert_eq!(member.client.client_id, "client");
    assert_eq!(member.client.client_host, "/127.0.0.1");
    assert!(!member.metadata.is_empty());
    assert_eq!(member.assignment, format!("work of {}", joined.member_id));

    let unknown = coordinator.describe_groups(5, &["x".to_owned()]).remove(0);
    assert_eq!((unknown.error, unknown.state), (None, "Dead"));
    let unknown = coordinator.describe_groups(6, &["x".to_owned()]).remove(0);
    assert_eq!(unknown.error, Some(ResponseError::GroupIdNotFound));
    assert_eq!(unknown.error_message.as_deref(), Some("Group x not found."));
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_member_ids() {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let coordinator = loaded(&Arc::new(MemoryLog::default())).await;
        ids.push(stable_group(&coordinator, "g").await.member_id);
    }
    assert_eq!(ids[0], ids[1]);
    let uuid = uuid::Uuid::parse_str(ids[0].strip_prefix("client-").unwrap()).unwrap();
    assert_eq!(uuid.get_version_num(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_closed_coordinator_answers_nobody() {
    let coordinator = loaded(&Arc::new(MemoryLog::default())).await;
    let (joined, ()) = tokio::join!(join(&coordinator, member_of("g")), async {
        sleep(Duration::from_secs(1)).await;
        coordinator.close();
    });
    assert_eq!(joined.error, Some(ResponseError::NotCoordinator));
}
