//! The metadata of a cluster: topics, partitions and their leaders, incarnations, configurations,
//! ACLs and users. The crate's `README.md` has the map and the invariants.
//!
//! [`store`] is the interface that every store has, [`sqlite`] the embedded one; that of several
//! machines is the crate `freshet-etcd`. [`schema`] says what is kept under which key, [`cluster`]
//! is the only way to write it, [`view`] an image of it in memory; [`cell`] has a cell's own
//! records of all its clusters.

pub mod cell;
pub mod cluster;
#[cfg(any(test, feature = "sim"))]
pub mod conformance;
pub mod names;
#[cfg(any(test, feature = "sim"))]
pub mod samples;
pub mod schema;
pub mod sqlite;
pub mod store;
pub mod texts;
pub mod view;

mod image;
mod kinds;

pub use cell::{CellError, CellMetadata};
pub use cluster::{ClusterError, ClusterMetadata, Fence};
pub use sqlite::SqliteStore;
pub use store::{MetadataError, MetadataStore, ScopedStore};
pub use view::MetadataView;
