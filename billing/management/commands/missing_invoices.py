"""`manage.py missing_invoices`: who has no invoice of a closed month, and why."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.models import MissingInvoice
from billing.periods import parse_month
from billing.services.missing import unissued_months
from console.base.common.clock import now
from console.base.common.tenancy import system_scope


class Command(BaseCommand):
    """Lists what the service could not issue by itself yet."""

    help = "List who has no invoice of a closed month, with the reason and the next attempt."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the month."""
        parser.add_argument("--month", default="", help="only of this one: YYYY-MM")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Prints a line for each month that nobody gets an invoice of, and one for each missing
        invoice, in the order of organizations.

        Raises `CommandError` for a text that is no month.
        """
        try:
            month = parse_month(options["month"]) if options["month"] else None
        except ValueError as error:
            raise CommandError(str(error)) from error
        with system_scope():
            waiting = [
                row for row in unissued_months(now()) if row.reason and month in {None, row.month}
            ]
            rows = MissingInvoice.objects.order_by("month", "organization_id")
            if month is not None:
                rows = rows.filter(month=month)
            missing = list(rows)
        for unissued in waiting:
            self.stdout.write(f"{unissued.month:%Y-%m} is not issued to anybody: {unissued.reason}")
        for row in missing:
            self.stdout.write(
                f"{row.month:%Y-%m} {row.organization_id} since {row.created_at:%Y-%m-%d %H:%M},"
                f" attempt {row.attempts}, next {row.next_try_at:%Y-%m-%d %H:%M} UTC: {row.reason}"
            )
        if not waiting and not missing:
            self.stdout.write("No invoice is missing.")
