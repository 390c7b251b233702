//! Egress counters: what each principal was handed of each topic, since this incarnation started.
//!
//! They are written into the lane as usage blocks, each second in which they changed, in the same
//! group commit as everything else. A clean stop hands nothing to clients after its last count. A
//! broker that is killed loses at most the last second, in the customer's favour. Ingress needs no
//! counter: the index of each data block says who wrote how much.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::lane::index::{Usage, UsageEntry};
use crate::lane::queue::Lane;
use crate::payers::{NamedPayers, PayerRules};
use freshet_wire::ids::TopicId;
use freshet_world::env::Clock;

/// Counters are written this often, if they changed.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Counters of topics that are gone are forgotten this often.
const FORGET_EVERY: Duration = Duration::from_secs(60);
/// Counters in one usage block.
const ENTRIES_MAX: usize = 10_000;

/// So many counters are kept. What would need another one is counted with others.
const COUNTERS_MAX: usize = 100_000;

#[derive(Default)]
struct Counter {
    total: u64,
    written: u64,
}

#[derive(Default)]
struct Counters {
    by_pair: BTreeMap<(TopicId, Arc<str>), Counter>,
    named: NamedPayers,
}

/// A clean stop waits this long for clients to take the answers that are being sent to them.
const HANDING_MAX: Duration = Duration::from_secs(1);

/// The egress counters of one incarnation (see the module).
#[derive(Default)]
pub struct EgressMeter {
    counters: Mutex<Counters>,
    handing: TaskTracker,
}

