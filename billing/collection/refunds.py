"""Refunds of card payments: asked of Stripe first, entered once Stripe says that they were made.

So a refund that somebody makes at Stripe itself is entered in the same way.
"""

from __future__ import annotations

import logging

from django.db.models import Sum

from billing.choices import PaymentMethod, RefundState
from billing.collection.common import SEND_REFUND, wait_after
from billing.collection.gateway import (
    Declined,
    GatewayError,
    Refused,
    StripeRefund,
    gateway,
)
from billing.errors import PaymentConflict, RefundTooLarge
from billing.models import Payment, RefundAttempt
from billing.models.collection import MESSAGE_CHARS_MAX
from billing.receivables.event import lock_organizations
from billing.receivables.people import By, audit_money, name_of
from billing.receivables.services import refund_payment, refundable_minor
from console.base.common.clock import now
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope, system_scope

logger = logging.getLogger(__name__)

SWEPT_MAX = 100
SUCCEEDED, ENDED_IN_VAIN = "succeeded", frozenset({"failed", "canceled"})
BY_STRIPE, REASON_AT_STRIPE = "stripe", "Refunded at Stripe."
PENDING = (RefundState.PREPARED.value, RefundState.SENT.value)


def request_refund(
    *,
    payment: Payment,
    amount_minor: int,
    external_id: str,
    by: By,
    reason: str,
    is_goodwill: bool = False,
) -> RefundAttempt:
    """Stores a refund of a card payment, which a worker asks of Stripe; returns it.

    In the caller's scope. `external_id` is what whoever asks calls it: the same one again returns
    the same refund. Raises `RefundTooLarge` where less is left of the payment, and
    `PaymentConflict` where that id was used for another refund.
    """
    organization_id = payment.organization_id
    lock_organizations([organization_id])
    known = RefundAttempt.objects.filter(request_id=external_id).first()
    if known is not None:
        if (known.payment_id, known.amount_minor) != (payment.pk, amount_minor):
            raise PaymentConflict
        return known
    payment.refresh_from_db()
    pending = RefundAttempt.objects.filter(payment=payment, state__in=PENDING)
    asked = pending.aggregate(total=Sum("amount_minor"))["total"] or 0
    left = refundable_minor(payment) - int(asked)
    if amount_minor > left:
        message = f"{left} minor units of the payment are left."
        raise RefundTooLarge(message)
    attempt = RefundAttempt.objects.create(
        organization_id=organization_id,
        payment=payment,
        request_id=external_id,
        intent_id=payment.external_id,
        amount_minor=amount_minor,
        currency=payment.currency,
        reason=reason,
        entered_by=name_of(by),
        is_goodwill=is_goodwill,
        check_at=now() + wait_after(1),
    )
    audit_money(
        by=by,
        organization_id=organization_id,
        action="payment.request_refund",
        target=("payment", payment.pk),
        detail={
            "refund": attempt.pk,
            "external_id": external_id,
            "amount_minor": amount_minor,
            "currency": payment.currency,
            "reason": reason,
        },
    )
    _enqueue(organization_id, attempt.pk)
    return attempt


def send_refund(*, organization_id: str, refund_id: str) -> None:
    """Has Stripe make a refund, or asks what became of one. Repeating it gives nothing back twice.

    Nothing is done for a refund that is not this organization's.
    """
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        rows = RefundAttempt.objects.filter(organization_id=organization_id, state__in=PENDING)
        attempt = rows.filter(pk=refund_id).first()
        if attempt is None:
            return
        attempt.state = RefundState.SENT.value
        attempt.sent_at = attempt.sent_at or now()
        attempt.calls += 1
        attempt.check_at = now() + wait_after(attempt.calls)
        attempt.save()
    try:
        refund = _ask(attempt)
    except (Declined, Refused) as error:
        _end_in_vain(attempt, str(error))
    except GatewayError as error:
        logger.warning("refund.not_sent refund=%s error=%s", attempt.pk, error)
        _note(attempt, str(error))
    else:
        enter_refund(refund)


def sweep_refunds() -> int:
    """Has workers ask for every refund of which nothing was heard for a while; returns how many."""
    with system_scope():
        due = RefundAttempt.objects.filter(check_at__lte=now()).order_by("check_at", "pk")
        refunds = list(due.values_list("organization_id", "pk")[:SWEPT_MAX])
    for organization_id, refund_id in refunds:
        with organization_scope(organization_id):
            rows = RefundAttempt.objects.filter(pk=refund_id, check_at__lte=now())
            if rows.update(check_at=now() + wait_after(1)):
                _enqueue(organization_id, refund_id)
    return len(refunds)


def enter_refund(refund: StripeRefund) -> bool:
    """Enters a refund as Stripe says it is; returns False where its payment is not entered.

    Entering it again changes nothing. Stripe may say later that a refund failed which had
    succeeded: that is no refund less, so the reconciliation shows it and a person decides.
    """
    with system_scope():
        payments = Payment.objects.filter(method=PaymentMethod.CARD, external_id=refund.intent_id)
        payment = payments.first()
    if payment is None:
        return False
    organization_id = payment.organization_id
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        rows = RefundAttempt.objects.filter(organization_id=organization_id)
        attempt = rows.filter(pk=refund.metadata.get("refund", "")).first()
        if refund.status == SUCCEEDED:
            refund_payment(
                payment_id=payment.pk,
                amount_minor=refund.amount_minor,
                external_id=refund.id,
                by=attempt.entered_by if attempt else BY_STRIPE,
                reason=attempt.reason if attempt else REASON_AT_STRIPE,
                is_goodwill=attempt.is_goodwill if attempt else False,
            )
        if attempt is not None:
            attempt.refund_id = refund.id
            attempt.last_error = ""
            if refund.status == SUCCEEDED:
                attempt.state, attempt.check_at = RefundState.SUCCEEDED.value, None
            elif refund.status in ENDED_IN_VAIN and attempt.state in PENDING:
                attempt.state, attempt.check_at = RefundState.FAILED.value, None
            attempt.save()
    return True


def _enqueue(organization_id: str, refund_id: str) -> None:
    enqueue_task(
        task=SEND_REFUND,
        organization_id=organization_id,
        arguments={"organization_id": organization_id, "refund_id": refund_id},
    )


def _ask(attempt: RefundAttempt) -> StripeRefund:
    stripe = gateway()
    if attempt.refund_id:
        return stripe.refund(attempt.refund_id)
    if attempt.calls > 1:
        for refund in stripe.refunds_of(attempt.intent_id):
            if refund.metadata.get("refund") == attempt.pk:
                return refund
    return stripe.create_refund(
        key=f"refund:{attempt.pk}",
        intent_id=attempt.intent_id,
        amount_minor=attempt.amount_minor,
        metadata={"refund": attempt.pk, "organization": attempt.organization_id},
    )


def _end_in_vain(attempt: RefundAttempt, error: str) -> None:
    with organization_scope(attempt.organization_id):
        rows = RefundAttempt.objects.filter(pk=attempt.pk, state__in=PENDING)
        rows.update(state=RefundState.FAILED, check_at=None, last_error=error[:MESSAGE_CHARS_MAX])


def _note(attempt: RefundAttempt, error: str) -> None:
    with organization_scope(attempt.organization_id):
        rows = RefundAttempt.objects.filter(pk=attempt.pk, state__in=PENDING)
        rows.update(last_error=error[:MESSAGE_CHARS_MAX])
