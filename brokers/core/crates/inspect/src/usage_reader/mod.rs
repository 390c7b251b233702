//! What clusters used, read from their storage without a broker and without their metadata: lanes
//! say who wrote and was handed how much, manifests say what is stored. See `README.md` here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use freshet_storage::cold::ColdError;
use freshet_storage::lane::{LaneEnd, LaneError, LaneFile, LanePaths, file_numbers};
use freshet_wire::ids::Incarnation;
use freshet_world::env::store::{ObjectStore, StoreError};
use freshet_world::env::{Clock, Disk, DiskError, Environment};

mod columns;
mod lane;
mod look;
mod manifests;

pub use columns::{Columns, EGRESS, INGRESS};
pub use lane::LaneReading;
pub use manifests::PartitionSegments;

use lane::Place;

/// Why usage cannot be read. Nothing is left out without an error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UsageError {
    /// A file's checksum or content is wrong, or the file is missing.
    #[error("{file} is damaged: {what}")]
    Damaged {
        /// Its path below the root of its storage.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// The shared file system failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The object store failed.
    #[error(transparent)]
    Cold(#[from] ColdError),
}

impl UsageError {
    fn damaged(file: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { file: file.display().to_string(), what: what.into() }
    }

    /// The error of reading `file` of a lane.
    fn of_lane(file: &Path, error: LaneError) -> Self {
        match error {
            LaneError::Disk(error) => Self::Disk(error),
            LaneError::Damaged { what, .. } => Self::damaged(file, what),
            error => Self::damaged(file, error.to_string()),
        }
    }
}

impl From<StoreError> for UsageError {
    fn from(error: StoreError) -> Self {
        Self::Cold(error.into())
    }
}

/// The files of a lane, by their numbers, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneFiles {
    /// The incarnation whose lane it is.
    pub incarnation: Incarnation,
    /// Files that have an index.
    pub indexes: Vec<u64>,
    /// Files with records; the last may be made ahead of use.
    pub wals: Vec<u64>,
}

/// A request to read a lane.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneRequest {
    /// Blocks up to here were read before.
    pub after_sequence: u64,
    /// Files before this one are not needed.
    pub after_file: u64,
    /// Nobody runs the cluster any more, so that the lane ends where its covered blocks end.
    pub last_call: bool,
    /// The lane's end in the metadata store.
    pub sealed_end: Option<LaneEnd>,
}

/// The reader (see the module).
pub struct UsageReader {
    disk: Arc<dyn Disk>,
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    /// Where reading stopped in files that still grow. That only saves walking over them again.
    places: Mutex<BTreeMap<(String, Incarnation), Place>>,
}

impl UsageReader {
    /// A reader of all clusters of a cell.
    pub fn new(environment: &Environment) -> Self {
        Self {
            disk: Arc::clone(&environment.disk),
            store: Arc::clone(&environment.bucket),
            clock: Arc::clone(&environment.clock),
            places: Mutex::default(),
        }
    }

    /// The lanes of a cluster, by incarnation; none where it never ran.
    ///
    /// # Errors
    /// The disk's.
    pub async fn lanes(&self, cluster: &str) -> Result<Vec<LaneFiles>, UsageError> {
        let names = self.disk.list(&LanePaths::lanes(cluster)).await?;
        let incarnations = names.iter().filter_map(|name| name.parse().ok().map(Incarnation));
        let mut lanes = Vec::new();
        for incarnation in incarnations {
            lanes.push(self.files(cluster, incarnation).await?.0);
        }
        lanes.sort_by_key(|lane| lane.incarnation);
        Ok(lanes)
    }

    /// A lane's files, and whether it has a SEAL.
    async fn files(
        &self,
        cluster: &str,
        incarnation: Incarnation,
    ) -> Result<(LaneFiles, bool), UsageError> {
        let names = self.disk.list(&LanePaths::new(cluster, incarnation).folder()).await?;
        let (indexes, wals) = (file_numbers(&names, "idx"), file_numbers(&names, "wal"));
        let sealed = names.iter().any(|name| name == "SEAL");
        Ok((LaneFiles { incarnation, indexes, wals }, sealed))
    }

    /// Removes the indexes of files below `below_file`; returns how many. The lane's last index
    /// stays, because it says that files before it were split. So does one whose file still exists,
    /// since it would be made again.
    ///
    /// # Errors
    /// [`UsageError::Disk`]; some may have been removed by then.
    pub async fn drop_indexes(
        &self,
        cluster: &str,
        incarnation: Incarnation,
        below_file: u64,
    ) -> Result<u64, UsageError> {
        let (files, _) = self.files(cluster, incarnation).await?;
        let paths = LanePaths::new(cluster, incarnation);
        let last = files.indexes.last().copied();
        let mut dropped = 0;
        for number in files.indexes {
            let split = !files.wals.contains(&number);
            if number < below_file && Some(number) != last && split {
                self.disk.remove(&paths.leftover(number)).await?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }

    /// Writes the mark into a lane that has ended by which a broker may remove it, because the
    /// meter has recorded all of it. Returns whether the lane has the mark now: it does not while a
    /// file with records is left, nor where there is no such lane.
    ///
    /// # Errors
    /// The disk's.
    pub async fn mark_metered(
        &self,
        cluster: &str,
        incarnation: Incarnation,
    ) -> Result<bool, UsageError> {
        let (files, _) = self.files(cluster, incarnation).await?;
        if !files.wals.is_empty() {
            return Ok(false);
        }
        let path = LanePaths::new(cluster, incarnation).metered();
        match self.disk.publish(&path, Vec::new()).await {
            Ok(()) | Err(DiskError::Exists(_)) => Ok(true),
            Err(DiskError::NotFound(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The segments of partitions whose newest manifest is not the one in `known`, which is by
    /// topic id (32 hexadecimal digits) and partition.
    ///
    /// # Errors
    /// [`UsageError::Cold`], or [`UsageError::Damaged`].
    pub async fn manifests(
        &self,
        cluster: &str,
        known: &BTreeMap<(String, i32), String>,
    ) -> Result<Vec<PartitionSegments>, UsageError> {
        manifests::read(self.store.as_ref(), cluster, known).await
    }
}

fn wal_path(paths: &LanePaths, number: u64) -> std::path::PathBuf {
    paths.file(LaneFile::Wal(number))
}
