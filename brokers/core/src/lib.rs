//! A Kafka broker over shared storage: the hot path of Freshet.
//!
//! Read `README.md` beside this crate for the map. One folder a concern; nothing outside `env`
//! touches the real clock, randomness, disk or network.

pub mod admin;
pub mod auth;
pub mod buckets;
pub mod cache;
pub mod cold;
pub mod configs;
pub mod coordinator;
pub mod engine;
pub mod failures;
pub mod gateway;
pub mod handlers;
pub mod inspect;
pub mod jobs;
pub mod lane;
pub mod link;
pub mod metadata;
pub mod names;
pub mod partition;
pub mod process;
#[cfg(feature = "python")]
pub mod python;
pub mod quota;
pub mod rules;
pub mod server;
pub mod settings;
pub mod standing;
pub mod state;
pub mod usage;
pub mod usage_reader;
pub use freshet_telemetry as metrics;
pub use freshet_wire::{budget, codec as wire, ids, protocol, records, text};
pub use freshet_world::env;
#[cfg(any(test, feature = "sim"))]
pub use freshet_world::sim;
