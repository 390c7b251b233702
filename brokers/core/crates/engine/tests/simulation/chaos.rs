//! The faults of a simulation, and how often they happen.

use std::time::Duration;

use freshet_jobs::JobSettings;
use freshet_jobs::split::SplitSettings;
use freshet_storage::rules::Rule;
use freshet_world::sim::faults::DiskFaults;

use super::metadata::MetadataFaults;

/// Settings by which several lane files are split at once, batch by batch, into many objects.
const SPLITS_SEVERAL: SplitSettings = SplitSettings { object_bytes: 4 << 10, large_batch_bytes: 0 };

/// Memory for the newest batches, in bytes: so little that most reads go to storage, or more than a
/// simulation writes.
const HOT_BYTES_FEW: usize = 2 << 10;
const HOT_BYTES_ALL: usize = 16 << 20;

/// One seed in this many meets damage as well.
pub const DAMAGE_EVERY: u64 = 4;

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The broker dies; another starts.
    Crash,
    /// The broker is paused, a successor starts, the broker goes on unaware.
    Zombie,
    /// The broker dies and the file server loses what was not synced.
    PowerLoss,
    /// The file server restarts under a living broker.
    ServerRestart,
    /// The broker stops cleanly and another starts.
    CleanStop,
    /// The disk is full for a while.
    DiskFull,
    /// The object store is full for a while, so that nothing can be put.
    BucketFull,
    /// Everything dies and the metadata store comes back from a backup.
    RestoredMetadata,
    /// Two successors start at once.
    Race,
    /// A byte of a block that was durable flips, once, and the broker dies.
    Rot,
    /// A broker is to hand a topic's partitions over to another one, as far as it leads them.
    Move,
    /// Nothing passes from one broker to another for a while.
    Cut,
    /// Storage carries out nothing for a broker for a while.
    Hang,
    /// The metering agent has recorded all lanes whose records are split, so that brokers may
    /// remove them.
    Metered,
}

/// Who finds out that a broker has died, and has others take over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noticed {
    /// The simulation, which also gives orders that no controller would give.
    FromOutside,
    /// The brokers: they elect a controller.
    ByMembers,
}

/// A mixture of faults.
#[derive(Debug, Clone)]
pub struct Profile {
    /// How many brokers the cluster has.
    pub slots: u32,
    /// Who finds out that a broker has died.
    pub noticed: Noticed,
    /// The faults; one that is listed twice is twice as likely.
    pub faults: Vec<Fault>,
    pub disk: DiskFaults,
    pub metadata: MetadataFaults,
    /// How long faults last, in ms.
    pub faults_ms: u64,
    /// A fault starts at most this long after the last, in ms.
    pub pause_ms_max: u64,
    /// How often of a thousand times clients ask an older broker.
    pub stale_per_mille: u64,
    /// How often jobs run and how they split; brokers alternate between these settings.
    pub jobs: [JobSettings; 2],
    /// Memory for the newest batches of the two: for hardly any of them, or for all.
    pub hot_bytes: [usize; 2],
}

impl Profile {
    /// The faults of an everyday seed: all of them, and in some seeds damage, too. Not in all
    /// seeds, because a cluster may rightly refuse to go on after damage, and the rest of such a
    /// seed proves little.
    pub fn of_seed(seed: u64) -> Self {
        let mut profile = Self::everything();
        if seed.is_multiple_of(DAMAGE_EVERY) {
            profile.faults.extend([Fault::Rot, Fault::Rot]);
        }
        profile
    }

    /// All faults after which the cluster must come back.
    pub fn everything() -> Self {
        use Fault::*;
        let jobs = JobSettings {
            retention_interval: Duration::from_millis(140),
            sweep_interval: Duration::from_millis(120),
            rewrite_interval: Duration::from_millis(130),
            ..JobSettings::default()
        };
        Self {
            slots: 1,
            noticed: Noticed::FromOutside,
            faults: vec![
                Crash,
                Crash,
                Zombie,
                Zombie,
                Zombie,
                PowerLoss,
                PowerLoss,
                ServerRestart,
                CleanStop,
                DiskFull,
                BucketFull,
                RestoredMetadata,
                Race,
                Metered,
                Metered,
            ],
            disk: DiskFaults {
                failed_write: 2,
                failed_sync: 2,
                slow: 10,
                stale_look_up: 100,
                full: 1,
            },
            metadata: MetadataFaults { unavailable: 5, unknown: 5 },
            faults_ms: 1500,
            pause_ms_max: 250,
            stale_per_mille: 250,
            jobs: [jobs, JobSettings { split: SPLITS_SEVERAL, ..jobs }],
            hot_bytes: [HOT_BYTES_FEW, HOT_BYTES_ALL],
        }
    }

