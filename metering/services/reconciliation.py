"""Compares each rolled-up day's usage with what the log holds, and reports differences.

The two sides are made independently: usage from lanes through usage files, the log's bytes from
partitions' manifests, which agents state (`metering.events.log`). A difference is logged as an
error and stored as a result about the day's data. It changes no row, since nobody can know here
which side is right.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from django.db import connection

from console.base.common.clock import now
from console.base.common.conf import config
from metering.choices import RunState
from metering.errors import (
    Check,
    DayNotOver,
    DayNotRolledUp,
    ReconcileBusy,
    UnknownCell,
)
from metering.events.errors import UsageFormatError
from metering.events.keys import log_prefix
from metering.events.log import LogStatement, parse_statement
from metering.models import Reconciliation, RollupPointer, RollupRun
from metering.periods import DAY, HOUR_MS, day_start, to_ms
from metering.services.agreement import (
    gone_clusters,
    keep_result,
    owners_of,
    published_totals,
)
from metering.services.holding import hold_lock, holder_of
from metering.services.ingest import ingest_usage, usage_store
from metering.services.progress import keeping_progress
from metering.services.rollup import FOREVER_S, NIGHTLY
from metering.services.run_folders import LOG, MANIFEST, RunFolder
from metering.services.spark import ReconcileJob, Say, run_reconcile
from metering.services.totals import (
    UsageFileRef,
    emitted_files,
    files_between,
    has_grown,
    inputs_sha256,
)
from metering.stores import hadoop_root

logger = logging.getLogger(__name__)

LOCK = "usage_reconcile"
# Days this far back are compared: agents state the last three days, and a corrected roll-up may
# come later than that.
LOOK_BACK = timedelta(days=5)
# Usage files this far beside the day are read too: a lane file may reach over midnight, by less
# than this, and counts for the day of its last block.
BESIDE_MS = HOUR_MS


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a comparison: usage files, and statements of the log."""

    files: Sequence[UsageFileRef]
    # Keys of the statements, and the statements that can be read.
    keys: Sequence[str]
    statements: Sequence[LogStatement]
    # Clusters whose statement is missing or cannot be read, and why.
    unstated: Mapping[str, str]
    # Clusters that are gone from their cell, so that nobody can state their logs.
    gone: frozenset[str]


def reconcile_day(
    *,
    day: date,
    cell: str = "",
    job: ReconcileJob = run_reconcile,
    say: Say = lambda line: None,
) -> Reconciliation:
    """Compares a rolled-up day; returns the comparison, whose `passed` says whether all is equal.

    `say` is called with lines of progress. Raises `ReconcileBusy`, `DayNotOver`, `DayNotRolledUp`,
    `RollupFailed` where the job fails, `UnknownCell`, and `OSError` where the store cannot be
    reached.
    """
    cell = cell or config().cell.id
    if cell != config().cell.id:
        message = f"This control plane knows the cell {config().cell.id}."
        raise UnknownCell(message)
    if day >= now().date():
        message = f"{day} ends at midnight UTC."
        raise DayNotOver(message)
    with hold_lock(LOCK, f"{cell}/{day}") as key:
        if key is not None:
            message = f"{holder_of(key)}, compares {day} with the log."
            raise ReconcileBusy(message)
        say(f"{day}: looking for usage files and statements of the log")
        ingest_usage(since=day, limit_s=FOREVER_S, wait=True)
        pointers = RollupPointer.objects.final().filter(cell=cell, day=day)
        pointer = pointers.select_related("run").first()
        if pointer is None:
            message = f"Roll {day} up first: manage.py rollup --day {day}."
            raise DayNotRolledUp(message)
        return _compare_day(pointer.run, gather_sides(cell, day), job, say)


def reconcile_recent_days(
    *, job: ReconcileJob = run_reconcile, say: Say = lambda line: None
) -> list[date]:
    """Compares recent rolled-up days that were not compared yet or have new files; returns them.

    Each day is tried at most once a night. A day that fails is logged.
    """
    cell, done = config().cell.id, []
    for day in _due_days(cell):
        try:
            reconcile_day(day=day, cell=cell, job=job, say=say)
        except (ReconcileBusy, DayNotRolledUp) as error:
            logger.info("reconcile.waits", extra={"day": str(day), "reason": error.detail})
        except Exception:
            logger.exception("reconcile.failed", extra={"day": str(day)})
        else:
            done.append(day)
    return done


