//! Which leader epoch started at which offset, for clients that check for truncation (KIP-101).

use freshet_wire::ids::Epoch;

/// Epochs in ascending order, each with the offset at which it started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpochTable(Vec<(Epoch, i64)>);

impl EpochTable {
    /// A table of stored entries, which are in ascending order.
    pub fn from_entries(entries: Vec<(Epoch, i64)>) -> Self {
        Self(entries)
    }

    /// Every epoch with the offset at which it started.
    pub fn entries(&self) -> &[(Epoch, i64)] {
        &self.0
    }

    /// Notes that records from `start` on were written under `epoch`. An epoch that wrote nothing
    /// leaves no trace.
    pub fn begin(&mut self, epoch: Epoch, start: i64) {
        while self.0.last().is_some_and(|(_, at)| *at >= start) {
            self.0.pop();
        }
        if self.0.last().is_none_or(|(last, _)| *last < epoch) {
            self.0.push((epoch, start));
        }
    }

    /// The largest epoch not above `requested`, and where it ended; `log_end` is where the newest
    /// ends. An epoch below all that the table has ended where the first of them starts: it wrote
    /// nothing, or what it wrote is deleted (so does Kafka's `LeaderEpochFileCache`). `None` where
    /// no epoch was asked for.
    pub fn end_of(&self, requested: Epoch, log_end: i64) -> Option<(Epoch, i64)> {
        if requested < 0 {
            return None;
        }
        let after = self.0.partition_point(|(epoch, _)| *epoch <= requested);
        let epoch = after.checked_sub(1).map_or(requested, |before| self.0[before].0);
        let end = self.0.get(after).map_or(log_end, |(_, start)| *start);
        Some((epoch, end))
    }

    /// The epoch under which the record at `offset` was written.
    pub fn epoch_of(&self, offset: i64) -> Option<Epoch> {
        let after = self.0.partition_point(|(_, start)| *start <= offset);
        Some(self.0.get(after.checked_sub(1)?)?.0)
    }

    /// Forgets epochs that ended before the log starts.
    pub fn trim(&mut self, log_start: i64) {
        let ended = self.0.windows(2).take_while(|pair| pair[1].1 <= log_start).count();
        self.0.drain(..ended);
        if let Some(first) = self.0.first_mut() {
            first.1 = first.1.max(log_start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> EpochTable {
        let mut table = EpochTable::default();
        table.begin(1, 0);
        table.begin(1, 5);
        table.begin(3, 10);
        table.begin(7, 30);
        table
    }

    #[test]
    fn an_epoch_ends_where_the_next_one_starts() {
        assert_eq!(table().end_of(1, 40), Some((1, 10)));
        assert_eq!(table().end_of(2, 40), Some((1, 10)));
        assert_eq!(table().end_of(7, 40), Some((7, 40)));
        assert_eq!(table().end_of(-1, 40), None);
    }

    #[test]
    fn an_epoch_below_all_others_ends_where_they_start() {
        assert_eq!(table().end_of(0, 40), Some((0, 0)));
        let mut table = table();
        table.trim(20);
        assert_eq!(table.end_of(1, 40), Some((1, 20)));
    }

    #[test]
    fn an_epoch_of_a_log_without_records_ends_where_the_log_does() {
        assert_eq!(EpochTable::default().end_of(0, 0), Some((0, 0)));
    }

    #[test]
    fn an_epoch_without_records_is_overwritten_by_the_next() {
        let mut table = table();
        table.begin(8, 40);
        table.begin(9, 40);
        assert_eq!(table.entries().last(), Some(&(9, 40)));
        assert_eq!(table.entries().len(), 4);
    }

    #[test]
    fn trimming_keeps_the_epoch_of_the_log_start() {
        let mut table = table();
        table.trim(20);
        assert_eq!(table.entries(), [(3, 20), (7, 30)]);
        assert_eq!(table.epoch_of(25), Some(3));
    }
}
