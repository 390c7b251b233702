//! A Kafka broker over shared storage: the hot path of Freshet.
//!
//! Read `README.md` beside this crate for the map. One folder a concern; nothing outside `env`
//! touches the real clock, randomness, disk or network.

pub mod admin;
pub mod auth;
pub mod buckets;
pub mod budget;
pub mod cache;
pub mod cold;
pub mod configs;
pub mod coordinator;
pub mod engine;
pub mod env;
pub mod failures;
pub mod gateway;
pub mod handlers;
pub mod ids;
pub mod inspect;
pub mod jobs;
pub mod lane;
pub mod link;
pub mod metadata;
pub mod metrics;
pub mod names;
pub mod partition;
pub mod process;
pub mod protocol;
#[cfg(feature = "python")]
pub mod python;
pub mod quota;
pub mod records;
pub mod rules;
pub mod server;
pub mod settings;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod standing;
pub mod state;
pub mod text;
pub mod usage;
pub mod usage_reader;
pub mod wire;
