"""When a cluster counts as deleted, and its data, which stays until its usage is metered."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from console.base.common import metered
from console.base.common.clock import unix_ms
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning.models import Cluster
from provisioning.reconciling import service as reconciling
from tests.console import cases
from tests.provisioning.control.world import put_status

T0 = datetime(2026, 3, 1, 10, 0, 0, 7_999, tzinfo=UTC)
T0_MS = 1_772_359_200_007


@pytest.fixture
def at(monkeypatch):
    """Sets the control plane's clock, in hours since `T0`."""

    def move(hours):
        moment = T0 + timedelta(hours=hours)
        monkeypatch.setattr(timezone, "now", lambda: moment)

    move(0)
    return move


@pytest.fixture
def delete(api, reconcile, cell):
    """Deletes a cluster, and does what worker and keeper do until it is deleted."""

    def run(cluster_id):
        name = api().get(f"/clusters/{cluster_id}").json()["name"]
        answer = api().delete(f"/clusters/{cluster_id}", query={"name": name})
        assert answer.status_code == 202, answer.content
        reconcile(cluster_id)
        put_status(cluster_id, "asleep", cell.spec(cluster_id).generation)
        reconcile(cluster_id)

    return run


@pytest.fixture
def undelete(api, reconcile):
    """Restores a cluster."""

    def run(cluster_id):
        assert api().post(f"/clusters/{cluster_id}:undelete").status_code == 202
        reconcile(cluster_id)

    return run


def hours_ms(hours):
    return T0_MS + hours * 3_600_000


def test_the_cell_knows_when_a_cluster_was_deleted(make_cluster, delete, undelete, cell, at):
    cluster_id = make_cluster()
    assert cell.spec(cluster_id).deletions == ()
    delete(cluster_id)
    assert cell.spec(cluster_id).deletions == ((T0_MS, None),)
    at(5)
    undelete(cluster_id)
    assert cell.spec(cluster_id).deletions == ((T0_MS, hours_ms(5)),)
    at(7)
    delete(cluster_id)
    assert cell.spec(cluster_id).deletions == ((T0_MS, hours_ms(5)), (hours_ms(7), None))


def test_a_deletion_that_the_cell_gets_late_begins_then(
    api, make_cluster, reconcile, cell, at, row
):
    cluster_id = make_cluster(name="late")
    assert api().delete(f"/clusters/{cluster_id}", query={"name": "late"}).status_code == 202
    at(1)
    reconcile(cluster_id)
    at(2)
    reconcile(cluster_id)
    assert cell.spec(cluster_id).deletions == ((hours_ms(1), None),)
    assert row(cluster_id).deletions == [[hours_ms(1), None]]
    # People are shown the moment of their request.
    assert row(cluster_id).deleted_at == T0


def test_milliseconds_are_whole_ones():
    assert unix_ms(T0) == T0_MS


def test_data_stays_until_every_meter_has_its_usage(make_cluster, delete, cell, at, meters, tenant):
    cluster_id = make_cluster()
    delete(cluster_id)
    asked = []
    answers = {"one": False, "two": True}

    def meter(name):
        def check(*, cluster_id, until):
            asked.append((cluster_id, until))
            return answers[name]

        return check

    for name in answers:
        metered.register_meter(name, meter(name))
    folder = config().cell.dfs / cluster_id
    folder.mkdir(parents=True)
    at(7 * 24 - 1)
    reconciling.sweep_clusters()
    assert asked == []
    at(7 * 24)
    reconciling.sweep_clusters()
    assert asked == [(cluster_id, T0 + timedelta(hours=1))]
    assert folder.exists()
    assert cell.spec(cluster_id) is not None
    answers["one"] = True
    reconciling.sweep_clusters()
    assert not folder.exists()
    assert cell.spec(cluster_id) is None
    with organization_scope(tenant.id):
        assert Cluster.objects.get(pk=cluster_id).intent == "purged"
        gone = AuditEntry.objects.get(action="cluster.purge")
        assert (gone.target_id, gone.actor_kind) == (cluster_id, "system")


def test_a_cluster_that_waits_for_its_meter_is_not_restored(make_cluster, delete, api, at, meters):
    cluster_id = make_cluster()
    delete(cluster_id)
    metered.register_meter("slow", lambda **_: False)
    at(7 * 24)
    reconciling.sweep_clusters()
    cases.assert_problem(api().post(f"/clusters/{cluster_id}:undelete"), 404, "not_found")


def test_a_meter_that_never_has_it_is_not_waited_for_for_ever(
    make_cluster, delete, cell, at, meters
):
    cluster_id = make_cluster()
    delete(cluster_id)
    metered.register_meter("lost", lambda **_: False)
    at(37 * 24 - 1)
    reconciling.sweep_clusters()
    assert cell.spec(cluster_id) is not None
    at(37 * 24)
    reconciling.sweep_clusters()
    assert cell.spec(cluster_id) is None


def test_a_meter_that_fails_keeps_the_data_and_the_transaction(
    make_cluster, delete, cell, at, meters, tenant
):
    cluster_id = make_cluster()
    delete(cluster_id)

    def check(**_):
        with connection.cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")

    metered.register_meter("broken", check)
    at(7 * 24)
    reconciling.sweep_clusters()
    assert cell.spec(cluster_id) is not None
    with organization_scope(tenant.id):
        assert Cluster.objects.get(pk=cluster_id).checked_at == T0 + timedelta(days=7)
    del meters["broken"]
    reconciling.sweep_clusters()
    assert cell.spec(cluster_id) is None
