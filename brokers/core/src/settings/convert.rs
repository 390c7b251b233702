//! From settings to what the parts of the broker take, and what no part could work with.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::parse::Problem;
use super::{BootstrapUser, GroupsSection, JobsSection, LaneSection, Settings};
use crate::auth::acl::AuthorizerSettings;
use crate::auth::principal::Principal;
use crate::auth::sasl::Mechanism;
use crate::configs::{BrokerConfig, Overrides};
use crate::coordinator::group::GroupSettings;
use crate::engine::EngineSettings;
use crate::handlers::BrokerSettings;
use crate::jobs::JobSettings;
use crate::lane::block::ALIGNMENT;
use crate::lane::writer::LaneSettings;
use crate::rules::Rules;
use crate::server::ServerLimits;

/// The smallest lane file: a checkpoint and a block.
const FILE_BYTES_MIN: u64 = 64 << 10;
/// The largest that a write may be cut at.
const WRITE_BYTES_MAX: usize = 64 << 20;
/// Threads beyond this are a mistake.
const THREADS_MAX: usize = 256;

impl From<&LaneSection> for LaneSettings {
    fn from(section: &LaneSection) -> Self {
        Self {
            file_bytes_first: section.file_bytes_first,
            file_bytes_max: section.file_bytes_max,
            roll_after: Duration::from_millis(section.roll_after_ms),
            write_bytes_max: section.write_bytes_max,
        }
    }
}

impl From<&JobsSection> for JobSettings {
    fn from(section: &JobsSection) -> Self {
        Self {
            retention_interval: Duration::from_millis(section.retention_interval_ms),
            sweep_interval: Duration::from_millis(section.sweep_interval_ms),
        }
    }
}

impl From<&GroupsSection> for GroupSettings {
    fn from(section: &GroupsSection) -> Self {
        let size = |value: i32| usize::try_from(value).unwrap_or(0);
        Self {
            min_session_timeout_ms: section.session_timeout_ms_min,
            max_session_timeout_ms: section.session_timeout_ms_max,
            initial_rebalance_delay_ms: section.initial_rebalance_delay_ms,
            max_size: size(section.members_max),
            new_member_join_timeout_ms: section.new_member_join_timeout_ms,
            offset_metadata_max_bytes: size(section.offset_metadata_bytes_max),
            offsets_retention_minutes: section.offsets_retention_minutes,
            offsets_retention_check_interval_ms: section.offsets_retention_check_interval_ms,
        }
    }
}

