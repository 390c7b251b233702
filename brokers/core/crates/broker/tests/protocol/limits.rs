//! The cluster's limits, met over the protocol.

use std::collections::BTreeSet;

use bytes::Bytes;
use freshet_access::acl::AuthorizerSettings;
use freshet_access::principal::Principal;
use freshet_broker::context::BrokerSettings;
use freshet_metadata::schema::LimitsRecord;
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use kafka_protocol::messages::alter_user_scram_credentials_request::ScramCredentialUpsertion;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    AlterClientQuotasRequest, AlterUserScramCredentialsRequest, CreateAclsRequest,
    CreatePartitionsRequest, CreateTopicsRequest, DeleteGroupsRequest, GroupId, JoinGroupRequest,
    MetadataRequest, OffsetCommitRequest,
};

use super::groups::coordinator;
use super::harness::{Client, Setup, TestBroker, text, topic_name};

const VIOLATION: E = E::PolicyViolation;

/// A broker in which everybody may do everything, within these limits.
pub(super) async fn limited(limits: LimitsRecord) -> TestBroker {
    let authorizer = AuthorizerSettings {
        super_users: BTreeSet::from([Principal::user("admin")]),
        allow_everyone_if_no_acl_found: true,
    };
    let settings = BrokerSettings { authorizer: Some(authorizer), ..BrokerSettings::default() };
    let broker = TestBroker::with(Setup { settings, ..Setup::default() }).await;
    set(&broker, limits).await;
    broker
}

/// Replaces the limits, and waits until the broker has seen them.
pub(super) async fn set(broker: &TestBroker, limits: LimitsRecord) {
    let view = &broker.engine.view;
    let mut changes = view.subscribe();
    broker.engine.metadata.set_limits(&limits).await.unwrap();
    while view.snapshot().limits != limits {
        changes.next().await.unwrap();
    }
}

/// Code and message of each topic.
pub(super) async fn create(
    client: &mut Client,
    topics: &[(&str, i32)],
    validate_only: bool,
) -> Vec<(i16, String)> {
    let topics = topics.iter().map(|(name, partitions)| {
        CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(*partitions)
            .with_replication_factor(1)
    });
    let request = CreateTopicsRequest::default()
        .with_topics(topics.collect())
        .with_timeout_ms(10_000)
        .with_validate_only(validate_only);
    let answer = client.call(7, request).await;
    let outcome =
        |error: Option<_>| error.map(|text: kafka_protocol::protocol::StrBytes| text.to_string());
    let topics = answer.topics.into_iter();
    topics
        .map(|topic| (topic.error_code, outcome(topic.error_message).unwrap_or_default()))
        .collect()
}

