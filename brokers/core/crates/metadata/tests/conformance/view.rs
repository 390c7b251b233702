//! The image in memory.

use std::sync::Arc;

use freshet_access::types::{ScramCredential, ScramMechanism};
use freshet_metadata::cluster::{ClusterFacts, NewTopic, PartitionUpdate};
use freshet_metadata::schema::{ConfigScope, IncarnationState, Retention, SealedEnd};
use freshet_metadata::sqlite::SqliteOptions;
use freshet_metadata::store::Transaction;
use freshet_metadata::view::{Snapshot, ViewChange, ViewError, ViewStopped};
use freshet_metadata::{ClusterMetadata, MetadataError, MetadataStore, MetadataView, SqliteStore};
use freshet_wire::ids::PartitionId;
use tokio::task::JoinHandle;

use super::fixture::{broker, metadata, metadata_of, new_topic, on_file};

async fn follow(metadata: &ClusterMetadata) -> (Arc<MetadataView>, JoinHandle<ViewError>) {
    let (view, follower) = MetadataView::open(metadata.store().clone()).await.unwrap();
    (view, tokio::spawn(follower.run()))
}

/// What a view that is opened now would show.
async fn fresh(metadata: &ClusterMetadata) -> Snapshot {
    let (view, _) = MetadataView::open(metadata.store().clone()).await.unwrap();
    let snapshot = view.snapshot();
    (*snapshot).clone()
}

/// One of everything.
async fn fill(metadata: &ClusterMetadata) -> u64 {
    metadata.open_or_create(&ClusterFacts { cluster_id: None, scale: 1 }).await.unwrap();
    let fence = broker(metadata).await;
    metadata.claim_controller(fence, None).await.unwrap();
    let leader = Some(fence.incarnation);
    let new = NewTopic { leaders: leader.into_iter().collect(), ..new_topic("orders", 3) };
    metadata.create_topic(Some(fence), &new).await.unwrap();
    let changes = [("a".to_owned(), Some("1".to_owned()))].into();
    metadata.set_broker_configs(Some(fence), ConfigScope::Slot(0), &changes).await.unwrap();
    let acl = freshet_access::types::AclBinding {
        resource_type: freshet_access::types::ResourceType::Group,
        resource_name: "*".to_owned(),
        pattern_type: freshet_access::types::PatternType::Literal,
        principal: "User:*".to_owned(),
        host: "*".to_owned(),
        operation: freshet_access::types::Operation::All,
        permission: freshet_access::types::Permission::Deny,
    };
    metadata.add_acls(Some(fence), &[acl]).await.unwrap();
    let credential = ScramCredential {
        salt: "c2FsdA==".to_owned(),
        iterations: 4096,
        stored_key: "c3RvcmVk".to_owned(),
        server_key: "c2VydmVy".to_owned(),
    };
    let sha256 = ScramMechanism::Sha256;
    metadata.alter_scram(Some(fence), "alice", &[(sha256, Some(credential))]).await.unwrap()
}

fn assert_filled(snapshot: &Snapshot) {
    assert_eq!(snapshot.cluster.as_ref().unwrap().record.scale, 1);
    assert_eq!(snapshot.controller.as_ref().unwrap().record.term, 1);
    assert_eq!(snapshot.incarnations.len(), 1);
    let topic = snapshot.topics.by_name("orders").unwrap();
    assert_eq!(snapshot.topics.by_id(topic.record.id), Some(topic));
    assert_eq!((topic.partitions.len(), snapshot.topics.len()), (3, 1));
    let last = snapshot.topics.partition(PartitionId::new(topic.record.id, 2)).unwrap();
    assert_eq!(last.record.leader, snapshot.incarnations.keys().next().copied());
    for index in [-1, 3] {
        assert_eq!(topic.partition(index), None);
    }
    assert_eq!(snapshot.broker_configs[&ConfigScope::Slot(0)]["a"], "1");
    assert_eq!(snapshot.acls.len(), 1);
    let user = (ScramMechanism::Sha256, "alice".to_owned());
    assert_eq!(snapshot.scram[&user].iterations, 4096);
}

