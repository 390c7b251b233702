//! Consumer groups and committed offsets.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, SyncGroupRequest,
};

use super::harness::{Client, HOST, PORT, TestBroker, text, topic_name};

const GROUP: &str = "readers";

fn group() -> GroupId {
    GroupId(text(GROUP))
}

/// Finds the coordinator and waits until it serves.
pub async fn coordinator(client: &mut Client) {
    for version in 0..=6 {
        let request = FindCoordinatorRequest::default();
        if version >= 4 {
            let response =
                client.call(version, request.with_coordinator_keys(vec![text(GROUP)])).await;
            let coordinator = &response.coordinators[0];
            assert_eq!((coordinator.error_code, coordinator.port), (0, i32::from(PORT)));
            assert_eq!((coordinator.key.as_str(), coordinator.host.as_str()), (GROUP, HOST));
        } else {
            let response = client.call(version, request.with_key(text(GROUP))).await;
            assert_eq!((response.error_code, response.host.as_str()), (0, HOST));
        }
    }
    loop {
        let request = ListGroupsRequest::default();
        let code = client.call(4, request).await.error_code;
        if code == 0 {
            return;
        }
        assert_eq!(code, ResponseError::CoordinatorLoadInProgress.code());
        tokio::task::yield_now().await;
    }
}

async fn join(client: &mut Client, version: i16, member_id: &str) -> JoinGroupResponse {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(b"subscription"));
    let request = JoinGroupRequest::default()
        .with_group_id(group())
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(if version >= 1 { 10_000 } else { -1 })
        .with_member_id(text(member_id))
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    client.call(version, request).await
}

/// Joins as the only member. Returns the member id and the generation.
async fn only_member(client: &mut Client, version: i16) -> (String, i32) {
    let mut joined = join(client, version, "").await;
    if joined.error_code == ResponseError::MemberIdRequired.code() {
        joined = join(client, version, &joined.member_id).await;
    }
    assert_eq!(joined.error_code, 0, "version {version}");
    assert_eq!(joined.leader, joined.member_id);
    assert_eq!(joined.protocol_name.as_deref(), Some("range"));
    assert_eq!(joined.members.len(), 1);
    let assignment = SyncGroupRequestAssignment::default()
        .with_member_id(joined.member_id.clone())
        .with_assignment(Bytes::from_static(b"share"));
    let request = SyncGroupRequest::default()
        .with_group_id(group())
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id.clone())
        .with_assignments(vec![assignment]);
    let synced = client.call(version.min(4), request).await;
    assert_eq!((synced.error_code, synced.assignment), (0, Bytes::from_static(b"share")));
    (joined.member_id.to_string(), joined.generation_id)
}

async fn commit(client: &mut Client, version: i16, member: (&str, i32), offset: i64) -> i16 {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset)
        .with_committed_metadata(Some(text("note")));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name("t"))
        .with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(group())
        .with_member_id(text(member.0))
        .with_generation_id_or_member_epoch(member.1)
        .with_topics(vec![topic]);
    let response = client.call(version, request).await;
    response.topics[0].partitions[0].error_code
}

async fn committed(client: &mut Client, version: i16) -> i64 {
    let request = OffsetFetchRequest::default();
    if version >= 8 {
        let topic = OffsetFetchRequestTopics::default()
            .with_name(topic_name("t"))
            .with_partition_indexes(vec![0]);
        let requested = OffsetFetchRequestGroup::default()
            .with_group_id(group())
            .with_topics(Some(vec![topic]));
        let response = client.call(version, request.with_groups(vec![requested])).await;
        let fetched = &response.groups[0];
        assert_eq!(fetched.error_code, 0);
        return fetched.topics[0].partitions[0].committed_offset;
    }
    let topic = OffsetFetchRequestTopic::default()
        .with_name(topic_name("t"))
        .with_partition_indexes(vec![0]);
    let request = request.with_group_id(group()).with_topics(Some(vec![topic]));
    let response = client.call(version, request).await;
    assert_eq!(response.error_code, 0);
    response.topics[0].partitions[0].committed_offset
}

#[tokio::test]
async fn a_member_joins_works_and_leaves_in_every_version() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    coordinator(&mut client).await;
    for version in 0..=9 {
        let (member_id, generation) = only_member(&mut client, version).await;
        let heartbeat = HeartbeatRequest::default()
            .with_group_id(group())
            .with_generation_id(generation)
            .with_member_id(text(&member_id));
        let response = client.call(version.min(4), heartbeat.clone()).await;
        assert_eq!(response.error_code, 0);
        let stale = heartbeat.with_generation_id(generation + 1);
        let response = client.call(version.min(4), stale).await;
        assert_eq!(response.error_code, ResponseError::IllegalGeneration.code());
        let leave = LeaveGroupRequest::default().with_group_id(group());
        let leave = match version {
            0..=2 => leave.with_member_id(text(&member_id)),
            _ => leave.with_members(vec![
                MemberIdentity::default()
                    .with_member_id(text(&member_id))
                    .with_group_instance_id(None)
                    .with_reason(None),
            ]),
        };
        let left = client.call(version.min(5), leave.clone()).await;
        assert_eq!(left.error_code, 0);
        let again = client.call(version.min(5), leave).await;
        let code = again.members.first().map_or(again.error_code, |member| member.error_code);
        assert_eq!(code, ResponseError::UnknownMemberId.code());
    }
}

