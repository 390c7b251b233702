"""How far a Spark job is: read from the lines that it prints, and kept in its run's row."""

from __future__ import annotations

import logging
import re
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

from django.db import DatabaseError, InterfaceError

from console.base.common.clock import now
from metering.choices import RunState
from metering.models import Reconciliation, RollupRun
from metering.services.spark import Say

logger = logging.getLogger(__name__)

# What `spark_usage/progress.py` prints: a stage, and then how far its tasks are.
_LINE = re.compile(
    r"stage (?P<stage>\d+) of (?P<stages>\d+): (?P<what>.+?)"
    r"(?:: (?P<tasks_done>\d+) of (?P<tasks>\d+) tasks,"
    r" (?P<rows>\d+) rows and (?P<bytes>\d+) bytes read)?"
)
# Of what a stage does, so much is kept.
WHAT_CHARS_MAX = 200
# At most this many jobs are shown.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The stage that a job is in: `stage` of `stages`, from 1.

    `tasks_done`, `tasks`, `rows` and `bytes` are of what Spark works on in this stage at present,
    and 0 where it has not said. `bytes` are those read.
    """

    stage: int
    stages: int
    what: str
    tasks_done: int = 0
    tasks: int = 0
    rows: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        head = f"stage {self.stage} of {self.stages}: {self.what}"
        if not self.tasks:
            return head
        return (
            f"{head}, {self.tasks_done} of {self.tasks} tasks,"
            f" {self.rows} rows and {self.bytes} bytes read"
        )


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job whose run has no result yet. Without `progress` it has said nothing so far.

    `reported_at` is when it said something last, or when it began.
    """

    id: str
    # "rollup" or "reconcile".
    job: str
    day: date
    began_at: datetime
    reported_at: datetime
    progress: JobProgress | None


def parse_progress(line: str) -> JobProgress | None:
    """What a line of a job says of its progress; None where it says something else."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    numbers = {name: int(text or 0) for name, text in match.groupdict().items() if name != "what"}
    return JobProgress(what=match["what"][:WHAT_CHARS_MAX], **numbers)


def keeping_progress(run: RollupRun | Reconciliation, say: Say) -> Say:
    """The same `say`, which also keeps in a run's row how far its job is.

    Where PostgreSQL does not answer, the job goes on.
    """

    def say_and_keep(line: str) -> None:
        say(line)
        progress = parse_progress(line)
        if progress is None:
            return
        run.progress = {**asdict(progress), "reported_at": now().isoformat()}
        running = type(run)._default_manager.filter(pk=run.pk, state=RunState.RUNNING)
        try:
            running.update(progress=run.progress)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("usage.progress_not_kept", extra={"run": run.pk, "reason": str(error)})

    return say_and_keep


def running_jobs(cell: str) -> list[RunningJob]:
    """The jobs of a cell that have no result yet, the newest first.

    One whose process died is among them until its day is worked on again.
    """
    kinds: tuple[tuple[str, Any], ...] = (("rollup", RollupRun), ("reconcile", Reconciliation))
    jobs = [
        _running_job(job, *values)
        for job, model in kinds
        for values in model.objects.filter(cell=cell, state=RunState.RUNNING)
        .order_by("-created_at")
        .values_list("pk", "day", "created_at", "progress")[:SHOWN]
    ]
    return sorted(jobs, key=lambda running: running.began_at, reverse=True)


def _running_job(
    job: str, run_id: str, day: date, began_at: datetime, kept: dict[str, Any]
) -> RunningJob:
    reported_at, progress = began_at, None
    if kept:
        facts = dict(kept)
        reported_at = datetime.fromisoformat(facts.pop("reported_at"))
        progress = JobProgress(**facts)
    return RunningJob(run_id, job, day, began_at, reported_at, progress)
