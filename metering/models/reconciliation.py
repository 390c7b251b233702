"""Comparisons of usage with the log: whole days, and each cluster's day."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from metering.choices import Agreement, RunState
from metering.models.rollup import CELL_CHARS_MAX


class Reconciliation(models.Model):
    """One comparison of one day of one cell. Once its state is final, it never changes."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "rec"), editable=False
    )
    cell = models.CharField(max_length=CELL_CHARS_MAX)
    # In UTC.
    day = models.DateField()
    state = models.CharField(
        max_length=16, choices=RunState.choices, default=RunState.RUNNING.value
    )
    # The hash of the usage files and statements of the log that were compared.
    inputs_sha256 = models.CharField(max_length=64)
    # How far the job is, while it runs (`metering.services.progress.JobProgress`).
    progress = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    # The job's own `report.json`.
    report = models.JSONField(default=dict)
    # Whether everything that could be compared was equal; null until it is known.
    passed = models.BooleanField(null=True, blank=True)
    # Names and details of the checks that did not pass.
    failed_checks = models.JSONField(default=dict)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (
            models.Index(fields=["cell", "-day", "-created_at"], name="reconciliations_newest"),
        )

    def __str__(self) -> str:
        return f"{self.day} {self.pk}"


class ReconciledDay(models.Model):
    """How one cluster's ingress of one day compares with its log, by the newest comparison."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "rcd"), editable=False
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    day = models.DateField()
    reconciliation = models.ForeignKey(Reconciliation, on_delete=models.PROTECT)
    agreement = models.CharField(max_length=16, choices=Agreement.choices)
    # Bytes by usage files and by the log, of all partitions of which both are known.
    metered_bytes = models.DecimalField(max_digits=38, decimal_places=0)
    logged_bytes = models.DecimalField(max_digits=38, decimal_places=0)
    # Metered bytes of partitions whose bytes in the log are unknown.
    unknown_bytes = models.DecimalField(max_digits=38, decimal_places=0)
    # The number of partitions that differ.
    differing = models.BigIntegerField()
    # Why something could not be compared; empty if everything was.
    reason = models.TextField(blank=True)
    compared_at = models.DateTimeField(default=now)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster_id", "day"], name="one_comparison_a_day"),
        )
        indexes = (
            models.Index(fields=["organization_id", "-day", "-id"], name="reconciled_newest"),
        )

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.day}"
