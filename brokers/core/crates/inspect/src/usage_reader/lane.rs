//! Reading one lane: its indexes, then the files that are not split yet, as far as blocks are
//! covered.

use std::collections::BTreeMap;

use super::look::{Look, Stop};
use super::{Columns, LaneRequest, UsageError, UsageReader};
use freshet_storage::lane::LanePaths;
use freshet_storage::lane::seal::read_seal;
use freshet_wire::ids::Incarnation;

/// How often a lane is read again because its files moved meanwhile.
const LOOKS_MAX: usize = 8;

/// Where reading stopped in a file that still grows.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The file.
    pub(super) file: u64,
    /// Where in it the next block starts.
    pub(super) position: u64,
    /// Its sequence number.
    pub(super) due: u64,
    /// The lane's nonce.
    pub(super) nonce: Option<u64>,
    /// When the block before it was written.
    pub(super) last_written_ms: Option<i64>,
    /// When the first block with records of each file without an index was written, ms since 1970
    /// UTC.
    pub(super) first_data_ms: BTreeMap<u64, i64>,
}

/// What was read of a lane.
#[derive(Debug, Clone, Default)]
pub struct LaneReading {
    /// The rows.
    pub columns: Columns,
    /// Every covered block up to here was read.
    pub last_sequence: u64,
    /// The file that holds, or will hold, the block after it.
    pub last_file: u64,
    /// All usage of the lane up to this time, in ms since 1970 UTC, was read by now. For a live
    /// lane it is the time of reading (a write that was under way then may still bear an earlier
    /// time), or just before the time of the first block that is not covered or not read yet.
    pub covered_until_ms: i64,
    /// Nothing will follow.
    pub ended: bool,
    /// Whether another call returns more at once.
    pub more: bool,
    /// When the first block with records was written that no index holds yet.
    pub unsplit_since_ms: Option<i64>,
    /// First and last sequence number that no file holds any more.
    pub gap: Option<(u64, u64)>,
}

impl UsageReader {
    /// Every covered block of a lane behind `after_sequence`, up to some 24 MiB of columns.
    ///
    /// A block is covered where a later one, a close, or the lane's end says that it was durable;
    /// what lies beyond the end that the caller or SEAL names never comes out.
    ///
    /// # Errors
    /// [`UsageError::Damaged`], which names the file, or [`UsageError::Disk`].
    pub async fn read_lane(
        &self,
        cluster: &str,
        incarnation: Incarnation,
        request: LaneRequest,
    ) -> Result<LaneReading, UsageError> {
        // Read before the files: what is written from now on has no earlier time.
        let now_ms = self.clock.now_ms();
        let mut looks = 0;
        loop {
            looks += 1;
            match self.look(cluster, incarnation, request, now_ms).await {
                Ok(reading) => return Ok(reading),
                Err(Stop::Moved(error)) if looks == LOOKS_MAX => return Err(error),
                Err(Stop::Moved(_)) => {}
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    async fn look(
        &self,
        cluster: &str,
        incarnation: Incarnation,
        request: LaneRequest,
        now_ms: i64,
    ) -> Result<LaneReading, Stop> {
        let (files, sealed) = self.files(cluster, incarnation).await?;
        let paths = LanePaths::new(cluster, incarnation);
        let key = (cluster.to_owned(), incarnation);
        let place = self.places.lock().get(&key).cloned();
        let mut look = Look::new(self.disk.as_ref(), paths, incarnation, request, place);
        if sealed {
            let paths = LanePaths::new(cluster, incarnation);
            let seal = read_seal(self.disk.as_ref(), &paths, incarnation).await;
            let seal = seal.map_err(|error| UsageError::of_lane(&paths.seal(), error))?;
            look.keep_to(seal);
        }
        look.read(&files).await?;
        let unsplit_since_ms = look.unsplit_since(&files).await?;
        let (reading, place) = look.finish(now_ms, unsplit_since_ms).await?;
        let mut places = self.places.lock();
        match place {
            Some(place) => drop(places.insert(key, place)),
            None => drop(places.remove(&key)),
        }
        Ok(reading)
    }
}
