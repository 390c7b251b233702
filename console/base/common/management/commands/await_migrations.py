"""`manage.py await_migrations`: returns once the database has the shape of this code."""

from __future__ import annotations

import threading
import time
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

LOOK_S = 2.0


class Command(BaseCommand):
    """Looks as the serving role, which may change no table. Where servers start side by side, those
    that serve wait here for those that migrate."""

    help = "Waits until every migration of this release is applied."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How long to wait."""
        parser.add_argument("--timeout", type=float, default=600.0, help="seconds, %(default)s")

    def handle(self, *, timeout: float, **_: object) -> None:
        """Raises `CommandError` where they are not applied in time."""
        deadline, pause = time.monotonic() + timeout, threading.Event()
        said = ""
        while missing := missing_migrations():
            if missing != said:
                self.stdout.write(f"Waiting: {missing}")
                said = missing
            if time.monotonic() >= deadline:
                message = f"After {timeout:.0f} s: {missing}"
                raise CommandError(message)
            pause.wait(LOOK_S)


def missing_migrations() -> str:
    """What is missing, for people; empty where nothing is."""
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        connection.close()  # the next look is made with another one
        return f"the database does not answer: {error}".strip()
    return f"{len(plan)} migrations are not applied" if plan else ""
