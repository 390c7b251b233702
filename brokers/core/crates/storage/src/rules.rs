//! The rules of safety as a value. A release always has all of them; only a simulator can remove
//! one, to show that a test notices.

/// A rule that keeps acknowledged records. The numbers are those of `docs/explanation/safety.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// 1: an ack waits for the sync of its block.
    SyncBeforeAck,
    /// 1: an ack waits until the owner token was read again, after the sync, and was ours.
    TokenBeforeAck,
    /// 2: a dead broker's lane is fenced before its tail is read.
    FenceBeforeSeal,
    /// 2: blocks that were not surely on disk are copied into SEAL.
    SealUnsureBlocks,
    /// 2: a lane's end is set once, and all who take over from it act on the same.
    SealOnce,
    /// 2: a reader of a dead lane stops at its sealed end.
    StopAtSealedEnd,
    /// 3: a hole before something that was durable is damage, not an end.
    GapIsDamage,
    /// 3: a block counts only with the number that is due, because blocks of the file's former life
    /// lie behind it.
    CountWhatIsDue,
    /// 4: after a failed write or sync the incarnation stands down.
    UnknownMeansStop,
    /// 6: the token is read once more between publishing and deleting.
    CheckBeforeDelete,
    /// 6: a manifest counts only once its install record is durable in the lane.
    InstallBeforeUse,
    /// 6: a job changes the manifest that counts, not the one from which its work began.
    EditWhatCounts,
    /// 6: the sweeper keeps objects that are being made.
    KeepNewObjects,
    /// 6: the sweeper leaves alone what other live brokers wrote.
    SweepTheEnded,
    /// 6: readers forget a lane file before it is used again.
    ForgetBeforeReuse,
    /// 6: once a manifest counts, memory gives up the records that it removed.
    ForgetRemoved,
    /// 7: a metadata transaction compares that the incarnation is live.
    IncarnationIsLive,
    /// 8: a read that promises freshness waits for a token check begun after it arrived.
    FreshReads,
    /// 9: a duplicate waits for the original's end before it is acked.
    DuplicateWaits,
    /// 12: restored metadata cannot reuse an incarnation or an epoch.
    ScanStorageAtStart,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 20] = [
        Self::SyncBeforeAck,
        Self::TokenBeforeAck,
        Self::FenceBeforeSeal,
        Self::SealUnsureBlocks,
        Self::SealOnce,
        Self::StopAtSealedEnd,
        Self::GapIsDamage,
        Self::CountWhatIsDue,
        Self::UnknownMeansStop,
        Self::CheckBeforeDelete,
        Self::InstallBeforeUse,
        Self::EditWhatCounts,
        Self::KeepNewObjects,
        Self::SweepTheEnded,
        Self::ForgetBeforeReuse,
        Self::ForgetRemoved,
        Self::IncarnationIsLive,
        Self::FreshReads,
        Self::DuplicateWaits,
        Self::ScanStorageAtStart,
    ];
}

/// Which rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    removed: Option<Rule>,
}

impl Rules {
    /// All of them: the only value that a release can build.
    pub const fn full() -> Self {
        Self { removed: None }
    }

    /// All but one.
    #[cfg(any(test, feature = "sim"))]
    pub const fn without(rule: Rule) -> Self {
        Self { removed: Some(rule) }
    }

    /// Whether a rule holds.
    pub fn hold(self, rule: Rule) -> bool {
        self.removed != Some(rule)
    }
}
