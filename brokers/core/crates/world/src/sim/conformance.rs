//! What every object store must do, a folder as well as S3. Each one's tests run it.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test fails by a panic")]

use std::sync::Arc;

use crate::env::store::{ObjectStore, StoreError};
use bytes::Bytes;

/// The suite. The store must be empty.
pub async fn conformance(store: &dyn ObjectStore) {
    put_and_get(store).await;
    ranges(store).await;
    names(store).await;
    deletion(store).await;
}

async fn put_and_get(store: &dyn ObjectStore) {
    let key = "c/objects/1/000";
    assert!(matches!(store.get(key).await, Err(StoreError::NotFound(_))));
    let pieces = vec![Bytes::from_static(b"hello "), Bytes::new(), Bytes::from_static(b"world")];
    store.put_new(key, pieces).await.unwrap();
    assert_eq!(store.get(key).await.unwrap(), "hello world");
    let again = store.put_new(key, vec![Bytes::from_static(b"other")]).await;
    assert!(matches!(again, Err(StoreError::Exists(_))), "{again:?}");
    assert_eq!(store.get(key).await.unwrap(), "hello world", "the first one stands");
    store.put_new("c/empty", Vec::new()).await.unwrap();
    assert!(store.get("c/empty").await.unwrap().is_empty());
    let large = Bytes::from(vec![9; 3 << 20]);
    store.put_new("c/large", vec![large.clone(); 2]).await.unwrap();
    assert_eq!(store.get("c/large").await.unwrap().len(), 6 << 20);
}

/// Of two puts of the same key at the same time one succeeds, and its object is the one that stays.
pub async fn a_put_has_one_winner(store: Arc<dyn ObjectStore>) {
    for round in 0..20 {
        let key = format!("c/race/{round}");
        let put = |content: &'static [u8]| {
            let (store, key) = (Arc::clone(&store), key.clone());
            async move { store.put_new(&key, vec![Bytes::from_static(content)]).await }
        };
        let (one, two) = tokio::join!(put(b"one"), put(b"two"));
        let winner = match (&one, &two) {
            (Ok(()), Err(StoreError::Exists(_))) => "one",
            (Err(StoreError::Exists(_)), Ok(())) => "two",
            both => panic!("{both:?}"),
        };
        assert_eq!(store.get(&key).await.unwrap(), winner);
    }
}

async fn ranges(store: &dyn ObjectStore) {
    let key = "c/objects/1/000";
    assert_eq!(store.get_range(key, 0, 5).await.unwrap(), "hello");
    assert_eq!(store.get_range(key, 6, 5).await.unwrap(), "world");
    let absent = store.get_range("c/none", 0, 1).await;
    assert!(matches!(absent, Err(StoreError::NotFound(_))), "{absent:?}");
    for (position, length) in [(6, 6), (11, 1), (u64::MAX >> 1, 1)] {
        let short = store.get_range(key, position, length).await;
        assert!(matches!(short, Err(StoreError::Unavailable(_))), "{short:?}");
    }
}

async fn names(store: &dyn ObjectStore) {
    for key in ["c/objects/1/010", "c/objects/1/002", "c/objects/20/000", "d/objects/9/000"] {
        store.put_new(key, vec![Bytes::from_static(b"x")]).await.unwrap();
    }
    assert_eq!(store.list("c/objects").await.unwrap(), ["1", "20"]);
    assert_eq!(store.list("c/objects/1").await.unwrap(), ["000", "002", "010"]);
    assert_eq!(store.list("c/none").await.unwrap(), Vec::<String>::new());
}

async fn deletion(store: &dyn ObjectStore) {
    let key = "c/objects/1/002";
    for _ in 0..2 {
        store.delete(key).await.unwrap();
    }
    assert!(matches!(store.get(key).await, Err(StoreError::NotFound(_))));
    assert_eq!(store.list("c/objects/1").await.unwrap(), ["000", "010"]);
    store.put_new(key, vec![Bytes::from_static(b"new")]).await.unwrap();
    assert_eq!(store.get(key).await.unwrap(), "new");
}
