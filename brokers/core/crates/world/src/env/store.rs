//! The object store: whole objects under keys, written once, read in ranges.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use super::{Disk, DiskError, File, is_draft};

/// Errors of the object store, by what the caller can do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// No such object. Of a segment it means: the manifest is out of date, read it again.
    #[error("object {0} does not exist")]
    NotFound(String),
    /// A put-if-absent found the key taken.
    #[error("object {0} exists")]
    Exists(String),
    /// The store did not answer, or not properly; trying again later may help.
    #[error("object store: {0}")]
    Unavailable(String),
}

/// Result of an operation on the object store.
pub type StoreResult<T> = Result<T, StoreError>;

/// Metrics of an object store. Clones count into the same figures.
#[derive(Debug, Clone, Default)]
pub struct StoreMetrics {
    /// Reads that were repeated because the first request was slow.
    pub hedges: Counter,
    /// Those of them whose second answer came first.
    pub hedges_won: Counter,
    /// Answers that asked for fewer requests.
    pub throttled: Counter,
}

/// An object store. Every implementation passes the suite in [`crate::sim::conformance`].
#[async_trait]
pub trait ObjectStore: Send + Sync {
    /// Writes an object under a key that must be new; durable when this returns.
    async fn put_new(&self, key: &str, pieces: Vec<Bytes>) -> StoreResult<()>;

    /// Reads a whole object.
    async fn get(&self, key: &str) -> StoreResult<Bytes>;

    /// Reads `length` bytes from `position` on; all of them, or an error.
    async fn get_range(&self, key: &str, position: u64, length: u64) -> StoreResult<Bytes>;

    /// The names directly under a folder of keys, sorted.
    async fn list(&self, folder: &str) -> StoreResult<Vec<String>>;

    /// Removes an object. Absent is not an error.
    async fn delete(&self, key: &str) -> StoreResult<()>;

    /// The names, directly under a folder of keys, of drafts: what puts left half made when their
    /// process died, or are writing now. No object has such a name, and [`ObjectStore::delete`]
    /// removes it. Empty where the store removes drafts itself.
    async fn list_half_made(&self, folder: &str) -> StoreResult<Vec<String>>;

    /// How many small objects are best put at the same time: many, where each takes tens of
    /// milliseconds.
    fn puts_at_once(&self) -> usize {
        64
    }

    /// Its metrics, if it has any.
    fn metrics(&self) -> Option<&StoreMetrics> {
        None
    }
}

/// Puts that wait for the journal of a file system become durable by one commit of it. The number
/// is small enough to leave threads to reads of clients.
const FOLDER_PUTS_AT_ONCE: usize = 24;
/// How often a folder is made for an object.
const PUBLISH_TRIES_MAX: usize = 3;
/// Folders above an object that are removed with the last object in them: as many as one partition
/// has.
const FOLDERS_OF_A_KEY: usize = 2;

/// Objects that are kept open: to open one takes as long as to read a part of it, and on a file
/// server a request of its own.
const OPEN_MAX: usize = 32;

/// An object store in a directory.
pub struct FolderStore {
    disk: Arc<dyn Disk>,
    /// Objects of which parts were read, the last one first.
    open: Mutex<VecDeque<(String, Arc<dyn File>)>>,
    /// Folders that are known to be durable. To sync one again costs a flush of the device, and
    /// thousands of partitions share the same ones.
    durable: Mutex<BTreeSet<PathBuf>>,
}

