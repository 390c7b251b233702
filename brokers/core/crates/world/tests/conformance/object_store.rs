//! The object stores of this crate, by the suite of all.

use std::sync::Arc;

use freshet_world::env::hedge::HedgedStore;
use freshet_world::env::store::FolderStore;
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
