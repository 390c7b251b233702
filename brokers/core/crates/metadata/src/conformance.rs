//! The test cases that every metadata store passes, by name, and those of the limits of a cluster,
//! which rest on what a store promises (`limits`). Each store's tests run them.

#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a case has a name that says all, and fails by a panic"
)]

pub mod limits;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::store::{
    Change, Entry, Expected, MetadataError, MetadataStore, ScopedStore, TRANSACTION_BYTES_MAX,
    TRANSACTION_OPERATIONS_MAX, Transaction,
};

/// Two handles of the same store, as two processes would have them.
pub struct Handles {
    /// One handle.
    pub first: Arc<dyn MetadataStore>,
    /// The other handle.
    pub second: Arc<dyn MetadataStore>,
    /// Kept alive as long as they are: the folder of the store's file, where there is one.
    pub kept: Option<Box<dyn Any + Send>>,
}

/// Defines a module of tests for each of these functions, which return [`Handles`] of an empty
/// store.
#[macro_export]
macro_rules! metadata_conformance {
    ($($store:ident),* $(,)?) => {
        $($crate::metadata_conformance!(@on $store:
            value_is_read_back_by_every_handle,
            values_may_be_any_bytes,
            compares_hold_or_not,
            failed_compare_changes_nothing_and_is_named,
            transaction_has_one_revision_for_all_its_keys,
            transactions_are_seen_whole,
            revisions_grow_over_all_keys,
            delete_of_an_absent_key_is_no_change,
            range_is_sorted_by_bytes,
            range_comes_in_pages,
            range_keeps_to_its_prefix,
            watch_sees_each_change_of_each_handle_in_order,
            watch_starts_behind_a_revision,
            watch_keeps_to_its_prefix,
            watch_never_splits_a_revision,
            watch_of_the_future_wakes_up,
            dropped_wait_loses_no_change,
            concurrent_increments_lose_none,
            calls_against_the_contract_are_refused,
            scopes_are_separate
        );)*
    };
    (@on $store:ident: $($case:ident),*) => {
        mod $store {
            $(
                #[tokio::test]
                async fn $case() {
                    $crate::conformance::$case(super::$store().await).await;
                }
            )*
        }
    };
}

async fn put(store: &dyn MetadataStore, key: &str, value: &str) -> u64 {
    store.commit(Transaction::new().put(key, value.to_owned())).await.unwrap()
}

async fn keys(store: &dyn MetadataStore, prefix: &str) -> Vec<String> {
    let page = store.range(prefix, None, usize::MAX).await.unwrap();
    assert!(!page.more);
    page.entries.into_iter().map(|entry| entry.key).collect()
}

fn conflict(key: &str) -> Result<u64, MetadataError> {
    Err(MetadataError::Conflict { key: key.to_owned() })
}

pub async fn value_is_read_back_by_every_handle(handles: Handles) {
    let Handles { first, second, .. } = &handles;
    assert_eq!(first.get("a").await.unwrap(), None);
    for (writer, reader) in [(first, second), (second, first)] {
        let revision = put(&**writer, "a", "value").await;
        let entry = Entry { key: "a".to_owned(), value: "value".into(), revision };
        assert_eq!(reader.get("a").await.unwrap(), Some(entry.clone()));
        assert_eq!(writer.get("a").await.unwrap(), Some(entry));
    }
}

pub async fn values_may_be_any_bytes(handles: Handles) {
    let all: Vec<u8> = (0..=255).collect();
    for value in [vec![], vec![0], all, vec![b'x'; 300_000]] {
        handles.first.commit(Transaction::new().put("a", value.clone())).await.unwrap();
        assert_eq!(handles.second.get("a").await.unwrap().unwrap().value, value);
    }
    let mut watch = handles.second.watch("", 0).await.unwrap();
    let mut sizes = Vec::new();
    while sizes.len() < 4 {
        let changes = watch.next().await.unwrap();
        sizes.extend(changes.into_iter().map(|change| change.value.unwrap().len()));
    }
    assert_eq!(sizes, [0, 1, 256, 300_000]);
}

