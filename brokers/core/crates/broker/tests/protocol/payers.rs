//! Who pays for a request: the client that sent it, or for whom the service's own user sent it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use freshet_access::acl::AuthorizerSettings;
use freshet_access::principal::Principal;
use freshet_access::sasl::Mechanism;
use freshet_broker::context::BrokerSettings;
use freshet_inspect::usage_reader::{EGRESS, INGRESS, LaneRequest, UsageReader};
use freshet_link::{LinkedClient, ListenerKind};
use freshet_metadata::schema::{
    LimitsRecord, QuotaEntity, QuotaEntityType, QuotaKey, TrafficLimit,
};
use freshet_storage::payers::OTHERS;
use freshet_wire::ids::TopicId;
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{
    BrokerId, FetchRequest, FetchResponse, SaslAuthenticateRequest, SaslHandshakeRequest,
};

use super::harness::{Client, Setup, TestBroker, batch, produce_request, text, topic_name};
use super::limits;

const KEY: &str = "ApiKey:key_a";
const MEMBER: &str = "Member:usr_b";
const SERVICE: &str = "User:root";

pub(super) async fn managed() -> TestBroker {
    let settings = BrokerSettings {
        authorizer: Some(AuthorizerSettings {
            super_users: BTreeSet::from([Principal::user("root")]),
            allow_everyone_if_no_acl_found: true,
        }),
        ..BrokerSettings::default()
    };
    let sasl_mechanisms = vec![Mechanism::Plain];
    let broker = TestBroker::with(Setup { settings, sasl_mechanisms, ..Setup::default() }).await;
    broker.add_user("root", "secret").await;
    broker
}

/// The service's own user, which asks for somebody from its login on.
pub(super) async fn service(broker: &TestBroker, payer: Option<&'static str>) -> Client {
    let mut client = broker.client();
    client.payer = payer;
    let hello = SaslHandshakeRequest::default().with_mechanism(text("PLAIN"));
    assert_eq!(client.call(1, hello).await.error_code, 0);
    let token = Bytes::from_static(b"\0root\0secret");
    let login = SaslAuthenticateRequest::default().with_auth_bytes(token);
    assert_eq!(client.call(2, login).await.error_code, 0);
    client
}

pub(super) async fn tenant(broker: &TestBroker, user: &str, payer: &'static str) -> Client {
    let client = LinkedClient {
        principal: Principal::user(user),
        listener: ListenerKind::SaslSsl,
        address: "192.0.2.1:5".parse().unwrap(),
        advertised: vec!["b0-one.kafka.example:9443".into()],
        connection: "".into(),
    };
    let mut client = broker.linked(&client).await.unwrap();
    client.payer = Some(payer);
    client
}

async fn fetch(client: &mut Client, version: i16) -> FetchResponse {
    let partition = FetchPartition::default().with_partition(0).with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_topic(topic_name("t")).with_partitions(vec![partition]);
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_min_bytes(1)
        .with_max_bytes(1 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic]);
    client.call(version, request).await
}

async fn fetched_bytes(client: &mut Client, version: i16) -> u64 {
    let response = fetch(client, version).await;
    assert_eq!(response.error_code, 0);
    response.responses[0].partitions[0].records.as_ref().unwrap().len() as u64
}

/// What the meter reads of the broker's lane: bytes by principal, of INGRESS or EGRESS.
pub(super) async fn metered(broker: &TestBroker, meter: u8) -> BTreeMap<String, u64> {
    metered_of(broker, meter, |_| true).await
}

/// What [`metered`] has of some topics.
pub(super) async fn metered_of(
    broker: &TestBroker,
    meter: u8,
    of_topic: impl Fn(TopicId) -> bool,
) -> BTreeMap<String, u64> {
    let engine = &broker.engine;
    engine.egress.flush(&engine.lane, engine.environment.clock.as_ref(), 0);
    engine.lane.roll().await.unwrap();
    let reader = UsageReader::new(&engine.environment);
    let lane = reader.read_lane("test", engine.incarnation, LaneRequest::default()).await.unwrap();
    let columns = &lane.columns;
    let (principals, _) = columns.principal.as_chunks::<4>();
    let (quantities, _) = columns.quantity.as_chunks::<8>();
    let mut sums = BTreeMap::new();
    let (topics, _) = columns.topic.as_chunks::<4>();
    let rows = columns.meter.iter().zip(topics).zip(principals).zip(quantities);
    for (((of, topic), principal), quantity) in rows {
        if *of == meter && of_topic(columns.topics[u32::from_le_bytes(*topic) as usize]) {
            let name = &columns.principals[u32::from_le_bytes(*principal) as usize];
            *sums.entry(name.to_string()).or_default() += u64::from_le_bytes(*quantity);
        }
    }
    sums
}

