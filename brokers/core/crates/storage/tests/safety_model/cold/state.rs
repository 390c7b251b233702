//! What the cold model holds: lanes as sequences of entries, objects and manifests, and jobs.

/// Lane 0 is dead and sealed, lane 1 is its successor's, lane 2 that one's successor's.
pub const LANES: usize = 3;
/// Entries that a lane may get.
pub const ENTRIES: usize = 6;
/// Names of objects and manifests: 0 is there from the start, 1 and 2 are broker 1's, 3 and 4 are
/// broker 2's. A job makes one object and one manifest, both under its own number.
pub const NAMES: usize = 5;
/// Jobs of a broker at one time.
pub const JOBS: usize = 2;

/// An entry of a lane. A checkpoint begins a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A record, by its offset.
    Data(u8),
    /// The manifest of this name is in force.
    Install(u8),
    /// The manifest that was in force when the file began.
    Checkpoint(Option<u8>),
}

/// A lane, whose acks, fence and seal are those of the lane model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    pub entries: [Option<Entry>; ENTRIES],
    /// Entries below the fence-checked end.
    pub covered: u8,
    pub sealed: Option<u8>,
    /// Files deleted, from the first on.
    pub files_deleted: u8,
}

impl Lane {
    pub const NEW: Self =
        Self { entries: [None; ENTRIES], covered: 0, sealed: None, files_deleted: 0 };

    pub fn written(&self) -> u8 {
        count(self.entries.iter().flatten())
    }

    /// The entries below `end` with the number of their file.
    pub fn entries_below(&self, end: u8) -> impl Iterator<Item = (u8, Entry)> {
        let mut checkpoints = 0;
        self.entries.into_iter().flatten().take(usize::from(end)).map(move |entry| {
            checkpoints += u8::from(matches!(entry, Entry::Checkpoint(_)));
            (checkpoints - 1, entry)
        })
    }

    /// Files that have begun below `end`.
    pub fn files(&self, end: u8) -> u8 {
        self.entries_below(end).last().map_or(0, |(file, _)| file + 1)
    }
}

/// What a manifest says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Manifest {
    /// Records below this offset are in objects.
    pub covered_end: u8,
    /// Bit n: object n.
    pub objects: u8,
}

/// The object store. A name is written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    pub manifests: [Manifest; NAMES],
    /// The offsets that each object holds, as bits.
    pub contents: [u8; NAMES],
    /// Objects that exist, as bits.
    pub objects: u8,
    /// Manifests that exist, as bits.
    pub existing_manifests: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Moves records of lane files into an object.
    Split,
    /// Writes the records of a manifest's objects into one.
    Compact,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    ObjectPut,
    ManifestPut,
    /// The install record is this entry of the lane.
    InstallWritten(u8),
    /// The install record is covered; what the manifest replaces may go.
    Applied,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    pub kind: Kind,
    /// The name of what it makes.
    pub name: u8,
    /// The manifest from which its work began; once it has a manifest, the one that this follows.
    pub base: Option<u8>,
    pub step: Step,
}

/// A sweep of what no manifest names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sweep {
    Idle,
    Listed { objects: u8, manifests: u8 },
    Checked { objects: u8, manifests: u8 },
}

/// What a leader does about the lanes before its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeadLanes {
    Kept,
    Trimmed,
    Deleted,
}

/// A broker's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    pub leads: bool,
    /// The manifest in force, as far as its jobs have reported it.
    pub manifest: Option<u8>,
    pub names_used: u8,
    pub jobs: [Option<Job>; JOBS],
    pub sweep: Sweep,
    pub dead_lanes: DeadLanes,
}

impl Broker {
    pub const IDLE: Self = Self {
        leads: false,
        manifest: None,
        names_used: 0,
        jobs: [None; JOBS],
        sweep: Sweep::Idle,
        dead_lanes: DeadLanes::Kept,
    };
}

/// A state of the cold model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColdState {
    pub lanes: [Lane; LANES],
    pub store: Store,
    /// The current leader and its epoch: broker 1, then broker 2.
    pub leader: u8,
    /// The lanes of the extents, as bits.
    pub extents: u8,
    pub brokers: [Broker; LANES],
    /// The offsets that were acked, as bits.
    pub acked: u8,
    pub swept: bool,
}

impl ColdState {
    /// Broker 1 has just taken over from lane 0, which holds one record: in its only file, or in an
    /// object whose install record is in the lane's second file.
    pub fn initial(split: bool) -> Self {
        let mut lanes = [Lane::NEW; LANES];
        let mut store = Store {
            manifests: [Manifest::default(); NAMES],
            contents: [0; NAMES],
            objects: 0,
            existing_manifests: 0,
        };
        let entries = [Entry::Checkpoint(None), Entry::Data(0)];
        let install = [Entry::Checkpoint(None), Entry::Install(0)];
        let all = entries.into_iter().chain(install.into_iter().filter(|_| split));
        for (place, entry) in lanes[0].entries.iter_mut().zip(all) {
            *place = Some(entry);
        }
        lanes[0].covered = lanes[0].written();
        lanes[0].sealed = Some(lanes[0].covered);
        if split {
            lanes[0].files_deleted = 1;
            store.manifests[0] = Manifest { covered_end: 1, objects: 1 };
            store.contents[0] = 1;
            (store.objects, store.existing_manifests) = (1, 1);
        }
        let mut brokers = [Broker::IDLE; LANES];
        brokers[1].leads = true;
        brokers[1].manifest = split.then_some(0);
        Self { lanes, store, leader: 1, extents: 0b11, brokers, acked: 1, swept: false }
    }

    pub fn lane(&self, n: u8) -> &Lane {
        &self.lanes[usize::from(n)]
    }

    pub fn lane_mut(&mut self, n: u8) -> &mut Lane {
        &mut self.lanes[usize::from(n)]
    }

    pub fn broker(&self, n: u8) -> &Broker {
        &self.brokers[usize::from(n)]
    }

    pub fn broker_mut(&mut self, n: u8) -> &mut Broker {
        &mut self.brokers[usize::from(n)]
    }

    /// Whether the broker's token is its own.
    pub fn token_is_own(&self, broker: u8) -> bool {
        self.lane(broker).sealed.is_none()
    }

    pub fn manifest(&self, name: Option<u8>) -> Manifest {
        name.map_or(Manifest::default(), |name| self.store.manifests[usize::from(name)])
    }

    pub fn lanes_in_extents(&self) -> impl Iterator<Item = u8> {
        let extents = self.extents;
        (0u8..).take(LANES).filter(move |lane| extents & bit(*lane) != 0)
    }
}

pub fn bit(n: u8) -> u8 {
    1 << n
}

fn count<T>(elements: impl Iterator<Item = T>) -> u8 {
    u8::try_from(elements.count()).expect("a lane has few entries")
}
