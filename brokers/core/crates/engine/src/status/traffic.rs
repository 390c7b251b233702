//! What principals and clients produced, fetched and had computed: the largest, and the rest in one
//! entry whose name is empty.

use super::StatusState;
use super::entries::Key;
use super::partitions::Numbers;
use freshet_telemetry::traffic::{Counted, Traffic, Use};

/// Makes the key of an entry from its number.
type ToKey = fn(u32) -> Key;

/// The numbers of the names that have entries.
#[derive(Default)]
pub(super) struct Published {
    principals: Numbers,
    clients: Numbers,
}

impl StatusState {
    /// Looks at what principals and clients have used.
    pub(super) fn look_at_traffic(&mut self, traffic: &Traffic) {
        let mut published = std::mem::take(&mut self.traffic);
        self.put_uses(&mut published.principals, &traffic.principals, Key::Principal);
        self.put_uses(&mut published.clients, &traffic.clients, Key::Client);
        self.traffic = published;
    }

    fn put_uses(&mut self, numbers: &mut Numbers, counted: &Counted, to_key: ToKey) {
        let uses = counted.uses();
        for (name, used) in &uses {
            let (number, _) = numbers.of(name);
            let Use { bytes_in, bytes_out, unbilled, busy } = *used;
            let key = to_key(number);
            let fields = key.entry().name(name).number(bytes_in).number(bytes_out);
            let fields = fields.number(format_args!("{:.3}", busy.as_secs_f64()));
            self.entries.put(key, &fields.number(unbilled).text());
        }
        let gone = numbers.names().filter(|(name, _)| !uses.contains_key(*name));
        let gone: Vec<_> = gone.map(|(name, number)| (name.to_owned(), number)).collect();
        for (name, number) in gone {
            numbers.forget(&name);
            self.entries.remove(to_key(number));
        }
    }
}
