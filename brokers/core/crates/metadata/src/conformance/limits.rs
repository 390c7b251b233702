//! Additions that are held to the limits of a cluster, on any store.

use std::sync::Arc;

use freshet_access::types::{
    AclBinding, Operation, PatternType, Permission, ResourceType, ScramCredential, ScramMechanism,
};
use freshet_world::env::real::{SystemClock, SystemRandomness};

use super::Handles;
use crate::cluster::{ClusterError, ClusterMetadata, Fence, LimitReached, NewTopic, QuotaChanges};
use crate::schema::{
    BrokerPlace, LimitsRecord, QuotaEntity, QuotaEntityType, QuotaKey, QuotaRecord, Retention,
    Table,
};
use crate::store::MetadataStore;
use crate::view::MetadataView;

/// Defines a module of tests for each of these functions, which return [`Handles`] of an empty
/// store.
#[macro_export]
macro_rules! limits_conformance {
    ($($store:ident),* $(,)?) => {
        $($crate::limits_conformance!(@on $store:
            limits_come_back_and_views_show_them,
            topics_and_partitions_are_made_up_to_their_limits,
            of_deleted_topics_the_first_are_given_up_for_the_last,
            topics_that_are_gone_leave_a_bounded_number_of_marks,
            acls_with_names_that_cannot_be_are_refused,
            a_large_topic_that_does_not_fit_leaves_nothing,
            a_limit_below_what_exists_refuses_only_what_is_new,
            acls_are_added_all_or_none_or_those_that_fit,
            clients_leave_the_last_places_to_administrators,
            a_user_counts_once_and_the_services_own_not_at_all,
            additions_at_the_same_time_do_not_pass_a_limit_together,
            an_addition_without_a_limit_is_counted_by_those_that_have_one,
            of_two_at_the_last_place_exactly_one_passes,
            a_limit_that_another_process_sets_holds_for_what_is_added_then
        );)*
    };
    (@on $store:ident: $($case:ident),*) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let handles = super::super::$store().await;
                    $crate::conformance::limits::$case(handles).await;
                }
            )*
        }
    };
}

fn metadata_of(store: &Arc<dyn MetadataStore>) -> ClusterMetadata {
    let randomness = Arc::new(SystemRandomness::open().unwrap());
    ClusterMetadata::new(Arc::clone(store), Arc::new(SystemClock), randomness)
}

/// A broker that has just registered.
pub async fn broker(metadata: &ClusterMetadata) -> Fence {
    let incarnation = metadata.next_incarnation().await.unwrap();
    metadata.register_incarnation(incarnation, 0, "host", BrokerPlace::default()).await.unwrap()
}

/// A topic with one config that is not the default.
pub fn new_topic(name: &str, partitions: i32) -> NewTopic {
    NewTopic {
        name: name.to_owned(),
        partitions,
        replication_factor: 3,
        internal: false,
        configs: [("retention.ms".to_owned(), "1000".to_owned())].into(),
        leaders: Vec::new(),
    }
}

fn acl(name: &str) -> AclBinding {
    AclBinding {
        resource_type: ResourceType::Topic,
        resource_name: name.to_owned(),
        pattern_type: PatternType::Literal,
        principal: "User:alice".to_owned(),
        host: "*".to_owned(),
        operation: Operation::Read,
        permission: Permission::Allow,
    }
}

fn acls(names: &[&str]) -> Vec<AclBinding> {
    names.iter().map(|name| acl(name)).collect()
}

fn entity(user: &str) -> QuotaEntity {
    QuotaEntity([(QuotaEntityType::User, Some(user.to_owned()))].into())
}

fn rate() -> QuotaChanges {
    [(QuotaKey::ProducerByteRate, Some(1_024.0))].into()
}

async fn set_user(metadata: &ClusterMetadata, user: &str) -> Result<u64, ClusterError> {
    let credential = ScramCredential {
        salt: "c2FsdA==".to_owned(),
        iterations: 4096,
        stored_key: "c3RvcmVk".to_owned(),
        server_key: "c2VydmVy".to_owned(),
    };
    metadata.alter_scram(None, user, &[(ScramMechanism::Sha256, Some(credential))]).await
}

