//! Incarnations, partitions, settings, ACLs and users through `ClusterMetadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freshet_access::types::{
    AclBinding, Operation, PatternType, Permission, ResourceType, ScramCredential, ScramMechanism,
};
use freshet_metadata::cluster::{
    ClusterFacts, PRODUCER_ID_BLOCK, PartitionUpdate, RECORD_BYTES_MAX, USER_BYTES_MAX,
};
use freshet_metadata::schema::{
    BrokerPlace, ConfigScope, IncarnationState, PartitionRecord, Retention, SealedEnd, SlotRecord,
    Stored,
};
use freshet_metadata::{ClusterError, ClusterMetadata, Fence, SqliteStore};
use freshet_wire::ids::{Incarnation, PartitionId};

use super::fixture::{Hooked, Outcome, broker, metadata, metadata_of, new_topic, on_file};

fn end(file: u64) -> SealedEnd {
    SealedEnd { file, sequence: file * 100 }
}

#[tokio::test]
async fn incarnations_that_start_at_once_get_numbers_of_their_own() {
    let handles = on_file().await;
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let store = if n % 2 == 0 { &handles.first } else { &handles.second };
            let metadata = metadata_of(store.clone());
            tokio::spawn(async move { metadata.next_incarnation().await.unwrap() })
        })
        .collect();
    let mut numbers = BTreeSet::new();
    for task in tasks {
        numbers.insert(task.await.unwrap());
    }
    assert_eq!(numbers, (1..=20).map(Incarnation).collect());
}

#[tokio::test]
async fn lost_answer_never_gives_a_number_twice() {
    let lose_first =
        |commit| async move { if commit == 0 { Outcome::Lose } else { Outcome::Commit } };
    let metadata = metadata_of(Hooked::new(Arc::new(SqliteStore::in_memory()), lose_first));
    assert_eq!(metadata.next_incarnation().await.unwrap(), Incarnation(2));
    assert_eq!(metadata.next_incarnation().await.unwrap(), Incarnation(3));
}

#[tokio::test]
async fn number_of_a_restored_backup_goes_past_what_storage_has() {
    let metadata = metadata();
    assert_eq!(metadata.next_incarnation().await.unwrap(), Incarnation(1));
    // The exclusive mkdir says that lanes up to 41 exist: the metadata is an old copy.
    metadata.advance_incarnation_past(Incarnation(41)).await.unwrap();
    assert_eq!(metadata.next_incarnation().await.unwrap(), Incarnation(42));
    metadata.advance_incarnation_past(Incarnation(7)).await.unwrap();
    assert_eq!(metadata.next_incarnation().await.unwrap(), Incarnation(43));
}

#[tokio::test]
async fn producer_ids_of_a_restored_backup_go_past_what_was_given_away() {
    let first = metadata();
    let fence = broker(&first).await;
    let given = first.allocate_producer_ids(Some(fence), 1).await.unwrap();
    let more = first.allocate_producer_ids(Some(fence), 1).await.unwrap();
    assert_eq!(given.end, more.start);
    // A copy from before both: all that it has is that storage knows of one incarnation.
    let restored = metadata();
    restored.advance_incarnation_past(fence.incarnation).await.unwrap();
    let fence = broker(&restored).await;
    let anew = restored.allocate_producer_ids(Some(fence), 1).await.unwrap();
    assert!(anew.start >= more.end, "{anew:?} after {more:?}");
    // The counter still tells those apart that live side by side.
    let other = broker(&restored).await;
    let beside = restored.allocate_producer_ids(Some(other), 1).await.unwrap();
    let behind = restored.allocate_producer_ids(Some(fence), 1).await.unwrap();
    assert!(beside.start >= anew.end && behind.start >= beside.end, "{beside:?} {behind:?}");
}

#[tokio::test]
async fn incarnation_is_registered_once() {
    let metadata = metadata();
    let fence = broker(&metadata).await;
    assert_eq!(
        metadata.register_incarnation(fence.incarnation, 1, "other", BrokerPlace::default()).await,
        Err(ClusterError::IncarnationTaken(fence.incarnation))
    );
    let live = metadata.unended_incarnations().await.unwrap();
    let stored = &live[&fence.incarnation];
    assert_eq!((stored.revision, stored.record.host.as_str()), (fence.revision, "host"));
}