def gather_sides(cell: str, day: date) -> Sides:
    """The two sides of a day. Raises `OSError` where the store cannot be reached."""
    store = usage_store()
    since_ms, until_ms = to_ms(day_start(day)), to_ms(day_start(day) + DAY)
    files, keys = _inputs_of(cell, day)
    statements, unstated = [], {}
    for key in keys:
        cluster_id = key.rpartition("/")[2].removesuffix(".json")
        try:
            statement = parse_statement(store.get(key))
        except UsageFormatError as error:
            unstated[cluster_id] = f"its statement cannot be read: {error}"
            continue
        identity = (statement.cell, statement.cluster_id, statement.since_ms, statement.until_ms)
        if identity == (cell, cluster_id, since_ms, until_ms):
            statements.append(statement)
        else:
            unstated[cluster_id] = f"its statement is of {identity}"
    silent = (
        set(owners_of(day)) - {statement.cluster_id for statement in statements} - unstated.keys()
    )
    gone_ids = frozenset(silent & gone_clusters(until_ms))
    unstated |= dict.fromkeys(silent - gone_ids, "nobody stated what its log holds")
    return Sides(files, keys, statements, unstated, gone_ids)


def _inputs_of(cell: str, day: date) -> tuple[list[UsageFileRef], list[str]]:
    """The usage files and the keys of statements to compare for a day."""
    since_ms, until_ms = to_ms(day_start(day)), to_ms(day_start(day) + DAY)
    files = files_between(cell, since_ms - BESIDE_MS, until_ms + BESIDE_MS)
    return files, list(usage_store().list(log_prefix(cell, day)))


def _sides_sha256(cell: str, day: date, keys: Sequence[str]) -> str:
    """A hash of what is compared, which is the same when its files are joined.

    For statements their keys suffice, because statements never change.
    """
    files = emitted_files(cell, day, beside_ms=BESIDE_MS)
    return hashlib.sha256("\n".join([inputs_sha256(files), *keys]).encode()).hexdigest()


def _compare_day(run: RollupRun, sides: Sides, job: ReconcileJob, say: Say) -> Reconciliation:
    Reconciliation.objects.filter(cell=run.cell, day=run.day, state=RunState.RUNNING).update(
        state=RunState.INTERRUPTED, finished_at=now(), error="its process ended without a result"
    )
    reconciliation = Reconciliation.objects.create(
        cell=run.cell, day=run.day, inputs_sha256=_sides_sha256(run.cell, run.day, sides.keys)
    )
    try:
        report = _run_job(reconciliation, sides, job, say)
        checks = [*_own_checks(run, report, sides), *_checks_of(report)]
    except BaseException as error:
        if not connection.is_usable():
            connection.close()
        state = RunState.FAILED if isinstance(error, Exception) else RunState.INTERRUPTED
        Reconciliation.objects.filter(pk=reconciliation.pk, state=RunState.RUNNING).update(
            state=state, error=str(error) or type(error).__name__, finished_at=now()
        )
        raise
    if not connection.is_usable():
        # The lock was lost with the connection. Another comparison meanwhile does no harm: both
        # come to the same result.
        connection.close()
    keep_result(reconciliation, run, report, checks, reasons_of(sides))
    _report_result(reconciliation, checks, report, say)
    return reconciliation


def _run_job(
    reconciliation: Reconciliation, sides: Sides, job: ReconcileJob, say: Say
) -> dict[str, Any]:
    folder = RunFolder(reconciliation.day, reconciliation.pk)
    plain = {
        "version": 1,
        "run_id": reconciliation.pk,
        "day": reconciliation.day.isoformat(),
        "usage_root": hadoop_root(config().usage.location),
        "inputs": [asdict(file) for file in sides.files],
    }
    folder.write(MANIFEST, json.dumps(plain).encode())
    folder.write(LOG, json.dumps(log_manifest(reconciliation.day, sides)).encode())
    say(
        f"{reconciliation.day}: {reconciliation.pk} over {len(sides.files)} usage files and"
        f" {len(sides.statements)} statements of the log"
    )
    return job(reconciliation, folder, keeping_progress(reconciliation, say))


