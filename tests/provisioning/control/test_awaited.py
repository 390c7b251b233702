"""Requests that wait for operations share one look at the database."""

import threading
import time

import pytest

from console.base.common.actor import system_actor
from console.base.common.tenancy import organization_scope
from provisioning.clusters.services import awaited, clusters
from provisioning.clusters.services.awaited import AwaitedOperations
from provisioning.models import Operation
from tests.supervisor.run import wait_until

LIMIT_S = 30.0
WAITERS = 20

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operation_id(tenant, cell):
    with organization_scope(tenant.id):
        return clusters.create_cluster(actor=system_actor(tenant.id), name="awaited").pk


def finish(tenant, operation_id):
    with organization_scope(tenant.id):
        Operation.objects.filter(pk=operation_id).update(state="succeeded")


def test_all_who_wait_are_woken_by_few_looks(tenant, operation_id, monkeypatch):
    looks = []
    unfinished = awaited._unfinished

    def counted(ids):
        looks.append(ids)
        return unfinished(ids)

    monkeypatch.setattr(awaited, "_unfinished", counted)
    operations = AwaitedOperations()
    began = time.monotonic()
    threads = [
        threading.Thread(target=operations.wait, args=(operation_id, LIMIT_S))
        for _ in range(WAITERS)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(operations._waiting[operation_id]) == WAITERS, "all wait")
    finish(tenant, operation_id)
    for thread in threads:
        thread.join(LIMIT_S)
    took_s = time.monotonic() - began
    assert took_s < LIMIT_S / 2
    assert len(looks) <= took_s / awaited.LOOK_EVERY_S + 2
    # Then nothing looks any more.
    wait_until(lambda: not operations._looks, "its thread ends")
    assert not operations._waiting


def test_who_waits_in_vain_leaves_in_time(operation_id):
    operations = AwaitedOperations()
    began = time.monotonic()
    operations.wait(operation_id, 0.3)
    assert 0.3 <= time.monotonic() - began < LIMIT_S
    wait_until(lambda: not operations._looks, "its thread ends")


def test_a_database_that_does_not_answer_ends_the_wait(operation_id, monkeypatch):
    def fail(ids):
        raise OSError

    monkeypatch.setattr(awaited, "_unfinished", fail)
    began = time.monotonic()
    AwaitedOperations().wait(operation_id, LIMIT_S)
    assert time.monotonic() - began < LIMIT_S / 2
