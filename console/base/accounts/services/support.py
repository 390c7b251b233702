"""What staff do for an organization that cannot help itself. Each change audits a reason."""

from __future__ import annotations

from console.base.accounts.models import Organization
from console.base.common.actor import system_actor
from console.base.common.audit import changes_of, record_audit
from console.base.common.tenancy import organization_scope


def admit_everybody(*, organization_id: str, reason: str) -> bool:
    """Lifts allowed networks and the required second factor, where they lock everybody out.

    Returns whether either was set.
    """
    values = {"allowed_addresses": [], "two_factor_required": False}
    return _change_organization(organization_id, "organization.admit_everybody", values, reason)


def reopen_organization(*, organization_id: str, reason: str) -> bool:
    """Undoes the closing of an organization; returns whether it was closed.

    Its clusters can be restored for as long as any deleted cluster. Its keys stay revoked.
    """
    return _change_organization(organization_id, "organization.reopen", {"closed_at": None}, reason)


def _change_organization(
    organization_id: str, action: str, values: dict[str, object], reason: str
) -> bool:
    """Sets fields of an organization and audits it; returns whether any of them changed."""
    with organization_scope(organization_id):
        rows = Organization.objects.for_organization(organization_id)
        organization = rows.select_for_update().first()
        if organization is None:
            return False
        changed = [name for name, value in values.items() if getattr(organization, name) != value]
        if not changed:
            return False
        detail = changes_of(organization, {name: values[name] for name in changed})
        for name in changed:
            setattr(organization, name, values[name])
        organization.generation += 1
        organization.save(update_fields=[*changed, "generation"])
        record_audit(
            actor=system_actor(organization_id),
            action=action,
            target_type="organization",
            target_id=organization_id,
            detail={**detail, "reason": reason},
        )
    return True
