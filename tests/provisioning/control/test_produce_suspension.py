"""Suspended produce of an organization: in rows, in the cell, in the API, and at a broker."""

import pytest

from brokers.errors import UnavailableError
from brokers.metadata import ClusterStore
from console.base.accounts.services import set_produce_suspension
from provisioning import tasks
from provisioning.cells import cluster_store
from provisioning.reconciling import service as reconciling
from tests.console import cases
from tests.console.outbox import run_outbox
from tests.provisioning.control.clients import (
    POLICY_VIOLATION,
    client_settings,
    fetch_values,
    produce_error,
    wait_for_error,
    wait_for_success,
)
from tests.provisioning.control.world import failing, put_status, running_broker

REASON = 'The budget "Team" is used up. Raise it, or wait for the month to end.'


@pytest.fixture
def suspend(tenant):
    """Suspends the organization's produce, or resumes it (None), and runs the workers' tasks."""

    def change(reason=REASON):
        set_produce_suspension(organization_id=tenant.id, reason=reason)
        run_outbox()

    return change


def suspensions(*cluster_ids):
    return [cluster_store(cluster_id).produce_suspension() for cluster_id in cluster_ids]


def conditions(api, cluster_id):
    shown = api().get(f"/clusters/{cluster_id}").json()["status"]["conditions"]
    return {condition["type"]: condition for condition in shown}


def test_it_reaches_every_cluster_of_the_organization(make_cluster, suspend, cell, row):
    ids = [make_cluster(), make_cluster()]
    before = [cell.spec(pk).generation for pk in ids]
    suspend()
    assert suspensions(*ids) == [REASON, REASON]
    assert [cell.spec(pk).generation for pk in ids] == [number + 1 for number in before]
    assert all(cell.spec(pk).state == "active" for pk in ids)
    suspend(None)
    assert suspensions(*ids) == [None, None]
    assert {row(pk).reconciled_generation for pk in ids} == {number + 2 for number in before}


def test_its_change_and_the_task_are_one_transaction(cluster_id, tenant):
    run_outbox()
    set_produce_suspension(organization_id=tenant.id, reason=REASON)
    assert run_outbox() == [tasks.reconcile_cluster.name]


def test_another_organizations_clusters_take_records(cluster_id, other_tenant):
    set_produce_suspension(organization_id=other_tenant.id, reason=REASON)
    run_outbox()
    assert suspensions(cluster_id) == [None]


def test_the_api_shows_it_with_its_reason(api, cluster_id, suspend, tenant):
    assert set(conditions(api, cluster_id)) == {"Ready"}
    set_produce_suspension(organization_id=tenant.id, reason=REASON)
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
    assert suspensions(make_cluster()) == [REASON]


def test_a_deleted_cluster_comes_back_suspended(api, make_cluster, reconcile, suspend):
    cluster_id = make_cluster(name="gone")
    api().delete(f"/clusters/{cluster_id}", query={"name": "gone"})
    reconcile(cluster_id)
    put_status(cluster_id, "asleep", 2)
    reconcile(cluster_id)
    suspend()
    assert api().post(f"/clusters/{cluster_id}:undelete").status_code == 202
    assert suspensions(cluster_id) == [REASON]


@pytest.mark.parametrize("call", ["suspend_produce", "resume_produce", "produce_suspension"])
def test_the_sweep_repairs_what_a_task_could_not(cluster_id, suspend, call):
    if call == "resume_produce":
        suspend()
    with failing(call, *[UnavailableError("away")] * 5, owner=ClusterStore):
        suspend(None if call == "resume_produce" else REASON)
    assert suspensions(cluster_id) == [REASON if call == "resume_produce" else None]
    reconciling.sweep_clusters()
    assert suspensions(cluster_id) == [None if call == "resume_produce" else REASON]


def test_the_sweep_repairs_what_somebody_changed_in_the_cell(cluster_id, suspend):
    suspend()
    cluster_store(cluster_id).resume_produce()
    reconciling.sweep_clusters()
    assert suspensions(cluster_id) == [REASON]


def test_the_console_produces_nothing_either(api, cluster_id, suspend):
    api().post(f"/clusters/{cluster_id}/topics", {"name": "t"})
    suspend()
    response = api().post(f"/clusters/{cluster_id}/topics/t/messages", {"value": "x"})
    document = cases.assert_problem(response, 409, "produce_suspended")
    assert document["detail"] == REASON


def test_another_reason_replaces_the_first(cluster_id, suspend):
    suspend()
    suspend("Another one.")
    assert suspensions(cluster_id) == ["Another one."]


def test_a_broker_refuses_produce_alone_and_lets_it_go_on(api, cluster_id, suspend):
    with running_broker(cluster_id):
        api().post(f"/clusters/{cluster_id}/topics", {"name": "t", "partitions": 1})
        settings = client_settings(api, cluster_id)
        assert produce_error(settings, "t") is None
        suspend()
        assert wait_for_error(settings, "t").code() == POLICY_VIOLATION
        assert len(fetch_values(settings, "t", 1)) == 1
        suspend(None)
        wait_for_success(settings, "t")


def test_a_broker_that_starts_refuses_it_from_the_first(api, cluster_id, suspend):
    api().post(f"/clusters/{cluster_id}/topics", {"name": "t", "partitions": 1})
    suspend()
    with running_broker(cluster_id):
        error = produce_error(client_settings(api, cluster_id), "t")
    assert error is not None
    assert error.code() == POLICY_VIOLATION
