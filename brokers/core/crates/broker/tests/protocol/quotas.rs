//! Quotas: described and changed over the protocol, and enforced.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use freshet_access::acl::AuthorizerSettings;
use freshet_access::principal::Principal;
use freshet_access::sasl::Mechanism;
use freshet_broker::context::BrokerSettings;
use freshet_link::{LinkedClient, ListenerKind};
use freshet_metadata::schema::{QuotaEntity, QuotaEntityType, QuotaKey, QuotaValues};
use freshet_wire::records::BatchBuilder;
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use kafka_protocol::messages::describe_client_quotas_request::ComponentData;
use kafka_protocol::messages::describe_client_quotas_response as described;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{
    AlterClientQuotasRequest, BrokerId, DescribeClientQuotasRequest, FetchRequest, FetchResponse,
    ListGroupsRequest, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use tokio::time::Instant;

use super::harness::{Client, Setup, TestBroker, batch, produce_request, text, topic_name};

const MIB: usize = 1 << 20;

type Part<'a> = (&'a str, Option<&'a str>);

fn entry(entity: &[Part<'_>], ops: &[(&str, Option<f64>)]) -> EntryData {
    let entity = entity.iter().map(|(kind, name)| {
        EntityData::default().with_entity_type(text(kind)).with_entity_name(name.map(text))
    });
    let ops = ops.iter().map(|(key, value)| {
        OpData::default()
            .with_key(text(key))
            .with_value(value.unwrap_or_default())
            .with_remove(value.is_none())
    });
    EntryData::default().with_entity(entity.collect()).with_ops(ops.collect())
}

async fn alter(client: &mut Client, version: i16, entries: Vec<EntryData>) -> Vec<i16> {
    let request = AlterClientQuotasRequest::default().with_entries(entries);
    let answer = client.call(version, request).await;
    answer.entries.iter().map(|entry| entry.error_code).collect()
}

fn component(kind: &str, match_type: i8, name: Option<&str>) -> ComponentData {
    ComponentData::default()
        .with_entity_type(text(kind))
        .with_match_type(match_type)
        .with_match(name.map(text))
}

/// The entries as text: `user=alice,client-id=<default>: producer_byte_rate=1`.
fn texts_of(entries: Option<Vec<described::EntryData>>) -> Vec<String> {
    let entry = |entry: described::EntryData| {
        let parts = entry.entity.iter().map(|part| {
            let name = part.entity_name.as_ref().map_or("<default>", |name| name.as_str());
            format!("{}={name}", part.entity_type.as_str())
        });
        let values = entry.values.iter();
        let values = values.map(|value| format!("{}={}", value.key.as_str(), value.value));
        let (parts, values): (Vec<_>, Vec<_>) = (parts.collect(), values.collect());
        format!("{}: {}", parts.join(","), values.join(","))
    };
    entries.expect("entries, as nothing failed").into_iter().map(entry).collect()
}

async fn describe(
    client: &mut Client,
    components: Vec<ComponentData>,
    strict: bool,
) -> Result<Vec<String>, i16> {
    let request =
        DescribeClientQuotasRequest::default().with_components(components).with_strict(strict);
    let answer = client.call(1, request).await;
    if answer.error_code == 0 { Ok(texts_of(answer.entries)) } else { Err(answer.error_code) }
}

#[tokio::test]
async fn what_was_altered_is_described_in_every_version() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    for version in 0..=1 {
        let made = alter(
            &mut client,
            version,
            vec![
                entry(&[("user", Some("alice"))], &[("producer_byte_rate", Some(1024.0))]),
                entry(&[("user", None), ("client-id", None)], &[("request_percentage", Some(0.5))]),
                entry(&[("ip", Some("10.0.0.1"))], &[("connection_creation_rate", Some(7.0))]),
            ],
        );
        assert_eq!(made.await, [0, 0, 0]);
        let all = client.call(version, DescribeClientQuotasRequest::default()).await;
        assert_eq!(
            texts_of(all.entries),
            [
                "user=<default>,client-id=<default>: request_percentage=0.5",
                "user=alice: producer_byte_rate=1024",
                "ip=10.0.0.1: connection_creation_rate=7",
            ]
        );
    }
    let only = vec![entry(&[("user", Some("alice"))], &[("producer_byte_rate", None)])];
    let checked = AlterClientQuotasRequest::default().with_entries(only.clone());
    client.call(1, checked.with_validate_only(true)).await;
    let of_alice = || vec![component("user", 0, Some("alice"))];
    assert_eq!(describe(&mut client, of_alice(), false).await.unwrap().len(), 1);
    assert_eq!(alter(&mut client, 1, only).await, [0]);
    assert_eq!(describe(&mut client, of_alice(), false).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn filters_match_as_kafkas_do() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let rate = [("consumer_byte_rate", Some(1.0))];
    let parts: [&[Part<'_>]; 4] = [
        &[("user", Some("a"))],
        &[("user", None)],
        &[("user", Some("a")), ("client-id", Some("c"))],
        &[("client-id", Some("c"))],
    ];
    let entries = parts.iter().map(|entity| entry(entity, &rate)).collect();
    assert_eq!(alter(&mut client, 1, entries).await, [0; 4]);
    let mut count = async |components: Vec<ComponentData>, strict| {
        describe(&mut client, components, strict).await.map(|entries| entries.len())
    };
    assert_eq!(count(vec![component("user", 0, Some("a"))], false).await, Ok(2));
    assert_eq!(count(vec![component("user", 0, Some("a"))], true).await, Ok(1));
    assert_eq!(count(vec![component("user", 1, None)], false).await, Ok(1));
    assert_eq!(count(vec![component("user", 2, None)], true).await, Ok(2));
    let both = vec![component("user", 2, None), component("client-id", 2, None)];
    assert_eq!(count(both, true).await, Ok(1));
    assert_eq!(count(Vec::new(), true).await, Ok(0));
    let invalid = Err(E::InvalidRequest.code());
    assert_eq!(count(vec![component("user", 0, None)], false).await, invalid);
    assert_eq!(count(vec![component("user", 1, Some("a"))], false).await, invalid);
    assert_eq!(count(vec![component("user", 9, None)], false).await, invalid);
    assert_eq!(count(vec![component("", 2, None)], false).await, invalid);
    let with_ip = vec![component("user", 2, None), component("ip", 2, None)];
    assert_eq!(count(with_ip, false).await, invalid);
    let twice = vec![component("user", 2, None), component("user", 1, None)];
    assert_eq!(count(twice, false).await, invalid);
    let unknown = Err(E::UnsupportedVersion.code());
    assert_eq!(count(vec![component("group", 2, None)], false).await, unknown);
}

#[tokio::test]
async fn what_cannot_be_is_refused_and_changes_nothing() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    let refused = vec![
        entry(&[], &[("producer_byte_rate", Some(1.0))]),
        entry(&[("group", Some("g"))], &[("producer_byte_rate", Some(1.0))]),
        entry(&[("user", Some("a")), ("user", None)], &[("producer_byte_rate", Some(1.0))]),
        entry(&[("user", Some("a")), ("ip", None)], &[("producer_byte_rate", Some(1.0))]),
        entry(&[("user", Some("a"))], &[("leader.replication.throttled.rate", Some(1.0))]),
        entry(&[("user", Some("a"))], &[("producer_byte_rate", Some(0.0))]),
        entry(&[("user", Some("a"))], &[("producer_byte_rate", Some(0.5))]),
        entry(&[("user", Some("a"))], &[("connection_creation_rate", Some(1.0))]),
        entry(&[("ip", Some("nowhere"))], &[("connection_creation_rate", Some(1.0))]),
        entry(&[("user", Some("a\0"))], &[("producer_byte_rate", Some(1.0))]),
        entry(&[("client-id", Some("a\u{7f}"))], &[("producer_byte_rate", Some(1.0))]),
        entry(
            &[("user", Some("a"))],
            &[("request_percentage", Some(1.0)), ("producer_byte_rate", Some(-1.0))],
        ),
    ];
    let expected = vec![E::InvalidRequest.code(); refused.len()];
    assert_eq!(alter(&mut client, 1, refused).await, expected);
    assert_eq!(describe(&mut client, Vec::new(), false).await, Ok(Vec::new()));
}

fn secured() -> Setup {
    let settings = BrokerSettings {
        authorizer: Some(AuthorizerSettings {
            super_users: BTreeSet::from([Principal::user("root")]),
            allow_everyone_if_no_acl_found: false,
        }),
        ..BrokerSettings::default()
    };
    Setup { settings, sasl_mechanisms: vec![Mechanism::Plain], ..Setup::default() }
}

fn linked(user: &str, address: &str) -> LinkedClient {
    LinkedClient {
        principal: Principal::user(user),
        listener: ListenerKind::SaslSsl,
        address: address.parse().unwrap(),
        advertised: vec!["b0-one.kafka.example:9443".into()],
        connection: "".into(),
    }
}

#[tokio::test]
async fn whoever_may_not_alter_configs_of_the_cluster_alters_no_quotas() {
    let broker = TestBroker::with(secured()).await;
    let mut client = broker.linked(&linked("alice", "192.0.2.1:5")).await.unwrap();
    let refused = E::ClusterAuthorizationFailed.code();
    let alteration = vec![entry(&[("user", None)], &[("producer_byte_rate", Some(1.0))])];
    assert_eq!(alter(&mut client, 1, alteration).await, [refused]);
    assert_eq!(describe(&mut client, Vec::new(), false).await, Err(refused));
}

/// Sets quotas in the metadata store, and waits until they are in force.
async fn set(broker: &TestBroker, entity: &[(QuotaEntityType, Option<&str>)], values: QuotaValues) {
    let entity = entity.iter().map(|(kind, name)| (*kind, name.map(str::to_owned)));
    let entity = QuotaEntity(entity.collect());
    let revision = broker.engine.metadata.set_quotas(None, &entity, &values).await.unwrap();
    broker.engine.view.wait_for(revision).await.unwrap();
}

fn large(bytes: usize) -> Bytes {
    BatchBuilder::new(0).record(1_700_000_000_000, None, Some(&vec![b'x'; bytes])).build()
}

/// Produces one batch; returns for how many milliseconds the client is asked to pause.
async fn produce(client: &mut Client, records: &Bytes) -> i32 {
    let response = client.call(9, produce_request("t", 0, records.clone())).await;
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    response.throttle_time_ms
}

/// Time advances only when the broker waits, so seconds are counted here and not measured.
#[tokio::test(start_paused = true)]
async fn a_producer_is_held_to_its_rate_and_its_neighbours_go_on() {
    let broker = TestBroker::start().await;
    let mut neighbour = broker.linked(&linked("bob", "192.0.2.1:6")).await.unwrap();
    neighbour.create_topic("t", 1, &[("max.message.bytes", "2097152")]).await;
    let alice = [(QuotaEntityType::User, Some("alice"))];
    set(&broker, &alice, [(QuotaKey::ProducerByteRate, MIB as f64)].into()).await;
    let mut client = broker.linked(&linked("alice", "192.0.2.1:5")).await.unwrap();
    let records = large(MIB);
    let started = Instant::now();
    let mut pause_total_ms = 0;
    for sent in 1..=30 {
        let before = Instant::now();
        let pause_ms = produce(&mut client, &records).await;
        let waited = before.elapsed();
        pause_total_ms += i64::from(pause_ms);
        if sent == 15 {
            assert!(pause_ms > 0);
            // The answer came at once; only this connection is muted.
            let before = Instant::now();
            assert_eq!(produce(&mut neighbour, &large(10)).await, 0);
            assert!(before.elapsed() < Duration::from_millis(100), "{waited:?}");
        }
    }
    // The first ten seconds' worth is free; the other 20 MiB take 20 s, which are reported and
    // waited for.
    assert!((18_000..=22_000).contains(&pause_total_ms), "{pause_total_ms}");
    let waited = started.elapsed() + Duration::from_secs(1);
    assert!(waited > Duration::from_secs(18) && waited < Duration::from_secs(23), "{waited:?}");
    // Another connection of the same user shares the rest of the quota, which is nothing.
    let mut second = broker.linked(&linked("alice", "192.0.2.9:5")).await.unwrap();
    assert!(produce(&mut second, &large(10)).await > 0);
    // Without the quota requests are answered at once again.
    set(&broker, &alice, QuotaValues::new()).await;
    assert_eq!(produce(&mut second, &large(10)).await, 0);
}

async fn fetch(client: &mut Client) -> FetchResponse {
    let partition = FetchPartition::default().with_partition(0).with_partition_max_bytes(50 << 20);
    let topic = FetchTopic::default().with_topic(topic_name("t")).with_partitions(vec![partition]);
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_min_bytes(1)
        .with_max_bytes(50 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic]);
    client.call(11, request).await
}

#[tokio::test(start_paused = true)]
async fn a_fetch_in_debt_is_answered_at_once_with_nothing() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    // Minutes pass here, and the records have timestamps of long ago.
    client.create_topic("t", 1, &[("retention.ms", "-1")]).await;
    for _ in 0..4 {
        assert_eq!(produce(&mut client, &large(MIB / 4)).await, 0);
    }
    let default = [(QuotaEntityType::ClientId, None)];
    let rate = [(QuotaKey::ConsumerByteRate, 64.0 * 1024.0)].into();
    set(&broker, &default, rate).await;
    let mut received = 0;
    let mut pause_max_ms = 0;
    let mut empty = 0;
    for _ in 0..20 {
        // Two connections of one client id: the second one asks while the first one is muted.
        let mut other = broker.client();
        for asking in [&mut client, &mut other] {
            let response = fetch(asking).await;
            pause_max_ms = pause_max_ms.max(response.throttle_time_ms);
            if let Some(topic) = response.responses.first() {
                let partition = &topic.partitions[0];
                let records = partition.records.as_ref().unwrap().len();
                assert!(records > 0, "{partition:?}");
                received += records;
            } else {
                assert!(response.throttle_time_ms > 0);
                empty += 1;
            }
        }
    }
    assert!(pause_max_ms > 0 && received > 0, "{pause_max_ms} {received}");
    assert!(empty > 0, "nobody asked in debt");
}

