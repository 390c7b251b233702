//! Connections with scripted sessions: order, limits, and what ends them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use super::writer::STALLED_AFTER;
use super::{Outcome, Reply, Server, ServerLimits, Service, Session};
use freshet_storage::liveness::Liveness;
use freshet_wire::budget::{Budget, RequestMemory};
use freshet_world::env::{Listener, Stream};

/// Accepts the streams that a test gives it.
struct GivenStreams(mpsc::UnboundedReceiver<(Box<dyn Stream>, SocketAddr)>);

#[async_trait]
impl Listener for GivenStreams {
    async fn accept(&mut self) -> std::io::Result<(Box<dyn Stream>, SocketAddr)> {
        match self.0.recv().await {
            Some(accepted) => Ok(accepted),
            None => std::future::pending().await,
        }
    }

    fn local_address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 9092))
    }
}

/// What a scripted session does with a frame, by its first byte: `e` echoes, `s` stages an answer
/// that the test gives, `w` waits for one, `p` panics, `l` answers for the last time, `c` closes,
/// `n` stages an empty answer, `a` authenticates, `k` echoes and keeps its share of the budgets,
/// `h` gives more than a client's socket takes, and holds the memory of fetches meanwhile.
#[derive(Clone, Default)]
struct Script {
    awaited: Arc<Mutex<VecDeque<oneshot::Sender<Bytes>>>>,
    dropped: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
    kept: Arc<Mutex<Vec<RequestMemory>>>,
    fetches: Option<Budget>,
    needs_authentication: bool,
}

struct Scripted {
    script: Script,
    authenticated: bool,
}

impl Service for Script {
    type Session = Scripted;

    fn connect(&self, _peer: SocketAddr) -> Scripted {
        Scripted { script: self.clone(), authenticated: !self.needs_authentication }
    }
}

struct CountsDrop(Arc<AtomicUsize>);

impl Drop for CountsDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Script {
    fn reply(&self, body: &[u8]) -> Reply {
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let written = Arc::clone(&self.written);
        Reply {
            pieces: vec![Bytes::from(length.to_vec()), Bytes::from(body.to_vec())],
            written: Some(Box::new(move |_| {
                written.fetch_add(1, Ordering::Relaxed);
            })),
            ..Reply::default()
        }
    }

    fn later(&self) -> impl Future<Output = Reply> + use<> {
        let (sender, receiver) = oneshot::channel::<Bytes>();
        self.awaited.lock().push_back(sender);
        let (script, guard) = (self.clone(), CountsDrop(Arc::clone(&self.dropped)));
        async move {
            let body = receiver.await.unwrap();
            std::mem::forget(guard);
            script.reply(&body)
        }
    }

    fn answer(&self, body: &'static str) {
        self.awaited.lock().pop_front().unwrap().send(Bytes::from_static(body.as_bytes())).unwrap();
    }
}

#[async_trait]
impl Session for Scripted {
    fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    async fn handle(&mut self, frame: Bytes, memory: &mut Option<RequestMemory>) -> Outcome {
        match frame[0] {
            b'k' => {
                self.script.kept.lock().extend(memory.take());
                Outcome::Reply(self.script.reply(&frame))
            }
            b'h' => {
                let budget = self.script.fetches.as_ref().unwrap();
                let share = budget.acquire(SOCKET_BYTES).await;
                let mut reply = self.script.reply(&vec![0; 2 * SOCKET_BYTES]);
                reply.demands = vec![share.demand()];
                reply.written = Some(Box::new(move |_| drop(share)));
                Outcome::Reply(reply)
            }
            b'e' => Outcome::Reply(self.script.reply(&frame)),
            b's' => Outcome::Staged(Box::pin(self.script.later())),
            b'w' => Outcome::Waiting(Box::pin(self.script.later())),
            b'l' => Outcome::LastReply(self.script.reply(&frame), "last".to_owned()),
            b'n' => Outcome::Staged(Box::pin(async { Reply::default() })),
            b'c' => Outcome::Close("asked to".to_owned()),
            b'a' => {
                self.authenticated = true;
                Outcome::Reply(self.script.reply(&frame))
            }
            other => panic!("frame {other}"),
        }
    }
}

