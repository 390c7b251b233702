//! Our codecs of Produce and Fetch against those of the crate `kafka-protocol`, in every version:
//! ours reads what it writes, and it reads what ours writes.

use bytes::{Bytes, BytesMut};
use freshet_wire::protocol::fetch::{
    AbortedTransaction, EpochEndOffset, FetchPartitionResponse, FetchRequest, FetchResponse,
    FetchTopicResponse,
};
use freshet_wire::protocol::leader::{CurrentLeader, NodeEndpoint};
use freshet_wire::protocol::produce::{
    ProducePartitionResponse, ProduceRequest, ProduceResponse, ProduceTopicResponse,
};
use kafka_protocol::messages::{
    BrokerId, ProducerId, TopicName, TransactionalId, fetch_request, fetch_response,
    produce_request, produce_response,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use uuid::Uuid;

fn encoded(message: &impl Encodable, version: i16) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut out, version).expect("a message that this version can say");
    out.freeze()
}

/// Decodes all of `bytes` with the other implementation.
fn decoded<T: Decodable>(mut bytes: Bytes, version: i16) -> T {
    let message = T::decode(&mut bytes, version).expect("what ours wrote");
    assert!(bytes.is_empty(), "the other implementation leaves {} bytes", bytes.len());
    message
}

fn text() -> impl Strategy<Value = StrBytes> {
    "[a-zé]{0,12}".prop_map(StrBytes::from_string)
}

fn payload() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn id() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

prop_compose! {
    fn their_produce()(
        transactional_id in option::of(text()),
        acks: i16,
        timeout_ms: i32,
        topics in vec((text(), id(), vec((any::<i32>(), option::of(payload())), 0..4)), 0..4),
    ) -> produce_request::ProduceRequest {
        let topics = topics.into_iter().map(|(name, topic_id, partitions)| {
            let partitions = partitions.into_iter().map(|(index, records)| {
                let partition = produce_request::PartitionProduceData::default();
                partition.with_index(index).with_records(records)
            });
            produce_request::TopicProduceData::default()
                .with_name(TopicName(name))
                .with_topic_id(topic_id)
                .with_partition_data(partitions.collect())
        });
        produce_request::ProduceRequest::default()
            .with_transactional_id(transactional_id.map(TransactionalId))
            .with_acks(acks)
            .with_timeout_ms(timeout_ms)
            .with_topic_data(topics.collect())
    }
}

prop_compose! {
    fn fetch_partition()(
        small in any::<[i32; 4]>(),
        large in any::<[i64; 3]>(),
        folder in id(),
    ) -> fetch_request::FetchPartition {
        fetch_request::FetchPartition::default()
            .with_partition(small[0])
            .with_current_leader_epoch(small[1])
            .with_last_fetched_epoch(small[2])
            .with_partition_max_bytes(small[3])
            .with_fetch_offset(large[0])
            .with_log_start_offset(large[1])
            .with_high_watermark(large[2])
            .with_replica_directory_id(folder)
    }
}

prop_compose! {
    fn their_fetch()(
        numbers in any::<[i32; 6]>(),
        replica_epoch: i64,
        isolation_level: i8,
        cluster_id in option::of(text()),
        rack_id in text(),
        topics in vec((text(), id(), vec(fetch_partition(), 0..4)), 0..4),
        forgotten in vec((text(), id(), vec(any::<i32>(), 0..4)), 0..3),
    ) -> fetch_request::FetchRequest {
        let topics = topics.into_iter().map(|(name, topic_id, partitions)| {
            fetch_request::FetchTopic::default()
                .with_topic(TopicName(name))
                .with_topic_id(topic_id)
                .with_partitions(partitions)
        });
        let forgotten = forgotten.into_iter().map(|(name, topic_id, partitions)| {
            fetch_request::ForgottenTopic::default()
                .with_topic(TopicName(name))
                .with_topic_id(topic_id)
                .with_partitions(partitions)
        });
        let replica = fetch_request::ReplicaState::default()
            .with_replica_id(BrokerId(numbers[0]))
            .with_replica_epoch(replica_epoch);
        fetch_request::FetchRequest::default()
            .with_cluster_id(cluster_id)
            .with_replica_id(BrokerId(numbers[0]))
            .with_replica_state(replica)
            .with_max_wait_ms(numbers[1])
            .with_min_bytes(numbers[2])
            .with_max_bytes(numbers[3])
            .with_session_id(numbers[4])
            .with_session_epoch(numbers[5])
            .with_isolation_level(isolation_level)
            .with_topics(topics.collect())
            .with_forgotten_topics_data(forgotten.collect())
            .with_rack_id(rack_id)
    }
}

