//! What clusters used, read off their storage without a broker and without their metadata: lanes
//! say who wrote and was handed how much, manifests say what is kept. See `README.md` here.

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

/// Why usage cannot be read. Nothing is passed over in silence.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UsageError {
    /// A file that does not check, or is not where it must be.
    #[error("{file} is damaged: {what}")]
    Damaged {
        /// Its path below the root of its storage.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// The shared file system.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The object store.
    #[error(transparent)]
    Cold(#[from] ColdError),
}

impl UsageError {
    fn damaged(file: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { file: file.display().to_string(), what: what.into() }
    }

    /// What reading `file` of a lane ended with.
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
    /// Whose lane.
    pub incarnation: Incarnation,
    /// Those whose index is there.
    pub indexes: Vec<u64>,
    /// Those with records; the last may be made ahead of use.
    pub wals: Vec<u64>,
}

/// What is wanted of a lane.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneRequest {
    /// Blocks up to here were read before.
    pub after_sequence: u64,
    /// Files before this one are not needed.
    pub after_file: u64,
    /// Nobody runs the cluster nor ever will: the lane ends where what is covered ends.
    pub last_call: bool,
    /// The end that the metadata store knows.
    pub sealed_end: Option<LaneEnd>,
}

/// See the module.
pub struct UsageReader {
    disk: Arc<dyn Disk>,
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    /// Where reading stopped in files that still grow. Only spares walking over them again.
    places: Mutex<BTreeMap<(String, Incarnation), Place>>,
}

impl UsageReader {
    /// A reader of all clusters of an environment.
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

    /// Removes the indexes of files below `below_file`; gives how many. The lane's last index
    /// stays, which says that files before it were split, and so does one whose file still lies
    /// beside it: it would be made again.
    ///
    /// # Errors
    /// The disk's; what was removed by then is gone.
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

    /// Says in a lane that has ended that all of it is recorded, so that a broker may remove it;
    /// gives whether it does say so now. Not while a file with records is left, nor where there is
    /// no such lane.
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

    /// What partitions keep whose newest manifest is not the one that `known` names, by topic id
    /// (32 hexadecimal digits) and partition.
    ///
    /// # Errors
    /// The object store's, or damage.
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
