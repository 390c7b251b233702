//! Every byte that a client moves is billed or counted as not billed, whatever its requests are.

use std::time::Duration;

use bytes::Bytes;
use freshet_inspect::usage_reader::{EGRESS, INGRESS};
use freshet_wire::records::{BatchBuilder, Compression};
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::{
    ApiVersionsRequest, BrokerId, DeleteRecordsRequest, FetchRequest, InitProducerIdRequest,
    JoinGroupRequest, ListGroupsRequest, SaslHandshakeRequest,
};

use super::harness::{Client, TestBroker, batch, produce_request, topic_name};
use super::payers::{metered_of, service, tenant};
use super::unbilled::{commit, fetch_offsets, with_topic};

const EVE: &str = "User:eve";

fn sequenced(sequence: i32, bytes: usize, compression: Compression) -> Bytes {
    let value = vec![b'x'; bytes];
    let batch = BatchBuilder::new(0).compression(compression).producer(7, 0, sequence);
    batch.record(1_700_000_000_000, None, Some(&value)).build()
}

fn fetch(topic: &str, wait_ms: i32) -> FetchRequest {
    let partition = FetchPartition::default().with_partition(0).with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_topic(topic_name(topic));
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(wait_ms)
        .with_min_bytes(if wait_ms > 0 { i32::MAX } else { 1 })
        .with_max_bytes(i32::MAX)
        .with_session_epoch(-1)
        .with_topics(vec![topic.with_partitions(vec![partition])])
}

/// Bytes of eve that are billed, and that are not.
async fn counted(broker: &TestBroker) -> (u64, u64) {
    let topics = broker.engine.view.topics();
    let is_open = |id| topics.by_id(id).is_some_and(|topic| !topic.record.internal);
    let mut billed = 0;
    for meter in [INGRESS, EGRESS] {
        billed += metered_of(broker, meter, is_open).await.get(EVE).copied().unwrap_or(0);
    }
    let uses = broker.engine.settings.metrics.traffic.principals.uses();
    (billed, uses.get(EVE).map_or(0, |used| used.unbilled))
}

/// Waits until as much is counted as was moved: an answer is counted just after it was sent.
async fn wait_equal(broker: &TestBroker, moved: u64) -> (u64, u64) {
    for _ in 0..200 {
        let (billed, unbilled) = counted(broker).await;
        if billed + unbilled >= moved {
            assert_eq!(billed + unbilled, moved, "{billed} billed, {unbilled} not");
            return (billed, unbilled);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?} of {moved}", counted(broker).await);
}

#[tokio::test]
async fn billed_and_unbilled_bytes_are_all_bytes_of_the_connection() {
    let broker = with_topic().await;
    let mut root = service(&broker, None).await;
    root.create_topic("small", 1, &[("max.message.bytes", "200")]).await;
    let mut eve = tenant(&broker, "eve", "").await;
    let (mut next, mut stored) = (0, 0);
    let mut random = 20_261_127_u32;
    for _ in 0..300 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let bytes = (random >> 8) as usize % 5_000;
        match (random >> 24) % 15 {
            0..=2 => {
                let batch = sequenced(next, bytes, Compression::None);
                stored += batch.len() as u64;
                assert_eq!(eve.produce("t", 0, batch).await.0, 0);
                next += 1;
            }
            3 if next > 0 => {
                let again = sequenced(next - 1, bytes, Compression::None);
                assert_eq!(eve.produce("t", 0, again).await, (0, i64::from(next - 1)));
            }
            4 if next > 0 => {
                let hole = sequenced(next + 7, bytes, Compression::Lz4);
                let refused = E::OutOfOrderSequenceNumber.code();
                assert_eq!(eve.produce("t", 0, hole).await.0, refused);
            }
            5 => {
                // One batch is stored, the other one is refused.
                let batch = batch(&["one"]);
                stored += batch.len() as u64;
                let mut request = produce_request("t", 1, batch);
                let records = Some(sequenced(0, bytes, Compression::None));
                let unknown = PartitionProduceData::default().with_index(500).with_records(records);
                request.topic_data[0].partition_data.push(unknown);
                eve.call(9, request).await;
            }
            6 => {
                let refused = eve.produce("small", 0, batch(&[&"x".repeat(300 + bytes)])).await;
                assert_eq!(refused.0, E::MessageTooLarge.code());
            }
            7 => assert_ne!(eve.produce("t", 0, Bytes::from(vec![1; bytes])).await.0, 0),
            8 => {
                eve.call(12, fetch("t", 0)).await;
            }
            9 => {
                eve.call(11, fetch("unknown", 0)).await;
            }
            10 => {
                commit(&mut eve, "text").await;
                fetch_offsets(&mut eve).await;
            }
            11 => {
                let partition = DeleteRecordsPartition::default().with_offset(0);
                let topic = DeleteRecordsTopic::default().with_name(topic_name("t"));
                let topics = vec![topic.with_partitions(vec![partition])];
                eve.call(2, DeleteRecordsRequest::default().with_topics(topics)).await;
            }
            12 => {
                eve.call(4, ListGroupsRequest::default()).await;
                eve.call(3, InitProducerIdRequest::default()).await;
            }
            13 => {
                eve.call(0, ApiVersionsRequest::default()).await;
                eve.call(1, SaslHandshakeRequest::default()).await;
            }
            _ => {
                eve.metadata(&["t"]).await;
            }
        }
    }
    let (billed, unbilled) = wait_equal(&broker, eve.moved).await;
    assert!(billed > stored && stored > 0 && unbilled > 0, "{billed} {stored} {unbilled}");
}

