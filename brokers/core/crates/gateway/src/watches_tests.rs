//! Clusters of several brokers as a whole gateway serves them.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::GatewaySettings;
use crate::places::{ServingBroker, Slot};
use crate::testing::{Broker, Cell, Client, Start, put_starts};
use freshet_metadata::schema::IncarnationState;
use freshet_metadata::schema::IncarnationState::{Fenced, Live};
use freshet_metadata::schema::cell::ClusterSpec;
use freshet_wire::ids::Incarnation;

const LINKS: [&str; 3] = ["10.0.0.1:9091", "10.0.0.2:9091", "10.0.0.3:9091"];
/// The port at which clients bootstrap, and those of the slots.
const BOOTSTRAP: u16 = 9092;
const SLOTS: [u16; 3] = [9100, 9101, 9102];
const HOUR: Duration = Duration::from_secs(3600);

fn start(incarnation: u64, slot: u32) -> Start<'static> {
    Start { incarnation, slot, link: LINKS[slot as usize], zone: ["a", "b", "c"][slot as usize] }
}

/// A cell whose cluster `cl_1` runs with three brokers, of incarnations 1 to 3.
struct Several {
    cell: Cell,
    brokers: [Broker; 3],
}

impl Several {
    async fn new() -> Self {
        Self::with(&GatewaySettings::default()).await
    }

    async fn with(settings: &GatewaySettings) -> Self {
        let cell = Cell::with(settings).await;
        let ports = [&[BOOTSTRAP][..], &SLOTS].concat();
        let spec = ClusterSpec { scale: 3, generation: 2, ports, ..cell.spec("cl_1").await };
        cell.metadata.put_spec(&spec).await.unwrap();
        let brokers = LINKS.map(|link| cell.broker_at("cl_1", link));
        let several = Self { cell, brokers };
        several.put(&[(start(1, 0), Live), (start(2, 1), Live), (start(3, 2), Live)]).await;
        several.runs(&[0, 1, 2]).await;
        several
    }

