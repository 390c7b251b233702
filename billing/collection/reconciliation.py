"""Compares the ledger, the receivables and Stripe each night, and keeps what does not agree.

It changes no money: a difference is for a person to look at, who is shown it until a later
comparison does not have it any more. What was missed for want of a webhook is caught up before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time, timedelta
from typing import Any

from django.db.models import Q, QuerySet, Sum

from billing.choices import Account, AttemptState, DifferenceKind, DisputeState, PaymentMethod
from billing.collection.common import takes_cards
from billing.collection.comparing import Difference, Money, compare, compare_sums
from billing.collection.events import TOOK_MONEY, catch_up_events
from billing.collection.gateway import Gateway, GatewayError, Refused, gateway
from billing.collection.refunds import SUCCEEDED
from billing.collection.states import IntentStatus
from billing.models import (
    AttemptInvoice,
    Credit,
    Dispute,
    MoneyDifference,
    MoneyReconciliation,
    Payment,
    Posting,
    Receivable,
    Refund,
)
from billing.models.collection import MESSAGE_CHARS_MAX
from console.base.common.clock import now
from console.base.common.tenancy import system_scope

logger = logging.getLogger(__name__)

# When the comparison of a day is due, by UTC.
DUE = time(2)
# What is younger may still be on its way.
SETTLES_WITHIN = timedelta(minutes=15)
# How much of what was compared before is compared again.
OVERLAP = timedelta(days=3)
FIRST = timedelta(days=400)


def reconcile_due() -> bool:
    """Compares once a day, at 02:00 UTC or as soon afterwards as it can; returns whether it did."""
    at = now()
    due = datetime.combine(at.date(), DUE, tzinfo=at.tzinfo)
    if at < due or MoneyReconciliation.objects.filter(finished_at__gte=due).exists():
        return False
    return reconcile_money().finished_at is not None


def reconcile_money() -> MoneyReconciliation:
    """Compares everything since the last comparison that ended, and returns the row of this one.

    One that Stripe does not answer stays unfinished, with the reason, and is tried again.
    """
    at = now()
    ends_at = at - SETTLES_WITHIN
    with system_scope():
        run = _unfinished_run()
        run.begins_at, run.ends_at, run.created_at = _begins_at(ends_at), ends_at, at
        run.save()
    try:
        compared, differences = _compare_stripe(run.begins_at, ends_at)
    except GatewayError as error:
        logger.warning("reconciliation.postponed error=%s", error)
        run.reason = str(error)[:MESSAGE_CHARS_MAX] or type(error).__name__
        run.save(update_fields=["reason"])
        return run
    with system_scope():
        differences += _compare_ledger(at)
        differences += _charged_twice(at)
        run.compared = compared + Receivable.objects.count()
        run.differences = _keep(differences, at)
        run.finished_at, run.reason = now(), ""
        run.save()
    if run.differences:
        logger.error("reconciliation.differs count=%s", run.differences)
    return run


def open_differences() -> dict[str, int]:
    """Kind → how many differences are open, in the system's scope."""
    rows = MoneyDifference.objects.filter(ended_at=None).values_list("kind", flat=True)
    counts: dict[str, int] = {}
    for kind in rows:
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def last_finished() -> datetime | None:
    """When the last comparison ended; None before the first one."""
    rows = MoneyReconciliation.objects.exclude(finished_at=None).order_by("-finished_at")
    return rows.values_list("finished_at", flat=True).first()


def _unfinished_run() -> MoneyReconciliation:
    run = MoneyReconciliation.objects.filter(finished_at=None).order_by("-created_at").first()
    return run or MoneyReconciliation()


def _begins_at(ends_at: datetime) -> datetime:
    """Since when Stripe's objects are compared: all that an open difference is about is among
    them."""
    rows = MoneyReconciliation.objects.exclude(finished_at=None).order_by("-ends_at")
    last = rows.values_list("ends_at", flat=True).first()
    if last is None:
        return ends_at - FIRST
    begins_at = last - OVERLAP
    open_rows = MoneyDifference.objects.filter(ended_at=None).order_by("happened_at")
    oldest = open_rows.values_list("happened_at", flat=True).first()
    return begins_at if oldest is None else min(begins_at, oldest - timedelta(seconds=1))


