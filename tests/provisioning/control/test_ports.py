"""The ports of clusters in local mode: one to bootstrap, and one for each slot."""

from dataclasses import replace

import pytest

from console.base.common.conf import config
from provisioning.models import CellPort, Cluster
from provisioning.reconciling.service import sweep_clusters
from tests.console import cases
from tests.provisioning.control.world import put_status


@pytest.fixture
def set_range(settings):
    """Gives the cell a range of so many ports."""

    def set_ports(count, first=9092):
        gateway = replace(config().gateway, kafka_port=first, kafka_ports=count)
        settings.FRESHET = replace(config(), gateway=gateway)

    return set_ports


@pytest.fixture
def delete(api, reconcile):
    """Deletes a cluster that sleeps."""

    def run(cluster_id, name):
        assert api().delete(f"/clusters/{cluster_id}", query={"name": name}).status_code == 202
        reconcile(cluster_id)
        put_status(cluster_id, "asleep", 2)
        reconcile(cluster_id)

    return run


@pytest.fixture
def with_one_port(make_cluster):
    """Makes a cluster with one port, as an earlier release made all."""

    def make():
        cluster_id = make_cluster()
        cluster = Cluster.objects.get(pk=cluster_id)
        CellPort.objects.filter(cluster_id=cluster_id, place__gt=0).delete()
        Cluster.objects.filter(pk=cluster_id).update(ports=cluster.ports[:1])
        return cluster_id

    return make


def of_brokers(count):
    return {"spec": {"scale": {"max": count}}}


def held_ports(cluster_id):
    held = CellPort.objects.filter(cluster_id=cluster_id).order_by("place")
    assert [port.place for port in held] == list(range(len(held)))
    return [port.port for port in held]


@pytest.mark.parametrize(("brokers", "count"), [(1, 4), (2, 4), (3, 4), (4, 5), (16, 17)])
def test_a_new_cluster_has_a_port_for_each_slot(make_cluster, row, cell, brokers, count):
    cluster_id = make_cluster(**of_brokers(brokers))
    ports = list(range(9092, 9092 + count))
    assert row(cluster_id).ports == held_ports(cluster_id) == ports
    assert cell.spec(cluster_id).ports == tuple(ports)


def test_ports_are_each_clusters_own(make_cluster, row):
    assert [row(make_cluster()).ports[0] for _ in range(3)] == [9092, 9096, 9100]
    assert CellPort.objects.count() == 12


def test_ports_of_the_services_own_listeners_are_left_out(set_range, make_cluster, row):
    set_range(9, first=9442)
    assert row(make_cluster()).ports == [9442, 9444, 9445, 9446]
    assert row(make_cluster()).ports == [9447, 9448, 9449, 9450]


def test_a_cluster_that_grows_keeps_its_ports_and_gets_more(api, make_cluster, row):
    cluster_id, other = make_cluster(), make_cluster()
    path = f"/clusters/{cluster_id}"
    first = [9092, 9093, 9094, 9095]
    assert api().patch(path, of_brokers(3)).status_code == 200
    assert row(cluster_id).ports == first
    grown = api().patch(path, of_brokers(5)).json()
    assert row(cluster_id).ports == held_ports(cluster_id) == [*first, 9100, 9101]
    assert grown["bootstrap_servers"] == "127.0.0.1:9092"
    assert row(other).ports == [9096, 9097, 9098, 9099]
    # Clients may know the ports of all slots, so it keeps them.
    assert api().patch(path, of_brokers(1)).status_code == 200
    assert row(cluster_id).ports == held_ports(cluster_id) == [*first, 9100, 9101]


def test_where_few_ports_are_left_a_cluster_gets_what_it_needs(api, set_range, make_cluster, row):
    set_range(9)
    assert row(make_cluster()).ports == [9092, 9093, 9094, 9095]
    set_range(7)
    assert row(make_cluster(**of_brokers(2))).ports == [9096, 9097, 9098]
    set_range(8)
    last = make_cluster()
    assert row(last).ports == [9099]
    full = api().post("/clusters", {"name": "none"})
    cases.assert_problem(full, 503, "no_capacity")
    assert "Of 8 ports for Kafka 0 are free, and the cluster needs 1 more" in full.json()["detail"]
    assert "FRESHET_GATEWAY_KAFKA_PORTS" in full.json()["detail"]
    # Anything else can change.
    assert api().patch(f"/clusters/{last}", {"name": "renamed"}).status_code == 200


