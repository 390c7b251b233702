//! A Kafka broker over shared storage: the hot path of Freshet.
//!
//! Read `README.md` beside this crate for the map. One folder a concern; nothing outside `env`
//! touches the real clock, randomness, disk or network.

pub mod auth;
pub mod configs;
pub mod env;
pub mod ids;
pub mod lane;
pub mod rules;
pub mod standing;
pub mod wire;
