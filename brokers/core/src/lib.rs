//! A Kafka broker over shared storage: the hot path of Freshet.
//!
//! Read `README.md` beside this crate for the map. Here everything is put together: a broker's
//! settings, its process, and the binding to Python. What it is made of are the crates below
//! `crates/`, whose modules have names here too.

#[cfg(all(feature = "sim", not(debug_assertions)))]
compile_error!("what `sim` brings is not for releases: build with `--features python`");

pub mod process;
#[cfg(feature = "python")]
pub mod python;
pub mod settings;

pub use freshet_access as auth;
pub use freshet_admin as admin;
pub use freshet_broker::{engine, handlers, server};
pub use freshet_configs as configs;
pub use freshet_coordinator as coordinator;
pub use freshet_etcd as etcd;
pub use freshet_gateway as gateway;
pub use freshet_inspect::{inspect, usage_reader};
pub use freshet_jobs as jobs;
pub use freshet_link as link;
pub use freshet_metadata as metadata;
pub use freshet_partition as partition;
pub use freshet_quota as quota;
pub use freshet_s3 as buckets;
pub use freshet_storage::{cache, cold, failures, lane, names, rules, standing, state, usage};
pub use freshet_telemetry as metrics;
pub use freshet_wire::{budget, codec as wire, ids, protocol, records, text};
pub use freshet_world::env;
#[cfg(any(test, feature = "sim"))]
pub use freshet_world::sim;
