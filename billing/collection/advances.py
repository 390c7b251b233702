"""What a card owes before it has proved that it pays: it is bounded, and charged in advance.

A card that can be saved may decline every charge, and its invoice comes after the month. So until
charges of it came to half of `billing.unproved_payer_limit_minor`, its organizations owe no more
than that limit together: at the half the card is charged in advance, and at all of it produce and
fetch are refused until it pays. What is charged in advance is the organization's credit, which pays
the month's invoice.

Traffic is refused too while disputes of charges are open (`allowances/refusals.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef, Sum

from billing.allowances.payers import payer_of
from billing.allowances.refusals import disputing_organizations, paid_for_lately
from billing.choices import (
    AttemptOrigin,
    AttemptState,
    DisputeState,
    NoticeKind,
    PayerKind,
    PaymentMethod,
)
from billing.collection.attempts import (
    advances_of,
    enqueue_attempt,
    live_attempt,
    prepare_advance,
    send_attempt,
)
from billing.collection.cards import card_of
from billing.collection.common import PAGE, takes_cards
from billing.collection.errors import BelowMinimum, CollectorOff, NoCard, PaymentInProgress
from billing.collection.notices import note_notice
from billing.errors import NothingOpen
from billing.models import (
    CardAccount,
    Credit,
    Dispute,
    Invoice,
    Payer,
    PayerOrganization,
    Payment,
    PaymentAttempt,
    PriceVersion,
    Receivable,
)
from billing.models.collection import LIVE_STATES
from billing.periods import last_month, month_of
from billing.receivables.event import lock_organizations
from billing.spending import spent_by_organization
from console.base.accounts.choices import TrafficLimitKind, TrafficLimitSource
from console.base.accounts.models import TrafficLimit
from console.base.accounts.services import set_traffic_limit
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import commit_so_far

logger = logging.getLogger(__name__)

# A charge in advance that failed is repeated by the service once a day, so many times in all.
TRY_AGAIN_AFTER = timedelta(days=1)
TRIES_MAX = 4
REASONS = {
    NoticeKind.LIMIT_REACHED: (
        "Produce and fetch are refused: the card has paid too little so far for what is used with"
        " it. Pay in advance or give another card at {link}; your clusters then serve again."
    ),
    NoticeKind.DISPUTED: (
        "Produce and fetch are refused: several payments are disputed at the bank of their card."
        " Your clusters serve again once it has decided. {link} shows the payments."
    ),
}


@dataclass(frozen=True, slots=True)
class Owing:
    """What an organization owes, in minor units and before taxes.

    `unbilled_minor`: what it used and no invoice has yet, less its credit. `open_minor`: what is
    open of its invoices.
    """

    unbilled_minor: int = 0
    open_minor: int = 0

    @property
    def total_minor(self) -> int:
        """All of it."""
        return self.unbilled_minor + self.open_minor


def judge_payers() -> int:
    """Charges in advance what is due, refuses the traffic of who is beyond the limit or disputes,
    and lifts that for everybody else; returns for how many organizations it changed."""
    refused: Mapping[str, NoticeKind] = {}
    if takes_cards():
        with system_scope():
            owing = _owing_of_unproved()
            refused = _refused(owing)
        for payer_id, of_payer in owing.items():
            _done_safely(payer_id, partial(_charge_due, payer_id, of_payer))
    with system_scope():
        limits = TrafficLimit.objects.filter(source=TrafficLimitSource.PAYER)
        limited = dict(limits.values_list("organization_id", "reason"))
    changes = {
        owner: refused.get(owner)
        for owner in sorted({*refused, *limited})
        if limited.get(owner, "") != _reason(refused.get(owner))
    }
    return sum(_done_safely(owner, partial(_limit, owner, kind)) for owner, kind in changes.items())


def follow_payer(*, organization_id: str, **_: object) -> None:
    """Lifts at once what an organization is refused and paid for. In the payment's transaction."""
    limits = TrafficLimit.objects.filter(
        organization_id=organization_id, source=TrafficLimitSource.PAYER
    )
    if not limits.exists():
        return
    payer_id = payer_of(organization_id)
    with system_scope():
        kind = _refused(_owing_of_unproved([payer_id] if payer_id else [])).get(organization_id)
    if kind is None:
        _limit(organization_id, None)


def pay_in_advance(*, actor: Actor) -> PaymentAttempt:
    """Charges an organization's card with what it used so far, as its customer asks for it.

    An attempt in advance that waits for the customer is returned again. Within a request, whose
    transaction is interrupted. Raises `CollectorOff`, `NoCard`, `NothingOpen` while an invoice is
    to be paid first, `BelowMinimum` and `PaymentInProgress`.
    """
    organization_id = actor.organization_id
    if not takes_cards():
        raise CollectorOff
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        attempt = live_attempt(organization_id)
        if attempt is None:
            attempt = _prepare_for_customer(actor)
        elif attempt.first_invoice_id is not None:
            raise PaymentInProgress
    commit_so_far()
    return send_attempt(organization_id=organization_id, attempt_id=attempt.pk)


