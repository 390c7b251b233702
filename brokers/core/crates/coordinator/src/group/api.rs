//! Requests and responses of the group coordinator. Handlers map them to and from the messages of
//! the protocol; what depends on a version of an API says so.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;

/// Partitions by topic.
pub type TopicPartitions = Vec<(String, Vec<i32>)>;

/// A partition's number and what went wrong with it.
pub type PartitionError = (i32, Option<ResponseError>);

/// Errors by topic and partition, in the order of the request.
pub type TopicErrors = Vec<(String, Vec<PartitionError>)>;

/// Who sends a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientInfo {
    /// `client_id` of the request header, empty where it has none.
    pub client_id: String,
    /// The client's address in the form that Kafka reports: `/10.0.0.1`.
    pub client_host: String,
}

/// One way in which a member can be assigned its share of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// Its name, such as `range`.
    pub name: String,
    /// Bytes that the leader gets from the member, such as its subscription.
    pub metadata: Bytes,
}

impl Protocol {
    /// Bytes of name and metadata together.
    pub(super) fn size(&self) -> usize {
        self.name.len() + self.metadata.len()
    }
}

/// `JoinGroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinRequest {
    /// Who asks: the principal for which records are metered that the request makes.
    pub payer: Arc<str>,
    /// The version of the API. From version 4 a new dynamic member must send its request again with
    /// the id that it got; from 9 a static leader may be asked to skip the assignment (KIP-814).
    pub api_version: i16,
    /// The client that sent the request.
    pub client: ClientInfo,
    /// The group.
    pub group_id: String,
    /// Empty for a new member.
    pub member_id: String,
    /// Set for a static member (KIP-345).
    pub instance_id: Option<String>,
    /// How long the member may be silent.
    pub session_timeout_ms: i32,
    /// How long a rebalance waits for the member; negative (version 0) means the session timeout.
    pub rebalance_timeout_ms: i32,
    /// Such as `consumer` or `connect`.
    pub protocol_type: String,
    /// The protocols that the member supports, the preferred one first.
    pub protocols: Vec<Protocol>,
    /// Why the client joins (from version 8). Only logged.
    pub reason: Option<String>,
}

/// A member in the answer to the leader's `JoinGroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedMember {
    /// The member.
    pub member_id: String,
    /// Set for a static member.
    pub instance_id: Option<String>,
    /// Its metadata for the selected protocol.
    pub metadata: Bytes,
}

/// Answer to `JoinGroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinResponse {
    /// What went wrong.
    pub error: Option<ResponseError>,
    /// The generation, or −1.
    pub generation: i32,
    /// The group's protocol type.
    pub protocol_type: Option<String>,
    /// The selected protocol.
    pub protocol_name: Option<String>,
    /// Member id of the leader; empty where there is none.
    pub leader: String,
    /// The leader must not assign anew (from version 9).
    pub skip_assignment: bool,
    /// The id of the member that asked; empty where it must join as a new one.
    pub member_id: String,
    /// All members, for the leader only.
    pub members: Vec<JoinedMember>,
}

impl JoinResponse {
    /// The answer that refuses a member.
    pub fn refused(member_id: impl Into<String>, error: ResponseError) -> Self {
        Self {
            error: Some(error),
            generation: -1,
            protocol_type: None,
            protocol_name: None,
            leader: String::new(),
            skip_assignment: false,
            member_id: member_id.into(),
            members: Vec::new(),
        }
    }
}

/// `SyncGroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncRequest {
    /// Who asks: the principal for which records are metered that the request makes.
    pub payer: Arc<str>,
    /// The group.
    pub group_id: String,
    /// The generation of the `JoinGroup` answer.
    pub generation: i32,
    /// The member.
    pub member_id: String,
    /// Set for a static member.
    pub instance_id: Option<String>,
    /// Checked where it is set (from version 5).
    pub protocol_type: Option<String>,
    /// Checked where it is set (from version 5).
    pub protocol_name: Option<String>,
    /// Assignments by member id, from the leader only.
    pub assignments: Vec<(String, Bytes)>,
}

/// Answer to `SyncGroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncResponse {
    /// What went wrong.
    pub error: Option<ResponseError>,
    /// The group's protocol type.
    pub protocol_type: Option<String>,
    /// The selected protocol.
    pub protocol_name: Option<String>,
    /// The member's share of the work.
    pub assignment: Bytes,
}

impl SyncResponse {
    /// The answer that refuses a member.
    pub fn refused(error: ResponseError) -> Self {
        Self {
            error: Some(error),
            protocol_type: None,
            protocol_name: None,
            assignment: Bytes::new(),
        }
    }
}

