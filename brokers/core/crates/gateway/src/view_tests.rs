//! Names and ports of clusters, and a view whose store goes away.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::testing::Switched;
use freshet_metadata::samples::spec;
use freshet_metadata::schema::cell::BrokerStatus;

fn view_of(specs: Vec<ClusterSpec>) -> CellView {
    let mut view = CellView::default();
    let change = |spec: ClusterSpec| CellChange {
        cluster: spec.id.clone(),
        revision: 1,
        record: CellRecord::Spec(Some(spec)),
    };
    view.apply(specs.into_iter().map(change).collect());
    view
}

fn cluster(id: &str, host: &str, ports: &[u16]) -> ClusterSpec {
    ClusterSpec { host: host.to_owned(), ports: ports.to_vec(), ..spec(id, 1) }
}

fn running(slots: &[u32]) -> ClusterStatus {
    let broker = |slot: &u32| BrokerStatus {
        slot: *slot,
        link: format!("127.0.0.1:{}", 7000 + slot),
        kafka: String::new(),
        metrics: String::new(),
        pid: None,
    };
    ClusterStatus {
        observed_generation: 1,
        phase: Phase::Running,
        since_ms: 0,
        brokers: slots.iter().map(broker).collect(),
        connections: 0,
        restarts: 0,
        message: String::new(),
        started_for: String::new(),
    }
}

fn target(cluster: &str, slot: Slot) -> Target {
    Target { cluster: cluster.into(), slot }
}

#[test]
fn names_lead_to_clusters_and_slots() {
    let view = view_of(vec![cluster("cl_1", "orders", &[]), cluster("cl_2", "b-side", &[])]);
    let of_name = |name: &str| view.of_name(name, "kafka.localhost");
    assert_eq!(of_name("orders.kafka.localhost"), Some(target("cl_1", Slot::Any)));
    assert_eq!(of_name("ORDERS.Kafka.Localhost"), Some(target("cl_1", Slot::Any)));
    assert_eq!(of_name("b12-orders.kafka.localhost"), Some(target("cl_1", Slot::Number(12))));
    assert_eq!(of_name("b-side.kafka.localhost"), Some(target("cl_2", Slot::Any)));
    assert_eq!(of_name("b0-b-side.kafka.localhost"), Some(target("cl_2", Slot::Number(0))));
    for unknown in [
        "",
        "kafka.localhost",
        ".kafka.localhost",
        "orders.localhost",
        "orderskafka.localhost",
        "other.kafka.localhost",
        "x.orders.kafka.localhost",
        "b-orders.kafka.localhost",
        "b+1-orders.kafka.localhost",
        "b99999999999-orders.kafka.localhost",
        "b1-.kafka.localhost",
        "orders.kafka.localhost.",
    ] {
        assert_eq!(of_name(unknown), None, "{unknown}");
    }
}

#[test]
fn no_cluster_gets_what_is_meant_for_another() {
    let view = view_of(vec![
        cluster("cl_1", "orders", &[9092, 9093]),
        cluster("cl_2", "b0-orders", &[9094]),
        cluster("cl_3", "twice", &[9093]),
        cluster("cl_4", "twice", &[9095]),
    ]);
    let of_name = |name: &str| view.of_name(name, "kafka.localhost");
    assert_eq!(of_name("b0-orders.kafka.localhost"), Some(target("cl_1", Slot::Number(0))));
    assert_eq!(of_name("b0-b0-orders.kafka.localhost"), None);
    assert_eq!(of_name("twice.kafka.localhost"), None);
    assert_eq!(view.of_port(9092), Some(target("cl_1", Slot::Any)));
    assert_eq!(view.of_port(9093), None, "two clusters claim it");
    assert_eq!(view.ports(), BTreeSet::from([9092, 9094, 9095]));
}

#[test]
fn a_deleted_clusters_port_is_the_clusters_that_has_it_now() {
    let deleted =
        ClusterSpec { state: SpecState::Deleted, ..cluster("cl_1", "orders", &[9092, 9093]) };
    let view = view_of(vec![deleted, cluster("cl_2", "bills", &[9092])]);
    assert_eq!(view.of_port(9092), Some(target("cl_2", Slot::Any)));
    assert_eq!(view.of_port(9093), Some(target("cl_1", Slot::Number(1))), "nobody else has it");
}

