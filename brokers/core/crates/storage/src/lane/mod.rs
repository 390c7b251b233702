//! The lane: the files into which one incarnation writes the batches of all its partitions. Its
//! end, as far as it was synced while the token was ours, is the only commit point. See `README.md`
//! in this folder.

use std::path::PathBuf;
use std::time::Duration;

use freshet_wire::ids::{Epoch, Incarnation, PartitionId};
use freshet_world::env::DiskError;

pub mod ack;
pub mod block;
pub mod heads;
pub mod index;
pub mod invariants;
pub mod leftover;
pub mod queue;
pub mod reader;
mod recycled;
pub mod scan;
pub mod seal;
pub mod token;
mod write;
pub mod writer;

pub use crate::failures::LaneError;
pub use crate::names::LaneFile;

/// Reads a lane of another incarnation, and repeats that where something is missing. A broker that
/// was fenced while it renamed a file may still carry the rename out, and a reader that lists the
/// folder at that moment may miss the file under both names.
///
/// # Errors
/// The error of the last attempt.
pub async fn look_again<T, F>(look: impl Fn() -> F) -> Result<T, LaneError>
where
    F: Future<Output = Result<T, LaneError>>,
{
    const AGAIN_MAX: u32 = 2;
    const PAUSE: Duration = Duration::from_millis(100);
    for _ in 0..AGAIN_MAX {
        match look().await {
            Err(error @ (LaneError::Damaged { .. } | LaneError::Disk(DiskError::NotFound(_)))) => {
                tracing::warn!(%error, "something is missing in a lane: it is read again");
                tokio::time::sleep(PAUSE).await;
            }
            result => return result,
        }
    }
    look().await
}

/// Where a record batch lies in a lane, and when it was written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneSpot {
    /// The incarnation whose lane it is.
    pub incarnation: Incarnation,
    /// Which file.
    pub file: LaneFile,
    /// First byte in the file.
    pub position: u64,
    /// Length in bytes.
    pub length: u32,
    /// When its block was laid out, ms since 1970 UTC; for the meter only.
    pub written_at_ms: i64,
}

impl LaneSpot {
    /// Its byte range in the file.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.position..self.position + u64::from(self.length)
    }
}

/// A batch of a partition in a lane.
#[derive(Debug, Clone, Copy)]
pub struct PlacedBatch {
    /// Partition that it belongs to.
    pub partition: PartitionId,
    /// Leader epoch under which it was written.
    pub epoch: Epoch,
    /// Offset of its first record.
    pub base_offset: i64,
    /// Where it lies.
    pub spot: LaneSpot,
}

/// The last block of a lane that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneEnd {
    /// File that holds it.
    pub file: u64,
    /// Its sequence number; 0 where the lane holds nothing.
    pub sequence: u64,
}

/// The name of the file that says that the meter has recorded all of a lane.
pub const METERED: &str = "METERED";

/// The prefix of a lane's folder that is being removed, because nobody needs the lane any more.
pub const REMOVED: &str = "removed-";

/// Names of a lane's files, from the root of the shared file system.
#[derive(Debug, Clone)]
pub struct LanePaths {
    folder: PathBuf,
}

impl LanePaths {
    /// The folder with the lanes of a cluster.
    pub fn lanes(cluster: &str) -> PathBuf {
        PathBuf::from(cluster).join("lanes")
    }

    /// The lane of an incarnation of a cluster.
    pub fn new(cluster: &str, incarnation: Incarnation) -> Self {
        Self { folder: Self::lanes(cluster).join(format!("{:020}", incarnation.0)) }
    }

    /// The lane's folder.
    pub fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// The name that the lane's folder gets before it is emptied and removed.
    pub fn removed(&self) -> PathBuf {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        self.folder.with_file_name(format!("{REMOVED}{name}"))
    }

    /// The owner token.
    pub fn owner(&self) -> PathBuf {
        self.folder.join("OWNER")
    }

    /// The lane's `SEAL`.
    pub fn seal(&self) -> PathBuf {
        self.folder.join("SEAL")
    }

    /// A file of blocks.
    pub fn file(&self, file: LaneFile) -> PathBuf {
        match file {
            LaneFile::Wal(number) => self.folder.join(format!("{number:012}.wal")),
            LaneFile::Seal => self.seal(),
        }
    }

    /// The file that says that the meter has recorded all of the lane.
    pub fn metered(&self) -> PathBuf {
        self.folder.join(METERED)
    }

    /// A recycled file, which waits to be written again. It holds nothing.
    pub fn recycled(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:012}.spare"))
    }

    /// The reserve, in which the lane is closed on a full disk. It holds nothing.
    pub fn reserve(&self) -> PathBuf {
        self.folder.join("reserve.spare")
    }

    /// The `.idx` that keeps headers and indexes of a file for the meter.
    pub fn leftover(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:012}.idx"))
    }
}

/// The numbers of the files with an ending (`"wal"`, `"idx"` or `"spare"`) among the names of a
/// folder, ascending.
pub fn file_numbers(names: &[String], ending: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| name.strip_suffix(ending)?.strip_suffix('.')?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}
