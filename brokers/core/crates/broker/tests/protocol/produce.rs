//! Produce: versions, refusals, and acknowledgements.

use bytes::Bytes;
use freshet_metadata::schema::TrafficLimit;
use freshet_wire::records::{BatchBuilder, Compression, HEADER_BYTES};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_request::PartitionProduceData;

use super::harness::{TestBroker, batch, produce_request, text, topic_name};

#[tokio::test]
async fn every_version_appends_and_the_newest_names_topics_by_id() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let id = client.create_topic("t", 1, &[]).await;
    for version in 3..=13 {
        let mut request = produce_request("t", 0, batch(&["one", "two"]));
        if version >= 13 {
            request.topic_data[0].name = topic_name("");
            request.topic_data[0].topic_id = id;
        }
        let response = client.call(version, request).await;
        let topic = &response.responses[0];
        let answer = &topic.partition_responses[0];
        assert_eq!((answer.error_code, answer.base_offset), (0, i64::from(version - 3) * 2));
        assert_eq!(answer.log_append_time_ms, -1);
        assert_eq!(answer.log_start_offset, if version >= 5 { 0 } else { -1 });
        assert_eq!(topic.topic_id == id, version >= 13);
    }
    let mut unknown = produce_request("", 0, batch(&["x"]));
    unknown.topic_data[0].topic_id = uuid::Uuid::from_u128(7);
    let response = client.call(13, unknown).await;
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ResponseError::UnknownTopicId.code());
}

#[tokio::test]
async fn pipelined_requests_are_appended_and_answered_in_order() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 2, &[]).await;
    let mut sent = Vec::new();
    for number in 0..50 {
        let request = produce_request("t", number % 2, batch(&["value"]));
        sent.push(client.send(9, &request).await);
    }
    for (number, correlation_id) in sent.into_iter().enumerate() {
        let response = client.receive::<ProduceRequest>(9, correlation_id).await;
        let answer = &response.responses[0].partition_responses[0];
        assert_eq!((answer.error_code, answer.base_offset), (0, number as i64 / 2));
    }
}

#[tokio::test]
async fn a_retried_batch_keeps_its_offset_and_a_hole_is_refused() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    let sequenced = |sequence: i32| {
        BatchBuilder::new(0).producer(7, 0, sequence).record(0, None, Some(b"v")).build()
    };
    assert_eq!(client.produce("t", 0, sequenced(0)).await, (0, 0));
    assert_eq!(client.produce("t", 0, sequenced(1)).await, (0, 1));
    assert_eq!(client.produce("t", 0, sequenced(0)).await, (0, 0));
    let hole = client.produce("t", 0, sequenced(5)).await;
    assert_eq!(hole, (ResponseError::OutOfOrderSequenceNumber.code(), -1));
}

#[tokio::test]
async fn what_cannot_be_appended_has_kafkas_error_by_partition() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[("max.message.bytes", "200")]).await;
    client.create_topic("compacted", 1, &[("cleanup.policy", "compact")]).await;
    let corrupt = {
        let mut bytes = batch(&["x"]).to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        bytes.into()
    };
    let transactional =
        BatchBuilder::new(0).producer(1, 0, 0).transactional(true).record(0, None, None).build();
    let cases = [
        ("missing", 0, batch(&["x"]), ResponseError::UnknownTopicOrPartition),
        ("t", 1, batch(&["x"]), ResponseError::UnknownTopicOrPartition),
        ("t", 0, corrupt, ResponseError::CorruptMessage),
        ("t", 0, batch(&[&"x".repeat(300)]), ResponseError::MessageTooLarge),
        ("t", 0, Bytes::new(), ResponseError::InvalidRecord),
        ("t", 0, transactional.clone(), ResponseError::TransactionalIdAuthorizationFailed),
        ("compacted", 0, batch(&["no key"]), ResponseError::InvalidRecord),
    ];
    for (topic, partition, records, expected) in cases {
        assert_eq!(client.produce(topic, partition, records).await, (expected.code(), -1));
    }
    let response = client.call(9, produce_request("compacted", 0, batch(&["a", "b"]))).await;
    let answer = &response.responses[0].partition_responses[0];
    let faulty: Vec<i32> = answer.record_errors.iter().map(|record| record.batch_index).collect();
    assert_eq!(faulty, [0, 1]);
    assert!(answer.error_message.is_some());
    let wrong_acks = produce_request("t", 0, batch(&["x"])).with_acks(2);
    let response = client.call(9, wrong_acks).await;
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ResponseError::InvalidRequiredAcks.code());
    let request = produce_request("t", 0, transactional);
    let response = client.call(9, request.with_transactional_id(Some(text("x").into()))).await;
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ResponseError::InvalidTxnState.code());
    let zstd =
        BatchBuilder::new(0).compression(Compression::Zstd).record(0, None, Some(b"v")).build();
    let response = client.call(6, produce_request("t", 0, zstd.clone())).await;
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ResponseError::UnsupportedCompressionType.code());
    assert_eq!(client.produce("t", 0, zstd).await, (0, 0));
}

