//! ACLs: what is refused without them, what they allow, and how they are altered.

use std::collections::BTreeSet;

use bytes::Bytes;
use freshet_access::acl::AuthorizerSettings;
use freshet_access::principal::Principal;
use freshet_access::sasl::Mechanism;
use freshet_access::types::{AclBinding, Operation, PatternType, Permission, ResourceType};
use freshet_broker::context::BrokerSettings;
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::alter_user_scram_credentials_request::ScramCredentialDeletion;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterPartitionReassignmentsRequest, AlterUserScramCredentialsRequest,
    CreateAclsRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteAclsRequest,
    DeleteGroupsRequest, DeleteTopicsRequest, DescribeAclsRequest, DescribeConfigsRequest,
    DescribeGroupsRequest, DescribeLogDirsRequest, DescribeUserScramCredentialsRequest,
    ElectLeadersRequest, FetchRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest,
    InitProducerIdRequest, JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest,
    ListOffsetsRequest, ListPartitionReassignmentsRequest, MetadataRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest, SaslAuthenticateRequest,
    SaslHandshakeRequest, SyncGroupRequest, TransactionalId,
};

use super::harness::{Client, Setup, TestBroker, batch, text, topic_name};

pub async fn secured() -> TestBroker {
    let settings = BrokerSettings {
        authorizer: Some(AuthorizerSettings {
            super_users: BTreeSet::from([Principal::user("admin")]),
            allow_everyone_if_no_acl_found: false,
        }),
        ..BrokerSettings::default()
    };
    let sasl_mechanisms = vec![Mechanism::Plain];
    let broker = TestBroker::with(Setup { settings, sasl_mechanisms, ..Setup::default() }).await;
    for user in ["admin", "alice"] {
        broker.add_user(user, "secret").await;
    }
    broker
}

pub async fn client_of(broker: &TestBroker, user: &str) -> Client {
    let mut client = broker.client();
    let mechanism = SaslHandshakeRequest::default().with_mechanism(text("PLAIN"));
    assert_eq!(client.call(1, mechanism).await.error_code, 0);
    let token = Bytes::from(format!("\0{user}\0secret"));
    let token = SaslAuthenticateRequest::default().with_auth_bytes(token);
    assert_eq!(client.call(2, token).await.error_code, 0);
    client
}

async fn allow(broker: &TestBroker, kind: ResourceType, name: &str, operation: Operation) {
    let binding = AclBinding {
        resource_type: kind,
        resource_name: name.to_owned(),
        pattern_type: PatternType::Literal,
        principal: "User:alice".to_owned(),
        host: "*".to_owned(),
        operation,
        permission: Permission::Allow,
    };
    let revision = broker.engine.metadata.add_acls(None, &[binding]).await.unwrap();
    broker.engine.view.wait_for(revision).await.unwrap();
}

fn group() -> GroupId {
    GroupId(text("g"))
}

/// The error code that a client gets from each API, by name. The topic `t` exists.
async fn codes(client: &mut Client) -> Vec<(&'static str, i16)> {
    let mut codes = of_data(client).await;
    codes.extend(of_groups(client).await);
    codes.extend(of_topics(client).await);
    codes.extend(of_cluster(client).await);
    codes
}

async fn of_data(client: &mut Client) -> Vec<(&'static str, i16)> {
    let produce = client.produce("t", 0, batch(&["x"])).await.0;
    let topic = FetchTopic::default()
        .with_topic(topic_name("t"))
        .with_partitions(vec![FetchPartition::default().with_partition_max_bytes(1000)]);
    let fetch = FetchRequest::default().with_session_epoch(-1).with_topics(vec![topic]);
    let fetch = client.call(8, fetch.with_replica_id((-1).into())).await;
    let partition = ListOffsetsPartition::default().with_timestamp(-1);
    let topic =
        ListOffsetsTopic::default().with_name(topic_name("t")).with_partitions(vec![partition]);
    let list = client.call(3, ListOffsetsRequest::default().with_topics(vec![topic])).await;
    let partition = OffsetForLeaderPartition::default().with_current_leader_epoch(-1);
    let topic = OffsetForLeaderTopic::default()
        .with_topic(topic_name("t"))
        .with_partitions(vec![partition]);
    let epochs =
        client.call(3, OffsetForLeaderEpochRequest::default().with_topics(vec![topic])).await;
    let id = InitProducerIdRequest::default().with_transactional_id(None);
    let id = client.call(4, id).await.error_code;
    let transactional =
        InitProducerIdRequest::default().with_transactional_id(Some(TransactionalId(text("x"))));
    let transactional = client.call(4, transactional).await.error_code;
    vec![
        ("Produce", produce),
        ("Fetch", fetch.responses[0].partitions[0].error_code),
        ("ListOffsets", list.topics[0].partitions[0].error_code),
        ("OffsetForLeaderEpoch", epochs.topics[0].partitions[0].error_code),
        ("InitProducerId", id),
        ("InitProducerId transactional", transactional),
    ]
}

