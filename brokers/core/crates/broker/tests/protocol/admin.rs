//! Topics, configs, users, and what brokers report of the cluster.

use bytes::Bytes;
use freshet_access::types::ScramMechanism;
use freshet_broker::context::BrokerSettings;
use freshet_configs::{BrokerConfig, Overrides};
use freshet_metadata::schema::{Key, TopicRecord, encode};
use freshet_metadata::store::{Compare, Expected, Transaction, Write};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use kafka_protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::describe_user_scram_credentials_request::UserName;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterUserScramCredentialsRequest, BrokerId, CreatePartitionsRequest,
    CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest, DescribeConfigsRequest,
    DescribeLogDirsRequest, DescribeTopicPartitionsRequest, DescribeUserScramCredentialsRequest,
    IncrementalAlterConfigsRequest, MetadataRequest, alter_configs_request,
    incremental_alter_configs_request,
};

use super::groups::coordinator;
use super::harness::{Client, HOST, PORT, Setup, TestBroker, batch, text, topic_name};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

fn creatable(name: &str, partitions: i32, replicas: i16) -> CreatableTopic {
    CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(replicas)
}

fn create(topics: Vec<CreatableTopic>) -> CreateTopicsRequest {
    CreateTopicsRequest::default().with_topics(topics).with_timeout_ms(10_000)
}

#[tokio::test]
async fn topics_are_created_in_every_version_and_can_be_used_at_once() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for version in 2..=7 {
        let name = format!("t{version}");
        let response = client.call(version, create(vec![creatable(&name, 2, 3)])).await;
        let made = &response.topics[0];
        assert_eq!((made.error_code, &made.error_message), (0, &None));
        if version >= 5 {
            assert_eq!((made.num_partitions, made.replication_factor), (2, 3));
            let configs = made.configs.as_ref().unwrap();
            assert!(configs.iter().any(|config| config.name.as_str() == "retention.ms"));
        }
        assert_eq!(client.produce(&name, 1, batch(&["x"])).await, (0, 0));
        let topic = client.metadata(&[&name]).await.topics.remove(0);
        assert_eq!(topic.partitions.len(), 2);
        let partition = &topic.partitions[0];
        assert_eq!(partition.leader_id, BrokerId(0));
        assert_eq!((partition.replica_nodes.len(), partition.isr_nodes.len()), (3, 3));
        if version >= 7 {
            assert_eq!(made.topic_id, topic.topic_id);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_created_has_kafkas_error() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("there.is", 1, &[]).await;
    let config = |name: &str, value: &str| {
        let config =
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)));
        creatable("configured", 1, 1).with_configs(vec![config])
    };
    let assigned = |brokers: &[i32], partitions: i32| {
        let brokers: Vec<_> = brokers.iter().map(|id| BrokerId(*id)).collect();
        let assignments = (0..2).map(|index| {
            CreatableReplicaAssignment::default()
                .with_partition_index(index)
                .with_broker_ids(brokers.clone())
        });
        creatable("assigned", partitions, -1).with_assignments(assignments.collect())
    };
    let cases = [
        (creatable("there.is", 1, 1), ResponseError::TopicAlreadyExists),
        (creatable("there_is", 1, 1), ResponseError::InvalidTopicException),
        (creatable("no/slash", 1, 1), ResponseError::InvalidTopicException),
        (creatable("", 1, 1), ResponseError::InvalidTopicException),
        (creatable("__cluster_metadata", 1, 1), ResponseError::InvalidRequest),
        (creatable("none", 0, 1), ResponseError::InvalidPartitions),
        (creatable("none", -2, 1), ResponseError::InvalidPartitions),
        (creatable("none", 1, 0), ResponseError::InvalidReplicationFactor),
        (creatable("none", 1, -2), ResponseError::InvalidReplicationFactor),
        (creatable("many", 1, 4), ResponseError::InvalidReplicationFactor),
        (creatable("many", 1, i16::MAX), ResponseError::InvalidReplicationFactor),
        (config("no.such.config", "1"), ResponseError::InvalidConfig),
        (config("retention.ms", "soon"), ResponseError::InvalidConfig),
        (assigned(&[0], 2), ResponseError::InvalidRequest),
        (assigned(&[5], -1), ResponseError::InvalidReplicaAssignment),
        (assigned(&[0, 0], -1), ResponseError::InvalidReplicaAssignment),
        (assigned(&[0, 0, 0, 0], -1), ResponseError::InvalidReplicationFactor),
    ];
    for (topic, expected) in cases {
        let name = topic.name.to_string();
        let response = client.call(7, create(vec![topic])).await;
        let made = &response.topics[0];
        assert_eq!(made.error_code, expected.code(), "{name}");
        assert!(made.error_message.is_some());
    }
    let twice = create(vec![creatable("twice", 1, 1), creatable("twice", 1, 1)]);
    let response = client.call(7, twice).await;
    assert_eq!(response.topics.len(), 1);
    assert_eq!(response.topics[0].error_code, ResponseError::InvalidRequest.code());
    assert_eq!(client.call(7, create(vec![assigned(&[0], -1)])).await.topics[0].error_code, 0);
}