/// A batch of three records whose offset deltas are these, below 64, under a right checksum.
fn with_deltas(deltas: [u8; 3]) -> Bytes {
    let mut bytes = batch(&["v", "v", "v"]).to_vec();
    let record_bytes = (bytes.len() - HEADER_BYTES) / 3;
    for (at, delta) in deltas.into_iter().enumerate() {
        // Behind the length, the attributes and the timestamp's delta; zigzag.
        let place = HEADER_BYTES + at * record_bytes + 3;
        assert_eq!(usize::from(bytes[place]), 2 * at);
        bytes[place] = 2 * delta;
    }
    let crc = freshet_wire::codec::crc32c(&bytes[21..]).to_be_bytes();
    bytes[17..21].copy_from_slice(&crc);
    bytes.into()
}

#[tokio::test]
async fn offsets_out_of_order_are_refused_by_every_version_and_leave_nothing() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let id = client.create_topic("t", 1, &[]).await;
    for version in 3..=13 {
        for deltas in [[0, 7, 2], [0, 0, 0], [1, 2, 3]] {
            let mut request = produce_request("t", 0, with_deltas(deltas));
            if version >= 13 {
                request.topic_data[0].name = topic_name("");
                request.topic_data[0].topic_id = id;
            }
            let response = client.call(version, request).await;
            let answer = &response.responses[0].partition_responses[0];
            let expected = (ResponseError::InvalidRecord.code(), -1);
            assert_eq!((answer.error_code, answer.base_offset), expected, "{version} {deltas:?}");
            let reason = answer.error_message.as_ref().is_some_and(|text| text.contains("offsets"));
            assert_eq!(reason, version >= 8);
        }
    }
    assert_eq!(client.produce("t", 0, with_deltas([0, 1, 2])).await, (0, 0));
}

#[tokio::test]
async fn one_failed_partition_leaves_the_others_alone() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 2, &[]).await;
    let mut request = produce_request("t", 0, batch(&["a"]));
    for index in [9, 1] {
        let data =
            PartitionProduceData::default().with_index(index).with_records(Some(batch(&["b"])));
        request.topic_data[0].partition_data.push(data);
    }
    let response = client.call(9, request).await;
    let answers = response.responses[0].partition_responses.iter();
    let answers: Vec<_> = answers.map(|answer| (answer.index, answer.error_code)).collect();
    assert_eq!(answers, [(0, 0), (9, ResponseError::UnknownTopicOrPartition.code()), (1, 0)]);
}

#[tokio::test]
async fn without_acks_there_is_no_answer_and_an_error_closes_the_connection() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    client.send(9, &produce_request("t", 0, batch(&["silent"])).with_acks(0)).await;
    assert_eq!(client.produce("t", 0, batch(&["answered"])).await, (0, 1));
    client.send(9, &produce_request("missing", 0, batch(&["x"])).with_acks(0)).await;
    client.is_closed().await;
}

#[tokio::test]
async fn the_broker_sets_the_time_where_the_topic_says_so() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[("message.timestamp.type", "LogAppendTime")]).await;
    let response = client.call(9, produce_request("t", 0, batch(&["x"]))).await;
    let answer = &response.responses[0].partition_responses[0];
    assert_eq!(answer.error_code, 0);
    assert!(answer.log_append_time_ms > 1_700_000_000_000);
}

#[tokio::test]
async fn when_the_instance_ends_appends_are_refused_and_the_connection_closes() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    assert_eq!(client.produce("t", 0, batch(&["x"])).await, (0, 0));
    broker.engine.liveness.stand_down("test");
    client.is_closed().await;
}

#[tokio::test]
async fn a_refusal_answers_every_version_with_its_reason_until_it_is_lifted() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let id = client.create_topic("t", 1, &[]).await;
    let reason = || "no budget is left".to_owned();
    broker.limit_traffic(Some(TrafficLimit::RefuseProduce { reason: reason() })).await;
    for version in 3..=13 {
        let mut request = produce_request("t", 0, batch(&["one"]));
        if version >= 13 {
            request.topic_data[0].name = topic_name("");
            request.topic_data[0].topic_id = id;
        }
        let response = client.call(version, request).await;
        let answer = &response.responses[0].partition_responses[0];
        assert_eq!(answer.error_code, ResponseError::PolicyViolation.code());
        let reason = (version >= 8).then_some("no budget is left");
        assert_eq!(answer.error_message.as_deref(), reason, "version {version}");
    }
    broker.limit_traffic(Some(TrafficLimit::Refuse { reason: reason() })).await;
    let refused = client.produce("t", 0, batch(&["one"])).await;
    assert_eq!(refused.0, ResponseError::PolicyViolation.code());
    broker.limit_traffic(None).await;
    assert_eq!(client.produce("t", 0, batch(&["one"])).await, (0, 0), "nothing was appended");
}