async fn of_groups(client: &mut Client) -> Vec<(&'static str, i16)> {
    let find = FindCoordinatorRequest::default().with_key(text("g"));
    let find = client.call(3, find).await.error_code;
    let join = JoinGroupRequest::default().with_group_id(group()).with_session_timeout_ms(10_000);
    let join = client.call(5, join).await.error_code;
    let sync = client.call(3, SyncGroupRequest::default().with_group_id(group())).await.error_code;
    let beat = client.call(3, HeartbeatRequest::default().with_group_id(group())).await.error_code;
    let leave =
        client.call(3, LeaveGroupRequest::default().with_group_id(group())).await.error_code;
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name("t"))
        .with_partitions(vec![OffsetCommitRequestPartition::default()]);
    let commit = OffsetCommitRequest::default()
        .with_group_id(group())
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    let commit = client.call(8, commit).await.topics[0].partitions[0].error_code;
    let requested = OffsetFetchRequestGroup::default().with_group_id(group()).with_topics(None);
    let fetch = client.call(8, OffsetFetchRequest::default().with_groups(vec![requested])).await;
    let delete = OffsetDeleteRequest::default().with_group_id(group());
    let delete = client.call(0, delete).await.error_code;
    let describe = DescribeGroupsRequest::default().with_groups(vec![group()]);
    let describe = client.call(5, describe).await.groups[0].error_code;
    let remove = DeleteGroupsRequest::default().with_groups_names(vec![group()]);
    let remove = client.call(2, remove).await.results[0].error_code;
    let list = client.call(4, ListGroupsRequest::default()).await.error_code;
    vec![
        ("FindCoordinator", find),
        ("JoinGroup", join),
        ("SyncGroup", sync),
        ("Heartbeat", beat),
        ("LeaveGroup", leave),
        ("OffsetCommit", commit),
        ("OffsetFetch", fetch.groups[0].error_code),
        ("OffsetDelete", delete),
        ("DescribeGroups", describe),
        ("DeleteGroups", remove),
        ("ListGroups", list),
    ]
}

async fn of_topics(client: &mut Client) -> Vec<(&'static str, i16)> {
    let metadata = client.metadata(&["t"]).await.topics[0].error_code;
    let made = CreatableTopic::default()
        .with_name(topic_name("new"))
        .with_num_partitions(1)
        .with_replication_factor(1);
    let create = CreateTopicsRequest::default().with_topics(vec![made]).with_timeout_ms(10_000);
    let create = client.call(7, create).await.topics[0].error_code;
    let auto = MetadataRequestTopic::default().with_name(Some(topic_name("auto")));
    let auto = MetadataRequest::default().with_topics(Some(vec![auto]));
    let auto = client.call(9, auto).await.topics[0].error_code;
    let more = CreatePartitionsTopic::default()
        .with_name(topic_name("t"))
        .with_count(2)
        .with_assignments(None);
    let more = CreatePartitionsRequest::default().with_topics(vec![more]).with_timeout_ms(10_000);
    let more = client.call(3, more.with_validate_only(true)).await.results[0].error_code;
    let resource =
        DescribeConfigsResource::default().with_resource_type(2).with_resource_name(text("t"));
    let configs = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let configs = client.call(4, configs).await.results[0].error_code;
    let resource =
        AlterConfigsResource::default().with_resource_type(2).with_resource_name(text("t"));
    let alter = AlterConfigsRequest::default().with_resources(vec![resource]);
    let alter = client.call(2, alter).await.responses[0].error_code;
    let gone = DeleteTopicState::default().with_name(Some(topic_name("gone")));
    let delete = DeleteTopicsRequest::default().with_topics(vec![gone]).with_timeout_ms(10_000);
    let delete = client.call(6, delete).await.responses[0].error_code;
    vec![
        ("Metadata", metadata),
        ("CreateTopics", create),
        ("Metadata creating", auto),
        ("CreatePartitions", more),
        ("DescribeConfigs topic", configs),
        ("AlterConfigs topic", alter),
        ("DeleteTopics", delete),
    ]
}

