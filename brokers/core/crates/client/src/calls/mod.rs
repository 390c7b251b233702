//! The calls of [`ClusterClient`](crate::ClusterClient). Each goes to the brokers that are
//! responsible, and again where these have changed, until its deadline.

pub(crate) mod access;
pub(crate) mod fetch;
pub(crate) mod groups;
pub(crate) mod offsets;
pub(crate) mod produce;

/// How many requests one call has under way at a time.
const AT_ONCE: usize = 4;
