"""Writes drafts as rows, with numbers, ledger entries and audit entries, in one transaction.

Their numbers are reserved before that transaction, as the store of the numbers may take its time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from billing.choices import Account, EntryKind, InvoiceKind, InvoiceState
from billing.drafts import Draft
from billing.models import Invoice, InvoiceLine, JournalEntry, NumberSeries, Posting
from billing.receivables.services import close_by_credit_note, open_receivables
from billing.services import numbers
from billing.services.mailing import note_mails
from billing.services.store import document_store
from console.base.common import locks
from console.base.common.actor import system_actor
from console.base.common.audit import new_entry
from console.base.common.ids import derived_id, new_id
from console.base.common.models import AuditEntry
from console.base.common.outbox import enqueue_task
from metering.events.store import UsageStore

# Of more invoices at once the sweep makes the PDFs, so that they do not fill the task queue.
DOCUMENTS_AT_ONCE_MAX = 20
ENTRY_KINDS = {
    InvoiceKind.INVOICE.value: EntryKind.INVOICE.value,
    InvoiceKind.CREDIT_NOTE.value: EntryKind.VOID.value,
}


@dataclass(frozen=True, slots=True)
class Written:
    """What a caller needs to know of a written invoice. `number` is empty for a draft."""

    invoice_id: str
    organization_id: str
    number: str
    currency: str
    total_minor: int


def write_drafts(drafts: Sequence[Draft]) -> list[Written]:
    """Writes drafts without numbers, to look at. They are deleted when the month is issued."""
    ids = [new_id("inv") for _ in drafts]
    _insert_drafts(drafts, [_draft_row(draft, id_) for draft, id_ in zip(drafts, ids, strict=True)])
    return [_written_of(draft, id_, "") for draft, id_ in zip(drafts, ids, strict=True)]


def issue_drafts(
    drafts: Sequence[Draft],
    *,
    series: NumberSeries,
    at: datetime,
    by: str,
    stale: QuerySet[Invoice] | None = None,
) -> list[Written]:
    """Issues drafts of one kind, and deletes the rows of `stale` ones that they replace.

    `series` must be locked, the scope the system's. Nothing may be written before in the task's
    transaction. Once that is committed, their numbers are recorded as issued, and their PDFs are
    made. Raises what `numbers.take_numbers` and `numbers.keep_block` raise.
    """
    if not drafts:
        return []
    store = document_store()
    claims = [_claim_of(draft) for draft in drafts]
    taken = numbers.take_numbers(series, claims, store=store, at=at)
    assigned = taken.assigned
    if taken.block is None:
        locks.require_held()
    else:
        numbers.keep_block(taken.block)
    if stale is not None:
        stale.delete()
    rows = [_draft_row(draft, got.invoice_id) for draft, got in zip(drafts, assigned, strict=True)]
    for row, got in zip(rows, assigned, strict=True):
        row.series_id, row.sequence, row.number = got.series, got.sequence, got.number
        row.block_id, row.issued_at = got.block_id, got.issued_at
    _insert_drafts(drafts, rows)
    Invoice.objects.filter(pk__in=[row.pk for row in rows]).update(state=InvoiceState.ISSUED)
    _post_entries(rows, at)
    open_receivables(invoices=rows, at=at)
    for row in rows:
        if row.kind == InvoiceKind.CREDIT_NOTE:
            close_by_credit_note(credit_note=row, at=at)
    _record_audit(rows, by)
    note_mails(rows)
    _confirm_on_commit({got.block_id for got in assigned}, store)
    if len(rows) <= DOCUMENTS_AT_ONCE_MAX:
        for row in rows:
            enqueue_task(
                task="billing.make_document",
                organization_id=row.organization_id,
                arguments={"organization_id": row.organization_id, "invoice_id": row.pk},
            )
    return [
        _written_of(draft, got.invoice_id, got.number)
        for draft, got in zip(drafts, assigned, strict=True)
    ]


def _claim_of(draft: Draft) -> numbers.Claim:
    return numbers.Claim(
        organization_id=draft.organization_id,
        kind=draft.kind,
        month=draft.month,
        revision=draft.revision,
        invoice_id=new_id("inv"),
        sha256=draft.sha256(),
    )


def _draft_row(draft: Draft, invoice_id: str) -> Invoice:
    return Invoice(
        id=invoice_id,
        organization_id=draft.organization_id,
        kind=draft.kind,
        month=draft.month,
        revision=draft.revision,
        price_version_id=draft.price_version,
        basis_id=draft.basis_id,
        currency=draft.currency,
        subtotal_minor=draft.subtotal_minor,
        tax_minor=draft.tax_minor,
        total_minor=draft.total_minor,
        tax=draft.tax.as_json(),
        seller=draft.seller.as_json(),
        customer=draft.customer.as_json(),
        cap_minor=draft.cap_minor,
        closed_early=dict(draft.closed_early) if draft.closed_early else None,
        allowance=None if draft.allowance is None else dict(draft.allowance),
        rounding=draft.rounding,
        credits_id=draft.credits_id,
        reason=draft.reason,
    )


def _insert_drafts(drafts: Sequence[Draft], rows: Sequence[Invoice]) -> None:
    Invoice.objects.bulk_create(rows)
    InvoiceLine.objects.bulk_create(
        line for draft, row in zip(drafts, rows, strict=True) for line in _line_rows(draft, row)
    )


def _line_rows(draft: Draft, row: Invoice) -> Iterable[InvoiceLine]:
    for position, line in enumerate(draft.lines, start=1):
        yield InvoiceLine(
            id=derived_id("inl", row.pk, position),
            organization_id=draft.organization_id,
            invoice=row,
            position=position,
            kind=line.kind,
            meter=line.meter,
            cluster_id=line.cluster_id,
            cluster=line.cluster,
            description=line.description,
            quantity=line.quantity,
            free_quantity=line.free_quantity,
            unit_price=line.unit_price,
            price_unit=line.price_unit,
            price_unit_size=line.price_unit_size,
            amount_minor=line.amount_minor,
            tax_category=draft.tax.category,
        )


def _post_entries(rows: Sequence[Invoice], at: datetime) -> None:
    """Debits receivables, and credits revenue and tax.

    The amounts of a credit note are negative, so it posts the reverse. An invoice over nothing has
    no entry.
    """
    entries, postings = [], []
    for row in rows:
        amounts = {
            Account.RECEIVABLE.value: row.total_minor,
            Account.REVENUE.value: -row.subtotal_minor,
            Account.TAX.value: -row.tax_minor,
        }
        amounts = {account: amount for account, amount in amounts.items() if amount}
        if not amounts:
            continue
        entry = JournalEntry(
            organization_id=row.organization_id,
            kind=ENTRY_KINDS[row.kind],
            invoice=row,
            currency=row.currency,
            posting_count=len(amounts),
            created_at=at,
        )
        entries.append(entry)
        postings += [
            Posting(
                organization_id=row.organization_id,
                entry=entry,
                account=account,
                amount_minor=amount,
            )
            for account, amount in amounts.items()
        ]
    JournalEntry.objects.bulk_create(entries)
    Posting.objects.bulk_create(postings)


def _record_audit(rows: Sequence[Invoice], by: str) -> None:
    AuditEntry.objects.bulk_create(_audit_entry(row, by) for row in rows)


def _audit_entry(row: Invoice, by: str) -> AuditEntry:
    detail = {
        "number": row.number,
        "month": f"{row.month:%Y-%m}",
        "total_minor": row.total_minor,
        "currency": row.currency,
        "by": by,
    }
    if row.closed_early:
        detail["closed_early"] = row.closed_early
    if row.credits_id:
        detail |= {"credits": row.credits_id, "reason": row.reason}
    return new_entry(
        actor=system_actor(row.organization_id),
        action=f"{row.kind}.issue",
        target_type="invoice",
        target_id=row.pk,
        detail=detail,
    )


def _confirm_on_commit(block_ids: Collection[str], store: UsageStore) -> None:
    def confirm() -> None:
        for block_id in sorted(block_ids):
            numbers.confirm_block(block_id, store)

    # Robust, because the invoices are committed: where confirming fails, the sweep confirms later,
    # and nobody sees the invoices before.
    transaction.on_commit(confirm, robust=True)


def _written_of(draft: Draft, invoice_id: str, number: str) -> Written:
    return Written(
        invoice_id=invoice_id,
        organization_id=draft.organization_id,
        number=number,
        currency=draft.currency,
        total_minor=draft.total_minor,
    )
