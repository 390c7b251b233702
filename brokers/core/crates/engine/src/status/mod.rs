//! A broker's status: one compact record of what the service needs to know of it, for readers that
//! ask once a second and get what has changed.
//!
//! The record is JSON. Its head is in every answer; `changes` are entries ([`entries::Key`] says
//! which there are), in the order in which they changed, and an answer holds up to
//! [`ANSWER_BYTES_MAX`] of them. `next` names the place up to which the reader knows them then; it
//! is opaque, and given with the next request. Format 1:
//!
//! - `v`: the format, to which fields and kinds of entries are only added.
//! - `cluster`: the broker's cluster, so that a reader notices where the broker of another cluster
//!   has got the address.
//! - `incarnation`: the broker's; numbers in entries are of this incarnation alone.
//! - `next`: where to go on. `more`: 1 where more is left, to be asked for at once. `anew`: 1 where
//!   the reader has to forget the entries that it knows before it takes these.
//! - `ended`: why the broker stood down, where it did.
//! - `connections`: open ones, and those of them through gateways.
//! - `cpu_ms`: processor time of the process. `failed`: partitions of Produce and Fetch requests
//!   that were refused or failed, where there are any.
//! - `loading`: 1 while the broker does not know all groups yet that it is to coordinate.
//! - `cut`: 1 where something was left out because there is too much of it.
//! - `times`: of the offsets that the question names, those times that are known.
//! - `changes`: the entries.
//!
//! A group's lag in records is a partition's end less what is committed: no more is sent of a group
//! when somebody produces. Its lag in seconds is the time of the reading less that of the first
//! record that is not committed, which [`times`] looks up. Nothing is looked at that cannot have
//! changed, and nothing at all while nobody asks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use self::entries::Key;
use self::groups::{Counts, KnownGroup};
use self::partitions::{KnownPartition, Numbers, Seen, Spot};
use self::table::{ReaderPlace, Table};
use self::times::{Position, Times};
use super::Engine;
use super::groups::OFFSETS_TOPIC;
use freshet_coordinator::group::GroupNews;
use freshet_world::env::DiskResult;

mod entries;
mod groups;
mod partitions;
mod table;
mod times;
mod traffic;
mod waiting;

/// The format of the record.
const FORMAT: u32 = 1;
/// The fields of a question.
const SINCE: &str = "since";
const TIMES: &str = "times";
/// The most bytes of entries in one answer.
pub const ANSWER_BYTES_MAX: usize = 256 << 10;
/// How many removals are kept for readers that have yet to hear of them.
const REMOVALS_MAX: usize = 10_000;
/// Sizes and counters of what seems not to have changed, and what clients took, are looked at no
/// more often than this: nothing notes when somebody fetches.
const SIZES_EVERY: Duration = Duration::from_secs(5);
/// Where something was left out, all groups are looked at again after this time.
const REVIEW_EVERY: Duration = Duration::from_secs(60);
/// Times of records that are kept although nobody asks for them any more.
const TIMES_UNUSED_MAX: usize = 1024;

type Entries = Table<Key>;

/// What the process knows and the engine does not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings {
    /// Open connections.
    pub connections: usize,
    /// Those of them that came through gateways.
    pub client_connections: usize,
    /// Processor time of the process in ms.
    pub cpu_ms: u64,
}

/// The status of a broker (see the module).
pub struct Status {
    engine: Arc<Engine>,
    state: Mutex<StatusState>,
    _looking_up: AbortOnDropHandle<()>,
}

struct StatusState {
    entries: Entries,
    topics: Numbers,
    partitions: BTreeMap<Spot, KnownPartition>,
    /// The groups that have an offset of a partition.
    readers: BTreeMap<Spot, BTreeSet<u32>>,
    group_numbers: Numbers,
    groups: BTreeMap<u32, KnownGroup>,
    counts: Counts,
    cut: bool,
    loading: bool,
    times: Arc<Times>,
    traffic: traffic::Published,
    seen: Seen,
    sized: Option<Instant>,
    reviewed: Option<Instant>,
}

