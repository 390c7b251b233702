"""Limits of an organization's traffic: in rows, in the cell, in the API, and at a broker."""

import pytest

from brokers.errors import UnavailableError
from brokers.metadata import ClusterStore, TrafficLimit
from console.base.accounts.choices import TrafficLimitKind, TrafficLimitSource
from console.base.accounts.services import set_traffic_limit
from provisioning import tasks
from provisioning.cells import cluster_store
from provisioning.reconciling import service as reconciling
from tests.console import cases
from tests.console.outbox import run_outbox
from tests.provisioning.control.clients import (
    POLICY_VIOLATION,
    client_settings,
    fetch_error,
    fetch_values,
    produce_error,
    wait_for_error,
    wait_for_success,
)
from tests.provisioning.control.world import failing, put_status, running_broker

REASON = 'The budget "Team" is used up. Raise it, or wait for the month to end.'


REFUSED = TrafficLimit(kind="refuse", reason=REASON)


def limit(tenant, kind="refuse", reason=REASON, rate=None):
    """Limits the organization's traffic; with None as the kind the limit is lifted."""
    set_traffic_limit(
        organization_id=tenant.id,
        source=TrafficLimitSource.BUDGET,
        kind=kind and TrafficLimitKind(kind),
        reason=reason,
        bytes_per_s=rate,
    )


@pytest.fixture
def suspend(tenant):
    """Limits the organization's traffic, or lifts the limit (None), and runs the workers' tasks."""

    def change(kind="refuse", reason=REASON, rate=None):
        limit(tenant, kind, reason, rate)
        run_outbox()

    return change


def limits(*cluster_ids):
    return [cluster_store(cluster_id).traffic_limit() for cluster_id in cluster_ids]


def conditions(api, cluster_id):
    shown = api().get(f"/clusters/{cluster_id}").json()["status"]["conditions"]
    return {condition["type"]: condition for condition in shown}


def test_it_reaches_every_cluster_of_the_organization(make_cluster, suspend, cell, row):
    ids = [make_cluster(), make_cluster()]
    before = [cell.spec(pk).generation for pk in ids]
    suspend()
    assert limits(*ids) == [REFUSED, REFUSED]
    assert [cell.spec(pk).generation for pk in ids] == [number + 1 for number in before]
    assert all(cell.spec(pk).state == "active" for pk in ids)
    suspend(None)
    assert limits(*ids) == [None, None]
    assert {row(pk).reconciled_generation for pk in ids} == {number + 2 for number in before}


def test_its_change_and_the_task_are_one_transaction(cluster_id, tenant):
    run_outbox()
    limit(tenant)
    assert run_outbox() == [tasks.reconcile_cluster.name]


def test_another_organizations_clusters_take_records(cluster_id, other_tenant):
    limit(other_tenant)
    run_outbox()
    assert limits(cluster_id) == [None]


def test_the_api_shows_it_with_its_reason(api, cluster_id, suspend, tenant):
    assert set(conditions(api, cluster_id)) == {"Ready"}
    limit(tenant)
    assert conditions(api, cluster_id)["ProduceSuspended"]["status"] == "unknown"
    run_outbox()
    shown = conditions(api, cluster_id)
    assert shown["Ready"]["status"] == "true"
    expected = {"type": "ProduceSuspended", "status": "true", "reason": "ProduceSuspended"}
    assert shown["ProduceSuspended"] == {**expected, "message": REASON}
    suspend(None)
    assert set(conditions(api, cluster_id)) == {"Ready"}


def test_a_new_cluster_begins_suspended(make_cluster, suspend):
    suspend()
    assert limits(make_cluster()) == [REFUSED]


def test_a_deleted_cluster_comes_back_suspended(api, make_cluster, reconcile, suspend):
    cluster_id = make_cluster(name="gone")
    api().delete(f"/clusters/{cluster_id}", query={"name": "gone"})
    reconcile(cluster_id)
    put_status(cluster_id, "asleep", 2)
    reconcile(cluster_id)
    suspend()
    assert api().post(f"/clusters/{cluster_id}:undelete").status_code == 202
    assert limits(cluster_id) == [REFUSED]


