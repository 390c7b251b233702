"""`manage.py reconcile`: compares a day's usage with what the log holds."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from datetime import date
from types import FrameType

from django.core.management.base import BaseCommand, CommandError

from console.common.conf import config
from console.common.errors import AppError
from metering.models import Reconciliation
from metering.services.reconciliation import reconcile

SHOWN = 40


class Command(BaseCommand):
    """Compares a day. May run any number of times."""

    help = "Compares the usage of a day (UTC) that is rolled up with what the log holds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--day", type=date.fromisoformat, help="YYYY-MM-DD, UTC")
        what.add_argument("--list", action="store_true", help="show the newest comparisons")
        parser.add_argument("--cell", default=config().cell.id, help="default: %(default)s")

    def handle(self, *args: object, **options: object) -> None:
        """Runs until it is done; ends with status 1 where something differs."""
        cell, day = str(options["cell"]), options["day"]
        if not isinstance(day, date):
            self._list(cell)
            return
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            found = reconcile(day=day, cell=cell, say=self._say)
        except AppError as error:
            raise CommandError(error.detail) from error
        except KeyboardInterrupt as error:
            message = "interrupted: nothing of this comparison counts"
            raise CommandError(message, returncode=130) from error
        finally:
            signal.signal(signal.SIGTERM, before)
        for side in ("ingress", "egress"):
            for each in found.report[side]["findings"]:
                self.stdout.write(self.style.WARNING(f"{side}: {each}"))
        if not found.passed:
            message = f"{day}: usage and log differ, or could not be compared"
            raise CommandError(message)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _list(self, cell: str) -> None:
        found = Reconciliation.objects.filter(cell=cell).order_by("-day", "-created_at")
        for each in found[:SHOWN]:
            outcome = {True: "equal", False: "DIFFERS", None: each.state}[each.passed]
            size = each.report.get("ingress", {}).get("metered_bytes", "-")
            self.stdout.write(f"{each.day} {each.pk} {outcome:11} {size} bytes of ingress")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