#[tokio::test]
async fn defaults_are_the_brokers_and_checking_creates_nothing() {
    let fixed: Overrides = [("num.partitions", "3"), ("default.replication.factor", "2")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let configs = BrokerConfig::new(fixed).unwrap();
    let settings = BrokerSettings { configs, ..BrokerSettings::default() };
    let broker = TestBroker::with(Setup { settings, ..Setup::default() }).await;
    let mut client = broker.client();
    let only_checked = create(vec![creatable("t", -1, -1)]).with_validate_only(true);
    let made = client.call(7, only_checked).await.topics.remove(0);
    assert_eq!((made.error_code, made.num_partitions, made.replication_factor), (0, 3, 2));
    let unknown = ResponseError::UnknownTopicOrPartition.code();
    assert_eq!(client.metadata(&["t"]).await.topics[0].error_code, unknown);
    let made = client.call(7, create(vec![creatable("t", -1, -1)])).await.topics.remove(0);
    assert_eq!((made.error_code, made.num_partitions), (0, 3));
}

#[tokio::test]
async fn metadata_names_the_broker_in_every_version() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let id = client.create_topic("a", 1, &[]).await;
    client.create_topic("b", 1, &[]).await;
    for version in 0..=13 {
        let all = if version == 0 { Some(Vec::new()) } else { None };
        let response = client.call(version, MetadataRequest::default().with_topics(all)).await;
        let names: Vec<_> =
            response.topics.iter().map(|topic| topic.name.as_ref().unwrap().as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let node = &response.brokers[0];
        assert_eq!((node.host.as_str(), node.port), (HOST, i32::from(PORT)));
        if version >= 2 {
            let cluster_id = response.cluster_id.as_deref();
            assert_eq!(cluster_id, Some(broker.engine.cluster_id.as_str()));
        }
        if version >= 1 {
            let none = MetadataRequest::default().with_topics(Some(Vec::new()));
            assert!(client.call(version, none).await.topics.is_empty());
        }
    }
    let by_id = |id: uuid::Uuid| {
        let topic = MetadataRequestTopic::default().with_name(None).with_topic_id(id);
        MetadataRequest::default().with_topics(Some(vec![topic]))
    };
    let described = client.call(12, by_id(id)).await.topics.remove(0);
    assert_eq!(described.name, Some(topic_name("a")));
    let missing = client.call(12, by_id(uuid::Uuid::from_u128(9))).await.topics.remove(0);
    assert_eq!(missing.error_code, ResponseError::UnknownTopicId.code());
}

#[tokio::test]
async fn asking_for_a_topic_makes_it_where_that_is_allowed() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let ask = |name: &str, may_make: bool| {
        let topic = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        MetadataRequest::default()
            .with_topics(Some(vec![topic]))
            .with_allow_auto_topic_creation(may_make)
    };
    let unknown = ResponseError::UnknownTopicOrPartition.code();
    assert_eq!(client.call(9, ask("auto", false)).await.topics[0].error_code, unknown);
    let made = client.call(9, ask("auto", true)).await.topics.remove(0);
    assert_eq!((made.error_code, made.partitions.len()), (0, 1));
    assert_eq!(client.produce("auto", 0, batch(&["x"])).await, (0, 0));
    let invalid = ResponseError::InvalidTopicException.code();
    assert_eq!(client.call(9, ask("a/b", true)).await.topics[0].error_code, invalid);
    let old = client.call(1, ask("by.default", true)).await.topics.remove(0);
    assert_eq!(old.error_code, 0, "before version 4 clients cannot say no");
}

