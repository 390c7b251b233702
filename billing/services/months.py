"""Months issue by themselves: each closed month once, and what was left out until it is issued.

A month is begun 72 hours after its end. Its run may be killed at any moment: what is issued stays,
and the next run goes on with the others. A run that ends for all organizations, such as one that
finds a day without a roll-up, is repeated, and so is the invoice of each organization that was left
out; both wait longer after each attempt.
"""

from __future__ import annotations

import logging
from datetime import date, datetime

from billing.errors import NumbersDiverged
from billing.models import InvoiceMonth
from billing.periods import last_closed_month, next_month
from billing.services.issuing import IssueReport, issue_month
from billing.services.missing import due_missing, postpone_missing, wait_after
from console.base.common.clock import now
from console.base.common.errors import AppError

logger = logging.getLogger(__name__)

BY = "freshet"


def issue_due_months() -> int:
    """Issues each month that is due, then what was left out of others and is due again; returns the
    number of invoices.

    A month that fails holds up no other one: the first of such errors is raised at the end.
    Repeating it, or running it twice at a time, issues nobody twice.
    """
    issued = 0
    errors: list[Exception] = []
    for month in _months_to_run(now()):
        try:
            issued += _run_month(month)
        except Exception as error:
            errors.append(error)
    for month, organizations in due_missing(now()).items():
        try:
            issued += _try_again(month, organizations)
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return issued


def _months_to_run(at: datetime) -> list[date]:
    """The months whose runs are due, and rows for those that closed since the last one.

    The first run of an installation begins with the month that closed last: what was used before is
    issued by `issue_invoices` alone.
    """
    last = last_closed_month(at)
    newest = InvoiceMonth.objects.order_by("-month").values_list("month", flat=True).first()
    month = last if newest is None else next_month(newest)
    while month <= last:
        InvoiceMonth.objects.get_or_create(pk=month, defaults={"next_try_at": at})
        month = next_month(month)
    due = InvoiceMonth.objects.filter(finished_at=None, next_try_at__lte=at)
    return list(due.order_by("month").values_list("month", flat=True))


def _run_month(month: date) -> int:
    """Issues a month to everybody. What ends the run for all is kept as the month's reason.

    Raises what is no state of the month but a fault, such as a store that does not answer.
    """
    try:
        report = issue_month(month=month, by=BY)
    except Exception as error:
        _note_failure(month, error)
        if _is_expected(error):
            return 0
        raise
    InvoiceMonth.objects.filter(pk=month).update(finished_at=now(), reason="")
    _log_run("month.issued", month, report)
    return report.issued


def _try_again(month: date, organizations: list[str]) -> int:
    """Issues the missing invoices of some organizations; raises as `_run_month` does."""
    try:
        report = issue_month(month=month, by=BY, among=organizations)
    except Exception as error:
        postpone_missing(month, organizations, _reason_of(error))
        if _is_expected(error):
            return 0
        raise
    _log_run("month.tried_again", month, report)
    return report.issued


def _note_failure(month: date, error: Exception) -> None:
    logger.warning("month.failed", extra={"month": f"{month:%Y-%m}", "reason": str(error)})
    row = InvoiceMonth.objects.get(pk=month)
    row.attempts += 1
    row.reason = _reason_of(error)
    row.next_try_at = now() + wait_after(row.attempts)
    row.save(update_fields=["attempts", "reason", "next_try_at"])


def _is_expected(error: Exception) -> bool:
    """Whether an error is a state that passes or that staff are shown, and no fault of a task."""
    return isinstance(error, AppError) and not isinstance(error, NumbersDiverged)


def _reason_of(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return text if isinstance(error, AppError) else f"{type(error).__name__}: {text}"


def _log_run(event: str, month: date, report: IssueReport) -> None:
    logger.info(
        event,
        extra={
            "month": f"{month:%Y-%m}",
            "issued": report.issued,
            "already": report.already,
            "left_out": len(report.left_out) + len(report.failed),
        },
    )
