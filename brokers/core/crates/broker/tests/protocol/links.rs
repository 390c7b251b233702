//! Clients that a gateway forwards: who they are, which addresses they get, and who is refused.

use std::collections::BTreeSet;
use std::time::Duration;

use freshet_access::acl::AuthorizerSettings;
use freshet_access::principal::Principal;
use freshet_access::sasl::Mechanism;
use freshet_access::types::{AclBinding, Operation, PatternType, Permission, ResourceType};
use freshet_broker::context::BrokerSettings;
use freshet_broker::server::ServerLimits;
use freshet_link::{self as link, LinkError, LinkSecret, LinkedClient, ListenerKind};
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::alter_user_scram_credentials_request::ScramCredentialDeletion;
use kafka_protocol::messages::{
    AlterUserScramCredentialsRequest, DescribeClusterRequest, FindCoordinatorRequest,
    SaslHandshakeRequest,
};
use tokio::io::AsyncReadExt;

use super::harness::{Client, Setup, TestBroker, text};

fn setup() -> Setup {
    let settings = BrokerSettings {
        authorizer: Some(AuthorizerSettings {
            super_users: BTreeSet::from([Principal::user("root")]),
            allow_everyone_if_no_acl_found: false,
        }),
        ..BrokerSettings::default()
    };
    Setup { settings, sasl_mechanisms: vec![Mechanism::Plain], ..Setup::default() }
}

fn alice() -> LinkedClient {
    LinkedClient {
        principal: Principal::user("alice"),
        listener: ListenerKind::SaslSsl,
        address: "192.0.2.1:50000".parse().unwrap(),
        advertised: vec!["b0-one.kafka.example:9443".into(), "b1-one.kafka.example:9443".into()],
        connection: "con_0123456789abcdef".into(),
    }
}

async fn allow(broker: &TestBroker, kind: ResourceType, name: &str, host: &str) {
    let binding = AclBinding {
        resource_type: kind,
        resource_name: name.to_owned(),
        pattern_type: PatternType::Literal,
        principal: "User:alice".to_owned(),
        host: host.to_owned(),
        operation: Operation::All,
        permission: Permission::Allow,
    };
    let revision = broker.engine.metadata.add_acls(None, &[binding]).await.unwrap();
    broker.engine.view.wait_for(revision).await.unwrap();
}

async fn may_describe(client: &mut Client) -> bool {
    let metadata = client.metadata(&["t"]).await;
    metadata.topics[0].error_code != E::TopicAuthorizationFailed.code()
}

#[tokio::test]
async fn a_linked_client_is_who_the_gateway_says_and_needs_no_password() {
    let broker = TestBroker::with(setup()).await;
    allow(&broker, ResourceType::Topic, "t", "*").await;
    let mut client = broker.linked(&alice()).await.unwrap();
    assert!(may_describe(&mut client).await);
    let bob = LinkedClient { principal: Principal::user("bob"), ..alice() };
    let mut client = broker.linked(&bob).await.unwrap();
    assert!(!may_describe(&mut client).await);
    let again = SaslHandshakeRequest::default().with_mechanism(text("PLAIN"));
    assert_eq!(client.call(1, again).await.error_code, E::IllegalSaslState.code());
}

#[tokio::test]
async fn what_a_linked_client_changes_is_recorded_with_its_connection() {
    let broker = TestBroker::with(setup()).await;
    allow(&broker, ResourceType::Topic, "t", "*").await;
    broker.linked(&alice()).await.unwrap().create_topic("t", 1, &[]).await;
    let changes = broker.engine.metadata.changes(0, 10).await.unwrap();
    assert_eq!(changes[0].action, "topic.create");
    assert_eq!(changes[0].connection, "con_0123456789abcdef");
}

#[tokio::test]
async fn access_is_judged_by_the_clients_own_address() {
    let broker = TestBroker::with(setup()).await;
    allow(&broker, ResourceType::Topic, "t", "192.0.2.1").await;
    assert!(may_describe(&mut broker.linked(&alice()).await.unwrap()).await);
    let elsewhere = LinkedClient { address: "192.0.2.2:50000".parse().unwrap(), ..alice() };
    assert!(!may_describe(&mut broker.linked(&elsewhere).await.unwrap()).await);
}

