"""`manage.py running_totals`: compares running totals with their rows, or makes them anew."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import date

from django.core.management.base import BaseCommand, CommandError

from console.base.common.tenancy import system_scope
from metering.services.comparing import TotalsComparison, compare_hours, compare_month
from metering.services.running import months_with_usage, rebuild_hours, rebuild_month


class Command(BaseCommand):
    """Compares, and only with `--rebuild` writes. May run at any time, and any number of times."""

    help = "Compares running totals with the rows that they sum; --rebuild makes them anew."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds `--month` and `--rebuild`."""
        parser.add_argument("--month", type=_month, help="YYYY-MM; without it all months")
        parser.add_argument(
            "--rebuild", action="store_true", help="make the totals anew from their rows"
        )

    def handle(self, *args: object, **options: object) -> None:
        """Prints a line for each month, and what differs. Raises `CommandError` where it does."""
        asked = options["month"]
        with system_scope():
            months = [asked] if isinstance(asked, date) else months_with_usage()
        differing = 0
        for month in months:
            if options["rebuild"]:
                rebuild_month(month)
            differing += self._report(f"{month:%Y-%m}", compare_month(month))
        if options["rebuild"]:
            rebuild_hours()
        differing += self._report("hours", compare_hours())
        if differing:
            message = f"{differing} totals are not what their rows sum to"
            raise CommandError(message)

    def _report(self, what: str, comparison: TotalsComparison) -> int:
        self.stdout.write(f"{what}: {comparison.differing or 'no'} differences")
        for difference in comparison.named:
            self.stdout.write(self.style.WARNING(f"  {difference}"))
        return comparison.differing


def _month(text: str) -> date:
    return date.fromisoformat(f"{text}-01")