/// Limit, value and use of a refusal.
fn refusal<T: std::fmt::Debug>(outcome: Result<T, ClusterError>) -> (&'static str, u64, u64) {
    match outcome.unwrap_err() {
        ClusterError::LimitReached(LimitReached { name, limit, used, .. }) => (name, limit, used),
        other => panic!("{other:?}"),
    }
}

pub async fn limits_come_back_and_views_show_them(handles: Handles) {
    let metadata = metadata_of(&handles.first);
    assert_eq!(metadata.limits().await, Ok(LimitsRecord::default()));
    let (view, follower) = MetadataView::open(metadata.store().clone()).await.unwrap();
    let mut changes = view.subscribe();
    tokio::spawn(follower.run());
    let limits = LimitsRecord { topics: Some(3), groups: Some(0), ..LimitsRecord::default() };
    metadata.set_limits(&limits).await.unwrap();
    assert_eq!(metadata.limits().await, Ok(limits));
    assert!(changes.next().await.unwrap().limits);
    assert_eq!(view.snapshot().limits, limits);
    metadata.set_limits(&LimitsRecord::default()).await.unwrap();
    assert!(changes.next().await.unwrap().limits);
    assert_eq!(view.snapshot().limits, LimitsRecord::default());
}

pub async fn topics_and_partitions_are_made_up_to_their_limits(handles: Handles) {
    let free = metadata_of(&handles.first);
    let limits = LimitsRecord { topics: Some(3), partitions: Some(10), ..LimitsRecord::default() };
    let metadata = free.within(limits);
    metadata.create_topic(None, &new_topic("a", 4)).await.unwrap();
    assert_eq!(
        refusal(metadata.create_topic(None, &new_topic("b", 7)).await),
        ("partitions", 10, 4)
    );
    assert_eq!(free.topic("b").await, Ok(None), "nothing of it was made");
    metadata.create_topic(None, &new_topic("b", 3)).await.unwrap();
    let grown = metadata.create_partitions(None, "a", 8, &[]).await;
    assert_eq!(refusal(grown), ("partitions", 10, 7));
    metadata.create_partitions(None, "a", 6, &[]).await.unwrap();
    metadata.create_topic(None, &new_topic("c", 1)).await.unwrap();
    let next = new_topic("d", 1);
    assert_eq!(refusal(metadata.check_new_topic(&next).await), ("topics", 3, 3));
    assert_eq!(refusal(metadata.create_topic(None, &next).await), ("topics", 3, 3));
    // The coordinator's topic does not count, and always has room.
    let internal = NewTopic { internal: true, ..new_topic("__consumer_offsets", 50) };
    metadata.create_topic(None, &internal).await.unwrap();
    // A deleted topic gives its place free, and needs one to come back.
    let deleted = metadata.delete_topic(None, "c", None, 1_000).await.unwrap().record.id;
    metadata.create_topic(None, &next).await.unwrap();
    for outcome in [
        metadata.restored_topic(deleted, None).await,
        metadata.restore_topic(None, deleted, None).await,
    ] {
        assert_eq!(refusal(outcome), ("topics", 3, 3));
    }
    metadata.delete_topic(None, "d", None, 0).await.unwrap();
    metadata.restore_topic(None, deleted, None).await.unwrap();
}

