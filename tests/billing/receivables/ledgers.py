"""Invoices of given amounts, and what the tables and the ledger say of an organization."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db import connection

from billing.choices import InvoiceKind, LineKind, TaxCategory
from billing.drafts import Draft, DraftLine
from billing.models import (
    Credit,
    Dispute,
    Invoice,
    Payment,
    Posting,
    PriceVersion,
    Receivable,
    UsageBasis,
)
from billing.parties import Party, Tax
from billing.services import numbers
from billing.services.voiding import void_invoice
from billing.services.writing import issue_drafts
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import task_transaction

FIRST_MONTH = date(2020, 1, 1)
NO_TAX = Tax(category=TaxCategory.OUTSIDE_SCOPE.value, percent=Decimal(0), reason="none")


def month_number(number: int) -> date:
    """The first day of the month with a number, from `FIRST_MONTH` on."""
    return date(2020 + number // 12, 1 + number % 12, 1)


def issue_amounts(amounts: dict[str, int], month: date = FIRST_MONTH) -> list[str]:
    """Issues an invoice of an amount to each organization; returns the ids, in their order."""
    with task_transaction(), system_scope():
        basis, _ = UsageBasis.objects.get_or_create(
            id=f"ub_{month:%Y%m}", defaults={"month": month, "runs": []}
        )
        version = PriceVersion.objects.in_force(month)
        drafts = [
            Draft(
                organization_id=organization_id,
                kind=InvoiceKind.INVOICE.value,
                month=month,
                revision=1,
                price_version=version.pk,
                basis_id=basis.pk,
                currency=version.currency,
                seller=Party(name="Seller"),
                customer=Party(name="Customer"),
                tax=NO_TAX,
                lines=(DraftLine(kind=LineKind.USAGE.value, description="x", amount_minor=amount),),
            )
            for organization_id, amount in amounts.items()
        ]
        at = now()
        series = numbers.lock_series(numbers.series_of(InvoiceKind.INVOICE, at))
        return [
            written.invoice_id for written in issue_drafts(drafts, series=series, at=at, by="tests")
        ]


def issue_amount(organization_id: str, amount_minor: int, month: date = FIRST_MONTH) -> str:
    """Issues an invoice of an amount; returns its id."""
    (invoice_id,) = issue_amounts({organization_id: amount_minor}, month)
    return invoice_id


def void(invoice_id: str) -> str:
    """Takes an invoice back; returns the id of its credit note."""
    return void_invoice(invoice_id=invoice_id, reason="wrong", by="tests").invoice_id


def check_now() -> None:
    """Has PostgreSQL check now what it would check at the commit, which a test may never reach."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def receivable(invoice_id: str) -> Receivable:
    """The receivable of an invoice, as it is now."""
    with system_scope():
        return Receivable.objects.get(pk=invoice_id)


def states(organization_id: str) -> dict[str, tuple[int, str]]:
    """Invoice → open amount and state."""
    with system_scope():
        rows = Receivable.objects.for_organization(organization_id)
        return {row.pk: (row.open_minor, row.state) for row in rows}


def credit_of(organization_id: str) -> int:
    """What the organization's payments and credits have unapplied."""
    with system_scope():
        return sum(
            row.unapplied_minor
            for kind in (Payment, Credit)
            for row in kind.objects.for_organization(organization_id)
        )


def accounts(organization_id: str) -> dict[str, int]:
    """Account → its balance, without those that are 0."""
    with organization_scope(organization_id):
        balance = Posting.objects.for_organization(organization_id).balance()
    return {account: amount for account, amount in balance.items() if amount}


def require_ledger_agrees(organization_id: str) -> None:
    """The ledger sums to 0, and its accounts are the sums of the tables."""
    with system_scope():
        balance = Posting.objects.for_organization(organization_id).balance()
        receivables = Receivable.objects.for_organization(organization_id)
        still_open = sum(receivables.values_list("open_minor", flat=True))
        disputes = Dispute.objects.filter(organization_id=organization_id, state="open")
        disputed = sum(row.amount_minor - row.unapplied_minor for row in disputes)
        invoiced = sum(
            Invoice.objects.for_organization(organization_id)
            .issued()
            .values_list("total_minor", flat=True)
        )
    assert sum(balance.values()) == 0
    assert balance.get("receivable", 0) == still_open
    assert balance.get("customer_credit", 0) == -credit_of(organization_id)
    assert balance.get("disputed", 0) == disputed
    assert balance.get("revenue", 0) + balance.get("tax", 0) == -invoiced
