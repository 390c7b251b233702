//! The Kafka protocol: frames, headers, versions, and the codecs of Produce and Fetch.
//!
//! Other APIs are decoded by the crate `kafka-protocol`, which trusts the client's lengths; so each
//! body goes through [`guard::check`] first.

pub mod arriving;
pub mod decode;
pub mod encode;
pub mod fetch;
pub mod frame;
pub mod guard;
pub mod header;
pub mod leader;
pub mod produce;
pub mod versions;
