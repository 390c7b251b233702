"""`manage.py reopen_organization ORGANIZATION --reason REASON`."""

from __future__ import annotations

from console.base.accounts.management.support_command import SupportCommand
from console.base.accounts.services import reopen_organization


class Command(SupportCommand):
    """Undoes the closing of an organization. Its owner then restores clusters and makes keys."""

    help = "Undoes the closing of an organization. Its owner then restores clusters and makes keys."
    done = "The organization is open again. Its clusters can be restored; its keys stay revoked."
    nothing = "is not closed."

    def change(self, organization_id: str, reason: str) -> bool:
        """Opens the organization again; returns False where it is open."""
        return reopen_organization(organization_id=organization_id, reason=reason)
