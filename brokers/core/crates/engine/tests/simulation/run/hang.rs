//! Storage that carries out nothing for a broker, or for all of them, while nothing else fails.

use std::sync::atomic::Ordering;
use std::time::Duration;

use freshet_metadata::schema::{PartitionRecord, Stored};
use freshet_storage::rules::Rules;
use freshet_wire::ids::Incarnation;

use super::{Outcome, Simulation};
use crate::broker::TIMES;
use crate::chaos::Profile;

/// How long storage hangs.
const HANG: Duration = Duration::from_secs(10);
/// From the moment at which a broker counts as hung until others lead what it led: the controller
/// asks for a write first, and a new one may have to be elected.
const TAKEOVER_MAX: Duration = Duration::from_millis(300);
/// The hung broker finds out by its image of the metadata, for which it waits for storage before.
const STAND_DOWN_MAX: Duration = Duration::from_secs(3);
/// The brokers lead about as many partitions before that.
const LEVEL_MAX_MS: u64 = 5000;

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a short time")
}

/// The storage of one broker hangs: the others lead within a moment, it ends, and nothing is lost.
pub fn simulate_hang(seed: u64) -> Outcome {
    let mut simulation = Simulation::start_level(seed);
    let slot = simulation.some_slot();
    let hung = simulation.current(slot);
    let incarnation = Incarnation(hung.status.incarnation.load(Ordering::Relaxed));
    simulation.note(format_args!("the storage of {} hangs", hung.host));
    let begun_ms = simulation.world.now_ms();
    simulation.world.disk.hang(hung.host, begun_ms + ms(HANG));
    let taken = simulation.until(TIMES.hang_max + TAKEOVER_MAX, |it| it.led_by(incarnation) == 0);
    simulation.expect(taken, "others lead what a broker led whose storage hangs");
    let took_ms = simulation.world.now_ms() - begun_ms;
    simulation.note(format_args!("taken over after {took_ms} ms"));
    simulation.expect(took_ms + 100 > ms(TIMES.hang_max), "a broker is not given up at once");
    let ended = simulation.until(STAND_DOWN_MAX, |it| !it.world.is_alive(hung.host));
    simulation.expect(ended, "a broker that was fenced ends though its storage hangs");
    let others = (0..simulation.slots).filter(|other| *other != slot);
    let live = others.map(|other| simulation.current(other));
    let live = live.filter(|other| simulation.world.is_alive(other.host)).count();
    simulation.expect(live + 1 == simulation.slots as usize, "the others live");
    // Its writes arrive late or never.
    simulation.steps(ms(HANG));
    simulation.end()
}

/// The storage of all brokers hangs: nobody is fenced, and all go on afterwards.
pub fn simulate_hang_of_all(seed: u64) -> Outcome {
    let mut simulation = Simulation::start_level(seed);
    let until_ms = simulation.world.now_ms() + ms(HANG);
    let hung: Vec<_> = (0..simulation.slots).map(|slot| simulation.current(slot)).collect();
    for broker in &hung {
        simulation.world.disk.hang(broker.host, until_ms);
    }
    simulation.note("the storage of all hangs");
    simulation.steps(2 * ms(HANG));
    for broker in hung {
        simulation.expect(simulation.world.is_alive(broker.host), "nobody is fenced");
    }
    simulation.end()
}

impl Simulation {
    /// Starts brokers that find out themselves who has died, and waits until each leads something.
    fn start_level(seed: u64) -> Self {
        let mut simulation = Self::new(seed, Rules::full(), &Profile::without_faults());
        simulation.set_up();
        let is_level = |it: &Self| (0..it.slots).all(|slot| it.led_by(it.incarnation(slot)) > 0);
        let level = simulation.until(Duration::from_millis(LEVEL_MAX_MS), is_level);
        simulation.expect(level, "each broker leads something");
        let pause = simulation.random.between(100, 400);
        simulation.steps(pause);
        simulation
    }

    fn incarnation(&self, slot: u32) -> Incarnation {
        Incarnation(self.current(slot).status.incarnation.load(Ordering::Relaxed))
    }

    /// Steps until something holds; returns whether it came in time.
    fn until(&mut self, time_max: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        for _ in 0..ms(time_max) {
            if holds(self) {
                return true;
            }
            self.step();
        }
        holds(self)
    }

    fn expect(&mut self, holds: bool, what: &str) {
        if !holds {
            self.note_leaders();
            self.checker.violate(format!("not so: {what}"));
        }
    }

    /// How many partitions an incarnation leads.
    fn led_by(&self, incarnation: Incarnation) -> usize {
        let entries = self.metadata.backup();
        let partitions = entries.iter().filter(|entry| entry.key.contains("partition/"));
        let led = partitions.filter(|entry| {
            let stored = Stored::<PartitionRecord>::from_entry(entry).expect("a record");
            stored.record.leader == Some(incarnation)
        });
        led.count()
    }
}