pub async fn of_deleted_topics_the_first_are_given_up_for_the_last(handles: Handles) {
    let free = metadata_of(&handles.first);
    let limits = LimitsRecord { topics: Some(3), partitions: Some(10), ..LimitsRecord::default() };
    let metadata = free.within(limits);
    let kept = async || {
        let mut hidden = free.hidden_topics().await.unwrap();
        hidden.sort_by(|one, other| one.topic.name.cmp(&other.topic.name));
        hidden.into_iter().map(|hidden| hidden.topic.name).collect::<Vec<_>>()
    };
    for (name, partitions) in [("a", 4), ("b", 4), ("c", 2)] {
        metadata.create_topic(None, &new_topic(name, partitions)).await.unwrap();
        metadata.delete_topic(None, name, None, 1_000).await.unwrap();
    }
    assert_eq!(kept().await.len(), 3);
    // One more by number; then one that leaves room for no other.
    metadata.create_topic(None, &new_topic("d", 1)).await.unwrap();
    metadata.delete_topic(None, "d", None, 1_000).await.unwrap();
    let after = kept().await;
    assert!(after.len() == 3 && after.contains(&"d".to_owned()), "{after:?}");
    metadata.create_topic(None, &new_topic("e", 10)).await.unwrap();
    metadata.delete_topic(None, "e", None, 1_000).await.unwrap();
    assert_eq!(kept().await, ["e"]);
    // Without limits all are kept.
    free.create_topic(None, &new_topic("f", 10)).await.unwrap();
    free.delete_topic(None, "f", None, 1_000).await.unwrap();
    assert_eq!(kept().await, ["e", "f"]);
}

/// Whoever makes and deletes topics without end fills the store with their marks.
pub async fn topics_that_are_gone_leave_a_bounded_number_of_marks(handles: Handles) {
    let free = metadata_of(&handles.first);
    let limits = LimitsRecord { deleted_topics: Some(2), ..LimitsRecord::default() };
    let (view, follower) = MetadataView::open(handles.second.clone()).await.unwrap();
    tokio::spawn(follower.run());
    let bounded = [free.within(limits), free.within_for_client(limits, &view)];
    let mut gone = Vec::new();
    for (metadata, name) in bounded.iter().zip(["a", "b"]) {
        metadata.create_topic(None, &new_topic(name, 1)).await.unwrap();
        let deleted = metadata.delete_topic(None, name, None, 0).await.unwrap();
        view.wait_for(deleted.revision).await.unwrap();
        gone.push(deleted.record.id);
    }
    for metadata in &bounded {
        let refused = metadata.create_topic(None, &new_topic("c", 1)).await;
        assert_eq!(refusal(refused), ("deleted_topics", 2, 2));
        let checked = metadata.check_new_topic(&new_topic("c", 1)).await;
        assert_eq!(refusal(checked), ("deleted_topics", 2, 2));
    }
    // One that can be restored leaves none yet; and room comes back when the marks go.
    free.forget_deleted_topics(None, gone).await.unwrap();
    let later = free.create_topic(None, &new_topic("c", 1)).await.unwrap();
    view.wait_for(later.revision).await.unwrap();
    for (metadata, name) in bounded.iter().zip(["d", "e"]) {
        metadata.create_topic(None, &new_topic(name, 1)).await.unwrap();
        let hidden = metadata.delete_topic(None, name, None, 1_000).await.unwrap();
        view.wait_for(hidden.revision).await.unwrap();
    }
    assert_eq!(view.snapshot().deleted_topics.len(), 0);
}

pub async fn acls_with_names_that_cannot_be_are_refused(handles: Handles) {
    let metadata = metadata_of(&handles.first);
    let longest = acl(&"x".repeat(1_024 - "User:alice*".len()));
    metadata.add_acls(None, std::slice::from_ref(&longest)).await.unwrap();
    let longer = AclBinding { resource_name: format!("{}x", longest.resource_name), ..longest };
    assert_eq!(metadata.add_acls(None, &[acl("a"), longer]).await, Err(ClusterError::AclTooLong));
    let hidden = [
        ("resource name", acl("a\0")),
        ("principal", AclBinding { principal: "User:a\u{202e}b".to_owned(), ..acl("a") }),
        ("host", AclBinding { host: "*\n".to_owned(), ..acl("a") }),
    ];
    for (field, entry) in hidden {
        let result = metadata.add_acls(None, &[acl("a"), entry.clone()]).await;
        assert_eq!(result, Err(ClusterError::InvalidAcl(field)));
        // One that an earlier release took is removed as any other.
        metadata.remove_acls(None, &[entry]).await.unwrap();
    }
    assert_eq!(metadata.list_acls().await.unwrap().len(), 1);
}

