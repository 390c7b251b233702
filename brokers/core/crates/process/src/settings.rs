//! Every setting of a broker, as its TOML file has them.
//!
//! `docs/reference/broker-settings.md` describes each; a test holds that page and these defaults
//! together. Sizes are in bytes, times in milliseconds, and the names say so.

use std::fmt;

use serde::{Deserialize, Serialize};

use freshet_access::sasl::Mechanism;
use freshet_access::types::ScramMechanism;
use freshet_storage::cache::blocks::ReadSettings;

mod check;
mod convert;
#[cfg(test)]
mod parse_tests;

pub use freshet_settings::log::{LogFormat, LogSettings};
pub use freshet_settings::parse::{Problem, ProcessSettings, SettingsError};
pub use freshet_settings::threads::ThreadSettings;

/// A broker's settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where everything is kept.
    pub storage: StorageSettings,
    /// Which broker of its cluster it is.
    pub broker: BrokerSettings,
    /// Where it listens.
    pub listener: ListenerSettings,
    /// Files of what was just written.
    pub lane: LaneSection,
    /// Memory for what was just written.
    pub cache: CacheSettings,
    /// Reading from storage.
    pub reads: ReadsSection,
    /// Background work.
    pub jobs: JobsSection,
    /// What clients may take.
    pub limits: LimitSettings,
    /// New topics.
    pub topics: TopicSettings,
    /// Consumer groups.
    pub groups: GroupsSection,
    /// Who may do what.
    pub security: SecuritySettings,
    /// What it writes to standard error.
    pub log: LogSettings,
    /// How many threads work.
    pub threads: ThreadSettings,
}

/// `[storage]`. The first three must be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageSettings {
    /// Folder of the shared file system.
    pub dfs: String,
    /// The object store: a folder, or `s3://bucket/prefix?endpoint=<http…>&region=<name>&
    /// key_file=<file of shared credentials>`.
    pub bucket: String,
    /// File of the SQLite metadata store, or an address of etcd: `etcd://host:port,…/root`, by TLS
    /// `etcds://…?ca=<file>&cert=<file>&key=<file>`, as a user `?user=<name>&password_file=<file>`.
    pub metadata: String,
    /// Prefix of the cluster in all three.
    pub cluster: String,
}

impl Default for StorageSettings {
    fn default() -> Self {
        let unset = String::new;
        Self { dfs: unset(), bucket: unset(), metadata: unset(), cluster: "local".into() }
    }
}

/// `[broker]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrokerSettings {
    /// Kafka's `node.id`: the broker's slot in its cluster.
    pub node_id: u32,
    /// Kafka's `broker.rack`: the zone that it runs in; empty where that is unknown.
    pub rack: String,
    /// The reason for which it is started, which it logs; may be empty.
    pub started_for: String,
}

/// `[listener]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListenerSettings {
    /// `host:port` for Kafka clients; port 0 takes a free one.
    pub kafka: String,
    /// `host:port` that responses give to clients; empty: the address on which it listens.
    pub advertised: String,
    /// Mechanisms offered; none: no authentication.
    pub sasl: Vec<String>,
    /// Whether only super users can authenticate; all others come through gateways.
    pub super_users_only: bool,
    /// `host:port` for `/metrics` and `/healthz`; empty: none.
    pub metrics: String,
    /// `host:port` for gateways; empty: none.
    pub link: String,
    /// `host:port` for the cluster's other brokers, which get this address; empty: none.
    pub brokers: String,
    /// What gateways and other brokers must know, in hexadecimal digits.
    pub link_secret: Secret,
}

/// Text that must not appear in a log.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

impl Default for ListenerSettings {
    fn default() -> Self {
        Self {
            kafka: "127.0.0.1:9092".into(),
            advertised: String::new(),
            sasl: Vec::new(),
            super_users_only: false,
            metrics: "127.0.0.1:0".into(),
            link: String::new(),
            brokers: String::new(),
            link_secret: Secret::default(),
        }
    }
}

