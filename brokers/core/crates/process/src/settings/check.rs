//! Checks settings for values with which a broker could not work.

use std::str::FromStr;

use freshet_settings::parse::{Problem, ProcessSettings, above_zero};

use super::Settings;
use freshet_access::principal::Principal;
use freshet_access::sasl::Mechanism;
use freshet_storage::lane::block::ALIGNMENT;
use freshet_wire::text::{is_loopback, is_unspecified, split_address};

/// The smallest lane file: a checkpoint and a block.
const FILE_BYTES_MIN: u64 = 64 << 10;
/// The largest that a write may be cut at.
const WRITE_BYTES_MAX: usize = 64 << 20;
impl ProcessSettings for Settings {
    fn problem(&self) -> Option<Problem> {
        self.storage_problem()
            .or_else(|| self.listener_problem())
            .or_else(|| self.security_problem())
            .or_else(|| self.lane_problem())
            .or_else(|| self.limit_problem())
            .or_else(|| self.topic_problem())
            .or_else(|| self.log.problem())
            .or_else(|| self.threads.problem())
            .or_else(|| self.broker_config().err())
    }
}

impl Settings {
    fn storage_problem(&self) -> Option<Problem> {
        let storage = &self.storage;
        let missing = [
            ("storage.dfs", &storage.dfs, "the folder of the shared file system"),
            ("storage.bucket", &storage.bucket, "the folder of the object store, or a place in S3"),
            (
                "storage.metadata",
                &storage.metadata,
                "the file of the SQLite metadata store, or an address of etcd",
            ),
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
            ("listener.link", &listener.link, true),
            ("listener.brokers", &listener.brokers, true),
        ];
        for (key, value, may_be_empty) in addresses {
            if !(may_be_empty && value.is_empty()) && split_address(value).is_none() {
                return Some(Problem { key, message: "must be host:port".to_owned() });
            }
        }
        let needs_secret = !listener.link.is_empty() || !listener.brokers.is_empty();
        if needs_secret && self.link_secret().is_none() {
            let message = "must have at least 32 hexadecimal digits where listener.link or \
                           listener.brokers is set";
            return Some(Problem { key: "listener.link_secret", message: message.to_owned() });
        }
        if is_unspecified(&listener.brokers) {
            let message = "must name an address by which the other brokers reach this one";
            return Some(Problem { key: "listener.brokers", message: message.to_owned() });
        }
        if listener.super_users_only && listener.sasl.is_empty() {
            let message = "must be false where listener.sasl names no mechanism: clients that do \
                           not authenticate are no super users";
            let key = "listener.super_users_only";
            return Some(Problem { key, message: message.to_owned() });
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
        if lane.queue_bytes_max == 0 {
            return Some(above_zero("lane.queue_bytes_max"));
        }
        let positive = [
            ("lane.roll_after_ms", lane.roll_after_ms),
            ("lane.slow_commit_ms", lane.slow_commit_ms),
            ("jobs.retention_interval_ms", self.jobs.retention_interval_ms),
            ("jobs.sweep_interval_ms", self.jobs.sweep_interval_ms),
            ("jobs.rewrite_interval_ms", self.jobs.rewrite_interval_ms),
            ("jobs.rewrite_bytes_per_s", self.jobs.rewrite_bytes_per_s),
            ("jobs.compaction_keys_bytes", self.jobs.compaction_keys_bytes as u64),
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
            ("limits.decompression_bytes", limits.decompression_bytes),
            ("limits.fetch_bytes", limits.fetch_bytes),
            ("limits.catch_up_fetch_bytes", limits.catch_up_fetch_bytes),
            ("reads.loads_at_once", self.reads.loads_at_once),
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
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn links_and_other_brokers_need_a_secret_that_is_long_enough() {
        let mut settings = Settings::default();
        for (link, brokers) in [("127.0.0.1:0", ""), ("", "127.0.0.1:0")] {
            settings.listener.link = link.into();
            settings.listener.brokers = brokers.into();
            for wrong in ["", "ab", &"x".repeat(32), &"0".repeat(31)] {
                settings.listener.link_secret = super::super::Secret(wrong.into());
                assert!(settings.listener_problem().is_some(), "{wrong}");
            }
        }
        settings.listener.link_secret = super::super::Secret("0a".repeat(16));
        assert!(settings.listener_problem().is_none());
        assert!(!format!("{settings:?}").contains("0a0a"));
    }

    #[test]
    fn other_brokers_get_an_address_that_they_can_reach() {
        let mut settings = Settings::default();
        settings.listener.link_secret = super::super::Secret("0a".repeat(16));
        for wrong in ["0.0.0.0:7000", "[::]:7000", "7000"] {
            settings.listener.brokers = wrong.into();
            assert!(settings.listener_problem().is_some(), "{wrong}");
        }
        for right in ["10.0.0.7:7000", "broker-0.local:0", "[fd00::7]:7000"] {
            settings.listener.brokers = right.into();
            assert!(settings.listener_problem().is_none(), "{right}");
        }
    }
}
