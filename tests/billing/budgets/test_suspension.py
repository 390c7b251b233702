"""A budget of one cent stops clients at a real broker, and a higher one lets them go on."""

import pytest

from billing.budgets import evaluation
from tests.billing.budgets.spending import spend_cents
from tests.console.outbox import run_outbox
from tests.provisioning.control import conftest as control
from tests.provisioning.control.clients import (
    POLICY_VIOLATION,
    client_settings,
    fetch_error,
    fetch_values,
    produce_error,
    wait_for_error,
    wait_for_success,
)
from tests.provisioning.control.world import running_broker

cell, meters = control.cell, control.meters
reconcile, make_cluster, cluster_id = control.reconcile, control.make_cluster, control.cluster_id


@pytest.fixture
def settings_of_client(api, cluster_id):
    """A broker of the cluster runs, with a topic; gives what a client of the tenant needs."""
    with running_broker(cluster_id):
        topic = {"name": "t", "partitions": 1}
        assert api().post(f"/clusters/{cluster_id}/topics", topic).status_code == 201
        yield client_settings(api, cluster_id)


def test_a_one_cent_budget_stops_producers_and_consumers(
    api, tenant, cluster_id, settings_of_client
):
    body = {"name": "One cent", "amount_minor": 1, "action": "suspend"}
    budget = api().post("/budgets", body).json()
    assert produce_error(settings_of_client, "t") is None
    spend_cents(tenant.id, 1)
    assert evaluation.evaluate_budgets() == 1
    run_outbox()
    error = wait_for_error(settings_of_client, "t")
    assert error.code() == POLICY_VIOLATION
    assert fetch_error(settings_of_client, "t").code() == POLICY_VIOLATION
    conditions = api().get(f"/clusters/{cluster_id}").json()["status"]["conditions"]
    assert 'the budget "One cent" of $0.01' in conditions[1]["message"]
    changed = api().patch(f"/budgets/{budget['id']}", {"amount_minor": 2})
    assert changed.json()["suspended_at"] is None
    run_outbox()
    wait_for_success(settings_of_client, "t")
    assert len(fetch_values(settings_of_client, "t", 2)) == 2
