//! What brokers and gateways tell a client before they know who it is, and the form of any answer.

pub mod api_versions;
pub mod call;
pub mod log_limit;
pub mod sasl_authenticate;
pub mod sasl_handshake;
