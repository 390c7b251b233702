"""Payment attempts: stored before Stripe is called, asked for until their outcome is known.

An attempt is prepared in a transaction, together with what it charges. `send_attempt` does the
rest, and may be repeated at any time and by several workers at once: the key makes Stripe answer
the same, `states.py` lets an attempt only go forward, and the payment is entered once.

The key counts at Stripe for 24 hours. A repeated request is preceded by a look-up of the attempt's
id in the metadata of the customer's intents; so is the first one of an attempt whose invoice is
older than 23 hours, since the database may have been restored meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet

from billing.allowances.payers import payer_of
from billing.choices import AttemptOrigin, AttemptState, FailureKind, NoticeKind
from billing.collection.choosing import Owed
from billing.collection.common import BY, PAGE, SEND_ATTEMPT, takes_cards, wait_after
from billing.collection.dunning import note_failure
from billing.collection.gateway import (
    Declined,
    Gateway,
    GatewayError,
    Intent,
    OutcomeUnknown,
    Refused,
    gateway,
)
from billing.collection.notices import note_notice
from billing.collection.states import Verdict, is_ended, moved, verdict
from billing.models import (
    AttemptInvoice,
    CardAccount,
    Invoice,
    Payer,
    PaymentAttempt,
    Receivable,
    UnpaidInvoice,
)
from billing.models.collection import CODE_CHARS_MAX, LIVE_STATES, MESSAGE_CHARS_MAX
from billing.receivables.event import lock_organizations
from billing.receivables.services import record_payment
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.errors import NotFound
from console.base.common.ids import derived_id
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import commit_so_far

logger = logging.getLogger(__name__)

KEY_LASTS = timedelta(hours=23)
# How long a customer may take to authenticate. Meanwhile nothing else of theirs is charged.
AUTHENTICATES_WITHIN = timedelta(minutes=15)
# How often Stripe is asked, should no webhook come, for a charge that a bank or a customer decides.
ASK_DECIDED = timedelta(minutes=5)
SWEPT_MAX = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call said: an intent and what it means, or why nothing is known."""

    intent: Intent | None = None
    verdict: Verdict | None = None
    error: str = ""
    # The text of a decline or a refusal, and its code.
    message: str = ""
    code: str = ""


def live_attempt(organization_id: str) -> PaymentAttempt | None:
    """The organization's attempt that can still charge, in the caller's scope. There is one at
    most."""
    rows = PaymentAttempt.objects.filter(organization_id=organization_id, state__in=LIVE_STATES)
    return rows.first()


def prepare_attempt(
    *, account: CardAccount, owed: Sequence[Owed], origin: AttemptOrigin
) -> PaymentAttempt:
    """Stores an attempt that charges invoices, the first of which names it.

    The organization is locked and has no live attempt; `account` has a card.
    """
    first = owed[0]
    number = PaymentAttempt.objects.filter(first_invoice_id=first.invoice_id).count() + 1
    attempt = _store_attempt(
        account,
        id=derived_id("pat", first.invoice_id, number),
        first_invoice_id=first.invoice_id,
        number=number,
        key=f"inv:{first.invoice_id}:pay:{number}",
        origin=origin.value,
        amount_minor=sum(one.open_minor for one in owed),
        currency=first.currency,
    )
    AttemptInvoice.objects.bulk_create(
        AttemptInvoice(
            organization_id=account.organization_id,
            attempt=attempt,
            invoice_id=one.invoice_id,
            amount_minor=one.open_minor,
        )
        for one in owed
    )
    return attempt


def prepare_advance(
    *, account: CardAccount, amount_minor: int, currency: str, origin: AttemptOrigin
) -> PaymentAttempt:
    """Stores an attempt that charges an amount in advance, which pays the next invoice.

    The organization is locked and has no live attempt; `account` has a card.
    """
    organization_id = account.organization_id
    number = advances_of(organization_id).count() + 1
    return _store_attempt(
        account,
        id=derived_id("pat", organization_id, "advance", number),
        number=number,
        key=f"org:{organization_id}:advance:{number}",
        origin=origin.value,
        amount_minor=amount_minor,
        currency=currency,
    )


def advances_of(organization_id: str) -> QuerySet[PaymentAttempt]:
    """An organization's attempts that charge in advance, in the caller's scope."""
    return PaymentAttempt.objects.filter(organization_id=organization_id, first_invoice=None)


