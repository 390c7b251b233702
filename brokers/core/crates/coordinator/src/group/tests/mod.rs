//! Tests of the group coordinator: first of the state machine alone, then of the service on a log
//! in memory.

// Requests are built where they are handed over.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod expiry;
mod join;
mod leave;
mod limits;
mod machine;
mod property;
mod records;
mod service;
mod service_faults;
mod service_news;
mod service_offsets;
mod service_payers;
mod service_support;
mod static_members;
mod sync;
