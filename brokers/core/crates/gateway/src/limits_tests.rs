//! Places by address and by cluster, and the memory before authentication.

use std::time::Duration;

use tokio::time::advance;

use super::*;

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn limits() -> GateLimits {
    GateLimits {
        connections: 5,
        per_address: 3,
        unauthenticated: 4,
        unauthenticated_bytes: 1 << 20,
        rate: NewConnections { per_s: 2, at_once: 4 },
    }
}

/// Limits of a whole gateway, of which an address has an eighth.
fn wide() -> GateLimits {
    GateLimits {
        connections: 1000,
        per_address: 1000,
        unauthenticated: 80,
        unauthenticated_bytes: (80 * 16 + 800) << 10,
        rate: NewConnections { per_s: 1000, at_once: 1000 },
    }
}

fn cluster(name: &str) -> Arc<str> {
    name.into()
}

fn enter(gate: &Arc<Gate>, from: IpAddr) -> Result<Place, Full> {
    gate.admit(Some(from), Some(&cluster("cl_1")))
}

#[tokio::test(start_paused = true)]
async fn an_address_is_bounded_in_number_and_rate() {
    let gate = Gate::new(GateLimits { unauthenticated: 80, connections: 80, ..limits() });
    let mut places: Vec<Place> = (0..3).map(|_| enter(&gate, address(1)).unwrap()).collect();
    assert_eq!(enter(&gate, address(1)).err(), Some(Full::Address));
    // The rate counts new connections: a place that is given back does not give back its token.
    places.clear();
    assert_eq!(enter(&gate, address(1)).err(), Some(Full::Rate));
    assert!(enter(&gate, address(2)).is_ok());
    advance(Duration::from_millis(500)).await;
    assert!(enter(&gate, address(1)).is_ok());
    assert_eq!(enter(&gate, address(1)).err(), Some(Full::Rate));
}

