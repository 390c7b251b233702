"""`manage.py reopen_organization ORGANIZATION --reason REASON`."""

from __future__ import annotations

from console.base.accounts.management.support_command import SupportCommand
from console.base.accounts.services import reopen_organization


class Command(SupportCommand):
    """Takes an organisation's end back. Its owner restores clusters and makes keys."""

    help = "Takes an organisation's end back. Its owner restores clusters and makes keys."
    done = "It is open again. Clusters can be restored; keys stay revoked."
    nothing = "is not closed."

    def work(self, organization_id: str, reason: str) -> bool:
        """False where it is open."""
        return reopen_organization(organization_id=organization_id, reason=reason)