/// How many bytes a client's socket takes that the client has not read.
const SOCKET_BYTES: usize = 1 << 16;

struct Harness {
    connect: mpsc::UnboundedSender<(Box<dyn Stream>, SocketAddr)>,
    server: Arc<Server>,
    liveness: Liveness,
    script: Script,
    running: tokio::task::JoinHandle<()>,
}

impl Harness {
    fn new(limits: ServerLimits, script: Script) -> Self {
        let (connect, streams) = mpsc::unbounded_channel();
        let liveness = Liveness::default();
        let server = Server::new(limits, liveness.clone());
        let listener = Box::new(GivenStreams(streams));
        let running = tokio::spawn(Arc::clone(&server).run(listener, script.clone()));
        Self { connect, server, liveness, script, running }
    }

    fn client(&self) -> Client {
        self.client_at([10, 0, 0, 1])
    }

    fn client_at(&self, address: [u8; 4]) -> Client {
        let (ours, theirs) = tokio::io::duplex(SOCKET_BYTES);
        self.connect.send((Box::new(theirs), SocketAddr::from((address, 40_000)))).unwrap();
        Client(ours)
    }

    /// Waits until this many answers are awaited.
    async fn awaited(&self, count: usize) {
        while self.script.awaited.lock().len() != count {
            tokio::task::yield_now().await;
        }
    }
}

struct Client(DuplexStream);