def test_a_cluster_does_not_grow_without_ports(api, set_range, make_cluster, row):
    set_range(4)
    cluster_id = make_cluster()
    refused = api().patch(f"/clusters/{cluster_id}", of_brokers(4))
    cases.assert_problem(refused, 503, "no_capacity")
    assert "the cluster needs 1 more" in refused.json()["detail"]
    assert (row(cluster_id).scale_max, len(held_ports(cluster_id))) == (1, 4)
    set_range(5)
    assert api().patch(f"/clusters/{cluster_id}", of_brokers(4)).status_code == 200
    assert row(cluster_id).ports == [9092, 9093, 9094, 9095, 9096]


def test_a_sweep_adds_the_ports_that_are_missing(with_one_port, row, cell):
    first, second = with_one_port(), with_one_port()
    before = row(first).generation
    sweep_clusters()
    assert row(first).ports == held_ports(first) == list(cell.spec(first).ports)
    assert sorted(row(first).ports + row(second).ports) == list(range(9092, 9100))
    assert (row(first).ports[0], row(second).ports[0]) == (9092, 9093)
    sweep_clusters()
    assert row(first).generation == before + 1


def test_a_cluster_keeps_one_port_while_the_range_is_full(with_one_port, set_range, row, reconcile):
    cluster_id = with_one_port()
    before = row(cluster_id)
    set_range(3)
    assert reconcile(cluster_id) is False
    assert (row(cluster_id).ports, row(cluster_id).generation) == ([9092], before.generation)
    set_range(4)
    reconcile(cluster_id)
    assert row(cluster_id).ports == [9092, 9093, 9094, 9095]


def test_a_cluster_of_one_port_that_grows_gets_all(api, with_one_port, set_range, row):
    cluster_id = with_one_port()
    set_range(3)
    assert api().patch(f"/clusters/{cluster_id}", of_brokers(2)).status_code == 200
    assert row(cluster_id).ports == [9092, 9093, 9094]


def test_deleted_clusters_take_no_ports_from_others(
    api, set_range, make_cluster, delete, row, reconcile, cell
):
    set_range(8)
    first, second = make_cluster(name="first"), make_cluster(name="second")
    cases.assert_problem(api().post("/clusters", {"name": "third"}), 503, "no_capacity")
    delete(first, "first")
    delete(second, "second")
    assert not CellPort.objects.exists()
    assert row(make_cluster(name="third")).ports == [9092, 9093, 9094, 9095]
    # Its former ports are free, so they come back; the other one's are taken.
    assert api().post(f"/clusters/{second}:undelete").status_code == 202
    reconcile(second)
    assert cell.spec(second).ports == (9096, 9097, 9098, 9099)
    cases.assert_problem(api().post(f"/clusters/{first}:undelete"), 503, "no_capacity")
    reconcile(first)
    assert held_ports(first) == []


def test_a_restored_cluster_is_found_where_it_was_as_long_as_that_is_free(
    api, set_range, make_cluster, delete, row
):
    first = make_cluster(name="first")
    delete(first, "first")
    # Another cluster has the ports of its slots.
    set_range(4, first=9093)
    make_cluster(name="second")
    set_range(20)
    assert api().post(f"/clusters/{first}:undelete").status_code == 202
    assert row(first).ports == held_ports(first) == [9092, 9097, 9098, 9099]
    shown = api().get(f"/clusters/{first}").json()
    assert shown["bootstrap_servers"] == "127.0.0.1:9092"


def test_a_restored_cluster_gets_other_ports_where_its_own_are_taken(
    api, make_cluster, delete, row
):
    first = make_cluster(name="first")
    delete(first, "first")
    make_cluster(name="second")
    assert api().post(f"/clusters/{first}:undelete").status_code == 202
    assert row(first).ports == [9096, 9097, 9098, 9099]
    shown = api().get(f"/clusters/{first}").json()
    assert shown["bootstrap_servers"] == "127.0.0.1:9096"


def test_only_local_mode_gives_ports_away(settings, api, make_cluster, row, reconcile):
    settings.FRESHET = replace(config(), mode="production")
    cluster_id = make_cluster()
    assert api().patch(f"/clusters/{cluster_id}", of_brokers(3)).status_code == 200
    reconcile(cluster_id)
    assert row(cluster_id).ports == []
    assert not CellPort.objects.exists()