def _compare_stripe(begins_at: datetime, ends_at: datetime) -> tuple[int, list[Difference]]:
    """How much was compared with Stripe, and what does not agree. Raises `GatewayError`."""
    if not takes_cards():
        return 0, []
    catch_up_events()
    stripe = gateway()
    # Asked before the rows are read: what is entered meanwhile is there in both.
    intents = [
        Money(
            id=one.id,
            amount_minor=one.received_minor,
            currency=one.currency,
            happened_at=one.created_at,
            organization_id=one.metadata.get("organization", ""),
        )
        for one in stripe.intents_since(begins_at, ends_at)
        if one.status == IntentStatus.SUCCEEDED
    ]
    refunds = [
        Money(one.id, one.amount_minor, one.currency, one.created_at)
        for one in stripe.refunds_since(begins_at, ends_at)
        if one.status == SUCCEEDED
    ]
    disputes = [
        Money(one.id, one.amount_minor, one.currency, one.created_at)
        for one in stripe.disputes_since(begins_at, ends_at)
        if one.status in TOOK_MONEY
    ]
    with system_scope():
        payments = list(_payments(intents, begins_at, ends_at))
        returned = list(_refunds(refunds, begins_at, ends_at))
        disputed = list(_disputes(disputes))
    intents += _missing_intents(stripe, payments, intents)
    refunds += _missing_refunds(stripe, returned, refunds)
    kinds = DifferenceKind
    differences = [
        *compare(payments, intents, unknown=kinds.PAYMENT_UNKNOWN, absent=kinds.PAYMENT_ABSENT),
        *compare(returned, refunds, unknown=kinds.REFUND_UNKNOWN, absent=kinds.REFUND_ABSENT),
        *compare(disputed, disputes, unknown=kinds.DISPUTE_UNKNOWN, absent=kinds.DISPUTE_UNKNOWN),
    ]
    return len(intents) + len(refunds) + len(disputes), differences


def _ids(money: Iterable[Money]) -> list[str]:
    return [one.id for one in money]


def _payments(intents: Sequence[Money], begins_at: datetime, ends_at: datetime) -> Iterator[Money]:
    """The card payments of a time, and those of intents that Stripe has of it."""
    entered = Q(created_at__gte=begins_at, created_at__lt=ends_at)
    rows = Payment.objects.filter(method=PaymentMethod.CARD)
    for row in rows.filter(entered | Q(external_id__in=_ids(intents))):
        yield Money(
            row.external_id, row.amount_minor, row.currency, row.created_at, row.organization_id
        )


def _refunds(refunds: Sequence[Money], begins_at: datetime, ends_at: datetime) -> Iterator[Money]:
    entered = Q(created_at__gte=begins_at, created_at__lt=ends_at)
    rows = Refund.objects.filter(method=PaymentMethod.CARD).select_related("payment")
    for row in rows.filter(entered | Q(external_id__in=_ids(refunds))):
        yield Money(
            row.external_id,
            row.amount_minor,
            row.payment.currency,
            row.created_at,
            row.organization_id,
        )


def _disputes(disputes: Sequence[Money]) -> Iterator[Money]:
    rows = Dispute.objects.filter(external_id__in=_ids(disputes)).select_related("payment")
    for row in rows:
        yield Money(
            row.external_id,
            row.amount_minor,
            row.payment.currency,
            row.created_at,
            row.organization_id,
        )


def _missing_intents(
    stripe: Gateway, payments: Sequence[Money], intents: Sequence[Money]
) -> list[Money]:
    """The intents of payments that the list lacks, as it is of those made in the time."""
    missing = []
    for one in set(_ids(payments)) - set(_ids(intents)):
        try:
            intent = stripe.intent(one)
        except Refused:
            continue
        if intent.status == IntentStatus.SUCCEEDED:
            missing.append(
                Money(intent.id, intent.received_minor, intent.currency, intent.created_at)
            )
    return missing


def _missing_refunds(
    stripe: Gateway, returned: Sequence[Money], refunds: Sequence[Money]
) -> list[Money]:
    missing = []
    for one in set(_ids(returned)) - set(_ids(refunds)):
        try:
            refund = stripe.refund(one)
        except Refused:
            continue
        if refund.status == SUCCEEDED:
            missing.append(
                Money(refund.id, refund.amount_minor, refund.currency, refund.created_at)
            )
    return missing


