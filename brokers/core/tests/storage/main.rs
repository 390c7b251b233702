//! Storage as a whole: lanes, stores and the engine on real folders, the conformance suites of
//! disks and object stores, and the stored formats with their samples.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "real files are what is tested, and a test may fail by a panic"
)]

mod compaction;
mod damage;
mod disk;
mod engine;
mod fixture;
mod formats;
mod full_disk;
mod garbage;
mod jobs;
mod lane;
mod object_store;
mod offline;
mod producers;
mod reads;
mod recovery;
mod s3;
mod s3_server;
mod samples;
mod seal;
mod shelf;
mod split;
mod usage;
mod watched;