pub async fn compares_hold_or_not(handles: Handles) {
    let store = &*handles.first;
    let with = |expected| Transaction::new().compare("a", expected).put("a", "new");
    assert_eq!(store.commit(with(Expected::Present)).await, conflict("a"));
    assert_eq!(store.commit(with(Expected::Revision(0))).await, conflict("a"));
    let first = store.commit(with(Expected::Absent)).await.unwrap();
    assert_eq!(store.commit(with(Expected::Absent)).await, conflict("a"));
    assert_eq!(store.commit(with(Expected::Revision(first + 1))).await, conflict("a"));
    let second = store.commit(with(Expected::Revision(first))).await.unwrap();
    assert_eq!(store.commit(with(Expected::Revision(first))).await, conflict("a"));
    assert!(store.commit(with(Expected::Present)).await.unwrap() > second);
    // A key that was removed and made again is another one.
    let before = store.get("a").await.unwrap().unwrap().revision;
    store.commit(Transaction::new().delete("a")).await.unwrap();
    put(store, "a", "again").await;
    assert_eq!(store.commit(with(Expected::Revision(before))).await, conflict("a"));
}

pub async fn failed_compare_changes_nothing_and_is_named(handles: Handles) {
    let store = &*handles.first;
    let revision = put(store, "there", "old").await;
    let transaction = Transaction::new()
        .compare("there", Expected::Present)
        .compare("missing", Expected::Present)
        .compare("missing too", Expected::Present)
        .put("there", "new")
        .put("other", "new")
        .delete("there too");
    assert_eq!(store.commit(transaction).await, conflict("missing"));
    let page = store.range("", None, 10).await.unwrap();
    let entry = Entry { key: "there".to_owned(), value: "old".into(), revision };
    assert_eq!(page.entries, [entry]);
    let compares_only = Transaction::new().compare("there", Expected::Revision(revision));
    assert_eq!(store.commit(compares_only).await.unwrap(), 0);
}

pub async fn transaction_has_one_revision_for_all_its_keys(handles: Handles) {
    let store = &*handles.first;
    put(store, "b", "old").await;
    let transaction = Transaction::new().put("a", "1").delete("b").put("c", "3");
    let revision = store.commit(transaction).await.unwrap();
    let page = handles.second.range("", None, 10).await.unwrap();
    let entries: Vec<_> =
        page.entries.iter().map(|entry| (entry.key.as_str(), entry.revision)).collect();
    assert_eq!(entries, [("a", revision), ("c", revision)]);
    assert!(page.revision >= revision);
}

