//! Why what is stored could not be written or read.

use freshet_wire::codec::WireError;
use freshet_wire::ids::Incarnation;
use freshet_world::env::DiskError;
use freshet_world::env::store::StoreError;
use freshet_world::invariants::BrokenInvariant;

/// Why a lane could not be written or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LaneError {
    /// The disk failed; what is on it is unknown.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Another incarnation has fenced the lane.
    #[error("the owner token of lane {0} is not ours any more")]
    TokenLost(Incarnation),
    /// Something that was durable cannot be read.
    #[error("lane {incarnation}, file {file}, position {position}: damaged: {what}")]
    Damaged {
        /// The incarnation whose lane it is.
        incarnation: Incarnation,
        /// The number of the file.
        file: u64,
        /// Where in the file, in bytes.
        position: u64,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A change that would have broken what must hold.
    #[error(transparent)]
    Invariant(#[from] BrokenInvariant),
    /// The lane was closed and takes nothing more.
    #[error("lane {0} is closed")]
    Closed(Incarnation),
}

impl LaneError {
    /// The error for something that was durable and cannot be read.
    pub fn damaged(
        incarnation: Incarnation,
        file: u64,
        position: u64,
        what: impl Into<String>,
    ) -> Self {
        Self::Damaged { incarnation, file, position, what: what.into() }
    }

    /// The error for a block whose index does not decode.
    pub fn unreadable(
        incarnation: Incarnation,
        file: u64,
        position: u64,
        error: &WireError,
    ) -> Self {
        Self::damaged(incarnation, file, position, format!("its index does not decode: {error}"))
    }
}

/// Why stored records could not be written or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ColdError {
    /// The object store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Bytes whose checksum or content is wrong. They are never served.
    #[error("{object} is damaged: {what}; restore it from a backup of the bucket")]
    Damaged {
        /// The object's key.
        object: String,
        /// What is wrong.
        what: String,
    },
}

impl ColdError {
    /// The error for bytes of an object whose checksum or content is wrong.
    pub fn damaged(object: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged { object: object.into(), what: what.into() }
    }
}
