//! Authentication by SASL and authorization by ACLs.

pub mod acl;
pub mod derivation;
pub mod plain;
pub mod principal;
pub mod sasl;
pub mod scram;
pub mod types;