impl Client {
    async fn send(&mut self, body: &str) {
        self.0.write_all(&u32::try_from(body.len()).unwrap().to_be_bytes()).await.unwrap();
        self.0.write_all(body.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> String {
        let length = self.0.read_u32().await.unwrap();
        let mut body = vec![0; length as usize];
        self.0.read_exact(&mut body).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    /// Waits until the server has closed the connection.
    async fn is_closed(&mut self) {
        assert_eq!(self.0.read(&mut [0]).await.unwrap_or(0), 0);
    }
}

fn limits() -> ServerLimits {
    ServerLimits::default()
}

#[tokio::test(start_paused = true)]
async fn answers_leave_in_order_while_staged_ones_are_awaited() {
    let harness = Harness::new(limits(), Script::default());
    let mut client = harness.client();
    for request in ["s1", "s2", "e3", "n4", "e5"] {
        client.send(request).await;
    }
    harness.awaited(2).await;
    harness.script.answer("first");
    assert_eq!(client.receive().await, "first");
    harness.script.answer("second");
    for expected in ["second", "e3", "e5"] {
        assert_eq!(client.receive().await, expected);
    }
    assert_eq!(harness.script.written.load(Ordering::Relaxed), 4);
    assert_eq!(harness.server.in_flight_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_keeps_memory_only_while_nobody_waits_for_it() {
    let fetches = Budget::new(SOCKET_BYTES);
    let script = Script { fetches: Some(fetches.clone()), ..Script::default() };
    let harness = Harness::new(limits(), script);
    let mut stalled = harness.client();
    stalled.send("h").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(fetches.used_bytes(), SOCKET_BYTES, "it may go on reading");
    let asked_at = Instant::now();
    drop(fetches.acquire(SOCKET_BYTES).await);
    assert!(asked_at.elapsed() <= STALLED_AFTER);
    let mut rest = Vec::new();
    // The outcome does not matter here: the connection may end in order or not.
    let _ = stalled.0.read_to_end(&mut rest).await;
    assert!(rest.len() <= SOCKET_BYTES, "the connection is closed");
    let mut reading = harness.client();
    reading.send("h").await;
    assert_eq!(reading.receive().await.len(), 2 * SOCKET_BYTES);
    assert_eq!(fetches.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_request_holds_back_the_next_but_not_the_answers_before_it() {
    let harness = Harness::new(limits(), Script::default());
    let mut client = harness.client();
    client.send("s1").await;
    client.send("w2").await;
    client.send("s3").await;
    harness.awaited(2).await;
    harness.script.answer("first");
    assert_eq!(client.receive().await, "first");
    harness.awaited(1).await;
    harness.script.answer("waited");
    assert_eq!(client.receive().await, "waited");
    harness.awaited(1).await;
    harness.script.answer("third");
    assert_eq!(client.receive().await, "third");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_its_waiting_request() {
    let harness = Harness::new(limits(), Script::default());
    let mut client = harness.client();
    client.send("w").await;
    harness.awaited(1).await;
    drop(client);
    while harness.server.connections() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(harness.script.dropped.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_closes_one_connection() {
    let harness = Harness::new(limits(), Script::default());
    let (mut broken, mut sound) = (harness.client(), harness.client());
    sound.send("e1").await;
    assert_eq!(sound.receive().await, "e1");
    broken.send("panic").await;
    broken.is_closed().await;
    sound.send("e2").await;
    assert_eq!(sound.receive().await, "e2");
    assert_eq!(harness.server.connections(), 1);
    let mut another = harness.client();
    another.send("e3").await;
    assert_eq!(another.receive().await, "e3");
}

#[tokio::test(start_paused = true)]
async fn a_session_can_end_its_connection_with_and_without_an_answer() {
    let harness = Harness::new(limits(), Script::default());
    let mut client = harness.client();
    client.send("last").await;
    assert_eq!(client.receive().await, "last");
    client.is_closed().await;
    let mut client = harness.client();
    client.send("e").await;
    client.send("close").await;
    assert_eq!(client.receive().await, "e");
    client.is_closed().await;
}

#[tokio::test(start_paused = true)]
async fn larger_frames_are_for_the_authenticated() {
    let limits = ServerLimits { unauthenticated_bytes_max: 10, request_bytes_max: 20, ..limits() };
    let script = Script { needs_authentication: true, ..Script::default() };
    let harness = Harness::new(limits, script);
    let mut early = harness.client();
    early.send("e2345678901").await;
    early.is_closed().await;
    let mut client = harness.client();
    client.send("a").await;
    assert_eq!(client.receive().await, "a");
    client.send("e2345678901").await;
    assert_eq!(client.receive().await, "e2345678901");
    client.send("e23456789012345678901").await;
    client.is_closed().await;
    let mut negative = harness.client();
    negative.0.write_all(&[0xff; 4]).await.unwrap();
    negative.is_closed().await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_authenticate_in_time_is_closed_however_busy() {
    let script = Script { needs_authentication: true, ..Script::default() };
    let harness = Harness::new(limits(), script);
    let mut silent = harness.client();
    let mut slow = harness.client();
    slow.0.write_all(&[0, 0, 0, 100]).await.unwrap();
    let mut busy = harness.client();
    for _ in 0..9 {
        busy.send("e").await;
        assert_eq!(busy.receive().await, "e");
        slow.0.write_all(b"x").await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(harness.server.connections(), 3);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(harness.server.connections(), 0);
    busy.is_closed().await;
    silent.is_closed().await;
    slow.is_closed().await;
}

#[tokio::test(start_paused = true)]
async fn idle_and_slow_connections_are_closed() {
    let harness = Harness::new(limits(), Script::default());
    let mut idle = harness.client();
    let mut slow = harness.client();
    slow.0.write_all(&[0, 0, 0, 100]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(harness.server.connections(), 2);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(harness.server.connections(), 1, "the body was late");
    slow.is_closed().await;
    tokio::time::sleep(Duration::from_secs(570)).await;
    assert_eq!(harness.server.connections(), 0);
    idle.is_closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_answers_is_closed() {
    let limits = ServerLimits { in_flight_requests_max: 2, ..limits() };
    let harness = Harness::new(limits, Script::default());
    let mut client = harness.client();
    let body = format!("e{}", "x".repeat(40_000));
    for _ in 0..4 {
        client.send(&body).await;
    }
    assert_eq!(harness.server.connections(), 1);
    tokio::time::sleep(Duration::from_secs(1250)).await;
    assert_eq!(harness.server.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn connections_are_limited_in_all_and_by_address() {
    let limits = ServerLimits { connections_max: 3, connections_per_ip_max: 2, ..limits() };
    let harness = Harness::new(limits, Script::default());
    let mut first = harness.client_at([10, 0, 0, 1]);
    let mut second = harness.client_at([10, 0, 0, 1]);
    harness.client_at([10, 0, 0, 1]).is_closed().await;
    let mut third = harness.client_at([10, 0, 0, 2]);
    harness.client_at([10, 0, 0, 3]).is_closed().await;
    for client in [&mut first, &mut second, &mut third] {
        client.send("e").await;
        assert_eq!(client.receive().await, "e");
    }
    drop(first);
    while harness.server.connections() == 3 {
        tokio::task::yield_now().await;
    }
    let mut fourth = harness.client_at([10, 0, 0, 1]);
    fourth.send("e").await;
    assert_eq!(fourth.receive().await, "e");
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_bounded_by_bytes_and_by_number() {
    let limits = ServerLimits {
        in_flight_requests_max: 3,
        in_flight_bytes_max: 4 << 10,
        in_flight_bytes_total: 6 << 10,
        ..limits()
    };
    let harness = Harness::new(limits, Script::default());
    let (mut one, mut two) = (harness.client(), harness.client());
    let large = format!("s{}", "x".repeat(2047));
    for _ in 0..3 {
        one.send(&large).await;
    }
    harness.awaited(2).await;
    two.send(&large).await;
    harness.awaited(3).await;
    two.send(&large).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(harness.script.awaited.lock().len(), 3, "one's third and two's second must wait");
    assert_eq!(harness.server.in_flight_bytes(), 6 << 10);
    harness.script.answer("1");
    assert_eq!(one.receive().await, "1");
    harness.awaited(3).await;
    for client in [&mut two, &mut one] {
        client.send("e").await;
    }
    while !harness.script.awaited.lock().is_empty() {
        harness.script.answer("more");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(one.receive().await, "more");
    let mut many = harness.client();
    for _ in 0..10 {
        many.send("s").await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Three answers have a place in the queue, and the writer awaits one more.
    assert_eq!(harness.script.awaited.lock().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn announced_lengths_take_no_memory_from_others() {
    let limits = ServerLimits { in_flight_bytes_total: 1 << 20, ..limits() };
    let harness = Harness::new(limits, Script::default());
    let mut hostile = Vec::new();
    for sent in [0, 1, 4000].into_iter().cycle().take(60) {
        let mut client = harness.client();
        client.0.write_all(&(1_u32 << 20).to_be_bytes()).await.unwrap();
        client.0.write_all(&vec![b'e'; sent]).await.unwrap();
        hostile.push(client);
    }
    sleep(Duration::from_millis(1)).await;
    // The bytes that were sent, each rounded up to a KiB.
    assert_eq!(harness.server.in_flight_bytes(), (20 * (1 + 4)) << 10);
    let mut client = harness.client();
    let asked_at = Instant::now();
    let large = format!("e{}", "x".repeat(60_000));
    client.send(&large).await;
    assert_eq!(client.receive().await, large);
    assert_eq!(asked_at.elapsed(), Duration::ZERO);
    assert_eq!(harness.server.connections(), 61, "nobody had to be closed for it");
}

#[tokio::test(start_paused = true)]
async fn requests_that_hold_memory_arrive_soon_or_are_closed_where_others_wait() {
    let limits =
        ServerLimits { in_flight_bytes_total: 96 << 10, request_bytes_max: 32 << 10, ..limits() };
    let harness = Harness::new(limits, Script::default());
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut client = harness.client();
        client.0.write_all(&(32_u32 << 10).to_be_bytes()).await.unwrap();
        client.0.write_all(&vec![b'e'; 31 << 10]).await.unwrap();
        slow.push(client);
    }
    sleep(Duration::from_secs(20)).await;
    assert_eq!(harness.server.connections(), 3, "nobody waits for their memory");
    let large = format!("e{}", "x".repeat((32 << 10) - 1));
    let mut clients: Vec<Client> = (0..2).map(|_| harness.client()).collect();
    let asked_at = Instant::now();
    for client in &mut clients {
        client.send(&large).await;
    }
    for client in &mut clients {
        assert_eq!(client.receive().await, large);
    }
    assert!(asked_at.elapsed() <= Duration::from_secs(1), "{:?}", asked_at.elapsed());
    assert!(harness.server.connections() < 5, "a slow one was closed");
}

#[tokio::test(start_paused = true)]
async fn a_request_need_not_make_up_for_the_time_in_which_there_was_no_memory() {
    let limits =
        ServerLimits { in_flight_bytes_total: 64 << 10, request_bytes_max: 32 << 10, ..limits() };
    let harness = Harness::new(limits, Script::default());
    let large = "x".repeat((32 << 10) - 1);
    let mut holding: Vec<Client> = (0..2).map(|_| harness.client()).collect();
    for client in &mut holding {
        client.send(&format!("k{large}")).await;
        client.receive().await;
    }
    let mut late = harness.client();
    late.0.write_all(&(32_u32 << 10).to_be_bytes()).await.unwrap();
    late.0.write_all(b"e").await.unwrap();
    // Longer than a request may take to arrive.
    sleep(Duration::from_secs(60)).await;
    harness.script.kept.lock().clear();
    late.0.write_all(large.as_bytes()).await.unwrap();
    assert_eq!(late.receive().await.len(), 32 << 10);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_holds_its_share_of_the_budgets_unless_it_is_small() {
    let harness = Harness::new(limits(), Script::default());
    let (mut small, mut large) = (harness.client(), harness.client());
    small.send(&format!("w{}", "x".repeat((8 << 10) - 1))).await;
    harness.awaited(1).await;
    assert_eq!(harness.server.in_flight_bytes(), 0);
    large.send(&format!("w{}", "x".repeat(8 << 10))).await;
    harness.awaited(2).await;
    let held = harness.server.in_flight_bytes();
    assert!((8 << 10..16 << 10).contains(&held), "{held}");
    // The first answer is that of the small one.
    for (client, answer) in [(&mut small, "small"), (&mut large, "large")] {
        harness.script.answer(answer);
        assert_eq!(client.receive().await, answer);
    }
    while harness.server.in_flight_bytes() > 0 {
        tokio::task::yield_now().await;
    }
    // One whose client leaves gives its memory back, too.
    large.send(&format!("w{}", "x".repeat(8 << 10))).await;
    harness.awaited(1).await;
    assert!(harness.server.in_flight_bytes() > 0);
    drop(large);
    while harness.server.in_flight_bytes() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_outlives_its_answer_holds_its_share_of_the_budgets() {
    let limits = ServerLimits { in_flight_bytes_total: 4 << 10, ..limits() };
    let harness = Harness::new(limits, Script::default());
    let (mut one, mut two) = (harness.client(), harness.client());
    let large = format!("k{}", "x".repeat(4095));
    one.send(&large).await;
    assert_eq!(one.receive().await, large);
    drop(one);
    while harness.server.connections() > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(harness.server.in_flight_bytes(), 4 << 10);
    two.send("s").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(harness.script.awaited.lock().is_empty(), "nothing more is read");
    harness.script.kept.lock().clear();
    harness.awaited(1).await;
}

#[tokio::test(start_paused = true)]
async fn when_the_instance_ends_what_is_queued_is_answered_in_order() {
    let harness = Harness::new(limits(), Script::default());
    let mut client = harness.client();
    for request in ["s1", "s2", "e3"] {
        client.send(request).await;
    }
    harness.awaited(2).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    harness.liveness.stand_down("test");
    harness.script.answer("refused 1");
    harness.script.answer("refused 2");
    for expected in ["refused 1", "refused 2", "e3"] {
        assert_eq!(client.receive().await, expected);
    }
    client.is_closed().await;
    harness.running.await.unwrap();
    assert_eq!(harness.server.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_does_not_hold_the_end_up() {
    let harness = Harness::new(limits(), Script::default());
    let mut client = harness.client();
    client.send("s1").await;
    harness.awaited(1).await;
    harness.liveness.stand_down("test");
    client.is_closed().await;
    harness.running.await.unwrap();
}
