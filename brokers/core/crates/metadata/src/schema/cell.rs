//! The records of a cell, all at version 1: the specifications that the control plane writes, and
//! what the keeper and the gateways report of the clusters. They lie in the scope [`CELL_SCOPE`] of
//! the cell's store, beside those of the clusters. Field names are part of the format.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Record, SchemaError};

/// The scope of a cell's own records; no cluster may have this name.
pub const CELL_SCOPE: &str = "cell";
/// The most characters of a cluster's id.
pub const CLUSTER_ID_MAX: usize = 128;

/// The kinds of records that a cell has of each cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CellKind {
    /// [`ClusterSpec`].
    Spec,
    /// [`ClusterStatus`].
    Status,
    /// [`WakeRequest`].
    Wake,
    /// [`CellNote`]: that the cluster is purged, which the control plane writes.
    Removal,
    /// [`CellNote`]: how the brokers of the cell are, which the keeper writes under its own name.
    Health,
    /// [`Sample`], which only an earlier release wrote.
    Sample,
}

impl CellKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Spec, Self::Status, Self::Wake, Self::Removal, Self::Health, Self::Sample];

    /// The prefix of the kind's keys.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Spec => "spec/",
            Self::Status => "status/",
            Self::Wake => "wake/",
            Self::Removal => "removal/",
            Self::Health => "health/",
            Self::Sample => "sample/",
        }
    }
}

/// A key in a cell's scope: `<kind>/<cluster id>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    /// The kind of its record.
    pub kind: CellKind,
    /// The cluster that it belongs to.
    pub cluster: String,
}

impl CellKey {
    /// The key of a kind of record of a cluster.
    #[must_use]
    pub fn new(kind: CellKind, cluster: &str) -> Self {
        Self { kind, cluster: cluster.to_owned() }
    }

    /// Reads a key. None where its kind is unknown, of a newer release.
    ///
    /// # Errors
    /// [`SchemaError::Key`] where the kind is known and the form is not.
    pub fn parse(key: &str) -> Result<Option<Self>, SchemaError> {
        for kind in CellKind::ALL {
            if let Some(cluster) = key.strip_prefix(kind.prefix()) {
                let key = check_cluster_id(cluster).map_err(|_| SchemaError::Key(key.to_owned()));
                return key.map(|()| Some(Self::new(kind, cluster)));
            }
        }
        Ok(None)
    }
}

impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.prefix(), self.cluster)
    }
}

/// Checks the id of a cluster in a cell: `[A-Za-z0-9._-]`, 1 to [`CLUSTER_ID_MAX`] characters, and
/// not the cell's own scope.
///
/// # Errors
/// The text says what is wrong.
pub fn check_cluster_id(id: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if id.is_empty() || id.len() > CLUSTER_ID_MAX || !id.chars().all(allowed) {
        return Err(format!("{id:?} as the id of a cluster"));
    }
    if id == CELL_SCOPE {
        return Err(format!("{id:?} is the cell's own scope, and no cluster"));
    }
    Ok(())
}

/// Whether a cluster is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecState {
    /// It may run.
    Active,
    /// It may not run; its data stays.
    Suspended,
    /// It may not run, and its data is being removed.
    Deleted,
}

/// `spec/<cluster id>`: what the control plane asks a cluster to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSpec {
    /// The cluster.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The organization that owns it.
    pub organization_id: String,
    /// Grows with each change; an older one never replaces a newer one.
    pub generation: u64,
    /// Whether it may run.
    pub state: SpecState,
    /// How many brokers it has when awake.
    pub scale: u32,
    /// It is put to sleep after this time without a client, in milliseconds.
    pub idle_timeout_ms: u64,
    /// The gateway's plain listeners on loopback: the bootstrap port, then one for each slot. A
    /// single port is slot 0's.
    pub ports: Vec<u16>,
    /// Its label in the names of TLS listeners.
    pub host: String,
    /// The most client connections at a time.
    pub connections_max: u32,
    /// The most wake requests of its clients in a minute.
    pub wakes_per_minute_max: u32,
    /// In which times it was deleted and could be restored, `[from, until)` in ms since 1970,
    /// ascending; the last may have no end yet. Nothing that it stores then is counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<(i64, Option<i64>)>,
}

impl Record for ClusterSpec {
    const KIND: &'static str = "cluster spec";

    fn check(&self) -> Result<(), String> {
        check_cluster_id(&self.id)?;
        if self.generation == 0 {
            return Err("generation 0".to_owned());
        }
        if self.scale == 0 {
            return Err("scale 0".to_owned());
        }
        let mut seen = BTreeSet::new();
        if let Some(port) = self.ports.iter().find(|port| **port == 0 || !seen.insert(**port)) {
            return Err(format!("port {port} among {:?}", self.ports));
        }
        check_deletions(&self.deletions)?;
        check_label(&self.host)
    }
}