#[tokio::test(start_paused = true)]
async fn an_address_has_an_eighth_of_the_places_before_authentication() {
    let gate = Gate::new(wide());
    let mut places: Vec<Place> = (0..10).map(|_| enter(&gate, address(1)).unwrap()).collect();
    assert_eq!(enter(&gate, address(1)).err(), Some(Full::Share), "all have just come");
    assert!(enter(&gate, address(2)).is_ok());
    // Who has authenticated does not count any more.
    places[0].join(&cluster("cl_1"), 100).unwrap();
    places.push(enter(&gate, address(1)).unwrap());
    assert_eq!(enter(&gate, address(1)).err(), Some(Full::Share));
    // Clients behind the same address that do log in get the places of those that do nothing.
    places[1].set_waiting(false);
    advance(Duration::from_secs(1)).await;
    let newest = enter(&gate, address(1)).unwrap();
    let displaced = |place: &Place| place.displaced().is_cancelled();
    assert!(displaced(&places[2]) && !displaced(&places[1]) && !displaced(&newest));
    assert_eq!(places[2].join(&cluster("cl_1"), 100).err(), Some(Full::Displaced));
    assert_eq!(gate.unauthenticated(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_network_of_ipv6_addresses_is_one_address() {
    let gate = Gate::new(wide());
    let of_network = |host: u16| format!("2001:db8:0:1::{host:x}").parse::<IpAddr>().unwrap();
    let _places: Vec<Place> =
        (1..=10).map(|host| enter(&gate, of_network(host)).unwrap()).collect();
    assert_eq!(enter(&gate, of_network(11)).err(), Some(Full::Share));
    assert!(enter(&gate, "2001:db8:0:2::1".parse().unwrap()).is_ok());
    let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
    let _others: Vec<Place> = (0..10).map(|_| enter(&gate, address(1)).unwrap()).collect();
    assert_eq!(enter(&gate, mapped).err(), Some(Full::Share));
}

#[tokio::test(start_paused = true)]
async fn on_the_loopback_places_are_shared_out_by_cluster_alone() {
    let gate = Gate::new(wide());
    let (one, two) = (cluster("cl_1"), cluster("cl_2"));
    let local: IpAddr = [127, 0, 0, 1].into();
    let attackers: Vec<Place> =
        (0..80).map(|_| gate.admit(Some(local), Some(&one)).unwrap()).collect();
    assert_eq!(gate.admit(Some(local), Some(&one)).err(), Some(Full::Unauthenticated));
    let others: Vec<Place> =
        (0..39).map(|_| gate.admit(Some(local), Some(&two)).unwrap()).collect();
    let displaced =
        |places: &[Place]| places.iter().filter(|place| place.displaced().is_cancelled()).count();
    assert_eq!((displaced(&attackers), displaced(&others)), (39, 0));
    assert_eq!(gate.unauthenticated(), 80);
}

#[tokio::test(start_paused = true)]
async fn unauthenticated_connections_take_no_place_of_a_cluster() {
    let gate = Gate::new(limits());
    let cluster = cluster("cl_1");
    let mut inside = enter(&gate, address(1)).unwrap();
    let unauthenticated: Vec<Place> =
        (2..5).map(|last| enter(&gate, address(last)).unwrap()).collect();
    assert_eq!(enter(&gate, address(9)).err(), Some(Full::Unauthenticated));
    inside.join(&cluster, 1).unwrap();
    assert_eq!((gate.unauthenticated(), gate.by_cluster()[&cluster]), (3, 1));
    let mut second = enter(&gate, address(1)).unwrap();
    assert_eq!(enter(&gate, address(9)).err(), Some(Full::Connections));
    assert_eq!(second.join(&cluster, 1).err(), Some(Full::Cluster));
    drop(inside);
    second.join(&cluster, 1).unwrap();
    drop((second, unauthenticated));
    assert_eq!(gate.unauthenticated(), 0);
    assert!(gate.by_cluster().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_comes_through_a_balancer_counts_for_its_own_address() {
    let gate = Gate::new(wide());
    let mut places: Vec<Place> = (0..30).map(|_| gate.admit(None, None).unwrap()).collect();
    for place in &mut places[..10] {
        place.come_from(address(1)).unwrap();
    }
    assert_eq!(places[10].come_from(address(1)).err(), Some(Full::Share));
    places[11].come_from(address(2)).unwrap();
    let one = cluster("cl_1");
    places[0].aim_at(&one).unwrap();
    places[0].join(&one, 1).unwrap();
    places[12].come_from(address(1)).unwrap();
    drop(places);
    assert_eq!(gate.unauthenticated(), 0);
    assert!(gate.counts.lock().addresses.values().all(|address| address.open == 0));
}

#[tokio::test(start_paused = true)]
async fn memory_is_shared_out_by_address_and_by_cluster() {
    let gate = Gate::new(wide());
    // 16 KiB are each connection's own, and 800 KiB are shared.
    let mut places: Vec<Place> = (1..=9).map(|last| enter(&gate, address(last)).unwrap()).collect();
    for place in &mut places {
        place.hold(16 << 10).unwrap();
    }
    places[0].hold((16 + 60) << 10).unwrap();
    let mut beside = enter(&gate, address(1)).unwrap();
    assert_eq!(beside.hold((16 + 41) << 10).err(), Some(Full::Memory), "of its address");
    places[1].hold((16 + 40) << 10).unwrap();
    assert_eq!(places[2].hold(17 << 10).err(), Some(Full::Memory), "of its cluster");
    places[2].hold(16 << 10).unwrap();
    let mut others = Vec::new();
    for number in 0..7_u8 {
        let place = gate.admit(Some(address(100 + number)), Some(&cluster(&number.to_string())));
        let mut place = place.unwrap();
        place.hold((16 + 100) << 10).unwrap();
        others.push(place);
    }
    let mut last = gate.admit(Some(address(200)), Some(&cluster("last"))).unwrap();
    assert_eq!(last.hold(17 << 10).err(), Some(Full::Memory), "of all");
    others.clear();
    places[0].release();
    last.hold((16 + 100) << 10).unwrap();
    drop((places, last, beside));
    let memory = &gate.counts.lock().memory;
    assert_eq!((memory.all, memory.addresses.len(), memory.clusters.len()), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn addresses_whose_rate_has_recovered_are_forgotten() {
    let gate = Gate::new(GateLimits { connections: 50_000, ..limits() });
    for number in 0..=u32::try_from(QUIET_ADDRESSES_MAX).unwrap() {
        drop(enter(&gate, IpAddr::from(number.to_be_bytes())).unwrap());
    }
    advance(Duration::from_secs(10)).await;
    let _place = enter(&gate, address(1)).unwrap();
    assert_eq!(gate.counts.lock().addresses.len(), 1);
}