#[tokio::test]
async fn topics_are_deleted_by_name_and_by_id() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for version in 1..=5 {
        client.create_topic("t", 1, &[]).await;
        let request = DeleteTopicsRequest::default()
            .with_topic_names(vec![topic_name("t"), topic_name("missing")])
            .with_timeout_ms(10_000);
        let response = client.call(version, request).await;
        let codes: Vec<_> = response.responses.iter().map(|result| result.error_code).collect();
        assert_eq!(codes, [0, ResponseError::UnknownTopicOrPartition.code()]);
        let topic = &client.metadata(&["t"]).await.topics[0];
        assert_eq!(topic.error_code, ResponseError::UnknownTopicOrPartition.code());
    }
    let id = client.create_topic("t", 1, &[]).await;
    coordinator(&mut client).await;
    let by_id = |id| DeleteTopicState::default().with_name(None).with_topic_id(id);
    let by_name = |name: &str| DeleteTopicState::default().with_name(Some(topic_name(name)));
    let unknown = uuid::Uuid::from_u128(9);
    let topics = vec![by_id(id), by_id(unknown), by_name("__consumer_offsets")];
    let request = DeleteTopicsRequest::default().with_topics(topics).with_timeout_ms(10_000);
    let response = client.call(6, request).await;
    let codes: Vec<_> = response.responses.iter().map(|result| result.error_code).collect();
    let refused = [ResponseError::UnknownTopicId, ResponseError::TopicAuthorizationFailed];
    assert_eq!(codes, [0, refused[0].code(), refused[1].code()]);
    let produced = client.produce("t", 0, batch(&["x"])).await.0;
    assert_eq!(produced, ResponseError::UnknownTopicOrPartition.code());
}

#[tokio::test]
async fn partitions_are_added_never_removed() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    let add = |name: &str, count: i32| {
        let topic = CreatePartitionsTopic::default()
            .with_name(topic_name(name))
            .with_count(count)
            .with_assignments(None);
        CreatePartitionsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000)
    };
    for version in 0..=3 {
        let count = i32::from(version) + 2;
        let checked = client.call(version, add("t", count).with_validate_only(true)).await;
        assert_eq!(checked.results[0].error_code, 0);
        let response = client.call(version, add("t", count)).await;
        assert_eq!(response.results[0].error_code, 0);
        assert_eq!(client.produce("t", count - 1, batch(&["x"])).await, (0, 0));
    }
    let cases = [
        ("t", 5, ResponseError::InvalidPartitions),
        ("t", 4, ResponseError::InvalidPartitions),
        ("t", i32::MAX, ResponseError::InvalidPartitions),
        ("missing", 4, ResponseError::UnknownTopicOrPartition),
    ];
    for (name, count, expected) in cases {
        let response = client.call(3, add(name, count)).await;
        assert_eq!(response.results[0].error_code, expected.code());
    }
    let assigned = |brokers: &[i32]| {
        let brokers = brokers.iter().map(|id| BrokerId(*id)).collect();
        let assignment = CreatePartitionsAssignment::default().with_broker_ids(brokers);
        let mut request = add("t", 6);
        request.topics[0].assignments = Some(vec![assignment]);
        request
    };
    let cases = [
        (vec![0; 32_767], ResponseError::InvalidReplicationFactor),
        (vec![0, 0], ResponseError::InvalidReplicaAssignment),
        (vec![], ResponseError::InvalidReplicaAssignment),
        (vec![7], ResponseError::InvalidReplicaAssignment),
    ];
    for (brokers, expected) in cases {
        let response = client.call(3, assigned(&brokers)).await;
        assert_eq!(response.results[0].error_code, expected.code());
    }
    assert_eq!(client.call(3, assigned(&[0])).await.results[0].error_code, 0);
}

