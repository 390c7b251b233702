//! The object stores of this crate, by the suite of all.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use freshet_world::env::hedge::HedgedStore;
use freshet_world::env::store::{FolderStore, ObjectStore, StoreError};
use freshet_world::sim::conformance::{a_put_has_one_winner, conformance};

use crate::Folder;
use crate::disk::on_simulated_host;

#[tokio::test]
async fn a_folder_conforms() {
    let folder = Folder::new();
    let store = Arc::new(FolderStore::new(folder.disk.clone()));
    conformance(store.as_ref()).await;
    a_put_has_one_winner(store).await;
}

#[tokio::test]
async fn a_store_that_is_asked_twice_conforms() {
    let folder = Folder::new();
    let store = Arc::new(HedgedStore::new(Arc::new(FolderStore::new(folder.disk.clone()))));
    conformance(store.as_ref()).await;
    a_put_has_one_winner(store).await;
}

#[test]
fn a_folder_of_the_simulated_disk_conforms() {
    on_simulated_host(|disk| async move {
        let store = Arc::new(FolderStore::new(disk));
        conformance(store.as_ref()).await;
        a_put_has_one_winner(store).await;
    });
}

#[tokio::test]
async fn an_object_is_kept_open_for_its_next_part_until_it_is_deleted() {
    let folder = Folder::new();
    let store = FolderStore::new(folder.disk.clone());
    store.put_new("a/b", vec![Bytes::from_static(b"abcd")]).await.unwrap();
    assert_eq!(store.get_range("a/b", 0, 2).await.unwrap(), "ab");
    folder.disk.remove(Path::new("a/b")).await.unwrap();
    assert_eq!(store.get_range("a/b", 2, 2).await.unwrap(), "cd", "it is open");
    store.delete("a/b").await.unwrap();
    let gone = store.get_range("a/b", 2, 2).await;
    assert!(matches!(gone, Err(StoreError::NotFound(_))), "{gone:?}");
    for number in 0..40 {
        store.put_new(&format!("a/{number}"), vec![Bytes::from_static(b"x")]).await.unwrap();
        store.get_range(&format!("a/{number}"), 0, 1).await.unwrap();
    }
    folder.disk.remove(Path::new("a/0")).await.unwrap();
    let closed = store.get_range("a/0", 0, 1).await;
    assert!(matches!(closed, Err(StoreError::NotFound(_))), "the oldest is closed: {closed:?}");
}
