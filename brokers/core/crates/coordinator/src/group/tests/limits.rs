//! Limits on the number of groups, on their members and on what members bring.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::machine::known_member;
use super::service_support::{
    MemoryLog, commit, coordinator_with, join, load_all, loaded, stable_group, sync_request,
};
use crate::group::{
    GroupCoordinator, GroupLimits, GroupSettings, JoinRequest, Protocol, SyncRequest,
};

const NONE: usize = usize::MAX;

/// Has the coordinator ask for its limits; returns what they are: groups, and members of one.
fn limited(coordinator: &GroupCoordinator) -> Arc<(AtomicUsize, AtomicUsize)> {
    let limits = Arc::new((AtomicUsize::new(NONE), AtomicUsize::new(NONE)));
    let now = Arc::clone(&limits);
    coordinator.limit_by(move || GroupLimits {
        groups: Some(now.0.load(Ordering::Relaxed)),
        members: Some(now.1.load(Ordering::Relaxed)),
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
    limits.0.store(2, Ordering::Relaxed);
    stable_group(&coordinator, "first").await;
    coordinator.commit_offsets(commit("second", &[("t", 0, 1)])).await.unwrap();
    let refused = coordinator.commit_offsets(commit("third", &[("t", 0, 1)])).await;
    assert_eq!(refused, Err(ResponseError::PolicyViolation));
    let refused = coordinator.join_group(member_of("third")).await;
    assert_eq!(refused.error, Some(ResponseError::GroupMaxSizeReached));
    assert_eq!(log.offsets("third").len(), 0);
    // Those that exist go on, also where the limit is lowered below them.
    limits.0.store(0, Ordering::Relaxed);
    coordinator.commit_offsets(commit("second", &[("t", 1, 1)])).await.unwrap();
    assert_eq!(coordinator.list_groups(&[], &[]).unwrap().len(), 2);
    // One that is deleted gives its place free; a raised limit takes effect at once.
    limits.0.store(2, Ordering::Relaxed);
    assert_eq!(coordinator.delete_groups(vec!["second".to_owned()]).await[0].1, None);
    coordinator.commit_offsets(commit("third", &[("t", 0, 1)])).await.unwrap();
    limits.0.store(3, Ordering::Relaxed);
    stable_group(&coordinator, "fourth").await;
}

#[tokio::test(start_paused = true)]
async fn many_new_groups_at_once_do_not_pass_the_limit_together() {
    let log = Arc::new(MemoryLog::default());
    log.set_append_time(std::time::Duration::from_millis(50));
    let coordinator = Arc::new(loaded(&log).await);
    limited(&coordinator).0.store(5, Ordering::Relaxed);
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
    limited(&next).0.store(2, Ordering::Relaxed);
    // Loading again does not count anything twice.
    load_all(&next).await;
    load_all(&next).await;
    let refused = next.commit_offsets(commit("third", &[("t", 0, 1)])).await;
    assert_eq!(refused, Err(ResponseError::PolicyViolation));
    assert_eq!(next.delete_groups(vec!["first".to_owned()]).await[0].1, None);
    next.commit_offsets(commit("third", &[("t", 0, 1)])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn members_are_refused_where_the_group_has_as_many_as_it_may() {
    let log = Arc::new(MemoryLog::default());
    let coordinator = loaded(&log).await;
    let limits = limited(&coordinator);
    limits.1.store(1, Ordering::Relaxed);
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