/// A replication factor that earlier releases accepted and that is still in the metadata store.
#[tokio::test]
async fn a_topic_of_many_replicas_reports_three() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    let metadata = &broker.engine.metadata;
    let stored = metadata.topic("t").await.unwrap().unwrap();
    let record = TopicRecord { replication_factor: i16::MAX, ..stored.record };
    let key = Key::Topic("t".to_owned()).to_string();
    let expected = Expected::Revision(stored.revision);
    let value = encode(&record);
    let transaction = Transaction {
        compares: vec![Compare { key: key.clone(), expected }],
        writes: vec![Write::Put { key, value }],
    };
    let revision = metadata.store().commit(transaction).await.unwrap();
    broker.engine.view.wait_for(revision).await.unwrap();
    let topic = client.metadata(&["t"]).await.topics.remove(0);
    let partition = &topic.partitions[0];
    assert_eq!((partition.replica_nodes.len(), partition.isr_nodes.len()), (3, 3));
    let names = vec![TopicRequest::default().with_name(topic_name("t"))];
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(names)
        .with_response_partition_limit(10);
    let topic = client.call(0, request).await.topics.remove(0);
    assert_eq!(topic.partitions[0].replica_nodes.len(), 3);
    assert_eq!(metadata.topic("t").await.unwrap().unwrap().record.replication_factor, 3);
}

fn describe(kind: i8, name: &str, keys: &[&str]) -> DescribeConfigsRequest {
    let keys = keys.iter().map(|key| text(key)).collect();
    let resource = DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configuration_keys(Some(keys));
    DescribeConfigsRequest::default().with_resources(vec![resource])
}

/// Value and source of one config.
async fn config(client: &mut Client, kind: i8, name: &str, key: &str) -> (String, i8) {
    let response = client.call(4, describe(kind, name, &[key])).await;
    let result = &response.results[0];
    assert_eq!(result.error_code, 0, "{:?}", result.error_message);
    let entry = &result.configs[0];
    (entry.value.as_ref().unwrap().to_string(), entry.config_source)
}

#[tokio::test]
async fn configs_are_described_with_their_sources() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[("retention.ms", "1000")]).await;
    for version in 1..=4 {
        let request = describe(TOPIC, "t", &[]).with_include_synonyms(true);
        let request = request.with_include_documentation(version >= 3);
        let result = client.call(version, request).await.results.remove(0);
        assert_eq!(result.error_code, 0);
        let retention = result.configs.iter().find(|c| c.name.as_str() == "retention.ms").unwrap();
        assert_eq!(retention.value.as_deref(), Some("1000"));
        assert_eq!(retention.config_source, 1);
        assert_eq!(retention.synonyms[0].name.as_str(), "retention.ms");
        let documentation = retention.documentation.as_deref().unwrap_or_default();
        assert_eq!(!documentation.is_empty(), version >= 3);
        assert!(result.configs.len() >= 25);
    }
    assert_eq!(config(&mut client, BROKER, "0", "num.partitions").await.0, "1");
    let cases = [
        (describe(TOPIC, "missing", &[]), ResponseError::UnknownTopicOrPartition),
        (describe(TOPIC, "a/b", &[]), ResponseError::InvalidTopicException),
        (describe(BROKER, "7", &[]), ResponseError::InvalidRequest),
        (describe(8, "0", &[]), ResponseError::InvalidRequest),
    ];
    for (request, expected) in cases {
        let result = client.call(4, request).await.results.remove(0);
        assert_eq!(result.error_code, expected.code());
    }
}

