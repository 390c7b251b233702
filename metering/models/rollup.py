"""Roll-ups of days, the pointer to a day's current one, and results about their data."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from metering.choices import HoursIn, QualityKind, RunState
from metering.querysets import RollupPointerQuerySet

CELL_CHARS_MAX = 32


class RollupRun(models.Model):
    """One roll-up of one day of one cell. Once its state is final, it never changes."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "run"), editable=False
    )
    cell = models.CharField(max_length=CELL_CHARS_MAX)
    # In UTC.
    day = models.DateField()
    state = models.CharField(
        max_length=16, choices=RunState.choices, default=RunState.RUNNING.value
    )
    # A process of the release before publishes hours as rows, and does not know this column.
    hours_in = models.CharField(
        max_length=8,
        choices=HoursIn.choices,
        default=HoursIn.FILES.value,
        db_default=HoursIn.TABLE.value,
    )
    # Who runs it: host and process.
    holder = models.CharField(max_length=255, blank=True)
    # `[{key, size_bytes, sha256, rows}]`, the usage files that it was made from.
    inputs = models.JSONField(default=list)
    # The hash of the inputs' keys and hashes. It differs from that of the day's present files
    # where files came later.
    inputs_sha256 = models.CharField(max_length=64, blank=True)
    # How far the job is, while it runs (`metering.services.progress.JobProgress`).
    progress = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    # The job's own `report.json`.
    report = models.JSONField(default=dict)
    # The hash of the rows in any order. Two runs with the same hash have the same rows.
    content_sha256 = models.CharField(max_length=64, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=now)
    finished_at = models.DateTimeField(null=True, blank=True)
    published_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (models.Index(fields=["cell", "-day", "-created_at"], name="rollup_runs_newest"),)

    def __str__(self) -> str:
        return f"{self.day} {self.pk}"


class RollupPointer(models.Model):
    """Names the run whose rows count for a day."""

    cell = models.CharField(max_length=CELL_CHARS_MAX)
    day = models.DateField()
    run = models.OneToOneField(RollupRun, on_delete=models.PROTECT, related_name="pointer")
    changed_at = models.DateTimeField(default=now)
    # Whether the run was made before its day was over. Such a day goes on counting from its minutes
    # for everybody; only an invoice that a person closes early takes the run's rows.
    early = models.BooleanField(default=False)

    objects = RollupPointerQuerySet.as_manager()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cell", "day"], name="one_run_a_day"),)

    def __str__(self) -> str:
        return f"{self.day} {self.run_id}"


class QualityResult(models.Model):
    """A result about the quality of a run's data."""

    run = models.ForeignKey(RollupRun, on_delete=models.CASCADE, related_name="quality")
    kind = models.CharField(max_length=16, choices=QualityKind.choices)
    # The name of the check, the key of the file, or the cluster and the hour.
    name = models.CharField(max_length=512)
    passed = models.BooleanField()
    detail = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
