//! Every setting of a gateway, as its TOML file has them.
//!
//! `docs/reference/gateway-settings.md` describes each; a test holds that page and these defaults
//! together. Sizes are in bytes, times in milliseconds, and the names say so.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::balancers::Balancers;
use super::limits::{GateLimits, NewConnections};
use freshet_access::sasl::Mechanism;
use freshet_settings::log::LogSettings;
use freshet_settings::parse::{Problem, ProcessSettings, above_zero};
use freshet_settings::threads::ThreadSettings;
use freshet_wire::text::{is_loopback, split_address};

/// A gateway's settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewaySettings {
    /// What it serves.
    pub cell: CellSection,
    /// Where it listens.
    pub listener: ListenerSection,
    /// How it proves itself to clients.
    pub tls: TlsSection,
    /// Limits on clients.
    pub limits: LimitSection,
    /// Clusters that sleep.
    pub wake: WakeSection,
    /// What it writes to standard error.
    pub log: LogSettings,
    /// How many threads work.
    pub threads: ThreadSettings,
}

/// `[cell]`. The first two must be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CellSection {
    /// File of the SQLite metadata store, or an address of etcd.
    pub metadata: String,
    /// File of the cell's secret.
    pub secret: String,
    /// The zone that the gateway runs in, as brokers have it in `broker.rack`; empty: unknown.
    pub zone: String,
    /// How often the gateway checks that the users of its connections still exist.
    pub users_interval_ms: u64,
}

impl Default for CellSection {
    fn default() -> Self {
        let unset = String::new;
        Self { metadata: unset(), secret: unset(), zone: unset(), users_interval_ms: 2_000 }
    }
}

/// `[listener]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListenerSection {
    /// Loopback host of the listeners without TLS, one for each port of a cluster; empty: none.
    pub plain: String,
    /// `host:port` of the listener with TLS; empty: none.
    pub tls: String,
    /// The domain of the clusters' names.
    pub domain: String,
    /// The port that answers to TLS clients name; 0: the port that is listened on.
    pub tls_advertised_port: u16,
    /// Networks of balancers, whose connections begin with a header of the PROXY protocol.
    pub balancers: Vec<String>,
    /// Mechanisms offered.
    pub sasl: Vec<String>,
    /// `host:port` for `/metrics` and `/healthz`; empty: none.
    pub metrics: String,
}

impl Default for ListenerSection {
    fn default() -> Self {
        Self {
            plain: "127.0.0.1".into(),
            tls: String::new(),
            domain: "kafka.localhost".into(),
            tls_advertised_port: 0,
            balancers: Vec::new(),
            sasl: Mechanism::ALL.iter().map(|mechanism| mechanism.name().to_owned()).collect(),
            metrics: "127.0.0.1:0".into(),
        }
    }
}

/// `[tls]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSection {
    /// Folder of the certificate authority that the gateway makes where no certificate is set.
    pub folder: String,
    /// File of a certificate with its chain, in PEM.
    pub certificate: String,
    /// File of its private key, in PEM.
    pub key: String,
    /// How often the files are checked for changes.
    pub reload_interval_ms: u64,
}

impl Default for TlsSection {
    fn default() -> Self {
        let unset = String::new;
        Self { folder: unset(), certificate: unset(), key: unset(), reload_interval_ms: 5_000 }
    }
}

/// `[limits]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSection {
    /// Connections at a time.
    pub connections_max: usize,
    /// Connections at a time from one address.
    pub connections_per_address_max: usize,
    /// New connections a second from one address, in the long run. On the loopback, where all
    /// clients have one address: to the port of one cluster.
    pub connections_per_s_per_address: u32,
    /// New connections from one address at once; on the loopback, to the port of one cluster.
    pub connections_at_once_per_address: u32,
    /// Connections at a time that have not authenticated.
    pub unauthenticated_connections_max: usize,
    /// Bytes that a client may send before it has authenticated.
    pub unauthenticated_bytes_max: usize,
    /// Bytes that all clients together may have in memory before they have authenticated. Each has
    /// its own part of them, and the rest is shared out by address and by cluster.
    pub unauthenticated_bytes: usize,
    /// How long a client may take to authenticate, TLS included.
    pub authentication_timeout_ms: u64,
    /// How long connections may go on once the gateway stops.
    pub drain_timeout_ms: u64,
}

