"""`manage.py reset_second_factor EMAIL --reason REASON`: for who lost device and recovery codes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from console.base.accounts.models.user import normal_email
from console.base.accounts.services import reset_second_factor


class Command(BaseCommand):
    """Removes a second factor once somebody made sure who asks for it. A mail tells the person."""

    help = "Remove the second factor of a person who cannot show it any more."

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose, and why."""
        parser.add_argument("email")
        parser.add_argument("--reason", required=True, help="kept in the audit log")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Removes it, or says that there is none."""
        del args
        email = normal_email(options["email"])
        with transaction.atomic():
            if not reset_second_factor(email=email, reason=options["reason"]):
                message = f"{email} has no second factor."
                raise CommandError(message)
        self.stdout.write(f"{email} signs in with the password alone; all sessions were ended.")
