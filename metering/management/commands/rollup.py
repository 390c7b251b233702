"""`manage.py rollup`: rolls a day's usage up and publishes it, or shows what was rolled up."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from datetime import date, datetime
from types import FrameType

from django.core.management.base import BaseCommand, CommandError

from console.common.conf import config
from console.common.errors import AppError
from metering.models import QualityResult, RollupPointer, RollupRun
from metering.services.rollup import roll_up

SHOWN = 40


class Command(BaseCommand):
    """Rolls a day up. May run any number of times: the same rows are published once."""

    help = "Rolls the usage of a day (UTC) up by hour and day, and publishes it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--day", type=date.fromisoformat, help="YYYY-MM-DD, UTC")
        what.add_argument("--list", action="store_true", help="show the newest roll-ups")
        parser.add_argument("--cell", default=config().cell.id, help="default: %(default)s")
        parser.add_argument("--early", action="store_true", help="even if the day is not over")

    def handle(self, *args: object, **options: object) -> None:
        """Runs until it is done; an interrupt ends the job and publishes nothing."""
        cell, day = str(options["cell"]), options["day"]
        if not isinstance(day, date):
            self._list(cell)
            return
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            run = roll_up(
                day=day,
                cell=cell,
                early=bool(options["early"]),
                say=self._say,
            )
        except AppError as error:
            raise CommandError(error.detail) from error
        except KeyboardInterrupt as error:
            message = "interrupted: nothing of this roll-up counts"
            raise CommandError(message, returncode=130) from error
        finally:
            signal.signal(signal.SIGTERM, before)
        for each in run.quality.filter(passed=False).order_by("kind", "name"):
            self.stdout.write(self.style.WARNING(_finding(each)))

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _list(self, cell: str) -> None:
        current = set(RollupPointer.objects.filter(cell=cell).values_list("run_id", flat=True))
        runs = RollupRun.objects.filter(cell=cell).defer("inputs").order_by("-day", "-created_at")
        for run in runs[:SHOWN]:
            mark = "*" if run.pk in current else " "
            facts = f"{run.report.get('days', '-')} days, {run.report.get('hours', '-')} hours"
            failed = run.quality.filter(passed=False).count()
            self.stdout.write(
                f"{mark} {run.day} {run.pk} {run.state:11} {_time(run.created_at)} {facts}"
                + (f", {failed} findings" if failed else "")
                + (f": {run.error.splitlines()[0]}" if run.error else "")
            )


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _finding(result: QualityResult) -> str:
    return f"{result.kind}: {result.name}: {result.detail}"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
