"""The number of a cluster's brokers, and suspending a cluster on request."""

from dataclasses import replace

import pytest

from brokers.metadata_records import BrokerStatus
from console.base.common.conf import config
from provisioning.cells import cluster_store
from provisioning.models import Cluster
from tests.console import cases
from tests.provisioning.control.world import put_status


def test_a_cluster_that_never_sleeps_has_no_idle_time(api, cluster_id, cell, reconcile):
    path = f"/clusters/{cluster_id}"
    changed = api().patch(path, {"spec": {"scale": {"min": 1}}})
    assert changed.json()["spec"]["scale"] == {"min": 1, "max": 1}
    reconcile(cluster_id)
    assert cell.spec(cluster_id).idle_timeout_ms == 0
    cases.assert_problem(api().post(f"{path}:sleep"), 409, "cluster_never_sleeps")
    api().patch(path, {"spec": {"scale": {"min": 0}}})
    reconcile(cluster_id)
    assert cell.spec(cluster_id).idle_timeout_ms == 300_000


def test_the_number_of_brokers_is_chosen_and_changed(api, cell, reconcile, make_cluster):
    cluster_id = make_cluster(spec={"scale": {"max": 3}})
    path = f"/clusters/{cluster_id}"
    assert api().get(path).json()["spec"]["scale"] == {"min": 0, "max": 3}
    for count in (3, 16, 1):
        changed = api().patch(path, {"spec": {"scale": {"max": count}}})
        assert changed.json()["spec"]["scale"] == {"min": 0, "max": count}
        reconcile(cluster_id)
        assert cell.spec(cluster_id).scale == count
        assert cluster_store(cluster_id).record().scale == count


def test_more_brokers_than_the_limit_are_refused(api, cluster_id, settings):
    limits = replace(config().limits, brokers=3)
    settings.FRESHET = replace(config(), limits=limits)
    body = {"spec": {"scale": {"max": 4}}}
    calls = (
        (api().patch(f"/clusters/{cluster_id}", body), 1),
        (api().post("/clusters", {"name": "big", **body}), 0),
    )
    for call, used in calls:
        document = cases.assert_problem(call, 403, "limit_reached")
        assert document["quota"] == {"name": "brokers", "limit": 3, "used": used}
    allowed = api().patch(f"/clusters/{cluster_id}", {"spec": {"scale": {"max": 3}}})
    assert allowed.status_code == 200


def test_of_more_brokers_that_are_stored_as_many_as_can_be_are_wanted(
    api, cluster_id, cell, reconcile, row
):
    path = f"/clusters/{cluster_id}"
    # An earlier release accepted this.
    Cluster.objects.filter(pk=cluster_id).update(generation=2, scale_max=100)
    cluster_store(cluster_id).set_scale(100)
    reconcile(cluster_id)
    assert (cell.spec(cluster_id).scale, len(cell.spec(cluster_id).ports)) == (16, 17)
    assert cluster_store(cluster_id).record().scale == 16
    assert api().get(path).json()["spec"]["scale"] == {"min": 0, "max": 16}
    assert api().patch(path, {"spec": {"scale": {"max": 16}}}).status_code == 200
    assert row(cluster_id).scale_max == 16


def test_the_brokers_of_a_cluster_are_shown(api, make_cluster, reconcile):
    cluster_id = make_cluster(spec={"scale": {"max": 3}})
    path = f"/clusters/{cluster_id}"

    def shown():
        return [(one["slot"], one["phase"]) for one in api().get(path).json()["status"]["brokers"]]

    assert shown() == [(0, "stopped"), (1, "stopped"), (2, "stopped")]
    put_status(cluster_id, "starting")
    assert shown() == [(0, "starting"), (1, "starting"), (2, "starting")]
    serving = tuple(BrokerStatus(slot=slot, link="", kafka="", metrics="") for slot in (0, 2))
    put_status(cluster_id, "running", brokers=serving)
    assert shown() == [(0, "serving"), (1, "starting"), (2, "serving")]
    (ready,) = api().get(path).json()["status"]["conditions"]
    assert (ready["status"], ready["message"]) == ("true", "2 of its 3 brokers serve.")
    # The last one serves until it has handed its partitions over.
    api().patch(path, {"spec": {"scale": {"max": 1}}})
    assert shown() == [(0, "serving"), (2, "serving")]
    put_status(cluster_id, "stopping", brokers=serving[:1])
    assert shown() == [(0, "serving")]
    put_status(cluster_id, "failed")
    assert shown() == [(0, "stopped")]