def advance_asked(account: CardAccount) -> int | None:
    """What the customer of a card is asked to pay in advance, in minor units; None: nothing.

    It is asked once the card could not be charged with it, or traffic is refused for want of it.
    In the caller's scope.
    """
    if not account.method_id or not takes_cards():
        return None
    organization_id = account.organization_id
    payer_id = payer_of(organization_id)
    with system_scope():
        unproved, _ = _by_proof([payer_id] if payer_id else [])
    if not unproved:
        return None
    limits = TrafficLimit.objects.filter(source=TrafficLimitSource.PAYER)
    failed = advances_of(organization_id).filter(
        state=AttemptState.FAILED, method_id=account.method_id
    )
    if not limits.filter(organization_id=organization_id).exists() and not failed.exists():
        return None
    owing = owed_by([organization_id])[organization_id]
    is_enough = owing.unbilled_minor >= max(config().billing.card_minimum_minor, 1)
    return owing.unbilled_minor if is_enough and not owing.open_minor else None


def owed_by(organization_ids: Collection[str]) -> dict[str, Owing]:
    """What each organization owes: its invoices, and what none has of this and the last month."""
    owners = set(organization_ids)
    unbilled = dict.fromkeys(owners, 0)
    with system_scope():
        rows = Receivable.objects.open().filter(organization_id__in=owners)
        sums = rows.values("organization_id").annotate(total=Sum("open_minor")).order_by()
        unpaid = dict(sums.values_list("organization_id", "total"))
        month = month_of(now())
        for used_in in (month, last_month(month)):
            issued = Invoice.objects.invoices().issued().filter(month=used_in)
            issued = issued.filter(organization_id__in=owners)
            invoiced = set(issued.values_list("organization_id", flat=True))
            for owner, spent in spent_by_organization(used_in, owners - invoiced).items():
                unbilled[owner] += spent.total_minor
        for kind in (Payment, Credit):
            unused = kind.objects.filter(organization_id__in=owners, unapplied_minor__gt=0)
            for owner, amount in unused.values_list("organization_id", "unapplied_minor"):
                unbilled[owner] -= amount
    return {owner: Owing(max(0, unbilled[owner]), int(unpaid.get(owner, 0))) for owner in owners}


def _owing_of_unproved(payer_ids: Collection[str] | None = None) -> dict[str, dict[str, Owing]]:
    """Payer → organization → what it owes, of cards that have not proved that they pay; of some,
    or of all. Writes down which have. Needs the system's scope."""
    unproved, proved = _by_proof(payer_ids)
    if proved:
        Payer.objects.filter(pk__in=proved).update(proved_at=now())
    links = paid_for_lately(PayerOrganization.objects.filter(payer_id__in=unproved))
    groups: dict[str, list[str]] = {}
    for payer_id, owner in links.order_by("pk").values_list("payer_id", "organization_id"):
        owners = groups.setdefault(payer_id, [])
        if owner not in owners:
            owners.append(owner)
    owed = owed_by([owner for owners in groups.values() for owner in owners])
    return {
        payer_id: {owner: owed[owner] for owner in owners} for payer_id, owners in groups.items()
    }


def _by_proof(payer_ids: Collection[str] | None = None) -> tuple[list[str], list[str]]:
    """Cards that pay for somebody and are not known to pay: whose charges came to too little, and
    whose came to enough by now. Needs the system's scope."""
    if not config().billing.unproved_payer_limit_minor:
        return [], []
    rows = Payer.objects.filter(kind=PayerKind.CARD, proved_at=None, trusted_at=None)
    links = paid_for_lately(PayerOrganization.objects.filter(payer=OuterRef("pk")))
    rows = rows.filter(Exists(links))
    if payer_ids is not None:
        rows = rows.filter(pk__in=payer_ids)
    payers = list(rows.order_by("pk").values_list("pk", flat=True))
    paid = _paid_by(payers)
    enough = _charged_at()
    unproved = [one for one in payers if paid.get(one, 0) < enough]
    return unproved, [one for one in payers if one not in unproved]


def _paid_by(payer_ids: Sequence[str]) -> dict[str, int]:
    """Payer → what charges of its cards came to, less what was given back or is disputed."""
    charges = PaymentAttempt.objects.filter(
        payer_id__in=payer_ids, state=AttemptState.SUCCEEDED
    ).exclude(intent_id=None)
    payer_of_intent = dict(charges.values_list("intent_id", "payer_id"))
    payments = Payment.objects.filter(
        method=PaymentMethod.CARD, external_id__in=payer_of_intent.keys()
    )
    paid: dict[str, int] = {}
    disputes = Dispute.objects.filter(payment__in=payments).exclude(state=DisputeState.WON)
    taken: dict[str, int] = {}
    for intent, amount in disputes.values_list("payment__external_id", "amount_minor"):
        taken[intent] = taken.get(intent, 0) + amount
    for payment in payments:
        payer_id = payer_of_intent[payment.external_id]
        lasting = payment.amount_minor - payment.refunded_minor
        paid[payer_id] = paid.get(payer_id, 0) + lasting - taken.get(payment.external_id, 0)
    return paid