#[tokio::test]
async fn what_ends_with_its_connection_is_counted() {
    let broker = with_topic().await;
    let mut moved = 0;
    let mut leave = |client: Client| moved += client.moved;
    // A request that waits, one that never ends, and one that cannot be read.
    let mut client = tenant(&broker, "eve", "").await;
    client.send(12, &fetch("t", 60_000)).await;
    leave(client);
    let mut client = tenant(&broker, "eve", "").await;
    client.send(3, &JoinGroupRequest::default()).await;
    client.receive_frame().await;
    client.send_bytes(&[0, 1, 0, 0]).await;
    client.send_bytes(&vec![7; 30_000]).await;
    leave(client);
    let mut client = tenant(&broker, "eve", "").await;
    let mut frame = vec![0, 3, 0, 9, 0, 0, 0, 1, 0, 0];
    frame.resize(100, 0xff);
    client.send_frame(&frame).await;
    client.is_closed().await;
    leave(client);
    assert_eq!(wait_equal(&broker, moved).await, (0, moved));
}

#[tokio::test]
async fn of_an_answer_that_a_client_leaves_in_the_middle_it_pays_what_was_handed_out() {
    let broker = with_topic().await;
    let mut root = service(&broker, None).await;
    for _ in 0..8 {
        assert_eq!(root.produce("t", 0, batch(&[&"x".repeat(900_000)])).await.0, 0);
    }
    let mut client = tenant(&broker, "eve", "").await;
    let partition = FetchPartition::default().with_partition_max_bytes(8 << 20);
    let topic = FetchTopic::default().with_topic(topic_name("t"));
    let mut request = fetch("t", 0);
    request.topics = vec![topic.with_partitions(vec![partition])];
    client.send(12, &request).await;
    client.was_answered().await;
    drop(client);
    // At least one write of the answer was taken.
    for _ in 0..200 {
        let (billed, unbilled) = counted(&broker).await;
        if billed > 200_000 && unbilled > 0 {
            assert!(billed < 8 * 900_000, "{billed}: it was handed a part");
            return assert!(unbilled < 10_000, "{unbilled}: of requests, and of what is no record");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", counted(&broker).await);
}

/// The service's own user is in no answer to a tenant that may ask for everything.
#[tokio::test]
async fn no_answer_names_the_user_of_the_service() {
    use kafka_protocol::messages as of;
    use kafka_protocol::messages::alter_user_scram_credentials_request::ScramCredentialDeletion;
    use kafka_protocol::messages::describe_user_scram_credentials_request::UserName;
    let broker = with_topic().await;
    broker.add_user("alice", "secret").await;
    let mut root = service(&broker, None).await;
    let mut alice = tenant(&broker, "alice", "").await;
    commit(&mut alice, "").await;
    alice.send(4, &ListGroupsRequest::default()).await;
    let mut frames = vec![alice.receive_frame().await];
    macro_rules! ask {
        ($($version:literal $request:expr),* $(,)?) => {
            $(alice.send($version, &$request).await; frames.push(alice.receive_frame().await);)*
        };
    }
    let acls = of::DescribeAclsRequest::default()
        .with_resource_type_filter(1)
        .with_pattern_type_filter(1)
        .with_operation(1)
        .with_permission_type(1);
    ask!(
        0 of::DescribeUserScramCredentialsRequest::default(),
        2 acls,
        1 of::DescribeClientQuotasRequest::default(),
        5 of::DescribeGroupsRequest::default().with_groups(vec![of::GroupId("g".into())]),
        0 of::DescribeClusterRequest::default(),
        4 of::DescribeConfigsRequest::default(),
        12 of::MetadataRequest::default().with_topics(None),
        1 of::DescribeLogDirsRequest::default().with_topics(None),
    );
    for frame in &frames {
        assert!(!frame.windows(4).any(|part| part == b"root"), "{frame:?}");
    }
    let name = |user: &'static str| UserName::default().with_name(user.into());
    let asked = vec![name("alice"), name("nobody"), name("root")];
    let request = of::DescribeUserScramCredentialsRequest::default().with_users(Some(asked));
    let described = alice.call(0, request.clone()).await;
    let codes = |answer: &of::DescribeUserScramCredentialsResponse| -> Vec<i16> {
        answer.results.iter().map(|result| result.error_code).collect()
    };
    let absent = E::ResourceNotFound.code();
    assert_eq!(codes(&described), [0, absent, absent]);
    assert_eq!(codes(&root.call(0, request).await), [0, absent, 0]);
    let removal = |user: &'static str| {
        ScramCredentialDeletion::default().with_name(user.into()).with_mechanism(1)
    };
    let removals = vec![removal("nobody"), removal("root")];
    let request = of::AlterUserScramCredentialsRequest::default().with_deletions(removals);
    let altered = alice.call(0, request).await;
    assert!(altered.results.iter().all(|result| result.error_code == absent), "{altered:?}");
}