/// `[lane]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaneSection {
    /// Bytes of a lane's first file; each next one doubles.
    pub file_bytes_first: u64,
    /// Bytes at which a file is full.
    pub file_bytes_max: u64,
    /// A file that holds anything is ended after this long.
    pub roll_after_ms: u64,
    /// A group commit is cut here.
    pub write_bytes_max: usize,
    /// Producers wait while batches that are not written yet keep more memory alive.
    pub queue_bytes_max: usize,
    /// A commit that takes longer is explained in the log.
    pub slow_commit_ms: u64,
}

impl Default for LaneSection {
    fn default() -> Self {
        Self {
            file_bytes_first: 1 << 20,
            file_bytes_max: 64 << 20,
            roll_after_ms: 60_000,
            write_bytes_max: 1 << 20,
            queue_bytes_max: 64 << 20,
            slow_commit_ms: 1_000,
        }
    }
}

/// `[cache]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheSettings {
    /// Memory that the newest batches may pin.
    pub hot_bytes: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { hot_bytes: 256 << 20 }
    }
}

/// `[reads]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadsSection {
    /// Memory for blocks of lane files and objects.
    pub block_bytes: usize,
    /// How far storage is read ahead of one reader; 0: not at all.
    pub ahead_bytes_max: u64,
    /// Reads of storage at a time for clients.
    pub loads_at_once: usize,
    /// Bytes a second for clients that catch up and background work together; 0: no bound.
    pub bytes_per_s_max: u64,
}

impl Default for ReadsSection {
    fn default() -> Self {
        let bounds = ReadSettings::default();
        Self {
            block_bytes: bounds.block_bytes,
            ahead_bytes_max: bounds.ahead_bytes_max,
            loads_at_once: bounds.loads_at_once,
            bytes_per_s_max: bounds.bytes_per_s,
        }
    }
}

/// `[jobs]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobsSection {
    /// Between two rounds of retention.
    pub retention_interval_ms: u64,
    /// Between two rounds of sweeping.
    pub sweep_interval_ms: u64,
    /// Between two rounds of joining, of compaction and of the check.
    pub rewrite_interval_ms: u64,
    /// Bytes of segments that these rounds may read in a second.
    pub rewrite_bytes_per_s: u64,
    /// Memory for the keys of a partition that is compacted.
    pub compaction_keys_bytes: usize,
    /// For how long the rests of a lane whose broker has ended wait for the meter; 0: for ever.
    pub unmetered_lanes_kept_ms: u64,
}

impl Default for JobsSection {
    fn default() -> Self {
        Self {
            retention_interval_ms: 60_000,
            sweep_interval_ms: 300_000,
            rewrite_interval_ms: 15_000,
            rewrite_bytes_per_s: 64 << 20,
            compaction_keys_bytes: 32 << 20,
            unmetered_lanes_kept_ms: 0,
        }
    }
}

