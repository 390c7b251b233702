//! Topics that are deleted and come back; records that are deleted; and which changes are recorded.

use freshet_metadata::schema::ChangeRecord;
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::{
    BrokerId, DeleteRecordsRequest, DeleteTopicsRequest, FetchRequest, FindCoordinatorRequest,
    GroupId, ListGroupsRequest, ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest,
};

use super::harness::{Client, TestBroker, batch, text, topic_name};

async fn delete(client: &mut Client, name: &str) -> i16 {
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name(name)])
        .with_timeout_ms(10_000);
    client.call(5, request).await.responses[0].error_code
}

/// The error of a fetch from an offset, and how many bytes of records it gave.
async fn fetch(client: &mut Client, topic: &str, offset: i64) -> (i16, usize) {
    let partition = FetchPartition::default()
        .with_partition(0)
        .with_fetch_offset(offset)
        .with_partition_max_bytes(1 << 20);
    let topic =
        FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![partition]);
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_bytes(1 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic]);
    let answer = client.call(11, request).await;
    let fetched = &answer.responses[0].partitions[0];
    (fetched.error_code, fetched.records.as_ref().map_or(0, bytes::Bytes::len))
}

async fn restore(broker: &TestBroker, id: uuid::Uuid, name: Option<&str>) {
    let restored = broker.engine.metadata.restore_topic(None, id, name).await.unwrap();
    broker.engine.view.wait_for(restored.revision).await.unwrap();
}

#[tokio::test]
async fn a_deleted_topic_comes_back_with_its_records_under_any_name() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let id = client.create_topic("t", 2, &[("retention.ms", "1000000000")]).await;
    assert_eq!(client.produce("t", 0, batch(&["a", "b"])).await, (0, 0));
    assert_eq!(delete(&mut client, "t").await, 0);
    let unknown = E::UnknownTopicOrPartition.code();
    assert_eq!(fetch(&mut client, "t", 0).await.0, unknown);
    assert_eq!(client.produce("t", 0, batch(&["x"])).await.0, unknown);
    assert_eq!(delete(&mut client, "t").await, unknown);
    // The new topic of the same name has nothing of the deleted one.
    let other = client.create_topic("t", 1, &[]).await;
    assert_ne!(other, id);
    assert_eq!(fetch(&mut client, "t", 0).await, (0, 0));
    assert_eq!(client.produce("t", 0, batch(&["other"])).await, (0, 0));
    let taken = broker.engine.metadata.restore_topic(None, id, None).await;
    assert_eq!(taken.unwrap_err().to_string(), "topic 't' already exists");
    restore(&broker, id, Some("back")).await;
    let metadata = client.metadata(&["back"]).await;
    assert_eq!((metadata.topics[0].topic_id, metadata.topics[0].partitions.len()), (id, 2));
    assert!(fetch(&mut client, "back", 0).await.1 > 0);
    // Offsets go on where they were.
    assert_eq!(client.produce("back", 0, batch(&["c"])).await, (0, 2));
    let again = broker.engine.metadata.restore_topic(None, id, None).await;
    assert!(again.is_err());
}

#[tokio::test]
async fn a_purged_topic_does_not_come_back() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let id = client.create_topic("t", 1, &[]).await;
    client.produce("t", 0, batch(&["a"])).await;
    assert_eq!(delete(&mut client, "t").await, 0);
    assert_eq!(broker.engine.partitions.count_of(id), 1, "it is led all the same");
    let metadata = &broker.engine.metadata;
    let purged = metadata.purge_topic(None, id).await.unwrap();
    assert_eq!(purged.record.topic.id, id);
    broker.engine.view.wait_for(purged.revision).await.unwrap();
    assert!(metadata.restore_topic(None, id, None).await.is_err());
    assert!(broker.engine.view.snapshot().deleted_topics.contains_key(&id));
    while broker.engine.partitions.count_of(id) > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(metadata.partitions_of(id).await.unwrap(), []);
}

async fn commit(client: &mut Client, topic: &str, offset: i64) -> i16 {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset);
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    client.call(8, request).await.topics[0].partitions[0].error_code
}

/// The committed offset where it is fetched by name, and the number of topics where all are
/// fetched.
async fn committed(client: &mut Client, topic: &str) -> (i64, usize) {
    let named = OffsetFetchRequestTopics::default()
        .with_name(topic_name(topic))
        .with_partition_indexes(vec![0]);
    let group = |topics| {
        let group = OffsetFetchRequestGroup::default().with_group_id(GroupId(text("g")));
        OffsetFetchRequest::default().with_groups(vec![group.with_topics(topics)])
    };
    let by_name = client.call(8, group(Some(vec![named]))).await;
    let all = client.call(8, group(None)).await;
    (by_name.groups[0].topics[0].partitions[0].committed_offset, all.groups[0].topics.len())
}

async fn coordinator(client: &mut Client) {
    let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![text("g")]);
    assert_eq!(client.call(4, request).await.coordinators[0].error_code, 0);
    while client.call(4, ListGroupsRequest::default()).await.error_code != 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn committed_offsets_come_back_with_their_topic_and_never_with_another() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    coordinator(&mut client).await;
    let id = client.create_topic("t", 1, &[]).await;
    client.produce("t", 0, batch(&["a", "b"])).await;
    assert_eq!(commit(&mut client, "t", 2).await, 0);
    assert_eq!(delete(&mut client, "t").await, 0);
    assert_eq!(committed(&mut client, "t").await, (-1, 0));
    restore(&broker, id, None).await;
    assert_eq!(committed(&mut client, "t").await, (2, 1));
    assert_eq!(delete(&mut client, "t").await, 0);
    client.create_topic("t", 1, &[]).await;
    assert_eq!(committed(&mut client, "t").await, (-1, 0));
}

