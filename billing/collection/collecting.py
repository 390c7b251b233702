"""Which invoices are charged, and when: at issue, on the days of the calendar, and by customers.

An organization has one attempt at a time, and one attempt charges one invoice, or several small
ones. So whatever repeats, dies or runs twice, an open invoice is in one live attempt at most, and
one that was paid and is open again is never charged again by the service.

Nothing that a customer does keeps an open invoice from being an unpaid one. Their attempts count as
failures, a late charge goes before the next one of theirs, what they kept from being charged for a
day is unpaid, and so is what is open again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum

from billing.choices import AttemptOrigin, AttemptState, FailureKind, SettlementKind
from billing.collection.attempts import (
    AUTHENTICATES_WITHIN,
    enqueue_attempt,
    live_attempt,
    prepare_attempt,
    send_attempt,
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
from billing.models import PaymentAttempt, Receivable, Settlement, UnpaidInvoice
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
# How long a customer's own attempts may keep an invoice from being charged.
KEPT_AWAY_MAX = timedelta(days=1)
TAKEN_BACK = (SettlementKind.REFUND.value, SettlementKind.DISPUTE.value)


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
        _note_debts()
    elif config().billing.collector == TRANSFER:
        _note_debts()
        organizations = _organizations_overdue()
        act = note_overdue
    else:
        return 0
    _act_on(organizations, act)
    return len(organizations)


def _act_on(organizations: Sequence[str], act: Callable[..., object]) -> None:
    for organization_id in organizations:
        try:
            act(organization_id=organization_id)
        except Exception:
            # One organization must not keep the others from being charged.
            logger.exception("collection.failed", extra={"organization": organization_id})


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
        chosen = _chosen(organization_id, due_by=now())
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
    waits for the customer is returned again. A charge of the service that is late goes before it.

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


def note_reopened(*, organization_id: str) -> None:
    """Has the calendar begin for an organization's invoices that were paid and are open again."""
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        _note_all(organization_id, _reopened(now()), FailureKind.REOPENED)


def note_kept_away(*, organization_id: str) -> None:
    """Has the calendar begin for what an organization's customer kept from being charged."""
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        _note_all(organization_id, _kept_away(now()), FailureKind.NEEDS_AUTHENTICATION)


def _note_all(organization_id: str, rows: ReceivableQuerySet, failure: FailureKind) -> None:
    ours = rows.filter(organization_id=organization_id).oldest_first()
    note_failure(
        organization_id=organization_id,
        invoice_ids=list(ours.values_list("pk", flat=True)),
        failure=failure,
    )


def _note_debts() -> None:
    """Has the calendar begin for what is unpaid though no charge of the service failed."""
    at = now()
    _act_on(_owners_of(_reopened(at)), note_reopened)
    if takes_cards():
        _act_on(_owners_of(_kept_away(at)), note_kept_away)


def _begin_payment(
    actor: Actor, invoice_id: str, *, with_older: bool
) -> tuple[PaymentAttempt, bool]:
    """The live attempt of the organization, or a new one, and whether it is a new one for the
    invoice."""
    organization_id = actor.organization_id
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        live = live_attempt(organization_id)
        if live is not None:
            return live, False
        owed = _owed(organization_id, due_by=None)
        position = next((n for n, one in enumerate(owed) if one.invoice_id == invoice_id), None)
        if position is None:
            message = "The invoice is paid or void, so nothing is owed on it."
            raise NothingOpen(message)
        account = card_of(organization_id)
        if account is None or not account.method_id:
            raise NoCard
        late = _chosen(organization_id, due_by=now() - AUTHENTICATES_WITHIN)
        if late:
            origin = AttemptOrigin.COLLECTION
            return prepare_attempt(account=account, owed=late, origin=origin), False
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


def _chosen(organization_id: str, *, due_by: datetime) -> list[Owed]:
    """What the service charges together of what was due by then; none where it charges nothing."""
    return choose_invoices(
        _owed(organization_id, due_by=due_by), config().billing.card_minimum_minor
    )