impl Status {
    /// The status of a running engine. Nothing is looked at before the first question.
    ///
    /// # Errors
    /// [`freshet_world::env::DiskError`] where there is no thread for looking up times.
    pub fn new(engine: Arc<Engine>) -> DiskResult<Self> {
        let times = Arc::new(Times::new(Arc::clone(&engine.partitions)));
        let looking_up = engine.environment.disk.set_aside(Arc::clone(&times).run().boxed())?;
        let state = StatusState {
            entries: Table::new(REMOVALS_MAX),
            topics: Numbers::default(),
            partitions: BTreeMap::new(),
            readers: BTreeMap::new(),
            group_numbers: Numbers::default(),
            groups: BTreeMap::new(),
            counts: Counts::default(),
            cut: false,
            loading: true,
            times,
            traffic: traffic::Published::default(),
            seen: Seen::default(),
            sized: None,
            reviewed: None,
        };
        Ok(Self { engine, state: Mutex::new(state), _looking_up: looking_up })
    }

    /// Answers a question, the query of an address: `since` is `next` of an earlier answer, `times`
    /// what to put into the answer's (see [`waiting`]). The answer has what changed since then;
    /// everything where `since` is missing, or not of this incarnation, or too long ago.
    pub fn answer(&self, query: Option<&str>, around: Surroundings) -> String {
        let mut state = self.state.lock();
        state.look(&self.engine);
        let incarnation = self.engine.incarnation.0;
        let place = field_of(query, SINCE).and_then(|next| read_place(next, incarnation));
        let answer = state.entries.since(place, ANSWER_BYTES_MAX);
        let ReaderPlace { began, read } = answer.place;
        let cluster = entries::quoted(&self.engine.settings.cluster);
        let mut text = format!(
            "{{\"v\":{FORMAT},\"cluster\":{cluster},\"incarnation\":{incarnation},\
             \"next\":\"{incarnation}.{began}.{read}\",\"connections\":[{},{}],\"cpu_ms\":{}",
            around.connections, around.client_connections, around.cpu_ms,
        );
        self.put_rest(&mut text, &state);
        let flags = [("more", answer.more), ("anew", answer.anew)];
        for (name, _) in flags.into_iter().filter(|(_, set)| *set) {
            put(&mut text, format_args!(",\"{name}\":1"));
        }
        // Numbers of topics are of one incarnation, which the reader knows by its place.
        let asked = field_of(query, TIMES).filter(|_| place.is_some());
        let times = asked.map(|asked| state.known_times(&waiting::read_places(asked)));
        if let Some(times) = times.filter(|times| !times.is_empty()) {
            put(&mut text, format_args!(",\"times\":[{}]", times.join(",")));
        }
        if !answer.entries.is_empty() {
            let texts = answer.entries.iter().map(|(key, text)| match text {
                Some(text) => (*text).to_owned(),
                None => key.removal(),
            });
            let changes = texts.collect::<Vec<_>>().join(",");
            put(&mut text, format_args!(",\"changes\":[{changes}]"));
        }
        text.push('}');
        text
    }

    /// Puts those fields of the head that are there only where they say something.
    fn put_rest(&self, text: &mut String, state: &StatusState) {
        let [produces, fetches] = self.engine.settings.metrics.failures();
        if produces + fetches > 0 {
            put(text, format_args!(",\"failed\":[{produces},{fetches}]"));
        }
        if let Some(reason) = self.engine.liveness.reason() {
            put(text, format_args!(",\"ended\":{}", entries::quoted(&reason)));
        }
        for (name, _) in
            [("loading", state.loading), ("cut", state.cut)].into_iter().filter(|(_, set)| *set)
        {
            put(text, format_args!(",\"{name}\":1"));
        }
    }
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes text");
}

/// The text of a field of a query, such as `a=1&b=2`.
fn field_of<'q>(query: Option<&'q str>, name: &str) -> Option<&'q str> {
    let fields = query?.split('&').filter_map(|field| field.split_once('='));
    fields.into_iter().find(|(field, _)| *field == name).map(|(_, text)| text)
}

