//! Which faults a simulated disk injects, and how often.

/// The chances of faults, each in per mille of the operations.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskFaults {
    /// A write fails after a part of it was done.
    pub failed_write: u64,
    /// A sync fails; what it was to make durable is dropped from the cache as if it were clean.
    pub failed_sync: u64,
    /// An operation takes up to a second instead of a few milliseconds.
    pub slow: u64,
    /// A look-up does not see a file that another host has just made.
    pub stale_look_up: u64,
    /// A write or creation finds the disk full.
    pub full: u64,
}

impl DiskFaults {
    /// No faults.
    pub fn none() -> Self {
        Self::default()
    }
}
