"""`manage.py reconcile`: compares a day's usage with what the log holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from django.core.management.base import CommandError

from metering.management.day_command import SHOWN, DayCommand
from metering.models import Reconciliation
from metering.services.reconciliation import reconcile


class Command(DayCommand[Reconciliation]):
    """Compares a day. May run any number of times."""

    help = "Compares the usage of a day (UTC) that is rolled up with what the log holds."
    job = "comparison"

    def work(self, day: date, cell: str, options: Mapping[str, object]) -> Reconciliation:
        """Interrupted it keeps no result."""
        del options
        return reconcile(day=day, cell=cell, say=self.say)

    def report(self, done: Reconciliation) -> None:
        """Ends with status 1 where something differs."""
        for side in ("ingress", "egress"):
            for finding in done.report[side]["findings"]:
                self.stdout.write(self.style.WARNING(f"{side}: {finding}"))
        if not done.passed:
            message = f"{done.day}: usage and log differ, or could not be compared"
            raise CommandError(message)

    def show(self, cell: str) -> None:
        """One line each."""
        found = Reconciliation.objects.filter(cell=cell).order_by("-day", "-created_at")
        for each in found[:SHOWN]:
            outcome = {True: "equal", False: "DIFFERS", None: each.state}[each.passed]
            size = each.report.get("ingress", {}).get("metered_bytes", "-")
            self.stdout.write(f"{each.day} {each.pk} {outcome:11} {size} bytes of ingress")
