//! What each Kafka API answers: one file an API. See `README.md` in this folder.
//!
//! A handler takes a decoded request and gives a response; frames, order and limits are the
//! server's (`server/`).

mod access;
mod broker;
mod context;
mod errors;
mod producer_ids;
mod topics;

pub mod api_versions;
pub mod fetch;
pub mod metadata;
pub mod produce;
pub mod sasl_authenticate;
pub mod sasl_handshake;

pub use broker::{Broker, BrokerSettings};
pub use context::{ClientFacts, ListenerFacts, RequestContext};
