//! What was split: segments in objects, and the manifests that name them. See `README.md` here.

use crate::cold::store::StoreError;

pub mod hedge;
pub mod location;
pub mod manifest;
pub mod reader;
pub mod s3;
pub mod segment;
pub mod store;

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
    fn damaged(object: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged { object: object.into(), what: what.into() }
    }
}