#[tokio::test]
async fn view_shows_all_there_is_from_the_start() {
    let metadata = metadata();
    let revision = fill(&metadata).await;
    let snapshot = fresh(&metadata).await;
    assert_filled(&snapshot);
    assert_eq!(snapshot.revision, revision);
}

#[tokio::test]
async fn view_follows_and_writers_can_wait_for_it() {
    let handles = on_file().await;
    let writer = metadata_of(handles.first.clone());
    let (view, _task) = follow(&metadata_of(handles.second.clone())).await;
    assert!(view.topics().is_empty());
    let revision = fill(&writer).await;
    view.wait_for(revision).await.unwrap();
    assert_filled(&view.snapshot());
    // A write that changed nothing.
    view.wait_for(0).await.unwrap();

    let fence = broker(&writer).await;
    let topic = view.topics().by_name("orders").unwrap().record.id;
    let partition = PartitionId::new(topic, 1);
    let stored = writer.partition(partition).await.unwrap().unwrap();
    let end = SealedEnd { file: 1, sequence: 2 };
    let record = stored.record.led_by(fence.incarnation, |_| Some(end)).unwrap();
    let update = PartitionUpdate::takeover(partition, &stored, record.clone()).unwrap();
    let taken = writer.take_over(fence, vec![update]).await.unwrap();
    view.wait_for(taken.revision).await.unwrap();
    assert_eq!(view.topics().partition(partition).unwrap().record, record);
    writer.mark_fenced(None, fence.incarnation).await.unwrap();
    let grown = writer.create_partitions(None, "orders", 5, &[]).await.unwrap();
    view.wait_for(grown.revision).await.unwrap();
    let snapshot = view.snapshot();
    assert_eq!(snapshot.incarnations[&fence.incarnation].record.state, IncarnationState::Fenced);
    assert_eq!(snapshot.topics.by_name("orders").unwrap().partitions.len(), 5);
    let user = writer.alter_scram(None, "alice", &[(ScramMechanism::Sha256, None)]).await.unwrap();
    let acls = writer.remove_acls(None, &view.snapshot().acls).await.unwrap();
    let deleted = writer.delete_topic(None, "orders", None, 0).await.unwrap();
    view.wait_for(user.max(acls).max(deleted.revision)).await.unwrap();
    let snapshot = view.snapshot();
    assert_eq!((snapshot.scram.len(), snapshot.acls.len(), snapshot.topics.len()), (0, 0, 0));
    assert_eq!(snapshot.topics.by_id(topic), None);
    assert_eq!(snapshot.deleted_topics.keys().collect::<Vec<_>>(), [&topic]);
    assert_eq!(snapshot.deleted_topics[&topic].name, "orders");
}

#[tokio::test]
async fn followed_view_is_the_same_as_a_fresh_one() {
    let metadata = metadata();
    let (view, _task) = follow(&metadata).await;
    fill(&metadata).await;
    for round in 0..30 {
        let name = format!("t{}", round % 7);
        let existing = metadata.topic(&name).await.unwrap();
        let revision = match existing {
            None => metadata.create_topic(None, &new_topic(&name, 120)).await.unwrap().revision,
            Some(topic) if round % 3 == 0 => {
                metadata.delete_topic(None, &name, Some(topic.record.id), 0).await.unwrap();
                metadata.create_topic(None, &new_topic(&name, 2)).await.unwrap().revision
            }
            Some(topic) => {
                let total = topic.record.partitions + 1;
                metadata.create_partitions(None, &name, total, &[]).await.unwrap().revision
            }
        };
        view.wait_for(revision).await.unwrap();
        let mut fresh = fresh(&metadata).await;
        fresh.revision = view.snapshot().revision;
        assert_eq!(*view.snapshot(), fresh, "round {round}");
    }
}

