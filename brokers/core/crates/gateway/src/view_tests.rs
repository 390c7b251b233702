//! Names and ports of clusters, and a view whose store goes away.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::places::Preference;
use crate::testing::{Switched, running};
use freshet_metadata::samples::spec;

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
    assert_eq!(view.of_port(9095), Some(target("cl_4", Slot::Number(0))), "its only port");
    assert_eq!(view.ports(), BTreeSet::from([9092, 9094, 9095]));
}

#[test]
fn a_deleted_clusters_port_is_the_clusters_that_has_it_now() {
    let deleted =
        ClusterSpec { state: SpecState::Deleted, ..cluster("cl_1", "orders", &[9092, 9093]) };
    let view = view_of(vec![deleted, cluster("cl_2", "bills", &[9092])]);
    assert_eq!(view.of_port(9092), Some(target("cl_2", Slot::Number(0))));
    assert_eq!(view.of_port(9093), Some(target("cl_1", Slot::Number(0))), "nobody else has it");
}

#[test]
fn the_first_of_several_ports_is_any_brokers_and_each_further_one_a_slots() {
    let view = view_of(vec![cluster("cl_1", "orders", &[9092, 9100, 9101, 9102])]);
    let slots = [Slot::Any, Slot::Number(0), Slot::Number(1), Slot::Number(2)];
    for (port, slot) in [9092, 9100, 9101, 9102].into_iter().zip(slots) {
        assert_eq!(view.of_port(port), Some(target("cl_1", slot)));
    }
    assert_eq!(view.of_port(9103), None);
}

#[test]
fn only_brokers_of_a_cluster_that_runs_are_linked_to() {
    let mut view = view_of(vec![cluster("cl_1", "orders", &[9092])]);
    let preference = Preference { zone: "", spread: 0 };
    let links = |view: &CellView| {
        let places = view.brokers("cl_1").places(Slot::Any, &preference);
        places.into_iter().map(|place| place.link).collect::<Vec<_>>()
    };
    assert!(links(&view).is_empty());
    let change = |status| CellChange {
        cluster: "cl_1".into(),
        revision: 1,
        record: CellRecord::Status(status),
    };
    let status = running(&[(1, "10.0.0.1:9091"), (0, "10.0.0.0:9091")]);
    view.apply(vec![change(Some(status.clone()))]);
    assert_eq!(links(&view), ["10.0.0.0:9091", "10.0.0.1:9091"]);
    view.apply(vec![change(Some(ClusterStatus { phase: Phase::Stopping, ..status.clone() }))]);
    assert!(links(&view).is_empty() && !view.brokers("cl_1").are_listed());
    view.apply(vec![change(Some(status)), change(None)]);
    assert!(links(&view).is_empty());
}

#[test]
fn clients_get_the_addresses_of_the_listener_that_they_use() {
    let names =
        Names { plain_host: "::1".into(), domain: "kafka.localhost".into(), tls_port: 9443 };
    let spec = ClusterSpec { scale: 2, ..cluster("cl_1", "orders", &[9092, 9100, 9101, 9102]) };
    let plain = names.advertised(&spec, ListenerKind::SaslPlaintext);
    assert_eq!(plain, ["[::1]:9100", "[::1]:9101", "[::1]:9102"]);
    let tls = names.advertised(&spec, ListenerKind::SaslSsl);
    assert_eq!(tls[2], "b2-orders.kafka.localhost:9443");
    assert_eq!(tls.len(), 3);
    // Made by an earlier release: slot 0 alone is there without TLS.
    let single = ClusterSpec { scale: 5, ports: vec![9092], ..spec };
    assert_eq!(names.advertised(&single, ListenerKind::SaslPlaintext), ["[::1]:9092"]);
    assert_eq!(names.advertised(&single, ListenerKind::SaslSsl).len(), 5);
    let none = ClusterSpec { ports: Vec::new(), ..single };
    assert!(names.advertised(&none, ListenerKind::SaslPlaintext).is_empty());
    let huge = ClusterSpec { scale: u32::MAX, ..none };
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
    let (mut view, adding) = (follower.subscribe(), follower.sender());
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
    // What others add to it stays when the cell is read anew.
    let known = Some(Incarnations::default());
    adding.send_modify(|view| Arc::make_mut(view).set_incarnations(&"cl_2".into(), known));
    store.turn_on();
    cell.remove_cluster("cl_3").await.unwrap();
    cell.remove_cluster("cl_1").await.unwrap();
    view.wait_for(|view| view.spec("cl_1").is_none()).await.unwrap();
    assert_eq!(metrics.metadata_readable.get(), 1);
    assert!(view.borrow().brokers("cl_2").incarnations.is_some());
}