/// `Heartbeat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatRequest {
    /// The group.
    pub group_id: String,
    /// The member's generation.
    pub generation: i32,
    /// The member.
    pub member_id: String,
    /// Set for a static member.
    pub instance_id: Option<String>,
}

/// One member of `LeaveGroup`. Versions below 3 name exactly one, without an instance id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingMember {
    /// Empty where an administrator removes a static member by its instance id.
    pub member_id: String,
    /// Set for a static member.
    pub instance_id: Option<String>,
    /// Why (from version 5). Only logged.
    pub reason: Option<String>,
}

/// `LeaveGroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveRequest {
    /// Who asks: the principal for which records are metered that the request makes.
    pub payer: Arc<str>,
    /// The group.
    pub group_id: String,
    /// The members that leave.
    pub members: Vec<LeavingMember>,
}

/// A member in the answer to `LeaveGroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftMember {
    /// As in the request.
    pub member_id: String,
    /// As in the request.
    pub instance_id: Option<String>,
    /// What went wrong.
    pub error: Option<ResponseError>,
}

/// Answer to `LeaveGroup`. Below version 3 the response has one error: that of the request, else
/// that of the one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveResponse {
    /// What went wrong with the request as a whole; then `members` is empty.
    pub error: Option<ResponseError>,
    /// In the order of the request.
    pub members: Vec<LeftMember>,
}

/// One offset of `OffsetCommit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetToCommit {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The next offset to consume.
    pub offset: i64,
    /// Leader epoch of the last record consumed, or −1.
    pub leader_epoch: i32,
    /// Text that the client stores with it; absent means empty.
    pub metadata: Option<String>,
}

/// `OffsetCommit`. The caller must have checked that the topics exist and that the client may use
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetCommitRequest {
    /// Who asks: the principal for which records are metered that the request makes.
    pub payer: Arc<str>,
    /// Version of the API: from 9 an unknown group is `GROUP_ID_NOT_FOUND`.
    pub api_version: i16,
    /// The group; may be empty.
    pub group_id: String,
    /// The member, or empty.
    pub member_id: String,
    /// Set for a static member.
    pub instance_id: Option<String>,
    /// The member's generation, or −1.
    pub generation: i32,
    /// How long to keep the offsets (versions 2 to 4), or −1 for the broker's retention.
    pub retention_time_ms: i64,
    /// The offsets to commit.
    pub offsets: Vec<OffsetToCommit>,
}

/// One group of `OffsetFetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetFetchRequest {
    /// The group; may be empty.
    pub group_id: String,
    /// The partitions whose offsets are fetched; `None` for all committed ones.
    pub topics: Option<TopicPartitions>,
    /// Whether to wait for the commits that are under way (from version 7).
    pub require_stable: bool,
}

/// A partition in the answer to `OffsetFetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedOffset {
    /// The partition.
    pub partition: i32,
    /// The committed offset, or −1.
    pub offset: i64,
    /// Its leader epoch, or −1.
    pub leader_epoch: i32,
    /// Its metadata.
    pub metadata: String,
}

/// A topic in the answer to `OffsetFetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedTopic {
    /// The topic.
    pub topic: String,
    /// In the order of the request, or by number.
    pub partitions: Vec<FetchedOffset>,
}

/// `OffsetDelete`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetDeleteRequest {
    /// Who asks: the principal for which records are metered that the request makes.
    pub payer: Arc<str>,
    /// The group.
    pub group_id: String,
    /// The partitions whose offsets are deleted.
    pub topics: TopicPartitions,
}

/// A group in the answer to `ListGroups`. Its type is always `classic`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    /// The group.
    pub group_id: String,
    /// Such as `consumer`; empty for a group that only commits offsets.
    pub protocol_type: String,
    /// Kafka's name of the state.
    pub state: &'static str,
}

/// A member in the answer to `DescribeGroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    /// The member.
    pub member_id: String,
    /// Set for a static member.
    pub instance_id: Option<String>,
    /// The client that is this member.
    pub client: ClientInfo,
    /// Its metadata for the selected protocol; empty unless the group is stable.
    pub metadata: Bytes,
    /// Its share of the work.
    pub assignment: Bytes,
}

/// A group in the answer to `DescribeGroups`. The caller adds the authorized operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedGroup {
    /// The group.
    pub group_id: String,
    /// What went wrong.
    pub error: Option<ResponseError>,
    /// A message about the error (from version 6).
    pub error_message: Option<String>,
    /// Kafka's name of the state.
    pub state: &'static str,
    /// Such as `consumer`.
    pub protocol_type: String,
    /// The selected protocol; empty unless the group is stable.
    pub protocol_data: String,
    /// By member id.
    pub members: Vec<DescribedMember>,
}
