//! Tests over the store in memory.

use futures::FutureExt;
use serde_json::json;

use super::*;
use crate::samples::spec;
use crate::schema::cell::{Phase, SpecState};
use crate::sqlite::{SqliteOptions, SqliteStore};

fn cell() -> (CellMetadata, SqliteStore) {
    let store = SqliteStore::in_memory();
    (CellMetadata::new(Arc::new(store.clone())), store)
}

fn status(generation: u64, phase: Phase) -> ClusterStatus {
    ClusterStatus {
        observed_generation: generation,
        phase,
        since_ms: 10,
        brokers: Vec::new(),
        connections: 0,
        restarts: 0,
        message: String::new(),
        started_for: String::new(),
    }
}

fn note(content: &serde_json::Value) -> CellNote {
    CellNote::new(content.as_object().unwrap().clone())
}

fn wake(at: i64) -> WakeRequest {
    WakeRequest { requested_at_ms: at, by: "gateway".to_owned() }
}

#[tokio::test]
async fn older_generation_never_replaces_a_newer_one() {
    let (cell, _) = cell();
    let first = cell.put_spec(&spec("cl_1", 3)).await.unwrap();
    assert_eq!(cell.put_spec(&spec("cl_1", 3)).await, Ok(first), "the same is no change");
    let older = cell.put_spec(&spec("cl_1", 2)).await.unwrap_err();
    let expected = CellError::OldGeneration { id: "cl_1".to_owned(), stored: 3, given: 2 };
    assert_eq!(older, expected);
    let changed = ClusterSpec { connections_max: 7, ..spec("cl_1", 3) };
    let second = cell.put_spec(&changed).await.unwrap();
    assert!(second > first);
    let newer = ClusterSpec { state: SpecState::Suspended, ..spec("cl_1", 4) };
    let third = cell.put_spec(&newer).await.unwrap();
    let stored = cell.spec("cl_1").await.unwrap();
    assert_eq!(stored, Some(Stored { record: newer, revision: third }));
}

#[tokio::test]
async fn records_lie_in_the_scope_of_the_cell() {
    let (cell, store) = cell();
    cell.put_spec(&spec("cl_1", 1)).await.unwrap();
    cell.put_status("cl_1", &status(1, Phase::Asleep)).await.unwrap();
    cell.request_wake("cl_1", &wake(1)).await.unwrap();
    cell.put_removal("cl_1", &note(&json!({}))).await.unwrap();
    cell.put_health("keeper", &note(&json!({}))).await.unwrap();
    let keys = store.range("", None, usize::MAX).await.unwrap().entries;
    let keys: Vec<_> = keys.into_iter().map(|entry| entry.key).collect();
    let expected = [
        "cell/health/keeper",
        "cell/removal/cl_1",
        "cell/spec/cl_1",
        "cell/status/cl_1",
        "cell/wake/cl_1",
    ];
    assert_eq!(keys, expected);
}

#[tokio::test]
async fn lists_have_every_cluster_and_a_revision_to_watch_from() {
    let (cell, _) = cell();
    for id in ["cl_2", "cl_1"] {
        cell.put_spec(&spec(id, 1)).await.unwrap();
    }
    let listing = cell.specs().await.unwrap();
    assert_eq!(listing.records.keys().collect::<Vec<_>>(), ["cl_1", "cl_2"]);
    let last = cell.put_status("cl_1", &status(1, Phase::Running)).await.unwrap();
    let statuses = cell.statuses().await.unwrap();
    assert_eq!((statuses.records.len(), statuses.revision), (1, last));
    let mut watch = cell.watch(&CellKind::ALL, listing.revision).await.unwrap();
    let change = CellChange {
        cluster: "cl_1".to_owned(),
        revision: last,
        record: CellRecord::Status(Some(status(1, Phase::Running))),
    };
    assert_eq!(watch.next().await, Ok(vec![change]));
}

#[tokio::test]
async fn wake_requests_are_made_once_and_removed_as_seen() {
    let (cell, _) = cell();
    let (first, made) = cell.request_wake("cl_1", &wake(1)).await.unwrap();
    assert!(made);
    assert_eq!(cell.request_wake("cl_1", &wake(2)).await, Ok((first.clone(), false)));
    assert_eq!(cell.wakes().await.unwrap().records.get("cl_1"), Some(&first));
    assert_eq!(cell.remove_wake("cl_1", first.revision).await, Ok(true));
    assert_eq!(cell.remove_wake("cl_1", first.revision).await, Ok(false));
    let (second, _) = cell.request_wake("cl_1", &wake(3)).await.unwrap();
    // Who saw the first one leaves the second alone.
    assert_eq!(cell.remove_wake("cl_1", first.revision).await, Ok(false));
    assert_eq!(cell.wake("cl_1").await, Ok(Some(second)));
}

#[tokio::test]
async fn a_watch_returns_changes_of_the_requested_kinds() {
    let (cell, _) = cell();
    let kinds = [CellKind::Spec, CellKind::Wake];
    let mut watch = cell.watch(&kinds, 0).await.unwrap();
    cell.put_status("cl_1", &status(1, Phase::Starting)).await.unwrap();
    assert_eq!(watch.next().now_or_never(), None);
    cell.put_spec(&spec("cl_1", 1)).await.unwrap();
    cell.remove_spec("cl_1").await.unwrap();
    let changes = watch.next().await.unwrap();
    let records: Vec<_> = changes.into_iter().map(|change| change.record).collect();
    assert_eq!(records, [CellRecord::Spec(Some(spec("cl_1", 1))), CellRecord::Spec(None)]);
}

