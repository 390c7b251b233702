"""Disputes: money of a card payment that its bank took back, until it is decided whose it is."""

from __future__ import annotations

from datetime import datetime

from billing.choices import Account, DisputeState, EntryKind, SettlementKind
from billing.errors import PaymentConflict, RefundTooLarge
from billing.models import Dispute
from billing.receivables.applying import apply_credit
from billing.receivables.event import MoneyEvent, lock_organizations, money_account
from billing.receivables.people import audit_money
from billing.receivables.refunds import (
    lock_payment,
    refundable_minor,
    settled_receivables,
    take_back,
)
from billing.receivables.signals import receivables_changed
from console.base.common.errors import NotFound

# It comes from the bank of the card, by Stripe.
BY = "the card's bank"


def record_dispute(
    *, payment_id: str, amount_minor: int, external_id: str, at: datetime
) -> Dispute:
    """Enters that a bank took back money of a payment. The same dispute again is returned as it is.

    The invoices that the money had paid stay paid until the dispute is closed, so that nobody pays
    them once more meanwhile; credit of the customer that it was is gone until it is won.

    Raises `NotFound`, `RefundTooLarge` for more than what is left of the payment, and
    `PaymentConflict` where the dispute was entered with other values.
    """
    payment = lock_payment(payment_id)
    known = Dispute.objects.filter(external_id=external_id).first()
    if known is not None:
        if (known.payment_id, known.amount_minor) != (payment.pk, amount_minor):
            raise PaymentConflict
        return known
    left = refundable_minor(payment)
    if amount_minor > left:
        message = f"Only {left} of the payment's {payment.amount_minor} minor units are left."
        raise RefundTooLarge(message)
    dispute = Dispute.objects.create(
        organization_id=payment.organization_id,
        payment=payment,
        external_id=external_id,
        amount_minor=amount_minor,
        unapplied_minor=amount_minor,
        created_at=at,
    )
    event = MoneyEvent(
        EntryKind.DISPUTE,
        organization_id=payment.organization_id,
        source_id=dispute.pk,
        currency=payment.currency,
        at=at,
    )
    for receivable, amount in take_back(event, SettlementKind.DISPUTE, payment, amount_minor):
        event.settle(receivable, SettlementKind.DISPUTE, amount, dispute)
    payment.unapplied_minor -= amount_minor
    event.change(payment)
    event.post(Account.CUSTOMER_CREDIT, amount_minor)
    event.post(money_account(payment.method), -amount_minor)
    event.write()
    _audit(dispute, "payment.dispute", payment.currency)
    receivables_changed.send(sender=Dispute, organization_id=payment.organization_id)
    return dispute


def close_dispute(*, external_id: str, won: bool, at: datetime) -> Dispute:
    """Enters how a dispute ended. Entered again, it is returned as it is.

    Won: the payment pays again what the dispute had settled, and the rest is credit. Lost: these
    invoices are open again.

    Raises `NotFound`, and `PaymentConflict` where it ended the other way before.
    """
    row = Dispute.objects.filter(external_id=external_id).values_list("organization_id").first()
    if row is None:
        raise NotFound
    lock_organizations(row)
    dispute = Dispute.objects.select_related("payment").get(external_id=external_id)
    payment = dispute.payment
    state = DisputeState.WON if won else DisputeState.LOST
    if dispute.state != DisputeState.OPEN:
        if dispute.state != state:
            raise PaymentConflict
        return dispute
    event = MoneyEvent(
        EntryKind.DISPUTE_WON if won else EntryKind.DISPUTE_LOST,
        organization_id=dispute.organization_id,
        source_id=dispute.pk,
        currency=payment.currency,
        at=at,
    )
    settled = settled_receivables(dispute)
    kind = SettlementKind.REVERSAL if won else SettlementKind.DISPUTE
    for receivable, amount in settled:
        event.settle(receivable, kind, -amount, dispute)
    if won:
        event.post(money_account(payment.method), dispute.amount_minor)
        event.post(Account.CUSTOMER_CREDIT, -dispute.amount_minor)
        payment.unapplied_minor += dispute.amount_minor
        event.change(payment)
        for receivable, amount in settled:
            event.settle(receivable, SettlementKind.PAYMENT, amount, payment)
    dispute.unapplied_minor = 0
    dispute.state, dispute.closed_at = state.value, at
    dispute.save(update_fields=["unapplied_minor", "state", "closed_at"])
    event.write()
    apply_credit(
        organization_id=dispute.organization_id,
        currency=payment.currency,
        source_id=dispute.pk,
        at=at,
    )
    _audit(dispute, "payment.close_dispute", payment.currency)
    receivables_changed.send(sender=Dispute, organization_id=dispute.organization_id)
    return dispute


def _audit(dispute: Dispute, action: str, currency: str) -> None:
    audit_money(
        by=BY,
        organization_id=dispute.organization_id,
        action=action,
        target=("payment", dispute.payment_id),
        detail={
            "dispute": dispute.pk,
            "external_id": dispute.external_id,
            "amount_minor": dispute.amount_minor,
            "currency": currency,
            "state": dispute.state,
        },
    )
