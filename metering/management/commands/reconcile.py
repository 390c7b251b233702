"""`manage.py reconcile`: compares a day's usage with what the log holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from django.core.management.base import CommandError

from metering.management.day_command import SHOWN, DayCommand
from metering.models import Reconciliation
from metering.services.reconciliation import reconcile_day


class Command(DayCommand[Reconciliation]):
    """Compares a day. May run any number of times."""

    help = "Compares the usage of a day (UTC) that is rolled up with what the log holds."
    job = "comparison"

    def work(self, day: date, cell: str, options: Mapping[str, object]) -> Reconciliation:
        """Compares the day. An interrupted comparison keeps no result."""
        return reconcile_day(day=day, cell=cell, say=self.say)

    def report(self, done: Reconciliation) -> None:
        """Prints the findings. Raises `CommandError` (status 1) where something differs."""
        for side in ("ingress", "egress"):
            for finding in done.report[side]["findings"]:
                self.stdout.write(self.style.WARNING(f"{side}: {finding}"))
        if not done.passed:
            message = f"{done.day}: usage and log differ, or could not be compared in part or whole"
            raise CommandError(message)

    def show(self, cell: str) -> None:
        """Prints one line for each comparison."""
        comparisons = Reconciliation.objects.filter(cell=cell).order_by("-day", "-created_at")
        for comparison in comparisons[:SHOWN]:
            outcome = {True: "equal", False: "DIFFERS", None: comparison.state}[comparison.passed]
            size = comparison.report.get("ingress", {}).get("metered_bytes", "-")
            self.stdout.write(
                f"{comparison.day} {comparison.pk} {outcome:11} {size} bytes of ingress"
            )
