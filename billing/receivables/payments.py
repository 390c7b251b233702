"""Payments: money that came in, and the invoices that it pays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, transaction

from billing.choices import Account, EntryKind, SettlementKind
from billing.errors import PaymentConflict
from billing.models import Payment, Receivable
from billing.receivables.applying import settle_open
from billing.receivables.event import MoneyEvent, lock_organizations, money_account
from billing.receivables.people import By, audit_money, name_of
from billing.receivables.signals import receivables_changed
from console.base.common.clock import now
from console.base.common.errors import NotFound


def record_payment(  # noqa: PLR0913 (what is known of a payment)
    *,
    organization_id: str,
    method: str,
    amount_minor: int,
    currency: str,
    external_id: str,
    received_at: datetime,
    by: By,
    invoice_ids: Sequence[str] | None = None,
    note: str = "",
) -> Payment:
    """Enters money that came in. The same payment entered again is returned as it is.

    It pays the named invoices first, in their order, then the other open ones, oldest first; what
    is left is the customer's credit, and pays the next invoice. Only where a written-off invoice is
    named is its write-off taken back, as far as the money goes. A void invoice is paid by nothing.

    Raises `PaymentConflict` where a payment of that method and external id was entered with other
    values, and `NotFound` for an organization or an invoice that is not there.
    """
    lock_organizations([organization_id])
    known = Payment.objects.filter(method=method, external_id=external_id).first()
    if known is not None:
        same = (known.organization_id, known.amount_minor, known.currency)
        if same != (organization_id, amount_minor, currency):
            raise PaymentConflict
        return known
    first = _named_receivables(organization_id, invoice_ids or ())
    payment = Payment(
        organization_id=organization_id,
        method=method,
        external_id=external_id,
        currency=currency,
        amount_minor=amount_minor,
        unapplied_minor=amount_minor,
        received_at=received_at,
        entered_by=name_of(by),
        note=note,
        created_at=now(),
    )
    try:
        with transaction.atomic():
            payment.save(force_insert=True)
    except IntegrityError as error:
        # It is another organization's, which this scope does not see.
        raise PaymentConflict from error
    _apply_payment(payment, first)
    audit_money(
        by=by,
        organization_id=organization_id,
        action="payment.record",
        target=("payment", payment.pk),
        detail={
            "method": method,
            "external_id": external_id,
            "amount_minor": amount_minor,
            "currency": currency,
            "credit_minor": payment.unapplied_minor,
        },
    )
    receivables_changed.send(sender=Payment, organization_id=organization_id)
    return payment


def _apply_payment(payment: Payment, first: Sequence[Receivable]) -> None:
    """Pays the first receivables, then the other open ones, and writes the event's entry."""
    event = MoneyEvent(
        EntryKind.PAYMENT,
        organization_id=payment.organization_id,
        source_id=payment.pk,
        currency=payment.currency,
        at=payment.created_at,
    )
    event.post(money_account(payment.method), payment.amount_minor)
    event.post(Account.CUSTOMER_CREDIT, -payment.amount_minor)
    for receivable in first:
        if receivable.currency == payment.currency:
            _pay_named(event, receivable, payment)
    others = Receivable.objects.for_organization(payment.organization_id).open()
    others = others.filter(currency=payment.currency)
    others = others.exclude(pk__in=[receivable.pk for receivable in first])
    settle_open(event, SettlementKind.PAYMENT, others.oldest_first(), payment)
    event.write()


def _named_receivables(organization_id: str, invoice_ids: Sequence[str]) -> list[Receivable]:
    """The receivables of named invoices that something can be paid of, in their order."""
    rows = Receivable.objects.for_organization(organization_id).in_bulk(list(invoice_ids))
    if len(rows) < len(set(invoice_ids)):
        message = "An invoice is not this organization's, or nothing was ever owed for it."
        raise NotFound(message)
    return [rows[pk] for pk in dict.fromkeys(invoice_ids)]


def _pay_named(event: MoneyEvent, receivable: Receivable, payment: Payment) -> None:
    """Pays what is open of an invoice, then what was written off of it."""
    settle_open(event, SettlementKind.PAYMENT, [receivable], payment)
    recovered = min(receivable.written_off_minor, payment.unapplied_minor)
    if recovered:
        event.write_off(receivable, -recovered)
        event.settle(receivable, SettlementKind.PAYMENT, recovered, payment)