fn increment(kind: i8, name: &str, changes: &[(&str, i8, &str)]) -> IncrementalAlterConfigsRequest {
    let configs = changes.iter().map(|(name, operation, value)| {
        incremental_alter_configs_request::AlterableConfig::default()
            .with_name(text(name))
            .with_config_operation(*operation)
            .with_value(Some(text(value)))
    });
    let resource = incremental_alter_configs_request::AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configs(configs.collect());
    IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
}

#[tokio::test]
async fn configs_are_altered_one_by_one_and_hold_at_once() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[("retention.ms", "1000")]).await;
    let changes = [("max.message.bytes", 0, "100"), ("cleanup.policy", 2, "compact")];
    let checked = increment(TOPIC, "t", &changes).with_validate_only(true);
    assert_eq!(client.call(1, checked).await.responses[0].error_code, 0);
    assert_eq!(config(&mut client, TOPIC, "t", "cleanup.policy").await, ("delete".into(), 5));
    for version in 0..=1 {
        let response = client.call(version, increment(TOPIC, "t", &changes)).await;
        assert_eq!(response.responses[0].error_code, 0);
    }
    let policy = config(&mut client, TOPIC, "t", "cleanup.policy").await;
    assert_eq!(policy, ("delete,compact".into(), 1));
    let large = client.produce("t", 0, batch(&[&"x".repeat(200)])).await;
    assert_eq!(large.0, ResponseError::MessageTooLarge.code());
    let removed = client.call(1, increment(TOPIC, "t", &[("retention.ms", 1, "")])).await;
    assert_eq!(removed.responses[0].error_code, 0);
    assert_eq!(config(&mut client, TOPIC, "t", "retention.ms").await, ("604800000".into(), 5));
    let cases = [
        (increment(TOPIC, "t", &[("no.such", 0, "1")]), ResponseError::InvalidConfig),
        (increment(TOPIC, "t", &[("retention.ms", 2, "1")]), ResponseError::InvalidConfig),
        (increment(TOPIC, "t", &[("retention.ms", 9, "1")]), ResponseError::InvalidRequest),
        (increment(TOPIC, "missing", &[]), ResponseError::UnknownTopicOrPartition),
        (increment(BROKER, "0", &[("num.partitions", 0, "2")]), ResponseError::InvalidRequest),
    ];
    for (request, expected) in cases {
        assert_eq!(client.call(1, request).await.responses[0].error_code, expected.code());
    }
    let mut twice = increment(TOPIC, "t", &[("retention.ms", 0, "1")]);
    twice.resources.push(twice.resources[0].clone());
    let codes: Vec<_> =
        client.call(1, twice).await.responses.iter().map(|r| r.error_code).collect();
    assert_eq!(codes, [ResponseError::InvalidRequest.code(); 2]);
}

#[tokio::test]
async fn the_clusters_configs_reach_topics() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    let request = increment(BROKER, "", &[("log.retention.ms", 0, "5000")]);
    assert_eq!(client.call(1, request).await.responses[0].error_code, 0);
    assert_eq!(config(&mut client, TOPIC, "t", "retention.ms").await, ("5000".into(), 3));
}

/// Alters one config, and returns the code of the answer.
async fn alter(client: &mut Client, name: &str, config: &str, value: &str) -> i16 {
    let request = increment(BROKER, name, &[(config, 0, value)]);
    client.call(1, request).await.responses[0].error_code
}

