//! Attempts on a clock that stands still until it is waited for.

use futures::future::join_all;
use tokio::time::{advance, sleep, sleep_until, timeout};

use super::*;
use freshet_world::sim::random::{Seeded, SeededRandomness};

/// Longer than any wait.
const LONG: Duration = Duration::from_secs(600);

/// The attempts at one cluster.
struct Cluster {
    attempts: Arc<Attempts>,
    name: Arc<str>,
}

impl Cluster {
    fn new() -> Self {
        let randomness = SeededRandomness::new(Seeded::new(1));
        Self { attempts: Attempts::new(&randomness), name: "cl_1".into() }
    }

    /// Another cluster of the same gateway.
    fn other(&self, name: &str) -> Self {
        Self { attempts: Arc::clone(&self.attempts), name: name.into() }
    }

    /// Waits until an attempt begins.
    async fn begin(&self, user: &str, address: &str) -> Attempt {
        let address = (!address.is_empty()).then(|| address.parse().unwrap());
        let mut waiting = self.attempts.announce(&self.name, user, address);
        loop {
            match waiting.begin() {
                Ok(attempt) => return attempt,
                Err(until) => sleep_until(until).await,
            }
        }
    }

    /// How long somebody waits who has the right password.
    async fn log_in(&self, user: &str, address: &str) -> Duration {
        let began = Instant::now();
        self.begin(user, address).await.succeed();
        began.elapsed()
    }

    /// How long somebody waits whose password is wrong, and the wait after it.
    async fn guess(&self, user: &str, address: &str) -> Duration {
        let began = Instant::now();
        self.begin(user, address).await.fail(None);
        began.elapsed()
    }

    /// How many guesses of these clients are checked within a time, if each has several waiting and
    /// goes on at once.
    async fn guesses_within(&self, time: Duration, clients: &[(&str, String)]) -> usize {
        let counted = Mutex::new(0);
        let guessing = clients.iter().map(async |(user, address)| {
            loop {
                // A connection has so much time, and is opened anew.
                if timeout(Duration::from_secs(10), self.guess(user, address)).await.is_ok() {
                    *counted.lock() += 1;
                }
            }
        });
        let _ = timeout(time, join_all(guessing)).await;
        counted.into_inner()
    }
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs()
}