/// Checks that the times follow each other and that only the last may lack its end.
fn check_deletions(deletions: &[(i64, Option<i64>)]) -> Result<(), String> {
    let mut free_from = Some(i64::MIN);
    for (from, until) in deletions {
        let follows = free_from.is_some_and(|free| free <= *from);
        if !follows || until.is_some_and(|until| until < *from) {
            return Err(format!("deletions {deletions:?}"));
        }
        free_from = *until;
    }
    Ok(())
}

/// A label of a DNS name (RFC 1035 section 2.3.1, digits in front allowed as by RFC 1123).
fn check_label(label: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = !label.is_empty() && label.len() <= 63 && label.chars().all(allowed);
    if !fits || label.starts_with('-') || label.ends_with('-') {
        return Err(format!("{label:?} as the host"));
    }
    Ok(())
}

/// What a cluster is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It has no brokers.
    Asleep,
    /// Its brokers start.
    Starting,
    /// Its brokers serve.
    Running,
    /// Its brokers stop.
    Stopping,
    /// Its brokers do not start; the keeper tries again.
    Failed,
}

/// Where a broker is reached inside the cell. Addresses are `host:port`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerStatus {
    /// The node id that it answers for.
    pub slot: u32,
    /// For gateways.
    pub link: String,
    /// The internal Kafka listener, for the control plane and the keeper.
    pub kafka: String,
    /// `/metrics` and `/healthz`.
    pub metrics: String,
    /// Its process, where the keeper's driver starts processes of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// `status/<cluster id>`: what the keeper sees of a cluster. Where there is none, it was never
/// started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// Generation of the spec that this is about.
    pub observed_generation: u64,
    /// Its phase.
    pub phase: Phase,
    /// Since when, milliseconds since 1970.
    pub since_ms: i64,
    /// Its brokers, by slot; those that serve while it is running.
    pub brokers: Vec<BrokerStatus>,
    /// Connections of clients.
    pub connections: u64,
    /// How often brokers were started anew since it woke up.
    pub restarts: u32,
    /// A text for people; may be empty.
    pub message: String,
    /// What its brokers were started for, for logs: who asked for the wake, by [`WakeRequest::by`],
    /// or the generation of the spec. Empty while it is asleep.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started_for: String,
}

impl Record for ClusterStatus {
    const KIND: &'static str = "cluster status";

    fn check(&self) -> Result<(), String> {
        let mut slots = BTreeSet::new();
        match self.brokers.iter().find(|broker| !slots.insert(broker.slot)) {
            Some(broker) => Err(format!("two brokers of slot {}", broker.slot)),
            None => Ok(()),
        }
    }
}

/// `wake/<cluster id>`: somebody wants the cluster to run. The keeper removes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeRequest {
    /// When, milliseconds since 1970.
    pub requested_at_ms: i64,
    /// Who requested it, for logs: a word for the kind of process, then ids of what caused the
    /// request.
    pub by: String,
}

impl Record for WakeRequest {
    const KIND: &'static str = "wake request";
}

/// `removal/<cluster id>` and `health/<name>`: what control plane and keeper write for each other.
/// What is in it is between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellNote {
    /// The record's version, read apart so that it is not among the other fields.
    #[serde(rename = "v", default = "note_version", skip_serializing)]
    version: u32,
    /// All other fields.
    #[serde(flatten)]
    pub content: Map<String, Value>,
}

fn note_version() -> u32 {
    CellNote::VERSION
}

impl CellNote {
    /// A note with these fields, of which `v` is dropped.
    #[must_use]
    pub fn new(mut content: Map<String, Value>) -> Self {
        content.remove("v");
        Self { version: Self::VERSION, content }
    }
}

impl Record for CellNote {
    const KIND: &'static str = "note";
}

/// `sample/<cluster id>`: groups, offsets and sizes as a keeper of an earlier release saw them, or
/// a note of that release. They are read and removed, and never written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The record's version, read apart so that it is not among the other fields.
    #[serde(rename = "v", default = "sample_version", skip_serializing)]
    version: u32,
    /// When, milliseconds since 1970.
    pub taken_at_ms: i64,
    /// All other fields.
    #[serde(flatten)]
    pub content: Map<String, Value>,
}

fn sample_version() -> u32 {
    Sample::VERSION
}

impl Sample {
    /// A sample with these fields, of which `v` and `taken_at_ms` are dropped.
    #[must_use]
    pub fn new(taken_at_ms: i64, mut content: Map<String, Value>) -> Self {
        content.retain(|name, _| name != "v" && name != "taken_at_ms");
        Self { version: Self::VERSION, taken_at_ms, content }
    }
}