impl FolderStore {
    /// Objects are files of `disk`, their keys its paths.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        let durable = Mutex::new(BTreeSet::from([PathBuf::new()]));
        Self { disk, open: Mutex::default(), durable }
    }

    /// Publishes a file, and makes its folder where there is none; again where the folder was
    /// emptied and removed at that moment.
    async fn publish(&self, path: &Path, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        let mut tries = 0;
        loop {
            match self.disk.publish(path, pieces.clone()).await {
                Err(DiskError::NotFound(_)) if tries < PUBLISH_TRIES_MAX => tries += 1,
                published => return published,
            }
            if let Some(folder) = path.parent() {
                self.make_folder(folder).await?;
            }
        }
    }

    /// Makes a folder, and makes it durable with all folders above it.
    async fn make_folder(&self, folder: &Path) -> Result<(), DiskError> {
        let unsure = folder.ancestors().take_while(|folder| !self.is_durable(folder));
        let unsure: Vec<&Path> = unsure.collect();
        // A folder that is known to be durable and is missing was removed by another process.
        let mut made = !unsure.is_empty();
        for folder in unsure.iter().rev() {
            made = match self.disk.create_folder_exclusive(folder).await {
                Ok(()) => true,
                // Another process that made it may not have synced it, nor the folder above it.
                Err(DiskError::Exists(_) | DiskError::NotFound(_)) => false,
                Err(error) => return Err(error),
            };
            if !made {
                break;
            }
        }
        // A folder that was known to be durable may have been removed and made again meanwhile.
        let known = unsure.last().and_then(|highest| highest.parent());
        if !made || known.is_some_and(|known| !self.is_durable(known)) {
            self.disk.create_folders(folder).await?;
        }
        self.durable.lock().extend(unsure.into_iter().skip(1).map(Path::to_owned));
        Ok(())
    }

    fn is_durable(&self, folder: &Path) -> bool {
        self.durable.lock().contains(folder)
    }

    async fn names(&self, folder: &str) -> StoreResult<Vec<String>> {
        let names = self.disk.list(Path::new(folder)).await;
        names.map_err(|error| store_error(folder, &error))
    }

    /// Reads a part of an object, which is kept open for the next part. Objects never change, so a
    /// part that is there is right; a file that another broker removed may have to be looked for
    /// anew.
    async fn read_part(&self, key: &str, position: u64, length: usize) -> Result<Bytes, DiskError> {
        if let Some(file) = self.find_open(key)
            && let Ok(bytes) = file.read_at(position, length).await
        {
            return Ok(bytes);
        }
        let file = self.disk.open(Path::new(key)).await?;
        self.keep_open(key, Some(Arc::clone(&file)));
        file.read_at(position, length).await
    }

    fn find_open(&self, key: &str) -> Option<Arc<dyn File>> {
        let mut open = self.open.lock();
        let place = open.iter().position(|(name, _)| name == key)?;
        let newest = open.remove(place)?;
        let file = Arc::clone(&newest.1);
        open.push_front(newest);
        Some(file)
    }

    /// Keeps an object open in place of what was kept under its key; `None` keeps nothing.
    fn keep_open(&self, key: &str, file: Option<Arc<dyn File>>) {
        let mut open = self.open.lock();
        open.retain(|(name, _)| name != key);
        if let Some(file) = file {
            open.push_front((key.to_owned(), file));
            open.truncate(OPEN_MAX);
        }
    }
}

fn store_error(key: &str, error: &DiskError) -> StoreError {
    match error {
        DiskError::NotFound(_) => StoreError::NotFound(key.to_owned()),
        DiskError::Exists(_) => StoreError::Exists(key.to_owned()),
        DiskError::NoSpace(_) | DiskError::Failed(..) => StoreError::Unavailable(error.to_string()),
    }
}

#[async_trait]
impl ObjectStore for FolderStore {
    async fn put_new(&self, key: &str, pieces: Vec<Bytes>) -> StoreResult<()> {
        let path = PathBuf::from(key);
        self.publish(&path, pieces).await.map_err(|error| store_error(key, &error))
    }

    async fn get(&self, key: &str) -> StoreResult<Bytes> {
        let read = async {
            let file = self.disk.open(Path::new(key)).await?;
            let length = usize::try_from(file.size().await?).expect("objects fit memory");
            file.read_at(0, length).await
        };
        read.await.map_err(|error| store_error(key, &error))
    }

    async fn get_range(&self, key: &str, position: u64, length: u64) -> StoreResult<Bytes> {
        let part_bytes = usize::try_from(length).expect("parts fit memory");
        let bytes = self.read_part(key, position, part_bytes).await;
        let bytes = bytes.map_err(|error| store_error(key, &error))?;
        if bytes.len() == part_bytes {
            return Ok(bytes);
        }
        Err(StoreError::Unavailable(format!("{key} is shorter than {position} + {length}")))
    }

    async fn list(&self, folder: &str) -> StoreResult<Vec<String>> {
        let mut names = self.names(folder).await?;
        names.retain(|name| !is_draft(name));
        Ok(names)
    }

    async fn list_half_made(&self, folder: &str) -> StoreResult<Vec<String>> {
        let mut names = self.names(folder).await?;
        names.retain(|name| is_draft(name));
        Ok(names)
    }

    fn puts_at_once(&self) -> usize {
        FOLDER_PUTS_AT_ONCE
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        let path = Path::new(key);
        self.disk.remove(path).await.map_err(|error| store_error(key, &error))?;
        self.keep_open(key, None);
        for folder in path.ancestors().skip(1).take(FOLDERS_OF_A_KEY) {
            self.durable.lock().remove(folder);
            // An error is usual: most folders still have something in them.
            if self.disk.remove_folder(folder).await.is_err() {
                break;
            }
        }
        Ok(())
    }
}
