//! How fast passwords may be tried. After some failures each further one doubles a wait: of a
//! client (a user of a cluster at an address), of an address at one cluster, and of an address at
//! all. What all addresses together may try on a user, and on a cluster, is bounded too.
//!
//! An attempt waits before its password is looked at, and holds nothing but its connection's place.
//! It counts as a failure until its outcome is known, so that simultaneous guesses count. Of those
//! that wait whoever comes from the network with fewest failures is first, then the newest: the
//! guesses that an attacker has waiting are older than the login of somebody else.
//!
//! Guesses of others do not keep a user out: a client that was let in before waits for nobody's
//! failures but its own, and a second at most. To try the same wrong password again is no guess, so
//! that an application with an old password delays neither itself nor others. On the loopback,
//! where all clients have one address, each counts like one that was let in before.
//! `docs/decisions/0020-a-guess-waits-and-its-user-does-not.md` says why.

mod curve;
mod pool;
mod table;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, Mac};
use parking_lot::Mutex;
use sha2::Sha256;
use tokio::time::Instant;

use curve::{Admission, Curve, Failures};
use freshet_world::env::Randomness;
use pool::{Pool, PoolLimits};
use table::Table;

/// A client that was never let in.
const NEWCOMER: Curve = Curve {
    free: 5,
    first: Duration::from_secs(1),
    doublings: 7,
    forgotten: Duration::from_secs(600),
};
/// A client that was let in before, and any on the loopback: a second at most.
const ACQUAINTED: Curve = Curve {
    free: 10,
    first: Duration::from_millis(125),
    doublings: 3,
    forgotten: Duration::from_secs(10),
};
/// An address at one cluster, with all users that it names.
const ADDRESS: Curve = Curve {
    free: 20,
    first: Duration::from_millis(250),
    doublings: 6,
    forgotten: Duration::from_secs(30),
};
/// An address at all clusters. Clients of many tenants may share one, so its waits are short.
const ADDRESS_IN_ALL: Curve = Curve {
    free: 50,
    first: Duration::from_millis(250),
    doublings: 4,
    forgotten: Duration::from_secs(10),
};
/// A network at one cluster. It never waits; after so many failures it has no part in what is
/// reserved.
const NETWORK: Curve =
    Curve { free: 5, first: Duration::ZERO, doublings: 0, forgotten: Duration::from_secs(600) };
/// What clients that were never let in may try on one user, from all addresses. Where this is used
/// up the newest waits for about a second.
const OF_USER: PoolLimits = PoolLimits { at_once: 20, per_s: 0.9, reserved: 10 };
/// What may be tried on all users of a cluster.
const OF_CLUSTER: PoolLimits = PoolLimits { at_once: 40, per_s: 5.0, reserved: 20 };
/// For so long a client counts as let in before.
const ACQUAINTED_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// After this time without an attempt all failures are forgotten, by every curve.
const FORGOTTEN: Duration = Duration::from_secs(3 * 3600);
/// When attempts that wait for others' outcomes look again. A check takes some milliseconds.
const OUTCOME_TIME: Duration = Duration::from_millis(20);
/// Rows of the tables of all clusters together. A row takes about 150 bytes.
const ROWS_MAX: usize = 200_000;
/// How many attempts pass from one look at the rows of all clusters to the next.
const LOOK_EVERY: u64 = 1024;
/// Wrong passwords that are remembered of one client.
const WRONG_MAX: usize = 4;

/// A keyed digest. Its key is in this process alone.
pub(super) type Digest = u64;

/// Who tries a password, and on whom.
#[derive(Debug, Clone)]
struct Subject {
    cluster: Arc<str>,
    user: Digest,
    /// The user at the address.
    client: Digest,
    /// As it is counted; `None` where there is none to share by.
    address: Option<IpAddr>,
    /// Whether the client was let in before the attempt began.
    is_acquainted: bool,
}

impl Subject {
    fn curve(&self) -> &'static Curve {
        if self.is_acquainted || self.address.is_none() { &ACQUAINTED } else { &NEWCOMER }
    }
}

/// What is known of one client.
#[derive(Default)]
struct Client {
    failures: Failures,
    /// The last wrong passwords, oldest first.
    wrong: Vec<Digest>,
    let_in_at: Option<Instant>,
}

impl Client {
    fn remember_wrong(&mut self, password: Digest) {
        if self.wrong.len() >= WRONG_MAX {
            self.wrong.remove(0);
        }
        self.wrong.push(password);
    }
}

