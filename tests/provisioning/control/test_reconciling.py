"""Tasks lost, doubled and late; a metadata store that fails or loses answers; the sweep."""

import itertools
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from brokers.errors import ConflictError, UnavailableError, UnknownOutcomeError
from brokers.metadata import CellStore, ClusterStore
from console.base.accounts.choices import AccountStatus
from console.base.accounts.services import set_account_status
from console.base.common import locks
from console.base.common.actor import system_actor
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.models import OutboxEntry
from console.base.common.tenancy import organization_scope
from provisioning import tasks
from provisioning.cell.notes import removal_of
from provisioning.cells import cluster_store
from provisioning.choices import OperationState, OperationType
from provisioning.clusters.services import clusters, operations
from provisioning.models import CellPort, Cluster, Operation
from provisioning.reconciling import service as reconciling
from tests.console import cases
from tests.console.factories import make_tenant
from tests.console.scopes import seeing_rows_of
from tests.provisioning.control.world import failing, lost, prepare_cell, put_status

UNAVAILABLE = UnavailableError("the store is away")


def lost_answer():
    return lost(UnknownOutcomeError("the answer was lost"))


@pytest.fixture
def begun(api):
    """A cluster that was asked for, and that no worker has seen."""
    operation = api().post("/clusters", {"name": "orders", "deletion_protection": False}).json()
    return operation["resource_id"], operation["id"]


@pytest.fixture
def state(api):
    """State of an operation."""
    return lambda operation_id: api().get(f"/operations/{operation_id}").json()["state"]


def test_a_change_and_its_task_are_one_transaction(begun, tenant):
    cluster_id, _ = begun
    with organization_scope(tenant.id):
        entry = OutboxEntry.objects.get()
    assert entry.task == operations.RECONCILE == tasks.reconcile_cluster.name
    assert entry.arguments == {"organization_id": tenant.id, "cluster_id": cluster_id}


def test_a_refused_change_leaves_neither_row_nor_task(api, tenant):
    assert api().post("/clusters", {"name": "x", "region": "moon"}).status_code == 422
    with organization_scope(tenant.id):
        assert not Cluster.objects.exists()
        assert not OutboxEntry.objects.exists()
    assert not CellPort.objects.exists()


def test_doubled_and_late_tasks_change_nothing_in_the_end(begun, state, reconcile, cell):
    cluster_id, operation_id = begun
    for _ in range(3):
        reconcile(cluster_id)
    put_status(cluster_id, "running")
    reconcile(cluster_id)
    spec, revision = cell.spec(cluster_id), cell.specs().revision
    for _ in range(3):
        reconcile(cluster_id)
    assert state(operation_id) == "succeeded"
    assert cell.spec(cluster_id) == spec
    # Nothing was written again, not even the same.
    assert cell.specs().revision == revision


def test_without_any_task_the_sweep_does_it(begun, state, cell):
    cluster_id, operation_id = begun
    assert reconciling.sweep_clusters() == 1
    assert cell.spec(cluster_id).generation == 1
    put_status(cluster_id, "running")
    reconciling.sweep_clusters()
    assert state(operation_id) == "succeeded"


def test_the_sweep_comes_to_every_cluster(make_cluster, cell, monkeypatch):
    ids = [make_cluster() for _ in range(5)]
    for cluster_id in ids:
        cell.remove_spec(cluster_id)
    monkeypatch.setattr(reconciling, "RECHECKED_A_SWEEP", 2)
    for _ in range(3):
        reconciling.sweep_clusters()
    assert all(cell.spec(cluster_id) is not None for cluster_id in ids)


def test_a_worker_with_an_old_row_changes_nothing(api, cluster_id, reconcile, cell, tenant):
    with seeing_rows_of(tenant.id):
        stale = Cluster.objects.get(pk=cluster_id)
        api().patch(f"/clusters/{cluster_id}", {"idle_timeout_s": 10})
        reconcile(cluster_id)
        with pytest.raises(ConflictError):
            cell.put_spec(reconciling.spec_of(stale))
    assert cell.spec(cluster_id).idle_timeout_ms == 10_000


CALLS = [
    (CellStore, "spec"),
    (CellStore, "status"),
    (CellStore, "wake"),
    (CellStore, "put_spec"),
    (CellStore, "request_wake"),
    (ClusterStore, "record"),
    (ClusterStore, "create"),
    (ClusterStore, "list_users"),
]


@pytest.mark.parametrize(("owner", "call"), CALLS, ids=lambda part: getattr(part, "__name__", part))
@pytest.mark.parametrize("error", [UNAVAILABLE, None], ids=["unavailable", "lost answer"])
def test_a_failing_call_leaves_the_operation_open_and_the_sweep_repairs(
    begun, state, reconcile, cell, owner, call, error
):
    cluster_id, operation_id = begun
    with failing(call, error or lost_answer(), owner=owner) as left:
        assert reconcile(cluster_id) is True
        assert left == []
    assert state(operation_id) in {"queued", "running"}
    reconciling.sweep_clusters()
    assert cell.spec(cluster_id).generation == 1
    put_status(cluster_id, "running")
    reconciling.sweep_clusters()
    assert state(operation_id) == "succeeded"
    assert cluster_store(cluster_id).record().scale == 1


