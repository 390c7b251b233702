//! The engine on real folders: starts after clean stops and crashes, jobs, and what they leave.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "real files are what is tested, and a test may fail by a panic"
)]

mod adoption;
mod compaction;
mod copies;
mod engine;
mod fixture;
mod garbage;
mod hidden_topics;
mod jobs;
#[path = "../../../storage/tests/storage/fixture.rs"]
#[allow(dead_code, reason = "tests of lanes use the rest")]
mod lane_fixture;
mod offline;
mod producers;
mod reads;
mod removal;
mod split;
mod usage;
