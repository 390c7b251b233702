//! Who may read a partition, and how a leader gives it up while it lives.

use super::Partition;

/// Who may read a partition. Only while clients may, batches are kept in memory when they become
/// durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody.
    Clients,
    /// Jobs only: its topic was deleted and may come back.
    Hidden,
    /// Nobody: its topic is gone, or it was taken offline. It never opens again.
    Closed,
}

/// Whether this incarnation goes on to lead a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tenure {
    Leads,
    /// It takes no more batches: it is to be handed over.
    Drains,
    /// Its manifest does not change any more.
    Released,
}

impl Partition {
    /// Takes no more batches, as it is to be handed over. Returns the offset behind the last one
    /// that it took.
    pub fn drain(&self) -> i64 {
        let mut state = self.state.lock();
        state.tenure = Tenure::Drains;
        state.next_offset
    }

    /// Goes on to take batches: it is not handed over.
    pub fn go_on(&self) {
        self.state.lock().tenure = Tenure::Leads;
    }

    /// Lets jobs change its manifest no more, where it drains and the manifest has all records.
    /// Returns whether that is so. The caller sees to it that no job changes it meanwhile.
    pub fn release(&self) -> bool {
        let mut state = self.state.lock();
        let is_whole = state.unsplit.is_empty() && state.end == state.next_offset;
        if is_whole && state.tenure == Tenure::Drains {
            state.tenure = Tenure::Released;
        }
        state.tenure == Tenure::Released
    }

    /// Whether jobs may change its manifest no more.
    pub fn is_released(&self) -> bool {
        self.state.lock().tenure == Tenure::Released
    }
}