def send_attempt(*, organization_id: str, attempt_id: str) -> PaymentAttempt:
    """Has Stripe charge an attempt, or asks it what became of one; returns the attempt afterwards.

    Repeating it charges nothing twice. Outside of a transaction, or in one that may be interrupted.
    Raises `NotFound`.
    """
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        attempt = _locked(organization_id, attempt_id)
        if not attempt.is_live or not _begin_call(attempt):
            return attempt
        invoices = list(attempt.invoices.order_by("pk").select_related("invoice"))
        looks_up = _is_to_look_up(attempt, [row.invoice for row in invoices])
        is_owed = _is_owed(attempt)
    commit_so_far()
    outcome = _ask(attempt, [row.invoice for row in invoices], looks_up=looks_up, is_owed=is_owed)
    return _apply(organization_id, attempt_id, outcome)


def settle_intent(*, organization_id: str, intent: Intent) -> PaymentAttempt | None:
    """Moves the attempt of an intent to what the intent says; None where no attempt has it.

    Outside of a transaction, as it may have to cancel the intent.
    """
    with organization_scope(organization_id):
        rows = PaymentAttempt.objects.filter(organization_id=organization_id)
        attempt = rows.filter(pk=intent.metadata.get("attempt", "")).first()
        if attempt is None:
            return None
        is_owed = _is_owed(attempt)
    outcome = _judge(attempt, intent, is_owed=is_owed)
    return _apply(organization_id, attempt.pk, outcome)


def sweep_attempts() -> int:
    """Has workers ask for attempts of which nothing was heard for a while; returns how many."""
    with system_scope():
        due = PaymentAttempt.objects.filter(check_at__lte=now()).order_by("check_at", "pk")
        attempts = list(due.values_list("organization_id", "pk")[:SWEPT_MAX])
    for organization_id, attempt_id in attempts:
        with organization_scope(organization_id):
            rows = PaymentAttempt.objects.filter(pk=attempt_id, check_at__lte=now())
            if rows.update(check_at=now() + wait_after(1)):
                enqueue_attempt(organization_id, attempt_id)
    return len(attempts)


def review_attempt(*, organization_id: str, **_: object) -> None:
    """Has a worker cancel a live attempt whose invoices were paid in another way meanwhile.

    Runs in the transaction of whatever changed what the organization owes.
    """
    if not takes_cards():
        return
    attempt = live_attempt(organization_id)
    if attempt is not None and not _is_owed(attempt):
        enqueue_attempt(organization_id, attempt.pk)


def enqueue_attempt(organization_id: str, attempt_id: str) -> None:
    """Has a worker send an attempt once the surrounding transaction has committed."""
    enqueue_task(
        task=SEND_ATTEMPT,
        organization_id=organization_id,
        arguments={"organization_id": organization_id, "attempt_id": attempt_id},
    )


def _store_attempt(account: CardAccount, **columns: object) -> PaymentAttempt:
    """Stores an attempt that charges the card that an organization has now."""
    payers = Payer.objects.filter(fingerprint=account.fingerprint or None)
    payer_id = payers.values_list("pk", flat=True).first()
    return PaymentAttempt.objects.create(
        organization_id=account.organization_id,
        payer_id=payer_id or payer_of(account.organization_id),
        customer_id=account.customer_id or "",
        method_id=account.method_id,
        check_at=now() + wait_after(1),
        **columns,
    )


def _locked(organization_id: str, attempt_id: str) -> PaymentAttempt:
    rows = PaymentAttempt.objects.filter(organization_id=organization_id)
    attempt = rows.select_for_update().filter(pk=attempt_id).first()
    if attempt is None:
        raise NotFound
    return attempt


def _begin_call(attempt: PaymentAttempt) -> bool:
    """Writes down that Stripe is about to be called; returns False where there is no need to.

    What was paid meanwhile in another way is not charged.
    """
    at = now()
    if attempt.state == AttemptState.PREPARED:
        if not _is_owed(attempt):
            attempt.state, attempt.settled_at = AttemptState.CANCELED.value, at
            attempt.check_at = None
            attempt.save()
            return False
        attempt.state, attempt.sent_at = AttemptState.SENT.value, at
    attempt.calls += 1
    attempt.check_at = at + wait_after(attempt.calls)
    attempt.save()
    return True


def _is_owed(attempt: PaymentAttempt) -> bool:
    charged = dict(attempt.invoices.values_list("invoice_id", "amount_minor"))
    rows = Receivable.objects.filter(organization_id=attempt.organization_id, pk__in=charged)
    return dict(rows.values_list("pk", "open_minor")) == charged


def _is_to_look_up(attempt: PaymentAttempt, invoices: Sequence[Invoice]) -> bool:
    """Whether the request may be a repeated one whose key Stripe has forgotten.

    One in advance may always be: its number is that of an earlier one in a restored database.
    """
    if attempt.calls > 1 or not invoices:
        # Also within a day: an error may be what Stripe keeps for the key, whatever was done.
        return True
    issued_at = invoices[0].issued_at
    return issued_at is None or now() - issued_at > KEY_LASTS


