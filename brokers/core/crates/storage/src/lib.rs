//! Storage: lanes, the objects that are split out of them, and memory in front of both.
//!
//! [`lane`] is what was just written, [`cold`] what was split, [`cache`] blocks of both in memory,
//! [`state`] what a partition remembers up to an offset. [`names`] and [`failures`] are what they
//! share; [`rules`] and [`liveness`] say whether they may act, [`usage`] counts for the meter, and
//! [`payers`] says by whom.

pub mod cache;
pub mod cold;
pub mod failures;
mod kinds;
pub mod lane;
pub mod liveness;
pub mod names;
pub mod payers;
pub mod rules;
pub mod state;
pub mod usage;
