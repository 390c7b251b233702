"""`manage.py createsuperuser`, in the place of Django's command."""

from __future__ import annotations

from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser


class Command(BaseCommand):
    """Says what to do instead, whatever it is given."""

    help = "Nothing: there are no superusers. See make_staff."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds what Django's command takes."""
        parser.add_argument("--email")
        parser.add_argument("--noinput", "--no-input", action="store_true")
        parser.add_argument("--database")

    def handle(self, *args: Any, **options: Any) -> NoReturn:  # noqa: ANN401 (as Django has it)
        """Raises `CommandError`, which names the command that makes somebody staff."""
        message = (
            "Freshet has no superusers, and people sign up by themselves. Then make them staff:"
            ' manage.py make_staff EMAIL --reason "…"'
        )
        raise CommandError(message)
