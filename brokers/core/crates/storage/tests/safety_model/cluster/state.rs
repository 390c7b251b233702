//! What the cluster model holds: lanes that partitions share, leaders, objects and manifests.

pub const BROKERS: usize = 3;
pub const PARTITIONS: usize = 2;
/// Entries that a lane may get.
pub const ENTRIES: usize = 6;
/// Leaders that a partition may have, one after the other.
pub const EPOCHS: usize = 4;
/// Records that a partition may get.
pub const OFFSETS: usize = 3;
pub const OBJECTS: usize = 4;
pub const MANIFESTS: usize = 5;

/// Which leader's epoch wrote the record at each offset.
pub type Records = [Option<u8>; OFFSETS];

/// An entry of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub partition: u8,
    pub epoch: u8,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A record, by its offset.
    Data(u8),
    /// The manifest of this name is in force.
    Install(u8),
}

/// The lane of a broker, which is the broker's incarnation as well. Its acks, fence and seal are
/// those of the lane model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    pub entries: [Option<Entry>; ENTRIES],
    /// Entries below the fence-checked end.
    pub covered: u8,
    pub sealed: Option<u8>,
    /// Entries that were deleted, from the first on.
    pub deleted: u8,
    /// The manifests that the first file which is left begins with, by epoch and name.
    pub checkpoints: [Option<(u8, u8)>; PARTITIONS],
}

impl Lane {
    const NEW: Self = Self {
        entries: [None; ENTRIES],
        covered: 0,
        sealed: None,
        deleted: 0,
        checkpoints: [None; PARTITIONS],
    };

    pub fn written(&self) -> u8 {
        let written = self.entries.iter().flatten().count();
        u8::try_from(written).expect("a lane has few entries")
    }

    /// The entries from `first` to `end` with their places.
    pub fn entries_between(&self, first: u8, end: u8) -> impl Iterator<Item = (u8, Entry)> {
        let places = (0u8..).zip(self.entries).skip(usize::from(first));
        let placed = places.filter_map(|(place, entry)| Some((place, entry?)));
        placed.take_while(move |(place, _)| *place < end)
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
    pub manifests: [Manifest; MANIFESTS],
    pub manifests_made: u8,
    pub contents: [[Records; PARTITIONS]; OBJECTS],
    pub objects_made: u8,
    /// Objects that exist, as bits.
    pub objects: u8,
}

/// Where a leader of a partition has written: its lane, and the end if it gave the partition away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    pub lane: u8,
    pub end: Option<u8>,
}

/// A partition's record in the metadata store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    pub leader: u8,
    pub epoch: u8,
    /// By epoch.
    pub extents: [Option<Extent>; EPOCHS],
    /// What was acked.
    pub acked: Records,
}

/// What a broker knows of a partition that it leads, or believes that it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tenure {
    pub epoch: u8,
    /// The manifest in force.
    pub manifest: Option<u8>,
    /// The records that earlier leaders left, or this one wrote.
    pub records: Records,
    /// It is about to give the partition to this broker.
    pub successor: Option<u8>,
    /// The extents of earlier leaders are gone.
    pub trimmed: bool,
}

/// A background job: it makes an object, then a manifest for each partition that is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    pub object: u8,
    /// It joins what the manifest of its only partition names; otherwise it splits the lane.
    pub compacts: bool,
    pub parts: [Part; PARTITIONS],
}

/// How far a job has come with a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Nothing of the partition is in the object, or nothing is left to do.
    Done,
    ObjectPut,
    /// The install record of this manifest is at this place of the lane.
    Installed {
        manifest: u8,
        place: u8,
    },
    /// The manifest is in force; these objects may go.
    Replaced {
        objects: u8,
    },
}

/// What a controller does about objects that no manifest names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sweep {
    Idle,
    /// It listed these objects, and leaders named those that they need.
    Asking {
        listed: u8,
        named: u8,
        epochs: [Option<u8>; PARTITIONS],
    },
    /// These are to be deleted.
    Deleting {
        objects: u8,
    },
    Done,
}