pub async fn a_large_topic_that_does_not_fit_leaves_nothing(handles: Handles) {
    let free = metadata_of(&handles.first);
    let limits = LimitsRecord { partitions: Some(300), ..LimitsRecord::default() };
    let metadata = free.within(limits);
    metadata.create_topic(None, &new_topic("a", 250)).await.unwrap();
    let entries = async || free.store().range("", None, usize::MAX).await.unwrap().entries.len();
    let before = entries().await;
    let refused = metadata.create_topic(None, &new_topic("b", 200)).await;
    assert_eq!(refusal(refused), ("partitions", 300, 250));
    assert_eq!(entries().await, before);
}

pub async fn a_limit_below_what_exists_refuses_only_what_is_new(handles: Handles) {
    let free = metadata_of(&handles.first);
    free.create_topic(None, &new_topic("a", 5)).await.unwrap();
    free.add_acls(None, &acls(&["a", "b"])).await.unwrap();
    set_user(&free, "alice").await.unwrap();
    free.alter_quotas(None, &entity("alice"), &rate()).await.unwrap();
    let limits = LimitsRecord {
        topics: Some(0),
        partitions: Some(1),
        acls: Some(1),
        credentials: Some(0),
        quotas: Some(0),
        ..LimitsRecord::default()
    };
    let metadata = free.within(limits);
    let configs = [("retention.ms".to_owned(), Some("5".to_owned()))].into();
    metadata.set_topic_configs(None, "a", None, &configs, &|_| Retention::default()).await.unwrap();
    metadata.add_acls(None, &acls(&["a", "b"])).await.unwrap();
    set_user(&metadata, "alice").await.unwrap();
    let half = [(QuotaKey::ProducerByteRate, Some(512.0))].into();
    metadata.alter_quotas(None, &entity("alice"), &half).await.unwrap();
    assert_eq!(refusal(metadata.add_acls(None, &acls(&["a", "c"])).await), ("acls", 1, 2));
    assert_eq!(refusal(set_user(&metadata, "bob").await), ("credentials", 0, 1));
    let altered = metadata.alter_quotas(None, &entity("bob"), &rate()).await;
    assert_eq!(refusal(altered), ("quotas", 0, 1));
    metadata.remove_acls(None, &acls(&["a", "b"])).await.unwrap();
    metadata.add_acls(None, &acls(&["c"])).await.unwrap();
}

pub async fn acls_are_added_all_or_none_or_those_that_fit(handles: Handles) {
    let free = metadata_of(&handles.first);
    let metadata = free.within(LimitsRecord { acls: Some(3), ..LimitsRecord::default() });
    metadata.add_acls(None, &acls(&["a"])).await.unwrap();
    let four = metadata.add_acls(None, &acls(&["a", "b", "c", "d"])).await;
    assert_eq!(refusal(four), ("acls", 3, 1));
    assert_eq!(free.list_acls().await.unwrap().len(), 1);
    let given = acls(&["z", "a", "z", "y", "x", "w"]);
    let added = metadata.add_acls_that_fit(None, &given).await.unwrap();
    assert_eq!(added.refused, [false, false, false, false, true, true]);
    assert_eq!(added.refusal.map(|refusal| (refusal.limit, refusal.used)), Some((3, 1)));
    let mut names: Vec<_> = free.list_acls().await.unwrap();
    names.sort();
    let names: Vec<_> = names.iter().map(|acl| acl.resource_name.as_str()).collect();
    assert_eq!(names, ["a", "y", "z"]);
    // A long list takes several transactions, of which each sees the ones before.
    let more = free.within(LimitsRecord { acls: Some(100), ..LimitsRecord::default() });
    let many: Vec<_> = (0..150).map(|number| acl(&format!("t-{number}"))).collect();
    let added = more.add_acls_that_fit(None, &many).await.unwrap();
    assert_eq!(added.refused.iter().filter(|refused| **refused).count(), 53);
    assert_eq!(free.list_acls().await.unwrap().len(), 100);
}

