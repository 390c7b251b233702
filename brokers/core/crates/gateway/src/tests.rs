//! A whole gateway in memory: clients and brokers are pipes, the cell is a store in memory, and
//! time stands still until it is waited for.

use std::net::SocketAddr;
use std::time::Duration;

use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, MetadataRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use super::testing::{Cell, client_at, remove_user};
use freshet_link::ListenerKind;
use freshet_metadata::schema::cell::{ClusterSpec, SpecState};
use freshet_wire::protocol::versions::ADVERTISED;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_client_wakes_its_cluster_and_is_forwarded_as_who_it_is() {
    let cell = Cell::new().await;
    let mut client = cell.client();
    client.log_in("alice", "secret").await.unwrap();
    client.stream.write_all(b"first request").await.unwrap();
    let wake = cell.next_wake("cl_1").await;
    let mut broker = cell.broker_at("cl_1", "127.0.0.1:7000");
    cell.runs("cl_1", "127.0.0.1:7000").await;
    let (mut stream, linked) = broker.accept().await;
    assert_eq!(linked.principal.as_str(), "User:alice");
    assert!(linked.connection.strip_prefix("con_").is_some_and(|id| id.len() == 16));
    assert_eq!(wake.record.by, format!("gateway {}", linked.connection));
    assert_eq!(linked.listener, ListenerKind::SaslPlaintext);
    assert_eq!(linked.address, SocketAddr::from(([192, 0, 2, 1], 50_000)));
    assert_eq!(linked.advertised, ["127.0.0.1:9092"]);
    let mut request = [0; 13];
    stream.read_exact(&mut request).await.unwrap();
    assert_eq!(&request, b"first request");
    stream.write_all(b"answer").await.unwrap();
    let mut answer = [0; 6];
    client.stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"answer");
}