pub async fn transactions_are_seen_whole(handles: Handles) {
    let Handles { first, second, .. } = handles;
    first.commit(Transaction::new().put("a", "0").put("b", "0")).await.unwrap();
    let writer = tokio::spawn(async move {
        for n in 1..100 {
            let n = n.to_string();
            first.commit(Transaction::new().put("a", n.clone()).put("b", n)).await.unwrap();
        }
    });
    loop {
        let page = second.range("", None, 10).await.unwrap();
        assert_eq!(page.entries[0].value, page.entries[1].value);
        assert!(page.entries[0].revision <= page.revision);
        if page.entries[0].value == "99" {
            break;
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

pub async fn revisions_grow_over_all_keys(handles: Handles) {
    let mut last = 0;
    for n in 0..20 {
        let store = if n % 2 == 0 { &handles.first } else { &handles.second };
        let revision = put(&**store, &format!("key {}", n % 3), "value").await;
        assert!(revision > last);
        last = revision;
    }
    assert!(handles.first.range("", None, 1).await.unwrap().revision >= last);
}

pub async fn delete_of_an_absent_key_is_no_change(handles: Handles) {
    let store = &*handles.first;
    let start = put(store, "a", "1").await;
    let mut watch = store.watch("", start).await.unwrap();
    assert_eq!(store.commit(Transaction::new().delete("b")).await.unwrap(), 0);
    let removed = store.commit(Transaction::new().delete("a").delete("b")).await.unwrap();
    assert!(removed > start);
    let change = Change { key: "a".to_owned(), value: None, revision: removed };
    assert_eq!(watch.next().await.unwrap(), [change]);
    assert_eq!(store.get("a").await.unwrap(), None);
}

pub async fn range_is_sorted_by_bytes(handles: Handles) {
    let names = ["b", "a/2", "a/10", "a.1", "a", "ä", "A", "a/\u{1F30A}", "~", "a/\u{FFFD}"];
    for name in names {
        put(&*handles.first, name, "x").await;
    }
    let mut sorted = names.map(str::to_owned);
    sorted.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    assert_eq!(keys(&*handles.second, "").await, sorted);
}

pub async fn range_comes_in_pages(handles: Handles) {
    let store = &*handles.first;
    for n in 0..10 {
        put(store, &format!("k/{n}"), "x").await;
    }
    put(store, "l", "x").await;
    let mut after = None;
    let mut pages = Vec::new();
    loop {
        let page = store.range("k/", after.as_deref(), 4).await.unwrap();
        pages.push(page.entries.iter().map(|entry| entry.key.clone()).collect::<Vec<_>>());
        after = page.entries.last().map(|entry| entry.key.clone());
        if !page.more {
            break;
        }
    }
    let expected =
        [&["k/0", "k/1", "k/2", "k/3"][..], &["k/4", "k/5", "k/6", "k/7"], &["k/8", "k/9"]];
    assert_eq!(pages, expected);
    // A page that ends with the range has nothing behind it.
    assert!(!store.range("k/", Some("k/7"), 2).await.unwrap().more);
    assert!(store.range("k/", None, 0).await.unwrap().more);
    assert!(store.range("k/", Some("k/9"), 4).await.unwrap().entries.is_empty());
    // The key to go on behind need not exist, nor lie in the range.
    assert_eq!(store.range("k/", Some("k/55"), 1).await.unwrap().entries[0].key, "k/6");
    assert_eq!(store.range("k/", Some("a"), 1).await.unwrap().entries[0].key, "k/0");
    assert!(store.range("k/", Some("z"), 1).await.unwrap().entries.is_empty());
}

pub async fn range_keeps_to_its_prefix(handles: Handles) {
    for key in ["a", "a/", "a/1", "a0", "a/\u{10FFFF}", "A/1", "b/1", "a%1", "a_1"] {
        put(&*handles.first, key, "x").await;
    }
    assert_eq!(keys(&*handles.second, "a/").await, ["a/", "a/1", "a/\u{10FFFF}"]);
    assert_eq!(keys(&*handles.second, "a/\u{10FFFF}").await, ["a/\u{10FFFF}"]);
    // The percent sign is a character of the key here, not a pattern of SQL.
    assert_eq!(keys(&*handles.second, "a%").await, ["a%1"]);
    assert_eq!(keys(&*handles.second, "a_").await, ["a_1"]);
    assert_eq!(keys(&*handles.second, "x").await, Vec::<String>::new());
}

pub async fn watch_sees_each_change_of_each_handle_in_order(handles: Handles) {
    let Handles { first, second, .. } = handles;
    let start = put(&*first, "n", "start").await;
    let mut watches =
        [first.watch("n", start).await.unwrap(), second.watch("n", start).await.unwrap()];
    let writers = [first, second].map(|store| {
        tokio::spawn(async move {
            let mut written = Vec::new();
            for n in 0..100 {
                written.push((put(&*store, "n", &n.to_string()).await, n.to_string()));
            }
            written
        })
    });
    let mut seen = [Vec::new(), Vec::new()];
    for (watch, seen) in watches.iter_mut().zip(&mut seen) {
        while seen.len() < 200 {
            for Change { value, revision, .. } in watch.next().await.unwrap() {
                let value = value.unwrap();
                seen.push((revision, String::from_utf8(value.to_vec()).unwrap()));
            }
        }
    }
    let mut written = Vec::new();
    for writer in writers {
        written.extend(writer.await.unwrap());
    }
    written.sort_unstable();
    assert_eq!(seen[0], written);
    assert_eq!(seen[1], written);
}

pub async fn watch_starts_behind_a_revision(handles: Handles) {
    let mut revisions = Vec::new();
    for n in 0..5 {
        revisions.push(put(&*handles.first, "n", &n.to_string()).await);
    }
    for position in 0..5 {
        let mut watch = handles.second.watch("n", revisions[position]).await.unwrap();
        let coming = put(&*handles.first, "n", "coming").await;
        revisions.push(coming);
        let mut seen: Vec<u64> = Vec::new();
        while seen.last() != Some(&coming) {
            seen.extend(watch.next().await.unwrap().iter().map(|change| change.revision));
        }
        assert_eq!(seen, revisions[position + 1..]);
    }
}

pub async fn watch_keeps_to_its_prefix(handles: Handles) {
    let start = put(&*handles.first, "x", "x").await;
    let mut watch = handles.second.watch("a/", start).await.unwrap();
    for key in ["a", "a0", "b", "a/1", "A/1"] {
        put(&*handles.first, key, "x").await;
    }
    let transaction = Transaction::new().put("a/2", "x").put("c", "x").delete("a/1");
    handles.first.commit(transaction).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.extend(watch.next().await.unwrap());
    }
    let last = seen[1..].iter().map(|change| (change.key.as_str(), change.value.is_some()));
    assert_eq!((seen[0].key.as_str(), seen[0].value.is_some()), ("a/1", true));
    assert_eq!(last.collect::<BTreeMap<_, _>>(), BTreeMap::from([("a/1", false), ("a/2", true)]));
}

pub async fn watch_never_splits_a_revision(handles: Handles) {
    let start = put(&*handles.first, "x", "x").await;
    let mut early = handles.second.watch("k", start).await.unwrap();
    let mut revisions = Vec::new();
    for _ in 0..20 {
        let keys = 0..TRANSACTION_OPERATIONS_MAX;
        let transaction =
            keys.fold(Transaction::new(), |transaction, n| transaction.put(format!("k{n}"), "x"));
        revisions.push(handles.first.commit(transaction).await.unwrap());
    }
    let mut late = handles.second.watch("k", start).await.unwrap();
    for watch in [&mut early, &mut late] {
        let mut seen = Vec::new();
        while seen.last() != revisions.last() {
            let mut changes: BTreeMap<u64, usize> = BTreeMap::new();
            for change in watch.next().await.unwrap() {
                *changes.entry(change.revision).or_default() += 1;
            }
            assert!(changes.values().all(|count| *count == TRANSACTION_OPERATIONS_MAX));
            seen.extend(changes.into_keys());
        }
        assert_eq!(seen, revisions);
    }
}

pub async fn watch_of_the_future_wakes_up(handles: Handles) {
    let start = put(&*handles.first, "a", "0").await;
    let mut watch = handles.second.watch("a", start).await.unwrap();
    let waiting = tokio::spawn(async move { watch.next().await });
    tokio::task::yield_now().await;
    let revision = put(&*handles.first, "a", "1").await;
    let change = Change { key: "a".to_owned(), value: Some("1".into()), revision };
    assert_eq!(waiting.await.unwrap().unwrap(), [change]);
}

pub async fn dropped_wait_loses_no_change(handles: Handles) {
    let Handles { first, second, .. } = handles;
    let start = put(&*first, "n", "start").await;
    let mut watch = second.watch("n", start).await.unwrap();
    let writer = tokio::spawn(async move {
        let mut revisions = Vec::new();
        for n in 0..50 {
            revisions.push(put(&*first, "n", &n.to_string()).await);
        }
        revisions
    });
    let mut seen = Vec::new();
    let mut dropped = 0;
    // Each second wait is given up as soon as it has to wait for anything.
    while seen.len() < 50 {
        let changes = if dropped % 2 == 0 {
            tokio::time::timeout(Duration::ZERO, watch.next()).await
        } else {
            Ok(watch.next().await)
        };
        dropped += 1;
        let changes = changes.map(Result::unwrap).unwrap_or_default();
        seen.extend(changes.iter().map(|change| change.revision));
    }
    assert_eq!(seen, writer.await.unwrap());
}

pub async fn concurrent_increments_lose_none(handles: Handles) {
    const TASKS: u64 = 8;
    const EACH: u64 = 20;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let handle = if task % 2 == 0 { &handles.first } else { &handles.second };
            tokio::spawn(increment(handle.clone(), EACH))
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let value = handles.first.get("n").await.unwrap().unwrap().value;
    assert_eq!(value, (TASKS * EACH).to_string());
}

async fn increment(store: Arc<dyn MetadataStore>, times: u64) {
    let mut done = 0;
    while done < times {
        let entry = store.get("n").await.unwrap();
        let (value, expected) = match entry {
            None => (0, Expected::Absent),
            Some(entry) => {
                let value = std::str::from_utf8(&entry.value).unwrap().parse::<u64>().unwrap();
                (value, Expected::Revision(entry.revision))
            }
        };
        let next = (value + 1).to_string();
        match store.commit(Transaction::new().compare("n", expected).put("n", next)).await {
            Ok(_) => done += 1,
            Err(MetadataError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub async fn calls_against_the_contract_are_refused(handles: Handles) {
    let store = &*handles.first;
    let too_many = 0..=TRANSACTION_OPERATIONS_MAX;
    let refused = [
        too_many.clone().fold(Transaction::new(), |t, n| t.put(n.to_string(), "x")),
        too_many.fold(Transaction::new(), |t, n| t.compare(n.to_string(), Expected::Absent)),
        Transaction::new().put("a", "1").put("a", "2"),
        Transaction::new().put("a", "1").delete("a"),
        Transaction::new().put("", "x"),
        Transaction::new().delete("k".repeat(2000)),
        Transaction::new().compare("", Expected::Absent),
        Transaction::new().put("a", vec![0; TRANSACTION_BYTES_MAX]),
    ];
    for transaction in refused {
        let result = store.commit(transaction).await;
        assert!(matches!(result, Err(MetadataError::Invalid(_))), "{result:?}");
    }
    assert!(matches!(store.get("").await, Err(MetadataError::Invalid(_))));
    assert_eq!(keys(store, "").await, Vec::<String>::new());
}

pub async fn scopes_are_separate(handles: Handles) {
    let scope = |name| ScopedStore::new(handles.first.clone(), name).unwrap();
    let (one, two) = (scope("c1"), scope("c10"));
    let mut watch = one.watch("", 0).await.unwrap();
    for key in ["k", "../c1/k", "/", "c1/k"] {
        put(&two, key, "two").await;
    }
    assert_eq!(keys(&one, "").await, Vec::<String>::new());
    let absent = Transaction::new().compare("k", Expected::Absent);
    let revision = one.commit(absent.clone().put("k", "one")).await.unwrap();
    assert_eq!(one.commit(absent.delete("k")).await, conflict("k"));
    assert_eq!(one.get("k").await.unwrap().unwrap().value, "one");
    assert_eq!(two.get("k").await.unwrap().unwrap().value, "two");
    assert_eq!(keys(&two, "").await, ["../c1/k", "/", "c1/k", "k"]);
    assert_eq!(two.range("", Some("/"), 1).await.unwrap().entries[0].key, "c1/k");
    let change = Change { key: "k".to_owned(), value: Some("one".into()), revision };
    assert_eq!(watch.next().await.unwrap(), [change]);
    for name in ["", "a/b", "ä", "a b"] {
        let scoped = ScopedStore::new(handles.first.clone(), name);
        assert!(matches!(scoped, Err(MetadataError::Invalid(_))), "{name}");
    }
}