pub async fn clients_leave_the_last_places_to_administrators(handles: Handles) {
    let free = metadata_of(&handles.first);
    let fence = Some(broker(&free).await);
    let limits = LimitsRecord {
        acls: Some(50),
        credentials: Some(50),
        quotas: Some(50),
        ..LimitsRecord::default()
    };
    let (view, follower) = MetadataView::open(free.store().clone()).await.unwrap();
    tokio::spawn(follower.run());
    let (client, administrator) = (free.within_for_client(limits, &view), free.within(limits));
    let many: Vec<_> = (0..60).map(|number| acl(&format!("t-{number}"))).collect();
    let added = client.add_acls_that_fit(fence, &many).await.unwrap();
    assert_eq!(added.refused.iter().filter(|refused| !**refused).count(), 45);
    assert_eq!(added.refusal.unwrap().reserve, 5);
    for number in 0..45 {
        set_user(&client, &format!("u-{number}")).await.unwrap();
        client.alter_quotas(fence, &entity(&format!("u-{number}")), &rate()).await.unwrap();
    }
    assert_eq!(refusal(set_user(&client, "one-more").await), ("credentials", 50, 45));
    let altered = client.alter_quotas(fence, &entity("one-more"), &rate()).await;
    assert_eq!(refusal(altered), ("quotas", 50, 45));
    for number in 0..5 {
        administrator.add_acls(None, &[acl(&format!("mine-{number}"))]).await.unwrap();
        set_user(&administrator, &format!("mine-{number}")).await.unwrap();
        let mine = entity(&format!("mine-{number}"));
        administrator.alter_quotas(None, &mine, &rate()).await.unwrap();
    }
    assert_eq!(refusal(administrator.add_acls(None, &acls(&["x"])).await), ("acls", 50, 50));
    assert_eq!(refusal(set_user(&administrator, "x").await), ("credentials", 50, 50));
}

pub async fn a_user_counts_once_and_the_services_own_not_at_all(handles: Handles) {
    let metadata = metadata_of(&handles.first);
    let metadata =
        metadata.within(LimitsRecord { credentials: Some(1), ..LimitsRecord::default() });
    set_user(&metadata, "__freshet").await.unwrap();
    set_user(&metadata, "alice").await.unwrap();
    let credential = ScramCredential {
        salt: "c2FsdA==".to_owned(),
        iterations: 4096,
        stored_key: "c3RvcmVk".to_owned(),
        server_key: "c2VydmVy".to_owned(),
    };
    let change = [(ScramMechanism::Sha512, Some(credential))];
    metadata.alter_scram(None, "alice", &change).await.unwrap();
    assert_eq!(refusal(set_user(&metadata, "bob").await), ("credentials", 1, 1));
}

