"""What an organization requires of a request beside a valid credential, for keys and sessions.

It requires an address that it allows, of people a second factor, and once it is closed that the
request only reads, or serves to pay what is owed.
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
    """Returns what an organization requires, as its actors carry it."""
    return Access(
        allowed_addresses=tuple(organization.allowed_addresses),
        second_factor=organization.two_factor_required,
        closed=organization.closed_at is not None,
    )


def admit_actor(
    *, actor: Actor, method: str, second_factor: bool, is_for_closed: bool = False
) -> None:
    """Refuses an authenticated actor's request where its organization does not admit it.

    Runs in the organization's tenancy scope. `method` is the HTTP method, `second_factor` whether
    the session showed one, `is_for_closed` whether a closed organization may make the change, as to
    pay what it owes. Raises `AddressNotAllowed` (after it has audited the refusal),
    `SecondFactorRequired`, or `OrganizationClosed` for a change of a closed organization.
    """
    if not is_allowed(actor.access.allowed_addresses, actor.address):
        _note_refusal(actor)
        raise AddressNotAllowed
    if not may_stay(actor=actor, second_factor=second_factor):
        raise SecondFactorRequired
    if actor.access.closed and method not in SAFE_METHODS and not is_for_closed:
        raise OrganizationClosed


def may_stay(*, actor: Actor, second_factor: bool) -> bool:
    """Returns whether an actor's open stream may go on, by its organization's settings."""
    missing = actor.access.second_factor and actor.kind is ActorKind.SESSION and not second_factor
    return is_allowed(actor.access.allowed_addresses, actor.address) and not missing


def _note_refusal(actor: Actor) -> None:
    """Audits a refusal once an hour for each actor and network: a loop must not fill the log."""
    subject = digest("refused", actor.organization_id, actor.name, network_of(actor.address))
    if events_of_address(kind="refused", address=subject):
        return
    note_address(kind="refused", address=subject)
    record_audit(
        actor=actor,
        action="access.refuse",
        target_type="organization",
        target_id=actor.organization_id,
        detail={"reason": AddressNotAllowed.code},
    )
