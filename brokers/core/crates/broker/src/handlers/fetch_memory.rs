//! The memory that the records of a fetch hold.

use freshet_wire::budget::{Demand, Share};

/// The memory that a response's records hold, by whether they came from memory or from storage.
#[derive(Default)]
pub struct Memory {
    pub(super) newest: Held,
    pub(super) older: Held,
}

/// Bytes of records, and the share of a budget that is held for them.
#[derive(Default)]
pub(super) struct Held {
    pub(super) bytes: usize,
    pub(super) share: Option<Share>,
}

impl Held {
    pub(super) fn add(&mut self, bytes: usize, mut share: Share) {
        self.bytes += bytes;
        share.shrink_to(bytes);
        match &mut self.share {
            Some(held) => held.merge(share),
            None => self.share = Some(share),
        }
    }

    /// Gives back what is held beyond the bytes. A partition that was read again held memory twice.
    pub(super) fn shrink(&mut self) {
        if let Some(share) = &mut self.share {
            share.shrink_to(self.bytes);
        }
    }
}

impl Memory {
    pub(super) fn bytes(&self) -> usize {
        self.newest.bytes + self.older.bytes
    }

    /// Shows whether others wait for the memory that it holds.
    pub fn demands(&self) -> Vec<Demand> {
        let shares = [&self.newest.share, &self.older.share];
        shares.into_iter().flatten().map(Share::demand).collect()
    }

    pub(super) fn of(&mut self, is_older: bool) -> &mut Held {
        if is_older { &mut self.older } else { &mut self.newest }
    }
}