#[tokio::test]
async fn time_of_threads_is_counted_for_every_request() {
    let broker = TestBroker::start().await;
    let default = [(QuotaEntityType::User, None)];
    set(&broker, &default, [(QuotaKey::RequestPercentage, 0.000_01)].into()).await;
    let mut client = broker.client();
    // The quota is a microsecond of processor time, which the first requests have used up.
    loop {
        let response = client.call(4, ListGroupsRequest::default()).await;
        if response.throttle_time_ms > 0 {
            break;
        }
    }
    // The connection is muted for long; another one of the user gets the same answer.
    let mut other = broker.client();
    assert!(other.metadata(&[]).await.throttle_time_ms > 0);
}

#[tokio::test]
async fn the_service_itself_is_never_throttled() {
    let broker = TestBroker::with(secured()).await;
    broker.add_user("root", "secret").await;
    let strict: QuotaValues = [
        (QuotaKey::ProducerByteRate, 1.0),
        (QuotaKey::ConsumerByteRate, 1.0),
        (QuotaKey::RequestPercentage, 0.000_01),
        (QuotaKey::MaxConnections, 1.0),
    ]
    .into();
    set(&broker, &[(QuotaEntityType::User, None)], strict.clone()).await;
    set(&broker, &[(QuotaEntityType::User, Some("root"))], strict).await;
    let ip = [(QuotaKey::ConnectionCreationRate, 1.0)].into();
    set(&broker, &[(QuotaEntityType::Ip, None)], ip).await;
    let mut clients = Vec::new();
    for _ in 0..15 {
        let mut client = broker.client();
        let hello = SaslHandshakeRequest::default().with_mechanism(text("PLAIN"));
        assert_eq!(client.call(1, hello).await.error_code, 0);
        let token = Bytes::from_static(b"\0root\0secret");
        let login = SaslAuthenticateRequest::default().with_auth_bytes(token);
        assert_eq!(client.call(2, login).await.error_code, 0);
        clients.push(client);
    }
    clients[0].create_topic("t", 1, &[]).await;
    for client in &mut clients {
        assert_eq!(produce(client, &large(10_000)).await, 0);
        let fetched = fetch(client).await;
        assert_eq!(fetched.throttle_time_ms, 0);
        assert!(!fetched.responses.is_empty());
        assert_eq!(client.metadata(&["t"]).await.throttle_time_ms, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn connections_are_bounded_by_user_and_their_rate_by_the_clients_address() {
    let broker = TestBroker::with(secured()).await;
    let two = [(QuotaKey::MaxConnections, 2.0)].into();
    set(&broker, &[(QuotaEntityType::User, Some("alice"))], two).await;
    let asked = async |user: &str, address: &str| {
        let mut client = broker.linked(&linked(user, address)).await.unwrap();
        client.send(12, &kafka_protocol::messages::MetadataRequest::default()).await;
        client
    };
    let answered = async |client: &mut Client| {
        client.receive::<kafka_protocol::messages::MetadataRequest>(12, 1).await
    };
    let mut first = asked("alice", "192.0.2.1:5").await;
    let mut second = asked("alice", "192.0.2.2:5").await;
    answered(&mut first).await;
    answered(&mut second).await;
    asked("alice", "192.0.2.3:5").await.is_closed().await;
    drop(second);
    // A place is free as soon as the broker has noticed that the other client left.
    loop {
        let mut again = asked("alice", "192.0.2.2:5").await;
        if again.was_answered().await {
            break;
        }
    }
    let rate = [(QuotaKey::ConnectionCreationRate, 1.0)].into();
    set(&broker, &[(QuotaEntityType::Ip, Some("192.0.2.7"))], rate).await;
    for _ in 0..10 {
        answered(&mut asked("bob", "192.0.2.7:5").await).await;
    }
    let before = Instant::now();
    asked("bob", "192.0.2.7:5").await.is_closed().await;
    // The refusal comes late, so that the client does not reconnect at once.
    assert!(before.elapsed() >= Duration::from_millis(900), "{:?}", before.elapsed());
    answered(&mut asked("bob", "192.0.2.8:5").await).await;
    answered(&mut asked("bob", "192.0.2.7:5").await).await;
}

#[tokio::test]
async fn small_records_cause_no_pause_where_nothing_is_set() {
    let broker = TestBroker::start().await;
    let mut client = broker.client();
    client.create_topic("t", 1, &[]).await;
    let records = batch(&["x"]);
    assert_eq!(produce(&mut client, &records).await, 0);
    assert_eq!(fetch(&mut client).await.throttle_time_ms, 0);
    assert!(!broker.engine.view.has_quotas());
}