@pytest.mark.parametrize(("bound", "value"), [("min", 2), ("min", -1), ("max", 0), ("max", 17)])
def test_bounds_that_cannot_be_are_pointed_to(api, cluster_id, bound, value):
    body = {"spec": {"scale": {bound: value}}}
    document = cases.assert_problem(api().patch(f"/clusters/{cluster_id}", body), 422)
    assert document["errors"][0]["pointer"] == f"/spec/scale/{bound}"


def test_a_suspended_cluster_stops_and_keeps_all(api, cluster_id, cell, reconcile):
    path = f"/clusters/{cluster_id}"
    api().post(f"{path}/topics", {"name": "t"})
    put_status(cluster_id, "running")
    suspending = api().post(f"{path}:suspend").json()
    assert suspending["type"] == "suspend_cluster"
    assert reconcile(cluster_id) is True
    assert cell.spec(cluster_id).state == "suspended"
    put_status(cluster_id, "asleep", 2)
    assert reconcile(cluster_id) is False
    assert api().get(f"/operations/{suspending['id']}").json()["state"] == "succeeded"
    shown = api().get(path).json()
    assert shown["status"]["phase"] == "suspended"
    assert shown["status"]["conditions"][0]["reason"] == "SuspendedOnRequest"
    # The addresses stay, because clients know them.
    assert shown["bootstrap_servers"]
    assert [item["name"] for item in api().get(f"{path}/topics").json()["items"]] == ["t"]
    for call in (api().post(f"{path}:wake"), api().post(f"{path}:suspend")):
        cases.assert_problem(call, 409, "cluster_suspended")
    query = {"wake": "true"}
    cases.assert_problem(
        api().get(f"{path}/topics/t/messages", query=query), 409, "cluster_suspended"
    )
    resuming = api().post(f"{path}:resume").json()
    assert reconcile(cluster_id) is False
    assert api().get(f"/operations/{resuming['id']}").json()["state"] == "succeeded"
    assert (cell.spec(cluster_id).state, cell.wake(cluster_id)) == ("active", None)
    assert api().get(path).json()["status"]["phase"] == "asleep"
    cases.assert_problem(api().post(f"{path}:resume"), 409, "cluster_not_suspended")


def test_a_resumption_ends_a_suspension_under_way(api, cluster_id, reconcile):
    path = f"/clusters/{cluster_id}"
    put_status(cluster_id, "running")
    suspending = api().post(f"{path}:suspend").json()
    reconcile(cluster_id)
    resuming = api().post(f"{path}:resume").json()
    reconcile(cluster_id)
    ids = [suspending["id"], resuming["id"]]
    states = [api().get(f"/operations/{operation_id}").json()["state"] for operation_id in ids]
    assert states == ["cancelled", "succeeded"]


def test_validate_only_changes_no_cluster(api, cluster_id, row):
    path, query = f"/clusters/{cluster_id}", {"validate_only": "true"}
    renamed = api().patch(path, {"name": "other"}, query=query)
    assert (renamed.status_code, renamed.json()["name"]) == (200, "other")
    for call in (
        api().delete(path, query={**query, "name": row(cluster_id).name}),
        api().post(f"{path}:suspend", query=query),
        api().post(f"{path}:wake", query=query),
        api().post(f"{path}:sleep", query=query),
    ):
        assert (call.status_code, call.json()) == (200, {"valid": True})
    cases.assert_problem(api().delete(path, query=query), 422, "name_not_confirmed")
    cases.assert_problem(api().post(f"{path}:resume", query=query), 409, "cluster_not_suspended")
    cases.assert_problem(api().post(f"{path}:undelete", query=query), 409, "cluster_not_deleted")
    assert row(cluster_id).generation == 1
    assert api().get(path).json()["name"] != "other"
