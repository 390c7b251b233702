//! What was split: segments in objects, and the manifests that name them. See `README.md` here.

pub mod invariants;
pub mod manifest;
pub mod reader;
mod removal;
pub mod segment;

pub use crate::failures::ColdError;
