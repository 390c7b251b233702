//! The stored formats. The samples were written by the release that introduced each version; they
//! are never changed, only added to.
#![allow(clippy::disallowed_methods, reason = "real files and processes are what is tested")]

use std::path::{Path, PathBuf};

use freshet_access::types::{
    AclBinding, Operation, PatternType, Permission, ResourceType, ScramCredential, ScramMechanism,
};
use freshet_metadata::schema::cell::{
    BrokerStatus, CellNote, ClusterSpec, ClusterStatus, Phase, Sample, SpecState, WakeRequest,
};
use freshet_metadata::schema::{
    AclRecord, AdditionRecord, BrokerConfigRecord, BrokerPlace, ChangeRecord, ClusterRecord,
    ControllerTerm, CounterRecord, DeletedTopicRecord, Exclusion, Extent, HiddenTopicRecord,
    IncarnationRecord, IncarnationState, Key, LimitsRecord, PartitionRecord, ProducerIdRecord,
    QuotaEntity, QuotaEntityType, QuotaKey, QuotaRecord, Record, RefusalRecord, Retention,
    RetentionHistory, ScramRecord, SealedEnd, SlotRecord, ThrottleRecord, TopicNameRecord,
    TopicRecord, WantedLeaderRecord, decode, encode,
};
use freshet_metadata::store::Change;
use freshet_metadata::{MetadataStore, MetadataView, SqliteStore};
use freshet_wire::ids::{Incarnation, TopicId};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

/// Reads a sample and finds in it what was written; and, as long as its version is the one that is
/// written now, the same bytes are written again.
fn assert_sample<R: Record + PartialEq + std::fmt::Debug>(file: &str, expected: &R) {
    let sample = std::fs::read(samples().join("v1").join(file)).unwrap();
    let sample = sample.trim_ascii_end();
    let read: R = decode(file, sample).unwrap();
    assert_eq!(&read, expected, "{file}");
    if R::VERSION == 1 {
        let written = String::from_utf8(encode(expected).to_vec()).unwrap();
        assert_eq!(written, String::from_utf8_lossy(sample), "{file}");
    }
}

fn topic_id() -> TopicId {
    TopicId::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef)
}

fn end() -> SealedEnd {
    SealedEnd { file: 3, sequence: 1_234_567 }
}

fn incarnation(state: IncarnationState, sealed_end: Option<SealedEnd>) -> IncarnationRecord {
    let started_at_ms = 1_700_000_000_123;
    IncarnationRecord {
        state,
        slot: 2,
        sealed_end,
        started_at_ms,
        ended_at_ms: None,
        host: "host-1".to_owned(),
        place: BrokerPlace::default(),
    }
}

#[test]
fn cluster_and_incarnation_samples_are_read() {
    let cluster = ClusterRecord {
        cluster_id: "ASNFZ4mrTe-BI0VniavN7w".to_owned(),
        created_at_ms: 1_700_000_000_000,
        scale: 3,
        decoy_secret: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".to_owned(),
    };
    assert_sample("cluster.json", &cluster);
    assert_sample("counter.json", &CounterRecord { next: 18 });
    assert_sample("term.json", &ControllerTerm { term: 7, incarnation: Incarnation(17) });
    for (file, state, sealed_end) in [
        ("incarnation_live.json", IncarnationState::Live, None),
        ("incarnation_fenced.json", IncarnationState::Fenced, None),
        ("incarnation_sealed.json", IncarnationState::Sealed, Some(end())),
        ("incarnation_closed.json", IncarnationState::Closed, Some(end())),
    ] {
        assert_sample(file, &incarnation(state, sealed_end));
    }
    let place = BrokerPlace {
        address: "10.0.0.7:9094".to_owned(),
        kafka: "10.0.0.7:9092".to_owned(),
        link: "10.0.0.7:9093".to_owned(),
        zone: "zone-b".to_owned(),
        release: "0.1.0".to_owned(),
    };
    let ended_at_ms = Some(1_700_000_000_999);
    let closed = incarnation(IncarnationState::Closed, Some(end()));
    let placed = IncarnationRecord { ended_at_ms, place, ..closed };
    assert_sample("incarnation_placed.json", &placed);
    assert_sample("slot.json", &SlotRecord { incarnation: Incarnation(17) });
    assert_sample("wanted_leader.json", &WantedLeaderRecord { slot: 2 });
    assert_sample("producer_id.json", &ProducerIdRecord { next_producer_id: 42_000 });
    let configs = [("log.retention.ms".to_owned(), "3600000".to_owned())].into();
    let config = BrokerConfigRecord { configs, changed_at_ms: 0 };
    assert_sample("broker_config.json", &config);
    let changed = BrokerConfigRecord { changed_at_ms: 1_700_000_000_456, ..config };
    assert_sample("broker_config_changed.json", &changed);
}

