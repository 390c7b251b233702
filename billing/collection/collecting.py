"""Which invoices are charged, and when: at issue, on the days of the calendar, and by customers.

An organization has one attempt at a time, and one attempt charges one invoice, or several small
ones. So whatever repeats, dies or runs twice, an open invoice is in one live attempt at most, and
one that was charged is never charged again by the service.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta

from django.db.models import Exists, OuterRef, Q, Sum

from billing.choices import AttemptOrigin, AttemptState, FailureKind
from billing.collection.attempts import (
    enqueue_attempt,
    live_attempt,
    prepare_attempt,
    send_attempt,
    was_charged,
)
from billing.collection.cards import card_of
from billing.collection.choosing import INVOICES_MAX, Owed, choose_invoices
from billing.collection.common import TRANSFER, takes_cards
from billing.collection.dunning import note_failure
from billing.collection.errors import (
    BelowMinimum,
    CollectorOff,
    NoCard,
    PaymentInProgress,
)
from billing.collection.events import catch_up_events, is_caught_up
from billing.errors import NothingOpen
from billing.models import Invoice, PaymentAttempt, Receivable, UnpaidInvoice
from billing.models.collection import LIVE_STATES
from billing.querysets import ReceivableQuerySet
from billing.receivables.event import lock_organizations
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import commit_so_far

logger = logging.getLogger(__name__)

SWEPT_MAX = 500
ASKED_AT_ONCE_MAX = 3
CAUGHT_UP_WITHIN = timedelta(hours=1)


def collect_due() -> int:
    """Has every open invoice charged that is due, or notes that a transfer is overdue.

    Returns the number of organizations that it looked at. Raises `GatewayError` where Stripe must
    be asked first, and does not answer.
    """
    act: Callable[..., object]
    if takes_cards():
        if not is_caught_up(within=CAUGHT_UP_WITHIN):
            # The database may have been restored, or the service not have run: what was charged
            # since must be entered before anything is charged.
            catch_up_events()
            return 0
        organizations = _organizations_to_charge()
        act = collect_organization
    elif config().billing.collector == TRANSFER:
        organizations = _organizations_overdue()
        act = note_overdue
    else:
        return 0
    for organization_id in organizations:
        try:
            act(organization_id=organization_id)
        except Exception:
            # One organization must not keep the others from being charged.
            logger.exception("collection.failed", extra={"organization": organization_id})
    return len(organizations)


def collect_organization(*, organization_id: str) -> PaymentAttempt | None:
    """Prepares the charge of what is due of an organization; None where nothing can be charged now.

    Without a card that is noted, as a charge that failed. A worker sends the attempt.
    """
    with organization_scope(organization_id):
        if not takes_cards():
            return None
        lock_organizations([organization_id])
        if live_attempt(organization_id) is not None:
            return None
        chosen = choose_invoices(_owed(organization_id), config().billing.card_minimum_minor)
        if not chosen:
            return None
        account = card_of(organization_id)
        if account is None or not account.method_id:
            note_failure(
                organization_id=organization_id,
                invoice_ids=[one.invoice_id for one in chosen],
                failure=FailureKind.NO_PAYMENT_METHOD,
            )
            return None
        attempt = prepare_attempt(account=account, owed=chosen, origin=AttemptOrigin.COLLECTION)
        enqueue_attempt(organization_id, attempt.pk)
    return attempt


def pay_invoice(*, actor: Actor, invoice_id: str, with_older: bool) -> PaymentAttempt:
    """Charges an invoice now because the customer asks for it, and returns the attempt.

    `with_older`: together with every older invoice that is open. Small invoices that wait are
    charged with it in any case. Within a request, whose transaction is interrupted; an attempt that
    waits for the customer is returned again.

    Raises `CollectorOff`, `NothingOpen`, `NoCard`, `BelowMinimum` and `PaymentInProgress`.
    """
    organization_id = actor.organization_id
    if not takes_cards():
        raise CollectorOff
    for _ in range(ASKED_AT_ONCE_MAX):
        attempt, is_new = _begin_payment(actor, invoice_id, with_older=with_older)
        commit_so_far()
        attempt = send_attempt(organization_id=organization_id, attempt_id=attempt.pk)
        with organization_scope(organization_id):
            is_its = attempt.invoices.filter(invoice_id=invoice_id).exists()
        if is_its and (is_new or attempt.is_live or attempt.state == AttemptState.SUCCEEDED):
            return attempt
        if attempt.is_live:
            raise PaymentInProgress
        # It was an earlier one, which has ended by now: the next round charges this invoice.
    raise PaymentInProgress


def note_overdue(*, organization_id: str) -> None:
    """Has the calendar begin for an organization's transfers that were due and did not come in."""
    at = now()
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        rows = _overdue(at).filter(organization_id=organization_id)
        due = [
            (row.pk, row.due_on) for row in rows.order_by("due_on", "pk") if row.due_on is not None
        ]
        for due_on in sorted({day for _, day in due}):
            note_failure(
                organization_id=organization_id,
                invoice_ids=[pk for pk, day in due if day == due_on],
                failure=FailureKind.OVERDUE,
                since=datetime.combine(due_on + timedelta(days=1), time(), tzinfo=UTC),
            )