    /// The faults of a seed in which several brokers lead partitions, and take over from each
    /// other.
    pub fn of_brokers() -> Self {
        let mut profile = Self { slots: 3, pause_ms_max: 150, ..Self::everything() };
        // No start of one broker finds out that the metadata store was restored while others run.
        profile.faults.retain(|fault| *fault != Fault::RestoredMetadata);
        profile.faults.extend([Fault::Move; 30]);
        profile
    }

    /// The faults of a seed in which several brokers find out themselves who has died.
    pub fn of_members() -> Self {
        let mut profile = Self { noticed: Noticed::ByMembers, ..Self::of_brokers() };
        profile.faults.extend([Fault::Cut; 8]);
        profile.faults.extend([Fault::Hang; 4]);
        profile
    }

    /// The faults in which several brokers seal the lane of one that still writes to it.
    pub fn of_sealers() -> Self {
        let mut profile = Self { noticed: Noticed::ByMembers, ..Self::of_brokers() };
        profile.faults = vec![Fault::Zombie, Fault::Cut, Fault::Hang, Fault::Crash];
        profile.disk.slow = 40;
        profile
    }

    /// Several brokers that find out themselves who has died, and no fault.
    pub fn without_faults() -> Self {
        let (disk, metadata) = (DiskFaults::none(), MetadataFaults::default());
        Self { faults: Vec::new(), disk, metadata, ..Self::of_members() }
    }

    /// The faults in which a rule matters.
    pub fn against(rule: Rule) -> Self {
        use Fault::*;
        let (faults, disk) = match rule {
            Rule::SyncBeforeAck | Rule::SealUnsureBlocks => {
                (vec![PowerLoss, Crash, Zombie], DiskFaults { slow: 30, ..DiskFaults::none() })
            }
            Rule::UnknownMeansStop => (
                vec![PowerLoss, Crash],
                DiskFaults { failed_sync: 30, failed_write: 10, slow: 10, ..DiskFaults::none() },
            ),
            Rule::GapIsDamage => (vec![Rot, Crash], DiskFaults::none()),
            Rule::IncarnationIsLive => (vec![Zombie], DiskFaults::none()),
            Rule::ScanStorageAtStart => {
                (vec![RestoredMetadata, Crash, Metered], DiskFaults::none())
            }
            Rule::InstallBeforeUse => {
                (vec![Zombie, Crash, PowerLoss], DiskFaults { slow: 20, ..DiskFaults::none() })
            }
            Rule::KeepNewObjects => {
                (vec![BucketFull], DiskFaults { slow: 20, ..DiskFaults::none() })
            }
            Rule::ForgetBeforeReuse => {
                (vec![Metered], DiskFaults { slow: 60, ..DiskFaults::none() })
            }
            Rule::CountWhatIsDue | Rule::ForgetRemoved => (vec![Crash], DiskFaults::none()),
            Rule::CheckBeforeDelete => {
                (vec![Zombie, Zombie, Zombie, Crash], DiskFaults { slow: 20, ..DiskFaults::none() })
            }
            _ => (vec![Zombie, Crash], DiskFaults { slow: 30, ..DiskFaults::none() }),
        };
        let everything = Self::everything();
        let faults_ms = match rule {
            Rule::IncarnationIsLive => 300,
            // Long enough for many rounds of the sweeper, during one of which a zombie is paused.
            Rule::CheckBeforeDelete => 6000,
            // Long enough for files to be recycled, and for records to be compacted.
            Rule::CountWhatIsDue | Rule::ForgetBeforeReuse | Rule::ForgetRemoved => 4000,
            _ => everything.faults_ms,
        };
        let jobs = match rule {
            // A zombie that writes anything finds out at once that it was fenced, so the sweeper
            // must be faster.
            Rule::CheckBeforeDelete => JobSettings {
                retention_interval: Duration::from_secs(3600),
                sweep_interval: Duration::from_millis(10),
                rewrite_interval: Duration::from_secs(3600),
                ..everything.jobs[0]
            },
            _ => everything.jobs[0],
        };
        let lives_long = matches!(rule, Rule::CountWhatIsDue | Rule::ForgetRemoved);
        let pause_ms_max = if lives_long { 2000 } else { everything.pause_ms_max };
        // What was removed is read only where it is still in memory by then.
        let keeps_all = rule == Rule::ForgetRemoved;
        let stale_per_mille =
            if rule == Rule::CheckBeforeDelete { 0 } else { everything.stale_per_mille };
        Self {
            slots: 1,
            noticed: Noticed::FromOutside,
            faults,
            disk,
            metadata: MetadataFaults::default(),
            faults_ms,
            pause_ms_max,
            stale_per_mille,
            jobs: [jobs; 2],
            hot_bytes: [if keeps_all { HOT_BYTES_ALL } else { HOT_BYTES_FEW }; 2],
        }
    }
}