#[tokio::test]
async fn of_two_that_saw_the_same_holder_one_gets_the_slot() {
    let metadata = metadata();
    let claim = async |number, slot, observed: Option<&Stored<SlotRecord>>| {
        let (number, place) = (Incarnation(number), BrokerPlace::default());
        let claimed = metadata.register_in_slot(number, slot, "host", place, observed).await;
        claimed.map(|fence| fence.incarnation.0)
    };
    assert_eq!(metadata.slot(3).await.unwrap(), None);
    assert_eq!(claim(1, 3, None).await, Ok(1));
    let contended = Err(ClusterError::Contended("slot/3".to_owned()));
    assert_eq!(claim(2, 3, None).await, contended);
    // Who did not get the slot was not registered either.
    assert_eq!(metadata.incarnations().await.unwrap().len(), 1);
    let held = metadata.slot(3).await.unwrap().unwrap();
    assert_eq!(held.record.incarnation, Incarnation(1));
    assert_eq!(claim(2, 3, Some(&held)).await, Ok(2));
    assert_eq!(claim(3, 3, Some(&held)).await, contended);
    assert_eq!(claim(2, 4, None).await, Err(ClusterError::IncarnationTaken(Incarnation(2))));
    assert_eq!(claim(3, 4, None).await, Ok(3));
    let holders = BTreeMap::from([(3, Incarnation(2)), (4, Incarnation(3))]);
    assert_eq!(metadata.slots().await.unwrap(), holders);
}

#[tokio::test]
async fn the_moment_of_an_end_is_recorded_once() {
    let metadata = metadata();
    let (old, new) = (broker(&metadata).await, broker(&metadata).await);
    metadata.mark_fenced(Some(new), old.incarnation).await.unwrap();
    metadata.seal_incarnation(Some(new), old.incarnation, end(1)).await.unwrap();
    metadata.close_incarnation(new, end(2)).await.unwrap();
    let all = metadata.incarnations().await.unwrap();
    for stored in all.values() {
        assert!(stored.record.ended_at_ms.is_some(), "{stored:?}");
    }
    metadata.seal_incarnation(None, old.incarnation, end(2)).await.unwrap();
    assert_eq!(metadata.incarnations().await.unwrap(), all);
}

#[tokio::test]
async fn way_of_an_incarnation_leads_over_the_fence_to_the_seal() {
    let metadata = metadata();
    let (old, new) = (broker(&metadata).await, broker(&metadata).await);
    let sealing = metadata.seal_incarnation(Some(new), old.incarnation, end(1)).await;
    assert_eq!(sealing, Err(ClusterError::StillLive(old.incarnation)));
    for _ in 0..2 {
        let record = metadata.mark_fenced(Some(new), old.incarnation).await.unwrap();
        assert_eq!(record.state, IncarnationState::Fenced);
    }
    let removal = metadata.remove_incarnation(Some(new), old.incarnation).await;
    assert_eq!(removal, Err(ClusterError::NotEnded(old.incarnation)));
    let unended = metadata.unended_incarnations().await.unwrap();
    assert_eq!(unended.keys().collect::<Vec<_>>(), [&old.incarnation, &new.incarnation]);
    // The first end stands.
    for proposed in [end(1), end(2)] {
        let stands = metadata.seal_incarnation(Some(new), old.incarnation, proposed).await;
        assert_eq!(stands, Ok(end(1)));
    }
    let fenced = metadata.mark_fenced(Some(new), old.incarnation).await.unwrap();
    assert_eq!((fenced.state, fenced.sealed_end), (IncarnationState::Sealed, Some(end(1))));
    for _ in 0..2 {
        metadata.remove_incarnation(Some(new), old.incarnation).await.unwrap();
    }
    let unknown = metadata.mark_fenced(Some(new), old.incarnation).await;
    assert_eq!(unknown, Err(ClusterError::UnknownIncarnation(old.incarnation)));
}

#[tokio::test]
async fn of_racing_sealers_the_first_wins_and_all_know() {
    for round in 0..10 {
        let handles = on_file().await;
        let metadata = metadata_of(handles.first.clone());
        let old = broker(&metadata).await.incarnation;
        metadata.mark_fenced(None, old).await.unwrap();
        let sealers: Vec<_> = (0..4)
            .map(|n| {
                let even = (n + round) % 2 == 0;
                let store = if even { &handles.first } else { &handles.second };
                let metadata = metadata_of(store.clone());
                let seal =
                    async move { metadata.seal_incarnation(None, old, end(n)).await.unwrap() };
                tokio::spawn(seal)
            })
            .collect();
        let stands = metadata.seal_incarnation(None, old, end(9)).await.unwrap();
        for sealer in sealers {
            assert_eq!(sealer.await.unwrap(), stands);
        }
        let record = &metadata.incarnations().await.unwrap()[&old].record;
        assert_eq!(record.sealed_end, Some(stands));
    }
}