/// Resets what this version cannot say, which the other implementation refuses to encode.
fn fetch_as_of(
    mut request: fetch_request::FetchRequest,
    version: i16,
) -> fetch_request::FetchRequest {
    let default = fetch_request::FetchRequest::default();
    if version < 7 {
        request.session_id = default.session_id;
        request.session_epoch = default.session_epoch;
        request.forgotten_topics_data.clear();
    }
    if version < 11 {
        request.rack_id = default.rack_id;
    }
    if version < 12 {
        request.cluster_id = None;
    }
    if version < 15 {
        request.replica_state = default.replica_state;
    } else {
        request.replica_id = default.replica_id;
    }
    for topic in &mut request.topics {
        for partition in &mut topic.partitions {
            let default = fetch_request::FetchPartition::default();
            if version < 9 {
                partition.current_leader_epoch = default.current_leader_epoch;
            }
            if version < 12 {
                partition.last_fetched_epoch = default.last_fetched_epoch;
            }
            if version < 17 {
                partition.replica_directory_id = default.replica_directory_id;
            }
            if version < 18 {
                partition.high_watermark = default.high_watermark;
            }
        }
    }
    request
}

fn assert_produce_read(theirs: &produce_request::ProduceRequest, version: i16) {
    let bytes = encoded(theirs, version);
    let theirs: produce_request::ProduceRequest = decoded(bytes.clone(), version);
    let ours = ProduceRequest::decode(bytes.clone(), version).expect("what theirs wrote");
    assert_eq!(ours.transactional_id, theirs.transactional_id.map(|id| id.0));
    assert_eq!((ours.acks, ours.timeout_ms), (theirs.acks, theirs.timeout_ms));
    assert_eq!(ours.topics.len(), theirs.topic_data.len());
    for (ours, theirs) in ours.topics.iter().zip(&theirs.topic_data) {
        assert_eq!((&ours.name, ours.topic_id), (&theirs.name.0, theirs.topic_id));
        let ours: Vec<_> = ours.partitions.iter().map(|p| (p.index, p.records.clone())).collect();
        let theirs: Vec<_> =
            theirs.partition_data.iter().map(|p| (p.index, p.records.clone())).collect();
        assert_eq!(ours, theirs);
        for records in ours.into_iter().filter_map(|partition| partition.1) {
            assert!(
                records.is_empty() || bytes.as_ptr_range().contains(&records.as_ptr()),
                "records share the frame's allocation"
            );
        }
    }
    for length in 0..bytes.len() {
        assert!(ProduceRequest::decode(bytes.slice(..length), version).is_err());
    }
}

