"""Rolls a day up: lists its inputs, runs the Spark job, and publishes what it wrote.

An advisory lock of PostgreSQL, which ends with its holder, allows one roll-up of a day at a time.
Rolling a day up twice is harmless: the same rows are not published again.
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
from metering.choices import HoursIn, RunState
from metering.errors import DayNotOver, PublishRefused, RollupBusy, UnknownCell
from metering.models import RollupPointer, RollupRun
from metering.periods import DAY, day_start
from metering.services.holding import hold_lock, holder_of
from metering.services.hour_files import PublishedDay, has_hours
from metering.services.ingest import ingest_usage
from metering.services.progress import keeping_progress
from metering.services.publishing import LOCK, lock_name, publish_run
from metering.services.quality import note_quality
from metering.services.run_folders import HOURS, MANIFEST, RunFolder, run_store
from metering.services.spark import Job, Say, run_spark
from metering.services.totals import (
    days_of_new_files,
    emitted_files,
    files_of_day,
    first_day,
    has_grown,
    inputs_sha256,
)
from metering.stores import hadoop_root

logger = logging.getLogger(__name__)

# A nightly run looks this far back for days that were never rolled up: longer than a month, so that
# no day of an open month is missed …
MISSED = timedelta(days=40)
# … and at any day of which a file was taken in during these last days.
TAKEN_IN = timedelta(days=7)
# Days are due this long after midnight UTC, because agents and ingest are some minutes behind.
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
    """Rolls a day up and publishes it; returns the run, whose state says whether anything changed.

    `early` allows a day that is not over: what comes to be published of it is not final, and
    changes no total. `say` is called with lines of progress. Raises
    `RollupBusy`, `DayNotOver`, `RollupFailed` where the job fails or a check refuses its rows,
    `UnknownCell`, and `OSError` where the store cannot be reached.
    """
    cell = cell or config().cell.id
    if cell != config().cell.id:
        message = f"This control plane knows the cell {config().cell.id}."
        raise UnknownCell(message)
    is_over = day < now().date()
    if not is_over and not early:
        message = f"{day} ends at midnight UTC."
        raise DayNotOver(message)
    with hold_lock(LOCK, lock_name(cell, day)) as key:
        if key is not None:
            raise RollupBusy(_holder_text(cell, day, key))
        # Late files first, so that the run has all files of the day that are in the store by now.
        say(f"{day}: looking for usage files")
        ingest_usage(since=day, limit_s=FOREVER_S, wait=True)
        run = _begin_run(cell, day)
        try:
            _perform_run(run, job, say, early=not is_over)
        except BaseException as error:
            _record_failure(run, error)
            raise
    return run


def roll_up_recent_days(*, job: Job = run_spark, say: Say = lambda line: None) -> list[date]:
    """Rolls up past days that were not rolled up, and recent ones with new files; returns them.

    Each day is tried at most once a night: a day that fails is logged, does not hold up the others,
    and is due again at the next 00:30 UTC.
    """
    cell, done = config().cell.id, []
    for day in _due_days(cell):
        try:
            roll_up(day=day, cell=cell, job=job, say=say)
        except RollupBusy as error:
            logger.info("rollup.busy", extra={"day": str(day), "reason": error.detail})
        except Exception:
            logger.exception("rollup.failed", extra={"day": str(day)})
        else:
            done.append(day)
    return done


def _due_days(cell: str) -> list[date]:
    """The days to roll up tonight, in order."""
    first = first_day(cell)
    at = now()
    tonight = day_start(at.date()) + NIGHTLY
    if first is None or at < tonight:
        return []
    today = at.date()
    tried = RollupRun.objects.filter(cell=cell, created_at__gte=tonight)
    tried = tried.exclude(state=RunState.INTERRUPTED)
    tried_tonight = set(tried.values_list("day", flat=True))
    pointers = RollupPointer.objects.final().filter(cell=cell).select_related("run")
    published = {pointer.day: pointer.run for pointer in pointers}
    recent = max(first, today - MISSED)
    missed = {recent + number * DAY for number in range((today - recent).days)} - published.keys()
    grown = {
        day
        for day in days_of_new_files(cell, at - TAKEN_IN) & published.keys()
        if day < today and has_grown(day, published[day])
    }
    return sorted((missed | grown) - tried_tonight)


def _begin_run(cell: str, day: date) -> RollupRun:
    """Creates a run over the files that are known now.

    This process holds the day's lock, so runs of the day that still say *running* were left by
    processes that died.
    """
    RollupRun.objects.filter(cell=cell, day=day, state=RunState.RUNNING).update(
        state=RunState.INTERRUPTED, finished_at=now(), error="its process ended without a result"
    )
    files = files_of_day(cell, day)
    return RollupRun.objects.create(
        cell=cell,
        day=day,
        holder=f"{socket.gethostname()}, process {os.getpid()}",
        inputs=[asdict(file) for file in files],
        inputs_sha256=inputs_sha256(emitted_files(cell, day)),
    )


def _perform_run(run: RollupRun, job: Job, say: Say, *, early: bool) -> None:
    pointer = RollupPointer.objects.filter(cell=run.cell, day=run.day).first()
    folder = RunFolder(run.day, run.pk)
    plain = {
        "version": 1,
        "run_id": run.pk,
        "day": run.day.isoformat(),
        "usage_root": hadoop_root(config().usage.location),
        "inputs": run.inputs,
    }
    folder.write(MANIFEST, json.dumps(plain).encode())
    say(f"{run.day}: {run.pk} over {len(run.inputs)} usage files")
    report = job(run, folder, keeping_progress(run, say))
    if not connection.is_usable():
        # The lock was lost with the connection while the job ran. `publish_run` takes it again, and
        # refuses where another run was published meanwhile.
        connection.close()
    replaces = pointer.run_id if pointer else None
    with folder.copied_output() as output:
        changed = publish_run(run, output, report, replaces=replaces, early=early)
        if pointer and not changed:
            _restore_hours(pointer.run, output)
        note_quality(run, report, output / "quarantine")
    if changed:
        say(f"{run.day}: published {report['hours']} hours in files and {report['days']} days")
    else:
        say(f"{run.day}: nothing new is published, {replaces} has the same rows")


def _restore_hours(run: RollupRun, output: Path) -> None:
    """Writes the hours of a published run anew where its folder has lost them.

    `output` is that of another run with the same rows.
    """
    if run.hours_in != HoursIn.FILES:
        return
    if has_hours(PublishedDay(run.day, run.pk, run.report["hours"])):
        return
    folder = RunFolder(run.day, run.pk)
    logger.warning("rollup.hours_restored", extra={"run": run.pk, "day": str(run.day)})
    run_store().remove(f"{folder.key}/{HOURS}/")
    for file in sorted((output / "hours").glob("*.parquet")):
        folder.write(f"{HOURS}/{file.name}", file.read_bytes())


def _record_failure(run: RollupRun, error: BaseException) -> None:
    """Writes into the run's row that it failed or was interrupted, and why."""
    if not connection.is_usable():
        connection.close()
    # An update of the row and not `run.save()`: `run` may hold values that were rolled back.
    state = RunState.FAILED if isinstance(error, Exception) else RunState.INTERRUPTED
    RollupRun.objects.filter(pk=run.pk, state=RunState.RUNNING).update(
        state=state, error=str(error) or type(error).__name__, finished_at=now()
    )
    if isinstance(error, PublishRefused):
        note_quality(run, {"checks": [asdict(check) for check in error.checks]}, None)


def _holder_text(cell: str, day: date, key: int) -> str:
    """The holder of the lock, in a sentence for people."""
    run = RollupRun.objects.filter(cell=cell, day=day, state=RunState.RUNNING).first()
    if run is not None:
        return f"{run.pk} on {run.holder} rolls {day} up since {run.created_at:%Y-%m-%d %H:%M:%S}."
    return f"{holder_of(key)}, is about to roll {day} up."