@pytest.mark.parametrize(
    ("call", "lifts"),
    [("set_traffic_limit", False), ("set_traffic_limit", True), ("traffic_limit", False)],
)
def test_the_sweep_repairs_what_a_task_could_not(cluster_id, suspend, call, lifts):
    if lifts:
        suspend()
    with failing(call, *[UnavailableError("away")] * 5, owner=ClusterStore):
        suspend(None if lifts else "refuse")
    assert limits(cluster_id) == [REFUSED if lifts else None]
    reconciling.sweep_clusters()
    assert limits(cluster_id) == [None if lifts else REFUSED]


def test_the_sweep_repairs_what_somebody_changed_in_the_cell(cluster_id, suspend):
    suspend()
    cluster_store(cluster_id).set_traffic_limit(None)
    reconciling.sweep_clusters()
    assert limits(cluster_id) == [REFUSED]


@pytest.mark.parametrize(
    ("kind", "rate", "conditions_shown"),
    [
        ("refuse", None, {"ProduceSuspended", "FetchSuspended"}),
        ("refuse_produce", None, {"ProduceSuspended"}),
        ("throttle", 65_536, {"Throttled"}),
    ],
)
def test_each_kind_of_limit_reaches_the_cell_and_is_shown(
    api, cluster_id, suspend, kind, rate, conditions_shown
):
    suspend(kind, rate=rate)
    assert limits(cluster_id) == [TrafficLimit(kind=kind, reason=REASON, bytes_per_s=rate)]
    assert set(conditions(api, cluster_id)) == {"Ready"} | conditions_shown


def test_the_console_neither_produces_nor_reads(api, cluster_id, suspend):
    topics = f"/clusters/{cluster_id}/topics"
    api().post(topics, {"name": "t"})
    suspend()
    response = api().post(f"{topics}/t/messages", {"value": "x"})
    document = cases.assert_problem(response, 409, "produce_suspended")
    assert document["detail"] == REASON
    for path in ("messages", "messages/stream"):
        document = cases.assert_problem(api().get(f"{topics}/t/{path}"), 409, "fetch_suspended")
        assert document["detail"] == REASON
    # What is stored goes on being billed, so it can be deleted; and it is listed.
    assert api().get(topics).status_code == 200
    assert api().delete(f"{topics}/t").status_code == 204


def test_under_the_old_promise_the_console_still_reads(api, cluster_id, suspend):
    topics = f"/clusters/{cluster_id}/topics"
    api().post(topics, {"name": "t"})
    suspend("refuse_produce")
    cases.assert_problem(
        api().post(f"{topics}/t/messages", {"value": "x"}), 409, "produce_suspended"
    )
    cases.assert_problem(api().get(f"{topics}/t/messages"), 409, "cluster_asleep")


def test_another_reason_replaces_the_first(cluster_id, suspend):
    suspend()
    suspend(reason="Another one.")
    assert limits(cluster_id) == [TrafficLimit(kind="refuse", reason="Another one.")]


def test_a_broker_refuses_both_and_lets_them_go_on(api, cluster_id, suspend):
    with running_broker(cluster_id):
        topics = f"/clusters/{cluster_id}/topics"
        api().post(topics, {"name": "t", "partitions": 1})
        settings = client_settings(api, cluster_id)
        assert produce_error(settings, "t") is None
        suspend("refuse_produce")
        assert wait_for_error(settings, "t").code() == POLICY_VIOLATION
        assert len(fetch_values(settings, "t", 1)) == 1
        suspend()
        assert fetch_error(settings, "t").code() == POLICY_VIOLATION
        suspend(None)
        wait_for_success(settings, "t")
        assert len(fetch_values(settings, "t", 1)) == 1


def test_a_broker_that_starts_refuses_it_from_the_first(api, cluster_id, suspend):
    api().post(f"/clusters/{cluster_id}/topics", {"name": "t", "partitions": 1})
    suspend()
    with running_broker(cluster_id):
        error = produce_error(client_settings(api, cluster_id), "t")
    assert error is not None
    assert error.code() == POLICY_VIOLATION
