"""`manage.py await_migrations`: returns once the database has the tables that this code expects."""

from __future__ import annotations

import threading
import time
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

LOOK_S = 2.0


class Command(BaseCommand):
    """Waits until every migration is applied, connected as the serving role.

    Where several servers start at once, those that serve wait by this for the one that migrates.
    """

    help = "Waits until every migration of this release is applied."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds the timeout."""
        parser.add_argument("--timeout", type=float, default=600.0, help="seconds, %(default)s")

    def handle(self, *, timeout: float, **_: object) -> None:
        """Waits. Raises `CommandError` if migrations are missing when the timeout is over."""
        deadline, pause = time.monotonic() + timeout, threading.Event()
        last_reason = ""
        while reason := missing_migrations():
            if reason != last_reason:
                self.stdout.write(f"Waiting: {reason}")
                last_reason = reason
            if time.monotonic() >= deadline:
                message = f"After {timeout:.0f} s: {reason}"
                raise CommandError(message)
            pause.wait(LOOK_S)


def missing_migrations() -> str:
    """Returns what to wait for, in words for people; empty once every migration is applied."""
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        connection.close()  # the next attempt opens a new connection
        return f"the database does not answer: {error}".strip()
    return f"{len(plan)} migrations are not applied" if plan else ""
