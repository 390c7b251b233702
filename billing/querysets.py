"""Reads of billing. They stay within one organization unless their docstring says otherwise."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Self, TypeVar

from django.db import models
from django.db.models import Case, Exists, OuterRef, Q, Sum, Value, When

from billing.choices import InvoiceKind, InvoiceState, ReceivableState

if TYPE_CHECKING:
    from billing.models import (  # noqa: F401
        Budget,
        Invoice,
        InvoiceMail,
        Posting,
        PriceVersion,
        Receivable,
    )

Row = TypeVar("Row", bound=models.Model)

# How long a mail that failed waits before it is tried again.
MAIL_AGAIN = timedelta(minutes=10)


class PriceVersionQuerySet(models.QuerySet["PriceVersion"]):
    """Versions of the prices, which belong to no organization."""

    def in_force(self, month: date) -> PriceVersion:
        """The version that prices a month. There is one for every month since 2020."""
        versions = self.prefetch_related("prices").filter(valid_from__lte=month)
        return versions.order_by("-valid_from")[:1].get()


class InvoiceQuerySet(models.QuerySet["Invoice"]):
    """Invoices and credit notes."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)

    def invoices(self) -> Self:
        """The invoices, without credit notes."""
        return self.filter(kind=InvoiceKind.INVOICE)

    def issued(self) -> Self:
        """The issued ones, void ones included: they never change again."""
        return self.filter(state=InvoiceState.ISSUED)

    def published(self) -> Self:
        """The ones that people may see: drafts, and issued ones whose numbers are recorded in the
        object store."""
        return self.filter(Q(state=InvoiceState.DRAFT) | Q(block__confirmed_at__isnull=False))

    def not_void(self) -> Self:
        """The ones that no credit note takes back."""
        return self.filter(credit_note=None)

    def without_document(self) -> Self:
        """The ones whose PDF is still to be made, of every organization."""
        return self.issued().published().filter(document=None)

    def with_shown_state(self, *, collected: bool, today: date) -> Self:
        """Annotates `shown_state`, one of `SHOWN_STATES`.

        `collected`: whether somebody collects invoices; without that, none is overdue.
        """
        credit_notes = self.model._default_manager.filter(credits=OuterRef("pk"))
        cases = [
            When(Exists(credit_notes), then=Value("void")),
            When(receivable__state=ReceivableState.PAID, then=Value("paid")),
            When(receivable__state=ReceivableState.UNCOLLECTIBLE, then=Value("uncollectible")),
        ]
        if collected:
            late = Q(receivable__state=ReceivableState.OPEN, receivable__due_on__lt=today)
            cases.append(When(late, then=Value("overdue")))
        return self.annotate(shown_state=Case(*cases, default="state"))


class OwnedQuerySet(models.QuerySet[Row]):
    """Rows of organizations: payments, credits, refunds, disputes and settlements."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)


class ReceivableQuerySet(models.QuerySet["Receivable"]):
    """What customers owe."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)

    def open(self) -> Self:
        """Those of which something is open."""
        return self.filter(state=ReceivableState.OPEN)

    def overdue(self, today: date) -> Self:
        """Those that were due before a day and are open."""
        return self.open().filter(due_on__lt=today)

    def oldest_first(self) -> Self:
        """In the order in which payments and credit are used for them."""
        return self.order_by("created_at", "invoice_id")


class InvoiceMailQuerySet(models.QuerySet["InvoiceMail"]):
    """Mails of invoices."""

    def due(self, at: datetime) -> Self:
        """The mails to send at a time: of invoices that people may see and whose PDF is made."""
        unsent = self.filter(sent_at=None, invoice__document__isnull=False)
        unsent = unsent.filter(invoice__block__confirmed_at__isnull=False)
        return unsent.exclude(failed_at__gt=at - MAIL_AGAIN)


class PostingQuerySet(models.QuerySet["Posting"]):
    """Postings."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)

    def balance(self) -> dict[str, int]:
        """Account → the sum of its postings, in minor units."""
        sums = self.values_list("account").annotate(total=Sum("amount_minor"))
        return {account: int(total) for account, total in sums.order_by("account")}


class BudgetQuerySet(models.QuerySet["Budget"]):
    """Budgets."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)

    def current(self) -> Self:
        """The budgets that were not removed."""
        return self.filter(removed_at=None)
