"""A real worker, killed in the middle of a task, and a Redis that loses everything."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from celery import Celery
from django.db import connections
from redis import Redis

from console.base.common import queued
from console.base.common.actor import system_actor
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning.cells import cell_store
from provisioning.clusters.services import clusters
from provisioning.models import Operation
from provisioning.reconciling import service as reconciling
from tests.console.factories import make_tenant
from tests.provisioning.control.world import prepare_cell, put_status
from tests.redis import running_redis
from tests.settings import HOME

ROOT = Path(__file__).parents[3]
READY = re.compile(r"@\S+ ready\.")
# How often a test looks whether a worker has done something: two minutes in all. A worker that
# works needs a few seconds.
LOOKS_MAX = 2_400
LOOK_EVERY_S = 0.05


class Worker:
    """Celery's worker as `make up` runs it, with one process for tasks."""

    def __init__(self, redis: str, log: Path) -> None:
        database = connections["default"].settings_dict
        self.log = log
        with log.open("w") as stream:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "celery", "--app", "console.celery", "--quiet"),
                    *("worker", "--hostname", "worker@%h", "--queues", "celery"),
                    *("--concurrency", "1", "--loglevel", "INFO"),
                    *("--without-mingle", "--without-gossip", "--without-heartbeat"),
                ],
                cwd=ROOT,
                env={
                    **os.environ,
                    "FRESHET_HOME": str(HOME),
                    "FRESHET_QUEUE_URL": redis,
                    "FRESHET_DATABASE_HOST": str(database["HOST"]),
                    "FRESHET_DATABASE_NAME": str(database["NAME"]),
                    "DJANGO_SETTINGS_MODULE": "console.settings",
                    "PYTHONWARNINGS": "ignore:You're running the worker",
                },
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def until(self, holds: Callable[[], bool]) -> None:
        """Waits until `holds` returns true. Fails if the worker ends, or after two minutes."""
        for _ in range(LOOKS_MAX):
            if holds():
                return
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(LOOK_EVERY_S)
                break
        raise AssertionError(self.log.read_text()[-4000:])

    def ready(self) -> bool:
        """Returns whether the worker takes tasks."""
        return READY.search(self.log.read_text()) is not None

    def kill_task(self) -> None:
        """Kills the process that runs tasks, as the kernel does when memory runs out."""
        own = self.process.pid
        (child,) = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)

    def end(self) -> None:
        """Kills the worker and its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def held_operation(operation_id: str) -> Iterator[Callable[[], bool]]:
    """Locks the operation's row, so that whoever changes it waits until the end of the block.

    Yields a function that returns whether somebody waits.
    """
    database = connections["default"].settings_dict
    address = f"host={database['HOST']} user=postgres dbname={database['NAME']}"
    with (
        psycopg.connect(address) as holder,
        # Within a transaction pg_stat_activity shows what it showed at the first query.
        psycopg.connect(address, autocommit=True) as looker,
    ):
        row = holder.execute(
            "SELECT 1 FROM provisioning_operation WHERE id = %s FOR UPDATE", [operation_id]
        )
        assert row.fetchone()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
        process = holder.info.backend_pid
        yield lambda: looker.execute(waiting, [process]).fetchone() == (1,)


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_killed_in_a_task_has_it_done_all_the_same(tmp_path):
    prepare_cell()
    tenant = make_tenant("Killed")
    with organization_scope(tenant.id):
        operation = clusters.create_cluster(actor=system_actor(tenant.id), name="x")
        # It has its turn, so that the first thing that a worker writes of it is its progress.
        Operation.objects.filter(pk=operation.pk).update(started_at=now())
    cluster_id = operation.cluster_id

    def state() -> str:
        with organization_scope(tenant.id):
            return str(Operation.objects.get(pk=operation.pk).state)

    with running_redis() as redis:
        queue = Celery(broker=redis, set_as_current=False)
        worker = Worker(redis, tmp_path / "worker.log")
        try:
            worker.until(worker.ready)
            with held_operation(operation.pk) as somebody_waits:
                queue.send_task(queued.NEXT_TASK)
                worker.until(somebody_waits)
                # By now the cell has the new cluster, and the database has not committed it.
                assert cell_store().spec(cluster_id) is not None
                worker.kill_task()
                assert state() == "queued"
            # The task is delivered again, goes on, and sends itself again until it is done.
            worker.until(lambda: state() == "running")
            put_status(cluster_id, "running")
            worker.until(lambda: state() == "succeeded")
        finally:
            worker.end()
        Redis(unix_socket_path=redis.removeprefix("redis+socket://")).flushall()
    spec, revision = cell_store().spec(cluster_id), cell_store().specs().revision
    reconciling.sweep_clusters()
    assert (cell_store().spec(cluster_id), cell_store().specs().revision) == (spec, revision)
    with organization_scope(tenant.id):
        assert AuditEntry.objects.filter(action="cluster.create").count() == 1
        assert Operation.objects.count() == 1
