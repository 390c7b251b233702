//! A whole gateway that is attacked by clients that do not authenticate, and what others notice.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};

use super::testing::{Cell, Client};
use super::{Gateway, GatewaySettings};

/// What a login of another cluster takes.
async fn login_time(cell: &Cell) -> Duration {
    let began = Instant::now();
    cell.client_of(9093).log_in("alice", "secret").await.unwrap();
    began.elapsed()
}

async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

fn unauthenticated(gateway: &Gateway) -> usize {
    gateway.gate.unauthenticated()
}

#[tokio::test(start_paused = true)]
async fn announced_lengths_delay_nobody() {
    let cell = Cell::new().await;
    let mut hostile = Vec::new();
    for number in 0..200_u8 {
        let mut client = cell.client_from(&format!("198.51.100.{number}"));
        client.stream.write_all(&(512_u32 << 10).to_be_bytes()).await.unwrap();
        hostile.push(client);
    }
    settle().await;
    assert_eq!(unauthenticated(&cell.gateway), 200);
    assert_eq!(login_time(&cell).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_arrive_take_a_share_and_no_more() {
    let cell = Cell::new().await;
    let mut hostile = Vec::new();
    // 125 connections of one address send 511 of 512 KiB each: eight times its share.
    for _ in 0..125 {
        hostile.push(cell.client_from("198.51.100.1"));
    }
    let sending = hostile.iter_mut().map(|client| async {
        let sent = [&(512_u32 << 10).to_be_bytes()[..], &vec![7; 511 << 10]].concat();
        client.stream.write_all(&sent).await.is_ok()
    });
    let arrived = join_all(sending).await.into_iter().filter(|arrived| *arrived).count();
    // An eighth of 64 MiB, of which each connection has 16 KiB for itself, in requests whose
    // buffers have 512 KiB.
    assert_eq!(arrived, (64 - 16) * 1024 / 8 / (512 - 16));
    assert_eq!(login_time(&cell).await, Duration::ZERO);
    let mut large = cell.client_of(9093);
    large.send_frame(&[&b"\0\x12\0\0\0\0\0\x07\xff\xff"[..], &vec![0; 200 << 10]].concat()).await;
    large.receive_frame().await;
}

#[tokio::test(start_paused = true)]
async fn idle_connections_of_an_address_keep_nobody_out() {
    let cell = Cell::new().await;
    let of_network = |host: usize| format!("2001:db8::{host:x}");
    let idle: Vec<Client> = (0..1000).map(|host| cell.client_from(&of_network(host))).collect();
    settle().await;
    assert_eq!(unauthenticated(&cell.gateway), 125, "an eighth of a thousand");
    assert_eq!(login_time(&cell).await, Duration::ZERO);
    // Honest clients of the same network, which have to wait until the others are seen to be idle.
    cell.client_from(&of_network(7)).is_closed().await;
    sleep(Duration::from_secs(1)).await;
    cell.client_from(&of_network(7)).log_in("alice", "secret").await.unwrap();
    drop(idle);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_of_many_addresses_to_one_cluster_keep_no_other_out() {
    let cell = Cell::new().await;
    let address = |number: u16| format!("198.51.{}.{}", number / 250, number % 250);
    let mut idle: Vec<Client> =
        (0..1000).map(|number| cell.client_from(&address(number))).collect();
    settle().await;
    assert_eq!(unauthenticated(&cell.gateway), 1000, "all places");
    for _ in 0..10 {
        assert_eq!(login_time(&cell).await, Duration::ZERO);
    }
    let closed = async {
        let first = idle.first_mut().unwrap();
        first.stream.read(&mut [0]).await.unwrap_or(0) == 0
    };
    assert!(closed.await, "the oldest had to give way");
}

#[tokio::test(start_paused = true)]
async fn many_honest_clients_at_once_do_not_displace_each_other() {
    let cell = Cell::new().await;
    let clients = (0..120).map(|_| async {
        cell.client().log_in("alice", "secret").await.unwrap();
    });
    join_all(clients).await;
}

#[tokio::test(start_paused = true)]
async fn the_proxy_protocol_says_who_the_client_is() {
    let mut settings = GatewaySettings::default();
    settings.listener.balancers = vec!["10.0.0.0/8".to_owned()];
    let cell = Cell::with(&settings).await;
    let header = |last: u8| {
        let addresses = [203, 0, 113, last, 10, 0, 0, 1, 0xc3, 0x50, 0x23, 0x84];
        [b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", &addresses[..]].concat()
    };
    let mut broker = cell.broker_at("cl_1", "127.0.0.1:7000");
    cell.runs("cl_1", "127.0.0.1:7000").await;
    let mut client = cell.client_from("10.1.2.3");
    client.stream.write_all(&header(7)).await.unwrap();
    client.log_in("alice", "secret").await.unwrap();
    let (_stream, linked) = broker.accept().await;
    assert_eq!(linked.address, SocketAddr::from(([203, 0, 113, 7], 50_000)));
    // Its address counts, and not the balancer's.
    let mut behind = Vec::new();
    for number in 0..250_u8 {
        let mut client = cell.client_from("10.1.2.3");
        client.stream.write_all(&header(number % 2)).await.unwrap();
        behind.push(client);
    }
    settle().await;
    assert_eq!(unauthenticated(&cell.gateway), 250);
    let mut beyond = cell.client_from("10.1.2.3");
    beyond.stream.write_all(&header(1)).await.unwrap();
    beyond.is_closed().await;
    // A header is for balancers only, and a balancer has to send one.
    let mut elsewhere = cell.client_from("203.0.113.9");
    elsewhere.stream.write_all(&header(9)).await.unwrap();
    elsewhere.is_closed().await;
    let mut without = cell.client_from("10.1.2.3");
    without.send_frame(&[0; 100]).await;
    without.is_closed().await;
    let began = Instant::now();
    cell.client_from("10.1.2.3").is_closed().await;
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}
