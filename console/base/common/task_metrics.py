"""Celery's signals as metrics: how long tasks ran, and what was sent."""

from __future__ import annotations

import os
import time
from contextvars import ContextVar

from celery import Task, signals
from prometheus_client import multiprocess

from console.base.common import metrics
from console.base.common.conf import config

_began: ContextVar[float] = ContextVar("task_began", default=0.0)
# Celery's states of a task that ended, as outcomes.
OUTCOMES = {"SUCCESS": "succeeded", "FAILURE": "failed", "RETRY": "retried"}
OTHER = "ended"


@signals.task_prerun.connect
def note_begin(**_: object) -> None:
    """A task begins in this process."""
    _began.set(time.perf_counter())


@signals.task_postrun.connect
def note_end(task: Task[..., object] | None = None, state: str = "", **_: object) -> None:
    """It ended, however."""
    if task is not None and task.name:
        took_s = time.perf_counter() - _began.get()
        metrics.TASKS.labels(task.name, OUTCOMES.get(state, OTHER)).observe(took_s)


@signals.after_task_publish.connect
def note_sent(sender: str | None = None, **_: object) -> None:
    """This process gave a task to the broker."""
    metrics.TASKS_SENT.labels(str(sender)).inc()


@signals.worker_ready.connect
def serve_worker(sender: object = None, **_: object) -> None:
    """In a worker's parent: adds up what its children count."""
    name = str(getattr(sender, "hostname", "")).partition("@")[0]
    addresses = config().metrics
    metrics.serve_metrics(addresses.nightly if name == "nightly" else addresses.worker, name)


@signals.worker_process_shutdown.connect
def forget_child(pid: int | None = None, **_: object) -> None:
    """A child ended: what it counted stays, what it was gauged at goes."""
    if os.environ.get(metrics.MULTIPROCESS) and pid is not None:
        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]


@signals.beat_init.connect
def serve_scheduler(**_: object) -> None:
    """There is one scheduler, so it tells what the database knows."""
    metrics.serve_metrics(config().metrics.scheduler, "beat", database=True)