def test_a_store_that_stays_away_keeps_the_cluster_unknown_and_open(begun, state, reconcile, api):
    cluster_id, operation_id = begun
    away = [UNAVAILABLE] * 20
    with failing("status", *away, owner=CellStore):
        for _ in range(5):
            assert reconcile(cluster_id) is True
        assert api().get(f"/clusters/{cluster_id}").json()["status"]["phase"] == "unknown"
    assert state(operation_id) == "queued"


def later(cluster_id, tenant, **ago):
    """Has an operation begun earlier."""
    with organization_scope(tenant.id):
        moment = now() - timedelta(**ago)
        rows = Operation.objects.filter(cluster_id=cluster_id)
        rows.update(created_at=moment, started_at=moment)


def test_brokers_that_never_come_fail_the_operation_and_not_the_cluster(
    begun, api, reconcile, tenant
):
    cluster_id, operation_id = begun
    assert reconcile(cluster_id) is True
    later(cluster_id, tenant, seconds=61)
    assert reconcile(cluster_id) is False
    failed = api().get(f"/operations/{operation_id}").json()
    assert (failed["state"], failed["error"]["code"]) == ("failed", "start_timed_out")
    put_status(cluster_id, "running")
    reconcile(cluster_id)
    # Final is final.
    assert api().get(f"/operations/{operation_id}").json() == failed
    assert api().get(f"/clusters/{cluster_id}").json()["status"]["phase"] == "running"


def test_what_takes_long_is_left_to_the_sweep(api, make_cluster, reconcile, tenant, state):
    cluster_id = make_cluster(name="slow")
    put_status(cluster_id, "running")
    deleting = api().delete(f"/clusters/{cluster_id}", query={"name": "slow"}).json()["id"]
    assert reconcile(cluster_id) is True
    with organization_scope(tenant.id):
        long_ago = now() - timedelta(hours=1)
        Operation.objects.filter(pk=deleting).update(created_at=long_ago)
    assert reconcile(cluster_id) is False
    assert state(deleting) == "running"
    put_status(cluster_id, "asleep", 2)
    reconciling.sweep_clusters()
    assert state(deleting) == "succeeded"


def test_final_is_final(begun, tenant):
    with organization_scope(tenant.id):
        operation = Operation.objects.get()
        assert operations.finish_operation(operation=operation, state=OperationState.CANCELLED)
        for state in OperationState:
            assert not operations.finish_operation(operation=operation, state=state)
        operations.note_progress(operation=operation, percent=90)
        operation.refresh_from_db()
    assert (operation.state, operation.progress) == ("cancelled", 0)


def test_progress_never_goes_back(begun, tenant):
    with organization_scope(tenant.id):
        operation = Operation.objects.get()
        for percent in (50, 10):
            operations.note_progress(operation=operation, percent=percent)
        operation.refresh_from_db()
    assert operation.progress == 50


def test_a_database_holds_one_unfinished_operation_a_cluster(begun, tenant):
    with organization_scope(tenant.id):
        existing = Operation.objects.get()
        with pytest.raises(IntegrityError), transaction.atomic():
            Operation.objects.create(
                organization_id=tenant.id,
                cluster_id=existing.cluster_id,
                type=OperationType.WAKE_CLUSTER,
                generation=1,
            )


def deleted(api, make_cluster, reconcile, tenant, **ago):
    cluster_id = make_cluster(name="gone")
    api().post(f"/clusters/{cluster_id}/topics", {"name": "t"})
    api().post(f"/clusters/{cluster_id}/credentials", {"name": "c", "role": "full"})
    api().delete(f"/clusters/{cluster_id}", query={"name": "gone"})
    reconcile(cluster_id)
    put_status(cluster_id, "asleep", 2)
    reconcile(cluster_id)
    with organization_scope(tenant.id):
        Cluster.objects.filter(pk=cluster_id).update(deleted_at=now() - timedelta(**ago))
    return cluster_id


def test_after_seven_days_nothing_is_left(api, make_cluster, reconcile, tenant, cell):
    cluster_id = deleted(api, make_cluster, reconcile, tenant, days=7, seconds=1)
    folders = [config().cell.dfs / cluster_id, config().cell.dfs.parent / "bucket" / cluster_id]
    for folder in folders:
        folder.mkdir(parents=True)
    reconciling.sweep_clusters()
    assert cell.spec(cluster_id) is None
    # The keeper's word, and nothing else is there for it to look at.
    assert removal_of(cell, cluster_id) is not None
    assert cluster_store(cluster_id).topics() == []
    assert cluster_store(cluster_id).list_users() == []
    assert not any(folder.exists() for folder in folders)
    assert not CellPort.objects.exists()
    cases.assert_problem(api().get(f"/clusters/{cluster_id}"), 404, "not_found")
    reconciling.sweep_clusters()


