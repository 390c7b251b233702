"""What an organisation asks of who comes in, beside a credential: one place for keys and sessions.

The addresses that it allows, a second factor of people, and once it is closed that nothing changes.
"""

from __future__ import annotations

from console.base.accounts.addresses import is_allowed
from console.base.accounts.errors import AddressNotAllowed, OrganizationClosed, SecondFactorRequired
from console.base.accounts.models import Organization
from console.base.accounts.services.limits import events_of_address, note_address
from console.base.common.actor import Access, Actor, ActorKind
from console.base.common.audit import record_audit
from console.base.common.requests import network_of
from console.base.common.sealing import digest

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def access_of(organization: Organization) -> Access:
    """What an organisation asks, for its actors."""
    return Access(
        allowed_addresses=tuple(organization.allowed_addresses),
        second_factor=organization.two_factor_required,
        closed=organization.closed_at is not None,
    )


def admit(*, actor: Actor, method: str, second_factor: bool) -> None:
    """Lets an authenticated actor's request go on, within the scope of its organisation.

    `second_factor` says whether a session showed one. Raises `AddressNotAllowed`, before which the
    refusal has been audited, `SecondFactorRequired`, and `OrganizationClosed`.
    """
    if not is_allowed(actor.access.allowed_addresses, actor.address):
        _note_refusal(actor)
        raise AddressNotAllowed
    if not may_stay(actor=actor, second_factor=second_factor):
        raise SecondFactorRequired
    if actor.access.closed and method not in SAFE_METHODS:
        raise OrganizationClosed


def may_stay(*, actor: Actor, second_factor: bool) -> bool:
    """Tells whether what an actor opened may stay open as the organisation is now."""
    missing = actor.access.second_factor and actor.kind is ActorKind.SESSION and not second_factor
    return is_allowed(actor.access.allowed_addresses, actor.address) and not missing


def _note_refusal(actor: Actor) -> None:
    """Audits a refusal, of each actor and network once an hour: a loop must not fill the log."""
    told = digest("refused", actor.organization_id, actor.name, network_of(actor.address))
    if events_of_address(kind="refused", address=told):
        return
    note_address(kind="refused", address=told)
    record_audit(
        actor=actor,
        action="access.refuse",
        target_type="organization",
        target_id=actor.organization_id,
        detail={"reason": AddressNotAllowed.code},
    )
