//! Whoever follows the news of groups knows all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::machine::{leaving, payer};
use super::service_support::{
    MemoryLog, PARTITIONS, commit, load_all, loaded, stable_group, sync_request,
};
use crate::group::{
    GroupCoordinator, GroupNews, GroupView, LeaveRequest, OffsetDeleteRequest, SyncRequest,
};

/// What somebody knows who views the groups that the news name, and no others.
#[derive(Default)]
struct Follower(BTreeMap<String, GroupView>);

impl Follower {
    /// Follows the news and checks that it knows all groups. Returns how many names there were.
    fn follow(&mut self, coordinator: &GroupCoordinator) -> usize {
        let names: Vec<String> = match coordinator.take_news() {
            GroupNews::All => self.0.keys().cloned().chain(coordinator.group_names()).collect(),
            GroupNews::Some(names) => names.into_iter().collect(),
        };
        for name in &names {
            match coordinator.view_group(name).ok().flatten() {
                Some(view) => self.0.insert(name.clone(), view),
                None => self.0.remove(name),
            };
        }
        let all = coordinator.group_names().into_iter();
        let truth: BTreeMap<String, GroupView> = all
            .map(|name| {
                let view = coordinator.view_group(&name).unwrap().unwrap();
                (name, view)
            })
            .collect();
        assert_eq!(self.0, truth);
        names.len()
    }
}

#[tokio::test(start_paused = true)]
async fn news_name_every_group_that_changed() {
    let coordinator = loaded(&Arc::new(MemoryLog::default())).await;
    let mut follower = Follower::default();
    follower.follow(&coordinator);
    for number in 0..10 {
        let name = format!("idle-{number}");
        coordinator.commit_offsets(commit(&name, &[("t", 0, 1)])).await.unwrap();
    }
    follower.follow(&coordinator);
    assert_eq!(follower.0["idle-3"].committed, [("t".to_owned(), 0, 1)]);
    assert_eq!(follower.follow(&coordinator), 0, "nothing changed");

    coordinator.commit_offsets(commit("g", &[("t", 0, 1), ("u", 1, 2)])).await.unwrap();
    assert_eq!(follower.follow(&coordinator), 1);
    coordinator.commit_offsets(commit("g", &[("t", 0, 5)])).await.unwrap();
    assert_eq!(follower.follow(&coordinator), 1);
    let topics = vec![("u".to_owned(), vec![1])];
    let deletion = OffsetDeleteRequest { payer: payer(), group_id: "g".to_owned(), topics };
    coordinator.delete_offsets(deletion).await.unwrap();
    assert_eq!(follower.follow(&coordinator), 1);
    assert_eq!(follower.0["g"].committed, [("t".to_owned(), 0, 5)]);
    coordinator.forget_topic("t").await.unwrap();
    follower.follow(&coordinator);
    assert!(follower.0.is_empty(), "these groups had nothing but offsets");
}

#[tokio::test(start_paused = true)]
async fn news_name_groups_whose_members_or_state_changed() {
    let coordinator = loaded(&Arc::new(MemoryLog::default())).await;
    let mut follower = Follower::default();
    follower.follow(&coordinator);
    let joined = stable_group(&coordinator, "g").await;
    follower.follow(&coordinator);
    let assignments = vec![(joined.member_id.clone(), "assigned".into())];
    let sync = SyncRequest { assignments, ..sync_request("g", &joined) };
    assert_eq!(coordinator.sync_group(sync).await.error, None);
    follower.follow(&coordinator);
    assert_eq!(follower.0["g"].group.members.len(), 1);
    let members = vec![leaving(&joined.member_id, None)];
    coordinator
        .leave_group(LeaveRequest { payer: payer(), group_id: "g".to_owned(), members })
        .await;
    assert_eq!(follower.follow(&coordinator), 1);
    assert_eq!(follower.0["g"].group.state, "Empty");
    coordinator.delete_groups(&payer(), vec!["g".to_owned()]).await;
    assert_eq!(follower.follow(&coordinator), 1);
    assert!(!follower.0.contains_key("g"));

    stable_group(&coordinator, "silent").await;
    follower.follow(&coordinator);
    assert_eq!(follower.0["silent"].group.state, "Stable");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    follower.follow(&coordinator);
    let silent = follower.0.get("silent");
    assert!(silent.is_none_or(|view| view.group.members.is_empty()), "its session timed out");
}

#[tokio::test(start_paused = true)]
async fn what_is_loaded_and_unloaded_is_news() {
    let coordinator = loaded(&Arc::new(MemoryLog::default())).await;
    let mut follower = Follower::default();
    for number in 0..10 {
        let name = format!("g-{number}");
        coordinator.commit_offsets(commit(&name, &[("t", 0, 1)])).await.unwrap();
    }
    follower.follow(&coordinator);
    assert_eq!(follower.0.len(), 10);
    coordinator.unload(0);
    assert!(!coordinator.is_loaded(0) && coordinator.is_loaded(1));
    follower.follow(&coordinator);
    let elsewhere = (0..10).filter(|number| coordinator.partition_for(&format!("g-{number}")) == 0);
    assert_eq!(follower.0.len(), 10 - elsewhere.count());
    load_all(&coordinator).await;
    assert!((0..PARTITIONS).all(|index| coordinator.is_loaded(index)));
    follower.follow(&coordinator);
    assert_eq!(follower.0.len(), 10);
}
