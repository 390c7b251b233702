"""Which payer an organization has. A card or account that two organizations share is one payer."""

from __future__ import annotations

import hashlib
from datetime import datetime

from billing.allowances.trials import used_past_trial
from billing.choices import PayerKind
from billing.models import Payer, PayerOrganization
from console.base.accounts.choices import TrafficLimitSource
from console.base.accounts.models import Organization
from console.base.accounts.services import set_traffic_limit
from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope


def assign_payer(*, organization_id: str, kind: PayerKind, fingerprint: str) -> Payer:
    """Has a payer pay for an organization from now on, and lifts what its lack refused.

    `fingerprint`: what is the same for the same card or account; empty where it is not known. It
    runs in the caller's transaction. Repeating it changes nothing.
    """
    with organization_scope(organization_id):
        link = _lock_link(organization_id)
        payer = _payer(kind, fingerprint, link)
        if link is None or link.payer_id != payer.pk:
            at = now()
            past_trial = used_past_trial(organization_id)
            _end_link(link, at)
            PayerOrganization.objects.create(
                organization_id=organization_id,
                payer=payer,
                since=at,
                past_trial={meter: str(quantity) for meter, quantity in past_trial.items()},
            )
            _record(organization_id, "assign", payer)
        set_traffic_limit(organization_id=organization_id, source=TrafficLimitSource.ALLOWANCE)
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
