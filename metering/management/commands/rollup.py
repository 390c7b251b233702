"""`manage.py rollup`: rolls a day's usage up and publishes it, or shows what was rolled up."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import date, datetime

from metering.management.day_command import SHOWN, DayCommand
from metering.models import QualityResult, RollupPointer, RollupRun
from metering.services.rollup import roll_up


class Command(DayCommand[RollupRun]):
    """Rolls a day up. May run any number of times: the same rows are published once."""

    help = "Rolls the usage of a day (UTC) up by hour and day, and publishes it."
    job = "roll-up"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds `--early` to the options of every day's command."""
        super().add_arguments(parser)
        parser.add_argument("--early", action="store_true", help="even if the day is not over")

    def work(self, day: date, cell: str, options: Mapping[str, object]) -> RollupRun:
        """Rolls the day up. An interrupted roll-up publishes nothing."""
        return roll_up(day=day, cell=cell, early=bool(options["early"]), say=self.say)

    def report(self, done: RollupRun) -> None:
        """Prints the findings as warnings. A refused roll-up has raised an error before."""
        for result in done.quality.filter(passed=False).order_by("kind", "name"):
            self.stdout.write(self.style.WARNING(_finding(result)))

    def show(self, cell: str) -> None:
        """Prints one line for each roll-up; a star marks those that are published."""
        current = set(RollupPointer.objects.filter(cell=cell).values_list("run_id", flat=True))
        runs = RollupRun.objects.filter(cell=cell).defer("inputs").order_by("-day", "-created_at")
        for run in runs[:SHOWN]:
            mark = "*" if run.pk in current else " "
            facts = f"{run.report.get('days', '-')} days, {run.report.get('hours', '-')} hours"
            failed = run.quality.filter(passed=False).count()
            self.stdout.write(
                f"{mark} {run.day} {run.pk} {run.state:11} {_time_text(run.created_at)} {facts}"
                + (f", {failed} findings" if failed else "")
                + (f": {run.error.splitlines()[0]}" if run.error else "")
            )


def _finding(result: QualityResult) -> str:
    return f"{result.kind}: {result.name}: {result.detail}"


def _time_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
