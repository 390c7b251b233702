"""Stripe's events: stored by their ids, then handled by asking Stripe for what they are about.

So it does not matter in which order they come, how often, how late, or whether a webhook comes at
all: the events that Stripe lists are read too, every ten minutes, from where that ended last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from billing.choices import PaymentMethod
from billing.collection.attempts import settle_intent
from billing.collection.cards import (
    account_of_card,
    account_of_customer,
    check_card,
    refresh_card,
)
from billing.collection.common import BY, HANDLE_EVENT, wait_after
from billing.collection.gateway import (
    Event,
    GatewayError,
    Intent,
    StripeDispute,
    gateway,
    verified_event,
)
from billing.collection.refunds import enter_refund
from billing.collection.states import IntentStatus
from billing.models import CardAccount, Payment, Receivable, StripeCursor, StripeEvent
from billing.models.collection import MESSAGE_CHARS_MAX
from billing.receivables.services import close_dispute, record_dispute, record_payment
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.errors import AppError
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import NO_ORGANIZATION, organization_scope, system_scope

logger = logging.getLogger(__name__)

CURSOR = "events"
# Events are listed by the time when they happened, and some are listed late.
OVERLAP = timedelta(hours=1)
FIRST_READ = timedelta(days=1)
# Stripe keeps them for 30 days.
READ_MAX = timedelta(days=29)
SWEPT_MAX = 200
# The state of a dispute that took money.
TOOK_MONEY = frozenset({"needs_response", "under_review", "won", "lost"})


class NotEntered(Exception):
    """An event is about a payment that is not entered yet: it is handled again later."""


def receive_event(*, body: bytes, signature: str) -> bool:
    """Stores the event of a webhook, once, and has a worker handle it; returns whether it is new.

    Raises `SignatureWrong`.
    """
    return _store(verified_event(body, signature), by_webhook=True)


def catch_up_events() -> int:
    """Stores the events that Stripe lists and that no webhook brought; returns how many.

    Raises `GatewayError`.
    """
    at = now()
    cursor = StripeCursor.objects.filter(pk=CURSOR).first()
    begins_at = at - FIRST_READ if cursor is None else cursor.read_to - OVERLAP
    begins_at = max(begins_at, at - READ_MAX)
    events = gateway().events_since(begins_at, at + OVERLAP, types=sorted(HANDLERS))
    missed = sum(_store(event, by_webhook=False) for event in events)
    StripeCursor.objects.update_or_create(pk=CURSOR, defaults={"read_to": at})
    if missed:
        logger.info("stripe_events.caught_up count=%s", missed)
    return missed


def is_caught_up(within: timedelta) -> bool:
    """Whether the events were read not long ago: after a database was restored they were not."""
    return StripeCursor.objects.filter(pk=CURSOR, read_to__gte=now() - within).exists()


def handle_stripe_event(*, event_id: str) -> bool:
    """Does what an event asks for, unless that was done; returns whether it was handled now.

    Where Stripe does not answer, or something else is missing, it is tried again later.
    """
    event = StripeEvent.objects.filter(pk=event_id, handled_at=None).first()
    if event is None:
        return False
    event.tries += 1
    event.check_at = now() + wait_after(event.tries)
    event.save(update_fields=["tries", "check_at"])
    try:
        HANDLERS.get(event.type, _ignore)(event.object_id)
    except (GatewayError, AppError, NotEntered) as error:
        event.last_error = str(error)[:MESSAGE_CHARS_MAX]
        event.save(update_fields=["last_error"])
        logger.warning("stripe_event.postponed event=%s error=%s", event.pk, error)
        return False
    event.handled_at, event.check_at, event.last_error = now(), None, ""
    event.save(update_fields=["handled_at", "check_at", "last_error"])
    return True


def sweep_events() -> int:
    """Has workers handle events that are still to be handled; returns how many."""
    due = StripeEvent.objects.filter(check_at__lte=now()).order_by("check_at", "pk")
    events = list(due.values_list("pk", flat=True)[:SWEPT_MAX])
    for event_id in events:
        rows = StripeEvent.objects.filter(pk=event_id, check_at__lte=now())
        if rows.update(check_at=now() + wait_after(1)):
            _enqueue(event_id)
    return len(events)


def enter_intent(intent: Intent) -> bool:
    """Moves what an intent is about to what it says; returns False for one of somebody else.

    A charge of which no attempt is known, as in a restored database, is entered by its metadata.
    """
    organization_id = _organization_of(intent)
    if organization_id is None:
        return False
    if settle_intent(organization_id=organization_id, intent=intent) is not None:
        return True
    if intent.status == IntentStatus.SUCCEEDED:
        _enter_unknown(organization_id, intent)
    return True


def enter_dispute(dispute: StripeDispute) -> bool:
    """Enters a dispute as Stripe says it is; returns False where its payment is not entered.

    An inquiry, by which no money is taken, is not entered.
    """
    if dispute.status not in TOOK_MONEY:
        return True
    with system_scope():
        rows = Payment.objects.filter(method=PaymentMethod.CARD, external_id=dispute.intent_id)
        payment = rows.first()
    if payment is None:
        return False
    with organization_scope(payment.organization_id):
        record_dispute(
            payment_id=payment.pk,
            amount_minor=dispute.amount_minor,
            external_id=dispute.id,
            at=dispute.created_at,
        )
        if dispute.status in {"won", "lost"}:
            close_dispute(external_id=dispute.id, won=dispute.status == "won", at=now())
    return True


def _store(event: Event, *, by_webhook: bool) -> bool:
    _, is_new = StripeEvent.objects.get_or_create(
        pk=event.id,
        defaults={
            "type": event.type[:100],
            "object_id": event.object_id,
            "happened_at": event.created_at,
            "by_webhook": by_webhook,
            "check_at": now() + wait_after(1),
        },
    )
    if is_new:
        _enqueue(event.id)
    return is_new


def _enqueue(event_id: str) -> None:
    with organization_scope(NO_ORGANIZATION):
        enqueue_task(
            task=HANDLE_EVENT,
            organization_id=NO_ORGANIZATION,
            arguments={"event_id": event_id},
        )


def _organization_of(intent: Intent) -> str | None:
    """The organization that an intent charges; None where it is none of this database."""
    with system_scope():
        rows = Organization.objects.filter(pk=intent.metadata.get("organization", ""))
        return rows.values_list("pk", flat=True).first()


def _enter_unknown(organization_id: str, intent: Intent) -> None:
    logger.error("collection.unknown_charge intent=%s organization=%s", intent.id, organization_id)
    named = [one for one in intent.metadata.get("invoices", "").split(",") if one]
    with organization_scope(organization_id):
        ours = Receivable.objects.filter(organization_id=organization_id, pk__in=named)
        known = set(ours.values_list("pk", flat=True))
        record_payment(
            organization_id=organization_id,
            method=PaymentMethod.CARD.value,
            amount_minor=intent.received_minor,
            currency=intent.currency,
            external_id=intent.id,
            received_at=intent.created_at,
            by=BY,
            invoice_ids=[one for one in named if one in known],
        )


def _handle_intent(intent_id: str) -> None:
    enter_intent(gateway().intent(intent_id))


def _handle_refund(refund_id: str) -> None:
    refund = gateway().refund(refund_id)
    if not enter_refund(refund):
        _enter_payment_first(refund.intent_id)
        enter_refund(refund)


def _handle_dispute(dispute_id: str) -> None:
    dispute = gateway().dispute(dispute_id)
    if not enter_dispute(dispute):
        _enter_payment_first(dispute.intent_id)
        enter_dispute(dispute)


def _enter_payment_first(intent_id: str) -> None:
    """Enters the payment that a refund or a dispute is of, whose own event comes later."""
    if intent_id and enter_intent(gateway().intent(intent_id)):
        with system_scope():
            rows = Payment.objects.filter(method=PaymentMethod.CARD, external_id=intent_id)
            if not rows.exists():
                message = f"{intent_id} is not entered yet"
                raise NotEntered(message)


def _handle_setup(setup_id: str) -> None:
    with system_scope():
        rows = CardAccount.objects.filter(setup_id=setup_id)
        organization_id = rows.values_list("organization_id", flat=True).first()
    if organization_id is not None:
        check_card(organization_id=organization_id)
        return
    # Another one was begun after it.
    setup = gateway().setup(setup_id)
    owner = account_of_customer(setup.customer_id) if setup.method_id else None
    if owner is not None:
        refresh_card(organization_id=owner, chosen=setup.method_id)


def _handle_customer(customer_id: str) -> None:
    organization_id = account_of_customer(customer_id)
    if organization_id is not None:
        refresh_card(organization_id=organization_id)


def _handle_card(method_id: str) -> None:
    organization_id = account_of_card(method_id)
    if organization_id is None:
        organization_id = account_of_customer(gateway().customer_of_card(method_id))
    if organization_id is not None:
        refresh_card(organization_id=organization_id)


def _ignore(_: str) -> None:
    """Does nothing, for what a webhook is sent of that this service does not need."""


# What this service acts on. The webhook needs to be sent no other types.
HANDLERS: Mapping[str, Callable[[str], None]] = {
    "payment_intent.succeeded": _handle_intent,
    "payment_intent.payment_failed": _handle_intent,
    "payment_intent.processing": _handle_intent,
    "payment_intent.requires_action": _handle_intent,
    "payment_intent.canceled": _handle_intent,
    "refund.created": _handle_refund,
    "refund.updated": _handle_refund,
    "refund.failed": _handle_refund,
    "charge.dispute.created": _handle_dispute,
    "charge.dispute.updated": _handle_dispute,
    "charge.dispute.closed": _handle_dispute,
    "checkout.session.completed": _handle_setup,
    "checkout.session.expired": _handle_setup,
    "customer.updated": _handle_customer,
    "payment_method.attached": _handle_card,
    "payment_method.detached": _handle_card,
    "payment_method.updated": _handle_card,
    "payment_method.automatically_updated": _handle_card,
}