def _charged_at() -> int:
    """The amount from which a card is charged in advance, and by which it proves that it pays."""
    minimum = max(config().billing.card_minimum_minor, 1)
    return max(config().billing.unproved_payer_limit_minor // 2, minimum)


def _refused(owing: Mapping[str, Mapping[str, Owing]]) -> dict[str, NoticeKind]:
    """Organization → why its traffic is refused."""
    limit = config().billing.unproved_payer_limit_minor
    links = PayerOrganization.objects.filter(until=None)
    links = links.filter(organization_id__in={one for owners in owing.values() for one in owners})
    paid_by = dict(links.values_list("organization_id", "payer_id"))
    refused = {
        owner: NoticeKind.LIMIT_REACHED
        for payer_id, of_payer in owing.items()
        if sum(one.total_minor for one in of_payer.values()) >= limit
        for owner in of_payer
        # Who has given another card is judged by that one.
        if paid_by.get(owner, payer_id) == payer_id
    }
    return refused | dict.fromkeys(disputing_organizations(), NoticeKind.DISPUTED)


def _charge_due(payer_id: str, owing: Mapping[str, Owing]) -> bool:
    """Begins the charge in advance of a payer that owes enough; returns whether it did.

    One organization's at a time: of those that still have the card, the one with the greatest
    amount.
    """
    if sum(one.total_minor for one in owing.values()) < _charged_at():
        return False
    with system_scope():
        ours = PaymentAttempt.objects.filter(payer_id=payer_id)
        failed = ours.filter(
            first_invoice=None, state=AttemptState.FAILED, origin=AttemptOrigin.COLLECTION
        )
        waits = failed.filter(created_at__gt=now() - TRY_AGAIN_AFTER).exists()
        if waits or failed.count() >= TRIES_MAX or ours.filter(state__in=LIVE_STATES).exists():
            return False
        links = PayerOrganization.objects.filter(payer_id=payer_id, until=None)
        owners = links.filter(organization_id__in=owing.keys())
        chargeable = list(owners.values_list("organization_id", flat=True))
    if not chargeable:
        return False
    owner = max(chargeable, key=lambda one: (owing[one].unbilled_minor, one))
    with organization_scope(owner):
        lock_organizations([owner])
        account = card_of(owner)
        amount = owed_by([owner])[owner].unbilled_minor
        is_enough = amount >= max(config().billing.card_minimum_minor, 1)
        if account is None or not account.method_id or live_attempt(owner) or not is_enough:
            return False
        attempt = prepare_advance(
            account=account,
            amount_minor=amount,
            currency=_currency(),
            origin=AttemptOrigin.COLLECTION,
        )
        enqueue_attempt(owner, attempt.pk)
    return True


def _prepare_for_customer(actor: Actor) -> PaymentAttempt:
    organization_id = actor.organization_id
    account = card_of(organization_id)
    if account is None or not account.method_id:
        raise NoCard
    owing = owed_by([organization_id])[organization_id]
    if owing.open_minor:
        message = "An invoice is open: pay that one."
        raise NothingOpen(message)
    if owing.unbilled_minor < max(config().billing.card_minimum_minor, 1):
        raise BelowMinimum
    attempt = prepare_advance(
        account=account,
        amount_minor=owing.unbilled_minor,
        currency=_currency(),
        origin=AttemptOrigin.CUSTOMER,
    )
    record_audit(
        actor=actor,
        action="payment.advance",
        target_type="organization",
        target_id=organization_id,
        detail={
            "attempt": attempt.pk,
            "amount_minor": attempt.amount_minor,
            "currency": attempt.currency,
        },
    )
    return attempt


def _currency() -> str:
    return PriceVersion.objects.in_force(month_of(now())).currency


def _reason(kind: NoticeKind | None) -> str:
    if kind is None:
        return ""
    return REASONS[kind].format(link=f"{config().web.public_url}{PAGE}")


def _limit(organization_id: str, kind: NoticeKind | None) -> bool:
    """Refuses an organization's traffic, with a mail, or lifts that."""
    with organization_scope(organization_id):
        changed = set_traffic_limit(
            organization_id=organization_id,
            source=TrafficLimitSource.PAYER,
            kind=TrafficLimitKind.REFUSE if kind else None,
            reason=_reason(kind),
        )
        if changed and kind is not None:
            note_notice(organization_id=organization_id, kind=kind)
        return changed


def _done_safely(subject: str, change: partial[bool]) -> bool:
    try:
        with transaction.atomic():
            return change()
    except Exception:
        # One payer or organization must not keep the others from theirs.
        logger.exception("payers.failed", extra={"subject": subject})
        return False
