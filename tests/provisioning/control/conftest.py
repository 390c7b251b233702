"""Fixtures of a tenant with a cluster that a worker has reconciled."""

import uuid

import pytest

from console.base.common import metered
from console.base.common.clock import now, unix_ms
from provisioning.cell.notes import KEEPER, CellHealth, put_health
from provisioning.cells import cell_store, cluster_store
from provisioning.models import Cluster
from provisioning.reconciling import service as reconciling
from tests.console import conftest as console
from tests.console.scopes import seeing_rows_of
from tests.provisioning.control.world import (
    access_of,
    prepare_cell,
    put_status,
    running_broker,
)

tenant, other_tenant, api = console.tenant, console.other_tenant, console.api


@pytest.fixture(autouse=True)
def cell(db):
    """The cell's folders and secret."""
    prepare_cell()
    return cell_store()


@pytest.fixture(autouse=True)
def meters(monkeypatch):
    """The registered meters, by name: none, so that a purge waits only where a test adds one."""
    checks: dict[str, metered.Check] = {}
    monkeypatch.setattr(metered, "_checks", checks)
    return checks


@pytest.fixture
def reconcile(tenant):
    """Reconciles a cluster, as a worker does."""

    def run(cluster_id):
        return reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster_id)

    return run


@pytest.fixture
def make_cluster(api, reconcile, cell):
    """Creates a cluster through the API and has the worker and the keeper finish it, asleep."""

    def make(**fields):
        name = f"c-{uuid.uuid4().hex[:10]}"
        body = {"name": name, "deletion_protection": False, **fields}
        response = api().post("/clusters", body)
        assert response.status_code == 202, response.content
        cluster_id = response.json()["resource_id"]
        reconcile(cluster_id)
        put_status(cluster_id, "running")
        assert reconcile(cluster_id) is False
        put_status(cluster_id, "asleep")
        wake = cell.wake(cluster_id)
        cell.remove_wake(cluster_id, wake.revision)
        return cluster_id

    return make


@pytest.fixture
def cluster_id(make_cluster):
    """The id of a cluster that sleeps."""
    return make_cluster()


@pytest.fixture
def path(cluster_id):
    """The cluster's address below `/api/v1`."""
    return f"/clusters/{cluster_id}"


@pytest.fixture
def credentials(path):
    """The address of the cluster's credentials."""
    return f"{path}/credentials"


@pytest.fixture
def store(cluster_id):
    """The cluster's part of the metadata store."""
    return cluster_store(cluster_id)


@pytest.fixture
def awake(cluster_id):
    """Starts the cluster's broker; gives the control plane's access to it."""
    with running_broker(cluster_id):
        yield access_of(cluster_id)


@pytest.fixture
def report_damage(cell):
    """Writes what a keeper would report: cluster, topic, partition, offset of damaged batches.

    `topics`: the ids of their topics; those that lack are of an earlier release's report.
    """

    def report(*damaged, topics=(), unknown=()):
        health = CellHealth(
            unix_ms(now()),
            damaged=damaged,
            damage_unknown=unknown,
            damaged_topics=tuple(topics),
        )
        put_health(cell, health)

    yield report
    # All tests share the cell.
    cell.remove_cluster(KEEPER)


@pytest.fixture
def in_tenant(tenant):
    """Runs the test in the tenant's scope, so that it sees the tenant's rows."""
    with seeing_rows_of(tenant.id):
        yield tenant


@pytest.fixture
def row(in_tenant):
    """Reads a cluster's row."""
    return lambda cluster_id: Cluster.objects.get(pk=cluster_id)