fn assert_fetch_read(theirs: &fetch_request::FetchRequest, version: i16) {
    let bytes = encoded(theirs, version);
    let theirs: fetch_request::FetchRequest = decoded(bytes.clone(), version);
    let ours = FetchRequest::decode(bytes.clone(), version).expect("what theirs wrote");
    let replica = if version < 15 {
        (theirs.replica_id.0, -1)
    } else {
        (theirs.replica_state.replica_id.0, theirs.replica_state.replica_epoch)
    };
    assert_eq!((ours.replica_id, ours.replica_epoch), replica);
    assert_eq!(
        (ours.cluster_id, ours.max_wait_ms, ours.min_bytes, ours.max_bytes, ours.isolation_level),
        (
            theirs.cluster_id,
            theirs.max_wait_ms,
            theirs.min_bytes,
            theirs.max_bytes,
            theirs.isolation_level
        )
    );
    assert_eq!(
        (ours.session_id, ours.session_epoch, ours.rack_id),
        (theirs.session_id, theirs.session_epoch, theirs.rack_id)
    );
    assert_eq!(ours.topics.len(), theirs.topics.len());
    for (ours, theirs) in ours.topics.iter().zip(&theirs.topics) {
        assert_eq!((&ours.name, ours.topic_id), (&theirs.topic.0, theirs.topic_id));
        assert_eq!(ours.partitions.len(), theirs.partitions.len());
        for (ours, theirs) in ours.partitions.iter().zip(&theirs.partitions) {
            let read = fetch_request::FetchPartition::default()
                .with_partition(ours.index)
                .with_current_leader_epoch(ours.current_leader_epoch)
                .with_last_fetched_epoch(ours.last_fetched_epoch)
                .with_partition_max_bytes(ours.partition_max_bytes)
                .with_fetch_offset(ours.fetch_offset)
                .with_log_start_offset(ours.log_start_offset)
                .with_high_watermark(ours.high_watermark)
                .with_replica_directory_id(ours.replica_directory_id);
            assert_eq!(&read, theirs);
        }
    }
    let forgotten: Vec<_> = ours
        .forgotten_topics
        .into_iter()
        .map(|topic| (topic.name, topic.topic_id, topic.partitions))
        .collect();
    let expected: Vec<_> = theirs
        .forgotten_topics_data
        .into_iter()
        .map(|topic| (topic.topic.0, topic.topic_id, topic.partitions))
        .collect();
    assert_eq!(forgotten, expected);
    for length in 0..bytes.len() {
        assert!(FetchRequest::decode(bytes.slice(..length), version).is_err());
    }
}

prop_compose! {
    fn leader()(leader_id: i32, leader_epoch: i32) -> CurrentLeader {
        CurrentLeader { leader_id, leader_epoch }
    }
}

prop_compose! {
    fn node()(
        node_id: i32,
        host in "[a-z.]{1,20}",
        port: i32,
        rack in option::of("[a-z]{0,5}"),
    ) -> NodeEndpoint {
        NodeEndpoint { node_id, host, port, rack }
    }
}

prop_compose! {
    fn our_produce_partition()(
        index: i32,
        error_code: i16,
        offsets in any::<[i64; 3]>(),
        record_errors in vec((any::<i32>(), "[a-z ]{0,9}"), 0..3),
        error_message in option::of("[a-z ]{0,9}"),
        current_leader in option::of(leader()),
    ) -> ProducePartitionResponse {
        let [base_offset, log_append_time_ms, log_start_offset] = offsets;
        ProducePartitionResponse {
            index, error_code, base_offset, log_append_time_ms, log_start_offset, record_errors,
            error_message, current_leader,
        }
    }
}

prop_compose! {
    fn our_produce()(
        topics in vec((text(), id(), vec(our_produce_partition(), 0..4)), 0..4),
        throttle_time_ms: i32,
        node_endpoints in vec(node(), 0..3),
    ) -> ProduceResponse {
        let topics = topics
            .into_iter()
            .map(|(name, topic_id, partitions)| ProduceTopicResponse { name, topic_id, partitions })
            .collect();
        ProduceResponse { topics, throttle_time_ms, node_endpoints }
    }
}

