"""Bounds of the number of a cluster's brokers, and suspending a cluster on request."""

import pytest

from console.base.common.clock import now
from console.base.limits.models import LimitGrant, LimitRequest
from provisioning.cells import cluster_store
from provisioning.models import Cluster
from tests.console import cases
from tests.provisioning.control.world import put_status


@pytest.fixture
def raised(tenant, in_tenant):
    """Raises the limit of brokers to three, which earlier releases allowed."""
    asked = {"organization_id": tenant.id, "limit": "brokers"}
    request = LimitRequest.objects.create(**asked, wanted=3, reason="Zones.")
    LimitGrant.objects.create(**asked, value=3, request=request, granted_at=now())


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


def assert_several_refused(response, used):
    document = cases.assert_problem(response, 403, "limit_reached")
    assert document["quota"] == {"name": "brokers", "limit": 1, "used": used}
    assert "Several brokers per cluster are not supported yet" in document["detail"]


def test_several_brokers_are_refused_whatever_the_limit(api, cluster_id, raised):
    body = {"spec": {"scale": {"max": 2}}}
    assert_several_refused(api().patch(f"/clusters/{cluster_id}", body), 1)
    assert_several_refused(api().post("/clusters", {"name": "big", **body}), 0)


def test_of_several_brokers_that_are_stored_one_is_wanted(
    api, cluster_id, raised, cell, reconcile, row
):
    path = f"/clusters/{cluster_id}"
    reconcile(cluster_id)
    changed = {"scale_max": 3, "ports": [*row(cluster_id).ports, 29_093, 29_094]}
    Cluster.objects.filter(pk=cluster_id).update(generation=2, **changed)
    cluster_store(cluster_id).set_scale(3)
    reconcile(cluster_id)
    # The addresses stay, because clients know them.
    assert (cell.spec(cluster_id).scale, len(cell.spec(cluster_id).ports)) == (1, 3)
    assert cluster_store(cluster_id).record().scale == 1
    assert api().get(path).json()["spec"]["scale"] == {"min": 0, "max": 1}
    assert_several_refused(api().patch(path, {"spec": {"scale": {"max": 3}}}), 1)
    assert api().patch(path, {"spec": {"scale": {"max": 1}}}).status_code == 200
    assert row(cluster_id).scale_max == 1


@pytest.mark.parametrize(("bound", "value"), [("min", 2), ("min", -1), ("max", 0)])
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