impl Record for Sample {
    const KIND: &'static str = "sample";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::spec;
    use crate::schema::{decode, encode};

    #[test]
    fn keys_have_their_form_and_come_back() {
        for (kind, text) in [
            (CellKind::Spec, "spec/cl_1"),
            (CellKind::Status, "status/cl_1"),
            (CellKind::Wake, "wake/cl_1"),
            (CellKind::Removal, "removal/cl_1"),
            (CellKind::Health, "health/cl_1"),
            (CellKind::Sample, "sample/cl_1"),
        ] {
            let key = CellKey::new(kind, "cl_1");
            assert_eq!(key.to_string(), text);
            assert_eq!(CellKey::parse(text), Ok(Some(key)));
        }
        assert_eq!(CellKey::parse("colour/cl_1"), Ok(None));
        for bad in ["spec/", "spec/a/b", "wake/cell", "status/ä"] {
            assert_eq!(CellKey::parse(bad), Err(SchemaError::Key(bad.to_owned())));
        }
    }

    #[test]
    fn specs_that_cannot_be_meant_are_refused() {
        assert_eq!(spec("cl_1", 1).check(), Ok(()));
        let changes: [fn(&mut ClusterSpec); 13] = [
            |spec| spec.id.clear(),
            |spec| spec.id = "a/b".to_owned(),
            |spec| spec.id = CELL_SCOPE.to_owned(),
            |spec| spec.generation = 0,
            |spec| spec.scale = 0,
            |spec| spec.ports = vec![0],
            |spec| spec.ports = vec![9092, 9093, 9092],
            |spec| spec.host.clear(),
            |spec| spec.host = "a.b".to_owned(),
            |spec| spec.host = "-a".to_owned(),
            |spec| spec.deletions = vec![(10, None), (20, None)],
            |spec| spec.deletions = vec![(10, Some(20)), (19, None)],
            |spec| spec.deletions = vec![(10, Some(9))],
        ];
        for change in changes {
            let mut spec = spec("cl_1", 1);
            change(&mut spec);
            assert!(spec.check().is_err(), "{spec:?}");
        }
    }

    #[test]
    fn two_brokers_of_a_slot_are_refused() {
        let broker = BrokerStatus {
            slot: 0,
            link: "127.0.0.1:1".to_owned(),
            kafka: "127.0.0.1:2".to_owned(),
            metrics: "127.0.0.1:3".to_owned(),
            pid: None,
        };
        let mut status = ClusterStatus {
            observed_generation: 1,
            phase: Phase::Running,
            since_ms: 5,
            brokers: vec![broker.clone(), BrokerStatus { slot: 1, ..broker.clone() }],
            connections: 0,
            restarts: 0,
            message: String::new(),
            started_for: "gateway con_1".to_owned(),
        };
        assert_eq!(status.check(), Ok(()));
        status.brokers[1].slot = 0;
        assert_eq!(status.check(), Err("two brokers of slot 0".to_owned()));
    }

    #[test]
    fn note_keeps_whatever_is_in_it_and_one_version() {
        let value = br#"{"v":1,"purged_at_ms":7,"break_glass":""}"#;
        let note: CellNote = decode("removal/cl_1", value).unwrap();
        assert_eq!(note.content.keys().collect::<Vec<_>>(), ["break_glass", "purged_at_ms"]);
        assert_eq!(decode::<CellNote>("removal/cl_1", &encode(&note)).unwrap(), note);
        assert_eq!(CellNote::new(note.content.clone()), note);
        let newer = decode::<CellNote>("removal/cl_1", br#"{"v":2}"#).unwrap_err();
        assert!(matches!(newer, SchemaError::Newer { .. }), "{newer:?}");
    }

    #[test]
    fn sample_keeps_whatever_is_in_it_and_one_version() {
        let value =
            br#"{"v":1,"taken_at_ms":7,"groups":[{"group":"a"}],"topics":{"t":{"bytes":1}}}"#;
        let sample: Sample = decode("sample/cl_1", value).unwrap();
        assert_eq!(sample.taken_at_ms, 7);
        assert_eq!(sample.content.keys().collect::<Vec<_>>(), ["groups", "topics"]);
        assert_eq!(&encode(&sample)[..], &value[..]);
        let newer = decode::<Sample>("sample/cl_1", br#"{"v":2,"taken_at_ms":7}"#).unwrap_err();
        assert!(matches!(newer, SchemaError::Newer { .. }), "{newer:?}");
        let made = Sample::new(7, sample.content.clone());
        assert_eq!(made, sample);
    }
}