fn expected_produce_partition(
    ours: &ProducePartitionResponse,
    version: i16,
) -> produce_response::PartitionProduceResponse {
    let mut theirs = produce_response::PartitionProduceResponse::default()
        .with_index(ours.index)
        .with_error_code(ours.error_code)
        .with_base_offset(ours.base_offset)
        .with_log_append_time_ms(ours.log_append_time_ms);
    if version >= 5 {
        theirs.log_start_offset = ours.log_start_offset;
    }
    if version >= 8 {
        let errors = ours.record_errors.iter().map(|(index, message)| {
            produce_response::BatchIndexAndErrorMessage::default()
                .with_batch_index(*index)
                .with_batch_index_error_message(Some(StrBytes::from_string(message.clone())))
        });
        theirs.record_errors = errors.collect();
        theirs.error_message = ours.error_message.clone().map(StrBytes::from_string);
    }
    if let (10.., Some(leader)) = (version, ours.current_leader) {
        theirs.current_leader = produce_response::LeaderIdAndEpoch::default()
            .with_leader_id(BrokerId(leader.leader_id))
            .with_leader_epoch(leader.leader_epoch);
    }
    theirs
}

fn expected_produce(ours: &ProduceResponse, version: i16) -> produce_response::ProduceResponse {
    let topics = ours.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|ours| expected_produce_partition(ours, version));
        let theirs = produce_response::TopicProduceResponse::default()
            .with_partition_responses(partitions.collect());
        if version >= 13 {
            theirs.with_topic_id(topic.topic_id)
        } else {
            theirs.with_name(TopicName(topic.name.clone()))
        }
    });
    let nodes = ours.node_endpoints.iter().filter(|_| version >= 10).map(|node| {
        produce_response::NodeEndpoint::default()
            .with_node_id(BrokerId(node.node_id))
            .with_host(StrBytes::from_string(node.host.clone()))
            .with_port(node.port)
            .with_rack(node.rack.clone().map(StrBytes::from_string))
    });
    produce_response::ProduceResponse::default()
        .with_responses(topics.collect())
        .with_throttle_time_ms(ours.throttle_time_ms)
        .with_node_endpoints(nodes.collect())
}

prop_compose! {
    fn aborted()(producer_id: i64, first_offset: i64) -> AbortedTransaction {
        AbortedTransaction { producer_id, first_offset }
    }
}

prop_compose! {
    fn diverging()(epoch: i32, end_offset: i64) -> EpochEndOffset {
        EpochEndOffset { epoch, end_offset }
    }
}

prop_compose! {
    fn our_fetch_partition()(
        small in any::<[i32; 2]>(),
        error_code: i16,
        offsets in any::<[i64; 3]>(),
        aborted_transactions in option::of(vec(aborted(), 0..3)),
        records in vec(0_usize..2000, 0..4),
        diverging_epoch in option::of(diverging()),
        current_leader in option::of(leader()),
    ) -> FetchPartitionResponse {
        let [index, preferred_read_replica] = small;
        let [high_watermark, last_stable_offset, log_start_offset] = offsets;
        FetchPartitionResponse {
            index, error_code, high_watermark, last_stable_offset, log_start_offset,
            aborted_transactions,
            preferred_read_replica,
            records: records.into_iter().map(|length| Bytes::from(vec![9; length])).collect(),
            diverging_epoch,
            current_leader,
        }
    }
}

prop_compose! {
    fn our_fetch()(
        topics in vec((text(), id(), vec(our_fetch_partition(), 0..4)), 0..4),
        throttle_time_ms: i32,
        error_code: i16,
        session_id: i32,
        node_endpoints in vec(node(), 0..3),
    ) -> FetchResponse {
        let topics = topics
            .into_iter()
            .map(|(name, topic_id, partitions)| FetchTopicResponse { name, topic_id, partitions })
            .collect();
        FetchResponse { throttle_time_ms, error_code, session_id, topics, node_endpoints }
    }
}

