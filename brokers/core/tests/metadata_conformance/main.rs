//! What every metadata store must do (`store.rs`), what is true of the SQLite one besides
//! (`sqlite.rs`) and of etcd (`etcd.rs`), and what is built on any of them (`cluster.rs`,
//! `topics.rs`, `shelf.rs`, `view.rs`); the stored formats are held by samples (`samples.rs`).
#![allow(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests may")]

mod cluster;
mod etcd;
mod etcd_server;
mod fixture;
mod samples;
mod shelf;
mod sqlite;
mod store;
mod topics;
mod view;
