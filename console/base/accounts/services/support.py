"""What who runs the service does for an organisation that cannot help itself, with a reason."""

from __future__ import annotations

from console.base.accounts.models import Organization
from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.tenancy import organization_scope


def admit_everybody(*, organization_id: str, reason: str) -> bool:
    """Lets keys and people in from anywhere, people without a second factor too.

    For who locked everybody out. Tells whether there was something to lift.
    """
    nothing = {"allowed_addresses": [], "two_factor_required": False}
    return _change(organization_id, "organization.admit_everybody", nothing, reason)


def reopen_organization(*, organization_id: str, reason: str) -> bool:
    """Takes an organisation's end back; tells whether it was closed.

    Its clusters can be restored for as long as any that was deleted. Its keys stay revoked.
    """
    return _change(organization_id, "organization.reopen", {"closed_at": None}, reason)


def _change(organization_id: str, action: str, wanted: dict[str, object], reason: str) -> bool:
    with organization_scope(organization_id):
        rows = Organization.objects.for_organization(organization_id)
        organization = rows.select_for_update().first()
        if organization is None:
            return False
        changed = [name for name, value in wanted.items() if getattr(organization, name) != value]
        if not changed:
            return False
        for name in changed:
            setattr(organization, name, wanted[name])
        organization.generation += 1
        organization.save(update_fields=[*changed, "generation"])
        record_audit(
            actor=system_actor(organization_id),
            action=action,
            target_type="organization",
            target_id=organization_id,
            detail={"reason": reason},
        )
    return True
