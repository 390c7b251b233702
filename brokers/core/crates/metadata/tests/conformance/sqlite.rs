//! What is true of the SQLite store besides the interface: several processes, crashes, its history.
#![allow(clippy::disallowed_methods, reason = "real files and processes are what is tested")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use freshet_metadata::sqlite::SqliteOptions;
use freshet_metadata::store::{Change, Transaction, Watch};
use freshet_metadata::{MetadataError, MetadataStore, SqliteStore};

/// Tells [`writes_one_after_another`] that it runs as a process of its own, on which file.
const FILE_VARIABLE: &str = "FRESHET_TEST_METADATA_FILE";
const WRITES: u64 = 200;

fn short_history() -> SqliteOptions {
    SqliteOptions { history_changes: 10, ..SqliteOptions::default() }
}

async fn put(store: &SqliteStore, key: &str, value: u64) -> u64 {
    store.commit(Transaction::new().put(key, value.to_string())).await.unwrap()
}

async fn value(store: &SqliteStore, key: &str) -> u64 {
    let entry = store.get(key).await.unwrap().unwrap();
    std::str::from_utf8(&entry.value).unwrap().parse().unwrap()
}

/// Also the other process of the tests below, which name it.
#[tokio::test]
async fn writes_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os(FILE_VARIABLE)
        .map_or_else(|| folder.path().join("metadata.sqlite"), Into::into);
    let store = SqliteStore::open(&path).await.unwrap();
    let mut last = 0;
    for n in 1..=WRITES {
        let revision = put(&store, "n", n).await;
        assert!(revision > last);
        last = revision;
        // Tells the parent what is acknowledged.
        println!("acknowledged {n}");
    }
    assert_eq!(value(&store, "n").await, WRITES);
}

fn writer_process(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::writes_one_after_another", "--nocapture"])
        .env(FILE_VARIABLE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn watch_sees_every_change_of_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    let store = SqliteStore::open(&path).await.unwrap();
    let mut watch = store.watch("n", 0).await.unwrap();
    let mut process = writer_process(&path);
    let mut seen = Vec::new();
    while seen.len() < 200 {
        seen.extend(watch.next().await.unwrap());
    }
    assert!(process.wait().unwrap().success());
    for (n, change) in (1..).zip(&seen) {
        assert_eq!(change.value.as_deref(), Some(n.to_string().as_bytes()));
    }
    assert!(seen.is_sorted_by_key(|change| change.revision));
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    let mut process = writer_process(&path);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let acknowledged = |line: &str| line.split_once("acknowledged ")?.1.parse::<u64>().ok();
    let mut last = 0;
    while last < WRITES / 2 {
        last = acknowledged(&lines.next().unwrap().unwrap()).unwrap_or(last);
    }
    process.kill().unwrap();
    process.wait().unwrap();
    for line in lines {
        last = acknowledged(&line.unwrap_or_default()).unwrap_or(last);
    }
    let store = SqliteStore::open(&path).await.unwrap();
    // One more may have been committed and not yet acknowledged.
    let read = value(&store, "n").await;
    assert!(read == last || read == last + 1, "{last} acknowledged, {read} found");
    assert!(put(&store, "n", 0).await > 0);
}

#[tokio::test]
async fn many_open_the_same_new_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    let tasks: Vec<_> = (0..12)
        .map(|n| {
            let path = path.clone();
            tokio::spawn(async move {
                let store = SqliteStore::open(&path).await.unwrap();
                put(&store, &format!("k{n}"), n).await
            })
        })
        .collect();
    let mut revisions = Vec::new();
    for task in tasks {
        revisions.push(task.await.unwrap());
    }
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=12).collect::<Vec<_>>());
}

#[tokio::test]
async fn everything_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    let store = SqliteStore::open(&path).await.unwrap();
    let first = put(&store, "a", 1).await;
    let second = put(&store, "b", 2).await;
    drop(store);
    let store = SqliteStore::open(&path).await.unwrap();
    assert_eq!(store.get("a").await.unwrap().unwrap().revision, first);
    let mut watch = store.watch("", first).await.unwrap();
    let change = Change { key: "b".to_owned(), value: Some("2".into()), revision: second };
    assert_eq!(watch.next().await.unwrap(), [change]);
    assert_eq!(put(&store, "c", 3).await, second + 1);
}

