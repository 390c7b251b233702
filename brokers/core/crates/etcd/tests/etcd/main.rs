//! The store in etcd, on a real server: the interface, and its behaviour where the server is away,
//! slow, or has lost its history.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test may fail by a panic")]

use std::sync::Arc;
use std::time::Duration;

use etcd_client::Permission;
use freshet_etcd::location::open_store;
use freshet_etcd::{EtcdOptions, EtcdStore};
use freshet_metadata::cluster::NewTopic;
use freshet_metadata::conformance::Handles;
use freshet_metadata::schema::BrokerPlace;
use freshet_metadata::store::{Change, Expected, Transaction, Watch};
use freshet_metadata::{ClusterMetadata, Fence, MetadataError, MetadataStore, MetadataView};
use freshet_world::env::real::{SystemClock, SystemRandomness};

use server::{EtcdServer, shared};

mod server;

/// Short, of a server that will not answer.
const SHORT: Duration = Duration::from_millis(300);

freshet_metadata::metadata_conformance!(on_etcd);

mod limits {
    freshet_metadata::limits_conformance!(on_etcd);
}

/// Two clients of a real etcd, in a part of it that no other test uses.
async fn on_etcd() -> Handles {
    let server = shared();
    let options = server.options();
    let first = Arc::new(server.store(&options).await);
    let second = Arc::new(server.store(&options).await);
    Handles { first, second, kept: None }
}

fn metadata_of(store: Arc<dyn MetadataStore>) -> ClusterMetadata {
    let randomness = Arc::new(SystemRandomness::open().unwrap());
    ClusterMetadata::new(store, Arc::new(SystemClock), randomness)
}

/// A broker that has just registered.
async fn broker(metadata: &ClusterMetadata) -> Fence {
    let incarnation = metadata.next_incarnation().await.unwrap();
    metadata.register_incarnation(incarnation, 0, "host", BrokerPlace::default()).await.unwrap()
}

fn new_topic(name: &str) -> NewTopic {
    NewTopic {
        name: name.to_owned(),
        partitions: 1,
        replication_factor: 3,
        internal: false,
        configs: [("retention.ms".to_owned(), "1000".to_owned())].into(),
        leaders: Vec::new(),
    }
}

async fn put(store: &EtcdStore, key: &str, value: &str) -> u64 {
    store.commit(Transaction::new().put(key, value.to_owned())).await.unwrap()
}

/// Forgets all changes before a revision.
async fn compact(endpoint: &str, revision: u64) {
    let mut client = etcd_client::Client::connect([endpoint], None).await.unwrap();
    client.compact(i64::try_from(revision).unwrap(), None).await.unwrap();
}

