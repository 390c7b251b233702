//! The metadata of a cluster: topics, partitions and their leaders, incarnations, configurations,
//! ACLs and users. `README.md` beside this file has the map and the invariants.
//!
//! [`store`] is the interface that every store has, [`sqlite`] the embedded one, [`etcd`] that of
//! several machines, [`location`] how settings name them, [`schema`] what is kept under which key,
//! [`cluster`] the only way to write it, [`view`] an image of it in memory; [`cell`] is what a cell
//! keeps of all its clusters beside.

pub mod cell;
pub mod cluster;
pub mod etcd;
pub mod location;
pub mod names;
pub mod schema;
pub mod sqlite;
pub mod store;
pub mod view;

mod image;

pub use cell::{CellError, CellMetadata};
pub use cluster::{ClusterError, ClusterMetadata, Fence};
pub use etcd::EtcdStore;
pub use location::open_store;
pub use sqlite::SqliteStore;
pub use store::{MetadataError, MetadataStore, ScopedStore};
pub use view::MetadataView;