/// The tables of one cluster.
#[derive(Default)]
struct OfCluster {
    /// Clients that were let in. A table of their own: only who has a password gets a row.
    acquainted: Table<Digest, Client>,
    newcomers: Table<Digest, Client>,
    users: Table<Digest, Pool>,
    addresses: Table<IpAddr, Failures>,
    networks: Table<IpAddr, Failures>,
    pool: Pool,
}

impl OfCluster {
    fn is_acquainted(&self, client: Digest) -> bool {
        let let_in_at = self.acquainted.get(client).and_then(|client| client.let_in_at);
        let_in_at.is_some_and(|at| at.elapsed() < ACQUAINTED_FOR)
    }

    fn client(&mut self, subject: &Subject) -> &mut Client {
        if subject.is_acquainted {
            self.acquainted.row(subject.client)
        } else {
            self.newcomers.row(subject.client)
        }
    }

    fn len(&self) -> usize {
        let clients = self.acquainted.len() + self.newcomers.len() + self.users.len();
        clients + self.addresses.len() + self.networks.len()
    }

    fn forget_unused(&mut self) {
        self.acquainted.forget_unused(ACQUAINTED_FOR);
        self.newcomers.forget_unused(FORGOTTEN);
        self.users.forget_unused(FORGOTTEN);
        self.addresses.forget_unused(FORGOTTEN);
        self.networks.forget_unused(FORGOTTEN);
    }

    fn forget_half(&mut self) {
        self.acquainted.forget_half();
        self.newcomers.forget_half();
        self.users.forget_half();
        self.addresses.forget_half();
        self.networks.forget_half();
    }
}

/// Something that attempts wait for, in a line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Client(Arc<str>, Digest),
    /// At one cluster, or at all.
    Address(Option<Arc<str>>, IpAddr),
    User(Arc<str>, Digest),
    Cluster(Arc<str>),
}

/// What is counted in a line.
enum Counted<'a> {
    Failures(&'a mut Failures, &'static Curve),
    Pool(&'a mut Pool, &'static PoolLimits),
}

impl Counted<'_> {
    fn admission(self, has_failed: bool) -> Admission {
        match self {
            Self::Failures(failures, curve) => failures.admission(curve),
            Self::Pool(pool, limits) => pool.admission(limits, has_failed),
        }
    }

    fn begin(self) {
        match self {
            Self::Failures(failures, _) => failures.begin(),
            Self::Pool(pool, limits) => pool.begin(limits),
        }
    }

    fn take_back(self) {
        match self {
            Self::Failures(failures, _) => failures.take_back(),
            Self::Pool(pool, limits) => pool.take_back(limits),
        }
    }

    fn fail(self) {
        match self {
            Self::Failures(failures, curve) => failures.fail(curve),
            Self::Pool(pool, _) => pool.fail(),
        }
    }
}

/// A place in a line: whoever has failed less often first, then the newest.
type Rank = (Reverse<u32>, u64);

#[derive(Default)]
struct State {
    clusters: BTreeMap<Arc<str>, OfCluster>,
    addresses: Table<IpAddr, Failures>,
    lines: BTreeMap<Line, BTreeSet<Rank>>,
    next: u64,
}

/// The attempts at passwords of a gateway (see the module).
pub(super) struct Attempts {
    key: [u8; 32],
    state: Mutex<State>,
}

/// An attempt that waits until it may begin.
pub(super) struct Waiting {
    attempts: Arc<Attempts>,
    subject: Subject,
    number: u64,
    line: Option<(Line, Rank)>,
}

/// An attempt that has begun. It counts as a failure, unless it turns out to be none.
pub(super) struct Attempt {
    attempts: Arc<Attempts>,
    subject: Subject,
    lines: Vec<Line>,
    is_over: bool,
}

impl Attempts {
    pub(super) fn new(randomness: &dyn Randomness) -> Arc<Self> {
        let mut key = [0; 32];
        randomness.fill(&mut key);
        Arc::new(Self { key, state: Mutex::default() })
    }