#[test]
fn only_a_broker_that_serves_is_linked_to() {
    let mut view = view_of(vec![cluster("cl_1", "orders", &[9092, 9093])]);
    let link = |view: &CellView, slot| {
        view.link_of(&Target { cluster: "cl_1".into(), slot }).unwrap_or_default()
    };
    assert_eq!(link(&view, Slot::Any), "");
    let change = |status| CellChange {
        cluster: "cl_1".into(),
        revision: 1,
        record: CellRecord::Status(status),
    };
    view.apply(vec![change(Some(running(&[1, 0])))]);
    assert_eq!(link(&view, Slot::Any), "127.0.0.1:7000");
    assert_eq!(link(&view, Slot::Number(1)), "127.0.0.1:7001");
    assert_eq!(link(&view, Slot::Number(2)), "");
    view.apply(vec![change(Some(ClusterStatus { phase: Phase::Stopping, ..running(&[0]) }))]);
    assert_eq!(link(&view, Slot::Any), "");
    view.apply(vec![change(Some(running(&[0]))), change(None)]);
    assert_eq!(link(&view, Slot::Any), "");
}

#[test]
fn clients_get_the_names_of_the_listener_that_they_use() {
    let names =
        Names { plain_host: "::1".into(), domain: "kafka.localhost".into(), tls_port: 9443 };
    let spec = ClusterSpec { scale: 2, ..cluster("cl_1", "orders", &[9092, 9093, 9094]) };
    let plain = names.advertised(&spec, ListenerKind::SaslPlaintext);
    assert_eq!(plain, ["[::1]:9092", "[::1]:9093", "[::1]:9094"]);
    let tls = names.advertised(&spec, ListenerKind::SaslSsl);
    assert_eq!(tls[2], "b2-orders.kafka.localhost:9443");
    assert_eq!(tls.len(), 3);
    let huge = ClusterSpec { scale: u32::MAX, ..spec };
    assert_eq!(names.advertised(&huge, ListenerKind::SaslSsl).len(), 128);
}

#[test]
fn only_active_clusters_can_be_used() {
    let state = |state| check_usable(Some(&Arc::new(ClusterSpec { state, ..spec("cl_1", 1) })));
    assert_eq!(state(SpecState::Active), Ok(()));
    assert_eq!(state(SpecState::Suspended), Err("the cluster is suspended"));
    assert_eq!(state(SpecState::Deleted), Err("the cluster was deleted"));
    assert_eq!(check_usable(None), Err("the cluster was deleted"));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_stays_while_the_store_is_down_and_follows_it_later() {
    let store = Switched::new();
    let cell = CellMetadata::new(store.clone());
    cell.put_spec(&spec("cl_1", 1)).await.unwrap();
    let metrics = Arc::new(GatewayMetrics::default());
    let (follower, watch) = Follower::start(cell.clone(), Arc::clone(&metrics)).await.unwrap();
    let mut view = follower.subscribe();
    let _following = AbortOnDropHandle::new(tokio::spawn(follower.follow(watch)));
    cell.put_spec(&spec("cl_2", 1)).await.unwrap();
    view.wait_for(|view| view.spec("cl_2").is_some()).await.unwrap();
    // A record that nobody here understands breaks the watch, and the store goes right after.
    let newer = freshet_metadata::store::Transaction::new().put("cell/spec/cl_3", "{\"v\":9}");
    freshet_metadata::MetadataStore::commit(store.as_ref(), newer).await.unwrap();
    store.turn_off();
    while metrics.metadata_readable.get() == 1 {
        tokio::task::yield_now().await;
    }
    assert!(view.borrow().spec("cl_1").is_some() && view.borrow().spec("cl_2").is_some());
    store.turn_on();
    cell.remove_cluster("cl_3").await.unwrap();
    cell.remove_cluster("cl_1").await.unwrap();
    view.wait_for(|view| view.spec("cl_1").is_none()).await.unwrap();
    assert_eq!(metrics.metadata_readable.get(), 1);
}