/// Waits for changes, and tries again while the store is away.
async fn changes_after_outage(watch: &mut dyn Watch) -> Vec<Change> {
    loop {
        match watch.next().await {
            Ok(changes) => return changes,
            Err(MetadataError::Unavailable(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_watch_goes_on_behind_a_restart() {
    let mut server = EtcdServer::start("restart");
    let options = server.options();
    let store = server.store(&options).await;
    let start = put(&store, "n", "0").await;
    let mut watch = store.watch("n", start).await.unwrap();
    let before = put(&store, "n", "1").await;
    assert_eq!(watch.next().await.unwrap()[0].revision, before);
    server.kill();
    server.resume();
    let other = server.store(&options).await;
    let after = put(&other, "n", "2").await;
    let change = Change { key: "n".to_owned(), value: Some("2".into()), revision: after };
    assert_eq!(changes_after_outage(&mut *watch).await, [change]);
    assert_eq!(store.get("n").await.unwrap().unwrap().value, "2");
}

#[tokio::test]
async fn a_lost_history_is_an_error() {
    let server = EtcdServer::start("compacted");
    let store = server.store(&server.options()).await;
    let start = put(&store, "n", "0").await;
    let mut last = start;
    for n in 1..10 {
        last = put(&store, "n", &n.to_string()).await;
    }
    let mut behind = store.watch("n", start).await.unwrap();
    compact(server.endpoint(), last).await;
    let gone = store.watch("n", start).await.err();
    assert_eq!(gone, Some(MetadataError::Compacted));
    // A watch that stood before may have had all of it sent already.
    match behind.next().await {
        Ok(changes) => assert_eq!(changes[0].revision, start + 1),
        Err(error) => assert_eq!(error, MetadataError::Compacted),
    }
    let mut watch = store.watch("n", last).await.unwrap();
    let coming = put(&store, "n", "coming").await;
    assert_eq!(watch.next().await.unwrap()[0].revision, coming);
}

#[tokio::test]
async fn a_view_reads_anew_behind_lost_history() {
    let mut server = EtcdServer::start("view");
    let options = server.options();
    let store = Arc::new(server.store(&options).await);
    let metadata = metadata_of(store.clone());
    let fence = broker(&metadata).await;
    let (view, follower) = MetadataView::open(store.clone()).await.unwrap();
    let following = tokio::spawn(follower.run());
    metadata.create_topic(Some(fence), &new_topic("before")).await.unwrap();
    server.kill();
    server.resume();
    let other = metadata_of(Arc::new(server.store(&options).await));
    let made = other.create_topic(Some(fence), &new_topic("meanwhile")).await.unwrap();
    compact(server.endpoint(), made.revision).await;
    let last = other.create_topic(Some(fence), &new_topic("after")).await.unwrap();
    view.wait_for(last.revision).await.unwrap();
    let names: Vec<_> = ["before", "meanwhile", "after"]
        .into_iter()
        .filter(|name| view.topics().by_name(name).is_none())
        .collect();
    assert_eq!(names, Vec::<&str>::new());
    following.abort();
}

#[tokio::test]
async fn a_server_that_is_silent_is_away() {
    let server = EtcdServer::start("silent");
    let options = server.options();
    server.store(&options).await;
    let short = EtcdOptions { request_timeout: SHORT, ..options.clone() };
    let store = server.store(&short).await;
    server.pause();
    // Sent, and not answered.
    let lost = store.commit(Transaction::new().compare("k", Expected::Absent).put("k", "1")).await;
    assert!(matches!(lost, Err(MetadataError::Unknown(_))), "{lost:?}");
    // Not sent any more, while nothing is answered.
    let refused = store.commit(Transaction::new().put("k", "2")).await;
    assert!(matches!(refused, Err(MetadataError::Unavailable(_))), "{refused:?}");
    let read = store.get("k").await;
    assert!(matches!(read, Err(MetadataError::Unavailable(_))), "{read:?}");
    let opened = EtcdStore::open(short).await.err();
    assert!(matches!(opened, Some(MetadataError::Unavailable(_))), "{opened:?}");
    server.unpause();
    let store = server.store(&options).await;
    let entry = store.get("k").await.unwrap();
    assert!(entry.is_none_or(|pair| pair.value == "1"), "what was refused was done");
    put(&store, "k", "3").await;
}

#[tokio::test]
async fn a_range_larger_than_an_answer_is_one_revision() {
    let server = shared();
    let store = server.store(&server.options()).await;
    // 80 MB in all, beyond the 64 MiB of one answer.
    let value = vec![b'x'; 1_000_000];
    for n in 0..80 {
        store.commit(Transaction::new().put(format!("k{n:02}"), value.clone())).await.unwrap();
    }
    let page = store.range("", None, usize::MAX).await.unwrap();
    assert_eq!(page.entries.len(), 80);
    assert!(!page.more);
    assert!(page.entries.is_sorted_by(|a, b| a.key < b.key));
    assert!(page.entries.iter().all(|entry| entry.revision <= page.revision));
}

#[tokio::test]
async fn settings_name_it_by_an_address() {
    let server = shared();
    let members = server.endpoint().strip_prefix("http://").unwrap();
    let whole = server.store(&EtcdOptions { root: String::new(), ..server.options() }).await;
    let address = format!("etcd://{members}/by-address/one");
    let store = open_store(&address).await.unwrap();
    let revision = store.commit(Transaction::new().put("k", "v")).await.unwrap();
    let entry = whole.get("by-address/one/k").await.unwrap().unwrap();
    assert_eq!((entry.revision, &entry.value[..]), (revision, &b"v"[..]));
    assert_eq!(store.range("", None, 10).await.unwrap().entries[0].key, "k");
}

#[tokio::test]
async fn another_member_is_asked_where_one_fails() {
    let mut members = EtcdServer::start_members::<3>("members");
    let endpoints = members.iter().map(|member| member.endpoint().to_owned()).collect();
    let request_timeout = SHORT * 10;
    let options = EtcdOptions { endpoints, request_timeout, ..members[0].options() };
    let store = members[0].store(&options).await;
    let mut last = put(&store, "n", "0").await;
    let mut watch = store.watch("n", last).await.unwrap();
    let mut expected = Vec::new();
    for (number, member) in members.iter_mut().enumerate() {
        member.kill();
        // Those that are left may have to elect a leader first.
        let revision = loop {
            match store.commit(Transaction::new().put("n", number.to_string())).await {
                Ok(revision) => break revision,
                Err(MetadataError::Unavailable(_) | MetadataError::Unknown(_)) => {}
                Err(error) => panic!("{error}"),
            }
        };
        // With a member down no call fails that another can do.
        for _ in 0..20 {
            assert_eq!(store.get("n").await.unwrap().unwrap().revision, revision);
        }
        assert!(revision > last);
        last = revision;
        expected.push(revision);
        member.resume();
    }
    let mut seen = Vec::new();
    while seen.last() != expected.last() {
        seen.extend(changes_after_outage(&mut *watch).await.iter().map(|change| change.revision));
    }
    assert!(seen.is_sorted(), "{seen:?}");
    assert!(expected.iter().all(|revision| seen.contains(revision)), "{seen:?} of {expected:?}");
}

/// Has etcd ask who somebody is, and lets `name` read and write keys below a prefix alone.
async fn require_users(endpoint: &str, name: &str, prefix: &str) {
    let mut client = etcd_client::Client::connect([endpoint], None).await.unwrap();
    let below = Permission::read_write(prefix).with_prefix();
    client.role_add(name).await.unwrap();
    client.role_grant_permission(name, below).await.unwrap();
    for (user, role) in [("root", "root"), (name, name)] {
        client.user_add(user, "secret", None).await.unwrap();
        client.user_grant_role(user, role).await.unwrap();
    }
    client.auth_enable().await.unwrap();
}

#[tokio::test]
async fn a_user_sees_its_keys_alone_and_outlives_its_token() {
    let mut server = EtcdServer::start("users");
    let options = server.options();
    server.store(&options).await;
    let own = format!("{}cluster/", options.root);
    require_users(server.endpoint(), "cluster", &own).await;
    // As a broker has it: the root is the cell's, the keys below it are the cluster's.
    let user = Some(("cluster".to_owned(), "secret".to_owned()));
    let options = EtcdOptions { user, ..options };
    let store = server.store(&options).await;
    let first = put(&store, "cluster/k", "1").await;
    let mut watch = store.watch("cluster/", first).await.unwrap();
    for (what, denied) in [
        ("get", store.get("other/k").await.err()),
        ("range", store.range("", None, 10).await.err()),
        ("commit", store.commit(Transaction::new().put("other/k", "1")).await.err()),
        ("watch", store.watch("other/", first).await.err()),
    ] {
        let denied = denied.unwrap_or_else(|| panic!("{what} is allowed"));
        assert!(matches!(denied, MetadataError::Unavailable(_)), "{what}: {denied}");
    }
    // Tokens are forgotten with the process.
    server.kill();
    server.resume();
    let other = server.store(&options).await;
    let second = put(&other, "cluster/k", "2").await;
    assert_eq!(changes_after_outage(&mut *watch).await[0].revision, second);
    assert_eq!(put(&store, "cluster/k", "3").await, second + 1);
    let wrong = Some(("cluster".to_owned(), "guessed".to_owned()));
    let refused = EtcdStore::open(EtcdOptions { user: wrong, ..options.clone() }).await.err();
    assert!(matches!(refused, Some(MetadataError::Unavailable(_))), "{refused:?}");
    let refused = EtcdStore::open(EtcdOptions { user: None, ..options }).await.err();
    assert!(matches!(refused, Some(MetadataError::Unavailable(_))), "{refused:?}");
}
