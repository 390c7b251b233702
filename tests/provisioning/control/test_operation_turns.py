"""Operations that start brokers: so many of an organization run, the others wait in the table."""

from datetime import timedelta

import pytest

from console.base.common.actor import system_actor
from console.base.common.clock import now
from console.base.common.models import OutboxEntry
from console.base.common.tenancy import organization_scope
from provisioning.clusters.services import clusters, operations
from provisioning.models import Operation
from provisioning.reconciling import service as reconciling
from tests.provisioning.control.world import put_status

MOST = operations.STARTS_PER_ORGANIZATION
CREATED = MOST + 3


def create(tenant, count):
    """Creates clusters, each later than the one before. Returns their ids."""
    with organization_scope(tenant.id):
        actor, ids = system_actor(tenant.id), []
        for number in range(count):
            operation = clusters.create_cluster(
                actor=actor, name=f"c{number}", deletion_protection=False
            )
            created_at = now() - timedelta(seconds=30 - number)
            Operation.objects.filter(pk=operation.pk).update(created_at=created_at)
            ids.append(operation.cluster_id)
        OutboxEntry.objects.all().delete()
    return ids


@pytest.fixture
def created(tenant):
    return create(tenant, CREATED)


def states(tenant):
    """The states of the organization's operations, the oldest first."""
    with organization_scope(tenant.id):
        return list(Operation.objects.order_by("created_at").values_list("state", flat=True))


def enqueued(tenant):
    """The clusters of stored tasks, which are removed."""
    with organization_scope(tenant.id):
        rows = OutboxEntry.objects.order_by("created_at")
        ids = [entry.arguments["cluster_id"] for entry in rows]
        rows.delete()
    return ids


def test_the_oldest_ones_run_whichever_is_looked_at_first(created, tenant, reconcile, cell):
    for cluster_id in reversed(created):
        reconcile(cluster_id)
    assert states(tenant) == ["running"] * MOST + ["queued"] * (CREATED - MOST)
    # Of those that wait the cell knows nothing, so that no keeper starts them.
    assert [cell.spec(cluster_id) is None for cluster_id in created] == (
        [False] * MOST + [True] * (CREATED - MOST)
    )
    # And nobody comes again and again.
    assert reconcile(created[-1]) is False


def test_when_one_ends_the_next_one_is_looked_at(created, tenant, reconcile):
    for cluster_id in created[:MOST]:
        reconcile(cluster_id)
    assert enqueued(tenant) == []
    put_status(created[1], "running")
    reconcile(created[1])
    assert states(tenant)[1] == "succeeded"
    assert enqueued(tenant) == [created[MOST]]
    reconcile(created[MOST])
    assert states(tenant)[MOST] == "running"
    assert reconcile(created[MOST + 1]) is False


def test_one_that_is_cancelled_leaves_the_line_at_once(created, tenant, reconcile, api):
    for cluster_id in created[:MOST]:
        reconcile(cluster_id)
    address = f"/clusters/{created[MOST]}"
    assert api().delete(address, query={"name": f"c{MOST}"}).status_code == 202
    with organization_scope(tenant.id):
        first = Operation.objects.filter(cluster_id=created[MOST]).order_by("created_at").first()
    assert first is not None
    assert first.state == "cancelled"
    enqueued(tenant)
    put_status(created[0], "running")
    reconcile(created[0])
    assert enqueued(tenant) == [created[MOST + 1]]
    # The deletion does not start brokers, and so waits for nobody.
    reconcile(created[MOST])
    with organization_scope(tenant.id):
        last = Operation.objects.filter(cluster_id=created[MOST]).latest("created_at")
    assert (last.type, last.state) == ("delete_cluster", "succeeded")


def test_another_organization_waits_for_nobody(created, other_tenant, reconcile, cell):
    for cluster_id in created:
        reconcile(cluster_id)
    (cluster_id,) = create(other_tenant, 1)
    assert reconciling.reconcile_cluster(organization_id=other_tenant.id, cluster_id=cluster_id)
    assert states(other_tenant) == ["running"]
    assert cell.spec(cluster_id) is not None


def test_its_time_counts_from_its_turn(created, tenant, reconcile):
    for cluster_id in created[:MOST]:
        reconcile(cluster_id)
    with organization_scope(tenant.id):
        # It waited for longer than brokers may take.
        waiting = Operation.objects.filter(cluster_id=created[MOST])
        waiting.update(created_at=now() - timedelta(seconds=20))
        Operation.objects.exclude(cluster_id=created[MOST]).update(
            created_at=now() - timedelta(minutes=5)
        )
        waiting.update(created_at=now() - timedelta(minutes=4))
    for cluster_id in created[:MOST]:
        put_status(cluster_id, "running")
        reconcile(cluster_id)
    assert reconcile(created[MOST]) is True
    with organization_scope(tenant.id):
        assert waiting.get().state == "running"


def test_a_waiting_wake_keeps_no_other_change_from_the_cell(tenant, make_cluster, reconcile, cell):
    sleeping = make_cluster()
    ids = create(tenant, MOST)
    for cluster_id in ids:
        reconcile(cluster_id)
    with organization_scope(tenant.id):
        cluster = Operation.objects.filter(cluster_id=sleeping)[0].cluster
        clusters.wake_cluster(actor=system_actor(tenant.id), cluster=cluster)
        clusters.update_cluster(
            actor=system_actor(tenant.id), cluster=cluster, changes={"idle_timeout_s": 77}
        )
    reconcile(sleeping)
    assert cell.spec(sleeping).idle_timeout_ms == 77_000
    assert cell.wake(sleeping) is None
    put_status(ids[0], "running")
    reconcile(ids[0])
    reconcile(sleeping)
    assert cell.wake(sleeping) is not None


def test_the_sweep_leaves_those_that_wait(created, tenant, monkeypatch):
    monkeypatch.setattr(reconciling, "RECHECKED_A_SWEEP", 0)
    assert reconciling.sweep_clusters() == MOST
    assert states(tenant) == ["running"] * MOST + ["queued"] * (CREATED - MOST)
    # One whose message was lost is looked at without one.
    put_status(created[0], "running")
    reconciling.sweep_clusters()
    reconciling.sweep_clusters()
    assert states(tenant)[0] == "succeeded"
    assert states(tenant)[MOST] == "running"
