"""`manage.py admit_everybody ORGANIZATION --reason REASON`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.accounts.services import admit_everybody


class Command(BaseCommand):
    """Lifts what an organisation asks of who comes in: for who locked everybody out."""

    help = "Lifts what an organisation asks of who comes in: for who locked everybody out."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which one, and why."""
        parser.add_argument("organization", help="org_…")
        parser.add_argument("--reason", required=True, help="kept in the audit log")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Does it, or says that there is nothing to do."""
        del args
        wanted = options["organization"]
        if not admit_everybody(organization_id=wanted, reason=options["reason"]):
            message = f"{wanted} has nothing to lift."
            raise CommandError(message)
        self.stdout.write("Keys and people come in from anywhere; no second factor is asked for.")