/// `[limits]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Connections at a time.
    pub connections_max: usize,
    /// Connections at a time from one address.
    pub connections_per_address_max: usize,
    /// Largest request.
    pub request_bytes_max: usize,
    /// Largest request of a client that has not authenticated.
    pub request_bytes_before_authentication_max: usize,
    /// How long a client may take to authenticate.
    pub authentication_timeout_ms: u64,
    /// A connection on which nothing happens is closed after this long.
    pub idle_timeout_ms: u64,
    /// How long a request may take to arrive, beyond its bytes at `request_bytes_per_s_min`.
    pub request_timeout_ms: u64,
    /// The slowest that a request may arrive.
    pub request_bytes_per_s_min: u64,
    /// Requests of one connection that are not answered yet.
    pub in_flight_requests_per_connection: usize,
    /// Bytes of one connection's requests that are not answered yet.
    pub in_flight_bytes_per_connection: usize,
    /// Bytes of all requests that are not answered yet, or whose batches are not written yet.
    pub in_flight_bytes: usize,
    /// Memory that all decompressions of produced batches may hold together.
    pub decompression_bytes: usize,
    /// Bytes of records on their way to clients that read the newest ones.
    pub fetch_bytes: usize,
    /// Bytes of records on their way to clients that catch up.
    pub catch_up_fetch_bytes: usize,
    /// How long answers that are due may still take when the broker stops.
    pub drain_timeout_ms: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_address_max: 10_000,
            request_bytes_max: 100 << 20,
            request_bytes_before_authentication_max: 512 << 10,
            authentication_timeout_ms: 10_000,
            idle_timeout_ms: 600_000,
            request_timeout_ms: 30_000,
            request_bytes_per_s_min: 16 << 10,
            in_flight_requests_per_connection: 128,
            in_flight_bytes_per_connection: 16 << 20,
            in_flight_bytes: 256 << 20,
            decompression_bytes: 64 << 20,
            fetch_bytes: 256 << 20,
            catch_up_fetch_bytes: 64 << 20,
            drain_timeout_ms: 2_000,
        }
    }
}

/// `[topics]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TopicSettings {
    /// Whether asking for an unknown topic creates it.
    pub auto_create: bool,
    /// Partitions of a topic whose creator names no number.
    pub default_partitions: i32,
    /// Replication factor of such a topic; reported, while storage gives durability.
    pub default_replication_factor: i16,
    /// Partitions of `__consumer_offsets`.
    pub offsets_partitions: i32,
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            auto_create: true,
            default_partitions: 1,
            default_replication_factor: 1,
            offsets_partitions: 50,
        }
    }
}

/// `[groups]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupsSection {
    /// The shortest session that a member may ask for.
    pub session_timeout_ms_min: i32,
    /// The longest session that a member may ask for.
    pub session_timeout_ms_max: i32,
    /// How long an empty group waits for more members before its first rebalance.
    pub initial_rebalance_delay_ms: i32,
    /// Members that a group may have.
    pub members_max: i32,
    /// How long a member that is new may wait in a join before it is dropped.
    pub new_member_join_timeout_ms: i32,
    /// The longest metadata of a committed offset.
    pub offset_metadata_bytes_max: i32,
    /// How long offsets stay after their group became empty.
    pub offsets_retention_minutes: i32,
    /// How often expired offsets are looked for.
    pub offsets_retention_check_interval_ms: i32,
}

impl Default for GroupsSection {
    fn default() -> Self {
        Self {
            session_timeout_ms_min: 6_000,
            session_timeout_ms_max: 1_800_000,
            initial_rebalance_delay_ms: 3_000,
            members_max: i32::MAX,
            new_member_join_timeout_ms: 300_000,
            offset_metadata_bytes_max: 4_096,
            offsets_retention_minutes: 10_080,
            offsets_retention_check_interval_ms: 600_000,
        }
    }
}

/// `[security]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SecuritySettings {
    /// Principals (`User:name`) that may do everything.
    pub super_users: Vec<String>,
    /// Whether a resource without any ACL is open to everybody. Unset: only without SASL and
    /// gateways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_everyone_if_no_acl_found: Option<bool>,
    /// Users that are created at the start where they do not exist.
    pub users: Vec<BootstrapUser>,
}

/// One of `[[security.users]]`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootstrapUser {
    /// The user's name.
    pub name: String,
    /// The user's password.
    pub password: String,
    /// For which SCRAM mechanism; PLAIN is checked against either.
    #[serde(default = "default_mechanism")]
    pub mechanism: String,
}

impl fmt::Debug for BootstrapUser {
    /// Leaves the password out, so that no log can hold it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BootstrapUser").field("name", &self.name).finish_non_exhaustive()
    }
}

fn default_mechanism() -> String {
    Mechanism::Scram(ScramMechanism::Sha512).name().to_owned()
}
