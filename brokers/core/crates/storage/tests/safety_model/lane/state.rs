//! What the lane model holds: the shared disk, the metadata store, the brokers, and what was acked.

/// The first leader and its two successors, by incarnation; each has the lane of its number.
pub const BROKERS: usize = 3;
/// Blocks that a lane may get, one record each.
pub const BLOCKS: usize = 2;
/// Records that a successor can load: the blocks of every other lane.
pub const LOADED: usize = BLOCKS * (BROKERS - 1);
/// Records, each the first batch of an idempotent producer of its own.
pub const RECORDS: usize = 2;

/// What the server has of a block that a broker wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stored {
    /// In the writer's client or on the network: lands at any time, also after the writer's death.
    InFlight,
    /// Every client sees it; a restart of the server may lose it.
    OnServer,
    /// On disk for good.
    Synced,
    /// Never landed, or gone with a restart of the server.
    Lost,
    /// Was on disk, cannot be read any more.
    Damaged,
}

/// A block of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    pub record: u8,
    /// How many blocks of the lane were durable when this one was written.
    pub durable: u8,
    pub stored: Stored,
}

impl Block {
    /// Whether a reader that bypasses its caches sees a valid block.
    pub fn visible(&self) -> bool {
        matches!(self.stored, Stored::OnServer | Stored::Synced)
    }
}

/// The OWNER file of a lane, as the server has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    /// The lane's own incarnation and nonce.
    Own,
    /// Overwritten by a successor, not synced yet.
    FencedUnsynced,
    /// Overwritten and on disk.
    Fenced,
}

/// The SEAL file of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seal {
    /// Blocks of the lane that count.
    pub end: u8,
    /// Bit n: the SEAL holds a copy of block n.
    pub copies: u8,
    pub synced: bool,
}

/// A lane on the shared disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    pub blocks: [Option<Block>; BLOCKS],
    pub token: Token,
    pub seal: Option<Seal>,
    /// The end that the `close` block names.
    pub closed: Option<u8>,
}

impl Lane {
    pub const NEW: Self =
        Self { blocks: [None; BLOCKS], token: Token::Own, seal: None, closed: None };

    /// Blocks that its broker has written, whatever became of them.
    pub fn written(&self) -> u8 {
        count(self.blocks.iter().take_while(|block| block.is_some()))
    }

    /// Blocks before the first that a reader cannot see.
    pub fn visible_end(&self) -> u8 {
        count(self.blocks.iter().take_while(|block| block.is_some_and(|b| b.visible())))
    }

    /// The highest `durable` that a visible block names; `close` covers all that it ends.
    pub fn durable_seen(&self) -> u8 {
        let visible = self.blocks.iter().flatten().filter(|block| block.visible());
        visible.map(|block| block.durable).chain(self.closed).max().unwrap_or(0)
    }

    pub fn block(&self, n: u8) -> Option<Block> {
        self.blocks.get(usize::from(n)).copied().flatten()
    }

    /// Whether block n cannot be read any more, in SEAL neither.
    pub fn is_damaged(&self, n: u8) -> bool {
        let damaged = self.block(n).is_some_and(|block| block.stored == Stored::Damaged);
        damaged && self.read(n).is_none()
    }

    /// What a reader gets for block n: the copy in SEAL, else the lane's own block.
    pub fn read(&self, n: u8) -> Option<u8> {
        let copied = self.seal.is_some_and(|seal| seal.copies & (1 << n) != 0);
        self.block(n).filter(|block| copied || block.visible()).map(|block| block.record)
    }
}

/// A cluster's records in the metadata store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metadata {
    pub leader: u8,
    pub epoch: u8,
    /// The lanes that hold the partition's records, in the order of their epochs.
    pub extents: [Option<u8>; BROKERS],
    pub sealed_end: [Option<u8>; BROKERS],
}

impl Metadata {
    pub fn append_extent(&mut self, lane: u8) {
        let free = self.extents.iter_mut().find(|extent| extent.is_none());
        if let Some(extent) = free {
            *extent = Some(lane);
        }
    }

    /// The first lane that a takeover has to seal before it may reassign.
    pub fn first_unsealed(&self) -> Option<u8> {
        let lanes = self.extents.into_iter().flatten().chain([self.leader]);
        lanes.into_iter().find(|lane| self.sealed_end[usize::from(*lane)].is_none())
    }
}

