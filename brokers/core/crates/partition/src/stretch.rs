//! Gathers the whole batches of a read, up to a limit of bytes, without copying them.

use bytes::Bytes;

use freshet_wire::records::{BatchHeader, Batches, StoredBatch, Tail};

/// One or more whole batches.
#[derive(Debug, Clone)]
pub(super) enum Stretch {
    /// One batch, as it was written.
    Batch(StoredBatch),
    /// Batches that follow each other in storage.
    Run(Bytes),
}

impl Stretch {
    pub(super) fn batches(&self) -> impl Iterator<Item = StoredBatch> + '_ {
        let (one, run) = match self {
            Self::Batch(batch) => (Some(batch.clone()), Bytes::new()),
            Self::Run(bytes) => (None, bytes.clone()),
        };
        let of_run = Batches::new(run, Tail::Report);
        one.into_iter().chain(of_run.map(|batch| batch.expect("looked at when it was gathered")))
    }

    pub(super) fn put_pieces(self, pieces: &mut Vec<Bytes>) {
        match self {
            Self::Batch(batch) => pieces.extend(batch.pieces()),
            Self::Run(bytes) => pieces.push(bytes),
        }
    }
}

/// Gathers whole batches, beginning with the one that contains an offset.
#[derive(Debug)]
pub(super) struct Gathering {
    stretches: Vec<Stretch>,
    bytes: usize,
    next_offset: i64,
    bytes_max: usize,
    whole_first: bool,
    full: bool,
}

impl Gathering {
    /// Gathers from the batch that contains `offset`: up to `bytes_max` bytes, and with
    /// `whole_first` at least one batch even where it is larger.
    pub(super) fn new(offset: i64, bytes_max: usize, whole_first: bool) -> Self {
        let (stretches, bytes, full) = (Vec::new(), 0, false);
        Self { stretches, bytes, next_offset: offset, bytes_max, whole_first, full }
    }

    /// Whether it takes nothing more.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether it has room for batches of this many bytes.
    pub(super) fn takes_whole(&self, bytes: u64) -> bool {
        self.takes(self.bytes, usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Whether it has no batch yet.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The offset at which the next read goes on.
    pub(super) fn next_offset(&self) -> i64 {
        self.next_offset
    }

    pub(super) fn finish(self) -> (Vec<Stretch>, usize) {
        (self.stretches, self.bytes)
    }

    /// Adds a batch. Returns false where there is no room for it.
    pub(super) fn add_batch(&mut self, batch: &StoredBatch, end_offset: i64) -> bool {
        if !self.takes(self.bytes, batch.size_bytes()) {
            self.full = true;
            return false;
        }
        self.bytes += batch.size_bytes();
        self.next_offset = end_offset;
        self.stretches.push(Stretch::Batch(batch.clone()));
        true
    }

    /// Adds batches that follow each other in `run`, beginning with the one that contains the
    /// offset and as many as there is room for. Returns false where `run` does not consist of
    /// batches.
    pub(super) fn add_run(&mut self, run: &Bytes) -> bool {
        let (mut start, mut end) = (0, 0);
        while end < run.len() && !self.full {
            let Ok(header) = BatchHeader::parse(&run[end..]) else { return false };
            let size = header.size_bytes();
            if size > run.len() - end {
                return false;
            }
            if header.next_offset() <= self.next_offset {
                end += size;
                start = end;
            } else if self.takes(self.bytes + (end - start), size) {
                end += size;
                self.next_offset = header.next_offset();
            } else {
                self.full = true;
            }
        }
        if end > start {
            self.bytes += end - start;
            self.stretches.push(Stretch::Run(run.slice(start..end)));
        }
        self.full |= self.bytes >= self.bytes_max;
        true
    }

    fn takes(&self, so_far: usize, more: usize) -> bool {
        so_far.saturating_add(more) <= self.bytes_max || (so_far == 0 && self.whole_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshet_wire::records::BatchBuilder;

    fn batch(offset: i64) -> Bytes {
        let builder = BatchBuilder::new(offset).record(0, None, Some(b"a"));
        builder.record(0, None, Some(b"b")).build()
    }

    fn run() -> (Bytes, usize) {
        let one = batch(10);
        let all = [one.clone(), batch(12), batch(20)].concat();
        (all.into(), one.len())
    }

    fn offsets(gathering: Gathering) -> Vec<i64> {
        let (stretches, bytes) = gathering.finish();
        let mut pieces = Vec::new();
        stretches.iter().cloned().for_each(|stretch| stretch.put_pieces(&mut pieces));
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), bytes);
        let batches = stretches.iter().flat_map(Stretch::batches);
        batches.map(|batch| batch.base_offset()).collect()
    }

    #[test]
    fn batches_are_taken_from_the_one_on_that_holds_the_offset() {
        let (run, _) = run();
        for (offset, expected) in
            [(0, vec![10, 12, 20]), (11, vec![10, 12, 20]), (12, vec![12, 20]), (15, vec![20])]
        {
            let mut gathering = Gathering::new(offset, usize::MAX, true);
            assert!(gathering.add_run(&run));
            assert_eq!(gathering.next_offset(), 22);
            assert_eq!(offsets(gathering), expected, "{offset}");
        }
    }

    #[test]
    fn the_limit_cuts_between_batches_and_may_give_way_to_the_first() {
        let (run, size) = run();
        for (bytes_max, whole_first, expected, next) in [
            (2 * size, false, vec![10, 12], 14),
            (2 * size + 1, false, vec![10, 12], 14),
            (1, true, vec![10], 12),
            (1, false, vec![], 10),
        ] {
            let mut gathering = Gathering::new(10, bytes_max, whole_first);
            assert!(gathering.add_run(&run));
            assert!(gathering.is_full());
            assert_eq!(gathering.next_offset(), next);
            let mut hot = Gathering::new(10, bytes_max, whole_first);
            for batch in Batches::new(run.clone(), Tail::Report).map(Result::unwrap) {
                if !hot.add_batch(&batch, batch.last_offset() + 1) {
                    break;
                }
            }
            assert_eq!(offsets(hot), expected);
            assert_eq!(offsets(gathering), expected);
        }
    }

    #[test]
    fn bytes_that_are_no_batch_are_refused() {
        let (run, size) = run();
        let mut gathering = Gathering::new(0, usize::MAX, true);
        assert!(!gathering.add_run(&run.slice(..=size)));
        let mut gathering = Gathering::new(0, usize::MAX, true);
        assert!(!gathering.add_run(&run.slice(1..)));
    }
}