#[tokio::test]
async fn clean_stop_sets_the_end_unless_fenced_before() {
    let metadata = metadata();
    let (one, two) = (broker(&metadata).await, broker(&metadata).await);
    metadata.close_incarnation(one, end(5)).await.unwrap();
    let stands = metadata.seal_incarnation(None, one.incarnation, end(6)).await.unwrap();
    assert_eq!(stands, end(5));
    assert_eq!(
        metadata.mark_fenced(None, one.incarnation).await.unwrap().state,
        IncarnationState::Closed
    );
    metadata.mark_fenced(None, two.incarnation).await.unwrap();
    assert_eq!(
        metadata.close_incarnation(two, end(5)).await,
        Err(ClusterError::Fenced(two.incarnation))
    );
}

#[tokio::test]
async fn fenced_broker_can_change_nothing() {
    let metadata = metadata();
    let fence = broker(&metadata).await;
    let topic = metadata.create_topic(Some(fence), &new_topic("t", 2)).await.unwrap();
    let acl = binding("before");
    metadata.add_acls(Some(fence), std::slice::from_ref(&acl)).await.unwrap();
    metadata.mark_fenced(None, fence.incarnation).await.unwrap();
    let before = metadata.store().range("", None, usize::MAX).await.unwrap();

    let partition = PartitionId::new(topic.record.id, 0);
    let stored = Stored { record: PartitionRecord::new(None, 0), revision: topic.revision };
    let led = PartitionRecord::new(Some(fence.incarnation), 1);
    let update = PartitionUpdate::takeover(partition, &stored, led).unwrap();
    let some = Some(fence);
    let changes = [("x".to_owned(), Some("y".to_owned()))].into();
    let results = [
        metadata.take_over(fence, vec![update.clone()]).await.err(),
        metadata.trim_extents(fence, vec![update]).await.err(),
        metadata.create_topic(some, &new_topic("u", 1)).await.err(),
        metadata.create_topic(some, &new_topic("v", 500)).await.err(),
        metadata.delete_topic(some, "t", None, 0).await.err(),
        metadata.create_partitions(some, "t", 5, &[]).await.err(),
        metadata
            .set_topic_configs(some, "t", None, &changes, &|_| Retention::default())
            .await
            .err(),
        metadata.set_broker_configs(some, ConfigScope::Default, &changes).await.err(),
        metadata.add_acls(some, &[binding("after")]).await.err(),
        metadata.remove_acls(some, &[acl]).await.err(),
        metadata
            .alter_scram(some, "u", &[(ScramMechanism::Sha256, Some(credential()))])
            .await
            .err(),
        metadata.alter_scram(some, "u", &[(ScramMechanism::Sha256, None)]).await.err(),
        metadata.allocate_producer_ids(some, 1).await.err(),
        metadata.claim_controller(fence, None).await.err(),
        metadata.close_incarnation(fence, end(1)).await.err(),
        metadata.seal_incarnation(some, fence.incarnation, end(1)).await.err(),
    ];
    for (call, result) in results.into_iter().enumerate() {
        assert_eq!(result, Some(ClusterError::Fenced(fence.incarnation)), "call {call}");
    }
    assert_eq!(metadata.store().range("", None, usize::MAX).await.unwrap(), before);
}

#[tokio::test]
async fn controller_acts_only_in_its_own_term() {
    let metadata = metadata();
    let (one, two) = (broker(&metadata).await, broker(&metadata).await);
    assert_eq!(metadata.controller().await.unwrap(), None);
    let first = metadata.claim_controller(one, None).await.unwrap();
    assert_eq!(first.incarnation(), one.incarnation);
    assert_eq!(metadata.claim_controller(two, None).await, Err(ClusterError::Deposed));
    metadata.allocate_producer_ids(Some(first.fence()), 1).await.unwrap();
    let observed = metadata.controller().await.unwrap().unwrap();
    assert_eq!((observed.record.term, observed.record.incarnation), (1, one.incarnation));
    let second = metadata.claim_controller(two, Some(&observed)).await.unwrap();
    let late = metadata.allocate_producer_ids(Some(first.fence()), 1).await;
    assert_eq!(late, Err(ClusterError::Deposed));
    // The broker itself is still live, and may run again.
    metadata.allocate_producer_ids(Some(one), 1).await.unwrap();
    metadata.allocate_producer_ids(Some(second.fence()), 1).await.unwrap();
    let observed = metadata.controller().await.unwrap().unwrap();
    metadata.claim_controller(first.fence(), Some(&observed)).await.unwrap();
    assert_eq!(metadata.controller().await.unwrap().unwrap().record.term, 3);
}

