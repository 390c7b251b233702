"""Receivables of issued invoices: opened with the invoice, closed by its credit note."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from billing.choices import EntryKind, InvoiceKind, SettlementKind
from billing.models import Invoice, Receivable, Settlement
from billing.receivables.applying import apply_credit, sources_of
from billing.receivables.event import MoneyEvent, Source, lock_organizations, save_receivable
from billing.receivables.references import reference_of
from billing.receivables.signals import receivables_changed
from console.base.common.conf import config


def due_on(at: datetime) -> date | None:
    """The day until which what is issued at a time is to be paid; None: nobody collects it."""
    settings = config().billing
    if settings.collector == "none":
        return None
    return at.date() + timedelta(days=settings.payment_terms_days)


def open_receivables(*, invoices: Sequence[Invoice], at: datetime) -> None:
    """Opens the receivables of invoices that are being issued, and uses the credit that is there.

    An invoice over nothing has none; none is over less, as a cap takes back at most what it limits.
    No signal is sent: whoever charges invoices looks for open receivables by itself.
    """
    due = due_on(at)
    receivables = [
        Receivable(
            invoice=invoice,
            organization_id=invoice.organization_id,
            currency=invoice.currency,
            amount_minor=invoice.total_minor,
            payable_minor=invoice.total_minor,
            open_minor=invoice.total_minor,
            due_on=due,
            reference=reference_of(invoice.number or ""),
            created_at=at,
        )
        for invoice in invoices
        if invoice.kind == InvoiceKind.INVOICE and invoice.total_minor > 0
    ]
    if not receivables:
        return
    # Once for all: a payment that comes in meanwhile waits, and sees the new receivables.
    lock_organizations(row.organization_id for row in receivables)
    Receivable.objects.bulk_create(receivables)
    for currency in sorted({row.currency for row in receivables}):
        opened = {row.organization_id: row for row in receivables if row.currency == currency}
        credited = {source.organization_id for source in sources_of(opened, currency)}
        for organization_id in sorted(credited):
            _use_credit(opened[organization_id], at)


def _use_credit(receivable: Receivable, at: datetime) -> None:
    used = apply_credit(
        organization_id=receivable.organization_id,
        currency=receivable.currency,
        source_id=receivable.pk,
        at=at,
    )
    if used:
        Receivable.objects.filter(pk=receivable.pk).update(
            payable_minor=Receivable.objects.get(pk=receivable.pk).open_minor
        )


def close_by_credit_note(*, credit_note: Invoice, at: datetime) -> None:
    """Closes the receivable of an invoice that a credit note takes back.

    What had paid it becomes the customer's credit again, and pays what else is open. A write-off of
    it is undone: nothing was lost with an invoice that is void.
    """
    invoice_id = credit_note.credits_id
    row = Receivable.objects.filter(pk=invoice_id).values_list("organization_id").first()
    if row is None:
        return
    lock_organizations(row)
    receivable = Receivable.objects.get(pk=invoice_id)
    release = MoneyEvent(
        EntryKind.RELEASE,
        organization_id=receivable.organization_id,
        source_id=credit_note.pk,
        currency=receivable.currency,
        at=at,
    )
    for source, amount in _settled_by(receivable):
        release.settle(receivable, SettlementKind.REVERSAL, -amount, source)
    if receivable.written_off_minor:
        release.write_off(receivable, -receivable.written_off_minor)
    release.write()
    # The credit note's own entry has reversed the receivable.
    Settlement.objects.create(
        organization_id=receivable.organization_id,
        receivable=receivable,
        kind=SettlementKind.CREDIT_NOTE.value,
        amount_minor=receivable.open_minor,
        entry=credit_note.journal_entry,
        created_at=at,
    )
    receivable.open_minor = 0
    save_receivable(receivable, at, void=True)
    apply_credit(
        organization_id=receivable.organization_id,
        currency=receivable.currency,
        source_id=credit_note.pk,
        at=at,
    )
    receivables_changed.send(sender=Receivable, organization_id=receivable.organization_id)


def _settled_by(receivable: Receivable) -> list[tuple[Source, int]]:
    """What settles a receivable, with the amount of each."""
    sources: dict[str, Source] = {}
    amounts: dict[str, int] = {}
    rows = receivable.settlements.select_related("payment", "credit", "dispute")
    for row in rows:
        source = row.payment or row.credit or row.dispute
        if source is not None:
            # The first instance stands for all: its unapplied amount is changed below.
            sources.setdefault(source.pk, source)
            amounts[source.pk] = amounts.get(source.pk, 0) + row.amount_minor
    return [(sources[pk], amount) for pk, amount in amounts.items() if amount]
