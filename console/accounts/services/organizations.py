"""Organisations: what their members change, and the standing that billing gives them."""

from __future__ import annotations

from console.accounts.choices import Standing
from console.accounts.models import Membership, Organization
from console.accounts.models.organization import REASON_CHARS_MAX
from console.accounts.signals import produce_suspension_changed, standing_changed
from console.common.actor import GRANTS, Actor, Permission, Role, system_actor
from console.common.audit import record_audit
from console.common.tenancy import organization_scope


def update_organization(*, actor: Actor, organization: Organization, name: str) -> Organization:
    """Renames a row that the caller has locked. Gives the row as it is afterwards."""
    if name == organization.name:
        return organization
    record_audit(
        actor=actor,
        action="organization.update",
        target_type="organization",
        target_id=organization.pk,
        detail={"name": {"from": organization.name, "to": name}},
    )
    organization.name = name
    organization.generation += 1
    organization.save(update_fields=["name", "generation"])
    return organization


def set_standing(*, organization_id: str, standing: Standing, reason: str) -> bool:
    """Suspends an organisation or lets it go on; tells whether that changed anything."""
    with organization_scope(organization_id):
        changed = (
            Organization.objects.filter(pk=organization_id)
            .exclude(standing=standing)
            .update(standing=standing)
        )
        if changed:
            record_audit(
                actor=system_actor(organization_id),
                action="organization.set_standing",
                target_type="organization",
                target_id=organization_id,
                detail={"standing": standing.value, "reason": reason},
            )
            standing_changed.send(
                sender=Organization, organization_id=organization_id, standing=standing
            )
    return bool(changed)


def set_produce_suspension(*, organization_id: str, reason: str | None) -> bool:
    """Has an organisation's clusters refuse produce, or with None take records again.

    Everything else goes on: fetching, commits, administration. Clients that produce are shown the
    `reason`, so it says who can do what about it; more than `REASON_CHARS_MAX` are cut off. Tells
    whether that changed anything. Raises `ValueError` for a reason that says nothing.
    """
    if reason is not None and not reason.strip():
        message = "a produce suspension needs a reason"
        raise ValueError(message)
    wanted = None if reason is None else reason[:REASON_CHARS_MAX]
    with organization_scope(organization_id):
        # Whoever makes a cluster at this moment holds the row: it is found, or finds the reason.
        organization = Organization.objects.select_for_update(no_key=True).get(pk=organization_id)
        if organization.produce_suspended_reason == wanted:
            return False
        organization.produce_suspended_reason = wanted
        organization.save(update_fields=["produce_suspended_reason"])
        record_audit(
            actor=system_actor(organization_id),
            action="organization.set_produce_suspension",
            target_type="organization",
            target_id=organization_id,
            detail={"reason": wanted},
        )
        produce_suspension_changed.send(sender=Organization, organization_id=organization_id)
    return True


def billing_addresses(*, organization_id: str) -> list[str]:
    """Addresses of an organisation's members who look after its money, each once."""
    with organization_scope(organization_id):
        members = Membership.objects.for_organization(organization_id).filter(
            role__in=[role.value for role in Role if Permission.BILLING in GRANTS[role]],
            user__is_active=True,
        )
        return sorted(members.values_list("user__email", flat=True).distinct())