    /// Writes states of starts, in one transaction.
    async fn put(&self, starts: &[(Start<'_>, IncarnationState)]) {
        put_starts(&self.cell.store(), "cl_1", starts).await;
    }

    /// The keeper lists these slots.
    async fn runs(&self, slots: &[u32]) {
        let listed: Vec<_> = slots.iter().map(|slot| (*slot, LINKS[*slot as usize])).collect();
        self.cell.runs_at("cl_1", &listed).await;
        let known = |view: &CellView| {
            let brokers = view.brokers("cl_1").listed;
            view.spec("cl_1").is_some_and(|spec| spec.scale == 3)
                && brokers.iter().map(|broker| broker.slot).eq(slots.iter().copied())
        };
        self.cell.sees(known).await;
    }

    async fn client_of(&self, port: u16) -> Client {
        let mut client = self.cell.client_of(port);
        client.log_in("alice", "secret").await.unwrap();
        client
    }

    /// A client and its connection at the broker of a slot.
    async fn linked(&mut self, port: u16, slot: usize) -> (Client, tokio::io::DuplexStream) {
        let client = self.client_of(port).await;
        let (stream, _) = self.brokers[slot].accept().await;
        (client, stream)
    }

    /// Waits until the gateway has read that incarnations of these brokers live.
    async fn sees_incarnations(&self, of_slots: [Option<u64>; 3]) {
        let lives = |view: &CellView| {
            let brokers = view.brokers("cl_1");
            LINKS.iter().zip(of_slots).all(|(link, incarnation)| {
                brokers.incarnation_at(link) == incarnation.map(Incarnation)
            })
        };
        self.cell.sees(lives).await;
    }

    async fn wakes(&self) -> usize {
        self.cell.metadata.wakes().await.unwrap().records.len()
    }
}

/// A connection that passes bytes on.
async fn passes(client: &mut Client, broker: &mut tokio::io::DuplexStream) {
    client.stream.write_all(b"x").await.unwrap();
    assert_eq!(broker.read_u8().await.unwrap(), b'x');
}

#[tokio::test(start_paused = true)]
async fn bootstrapping_clients_come_to_all_brokers_and_slots_to_their_own() {
    let mut several = Several::new().await;
    let mut counts = [0; 3];
    let mut open = Vec::new();
    for _ in 0..60 {
        let client = several.client_of(BOOTSTRAP).await;
        let [first, second, third] = &mut several.brokers;
        let (slot, (stream, linked)) = tokio::select! {
            biased;
            accepted = first.accept() => (0, accepted),
            accepted = second.accept() => (1, accepted),
            accepted = third.accept() => (2, accepted),
        };
        let advertised = SLOTS.map(|port| format!("127.0.0.1:{port}"));
        assert_eq!(linked.advertised, advertised);
        counts[slot] += 1;
        open.push((client, stream));
    }
    assert!(counts.iter().all(|count| (8..=32).contains(count)), "{counts:?}");
    for (slot, port) in SLOTS.into_iter().enumerate() {
        open.push(several.linked(port, slot).await);
    }
}

#[tokio::test(start_paused = true)]
async fn bootstrapping_clients_come_to_brokers_of_the_gateways_zone() {
    let mut settings = GatewaySettings::default();
    settings.cell.zone = "b".to_owned();
    let mut several = Several::with(&settings).await;
    let _first = several.linked(SLOTS[0], 0).await;
    several.sees_incarnations([Some(1), Some(2), Some(3)]).await;
    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(several.linked(BOOTSTRAP, 1).await);
    }
    several.put(&[(start(2, 1), Fenced)]).await;
    let _client = several.client_of(BOOTSTRAP).await;
    let [first, _, third] = &mut several.brokers;
    tokio::select! { biased; _ = first.accept() => {}, _ = third.accept() => {} }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_refuses_or_is_silent_keeps_no_bootstrapping_client_waiting() {
    let mut several = Several::new().await;
    several.cell.refuse_at(LINKS[1]);
    // Broker 2 takes connections and says nothing.
    let began = Instant::now();
    for _ in 0..20 {
        let (mut client, mut stream) = several.linked(BOOTSTRAP, 0).await;
        passes(&mut client, &mut stream).await;
    }
    assert!(began.elapsed() <= Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(several.wakes().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_missing_slot_is_served_by_another_at_once_and_wakes_nothing() {
    let mut several = Several::new().await;
    several.runs(&[0, 2]).await;
    let began = Instant::now();
    let (mut client, mut substitute) = several.linked(SLOTS[1], 2).await;
    let mut above = several.cell.tls_client("b7-orders-1a.kafka.localhost").await;
    above.log_in("alice", "secret").await.unwrap();
    several.brokers[2].accept().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    tokio::time::sleep(HOUR).await;
    passes(&mut client, &mut substitute).await;
    assert_eq!(several.wakes().await, 0);
    // The slot has a broker again: its clients have to come to it.
    several.runs(&[0, 1, 2]).await;
    client.is_closed().await;
    several.linked(SLOTS[1], 1).await;
}

#[tokio::test(start_paused = true)]
async fn connections_to_a_fenced_broker_end_at_once_and_others_stay() {
    let mut several = Several::new().await;
    let (mut dead, _silent) = several.linked(SLOTS[1], 1).await;
    let (mut other, mut of_other) = several.linked(SLOTS[0], 0).await;
    several.sees_incarnations([Some(1), Some(2), Some(3)]).await;
    tokio::time::sleep(HOUR).await;
    let began = Instant::now();
    several.put(&[(start(2, 1), Fenced)]).await;
    dead.is_closed().await;
    // The keeper still lists it: nobody is linked to it, and its slot is served by another.
    let (mut again, mut substitute) = several.linked(SLOTS[1], 2).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    passes(&mut again, &mut substitute).await;
    passes(&mut other, &mut of_other).await;
    assert_eq!(several.wakes().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_started_at_the_address_of_a_fenced_one_is_another() {
    let mut several = Several::new().await;
    let _first = several.linked(SLOTS[0], 0).await;
    several.sees_incarnations([Some(1), Some(2), Some(3)]).await;
    let (mut client, _silent) = several.linked(SLOTS[1], 1).await;
    // Both at once, as after the gateway did not reach the store for a while.
    several.put(&[(start(2, 1), Fenced), (start(4, 1), Live)]).await;
    client.is_closed().await;
    let (mut client, mut stream) = several.linked(SLOTS[1], 1).await;
    tokio::time::sleep(HOUR).await;
    passes(&mut client, &mut stream).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_older_than_the_watch_ends_with_its_broker_too() {
    let mut several = Several::new().await;
    several.cell.switch.refuse_watches(true);
    let (mut client, _silent) = several.linked(SLOTS[1], 1).await;
    assert!(several.cell.gateway.view.borrow().brokers("cl_1").incarnations.is_none());
    several.cell.switch.refuse_watches(false);
    several.sees_incarnations([Some(1), Some(2), Some(3)]).await;
    // By now the connection is known to be to incarnation 2.
    tokio::time::sleep(HOUR).await;
    several.put(&[(start(2, 1), Fenced), (start(4, 1), Live)]).await;
    client.is_closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_fenced_while_it_is_linked_to_is_left_at_once() {
    let mut several = Several::new().await;
    let _watched = several.linked(SLOTS[0], 0).await;
    several.sees_incarnations([Some(1), Some(2), Some(3)]).await;
    // Nobody answers there, and nobody refuses.
    let _waiting = several.client_of(SLOTS[1]).await;
    let _silent = several.brokers[1].connection().await;
    let began = Instant::now();
    several.put(&[(start(2, 1), Fenced)]).await;
    several.brokers[2].accept().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_brokers_holds_while_the_store_is_down() {
    let mut several = Several::new().await;
    let (mut client, mut stream) = several.linked(SLOTS[0], 0).await;
    several.sees_incarnations([Some(1), Some(2), Some(3)]).await;
    several.put(&[(start(2, 1), Fenced)]).await;
    let second = ServingBroker { link: LINKS[1].to_owned(), incarnation: None };
    several.cell.sees(|view| !view.brokers("cl_1").keep(Slot::Any, &second)).await;
    several.cell.switch.turn_off();
    tokio::time::sleep(HOUR).await;
    passes(&mut client, &mut stream).await;
    several.linked(SLOTS[1], 2).await;
    several.cell.switch.turn_on();
    several.put(&[(start(1, 0), Fenced)]).await;
    client.is_closed().await;
}

#[tokio::test(start_paused = true)]
async fn clusters_are_watched_while_they_have_several_brokers_and_connections() {
    let cell = Cell::new().await;
    let (_client, _stream) = cell.forwarded().await;
    assert_eq!(cell.switch.watches(), 1, "that of the cell");
    let mut several = Several::new().await;
    let switch = Arc::clone(&several.cell.switch);
    assert_eq!(switch.watches(), 1);
    let one = several.linked(SLOTS[0], 0).await;
    let two = several.linked(SLOTS[1], 1).await;
    several.sees_incarnations([Some(1), Some(2), Some(3)]).await;
    assert_eq!(switch.watches(), 2);
    tokio::time::sleep(HOUR).await;
    drop((one, two));
    several.cell.sees(|view| view.brokers("cl_1").incarnations.is_none()).await;
    assert_eq!(switch.watches(), 1);
    // With one broker, too, it ends.
    let _client = several.linked(SLOTS[0], 0).await;
    several.sees_incarnations([Some(1), Some(2), Some(3)]).await;
    let spec = ClusterSpec { scale: 1, generation: 3, ..several.cell.spec("cl_1").await };
    several.cell.metadata.put_spec(&spec).await.unwrap();
    several.cell.sees(|view| view.brokers("cl_1").incarnations.is_none()).await;
    assert_eq!(switch.watches(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_brokers_have_all_ended_is_woken_after_a_while() {
    let mut several = Several::new().await;
    let (mut client, _silent) = several.linked(SLOTS[0], 0).await;
    several.sees_incarnations([Some(1), Some(2), Some(3)]).await;
    several.put(&[(start(1, 0), Fenced), (start(2, 1), Fenced), (start(3, 2), Fenced)]).await;
    client.is_closed().await;
    let _waiting = several.client_of(BOOTSTRAP).await;
    tokio::time::sleep(Duration::from_millis(1_900)).await;
    assert_eq!(several.wakes().await, 0);
    tokio::time::sleep(Duration::from_millis(200)).await;
    several.cell.next_wake("cl_1").await;
}
