//! What every metadata store must do (`store.rs`), what is true of the SQLite one besides
//! (`sqlite.rs`), and what is built on any of them (`cluster.rs`, `topics.rs`, `view.rs`); the
//! stored formats are held by samples (`samples.rs`).

mod cluster;
mod fixture;
mod samples;
mod sqlite;
mod store;
mod topics;
mod view;
