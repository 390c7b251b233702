"""`manage.py admit_everybody ORGANIZATION --reason REASON`."""

from __future__ import annotations

from console.base.accounts.management.support_command import SupportCommand
from console.base.accounts.services import admit_everybody


class Command(SupportCommand):
    """Lifts what an organisation asks of who comes in: for who locked everybody out."""

    help = "Lifts what an organisation asks of who comes in: for who locked everybody out."
    done = "Keys and people come in from anywhere; no second factor is asked for."
    nothing = "has nothing to lift."

    def work(self, organization_id: str, reason: str) -> bool:
        """False where nothing was asked."""
        return admit_everybody(organization_id=organization_id, reason=reason)
