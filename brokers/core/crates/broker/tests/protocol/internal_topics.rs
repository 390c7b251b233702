//! Internal topics belong to the service, whatever client id a client has and whatever it may do.

use bytes::Bytes;
use freshet_wire::ids::PartitionId;
use freshet_wire::records::BatchBuilder;
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    AlterConfigsRequest, BrokerId, CreatePartitionsRequest, CreateTopicsRequest,
    DeleteRecordsRequest, DeleteTopicsRequest, FetchRequest, IncrementalAlterConfigsRequest,
    MetadataRequest, alter_configs_request, incremental_alter_configs_request,
};
use uuid::Uuid;

use super::access::{client_of, secured};
use super::groups::coordinator;
use super::harness::{Client, TestBroker, batch, produce_request, text, topic_name};

const OFFSETS: &str = "__consumer_offsets";
const TOPIC: i8 = 2;
/// How Kafka's own tools write to internal topics.
const NAMES: [&str; 2] = ["tests", "__admin_client"];

/// What a compacted topic takes.
fn keyed() -> Bytes {
    BatchBuilder::new(0).record(1_700_000_000_000, Some(b"k"), Some(b"v")).build()
}

async fn produce_code(client: &mut Client, version: i16, id: Uuid) -> i16 {
    let mut request = produce_request(OFFSETS, 0, keyed());
    if version >= 13 {
        request.topic_data[0].name = topic_name("");
        request.topic_data[0].topic_id = id;
    }
    client.call(version, request).await.responses[0].partition_responses[0].error_code
}

/// The error and the bytes of records of a fetch.
async fn fetch(client: &mut Client, version: i16, id: Uuid) -> (i16, usize) {
    let partition = FetchPartition::default().with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_partitions(vec![partition]);
    let by_id = version >= 13;
    let topic = if by_id { topic.with_topic_id(id) } else { topic.with_topic(topic_name(OFFSETS)) };
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_bytes(1 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic]);
    let response = client.call(version, request).await;
    let partition = &response.responses[0].partitions[0];
    (partition.error_code, partition.records.as_ref().map_or(0, Bytes::len))
}

#[tokio::test]
async fn nobody_produces_to_them_or_fetches_from_them() {
    let broker = secured().await;
    // A super user: no ACL allows more.
    let mut client = client_of(&broker, "admin").await;
    coordinator(&mut client).await;
    let id = client.metadata(&[OFFSETS]).await.topics[0].topic_id;
    let end = |broker: &TestBroker| {
        let partition = PartitionId::new(id, 0);
        broker.engine.partitions.get(partition).expect("it is led").bounds().end
    };
    let before = end(&broker);
    let refused = E::TopicAuthorizationFailed.code();
    for name in NAMES {
        client.name = name;
        for version in 3..=13 {
            assert_eq!(produce_code(&mut client, version, id).await, refused, "{name} {version}");
        }
        for version in 4..=18 {
            assert_eq!(fetch(&mut client, version, id).await, (refused, 0), "{name} {version}");
        }
    }
    assert_eq!(end(&broker), before, "nothing was appended");
}

#[tokio::test]
async fn clients_do_not_make_them() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.name = "__admin_client";
    let unknown = E::UnknownTopicOrPartition.code();
    for name in [OFFSETS, "__transaction_state", "__share_group_state"] {
        let topic = CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(2)
            .with_replication_factor(1);
        for validate_only in [true, false] {
            let request = CreateTopicsRequest::default()
                .with_topics(vec![topic.clone()])
                .with_validate_only(validate_only);
            let made = client.call(7, request).await.topics.remove(0);
            assert_eq!(made.error_code, E::TopicAuthorizationFailed.code(), "{name}");
            assert!(made.error_message.unwrap().contains("internal"));
        }
        assert_eq!(client.metadata(&[name]).await.topics[0].error_code, unknown, "{name}");
    }
    let asked = |name: &str| {
        let topic = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        MetadataRequest::default()
            .with_topics(Some(vec![topic]))
            .with_allow_auto_topic_creation(true)
    };
    for name in ["__transaction_state", "__share_group_state", "__cluster_metadata"] {
        assert_eq!(client.call(9, asked(name)).await.topics[0].error_code, unknown, "{name}");
    }
    // The coordinator's topic is created with the coordinator's configs.
    let made = client.call(9, asked(OFFSETS)).await.topics.remove(0);
    assert_eq!((made.error_code, made.is_internal, made.partitions.len()), (0, true, 2));
}

#[tokio::test]
async fn clients_do_not_alter_them() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    coordinator(&mut client).await;
    client.name = "__admin_client";
    let refused = E::TopicAuthorizationFailed.code();
    for validate_only in [true, false] {
        let config = incremental_alter_configs_request::AlterableConfig::default()
            .with_name(text("cleanup.policy"))
            .with_value(Some(text("delete")));
        let resource = incremental_alter_configs_request::AlterConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(text(OFFSETS))
            .with_configs(vec![config]);
        let request = IncrementalAlterConfigsRequest::default()
            .with_resources(vec![resource])
            .with_validate_only(validate_only);
        assert_eq!(client.call(1, request).await.responses[0].error_code, refused);
        // Replacing all configs by none is a change, too.
        let resource = alter_configs_request::AlterConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(text(OFFSETS));
        let request = AlterConfigsRequest::default()
            .with_resources(vec![resource])
            .with_validate_only(validate_only);
        assert_eq!(client.call(2, request).await.responses[0].error_code, refused);
    }
    let stored = broker.engine.metadata.topic(OFFSETS).await.unwrap().unwrap();
    assert_eq!(stored.record.configs["cleanup.policy"], "compact");
}

#[tokio::test]
async fn nobody_deletes_or_extends_them_or_removes_their_records() {
    let broker = secured().await;
    let mut client = client_of(&broker, "admin").await;
    coordinator(&mut client).await;
    let id = client.metadata(&[OFFSETS]).await.topics[0].topic_id;
    let refused = E::TopicAuthorizationFailed.code();
    for name in NAMES {
        client.name = name;
        for validate_only in [true, false] {
            let topic = CreatePartitionsTopic::default()
                .with_name(topic_name(OFFSETS))
                .with_count(99)
                .with_assignments(None);
            let request = CreatePartitionsRequest::default()
                .with_topics(vec![topic])
                .with_validate_only(validate_only);
            assert_eq!(client.call(3, request).await.results[0].error_code, refused);
        }
        let named = DeleteTopicState::default().with_name(Some(topic_name(OFFSETS)));
        let by_id = DeleteTopicState::default().with_name(None).with_topic_id(id);
        for topic in [named, by_id] {
            let request = DeleteTopicsRequest::default().with_topics(vec![topic]);
            assert_eq!(client.call(6, request).await.responses[0].error_code, refused);
        }
        let partition = DeleteRecordsPartition::default().with_offset(-1);
        let topic = DeleteRecordsTopic::default()
            .with_name(topic_name(OFFSETS))
            .with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default().with_topics(vec![topic]);
        let answer = client.call(2, request).await;
        assert_eq!(answer.topics[0].partitions[0].error_code, refused);
    }
    let topic = client.metadata(&[OFFSETS]).await.topics.remove(0);
    assert_eq!((topic.topic_id, topic.partitions.len()), (id, 2));
}

#[tokio::test]
async fn topics_of_connect_streams_and_schema_registries_are_ordinary() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for name in ["connect-offsets", "app-counts-changelog", "_schemas", "__mine"] {
        client.create_topic(name, 1, &[]).await;
        assert_eq!(client.produce(name, 0, batch(&["x"])).await, (0, 0), "{name}");
    }
}