def test_before_that_all_of_it_is(api, make_cluster, reconcile, tenant):
    cluster_id = deleted(api, make_cluster, reconcile, tenant, days=6, hours=23)
    reconciling.sweep_clusters()
    assert [topic.name for topic in cluster_store(cluster_id).topics()] == ["t"]


@pytest.mark.parametrize(
    ("owner", "call"),
    [(CellStore, "put_removal"), (CellStore, "remove_spec"), (ClusterStore, "remove_all")],
)
def test_a_purge_that_was_cut_short_goes_on(
    api, make_cluster, reconcile, tenant, cell, owner, call
):
    cluster_id = deleted(api, make_cluster, reconcile, tenant, days=8)
    with failing(call, UNAVAILABLE, owner=owner):
        reconciling.sweep_clusters()
    reconciling.sweep_clusters()
    assert cluster_store(cluster_id).topics() == []


def test_a_purge_that_was_cut_short_leaves_nothing_to_restore(api, make_cluster, reconcile, tenant):
    cluster_id = deleted(api, make_cluster, reconcile, tenant, days=8)
    with failing("remove_all", UNAVAILABLE, owner=ClusterStore):
        reconciling.sweep_clusters()
    cases.assert_problem(api().post(f"/clusters/{cluster_id}:undelete"), 404, "not_found")


def test_a_cluster_that_a_defect_stops_at_holds_up_no_other(api, cell, monkeypatch):
    first, second = (
        api().post("/clusters", {"name": name}).json()["resource_id"] for name in ("a", "b")
    )
    real = reconciling.observe_cluster

    def observe(cluster):
        if cluster.pk == first:
            message = "a defect"
            raise RuntimeError(message)
        return real(cluster)

    monkeypatch.setattr(reconciling, "observe_cluster", observe)
    reconciling.sweep_clusters()
    assert cell.spec(first) is None
    assert cell.spec(second) is not None


def somebody_waits():
    """Whether a transaction of ours waits for another's lock."""
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0] > 0


@pytest.mark.django_db(transaction=True)
def test_a_cluster_that_is_made_while_its_organization_is_suspended_is_suspended():
    prepare_cell()
    tenant = make_tenant("Between")

    def suspend():
        try:
            set_account_status(
                organization_id=tenant.id, status=AccountStatus.SUSPENDED, reason="test"
            )
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool:
        with organization_scope(tenant.id):
            clusters.create_cluster(actor=system_actor(tenant.id), name="x")
            suspending = pool.submit(suspend)
            while not (suspending.done() or somebody_waits()):
                wait([suspending], timeout=0.02)
        suspending.result()
    with organization_scope(tenant.id):
        assert Cluster.objects.get().suspended


@pytest.mark.django_db(transaction=True)
def test_a_sweep_passes_by_what_another_worker_is_at(cell):
    tenant = make_tenant("Passed by")
    with organization_scope(tenant.id):
        actor = system_actor(tenant.id)
        busy, free = (
            clusters.create_cluster(actor=actor, name=name).cluster.pk for name in ("a", "b")
        )

    def sweep():
        try:
            return reconciling.sweep_clusters()
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool, organization_scope(tenant.id):
        locks.lock("cluster", busy)
        sweeping = pool.submit(sweep)
        while not (sweeping.done() or somebody_waits()):
            wait([sweeping], timeout=0.02)
        assert sweeping.done()
    assert cell.spec(busy) is None
    assert cell.spec(free) is not None


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_a_time_do_it_once():
    """Each in a thread and a transaction of its own; who finds the cluster locked comes again."""
    prepare_cell()
    tenant = make_tenant("Twice")
    with organization_scope(tenant.id):
        actor = system_actor(tenant.id)
        cluster_id = clusters.create_cluster(actor=actor, name="x").cluster.pk

    def work(_):
        try:
            return reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster_id)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [True] * 8
    put_status(cluster_id, "running")
    with ThreadPoolExecutor(4) as pool:
        # Of those that found it locked nobody knows whether something is left to do.
        list(pool.map(work, range(8)))
    assert work(0) is False
    with organization_scope(tenant.id):
        assert Operation.objects.get().state == "succeeded"


@pytest.mark.django_db(transaction=True)
def test_two_clusters_at_a_time_get_ports_of_their_own():
    prepare_cell()
    tenants = [make_tenant(f"Many{n}") for n in range(2)]

    def create(number):
        try:
            tenant = tenants[number % 2]
            with organization_scope(tenant.id):
                actor = system_actor(tenant.id)
                operation = clusters.create_cluster(actor=actor, name=f"c-{number}")
                return operation.cluster.ports
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        ports = list(pool.map(create, range(10)))
    assert sorted(itertools.chain(*ports)) == list(range(9092, 9132))