fn deletion(topic: &str, log_starts: &[(i32, i64)]) -> DeleteRecordsRequest {
    let partitions = log_starts.iter().map(|(index, offset)| {
        DeleteRecordsPartition::default().with_partition_index(*index).with_offset(*offset)
    });
    let topic = DeleteRecordsTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(partitions.collect());
    DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000)
}

/// Low watermark and error of partition 0.
async fn delete_records(client: &mut Client, version: i16, topic: &str, offset: i64) -> (i64, i16) {
    let answer = client.call(version, deletion(topic, &[(0, offset)])).await;
    let result = &answer.topics[0].partitions[0];
    (result.low_watermark, result.error_code)
}

async fn earliest(client: &mut Client, topic: &str, timestamp: i64) -> i64 {
    let partition = ListOffsetsPartition::default().with_timestamp(timestamp);
    let topic =
        ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request =
        ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    client.call(5, request).await.topics[0].partitions[0].offset
}

#[tokio::test]
async fn records_before_an_offset_are_gone_in_every_version() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for version in 0..=2 {
        let topic = format!("t{version}");
        client.create_topic(&topic, 1, &[]).await;
        for value in ["a", "b", "c", "d"] {
            client.produce(&topic, 0, batch(&[value])).await;
        }
        assert_eq!(delete_records(&mut client, version, &topic, 2).await, (2, 0));
        let gone = E::OffsetOutOfRange.code();
        assert_eq!(fetch(&mut client, &topic, 1).await.0, gone);
        assert_eq!(fetch(&mut client, &topic, 2).await.0, 0);
        assert_eq!(earliest(&mut client, &topic, -2).await, 2);
        assert_eq!(earliest(&mut client, &topic, 0).await, 2);
        // Deleted records do not come back, and records beyond the end cannot be deleted.
        assert_eq!(delete_records(&mut client, version, &topic, 1).await, (2, 0));
        assert_eq!(delete_records(&mut client, version, &topic, 5).await, (-1, gone));
        assert_eq!(delete_records(&mut client, version, &topic, -2).await, (-1, gone));
        assert_eq!(delete_records(&mut client, version, &topic, -1).await, (4, 0));
        assert_eq!(fetch(&mut client, &topic, 4).await, (0, 0));
        assert_eq!(client.produce(&topic, 0, batch(&["e"])).await, (0, 4));
        assert!(fetch(&mut client, &topic, 4).await.1 > 0);
    }
}

#[tokio::test]
async fn records_that_must_stay_are_not_deleted() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    coordinator(&mut client).await;
    client.create_topic("compacted", 1, &[("cleanup.policy", "compact")]).await;
    let mut refusal = async |topic: &str, index: i32| {
        let answer = client.call(2, deletion(topic, &[(index, -1)])).await;
        answer.topics[0].partitions[0].error_code
    };
    assert_eq!(refusal("compacted", 0).await, E::PolicyViolation.code());
    assert_eq!(refusal("compacted", 7).await, E::PolicyViolation.code());
    assert_eq!(refusal("__consumer_offsets", 0).await, E::TopicAuthorizationFailed.code());
    assert_eq!(refusal("nowhere", 0).await, E::UnknownTopicOrPartition.code());
}

async fn changes(broker: &TestBroker) -> Vec<ChangeRecord> {
    broker.engine.metadata.changes(0, 1_000).await.unwrap()
}

#[tokio::test]
async fn changes_over_the_protocol_are_recorded_with_who_asked() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 2, &[("retention.ms", "5000")]).await;
    client.produce("t", 0, batch(&["a"])).await;
    delete_records(&mut client, 2, "t", 1).await;
    assert_eq!(delete(&mut client, "t").await, 0);
    // This request changed nothing.
    assert_ne!(delete(&mut client, "t").await, 0);
    let noted = changes(&broker).await;
    let short: Vec<_> = noted
        .iter()
        .map(|change| (change.sequence, change.action.as_str(), change.target.as_str()))
        .collect();
    assert_eq!(
        short,
        [(1, "topic.create", "t"), (2, "topic.delete_records", "t"), (3, "topic.delete", "t")]
    );
    let first = &noted[0];
    assert_eq!((first.principal.as_str(), first.client_id.as_str()), ("User:ANONYMOUS", "tests"));
    assert_eq!((first.address.as_str(), first.target_type.as_str()), ("10.1.2.3", "topic"));
    assert_eq!(first.detail["retention.ms"], "5000");
    assert_eq!(noted[1].detail["0"], "1");
    let metadata = &broker.engine.metadata;
    assert_eq!(metadata.forget_changes(2).await.unwrap(), 2);
    assert_eq!(changes(&broker).await.len(), 1);
    assert_eq!(metadata.changes(3, 10).await.unwrap(), []);
    client.create_topic("u", 1, &[]).await;
    assert_eq!(metadata.changes(3, 10).await.unwrap()[0].sequence, 4);
}
