"""Customers at Stripe, and their cards.

Cards are given and removed on Stripe's own pages alone. What is known of them here follows by
asking Stripe, after a webhook or, should none come, some minutes later.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from billing.allowances.payers import assign_payer, remove_payer
from billing.choices import FailureKind, PayerKind
from billing.collection.common import COLLECT, PAGE
from billing.collection.errors import NoCard
from billing.collection.gateway import Card, GatewayError, gateway
from billing.models import BillingDetails, CardAccount, PriceVersion, UnpaidInvoice
from billing.periods import month_of
from billing.receivables.event import lock_organizations
from console.base.accounts.models import Organization
from console.base.accounts.services import billing_addresses, require_verified
from console.base.common.actor import system_actor
from console.base.common.audit import change_of, record_audit
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import commit_so_far

logger = logging.getLogger(__name__)

# A card that is being given is asked for, should no webhook come, first after the least of these,
# then in intervals that grow with the time that has passed. Stripe's pages expire after a day.
CHECK_AFTER_MIN = timedelta(minutes=1)
CHECK_AFTER_MAX = timedelta(hours=1)
CHECKED_FOR = timedelta(hours=25)
SWEPT_MAX = 100


def card_of(organization_id: str) -> CardAccount | None:
    """An organization's card account, in the caller's scope; None where it has no customer."""
    return CardAccount.objects.filter(organization_id=organization_id).first()


def begin_setup(*, organization_id: str) -> str:
    """The address of a page of Stripe on which somebody gives the organization's card.

    Raises `NotVerified` where no owner has proved their address: whoever proves it would get
    somebody else's card. Raises `GatewayError`.
    """
    with organization_scope(organization_id):
        require_verified(organization_id=organization_id)
    customer_id = _ensure_customer(organization_id)
    currency = PriceVersion.objects.in_force(month_of(now())).currency
    page = f"{config().web.public_url}{PAGE}"
    setup = gateway().create_setup(
        customer_id=customer_id,
        currency=currency,
        success_url=f"{page}?card=given",
        cancel_url=f"{page}?card=canceled",
        metadata={"organization": organization_id},
    )
    _watch(organization_id, setup_id=setup.id)
    return setup.url


def open_portal(*, organization_id: str) -> str:
    """The address of a page of Stripe on which somebody changes or removes the card.

    Raises `NoCard` where none was ever given, and `GatewayError`.
    """
    with organization_scope(organization_id):
        account = card_of(organization_id)
    if account is None or account.customer_id is None:
        raise NoCard
    url = gateway().portal_url(
        customer_id=account.customer_id, return_url=f"{config().web.public_url}{PAGE}"
    )
    _watch(organization_id, setup_id=account.setup_id)
    return url


def check_cards() -> int:
    """Asks Stripe for the cards that may have changed without a webhook; returns for how many."""
    with system_scope():
        due = CardAccount.objects.filter(check_at__lte=now()).order_by("check_at")
        accounts = list(due.values_list("organization_id", flat=True)[:SWEPT_MAX])
    for organization_id in accounts:
        try:
            check_card(organization_id=organization_id)
        except GatewayError as error:
            logger.warning("card.unchecked organization=%s error=%s", organization_id, error)
            _postpone(organization_id)
    return len(accounts)


def check_card(*, organization_id: str) -> None:
    """Asks Stripe what became of a card that is being given, changed or removed.

    Raises `GatewayError`.
    """
    with organization_scope(organization_id):
        account = card_of(organization_id)
    if account is None:
        return
    chosen = ""
    if account.setup_id:
        setup = gateway().setup(account.setup_id)
        chosen = setup.method_id if setup.status == "complete" else ""
        if setup.status != "open":
            with organization_scope(organization_id):
                ours = CardAccount.objects.filter(pk=organization_id, setup_id=account.setup_id)
                ours.update(setup_id="", check_at=None)
        if not chosen:
            _postpone(organization_id)
            return
    refresh_card(organization_id=organization_id, chosen=chosen)
    _postpone(organization_id)


def refresh_card(*, organization_id: str, chosen: str = "") -> CardAccount | None:
    """Writes down which card Stripe has for an organization: `chosen` if it is the newest, else the
    customer's default one, else the newest.

    So the late event of an earlier page does not bring an earlier card back. What is unpaid is
    charged at once with another card. Raises `GatewayError`.
    """
    with organization_scope(organization_id):
        account = card_of(organization_id)
    if account is None or account.customer_id is None:
        return None
    stripe = gateway()
    cards = {card.id: card for card in stripe.cards_of(account.customer_id)}
    default = stripe.default_card(account.customer_id)
    newest = next(iter(cards.values()), None)
    is_newest = newest is not None and newest.id == chosen
    card = newest if is_newest else cards.get(default) or newest
    if card is not None and card.id != default:
        stripe.set_default_card(account.customer_id, card.id)
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        return _keep_card(organization_id, card)


def account_of_customer(customer_id: str) -> str | None:
    """The organization that is a customer at Stripe; None for a customer of somebody else."""
    with system_scope():
        rows = CardAccount.objects.filter(customer_id=customer_id)
        return rows.values_list("organization_id", flat=True).first()


def account_of_card(method_id: str) -> str | None:
    """The organization that a card is charged for; None where it is nobody's."""
    with system_scope():
        rows = CardAccount.objects.filter(method_id=method_id)
        return rows.values_list("organization_id", flat=True).first()


