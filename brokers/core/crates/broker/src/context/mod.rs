//! What a request is answered from: the broker, the client, and the request's own circumstances.
//! See `README.md` in this folder.

mod access;
mod broker;
mod nodes;
mod payers;
mod producer_ids;
mod request;
mod sent_readers;
mod tally;

pub use broker::{Broker, BrokerSettings};
pub(crate) use nodes::Replicas;
pub(crate) use request::QuotaKind;
pub use request::{ClientFacts, ListenerFacts, RequestContext, Throttling};
pub use tally::Tally;
