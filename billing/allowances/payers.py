"""Which payer an organization has. A card or account that two organizations share is one payer."""

from __future__ import annotations

import hashlib
from datetime import datetime

from billing.allowances.refusals import refusal_of_card, why_refused
from billing.allowances.trials import free_so_far
from billing.choices import PayerKind
from billing.models import CardAccount, Payer, PayerOrganization
from console.base.accounts.choices import TrafficLimitSource
from console.base.accounts.models import Organization
from console.base.accounts.services import set_traffic_limit
from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope

# Of cards that were refused, so many are looked at each half minute.
WAITING_MAX = 500


def assign_payer(*, organization_id: str, kind: PayerKind, fingerprint: str) -> Payer:
    """Has a payer pay for an organization from now on, and lifts what its lack refused.

    A card that owes elsewhere, or whose charges are disputed, pays for no further organization
    (`refusals.py`): then nobody pays, until `assign_waiting_payer` finds that over.

    `fingerprint`: what is the same for the same card or account; empty where it is not known. It
    runs in the caller's transaction. Repeating it changes nothing.
    """
    with organization_scope(organization_id):
        link = _lock_link(organization_id)
        payer = _payer(kind, fingerprint, link)
        if link is None or link.payer_id != payer.pk:
            at = now()
            if why_refused(payer, organization_id) is not None:
                _end_link(link, at)
                _record(organization_id, "refuse", payer)
                return payer
            free_before = free_so_far(organization_id)
            _end_link(link, at)
            PayerOrganization.objects.create(
                organization_id=organization_id,
                payer=payer,
                since=at,
                free_before={meter: str(quantity) for meter, quantity in free_before.items()},
            )
            _record(organization_id, "assign", payer)
        set_traffic_limit(organization_id=organization_id, source=TrafficLimitSource.ALLOWANCE)
    return payer


def waiting_organizations() -> list[str]:
    """Organizations whose card was refused when it was given, and is refused no more.

    Needs the system's scope.
    """
    paid = PayerOrganization.objects.filter(until=None).values("organization_id")
    waiting = CardAccount.objects.exclude(method_id="").exclude(organization_id__in=paid)
    accounts = list(waiting.order_by("updated_at", "pk")[:WAITING_MAX])
    return [one.organization_id for one in accounts if refusal_of_card(one) is None]


def assign_waiting_payer(organization_id: str) -> bool:
    """Has the card of an organization pay for it, which nobody does; returns whether it does now.

    In the caller's transaction.
    """
    with organization_scope(organization_id):
        if _lock_link(organization_id) is not None:
            return False
        account = CardAccount.objects.filter(pk=organization_id).exclude(method_id="").first()
        if account is None or refusal_of_card(account) is not None:
            return False
        assign_payer(
            organization_id=organization_id,
            kind=PayerKind.CARD,
            fingerprint=account.fingerprint,
        )
        return True


def trust_payer(*, organization_id: str, is_trusted: bool, reason: str) -> Payer | None:
    """Has neither debts nor disputes nor the limit before the first payment hold up the card of an
    organization, or holds all of it against the card again.

    Returns its payer; None where the organization has no card. In the caller's transaction.
    """
    with organization_scope(organization_id):
        account = CardAccount.objects.filter(pk=organization_id).exclude(method_id="").first()
        if account is None:
            return None
        link = _lock_link(organization_id)
        payer = link.payer if link else _payer(PayerKind.CARD, account.fingerprint, link)
        payer.trusted_at = now() if is_trusted else None
        payer.save(update_fields=["trusted_at"])
        record_audit(
            actor=system_actor(organization_id),
            action="payer.trust" if is_trusted else "payer.distrust",
            target_type="payer",
            target_id=payer.pk,
            detail={"reason": reason},
        )
    return payer


def remove_payer(*, organization_id: str) -> bool:
    """Ends that anybody pays for an organization; returns whether somebody did.

    The month goes on being that payer's: what was used with a payment method is billed.
    """
    with organization_scope(organization_id):
        link = _lock_link(organization_id)
        if link is None:
            return False
        _end_link(link, now())
        _record(organization_id, "remove", link.payer)
    return True


def payer_of(organization_id: str) -> str | None:
    """The id of who pays for an organization now, in the caller's scope; None where nobody does."""
    links = PayerOrganization.objects.filter(organization_id=organization_id, until=None)
    return links.values_list("payer_id", flat=True).first()


def has_payer_locked(organization_id: str) -> bool:
    """Whether somebody pays for an organization; that cannot change until the transaction ends.

    Needs the organization's scope.
    """
    return _lock_link(organization_id) is not None


def account_fingerprint(iban: str) -> str:
    """The fingerprint of a bank account: a hash, so that the number itself is not kept."""
    return hashlib.sha256("".join(iban.split()).upper().encode()).hexdigest()


def _lock_link(organization_id: str) -> PayerOrganization | None:
    """The organization's present link. Its row is locked, so that two changes are one after the
    other."""
    Organization.objects.select_for_update(no_key=True).get(pk=organization_id)
    links = PayerOrganization.objects.filter(organization_id=organization_id, until=None)
    return links.select_related("payer").first()


def _payer(kind: PayerKind, fingerprint: str, link: PayerOrganization | None) -> Payer:
    if fingerprint:
        payer, _ = Payer.objects.get_or_create(fingerprint=fingerprint, defaults={"kind": kind})
        return payer
    if link is not None and link.payer.fingerprint is None:
        return link.payer
    return Payer.objects.create(kind=kind)


def _end_link(link: PayerOrganization | None, at: datetime) -> None:
    if link is not None:
        link.until = at
        link.save(update_fields=["until"])


def _record(organization_id: str, verb: str, payer: Payer) -> None:
    record_audit(
        actor=system_actor(organization_id),
        action=f"payer.{verb}",
        target_type="payer",
        target_id=payer.pk,
        detail={"kind": payer.kind},
    )