#[tokio::test]
async fn topics_and_partitions_meet_their_limits_in_every_request() {
    let limits = LimitsRecord { topics: Some(3), partitions: Some(6), ..LimitsRecord::default() };
    let broker = limited(limits).await;
    let mut client = broker.client();
    // Each topic of a request is refused by itself.
    let made = create(&mut client, &[("a", 2), ("b", 5), ("c", 2)], false).await;
    assert_eq!(made.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [0, VIOLATION.code(), 0]);
    assert_eq!(made[1].1, "limit partitions is reached: 2 of 6 are used and 5 more do not fit");
    let checked = create(&mut client, &[("d", 3)], true).await;
    assert_eq!(checked[0].0, VIOLATION.code());
    let mut extend = async |count: i32, validate_only: bool| {
        let topic = CreatePartitionsTopic::default()
            .with_name(topic_name("a"))
            .with_count(count)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(10_000)
            .with_validate_only(validate_only);
        let result = client.call(3, request).await.results.remove(0);
        (result.error_code, result.error_message.map(|text| text.to_string()))
    };
    for validate_only in [true, false] {
        let (code, message) = extend(5, validate_only).await;
        assert_eq!(code, VIOLATION.code());
        let expected = "limit partitions is reached: 4 of 6 are used and 3 more do not fit";
        assert_eq!(message.as_deref(), Some(expected));
    }
    assert_eq!(extend(3, true).await.0, 0);
    assert_eq!(extend(3, false).await.0, 0);
    let last = create(&mut client, &[("d", 1), ("e", 1)], false).await;
    assert_eq!((last[0].0, last[1].0), (0, VIOLATION.code()));
    assert_eq!(last[1].1, "limit topics is reached: 3 of 3 are used and 1 more do not fit");
    // A topic that a producer asks for is one more.
    let mut ask = async |name: &str| {
        let topic = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        let request = MetadataRequest::default()
            .with_topics(Some(vec![topic]))
            .with_allow_auto_topic_creation(true);
        client.call(9, request).await.topics[0].error_code
    };
    assert_eq!(ask("made-automatically").await, VIOLATION.code());
    // A limit that is raised holds at once, and one that is lowered keeps what there is.
    set(&broker, LimitsRecord { topics: Some(4), ..LimitsRecord::default() }).await;
    assert_eq!(ask("made-automatically").await, 0);
    set(&broker, LimitsRecord { topics: Some(1), ..LimitsRecord::default() }).await;
    assert_eq!(ask("another").await, VIOLATION.code());
    assert_eq!(ask("a").await, 0);
    // The coordinator's topic belongs to the service.
    coordinator(&mut client).await;
}

#[tokio::test]
async fn many_clients_at_once_do_not_pass_a_limit_together() {
    let broker = limited(LimitsRecord { topics: Some(4), ..LimitsRecord::default() }).await;
    let mut clients: Vec<Client> = (0..10).map(|_| broker.client()).collect();
    let names: Vec<String> = (0..10).map(|number| format!("t-{number}")).collect();
    let all = clients.iter_mut().zip(&names);
    let all = all.map(|(client, name)| async move { create(client, &[(name, 1)], false).await });
    let codes: Vec<i16> =
        futures::future::join_all(all).await.into_iter().map(|made| made[0].0).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 4);
    assert_eq!(codes.iter().filter(|code| **code == VIOLATION.code()).count(), 6);
}

#[tokio::test]
async fn access_and_quotas_leave_the_last_places_to_administrators() {
    let limits = LimitsRecord {
        acls: Some(20),
        credentials: Some(20),
        quotas: Some(20),
        ..LimitsRecord::default()
    };
    let broker = limited(limits).await;
    let mut client = broker.client();
    let creations = (0..19).map(|number| {
        AclCreation::default()
            .with_resource_type(2)
            .with_resource_name(text(&format!("t-{number}")))
            .with_resource_pattern_type(3)
            .with_principal(text("User:*"))
            .with_host(text("*"))
            .with_operation(2)
            .with_permission_type(3)
    });
    let request = CreateAclsRequest::default().with_creations(creations.collect());
    let mut results = client.call(3, request).await.results;
    let refused = results.split_off(18).remove(0);
    assert!(results.iter().all(|result| result.error_code == 0));
    assert_eq!(refused.error_code, VIOLATION.code());
    let kept = "limit acls is reached: 0 of 20 are used and 19 more do not fit; the last 2 are \
                kept for the console, REST and Terraform";
    assert_eq!(refused.error_message.unwrap().as_str(), kept);

    let upsertions = (0..19).map(|number| {
        ScramCredentialUpsertion::default()
            .with_name(text(&format!("u-{number:02}")))
            .with_mechanism(1)
            .with_iterations(4_096)
            .with_salt(Bytes::from_static(&[1; 16]))
            .with_salted_password(Bytes::from_static(&[2; 32]))
    });
    let request = AlterUserScramCredentialsRequest::default().with_upsertions(upsertions.collect());
    let results = client.call(0, request).await.results;
    let codes: Vec<i16> = results.iter().map(|result| result.error_code).collect();
    assert_eq!(codes[..18], [0; 18]);
    assert_eq!(codes[18], VIOLATION.code());
    let message = results[18].error_message.as_ref().unwrap().as_str();
    assert!(message.starts_with("limit credentials is reached: 18 of 20 are used"), "{message}");

    let mut alter = async |users: std::ops::Range<i32>, validate_only: bool| {
        let entries = users.map(|number| {
            let user = EntityData::default()
                .with_entity_type(text("user"))
                .with_entity_name(Some(text(&format!("u-{number}"))));
            let rate = OpData::default().with_key(text("producer_byte_rate")).with_value(9.0);
            EntryData::default().with_entity(vec![user]).with_ops(vec![rate])
        });
        let request = AlterClientQuotasRequest::default()
            .with_entries(entries.collect())
            .with_validate_only(validate_only);
        let entries = client.call(1, request).await.entries.into_iter();
        let codes: Vec<i16> = entries.map(|entry| entry.error_code).collect();
        codes
    };
    assert_eq!(alter(0..18, false).await, [0; 18]);
    for validate_only in [true, false] {
        assert_eq!(alter(17..19, validate_only).await, [0, VIOLATION.code()]);
    }
}