def _ask(
    attempt: PaymentAttempt, invoices: Sequence[Invoice], *, looks_up: bool, is_owed: bool
) -> Outcome:
    """Calls Stripe. Nothing is read from the database or written to it meanwhile.

    What is owed no more is not charged: its intent is canceled, or never made.
    """
    try:
        intent = _charge(attempt, invoices, looks_up=looks_up, is_owed=is_owed)
        if intent is None:
            return Outcome(verdict=Verdict(AttemptState.CANCELED))
        return _judge(attempt, intent, is_owed=is_owed)
    except Refused as error:
        kind = FailureKind.NO_PAYMENT_METHOD if error.is_gone else FailureKind.REFUSED
        failed = Verdict(AttemptState.FAILED, failure=kind)
        return Outcome(verdict=failed, message=str(error), code=error.code)
    except (OutcomeUnknown, Declined) as error:
        # A decline without its intent: nobody can say that it does not charge later.
        return Outcome(verdict=Verdict(AttemptState.UNKNOWN), error=str(error))
    except GatewayError as error:
        logger.warning("attempt.not_sent attempt=%s error=%s", attempt.pk, error)
        return Outcome(error=str(error))


def _charge(
    attempt: PaymentAttempt, invoices: Sequence[Invoice], *, looks_up: bool, is_owed: bool
) -> Intent | None:
    """The intent of an attempt as it is now, which is made where there is none.

    None where it was not made, and is owed no more. Raises `GatewayError`.
    """
    stripe = gateway()
    known = _known_intent(stripe, attempt, looks_up=looks_up)
    if known is not None or not is_owed:
        return known
    try:
        return _create(stripe, attempt, invoices)
    except Declined as error:
        if error.intent is None:
            raise
        return error.intent


def _known_intent(stripe: Gateway, attempt: PaymentAttempt, *, looks_up: bool) -> Intent | None:
    """The intent that an attempt has, as it is now; None where it is to be made.

    That this is refused says nothing about the charge, unless there is no such customer.
    """
    try:
        if attempt.intent_id:
            return stripe.intent(attempt.intent_id)
        if looks_up:
            return stripe.intent_of(attempt.pk, customer_id=attempt.customer_id)
    except Refused as error:
        if attempt.intent_id or not error.is_gone:
            raise OutcomeUnknown(str(error), error.code) from error
    return None


def _create(stripe: Gateway, attempt: PaymentAttempt, invoices: Sequence[Invoice]) -> Intent:
    by_customer = attempt.origin == AttemptOrigin.CUSTOMER
    page = f"{config().web.public_url}{_page_of(attempt)}"
    named = {"invoices": ",".join(invoice.pk for invoice in invoices)} if invoices else {}
    return stripe.create_intent(
        key=attempt.key,
        amount_minor=attempt.amount_minor,
        currency=attempt.currency,
        customer_id=attempt.customer_id,
        method_id=attempt.method_id,
        description=_description_of(invoices),
        metadata={"attempt": attempt.pk, "organization": attempt.organization_id, **named},
        return_url=page if by_customer else "",
    )


def _page_of(attempt: PaymentAttempt) -> str:
    """The page of the console to which the bank's page leads back."""
    if attempt.first_invoice_id is None:
        return PAGE
    return f"/invoices/{attempt.first_invoice_id}?payment=returned"


def _description_of(invoices: Sequence[Invoice]) -> str:
    """What people read about a charge at Stripe, and on its receipt."""
    if not invoices:
        return "Payment in advance: it pays the next invoice"
    numbers = ", ".join(str(invoice.number) for invoice in invoices)
    return f"Invoice {numbers}" if len(invoices) == 1 else f"Invoices {numbers}"


def _judge(attempt: PaymentAttempt, intent: Intent, *, is_owed: bool) -> Outcome:
    """What an intent means for its attempt. One that could charge later is canceled at once."""
    judged = _verdict_of(attempt, intent, is_owed=is_owed)
    if not judged.cancel:
        return _outcome(intent, judged)
    try:
        canceled = gateway().cancel_intent(intent.id)
    except GatewayError as error:
        return Outcome(intent, Verdict(AttemptState.UNKNOWN), error=str(error))
    after = _verdict_of(attempt, canceled, is_owed=is_owed)
    if after.cancel:
        return Outcome(canceled, Verdict(AttemptState.UNKNOWN), error="It is not canceled yet.")
    if is_ended(after.state) and after.state is not AttemptState.SUCCEEDED:
        if not is_owed:
            return _outcome(canceled, Verdict(AttemptState.CANCELED))
        # Why it failed is what it said before.
        return _outcome(intent, replace(judged, cancel=False))
    return _outcome(canceled, after)