/// The updates by which `fence` takes all partitions of a topic.
async fn takeover(metadata: &ClusterMetadata, name: &str, fence: Fence) -> Vec<PartitionUpdate> {
    let topic = metadata.topic(name).await.unwrap().unwrap().record;
    let partitions = metadata.partitions_of(topic.id).await.unwrap();
    let update = |(partition, stored): (_, Stored<PartitionRecord>)| {
        let record = stored.record.led_by(fence.incarnation, |_| Some(end(3))).unwrap();
        PartitionUpdate::takeover(partition, &stored, record).unwrap()
    };
    partitions.into_iter().map(update).collect()
}

#[tokio::test]
async fn takeover_takes_many_partitions_and_names_those_it_lost() {
    let metadata = metadata();
    let (one, two) = (broker(&metadata).await, broker(&metadata).await);
    let topic = new_topic("t", 250);
    metadata
        .create_topic(
            Some(one),
            &freshet_metadata::cluster::NewTopic { leaders: vec![one.incarnation], ..topic },
        )
        .await
        .unwrap();
    let plan = takeover(&metadata, "t", two).await;
    // Somebody else is faster with a few of them.
    let faster = takeover(&metadata, "t", one).await;
    let few = [0, 99, 100, 249].map(|index| faster[index].clone());
    let taken = metadata.take_over(one, few.to_vec()).await.unwrap();
    assert_eq!(taken.lost, []);
    let taken = metadata.take_over(two, plan.clone()).await.unwrap();
    let lost: Vec<i32> = taken.lost.iter().map(|partition| partition.index).collect();
    assert_eq!(lost, [0, 99, 100, 249]);
    assert_eq!(taken.updated.len(), 246);
    for (partition, revision) in &taken.updated {
        let stored = metadata.partition(*partition).await.unwrap().unwrap();
        assert_eq!((stored.revision, stored.record.epoch), (*revision, 1));
        assert_eq!(stored.record.leader, Some(two.incarnation));
        assert_eq!(stored.record.extents[0].end, Some(end(3)));
    }
    // The same again takes nothing: all records are others by now.
    let again = metadata.take_over(two, plan).await.unwrap();
    assert_eq!((again.updated.len(), again.lost.len(), again.revision), (0, 250, 0));
}

#[tokio::test]
async fn only_the_leader_trims_extents() {
    let metadata = metadata();
    let (one, two) = (broker(&metadata).await, broker(&metadata).await);
    metadata.create_topic(None, &new_topic("t", 1)).await.unwrap();
    let plan = takeover(&metadata, "t", one).await;
    metadata.take_over(one, plan).await.unwrap();
    let plan = takeover(&metadata, "t", two).await;
    metadata.take_over(two, plan).await.unwrap();
    let partition = takeover(&metadata, "t", two).await[0].partition;
    let stored = metadata.partition(partition).await.unwrap().unwrap();
    assert_eq!(stored.record.extents.len(), 2);
    let record = stored.record.without_extents(|extent| extent.epoch < stored.record.epoch);
    let trim = vec![PartitionUpdate::trim(partition, &stored, record).unwrap()];
    let foreign = metadata.trim_extents(one, trim.clone()).await.unwrap();
    assert_eq!((foreign.updated.len(), foreign.lost), (0, vec![partition]));
    let own = metadata.trim_extents(two, trim.clone()).await.unwrap();
    assert_eq!((own.updated.len(), own.lost.len()), (1, 0));
    let stored = metadata.partition(partition).await.unwrap().unwrap();
    assert_eq!(stored.record, trim[0].record);
}