async fn of_cluster(client: &mut Client) -> Vec<(&'static str, i16)> {
    let resource =
        DescribeConfigsResource::default().with_resource_type(4).with_resource_name(text(""));
    let configs = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let configs = client.call(4, configs).await.results[0].error_code;
    let resource =
        AlterConfigsResource::default().with_resource_type(4).with_resource_name(text(""));
    let alter = AlterConfigsRequest::default().with_resources(vec![resource]);
    let alter = client.call(2, alter).await.responses[0].error_code;
    let creation = AclCreation::default()
        .with_resource_type(2)
        .with_resource_name(text("other"))
        .with_principal(text("User:bob"))
        .with_host(text("*"))
        .with_operation(3)
        .with_permission_type(3);
    let create = CreateAclsRequest::default().with_creations(vec![creation]);
    let create = client.call(3, create).await.results[0].error_code;
    let describe = client.call(3, describe_acls()).await.error_code;
    let delete = DeleteAclsRequest::default().with_filters(vec![
        DeleteAclsFilter::default()
            .with_resource_type_filter(2)
            .with_resource_name_filter(Some(text("other")))
            .with_principal_filter(None)
            .with_host_filter(None)
            .with_operation(1)
            .with_permission_type(1),
    ]);
    let delete = client.call(3, delete).await.filter_results[0].error_code;
    let users = DescribeUserScramCredentialsRequest::default().with_users(None);
    let users = client.call(0, users).await.error_code;
    let removal = ScramCredentialDeletion::default().with_name(text("nobody")).with_mechanism(1);
    let alter_users = AlterUserScramCredentialsRequest::default().with_deletions(vec![removal]);
    let alter_users = client.call(0, alter_users).await.results[0].error_code;
    let dirs = DescribeLogDirsRequest::default().with_topics(None);
    let dirs = client.call(4, dirs).await.error_code;
    let reassign = client.call(1, AlterPartitionReassignmentsRequest::default()).await.error_code;
    let ongoing = ListPartitionReassignmentsRequest::default().with_topics(None);
    let ongoing = client.call(0, ongoing).await.error_code;
    let elect = ElectLeadersRequest::default().with_topic_partitions(None);
    let elect = client.call(2, elect).await.error_code;
    vec![
        ("DescribeConfigs cluster", configs),
        ("AlterConfigs cluster", alter),
        ("CreateAcls", create),
        ("DescribeAcls", describe),
        ("DeleteAcls", delete),
        ("DescribeUserScramCredentials", users),
        ("AlterUserScramCredentials", alter_users),
        ("DescribeLogDirs", dirs),
        ("AlterPartitionReassignments", reassign),
        ("ListPartitionReassignments", ongoing),
        ("ElectLeaders", elect),
    ]
}

fn describe_acls() -> DescribeAclsRequest {
    DescribeAclsRequest::default()
        .with_resource_type_filter(1)
        .with_resource_name_filter(None)
        .with_pattern_type_filter(1)
        .with_principal_filter(None)
        .with_host_filter(None)
        .with_operation(1)
        .with_permission_type(1)
}

