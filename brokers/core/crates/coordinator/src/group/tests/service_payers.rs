//! For whom the coordinator's records are metered.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::machine::{SESSION_MS, known_member, leaving, payer};
use super::service_support::{MemoryLog, commit, join, loaded, stable_group, sync_request};
use crate::group::{
    GroupCoordinator, JoinRequest, LeaveRequest, OffsetCommitRequest, OffsetDeleteRequest,
    SyncRequest,
};

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

fn commit_by(payer: &str, number: i64) -> OffsetCommitRequest {
    OffsetCommitRequest { payer: payer.into(), ..commit("g", &[("t", 0, number)]) }
}

fn names<const N: usize>(names: [&str; N]) -> Vec<Option<String>> {
    names.iter().map(|name| (!name.is_empty()).then(|| (*name).to_owned())).collect()
}

async fn loaded_with(log: &Arc<MemoryLog>) -> GroupCoordinator {
    let coordinator = loaded(log).await;
    assert_eq!(log.take_payers(), []);
    coordinator
}

#[tokio::test(start_paused = true)]
async fn each_record_is_metered_for_whom_asked() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded_with(&log).await;
    coordinator.commit_offsets(commit_by("User:bob", 1)).await.unwrap();
    assert_eq!(log.take_payers(), names(["User:bob"]));
    let topics = vec![("t".to_owned(), vec![0])];
    let deletion =
        OffsetDeleteRequest { payer: "ApiKey:a".into(), group_id: "g".to_owned(), topics };
    coordinator.delete_offsets(deletion).await.unwrap();
    assert_eq!(log.take_payers(), names(["ApiKey:a"]));
    coordinator.commit_offsets(commit_by("User:bob", 2)).await.unwrap();
    let deleted = coordinator.delete_groups(&"Member:m".into(), vec!["g".to_owned()]).await;
    assert_eq!(deleted[0].1, None);
    assert_eq!(log.take_payers(), names(["User:bob", "Member:m"]));

    let member = JoinRequest { payer: "User:carol".into(), ..known_member("") };
    let joined = join(&coordinator, member).await;
    let sync = SyncRequest { payer: "User:carol".into(), ..sync_request("g", &joined) };
    assert_eq!(coordinator.sync_group(sync).await.error, None);
    let members = vec![leaving(&joined.member_id, None)];
    let leave = LeaveRequest { payer: "User:dave".into(), group_id: "g".to_owned(), members };
    assert_eq!(coordinator.leave_group(leave).await.error, None);
    assert_eq!(log.take_payers(), names(["User:carol", "User:dave"]));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asks_for_is_the_services_own() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded_with(&log).await;
    stable_group(&coordinator, "g").await;
    assert_eq!(log.take_payers(), names([&*payer()]));
    // The member is silent, and leaves an empty group behind.
    sleep(Duration::from_millis(u64::try_from(SESSION_MS).unwrap() + 1)).await;
    coordinator.commit_offsets(commit_by("User:bob", 1)).await.unwrap();
    assert_eq!(log.take_payers(), names(["", "User:bob"]));
    sleep(WEEK + Duration::from_secs(1_200)).await;
    assert_eq!(log.take_payers(), names([""]));
    coordinator.commit_offsets(commit_by("User:bob", 2)).await.unwrap();
    coordinator.forget_topic("t").await.unwrap();
    assert_eq!(log.take_payers(), names(["User:bob", ""]));
}

#[tokio::test(start_paused = true)]
async fn commits_of_several_in_one_group_keep_their_order_and_their_names() {
    let log = Arc::new(MemoryLog::default());
    log.set_append_time(Duration::from_secs(1));
    let coordinator = loaded_with(&log).await;
    let order = ["User:bob", "User:bob", "User:bob", "User:eve", "User:bob"];
    let commits =
        order.iter().zip(1..).map(|(of, number)| coordinator.commit_offsets(commit_by(of, number)));
    let outcomes = futures::future::join_all(commits).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    // Those that wait together are appended together, as far as one principal asked.
    assert_eq!(log.take_payers(), names(["User:bob", "User:eve", "User:bob"]));
    assert_eq!(log.appends(), [3, 1, 1]);
    assert_eq!(log.offsets("g").get("t", 0).unwrap().offset, 5);
}