#[tokio::test]
async fn record_that_could_not_be_read_again_is_not_written() {
    let metadata = metadata();
    let fence = broker(&metadata).await;
    metadata.create_topic(None, &new_topic("t", 1)).await.unwrap();
    let mut plan = takeover(&metadata, "t", fence).await;
    plan[0].record.epoch = -1;
    let result = metadata.take_over(fence, plan).await;
    assert!(matches!(result, Err(ClusterError::Record(_))), "{result:?}");
}

#[tokio::test]
async fn producer_ids_are_never_given_twice() {
    let handles = on_file().await;
    let tasks: Vec<_> = (0..10)
        .map(|n| {
            let store = if n % 2 == 0 { &handles.first } else { &handles.second };
            let metadata = metadata_of(store.clone());
            tokio::spawn(
                async move { metadata.allocate_producer_ids(None, n * 500).await.unwrap() },
            )
        })
        .collect();
    let mut ranges = Vec::new();
    for (n, task) in (0_u32..).zip(tasks) {
        let range = task.await.unwrap();
        assert!(range.end - range.start >= i64::from(n * 500));
        assert_eq!((range.end - range.start) % i64::from(PRODUCER_ID_BLOCK), 0);
        assert!(!range.is_empty());
        ranges.push(range);
    }
    ranges.sort_by_key(|range| range.start);
    assert_eq!(ranges[0].start, 0);
    assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
    let metadata = metadata_of(handles.first.clone());
    let incarnation = Incarnation(1 << 31);
    let last = Fence { incarnation, revision: 1, term_revision: None };
    let last = metadata.allocate_producer_ids(Some(last), 1).await;
    assert_eq!(last, Err(ClusterError::Exhausted("producer id")));
}

#[tokio::test]
async fn cluster_is_created_once_and_keeps_its_id() {
    let metadata = metadata();
    let any = ClusterFacts { cluster_id: None, scale: 3 };
    let created = metadata.open_or_create(&any).await.unwrap();
    assert_eq!(created.record.cluster_id.len(), 22);
    let opened = metadata.open_or_create(&ClusterFacts { scale: 9, ..any }).await.unwrap();
    assert_eq!(opened, created);
    let other = ClusterFacts { cluster_id: Some("other".to_owned()), scale: 1 };
    let wrong = metadata.open_or_create(&other).await;
    assert!(matches!(wrong, Err(ClusterError::WrongCluster { .. })), "{wrong:?}");
    let scaled = metadata.set_scale(5).await.unwrap();
    assert_eq!((scaled.record.scale, scaled.record.cluster_id), (5, created.record.cluster_id));
    assert_eq!(metadata.set_scale(5).await.unwrap().revision, scaled.revision);
}

#[tokio::test]
async fn broker_configs_are_merged_and_reset() {
    let metadata = metadata();
    let set =
        |name: &str, value: Option<&str>| [(name.to_owned(), value.map(str::to_owned))].into();
    let slot = ConfigScope::Slot(2);
    let first = metadata.set_broker_configs(None, slot, &set("a", Some("1"))).await.unwrap();
    metadata.set_broker_configs(None, slot, &set("b", Some("2"))).await.unwrap();
    let last = metadata.set_broker_configs(None, slot, &set("a", None)).await.unwrap();
    assert!(last > first);
    let configs = metadata.broker_configs(slot).await.unwrap();
    assert_eq!(configs, [("b".to_owned(), "2".to_owned())].into());
    assert!(metadata.broker_configs(ConfigScope::Default).await.unwrap().is_empty());
    // Nothing to change, nothing written.
    let same = metadata.set_broker_configs(None, slot, &set("a", None)).await.unwrap();
    assert_eq!(same, last);
    let large = set("c", Some(&"x".repeat(RECORD_BYTES_MAX)));
    let result = metadata.set_broker_configs(None, slot, &large).await;
    assert!(matches!(result, Err(ClusterError::TooLarge { .. })), "{result:?}");
}

fn binding(resource_name: &str) -> AclBinding {
    AclBinding {
        resource_type: ResourceType::Topic,
        resource_name: resource_name.to_owned(),
        pattern_type: PatternType::Prefixed,
        principal: "User:alice".to_owned(),
        host: "*".to_owned(),
        operation: Operation::Read,
        permission: Permission::Allow,
    }
}

