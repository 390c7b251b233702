"""Organisations: what their members change, and the standing that billing gives them."""

from __future__ import annotations

from console.accounts.choices import Standing
from console.accounts.models import Organization
from console.accounts.signals import standing_changed
from console.common.actor import Actor, system_actor
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