def _owed(organization_id: str, *, due_by: datetime | None) -> list[Owed]:
    """What is open of an organization's invoices that people may see, oldest first.

    Due is what was to be tried by then, for the first time or again; without a time, which is the
    customer's view, all of it is.
    """
    rows = _chargeable().filter(organization_id=organization_id).select_related("invoice__unpaid")
    receivables = list(rows.oldest_first())
    reopened = set(rows.filter(_was_paid()).values_list("pk", flat=True))
    return [
        Owed(
            invoice_id=row.pk,
            open_minor=row.open_minor,
            currency=row.currency,
            is_due=due_by is None or (row.pk not in reopened and _is_due(row, due_by)),
        )
        for row in receivables
    ]


def _is_due(row: Receivable, by: datetime) -> bool:
    unpaid = getattr(row.invoice, "unpaid", None)
    if unpaid is None or unpaid.ended_at is not None:
        return row.created_at <= by
    return unpaid.next_try_at is not None and unpaid.next_try_at <= by


def _was_paid() -> Q:
    """Selects receivables that a card was charged for, or whose payment did not last: they are
    charged again only by the customer."""
    charged = PaymentAttempt.objects.filter(
        invoices__invoice_id=OuterRef("pk"), state=AttemptState.SUCCEEDED
    )
    taken = Settlement.objects.filter(
        receivable_id=OuterRef("pk"), kind__in=TAKEN_BACK, amount_minor__lt=0
    )
    return Q(Exists(charged)) | Q(Exists(taken))


def _live_attempts() -> QuerySet[PaymentAttempt]:
    """The live attempt of a receivable's organization."""
    return PaymentAttempt.objects.filter(
        organization_id=OuterRef("organization_id"), state__in=LIVE_STATES
    )


def _unnoted() -> ReceivableQuerySet:
    """Open receivables of which nothing says that they are unpaid."""
    noted = UnpaidInvoice.objects.filter(pk=OuterRef("pk"), ended_at=None)
    return _chargeable().exclude(Exists(noted))


def _reopened(at: datetime) -> ReceivableQuerySet:
    """What was paid, is open again, and was not noted. A transfer's due day holds all the same."""
    rows = _unnoted().filter(_was_paid())
    return rows if takes_cards() else rows.overdue(at.date())


def _kept_away(at: datetime) -> ReceivableQuerySet:
    """What could not be charged for long, as the customer has an attempt of their own."""
    theirs = _live_attempts().filter(origin=AttemptOrigin.CUSTOMER)
    return _unnoted().filter(Exists(theirs), created_at__lte=at - KEPT_AWAY_MAX)


def _owners_of(rows: ReceivableQuerySet) -> list[str]:
    """The organizations that owe these, and enough altogether for a card where cards are taken."""
    minimum = config().billing.card_minimum_minor if takes_cards() else 1
    with system_scope():
        theirs = _chargeable().filter(organization_id__in=rows.values("organization_id"))
        sums = theirs.values("organization_id", "currency").annotate(total=Sum("open_minor"))
        owners = sums.filter(total__gte=minimum).order_by("organization_id")
        return list(dict.fromkeys(owners.values_list("organization_id", flat=True)[:SWEPT_MAX]))


def _chargeable() -> ReceivableQuerySet:
    return Receivable.objects.open().filter(invoice__block__confirmed_at__isnull=False)


def _organizations_to_charge() -> list[str]:
    """Organizations of which a charge is due: enough is open for a card, and none is under way."""
    at = now()
    waits = UnpaidInvoice.objects.filter(pk=OuterRef("pk"), ended_at=None).filter(
        Q(next_try_at=None) | Q(next_try_at__gt=at)
    )
    with system_scope():
        rows = _chargeable().exclude(Exists(_live_attempts())).exclude(Exists(waits))
        rows = rows.exclude(_was_paid())
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