#[tokio::test]
async fn a_broker_has_configs_of_its_own_whichever_broker_is_asked() {
    const SIZE: &str = "message.max.bytes";
    let broker = TestBroker::with_other().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    for (name, value) in [("", "5000"), ("1", "300"), ("0", "200")] {
        assert_eq!(alter(&mut client, name, SIZE, value).await, 0);
    }
    let notes = broker.engine.metadata.changes(0, 10).await.unwrap().into_iter();
    let notes = notes.filter(|note| note.action == "broker_configs.update");
    let noted: Vec<_> = notes.map(|note| note.target).collect();
    assert_eq!(noted, ["", "1", "0"]);
    // What is set for one broker acts on that one.
    assert_eq!(config(&mut client, TOPIC, "t", "max.message.bytes").await, ("200".into(), 2));
    let large = client.produce("t", 0, batch(&[&"x".repeat(250)])).await;
    assert_eq!(large.0, ResponseError::MessageTooLarge.code());
    // Each is described, with what it overrides; all together have what is set for all.
    let asked = describe(BROKER, "1", &[SIZE, "node.id"]).with_include_synonyms(true);
    let other = client.call(4, asked).await.results.remove(0);
    let synonyms: Vec<_> = other.configs[0]
        .synonyms
        .iter()
        .map(|one| (one.value.as_deref().unwrap_or_default(), one.source))
        .collect();
    assert_eq!(synonyms, [("300", 2), ("5000", 3), ("1048588", 5)]);
    assert_eq!(other.configs[1].value.as_deref(), Some("1"));
    assert_eq!(config(&mut client, BROKER, "0", SIZE).await, ("200".into(), 2));
    assert_eq!(config(&mut client, BROKER, "", SIZE).await, ("5000".into(), 3));
    // Without its own value, a broker has that of all, also where it is replaced the old way.
    let removal = increment(BROKER, "0", &[(SIZE, 1, "")]);
    assert_eq!(client.call(1, removal).await.responses[0].error_code, 0);
    assert_eq!(config(&mut client, BROKER, "0", SIZE).await, ("5000".into(), 3));
    let resource = alter_configs_request::AlterConfigsResource::default()
        .with_resource_type(BROKER)
        .with_resource_name(text("1"));
    let request = AlterConfigsRequest::default().with_resources(vec![resource]);
    assert_eq!(client.call(2, request).await.responses[0].error_code, 0);
    assert_eq!(config(&mut client, BROKER, "1", SIZE).await, ("5000".into(), 3));
    assert_eq!(config(&mut client, TOPIC, "t", "max.message.bytes").await, ("5000".into(), 3));
}

#[tokio::test]
async fn only_brokers_of_the_cluster_have_configs_and_not_for_how_long_records_are_kept() {
    use ResponseError as E;
    let broker = TestBroker::with_other().await;
    let mut client = broker.client();
    let cases = [
        ("2", "message.max.bytes", "1000", E::BrokerIdNotRegistered),
        ("-1", "message.max.bytes", "1000", E::BrokerIdNotRegistered),
        ("one", "message.max.bytes", "1000", E::InvalidRequest),
        ("1", "message.max.bytes", "many", E::InvalidRequest),
        ("1", "log.retention.ms", "1000", E::InvalidRequest),
        ("1", "num.partitions", "2", E::InvalidRequest),
    ];
    for (name, config, value, expected) in cases {
        let code = alter(&mut client, name, config, value).await;
        assert_eq!(code, expected.code(), "{name} {config}");
    }
    assert!(broker.engine.view.snapshot().broker_configs.is_empty());
    // A broker that is not awake has some as well.
    let stored = broker.engine.metadata.set_scale(3).await.unwrap();
    broker.engine.view.wait_for(stored.revision).await.unwrap();
    assert_eq!(alter(&mut client, "2", "message.max.bytes", "1000").await, 0);
    assert_eq!(config(&mut client, BROKER, "2", "message.max.bytes").await, ("1000".into(), 2));
}

#[tokio::test]
async fn altering_configs_the_old_way_replaces_all_of_them() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[("retention.ms", "1000")]).await;
    for version in 0..=2 {
        let config = alter_configs_request::AlterableConfig::default()
            .with_name(text("retention.bytes"))
            .with_value(Some(text("77")));
        let resource = alter_configs_request::AlterConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(text("t"))
            .with_configs(vec![config]);
        let request = AlterConfigsRequest::default().with_resources(vec![resource]);
        assert_eq!(client.call(version, request).await.responses[0].error_code, 0);
    }
    assert_eq!(config(&mut client, TOPIC, "t", "retention.bytes").await, ("77".into(), 1));
    assert_eq!(config(&mut client, TOPIC, "t", "retention.ms").await.1, 5);
}

