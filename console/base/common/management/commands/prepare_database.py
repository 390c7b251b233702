"""`manage.py prepare_database`: makes the two roles and the database on your own server, once."""

from __future__ import annotations

import os
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.base.common.conf import config
from console.base.common.roles import prepare_database

VARIABLE = "FRESHET_SUPERUSER_DSN"


class Command(BaseCommand):
    """Makes what `[database]` in the settings names. Safe to repeat."""

    help = "Make the roles and the database that the settings name, as a PostgreSQL superuser."
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the superuser's connection string, whose password is safer in the environment."""
        parser.add_argument(
            "--superuser",
            default=os.environ.get(VARIABLE),
            help=f"connection string of a role that may make roles (or {VARIABLE})",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Makes roles and database. Raises `CommandError` without a superuser, or if one fails."""
        if not options["superuser"]:
            message = (
                "Give the connection string of a role that may make roles: --superuser, or "
                f"{VARIABLE} in the environment."
            )
            raise CommandError(message)
        try:
            prepare_database(superuser=options["superuser"], database=config().database)
        except psycopg.Error as error:
            raise CommandError(str(error).strip()) from error
        self.stdout.write(f"The database {config().database.name} and its two roles are there.")
