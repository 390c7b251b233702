"""Metrics from Celery's signals: how long tasks ran, and how many were sent."""

from __future__ import annotations

import os
import time
from contextvars import ContextVar

from celery import Task, signals
from prometheus_client import multiprocess

from console.base.common import metrics
from console.base.common.conf import config

_began: ContextVar[float] = ContextVar("task_began", default=0.0)
# Celery's state of a task that ended → the label `outcome`.
OUTCOMES = {"SUCCESS": "succeeded", "FAILURE": "failed", "RETRY": "retried"}
OTHER = "ended"


@signals.task_prerun.connect
def note_begin(**_: object) -> None:
    """Notes when a task begins in this process."""
    _began.set(time.perf_counter())


@signals.task_postrun.connect
def note_end(task: Task[..., object] | None = None, state: str = "", **_: object) -> None:
    """Observes how long a task ran, whatever its outcome."""
    if task is not None and task.name:
        took_s = time.perf_counter() - _began.get()
        metrics.TASKS.labels(task.name, OUTCOMES.get(state, OTHER)).observe(took_s)


@signals.after_task_publish.connect
def note_sent(sender: str | None = None, **_: object) -> None:
    """Counts a task that this process gave to the broker."""
    metrics.TASKS_SENT.labels(str(sender)).inc()


@signals.worker_ready.connect
def serve_worker(sender: object = None, **_: object) -> None:
    """Serves a worker's metrics from its parent process, which adds up those of its children."""
    name = str(getattr(sender, "hostname", "")).partition("@")[0]
    addresses = config().metrics
    metrics.serve_metrics(addresses.nightly if name == "nightly" else addresses.worker, name)


@signals.worker_process_shutdown.connect
def forget_child(pid: int | None = None, **_: object) -> None:
    """Drops the gauges of a child process that ended; its counters stay in the sums."""
    if os.environ.get(metrics.MULTIPROCESS) and pid is not None:
        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]


@signals.beat_init.connect
def serve_scheduler(**_: object) -> None:
    """Serves the scheduler's metrics, with those from tables: there is only one scheduler."""
    metrics.serve_metrics(config().metrics.scheduler, "beat", database=True)
