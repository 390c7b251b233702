//! Batches as producers may send them, with what Apache Kafka answered to each. See
//! `cases/README.md`.

use bytes::Bytes;
use freshet_wire::records::{BatchHeader, HEADER_BYTES};
use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use serde::Deserialize;

use super::harness::{Client, TestBroker, topic_name};
use super::offsets::list_offset;

#[derive(Deserialize)]
struct Table {
    t0_ms: i64,
    topic_configs: std::collections::BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    batch_hex: String,
    kafka_error: i16,
    /// What is answered instead of it, for the reason in the page.
    freshet_error: Option<i16>,
    #[serde(flatten)]
    stored: Option<Stored>,
}

/// What is stored of an accepted batch, and what a look-up by time then gives.
#[derive(Debug, PartialEq, Deserialize)]
struct Stored {
    base_offset: i64,
    end: i64,
    attributes: i16,
    last_offset_delta: i32,
    max_timestamp_minus_t0: i64,
    offset_at_t0_plus_1: i64,
}

fn bytes_of(hexadecimal: &str) -> Bytes {
    let digits: Vec<char> = hexadecimal.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

async fn stored(client: &mut Client, topic: &str, t0_ms: i64) -> Stored {
    let partition = FetchPartition::default().with_partition_max_bytes(1 << 20);
    let topics =
        FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![partition]);
    let request = FetchRequest::default().with_max_bytes(1 << 20).with_topics(vec![topics]);
    let response = client.call(4, request).await;
    let fetched = &response.responses[0].partitions[0];
    let header = BatchHeader::parse(&fetched.records.as_ref().unwrap()[..HEADER_BYTES]).unwrap();
    let (error, offset, _) = list_offset(client, topic, 2, 0, t0_ms + 1).await;
    assert_eq!(error, 0);
    Stored {
        base_offset: header.base_offset,
        end: fetched.high_watermark,
        attributes: header.attributes,
        last_offset_delta: header.last_offset_delta,
        max_timestamp_minus_t0: header.max_timestamp - t0_ms,
        offset_at_t0_plus_1: offset,
    }
}

#[tokio::test]
async fn each_case_gets_kafkas_answer_and_is_stored_as_there() {
    let Table { t0_ms, topic_configs, cases } =
        serde_json::from_str(include_str!("cases/produce_batches.json")).unwrap();
    let configs: Vec<(&str, &str)> =
        topic_configs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert!(cases.len() > 30);
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for (index, case) in cases.into_iter().enumerate() {
        let (name, topic) = (case.name, format!("case-{index}"));
        client.create_topic(&topic, 1, &configs).await;
        let (error, _) = client.produce(&topic, 0, bytes_of(&case.batch_hex)).await;
        assert_eq!(error, case.freshet_error.unwrap_or(case.kafka_error), "{name}");
        if error == 0 {
            let stored = stored(&mut client, &topic, t0_ms).await;
            assert_eq!(Some(stored), case.stored, "{name}");
        } else {
            let (_, end, _) = list_offset(&mut client, &topic, 2, 0, -1).await;
            assert_eq!(end, 0, "{name}: nothing of it is stored");
        }
    }
}
