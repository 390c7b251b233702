"""`manage.py reopen_organization ORGANIZATION --reason REASON`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.accounts.services import reopen_organization


class Command(BaseCommand):
    """Takes an organisation's end back. Its owner restores clusters and makes keys."""

    help = "Takes an organisation's end back. Its owner restores clusters and makes keys."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which one, and why."""
        parser.add_argument("organization", help="org_…")
        parser.add_argument("--reason", required=True, help="kept in the audit log")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Does it, or says that there is nothing to do."""
        del args
        wanted = options["organization"]
        if not reopen_organization(organization_id=wanted, reason=options["reason"]):
            message = f"{wanted} is not closed."
            raise CommandError(message)
        self.stdout.write("It is open again. Clusters can be restored; keys stay revoked.")
