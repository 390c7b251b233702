"""Credit that we grant, and amounts that we write off."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from billing.choices import Account, EntryKind, ReceivableState
from billing.errors import NothingOpen, PaymentConflict
from billing.models import Credit, Receivable
from billing.receivables.applying import apply_credit
from billing.receivables.event import MoneyEvent, lock_organizations
from billing.receivables.people import By, audit_money, name_of
from billing.receivables.signals import receivables_changed
from console.base.common.clock import now
from console.base.common.errors import NotFound
from console.base.common.ids import new_id


def grant_credit(
    *,
    organization_id: str,
    amount_minor: int,
    currency: str,
    reason: str,
    by: By,
    external_id: str | None = None,
) -> Credit:
    """Grants credit, which pays open invoices at once, oldest first, and then the next ones.

    With an external id, the same credit granted again is returned as it is. Raises `NotFound` for
    an unknown organization, and `PaymentConflict` where a credit of that id has other values.
    """
    lock_organizations([organization_id])
    if external_id is not None:
        known = Credit.objects.filter(external_id=external_id).first()
        if known is not None:
            same = (known.organization_id, known.amount_minor, known.currency)
            if same != (organization_id, amount_minor, currency):
                raise PaymentConflict
            return known
    credit = Credit(
        organization_id=organization_id,
        external_id=external_id,
        currency=currency,
        amount_minor=amount_minor,
        unapplied_minor=amount_minor,
        reason=reason,
        entered_by=name_of(by),
        created_at=now(),
    )
    try:
        with transaction.atomic():
            credit.save(force_insert=True)
    except IntegrityError as error:
        # It is another organization's, which this scope does not see.
        raise PaymentConflict from error
    event = MoneyEvent(
        EntryKind.CREDIT_GRANTED,
        organization_id=organization_id,
        source_id=credit.pk,
        currency=currency,
        at=credit.created_at,
    )
    event.post(Account.GOODWILL, amount_minor)
    event.post(Account.CUSTOMER_CREDIT, -amount_minor)
    event.write()
    apply_credit(
        organization_id=organization_id,
        currency=currency,
        source_id=credit.pk,
        at=credit.created_at,
    )
    audit_money(
        by=by,
        organization_id=organization_id,
        action="credit.grant",
        target=("credit", credit.pk),
        detail={"amount_minor": amount_minor, "currency": currency, "reason": reason},
    )
    receivables_changed.send(sender=Credit, organization_id=organization_id)
    return Credit.objects.get(pk=credit.pk)


def write_off(*, invoice_id: str, reason: str, by: By) -> Receivable:
    """Gives up what is open of an invoice. Written off again, it is returned as it is.

    A later payment that names the invoice takes the write-off back (`record_payment`).

    Raises `NotFound` for an invoice for which nothing was ever owed, and `NothingOpen` for a paid
    or void one.
    """
    row = Receivable.objects.filter(pk=invoice_id).values_list("organization_id").first()
    if row is None:
        raise NotFound
    lock_organizations(row)
    receivable = Receivable.objects.get(pk=invoice_id)
    if receivable.state == ReceivableState.UNCOLLECTIBLE:
        return receivable
    if receivable.state != ReceivableState.OPEN:
        raise NothingOpen
    amount = receivable.open_minor
    event = MoneyEvent(
        EntryKind.WRITE_OFF,
        organization_id=receivable.organization_id,
        # It may be written off again, after a payment of it was given back.
        source_id=new_id("wro"),
        currency=receivable.currency,
        at=now(),
    )
    event.write_off(receivable, amount)
    event.write()
    audit_money(
        by=by,
        organization_id=receivable.organization_id,
        action="invoice.write_off",
        target=("invoice", invoice_id),
        detail={"amount_minor": amount, "currency": receivable.currency, "reason": reason},
    )
    receivables_changed.send(sender=Receivable, organization_id=receivable.organization_id)
    return receivable
