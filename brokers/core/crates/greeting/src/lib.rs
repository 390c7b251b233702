//! The answers of brokers and gateways to a client that has not authenticated yet, and the form of
//! any answer.

pub mod addresses;
pub mod api_versions;
pub mod call;
pub mod log_limit;
pub mod refusal_delay;
pub mod sasl_authenticate;
pub mod sasl_handshake;