def _compare_ledger(at: datetime) -> list[Difference]:
    """Whether the ledger's accounts are the sums of the rows behind them."""
    owed = _sums(Receivable.objects.all(), "open_minor")
    credit = _sums(Payment.objects.all(), "unapplied_minor")
    for key, total in _sums(Credit.objects.all(), "unapplied_minor").items():
        credit[key] = credit.get(key, 0) + total
    kind = DifferenceKind.LEDGER_DIFFERS
    return [
        *compare_sums(kind, _balances(Account.RECEIVABLE), owed, at),
        *compare_sums(
            kind,
            _balances(Account.CUSTOMER_CREDIT),
            {key: -total for key, total in credit.items()},
            at,
        ),
        *compare_sums(
            DifferenceKind.CLEARING_DIFFERS,
            _by_currency(_balances(Account.CARD_CLEARING)),
            _by_currency(_money_at_stripe()),
            at,
        ),
    ]


def _money_at_stripe() -> dict[tuple[str, str], int]:
    """What card payments brought, less what was given or taken back."""
    cards = {"method": PaymentMethod.CARD}
    sums = _sums(Payment.objects.filter(**cards), "amount_minor")
    taken = Dispute.objects.filter(payment__method=PaymentMethod.CARD)
    for rows in (
        Refund.objects.filter(**cards),
        taken.exclude(state=DisputeState.WON),
    ):
        for key, total in _sums(rows, "amount_minor", "payment__currency").items():
            sums[key] = sums.get(key, 0) - total
    return sums


def _sums(
    rows: QuerySet[Any], field: str, currency: str = "currency"
) -> dict[tuple[str, str], int]:
    totals = rows.values_list("organization_id", currency).annotate(total=Sum(field)).order_by()
    return {(owner, code): int(total) for owner, code, total in totals if total}


def _balances(account: Account) -> dict[tuple[str, str], int]:
    return _sums(Posting.objects.filter(account=account), "amount_minor", "entry__currency")


def _by_currency(sums: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    totals: dict[tuple[str, str], int] = {}
    for (_, currency), total in sums.items():
        totals["", currency] = totals.get(("", currency), 0) + total
    return totals


def _charged_twice(at: datetime) -> list[Difference]:
    """Invoices that were charged with more than they are over, and that was not given back."""
    rows = AttemptInvoice.objects.filter(attempt__state=AttemptState.SUCCEEDED)
    sums = rows.values("invoice_id", "organization_id", "attempt__currency").annotate(
        total=Sum("amount_minor")
    )
    owed = dict(Receivable.objects.values_list("pk", "amount_minor"))
    over = [row for row in sums.order_by() if row["total"] > owed.get(row["invoice_id"], 0)]
    differences = []
    for row in over:
        attempts = AttemptInvoice.objects.filter(invoice_id=row["invoice_id"])
        intents = list(
            attempts.filter(attempt__state=AttemptState.SUCCEEDED).values_list(
                "attempt__intent_id", flat=True
            )
        )
        payments = Payment.objects.filter(method=PaymentMethod.CARD, external_id__in=intents)
        returned = payments.aggregate(total=Sum("refunded_minor"))["total"] or 0
        lost = Dispute.objects.filter(payment__in=payments).exclude(state=DisputeState.WON)
        returned += lost.aggregate(total=Sum("amount_minor"))["total"] or 0
        amount = owed.get(row["invoice_id"], 0)
        if row["total"] - returned > amount:
            differences.append(
                Difference(
                    kind=DifferenceKind.CHARGED_TWICE,
                    subject=row["invoice_id"],
                    ours_minor=amount,
                    theirs_minor=row["total"] - returned,
                    currency=row["attempt__currency"],
                    happened_at=at,
                    organization_id=row["organization_id"],
                )
            )
    return differences


def _keep(differences: Sequence[Difference], at: datetime) -> int:
    """Writes down what differs now, ends what does not any more; returns how many are open."""
    open_rows = {
        (row.kind, row.subject): row
        for row in MoneyDifference.objects.filter(ended_at=None).select_for_update()
    }
    for one in differences:
        row = open_rows.pop((one.kind.value, one.subject), None)
        if row is None:
            row = MoneyDifference(
                kind=one.kind.value, subject=one.subject, happened_at=one.happened_at, created_at=at
            )
        row.organization_id = one.organization_id
        row.ours_minor, row.theirs_minor = one.ours_minor, one.theirs_minor
        row.currency, row.seen_at = one.currency, at
        row.save()
    ended = [row.pk for row in open_rows.values()]
    MoneyDifference.objects.filter(pk__in=ended).update(ended_at=at)
    return len(differences)
