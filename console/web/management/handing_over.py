"""The base of commands that are programs of their own and need neither Django nor a database."""

from __future__ import annotations

import os
import sys
from typing import ClassVar

from django.core.management.base import BaseCommand


class HandOver(BaseCommand):
    """Replaces this process by `python -m <module>`, with the arguments as they are."""

    requires_system_checks = ()
    requires_migrations_checks = False
    module: ClassVar[tuple[str, ...]]

    def run_from_argv(self, argv: list[str]) -> None:
        """Starts the program and never returns. `argv`: `manage.py`, the command, its arguments."""
        sys.stdout.flush()
        words = [sys.executable, "-m", *self.module, *argv[2:]]
        os.execv(sys.executable, words)  # noqa: S606 (there is no shell)
