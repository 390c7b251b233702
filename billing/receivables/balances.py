"""What an organization owes, and what it has as credit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, Sum

from billing.models import Credit, Payment, PriceVersion, Receivable, Settlement
from billing.periods import month_of
from billing.receivables.opening import due_on
from console.base.common.clock import now
from console.base.common.conf import config


@dataclass(frozen=True, slots=True)
class Balance:
    """Amounts in minor units of a currency: what is open, the part of it that is overdue, and the
    credit that pays the next invoice."""

    open_minor: int
    overdue_minor: int
    credit_minor: int
    currency: str


def is_collected() -> bool:
    """Whether somebody collects invoices, so that they can be overdue."""
    return config().billing.collector != "none"


def open_of(organization_id: str) -> list[Receivable]:
    """What an organization owes, oldest first, with the invoices."""
    rows = Receivable.objects.for_organization(organization_id).open().select_related("invoice")
    return list(rows.oldest_first())


def balance_of(organization_id: str, *, currency: str | None = None) -> Balance:
    """The balance in a currency; without one, in that of the prices that are in force."""
    at = now()
    currency = currency or PriceVersion.objects.in_force(month_of(at)).currency
    rows = Receivable.objects.for_organization(organization_id).open().filter(currency=currency)
    sums = rows.aggregate(
        open=Sum("open_minor"), overdue=Sum("open_minor", filter=Q(due_on__lt=at.date()))
    )
    credit = sum(
        kind.objects.for_organization(organization_id)
        .filter(currency=currency)
        .aggregate(total=Sum("unapplied_minor"))["total"]
        or 0
        for kind in (Payment, Credit)
    )
    return Balance(
        open_minor=int(sums["open"] or 0),
        overdue_minor=int(sums["overdue"] or 0) if is_collected() else 0,
        credit_minor=int(credit),
        currency=currency,
    )


@dataclass(frozen=True, slots=True)
class PaidBy:
    """A payment or a credit, and how much of it pays an invoice, in minor units."""

    id: str
    method: str
    amount_minor: int
    received_at: datetime


def payments_of(invoice_id: str) -> list[PaidBy]:
    """What pays an invoice, in the order in which it came in. A disputed payment still does."""
    rows = Settlement.objects.filter(receivable_id=invoice_id)
    rows = rows.select_related("payment", "credit", "dispute__payment")
    sources: dict[str, Payment | Credit] = {}
    amounts: dict[str, int] = {}
    for row in rows:
        source = row.payment or row.credit or (row.dispute.payment if row.dispute else None)
        if source is not None:
            sources[source.pk] = source
            amounts[source.pk] = amounts.get(source.pk, 0) + row.amount_minor
    return [
        PaidBy(pk, source.method, amounts[pk], source.received_at)
        if isinstance(source, Payment)
        else PaidBy(pk, "credit", amounts[pk], source.created_at)
        for pk, source in sources.items()
        if amounts[pk]
    ]


def set_due_dates(*, at: datetime) -> int:
    """Gives what was issued while nobody collected a day until which it is to be paid.

    It is as far away as that of an invoice that is issued now, so nothing is overdue by a change of
    the settings. Called in the system's scope; returns how many receivables it changed.
    """
    due = due_on(at)
    if due is None:
        return 0
    return Receivable.objects.open().filter(due_on=None).update(due_on=due)
