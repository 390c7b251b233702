"""Rolls a day up: plans its inputs, has the job run, publishes what it wrote.

One roll-up of a day at a time, whoever starts it: an advisory lock of PostgreSQL, which goes with
its holder, is the guard. Twice is once: the same rows are not published again.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path

from django.db import connection

from console.base.common.clock import now
from console.base.common.conf import config
from metering.choices import RunState
from metering.errors import DayNotOver, PublishRefused, RollupBusy, UnknownCell
from metering.models import RollupPointer, RollupRun
from metering.periods import DAY, day_start
from metering.services.holding import held, holder_of
from metering.services.ingest import ingest_usage
from metering.services.publishing import LOCK, lock_name, publish
from metering.services.quality import note_quality
from metering.services.spark import Job, Say, run_spark
from metering.services.totals import files_of_day, first_day, has_grown, inputs_sha256
from metering.stores import hadoop_root

logger = logging.getLogger(__name__)

# A nightly run looks so far back for days that were never rolled up …
MISSED = timedelta(days=40)
# … and so far for days whose files have grown.
GROWING = timedelta(days=3)
# After midnight, in UTC: the meter is minutes behind.
NIGHTLY = timedelta(minutes=30)
FOREVER_S = float("inf")


def roll_up(
    *,
    day: date,
    cell: str = "",
    early: bool = False,
    job: Job = run_spark,
    say: Say = lambda line: None,
) -> RollupRun:
    """Rolls a day up and publishes it; gives the run, whose state says whether anything changed.

    `early`: also a day that is not over. `say` is told how far it is. Raises `RollupBusy`,
    `DayNotOver`, `RollupFailed`, `UnknownCell`, and `OSError` where the store cannot be reached.
    """
    cell = cell or config().cell.id
    if cell != config().cell.id:
        message = f"This control plane knows the cell {config().cell.id}."
        raise UnknownCell(message)
    if day >= now().date() and not early:
        message = f"{day} ends at midnight UTC."
        raise DayNotOver(message)
    with held(LOCK, lock_name(cell, day)) as key:
        if key is not None:
            raise RollupBusy(_holder(cell, day, key))
        say(f"{day}: looking for usage files")
        ingest_usage(since=day, limit_s=FOREVER_S, wait=True)
        run = _begin(cell, day)
        try:
            _perform(run, job, say)
        except BaseException as error:
            _end_badly(run, error)
            raise
    return run


def roll_up_recent_days(*, job: Job = run_spark, say: Say = lambda line: None) -> list[date]:
    """Rolls up every past day that was not, and recent ones whose files have grown; gives them.

    At most once a night each: a day that fails does not keep those behind it, and is due again at
    the next 00:30 UTC.
    """
    cell, done = config().cell.id, []
    for day in _due(cell):
        try:
            roll_up(day=day, cell=cell, job=job, say=say)
        except RollupBusy as error:
            logger.info("rollup.busy", extra={"day": str(day), "reason": error.detail})
        except Exception:
            logger.exception("rollup.failed", extra={"day": str(day)})
        else:
            done.append(day)
    return done


def work_folder(run: RollupRun) -> Path:
    """Where a run's manifest and the job's output are. A folder of its own for each run."""
    return config().usage.rollups / f"day={run.day}" / f"run_id={run.pk}"


def _due(cell: str) -> list[date]:
    """Days to roll up tonight, in order."""
    first = first_day(cell)
    at = now()
    tonight = day_start(at.date()) + NIGHTLY
    if first is None or at < tonight:
        return []
    today = at.date()
    tried = RollupRun.objects.filter(cell=cell, created_at__gte=tonight)
    tried = tried.exclude(state=RunState.INTERRUPTED)
    tried_tonight = set(tried.values_list("day", flat=True))
    published = {
        pointer.day: pointer.run
        for pointer in RollupPointer.objects.filter(cell=cell).select_related("run")
    }
    days = []
    day = max(first, today - MISSED)
    while day < today:
        recent = day >= today - GROWING
        due = day not in published or (recent and has_grown(day, published[day]))
        if due and day not in tried_tonight:
            days.append(day)
        day += DAY
    return days


def _begin(cell: str, day: date) -> RollupRun:
    """A new run over the files that are known now. The lock is ours: others of the day are dead."""
    RollupRun.objects.filter(cell=cell, day=day, state=RunState.RUNNING).update(
        state=RunState.INTERRUPTED, finished_at=now(), error="it ended without saying so"
    )
    files = files_of_day(cell, day)
    return RollupRun.objects.create(
        cell=cell,
        day=day,
        holder=f"{socket.gethostname()}, process {os.getpid()}",
        inputs=[asdict(file) for file in files],
        inputs_sha256=inputs_sha256(files),
    )


def _perform(run: RollupRun, job: Job, say: Say) -> None:
    pointer = RollupPointer.objects.filter(cell=run.cell, day=run.day).first()
    folder = work_folder(run)
    folder.mkdir(parents=True)
    manifest, output = folder / "run.json", folder / "output"
    plain = {
        "version": 1,
        "run_id": run.pk,
        "day": run.day.isoformat(),
        "usage_root": hadoop_root(config().usage.location),
        "inputs": run.inputs,
    }
    manifest.write_text(json.dumps(plain), encoding="utf-8")
    say(f"{run.day}: {run.pk} over {len(run.inputs)} usage files")
    report = job(run, manifest, output, say)
    if not connection.is_usable():
        # The lock went with it; publishing takes it again, or finds another run.
        connection.close()
    replaces = pointer.run_id if pointer else None
    changed = publish(run, output, report, replaces=replaces)
    note_quality(run, report, output / "quarantine")
    if changed:
        say(f"{run.day}: published {report['hours']} hours and {report['days']} days")
    else:
        say(f"{run.day}: nothing new is published, {replaces} has the same rows")


def _end_badly(run: RollupRun, error: BaseException) -> None:
    """Says in the run's row what became of it."""
    if not connection.is_usable():
        connection.close()
    # `run` may hold what was rolled back.
    state = RunState.FAILED if isinstance(error, Exception) else RunState.INTERRUPTED
    RollupRun.objects.filter(pk=run.pk, state=RunState.RUNNING).update(
        state=state, error=str(error) or type(error).__name__, finished_at=now()
    )
    if isinstance(error, PublishRefused):
        note_quality(run, {"checks": [asdict(check) for check in error.checks]}, None)


def _holder(cell: str, day: date, key: int) -> str:
    """Who holds the lock, for people."""
    run = RollupRun.objects.filter(cell=cell, day=day, state=RunState.RUNNING).first()
    if run is not None:
        return f"{run.pk} on {run.holder} rolls {day} up since {run.created_at:%Y-%m-%d %H:%M:%S}."
    return f"{holder_of(key)}, is about to roll {day} up."
