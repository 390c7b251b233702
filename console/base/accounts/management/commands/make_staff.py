"""`manage.py make_staff EMAIL --reason REASON`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from console.base.accounts.models import User
from console.base.accounts.models.user import normal_email
from console.base.accounts.services import has_second_factor, set_staff


class Command(BaseCommand):
    """Makes a person staff, who runs the service, or staff no more.

    The person has signed up like everybody else. A mail informs them.
    """

    help = "Make a person who has signed up staff: they see the console's staff area."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the person's address and the reason."""
        parser.add_argument("email")
        parser.add_argument("--reason", required=True, help="kept in the audit log")
        parser.add_argument("--remove", action="store_true", help="make them staff no more")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Does it. Raises `CommandError` for somebody who has not signed up or proved the address,
        and where nothing changes."""
        email, staff = normal_email(options["email"]), not options["remove"]
        with transaction.atomic():
            user = User.objects.filter(email=email, is_active=True).first()
            if user is None:
                message = f"Nobody has signed up as {email}."
                raise CommandError(message)
            if staff and user.email_verified_at is None:
                message = f"{email} has not followed the link in the mail of the sign-up yet."
                raise CommandError(message)
            if not set_staff(user=user, staff=staff, reason=options["reason"]):
                message = f"{email} {'is staff already' if staff else 'is not staff'}."
                raise CommandError(message)
            protected = has_second_factor(user)
        if not staff:
            self.stdout.write(f"{email} is staff no more; all their sessions were ended.")
            return
        self.stdout.write(f"{email} is staff; all their sessions were ended.")
        if not protected:
            self.stdout.write(
                "The staff area opens after a sign-in with a second factor, which they have not"
                " got yet: in the console, Account, Security."
            )