#[tokio::test]
async fn offsets_are_committed_fetched_and_deleted() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    coordinator(&mut client).await;
    assert_eq!(committed(&mut client, 5).await, -1);
    for version in 2..=8 {
        assert_eq!(commit(&mut client, version, ("", -1), i64::from(version)).await, 0);
        for fetch in 1..=9 {
            assert_eq!(committed(&mut client, fetch).await, i64::from(version));
        }
    }
    assert_eq!(commit(&mut client, 9, ("", -1), 9).await, 0);
    let all = OffsetFetchRequest::default().with_group_id(group()).with_topics(None);
    let all = client.call(7, all).await;
    assert_eq!(all.topics[0].name, topic_name("t"));
    let partitions = vec![OffsetDeleteRequestPartition::default()];
    let topic = |name: &str| {
        OffsetDeleteRequestTopic::default()
            .with_name(topic_name(name))
            .with_partitions(partitions.clone())
    };
    let request = OffsetDeleteRequest::default()
        .with_group_id(group())
        .with_topics(vec![topic("t"), topic("missing")]);
    let deleted = client.call(0, request).await;
    assert_eq!(deleted.error_code, 0);
    let codes: Vec<_> = deleted
        .topics
        .iter()
        .map(|topic| (topic.name.to_string(), topic.partitions[0].error_code))
        .collect();
    let unknown = ResponseError::UnknownTopicOrPartition.code();
    assert_eq!(codes, [("missing".to_owned(), unknown), ("t".to_owned(), 0)]);
    assert_eq!(committed(&mut client, 8).await, -1);
}

#[tokio::test]
async fn commits_for_what_does_not_exist_are_refused_by_partition() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    coordinator(&mut client).await;
    let code = commit(&mut client, 8, ("", -1), 5).await;
    assert_eq!(code, ResponseError::UnknownTopicOrPartition.code());
    client.create_topic("t", 1, &[]).await;
    let code = commit(&mut client, 8, ("nobody", 3), 5).await;
    assert_eq!(code, ResponseError::IllegalGeneration.code());
    let (member_id, generation) = only_member(&mut client, 9).await;
    let code = commit(&mut client, 8, ("nobody", generation), 5).await;
    assert_eq!(code, ResponseError::UnknownMemberId.code());
    assert_eq!(commit(&mut client, 8, (&member_id, generation), 5).await, 0);
}

#[tokio::test]
async fn groups_are_listed_described_and_deleted() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    coordinator(&mut client).await;
    let (member_id, _) = only_member(&mut client, 9).await;
    for version in 0..=5 {
        let listed = client.call(version, ListGroupsRequest::default()).await;
        assert_eq!(listed.groups.len(), 1);
        let listed_group = &listed.groups[0];
        assert_eq!(
            (&listed_group.group_id, listed_group.protocol_type.as_str()),
            (&group(), "consumer")
        );
        if version >= 4 {
            assert_eq!(listed_group.group_state.as_str(), "Stable");
        }
    }
    for version in 0..=6 {
        let request = DescribeGroupsRequest::default()
            .with_groups(vec![group()])
            .with_include_authorized_operations(version >= 3);
        let described = client.call(version, request).await;
        let described_group = &described.groups[0];
        assert_eq!(
            (described_group.error_code, described_group.group_state.as_str()),
            (0, "Stable")
        );
        let member = &described_group.members[0];
        assert_eq!(member.member_id.as_str(), member_id);
        assert_eq!(member.client_id.as_str(), "tests");
        assert_eq!(member.client_host.as_str(), "/10.1.2.3");
        assert_eq!(&member.member_assignment[..], b"share");
        if version >= 3 {
            // Read, Delete, Describe, DescribeConfigs, AlterConfigs.
            assert_eq!(described_group.authorized_operations, 0b1101_0100_1000);
        }
    }
    let delete =
        |name: &str| DeleteGroupsRequest::default().with_groups_names(vec![GroupId(text(name))]);
    for version in 0..=2 {
        let response = client.call(version, delete(GROUP)).await;
        assert_eq!(response.results[0].error_code, ResponseError::NonEmptyGroup.code());
        let response = client.call(version, delete("missing")).await;
        assert_eq!(response.results[0].error_code, ResponseError::GroupIdNotFound.code());
    }
    let leave =
        LeaveGroupRequest::default().with_group_id(group()).with_member_id(text(&member_id));
    assert_eq!(client.call(1, leave).await.error_code, 0);
    assert_eq!(client.call(2, delete(GROUP)).await.results[0].error_code, 0);
    assert!(client.call(5, ListGroupsRequest::default()).await.groups.is_empty());
}

#[tokio::test]
async fn there_is_no_coordinator_for_transactions() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for key_type in [1, 2, 9] {
        let request = FindCoordinatorRequest::default()
            .with_key_type(key_type)
            .with_coordinator_keys(vec![text("x")]);
        let response = client.call(4, request).await;
        let coordinator = &response.coordinators[0];
        assert_eq!(coordinator.error_code, ResponseError::InvalidRequest.code());
        assert_eq!(coordinator.node_id.0, -1);
    }
}

#[tokio::test]
async fn the_offsets_topic_is_internal_and_compacted() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    coordinator(&mut client).await;
    let topic = &client.metadata(&["__consumer_offsets"]).await.topics[0];
    assert_eq!((topic.error_code, topic.is_internal, topic.partitions.len()), (0, true, 2));
}