#[tokio::test]
async fn acls_are_a_set() {
    let metadata = metadata();
    // More than fit into one transaction.
    let mut all: Vec<_> = (0..250).map(|n| binding(&format!("{n}"))).collect();
    all.extend((0..6).map(|n| binding(&format!("{n}{}", "x".repeat(900)))));
    let first = metadata.add_acls(None, &all).await.unwrap();
    assert!(first > 0);
    metadata.add_acls(None, &[all[0].clone(), all[0].clone()]).await.unwrap();
    let mut listed = metadata.list_acls().await.unwrap();
    listed.sort();
    all.sort();
    assert_eq!(listed, all);
    let removed = metadata.remove_acls(None, &all[1..]).await.unwrap();
    assert!(removed > first);
    assert_eq!(metadata.list_acls().await.unwrap(), all[..1]);
    assert_eq!(metadata.remove_acls(None, &all[1..]).await.unwrap(), 0);
    assert_eq!(metadata.add_acls(None, &[]).await.unwrap(), 0);
}

fn credential() -> ScramCredential {
    ScramCredential {
        salt: "c2FsdA==".to_owned(),
        iterations: 4096,
        stored_key: "c3RvcmVk".to_owned(),
        server_key: "c2VydmVy".to_owned(),
    }
}

#[tokio::test]
async fn users_of_any_name_have_one_password_a_mechanism() {
    use ScramMechanism::{Sha256, Sha512};
    let metadata = metadata();
    let names = ["alice", "a/b", "ünï%41", "."];
    for user in names {
        metadata.alter_scram(None, user, &[(Sha256, Some(credential()))]).await.unwrap();
    }
    let other = ScramCredential { iterations: 8192, ..credential() };
    metadata.alter_scram(None, "alice", &[(Sha512, Some(credential()))]).await.unwrap();
    metadata.alter_scram(None, "alice", &[(Sha512, Some(other.clone()))]).await.unwrap();
    let listed = metadata.list_scram().await.unwrap();
    let users: BTreeSet<_> =
        listed.iter().map(|record| (record.mechanism, record.user.as_str())).collect();
    let mut expected: BTreeSet<_> = names.map(|name| (Sha256, name)).into();
    expected.insert((Sha512, "alice"));
    assert_eq!(users, expected);
    assert!(listed.iter().any(|record| record.credential == other));
    assert!(metadata.alter_scram(None, "alice", &[(Sha512, None)]).await.unwrap() > 0);
    assert_eq!(metadata.alter_scram(None, "alice", &[(Sha512, None)]).await.unwrap(), 0);
    assert_eq!(metadata.list_scram().await.unwrap().len(), 4);
    for user in ["", &"x".repeat(USER_BYTES_MAX + 1), "a\0", "a\u{202e}b", "a\u{ffff}"] {
        let result = metadata.alter_scram(None, user, &[(Sha256, Some(credential()))]).await;
        assert_eq!(result, Err(ClusterError::InvalidUser));
    }
    // One that an earlier release took is removed as any other.
    assert_eq!(metadata.alter_scram(None, "a\0", &[(Sha256, None)]).await, Ok(0));
    let longest = "/".repeat(USER_BYTES_MAX);
    metadata.alter_scram(None, &longest, &[(Sha256, Some(credential()))]).await.unwrap();
}

#[tokio::test]
async fn a_user_is_altered_as_a_whole_or_not_at_all() {
    use ScramMechanism::{Sha256, Sha512};
    // A store that ends after one commit leaves nothing half done.
    let refuse_second =
        |commit| async move { if commit == 1 { Outcome::Refuse } else { Outcome::Commit } };
    let store: Arc<SqliteStore> = Arc::new(SqliteStore::in_memory());
    let metadata = metadata_of(Hooked::new(store.clone(), refuse_second));
    let both = [Sha256, Sha512].map(|mechanism| (mechanism, Some(credential())));
    metadata.alter_scram(None, "alice", &both).await.unwrap();
    let mechanisms = async || {
        let listed = metadata.list_scram().await.unwrap();
        listed.iter().map(|record| record.mechanism).collect::<Vec<_>>()
    };
    assert_eq!(mechanisms().await.len(), 2);
    let neither = [(Sha256, None), (Sha512, None)];
    assert!(metadata.alter_scram(None, "alice", &neither).await.is_err());
    assert_eq!(mechanisms().await.len(), 2);
    let other = [(Sha256, None), (Sha512, Some(credential()))];
    metadata.alter_scram(None, "alice", &other).await.unwrap();
    assert_eq!(mechanisms().await, [Sha512]);
}
