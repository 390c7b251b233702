//! Read faults: places in lanes and objects that could not be read. Each is logged once in a while
//! and counted in the metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use freshet_telemetry::BlockMetrics;

/// A place is logged at most once in this time, because clients read it again and again.
const PERIOD: Duration = Duration::from_secs(30);
/// The most places that are remembered.
const PLACES_MAX: usize = 256;

struct ReadFault {
    logged_at: Instant,
    passed_over: u64,
    is_damage: bool,
}

/// Remembers the places that could not be read.
pub struct ReadFaults {
    places: Mutex<BTreeMap<String, ReadFault>>,
    metrics: BlockMetrics,
}

impl ReadFaults {
    /// Creates it without any place.
    pub fn new(metrics: BlockMetrics) -> Self {
        Self { places: Mutex::default(), metrics }
    }

    /// Notes that a place, named by `what`, could not be read. Where it is time to log that, it
    /// calls `log` with the number of times that it was not logged before.
    pub fn note(&self, what: &str, is_damage: bool, log: impl FnOnce(u64)) {
        let passed_over = {
            let mut places = self.places.lock();
            let now = Instant::now();
            let mut passed_over = 0;
            if let Some(known) = places.get_mut(what) {
                if now - known.logged_at < PERIOD {
                    known.passed_over += 1;
                    return;
                }
                passed_over = known.passed_over;
            } else {
                if is_damage {
                    self.metrics.damaged.inc();
                }
                if places.len() >= PLACES_MAX {
                    places.pop_first();
                }
            }
            let fault = ReadFault { logged_at: now, passed_over: 0, is_damage };
            places.insert(what.to_owned(), fault);
            passed_over
        };
        log(passed_over);
    }

    /// The remembered places that are damaged.
    pub fn damaged(&self) -> Vec<String> {
        let places = self.places.lock();
        let damaged = places.iter().filter(|(_, fault)| fault.is_damage);
        damaged.map(|(what, _)| what.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_place_is_logged_once_in_a_while_and_counted_once() {
        let metrics = BlockMetrics::default();
        let read_faults = ReadFaults::new(metrics.clone());
        let logged = Mutex::new(Vec::new());
        let note = |what: &str, is_damage| {
            read_faults.note(what, is_damage, |passed_over| {
                logged.lock().push((what.to_owned(), passed_over));
            });
        };
        for _ in 0..3 {
            note("a", true);
            note("b", false);
        }
        tokio::time::advance(PERIOD).await;
        note("a", true);
        let expected = [("a", 0), ("b", 0), ("a", 2)].map(|(what, n)| (what.to_owned(), n));
        assert_eq!(*logged.lock(), expected);
        assert_eq!(read_faults.damaged(), ["a"]);
        assert_eq!(metrics.damaged.get(), 1);
    }
}
