"""Compares each day's usage with what the log holds, once it is rolled up, and tells what differs.

Both sides come off different roads: usage from lanes through usage files, the log's bytes from the
manifests of segments, which agents state (`metering.events.log`). A difference is an alarm and a
result about the day's data; it changes no row, since nobody can know here which side is right.
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
from metering.services.holding import held, holder_of
from metering.services.ingest import ingest_usage, usage_store
from metering.services.rollup import FOREVER_S, NIGHTLY
from metering.services.spark import ReconcileJob, Say, run_reconcile
from metering.services.totals import UsageFileRef, files_between, has_grown, inputs_sha256
from metering.stores import hadoop_root

logger = logging.getLogger(__name__)

LOCK = "usage_reconcile"
# Agents state days so far back, and a correction may come later than that.
LOOK_BACK = timedelta(days=5)
# A lane file may begin before midnight and end behind it; it never lasts so long.
BESIDE_MS = HOUR_MS


@dataclass(frozen=True, slots=True)
class Sides:
    """What is compared: usage files, and statements of the log."""

    files: Sequence[UsageFileRef]
    # Keys of statements, and what they say.
    keys: Sequence[str]
    statements: Sequence[LogStatement]
    # Clusters of which there should be a statement and is none that can be read, and why.
    unstated: Mapping[str, str]
    # Clusters that are gone: nobody can state their logs any more.
    gone: frozenset[str]


def reconcile(
    *,
    day: date,
    cell: str = "",
    job: ReconcileJob = run_reconcile,
    say: Say = lambda line: None,
) -> Reconciliation:
    """Compares a day that is rolled up; gives the comparison, whose `passed` says how it went.

    Raises `ReconcileBusy`, `DayNotOver`, `DayNotRolledUp`, `RollupFailed`, `UnknownCell`, and
    `OSError` where the store cannot be reached.
    """
    cell = cell or config().cell.id
    if cell != config().cell.id:
        message = f"This control plane knows the cell {config().cell.id}."
        raise UnknownCell(message)
    if day >= now().date():
        message = f"{day} ends at midnight UTC."
        raise DayNotOver(message)
    with held(LOCK, f"{cell}/{day}") as key:
        if key is not None:
            message = f"{holder_of(key)}, compares {day} with the log."
            raise ReconcileBusy(message)
        say(f"{day}: looking for usage files and statements of the log")
        ingest_usage(since=day, limit_s=FOREVER_S, wait=True)
        pointer = RollupPointer.objects.filter(cell=cell, day=day).select_related("run").first()
        if pointer is None:
            message = f"Roll {day} up first."
            raise DayNotRolledUp(message)
        return _compare(pointer.run, gather(cell, day), job, say)


def reconcile_recent_days(
    *, job: ReconcileJob = run_reconcile, say: Say = lambda line: None
) -> list[date]:
    """Compares recent days that were rolled up and not compared, or have grown; gives them.

    At most once a night each, as roll-ups.
    """
    cell, done = config().cell.id, []
    for day in _due(cell):
        try:
            reconcile(day=day, cell=cell, job=job, say=say)
        except (ReconcileBusy, DayNotRolledUp) as error:
            logger.info("reconcile.waits", extra={"day": str(day), "reason": error.detail})
        except Exception:
            logger.exception("reconcile.failed", extra={"day": str(day)})
        else:
            done.append(day)
    return done


def gather(cell: str, day: date) -> Sides:
    """What there is to compare of a day. Raises `OSError`."""
    store = usage_store()
    since_ms, until_ms = to_ms(day_start(day)), to_ms(day_start(day) + DAY)
    files, keys = _inputs(cell, day)
    statements, unstated = [], {}
    for key in keys:
        cluster_id = key.rpartition("/")[2].removesuffix(".json")
        try:
            statement = parse_statement(store.get(key))
        except UsageFormatError as error:
            unstated[cluster_id] = f"its statement cannot be read: {error}"
            continue
        named = (statement.cell, statement.cluster_id, statement.since_ms, statement.until_ms)
        if named == (cell, cluster_id, since_ms, until_ms):
            statements.append(statement)
        else:
            unstated[cluster_id] = f"its statement is of {named}"
    silent = set(owners_of(day)) - {each.cluster_id for each in statements} - unstated.keys()
    gone = frozenset(silent & gone_clusters(until_ms))
    unstated |= dict.fromkeys(silent - gone, "nobody stated what its log holds")
    return Sides(files, keys, statements, unstated, gone)


def _inputs(cell: str, day: date) -> tuple[list[UsageFileRef], list[str]]:
    """Usage files and keys of statements."""
    since_ms, until_ms = to_ms(day_start(day)), to_ms(day_start(day) + DAY)
    files = files_between(cell, since_ms - BESIDE_MS, until_ms + BESIDE_MS)
    return files, list(usage_store().list(log_prefix(cell, day)))


def _sha256(files: Sequence[UsageFileRef], keys: Sequence[str]) -> str:
    """Of what is compared; neither files nor statements ever change."""
    return hashlib.sha256("\n".join([inputs_sha256(files), *keys]).encode()).hexdigest()


def _compare(run: RollupRun, sides: Sides, job: ReconcileJob, say: Say) -> Reconciliation:
    Reconciliation.objects.filter(cell=run.cell, day=run.day, state=RunState.RUNNING).update(
        state=RunState.INTERRUPTED, finished_at=now(), error="it ended without saying so"
    )
    reconciliation = Reconciliation.objects.create(
        cell=run.cell, day=run.day, inputs_sha256=_sha256(sides.files, sides.keys)
    )
    try:
        report = _perform(reconciliation, sides, job, say)
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
        # The lock went with it; another comparison comes to the same.
        connection.close()
    keep_result(reconciliation, run, report, checks, reasons_of(sides))
    _tell(reconciliation, checks, report, say)
    return reconciliation


def _perform(
    reconciliation: Reconciliation, sides: Sides, job: ReconcileJob, say: Say
) -> dict[str, Any]:
    folder = config().usage.rollups / f"day={reconciliation.day}" / f"run_id={reconciliation.pk}"
    folder.mkdir(parents=True)
    manifest, log = folder / "run.json", folder / "log.json"
    plain = {
        "version": 1,
        "run_id": reconciliation.pk,
        "day": reconciliation.day.isoformat(),
        "usage_root": hadoop_root(config().usage.location),
        "inputs": [asdict(file) for file in sides.files],
    }
    manifest.write_text(json.dumps(plain), encoding="utf-8")
    log.write_text(json.dumps(log_manifest(reconciliation.day, sides)), encoding="utf-8")
    say(
        f"{reconciliation.day}: {reconciliation.pk} over {len(sides.files)} usage files and"
        f" {len(sides.statements)} statements of the log"
    )
    return job(reconciliation, manifest, log, folder / "output", say)


def log_manifest(day: date, sides: Sides) -> dict[str, Any]:
    """The statements together, as `spark_usage.log_manifest` reads them."""
    known = [statement for statement in sides.statements if not statement.gap]
    unknown: list[dict[str, str | None]] = [
        {"cluster_id": cluster_id, "topic_id": None}
        for cluster_id in sorted({*reasons_of(sides)} - {each.cluster_id for each in known})
    ]
    unknown += [
        {"cluster_id": each.cluster_id, "topic_id": topic_id}
        for each in known
        for topic_id in each.gone_topics
    ]
    return {
        "version": 1,
        "since_ms": to_ms(day_start(day)),
        "until_ms": to_ms(day_start(day) + DAY),
        "partitions": [
            {
                "cluster_id": each.cluster_id,
                "topic_id": partition.topic_id,
                "partition": partition.partition,
                "bytes_least": partition.bytes,
                "bytes_most": partition.bytes,
            }
            for each in known
            for partition in each.partitions
        ],
        "unknown": unknown,
    }


def reasons_of(sides: Sides) -> dict[str, str]:
    """Clusters of which not everything can be compared, and why."""
    gone = {
        statement.cluster_id: f"nothing is left of {len(statement.gone_topics)} deleted topics"
        for statement in sides.statements
        if statement.gone_topics
    }
    gaps = {statement.cluster_id: statement.gap for statement in sides.statements if statement.gap}
    return {**gone, **gaps, **sides.unstated, **dict.fromkeys(sides.gone, "it is gone")}


def _checks_of(report: Mapping[str, Any]) -> Iterable[Check]:
    for check in report["checks"]:
        yield Check(check["name"], bool(check["passed"]), str(check["detail"]))


def _own_checks(run: RollupRun, report: Mapping[str, Any], sides: Sides) -> Iterable[Check]:
    """Whether every cluster could be compared, and whether what was published is what was read."""
    names = sorted(sides.unstated)
    yield Check("log_is_stated", not names, f"not stated: {', '.join(names[:20]) or 'none'}")
    damaged = report["damaged_inputs"]
    yield Check("inputs_are_sound", not damaged, f"{len(damaged)} files are damaged")
    if has_grown(run.day, run):
        # Another roll-up is due, and then another comparison.
        return
    published = published_totals(run)
    read = {meter: n for meter, n in report["day_totals"].items() if int(n)}
    yield Check("published_as_metered", published == read, f"{published}, and {read} in the files")


def _tell(
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


def _due(cell: str) -> list[date]:
    """Rolled-up days to compare tonight, in order."""
    at = now()
    tonight = day_start(at.date()) + NIGHTLY
    if at < tonight:
        return []
    first = at.date() - LOOK_BACK
    tried = Reconciliation.objects.filter(cell=cell, created_at__gte=tonight)
    tried_tonight = set(tried.exclude(state=RunState.INTERRUPTED).values_list("day", flat=True))
    pointers = RollupPointer.objects.filter(cell=cell, day__gte=first, day__lt=at.date())
    days = []
    for day in pointers.order_by("day").values_list("day", flat=True):
        if day in tried_tonight:
            continue
        last = Reconciliation.objects.filter(cell=cell, day=day, state=RunState.DONE)
        seen = last.order_by("-created_at").values_list("inputs_sha256", flat=True).first()
        files, keys = _inputs(cell, day)
        # Of a day before agents made statements nothing can be said.
        if keys and _sha256(files, keys) != seen:
            days.append(day)
    return days