/// Waits until all that clients were handed is counted, which happens just after they have it.
pub(super) async fn wait_counted(broker: &TestBroker, topic: uuid::Uuid, bytes: u64) {
    let topic = TopicId::from_u128(topic.as_u128());
    while broker.engine.egress.total_bytes(topic) < bytes {
        tokio::task::yield_now().await;
    }
}

pub(super) fn sums<const N: usize>(of: [(&str, u64); N]) -> BTreeMap<String, u64> {
    of.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

#[tokio::test]
async fn only_the_service_names_who_pays() {
    let broker = managed().await;
    let topic = service(&broker, None).await.create_topic("t", 1, &[]).await;
    let records = batch(&["one"]);
    let one = records.len() as u64;
    // The service for itself; for a key, as often as it says so; for a member, on one connection.
    let mut root = service(&broker, None).await;
    let mut of_key = service(&broker, Some(KEY)).await;
    // Clients of the tenant that say what only the service is believed.
    let mut alice = tenant(&broker, "alice", KEY).await;
    let mut bob = tenant(&broker, "bob", SERVICE).await;
    let mut eve = tenant(&broker, "eve", "no principal \u{0}").await;
    for client in [&mut root, &mut of_key, &mut alice, &mut bob, &mut eve] {
        assert_eq!(client.produce("t", 0, records.clone()).await.0, 0);
    }
    of_key.payer = Some(MEMBER);
    assert_eq!(of_key.produce("t", 0, records.clone()).await.0, 0);
    let expected = [(KEY, one), (MEMBER, one), (SERVICE, one)];
    let own = [("User:alice", one), ("User:bob", one), ("User:eve", one)];
    let ingress = sums(expected).into_iter().chain(sums(own)).collect::<BTreeMap<_, _>>();
    assert_eq!(metered(&broker, INGRESS).await, ingress);

    let all = fetched_bytes(&mut of_key, 12).await;
    assert_eq!(all, 6 * one);
    of_key.payer = Some(KEY);
    fetched_bytes(&mut of_key, 12).await;
    fetched_bytes(&mut alice, 12).await;
    fetched_bytes(&mut root, 12).await;
    wait_counted(&broker, topic, 4 * all).await;
    let egress = sums([(KEY, all), (MEMBER, all), (SERVICE, all), ("User:alice", all)]);
    assert_eq!(metered(&broker, EGRESS).await, egress);
    let traffic = broker.engine.settings.metrics.traffic.principals.uses();
    assert_eq!(traffic[KEY].bytes_out, all);
    assert_eq!(traffic[MEMBER].bytes_out, all);
    assert!(!traffic[KEY].busy.is_zero());
}

#[tokio::test]
async fn few_pairs_of_a_minute_are_counted_apart_and_no_byte_is_lost() {
    let broker = managed().await;
    let topic = service(&broker, None).await.create_topic("t", 1, &[]).await;
    let two = LimitsRecord { usage_pairs_per_minute: Some(2), ..LimitsRecord::default() };
    limits::set(&broker, two).await;
    // The meter asks for the limit when it writes.
    assert!(metered(&broker, EGRESS).await.is_empty());
    let records = batch(&["one"]);
    let one = records.len() as u64;
    let mut clients = vec![service(&broker, None).await];
    for number in 0..8 {
        clients.push(tenant(&broker, &format!("user-{number}"), KEY).await);
    }
    for client in clients.iter_mut().rev() {
        assert_eq!(client.produce("t", 0, records.clone()).await.0, 0);
    }
    for client in clients.iter_mut().rev() {
        assert_eq!(fetched_bytes(client, 12).await, 9 * one);
    }
    wait_counted(&broker, topic, 9 * 9 * one).await;
    for (meter, of_one) in [(INGRESS, one), (EGRESS, 9 * one)] {
        let mut named = metered(&broker, meter).await;
        assert_eq!(named.values().sum::<u64>(), 9 * of_one);
        assert!(named.remove(OTHERS).is_some());
        // Twice as many where the next minute has begun meanwhile.
        assert!((2..=4).contains(&named.len()), "{named:?}");
    }
}

#[tokio::test]
async fn a_header_of_version_1_has_no_place_for_who_pays() {
    let broker = managed().await;
    let mut client = service(&broker, Some(KEY)).await;
    client.create_topic("t", 1, &[]).await;
    let records = batch(&["one"]);
    let answer = client.call(8, produce_request("t", 0, records.clone())).await;
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    assert_eq!(metered(&broker, INGRESS).await, sums([(SERVICE, records.len() as u64)]));
}

#[tokio::test]
async fn the_service_names_nobody_who_could_be_a_client() {
    let broker = managed().await;
    for payer in ["User:alice", SERVICE, "ApiKey:", "ApiKey:a b", "key_a", "Others:*"] {
        let mut client = service(&broker, None).await;
        client.payer = Some(payer);
        client.send(9, &produce_request("t", 0, batch(&["one"]))).await;
        client.is_closed().await;
    }
    assert!(metered(&broker, INGRESS).await.is_empty());
}

#[tokio::test]
async fn who_asks_through_the_service_is_held_to_a_refusal() {
    let broker = managed().await;
    let mut root = service(&broker, None).await;
    root.create_topic("t", 1, &[]).await;
    let reason = "no budget is left".to_owned();
    broker.limit_traffic(Some(TrafficLimit::Refuse { reason })).await;
    assert_eq!(root.produce("t", 0, batch(&["one"])).await.0, 0);
    assert!(fetched_bytes(&mut root, 12).await > 0);
    root.payer = Some(KEY);
    let refused = root.produce("t", 0, batch(&["one"])).await;
    assert_eq!(refused.0, E::PolicyViolation.code());
    assert_eq!(fetch(&mut root, 12).await.error_code, E::PolicyViolation.code());
}

async fn set_quota(broker: &TestBroker, user: Option<&str>, rate: f64) {
    let entity = QuotaEntity([(QuotaEntityType::User, user.map(str::to_owned))].into());
    let values = [(QuotaKey::ProducerByteRate, rate), (QuotaKey::ConsumerByteRate, rate)].into();
    let revision = broker.engine.metadata.set_quotas(None, &entity, &values).await.unwrap();
    broker.engine.view.wait_for(revision).await.unwrap();
}

/// Time advances only where the broker waits, so no debt is paid meanwhile.
#[tokio::test(start_paused = true)]
async fn who_asks_through_the_service_has_a_quota_by_the_name_that_pays() {
    let broker = managed().await;
    let mut client = service(&broker, None).await;
    client.create_topic("t", 1, &[]).await;
    // One has a quota of its own, and the other that of all who have none.
    set_quota(&broker, None, 1.0).await;
    set_quota(&broker, Some(KEY), 2.0).await;
    let throttled = E::ThrottlingQuotaExceeded.code();
    for payer in [KEY, MEMBER] {
        client.payer = Some(payer);
        // The first one is done, and leaves a debt; the next one is refused, for this payer alone.
        assert_eq!(client.produce("t", 0, batch(&["one"])).await.0, 0);
        assert_eq!(client.produce("t", 0, batch(&["one"])).await.0, throttled);
        assert!(fetched_bytes(&mut client, 12).await > 0);
        let refused = fetch(&mut client, 12).await;
        assert_eq!(refused.error_code, throttled);
        assert!(refused.throttle_time_ms > 0 && refused.responses.is_empty());
    }
    // The connection is not muted, and what the service asks for itself is not refused.
    client.payer = None;
    let before = tokio::time::Instant::now();
    assert_eq!(client.produce("t", 0, batch(&["one"])).await.0, 0);
    assert!(fetched_bytes(&mut client, 12).await > 0);
    assert!(before.elapsed() < std::time::Duration::from_secs(1), "{:?}", before.elapsed());
    // A user of the tenant with this very name has the quota too, and no part of the debt.
    let mut namesake = tenant(&broker, KEY, MEMBER).await;
    let before = tokio::time::Instant::now();
    assert_eq!(namesake.produce("t", 0, batch(&["one"])).await.0, 0);
    assert!(before.elapsed() < std::time::Duration::from_secs(1), "{:?}", before.elapsed());
    set_quota(&broker, Some(KEY), 1e9).await;
    client.payer = Some(KEY);
    for _ in 0..3 {
        // What it owed is paid, and so is what the last one left.
        tokio::time::advance(std::time::Duration::from_secs(3_600)).await;
        assert_eq!(client.produce("t", 0, batch(&["one"])).await.0, 0);
    }
}