/// The place that `next` of an earlier answer names; `None` where it is of another incarnation, or
/// no place at all.
fn read_place(next: &str, incarnation: u64) -> Option<ReaderPlace> {
    let mut numbers = next.split('.').map(str::parse::<u64>);
    let mut number = || numbers.next()?.ok();
    let (of, began, read) = (number()?, number()?, number()?);
    (of == incarnation && numbers.next().is_none()).then_some(ReaderPlace { began, read })
}

/// Whether this is the first time, or so long after the last one that it is due again.
fn is_due(last: Option<Instant>, every: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= every)
}

impl StatusState {
    /// Looks at what may have changed.
    fn look(&mut self, engine: &Engine) {
        let sizes = is_due(self.sized, SIZES_EVERY);
        if sizes {
            self.sized = Some(Instant::now());
            self.look_at_traffic(&engine.settings.metrics.traffic);
        }
        let moved = self.look_at_partitions(engine, sizes);
        // Before the groups: what was looked up is of the offsets that they had.
        self.take_times();
        self.look_at_groups(engine);
        for spot in moved {
            self.refresh_readers(spot);
        }
    }

    fn look_at_groups(&mut self, engine: &Engine) {
        // Whether all are loaded is asked before the names: what is loaded later is news again.
        let topics = engine.view.topics();
        let offsets = topics.by_name(OFFSETS_TOPIC).map(|topic| topic.record.id);
        let partitions = offsets.map(|topic| engine.partitions.of_topic(topic)).unwrap_or_default();
        let loaded = |partition: &Arc<freshet_partition::Partition>| {
            engine.groups.is_loaded(partition.id().index)
        };
        self.loading = !partitions.iter().all(loaded);
        let mut news = engine.groups.take_news();
        if self.cut && is_due(self.reviewed, REVIEW_EVERY) {
            news = GroupNews::All;
        }
        let names = match news {
            GroupNews::Some(names) => names,
            GroupNews::All => {
                self.reviewed = Some(Instant::now());
                self.cut = false;
                let mut names = self.group_names();
                names.extend(engine.groups.group_names());
                names
            }
        };
        for name in names {
            // Where its partition is not loaded, another broker coordinates the group, or soon
            // this one again.
            self.update_group(&name, engine.groups.view_group(&name).ok().flatten());
        }
    }

    /// Puts the entries for which times have become known, and forgets times that nobody needs.
    fn take_times(&mut self) {
        let times = Arc::clone(&self.times);
        times.retry_failed();
        let arrived: BTreeSet<_> = times.take_arrived().into_iter().map(|(id, _)| id).collect();
        if !arrived.is_empty() {
            let known = self.partitions.iter().filter(|(_, known)| arrived.contains(&known.id));
            let spots: Vec<Spot> = known.map(|(spot, _)| *spot).collect();
            for spot in spots {
                self.refresh_readers(spot);
            }
        }
        let used = self.readers.values().map(BTreeSet::len).sum::<usize>();
        if times.len() > 2 * used + TIMES_UNUSED_MAX {
            times.retain(&self.positions());
        }
    }

    /// Where all groups go on.
    fn positions(&self) -> BTreeSet<Position> {
        let offsets = self.groups.values().flat_map(|group| &group.offsets);
        let waiting = offsets.filter_map(|(spot, offset)| {
            let known = self.partitions.get(spot)?;
            Some((known.id, known.first_waiting(offset.committed)?))
        });
        waiting.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_a_query_is_found_by_its_name() {
        let query = Some("since=7.1.2&times=1.0.5");
        assert_eq!(
            (field_of(query, SINCE), field_of(query, TIMES)),
            (Some("7.1.2"), Some("1.0.5"))
        );
        assert_eq!((field_of(query, "tim"), field_of(None, SINCE)), (None, None));
        assert_eq!(field_of(Some("other=1&since"), SINCE), None);
    }

    #[test]
    fn a_place_is_of_one_incarnation() {
        assert_eq!(read_place("7.3.12", 7), Some(ReaderPlace { began: 3, read: 12 }));
        for other in
            ["7.3.12.1", "7.3", "", "8.3.12", "7.3.-1", "7.3.x", "7.3.99999999999999999999"]
        {
            assert_eq!(read_place(other, 7), None, "{other}");
        }
    }
}
