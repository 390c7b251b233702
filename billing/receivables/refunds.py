"""Refunds: money that is given back, and the invoices that are owed again because of it."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import Sum

from billing.choices import Account, DisputeState, EntryKind, SettlementKind
from billing.errors import PaymentConflict, RefundTooLarge
from billing.models import Credit, Dispute, Payment, Receivable, Refund
from billing.receivables.applying import apply_credit
from billing.receivables.event import MoneyEvent, lock_organizations, money_account
from billing.receivables.people import By, audit_money, name_of
from billing.receivables.signals import receivables_changed
from console.base.common.clock import now
from console.base.common.errors import NotFound


def refund_payment(
    *,
    payment_id: str,
    amount_minor: int,
    external_id: str,
    by: By,
    reason: str,
    is_goodwill: bool = False,
) -> Refund:
    """Enters money that was given back. The same refund entered again is returned as it is.

    What of the payment pays no invoice is given back first. For the rest the invoices that it
    paid, the newest ones first, are open again; with `is_goodwill` they stay paid, by a credit of
    as much.

    Raises `NotFound`, `RefundTooLarge` for more than what is left of the payment, and
    `PaymentConflict` where a refund of that method and external id was entered with other values.
    """
    payment = lock_payment(payment_id)
    known = Refund.objects.filter(method=payment.method, external_id=external_id).first()
    if known is not None:
        if (known.payment_id, known.amount_minor) != (payment.pk, amount_minor):
            raise PaymentConflict
        return known
    left = refundable_minor(payment)
    if amount_minor > left:
        message = f"Only {left} of the payment's {payment.amount_minor} minor units are left."
        raise RefundTooLarge(message)
    goodwill = max(0, amount_minor - payment.unapplied_minor) if is_goodwill else 0
    refund = Refund(
        organization_id=payment.organization_id,
        payment=payment,
        method=payment.method,
        external_id=external_id,
        amount_minor=amount_minor,
        goodwill_minor=goodwill,
        reason=reason,
        entered_by=name_of(by),
        created_at=now(),
    )
    try:
        with transaction.atomic():
            refund.save(force_insert=True)
    except IntegrityError as error:
        # It is another organization's, which this scope does not see.
        raise PaymentConflict from error
    _undo_payment(payment, refund)
    audit_money(
        by=by,
        organization_id=payment.organization_id,
        action="payment.refund",
        target=("payment", payment.pk),
        detail={
            "refund": refund.pk,
            "external_id": external_id,
            "amount_minor": amount_minor,
            "goodwill_minor": goodwill,
            "currency": payment.currency,
            "reason": reason,
        },
    )
    receivables_changed.send(sender=Refund, organization_id=payment.organization_id)
    return refund


def _undo_payment(payment: Payment, refund: Refund) -> None:
    """Takes a refund's amount out of its payment, and writes the event's entry."""
    event = MoneyEvent(
        EntryKind.REFUND,
        organization_id=payment.organization_id,
        source_id=refund.pk,
        currency=payment.currency,
        at=refund.created_at,
    )
    reopened = take_back(event, SettlementKind.REFUND, payment, refund.amount_minor)
    if refund.goodwill_minor:
        credit = _give_credit(event, refund, payment)
        for receivable, amount in reopened:
            event.settle(receivable, SettlementKind.CREDIT, amount, credit)
    payment.unapplied_minor -= refund.amount_minor
    payment.refunded_minor += refund.amount_minor
    payment.save(update_fields=["unapplied_minor", "refunded_minor"])
    event.post(Account.CUSTOMER_CREDIT, refund.amount_minor)
    event.post(money_account(payment.method), -refund.amount_minor)
    event.write()
    apply_credit(
        organization_id=payment.organization_id,
        currency=payment.currency,
        source_id=refund.pk,
        at=refund.created_at,
    )


def lock_payment(payment_id: str) -> Payment:
    """A payment, whose organization is locked. Raises `NotFound`."""
    row = Payment.objects.filter(pk=payment_id).values_list("organization_id").first()
    if row is None:
        raise NotFound
    lock_organizations(row)
    return Payment.objects.get(pk=payment_id)


def refundable_minor(payment: Payment) -> int:
    """What is left of a payment: neither given back, nor taken back by its bank."""
    gone = payment.disputes.exclude(state=DisputeState.WON).aggregate(total=Sum("amount_minor"))
    return payment.amount_minor - payment.refunded_minor - int(gone["total"] or 0)


def take_back(
    event: MoneyEvent, kind: SettlementKind, payment: Payment, amount_minor: int
) -> list[tuple[Receivable, int]]:
    """Has a payment have an amount unapplied, and returns what it settles less of, by receivable.

    The newest invoice that it settles is taken first.
    """
    missing = amount_minor - payment.unapplied_minor
    taken: list[tuple[Receivable, int]] = []
    for receivable, settled in reversed(settled_receivables(payment)):
        if missing <= 0:
            break
        amount = min(settled, missing)
        event.settle(receivable, kind, -amount, payment)
        taken.append((receivable, amount))
        missing -= amount
    return taken


def settled_receivables(source: Payment | Dispute) -> list[tuple[Receivable, int]]:
    """The receivables that a payment or dispute settles, with the amount of each, oldest first."""
    amounts: dict[str, int] = {}
    rows: dict[str, Receivable] = {}
    for row in source.settlements.select_related("receivable"):
        rows.setdefault(row.receivable_id, row.receivable)
        amounts[row.receivable_id] = amounts.get(row.receivable_id, 0) + row.amount_minor
    settled = [(rows[pk], amount) for pk, amount in amounts.items() if amount]
    return sorted(settled, key=lambda pair: (pair[0].created_at, pair[0].pk))


def _give_credit(event: MoneyEvent, refund: Refund, payment: Payment) -> Credit:
    """The credit by which invoices stay paid whose payment was given back as goodwill."""
    credit = Credit(
        organization_id=payment.organization_id,
        currency=payment.currency,
        amount_minor=refund.goodwill_minor,
        unapplied_minor=refund.goodwill_minor,
        reason=refund.reason,
        entered_by=refund.entered_by,
        created_at=refund.created_at,
    )
    credit.save(force_insert=True)
    event.post(Account.GOODWILL, refund.goodwill_minor)
    event.post(Account.CUSTOMER_CREDIT, -refund.goodwill_minor)
    return credit
