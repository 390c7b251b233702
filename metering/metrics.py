"""The control plane's metrics of the meter, for Prometheus."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Count
from prometheus_client.metrics_core import Metric

from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.metrics import gauge
from metering.choices import FileState, RunState
from metering.models import Reconciliation, TotalsCheck, UsageFile
from metering.services.status import ingest_lag


def ingest_metrics() -> Sequence[Metric]:
    """The age of the newest usage file that was taken in, the last pass's time, files by state."""
    cell, at = config().cell.id, now()
    ran_at, lag = ingest_lag(cell, at)
    # Before the first file there is no lag to report.
    behind = {} if lag is None else {(): max(0.0, lag / timedelta(seconds=1))}
    passed = {} if ran_at is None else {(): ran_at.timestamp()}
    files = UsageFile.objects.filter(cell=cell).values_list("state").annotate(Count("pk"))
    counts = {(state.value,): 0.0 for state in FileState} | {(key,): n for key, n in files}
    return [
        gauge("freshet_usage_lag_seconds", "Age of the newest usage that is taken in", (), behind),
        gauge(
            "freshet_usage_pass_timestamp_seconds",
            "When usage files were last looked for, in Unix time",
            (),
            passed,
        ),
        gauge("freshet_usage_files", "Usage files that are known", ("state",), counts),
    ]


def totals_metrics() -> Sequence[Metric]:
    """How many running totals the newest check of them did not find right."""
    checks = TotalsCheck.objects.filter(cell=config().cell.id).order_by("-checked_at")
    newest = checks.values_list("differing", flat=True).first()
    text = "Running totals that are not what their rows sum to, by the newest check"
    return [gauge("freshet_totals_differing", text, (), {} if newest is None else {(): newest})]


def reconciliation_metrics() -> Sequence[Metric]:
    """The number of days by the result of their newest comparison with the log."""
    cell = config().cell.id
    newest = (
        Reconciliation.objects.filter(cell=cell, state=RunState.DONE)
        .order_by("-day", "-created_at")
        .distinct("day")
        .values_list("passed", flat=True)
    )
    results = {("equal",): 0.0, ("not_equal",): 0.0}
    for passed in newest:
        results["equal" if passed else "not_equal",] += 1
    text = "Days by what the newest comparison of their usage with the log found"
    return [gauge("freshet_reconciled_days", text, ("result",), results)]