/// Permission to hand records to a socket, held until they were counted or the connection ended.
pub struct Handing(#[expect(dead_code, reason = "held, not read")] TaskTrackerToken);

impl EgressMeter {
    /// A meter that counts by these payers.
    pub fn new(rules: PayerRules) -> Self {
        let counters = Counters { named: NamedPayers::new(rules), ..Counters::default() };
        Self { counters: Mutex::new(counters), ..Self::default() }
    }

    /// Permission to hand records to a client; `None` once a clean stop is about to take the last
    /// count.
    pub fn begin(&self) -> Option<Handing> {
        // The token comes before the check, so that a close that begins in between waits for it.
        let token = self.handing.token();
        (!self.handing.is_closed()).then_some(Handing(token))
    }

    /// Refuses new permissions and waits until those that were given are dropped. A client that
    /// does not take its answer in time gets it uncounted.
    pub async fn close(&self) {
        self.handing.close();
        if timeout(HANDING_MAX, self.handing.wait()).await.is_err() {
            tracing::warn!(
                "a client did not take its answer before the stop: its records are not metered"
            );
        }
    }

    /// Counts record bytes that were handed to a socket.
    pub fn add(&self, topic: TopicId, principal: &Arc<str>, bytes: u64) {
        let mut counters = self.counters.lock();
        let mut pair = (topic, counters.named.of_topic(topic, principal));
        if counters.by_pair.len() >= COUNTERS_MAX && !counters.by_pair.contains_key(&pair) {
            pair.1 = counters.named.others();
        }
        counters.by_pair.entry(pair).or_default().total += bytes;
    }

    /// Bytes of a topic that were handed to clients since this incarnation started.
    pub fn total_bytes(&self, topic: TopicId) -> u64 {
        let counters = self.counters.lock();
        let from_topic_on = counters.by_pair.range((topic, Arc::from(""))..);
        let of_topic = from_topic_on.take_while(|((counted, _), _)| *counted == topic);
        of_topic.map(|(_, counter)| counter.total).sum()
    }

    /// Returns the counters that changed since they were last taken, and marks them as taken. Each
    /// entry has the bytes since the incarnation started and the bytes since it was last taken. A
    /// list has at most [`ENTRIES_MAX`] entries. A minute of payers begins where `now_ms` says so.
    fn take_changed(&self, now_ms: i64) -> Vec<Vec<UsageEntry>> {
        let mut counters = self.counters.lock();
        counters.named.go_on_at(now_ms);
        let all = counters.by_pair.iter_mut();
        let changed = all.filter(|(_, counter)| counter.total != counter.written);
        let mut lists: Vec<Vec<UsageEntry>> = Vec::new();
        for ((topic, principal), counter) in changed {
            let egress_delta = counter.total - counter.written;
            counter.written = counter.total;
            let entry = UsageEntry {
                topic: *topic,
                principal: Arc::clone(principal),
                egress_bytes: counter.total,
                egress_delta,
            };
            match lists.last_mut().filter(|list| list.len() < ENTRIES_MAX) {
                Some(list) => list.push(entry),
                None => lists.push(vec![entry]),
            }
        }
        lists
    }

    /// Stages all counters that changed since `window_start_ms` (Unix ms), in as many usage blocks
    /// as it takes: what a clean stop left out would never be billed. Returns where the next window
    /// starts.
    pub fn flush(&self, lane: &Lane, clock: &dyn Clock, window_start_ms: i64) -> i64 {
        let window_end_ms = clock.now_ms();
        let lists = self.take_changed(window_end_ms);
        for entries in lists {
            if let Err(error) = lane.stage_usage(Usage { window_start_ms, window_end_ms, entries })
            {
                tracing::debug!(
                    %error,
                    "egress of the last second is not metered: the lane takes nothing more"
                );
                break;
            }
        }
        window_end_ms
    }

    /// Forgets the counters of topics that do not exist, once they are written. A topic that is
    /// gone never comes back under its id.
    fn forget_gone(&self, exists: impl Fn(TopicId) -> bool) {
        let mut counters = self.counters.lock();
        let is_written = |counter: &Counter| counter.total == counter.written;
        counters.by_pair.retain(|(topic, _), counter| !is_written(counter) || exists(*topic));
    }

    /// Writes counters each second in which they changed, and forgets those of topics that do not
    /// exist any more.
    pub async fn run(
        self: Arc<Self>,
        lane: Arc<Lane>,
        clock: Arc<dyn Clock>,
        exists: impl Fn(TopicId) -> bool + Send,
    ) {
        let mut ticks = interval(WRITE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut window_start_ms = clock.now_ms();
        let mut forgotten = Instant::now();
        loop {
            ticks.tick().await;
            window_start_ms = self.flush(&lane, clock.as_ref(), window_start_ms);
            if forgotten.elapsed() >= FORGET_EVERY {
                self.forget_gone(&exists);
                forgotten = Instant::now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payers::OTHERS;

    #[tokio::test(start_paused = true)]
    async fn a_close_waits_for_what_is_being_handed_out_and_refuses_more() {
        let meter = Arc::new(EgressMeter::default());
        let handing = meter.begin().expect("nothing closed it");
        let closing = Arc::clone(&meter);
        let closed = tokio::spawn(async move { closing.close().await });
        tokio::task::yield_now().await;
        assert!(meter.begin().is_none());
        assert!(!closed.is_finished());
        drop(handing);
        closed.await.expect("it ends");
    }

    #[tokio::test(start_paused = true)]
    async fn a_close_gives_up_on_a_client_that_takes_nothing() {
        let meter = EgressMeter::default();
        let _handing = meter.begin();
        meter.close().await;
    }

    #[test]
    fn only_counters_that_changed_are_written_with_what_was_added() {
        let meter = EgressMeter::default();
        let (topic, alice) = (TopicId::from_u128(1), Arc::from("User:alice"));
        meter.add(topic, &alice, 10);
        meter.add(topic, &alice, 5);
        let taken = |meter: &EgressMeter| {
            let changed = meter.take_changed(0);
            changed
                .iter()
                .flatten()
                .map(|entry| (entry.egress_bytes, entry.egress_delta))
                .collect::<Vec<_>>()
        };
        assert_eq!(taken(&meter), [(15, 15)]);
        assert_eq!(taken(&meter), []);
        meter.add(topic, &alice, 1);
        assert_eq!(taken(&meter), [(16, 1)]);
    }

    #[test]
    fn counters_of_topics_that_are_gone_are_forgotten_once_they_are_written() {
        let meter = EgressMeter::default();
        let alice = Arc::from("User:alice");
        let topics = [1, 2, 3].map(TopicId::from_u128);
        topics.iter().take(2).for_each(|topic| meter.add(*topic, &alice, 1));
        meter.take_changed(0);
        meter.add(topics[2], &alice, 7);
        meter.forget_gone(|topic| topic == topics[0]);
        assert_eq!(topics.map(|topic| meter.total_bytes(topic)), [1, 0, 7]);
        let changed = meter.take_changed(0);
        assert_eq!(changed.iter().flatten().map(|entry| entry.egress_delta).sum::<u64>(), 7);
        meter.forget_gone(|_| false);
        assert_eq!(meter.counters.lock().by_pair.len(), 0);
    }

    #[test]
    fn payers_beyond_the_limit_of_a_minute_are_counted_together() {
        let rules = PayerRules { pairs_max: Arc::new(|| Some(1)), ..PayerRules::default() };
        let meter = EgressMeter::new(rules);
        let (topic, users) = (TopicId::from_u128(1), ["User:a", "User:b", "User:c"].map(Arc::from));
        meter.take_changed(0);
        for user in &users {
            meter.add(topic, user, 10);
        }
        let names_at = |now_ms: i64| {
            let taken = meter.take_changed(now_ms);
            let entries = taken.iter().flatten();
            entries
                .map(|entry| (entry.principal.to_string(), entry.egress_bytes, entry.egress_delta))
                .collect::<Vec<_>>()
        };
        assert_eq!(names_at(60_000), [(OTHERS.into(), 20, 20), ("User:a".into(), 10, 10)]);
        meter.add(topic, &users[2], 5);
        meter.add(topic, &users[0], 5);
        assert_eq!(names_at(60_001), [(OTHERS.into(), 25, 5), ("User:c".into(), 5, 5)]);
        assert_eq!(meter.total_bytes(topic), 40);
    }

    #[test]
    fn more_counters_than_a_block_takes_are_all_taken_at_once() {
        let meter = EgressMeter::default();
        let alice = Arc::from("User:alice");
        for topic in 0..=2 * ENTRIES_MAX {
            meter.add(TopicId::from_u128(topic as u128), &alice, 1);
        }
        let lists: Vec<usize> = meter.take_changed(0).iter().map(Vec::len).collect();
        assert_eq!(lists, [ENTRIES_MAX, ENTRIES_MAX, 1]);
        assert_eq!(meter.take_changed(0).len(), 0);
    }
}
