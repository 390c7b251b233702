"""`manage.py admit_everybody ORGANIZATION --reason REASON`."""

from __future__ import annotations

from console.base.accounts.management.support_command import SupportCommand
from console.base.accounts.services import admit_everybody


class Command(SupportCommand):
    """Lifts allowed networks and the required second factor of an organization.

    It is for an organization whose settings lock everybody out.
    """

    help = (
        "Lifts an organization's allowed networks and its required second factor, for one whose "
        "settings lock everybody out."
    )
    done = "Keys and people come in from anywhere; no second factor is required."
    nothing = "has no allowed networks and requires no second factor: nothing was changed."

    def change(self, organization_id: str, reason: str) -> bool:
        """Lifts both; returns False where neither was set."""
        return admit_everybody(organization_id=organization_id, reason=reason)