def _ensure_customer(organization_id: str) -> str:
    """The id of an organization's customer, which the first call makes."""
    with organization_scope(organization_id):
        account, _ = CardAccount.objects.get_or_create(organization_id=organization_id)
        organization = Organization.objects.get(pk=organization_id)
        details = BillingDetails.objects.filter(pk=organization_id).first()
        name = (details.legal_name if details else "") or organization.name
        email = details.email if details else ""
        addresses = [email] if email else billing_addresses(organization_id=organization_id)
    commit_so_far()
    if account.customer_id is not None:
        return account.customer_id
    customer_id = gateway().create_customer(
        name=name,
        email=next(iter(addresses), ""),
        metadata={"organization": organization_id},
        key=f"org:{organization_id}:customer",
    )
    with organization_scope(organization_id):
        rows = CardAccount.objects.filter(pk=organization_id)
        rows.filter(customer_id=None).update(customer_id=customer_id)
        known = rows.values_list("customer_id", flat=True).get()
    commit_so_far()
    return str(known)


def _watch(organization_id: str, *, setup_id: str) -> None:
    """Has the sweep ask for the card from now on, for as long as Stripe's page can be used."""
    at = now()
    with organization_scope(organization_id):
        CardAccount.objects.filter(pk=organization_id).update(
            setup_id=setup_id, updated_at=at, check_at=at + CHECK_AFTER_MIN
        )


def _postpone(organization_id: str) -> None:
    """Sets when the sweep asks again; not at all once nothing can change any more."""
    with organization_scope(organization_id):
        rows = CardAccount.objects.filter(pk=organization_id, check_at__isnull=False)
        began = rows.values_list("updated_at", flat=True).first()
        if began is not None:
            rows.update(check_at=_next_check(began, now()))


def _next_check(began: datetime, at: datetime) -> datetime | None:
    passed = at - began
    if passed > CHECKED_FOR:
        return None
    return at + min(max(passed / 4, CHECK_AFTER_MIN), CHECK_AFTER_MAX)


def _keep_card(organization_id: str, card: Card | None) -> CardAccount:
    """Writes a card down, with all that follows from another one. The organization is locked."""
    account = CardAccount.objects.select_for_update().get(pk=organization_id)
    before = (account.method_id, str(account) if account.method_id else None)
    account.method_id = card.id if card else ""
    account.brand = card.brand if card else ""
    account.last4 = card.last4 if card else ""
    account.expires_month = card.expires_month if card else None
    account.expires_year = card.expires_year if card else None
    account.fingerprint = card.fingerprint if card else ""
    account.save()
    if account.method_id == before[0]:
        return account
    record_audit(
        actor=system_actor(organization_id),
        action="payment_method.change",
        target_type="organization",
        target_id=organization_id,
        detail={"card": change_of(before[1], str(account) if card else None)},
    )
    if card is None:
        remove_payer(organization_id=organization_id)
    else:
        assign_payer(
            organization_id=organization_id, kind=PayerKind.CARD, fingerprint=card.fingerprint
        )
        unpaid = UnpaidInvoice.objects.filter(organization_id=organization_id, ended_at=None)
        unpaid.exclude(failure=FailureKind.REOPENED).update(next_try_at=now())
        enqueue_task(
            task=COLLECT,
            organization_id=organization_id,
            arguments={"organization_id": organization_id},
        )
    return account
