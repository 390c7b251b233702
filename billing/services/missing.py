"""Which organizations lack the invoice of a month, and why, until they have it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count

from billing.choices import MissingKind
from billing.models import InvoiceMonth, MissingInvoice
from billing.periods import closes_at, last_closed_month, next_month, starts_at
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.tenancy import system_scope

# A reason that passes by itself is over soon; one that a person must remove takes a day or more.
TRY_AGAIN_AFTER = timedelta(minutes=10)
TRY_AGAIN_AFTER_MAX = timedelta(hours=6)
# After this time a month that is not issued is somebody's to look at, whatever the reason.
OVERDUE_AFTER = timedelta(hours=6)
ROWS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class UnissuedMonth:
    """A month that can be invoiced and is not, in part or as a whole.

    `missing`: the number of organizations without an invoice; `reason`: why nobody gets one, empty
    where others do.
    """

    month: date
    missing: int
    reason: str


def wait_after(attempts: int) -> timedelta:
    """How long to wait after so many attempts: twice as long each time, up to a maximum."""
    doublings = min(max(attempts, 1) - 1, 16)
    return min(TRY_AGAIN_AFTER * (1 << doublings), TRY_AGAIN_AFTER_MAX)


def note_missing(month: date, kind: MissingKind, reasons: Mapping[str, str]) -> None:
    """Writes down why organizations have no invoice of a month. `reasons`: organization → reason.

    Each call counts as an attempt, after which the next one waits longer.
    """
    if not reasons:
        return
    at = now()
    with system_scope():
        known = _postpone(month, kind, reasons, at)
        MissingInvoice.objects.bulk_create(
            (
                MissingInvoice(
                    organization_id=owner,
                    month=month,
                    kind=kind.value,
                    reason=reason,
                    created_at=at,
                    tried_at=at,
                    next_try_at=at + wait_after(1),
                )
                for owner, reason in reasons.items()
                if owner not in known
            ),
            # Somebody else may have noted the same at this moment.
            ignore_conflicts=True,
            batch_size=ROWS_AT_ONCE,
        )


def postpone_missing(month: date, organizations: Collection[str], reason: str) -> None:
    """Notes an attempt that failed for all of some organizations, of which some may have got their
    invoice before: those are not missing any more."""
    reasons = dict.fromkeys(organizations, reason)
    with system_scope():
        _postpone(month, MissingKind.IMPOSSIBLE, reasons, now())


def _postpone(
    month: date, kind: MissingKind, reasons: Mapping[str, str], at: datetime
) -> Collection[str]:
    """Notes another attempt in the rows that are there; returns their organizations."""
    rows = MissingInvoice.objects.filter(month=month, organization_id__in=list(reasons))
    known = {row.organization_id: row for row in rows.select_for_update().order_by("pk")}
    for owner, row in known.items():
        row.kind, row.reason, row.tried_at = kind.value, reasons[owner], at
        row.attempts += 1
        row.next_try_at = at + wait_after(row.attempts)
    MissingInvoice.objects.bulk_update(
        known.values(),
        ["kind", "reason", "tried_at", "attempts", "next_try_at"],
        batch_size=ROWS_AT_ONCE,
    )
    return known.keys()


def forget_missing(month: date, organizations: Collection[str]) -> None:
    """Deletes the rows of organizations that have their invoice, in the transaction that issues."""
    rows = MissingInvoice.objects.filter(month=month, organization_id__in=list(organizations))
    rows.delete()


def try_soon(organization_id: str) -> None:
    """Has the next run try an organization's missing invoices, in the caller's scope."""
    rows = MissingInvoice.objects.filter(organization_id=organization_id)
    rows.update(next_try_at=now())


def due_missing(at: datetime) -> dict[date, list[str]]:
    """Closed month → the organizations whose missing invoices are to be tried at a time."""
    due: dict[date, list[str]] = {}
    with system_scope():
        rows = MissingInvoice.objects.filter(next_try_at__lte=at).order_by("month", "pk")
        for month, owner in rows.values_list("month", "organization_id"):
            if closes_at(month) <= at:
                due.setdefault(month, []).append(owner)
    return due


def unissued_months(at: datetime) -> list[UnissuedMonth]:
    """The closed months that are not issued, in part or as a whole, in the order of time.

    Called in the system's scope. A month that is being issued is none of them before
    `OVERDUE_AFTER`.
    """
    counts = MissingInvoice.objects.values_list("month").annotate(Count("pk"))
    missing = {month: count for month, count in counts if closes_at(month) <= at}
    reasons = {
        row.month: row.reason or "its run has not ended"
        for row in InvoiceMonth.objects.filter(finished_at=None)
        if row.reason or closes_at(row.month) + OVERDUE_AFTER <= at
    }
    last = last_closed_month(at)
    if closes_at(last) + OVERDUE_AFTER <= at and not _is_begun(last) and _has_customers(last):
        reasons[last] = "no worker has begun to issue it"
    return [
        UnissuedMonth(month, missing.get(month, 0), reasons.get(month, ""))
        for month in sorted(missing.keys() | reasons.keys())
    ]


def _is_begun(month: date) -> bool:
    return InvoiceMonth.objects.filter(pk=month).exists()


def _has_customers(month: date) -> bool:
    signed_up = Organization.objects.filter(created_at__lt=starts_at(next_month(month)))
    return signed_up.exclude(closed_at__lt=starts_at(month)).exists()