/// The code with which an offset of the topic `t` is committed.
pub(super) async fn commit(
    client: &mut Client,
    group: &str,
    partition: i32,
    metadata: &str,
) -> i16 {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(partition)
        .with_committed_offset(1)
        .with_committed_metadata(Some(text(metadata)));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name("t"))
        .with_partitions(vec![partition]);
    let request =
        OffsetCommitRequest::default().with_group_id(GroupId(text(group))).with_topics(vec![topic]);
    client.call(8, request).await.topics[0].partitions[0].error_code
}

/// The code with which a new member is answered.
async fn join(client: &mut Client, group: &str) -> i16 {
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
    let request = JoinGroupRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(10_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    client.call(3, request).await.error_code
}

#[tokio::test]
async fn groups_their_members_and_offsets_metadata_are_bounded() {
    let limits =
        LimitsRecord { groups: Some(1), group_members: Some(1), ..LimitsRecord::default() };
    let broker = limited(limits).await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    coordinator(&mut client).await;
    let too_large = E::OffsetMetadataTooLarge.code();
    assert_eq!(commit(&mut client, "first", 0, &"x".repeat(4_097)).await, too_large);
    assert_eq!(commit(&mut client, "first", 0, &"x".repeat(4_096)).await, 0);
    assert_eq!(commit(&mut client, "second", 0, "").await, VIOLATION.code());
    assert_eq!(join(&mut client, "second").await, E::GroupMaxSizeReached.code());
    assert_eq!(join(&mut client, "first").await, 0);
    assert_eq!(join(&mut client, "first").await, E::GroupMaxSizeReached.code());
}

#[tokio::test]
async fn what_all_groups_take_together_is_bounded() {
    let broker = limited(LimitsRecord::default()).await;
    let mut client = broker.client();
    client.create_topic("t", 2, &[]).await;
    coordinator(&mut client).await;
    let largest = "x".repeat(4_096);
    assert_eq!(commit(&mut client, "first", 0, &largest).await, 0);
    let used = broker.engine.groups.bytes();
    assert!((4_096..4_096 + 16_384).contains(&used), "{used}");
    let bytes = u64::try_from(used).unwrap();
    set(&broker, LimitsRecord { group_bytes: Some(bytes), ..LimitsRecord::default() }).await;
    for (group, partition) in [("first", 1), ("second", 0)] {
        assert_eq!(commit(&mut client, group, partition, "").await, VIOLATION.code());
    }
    assert_eq!(commit(&mut client, "first", 0, &largest).await, 0, "it grows by nothing");
    for group in ["first", "second"] {
        assert_eq!(join(&mut client, group).await, VIOLATION.code());
    }
    let request = DeleteGroupsRequest::default().with_groups_names(vec![GroupId(text("first"))]);
    assert_eq!(client.call(2, request).await.results[0].error_code, 0);
    assert_eq!(join(&mut client, "second").await, 0);
}