#[tokio::test(start_paused = true)]
async fn guesses_of_one_client_wait_twice_as_long_each_time() {
    let cluster = Cluster::new();
    let mut waits = Vec::new();
    for _ in 0..15 {
        waits.push(seconds(cluster.guess("alice", "192.0.2.1").await));
    }
    assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 128, 128]);
    // Another user there is not delayed, nor the same user somewhere else.
    assert_eq!(cluster.log_in("bob", "192.0.2.1").await, Duration::ZERO);
    assert_eq!(cluster.log_in("alice", "198.51.100.1").await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn guesses_from_a_hundred_networks_are_few_and_delay_no_new_client_of_another() {
    let cluster = Cluster::new();
    let clients: Vec<_> = (0..100).map(|number| ("alice", format!("10.{number}.0.1"))).collect();
    let attacking = cluster.guesses_within(LONG, &clients);
    let logging_in = async {
        // While the hundred spend what is free, each has the same right to it.
        sleep(Duration::from_secs(240)).await;
        let mut longest = Duration::ZERO;
        for number in 0..20 {
            longest = longest.max(cluster.log_in("alice", &format!("198.51.{number}.1")).await);
            sleep(Duration::from_secs(10)).await;
        }
        longest
    };
    let (guesses, longest) = tokio::join!(attacking, logging_in);
    assert!((500..=570).contains(&guesses), "{guesses}");
    assert!(longest <= Duration::from_millis(1_200), "{longest:?}");
}

#[tokio::test(start_paused = true)]
async fn guesses_from_the_addresses_of_one_network_leave_the_reserve_alone() {
    for prefix in ["203.0.113.", "2001:db8:7:"] {
        let cluster = Cluster::new();
        let address = |number| match prefix {
            "203.0.113." => format!("{prefix}{number}"),
            _ => format!("{prefix}{number:x}::"),
        };
        let clients: Vec<_> = (1..255).map(|number| ("alice", address(number))).collect();
        let guesses = cluster.guesses_within(Duration::from_secs(60), &clients).await;
        assert!((50..=75).contains(&guesses), "{guesses}");
        // The first minute has no more than that, and a new client of another network none to wait.
        assert_eq!(cluster.log_in("alice", "198.51.100.1").await, Duration::ZERO);
        assert_eq!(cluster.log_in("alice", "2001:db8:9::").await, Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn guesses_at_many_users_of_a_cluster_are_few_together() {
    let cluster = Cluster::new();
    let users: Vec<String> = (0..300).map(|number| format!("user-{number}")).collect();
    let from = |number: usize| format!("10.{}.{}.1", number / 200, number % 200);
    let clients: Vec<_> = (0..300).map(|n| (users[n].as_str(), from(n))).collect();
    let guesses = cluster.guesses_within(Duration::from_secs(100), &clients).await;
    assert!((400..=560).contains(&guesses), "{guesses}");
    // Of one address alone: fewer, and still fewer at each further cluster.
    let alone = cluster.other("cl_2");
    let near = users.iter().map(|user| (user.as_str(), "192.0.2.1".to_owned()));
    let guesses = alone.guesses_within(LONG, &near.collect::<Vec<_>>()).await;
    assert!((40..=70).contains(&guesses), "{guesses}");
}

#[tokio::test(start_paused = true)]
async fn an_address_has_few_guesses_at_all_clusters_together() {
    let first = Cluster::new();
    let mut guesses = 0;
    let began = Instant::now();
    for number in 0..40 {
        let cluster = first.other(&format!("cl_{number}"));
        for _ in 0..4 {
            cluster.guess("alice", "192.0.2.1").await;
            guesses += 1;
        }
    }
    assert_eq!(guesses, 160);
    assert!(began.elapsed() > Duration::from_secs(300), "{:?}", began.elapsed());
    assert!(first.log_in("bob", "192.0.2.1").await <= Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_let_in_waits_for_its_own_failures_and_a_second_at_most() {
    let cluster = Cluster::new();
    cluster.log_in("alice", "192.0.2.1").await;
    // Others take what there is, also from the client's own address.
    let users: Vec<String> = (0..100).map(|number| format!("user-{number}")).collect();
    let clients = (0..100).map(|number| ("alice", format!("10.{number}.0.1")));
    let near = users.iter().map(|user| (user.as_str(), "192.0.2.1".to_owned()));
    let clients: Vec<_> = clients.chain(near).collect();
    cluster.guesses_within(Duration::from_secs(60), &clients).await;
    assert_eq!(cluster.log_in("alice", "192.0.2.1").await, Duration::ZERO);
    // Somebody guesses as the same user at the same address, with eight attempts waiting. Nothing
    // tells both apart; who came last is mostly the one that does not keep attempts waiting.
    let same: Vec<_> = (0..8).map(|_| ("alice", "192.0.2.1".to_owned())).collect();
    let attacking = cluster.guesses_within(LONG, &same);
    let logging_in = async {
        let mut waits = Vec::new();
        for _ in 0..40 {
            sleep(Duration::from_millis(10_700)).await;
            waits.push(cluster.log_in("alice", "192.0.2.1").await);
        }
        waits.sort();
        waits
    };
    let (guesses, waits) = tokio::join!(attacking, logging_in);
    assert!((500..=620).contains(&guesses), "{guesses}");
    assert!(waits[waits.len() / 2] <= Duration::from_millis(1_100), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn on_the_loopback_nobody_waits_for_long_and_guesses_are_few() {
    let cluster = Cluster::new();
    for _ in 0..10 {
        assert_eq!(cluster.guess("alice", "").await, Duration::ZERO);
    }
    assert!(cluster.log_in("alice", "").await <= Duration::from_secs(1));
    assert_eq!(cluster.log_in("bob", "").await, Duration::ZERO);
    let users: Vec<String> = (0..60).map(|number| format!("user-{number}")).collect();
    let clients: Vec<_> = users.iter().map(|user| (user.as_str(), String::new())).collect();
    let guesses = cluster.guesses_within(Duration::from_secs(60), &clients).await;
    assert!((280..=350).contains(&guesses), "{guesses}");
    assert_eq!(cluster.log_in("bob", "").await, Duration::ZERO, "who was let in before");
    assert!(cluster.log_in("carol", "").await <= Duration::from_secs(1), "who never was");
}

#[tokio::test(start_paused = true)]
async fn the_same_wrong_password_is_one_failure() {
    let cluster = Cluster::new();
    let old = cluster.attempts.digest([&b"old"[..]]);
    for number in 0..1000 {
        let attempt = cluster.begin("alice", "192.0.2.1").await;
        assert_eq!(attempt.is_known_as_wrong(old), number > 0);
        assert_eq!(attempt.fail(Some(old)), Duration::ZERO);
    }
    // Also where several of them are checked at the same time.
    let begun = join_all((0..5).map(|_| cluster.begin("bob", "192.0.2.1"))).await;
    for attempt in begun {
        assert_eq!(attempt.fail(Some(old)), Duration::ZERO);
    }
    assert_eq!(cluster.log_in("alice", "192.0.2.1").await, Duration::ZERO);
    // Others are guesses, and push it out.
    for number in 0..5_u8 {
        let other = cluster.attempts.digest([&[number][..]]);
        cluster.begin("carol", "192.0.2.1").await.fail(Some(other));
    }
    assert_eq!(seconds(cluster.guess("carol", "192.0.2.1").await), 1);
    assert_eq!(cluster.log_in("dave", "192.0.2.1").await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn many_right_passwords_at_once_wait_for_milliseconds() {
    let cluster = Cluster::new();
    let began = Instant::now();
    let logins = (0..500).map(async |number| {
        let address = format!("192.0.2.{}", number % 3);
        let attempt = cluster.begin("alice", &address).await;
        sleep(Duration::from_millis(5)).await;
        attempt.succeed();
    });
    join_all(logins).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_leaves_before_the_outcome_has_failed_and_leaves_no_trace_in_a_line() {
    let cluster = Cluster::new();
    for _ in 0..5 {
        drop(cluster.begin("alice", "192.0.2.1").await);
    }
    let waiting = timeout(Duration::from_millis(10), cluster.begin("alice", "192.0.2.1"));
    assert!(waiting.await.is_err());
    assert!(cluster.attempts.state.lock().lines.is_empty());
    cluster.attempts.forget("cl_1");
    assert_eq!(cluster.log_in("alice", "192.0.2.1").await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn rows_are_few_and_those_of_clients_that_were_let_in_stay() {
    let cluster = Cluster::new();
    cluster.log_in("alice", "192.0.2.1").await;
    for number in 0..3000_u32 {
        let address = Ipv4Addr::from_bits((10 << 24) + (number << 8)).to_string();
        cluster.begin(&format!("user-{number}"), &address).await.fail(None);
        advance(Duration::from_secs(1)).await;
    }
    {
        let state = cluster.attempts.state.lock();
        let of_cluster = &state.clusters["cl_1"];
        assert!(of_cluster.len() <= 5 * 1024, "{}", of_cluster.len());
        assert!(state.addresses.len() <= 1024);
        assert_eq!(of_cluster.acquainted.len(), 1);
    }
    advance(FORGOTTEN).await;
    cluster.attempts.state.lock().bound_rows();
    assert_eq!(cluster.attempts.state.lock().clusters["cl_1"].len(), 1);
    advance(ACQUAINTED_FOR).await;
    cluster.attempts.state.lock().bound_rows();
    assert!(cluster.attempts.state.lock().clusters.is_empty());
}
