"""Stores the result of a comparison with the log: as a whole for staff, by cluster for tenants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Sum

from console.base.common.clock import now
from console.base.common.tenancy import system_scope
from metering.choices import Agreement, Granularity, QualityKind, RunState
from metering.errors import Check
from metering.models import (
    ClusterCoverage,
    JudgedHour,
    QualityResult,
    ReconciledDay,
    Reconciliation,
    RollupRun,
    UsageRow,
)
from metering.periods import DAY, day_start

# A cluster may be gone shortly after a day's end, before an agent stated that day.
GRACE_MS = DAY // timedelta(milliseconds=1)
# Checks whose findings are in the report, by the report's part.
COMPARED = {"ingress_as_logged": "ingress", "egress_as_counted": "egress"}
REPLACED = (
    *("organization_id", "reconciliation", "agreement", "metered_bytes", "logged_bytes"),
    *("unknown_bytes", "differing", "reason", "compared_at"),
)


def owners_of(day: date) -> dict[str, str]:
    """Cluster id → organization, for the clusters with a judged hour on a day."""
    start = day_start(day)
    with system_scope():
        hours = JudgedHour.objects.filter(hour__gte=start, hour__lt=start + DAY)
        return dict(hours.order_by("hour").values_list("cluster_id", "organization_id"))


def published_totals(run: RollupRun) -> dict[str, str]:
    """The sum of a run's published daily rows by meter, as text; meters with 0 are left out."""
    with system_scope():
        rows = UsageRow.objects.filter(run=run, granularity=Granularity.DAY.value)
        totals = rows.order_by().values_list("meter").annotate(total=Sum("quantity"))
        return {meter: str(int(total)) for meter, total in totals if total}


def gone_clusters(until_ms: int) -> set[str]:
    """Ids of clusters that were gone at most `GRACE_MS` after `until_ms` (ms since 1970)."""
    with system_scope():
        clusters = ClusterCoverage.objects.filter(closed_at_ms__lt=until_ms + GRACE_MS)
        return set(clusters.values_list("cluster_id", flat=True))


def keep_result(
    reconciliation: Reconciliation,
    run: RollupRun,
    report: Mapping[str, Any],
    checks: Sequence[Check],
    reasons: Mapping[str, str],
) -> None:
    """Stores the end of a comparison: its row, results beside those of the roll-up, cluster days.

    `reasons` says by cluster why not everything could be compared.
    """
    at = now()
    with system_scope():
        reconciliation.state, reconciliation.report = RunState.DONE, dict(report)
        reconciliation.passed = all(check.passed for check in checks)
        reconciliation.failed_checks = {
            check.name: check.detail for check in checks if not check.passed
        }
        reconciliation.finished_at = at
        reconciliation.save()
        QualityResult.objects.bulk_create(
            QualityResult(
                run=run,
                kind=QualityKind.RECONCILIATION,
                name=check.name,
                passed=check.passed,
                detail={
                    "detail": check.detail,
                    "reconciliation": reconciliation.pk,
                    "findings": _findings(check, report),
                },
            )
            for check in checks
        )
        days = list(_days(reconciliation, report, reasons, at))
        ReconciledDay.objects.bulk_create(
            days,
            update_conflicts=True,
            unique_fields=["cluster_id", "day"],
            update_fields=list(REPLACED),
        )


def _findings(check: Check, report: Mapping[str, Any]) -> list[Any]:
    part = COMPARED.get(check.name)
    findings: list[Any] = report[part]["findings"] if part else []
    return findings


def _days(
    reconciliation: Reconciliation,
    report: Mapping[str, Any],
    reasons: Mapping[str, str],
    at: datetime,
) -> Iterator[ReconciledDay]:
    compared = {cluster["cluster_id"]: cluster for cluster in report["ingress"]["clusters"]}
    nothing = {"metered_bytes": 0, "bytes_most": 0, "unknown_bytes": 0, "differing": 0}
    for cluster_id, owner in sorted(owners_of(reconciliation.day).items()):
        figures = compared.get(cluster_id, nothing)
        reason = reasons.get(cluster_id, "")
        yield ReconciledDay(
            organization_id=owner,
            cluster_id=cluster_id,
            day=reconciliation.day,
            reconciliation=reconciliation,
            agreement=_agreement(figures, reason),
            metered_bytes=Decimal(figures["metered_bytes"]),
            logged_bytes=Decimal(figures["bytes_most"]),
            unknown_bytes=Decimal(figures["unknown_bytes"]),
            differing=figures["differing"],
            reason=reason,
            compared_at=at,
        )


def _agreement(figures: Mapping[str, Any], reason: str) -> str:
    if figures["differing"]:
        return Agreement.DIFFERENT.value
    return Agreement.PARTLY_KNOWN.value if reason else Agreement.EQUAL.value
