"""Why a card pays for no further organization: what it owes elsewhere, and disputes.

All functions read what other organizations of a payer owe, in the system's scope, and return no
more of them than a kind of reason.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum

from billing.choices import DisputeState, PayerKind, PayerRefusal
from billing.models import (
    CardAccount,
    Dispute,
    Payer,
    PayerOrganization,
    PaymentAttempt,
    Receivable,
    UnpaidInvoice,
)
from billing.periods import last_month, month_of, starts_at
from console.base.accounts.choices import TrafficLimitSource
from console.base.accounts.models import TrafficLimit
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import system_scope

# In so many organizations a card may owe less than it can be charged.
SMALL_DEBTS_MAX = 10
# So many disputes within a year, one of them open, have traffic refused.
DISPUTES_MAX = 2
DISPUTES_COUNT_FOR = timedelta(days=365)


def why_refused(payer: Payer, organization_id: str) -> PayerRefusal | None:
    """Why a payer pays for no further organization, of which this is one; None where it does.

    What the organization itself owes is no reason: its own card pays that.
    """
    if payer.kind != PayerKind.CARD or payer.trusted_at is not None:
        return None
    with system_scope():
        links = PayerOrganization.objects.filter(payer=payer)
        others = links.exclude(organization_id=organization_id)
        if _unpaid(others).exists():
            return PayerRefusal.UNPAID
        if _small_debts(others) >= SMALL_DEBTS_MAX:
            return PayerRefusal.SMALL_DEBTS
        if _disputes_of([payer.pk]).filter(state=DisputeState.OPEN).exists():
            return PayerRefusal.DISPUTED
        limits = TrafficLimit.objects.filter(source=TrafficLimitSource.PAYER)
        owing = paid_for_lately(others).values("organization_id")
        if limits.filter(organization_id__in=owing).exists():
            return PayerRefusal.UNPROVED
    return None


def paid_for_lately(links: QuerySet[PayerOrganization]) -> QuerySet[PayerOrganization]:
    """Those of a payer's links to organizations whose usage may have no invoice yet.

    Whoever removes the card before the invoice comes owes it all the same, unless a card that is
    known to pay has taken the organization over.
    """
    known = PayerOrganization.objects.filter(
        organization_id=OuterRef("organization_id"), until=None
    ).exclude(payer__proved_at=None, payer__trusted_at=None)
    since = starts_at(last_month(month_of(now())))
    return links.filter(Q(until=None) | Q(until__gt=since)).exclude(Exists(known))


def refusal_of_card(account: CardAccount) -> PayerRefusal | None:
    """Why the card of an organization without a payer does not pay for it; None where it may."""
    if not account.method_id or not account.fingerprint:
        return None
    payer = Payer.objects.filter(fingerprint=account.fingerprint).first()
    return None if payer is None else why_refused(payer, account.organization_id)


def disputing_organizations() -> set[str]:
    """The organizations whose traffic is refused until their banks have decided.

    Of disputes within a year that were not won, of an organization's payments and of its payer's
    charges elsewhere, there are two or more, and one is open. An inquiry is no dispute. Needs the
    system's scope.
    """
    counted = _disputes().exclude(state=DisputeState.WON)
    rows = list(counted.values_list("pk", "organization_id", "payment__external_id", "state"))
    if not any(state == DisputeState.OPEN for *_, state in rows):
        return set()
    intents = {intent for _, _, intent, _ in rows}
    attempts = PaymentAttempt.objects.filter(intent_id__in=intents).exclude(payer=None)
    payer_of = dict(attempts.values_list("intent_id", "payer_id"))
    links = PayerOrganization.objects.filter(until=None, payer__trusted_at=None)
    links = links.filter(payer__kind=PayerKind.CARD).filter(
        Q(organization_id__in={owner for _, owner, _, _ in rows})
        | Q(payer_id__in=set(payer_of.values()))
    )
    refused = set()
    for organization_id, payer_id in links.values_list("organization_id", "payer_id"):
        states = [
            state
            for _, owner, intent, state in rows
            if owner == organization_id or payer_of.get(intent) == payer_id
        ]
        if len(states) >= DISPUTES_MAX and DisputeState.OPEN in states:
            refused.add(organization_id)
    return refused


def _unpaid(links: QuerySet[PayerOrganization]) -> QuerySet[UnpaidInvoice]:
    """Unpaid invoices of months in which, or after which, a payer paid for their organization.

    Whoever removes the card before the invoice comes owes it all the same.
    """
    paid_for = links.filter(organization_id=OuterRef("organization_id")).filter(
        Q(until=None) | Q(until__gt=OuterRef("invoice__month"))
    )
    rows = UnpaidInvoice.objects.filter(ended_at=None).exclude(since=None)
    return rows.filter(Exists(paid_for))


def _small_debts(links: QuerySet[PayerOrganization]) -> int:
    """In how many organizations less is open than a card can be charged."""
    rows = Receivable.objects.open().filter(organization_id__in=links.values("organization_id"))
    sums = rows.values("organization_id").annotate(total=Sum("open_minor")).order_by()
    return sums.filter(total__lt=config().billing.card_minimum_minor).count()


def _disputes() -> QuerySet[Dispute]:
    return Dispute.objects.filter(created_at__gt=now() - DISPUTES_COUNT_FOR)


def _disputes_of(payer_ids: list[str]) -> QuerySet[Dispute]:
    """Disputes of charges of payers' cards."""
    charges = PaymentAttempt.objects.filter(
        payer_id__in=payer_ids, intent_id=OuterRef("payment__external_id")
    )
    return _disputes().filter(Exists(charges))
