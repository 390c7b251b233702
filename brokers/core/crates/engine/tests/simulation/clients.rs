//! The workload: idempotent producers, readers, readers of the end, and committers. They are
//! outside of every host and only poll; an unanswered question is asked again, maybe of another
//! broker.

use freshet_wire::records::BatchBuilder;
use freshet_world::sim::random::Seeded;
use kafka_protocol::ResponseError;
use tokio::sync::oneshot;

use super::broker::{Answer, Ask, BrokerHandle, Envelope};
use super::checker::{Checker, Keeping, NAME, Place, is_tombstone, key_of};
use super::run::Totals;

/// A question that is not answered after this long is asked again, in ms.
const TIMEOUT_MS: u64 = 120;

/// How many topics are created in one simulation.
const TOPICS_MADE_MAX: u32 = 20;

/// A question under way.
struct Asked {
    reply: oneshot::Receiver<Answer>,
    at_ms: u64,
}

/// Asks a broker; `None` where it is gone.
fn ask(broker: &BrokerHandle, ask: Ask, now_ms: u64) -> Option<Asked> {
    let (reply, answered) = oneshot::channel();
    broker.mailbox.send(Envelope { ask, reply }).ok()?;
    Some(Asked { reply: answered, at_ms: now_ms })
}

/// The outcome of a question.
enum Poll {
    Waiting,
    Answered(Answer),
    /// No answer will come, or the client has stopped waiting for it.
    GivenUp,
}

fn poll(asked: &mut Asked, now_ms: u64) -> Poll {
    match asked.reply.try_recv() {
        Ok(answer) => Poll::Answered(answer),
        Err(oneshot::error::TryRecvError::Empty) if now_ms < asked.at_ms + TIMEOUT_MS => {
            Poll::Waiting
        }
        Err(_) => Poll::GivenUp,
    }
}

/// The part of the world that a client sees in one step.
pub struct View<'a> {
    pub now_ms: u64,
    pub random: &'a mut Seeded,
    /// Brokers that may be asked: of each slot the current one last, older ones (maybe zombies)
    /// before.
    pub brokers: &'a [BrokerHandle],
    pub slots: u32,
    pub checker: &'a mut Checker,
    pub totals: &'a mut Totals,
    /// How often of a thousand times an older broker is asked.
    pub stale_per_mille: u64,
    /// Whether clients begin nothing new and only finish what they have begun.
    pub draining: bool,
}

impl View<'_> {
    /// Chooses mostly the current broker, or that of some slot, and sometimes one that may be a
    /// zombie.
    fn broker(&mut self) -> Option<&BrokerHandle> {
        let stale = !self.draining && self.random.chance(self.stale_per_mille);
        if stale {
            let count = self.brokers.len() as u64;
            let at = usize::try_from(self.random.below(count)).expect("few brokers");
            return self.brokers.get(at);
        }
        let slot = if self.slots == 1 { 0 } else { self.random.below(u64::from(self.slots)) };
        self.brokers.iter().rev().find(|broker| u64::from(broker.slot) == slot)
    }
}

/// An idempotent producer to one partition, with one batch in flight.
pub struct Producer {
    id: i64,
    place: Place,
    /// It writes a table: few keys, and tombstones among the values.
    table: bool,
    next_sequence: i32,
    batch: Option<Batch>,
}

struct Batch {
    bytes: bytes::Bytes,
    values: Vec<String>,
    asked: Option<Asked>,
}

impl Producer {
    pub fn new(id: i64, place: Place, table: bool) -> Self {
        Self { id, place, table, next_sequence: 0, batch: None }
    }

    pub fn is_idle(&self) -> bool {
        self.batch.is_none()
    }

    pub fn step(&mut self, view: &mut View<'_>) {
        if self.batch.is_none() && !view.draining && view.random.chance(300) {
            self.batch = Some(self.make_batch(view.random));
        }
        let Some(batch) = &mut self.batch else { return };
        match batch.asked.as_mut().map(|asked| poll(asked, view.now_ms)) {
            Some(Poll::Waiting) => return,
            Some(Poll::Answered(Answer::Acked(base_offset))) => {
                view.checker.acked(&self.place, base_offset, &batch.values);
                view.totals.acked += batch.values.len() as u64;
                self.batch = None;
                return;
            }
            Some(Poll::Answered(_) | Poll::GivenUp) => {
                batch.asked = None;
                if !view.random.chance(200) {
                    return;
                }
            }
            None => {}
        }
        let question = Ask::Produce {
            topic: self.place.0.clone(),
            index: self.place.1,
            batch: batch.bytes.clone(),
        };
        let now_ms = view.now_ms;
        batch.asked = view.broker().and_then(|broker| ask(broker, question, now_ms));
    }

