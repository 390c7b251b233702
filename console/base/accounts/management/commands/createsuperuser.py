"""`manage.py createsuperuser` of Django, which does not exist here."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser


class Command(BaseCommand):
    """Says how somebody becomes staff: people are made by signing up, and by nothing else."""

    help = "Not here: sign up, then use make_staff."

    def add_arguments(self, parser: CommandParser) -> None:
        """Takes whatever Django's own command takes."""
        for flag in ("--noinput", "--no-input"):
            parser.add_argument(flag, action="store_true", dest="no_input")
        for name in ("--email", "--username", "--database"):
            parser.add_argument(name)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Raises `CommandError`."""
        message = (
            "Freshet has no superusers. Sign up in the console, then run: manage.py make_staff"
            ' EMAIL --reason "…"'
        )
        raise CommandError(message)