fn topic() -> TopicRecord {
    TopicRecord {
        id: topic_id(),
        name: "orders.v1".to_owned(),
        partitions: 12,
        replication_factor: 3,
        internal: false,
        created_at_ms: 1_700_000_000_456,
        configs: [
            ("cleanup.policy".to_owned(), "compact".to_owned()),
            ("retention.ms".to_owned(), "-1".to_owned()),
        ]
        .into(),
        partition_counts: Vec::new(),
        deletions: Vec::new(),
        retention: None,
    }
}

#[test]
fn topic_samples_are_read() {
    let topic = topic();
    assert_sample("topic.json", &topic);
    let extended = topic.extended(15, 1_700_000_000_500);
    assert_sample("topic_extended.json", &extended);
    let hidden = HiddenTopicRecord {
        topic: extended.clone(),
        hidden_at_ms: 1_700_000_000_999,
        restorable_until_ms: Some(1_700_604_800_999),
    };
    assert_sample("shelved_topic.json", &hidden);
    let orphaned = HiddenTopicRecord { restorable_until_ms: None, ..hidden.clone() };
    assert_sample("shelved_topic_orphaned.json", &orphaned);
    let deletions = vec![(1_700_000_000_600, 1_700_000_000_700)];
    let restored = TopicRecord { deletions, ..extended.clone() };
    assert_sample("topic_restored.json", &restored);
    let deleted = DeletedTopicRecord::of(&extended, 1_700_000_000_999);
    assert_sample("deleted_topic_with_history.json", &deleted);
    assert_sample("topic_id.json", &TopicNameRecord { name: "orders.v1".to_owned() });
    let (name, deleted_at_ms) = ("orders.v1".to_owned(), 1_700_000_000_789);
    let bare = DeletedTopicRecord { name, deleted_at_ms, ..DeletedTopicRecord::default() };
    let sample = std::fs::read(samples().join("v1/deleted_topic.json")).unwrap();
    assert_eq!(decode::<DeletedTopicRecord>("", sample.trim_ascii_end()), Ok(bare));
}

#[test]
fn the_sample_of_a_topics_rules_is_read() {
    let by_size = Exclusion {
        since_ms: 1_700_000_000_456,
        until_ms: 1_700_000_000_750,
        older_than_ms: None,
        bytes: Some(1 << 20),
        asleep_after: Some(Incarnation(17)),
    };
    let by_age = Exclusion {
        since_ms: 1_700_000_000_750,
        until_ms: 1_700_000_000_800,
        older_than_ms: Some(1_699_996_400_800),
        bytes: None,
        asleep_after: None,
    };
    let history = RetentionHistory {
        since_ms: 1_700_000_000_800,
        before: Retention { ms: Some(3_600_000), bytes: None },
        excluded: vec![by_size, by_age],
    };
    let deletions = vec![(1_700_000_000_600, 1_700_000_000_700)];
    let extended = topic().extended(15, 1_700_000_000_500);
    let retention = Some(history);
    assert_sample("topic_retention.json", &TopicRecord { deletions, retention, ..extended });
}

