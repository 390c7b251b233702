//! A disk that passes calls on to another one, and lets a test observe and refuse them.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use freshet_world::env::{Disk, DiskResult, File, Room};

/// A test's hooks at a disk.
pub trait Watcher: Send + Sync + 'static {
    /// A file is about to be made.
    fn makes_file(&self) -> DiskResult<()> {
        Ok(())
    }

    /// So many bytes were read.
    fn has_read(&self, _bytes: usize) {}
}

/// The disk (see the module).
pub struct Watched<W> {
    disk: Arc<dyn Disk>,
    watcher: Arc<W>,
}

impl<W: Watcher> Watched<W> {
    pub fn new(disk: &Arc<dyn Disk>, watcher: &Arc<W>) -> Self {
        Self { disk: Arc::clone(disk), watcher: Arc::clone(watcher) }
    }

    fn watch(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(WatchedFile { file, watcher: Arc::clone(&self.watcher) })
    }
}

#[async_trait]
impl<W: Watcher> Disk for Watched<W> {
    async fn create_folders(&self, path: &Path) -> DiskResult<()> {
        self.disk.create_folders(path).await
    }

    async fn create_folder_exclusive(&self, path: &Path) -> DiskResult<()> {
        self.disk.create_folder_exclusive(path).await
    }

    async fn create(&self, path: &Path, zeros: u64, room: Room) -> DiskResult<Arc<dyn File>> {
        self.watcher.makes_file()?;
        Ok(self.watch(self.disk.create(path, zeros, room).await?))
    }

    async fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        Ok(self.watch(self.disk.open(path).await?))
    }

    async fn publish(&self, path: &Path, pieces: Vec<Bytes>) -> DiskResult<()> {
        self.watcher.makes_file()?;
        self.disk.publish(path, pieces).await
    }

    async fn make_durable(&self, path: &Path) -> DiskResult<()> {
        self.disk.make_durable(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        self.disk.rename(from, to).await
    }

    async fn remove(&self, path: &Path) -> DiskResult<()> {
        self.disk.remove(path).await
    }

    async fn remove_folder(&self, path: &Path) -> DiskResult<()> {
        self.disk.remove_folder(path).await
    }

    async fn list(&self, path: &Path) -> DiskResult<Vec<String>> {
        self.disk.list(path).await
    }
}

struct WatchedFile<W> {
    file: Arc<dyn File>,
    watcher: Arc<W>,
}

#[async_trait]
impl<W: Watcher> File for WatchedFile<W> {
    async fn write_at(&self, position: u64, pieces: Vec<Bytes>) -> DiskResult<()> {
        self.file.write_at(position, pieces).await
    }

    async fn sync(&self) -> DiskResult<()> {
        self.file.sync().await
    }

    async fn read_at(&self, position: u64, length: usize) -> DiskResult<Bytes> {
        let bytes = self.file.read_at(position, length).await?;
        self.watcher.has_read(bytes.len());
        Ok(bytes)
    }

    async fn read_uncached_at(&self, position: u64, length: usize) -> DiskResult<Bytes> {
        let bytes = self.file.read_uncached_at(position, length).await?;
        self.watcher.has_read(bytes.len());
        Ok(bytes)
    }

    async fn size(&self) -> DiskResult<u64> {
        self.file.size().await
    }
}