def _begin_payment(
    actor: Actor, invoice_id: str, *, with_older: bool
) -> tuple[PaymentAttempt, bool]:
    """The live attempt of the organization, or a new one for the invoice, and whether it is new."""
    organization_id = actor.organization_id
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        live = live_attempt(organization_id)
        if live is not None:
            return live, False
        owed = _owed(organization_id, by_customer=True)
        position = next((n for n, one in enumerate(owed) if one.invoice_id == invoice_id), None)
        if position is None:
            message = "The invoice is paid or void, so nothing is owed on it."
            raise NothingOpen(message)
        account = card_of(organization_id)
        if account is None or not account.method_id:
            raise NoCard
        attempt = prepare_attempt(
            account=account,
            owed=_chosen_by_customer(owed, position, with_older=with_older),
            origin=AttemptOrigin.CUSTOMER,
        )
        record_audit(
            actor=actor,
            action="invoice.pay",
            target_type="invoice",
            target_id=invoice_id,
            detail={
                "attempt": attempt.pk,
                "amount_minor": attempt.amount_minor,
                "currency": attempt.currency,
            },
        )
    return attempt, True


def _chosen_by_customer(owed: Sequence[Owed], position: int, *, with_older: bool) -> list[Owed]:
    """The invoice at a position of `owed`, and what is charged with it."""
    minimum = config().billing.card_minimum_minor
    lead = owed[position]
    older = [one for one in owed[:position] if one.currency == lead.currency]
    small = [
        one
        for one in owed
        if one.open_minor < minimum and one.currency == lead.currency and one is not lead
    ]
    others = [*(older if with_older else ()), *small]
    chosen = [lead, *dict.fromkeys(others)][:INVOICES_MAX]
    if sum(one.open_minor for one in chosen) < minimum:
        raise BelowMinimum
    return chosen


def _owed(organization_id: str, *, by_customer: bool = False) -> list[Owed]:
    """What is open of an organization's invoices that people may see, oldest first.

    Due is what was not tried yet and what is to be tried again; for the customer all of it is.
    """
    at = now()
    rows = _chargeable().filter(organization_id=organization_id).select_related("invoice__unpaid")
    receivables = list(rows.oldest_first())
    charged = was_charged([row.pk for row in receivables])
    return [
        Owed(
            invoice_id=row.pk,
            open_minor=row.open_minor,
            currency=row.currency,
            is_due=by_customer or (row.pk not in charged and _is_due(row.invoice, at)),
        )
        for row in receivables
    ]


def _is_due(invoice: Invoice, at: datetime) -> bool:
    unpaid = getattr(invoice, "unpaid", None)
    if unpaid is None or unpaid.ended_at is not None:
        return True
    return unpaid.next_try_at is not None and unpaid.next_try_at <= at


def _chargeable() -> ReceivableQuerySet:
    return Receivable.objects.open().filter(invoice__block__confirmed_at__isnull=False)


def _organizations_to_charge() -> list[str]:
    """Organizations of which a charge is due: enough is open for a card, and none is under way."""
    at = now()
    live = PaymentAttempt.objects.filter(
        organization_id=OuterRef("organization_id"), state__in=LIVE_STATES
    )
    charged = PaymentAttempt.objects.filter(
        invoices__invoice_id=OuterRef("pk"), state=AttemptState.SUCCEEDED
    )
    waits = UnpaidInvoice.objects.filter(pk=OuterRef("pk"), ended_at=None).filter(
        Q(next_try_at=None) | Q(next_try_at__gt=at)
    )
    with system_scope():
        rows = _chargeable().exclude(Exists(live)).exclude(Exists(charged)).exclude(Exists(waits))
        sums = rows.values("organization_id", "currency").annotate(total=Sum("open_minor"))
        due = sums.filter(total__gte=max(config().billing.card_minimum_minor, 1))
        owners = due.order_by("organization_id").values_list("organization_id", flat=True)
        return list(dict.fromkeys(owners[:SWEPT_MAX]))


def _overdue(at: datetime) -> ReceivableQuerySet:
    """Receivables that were due before a day, and of which that was not noted."""
    noted = UnpaidInvoice.objects.filter(pk=OuterRef("pk"), ended_at=None)
    return Receivable.objects.overdue(at.date()).exclude(Exists(noted))


def _organizations_overdue() -> list[str]:
    with system_scope():
        rows = _overdue(now()).order_by("organization_id").values_list("organization_id", flat=True)
        return list(dict.fromkeys(rows[:SWEPT_MAX]))
