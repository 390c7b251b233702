//! What every metadata store must do (`freshet_metadata::conformance`), what is true of the SQLite
//! one besides (`sqlite.rs`), and what is built on any of them (`cluster.rs`, `topics.rs`,
//! `hidden_topics.rs`, `view.rs`, and `freshet_metadata::conformance::limits`); the stored formats
//! are held by samples (`samples.rs`).
#![allow(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests may")]

mod cluster;
mod fixture;
mod hidden_topics;
mod limits {
    freshet_metadata::limits_conformance!(on_file, in_memory, scoped);
}
mod samples;
mod sqlite;
mod topics;
mod view;

use fixture::{in_memory, on_file, scoped};

freshet_metadata::metadata_conformance!(on_file, in_memory, scoped);
