//! Lanes: files of blocks, owner tokens, SEAL files and the indexes of files that were split.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    EndReport, FileReport, InspectError, Inspector, LaneReport, LeftoverReport, SealReport,
    check_batch,
};
use freshet_metadata::schema::SealedEnd;
use freshet_storage::lane::block::{Block, BlockKind};
use freshet_storage::lane::index::{
    DataEntry, decode_checkpoint, decode_data, decode_installs, decode_usage,
};
use freshet_storage::lane::leftover::Leftover;
use freshet_storage::lane::scan::{FileCursor, PlacedBlock, read_file, scan_tail};
use freshet_storage::lane::seal::{Seal, read_seal};
use freshet_storage::lane::{LaneFile, LanePaths, file_numbers};
use freshet_storage::rules::Rules;
use freshet_wire::codec::{Reader, WireError, crc32c};
use freshet_wire::ids::Incarnation;
use freshet_world::env::DiskError;

/// Bytes of an owner token in front of its padding.
const TOKEN_BYTES: usize = 36;
const TOKEN_MAGIC: &[u8; 4] = b"FRLO";

/// Endings of a lane's files, besides [`OF_LANE`].
const ENDINGS: [&str; 3] = ["wal", "idx", RECYCLED];
/// Ending of recycled files.
const RECYCLED: &str = "spare";
const OF_LANE: [&str; 2] = ["OWNER", "SEAL"];

/// Whether a lane has files of this name.
fn is_of_lane(name: &String) -> bool {
    let named = std::slice::from_ref(name);
    OF_LANE.contains(&name.as_str())
        || ENDINGS.iter().any(|ending| !file_numbers(named, ending).is_empty())
}

impl From<SealedEnd> for EndReport {
    fn from(end: SealedEnd) -> Self {
        Self { file: end.file, sequence: end.sequence }
    }
}

/// The owner that the bytes of an owner token name; the format is in `lane::token`.
fn token_holder(bytes: &Bytes) -> Result<Option<Incarnation>, WireError> {
    let mut reader = Reader::new(bytes.clone());
    let magic = reader.take(4)?;
    let version = reader.u16_le()?;
    reader.u16_le()?;
    let holder = Incarnation(reader.u64_le()?);
    reader.take(16)?;
    let checksum = reader.u32_le()?;
    let whole = magic == TOKEN_MAGIC[..] && version == 1;
    Ok((whole && checksum == crc32c(&bytes[..TOKEN_BYTES - 4])).then_some(holder))
}

