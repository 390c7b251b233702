//! A whole broker in one process, with clients that use Kafka's protocol: the engine and the server
//! are real, storage is a temporary folder, and the metadata store is in memory.
#![allow(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests may")]

mod harness;
mod scram;

mod access;
mod admin;
mod cases;
mod changes;
mod every_byte;
mod every_version;
mod fetch;
mod groups;
mod hidden_topics;
mod internal_topics;
mod limits;
mod links;
mod offsets;
mod payers;
mod produce;
mod quotas;
mod reassignments;
mod sessions;
mod traffic;
mod unbilled;
