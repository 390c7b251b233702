//! How many bytes of a request and its answer are billed, and how many are not.
//!
//! Billed is what the log says: of a Produce the batches that were stored in a topic that is no
//! internal one, of a Fetch the records that were handed out as a whole. Every other byte that a
//! client sends or is sent is not billed, whatever the request was and however it ended.

/// A request with this many bytes beside its batches, and beyond as many as they have, is free.
const FREE_BYTES: usize = 128;

/// The bytes of a request and of its answer, each with the four of its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes that the client sent.
    pub request: usize,
    /// Bytes that the client was sent.
    pub answer: usize,
    /// How many of both are billed.
    pub billed: usize,
}

impl Exchange {
    /// How many bytes are not billed. Where more is stored than was sent, because the topic says
    /// that records are stored decompressed, there are none.
    #[must_use]
    pub fn unbilled(&self) -> usize {
        (self.request + self.answer).saturating_sub(self.billed)
    }

    /// How many of the bytes that are not billed count against the limit. As many as are billed
    /// are free, so that ordinary producers and consumers take nothing.
    #[must_use]
    pub fn counted(&self) -> usize {
        match self.billed {
            0 => self.unbilled(),
            billed => self.unbilled().saturating_sub(billed + FREE_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(request: usize, answer: usize, billed: usize) -> (usize, usize) {
        let exchange = Exchange { request, answer, billed };
        (exchange.unbilled(), exchange.counted())
    }

    #[test]
    fn ordinary_batches_leave_nothing_to_count() {
        assert_eq!(of(900, 100, 0), (1_000, 1_000));
        assert_eq!(of(150, 50, 72), (128, 0));
        assert_eq!(of(100, 99_900, 99_000), (1_000, 0));
        assert_eq!(of(100_000, 0, 1_000), (99_000, 100_000 - 2_128));
        assert_eq!(of(1_000, 100, 50_000), (0, 0));
    }
}