impl Inspector<'_> {
    pub(super) async fn read_lanes(&mut self) -> Result<(), InspectError> {
        let names = self.environment.disk.list(&LanePaths::lanes(self.cluster)).await?;
        let lanes: Vec<Incarnation> =
            names.iter().filter_map(|name| name.parse().ok().map(Incarnation)).collect();
        if let Some(requested) = self.options.lane
            && !lanes.contains(&requested)
        {
            return Err(InspectError::Unknown(format!("lane {requested}")));
        }
        for incarnation in lanes {
            if self.options.lane.is_none_or(|requested| requested == incarnation) {
                let lane = self.read_lane(incarnation).await?;
                self.report.lanes.push(lane);
            }
        }
        Ok(())
    }

    async fn read_lane(&mut self, incarnation: Incarnation) -> Result<LaneReport, InspectError> {
        let paths = LanePaths::new(self.cluster, incarnation);
        let record = self.known.incarnations.get(&incarnation).map(|stored| &stored.record);
        let end = record.and_then(|record| record.sealed_end).map(EndReport::from);
        let state = record.map(|record| format!("{:?}", record.state).to_lowercase());
        let seal = self.read_seal(&paths, incarnation).await;
        let mut lane = LaneReport {
            incarnation,
            state,
            owner: self.read_owner(&paths).await?,
            durable_sequence: 0,
            end: end.or_else(|| seal.as_ref().map(seal_end)),
            seal: seal
                .as_ref()
                .map(|seal| SealReport { end: seal_end(seal), blocks: seal.blocks.len() }),
            files: Vec::new(),
            leftovers: Vec::new(),
            recycled: 0,
            others: Vec::new(),
        };
        let names = self.environment.disk.list(&paths.folder()).await?;
        lane.recycled = file_numbers(&names, RECYCLED).len();
        lane.others = names.iter().filter(|name| !is_of_lane(name)).cloned().collect();
        let sealed = sealed_blocks(seal);
        let mut walk = Walk { nonce: None, due: None, end: lane.end, sealed };
        for number in file_numbers(&names, "wal") {
            if let Some(file) = self.read_blocks(&paths, number, &mut walk, &mut lane).await? {
                lane.files.push(file);
            }
        }
        for number in file_numbers(&names, "idx") {
            if let Some(leftover) = self.read_leftover(&paths, number).await? {
                lane.leftovers.push(leftover);
            }
        }
        self.check_end(&paths, &lane, &walk).await;
        Ok(lane)
    }

    async fn read_owner(&mut self, paths: &LanePaths) -> Result<Option<Incarnation>, InspectError> {
        let file = match self.environment.disk.open(&paths.owner()).await {
            Err(DiskError::NotFound(_)) => return Ok(None),
            opened => opened?,
        };
        let bytes = file.read_uncached_at(0, TOKEN_BYTES).await?;
        let holder = token_holder(&bytes).ok().flatten();
        if holder.is_none() {
            // That is damage but no loss: the broker acknowledges nothing with such a token, and a
            // successor overwrites it.
            self.damaged(paths.owner().display().to_string(), "not an owner token");
        }
        Ok(holder)
    }

    async fn read_seal(&mut self, paths: &LanePaths, incarnation: Incarnation) -> Option<Seal> {
        match read_seal(self.environment.disk.as_ref(), paths, incarnation).await {
            Ok(seal) => seal,
            Err(error) => {
                self.damaged(paths.seal().display().to_string(), error);
                None
            }
        }
    }

    async fn read_blocks(
        &mut self,
        paths: &LanePaths,
        number: u64,
        walk: &mut Walk,
        lane: &mut LaneReport,
    ) -> Result<Option<FileReport>, InspectError> {
        let path = paths.file(LaneFile::Wal(number)).display().to_string();
        let bytes = match read_file(self.environment.disk.as_ref(), paths, number).await {
            Ok(bytes) => bytes,
            // It was split while it was being read.
            Err(freshet_storage::lane::LaneError::Disk(DiskError::NotFound(_))) => return Ok(None),
            Err(error) => {
                self.damaged(path, error);
                return Ok(None);
            }
        };
        let mut report =
            FileReport { file: path, bytes: bytes.len() as u64, ..FileReport::default() };
        let mut cursor = FileCursor::new(lane.incarnation, walk.nonce, number, bytes);
        loop {
            match walk.next(number, &mut cursor) {
                Ok(Some(placed)) => self.take_block(&placed, &mut report, lane),
                Ok(None) => break,
                Err(error) => {
                    self.damaged(report.file.clone(), error);
                    break;
                }
            }
        }
        report.used_bytes = cursor.position();
        Ok(Some(report))
    }

    fn take_block(&mut self, placed: &PlacedBlock, file: &mut FileReport, lane: &mut LaneReport) {
        let Block { header, index, payload } = &placed.block;
        *file.blocks.entry(header.kind.name()).or_default() += 1;
        if file.first_sequence == 0 {
            file.first_sequence = header.sequence;
        }
        file.last_sequence = header.sequence;
        file.written_ms = Some(extend_times(file.written_ms, header.written_at_ms));
        lane.durable_sequence = lane.durable_sequence.max(header.durable_sequence);
        let outcome = match header.kind {
            BlockKind::Data => decode_data(index.clone(), header).map(|entries| {
                for entry in entries {
                    file.batches += 1;
                    file.record_bytes += u64::from(entry.length);
                    if self.options.verify {
                        let start = entry.position as usize;
                        let batch = payload.slice(start..start + entry.length as usize);
                        self.verify_batch(&file.file, placed, &entry, &batch);
                    }
                }
            }),
            BlockKind::Usage => decode_usage(index.clone()).map(drop),
            BlockKind::Install => decode_installs(index.clone()).map(|entries| {
                for entry in &entries {
                    self.install(entry.partition, entry.manifest);
                }
            }),
            BlockKind::Checkpoint => decode_checkpoint(index.clone()).map(|(_, entries)| {
                for entry in &entries {
                    self.install(entry.partition, entry.manifest);
                }
            }),
            BlockKind::Close => {
                lane.durable_sequence = header.sequence;
                Ok(())
            }
        };
        if let Err(error) = outcome {
            let what = format!("block {}: its index does not decode: {error}", header.sequence);
            self.damaged(file.file.clone(), what);
        }
    }

    fn verify_batch(&mut self, file: &str, placed: &PlacedBlock, entry: &DataEntry, bytes: &Bytes) {
        let due = entry.base_offset;
        let wrong = match check_batch(bytes) {
            Ok(batch) if batch.base_offset() == due => {
                self.check_records(entry.partition, &batch);
                return;
            }
            Ok(batch) => format!("it has offset {}, its index {due}", batch.base_offset()),
            Err(error) => error,
        };
        let sequence = placed.block.header.sequence;
        self.damaged(file, format!("block {sequence}, batch at offset {due}: {wrong}"));
    }

    async fn read_leftover(
        &mut self,
        paths: &LanePaths,
        number: u64,
    ) -> Result<Option<LeftoverReport>, InspectError> {
        let path = paths.leftover(number);
        let name = path.display().to_string();
        let file = self.environment.disk.open(&path).await?;
        let size = usize::try_from(file.size().await?).unwrap_or(usize::MAX);
        let leftover = match Leftover::decode(&file.read_at(0, size).await?) {
            Ok(leftover) => leftover,
            Err(error) => {
                self.damaged(name, error);
                return Ok(None);
            }
        };
        let mut report = LeftoverReport {
            file: name,
            first_sequence: leftover.sequences.0,
            last_sequence: leftover.sequences.1,
            blocks: BTreeMap::new(),
            record_bytes: 0,
            written_ms: None,
        };
        for block in &leftover.blocks {
            let Ok(header) = block.parse_header() else { continue };
            *report.blocks.entry(header.kind.name()).or_default() += 1;
            report.written_ms = Some(extend_times(report.written_ms, header.written_at_ms));
            if header.kind == BlockKind::Data {
                report.record_bytes += u64::from(header.payload_bytes);
            }
        }
        Ok(Some(report))
    }

    /// Checks that the lane goes on as far as its end.
    async fn check_end(&mut self, paths: &LanePaths, lane: &LaneReport, walk: &Walk) {
        let folder = paths.folder().display().to_string();
        match (lane.end, walk.due) {
            (Some(end), Some(due)) if due <= end.sequence => {
                let sequence = end.sequence;
                self.damaged(folder, format!("block {due} is missing before its end {sequence}"));
            }
            (None, _) if !lane.files.is_empty() => {
                let disk = self.environment.disk.as_ref();
                let scan = scan_tail(disk, paths, lane.incarnation, Rules::full()).await;
                if let Err(error @ freshet_storage::lane::LaneError::Damaged { .. }) = scan {
                    self.damaged(folder, error);
                }
            }
            _ => {}
        }
    }
}