impl BootstrapUser {
    /// The SCRAM mechanism of the user's credential.
    ///
    /// # Errors
    /// Where there is no such mechanism; settings that were read have none of these.
    pub fn scram_mechanism(&self) -> Result<crate::auth::types::ScramMechanism, String> {
        match Mechanism::from_str(&self.mechanism) {
            Ok(Mechanism::Scram(mechanism)) => Ok(mechanism),
            Ok(Mechanism::Plain) => {
                Err("PLAIN is checked against a SCRAM credential: name its mechanism".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Settings {
    /// What the engine takes. `host` is for display.
    pub fn engine(&self, host: &str) -> EngineSettings {
        EngineSettings {
            cluster: self.storage.cluster.clone(),
            slot: self.broker.node_id,
            host: host.to_owned(),
            lane: (&self.lane).into(),
            hot_bytes: self.cache.hot_bytes,
            jobs: (&self.jobs).into(),
            groups: (&self.groups).into(),
            offsets_partitions: self.topics.offsets_partitions,
            configs: self.broker_config().expect("settings were checked when they were read"),
            metrics: Arc::default(),
            rules: Rules::full(),
        }
    }

    /// Mechanisms that the listener offers; none: no authentication.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        self.listener.sasl.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// How requests are authorized.
    pub fn authorizer(&self) -> AuthorizerSettings {
        let users = self.security.super_users.iter();
        let super_users: BTreeSet<Principal> =
            users.filter_map(|user| Principal::parse(user).ok()).collect();
        let open = self.security.allow_everyone_if_no_acl_found;
        AuthorizerSettings {
            super_users,
            allow_everyone_if_no_acl_found: open.unwrap_or(self.listener.sasl.is_empty()),
        }
    }

    /// What clients may take.
    pub fn server_limits(&self) -> ServerLimits {
        let limits = &self.limits;
        ServerLimits {
            request_bytes_max: limits.request_bytes_max,
            unauthenticated_bytes_max: limits.request_bytes_before_authentication_max,
            authentication_time: Duration::from_millis(limits.authentication_timeout_ms),
            idle_time: Duration::from_millis(limits.idle_timeout_ms),
            request_time: Duration::from_millis(limits.request_timeout_ms),
            request_bytes_per_s: limits.request_bytes_per_s_min,
            connections_max: limits.connections_max,
            connections_per_ip_max: limits.connections_per_address_max,
            in_flight_requests_max: limits.in_flight_requests_per_connection,
            in_flight_bytes_max: limits.in_flight_bytes_per_connection,
            in_flight_bytes_total: limits.in_flight_bytes,
            drain_time: Duration::from_millis(limits.drain_timeout_ms),
        }
    }

    /// What handlers take.
    pub fn handlers(&self) -> BrokerSettings {
        BrokerSettings {
            configs: self.broker_config().expect("settings were checked when they were read"),
            authorizer: Some(self.authorizer()),
            fetch_memory_bytes: self.limits.fetch_bytes,
            ..BrokerSettings::default()
        }
    }

    /// What is set, by the names of Kafka's broker configs, as tools are told.
    fn broker_config(&self) -> Result<BrokerConfig, Problem> {
        let unset = Self::default().kafka_names();
        let mut fixed = Overrides::new();
        for ((key, name, value), (.., default)) in self.kafka_names().into_iter().zip(unset) {
            // Where Kafka's default is another one, ours is said all the same.
            if value != default || name == "log.retention.check.interval.ms" || name == "node.id" {
                fixed.insert(name.to_owned(), value.clone());
            }
            let alone = Overrides::from([(name.to_owned(), value)]);
            if let Err(error) = BrokerConfig::new(alone) {
                return Err(Problem { key, message: error.to_string() });
            }
        }
        let key = "groups.session_timeout_ms_max";
        BrokerConfig::new(fixed).map_err(|error| Problem { key, message: error.to_string() })
    }

    /// Settings that Kafka has under another name: ours, Kafka's, and the value.
    fn kafka_names(&self) -> [(&'static str, &'static str, String); 15] {
        let (topics, groups, limits) = (&self.topics, &self.groups, &self.limits);
        let offsets_check = groups.offsets_retention_check_interval_ms.to_string();
        [
            ("broker.node_id", "node.id", self.broker.node_id.to_string()),
            ("topics.auto_create", "auto.create.topics.enable", topics.auto_create.to_string()),
            ("topics.default_partitions", "num.partitions", topics.default_partitions.to_string()),
            (
                "topics.default_replication_factor",
                "default.replication.factor",
                topics.default_replication_factor.to_string(),
            ),
            (
                "topics.offsets_partitions",
                "offsets.topic.num.partitions",
                topics.offsets_partitions.to_string(),
            ),
            (
                "groups.session_timeout_ms_min",
                "group.min.session.timeout.ms",
                groups.session_timeout_ms_min.to_string(),
            ),
            (
                "groups.session_timeout_ms_max",
                "group.max.session.timeout.ms",
                groups.session_timeout_ms_max.to_string(),
            ),
            (
                "groups.initial_rebalance_delay_ms",
                "group.initial.rebalance.delay.ms",
                groups.initial_rebalance_delay_ms.to_string(),
            ),
            ("groups.members_max", "group.max.size", groups.members_max.to_string()),
            (
                "groups.offset_metadata_bytes_max",
                "offset.metadata.max.bytes",
                groups.offset_metadata_bytes_max.to_string(),
            ),
            (
                "groups.offsets_retention_minutes",
                "offsets.retention.minutes",
                groups.offsets_retention_minutes.to_string(),
            ),
            (
                "groups.offsets_retention_check_interval_ms",
                "offsets.retention.check.interval.ms",
                offsets_check,
            ),
            (
                "jobs.retention_interval_ms",
                "log.retention.check.interval.ms",
                self.jobs.retention_interval_ms.to_string(),
            ),
            (
                "limits.idle_timeout_ms",
                "connections.max.idle.ms",
                limits.idle_timeout_ms.to_string(),
            ),
            (
                "limits.request_bytes_max",
                "socket.request.max.bytes",
                limits.request_bytes_max.to_string(),
            ),
        ]
    }

    /// How many threads serve, on a machine with so many cores.
    pub fn runtime_threads(&self, cores: usize) -> usize {
        match self.threads.runtime {
            0 => cores.clamp(1, 4),
            threads => threads,
        }
    }

    /// The first setting whose value makes no sense.
    pub(super) fn problem(&self) -> Option<Problem> {
        self.storage_problem()
            .or_else(|| self.listener_problem())
            .or_else(|| self.security_problem())
            .or_else(|| self.lane_problem())
            .or_else(|| self.limit_problem())
            .or_else(|| self.topic_problem())
            .or_else(|| self.broker_config().err())
    }

    fn storage_problem(&self) -> Option<Problem> {
        let storage = &self.storage;
        let missing = [
            ("storage.dfs", &storage.dfs, "the folder of the shared file system"),
            ("storage.bucket", &storage.bucket, "the folder of the object store"),
            ("storage.metadata", &storage.metadata, "the file of the SQLite metadata store"),
        ];
        for (key, value, what) in missing {
            if value.is_empty() {
                return Some(Problem { key, message: format!("must be set: {what}") });
            }
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let name = &storage.cluster;
        let good = !name.is_empty()
            && name.chars().all(allowed)
            && name.chars().any(|c| c != '.')
            && name.len() <= 255;
        (!good).then(|| Problem {
            key: "storage.cluster",
            message: "must have letters, digits, '.', '_' and '-' only".to_owned(),
        })
    }

    fn listener_problem(&self) -> Option<Problem> {
        let listener = &self.listener;
        let addresses = [
            ("listener.kafka", &listener.kafka, false),
            ("listener.advertised", &listener.advertised, true),
            ("listener.metrics", &listener.metrics, true),
        ];
        for (key, value, may_be_empty) in addresses {
            if !(may_be_empty && value.is_empty()) && split_address(value).is_none() {
                return Some(Problem { key, message: "must be host:port".to_owned() });
            }
        }
        for name in &listener.sasl {
            let problem = |message| Some(Problem { key: "listener.sasl", message });
            match Mechanism::from_str(name) {
                Err(error) => return problem(error.to_string()),
                Ok(Mechanism::Plain) if !is_loopback(&listener.kafka) => {
                    let message = "PLAIN sends passwords in clear text: without TLS it is for a \
                                   listener on the loopback only";
                    return problem(message.to_owned());
                }
                Ok(_) => {}
            }
        }
        None
    }

    fn security_problem(&self) -> Option<Problem> {
        for user in &self.security.super_users {
            if let Err(error) = Principal::parse(user) {
                return Some(Problem { key: "security.super_users", message: error.to_string() });
            }
        }
        for user in &self.security.users {
            let wrong = user.scram_mechanism().err().or_else(|| {
                let empty = user.name.is_empty() || user.password.is_empty();
                empty.then(|| "a user needs a name and a password".to_owned())
            });
            if let Some(message) = wrong {
                return Some(Problem { key: "security.users", message });
            }
        }
        None
    }

    fn lane_problem(&self) -> Option<Problem> {
        let lane = &self.lane;
        let aligned =
            |bytes: u64| bytes.is_multiple_of(ALIGNMENT as u64) && bytes >= FILE_BYTES_MIN;
        let message = |text: &str| text.to_owned();
        if !aligned(lane.file_bytes_first) {
            let text = "must be a multiple of 4096 and at least 65536";
            return Some(Problem { key: "lane.file_bytes_first", message: message(text) });
        }
        if !aligned(lane.file_bytes_max) || lane.file_bytes_max < lane.file_bytes_first {
            let text = "must be a multiple of 4096 and at least lane.file_bytes_first";
            return Some(Problem { key: "lane.file_bytes_max", message: message(text) });
        }
        if !(ALIGNMENT..=WRITE_BYTES_MAX).contains(&lane.write_bytes_max) {
            let text = "must be between 4096 and 67108864";
            return Some(Problem { key: "lane.write_bytes_max", message: message(text) });
        }
        let positive = [
            ("lane.roll_after_ms", lane.roll_after_ms),
            ("jobs.retention_interval_ms", self.jobs.retention_interval_ms),
            ("jobs.sweep_interval_ms", self.jobs.sweep_interval_ms),
        ];
        positive.into_iter().find(|(_, value)| *value == 0).map(|(key, _)| above_zero(key))
    }

    fn limit_problem(&self) -> Option<Problem> {
        let limits = &self.limits;
        let positive = [
            ("limits.connections_max", limits.connections_max),
            ("limits.connections_per_address_max", limits.connections_per_address_max),
            (
                "limits.request_bytes_before_authentication_max",
                limits.request_bytes_before_authentication_max,
            ),
            ("limits.in_flight_requests_per_connection", limits.in_flight_requests_per_connection),
            ("limits.in_flight_bytes_per_connection", limits.in_flight_bytes_per_connection),
            ("limits.in_flight_bytes", limits.in_flight_bytes),
            ("limits.fetch_bytes", limits.fetch_bytes),
        ];
        if let Some((key, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Some(above_zero(key));
        }
        let times = [
            ("limits.authentication_timeout_ms", limits.authentication_timeout_ms),
            ("limits.idle_timeout_ms", limits.idle_timeout_ms),
            ("limits.request_timeout_ms", limits.request_timeout_ms),
            ("limits.request_bytes_per_s_min", limits.request_bytes_per_s_min),
        ];
        if let Some((key, _)) = times.into_iter().find(|(_, value)| *value == 0) {
            return Some(above_zero(key));
        }
        // A lane's block holds the largest request with its index.
        let sizes = limits.request_bytes_before_authentication_max..=(128 << 20);
        let key = "limits.request_bytes_max";
        (!sizes.contains(&limits.request_bytes_max)).then(|| Problem {
            key,
            message: "must be at least limits.request_bytes_before_authentication_max, and at \
                      most 134217728"
                .to_owned(),
        })
    }

    fn topic_problem(&self) -> Option<Problem> {
        let topics = &self.topics;
        let groups = &self.groups;
        if !(1..=3).contains(&topics.default_replication_factor) {
            let key = "topics.default_replication_factor";
            return Some(Problem { key, message: "must be 1, 2 or 3".to_owned() });
        }
        let positive = [
            ("topics.default_partitions", topics.default_partitions),
            ("topics.offsets_partitions", topics.offsets_partitions),
            ("groups.session_timeout_ms_min", groups.session_timeout_ms_min),
            ("groups.members_max", groups.members_max),
            ("groups.new_member_join_timeout_ms", groups.new_member_join_timeout_ms),
            ("groups.offsets_retention_minutes", groups.offsets_retention_minutes),
            (
                "groups.offsets_retention_check_interval_ms",
                groups.offsets_retention_check_interval_ms,
            ),
        ];
        if let Some((key, _)) = positive.into_iter().find(|(_, value)| *value < 1) {
            return Some(above_zero(key));
        }
        if groups.session_timeout_ms_max < groups.session_timeout_ms_min {
            let message = "must be at least groups.session_timeout_ms_min".to_owned();
            return Some(Problem { key: "groups.session_timeout_ms_max", message });
        }
        let not_negative = [
            ("groups.initial_rebalance_delay_ms", groups.initial_rebalance_delay_ms),
            ("groups.offset_metadata_bytes_max", groups.offset_metadata_bytes_max),
        ];
        if let Some((key, _)) = not_negative.into_iter().find(|(_, value)| *value < 0) {
            return Some(Problem { key, message: "must not be negative".to_owned() });
        }
        (self.threads.runtime > THREADS_MAX).then(|| Problem {
            key: "threads.runtime",
            message: format!("must be at most {THREADS_MAX}"),
        })
    }
}

fn above_zero(key: &'static str) -> Problem {
    Problem { key, message: "must be above 0".to_owned() }
}

/// Host and port of `host:port`; an IPv6 address stands in brackets.
pub(crate) fn split_address(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let good = match bare {
        Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.contains(':'),
    };
    good.then_some((bare.unwrap_or(host), port))
}

fn is_loopback(address: &str) -> bool {
    if let Ok(address) = address.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    split_address(address).is_some_and(|(host, _)| {
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_the_parts_are_the_documented_ones() {
        let settings = Settings::default();
        let engine = settings.engine("");
        let of_parts = EngineSettings::new("local");
        assert_eq!(format!("{engine:?}"), format!("{of_parts:?}"));
        assert_eq!(settings.server_limits(), ServerLimits::default());
        assert_eq!(settings.handlers().fetch_memory_bytes, 256 << 20);
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        assert_eq!(split_address("localhost:0"), Some(("localhost", 0)));
        assert_eq!(split_address("[::1]:9092"), Some(("::1", 9092)));
        for wrong in ["", "localhost", ":9092", "a:b", "::1:9092", "[x]:1", "a:65536"] {
            assert_eq!(split_address(wrong), None, "{wrong}");
        }
        assert!(is_loopback("[::1]:1") && is_loopback("127.0.0.2:1") && is_loopback("localhost:1"));
        assert!(!is_loopback("0.0.0.0:1") && !is_loopback("example.org:1"));
    }

    #[test]
    fn passwords_in_clear_text_stay_on_the_loopback() {
        let mut settings = Settings::default();
        settings.listener.sasl = vec!["PLAIN".into()];
        assert!(settings.listener_problem().is_none());
        settings.listener.kafka = "0.0.0.0:9092".into();
        assert!(settings.listener_problem().is_some());
        settings.listener.sasl = vec!["SCRAM-SHA-512".into()];
        assert!(settings.listener_problem().is_none());
    }

    #[test]
    fn resources_without_acls_are_open_only_without_sasl_unless_said() {
        let mut settings = Settings::default();
        let open = |settings: &Settings| settings.authorizer().allow_everyone_if_no_acl_found;
        assert!(open(&settings));
        settings.listener.sasl = vec!["SCRAM-SHA-256".into()];
        assert!(!open(&settings));
        settings.security.allow_everyone_if_no_acl_found = Some(true);
        assert!(open(&settings));
    }
}
