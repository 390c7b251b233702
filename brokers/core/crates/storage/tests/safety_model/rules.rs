//! The rules of safety as a value, so that a test can check the protocol with one of them gone.

/// One rule of safety. The number in a comment is the rule of the engine's design that it is part
/// of; a rule without one is implied there and written out here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rule {
    // The lane: acks, fences, seals, reads.
    /// 1. No ack before the token was read again.
    TokenCheckBeforeAck,
    /// 1. The token is read after the sync, not before it.
    TokenCheckAfterSync,
    /// 1. The token is read past every cache.
    TokenReadPastCache,
    /// 1. A token that is present, not a marker that a stale look-up can miss.
    TokenPresentNotMarkerAbsent,
    /// 1. A token that cannot be read is not mine.
    UnreadableTokenIsNotMine,
    /// 1. A fence overwrites the file whose descriptor the broker holds.
    FenceInPlace,
    /// 1. A fence is synced before anything relies on it.
    FenceSyncedBeforeTailRead,
    /// 2. The sealer reads the tail after the fence, not before it.
    TailReadAfterFence,
    /// 2. The sealer reads the tail past every cache.
    TailReadPastCache,
    /// 2. Blocks above `durable_seq` are copied into SEAL.
    SealHoldsUncoveredBlocks,
    /// 2. SEAL is linked exclusively: the first sealer wins.
    SealLinkedExclusively,
    /// 2. SEAL and its folder are synced, by whoever goes on from it.
    SealSyncedBeforeSealedEnd,
    /// 2. `sealed_end` is the end in the SEAL that won, not the sealer's own reading.
    SealedEndIsTheLinkedSeals,
    /// 2. `sealed_end` is set once, by compare-and-swap.
    SealedEndSetOnce,
    /// 2. A lane is sealed before its partitions get another leader.
    SealedBeforeReassignment,
    /// 2. Readers stop at `sealed_end`.
    ReadersStopAtSealedEnd,
    /// 3. A gap below the `durable_seq` of a later block is damage, not the end.
    GapIsNotAnEnd,
    /// Rule 3: a block before the end that cannot be read stops whoever loads, also where a copy in
    /// SEAL follows: damage may come after the lane was sealed.
    NothingIsReadPastAGap,
    /// 4. A failed sync ends the engine; it is never retried.
    FailedSyncStops,
    /// 7. A takeover compares the leader and the epoch that it took over from.
    TakeoverComparesAndSwaps,
    /// A takeover appends its lane to the extents in the same transaction.
    ExtentAppendedByTakeover,
    /// A successor loads the extents of its own compare-and-swap, not those that it reads later:
    /// it may have been replaced meanwhile, and the new leader's lane is not sealed.
    LoadsExtentsOfOwnTakeover,
    /// Fetch serves only what lies below the fence-checked end.
    FetchBelowFenceCheckedEnd,
    /// 8. A fresh read is answered only after a token check.
    FreshReadChecksToken,
    /// 8. That check began after the read arrived.
    FreshReadCheckBegunAfterArrival,
    /// 9. A duplicate waits for the original's fence-checked end.
    DuplicateWaitsForOriginal,
    /// A successor loads the producers' state with the records.
    ProducerStateLoaded,
    /// A block is acked only after every earlier block (matters from write depth 2).
    AcksInBlockOrder,
    /// `durable_seq` counts blocks whose token check succeeded, not merely synced ones.
    DurableSeqIsFenceChecked,
    /// 10. `close` is written after the last ack.
    CloseAfterLastAck,
    /// Rule 10: a broker that has written `close` answers no fresh read: its lane may be taken over
    /// without a fence, so its token says nothing any more.
    NoFreshReadAfterClose,

    // Split, install, delete, sweep.
    /// A manifest counts only once its install record is in the lane, below the seal.
    ManifestCountsOnceInstalled,
    /// 6. What a manifest replaces is deleted after its install record is covered.
    DeleteAfterInstallCovered,
    /// 6. A job checks token and epoch again between publishing and deleting.
    CheckBeforeDelete,
    /// 6. A job whose check fails deletes nothing, not even what it made.
    FailedJobDeletesNothing,
    /// 6. A sweep checks the token after it listed, before it deletes.
    SweepChecksTokenAfterListing,
    /// A sweep keeps what a job of its own broker is making.
    SweepKeepsOwnJobs,
    /// Rule 6: nothing of a dead lane is deleted or trimmed before a checkpoint or an install
    /// record of one's own epoch is covered in one's own lane.
    TrimAfterOwnCheckpoint,
    /// Extents are trimmed by comparing leader and epoch.
    TrimComparesAndSwaps,
    /// A dead lane's files go only after its extent.
    DeleteAfterTrim,
    /// A checkpoint names every manifest whose install record precedes it in the lane.
    CheckpointHoldsEarlierInstalls,
    /// One change of a partition's manifest at a time, though jobs work beside each other.
    OneManifestChangeAtATime,
    /// Rule 6: a job changes the manifest that is in force when its turn comes, not the one from
    /// which its work began.
    EditWhatCounts,
    /// A file goes only when a later file, with its checkpoint covered, exists.
    OnlyClosedFilesGo,

    // Metadata restored from an old backup.
    /// An incarnation is confirmed by an exclusive `mkdir`.
    IncarnationConfirmedByMkdir,
    /// A lane's folder (with OWNER and SEAL) outlives its files.
    LaneFolderStays,
    /// 12. Incarnations start above the highest found.
    IncarnationsAboveHighestFound,
    /// 12. A restored store opens only after the scan has rebuilt it.
    RestoredStoreOpensAfterScan,
    /// 12. The scan fences and seals every lane that it finds.
    ScanFencesEveryLane,
    /// 12. Epochs start above the highest found.
    EpochsAboveHighestFound,
    /// 12. A leader covers a checkpoint with its epoch before it uses the epoch elsewhere.
    EpochInLaneFirst,
    /// 12. Extents are rebuilt from the lanes.
    ExtentsRebuiltFromLanes,
    /// 12. SEAL files are honoured.
    SealFilesHonoured,
    /// 2, 12. SEAL is written for every sealed lane, also with no block to copy.
    SealAlwaysWritten,
    /// 7. A transaction compares that its incarnation is live.
    TransactionsCompareLive,

    // Several brokers.
    /// 5. A leader appends nothing more to a partition that it gives away.
    MoveStopsAppendsFirst,
    /// 5. All that it appended lies below its fence-checked end before it gives the partition away.
    MoveFlushesFirst,
    /// 5. No job of a partition that was given away goes on.
    MoveDrainsJobs,
    /// An extent ends where its leader gave the partition away.
    ExtentEndsWithMove,
    /// Readers take the entries of the extent's epoch alone.
    ReadersFilterByEpoch,
    /// A live lane keeps what the extents of partitions need that its broker gave away.
    MovedPartitionsKeepFiles,
    /// A dead lane goes when no partition's extents name it.
    DeadLaneGoesWithItsLastExtent,
    /// 6. What several partitions have records in is deleted by a sweep alone.
    SharedObjectsGoBySweep,
    /// 6. A sweep compares, after it asked, that the leaders which answered still lead.
    SweepComparesLeaders,
    /// 6. A sweep keeps what any broker's jobs are making.
    SweepKeepsWhatIsMade,
    /// 6. A leader answers a sweep with the manifest that is covered, not the one that will be.
    SweepKeepsCoveredManifests,
}

/// A set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    removed: u128,
}

impl Rules {
    /// Every rule.
    pub const fn full() -> Self {
        Self { removed: 0 }
    }

    /// Every rule but this one.
    pub const fn without(rule: Rule) -> Self {
        Self::full().and_without(rule)
    }

    /// These rules less one more.
    pub const fn and_without(self, rule: Rule) -> Self {
        Self { removed: self.removed | 1 << rule as u8 }
    }

    /// Whether the rule is kept.
    pub const fn has(self, rule: Rule) -> bool {
        self.removed & (1 << rule as u8) == 0
    }

    /// Whether the rule was removed.
    pub const fn lacks(self, rule: Rule) -> bool {
        !self.has(rule)
    }
}