/// Two processes with many tasks each add to every table; some also without a limit.
pub async fn additions_at_the_same_time_do_not_pass_a_limit_together(handles: Handles) {
    let limits = LimitsRecord {
        topics: Some(8),
        acls: Some(8),
        credentials: Some(8),
        quotas: Some(8),
        ..LimitsRecord::default()
    };
    let first = metadata_of(&handles.first);
    let processes = [first.within(limits), metadata_of(&handles.second).within(limits)];
    let mut tasks = Vec::new();
    for number in 0..12 {
        for (process, metadata) in processes.iter().enumerate() {
            let (metadata, name) = (metadata.clone(), format!("n-{process}-{number}"));
            tasks.push(tokio::spawn(async move {
                [
                    metadata.create_topic(None, &new_topic(&name, 1)).await.map(drop),
                    metadata.add_acls(None, &[acl(&name)]).await.map(drop),
                    set_user(&metadata, &name).await.map(drop),
                    metadata.alter_quotas(None, &entity(&name), &rate()).await.map(drop),
                ]
            }));
        }
    }
    let mut made = [0; 4];
    for task in tasks {
        for (count, outcome) in made.iter_mut().zip(task.await.unwrap()) {
            match outcome {
                Ok(()) => *count += 1,
                Err(ClusterError::LimitReached(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(made, [8; 4]);
    let (view, _) = MetadataView::open(first.store().clone()).await.unwrap();
    let snapshot = view.snapshot();
    let stored = [snapshot.topics.len(), snapshot.acls.len(), snapshot.scram.len()];
    assert_eq!(stored, [8; 3]);
    let quotas: Vec<QuotaRecord> = first.quotas().await.unwrap();
    assert_eq!(quotas.len(), 8);
}

/// What others add between a count and its transaction makes the count be taken again, also where
/// they have no limit themselves.
pub async fn an_addition_without_a_limit_is_counted_by_those_that_have_one(handles: Handles) {
    let free = metadata_of(&handles.first);
    let before = free.store().get("added/topics").await.unwrap();
    free.create_topic(None, &new_topic("a", 1)).await.unwrap();
    let after = free.store().get("added/topics").await.unwrap().unwrap();
    assert!(before.is_none());
    free.delete_topic(None, "a", None, 1_000).await.unwrap();
    let same = free.store().get("added/topics").await.unwrap().unwrap();
    assert_eq!(same.revision, after.revision, "a removal is no addition");
    assert_eq!(Table::ALL.map(Table::name), ["topics", "acls", "users", "quotas"]);
}

/// Two processes add at once where one place is left, again and again: exactly one of them passes.
pub async fn of_two_at_the_last_place_exactly_one_passes(handles: Handles) {
    let [first, second] = [metadata_of(&handles.first), metadata_of(&handles.second)];
    for round in 0..8 {
        let most = Some(round + 1);
        let limits = LimitsRecord {
            topics: most,
            acls: most,
            credentials: most,
            quotas: most,
            ..LimitsRecord::default()
        };
        let add = |metadata: &ClusterMetadata, process: &str| {
            let metadata = metadata.within(limits);
            let name = format!("n-{process}-{round}");
            tokio::spawn(async move {
                let (acl, quota, changes) = ([acl(&name)], entity(&name), rate());
                let topic = new_topic(&name, 120);
                let (topic, acl, user, quota) = tokio::join!(
                    metadata.create_topic(None, &topic),
                    metadata.add_acls(None, &acl),
                    set_user(&metadata, &name),
                    metadata.alter_quotas(None, &quota, &changes),
                );
                [topic.map(drop), acl.map(drop), user.map(drop), quota.map(drop)]
            })
        };
        let (one, other) = (add(&first, "a"), add(&second, "b"));
        let outcomes = one.await.unwrap().into_iter().zip(other.await.unwrap());
        for (table, (one, other)) in Table::ALL.into_iter().zip(outcomes) {
            let refused = [one, other].into_iter().filter_map(Result::err).collect::<Vec<_>>();
            let name = if table == Table::Users { "credentials" } else { table.name() };
            match &refused[..] {
                [ClusterError::LimitReached(LimitReached { name: limit, used, .. })] => {
                    assert_eq!((*limit, *used), (name, round + 1), "{table:?}");
                }
                _ => panic!("{table:?} in round {round}: {refused:?}"),
            }
        }
    }
}

/// A limit that is changed while others add holds for every addition that begins afterwards.
pub async fn a_limit_that_another_process_sets_holds_for_what_is_added_then(handles: Handles) {
    let [first, second] = [metadata_of(&handles.first), metadata_of(&handles.second)];
    for topics in [1, 3, 2] {
        let limits = LimitsRecord { topics: Some(topics), ..LimitsRecord::default() };
        first.set_limits(&limits).await.unwrap();
        assert_eq!(second.limits().await, Ok(limits));
    }
    let bounded = second.within(second.limits().await.unwrap());
    for name in ["a", "b"] {
        bounded.create_topic(None, &new_topic(name, 1)).await.unwrap();
    }
    assert_eq!(refusal(bounded.create_topic(None, &new_topic("c", 1)).await), ("topics", 2, 2));
}
