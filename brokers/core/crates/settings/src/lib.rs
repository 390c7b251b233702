//! What settings of brokers and gateways have in common: reading TOML, the log, threads.

pub mod log;
pub mod parse;
pub mod threads;
