//! What a request is answered from: the broker, the client, and the request's own circumstances.
//! See `README.md` in this folder.

mod access;
mod broker;
mod producer_ids;
mod request;

pub use broker::{Broker, BrokerSettings};
pub use request::{ClientFacts, ListenerFacts, RequestContext, Throttling};