def log_manifest(day: date, sides: Sides) -> dict[str, Any]:
    """The statements in the format that `spark_usage.log_manifest` reads."""
    complete = [statement for statement in sides.statements if not statement.gap]
    unknown: list[dict[str, str | None]] = [
        {"cluster_id": cluster_id, "topic_id": None}
        for cluster_id in sorted(
            {*reasons_of(sides)} - {statement.cluster_id for statement in complete}
        )
    ]
    unknown += [
        {"cluster_id": statement.cluster_id, "topic_id": topic_id}
        for statement in complete
        for topic_id in statement.gone_topics
    ]
    return {
        "version": 1,
        "since_ms": to_ms(day_start(day)),
        "until_ms": to_ms(day_start(day) + DAY),
        "partitions": [
            {
                "cluster_id": statement.cluster_id,
                "topic_id": partition.topic_id,
                "partition": partition.partition,
                "bytes_least": partition.bytes,
                "bytes_most": partition.bytes,
            }
            for statement in complete
            for partition in statement.partitions
        ],
        "unknown": unknown,
    }


def reasons_of(sides: Sides) -> dict[str, str]:
    """Cluster id → why not everything of it can be compared."""
    lacking_topics = {
        statement.cluster_id: f"nothing is left of {len(statement.gone_topics)} deleted topics"
        for statement in sides.statements
        if statement.gone_topics
    }
    gaps = {statement.cluster_id: statement.gap for statement in sides.statements if statement.gap}
    return {**lacking_topics, **gaps, **sides.unstated, **dict.fromkeys(sides.gone, "it is gone")}


def _checks_of(report: Mapping[str, Any]) -> Iterable[Check]:
    for check in report["checks"]:
        yield Check(check["name"], bool(check["passed"]), str(check["detail"]))


def _own_checks(run: RollupRun, report: Mapping[str, Any], sides: Sides) -> Iterable[Check]:
    """Checks that every cluster is stated, that files are sound, and that published rows are
    those of the files."""
    names = sorted(sides.unstated)
    yield Check("log_is_stated", not names, f"not stated: {', '.join(names[:20]) or 'none'}")
    damaged = report["damaged_inputs"]
    yield Check("inputs_are_sound", not damaged, f"{len(damaged)} files are damaged")
    if has_grown(run.day, run):
        # Newer files came, so another roll-up is due, and after it another comparison.
        return
    published = published_totals(run)
    read = {meter: n for meter, n in report["day_totals"].items() if int(n)}
    yield Check("published_as_metered", published == read, f"{published}, and {read} in the files")


def _report_result(
    reconciliation: Reconciliation, checks: Sequence[Check], report: Mapping[str, Any], say: Say
) -> None:
    day = reconciliation.day
    if reconciliation.passed:
        say(f"{day}: usage is what the log holds, {report['ingress']['metered_bytes']} bytes")
        return
    failed = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    extra = {"day": str(day), "reconciliation": reconciliation.pk, "failed": failed}
    logger.error("usage.differs_from_log", extra=extra)
    say(f"{day}: {'; '.join(failed)}")


def _due_days(cell: str) -> list[date]:
    """The rolled-up days to compare tonight, in order."""
    at = now()
    tonight = day_start(at.date()) + NIGHTLY
    if at < tonight:
        return []
    first = at.date() - LOOK_BACK
    tried = Reconciliation.objects.filter(cell=cell, created_at__gte=tonight)
    tried_tonight = set(tried.exclude(state=RunState.INTERRUPTED).values_list("day", flat=True))
    pointers = RollupPointer.objects.final()
    pointers = pointers.filter(cell=cell, day__gte=first, day__lt=at.date())
    days = []
    for day in pointers.order_by("day").values_list("day", flat=True):
        if day in tried_tonight:
            continue
        last = Reconciliation.objects.filter(cell=cell, day=day, state=RunState.DONE)
        compared_sha256 = (
            last.order_by("-created_at").values_list("inputs_sha256", flat=True).first()
        )
        _, keys = _inputs_of(cell, day)
        # Days from before agents made statements cannot be compared.
        if keys and _sides_sha256(cell, day, keys) != compared_sha256:
            days.append(day)
    return days
