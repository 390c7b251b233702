"""A cell, a store or a server that hangs: no task waits for it within a transaction.

Each test lets a task of a worker run into something that takes the request and never answers, and
then looks at PostgreSQL, which is real: nobody is in a transaction, no row is locked, and tasks of
others go on.
"""

import dataclasses
import socket
from contextlib import suppress
from datetime import timedelta

import pytest
from celery import current_app
from django.core import mail
from django.db import connection

from console.alerts.models import Alert
from console.base.accounts.models import PasswordReset
from console.base.common import locks
from console.base.common.actor import system_actor
from console.base.common.away import AWAY_S, HUNG_S, Answering
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from provisioning import cells
from provisioning.clusters.services import clusters
from provisioning.models import Cluster, Credential
from provisioning.reconciling import service as reconciling
from tests.console.factories import make_tenant
from tests.console.scopes import running
from tests.isolation.hosts import Host, silent

LIMIT_S = 120

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """The clock by which a process knows how long something hung: it moves when a test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The clock of whether the metadata store answers; no test knows what hung in another one."""
    known, made = cells._store_answers, Clock()
    fresh = Answering("metadata", failures=known._failures, refusal=known._refusal, clock=made)
    monkeypatch.setattr(cells, "_store_answers", fresh)
    return made


@pytest.fixture
def host():
    """A server that takes what it is sent and never answers."""
    made = Host(socket.create_server(("127.0.0.1", 0)), silent)
    yield made
    made.close()


@pytest.fixture
def hung_cell(host, settings):
    """The cell's metadata store is that server."""
    known = config()
    place = f"etcd://127.0.0.1:{host.port}/freshet/"
    cell = dataclasses.replace(known.cell, metadata=place)
    settings.FRESHET = dataclasses.replace(known, cell=cell)
    return host


@pytest.fixture
def tenant():
    return make_tenant("Acme")


@pytest.fixture
def cluster(tenant):
    """A cluster with work for every task: an operation, an expired credential, an alert."""
    with organization_scope(tenant.id):
        row = clusters.create_cluster(actor=system_actor(tenant.id), name="x").cluster
        Credential.objects.create(
            organization_id=tenant.id,
            cluster=row,
            name="x",
            role="none",
            expires_at=now() - timedelta(seconds=1),
        )
        Alert.objects.create(
            organization_id=tenant.id,
            cluster=row,
            name="x",
            kind="connections",
            threshold=1,
            for_s=0,
        )
    return row


@pytest.fixture(autouse=True)
def _tasks_are_known():
    current_app.loader.import_default_modules()


def task(name, **arguments):
    """Returns what runs a task as a worker does."""
    return lambda: current_app.tasks[name].apply(kwargs=arguments, throw=True)


def await_visit(host, thread, *, before=0):
    """Waits until somebody waits for the host."""
    while host.visits <= before:
        thread.join(0.01)
        assert thread.is_alive()


def states():
    """The states of all other sessions of this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return {state for (state,) in cursor.fetchall()}


def assert_nobody_is_in_a_transaction():
    assert states() <= {"idle"}


CELL_TASKS = (
    "provisioning.reconcile_cluster",
    "provisioning.sweep_clusters",
    "provisioning.expire_credentials",
    "alerts.evaluate_alerts",
    "incidents.sweep_incidents",
)


@pytest.mark.parametrize("name", CELL_TASKS)
def test_while_a_cell_hangs_no_task_is_in_a_transaction(hung_cell, tenant, cluster, name):
    arguments = {}
    if name == "provisioning.reconcile_cluster":
        arguments = {"organization_id": tenant.id, "cluster_id": cluster.pk}
    with running(task(name, **arguments), LIMIT_S) as worker:
        await_visit(hung_cell, worker)
        assert_nobody_is_in_a_transaction()
        # A request of the same organization changes the same rows meanwhile.
        with organization_scope(tenant.id):
            assert Cluster.objects.select_for_update(nowait=True).get() == cluster
            assert list(Alert.objects.select_for_update(nowait=True))
            clusters.create_cluster(actor=system_actor(tenant.id), name="y")
        hung_cell.close()


def test_a_cluster_that_is_reconciled_is_locked_for_others_meanwhile(hung_cell, tenant, cluster):
    def reconcile():
        reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster.pk)

    with running(reconcile, LIMIT_S) as worker:
        await_visit(hung_cell, worker)
        with organization_scope(tenant.id):
            assert not locks.try_lock("cluster", cluster.pk)
        # Nobody waits for it, and another worker comes again.
        assert reconciling.reconcile_cluster(organization_id=tenant.id, cluster_id=cluster.pk)
        assert hung_cell.visits == 1
        hung_cell.close()
    with organization_scope(tenant.id):
        assert locks.try_lock("cluster", cluster.pk)


def test_a_hanging_cell_takes_the_time_of_one_task_at_most(hung_cell, tenant, cluster, clock):
    other = make_tenant("Globex")
    with organization_scope(other.id):
        for number in range(5):
            clusters.create_cluster(actor=system_actor(other.id), name=f"c{number}")
    reconcile = task(
        "provisioning.reconcile_cluster", organization_id=tenant.id, cluster_id=cluster.pk
    )
    with running(reconcile, LIMIT_S) as worker:
        await_visit(hung_cell, worker)
        clock.now += HUNG_S
        hung_cell.drop()
    # One task has waited in vain. Those that follow, for whichever cluster, do not wait.
    seen = hung_cell.visits
    for name in CELL_TASKS[1:]:
        task(name)()
    assert hung_cell.visits == seen
    # When it is tried again, one task of all workers waits.
    clock.now += AWAY_S
    with running(reconcile, LIMIT_S) as worker:
        await_visit(hung_cell, worker, before=seen)
        for name in CELL_TASKS[1:]:
            task(name)()
        assert hung_cell.visits == seen + 1
        # What needs no cell goes on.
        reset = PasswordReset.objects.create(email=other.owner.email)
        task("accounts.send_password_reset", reset_id=reset.pk)()
        assert [message.to for message in mail.outbox] == [[other.owner.email]]
        hung_cell.close()


@pytest.fixture
def hung_mail(host, settings, monkeypatch):
    """The mail server is that server."""
    fresh = Answering("mail", failures=(OSError,), refusal=ConnectionError)
    monkeypatch.setattr("console.base.common.mail._server_answers", fresh)
    settings.EMAIL_BACKEND = "console.base.common.mail.SmtpBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", host.port
    settings.EMAIL_USE_TLS = False
    return host


def test_while_the_mail_server_hangs_no_task_is_in_a_transaction(hung_mail, tenant):
    reset = PasswordReset.objects.create(email=tenant.owner.email)

    def send():
        with suppress(OSError):
            current_app.tasks["accounts.send_password_reset"].run(reset_id=reset.pk)

    with running(send, LIMIT_S) as worker:
        await_visit(hung_mail, worker)
        assert_nobody_is_in_a_transaction()
        # Another worker that has the task too, as queues deliver twice, does not wait.
        with pytest.raises(BlockingIOError):
            current_app.tasks["accounts.send_password_reset"].run(reset_id=reset.pk)
        hung_mail.close()
    # It was not sent: the row stays for the next try.
    assert PasswordReset.objects.filter(pk=reset.pk).exists()
