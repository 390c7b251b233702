//! What the restore model holds: lanes on storage, the metadata store and its backup, processes.

/// The first leader and two that start later.
pub const PROCESSES: usize = 3;
/// Incarnation numbers; process 0 has number 0 from the start.
pub const NUMBERS: usize = 5;
/// Records that a lane may get.
pub const RECORDS: u8 = 2;
/// Offsets that a state can hold: two records in each of the lanes that led.
pub const OFFSETS: usize = 6;

/// A lane on storage, by its incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lane {
    pub folder: bool,
    /// The process whose token OWNER holds; `None` once fenced.
    pub owner: Option<u8>,
    /// The epoch that its blocks name, from the first block on.
    pub epoch: Option<u8>,
    /// The offset of its first record.
    pub base: u8,
    /// Records that a reader sees.
    pub visible: u8,
    /// Records below the fence-checked end.
    pub covered: u8,
    /// A write on its way, which may land at any time.
    pub in_flight: bool,
    /// The end in the SEAL file.
    pub seal: Option<u8>,
}

/// A cluster's records in the metadata store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metadata {
    pub next_incarnation: u8,
    /// Live incarnations, as bits.
    pub live: u8,
    pub sealed_end: [Option<u8>; NUMBERS],
    pub leader: Option<u8>,
    pub epoch: u8,
    /// The lanes that hold the partition's records, in the order of their epochs.
    pub extents: [Option<u8>; NUMBERS],
}

impl Metadata {
    pub fn is_live(&self, incarnation: u8) -> bool {
        self.live & (1 << incarnation) != 0
    }

    pub fn append_extent(&mut self, lane: u8) {
        let free = self.extents.iter_mut().find(|extent| extent.is_none());
        if let Some(extent) = free {
            *extent = Some(lane);
        }
    }
}

/// How far a process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Started,
    Claimed,
    /// Its lane's folder is made.
    Created,
    /// Every lane before its own is sealed; the partition was at this epoch.
    Prepared(u8),
    /// Leads, or led, at this epoch.
    Leader(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub incarnation: u8,
    pub phase: Phase,
}

/// What has happened to the metadata store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    Running,
    /// An old backup was put in its place.
    Restored,
    /// The scan has fenced the lanes that it found, given as bits.
    Fenced(u8),
    /// The scan has rebuilt what the backup did not know.
    Rebuilt,
}

/// A state of the restore model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RestoreState {
    pub lanes: [Lane; NUMBERS],
    pub metadata: Metadata,
    pub backup: Option<Metadata>,
    pub store: Store,
    pub processes: [Process; PROCESSES],
    /// The record acked at each offset: its lane and its place there.
    pub acked: [Option<(u8, u8)>; OFFSETS],
    /// The process that made each lane's folder first.
    pub made_by: [Option<u8>; NUMBERS],
    /// The incarnation that each epoch was first used by.
    pub epoch_used_by: [Option<u8>; NUMBERS],
    pub incarnation_reused: bool,
    pub epoch_reused: bool,
}

impl RestoreState {
    /// Process 0 leads as incarnation 0, at epoch 0, and its lane says so.
    pub fn initial() -> Self {
        let mut lanes = [Lane::default(); NUMBERS];
        lanes[0] = Lane { folder: true, owner: Some(0), epoch: Some(0), ..Lane::default() };
        let mut extents = [None; NUMBERS];
        extents[0] = Some(0);
        let metadata = Metadata {
            next_incarnation: 1,
            live: 1,
            sealed_end: [None; NUMBERS],
            leader: Some(0),
            epoch: 0,
            extents,
        };
        let mut processes = [Process { incarnation: 0, phase: Phase::Started }; PROCESSES];
        processes[0].phase = Phase::Leader(0);
        let first = std::array::from_fn(|n| (n == 0).then_some(0));
        Self {
            lanes,
            metadata,
            backup: None,
            store: Store::Running,
            processes,
            acked: [None; OFFSETS],
            made_by: first,
            epoch_used_by: first,
            incarnation_reused: false,
            epoch_reused: false,
        }
    }

    pub fn lane(&self, n: u8) -> &Lane {
        &self.lanes[usize::from(n)]
    }

    pub fn lane_mut(&mut self, n: u8) -> &mut Lane {
        &mut self.lanes[usize::from(n)]
    }

    pub fn process(&self, n: u8) -> Process {
        self.processes[usize::from(n)]
    }

    pub fn set_phase(&mut self, process: u8, phase: Phase) {
        self.processes[usize::from(process)].phase = phase;
    }

    /// Notes that an incarnation wrote something under an epoch.
    pub fn use_epoch(&mut self, epoch: u8, incarnation: u8) {
        let user = self.epoch_used_by[usize::from(epoch)].get_or_insert(incarnation);
        self.epoch_reused |= *user != incarnation;
    }

    /// The lanes that a successor reads, each with the end at which it stops.
    pub fn readable(&self) -> impl Iterator<Item = (u8, u8)> {
        self.metadata.extents.into_iter().flatten().map(|lane| {
            let sealed_end = self.metadata.sealed_end[usize::from(lane)];
            (lane, sealed_end.or(self.lane(lane).seal).unwrap_or(self.lane(lane).covered))
        })
    }

    /// The record that a successor finds at each offset, or `None` if two lanes claim one offset.
    pub fn served(&self) -> Option<[Option<(u8, u8)>; OFFSETS]> {
        let mut served = [None; OFFSETS];
        for (lane, end) in self.readable() {
            for place in 0..end {
                let offset = self.lane(lane).base + place;
                let slot = served.get_mut(usize::from(offset))?;
                if slot.replace((lane, place)).is_some() {
                    return None;
                }
            }
        }
        Some(served)
    }

    /// The end of the log that a successor finds.
    pub fn log_end(&self) -> u8 {
        let ends = self.readable().map(|(lane, end)| self.lane(lane).base + end);
        ends.max().unwrap_or(0)
    }
}
