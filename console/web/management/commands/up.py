"""`manage.py up`: all of Freshet on this machine."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Replaces itself by the supervisor, which needs neither Django nor its memory."""

    help = "Start everything on this machine: PostgreSQL, Redis, web, workers, gateway, keeper."
    requires_system_checks = ()
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Does not return."""
        del args, options
        sys.stdout.flush()
        command = [sys.executable, "-m", "console.supervisor"]
        os.execv(sys.executable, command)  # noqa: S606 (there is no shell)