    /// A digest of these fields.
    pub(super) fn digest<'a>(&self, fields: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.key);
        let mut mac = mac.expect("HMAC takes keys of any length");
        for field in fields {
            mac.update(&field.len().to_le_bytes());
            mac.update(field);
        }
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        let mut first = [0; size_of::<Digest>()];
        first.copy_from_slice(&bytes[..size_of::<Digest>()]);
        Digest::from_le_bytes(first)
    }

    /// Announces an attempt. `address` is the one that the client is counted by, if there is one.
    pub(super) fn announce(
        self: &Arc<Self>,
        cluster: &Arc<str>,
        user: &str,
        address: Option<IpAddr>,
    ) -> Waiting {
        let text = address.map(|address| address.to_string()).unwrap_or_default();
        let subject = Subject {
            cluster: Arc::clone(cluster),
            user: self.digest([user.as_bytes()]),
            client: self.digest([user.as_bytes(), text.as_bytes()]),
            address,
            is_acquainted: false,
        };
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        if number % LOOK_EVERY == LOOK_EVERY - 1 {
            state.bound_rows();
        }
        Waiting { attempts: Arc::clone(self), subject, number, line: None }
    }

    /// Forgets a cluster that is gone.
    pub(super) fn forget(&self, cluster: &str) {
        self.state.lock().clusters.remove(cluster);
    }
}

/// The network that an address belongs to, of a size that customers are given.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & (!0 << 8)).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (!0 << 80)).into(),
    }
}

impl State {
    fn of_cluster(&mut self, cluster: &Arc<str>) -> &mut OfCluster {
        self.clusters.entry(Arc::clone(cluster)).or_default()
    }

    /// What an attempt has to wait for, in this order.
    fn lines(&mut self, subject: &Subject) -> Vec<Line> {
        let cluster = &subject.cluster;
        let mut lines = vec![Line::Client(Arc::clone(cluster), subject.client)];
        if subject.is_acquainted {
            let client = self.of_cluster(cluster).client(subject);
            if client.failures.count(&ACQUAINTED) < ACQUAINTED.free {
                return lines;
            }
        } else if let Some(address) = subject.address {
            lines.push(Line::Address(Some(Arc::clone(cluster)), address));
            lines.push(Line::Address(None, address));
            lines.push(Line::User(Arc::clone(cluster), subject.user));
        }
        lines.push(Line::Cluster(Arc::clone(cluster)));
        lines
    }

    /// How often the client's network has failed at the cluster, or where it has none the client;
    /// and whether that is too often for what is reserved.
    fn failures(&mut self, subject: &Subject) -> (u32, bool) {
        if subject.is_acquainted {
            return (0, false);
        }
        let of_cluster = self.of_cluster(&subject.cluster);
        match subject.address {
            None => {
                let failures = of_cluster.client(subject).failures.count(&ACQUAINTED);
                (failures, failures > 0)
            }
            Some(address) => {
                let of_network = of_cluster.networks.get(network(address));
                let failures = of_network.map_or(0, |failures| failures.count(&NETWORK));
                (failures, failures >= NETWORK.free)
            }
        }
    }

    /// What is counted in a line.
    fn counted(&mut self, line: &Line, subject: &Subject) -> Counted<'_> {
        match line {
            Line::Client(cluster, _) => {
                let client = self.of_cluster(cluster).client(subject);
                Counted::Failures(&mut client.failures, subject.curve())
            }
            Line::Address(Some(cluster), address) => {
                Counted::Failures(self.of_cluster(cluster).addresses.row(*address), &ADDRESS)
            }
            Line::Address(None, address) => {
                Counted::Failures(self.addresses.row(*address), &ADDRESS_IN_ALL)
            }
            Line::User(cluster, user) => {
                Counted::Pool(self.of_cluster(cluster).users.row(*user), &OF_USER)
            }
            Line::Cluster(cluster) => {
                Counted::Pool(&mut self.of_cluster(cluster).pool, &OF_CLUSTER)
            }
        }
    }

    /// Whether so many attempts before this one leave it a place.
    fn has_turn(&self, line: &Line, rank: Rank, places: u32) -> bool {
        let Some(waiting) = self.lines.get(line) else { return true };
        let places = usize::try_from(places).unwrap_or(usize::MAX);
        waiting.range((Excluded(rank), Unbounded)).take(places).count() < places
    }

    fn leave(&mut self, line: &Line, rank: Rank) {
        if let Some(waiting) = self.lines.get_mut(line) {
            waiting.remove(&rank);
            if waiting.is_empty() {
                self.lines.remove(line);
            }
        }
    }

    /// Forgets what is over, and while there are too many rows the older half of those of the
    /// cluster with most. So who is attacked, or attacks, has fewer.
    fn bound_rows(&mut self) {
        self.addresses.forget_unused(FORGOTTEN);
        for of_cluster in self.clusters.values_mut() {
            of_cluster.forget_unused();
        }
        self.clusters.retain(|_, of_cluster| of_cluster.len() > 0);
        let mut rows: usize = self.clusters.values().map(OfCluster::len).sum();
        while rows > ROWS_MAX
            && let Some(heaviest) = self.clusters.values_mut().max_by_key(|cluster| cluster.len())
        {
            rows -= heaviest.len();
            heaviest.forget_half();
            rows += heaviest.len();
        }
    }
}