#[test]
fn samples_of_traffic_and_changes_are_read() {
    let reason = "the budget is used up".to_owned();
    let of_produce = RefusalRecord { reason: reason.clone(), fetch: false };
    assert_sample("produce_suspension.json", &of_produce);
    assert_sample("refusal.json", &RefusalRecord { fetch: true, ..of_produce });
    assert_sample("throttle.json", &ThrottleRecord { reason, bytes_per_s: 1_048_576 });
    let entity =
        [(QuotaEntityType::User, Some("alice".to_owned())), (QuotaEntityType::ClientId, None)];
    let values = [(QuotaKey::ProducerByteRate, 1_048_576.0), (QuotaKey::RequestPercentage, 12.5)];
    let quota = QuotaRecord { entity: QuotaEntity(entity.into()), values: values.into() };
    assert_sample("quota.json", &quota);
    let change = ChangeRecord {
        sequence: 7,
        at_ms: 1_700_000_000_999,
        principal: "User:alice".to_owned(),
        client_id: "rdkafka".to_owned(),
        address: "192.0.2.1".to_owned(),
        connection: String::new(),
        action: "topic.create".to_owned(),
        target_type: "topic".to_owned(),
        target: "orders.v1".to_owned(),
        detail: [("partitions".to_owned(), "12".to_owned())].into(),
    };
    assert_sample("change.json", &change);
    let connection = "con_0123456789abcdef".to_owned();
    assert_sample("change_through_gateway.json", &ChangeRecord { connection, ..change });
}

#[test]
fn partition_samples_are_read() {
    let extent = |epoch, incarnation, end| Extent { epoch, incarnation, end };
    let partition = PartitionRecord {
        leader: Some(Incarnation(17)),
        epoch: 5,
        extents: vec![extent(3, Incarnation(11), Some(end())), extent(5, Incarnation(17), None)],
        manifest: None,
    };
    assert_sample("partition.json", &partition);
    let unled = PartitionRecord::new(None, 0);
    assert_sample("partition_without_leader.json", &unled);
}

#[test]
fn limit_samples_are_read() {
    let limits = LimitsRecord {
        topics: Some(2_000),
        partitions: Some(4_000),
        deleted_topics: Some(20_000),
        acls: Some(2_000),
        credentials: Some(200),
        quotas: Some(1_000),
        groups: Some(2_000),
        group_members: Some(1_000),
        group_bytes: Some(64 << 20),
        unbilled_bytes_per_second: Some(4 << 20),
        changes_per_second: Some(10),
        usage_pairs_per_minute: Some(2000),
    };
    assert_sample("limits.json", &limits);
    assert_sample("addition.json", &AdditionRecord {});
}

#[test]
fn acl_and_user_samples_are_read() {
    let binding = AclBinding {
        resource_type: ResourceType::TransactionalId,
        resource_name: "orders-".to_owned(),
        pattern_type: PatternType::Prefixed,
        principal: "User:alice".to_owned(),
        host: "*".to_owned(),
        operation: Operation::DescribeConfigs,
        permission: Permission::Allow,
    };
    assert_sample("acl.json", &AclRecord { binding });
    let credential = ScramCredential {
        salt: "W22ZaJ0SNY7soEsUEjb6gQ==".to_owned(),
        iterations: 4096,
        stored_key: "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=".to_owned(),
        server_key: "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=".to_owned(),
    };
    let (mechanism, user) = (ScramMechanism::Sha256, "alice".to_owned());
    assert_sample("scram.json", &ScramRecord { mechanism, user, credential });
}

