"""`manage.py reset_second_factor EMAIL --reason REASON`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from console.base.accounts.models.user import normal_email
from console.base.accounts.services import reset_second_factor


class Command(BaseCommand):
    """Removes the second factor of a person who lost device and recovery codes.

    Whoever runs it has made sure who asks for it. A mail informs the person.
    """

    help = "Remove the second factor of a person who cannot show it any more."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the person's address and the reason."""
        parser.add_argument("email")
        parser.add_argument("--reason", required=True, help="kept in the audit log")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Removes the second factor. Raises `CommandError` where there is none."""
        email = normal_email(options["email"])
        with transaction.atomic():
            if not reset_second_factor(email=email, reason=options["reason"]):
                message = f"{email} has no second factor."
                raise CommandError(message)
        self.stdout.write(f"{email} signs in with the password alone; all sessions were ended.")