impl Waiting {
    /// Begins the attempt where that is allowed now; the error says when to ask again. Whoever has
    /// asked once has to ask again then, or to drop this.
    pub(super) fn begin(&mut self) -> Result<Attempt, Instant> {
        let attempts = Arc::clone(&self.attempts);
        let mut state = attempts.state.lock();
        let of_cluster = state.of_cluster(&self.subject.cluster);
        self.subject.is_acquainted = of_cluster.is_acquainted(self.subject.client);
        let (failures, has_failed) = state.failures(&self.subject);
        let rank = (Reverse(failures), self.number);
        let lines = state.lines(&self.subject);
        for line in &lines {
            let until = match state.counted(line, &self.subject).admission(has_failed) {
                Admission::Now(places) if state.has_turn(line, rank, places) => continue,
                Admission::Now(_) | Admission::AfterOutcome => Instant::now() + OUTCOME_TIME,
                Admission::NotBefore(until) => until,
            };
            self.move_to(&mut state, Some((line.clone(), rank)));
            return Err(until);
        }
        self.move_to(&mut state, None);
        for line in &lines {
            state.counted(line, &self.subject).begin();
        }
        let (attempts, subject) = (Arc::clone(&attempts), self.subject.clone());
        Ok(Attempt { attempts, subject, lines, is_over: false })
    }

    fn move_to(&mut self, state: &mut State, line: Option<(Line, Rank)>) {
        if let Some((left, rank)) = &self.line {
            state.leave(left, *rank);
        }
        if let Some((joined, rank)) = &line {
            state.lines.entry(joined.clone()).or_default().insert(*rank);
        }
        self.line = line;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let attempts = Arc::clone(&self.attempts);
        self.move_to(&mut attempts.state.lock(), None);
    }
}

impl Attempt {
    /// Whether this client has tried the same before, and it was wrong.
    pub(super) fn is_known_as_wrong(&self, password: Digest) -> bool {
        self.client(|client| client.wrong.contains(&password))
    }

    /// Notes that the password was right: the attempt does not count.
    pub(super) fn succeed(mut self) {
        self.take_back();
        let mut state = self.attempts.state.lock();
        let of_cluster = state.of_cluster(&self.subject.cluster);
        of_cluster.acquainted.row(self.subject.client).let_in_at = Some(Instant::now());
    }

    /// Notes that the password was wrong, and remembers it where it has a digest. Where it was
    /// known as wrong the attempt does not count. Returns how long the client's next one waits.
    pub(super) fn fail(mut self, password: Option<Digest>) -> Duration {
        match password {
            Some(password) if self.is_known_as_wrong(password) => self.take_back(),
            Some(password) => {
                self.count();
                self.client(|client| client.remember_wrong(password));
            }
            None => self.count(),
        }
        let curve = self.subject.curve();
        self.client(|client| curve.wait(client.failures.count(curve)))
    }

    fn client<T>(&self, ask: impl FnOnce(&mut Client) -> T) -> T {
        let mut state = self.attempts.state.lock();
        ask(state.of_cluster(&self.subject.cluster).client(&self.subject))
    }

    fn take_back(&mut self) {
        self.is_over = true;
        let mut state = self.attempts.state.lock();
        for line in &self.lines {
            state.counted(line, &self.subject).take_back();
        }
    }

    fn count(&mut self) {
        self.is_over = true;
        let mut state = self.attempts.state.lock();
        for line in &self.lines {
            state.counted(line, &self.subject).fail();
            if let Line::Address(Some(cluster), address) = line {
                state.of_cluster(cluster).networks.row(network(*address)).note(&NETWORK);
            }
        }
    }
}

impl Drop for Attempt {
    /// Whoever leaves before the outcome has failed.
    fn drop(&mut self) {
        if !self.is_over {
            self.count();
        }
    }
}