#[test]
fn samples_of_a_cell_are_read() {
    let spec = ClusterSpec {
        id: "cl_abcdefghijklmnopqrst".to_owned(),
        name: "orders".to_owned(),
        organization_id: "org_abcdefghijklmnopqrst".to_owned(),
        generation: 7,
        state: SpecState::Active,
        scale: 2,
        idle_timeout_ms: 300_000,
        ports: vec![9092, 9093],
        host: "orders-1a".to_owned(),
        connections_max: 1000,
        wakes_per_minute_max: 6,
        deletions: Vec::new(),
    };
    assert_sample("cell_spec.json", &spec);
    let deletions = vec![(1_700_000_000_000, Some(1_700_000_000_500)), (1_700_000_000_900, None)];
    assert_sample("cell_spec_with_deletions.json", &ClusterSpec { deletions, ..spec });
    let broker = BrokerStatus {
        slot: 0,
        link: "127.0.0.1:40001".to_owned(),
        kafka: "127.0.0.1:40002".to_owned(),
        metrics: "127.0.0.1:40003".to_owned(),
        pid: Some(4711),
    };
    let status = ClusterStatus {
        observed_generation: 7,
        phase: Phase::Running,
        since_ms: 1_700_000_000_123,
        brokers: vec![broker.clone(), BrokerStatus { slot: 1, pid: None, ..broker }],
        connections: 12,
        restarts: 1,
        message: "slot 1 was started anew".to_owned(),
        started_for: String::new(),
    };
    assert_sample("cell_status.json", &status);
    let started_for = "control-plane op_1 req_1".to_owned();
    assert_sample("cell_status_started_for.json", &ClusterStatus { started_for, ..status });
    let (requested_at_ms, by) = (1_700_000_000_124, "gateway".to_owned());
    assert_sample("cell_wake.json", &WakeRequest { requested_at_ms, by });
    let content = serde_json::json!({ "groups": [{ "group": "g", "lag_seconds": 1.5 }] });
    let content = content.as_object().unwrap().clone();
    assert_sample("cell_sample.json", &Sample::new(1_700_000_000_125, content));
    let removal = serde_json::json!({ "break_glass": "", "purged_at_ms": 1_700_000_000_126_i64 });
    assert_sample("cell_removal.json", &CellNote::new(removal.as_object().unwrap().clone()));
    let health = serde_json::json!({ "held": false, "told_at_ms": 1_700_000_000_127_i64 });
    assert_sample("cell_health.json", &CellNote::new(health.as_object().unwrap().clone()));
}

/// The file holds samples as above under their keys: one topic of one partition, and a key that
/// was removed again.
#[tokio::test]
async fn sample_database_is_read_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    std::fs::copy(samples().join("v1/metadata.sqlite"), &path).unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    let entry = store.get("term").await.unwrap().unwrap();
    let term: ControllerTerm = decode(&entry.key, &entry.value).unwrap();
    assert_eq!((term.term, entry.revision), (7, 3));
    let page = store.range("", None, usize::MAX).await.unwrap();
    assert_eq!((page.entries.len(), page.revision), (13, 13));
    let mut watch = store.watch("removed", 0).await.unwrap();
    let changes = watch.next().await.unwrap();
    let removed = [
        Change { key: "removed".to_owned(), value: Some("x".into()), revision: 12 },
        Change { key: "removed".to_owned(), value: None, revision: 13 },
    ];
    assert_eq!(changes, removed);
    let (view, _) = MetadataView::open(std::sync::Arc::new(store.clone())).await.unwrap();
    let snapshot = view.snapshot();
    let topic = snapshot.topics.by_name("orders.v1").unwrap();
    assert_eq!((topic.record.id, topic.partitions.len()), (topic_id(), 1));
    assert_eq!((snapshot.acls.len(), snapshot.scram.len()), (1, 1));
    let acl = Key::of_acl(&snapshot.acls[0]).to_string();
    assert!(store.get(&acl).await.unwrap().is_some(), "an ACL lies under its key");
    let put = freshet_metadata::store::Transaction::new().put("term", "x");
    assert_eq!(store.commit(put).await.unwrap(), 14);
}
