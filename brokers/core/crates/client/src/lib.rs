//! A Kafka client for the service's own processes, which tenants share.
//!
//! What a cluster's brokers answer may hold anything that a tenant sent. So every length is checked
//! against the bytes that are there, memory is taken for bytes that arrived and within budgets, and
//! every call has a deadline. A call that is dropped ends, and with it its connection.
//!
//! [`ClusterClient`] reaches one cluster; one runtime serves any number of them.

mod apis;
mod batches;
mod calls;
mod cluster;
mod connection;
mod error;
mod pool;
mod scram;

pub use apis::access::AclQuery;
pub use apis::groups::{DescribedGroup, DescribedMember, ListedGroup};
pub use apis::offsets::{CommittedOffset, OffsetSpec};
pub use batches::{Batch, BatchHead, Damage, FetchedPartition, OpenBatch, Record, RecordHeader};
pub use calls::fetch::{FetchLimits, Position};
pub use calls::produce::{NewRecord, Produced};
pub use cluster::{ClusterClient, Login, Memory};
pub use error::{ClientError, KafkaError};
pub use freshet_access::acl::BindingCodes;

/// A partition, by its topic's name and its number.
pub type Place = (String, i32);