def _outcome(intent: Intent, judged: Verdict) -> Outcome:
    code = intent.decline_code or intent.error_code
    return Outcome(intent, judged, message=intent.error_message, code=code)


def _verdict_of(attempt: PaymentAttempt, intent: Intent, *, is_owed: bool) -> Verdict:
    by_customer = attempt.origin == AttemptOrigin.CUSTOMER
    began = attempt.sent_at or attempt.created_at
    return verdict(
        intent.status,
        error_code=intent.error_code,
        decline_code=intent.decline_code,
        customer_waits=by_customer and is_owed and now() - began < AUTHENTICATES_WITHIN,
    )


def _apply(organization_id: str, attempt_id: str, outcome: Outcome) -> PaymentAttempt:
    """Writes down what a call said, and the payment or the failure that follows from it."""
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        attempt = _locked(organization_id, attempt_id)
        intent, judged = outcome.intent, outcome.verdict
        if intent is not None:
            attempt.intent_id = intent.id
            attempt.action_url = intent.action_url
        attempt.last_error = outcome.error[:MESSAGE_CHARS_MAX]
        moves = judged is not None and moved(attempt.state, judged.state)
        if judged is not None and moves:
            attempt.state = judged.state.value
            attempt.failure = judged.failure.value if judged.failure else ""
            attempt.failure_code = outcome.code[:CODE_CHARS_MAX]
            attempt.failure_message = outcome.message[:MESSAGE_CHARS_MAX]
            if is_ended(attempt.state):
                attempt.settled_at = now()
        attempt.check_at = _next_check(attempt, now())
        attempt.save()
        if moves and attempt.state == AttemptState.SUCCEEDED and intent is not None:
            _enter_payment(attempt, intent)
        if moves and attempt.state == AttemptState.FAILED:
            _enter_failure(attempt)
    return attempt


def _next_check(attempt: PaymentAttempt, at: datetime) -> datetime | None:
    if not attempt.is_live:
        return None
    if attempt.state in {AttemptState.REQUIRES_ACTION, AttemptState.PROCESSING}:
        return at + ASK_DECIDED
    return at + wait_after(attempt.calls)


def _enter_payment(attempt: PaymentAttempt, intent: Intent) -> None:
    """Enters the money that came in: what Stripe says of it, not what was asked for."""
    record_payment(
        organization_id=attempt.organization_id,
        method="card",
        amount_minor=intent.received_minor,
        currency=intent.currency,
        external_id=intent.id,
        received_at=now(),
        by=BY,
        invoice_ids=list(attempt.invoices.order_by("pk").values_list("invoice_id", flat=True)),
    )


def _enter_failure(attempt: PaymentAttempt) -> None:
    """Has the calendar of each invoice begin or go on.

    A customer's own attempt, also one that nobody authenticated in time, has it begin, and changes
    nothing of one that began: neither when the card is charged again, nor why it is unpaid.
    """
    rows = attempt.invoices.order_by("pk")
    if attempt.first_invoice_id is None:
        _note_advance(attempt)
        return
    if attempt.origin == AttemptOrigin.CUSTOMER:
        if attempt.failure == FailureKind.REFUSED:
            return
        noted = UnpaidInvoice.objects.filter(pk=OuterRef("invoice_id"), ended_at=None)
        rows = rows.exclude(Exists(noted))
    invoice_ids = list(rows.values_list("invoice_id", flat=True))
    note_failure(
        organization_id=attempt.organization_id,
        invoice_ids=invoice_ids,
        failure=FailureKind(attempt.failure),
    )
    accounts = CardAccount.objects.exclude(method_id__in=["", attempt.method_id])
    if accounts.filter(pk=attempt.organization_id).exists():
        # Another card was given meanwhile, and need not wait for what the calendar gives this one.
        unpaid = UnpaidInvoice.objects.filter(invoice_id__in=invoice_ids, ended_at=None)
        unpaid.exclude(failure=FailureKind.REOPENED).update(next_try_at=now())


def _note_advance(attempt: PaymentAttempt) -> None:
    """Has a mail say that the service could not charge in advance. No invoice is unpaid by that."""
    if attempt.origin == AttemptOrigin.CUSTOMER:
        return
    if attempt.failure == FailureKind.REFUSED:
        logger.error("collection.refused", extra={"organization": attempt.organization_id})
        return
    note_notice(
        organization_id=attempt.organization_id,
        kind=NoticeKind.ADVANCE_FAILED,
        failure=attempt.failure,
    )