/// A permission.
type Needed = (ResourceType, &'static str, Operation);

/// The error that a client without any permission gets, and the permissions that allow the API. All
/// permissions of a row are needed.
const RULES: &[(&str, E, &[Needed])] = {
    use Operation::{Alter, AlterConfigs, Create, Delete, Describe, DescribeConfigs, Read, Write};
    use ResourceType::{Cluster, Group, Topic, TransactionalId};
    const CLUSTER: &str = "kafka-cluster";
    &[
        ("Produce", E::TopicAuthorizationFailed, &[(Topic, "t", Write)]),
        ("Fetch", E::TopicAuthorizationFailed, &[(Topic, "t", Read)]),
        ("ListOffsets", E::TopicAuthorizationFailed, &[(Topic, "t", Describe)]),
        ("OffsetForLeaderEpoch", E::TopicAuthorizationFailed, &[(Topic, "t", Describe)]),
        ("InitProducerId", E::ClusterAuthorizationFailed, &[(Topic, "any", Write)]),
        (
            "InitProducerId transactional",
            E::TransactionalIdAuthorizationFailed,
            &[(TransactionalId, "x", Write)],
        ),
        ("FindCoordinator", E::GroupAuthorizationFailed, &[(Group, "g", Describe)]),
        ("JoinGroup", E::GroupAuthorizationFailed, &[(Group, "g", Read)]),
        ("SyncGroup", E::GroupAuthorizationFailed, &[(Group, "g", Read)]),
        ("Heartbeat", E::GroupAuthorizationFailed, &[(Group, "g", Read)]),
        ("LeaveGroup", E::GroupAuthorizationFailed, &[(Group, "g", Read)]),
        ("OffsetCommit", E::GroupAuthorizationFailed, &[(Group, "g", Read), (Topic, "t", Read)]),
        ("OffsetFetch", E::GroupAuthorizationFailed, &[(Group, "g", Describe)]),
        ("OffsetDelete", E::GroupAuthorizationFailed, &[(Group, "g", Delete)]),
        ("DescribeGroups", E::GroupAuthorizationFailed, &[(Group, "g", Describe)]),
        ("DeleteGroups", E::GroupAuthorizationFailed, &[(Group, "g", Delete)]),
        ("Metadata", E::TopicAuthorizationFailed, &[(Topic, "t", Describe)]),
        ("CreateTopics", E::TopicAuthorizationFailed, &[(Topic, "new", Create)]),
        (
            "Metadata creating",
            E::TopicAuthorizationFailed,
            &[(Topic, "auto", Describe), (Cluster, CLUSTER, Create)],
        ),
        ("CreatePartitions", E::TopicAuthorizationFailed, &[(Topic, "t", Alter)]),
        ("DescribeConfigs topic", E::TopicAuthorizationFailed, &[(Topic, "t", DescribeConfigs)]),
        ("AlterConfigs topic", E::TopicAuthorizationFailed, &[(Topic, "t", AlterConfigs)]),
        ("DeleteTopics", E::TopicAuthorizationFailed, &[(Topic, "gone", Delete)]),
        (
            "DescribeConfigs cluster",
            E::ClusterAuthorizationFailed,
            &[(Cluster, CLUSTER, DescribeConfigs)],
        ),
        (
            "AlterConfigs cluster",
            E::ClusterAuthorizationFailed,
            &[(Cluster, CLUSTER, AlterConfigs)],
        ),
        ("CreateAcls", E::ClusterAuthorizationFailed, &[(Cluster, CLUSTER, Alter)]),
        ("DescribeAcls", E::ClusterAuthorizationFailed, &[(Cluster, CLUSTER, Describe)]),
        ("DeleteAcls", E::ClusterAuthorizationFailed, &[(Cluster, CLUSTER, Alter)]),
        (
            "DescribeUserScramCredentials",
            E::ClusterAuthorizationFailed,
            &[(Cluster, CLUSTER, Describe)],
        ),
        ("AlterUserScramCredentials", E::ClusterAuthorizationFailed, &[(Cluster, CLUSTER, Alter)]),
        ("DescribeLogDirs", E::ClusterAuthorizationFailed, &[(Cluster, CLUSTER, Describe)]),
        (
            "AlterPartitionReassignments",
            E::ClusterAuthorizationFailed,
            &[(Cluster, CLUSTER, Alter)],
        ),
        (
            "ListPartitionReassignments",
            E::ClusterAuthorizationFailed,
            &[(Cluster, CLUSTER, Describe)],
        ),
        ("ElectLeaders", E::ClusterAuthorizationFailed, &[(Cluster, CLUSTER, Alter)]),
    ]
};

const AUTHORIZATION_ERRORS: [E; 4] = [
    E::TopicAuthorizationFailed,
    E::GroupAuthorizationFailed,
    E::ClusterAuthorizationFailed,
    E::TransactionalIdAuthorizationFailed,
];

#[tokio::test]
async fn each_api_asks_for_kafkas_permission_and_refuses_with_kafkas_error() {
    let broker = secured().await;
    let mut admin = client_of(&broker, "admin").await;
    admin.create_topic("t", 1, &[]).await;
    let mut alice = client_of(&broker, "alice").await;
    for (name, code) in codes(&mut alice).await {
        match RULES.iter().find(|rule| rule.0 == name) {
            Some((_, expected, _)) => assert_eq!(code, expected.code(), "{name}"),
            None => assert!(["ListGroups"].contains(&name), "{name} has no rule"),
        }
    }
    for (api, refusal, needed) in RULES {
        let broker = secured().await;
        let mut admin = client_of(&broker, "admin").await;
        admin.create_topic("t", 1, &[]).await;
        let mut alice = client_of(&broker, "alice").await;
        for (at, (kind, name, operation)) in needed.iter().enumerate() {
            if at > 0 {
                let code = code_of(&mut alice, api).await;
                assert!(is_refusal(code), "{api} takes more than a part of what it needs");
            }
            allow(&broker, *kind, name, *operation).await;
        }
        let code = code_of(&mut alice, api).await;
        assert!(!is_refusal(code), "{api}: {code} after {needed:?}, {refusal:?} before");
    }
}

fn is_refusal(code: i16) -> bool {
    AUTHORIZATION_ERRORS.iter().any(|error| error.code() == code)
}

async fn code_of(client: &mut Client, api: &str) -> i16 {
    codes(client).await.into_iter().find(|(name, _)| *name == api).unwrap().1
}

#[tokio::test]
async fn lists_leave_out_what_the_client_may_not_describe() {
    let broker = secured().await;
    let mut admin = client_of(&broker, "admin").await;
    admin.create_topic("seen", 1, &[]).await;
    admin.create_topic("hidden", 1, &[]).await;
    let mut alice = client_of(&broker, "alice").await;
    let all = || MetadataRequest::default().with_topics(None);
    assert!(alice.call(9, all()).await.topics.is_empty());
    allow(&broker, ResourceType::Topic, "seen", Operation::Write).await;
    let request = all().with_include_topic_authorized_operations(true);
    let topics = alice.call(9, request).await.topics;
    assert_eq!(topics.len(), 1);
    assert_eq!(topics[0].name, Some(topic_name("seen")));
    // Write is allowed, and Describe, which it implies.
    assert_eq!(topics[0].topic_authorized_operations, 1 << 4 | 1 << 8);
    assert_eq!(admin.call(9, all()).await.topics.len(), 2);
}

#[tokio::test]
async fn acls_are_made_listed_and_removed() {
    let broker = secured().await;
    let mut admin = client_of(&broker, "admin").await;
    let creation = |name: &str, kind: i8| {
        AclCreation::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_resource_pattern_type(3)
            .with_principal(text("User:alice"))
            .with_host(text("*"))
            .with_operation(4)
            .with_permission_type(3)
    };
    for version in 1..=3 {
        let hidden = creation("g\0", 3);
        let creations = vec![creation("t", 2), creation("wrong", 4), hidden, creation("g", 3)];
        let request = CreateAclsRequest::default().with_creations(creations);
        let results = admin.call(version, request).await.results;
        let codes: Vec<_> = results.iter().map(|result| result.error_code).collect();
        assert_eq!(codes, [0, E::InvalidRequest.code(), E::InvalidRequest.code(), 0]);
        let described = admin.call(version, describe_acls()).await;
        let resources = described.resources.iter();
        let resources: Vec<_> =
            resources.map(|r| (r.resource_type, r.resource_name.as_str())).collect();
        assert_eq!(resources, [(2, "t"), (3, "g")]);
        assert_eq!(described.resources[0].acls[0].principal.as_str(), "User:alice");
    }
    admin.create_topic("t", 1, &[]).await;
    let mut alice = client_of(&broker, "alice").await;
    assert_eq!(alice.produce("t", 0, batch(&["x"])).await, (0, 0));
    let filter = DeleteAclsFilter::default()
        .with_resource_type_filter(1)
        .with_resource_name_filter(None)
        .with_pattern_type_filter(1)
        .with_principal_filter(Some(text("User:alice")))
        .with_host_filter(None)
        .with_operation(1)
        .with_permission_type(1);
    let request = DeleteAclsRequest::default().with_filters(vec![filter]);
    let deleted = admin.call(3, request).await.filter_results.remove(0);
    assert_eq!((deleted.error_code, deleted.matching_acls.len()), (0, 2));
    let refused = (E::TopicAuthorizationFailed.code(), -1);
    assert_eq!(alice.produce("t", 0, batch(&["x"])).await, refused);
}

#[tokio::test]
async fn without_an_authorizer_there_are_no_acls() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let code = client.call(3, describe_acls()).await.error_code;
    assert_eq!(code, E::SecurityDisabled.code());
}