/// A broker's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    pub tenures: [Option<Tenure>; PARTITIONS],
    /// The epoch of each partition that it is about to take over.
    pub orders: [Option<u8>; PARTITIONS],
    pub job: Option<Job>,
    pub jobs_begun: u8,
}

impl Broker {
    const IDLE: Self =
        Self { tenures: [None; PARTITIONS], orders: [None; PARTITIONS], job: None, jobs_begun: 0 };
}

/// A state of the cluster model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterState {
    pub lanes: [Lane; BROKERS],
    pub store: Store,
    pub partitions: [Partition; PARTITIONS],
    pub brokers: [Broker; BROKERS],
    pub sweep: Sweep,
    /// Two records were acked at one offset.
    pub acked_twice: bool,
}

impl ClusterState {
    /// Broker 0 leads all partitions, which are empty.
    pub fn initial() -> Self {
        let mut extents = [None; EPOCHS];
        extents[0] = Some(Extent { lane: 0, end: None });
        let partition = Partition { leader: 0, epoch: 0, extents, acked: [None; OFFSETS] };
        let tenure = Tenure {
            epoch: 0,
            manifest: None,
            records: [None; OFFSETS],
            successor: None,
            trimmed: true,
        };
        let mut brokers = [Broker::IDLE; BROKERS];
        brokers[0].tenures = [Some(tenure); PARTITIONS];
        Self {
            lanes: [Lane::NEW; BROKERS],
            store: Store {
                manifests: [Manifest::default(); MANIFESTS],
                manifests_made: 0,
                contents: [[[None; OFFSETS]; PARTITIONS]; OBJECTS],
                objects_made: 0,
                objects: 0,
            },
            partitions: [partition; PARTITIONS],
            brokers,
            sweep: Sweep::Idle,
            acked_twice: false,
        }
    }

    pub fn lane(&self, n: u8) -> &Lane {
        &self.lanes[usize::from(n)]
    }

    pub fn lane_mut(&mut self, n: u8) -> &mut Lane {
        &mut self.lanes[usize::from(n)]
    }

    pub fn broker_mut(&mut self, n: u8) -> &mut Broker {
        &mut self.brokers[usize::from(n)]
    }

    pub fn partition(&self, n: u8) -> &Partition {
        &self.partitions[usize::from(n)]
    }

    pub fn partition_mut(&mut self, n: u8) -> &mut Partition {
        &mut self.partitions[usize::from(n)]
    }

    pub fn tenure(&self, broker: u8, partition: u8) -> Option<Tenure> {
        self.brokers[usize::from(broker)].tenures[usize::from(partition)]
    }

    pub fn tenure_mut(&mut self, broker: u8, partition: u8) -> &mut Option<Tenure> {
        &mut self.brokers[usize::from(broker)].tenures[usize::from(partition)]
    }

    /// Whether the broker's token is its own.
    pub fn token_is_own(&self, broker: u8) -> bool {
        self.lane(broker).sealed.is_none()
    }

    pub fn manifest(&self, name: Option<u8>) -> Manifest {
        name.map_or(Manifest::default(), |name| self.store.manifests[usize::from(name)])
    }

    /// Writes an entry to the broker's lane, unless one is in flight, and returns its place. A
    /// fenced broker's writes lie beyond the seal, so they are left out.
    pub fn append(&mut self, broker: u8, entry: Entry) -> Option<u8> {
        let lane = self.lane_mut(broker);
        let written = lane.written();
        if lane.sealed.is_some() || lane.covered != written || usize::from(written) == ENTRIES {
            return None;
        }
        lane.entries[usize::from(written)] = Some(entry);
        Some(written)
    }
}

pub fn bit(n: u8) -> u8 {
    1 << n
}

pub fn brokers() -> impl Iterator<Item = u8> {
    (0u8..).take(BROKERS)
}

pub fn partitions() -> impl Iterator<Item = u8> {
    (0u8..).take(PARTITIONS)
}

/// One past the last record.
pub fn end_of(records: &Records) -> u8 {
    let last = (0u8..).zip(records).filter(|(_, record)| record.is_some()).last();
    last.map_or(0, |(offset, _)| offset + 1)
}