    fn make_batch(&mut self, random: &mut Seeded) -> Batch {
        let count = i32::try_from(random.between(1, 4)).expect("small");
        let first = self.next_sequence;
        self.next_sequence += count;
        let mut values = Vec::new();
        let mut builder = BatchBuilder::new(0).producer(self.id, 0, first);
        for sequence in first..first + count {
            let value = format!("p{}#{sequence}", self.id);
            let padding = vec![b'k'; usize::try_from(random.below(700)).expect("small")];
            let timestamp = i64::from(sequence);
            builder = if self.table {
                let value_bytes = (!is_tombstone(&value)).then_some(&padding[..]);
                let name: &[(&str, Option<&[u8]>)] = &[(NAME, Some(value.as_bytes()))];
                let key = key_of(&value);
                builder.record_with_headers(timestamp, Some(key.as_bytes()), value_bytes, name)
            } else {
                builder.record(timestamp, Some(&padding), Some(value.as_bytes()))
            };
            values.push(value);
        }
        Batch { bytes: builder.build(), values, asked: None }
    }
}

/// Reads a partition again and again, from anywhere.
pub struct Reader {
    place: Place,
    keeping: Keeping,
    offset: i64,
    asked: Option<Asked>,
}

impl Reader {
    pub fn new(place: Place, keeping: Keeping) -> Self {
        Self { place, keeping, offset: 0, asked: None }
    }

    pub fn step(&mut self, view: &mut View<'_>) {
        match self.asked.as_mut().map(|asked| poll(asked, view.now_ms)) {
            Some(Poll::Waiting) => return,
            Some(Poll::Answered(Answer::Read { batches, from_segments, removed })) => {
                self.asked = None;
                view.totals.split_reads += u64::from(from_segments && !batches.is_empty());
                view.checker.read(&self.place, self.keeping, &removed, &batches);
                // Batches may be without records.
                if let Some(last) = batches.last() {
                    self.offset = last.last_offset() + 1;
                }
            }
            Some(Poll::Answered(Answer::Failed(ResponseError::OffsetOutOfRange))) => {
                self.asked = None;
                let (place, offset) = (&self.place, self.offset);
                let trimmed = view.checker.trimmed_at_most(place);
                if offset < trimmed {
                    self.offset = trimmed;
                } else if !matches!(self.keeping, Keeping::Bytes(_)) {
                    // Only retention drops the oldest records at any time.
                    view.checker.violate(format!("{place:?}: offset {offset} is out of range"));
                }
            }
            Some(Poll::Answered(_) | Poll::GivenUp) => self.asked = None,
            None => {}
        }
        if view.draining || !view.random.chance(150) {
            return;
        }
        if view.random.chance(100) {
            self.offset = view.random.below(self.offset.unsigned_abs() + 1).cast_signed();
        }
        let (topic, index) = self.place.clone();
        let question = Ask::Fetch { topic, index, offset: self.offset };
        let now_ms = view.now_ms;
        self.asked = view.broker().and_then(|broker| ask(broker, question, now_ms));
    }
}

/// Asks where a partition ends; the answer may not be older than the question.
pub struct Surveyor {
    place: Place,
    asked: Option<(Asked, i64)>,
}

impl Surveyor {
    pub fn new(place: Place) -> Self {
        Self { place, asked: None }
    }

    pub fn step(&mut self, view: &mut View<'_>) {
        if let Some((asked, at_least)) = &mut self.asked {
            match poll(asked, view.now_ms) {
                Poll::Waiting => return,
                Poll::Answered(Answer::End(end)) if end < *at_least => {
                    let place = &self.place;
                    view.checker.violate(format!(
                        "{place:?}: ends at {end}, but {at_least} was acked before"
                    ));
                }
                Poll::Answered(_) | Poll::GivenUp => {}
            }
            self.asked = None;
        }
        if view.draining || !view.random.chance(100) {
            return;
        }
        let at_least = view.checker.known_end(&self.place);
        let (topic, index) = self.place.clone();
        let now_ms = view.now_ms;
        let asked =
            view.broker().and_then(|broker| ask(broker, Ask::Latest { topic, index }, now_ms));
        self.asked = asked.map(|asked| (asked, at_least));
    }
}

