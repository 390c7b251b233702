//! Why what is stored could not be written or read.

use freshet_wire::codec::WireError;
use freshet_wire::ids::Incarnation;
use freshet_world::env::DiskError;
use freshet_world::env::store::StoreError;

/// Why a lane could not be written or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LaneError {
    /// The disk failed; what it holds is unknown.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Another incarnation was given the right to act.
    #[error("the owner token of lane {0} is not ours any more")]
    TokenLost(Incarnation),
    /// Something that was durable cannot be read.
    #[error("lane {incarnation}, file {file}, position {position}: damaged: {what}")]
    Damaged {
        /// Whose lane.
        incarnation: Incarnation,
        /// Which file of it.
        file: u64,
        /// Where in the file, in bytes.
        position: u64,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The lane was closed and takes nothing more.
    #[error("lane {0} is closed")]
    Closed(Incarnation),
}

impl LaneError {
    /// Something that was durable and cannot be read.
    pub fn damaged(
        incarnation: Incarnation,
        file: u64,
        position: u64,
        what: impl Into<String>,
    ) -> Self {
        Self::Damaged { incarnation, file, position, what: what.into() }
    }

    /// A block whose index does not decode.
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
    /// The object store's answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Bytes that do not check; never served.
    #[error("{object} is damaged: {what}; restore it from a backup of the bucket")]
    Damaged {
        /// Which object.
        object: String,
        /// What is wrong.
        what: String,
    },
}

impl ColdError {
    /// Bytes of an object that do not check.
    pub fn damaged(object: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged { object: object.into(), what: what.into() }
    }
}