#[tokio::test]
async fn clients_see_the_zone_of_a_broker_where_it_is_known() {
    for (zone, rack) in [("zone-b", Some("zone-b")), ("", None)] {
        let broker = TestBroker::with(Setup { zone, ..Setup::default() }).await;
        let mut client = broker.client();
        let metadata = client.call(13, MetadataRequest::default()).await;
        assert_eq!(metadata.brokers[0].rack.as_deref(), rack);
        let cluster = client.call(2, DescribeClusterRequest::default().with_endpoint_type(1)).await;
        assert_eq!(cluster.brokers[0].rack.as_deref(), rack);
    }
}

#[tokio::test]
async fn the_cluster_is_described() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for version in 0..=2 {
        let request = DescribeClusterRequest::default()
            .with_include_cluster_authorized_operations(true)
            .with_endpoint_type(1);
        let response = client.call(version, request).await;
        assert_eq!((response.error_code, response.brokers[0].host.as_str()), (0, HOST));
        assert_eq!(response.cluster_id.as_str(), broker.engine.cluster_id);
        assert!(response.cluster_authorized_operations > 0);
    }
    for (kind, expected) in
        [(2, ResponseError::MismatchedEndpointType), (9, ResponseError::UnsupportedEndpointType)]
    {
        let request = DescribeClusterRequest::default().with_endpoint_type(kind);
        assert_eq!(client.call(1, request).await.error_code, expected.code());
    }
}

#[tokio::test]
async fn log_dirs_report_how_large_partitions_are() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 2, &[]).await;
    let produced = batch(&["x"]);
    client.produce("t", 1, produced.clone()).await;
    for version in 1..=4 {
        let request = DescribeLogDirsRequest::default().with_topics(None);
        let response = client.call(version, request).await;
        let topic = &response.results[0].topics[0];
        let sizes: Vec<_> =
            topic.partitions.iter().map(|partition| partition.partition_size).collect();
        assert_eq!(sizes, [0, produced.len() as i64]);
    }
}

#[tokio::test]
async fn topics_are_described_page_by_page() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("a", 2, &[]).await;
    client.create_topic("b", 3, &[]).await;
    let mut cursor: Option<Cursor> = None;
    let mut partitions = Vec::new();
    for _ in 0..5 {
        let request = DescribeTopicPartitionsRequest::default()
            .with_response_partition_limit(2)
            .with_cursor(cursor.take());
        let response = client.call(0, request).await;
        for topic in &response.topics {
            for partition in &topic.partitions {
                assert_eq!(partition.eligible_leader_replicas, Some(Vec::new()), "never null");
                assert_eq!(partition.last_known_elr, Some(Vec::new()), "never null");
                partitions
                    .push((topic.name.as_ref().unwrap().to_string(), partition.partition_index));
            }
        }
        let Some(next) = response.next_cursor else { break };
        cursor = Some(
            Cursor::default()
                .with_topic_name(next.topic_name)
                .with_partition_index(next.partition_index),
        );
    }
    let expected = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)];
    assert_eq!(partitions, expected.map(|(name, index)| (name.to_owned(), index)));
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(vec![TopicRequest::default().with_name(topic_name("missing"))])
        .with_response_partition_limit(10)
        .with_cursor(None);
    let response = client.call(0, request).await;
    let unknown = ResponseError::UnknownTopicOrPartition.code();
    assert_eq!(response.topics[0].error_code, unknown);
}

fn upsert(user: &str, mechanism: i8, iterations: i32) -> ScramCredentialUpsertion {
    let bytes = if mechanism == 2 { 64 } else { 32 };
    ScramCredentialUpsertion::default()
        .with_name(text(user))
        .with_mechanism(mechanism)
        .with_iterations(iterations)
        .with_salt(Bytes::from_static(b"salt"))
        .with_salted_password(vec![7; bytes].into())
}