#[tokio::test]
async fn a_watch_behind_the_history_gets_an_error() {
    let store = SqliteStore::in_memory_with(short_history());
    let mut behind = store.watch("", 0).await.unwrap();
    let mut last = 0;
    for n in 0..100 {
        last = put(&store, "n", n).await;
    }
    assert_eq!(behind.next().await, Err(MetadataError::Compacted));
    assert!(matches!(store.watch("", 0).await, Err(MetadataError::Compacted)));
    // The newest changes are still there, as many as were promised.
    let mut watch = store.watch("", last - 10).await.unwrap();
    let seen: Vec<u64> = revisions_of(&mut *watch, 10).await;
    assert_eq!(seen, (last - 9..=last).collect::<Vec<_>>());
}

#[tokio::test]
async fn large_values_shorten_the_history() {
    let store = SqliteStore::in_memory_with(short_history());
    let mut last = 0;
    for _ in 0..20 {
        // Of a weight of 4: two of them fit, and a third is not yet too much by itself.
        let large = Transaction::new().put("large", vec![b'x'; 3 * 1024]);
        last = store.commit(large).await.unwrap();
    }
    assert!(matches!(store.watch("", last - 4).await, Err(MetadataError::Compacted)));
    let mut watch = store.watch("", last - 2).await.unwrap();
    assert_eq!(revisions_of(&mut *watch, 2).await, [last - 1, last]);
    // Removed values weigh nothing any more: small ones are kept as many as ever.
    for n in 0..30 {
        last = put(&store, "n", n).await;
    }
    let mut watch = store.watch("", last - 10).await.unwrap();
    assert_eq!(revisions_of(&mut *watch, 10).await.len(), 10);
}

#[tokio::test]
async fn watch_of_a_quiet_prefix_does_not_fall_behind() {
    let store = SqliteStore::in_memory_with(short_history());
    let mut quiet = store.watch("quiet", 0).await.unwrap();
    for n in 0..100 {
        put(&store, "noise", n).await;
        let wait = tokio::time::timeout(std::time::Duration::ZERO, quiet.next()).await;
        assert!(wait.is_err(), "{wait:?}");
    }
    let revision = put(&store, "quiet", 1).await;
    assert_eq!(revisions_of(&mut *quiet, 1).await, [revision]);
}

async fn revisions_of(watch: &mut dyn Watch, count: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.extend(watch.next().await.unwrap().iter().map(|change| change.revision));
    }
    seen
}

#[tokio::test]
async fn one_large_transaction_outlives_a_short_history() {
    let store = SqliteStore::in_memory_with(short_history());
    let start = put(&store, "x", 0).await;
    let mut watch = store.watch("k", start).await.unwrap();
    let transaction = (0..100).fold(Transaction::new(), |t, n| t.put(format!("k{n}"), "x"));
    let revision = store.commit(transaction).await.unwrap();
    assert_eq!(watch.next().await.unwrap().len(), 100);
    assert!(store.watch("", revision - 1).await.is_ok());
}

#[tokio::test]
async fn file_that_went_back_in_time_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("old.sqlite")).await.unwrap();
    let revision = put(&store, "a", 1).await;
    // A watcher comes with a revision that a newer copy of the file had.
    assert!(matches!(store.watch("", revision + 5).await, Err(MetadataError::Compacted)));
}

#[tokio::test]
async fn file_of_something_else_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "not a database, but longer than the header of one. ".repeat(10))
        .unwrap();
    let error = SqliteStore::open(&path).await.err().unwrap();
    assert!(matches!(error, MetadataError::Corrupt(_)), "{error:?}");
    assert!(error.to_string().contains("notes.txt"), "{error}");
    let error = SqliteStore::open(&folder.path().join("none/x")).await.err().unwrap();
    assert!(matches!(error, MetadataError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn lock_of_another_process_makes_a_call_unavailable_and_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    let busy_timeout = std::time::Duration::from_millis(20);
    let options = SqliteOptions { busy_timeout, ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&path, options).await.unwrap();
    put(&store, "a", 1).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let result = store.commit(Transaction::new().put("a", "2")).await;
    assert!(matches!(result, Err(MetadataError::Unavailable(_))), "{result:?}");
    assert_eq!(value(&store, "a").await, 1);
    other.execute_batch("ROLLBACK").unwrap();
    put(&store, "a", 3).await;
    assert_eq!(value(&store, "a").await, 3);
}

#[tokio::test(start_paused = true)]
async fn store_in_memory_uses_no_timer() {
    let store = Arc::new(SqliteStore::in_memory());
    let start = tokio::time::Instant::now();
    let mut watch = store.watch("", 0).await.unwrap();
    let writer = store.clone();
    let written = tokio::spawn(async move { put(&writer, "a", 1).await });
    assert_eq!(revisions_of(&mut *watch, 1).await, [1]);
    assert_eq!(written.await.unwrap(), 1);
    // The paused clock jumps to the next timer whenever all tasks wait.
    assert_eq!(tokio::time::Instant::now(), start);
}