/// How far a sealer has come with a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sealing {
    Start,
    FenceWritten,
    Fenced,
    /// Holds its own reading of the tail.
    TailRead {
        end: u8,
        copies: u8,
        fenced: bool,
    },
    /// SEAL is there, its own or another sealer's; holds the end that it will set.
    Linked {
        end: u8,
    },
    SealSynced {
        end: u8,
    },
}

/// What a broker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    Idle,
    /// Sealing a lane, to take over from the leader of `epoch`.
    Sealing {
        epoch: u8,
        lane: u8,
        sealing: Sealing,
    },
    /// Every lane is sealed; the reassignment is next.
    Sealed {
        epoch: u8,
    },
    /// Won the partition, has not loaded. `own_view` is set if a lane was left unsealed.
    Elected {
        own_view: Option<(u8, u8)>,
    },
    Leading,
}

/// A broker's memory. A paused or dead broker is one that takes no further step, and a broker that
/// stands down is one whose checks fail from then on, so neither has a state of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Broker {
    pub role: Role,
    /// Records of its predecessors by offset; `None` is a block that could not be read.
    pub loaded: [Option<u8>; LOADED],
    /// Length of `loaded`: the offset of the first block in its own lane.
    pub base: u8,
    pub epoch: u8,
    /// Own blocks that it holds for synced.
    pub synced: u8,
    /// Own blocks below its fence-checked end.
    pub checked: u8,
    /// It read a good token and has not used that reading yet (only with a rule removed).
    pub early_check: bool,
}

impl Broker {
    pub const IDLE: Self = Self {
        role: Role::Idle,
        loaded: [None; LOADED],
        base: 0,
        epoch: 0,
        synced: 0,
        checked: 0,
        early_check: false,
    };

    /// The end of what readers may see.
    pub fn fence_checked_end(&self) -> u8 {
        self.base + self.checked
    }
}

/// A state of the lane model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneState {
    pub lanes: [Lane; BROKERS],
    pub metadata: Metadata,
    pub brokers: [Broker; BROKERS],
    /// The offset that each record was acked at.
    pub acked: [Option<u8>; RECORDS],
}

impl LaneState {
    /// Broker 0 leads with an empty lane.
    pub fn initial() -> Self {
        let mut brokers = [Broker::IDLE; BROKERS];
        brokers[0].role = Role::Leading;
        let mut extents = [None; BROKERS];
        extents[0] = Some(0);
        Self {
            lanes: [Lane::NEW; BROKERS],
            metadata: Metadata { leader: 0, epoch: 0, extents, sealed_end: [None; BROKERS] },
            brokers,
            acked: [None; RECORDS],
        }
    }

    pub fn broker(&self, n: u8) -> &Broker {
        &self.brokers[usize::from(n)]
    }

    pub fn lane(&self, n: u8) -> &Lane {
        &self.lanes[usize::from(n)]
    }

    pub fn leading(&self, n: u8) -> bool {
        self.broker(n).role == Role::Leading
    }

    /// The record that a broker's memory holds at an offset.
    pub fn record_at(&self, n: u8, offset: u8) -> Option<u8> {
        let broker = self.broker(n);
        if offset < broker.base {
            return broker.loaded[usize::from(offset)];
        }
        self.lane(n).block(offset - broker.base).map(|block| block.record)
    }

    /// The end of a broker's log in memory, checked or not.
    pub fn log_end(&self, n: u8) -> u8 {
        self.broker(n).base + self.lane(n).written()
    }

    /// Where a broker's log in memory holds a record.
    pub fn offset_of(&self, n: u8, record: u8) -> Option<u8> {
        (0..self.log_end(n)).find(|offset| self.record_at(n, *offset) == Some(record))
    }

    /// One past the highest acked offset.
    pub fn acked_end(&self) -> u8 {
        self.acked.iter().flatten().max().map_or(0, |offset| offset + 1)
    }

    pub fn ack(&mut self, record: u8, offset: u8) {
        self.acked[usize::from(record)].get_or_insert(offset);
    }
}

/// The length of something that has a few elements.
fn count<T>(elements: impl Iterator<Item = T>) -> u8 {
    u8::try_from(elements.count()).expect("a lane has few blocks")
}
