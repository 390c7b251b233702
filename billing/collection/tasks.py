"""Celery tasks of collection. Each calls the service of its name, and takes ids only."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from celery import shared_task

from billing.collection import (
    attempts,
    cards,
    collecting,
    dunning,
    events,
    notices,
    reconciliation,
    refunds,
)
from billing.collection.common import (
    COLLECT,
    HANDLE_EVENT,
    SEND_ATTEMPT,
    SEND_NOTICE,
    SEND_REFUND,
    takes_cards,
)
from billing.collection.gateway import GatewayError
from console.base.common.errors import NotFound
from console.base.common.mail import mail_task

logger = logging.getLogger(__name__)

# Longer than a night's comparison takes.
RECONCILE_S = 3600


@contextmanager
def _nothing_absent(id_: str) -> Iterator[None]:
    """Ends a task about something that is not there, as after a restore, without an error."""
    try:
        yield
    except NotFound:
        logger.warning("collection.absent id=%s", id_)


@shared_task(name="billing.collect_due")
def collect_due() -> None:
    """Charges what is due, and has the calendar begin for transfers that are overdue."""
    try:
        collecting.collect_due()
    except GatewayError as error:
        logger.warning("collection.postponed error=%s", error)


@shared_task(name=COLLECT)
def collect_organization(*, organization_id: str) -> None:
    """Charges what is due of one organization."""
    with _nothing_absent(organization_id):
        collecting.collect_organization(organization_id=organization_id)


@shared_task(name=SEND_ATTEMPT)
def send_attempt(*, organization_id: str, attempt_id: str) -> None:
    """Has Stripe charge an attempt, or asks what became of it. The sweep repeats it."""
    with _nothing_absent(attempt_id):
        attempts.send_attempt(organization_id=organization_id, attempt_id=attempt_id)


@shared_task(name=SEND_REFUND)
def send_refund(*, organization_id: str, refund_id: str) -> None:
    """Has Stripe make a refund, or asks what became of it. The sweep repeats it."""
    with _nothing_absent(refund_id):
        refunds.send_refund(organization_id=organization_id, refund_id=refund_id)


@shared_task(name=HANDLE_EVENT)
def handle_stripe_event(*, event_id: str) -> None:
    """Does what an event of Stripe asks for. The sweep repeats it."""
    events.handle_stripe_event(event_id=event_id)


@shared_task(name="billing.sweep_collection")
def sweep_collection() -> None:
    """Has everything done that was begun and of which nothing was heard for a while."""
    if takes_cards():
        attempts.sweep_attempts()
        refunds.sweep_refunds()
        events.sweep_events()
        cards.check_cards()
    dunning.sweep_dunning()
    notices.sweep_notices()


@shared_task(name="billing.catch_up_events")
def catch_up_events() -> None:
    """Reads the events that Stripe lists, for those that no webhook brought."""
    if not takes_cards():
        return
    try:
        events.catch_up_events()
    except GatewayError as error:
        logger.warning("stripe_events.not_read error=%s", error)


@shared_task(name="billing.reconcile_due", time_limit=RECONCILE_S)
def reconcile_due() -> None:
    """Compares the ledger, the receivables and Stripe, once a night."""
    reconciliation.reconcile_due()


@mail_task(SEND_NOTICE)
def send_dunning_mail(*, organization_id: str, notice_id: str) -> None:
    """Sends the mail of a notice; tried again while the mail server is away."""
    notices.send_dunning_mail(organization_id=organization_id, notice_id=notice_id)
