//! Hosts and time: which hosts run, are paused, or have crashed.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::disk::{HostId, SimServer};
use super::faults::DiskFaults;
use super::network::SimNetwork;
use super::random::{Seeded, SeededRandomness};
use crate::env::hedge::HedgedStore;
use crate::env::store::FolderStore;
use crate::env::{Clock, Environment};

/// Wall clocks start here: 2026-01-01 UTC, in ms.
const EPOCH_MS: i64 = 1_767_225_600_000;

/// A wall clock that the world sets, and may set wrong.
#[derive(Default)]
pub struct SimClock(AtomicI64);

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Host {
    runtime: Option<Runtime>,
    clock: Arc<SimClock>,
    skew_ms: i64,
    paused: bool,
}

/// A simulated world (see the module).
pub struct World {
    /// The generator of all random choices.
    pub random: Seeded,
    /// The shared file system.
    pub disk: SimServer,
    /// The file system behind the object store.
    pub bucket: SimServer,
    /// The network.
    pub network: SimNetwork,
    now_ms: u64,
    next_host: HostId,
    hosts: BTreeMap<HostId, Host>,
}

impl World {
    /// An empty world.
    pub fn new(seed: u64, faults: DiskFaults) -> Self {
        let mut random = Seeded::new(seed);
        let (disk, bucket) = (random.fork(), random.fork());
        Self {
            disk: SimServer::new(disk, faults),
            bucket: SimServer::new(bucket, DiskFaults { stale_look_up: 0, ..faults }),
            network: SimNetwork::default(),
            random,
            now_ms: 0,
            next_host: 1,
            hosts: BTreeMap::new(),
        }
    }

    /// Milliseconds since the world began.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Starts a host that runs `main` in its own environment. A panic of a host fails the
    /// simulation.
    pub fn start<F>(&mut self, main: impl FnOnce(HostId, Environment) -> F) -> HostId
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let id = self.next_host;
        self.next_host += 1;
        let skew_ms = self.random.between(0, 7_200_000).cast_signed() - 3_600_000;
        let clock = Arc::new(SimClock(AtomicI64::new(self.wall_ms(skew_ms))));
        let environment = Environment {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            randomness: Arc::new(SeededRandomness::new(self.random.fork())),
            disk: self.disk.mount(id),
            bucket: Arc::new(HedgedStore::new(Arc::new(FolderStore::new(self.bucket.mount(id))))),
            network: self.network.of(id),
        };
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing");
        runtime.spawn(main(id, environment));
        self.hosts.insert(id, Host { runtime: Some(runtime), clock, skew_ms, paused: false });
        id
    }

    fn wall_ms(&self, skew_ms: i64) -> i64 {
        EPOCH_MS + self.now_ms.cast_signed() + skew_ms
    }

    /// Lets a millisecond pass everywhere.
    pub fn step(&mut self) {
        self.now_ms += 1;
        self.disk.advance(self.now_ms);
        self.bucket.advance(self.now_ms);
        let (now_ms, epoch) = (self.now_ms.cast_signed(), EPOCH_MS);
        for host in self.hosts.values_mut().filter(|host| !host.paused) {
            host.clock.0.store(epoch + now_ms + host.skew_ms, Ordering::Relaxed);
            if let Some(runtime) = &host.runtime {
                let tick = async { tokio::time::sleep(Duration::from_millis(1)).await };
                runtime.block_on(tick);
            }
        }
    }

    /// Steps until `done` returns true, for at most `limit_ms`; returns whether it did.
    pub fn step_until(&mut self, limit_ms: u64, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        for _ in 0..limit_ms {
            if done(self) {
                return true;
            }
            self.step();
        }
        done(self)
    }

    /// Stops a host's time; its connections stay open and silent.
    pub fn pause(&mut self, host: HostId) {
        self.host(host).paused = true;
    }

    /// Lets a paused host go on. It does not notice the pause.
    pub fn resume(&mut self, host: HostId) {
        self.host(host).paused = false;
    }

    /// Kills a host: memory and connections are gone, writes under way may still arrive.
    pub fn crash(&mut self, host: HostId) {
        self.network.forget(host);
        self.disk.crash_host(host);
        self.bucket.crash_host(host);
        self.host(host).runtime = None;
    }

    /// Whether a host was not crashed.
    pub fn is_alive(&self, host: HostId) -> bool {
        self.hosts.get(&host).is_some_and(|host| host.runtime.is_some())
    }

    fn host(&mut self, host: HostId) -> &mut Host {
        self.hosts.get_mut(&host).expect("hosts are never forgotten")
    }
}
