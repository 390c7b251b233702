//! What groups are counted to take of memory, compared with what they allocate.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![allow(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use freshet_coordinator::group::{
    ClientInfo, GroupCoordinator, GroupSettings, JoinRequest, JoinResponse, OffsetCommitRequest,
    OffsetToCommit, Protocol, SyncRequest,
};
use freshet_coordinator::{CoordinatorLog, CoordinatorRecord, RecordVisitor};
use freshet_world::env::Clock;
use freshet_world::sim::random::{Seeded, SeededRandomness};
use kafka_protocol::ResponseError;

/// Counts the bytes that are allocated now.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A log that takes everything and keeps nothing.
struct Nowhere;

#[async_trait]
impl CoordinatorLog for Nowhere {
    async fn append(
        &self,
        _: i32,
        _: Option<&Arc<str>>,
        _: Vec<CoordinatorRecord>,
    ) -> Result<(), ResponseError> {
        Ok(())
    }

    async fn read(&self, _: i32, _: &mut RecordVisitor<'_>) -> Result<(), ResponseError> {
        Ok(())
    }
}

struct Noon;

impl Clock for Noon {
    fn now_ms(&self) -> i64 {
        1_700_000_000_000
    }
}

async fn loaded() -> GroupCoordinator {
    let random = Arc::new(SeededRandomness::new(Seeded::new(1)));
    let (log, clock) = (Arc::new(Nowhere), Arc::new(Noon));
    let coordinator = GroupCoordinator::new(GroupSettings::default(), 1, log, clock, random);
    coordinator.load(0).await.unwrap();
    coordinator
}

fn commit(
    group_id: &str,
    topics: &[&str],
    partitions: i32,
    metadata: usize,
) -> OffsetCommitRequest {
    let offsets = topics.iter().flat_map(|topic| {
        (0..partitions).map(|partition| OffsetToCommit {
            topic: (*topic).to_owned(),
            partition,
            offset: 1,
            leader_epoch: -1,
            metadata: Some("x".repeat(metadata)),
        })
    });
    OffsetCommitRequest {
        payer: "User:alice".into(),
        api_version: 8,
        group_id: group_id.to_owned(),
        member_id: String::new(),
        instance_id: None,
        generation: -1,
        retention_time_ms: -1,
        offsets: offsets.collect(),
    }
}

/// A member that subscribes to so many topics, whose names are as short as can be.
fn member(group_id: &str, api_version: i16, number: usize, topics: u16) -> JoinRequest {
    let mut metadata = vec![0, 0, 0, 0];
    metadata.extend(topics.to_be_bytes());
    for topic in 0..topics {
        let [high, low] = (topic << 1).to_be_bytes();
        metadata.extend([0, 2, high, low >> 1]);
    }
    let protocol =
        |name: &str| Protocol { name: name.to_owned(), metadata: metadata.clone().into() };
    JoinRequest {
        payer: "User:alice".into(),
        api_version,
        client: ClientInfo { client_id: "app".to_owned(), client_host: "/10.0.0.1".to_owned() },
        group_id: group_id.to_owned(),
        member_id: String::new(),
        instance_id: (number % 2 == 1).then(|| format!("instance-{number}")),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol("range"), protocol("cooperative-sticky")],
        reason: None,
    }
}

/// A stable group in which each member has an assignment of so many bytes.
async fn stable(coordinator: &GroupCoordinator, requests: Vec<JoinRequest>, assigned: usize) {
    let joins = requests.into_iter().map(|request| coordinator.join_group(request));
    let joined: Vec<JoinResponse> = futures::future::join_all(joins).await;
    let leader = joined.iter().find(|one| one.leader == one.member_id).unwrap();
    let work = |id: &str| (id.to_owned(), Bytes::from(vec![0; assigned]));
    let assignments: Vec<_> = leader.members.iter().map(|one| work(&one.member_id)).collect();
    let syncs = joined.iter().map(|one| {
        coordinator.sync_group(SyncRequest {
            payer: "User:alice".into(),
            group_id: "members".to_owned(),
            generation: one.generation,
            member_id: one.member_id.clone(),
            instance_id: None,
            protocol_type: None,
            protocol_name: None,
            assignments: if one.member_id == leader.member_id {
                assignments.clone()
            } else {
                Vec::new()
            },
        })
    });
    let synced = futures::future::join_all(syncs).await;
    assert!(synced.iter().all(|one| one.error.is_none() && one.assignment.len() == assigned));
}

/// Checks that what was allocated since a coordinator was made is no more than what is counted, and
/// that not much more is counted.
async fn compare(what: &str, factor_max: usize, make: impl AsyncFnOnce(&GroupCoordinator)) {
    let coordinator = loaded().await;
    // The timers of the coordinator before it end.
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let before = LIVE.load(Ordering::Relaxed);
    make(&coordinator).await;
    // Writers end.
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let allocated = LIVE.load(Ordering::Relaxed).saturating_sub(before);
    let counted = coordinator.bytes();
    println!("{what}: {allocated} bytes are allocated, {counted} are counted");
    assert!(allocated <= counted, "{what}: {allocated} are allocated, {counted} are counted");
    assert!(counted <= factor_max * allocated, "{what}: {allocated} allocated, {counted} counted");
}

#[tokio::test(start_paused = true)]
async fn no_group_takes_more_than_is_counted() {
    compare("groups of one offset", 4, async |groups| {
        for number in 0..2_000 {
            let request = commit(&format!("group-{number}"), &["t"], 1, 0);
            groups.commit_offsets(request).await.unwrap();
        }
    })
    .await;
    compare("a group of many partitions", 3, async |groups| {
        for partitions in 1..400 {
            groups.commit_offsets(commit("g", &["t"], 10 * partitions, 0)).await.unwrap();
        }
    })
    .await;
    compare("a group of many topics", 3, async |groups| {
        let names: Vec<String> = (0..2_000).map(|number| format!("topic-{number}")).collect();
        for name in &names {
            groups.commit_offsets(commit("g", &[name], 1, 0)).await.unwrap();
        }
    })
    .await;
    compare("the largest metadata", 2, async |groups| {
        for number in 0..20 {
            let request = commit(&format!("group-{number}"), &["t"], 200, 4_096);
            groups.commit_offsets(request).await.unwrap();
        }
    })
    .await;
    compare("long names", 8, async |groups| {
        for number in 0..50 {
            let request = commit(&format!("{number:032000}"), &["t"], 1, 0);
            groups.commit_offsets(request).await.unwrap();
        }
    })
    .await;
    compare("ids that are not used", 4, async |groups| {
        for number in 0..500 {
            let response = groups.join_group(member(&format!("{number:05}"), 4, 0, 1)).await;
            assert_eq!(response.error, Some(ResponseError::MemberIdRequired));
        }
    })
    .await;
    for (what, topics) in [("members of one topic", 1), ("members of many topics", 10_000)] {
        compare(what, 3, async |groups| {
            let members = (0..100).map(|number| member("members", 3, number, topics));
            stable(groups, members.collect(), 100).await;
        })
        .await;
    }
}
