//! What every disk and every object store must do, passed by real folders and by the simulator.
#![allow(clippy::unwrap_used, reason = "a test may fail by a panic")]

use std::sync::Arc;

use freshet_world::env::Disk;
use freshet_world::env::real::FolderDisk;
use tempfile::TempDir;

mod disk;
mod object_store;

/// A folder as the shared file system.
struct Folder {
    disk: Arc<dyn Disk>,
    _root: TempDir,
}

impl Folder {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let disk = Arc::new(FolderDisk::new(root.path()).unwrap());
        Self { disk, _root: root }
    }
}