/// First and last time of blocks, extended by a later block's time.
fn extend_times(before: Option<(i64, i64)>, at_ms: i64) -> (i64, i64) {
    (before.map_or(at_ms, |(first_ms, _)| first_ms), at_ms)
}

fn seal_end(seal: &Seal) -> EndReport {
    EndReport { file: seal.end.file, sequence: seal.end.sequence }
}

fn sealed_blocks(seal: Option<Seal>) -> BTreeMap<(u64, u64), PlacedBlock> {
    let blocks = seal.map(|seal| seal.blocks).unwrap_or_default().into_values();
    blocks.map(|block| ((block.placed.file, block.placed.position), block.placed)).collect()
}

/// Goes through a lane's blocks in order, reading blocks that the sealer copied from their copies.
struct Walk {
    nonce: Option<u64>,
    due: Option<u64>,
    end: Option<EndReport>,
    sealed: BTreeMap<(u64, u64), PlacedBlock>,
}

impl Walk {
    fn next(
        &mut self,
        file: u64,
        cursor: &mut FileCursor,
    ) -> Result<Option<PlacedBlock>, freshet_storage::lane::LaneError> {
        let ended = |due: u64| self.end.is_some_and(|end| due > end.sequence);
        if self.due.is_some_and(ended) {
            return Ok(None);
        }
        let placed = match self.sealed.remove(&(file, cursor.position())) {
            // Blocks before the copy are missing, which an earlier file should hold.
            Some(copy) if self.due.is_some_and(|due| copy.block.header.sequence != due) => None,
            Some(copy) => {
                cursor.skip(copy.raw.len());
                Some(copy)
            }
            None => cursor.take(self.due)?,
        };
        if let Some(placed) = &placed {
            let header = placed.block.header;
            (self.nonce, self.due) = (Some(header.nonce), Some(header.sequence + 1));
        }
        Ok(placed)
    }
}

#[cfg(test)]
mod tests {
    use freshet_storage::lane::block::{BlockLabel, encode};
    use freshet_storage::lane::index::encode_checkpoint;

    use super::*;

    /// The checkpoint that begins file 2, as the sealer copied it.
    fn copied(sequence: u64) -> PlacedBlock {
        let label = BlockLabel {
            kind: BlockKind::Checkpoint,
            incarnation: Incarnation(3),
            sequence,
            durable_sequence: sequence - 1,
            nonce: 7,
            written_at_ms: 1_700_000_000_000,
        };
        let raw = Bytes::from(encode(label, &encode_checkpoint(2, &[]), Vec::new()).concat());
        let block = Block::parse(&raw).unwrap();
        PlacedBlock { file: 2, position: 0, raw, block }
    }

    #[test]
    fn a_copy_is_taken_only_where_it_follows() {
        for (due, expected) in [(5, None), (8, Some(8))] {
            let copy = copied(8);
            let mut cursor = FileCursor::new(Incarnation(3), Some(7), 2, copy.raw.clone());
            let end = Some(EndReport { file: 2, sequence: 8 });
            let sealed = BTreeMap::from([((2, 0), copy)]);
            let mut walk = Walk { nonce: Some(7), due: Some(due), end, sealed };
            let placed = walk.next(2, &mut cursor).unwrap();
            assert_eq!(placed.map(|block| block.block.header.sequence), expected);
            assert_eq!(walk.due, Some(expected.map_or(due, |sequence| sequence + 1)));
        }
    }
}