#[tokio::test(start_paused = true)]
async fn every_mechanism_lets_the_right_password_in_and_no_other() {
    let cell = Cell::new().await;
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        cell.client().authenticate(mechanism, "alice", "secret").await.unwrap();
        for (user, password) in [("alice", "wrong"), ("nobody", "secret"), ("__freshet", "secret")]
        {
            let mut client = cell.client();
            let refused = client.authenticate(mechanism, user, password).await.unwrap_err();
            assert_eq!(refused.0, E::SaslAuthenticationFailed.code(), "{mechanism} {user}");
            client.is_closed().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_users_get_the_same_answer_as_known_ones() {
    let cell = Cell::new().await;
    for mechanism in ["PLAIN", "SCRAM-SHA-256"] {
        let known = cell.client().authenticate(mechanism, "alice", "wrong").await.unwrap_err();
        for user in ["nobody", "__freshet"] {
            let unknown = cell.client().authenticate(mechanism, user, "wrong").await.unwrap_err();
            assert_eq!(unknown, known);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_authenticate_wakes_nothing() {
    let cell = Cell::new().await;
    for user in ["alice", "nobody"] {
        cell.client().log_in(user, "wrong").await.unwrap_err();
    }
    let mut client = cell.client();
    client.call(12, &MetadataRequest::default()).await;
    client.is_closed().await;
    assert_eq!(cell.metadata.wakes().await.unwrap().records.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn versions_are_answered_before_authentication_as_the_broker_answers_them() {
    let cell = Cell::new().await;
    let mut client = cell.client();
    let request = ApiVersionsRequest::default()
        .with_client_software_name("tests".to_owned().into())
        .with_client_software_version("1".to_owned().into());
    client.send(ApiKey::ApiVersions, 3, &request).await;
    let versions = client.receive::<ApiVersionsRequest>(3).await;
    assert_eq!(versions.api_keys.len(), ADVERTISED.len());
    // Of a version that is not known: in version 0, and the connection goes on.
    client.send_frame(b"\0\x12\0\x63\0\0\0\x07\xff\xff\0whatever").await;
    let mut frame = client.receive_frame().await;
    assert_eq!(frame.split_to(4), 7_i32.to_be_bytes()[..]);
    assert_eq!(i16::from_be_bytes([frame[0], frame[1]]), E::UnsupportedVersion.code());
    client.log_in("alice", "secret").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unauthenticated_clients_have_little_time_and_few_bytes() {
    let cell = Cell::new().await;
    let began = Instant::now();
    let mut silent = cell.client();
    let mut slow = cell.client();
    slow.stream.write_all(&[0, 0]).await.unwrap();
    silent.is_closed().await;
    slow.is_closed().await;
    assert_eq!(began.elapsed().as_secs(), 10);
    for length in [(512 << 10) + 1, -1, i32::MAX, i32::MIN] {
        let mut client = cell.client();
        client.stream.write_all(&i32::to_be_bytes(length)).await.unwrap();
        client.is_closed().await;
    }
    assert!(began.elapsed().as_secs() < 11, "closed for their lengths alone");
    // All frames together, not each.
    let mut chatty = cell.client();
    let frame = [&b"\0\x12\0\0\0\0\0\x07\xff\xff"[..], &vec![0; 200 << 10]].concat();
    let mut answers = 0;
    while chatty.stream.write_all(&i32::try_from(frame.len()).unwrap().to_be_bytes()).await.is_ok()
        && chatty.stream.write_all(&frame).await.is_ok()
    {
        answers += 1;
        assert!(answers < 10, "an unauthenticated client is never closed");
        if chatty.stream.read(&mut [0; 4096]).await.unwrap_or(0) == 0 {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_held_so_long_and_no_longer() {
    let cell = Cell::new().await;
    let mut client = cell.client();
    client.log_in("alice", "secret").await.unwrap();
    let began = Instant::now();
    client.is_closed().await;
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(cell.gateway.gate.by_cluster().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_held_client_that_leaves_is_not_held_any_more() {
    let cell = Cell::new().await;
    let mut client = cell.client();
    client.log_in("alice", "secret").await.unwrap();
    cell.next_wake("cl_1").await;
    let began = Instant::now();
    drop(client);
    while !cell.gateway.gate.by_cluster().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(began.elapsed().as_secs() < 1);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_restarts_is_waited_for() {
    let cell = Cell::new().await;
    cell.runs("cl_1", "127.0.0.1:7000").await;
    let mut client = cell.client();
    client.log_in("alice", "secret").await.unwrap();
    // Nobody listens there for a while, then on another port.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut broker = cell.broker_at("cl_1", "127.0.0.1:7001");
    cell.runs("cl_1", "127.0.0.1:7001").await;
    let (_stream, linked) = broker.accept().await;
    assert_eq!(linked.principal.as_str(), "User:alice");
    assert_eq!(cell.metadata.wakes().await.unwrap().records.len(), 0, "it runs: nothing to wake");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_says_nothing_is_left_the_moment_another_takes_its_place() {
    let cell = Cell::new().await;
    // As the address of a pod whose node is gone: nothing answers, and nothing refuses.
    let _silent = cell.broker_at("cl_1", "10.0.0.1:9091");
    cell.runs("cl_1", "10.0.0.1:9091").await;
    let mut client = cell.client();
    client.log_in("alice", "secret").await.unwrap();
    let began = Instant::now();
    let mut broker = cell.broker_at("cl_1", "10.0.0.2:9091");
    cell.runs("cl_1", "10.0.0.2:9091").await;
    broker.accept().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn clients_of_a_broker_whose_place_is_taken_are_closed() {
    let cell = Cell::new().await;
    let (mut client, _silent) = cell.forwarded().await;
    // The keeper says the same again, and then that the cluster moves.
    cell.runs("cl_1", "127.0.0.1:7000").await;
    cell.runs("cl_2", "127.0.0.1:7009").await;
    cell.sees(|view| view.brokers("cl_2").are_listed()).await;
    tokio::time::sleep(HOUR).await;
    let mut broker = cell.broker_at("cl_1", "127.0.0.1:7001");
    cell.runs("cl_1", "127.0.0.1:7001").await;
    client.is_closed().await;
    let mut again = cell.client();
    again.log_in("alice", "secret").await.unwrap();
    broker.accept().await;
}

#[tokio::test(start_paused = true)]
async fn gateways_side_by_side_ask_for_one_wake() {
    let cell = Cell::new().await;
    let (other, _background) = cell.beside().await;
    let mut first = cell.client();
    first.log_in("alice", "secret").await.unwrap();
    let asked = loop {
        if let Some(asked) = cell.metadata.wake("cl_1").await.unwrap() {
            break asked;
        }
        tokio::task::yield_now().await;
    };
    let mut second = client_at(&other, 9092);
    second.log_in("bob", "secret").await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(cell.metadata.wake("cl_1").await.unwrap(), Some(asked), "the first one stands");
    let mut broker = cell.broker_at("cl_1", "127.0.0.1:7000");
    cell.runs("cl_1", "127.0.0.1:7000").await;
    let linked = [broker.accept().await.1, broker.accept().await.1];
    let mut users = linked.map(|client| client.principal.as_str().to_owned());
    users.sort();
    assert_eq!(users, ["User:alice", "User:bob"]);
}

#[tokio::test(start_paused = true)]
async fn another_clusters_broker_at_a_stale_address_gets_no_client() {
    let cell = Cell::new().await;
    let mut wrong = cell.broker_at("cl_2", "127.0.0.1:7000");
    cell.runs("cl_1", "127.0.0.1:7000").await;
    let mut client = cell.client();
    client.log_in("alice", "secret").await.unwrap();
    wrong.refuses().await;
    let mut right = cell.broker_at("cl_1", "127.0.0.1:7000");
    right.accept().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_broker_closes_is_closed() {
    let cell = Cell::new().await;
    let (mut client, broker) = cell.forwarded().await;
    drop(broker);
    client.is_closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_user_is_disconnected_soon_and_others_stay() {
    let cell = Cell::new().await;
    let (mut alice, _of_alice) = cell.forwarded().await;
    let (mut bob, mut of_bob) = cell.forwarded_as("bob").await;
    let began = Instant::now();
    remove_user(&cell.store(), "cl_1", "alice").await;
    alice.is_closed().await;
    assert!(began.elapsed() <= Duration::from_secs(5));
    tokio::time::sleep(HOUR).await;
    bob.stream.write_all(b"x").await.unwrap();
    assert_eq!(of_bob.read_u8().await.unwrap(), b'x');
}

#[tokio::test(start_paused = true)]
async fn clients_of_a_suspended_cluster_are_closed_and_get_the_reason() {
    let cell = Cell::new().await;
    let (mut client, _broker) = cell.forwarded().await;
    for (state, generation, reason) in [
        (SpecState::Suspended, 2, "Authentication failed: the cluster is suspended"),
        (SpecState::Deleted, 3, "Authentication failed: the cluster was deleted"),
    ] {
        let spec = ClusterSpec { generation, state, ..cell.spec("cl_1").await };
        cell.metadata.put_spec(&spec).await.unwrap();
        client.is_closed().await;
        client = cell.client();
        let (code, message) = client.log_in("alice", "secret").await.unwrap_err();
        assert_eq!((code, message.as_str()), (E::SaslAuthenticationFailed.code(), reason));
        // A client without the password does not learn the cluster's state.
        let (_, message) = cell.client().log_in("alice", "wrong").await.unwrap_err();
        assert!(!message.contains("cluster"), "{message}");
    }
    assert_eq!(cell.metadata.wakes().await.unwrap().records.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_has_so_many_connections() {
    let cell = Cell::new().await;
    let spec = ClusterSpec { connections_max: 1, generation: 2, ..cell.spec("cl_1").await };
    cell.metadata.put_spec(&spec).await.unwrap();
    cell.sees(|view| view.spec("cl_1").is_some_and(|spec| spec.connections_max == 1)).await;
    let (first, broker) = cell.forwarded().await;
    let mut second = cell.client();
    second.hand_in("alice", "secret").await;
    second.is_closed().await;
    drop((first, broker));
    while !cell.gateway.gate.by_cluster().is_empty() {
        tokio::task::yield_now().await;
    }
    cell.client().log_in("alice", "secret").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_served_while_the_metadata_store_is_down() {
    let cell = Cell::new().await;
    let (mut alice, mut broker) = cell.forwarded().await;
    cell.switch.turn_off();
    tokio::time::sleep(HOUR).await;
    alice.stream.write_all(b"x").await.unwrap();
    assert_eq!(broker.read_u8().await.unwrap(), b'x', "the connection goes on");
    cell.client().log_in("alice", "secret").await.unwrap();
    cell.client().log_in("alice", "wrong").await.unwrap_err();
    // A user that was not looked up before gets no answer that it does not exist, but is closed: it
    // tries again.
    let mut bob = cell.client();
    bob.hand_in("bob", "secret").await;
    bob.is_closed().await;
    cell.switch.turn_on();
    cell.client().log_in("bob", "secret").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_quiet_connections_and_those_that_are_held() {
    let cell = Cell::new().await;
    let (mut client, _broker) = cell.forwarded().await;
    let mut held = cell.client_of(9093);
    held.log_in("alice", "secret").await.unwrap();
    let _unauthenticated = cell.client();
    timeout(Duration::from_secs(10), cell.gateway.drain(HOUR)).await.unwrap();
    client.is_closed().await;
    held.is_closed().await;
}

#[tokio::test(start_paused = true)]
async fn credentials_are_those_of_the_cluster_that_the_name_says() {
    let cell = Cell::new().await;
    let mut client = cell.tls_client("orders-1a.kafka.localhost").await;
    client.log_in("alice", "secret").await.unwrap();
    cell.next_wake("cl_1").await;
    let mut client = cell.tls_client("b0-other.kafka.localhost").await;
    client.log_in("bob", "secret").await.unwrap_err();
    for unknown in ["nobody.kafka.localhost", "b0-nobody.kafka.localhost"] {
        cell.tls_client(unknown).await.is_closed().await;
    }
    let mut client = cell.tls_client("b0-orders-1a.kafka.localhost").await;
    client.log_in("alice", "secret").await.unwrap();
    let mut broker = cell.broker_at("cl_1", "127.0.0.1:7000");
    cell.runs("cl_1", "127.0.0.1:7000").await;
    let (_stream, linked) = broker.accept().await;
    assert_eq!(linked.listener, ListenerKind::SaslSsl);
    let names = [0, 1, 2].map(|slot| format!("b{slot}-orders-1a.kafka.localhost:9443"));
    assert_eq!(linked.advertised, names);
}

#[tokio::test(start_paused = true)]
async fn guesses_wait_and_are_closed_where_they_would_wait_for_too_long() {
    let cell = Cell::new().await;
    for (place, mechanism) in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"].into_iter().enumerate() {
        let address = format!("198.51.{place}.1");
        let client = || cell.client_from(&address);
        let mut waits = Vec::new();
        let mut said = Vec::new();
        for number in 0..9 {
            let (mut client, began) = (client(), Instant::now());
            let guess = format!("guess-{number}");
            let refused = client.authenticate(mechanism, "alice", &guess).await.unwrap_err();
            waits.push(began.elapsed().as_secs());
            assert_eq!(refused.0, E::SaslAuthenticationFailed.code());
            said.push(refused.1.split_once("wait ").map(|(_, rest)| rest.to_owned()));
        }
        // What a failure says and what the next attempt waits are the same.
        assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8], "{mechanism}");
        let waits_said = said[4..].iter().map(|text| text.as_deref().unwrap());
        let expected = [1, 2, 4, 8, 16].map(|wait| format!("{wait} s before the next try"));
        assert!(waits_said.eq(expected), "{mechanism}: {said:?}");
        assert!(said[..4].iter().all(Option::is_none));
        // The right one would wait 16 s, and has 10.
        let (mut late, began) = (client(), Instant::now());
        late.hand_in("alice", "secret").await;
        late.is_closed().await;
        assert_eq!(began.elapsed().as_secs(), 9, "{mechanism}");
        client().authenticate(mechanism, "alice", "secret").await.unwrap();
        // From now on it is known there, and others' failures are nothing to it.
        for number in 0..11 {
            let guess = format!("more-{number}");
            client().authenticate(mechanism, "alice", &guess).await.unwrap_err();
        }
        let began = Instant::now();
        client().authenticate(mechanism, "alice", "secret").await.unwrap();
        assert!(began.elapsed() <= Duration::from_secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_password_that_is_sent_again_and_again_delays_nobody() {
    let cell = Cell::new().await;
    for _ in 0..40 {
        let began = Instant::now();
        let refused = cell.client().authenticate("PLAIN", "alice", "old").await.unwrap_err();
        assert!(!refused.1.contains("wait"), "{refused:?}");
        assert_eq!(began.elapsed(), Duration::from_millis(100));
    }
    let began = Instant::now();
    cell.client().authenticate("PLAIN", "alice", "secret").await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    // It may become the right one.
    super::testing::add_user(&cell.store(), "cl_1", "alice", "old").await;
    cell.client().authenticate("PLAIN", "alice", "old").await.unwrap();
    cell.client().authenticate("PLAIN", "alice", "secret").await.unwrap_err();
}
