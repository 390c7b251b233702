//! A whole broker in memory of one process, spoken to in Kafka's protocol: real engine and server,
//! a temporary folder, metadata in memory.
#![allow(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests may")]

mod harness;
mod scram;

mod access;
mod admin;
mod every_version;
mod fetch;
mod groups;
mod hidden_topics;
mod internal_topics;
mod links;
mod offsets;
mod produce;
mod quotas;
mod sessions;