fn remove(user: &str, mechanism: i8) -> ScramCredentialDeletion {
    ScramCredentialDeletion::default().with_name(text(user)).with_mechanism(mechanism)
}

async fn alter_users(
    client: &mut Client,
    deletions: Vec<ScramCredentialDeletion>,
    upsertions: Vec<ScramCredentialUpsertion>,
) -> Vec<(String, i16)> {
    let request = AlterUserScramCredentialsRequest::default()
        .with_deletions(deletions)
        .with_upsertions(upsertions);
    let response = client.call(0, request).await;
    response.results.iter().map(|result| (result.user.to_string(), result.error_code)).collect()
}

#[tokio::test]
async fn users_are_made_described_and_removed() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let made = vec![upsert("alice", 1, 4096), upsert("alice", 2, 8192), upsert("bob", 1, 4096)];
    let ok = |user: &str| (user.to_owned(), 0);
    assert_eq!(alter_users(&mut client, Vec::new(), made).await, [ok("alice"), ok("bob")]);
    let request = DescribeUserScramCredentialsRequest::default().with_users(None);
    let response = client.call(0, request).await;
    let alice = &response.results[0];
    assert_eq!((alice.user.as_str(), alice.error_code), ("alice", 0));
    let infos = alice.credential_infos.iter();
    let infos: Vec<_> = infos.map(|info| (info.mechanism, info.iterations)).collect();
    assert_eq!(infos, [(1, 4096), (2, 8192)]);
    let removed = alter_users(&mut client, vec![remove("alice", 1)], Vec::new()).await;
    assert_eq!(removed, [ok("alice")]);
    let scram = broker.engine.view.snapshot().scram.clone();
    assert!(!scram.contains_key(&(ScramMechanism::Sha256, "alice".to_owned())));
    assert!(scram.contains_key(&(ScramMechanism::Sha512, "alice".to_owned())));
    let ask = |names: &[&str]| {
        let users = names.iter().map(|name| UserName::default().with_name(text(name))).collect();
        DescribeUserScramCredentialsRequest::default().with_users(Some(users))
    };
    let response = client.call(0, ask(&["nobody", "bob", "bob"])).await;
    let codes: Vec<_> = response.results.iter().map(|result| result.error_code).collect();
    let expected = [ResponseError::DuplicateResource, ResponseError::ResourceNotFound];
    assert_eq!(codes, expected.map(|error| error.code()));
}

#[tokio::test]
async fn users_that_cannot_be_altered_have_kafkas_error() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let unacceptable = ResponseError::UnacceptableCredential;
    let cases = [
        (vec![], vec![upsert("a", 1, 100)], unacceptable),
        (vec![], vec![upsert("a", 1, 100_000)], unacceptable),
        (vec![], vec![upsert("", 1, 4096)], unacceptable),
        (vec![], vec![upsert("a\0", 1, 4096)], unacceptable),
        (vec![], vec![upsert("cred_x", 1, 4096)], unacceptable),
        (vec![], vec![upsert("a\u{202e}b", 2, 4096)], unacceptable),
        (vec![], vec![upsert(&"x".repeat(32 << 10), 1, 4096)], unacceptable),
        (vec![], vec![upsert("a", 9, 4096)], ResponseError::UnsupportedSaslMechanism),
        (vec![remove("a", 1)], vec![], ResponseError::ResourceNotFound),
        (
            vec![],
            vec![upsert("a", 1, 4096), upsert("a", 1, 8192)],
            ResponseError::DuplicateResource,
        ),
    ];
    for (deletions, upsertions, expected) in cases {
        let results = alter_users(&mut client, deletions, upsertions).await;
        assert_eq!(results[0].1, expected.code());
    }
    assert!(broker.engine.view.snapshot().scram.is_empty());
}