impl Default for LimitSection {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_address_max: 10_000,
            connections_per_s_per_address: 200,
            connections_at_once_per_address: 1_000,
            unauthenticated_connections_max: 1_000,
            unauthenticated_bytes_max: 512 << 10,
            unauthenticated_bytes: 64 << 20,
            authentication_timeout_ms: 10_000,
            drain_timeout_ms: 5_000,
        }
    }
}

/// `[wake]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WakeSection {
    /// How long a client is held until its broker is reached.
    pub hold_ms: u64,
}

impl Default for WakeSection {
    fn default() -> Self {
        Self { hold_ms: 30_000 }
    }
}

impl ProcessSettings for GatewaySettings {
    fn problem(&self) -> Option<Problem> {
        self.cell_problem()
            .or_else(|| self.listener_problem())
            .or_else(|| self.sasl_problem())
            .or_else(|| self.tls_problem())
            .or_else(|| self.number_problem())
            .or_else(|| self.log.problem())
            .or_else(|| self.threads.problem())
    }
}

impl GatewaySettings {
    fn cell_problem(&self) -> Option<Problem> {
        let missing = [
            (
                "cell.metadata",
                &self.cell.metadata,
                "the file of the SQLite metadata store, or an address of etcd",
            ),
            ("cell.secret", &self.cell.secret, "the file of the cell's secret"),
        ];
        let (key, _, what) = missing.into_iter().find(|(_, value, _)| value.is_empty())?;
        Some(Problem { key, message: format!("must be set: {what}") })
    }

    fn listener_problem(&self) -> Option<Problem> {
        let listener = &self.listener;
        let problem = |key, message: &str| Some(Problem { key, message: message.to_owned() });
        if !listener.plain.is_empty() && !is_loopback(&self.plain_address(0)) {
            return problem(
                "listener.plain",
                "passwords are in clear text there: it must be a host of the loopback",
            );
        }
        for (key, value) in
            [("listener.tls", &listener.tls), ("listener.metrics", &listener.metrics)]
        {
            if !value.is_empty() && split_address(value).is_none() {
                return problem(key, "must be host:port");
            }
        }
        if let Err(wrong) = Balancers::parse(&listener.balancers) {
            let message = format!("must be networks such as 10.0.0.0/8, which {wrong:?} is not");
            return problem("listener.balancers", &message);
        }
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        let domain = &listener.domain;
        let good = domain.len() <= 180
            && domain.chars().all(allowed)
            && domain
                .split('.')
                .all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'));
        if good { None } else { problem("listener.domain", "must be a name in lower case") }
    }

    fn sasl_problem(&self) -> Option<Problem> {
        let key = "listener.sasl";
        if self.listener.sasl.is_empty() {
            let message = "a gateway lets nobody in who has not authenticated".to_owned();
            return Some(Problem { key, message });
        }
        let unknown = self.listener.sasl.iter().find_map(|name| Mechanism::from_str(name).err())?;
        Some(Problem { key, message: unknown.to_string() })
    }

    fn tls_problem(&self) -> Option<Problem> {
        let tls = &self.tls;
        let problem = |key, message: &str| Some(Problem { key, message: message.to_owned() });
        if tls.certificate.is_empty() != tls.key.is_empty() {
            return problem("tls.key", "a certificate and its key must be set together");
        }
        if !self.listener.tls.is_empty() && tls.certificate.is_empty() && tls.folder.is_empty() {
            return problem("tls.folder", "must be set where listener.tls is and no certificate");
        }
        None
    }

