"""Reads of billing, always within an organisation but where a name says otherwise."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Case, Exists, OuterRef, Q, Sum, Value, When

from billing.choices import InvoiceKind, InvoiceState

if TYPE_CHECKING:
    from billing.models import Budget, Invoice, InvoiceMail, Posting, PriceVersion  # noqa: F401

# A mail that failed waits so long.
MAIL_AGAIN = timedelta(minutes=10)


class PriceVersionQuerySet(models.QuerySet["PriceVersion"]):
    """Versions of the prices, which are nobody's own."""

    def in_force(self, month: date) -> PriceVersion:
        """The version that prices a month. There is one for every month since 2020."""
        found = self.prefetch_related("prices").filter(valid_from__lte=month)
        return found.order_by("-valid_from")[:1].get()


class InvoiceQuerySet(models.QuerySet["Invoice"]):
    """Invoices and credit notes."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def invoices(self) -> Self:
        """Without the credit notes."""
        return self.filter(kind=InvoiceKind.INVOICE)

    def issued(self) -> Self:
        """Those that never change again, void ones too."""
        return self.filter(state=InvoiceState.ISSUED)

    def published(self) -> Self:
        """Those whose numbers are on record in the object store: the ones that people see."""
        return self.filter(Q(state=InvoiceState.DRAFT) | Q(block__confirmed_at__isnull=False))

    def not_void(self) -> Self:
        """Those that no credit note takes back."""
        return self.filter(credit_note=None)

    def without_document(self) -> Self:
        """Of every organisation, those whose PDF is still to be made."""
        return self.issued().published().filter(document=None)

    def with_shown_state(self) -> Self:
        """Each with `shown_state`: draft, issued or void."""
        credit_notes = self.model._default_manager.filter(credits=OuterRef("pk"))
        void = When(Exists(credit_notes), then=Value("void"))
        return self.annotate(shown_state=Case(void, default="state"))


class InvoiceMailQuerySet(models.QuerySet["InvoiceMail"]):
    """Mails of invoices."""

    def due(self, at: datetime) -> Self:
        """Those to be sent now: of what people can see, and read as PDF."""
        seen = self.filter(sent_at=None, invoice__document__isnull=False)
        seen = seen.filter(invoice__block__confirmed_at__isnull=False)
        return seen.exclude(failed_at__gt=at - MAIL_AGAIN)


class PostingQuerySet(models.QuerySet["Posting"]):
    """Postings."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def balance(self) -> dict[str, int]:
        """Account → the sum of its postings, in minor units."""
        sums = self.values_list("account").annotate(total=Sum("amount_minor"))
        return {account: int(total) for account, total in sums.order_by("account")}


class BudgetQuerySet(models.QuerySet["Budget"]):
    """Budgets."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def current(self) -> Self:
        """Those that were not removed."""
        return self.filter(removed_at=None)