#[tokio::test]
async fn half_made_topics_are_not_seen() {
    let metadata = metadata();
    let topic = metadata.create_topic(None, &new_topic("t", 3)).await.unwrap().record;
    let (view, _task) = follow(&metadata).await;
    // As a creation that has come to its partitions, and a growth too.
    let half = "00000000000000000000000000000abc";
    let half_made = Transaction::new()
        .put(format!("topic_id/{half}"), r#"{"v":1,"name":"half"}"#)
        .put(format!("partition/{half}/000000"), r#"{"v":1,"leader":null,"epoch":0,"extents":[]}"#)
        .put(
            format!("partition/{}/000003", topic.id.simple()),
            r#"{"v":1,"leader":null,"epoch":0,"extents":[]}"#,
        );
    let revision = metadata.store().commit(half_made).await.unwrap();
    view.wait_for(revision).await.unwrap();
    for snapshot in [(*view.snapshot()).clone(), fresh(&metadata).await] {
        assert_eq!(snapshot.topics.len(), 1);
        assert_eq!(snapshot.topics.by_name("t").unwrap().partitions.len(), 3);
        assert_eq!(snapshot.topics.partition(PartitionId::new(topic.id, 3)), None);
    }
}

#[tokio::test]
async fn subscribers_learn_what_changed_and_only_that() {
    let metadata = metadata();
    let (view, task) = follow(&metadata).await;
    let mut changes = view.subscribe();
    let one = metadata.create_topic(None, &new_topic("one", 2)).await.unwrap();
    let two = metadata.create_topic(None, &new_topic("two", 1)).await.unwrap();
    view.wait_for(two.revision).await.unwrap();
    let partition = |topic, index| PartitionId::new(topic, index);
    let (one, two) = (one.record.id, two.record.id);
    let both = ViewChange {
        topics: [one, two].into(),
        partitions: [partition(one, 0), partition(one, 1), partition(two, 0)].into(),
        ..ViewChange::default()
    };
    assert_eq!(changes.next().await.unwrap(), both);
    let set = [("a".to_owned(), Some("1".to_owned()))].into();
    let set = metadata
        .set_topic_configs(None, "two", None, &set, &|_| Retention::default())
        .await
        .unwrap();
    view.wait_for(set.revision).await.unwrap();
    let topic = ViewChange { topics: [two].into(), ..ViewChange::default() };
    assert_eq!(changes.next().await.unwrap(), topic);
    let fence = broker(&metadata).await;
    view.wait_for(fence.revision).await.unwrap();
    let incarnations = ViewChange { incarnations: true, ..ViewChange::default() };
    assert_eq!(changes.next().await.unwrap(), incarnations);
    metadata.delete_topic(None, "one", None, 0).await.unwrap();
    let mut removed = changes.next().await.unwrap();
    assert!(removed.topics.contains(&one));
    while removed.partitions.len() < 2 {
        removed = changes.next().await.unwrap();
    }
    task.abort();
    assert_eq!(changes.next().await, Err(ViewStopped));
}

#[tokio::test]
async fn view_behind_the_history_reads_anew() {
    let options = SqliteOptions { history_changes: 10, ..SqliteOptions::default() };
    let metadata = metadata_of(Arc::new(SqliteStore::in_memory_with(options)));
    let kept = metadata.create_topic(None, &new_topic("kept", 2)).await.unwrap().record.id;
    let gone = metadata.create_topic(None, &new_topic("gone", 1)).await.unwrap().record.id;
    let (view, follower) = MetadataView::open(metadata.store().clone()).await.unwrap();
    let mut changes = view.subscribe();
    let mut last = metadata.delete_topic(None, "gone", None, 0).await.unwrap().revision;
    for n in 0..20 {
        last = metadata.create_topic(None, &new_topic(&format!("t{n}"), 1)).await.unwrap().revision;
    }
    let _task = tokio::spawn(follower.run());
    view.wait_for(last).await.unwrap();
    assert_eq!(view.topics().len(), 21);
    assert_eq!(view.topics().by_name("gone"), None);
    let change = changes.next().await.unwrap();
    assert_eq!(change.topics.len(), 21);
    assert!(change.topics.contains(&gone) && !change.topics.contains(&kept));
    assert_eq!(change.partitions.len(), 21);
    assert!(!change.acls && !change.incarnations);
}

#[tokio::test]
async fn unreadable_record_stops_the_view_and_all_who_wait() {
    let metadata = metadata();
    let (view, task) = follow(&metadata).await;
    let newer = Transaction::new().put("term", r#"{"v":99}"#);
    let revision = metadata.store().commit(newer).await.unwrap();
    assert_eq!(view.wait_for(revision).await, Err(ViewStopped));
    let error = task.await.unwrap();
    assert!(error.to_string().contains("newer release"), "{error}");
    let opened = MetadataView::open(metadata.store().clone()).await.err().unwrap();
    assert_eq!(opened, error);
    // Nor does a topic come up without its partitions, whose epochs would be unknown.
    let metadata = super::fixture::metadata();
    let created = metadata.create_topic(None, &new_topic("t", 2)).await.unwrap();
    let missing = PartitionId::new(created.record.id, 1);
    let key = freshet_metadata::schema::Key::Partition(missing).to_string();
    metadata.store().commit(Transaction::new().delete(key)).await.unwrap();
    let opened = MetadataView::open(metadata.store().clone()).await.err();
    assert_eq!(opened, Some(ViewError::Missing(missing)));
}

#[tokio::test(start_paused = true)]
async fn store_that_is_away_for_a_while_is_waited_for() {
    let store = Arc::new(Away::default());
    let metadata = metadata_of(Arc::new(store.inner.clone()));
    let (view, follower) = MetadataView::open(store.clone()).await.unwrap();
    store.left.store(5, std::sync::atomic::Ordering::SeqCst);
    let _task = tokio::spawn(follower.run());
    let created = metadata.create_topic(None, &new_topic("t", 1)).await.unwrap();
    view.wait_for(created.revision).await.unwrap();
    assert_eq!(view.topics().len(), 1);
    assert_eq!(store.left.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// A store whose next `left` watches fail.
struct Away {
    inner: SqliteStore,
    left: std::sync::atomic::AtomicUsize,
}

impl Default for Away {
    fn default() -> Self {
        Self { inner: SqliteStore::in_memory(), left: 0.into() }
    }
}

#[async_trait::async_trait]
impl MetadataStore for Away {
    async fn get(
        &self,
        key: &str,
    ) -> Result<Option<freshet_metadata::store::Entry>, MetadataError> {
        self.inner.get(key).await
    }

    async fn range(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<freshet_metadata::store::Page, MetadataError> {
        self.inner.range(prefix, after, limit).await
    }

    async fn commit(&self, transaction: Transaction) -> Result<u64, MetadataError> {
        self.inner.commit(transaction).await
    }

    async fn watch(
        &self,
        prefix: &str,
        after: u64,
    ) -> Result<Box<dyn freshet_metadata::store::Watch>, MetadataError> {
        use std::sync::atomic::Ordering::SeqCst;
        if self.left.load(SeqCst) > 0 {
            self.left.fetch_sub(1, SeqCst);
            return Err(MetadataError::Unavailable("away".to_owned()));
        }
        self.inner.watch(prefix, after).await
    }
}

#[tokio::test]
async fn ten_thousand_partitions_are_shown() {
    let metadata = metadata();
    for topic in 0..10 {
        metadata.create_topic(None, &new_topic(&format!("t{topic}"), 1000)).await.unwrap();
    }
    let snapshot = fresh(&metadata).await;
    let partitions: usize = snapshot.topics.iter().map(|topic| topic.partitions.len()).sum();
    assert_eq!(partitions, 10_000);
    let names: Vec<&str> = snapshot.topics.iter().map(|topic| topic.record.name.as_str()).collect();
    assert!(names.is_sorted());
}