    fn number_problem(&self) -> Option<Problem> {
        let limits = &self.limits;
        let sizes = [
            ("limits.connections_max", limits.connections_max),
            ("limits.connections_per_address_max", limits.connections_per_address_max),
            ("limits.unauthenticated_connections_max", limits.unauthenticated_connections_max),
            ("limits.unauthenticated_bytes_max", limits.unauthenticated_bytes_max),
            ("limits.unauthenticated_bytes", limits.unauthenticated_bytes),
        ];
        let times = [
            ("cell.users_interval_ms", self.cell.users_interval_ms),
            ("tls.reload_interval_ms", self.tls.reload_interval_ms),
            ("limits.connections_per_s_per_address", limits.connections_per_s_per_address.into()),
            (
                "limits.connections_at_once_per_address",
                limits.connections_at_once_per_address.into(),
            ),
            ("limits.authentication_timeout_ms", limits.authentication_timeout_ms),
            ("wake.hold_ms", self.wake.hold_ms),
        ];
        let sizes = sizes.into_iter().filter(|(_, value)| *value == 0).map(|(key, _)| key);
        let times = times.into_iter().filter(|(_, value)| *value == 0).map(|(key, _)| key);
        sizes.chain(times).next().map(above_zero)
    }

    /// `host:port` of a listener without TLS.
    pub(super) fn plain_address(&self, port: u16) -> String {
        host_and_port(&self.listener.plain, port)
    }

    /// Mechanisms that are offered.
    pub(super) fn mechanisms(&self) -> Vec<Mechanism> {
        self.listener.sasl.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// Networks of balancers.
    pub(super) fn balancers(&self) -> Balancers {
        Balancers::parse(&self.listener.balancers).expect("settings were checked before")
    }

    /// Bounds on connections.
    pub(super) fn gate(&self) -> GateLimits {
        let limits = &self.limits;
        GateLimits {
            connections: limits.connections_max,
            per_address: limits.connections_per_address_max,
            unauthenticated: limits.unauthenticated_connections_max,
            unauthenticated_bytes: limits.unauthenticated_bytes,
            rate: NewConnections {
                per_s: limits.connections_per_s_per_address,
                at_once: limits.connections_at_once_per_address,
            },
        }
    }

    /// How long a client may take to authenticate.
    pub(super) fn authentication_time(&self) -> Duration {
        Duration::from_millis(self.limits.authentication_timeout_ms)
    }

    /// How long connections may go on once the gateway stops.
    pub fn drain_time(&self) -> Duration {
        Duration::from_millis(self.limits.drain_timeout_ms)
    }
}

/// `host:port`, an IPv6 address in brackets.
pub(super) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str = "[cell]\nmetadata = 'm'\nsecret = 's'\n";

    fn message(rest: &str) -> String {
        GatewaySettings::from_toml(&format!("{CELL}{rest}"), &[]).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_line_and_key() {
        for (rest, start) in [
            ("[listener]\nplain = '0.0.0.0'\n", "line 5: listener.plain: "),
            ("[listener]\nplain = 'example.org'\n", "line 5: listener.plain: "),
            ("[listener]\ntls = '0.0.0.0:1'\n", "tls.folder: "),
            ("[listener]\ntls = 'x'\n", "line 5: listener.tls: must be host:port"),
            ("[listener]\ndomain = 'Kafka.'\n", "line 5: listener.domain: "),
            ("[listener]\nbalancers = ['10.0.0.0/33']\n", "line 5: listener.balancers: "),
            ("[listener]\nsasl = []\n", "line 5: listener.sasl: "),
            ("[listener]\nsasl = ['GSSAPI']\n", "line 5: listener.sasl: unknown SASL mechanism"),
            ("[tls]\ncertificate = 'c'\n", "tls.key: "),
            ("[limits]\n\nconnections_max = 0\n", "line 6: limits.connections_max: "),
            ("[wake]\nhold_ms = 0\n", "line 5: wake.hold_ms: "),
            ("[wake]\nhold = 0\n", "line 5: wake.hold: unknown field"),
            ("[log]\nlevel = 'loud'\n", "line 5: log.level: "),
        ] {
            let said = message(rest);
            assert!(said.starts_with(start), "{rest}: {said}");
        }
        let said = GatewaySettings::from_toml("", &[]).unwrap_err().to_string();
        assert!(said.starts_with("cell.metadata: must be set"), "{said}");
    }

    #[test]
    fn loopback_hosts_of_either_kind_are_taken() {
        for host in ["127.0.0.1", "127.9.9.9", "::1", "localhost", ""] {
            let text = format!("{CELL}[listener]\nplain = '{host}'\n");
            assert!(GatewaySettings::from_toml(&text, &[]).is_ok(), "{host}");
        }
        assert_eq!(host_and_port("::1", 9092), "[::1]:9092");
    }
}
