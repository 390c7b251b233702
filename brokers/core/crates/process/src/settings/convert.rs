//! Converts settings to the settings of the broker's parts.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::Problem;
use super::{BootstrapUser, GroupsSection, JobsSection, LaneSection, ReadsSection, Settings};
use freshet_access::acl::AuthorizerSettings;
use freshet_access::principal::Principal;
use freshet_access::sasl::Mechanism;
use freshet_broker::context::BrokerSettings;
use freshet_broker::server::ServerLimits;
use freshet_configs::{BrokerConfig, Overrides};
use freshet_coordinator::group::GroupSettings;
use freshet_engine::EngineSettings;
use freshet_jobs::JobSettings;
use freshet_jobs::split::SplitSettings;
use freshet_link::LinkSecret;
use freshet_metadata::schema::BrokerPlace;
use freshet_storage::cache::blocks::ReadSettings;
use freshet_storage::lane::writer::LaneSettings;
use freshet_storage::rules::Rules;

impl From<&LaneSection> for LaneSettings {
    fn from(section: &LaneSection) -> Self {
        Self {
            file_bytes_first: section.file_bytes_first,
            file_bytes_max: section.file_bytes_max,
            roll_after: Duration::from_millis(section.roll_after_ms),
            write_bytes_max: section.write_bytes_max,
            queue_bytes_max: section.queue_bytes_max,
            slow_commit: Duration::from_millis(section.slow_commit_ms),
        }
    }
}

impl From<&ReadsSection> for ReadSettings {
    fn from(section: &ReadsSection) -> Self {
        Self {
            block_bytes: section.block_bytes,
            ahead_bytes_max: section.ahead_bytes_max,
            loads_at_once: section.loads_at_once,
            bytes_per_s: section.bytes_per_s_max,
        }
    }
}

impl From<&JobsSection> for JobSettings {
    fn from(section: &JobsSection) -> Self {
        Self {
            retention_interval: Duration::from_millis(section.retention_interval_ms),
            sweep_interval: Duration::from_millis(section.sweep_interval_ms),
            rewrite_interval: Duration::from_millis(section.rewrite_interval_ms),
            rewrite_bytes_per_s: section.rewrite_bytes_per_s,
            compaction_keys_bytes: section.compaction_keys_bytes,
            unmetered_lanes_kept: match section.unmetered_lanes_kept_ms {
                0 => None,
                kept_ms => Some(Duration::from_millis(kept_ms)),
            },
            split: SplitSettings::default(),
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
            ..Self::default()
        }
    }
}

impl BootstrapUser {
    /// The SCRAM mechanism of the user's credential.
    ///
    /// # Errors
    /// A message where there is no such mechanism. Settings that were read from TOML have been
    /// checked, so they never fail.
    pub fn scram_mechanism(&self) -> Result<freshet_access::types::ScramMechanism, String> {
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
    /// The settings of the engine. `host` is recorded for display only.
    pub fn engine(&self, host: &str) -> EngineSettings {
        EngineSettings {
            cluster: self.storage.cluster.clone(),
            slot: self.broker.node_id,
            host: host.to_owned(),
            place: BrokerPlace {
                address: String::new(),
                kafka: String::new(),
                link: String::new(),
                zone: self.broker.rack.clone(),
                release: env!("CARGO_PKG_VERSION").to_owned(),
            },
            lane: (&self.lane).into(),
            hot_bytes: self.cache.hot_bytes,
            decompression_bytes: self.limits.decompression_bytes,
            reads: (&self.reads).into(),
            jobs: (&self.jobs).into(),
            groups: (&self.groups).into(),
            offsets_partitions: self.topics.offsets_partitions,
            configs: self.broker_config().expect("settings were checked when they were read"),
            metrics: Arc::default(),
            rules: Rules::full(),
        }
    }

    /// The mechanisms that the listener offers; with none, clients do not authenticate.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        self.listener.sasl.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// The secret that gateways must know; `None` where it is not set.
    pub fn link_secret(&self) -> Option<LinkSecret> {
        LinkSecret::from_hex(&self.listener.link_secret.0)
    }

    /// How requests are authorized.
    pub fn authorizer(&self) -> AuthorizerSettings {
        let users = self.security.super_users.iter();
        let super_users: BTreeSet<Principal> =
            users.filter_map(|user| Principal::parse(user).ok()).collect();
        let open = self.security.allow_everyone_if_no_acl_found;
        let listener = &self.listener;
        let anonymous_only = listener.sasl.is_empty() && listener.link.is_empty();
        AuthorizerSettings {
            super_users,
            allow_everyone_if_no_acl_found: open.unwrap_or(anonymous_only),
        }
    }

    /// The limits of what clients can take.
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

    /// The settings of the handlers.
    pub fn handlers(&self) -> BrokerSettings {
        BrokerSettings {
            configs: self.broker_config().expect("settings were checked when they were read"),
            authorizer: Some(self.authorizer()),
            fetch_memory_bytes: self.limits.fetch_bytes,
            catch_up_memory_bytes: self.limits.catch_up_fetch_bytes,
            ..BrokerSettings::default()
        }
    }

    /// The settings by the names of Kafka's broker configs, as DescribeConfigs reports them.
    pub(super) fn broker_config(&self) -> Result<BrokerConfig, Problem> {
        let unset = Self::default().kafka_names();
        let mut fixed = Overrides::new();
        for ((key, name, value), (.., default)) in self.kafka_names().into_iter().zip(unset) {
            // Only what differs from Kafka's default is set, so that other configs show as
            // defaults.
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

    /// The settings that Kafka has under another name: our name, Kafka's name, and the value.
    fn kafka_names(&self) -> [(&'static str, &'static str, String); 16] {
        let (topics, groups, limits) = (&self.topics, &self.groups, &self.limits);
        let offsets_check = groups.offsets_retention_check_interval_ms.to_string();
        [
            ("broker.node_id", "node.id", self.broker.node_id.to_string()),
            ("broker.rack", "broker.rack", self.broker.rack.clone()),
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_the_parts_are_the_documented_ones() {
        let settings = Settings::default();
        let engine = settings.engine("");
        // Where our default differs from Kafka's, it is reported as a static config.
        let configs = engine.configs.clone();
        let place = engine.place.clone();
        let of_parts = EngineSettings { configs, place, ..EngineSettings::new("local") };
        assert_eq!(format!("{engine:?}"), format!("{of_parts:?}"));
        assert_eq!(settings.server_limits(), ServerLimits::default());
        assert_eq!(settings.handlers().fetch_memory_bytes, 256 << 20);
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