#[tokio::test]
async fn a_watch_that_fell_behind_gets_an_error() {
    let options = SqliteOptions { history_changes: 2, ..SqliteOptions::default() };
    let cell = CellMetadata::new(Arc::new(SqliteStore::in_memory_with(options)));
    for generation in 1..9 {
        cell.put_spec(&spec("cl_1", generation)).await.unwrap();
    }
    let error = cell.watch(&[CellKind::Spec], 1).await.err();
    assert_eq!(error, Some(CellError::Store(MetadataError::Compacted)));
}

#[tokio::test]
async fn removal_of_a_cluster_leaves_nothing_of_it() {
    let (cell, store) = cell();
    for id in ["cl_1", "cl_2"] {
        cell.put_spec(&spec(id, 1)).await.unwrap();
        cell.put_status(id, &status(1, Phase::Asleep)).await.unwrap();
        cell.request_wake(id, &wake(1)).await.unwrap();
    }
    assert_eq!(cell.remove_spec("cl_1").await, Ok(true));
    assert_eq!(cell.wake("cl_1").await, Ok(None));
    assert!(cell.status("cl_1").await.unwrap().is_some());
    assert_eq!(cell.remove_cluster("cl_1").await, Ok(true));
    assert_eq!(cell.remove_cluster("cl_1").await, Ok(false));
    let left = store.range("", None, usize::MAX).await.unwrap().entries;
    assert!(left.iter().all(|entry| entry.key.ends_with("/cl_2")), "{left:?}");
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused() {
    let (cell, _) = cell();
    let invalid = |error: CellError| matches!(error, CellError::Invalid(_));
    for id in ["", "a/b", "cell"] {
        assert!(invalid(cell.put_spec(&spec(id, 1)).await.unwrap_err()));
        assert!(invalid(cell.put_status(id, &status(1, Phase::Asleep)).await.unwrap_err()));
        assert!(invalid(cell.request_wake(id, &wake(1)).await.unwrap_err()));
        assert!(invalid(cell.status(id).await.unwrap_err()));
    }
    let content = json!({ "groups": ["x".repeat(NOTE_BYTES_MAX)] });
    let error = cell.put_health("keeper", &note(&content)).await.unwrap_err();
    assert!(matches!(error, CellError::TooLarge { max: NOTE_BYTES_MAX, .. }), "{error:?}");
    let name = "x".repeat(RECORD_BYTES_MAX);
    let large = ClusterSpec { name, ..spec("cl_1", 1) };
    assert!(matches!(cell.put_spec(&large).await, Err(CellError::TooLarge { .. })));
    assert_eq!(cell.spec("cl_1").await, Ok(None));
}

#[tokio::test]
async fn record_of_a_newer_release_is_named() {
    let (cell, store) = cell();
    let newer = br#"{"v":2,"requested_at_ms":1,"by":"x"}"#.to_vec();
    store.commit(Transaction::new().put("cell/wake/cl_1", newer)).await.unwrap();
    let error = cell.wakes().await.unwrap_err();
    assert!(matches!(error, CellError::Record(SchemaError::Newer { .. })), "{error:?}");
    let error = cell.request_wake("cl_1", &wake(1)).await.unwrap_err();
    assert!(matches!(error, CellError::Record(SchemaError::Newer { .. })), "{error:?}");
    // A kind that this release does not know does not concern it.
    store.commit(Transaction::new().put("cell/colour/cl_1", "?")).await.unwrap();
    assert_eq!(cell.specs().await.unwrap().records.len(), 0);
}

#[tokio::test]
async fn removal_is_added_only_where_there_is_none() {
    let (cell, _) = cell();
    assert_eq!(cell.removal("cl_1").await, Ok(None));
    let (older, newer) = (note(&json!({ "purged_at_ms": 1 })), note(&json!({ "purged_at_ms": 2 })));
    assert_eq!(cell.add_removal("cl_1", &older).await, Ok(true));
    let revision = cell.put_removal("cl_1", &newer).await.unwrap();
    assert_eq!(cell.add_removal("cl_1", &older).await, Ok(false));
    let stored = Some(Stored { record: newer, revision });
    assert_eq!(cell.removal("cl_1").await, Ok(stored));
    assert_eq!(cell.remove_cluster("cl_1").await, Ok(true));
    assert_eq!(cell.removal("cl_1").await, Ok(None));
}

#[tokio::test]
async fn samples_of_an_earlier_release_are_read_and_removed() {
    let (cell, store) = cell();
    let sample = Sample::new(7, serde_json::Map::new());
    for cluster in ["cl_1", "keeper"] {
        let put = Transaction::new().put(format!("cell/sample/{cluster}"), encode(&sample));
        store.commit(put).await.unwrap();
    }
    let listing = cell.samples().await.unwrap();
    assert_eq!(listing.records.keys().collect::<Vec<_>>(), ["cl_1", "keeper"]);
    assert_eq!(listing.records["cl_1"].record, sample);
    assert_eq!(cell.remove_sample("cl_1").await, Ok(true));
    assert_eq!(cell.remove_sample("cl_1").await, Ok(false));
    assert_eq!(cell.samples().await.unwrap().records.len(), 1);
}
