//! Classic consumer groups and committed offsets, as Kafka's group coordinator keeps them.
//!
//! - [`Group`]: the pure state machine of one group (`state`, `membership`, `join`, `sync`,
//!   `leave`, `rebalance`). It reads no clock, draws no randomness and does no I/O.
//! - [`Offsets`]: what a group has committed, and when it expires.
//! - `weight`: what both take of memory.
//! - [`records`]: the formats of `__consumer_offsets`.
//! - [`GroupCoordinator`]: the service over all coordinator partitions.

mod api;
mod context;
mod deadlines;
mod join;
mod leave;
mod membership;
mod offsets;
mod rebalance;
pub mod records;
mod service;
mod settings;
mod state;
mod subscription;
mod sync;
mod weight;

#[cfg(test)]
mod tests;

pub use api::{
    ClientInfo, DescribedGroup, DescribedMember, FetchedOffset, FetchedTopic, HeartbeatRequest,
    JoinRequest, JoinResponse, JoinedMember, LeaveRequest, LeaveResponse, LeavingMember,
    LeftMember, ListedGroup, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
    OffsetToCommit, PartitionError, Protocol, SyncRequest, SyncResponse, TopicErrors,
    TopicPartitions,
};
pub use context::{Context, Effect, Now, Persist, Purpose, StaticRejoin, Waiter};
pub use offsets::{CommittedOffset, Offsets};
pub use service::{
    DeletedTopics, GroupCoordinator, GroupLimits, GroupNews, GroupView, LoadSummary,
};
pub use settings::GroupSettings;
pub use state::{Group, GroupState};
