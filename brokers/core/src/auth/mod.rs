//! Who a client is (SASL) and what it may do (ACLs).

pub mod types;