/// Commits growing offsets of one group; what was acked stays.
pub struct Committer {
    group: String,
    place: Place,
    next: i64,
    acked: i64,
    asked: Option<(Asked, Question)>,
}

enum Question {
    Commit(i64),
    Committed { at_least: i64 },
}

impl Committer {
    pub fn new(group: &str, place: Place) -> Self {
        Self { group: group.to_owned(), place, next: 0, acked: -1, asked: None }
    }

    pub fn step(&mut self, view: &mut View<'_>) {
        if let Some((asked, question)) = &mut self.asked {
            match (poll(asked, view.now_ms), &question) {
                (Poll::Waiting, _) => return,
                (Poll::Answered(Answer::Created), Question::Commit(offset)) => {
                    self.acked = self.acked.max(*offset);
                }
                (Poll::Answered(Answer::End(committed)), Question::Committed { at_least })
                    if committed < *at_least =>
                {
                    let group = &self.group;
                    view.checker.violate(format!(
                        "group {group}: committed {committed}, but {at_least} was acked before"
                    ));
                }
                _ => {}
            }
            self.asked = None;
        }
        if view.draining || !view.random.chance(60) {
            return;
        }
        self.ask_next(view);
    }

    fn ask_next(&mut self, view: &mut View<'_>) {
        let (topic, index) = self.place.clone();
        let group = self.group.clone();
        let (ask_for, question) = if view.random.chance(600) {
            self.next += 1;
            let offset = self.next;
            (Ask::Commit { group, topic, index, offset }, Question::Commit(offset))
        } else {
            let at_least = self.acked;
            (Ask::Committed { group, topic, index }, Question::Committed { at_least })
        };
        let now_ms = view.now_ms;
        let asked = view.broker().and_then(|broker| ask(broker, ask_for, now_ms));
        self.asked = asked.map(|asked| (asked, question));
    }
}

/// Deletes records before an offset, now and then.
pub struct Trimmer {
    place: Place,
    asked: Option<(Asked, i64)>,
}

impl Trimmer {
    pub fn new(place: Place) -> Self {
        Self { place, asked: None }
    }

    pub fn step(&mut self, view: &mut View<'_>) {
        if let Some((asked, offset)) = &mut self.asked {
            match poll(asked, view.now_ms) {
                Poll::Waiting => return,
                Poll::Answered(Answer::Created) => view.checker.trim_acked(&self.place, *offset),
                Poll::Answered(_) | Poll::GivenUp => {}
            }
            self.asked = None;
        }
        if view.draining || !view.random.chance(10) {
            return;
        }
        let end = view.checker.known_end(&self.place);
        let offset = view.random.below(end.unsigned_abs() + 1).cast_signed();
        view.checker.trim_asked(&self.place, offset);
        let (topic, index) = self.place.clone();
        let question = Ask::DeleteBefore { topic, index, offset };
        let now_ms = view.now_ms;
        let asked = view.broker().and_then(|broker| ask(broker, question, now_ms));
        self.asked = asked.map(|asked| (asked, offset));
    }
}

/// Makes topics one after another, if it can by brokers that may be zombies.
#[derive(Default)]
pub struct TopicMaker {
    next: u32,
    asked: Option<Asked>,
}

impl TopicMaker {
    pub fn step(&mut self, view: &mut View<'_>) {
        if let Some(asked) = &mut self.asked {
            if matches!(poll(asked, view.now_ms), Poll::Waiting) {
                return;
            }
            self.asked = None;
        }
        if view.draining || self.next >= TOPICS_MADE_MAX || !view.random.chance(30) {
            return;
        }
        self.next += 1;
        let topic = format!("made-{}", self.next);
        let question = Ask::Create { topic, partitions: 1, configs: &[] };
        let broker = view.brokers.iter().rev().nth(1).or_else(|| view.brokers.last());
        self.asked = broker.and_then(|broker| ask(broker, question, view.now_ms));
    }
}