fn expected_fetch_partition(
    ours: &FetchPartitionResponse,
    version: i16,
) -> fetch_response::PartitionData {
    let aborted = ours.aborted_transactions.as_ref().map(|list| {
        let aborted = list.iter().map(|transaction| {
            fetch_response::AbortedTransaction::default()
                .with_producer_id(ProducerId(transaction.producer_id))
                .with_first_offset(transaction.first_offset)
        });
        aborted.collect()
    });
    let mut theirs = fetch_response::PartitionData::default()
        .with_partition_index(ours.index)
        .with_error_code(ours.error_code)
        .with_high_watermark(ours.high_watermark)
        .with_last_stable_offset(ours.last_stable_offset)
        .with_aborted_transactions(aborted)
        .with_records(Some(ours.records.concat().into()));
    if version >= 5 {
        theirs.log_start_offset = ours.log_start_offset;
    }
    if version >= 11 {
        theirs.preferred_read_replica = BrokerId(ours.preferred_read_replica);
    }
    if let (12.., Some(diverging)) = (version, ours.diverging_epoch) {
        theirs.diverging_epoch = fetch_response::EpochEndOffset::default()
            .with_epoch(diverging.epoch)
            .with_end_offset(diverging.end_offset);
    }
    if let (12.., Some(leader)) = (version, ours.current_leader) {
        theirs.current_leader = fetch_response::LeaderIdAndEpoch::default()
            .with_leader_id(BrokerId(leader.leader_id))
            .with_leader_epoch(leader.leader_epoch);
    }
    theirs
}

fn expected_fetch(ours: &FetchResponse, version: i16) -> fetch_response::FetchResponse {
    let topics = ours.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|ours| expected_fetch_partition(ours, version));
        let theirs =
            fetch_response::FetchableTopicResponse::default().with_partitions(partitions.collect());
        if version >= 13 {
            theirs.with_topic_id(topic.topic_id)
        } else {
            theirs.with_topic(TopicName(topic.name.clone()))
        }
    });
    let nodes = ours.node_endpoints.iter().filter(|_| version >= 16).map(|node| {
        fetch_response::NodeEndpoint::default()
            .with_node_id(BrokerId(node.node_id))
            .with_host(StrBytes::from_string(node.host.clone()))
            .with_port(node.port)
            .with_rack(node.rack.clone().map(StrBytes::from_string))
    });
    let theirs = fetch_response::FetchResponse::default()
        .with_throttle_time_ms(ours.throttle_time_ms)
        .with_responses(topics.collect())
        .with_node_endpoints(nodes.collect());
    if version >= 7 {
        theirs.with_error_code(ours.error_code).with_session_id(ours.session_id)
    } else {
        theirs
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn produce_requests_of_every_version_are_read(theirs in their_produce()) {
        for version in 3..=13 {
            assert_produce_read(&theirs, version);
        }
    }

    #[test]
    fn fetch_requests_of_every_version_are_read(theirs in their_fetch()) {
        for version in 4..=18 {
            assert_fetch_read(&fetch_as_of(theirs.clone(), version), version);
        }
    }

    #[test]
    fn produce_responses_of_every_version_are_understood(ours in our_produce()) {
        for version in 3..=13 {
            let theirs: produce_response::ProduceResponse =
                decoded(ours.encode(version), version);
            prop_assert_eq!(theirs, expected_produce(&ours, version));
        }
    }

    #[test]
    fn fetch_responses_of_every_version_are_understood(ours in our_fetch()) {
        for version in 4..=18 {
            let pieces = ours.clone().encode(version);
            let theirs: fetch_response::FetchResponse = decoded(pieces.concat().into(), version);
            prop_assert_eq!(theirs, expected_fetch(&ours, version));
        }
    }
}

#[test]
fn large_records_go_out_as_the_slices_that_came_in() {
    let records = Bytes::from(vec![1; 100_000]);
    let partition = FetchPartitionResponse {
        records: vec![records.slice(..50_000), records.slice(50_000..)],
        ..FetchPartitionResponse::failed(0, 0)
    };
    let topic = FetchTopicResponse { partitions: vec![partition], ..Default::default() };
    let pieces = FetchResponse { topics: vec![topic], ..Default::default() }.encode(16);
    let shared = pieces.iter().filter(|piece| records.as_ptr_range().contains(&piece.as_ptr()));
    assert_eq!(shared.map(Bytes::len).sum::<usize>(), 100_000);
}