#[tokio::test]
async fn each_linked_client_gets_the_addresses_of_its_own_way() {
    let broker = TestBroker::with(setup()).await;
    allow(&broker, ResourceType::Cluster, "kafka-cluster", "*").await;
    allow(&broker, ResourceType::Group, "g", "*").await;
    for (address, host, port) in
        [("b0-one.kafka.example:9443", "b0-one.kafka.example", 9443), ("[::1]:9092", "::1", 9092)]
    {
        let way = LinkedClient { advertised: vec![address.into()], ..alice() };
        let mut client = broker.linked(&way).await.unwrap();
        let metadata = client.metadata(&[]).await;
        assert_eq!((metadata.brokers[0].host.as_str(), metadata.brokers[0].port), (host, port));
        let cluster = client.call(1, DescribeClusterRequest::default().with_endpoint_type(1)).await;
        assert_eq!((cluster.brokers[0].host.as_str(), cluster.brokers[0].port), (host, port));
        let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![text("g")]);
        let response = client.call(4, request).await;
        let coordinator = &response.coordinators[0];
        assert_eq!((coordinator.host.as_str(), coordinator.port), (host, port));
    }
}

#[tokio::test]
async fn super_users_and_ways_without_an_address_are_refused() {
    let broker = TestBroker::with(setup()).await;
    let root = LinkedClient { principal: Principal::user("root"), ..alice() };
    let nowhere = LinkedClient { advertised: Vec::new(), ..alice() };
    for refused in [root, nowhere] {
        let opened = broker.linked(&refused).await.err();
        assert!(matches!(opened, Some(LinkError::Io(_))), "closed without a word: {opened:?}");
    }
    assert_eq!(broker.server.linked_connections(), 0);
}

#[tokio::test]
async fn a_gateway_with_another_secret_learns_nothing() {
    let broker = TestBroker::with(setup()).await;
    let mut stream = broker.link();
    let wrong = LinkSecret::new(&[8; 32]).unwrap();
    let randomness = broker.engine.environment.randomness.as_ref();
    let opened = link::open(&mut stream, &wrong, randomness, &alice()).await;
    assert!(matches!(opened, Err(LinkError::Io(_))), "{opened:?}");
    assert_eq!(broker.server.connections(), 0);
}

#[tokio::test]
async fn a_kafka_client_at_the_link_gets_no_answer_and_is_closed() {
    let broker = TestBroker::with(setup()).await;
    let mut stream = broker.link();
    let mut hello = [0; link::HELLO_BYTES];
    stream.read_exact(&mut hello).await.unwrap();
    // An ApiVersions request: its length cannot be that of a preamble.
    let frame = b"\0\0\0\x0c\0\x12\0\0\0\0\0\x01\0\x02ab";
    tokio::io::AsyncWriteExt::write_all(&mut stream, frame).await.unwrap();
    tokio::io::AsyncWriteExt::shutdown(&mut stream).await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_says_nothing_is_dropped_in_time() {
    let mut setup = setup();
    setup.limits.authentication_time = Duration::from_secs(3);
    let broker = TestBroker::with(setup).await;
    let mut stream = broker.link();
    let began = tokio::time::Instant::now();
    let mut sent = Vec::new();
    stream.read_to_end(&mut sent).await.unwrap();
    assert_eq!(sent.len(), link::HELLO_BYTES);
    assert_eq!(began.elapsed().as_secs(), 3);
}

#[tokio::test]
async fn limits_by_address_are_those_of_the_client_not_of_the_gateway() {
    let mut setup = setup();
    setup.limits = ServerLimits { connections_per_ip_max: 2, ..ServerLimits::default() };
    let broker = TestBroker::with(setup).await;
    let mut kept = Vec::new();
    for host in 1..=3 {
        for _ in 0..2 {
            let address = format!("192.0.2.{host}:50000").parse().unwrap();
            let mut client = broker.linked(&LinkedClient { address, ..alice() }).await.unwrap();
            client.metadata(&[]).await;
            kept.push(client);
        }
    }
    assert_eq!(broker.server.linked_connections(), 6);
    let mut third = broker.linked(&alice()).await.unwrap();
    third.is_closed().await;
    drop(kept);
    while broker.server.linked_connections() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(broker.server.connections(), 0);
}

#[tokio::test]
async fn nobody_else_sets_a_super_users_password() {
    let broker = TestBroker::with(setup()).await;
    broker.add_user("root", "secret").await;
    broker.add_user("carol", "secret").await;
    allow(&broker, ResourceType::Cluster, "kafka-cluster", "*").await;
    let mut client = broker.linked(&alice()).await.unwrap();
    for (user, code) in [("root", E::ResourceNotFound.code()), ("carol", 0)] {
        let removal = ScramCredentialDeletion::default().with_name(text(user)).with_mechanism(1);
        let request = AlterUserScramCredentialsRequest::default().with_deletions(vec![removal]);
        assert_eq!(client.call(0, request).await.results[0].error_code, code, "{user}");
    }
    assert_eq!(broker.engine.metadata.list_scram().await.unwrap().len(), 3);
}
